#!/usr/bin/env bash
# Builds the release files into target/dist; the same commit and toolchain give the same bytes. The files are the program as an archive
# (with completions, manual pages and licences) and as a Debian package, the wheel and the source distribution of the Python package, the
# crates, the bill of materials, and the checksums of all files.
#
#   scripts/release.sh [TARGET]      [default: x86_64-unknown-linux-gnu]
#
# Program and wheel are linked by zig against glibc 2.28 (manylinux_2_28), independently of this system. The Debian package needs
# `cargo install cargo-deb`; without it, the package is skipped with a note. Publish with `cargo publish --workspace` and
# `twine upload target/dist/*.whl target/dist/*.tar.gz`.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-x86_64-unknown-linux-gnu}
glibc=2.28
# Keep dates and paths of this machine out of the build.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
export RUSTFLAGS="--remap-path-prefix=$PWD=inertial --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
grep -q "^## \[$version\] - " CHANGELOG.md || { echo "CHANGELOG.md has no dated section for $version" >&2; exit 1; }

dist=$PWD/target/dist
rm -rf "$dist" && mkdir -p "$dist/completions" "$dist/man"
environment=$PWD/target/release-environment
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
"$environment/bin/python" -m pip install --quiet 'maturin>=1.9,<2' 'cargo-zigbuild>=0.20,<1' 'ziglang>=0.13,<0.15'
export PATH="$environment/bin:$PATH"

# Package the sources first, while they do not contain the program.
rm -rf crates/inertial-py/inertial._inertial.data
maturin sdist --manifest-path crates/inertial-py/Cargo.toml --out "$dist"
cargo package --quiet --workspace --no-verify --exclude inertial-py --exclude inertial-bench-pinocchio
cp target/package/inertial*-"$version".crate "$dist"

cargo zigbuild --release --locked --package inertial-cli --target "$target.$glibc"
program=target/$target/release/inertial
# Newest glibc version required by the program.
newest=$(objdump -T "$program" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
[ "$(printf '%s\n' "GLIBC_$glibc" "$newest" | sort -V | tail -1)" = "GLIBC_$glibc" ] || {
  echo "the program requires $newest, which is newer than $glibc" >&2
  exit 1
}
for shell in bash zsh fish; do "$program" completions $shell > "$dist/completions/inertial.$shell"; done
"$program" man "$dist/man" >/dev/null

name=inertial-$version-$target
folder=target/$name
rm -rf "$folder" && mkdir -p "$folder"
cp -r "$program" LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$dist/completions" "$dist/man" "$folder"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C target -cf - "$name" | gzip -9n > "$dist/$name.tar.gz"
rm -rf "$folder"

if cargo deb --version >/dev/null 2>&1; then
  cargo deb --quiet --no-build --no-strip --package inertial-cli --target "$target" --output "$dist"
else
  echo "note: cargo-deb is not installed; the Debian package is skipped" >&2
fi

scripts/wheel-program.sh "$program"
maturin build --quiet --release --locked --zig --compatibility manylinux_${glibc/./_} --target "$target" \
  --manifest-path crates/inertial-py/Cargo.toml --out "$dist"
# Check that the wheel and the source distribution contain both licence texts.
for licence in LICENSE-APACHE LICENSE-MIT; do
  python3 -m zipfile -l "$dist"/*.whl | grep -q "licenses/$licence" || { echo "the wheel lacks $licence" >&2; exit 1; }
  tar -tzf "$dist/inertial-$version.tar.gz" | grep "/$licence" >/dev/null || { echo "the sdist lacks $licence" >&2; exit 1; }
done
scripts/sbom.py --out "$dist/inertial.cdx.json"
rm -rf "$dist/completions" "$dist/man"
(cd "$dist" && find . -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum > SHA256SUMS)
cat "$dist/SHA256SUMS"
