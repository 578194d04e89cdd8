#!/usr/bin/env bash
# Copies the program into the folder from which maturin adds it to the wheel.
# Usage: scripts/wheel-program.sh PROGRAM
set -eu
folder=$(dirname "$0")/../crates/inertial-py/inertial._inertial.data/scripts
mkdir -p "$folder"
# `inertial`, or `inertial.exe` on Windows.
install -m 755 "$1" "$folder/$(basename "$1")"
