#!/usr/bin/env python3
"""Which real robot files describe bodies that cannot exist?

usage: scripts/real_robots.py PROGRAM [--markdown]

Runs `inertial check` on every URDF of PyPI's example-robot-data and compares each verdict with one computed here, from
the XML alone with numpy. Exit status 1 where the two differ. --markdown prints docs/real-robots.md.
"""
import collections
import json
import pathlib
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree

import numpy

DATA = "cmeel.prefix/share/example-robot-data/robots"
TOLERANCE = 1e-6  # the program's default

PAGE = """# Real robot files

{files} URDF files of PyPI's `example-robot-data` {version} have {links} links with inertial parameters. In {bad_files} files {bad_links}
links have parameters that no body can have. This page is made by

```sh
cargo build --release -p inertial-cli
$(scripts/python-env.sh) scripts/real_robots.py target/release/inertial --markdown > docs/real-robots.md
```

which also judges every link a second time, with numpy, and stops where the verdicts differ.

| file | links | cannot exist | which |
| --- | ---: | ---: | --- |
{rows}

`mass` is a mass of zero with an inertia that is not zero (or a negative mass), `inertia-not-positive` a negative principal moment,
`triangle-inequality` a principal moment larger than the sum of the other two. `inertial check FILE` gives the numbers, `--fix --out PATH` the
nearest parameters that a body can have.

{refused}
"""


def verdicts(path):
    """Violations of each link with an inertial, from the XML alone."""
    out = {}
    for link in xml.etree.ElementTree.parse(path).getroot().findall("link"):
        inertial = link.find("inertial")
        if inertial is None:
            continue
        mass = float(inertial.find("mass").get("value"))
        entry = {k: float(v) for k, v in inertial.find("inertia").attrib.items()}
        x, y, z, xy, xz, yz = (entry.get(k, 0.0) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
        # The frame of the tensor does not matter: its eigenvalues are the principal moments about the centre of mass.
        moments = numpy.linalg.eigvalsh([[x, xy, xz], [xy, y, yz], [xz, yz, z]])
        origin = inertial.find("origin")
        com = numpy.fromstring(origin.get("xyz", "0 0 0"), sep=" ") if origin is not None else numpy.zeros(3)
        # Moments far below the rounding of what the link's own frame adds to them are zeros that lost their last digits.
        slack = 2 * (TOLERANCE * abs(moments).max() + 1e-15 * abs(mass) * (com @ com))
        found = []
        if mass < 0 or (mass == 0 and abs(moments).max() > 0):
            found.append("mass")
        if moments[0] < -slack:
            found.append("inertia-not-positive")
        if moments[0] + moments[1] < moments[2] - slack:
            found.append("triangle-inequality")
        out[link.get("name")] = found
    return out


def check(program, path):
    run = subprocess.run([program, "check", "--json", str(path)], capture_output=True, text=True)
    if run.returncode == 2:
        raise ValueError(run.stderr.strip().removeprefix(f"inertial: {path}: "))
    result = json.loads(run.stdout)
    assert result["consistent"] == (run.returncode == 0)
    return {b["name"]: b["violations"] for b in result["bodies"]}


def summary(impossible):
    """Links by what they violate."""
    groups = collections.defaultdict(list)
    for name, violations in impossible.items():
        groups[", ".join(violations)].append(f"`{name}`")
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in groups.items())


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    program, markdown = sys.argv[1], "--markdown" in sys.argv[2:]
    root = pathlib.Path(sysconfig.get_path("purelib")) / DATA
    files = sorted(root.rglob("*.urdf"))
    if not files:
        raise SystemExit(f"no robots at {root}: install example-robot-data")
    rows, refused, links, bad_links, differ = [], [], 0, 0, 0
    for path in files:
        name = path.relative_to(root)
        try:
            ours, theirs = check(program, path), verdicts(path)
        except ValueError as error:
            refused.append(f"`{name}` is no robot: `{error}`.")
            continue
        if ours != theirs:
            differ += 1
            different = [k for k in ours.keys() | theirs.keys() if ours.get(k) != theirs.get(k)]
            print(f"{name}: the verdicts differ: {different}", file=sys.stderr)
        impossible = {k: v for k, v in ours.items() if v}
        links, bad_links = links + len(ours), bad_links + len(impossible)
        if impossible:
            rows.append(f"| `{name}` | {len(ours)} | {len(impossible)} | {summary(impossible)} |")
    if markdown:
        from importlib.metadata import version

        print(PAGE.format(files=len(files), version=version("example-robot-data"), links=links, bad_files=len(rows), bad_links=bad_links, rows="\n".join(rows), refused="\n".join(refused)), end="")
    else:
        print(f"{len(files)} files, {links} links; impossible: {bad_links} links in {len(rows)} files; {differ} verdicts differ", *refused, sep="\n")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
