#!/usr/bin/env bash
# Checks that the Python package uses its dependencies with the features that the whole workspace gives them. Cargo then compiles
# each dependency once; otherwise the wheel compiles most of them again.
set -euo pipefail
cd "$(dirname "$0")/.."
tree() {
  cargo tree --quiet --edges normal,build --prefix none --no-dedupe --format '{p} {f}' "$@" | sed 's/ (\*)//' | sort -u
}
different=$(comm -13 <(tree --workspace) <(tree --package inertial-py))
if [ -n "$different" ]; then
  echo "inertial-py uses these dependencies with fewer features than the workspace; name them in crates/inertial-py/Cargo.toml:" >&2
  echo "$different" >&2
  exit 1
fi
