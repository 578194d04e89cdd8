#!/usr/bin/env bash
# Creates .venv with the reference packages of the tests (Pinocchio, MuJoCo, CVXPY, robot models from PyPI) and prints the path of its
# interpreter. Exits with an error if the packages cannot be installed; the tests that need them then fail or are skipped with a note.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${INERTIAL_PYTHON:-}" ]; then echo "$INERTIAL_PYTHON"; exit 0; fi
python=.venv/bin/python
if ! $python -c 'import pinocchio, mujoco, gymnasium, cvxpy, clarabel, rosbags, pandas, pxr' 2>/dev/null; then
  python3 -m venv .venv >&2
  $python -m pip install --quiet --no-compile -r scripts/python-requirements.txt >&2
fi
echo "$PWD/$python"
