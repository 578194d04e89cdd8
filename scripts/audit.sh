#!/usr/bin/env bash
# Runs the complete audit (about 20 minutes on two cores; not part of .ci/run). docs/reliability.md lists the counts of a run.
#
#   scripts/audit.sh [MINUTES]      [default: 20]
#
# The first half of the time tests damaged inputs in process (the tests damaged_inputs and damaged_requests with many cases). The second
# half runs the program on damaged inputs, with failing system calls, with small resource limits and with signals (scripts/audit.py).
# Needs strace, and jsonschema in the Python environment.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-20}
python=$(scripts/python-env.sh)
cargo build --release --quiet --workspace
cargo test --release --quiet --workspace --no-run
failed=0

# In-process cases are cheap for text formats and expensive for complete identifications; this number of each fits into the time.
export INERTIAL_FUZZ_CASES=$((minutes * 1500))
cargo test --release --quiet --package inertial-app --test all -- --nocapture damaged_inputs | tee target/audit-inputs.txt || failed=1
INERTIAL_FUZZ_CASES=$((minutes * 200)) cargo test --release --quiet --package inertial-cli --test all -- --nocapture damaged_requests |
  tee target/audit-requests.txt || failed=1
awk '/damaged inputs are still usable/ { total += $4; usable += $2 } END { print "in process: " total " damaged inputs, " usable " still usable" }' \
  target/audit-inputs.txt target/audit-requests.txt
"$python" scripts/audit.py target/release/inertial --minutes "$((minutes / 2))" --out target/audit.json || failed=1
exit $failed
