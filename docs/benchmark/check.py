#!/usr/bin/env python3
"""Benchmark of identifiability: mechanisms with known ranks and combinations, and a judge of the answers of any program.

  check.py list                    the cases: family, parameters, rank
  check.py export FOLDER           writes each mechanism (JSON) and its question to a folder
  check.py judge ANSWERS.json      compares answers with the truth; status 1 where one is wrong
  check.py run PROGRAM [--limit N] asks a program that is called like `inertial analyze` and judges its answers

ANSWERS.json maps the name of a case to {"rank": 36, "base_parameters": [{"combination": {"link1.Izz": 1.0, ...}}, ...]}; the
combinations may be left out. A rank is right where it is the truth. Combinations are right where they span the same space as the true
ones, whatever the choice of base parameters. Needs Python 3.9; numpy for spans.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "testdata" / "golden"
#: Angle (as a sine) up to which two spans count as the same: truths are written with twelve digits.
SAME = 1e-6


def cases() -> dict[str, dict]:
    """Returns all cases by name: mechanism, options of the question, rank, and combinations where they are known."""
    out = {}
    for name, case in json.loads((GOLDEN / "hard" / "cases.json").read_text()).items():
        options = list(case["options"])
        if "momentum" in options:
            options += ["--total-momentum", "any"]
        out[f"hard/{name}"] = {**case, "options": options}
    for case in json.loads((GOLDEN / "loops" / "truth.json").read_text())["cases"]:
        mechanism = json.loads((GOLDEN / "loops" / f"{case['mechanism']}.json").read_text())
        gravity = ",".join(f"{g:g}" for g in case["gravity"])
        out[f"claims/{case['mechanism']}@{gravity}"] = {
            "family": "published principles",
            "options": [f"--gravity={gravity}"],
            "mechanism": mechanism,
            "rank": case["rank"],
            "parameters": case["parameters"],
            # What the principles of paper 004 give alone: where it is not the nullity, they are no proof.
            "nullity_by_principles": case["drng_nullity"],
        }
    return out


def same_span(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> bool:
    """Returns whether two lists of combinations span the same space."""
    import numpy as np

    names = sorted({name for row in ours + theirs for name in row})
    place = {name: k for k, name in enumerate(names)}

    def basis(rows):
        matrix = np.zeros((len(rows), len(names)))
        for i, row in enumerate(rows):
            for name, x in row.items():
                matrix[i, place[name]] = x
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        return np.linalg.qr(matrix.T)[0]

    a, b = basis(ours), basis(theirs)
    return a.shape == b.shape and np.linalg.norm(b - a @ (a.T @ b), 2) < SAME


def judge(answers: dict[str, dict]) -> int:
    """Prints the wrong answers and the number of right ones; returns the exit status."""
    right, wrong = 0, 0
    for name, case in cases().items():
        answer = answers.get(name)
        if answer is None:
            continue
        said = answer.get("rank")
        if said != case["rank"]:
            print(f"{name}: rank {said}, the truth is {case['rank']}")
            wrong += 1
            continue
        theirs = [b["combination"] for b in answer.get("base_parameters", []) if b.get("combination")]
        ours = list(case.get("base_parameters", {}).values())
        if ours and theirs and not same_span(ours, theirs):
            print(f"{name}: rank {said} is right, the combinations are not")
            wrong += 1
            continue
        right += 1
    print(f"{right} right, {wrong} wrong, {len(cases()) - right - wrong} not answered")
    return 1 if wrong else 0


def ask(program: str, limit: int | None) -> dict[str, dict]:
    """Returns the answers of a program."""
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, case in list(cases().items())[:limit]:
            path = pathlib.Path(folder) / "mechanism.json"
            path.write_text(json.dumps(case["mechanism"]))
            call = [program, "analyze", str(path), "--json", *case["options"]]
            found = subprocess.run(call, capture_output=True, text=True, check=False)
            out[name] = json.loads(found.stdout) if found.returncode == 0 else {"rank": None}
    return out


def main(arguments: list[str]) -> int:
    if arguments == ["list"]:
        for name, case in cases().items():
            print(f"{name}\t{case['family']}\t{case['parameters']}\t{case['rank']}")
        return 0
    if len(arguments) == 2 and arguments[0] == "export":
        folder = pathlib.Path(arguments[1])
        folder.mkdir(parents=True, exist_ok=True)
        index = {}
        for name, case in cases().items():
            file = name.replace("/", "_").replace(",", "_") + ".json"
            (folder / file).write_text(json.dumps(case["mechanism"], indent=1))
            index[name] = {key: x for key, x in case.items() if key != "mechanism"} | {"file": file}
        (folder / "index.json").write_text(json.dumps(index, indent=1))
        return 0
    if arguments[:1] in (["judge"], ["run"]) and importlib.util.find_spec("numpy") is None:
        print("check.py: combinations are compared with numpy, which is not installed: pip install numpy", file=sys.stderr)
        return 2
    if len(arguments) == 2 and arguments[0] == "judge":
        return judge(json.loads(pathlib.Path(arguments[1]).read_text()))
    if len(arguments) in (2, 4) and arguments[0] == "run":
        limit = int(arguments[3]) if len(arguments) == 4 and arguments[2] == "--limit" else None
        return judge(ask(arguments[1], limit))
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main(sys.argv[1:]))
