#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into the environment of PYTHON and tests it there: results against the program,
# regressors against Pinocchio, a local cluster, types, and every code block of the guide.
# Usage: scripts/python.sh PYTHON (an interpreter as printed by scripts/python-env.sh)
set -eu
cd "$(dirname "$0")/.."
python=$1
export INERTIAL_PROGRAM="$PWD/target/release/inertial"
# Build the whole workspace, as the tests do, so that each dependency is compiled once with the same features.
cargo build --release --quiet --workspace
$python -m pip install --quiet --no-compile -r crates/inertial-py/tests/requirements.txt
scripts/wheel-program.sh target/release/inertial
rm -rf target/wheels
$python -m maturin build --quiet --release --manifest-path crates/inertial-py/Cargo.toml --out target/wheels
$python -m pip install --quiet --force-reinstall --no-deps target/wheels/*.whl
cd crates/inertial-py
$python -m mypy
# As in scripts/test.sh: tests send signals, which background jobs ignore.
default_signals=$(env --default-signal=INT,HUP true 2>/dev/null && echo env --default-signal=INT,HUP || true)
$default_signals $python -m pytest --quiet --numprocesses 2 tests
