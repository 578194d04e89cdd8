#!/usr/bin/env bash
# Tests, in the release profile: the program that process tests start is target/release/inertial, which Cargo builds with them.
#
#   scripts/test.sh               everything: tests of the crates, pages in a browser, the Python package
#   scripts/test.sh fast          tests of the crates but for long statistics
#   scripts/test.sh long          long statistics alone (tests marked #[ignore = "long …"])
#   scripts/test.sh ARGUMENTS…    cargo test with these arguments
#
# Makes the Python environment with Pinocchio, MuJoCo and robot models first. A test whose data or programs are missing fails;
# with INERTIAL_ALLOW_SKIP=1 it is skipped, and says so.
set -eu
cd "$(dirname "$0")/.."
if python=$(scripts/python-env.sh); then
  export INERTIAL_PYTHON="$python"
elif [ "${INERTIAL_ALLOW_SKIP:-}" = 1 ]; then
  echo "note: no Python environment: comparisons with Pinocchio and MuJoCo are skipped" >&2
else
  echo "the Python environment could not be made; set INERTIAL_ALLOW_SKIP=1 to skip what needs it" >&2
  exit 1
fi
fast() { cargo test --release --workspace; }
long() { cargo test --release --workspace --lib --bins --tests -- --ignored; }
case "${1:-}" in
  fast) fast ;;
  long) long ;;
  "")
    fast
    long
    scripts/browser.sh
    if [ -n "${INERTIAL_PYTHON:-}" ]; then scripts/python.sh "$INERTIAL_PYTHON"; fi
    ;;
  *) cargo test --release "$@" ;;
esac
