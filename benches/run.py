#!/usr/bin/env python3
"""Runs the benchmarks of docs/benchmarks.md one after the other, each against its peer.

usage: benches/run.py [PART...] [--rows N]

Parts (default: all):
  kernels    dynamics of one configuration and of batches against Pinocchio in C++, in one process
  identify   identification from a log of a 7-axis arm against Pinocchio, SciPy, NumPy and CVXPY, with peak memory
  analyze    identifiability with its certificate: times of the program, without a peer
  design     excitation design against SciPy's SLSQP at equal time
  python     the Python package against loops over Pinocchio; needs the installed package

Builds the program with `cargo build --release` first. Uses the Python packages of scripts/python-env.sh. Compare the ratios of one run,
not times measured on different machines.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAM = ROOT / "target" / "release" / "inertial"
PARTS = ["kernels", "identify", "analyze", "design", "python"]
# Models for `analyze` and the number of runs.
MODELS = [("builtin:puma560", 20), ("builtin:quadruped", 20), ("builtin:2rru-1rrs", 20), ("builtin:2prs-1psr", 20)]
CHAINS = [(100, 10), (1000, 3), (10_000, 1)]


def run(*command):
    print("$", *(os.path.relpath(c, ROOT) if str(c).startswith(str(ROOT)) else c for c in command), flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def measured(*command):
    """Returns elapsed time, processor time and peak memory (MB) of a process.

    Linux includes the memory that a process had before `exec`, so this script imports no large packages.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    # Exit status 1 is a negative result, not an error.
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{' '.join(map(str, command))}: {error.decode()}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def chain(bodies):
    """Returns the URDF of a chain of hinges about x, y and z in turn."""
    inertia = '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>'
    out = ['<robot name="chain"><link name="link0"/>']
    for k in range(1, bodies + 1):
        axis = ["1 0 0", "0 1 0", "0 0 1"][k % 3]
        out.append(
            f'<link name="link{k}"><inertial><origin xyz="0.05 0 0"/><mass value="1"/>{inertia}</inertial></link>'
            f'<joint name="joint{k}" type="continuous"><parent link="link{k - 1}"/><child link="link{k}"/>'
            f'<origin xyz="0.1 0 0.02"/><axis xyz="{axis}"/></joint>')
    return "".join(out) + "</robot>"


def analyze():
    folder = ROOT / "target" / "benches"
    folder.mkdir(parents=True, exist_ok=True)
    models = list(MODELS)
    for bodies, count in CHAINS:
        path = folder / f"chain{bodies}.urdf"
        path.write_text(chain(bodies))
        models.append((str(path), count))
    print(f"{'analyze':<24} {'wall ms':>9} {'cpu ms':>9} {'MB':>6}")
    for model, count in models:
        rounds = [measured(PROGRAM, "analyze", model, "--json") for _ in range(count)]
        wall, cpu, memory = (min(r[k] for r in rounds) for k in range(3))
        name = re.sub(r".*/", "", model)
        print(f"{name:<24} {1e3 * wall:>9.1f} {1e3 * cpu:>9.1f} {memory:>6.0f}", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the log for `identify`")
    args = parser.parse_args()
    unknown = [p for p in args.parts if p not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]}; expected one or more of {', '.join(PARTS)}")
    if run("cargo", "build", "--release", "--quiet"):
        return 2
    environment = subprocess.run([ROOT / "scripts" / "python-env.sh"], stdout=subprocess.PIPE, text=True, check=False)
    python = environment.stdout.strip() or sys.executable
    failed = []
    for part in args.parts or PARTS:
        print(f"\n== {part}", flush=True)
        if part == "kernels":
            code = run(python, HERE / "pinocchio" / "run.py")
        elif part == "identify":
            code = run(python, HERE / "identify" / "run.py", PROGRAM, "--rows", str(args.rows))
        elif part == "analyze":
            code = analyze()
        elif part == "design":
            code = run(python, HERE / "design" / "slsqp.py")
        else:
            code = run(python, HERE / "python" / "run.py", PROGRAM)
        if code:
            failed.append(part)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
