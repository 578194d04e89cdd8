#!/usr/bin/env bash
# Fuzzes the readers with cargo-fuzz from the seeds in fuzz/seeds: fixed seed, bounded number of runs.
# usage: scripts/fuzz.sh [RUNS]     (needs a nightly toolchain and `cargo install cargo-fuzz`)
# The ordinary tests do the same in small, without either: crates/inertial/tests/readers_survive_mutations.rs
set -eu
cd "$(dirname "$0")/.."
runs=${1:-20000}
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
  echo "skipped: fuzzing needs a nightly toolchain and cargo-fuzz" >&2
  exit 0
fi
for target in urdf mjcf sdf mechanism; do
  mkdir -p "fuzz/corpus/$target"
  # The readers have no unsafe code: coverage is what counts, and sanitizers would only slow the build.
  cargo +nightly fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
    -seed=1 -runs="$runs" -max_len=8192 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1
done
