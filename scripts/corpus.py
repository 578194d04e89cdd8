#!/usr/bin/env python3
"""Compares the models of installed packages and folders with Pinocchio and MuJoCo.

usage: scripts/corpus.py PROGRAM [FOLDER ...] [--markdown]

For every URDF that Pinocchio reads, `inertial simulate` computes the torques at random states. They depend on all kinematics and
inertias, and are compared with those of Pinocchio. For every MJCF file that MuJoCo reads, the masses of all moving bodies are compared.
Folders (for example unpacked wheels) are searched in addition to example-robot-data, gymnasium and dm_control. The exit status is 1 if a
model differs or is refused for another reason than an unsupported feature, and 77 if Pinocchio or MuJoCo is not installed.
"""
import collections
import csv
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import mujoco
    import numpy
    import pinocchio
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

# Rounding errors differ along chains of many joints.
TOLERANCE = 1e-8
ROWS = 3


def packages():
    """Yields the names and folders of installed packages with models."""
    for prefix in pathlib.Path(pinocchio.__file__).resolve().parents:
        folder = prefix / "share" / "example-robot-data" / "robots"
        if folder.is_dir():
            yield "example-robot-data", folder
            break
    for name in ("gymnasium", "dm_control", "robosuite", "gymnasium_robotics", "pybullet_data"):
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations:
            yield name, pathlib.Path(found.submodule_search_locations[0])


def call(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=600)


def line(process):
    return process.stderr.strip().splitlines()[-1] if process.stderr.strip() else "no message"


def urdf(program, path):
    """Returns None if Pinocchio refuses the file, an empty string if the results agree, and the problem otherwise."""
    try:
        try:
            model = pinocchio.buildModelFromUrdf(str(path), mimic=True)
        except ValueError:  # a joint is defined before the joint that it mimics
            return None
    except Exception:
        return None
    rng = numpy.random.default_rng(1)
    names, columns, expected = list(model.names)[1:], collections.defaultdict(list), []
    data = model.createData()
    if any(joint.nv > 1 for joint in model.joints[1:]):
        return None  # coordinates of planar and floating joints differ
    moving = [(name, joint) for name, joint in zip(names, list(model.joints)[1:]) if joint.nv == 1]
    if not moving:
        found = call(program, "check", path, "--all", "--json")
        return "" if found.returncode < 2 else line(found)
    for k in range(ROWS):
        q, v, a = pinocchio.neutral(model), rng.uniform(-2, 2, model.nv), rng.uniform(-5, 5, model.nv)
        columns["t"].append(0.01 * k)
        for name, joint in moving:
            x = rng.uniform(-1, 1)
            q[joint.idx_q:joint.idx_q + joint.nq] = [numpy.cos(x), numpy.sin(x)] if joint.nq == 2 else [x]
            columns[f"q.{name}"].append(x)
            columns[f"dq.{name}"].append(v[joint.idx_v])
            columns[f"ddq.{name}"].append(a[joint.idx_v])
        expected.append(pinocchio.rnea(model, data, q, v, a))
    with tempfile.TemporaryDirectory() as folder:
        motion, log = pathlib.Path(folder) / "motion.csv", pathlib.Path(folder) / "log.csv"
        with open(motion, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values()))
        found = call(program, "simulate", path, motion, "--friction", "none", "--ignore-limits", "--base", "fixed", "--out", log)
        if found.returncode != 0:
            return line(found)
        with open(log, newline="") as file:
            rows = list(csv.DictReader(file))
    worst, size = 0.0, max(numpy.abs(expected).max(), 1e-9)
    for row, tau in zip(rows, expected):
        for name, joint in moving:
            worst = max(worst, abs(float(row[f"tau.{name}"]) - tau[joint.idx_v]))
    return "" if worst <= TOLERANCE * size else f"torques differ by {worst / size:.1e} of the largest"


def mjcf(program, path):
    """Returns None if MuJoCo refuses the file or nothing moves, an empty string if the masses agree, and the problem otherwise."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except Exception:
        return None
    if model.nv == 0:
        return None
    found = call(program, "check", path, "--json")
    if found.returncode == 2:
        return line(found)
    masses = {body["name"]: body["mass"] for body in json.loads(found.stdout)["bodies"]}
    for b in range(1, model.nbody):
        # Bodies welded to the world are ignored.
        if model.body_weldid[b] != 0:
            name, expected = model.body(b).name or f"body{b}", model.body_mass[b]
            if abs(masses.get(name, 0.0) - expected) > TOLERANCE * max(expected, 1e-9):
                return f"{name} has {masses.get(name)} kg, MuJoCo has {expected}"
    return ""


def feature(problem):
    """Returns the unsupported feature of an error message, without its location."""
    return problem.removesuffix(" is not supported").rsplit(": ", 1)[-1].split(" (")[0]


def models(folder):
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".urdf" and path.is_file():
            yield "URDF", path, urdf
        elif path.suffix == ".xml" and path.is_file() and "<mujoco" in path.read_text(errors="replace")[:4000]:
            yield "MJCF", path, mjcf


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--markdown"]
    program, folders = arguments[0], [pathlib.Path(folder) for folder in arguments[1:]]
    counts, features, wrong = collections.Counter(), collections.Counter(), []
    for source, folder in [*packages(), *((folder.name, folder) for folder in folders)]:
        for kind, path, compare in models(folder):
            problem = compare(program, path)
            if problem is None:
                counts[source, kind, "skipped"] += 1
                continue
            counts[source, kind, "read"] += 1
            if problem.endswith("is not supported"):
                counts[source, kind, "not supported"] += 1
                features[feature(problem)] += 1
            elif problem:
                wrong.append((source, kind, path.relative_to(folder), problem))
    differing = collections.Counter((source, kind) for source, kind, *_ in wrong)
    lines = ["| package | format | models | equal | not supported |", "| --- | --- | ---: | ---: | ---: |"]
    for source, kind in sorted({(source, kind) for source, kind, _ in counts}):
        read = counts[source, kind, "read"]
        refused = counts[source, kind, "not supported"]
        if read:
            lines.append(f"| `{source}` | {kind} | {read} | {read - refused - differing[source, kind]} | {refused} |")
    print("\n".join(lines))
    for what, count in features.most_common():
        print(f"not supported: {what} ({count})")
    for source, kind, path, problem in wrong:
        print(f"{source}: {path}: {problem}")
    if "--markdown" not in sys.argv:
        print(f"{len(wrong)} models differ")
    return 1 if wrong else 0


sys.exit(main())
