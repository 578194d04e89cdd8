#!/usr/bin/env bash
# Fuzzes all readers of user input with cargo-fuzz, starting from fuzz/seeds, with a fixed seed and a bounded number of runs.
# usage: scripts/fuzz.sh [RUNS [TARGET…]]     (needs a nightly toolchain and `cargo install cargo-fuzz`)
# The ordinary tests do the same on a smaller scale and need neither: crates/inertial-app/tests/all/damaged_inputs.rs
set -eu
cd "$(dirname "$0")/.."
runs=${1:-20000}
[ $# -gt 0 ] && shift
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
  echo "skipped: fuzzing needs a nightly toolchain and cargo-fuzz" >&2
  exit 0
fi
[ $# -gt 0 ] || set -- urdf mjcf sdf usd xacro mechanism csv gzip parquet numpy matlab mcap sqlite hdf5 ros1 map joint-model bounds trajectory stream
for target in "$@"; do
  mkdir -p "fuzz/corpus/$target"
  # The readers have no unsafe code, so sanitizers are not needed and would only slow down the build.
  INERTIAL_FUZZ_TARGET=$target cargo +nightly fuzz run --sanitizer none input "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
    -seed=1 -runs="$runs" -max_len=40000 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1
done
