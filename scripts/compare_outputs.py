#!/usr/bin/env python3
"""Saves the JSON output of every command and compares two saved sets byte by byte.

    scripts/compare_outputs.py save PROGRAM FOLDER [--data DIR]
    scripts/compare_outputs.py compare BEFORE AFTER

`save` runs every command of the built program on all builtin models and, if available, on the logs of real robots
(`../shared/data` next to the checkout, or --data). All options are explicit, so that a changed default does not change the outputs;
other tests cover defaults. `compare` applies the documented changes in RENAMED and reports each output that differs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: Renamed fields (old name to new name) in every JSON object. Each is described in CHANGELOG.md.
RENAMED: dict[str, str] = {}

#: Fields that older versions do not have; the comparison ignores them. Each is described in CHANGELOG.md.
ADDED: set[str] = set()

#: Fields that contain messages; they are compared only with --words.
WORDS = {"warnings", "reasons", "reason"}

#: Settings that make a design short and independent of the machine's speed.
SHORT = ["--duration", "4", "--rate", "50", "--starts", "1", "--iterations", "4", "--seed", "3"]
TERMS = ["--friction", "coulomb+viscous", "--offset"]


class Runs:
    """Runs commands and saves their outputs as files."""

    def __init__(self, program: str, folder: Path, work: Path) -> None:
        self.program, self.folder, self.work = program, folder, work
        self.failed: list[str] = []

    def run(self, name: str, *arguments: str, stdin: str | None = None) -> bool:
        """Saves the standard output, and the exit status and messages if the status is not zero."""
        done = subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, cwd=self.work, input=stdin or ""
        )
        (self.folder / f"{name}.json").write_text(done.stdout)
        if done.returncode:
            (self.folder / f"{name}.status").write_text(f"{done.returncode}\n{done.stderr}")
        return done.returncode == 0


def of_builtin(runs: Runs, name: str) -> None:
    """Runs all commands on one builtin model."""
    model = f"builtin:{name}"
    runs.run(f"{name}.check", "check", model, "--json")
    runs.run(f"{name}.check-all", "check", model, "--all", "--json")
    runs.run(f"{name}.analyze", "analyze", model, "--json")
    runs.run(f"{name}.analyze-static", "analyze", model, "--static", "--json")
    runs.run(f"{name}.analyze-wrench", "analyze", model, "--measured", "base-wrench", "--json")
    runs.run(f"{name}.analyze-csv", "analyze", model, "--csv")
    flies = name.startswith("space")
    measured = ["--measured", "momentum", "--duration", "24", "--rate", "10"] if flies else []
    terms = [] if flies else ["--friction", "coulomb+viscous"]
    if name == "quadruped":
        terms += ["--base-motion", "0.1,0.3"]
    motion, log = f"{name}.motion.json", f"{name}.log.csv"
    short = SHORT[4:] if flies else SHORT
    if not runs.run(f"{name}.design", "design", model, *short, *measured, *terms, "--out", motion, "--json"):
        return
    measured = measured[:2]
    noise = "dq=5e-5,base.v=5e-5,base.w=8e-5" if flies else "q=1e-6,tau=0.02"
    simulated = runs.run(
        f"{name}.simulate", "simulate", model, motion, *measured, "--rate", "100", "--noise", noise, "--seed", "5",
        "--out", log, "--json",
    )
    if not simulated:
        return
    if flies:
        for estimator in ("ols", "bcls", "eiv", "lmi"):
            runs.run(
                f"{name}.momentum-{estimator}", "identify", model, log, *measured, "--estimator", estimator,
                "--noise", noise, "--json",
            )
        return
    runs.run(f"{name}.validate", "validate", model, log, "--json")
    for estimator in ("ols", "lmi"):
        runs.run(f"{name}.identify-{estimator}", "identify", model, log, *TERMS, "--estimator", estimator, "--json")


def of_arm(runs: Runs) -> None:
    """Runs commands that need more than a model and one log: payloads, drive gains, streams, summaries, other estimators."""
    model, log = "builtin:arm7", "arm7.log.csv"
    for estimator in ("wls", "irls", "manifold", "log-cholesky"):
        runs.run(f"arm.identify-{estimator}", "identify", model, log, *TERMS, "--estimator", estimator, "--json")
    runs.run(f"arm.holdout", "identify", model, log, *TERMS, "--holdout", "0.3", "--covariance", "--essential", "--json")
    runs.run("arm.bounds", "identify", model, log, *TERMS, "--bounds", "links", "--prior-kind", "euclidean", "--json")
    runs.run("arm.stribeck", "identify", model, log, "--friction", "stribeck", "--json")
    runs.run("arm.asymmetric", "identify", model, log, "--friction", "asymmetric", "--json")
    runs.run("arm.prior-none", "identify", model, log, *TERMS, "--prior", "none", "--json")
    runs.run("arm.summary", "identify", model, log, *TERMS, "--summary-out", "arm.summary", "--json")
    runs.run("arm.from-summary", "identify", model, "arm.summary", *TERMS, "--validate", log, "--json")
    runs.run("arm.payload", "identify", model, log, "--payload", "link7", "--json")
    runs.run("arm.payload-unloaded", "identify", model, log, "--payload", "link7", "--unloaded", log, *TERMS, "--json")
    runs.run("arm.gains", "identify", model, log, "--friction", "coulomb+viscous", "--gains", "0.2", "--json")
    runs.run("arm.compare", "analyze", model, "--compare", "floating", "--json")
    runs.run("arm.design-summary", "design", model, *SHORT, *TERMS, "--prior-summary", "arm.summary", "--json")
    stream = (runs.work / log).read_text() if (runs.work / log).exists() else ""
    runs.run(
        "arm.follow", "identify", model, "--follow", "-", *TERMS, "--every", "1", "--window", "0.2", "--json", stdin=stream
    )
    runs.run("arm.check-several", "check", model, "builtin:scara", "--json")


def of_real_log(runs: Runs, folder: Path) -> None:
    """Runs identification with held-out data and validation on the logs of a real robot."""
    model, name = str(folder / "model.urdf"), folder.name
    logs = sorted(str(p) for p in folder.glob("*.csv.gz"))
    fit, rest = (logs[:-1], logs[-1:]) if len(logs) > 1 else (logs, [])
    judged = ["--validate", *rest] if rest else ["--holdout", "0.3"]
    for estimator in ("ols", "lmi"):
        runs.run(f"{name}.identify-{estimator}", "identify", model, *fit, *judged, *TERMS, "--estimator", estimator, "--json")
    runs.run(f"{name}.rotors", "identify", model, *fit, *judged, *TERMS, "--rotors", "symmetric", "--json")
    runs.run(f"{name}.validate", "validate", model, *logs, "--json")


def save(program: str, folder: Path, data: Path) -> None:
    """Saves one set of outputs."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run([program, "demo", "--list"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.strip()]
    with tempfile.TemporaryDirectory() as work:
        runs = Runs(os.path.abspath(program), folder, Path(work))
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            jobs = [pool.submit(of_builtin, runs, name) for name in names]
            jobs += [pool.submit(of_real_log, runs, path.parent) for path in sorted(data.glob("*/model.urdf"))]
            for job in jobs:
                job.result()
        of_arm(runs)
    # Replace the path of the data folder, which differs between machines.
    for path in folder.iterdir():
        text = path.read_text()
        if str(data) in text:
            path.write_text(text.replace(str(data), "DATA"))


