#!/usr/bin/env bash
# Shows which results have the same bits on which processors, by qemu-user (Debian: apt-get install qemu-user).
#
#   scripts/reproducible.sh             x86-64 without AVX (Nehalem), with AVX2 and FMA (Haswell), and this machine
#   scripts/reproducible.sh --aarch64   aarch64 too; needs `rustup target add aarch64-unknown-linux-gnu` and gcc-aarch64-linux-gnu
#
# 1. Kernels with reproducible arithmetic: digests must be equal on all of them.
# 2. Results of the program: must be equal where processors have AVX2 and FMA; elsewhere the greatest relative difference is printed.
# docs/reliability.md says what is equal when.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v qemu-x86_64 >/dev/null || { echo "qemu-user is not installed" >&2; exit 1; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo build --release --quiet --package inertial --example kernel_bits
cargo build --release --quiet --package inertial-cli

declare -A machines=([native]="" [Nehalem]="qemu-x86_64 -cpu Nehalem" [Haswell]="qemu-x86_64 -cpu Haswell")
declare -A folders=([native]=target/release [Nehalem]=target/release [Haswell]=target/release)
if [ "${1:-}" = --aarch64 ]; then
  arm=aarch64-unknown-linux-gnu
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
  cargo build --release --quiet --package inertial --example kernel_bits --target $arm
  cargo build --release --quiet --package inertial-cli --target $arm
  machines[aarch64]="qemu-aarch64 -L /usr/aarch64-linux-gnu"
  folders[aarch64]=target/$arm/release
fi

# A log that all of them read.
native=target/release/inertial
"$native" simulate builtin:planar-2r fuzz/seeds/trajectory/series.json --rate 200 --ignore-limits \
  --noise tau=0.01 --seed 1 --out "$out/log.csv" >/dev/null 2>&1
commands=(
  "check builtin:arm7"
  "analyze builtin:arm7"
  "analyze builtin:four-bar"
  "identify builtin:planar-2r $out/log.csv"
  "identify builtin:planar-2r $out/log.csv --estimator wls --friction none"
  "validate builtin:planar-2r $out/log.csv"
)
for machine in "${!machines[@]}"; do
  prefix=${machines[$machine]}
  # Words of the prefix are arguments.
  # shellcheck disable=SC2086
  $prefix "${folders[$machine]}/examples/kernel_bits" > "$out/kernels.$machine"
  for k in "${!commands[@]}"; do
    # shellcheck disable=SC2086
    $prefix "${folders[$machine]}/inertial" ${commands[$k]} --json > "$out/$k.$machine" 2>/dev/null || [ $? = 1 ]
  done
done

failed=0
for machine in "${!machines[@]}"; do
  if cmp -s "$out/kernels.native" "$out/kernels.$machine"; then
    echo "kernels with reproducible arithmetic, $machine: equal"
  else
    echo "kernels with reproducible arithmetic, $machine: differ"
    diff "$out/kernels.native" "$out/kernels.$machine" || failed=1
  fi
done
cat > "$out/compare.py" <<'END'
"""The greatest difference of two results, relative to the greatest number of the same list or object."""
import json, sys

def numbers(value, path=""):
    if isinstance(value, dict):
        return [x for k, v in value.items() for x in numbers(v, f"{path}.{k}")]
    if isinstance(value, list):
        return [x for v in value for x in numbers(v, path)]
    return [(path, value)]

first, second = (numbers(json.load(open(name))) for name in sys.argv[1:3])
if [p for p, _ in first] != [p for p, _ in second]:
    sys.exit("other fields")
scale, worst, texts = {}, (0.0, ""), set()
parent = lambda path: path.rpartition(".")[0]
for path, x in first:
    if isinstance(x, float):
        scale[parent(path)] = max(scale.get(parent(path), 0.0), abs(x))
for (path, x), (_, y) in zip(first, second):
    if x == y:
        continue
    if isinstance(x, float) and isinstance(y, float):
        worst = max(worst, (abs(x - y) / scale[parent(path)], path))
    elif isinstance(x, str) and isinstance(y, str):
        texts.add(path)
    else:
        sys.exit(f"{path}: {x} and {y}")
print(f"{worst[0]:.0e} ({worst[1]})", *(f"and the text {path}" for path in sorted(texts)))
END
for k in "${!commands[@]}"; do
  for machine in "${!machines[@]}"; do
    name="${commands[$k]/$out\//}, $machine"
    if cmp -s "$out/$k.native" "$out/$k.$machine"; then
      echo "$name: equal"
    else
      echo "$name: $(python3 "$out/compare.py" "$out/$k.native" "$out/$k.$machine" 2>&1)"
      # The program chooses instructions by what the processor has: those with AVX2 and FMA must agree.
      if [ "$machine" = Haswell ] && grep -q fma /proc/cpuinfo; then failed=1; fi
    fi
  done
done
exit $failed
