#!/usr/bin/env bash
# Puts the program where maturin takes it into the wheel, beside the package.
# Usage: scripts/wheel-program.sh PROGRAM
set -eu
folder=$(dirname "$0")/../crates/inertial-py/inertial._inertial.data/scripts
mkdir -p "$folder"
install -m 755 "$1" "$folder/inertial"
