#!/usr/bin/env bash
# Opens the pages that the program writes in Chromium. Needs node, npm and Chromium (Debian: apt-get install chromium); fails
# where they are missing, unless INERTIAL_ALLOW_SKIP=1. INERTIAL names the program, by default target/release/inertial.
set -eu
cd "$(dirname "$0")/../browser"
export INERTIAL_CHROMIUM="${INERTIAL_CHROMIUM:-/usr/bin/chromium}"
if ! command -v npm >/dev/null || [ ! -x "$INERTIAL_CHROMIUM" ]; then
  echo "no npm or no Chromium: the pages were not opened in a browser" >&2
  [ "${INERTIAL_ALLOW_SKIP:-}" = 1 ] && exit 0 || exit 1
fi
npm ci --no-audit --no-fund --loglevel=error
npm test
