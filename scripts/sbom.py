#!/usr/bin/env python3
"""Creates the bill of materials: every crate in the program and the Python package, with version, licence and source.

    scripts/sbom.py                 checks licences; prints the number of crates
    scripts/sbom.py --out FILE      writes a CycloneDX 1.5 document

Exits with status 1 if the licence of a crate is not accepted by this project.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys

#: Licences compatible with Apache-2.0 OR MIT.
ACCEPTED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT",
    "MIT-0", "Unicode-3.0", "Unlicense", "Zlib", "bzip2-1.0.6",
}  # fmt: skip


def accepted(expression: str) -> bool:
    """Returns whether accepted licences satisfy an SPDX expression."""
    # "A OR B" needs one, "A AND B" needs both; the old separator "/" means OR. Parentheses are resolved from the inside.
    text = expression.replace("/", " OR ")
    while inner := re.search(r"\(([^()]*)\)", text):
        text = text.replace(inner[0], "MIT" if accepted(inner[1]) else "no")
    return any(all(part.strip() in ACCEPTED for part in choice.split(" AND ")) for choice in text.split(" OR "))


def component(package: dict) -> dict:
    """Returns the CycloneDX component of a crate."""
    return {
        "type": "library",
        "name": package["name"],
        "version": package["version"],
        "purl": f"pkg:cargo/{package['name']}@{package['version']}",
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    out = parser.parse_args().out
    root = pathlib.Path(__file__).resolve().parent.parent
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]
    metadata = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True).stdout)
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    # Only crates linked into the products, without test and build dependencies.
    waiting = [i for i, p in packages.items() if p["name"] in ("inertial-cli", "inertial-py")]
    used: set[str] = set()
    while waiting:
        this = waiting.pop()
        if this not in used:
            used.add(this)
            waiting += [d["pkg"] for d in nodes[this]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
    crates = sorted((packages[i] for i in used), key=lambda p: (p["name"], p["version"]))
    refused = [f"{p['name']} {p['version']}: {p['license']}" for p in crates if not accepted(p["license"] or "none")]
    if refused:
        print("licences that are not accepted:\n  " + "\n  ".join(refused), file=sys.stderr)
        return 1
    if out:
        version = next(p["version"] for p in crates if p["name"] == "inertial-cli")
        document = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": {"type": "application", "name": "inertial", "version": version}},
            "components": [component(p) for p in crates if p["source"]],
        }
        out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{len(crates)} crates, all under accepted licences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
