#!/usr/bin/env bash
# Builds the Python package's wheel, installs it into a fresh environment and tests it there: numbers against the program's,
# regressors against Pinocchio's, a local cluster, types, and every code block of the guide.
# Usage: scripts/python.sh PYTHON, an interpreter as scripts/python-env.sh gives it.
set -eu
cd "$(dirname "$0")/.."
python=$1
export INERTIAL_PROGRAM="$PWD/target/release/inertial"
# The whole workspace, as the tests build it: one choice of features, one build of each dependency.
cargo build --release --quiet --workspace
$python -m pip install --quiet --no-compile -r crates/inertial-py/tests/requirements.txt
scripts/wheel-program.sh target/release/inertial
rm -rf target/wheels
$python -m maturin build --quiet --release --manifest-path crates/inertial-py/Cargo.toml --out target/wheels
$python -m pip install --quiet --force-reinstall --no-deps target/wheels/*.whl
cd crates/inertial-py
$python -m mypy
$python -m pytest --quiet --numprocesses 2 tests
