#!/usr/bin/env bash
# Builds the documentation of the crates, and the book of the guide where mdBook is installed; warnings and links that lead
# nowhere fail. Formulas are drawn by KaTeX, which a page loads when it is opened.
set -eu
cd "$(dirname "$0")/.."
RUSTDOCFLAGS="-D warnings --html-in-header $PWD/crates/inertial/katex-header.html" cargo doc --release --workspace --no-deps --quiet
if command -v mdbook >/dev/null; then
  if mdbook build docs 2>&1 | grep -E "WARN|ERROR"; then
    echo "mdbook has the complaints above" >&2
    exit 1
  fi
  scripts/links.py target/book
else
  echo "note: no mdBook: the book of the guide was not built" >&2
fi
