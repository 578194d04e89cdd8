#!/usr/bin/env python3
"""Counts the faults of a log or model that `inertial identify` without options detects.

usage: scripts/real_log_faults.py PROGRAM DATA...

Each DATA is a folder as for real_logs.py. 22 faults are injected into each log or model, one at a time. A fault counts as found if the
program refuses the log (exit status 2), if its verdict is not "good", or if it corrects a lag of the torques that the clean log does not
have. The reasons are printed. The verdict on the clean log must be "good".
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

import real_logs


class Case:
    """A log as a table with named columns, the text of its model, and further arguments."""

    def __init__(self, folder):
        path = sorted(folder.glob("motion*.csv.gz"))[0]
        log = real_logs.Log(path)
        self.header, self.table = log.header, log.table.copy()
        self.model = (folder / "model.urdf").read_text()
        self.arguments = []
        self.rate = log.rate
        self.joints = log.tau.shape[1]
        v = np.gradient(real_logs.low_pass(log.q, min(20.0, 0.3 * log.rate), log.rate), 1 / log.rate, axis=0)
        self.speed = np.stack([np.interp(self["t"], self["t"][0] + np.arange(len(v)) / log.rate, x) for x in v.T], axis=1)

    def __getitem__(self, name):
        return self.table[:, self.header.index(name)]

    def __setitem__(self, name, values):
        self.table[:, self.header.index(name)] = values

    def has(self, name):
        return name in self.header

    def swap(self, *kinds, joints=(1, 2)):
        for kind in (k for k in kinds if self.has(f"{k}1")):
            a, b = (f"{kind}{j}" for j in joints)
            self[a], self[b] = self[b].copy(), self[a].copy()

    def scale(self, factor, *names):
        for name in filter(self.has, names):
            self[name] = factor * self[name]

    def torques(self):
        return [f"tau{j + 1}" for j in range(self.joints)]

    def late(self, seconds):
        for name in self.torques():
            self[name] = np.interp(self["t"] - seconds, self["t"], self[name])

    def lagging(self, seconds):
        """Applies a first-order filter to the torques."""
        for name in self.torques():
            values, state = self[name].copy(), self[name][0]
            share = 1 - np.exp(-1 / (self.rate * seconds))
            for k, x in enumerate(values):
                state += share * (x - state)
                values[k] = state
            self[name] = values

    def second_half(self, change):
        half = len(self.table) // 2
        for j, name in enumerate(self.torques()):
            values = self[name].copy()
            values[half:] = change(values[half:], self.speed[half:, j], values)
            self[name] = values

    def friction(self, share):
        smooth = lambda v: np.tanh(v / (0.02 * np.abs(v).max()))
        self.second_half(lambda tau, v, all_tau: tau + share * np.sqrt(np.mean(all_tau**2)) * smooth(v))

    def spikes(self):
        generator = np.random.default_rng(1)
        for name in self.torques():
            values = self[name].copy()
            rows = generator.choice(len(values), len(values) // 50, replace=False)
            values[rows] += 20 * np.std(values) * generator.standard_normal(len(rows))
            self[name] = values

    def longer(self, metres):
        """Lengthens the first offset between two joints that exceeds 5 cm."""
        origins = list(re.finditer(r'<origin[^>]*xyz="([^"]*)"', self.model))
        joints = [m for m in re.finditer(r"<joint .*?</joint>", self.model, re.S)]
        for joint in joints[2:]:
            for origin in origins:
                if joint.start() < origin.start() < joint.end():
                    xyz = [float(x) for x in origin.group(1).split()]
                    k = int(np.argmax(np.abs(xyz)))
                    if abs(xyz[k]) > 0.05:
                        xyz[k] += np.copysign(metres, xyz[k])
                        text = " ".join(map(str, xyz))
                        self.model = self.model[: origin.start(1)] + text + self.model[origin.end(1) :]
                        return

    def turn_axis(self):
        axes = list(re.finditer(r'<axis xyz="([^"]*)"', self.model))
        axis = axes[1]
        text = " ".join(str(-float(x)) for x in axis.group(1).split())
        self.model = self.model[: axis.start(1)] + text + self.model[axis.end(1) :]


DEGREES = 180 / np.pi
FAULTS = {
    "torques of joints 1 and 2 exchanged": lambda c: c.swap("tau"),
    "torques of joints 2 and 3 exchanged": lambda c: c.swap("tau", joints=(2, 3)),
    "motion of joints 2 and 3 exchanged": lambda c: c.swap("q", "dq", joints=(2, 3)),
    "torque of joint 2 negated": lambda c: c.scale(-1, "tau2"),
    "torque of joint 3 negated": lambda c: c.scale(-1, "tau3"),
    "all torques negated": lambda c: c.scale(-1, *c.torques()),
    "position of joint 2 negated": lambda c: c.scale(-1, "q2", "dq2"),
    "axis of joint 2 reversed in the model": Case.turn_axis,
    "base tilted by 10 degrees": lambda c: c.arguments.extend(["--gravity", "1.7035,0,-9.6610"]),
    "gravity upwards": lambda c: c.arguments.extend(["--gravity", "0,0,9.81"]),
    "a link 5 cm longer": lambda c: c.longer(0.05),
    "zero of joint 2 off by 5 degrees": lambda c: c.__setitem__("q2", c["q2"] + 5 / DEGREES),
    "positions in degrees": lambda c: c.scale(DEGREES, *[f"q{j + 1}" for j in range(c.joints)]),
    "velocities in degrees": lambda c: c.scale(DEGREES, *[f"dq{j + 1}" for j in range(c.joints)]),
    "time in milliseconds": lambda c: c.scale(1000, "t"),
    "torque of joint 2 in N cm": lambda c: c.scale(100, "tau2"),
    "torque constant of joint 3 20 % high": lambda c: c.scale(1.2, "tau3"),
    "torques 20 ms late": lambda c: c.late(0.02),
    "torques 100 ms late": lambda c: c.late(0.1),
    "torques behind a filter of 50 ms": lambda c: c.lagging(0.05),
    "more friction in the second half": lambda c: c.friction(0.15),
    "15 % more load in the second half": lambda c: c.second_half(lambda tau, v, _: 1.15 * tau),
}


def verdict(program, case, scratch):
    np.savetxt(scratch / "log.csv", case.table, delimiter=",", fmt="%.9g", header=",".join(case.header), comments="")
    (scratch / "model.urdf").write_text(case.model)
    command = [program, "identify", scratch / "model.urdf", scratch / "log.csv", "--json", *case.arguments]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if run.returncode == 2:
        return "refused", [run.stderr.strip().splitlines()[-1]], 0.0
    result = json.loads(run.stdout)
    reasons = [reason["message"] for reason in result.get("reasons", [])]
    lag = result["lag"]["value"] if "lag" in result else 0.0
    return result.get("verdict", "good"), [*reasons, *([f"lag: {lag:.4f} s, corrected"] if lag else [])], lag


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        for path in map(pathlib.Path, sys.argv[2:]):
            clean, reasons, usual = verdict(sys.argv[1], Case(path), pathlib.Path(scratch))
            print(f"{path.name}: clean log: {clean}", *reasons, sep="\n    ")
            found, tried = 0, 0
            for name, inject in FAULTS.items():
                case = Case(path)
                before = case.table.copy(), case.model, list(case.arguments)
                inject(case)
                if np.array_equal(before[0], case.table) and before[1:] == (case.model, case.arguments):
                    continue
                answer, reasons, lag = verdict(sys.argv[1], case, pathlib.Path(scratch))
                tried += 1
                # A deviation of more than half of the smallest injected lag counts as a corrected fault.
                if answer == "good" and abs(lag - usual) > 0.01:
                    answer = "corrected"
                found += answer != "good"
                print(f"  {name}: {answer}", *(reason[:110] for reason in reasons[:2]), sep="\n      ", flush=True)
            print(f"{path.name}: {found} of {tried} faults found")


if __name__ == "__main__":
    main()
