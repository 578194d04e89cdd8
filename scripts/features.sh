#!/usr/bin/env bash
# Checks that the Python package enables the same features of its dependencies as the whole workspace. Cargo then compiles each
# dependency once; otherwise building the wheel compiles most of them again.
set -euo pipefail
cd "$(dirname "$0")/.."
tree() {
  cargo tree --quiet --edges normal,build --prefix none --no-dedupe --format '{p} {f}' "$@" | sed 's/ (\*)//' | sort -u
}
different=$(comm -13 <(tree --workspace) <(tree --package inertial-py))
if [ -n "$different" ]; then
  echo "inertial-py enables fewer features of these dependencies than the workspace; add them to crates/inertial-py/Cargo.toml:" >&2
  echo "$different" >&2
  exit 1
fi
