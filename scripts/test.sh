#!/usr/bin/env bash
# Runs the tests in the release profile. Tests that start the program use target/release/inertial, which Cargo builds with them.
#
#   scripts/test.sh               everything: tests of the crates, pages in a browser, the Python package
#   scripts/test.sh fast          tests of the crates without long statistical tests
#   scripts/test.sh long          only long statistical tests (marked #[ignore = "long …"])
#   scripts/test.sh ARGUMENTS…    cargo test with these arguments
#
# Creates the Python environment with Pinocchio, MuJoCo and robot models first. A test fails if its data or programs are missing; with
# INERTIAL_ALLOW_SKIP=1 it is skipped with a note.
set -eu
cd "$(dirname "$0")/.."
if python=$(scripts/python-env.sh); then
  export INERTIAL_PYTHON="$python"
elif [ "${INERTIAL_ALLOW_SKIP:-}" = 1 ]; then
  echo "note: no Python environment; comparisons with Pinocchio and MuJoCo are skipped" >&2
else
  echo "the Python environment could not be created; set INERTIAL_ALLOW_SKIP=1 to skip the tests that need it" >&2
  exit 1
fi
# Background jobs of a shell and `nohup` ignore signals, and so do the programs that they start; tests send these signals.
default_signals=$(env --default-signal=INT,HUP true 2>/dev/null && echo env --default-signal=INT,HUP || true)
fast() { $default_signals cargo test --release --workspace; }
long() { $default_signals cargo test --release --workspace --lib --bins --tests -- --ignored; }
case "${1:-}" in
  fast) fast ;;
  long) long ;;
  "")
    fast
    long
    scripts/browser.sh
    if [ -n "${INERTIAL_PYTHON:-}" ]; then scripts/python.sh "$INERTIAL_PYTHON"; fi
    ;;
  *) $default_signals cargo test --release "$@" ;;
esac
