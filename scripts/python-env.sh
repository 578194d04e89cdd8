#!/usr/bin/env bash
# Makes .venv with the independent programs that the tests compare against (Pinocchio, MuJoCo, CVXPY, robot models from PyPI).
# Prints the interpreter's path. Exits 1 where the packages cannot be had; the tests then say that they were skipped.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${INERTIAL_PYTHON:-}" ]; then echo "$INERTIAL_PYTHON"; exit 0; fi
python=.venv/bin/python
if ! $python -c 'import pinocchio, mujoco, gymnasium, cvxpy, clarabel, rosbags, pandas, pxr' 2>/dev/null; then
  python3 -m venv .venv >&2
  $python -m pip install --quiet --no-compile -r scripts/python-requirements.txt >&2
fi
echo "$PWD/$python"
