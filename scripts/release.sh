#!/usr/bin/env bash
# Builds what is released, the same bytes from the same commit on the same toolchain: the program, the wheel, completions,
# manual pages and the bill of materials, into target/dist.
set -eu
cd "$(dirname "$0")/.."
# No dates and no paths of this machine in what is built.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
export RUSTFLAGS="--remap-path-prefix=$PWD=inertial --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
grep -q "^## \[$version\] - " CHANGELOG.md || { echo "CHANGELOG.md has no dated section for $version" >&2; exit 1; }
dist=target/dist
rm -rf $dist && mkdir -p $dist/completions $dist/man
cargo build --release --locked -p inertial-cli
strip -o $dist/inertial target/release/inertial
for shell in bash zsh fish; do $dist/inertial completions $shell > $dist/completions/inertial.$shell; done
$dist/inertial man $dist/man
python=$(scripts/python-env.sh)
$python -m pip install --quiet 'maturin>=1.9,<2'
scripts/wheel-program.sh $dist/inertial
$python -m maturin build --quiet --release --locked --manifest-path crates/inertial-py/Cargo.toml --out $dist
scripts/sbom.py --out $dist/inertial.cdx.json
(cd $dist && find . -type f ! -name SHA256SUMS -print0 | sort -z | xargs -0 sha256sum > SHA256SUMS)
cat $dist/SHA256SUMS
