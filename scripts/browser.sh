#!/usr/bin/env bash
# Tests the HTML pages of the program in Chromium. Needs node, npm and Chromium (Debian: apt-get install chromium); fails if they are
# missing, unless INERTIAL_ALLOW_SKIP=1. INERTIAL is the path of the program, by default target/release/inertial.
set -eu
cd "$(dirname "$0")/../browser"
export INERTIAL_CHROMIUM="${INERTIAL_CHROMIUM:-/usr/bin/chromium}"
if ! command -v npm >/dev/null || [ ! -x "$INERTIAL_CHROMIUM" ]; then
  echo "npm or Chromium is not installed; the HTML pages were not tested" >&2
  [ "${INERTIAL_ALLOW_SKIP:-}" = 1 ] && exit 0 || exit 1
fi
npm ci --no-audit --no-fund --loglevel=error
npm test
