#!/usr/bin/env python3
"""Counts the instructions of each kernel and compares them with recorded counts, independently of the load of the machine.

usage: benches/instructions.py PROGRAM [--record] [--most RATIO]

Each kernel of `inertial bench` runs under valgrind with one call and with several; the difference of the counts is that of the additional
calls. benches/instructions.json stores the counts, separately for processors with and without AVX2, because the program selects its
instructions at start. A kernel fails if it executes more than RATIO times the recorded count (default 1.1). Compilers and C libraries
change a count by a few percent; a lost optimization changes it by more. Unrelated code can change inlining and thereby a count by up to
30 %, so .ci/run allows 1.4. --record writes the counts of this run.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

RECORDED = pathlib.Path(__file__).resolve().with_name("instructions.json")
# Models, kernels and numbers of counted calls. The calls take tens of millions of instructions, because start and end of a process vary by
# some hundred thousand.
KERNELS = [
    ("builtin:arm7", ["kinematics", "rnea", "regressor", "mass-matrix", "forward-dynamics"], 5000),
    ("builtin:arm7", ["regressor-batch", "criterion-2000", "lmi", "base-parameters"], 1),
    ("builtin:quadruped", ["rnea", "regressor", "mass-matrix", "forward-dynamics"], 2000),
    ("builtin:quadruped", ["drng"], 1000),
    ("builtin:2rru-1rrs", ["velocity-map", "mass-matrix", "forward-dynamics"], 1000),
    ("builtin:2rru-1rrs", ["certificate", "base-parameters"], 1),
]


def instructions(program, model, kernel, calls):
    """Returns the instruction count of the whole process."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
               program, "bench", model, "--kernel", kernel, "--calls", str(calls)]
    run = subprocess.run(command, capture_output=True, text=True, env={"RAYON_NUM_THREADS": "1"})
    count = re.search(r"I\s+refs:\s+([\d,]+)", run.stderr)
    if run.returncode or not count:
        sys.exit(f"{model} {kernel}: {run.stderr.strip().splitlines()[-1]}")
    return int(count.group(1).replace(",", ""))


def processor():
    flags = pathlib.Path("/proc/cpuinfo")
    text = flags.read_text() if flags.exists() else ""
    return "avx2" if re.search(r"\bavx2\b", text) and re.search(r"\bfma\b", text) else "portable"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--most", type=float, default=1.1)
    given = parser.parse_args()
    program, record = str(given.program.resolve()), given.record
    if not shutil.which("valgrind"):
        print("note: valgrind is not installed; instructions are not counted")
        return 0
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    before = recorded.get(processor(), {})
    if not (before or record):
        print(f"note: no instruction counts are recorded for {processor()} processors")
        return 0
    found, slower = {}, []
    print(f"{'kernel':<36} {'instructions':>13} {'recorded':>13} {'ratio':>6}")
    for model, kernels, calls in KERNELS:
        for kernel in kernels:
            name = f"{model.removeprefix('builtin:')} {kernel}"
            first, last = (instructions(program, model, kernel, n) for n in (1, 1 + calls))
            count = round((last - first) / calls)
            found[name], old = count, before.get(name)
            ratio = count / old if old else None
            print(f"{name:<36} {count:>13,} {f'{old:,}' if old else '':>13} {f'{ratio:.2f}' if old else '':>6}", flush=True)
            if ratio and ratio > given.most:
                slower.append(name)
    if record:
        RECORDED.write_text(json.dumps({**recorded, processor(): found}, indent=2) + "\n")
        return 0
    if slower:
        print(f"more instructions than recorded: {', '.join(slower)}; --record accepts them", file=sys.stderr)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
