#!/usr/bin/env bash
# Builds the documentation of the crates and, if mdBook is installed, the book of the guide. Fails on warnings and broken links.
# Formulas are rendered by KaTeX, which a page loads when it is opened.
set -eu
cd "$(dirname "$0")/.."
RUSTDOCFLAGS="-D warnings --html-in-header $PWD/crates/inertial/katex-header.html" cargo doc --release --workspace --no-deps --quiet
if command -v mdbook >/dev/null; then
  if mdbook build docs 2>&1 | grep -E "WARN|ERROR"; then
    echo "mdbook reported the problems above" >&2
    exit 1
  fi
  scripts/links.py target/book
else
  echo "note: mdBook is not installed; the book was not built" >&2
fi
