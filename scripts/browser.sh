#!/usr/bin/env bash
# Opens the pages that the program writes in Chromium. Needs node, npm and Chromium (Debian: apt-get install chromium);
# says so and passes where they are missing. INERTIAL names the program, by default the one of a debug build.
set -eu
cd "$(dirname "$0")/../browser"
export INERTIAL_CHROMIUM="${INERTIAL_CHROMIUM:-/usr/bin/chromium}"
if ! command -v npm >/dev/null || [ ! -x "$INERTIAL_CHROMIUM" ]; then
  echo "note: no npm or no Chromium: the pages were not opened in a browser" >&2
  exit 0
fi
npm ci --no-audit --no-fund --loglevel=error
npm test