def translated(value: object, left_out: set[str]) -> object:
    """Returns a JSON value with renamed fields and without some fields. Numbers are read as strings to keep their digits."""
    if isinstance(value, dict):
        return {RENAMED.get(k, k): translated(v, left_out) for k, v in value.items() if k not in left_out}
    if isinstance(value, list):
        return [translated(v, left_out) for v in value]
    return value


def canonical(text: str, words: bool) -> str:
    """Returns the translated JSON, or the unchanged text if it is not JSON."""
    left_out = ADDED if words else ADDED | WORDS
    try:
        value = json.loads(text, parse_float=str, parse_int=str)
    except json.JSONDecodeError:
        return text
    return json.dumps(translated(value, left_out), indent=1)


def compare(before: Path, after: Path, words: bool) -> int:
    """Returns the number of outputs that differ. `.status` files (messages of failed calls) are compared only with `words`."""
    names = sorted({p.name for p in before.iterdir()} | {p.name for p in after.iterdir()})
    if not words:
        names = [name for name in names if not name.endswith(".status")]
    differing = 0
    for name in names:
        paths = [before / name, after / name]
        missing = [str(p) for p in paths if not p.exists()]
        if missing:
            print(f"{name}: {missing[0]} does not exist")
            differing += 1
            continue
        texts = [canonical(p.read_text(), words) for p in paths]
        if texts[0] == texts[1]:
            continue
        differing += 1
        lines = [t.splitlines() for t in texts]
        first = next((i for i, (a, b) in enumerate(zip(*lines)) if a != b), min(map(len, lines)))
        print(f"{name}: line {first + 1} differs")
        for mark, text in zip("-+", lines):
            print(f"  {mark} {text[first][:200] if first < len(text) else '(end)'}")
    print(f"{len(names)} outputs, {differing} differ")
    return differing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    made = parts.add_parser("save", help="save a set of outputs")
    made.add_argument("program")
    made.add_argument("folder", type=Path)
    made.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    compared = parts.add_parser("compare", help="compare two sets")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    compared.add_argument("--words", action="store_true", help="compare messages, too")
    given = parser.parse_args()
    if given.part == "save":
        save(given.program, given.folder, given.data)
        return 0
    return 1 if compare(given.before, given.after, given.words) else 0


if __name__ == "__main__":
    sys.exit(main())
