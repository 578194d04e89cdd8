#!/usr/bin/env bash
# Compares the bits of results on different processors, emulated by qemu-user (Debian: apt-get install qemu-user).
#
#   scripts/reproducible.sh             x86-64 without AVX (Nehalem), with AVX2 and FMA (Haswell), and this machine
#   scripts/reproducible.sh --aarch64   aarch64 too; needs gcc-aarch64-linux-gnu, and `rustup target add aarch64-unknown-linux-gnu` or
#                                       INERTIAL_RUST_SRC
#
# INERTIAL_RUST_SRC is a folder with the sources of exactly this rustc, from which its standard library is then built for aarch64, for
# example usr/src/rustc-1.95.0 of the Debian package rust-src 1.95.0 (`apt-get download`, `dpkg -x`).
#
# Checks that
# 1. the program uses no mathematical function of the C library that may round differently;
# 2. kernels with reproducible arithmetic have the same digests on all processors;
# 3. results of the program with --arithmetic reproducible have the same bytes on all processors;
# 4. results with the default arithmetic are equal on processors with AVX2 and FMA. For other processors, the largest relative difference
#    is printed.
# INERTIAL_BUILT=1 uses an existing build. docs/reliability.md describes which results are equal.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v qemu-x86_64 >/dev/null || { echo "qemu-user is not installed" >&2; exit 1; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
if [ "${INERTIAL_BUILT:-}" != 1 ]; then
  cargo build --release --quiet --package inertial --example kernel_bits
  cargo build --release --quiet --package inertial-cli
fi

declare -A machines=([native]="" [Nehalem]="qemu-x86_64 -cpu Nehalem" [Haswell]="qemu-x86_64 -cpu Haswell")
declare -A folders=([native]=target/release [Nehalem]=target/release [Haswell]=target/release)
if [ "${1:-}" = --aarch64 ]; then
  arm=aarch64-unknown-linux-gnu
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
  build=(cargo build --release --quiet --target "$arm")
  if [ -n "${INERTIAL_RUST_SRC:-}" ]; then
    # Permits the unstable option in a stable compiler; the second variable names the folder of its sources.
    export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT=$INERTIAL_RUST_SRC/library
    build+=(-Z build-std=std,panic_abort,panic_unwind)
  fi
  "${build[@]}" --package inertial --example kernel_bits
  "${build[@]}" --package inertial-cli
  unset RUSTC_BOOTSTRAP
  machines[aarch64]="qemu-aarch64 -L /usr/aarch64-linux-gnu"
  folders[aarch64]=target/$arm/release
fi

# Log used by all commands.
native=target/release/inertial
"$native" simulate builtin:planar-2r fuzz/seeds/trajectory/series.json --rate 200 --ignore-limits \
  --noise tau=0.01 --seed 1 --out "$out/log.csv" >/dev/null 2>&1
log=$out/log.csv
commands=(
  "check builtin:arm7"
  "check builtin:puma560"
  "analyze builtin:arm7"
  "analyze builtin:four-bar"
  "simulate builtin:planar-2r fuzz/seeds/trajectory/series.json --rate 100 --ignore-limits --noise tau=0.01 --seed 1"
  "design builtin:planar-2r --duration 4 --iterations 3 --starts 2"
  "identify builtin:planar-2r $log"
  "identify builtin:planar-2r $log --estimator ols --friction none"
  "identify builtin:planar-2r $log --estimator wls --friction none"
  "identify builtin:planar-2r $log --estimator irls"
  "identify builtin:planar-2r $log --solver manifold"
  "identify builtin:planar-2r $log --solver log-cholesky"
  "identify builtin:planar-2r $log --filter savitzky-golay --posterior"
  "identify builtin:planar-2r $log --payload link2"
  "validate builtin:planar-2r $log"
)
for machine in "${!machines[@]}"; do
  prefix=${machines[$machine]}
  # The prefix is split into arguments.
  # shellcheck disable=SC2086
  $prefix "${folders[$machine]}/examples/kernel_bits" > "$out/kernels.$machine"
  for k in "${!commands[@]}"; do
    for kind in fast reproducible; do
      # shellcheck disable=SC2086
      $prefix "${folders[$machine]}/inertial" ${commands[$k]} --arithmetic $kind --json > "$out/$k.$kind.$machine" 2>"$out/errors" ||
        [ $? = 1 ] || { echo "${commands[$k]}, $machine: $(cat "$out/errors")" >&2; exit 1; }
    done
  done
done

failed=0
# Exact functions of the C library are allowed.
inexact=$(nm -D --undefined-only "$native" | sed -nE 's/^ +[Uw] (a?(sin|cos|tan)h?|atan2|sincos|cbrt|exp|exp10|exp2|expm1|hypot|log|log10|log1p|log2|pow|erf|tgamma|lgamma)f?(@.*)?$/\1/p')
if [ -z "$inexact" ]; then
  echo "mathematical functions of the C library: none"
else
  echo "mathematical functions of the C library:" $inexact
  failed=1
fi
for machine in "${!machines[@]}"; do
  if cmp -s "$out/kernels.native" "$out/kernels.$machine"; then
    echo "kernels with reproducible arithmetic, $machine: equal"
  else
    echo "kernels with reproducible arithmetic, $machine: differ"
    diff "$out/kernels.native" "$out/kernels.$machine" || failed=1
  fi
done
cat > "$out/compare.py" <<'END'
"""Prints the largest difference between two results, relative to the largest number in the same list or object."""
import json, sys

def numbers(value, path=""):
    if isinstance(value, dict):
        return [x for k, v in value.items() for x in numbers(v, f"{path}.{k}")]
    if isinstance(value, list):
        return [x for v in value for x in numbers(v, path)]
    return [(path, value)]

first, second = (numbers(json.load(open(name))) for name in sys.argv[1:3])
if [p for p, _ in first] != [p for p, _ in second]:
    sys.exit("the fields differ")
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
    [ "$machine" != native ] || continue
    name="${commands[$k]/$out\//}"
    if cmp -s "$out/$k.reproducible.native" "$out/$k.reproducible.$machine"; then
      echo "$name, reproducible, $machine: equal"
    else
      echo "$name, reproducible, $machine: $(python3 "$out/compare.py" "$out/$k.reproducible.native" "$out/$k.reproducible.$machine" 2>&1)"
      failed=1
    fi
    if cmp -s "$out/$k.fast.native" "$out/$k.fast.$machine"; then
      echo "$name, $machine: equal"
    else
      echo "$name, $machine: $(python3 "$out/compare.py" "$out/$k.fast.native" "$out/$k.fast.$machine" 2>&1)"
      # Kernels are selected by processor features; processors with AVX2 and FMA must agree.
      if [ "$machine" = Haswell ] && grep -q fma /proc/cpuinfo; then failed=1; fi
    fi
  done
done
exit $failed
