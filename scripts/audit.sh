#!/usr/bin/env bash
# The whole audit, about 20 minutes on two cores; not part of .ci/run. docs/reliability.md has the counts of a run.
#
#   scripts/audit.sh [MINUTES]      [default: 20]
#
# One half of the time damages inputs in process (the tests damaged_inputs and damaged_requests with many cases), the other half
# runs the program on damaged inputs, with failing calls of the system, with small limits and with signals (scripts/audit.py).
# Needs strace, and jsonschema of the Python environment.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-20}
python=$(scripts/python-env.sh)
cargo build --release --quiet --workspace
cargo test --release --quiet --workspace --no-run
failed=0

# Cases in process are cheap for texts and dear for whole identifications: the same number of each fits into the time.
export INERTIAL_FUZZ_CASES=$((minutes * 1500))
cargo test --release --quiet --package inertial-app --test all -- --nocapture damaged_inputs | tee target/audit-inputs.txt || failed=1
INERTIAL_FUZZ_CASES=$((minutes * 200)) cargo test --release --quiet --package inertial-cli --test all -- --nocapture damaged_requests |
  tee target/audit-requests.txt || failed=1
awk '/damaged inputs are still usable/ { total += $4; usable += $2 } END { print "in process: " total " damaged inputs, " usable " still usable" }' \
  target/audit-inputs.txt target/audit-requests.txt
"$python" scripts/audit.py target/release/inertial --minutes "$((minutes / 2))" --out target/audit.json || failed=1
exit $failed
