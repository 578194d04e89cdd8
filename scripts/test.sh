#!/usr/bin/env bash
# All tests. Makes the Python environment with Pinocchio, MuJoCo and real robot models first;
# where it cannot be made, the comparisons with those programs say that they were skipped.
set -eu
cd "$(dirname "$0")/.."
if python=$(scripts/python-env.sh); then
  export INERTIAL_PYTHON="$python"
else
  echo "note: no Python environment: comparisons with Pinocchio and MuJoCo will be skipped" >&2
fi
cargo test --workspace "$@"
if [ $# = 0 ]; then
  scripts/browser.sh
  if [ -n "${INERTIAL_PYTHON:-}" ]; then
    scripts/python.sh "$INERTIAL_PYTHON"
  else
    echo "note: no Python environment: the Python package is not tested" >&2
  fi
fi
