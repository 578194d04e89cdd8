#!/usr/bin/env python3
"""How well does `inertial identify` without options predict real logs?

usage: scripts/real_logs.py PROGRAM DATA... [--markdown]

Each DATA is a folder with model.urdf and logs (motion*.csv.gz; columns t, q1..., tau1... and, where measured, dq1...) and, if it has
one, meta.json. The last log validates where there are several; of a single log the last 30 % do. The program's answer is
predicted here, from its JSON, with Pinocchio, and compared with a peer in the same run, in the same band and on the same
samples: weighted least squares with Pinocchio's regressor, Coulomb and viscous friction, offset and rotor inertia of every
joint. Joints slower than 2 % of their greatest speed are left out of the peer's fit and of both comparisons.

Honesty: the two halves of the logs are identified apart; the difference of each base parameter over its stated error should
be about one (root mean square over all base parameters).
"""
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import numpy as np
import pinocchio

SLOW = 0.02
HOLD_OUT = 0.3
# The band of the comparison (Hz) and what else the peer is told, by the name of the folder; other logs: 10 Hz.
BAND = {"tx40": 50.0, "ur10": 5.0, "panda": 6.0, "kr300": 6.0}
COUPLING = {"tx40": {5: {4: 1.0, 5: 1.0}}}
# Mass of the arm according to its vendor (kg).
VENDOR = {"tx40": 27.0, "ur10": 28.9, "panda": 18.0, "kr300": 1120.0}


class Log:
    """A log on a uniform grid."""

    def __init__(self, path):
        with gzip.open(path, "rt") as file:
            self.header = file.readline().strip().split(",")
            table = np.loadtxt(file, delimiter=",")
        self.table, columns = table, {name: table[:, k] for k, name in enumerate(self.header)}
        n = sum(name.startswith("tau") for name in columns)
        stack = lambda kind: np.stack([columns[f"{kind}{i + 1}"] for i in range(n)], axis=1)
        t = columns["t"]
        step = float(np.median(np.diff(t)))
        grid = np.arange(t[0], t[-1], step)
        at = lambda x: np.stack([np.interp(grid, t, x[:, k]) for k in range(n)], axis=1)
        self.rate = 1 / step
        self.q, self.tau = at(stack("q")), at(stack("tau"))
        self.dq = at(stack("dq")) if "dq1" in columns else None

    def states(self, band):
        """Filtered motion and torque, decimated, and which samples count."""
        q, tau = low_pass(self.q, band, self.rate), low_pass(self.tau, band, self.rate)
        v = np.gradient(q, 1 / self.rate, axis=0) if self.dq is None else low_pass(self.dq, band, self.rate)
        a = np.gradient(v, 1 / self.rate, axis=0)
        every = max(1, int(self.rate / (10 * band)))
        q, v, a, tau = q[::every], v[::every], a[::every], tau[::every]
        keep = np.abs(v) >= SLOW * np.abs(v).max(axis=0)
        edge = int(2 / band * self.rate / every)
        keep[:edge], keep[len(keep) - edge :] = False, False
        return q, v, a, tau, keep


def low_pass(x, cutoff, rate, order=4):
    """The zero-phase Butterworth filter (forward and backward), in the frequency domain; the ends are mirrored."""
    if cutoff > 0.45 * rate:
        return x
    pad = min(len(x) - 1, int(3 * rate / cutoff))
    mirrored = np.concatenate([2 * x[0] - x[pad:0:-1], x, 2 * x[-1] - x[-2 : -pad - 2 : -1]])
    gain = 1 / (1 + (np.fft.rfftfreq(len(mirrored), 1 / rate) / cutoff) ** (2 * order))
    return np.fft.irfft(np.fft.rfft(mirrored, axis=0) * gain[:, None], len(mirrored), axis=0)[pad : pad + len(x)]


def regressors(model, q, v, a):
    data = model.createData()
    return np.array([pinocchio.computeJointTorqueRegressor(model, data, *s) for s in zip(q, v, a)])


def columns(model, states, couplings):
    """The peer's columns: parameters of all links, then friction, offset and rotor of each joint."""
    q, v, a, _, _ = states
    n, terms = model.nv, []
    for j in range(n):
        shaft = couplings.get(j, {j: 1.0})
        speed, acceleration = (sum(f * x[:, k] for k, f in shaft.items()) for x in (v, a))
        for x in (speed, np.sign(speed), acceleration):
            column = np.zeros((len(q), n))
            for k, f in shaft.items():
                column[:, k] += f * x
            terms.append(column)
        column = np.zeros((len(q), n))
        column[:, j] = 1
        terms.append(column)
    return np.concatenate([regressors(model, q, v, a), np.stack(terms, axis=2)], axis=2)


def peer(parts):
    """Weighted least squares over `(columns, torque, keep)`; the weights are repeated until they settle."""
    n = parts[0][1].shape[1]
    weights = np.ones(n)
    for _ in range(10):
        rows = np.concatenate([a[k[:, j], j] * weights[j] for a, _, k in parts for j in range(n)])
        right = np.concatenate([tau[k[:, j], j] * weights[j] for _, tau, k in parts for j in range(n)])
        scale = np.linalg.norm(rows, axis=0)
        scale[scale == 0] = 1
        x = np.linalg.lstsq(rows / scale, right, rcond=1e-8)[0] / scale
        left = lambda j: np.concatenate([(tau - a @ x)[k[:, j], j] for a, tau, k in parts])
        weights = np.array([1 / np.sqrt(np.mean(left(j) ** 2)) for j in range(n)])
    return x


def predict(folder, result, q, v, a):
    """The torques that a result of `identify --json` predicts, with Pinocchio."""
    model = pinocchio.buildModelFromUrdf(str(folder / "model.urdf"))
    data = model.createData()
    root = xml.etree.ElementTree.parse(folder / "model.urdf").getroot()
    child = {joint.get("name"): joint.find("child").get("link") for joint in root.findall("joint")}
    bodies = {body["name"]: body for body in result["bodies"]}
    for i in range(1, model.njoints):
        body = bodies[child[model.names[i]]]
        t = body["inertia"]
        tensor = [[t["ixx"], t["ixy"], t["ixz"]], [t["ixy"], t["iyy"], t["iyz"]], [t["ixz"], t["iyz"], t["izz"]]]
        model.inertias[i] = pinocchio.Inertia(body["mass"], np.array(body["com"]), np.array(tensor))
    tau = np.array([pinocchio.rnea(model, data, *s) for s in zip(q, v, a)])
    place = {model.names[i + 1]: i for i in range(model.nv)}
    for joint in result["joints"]:
        j = place[joint["name"]]
        shaft = {place[name]: f for name, f in joint.get("turns_with", {}).items()} or {j: 1.0}
        speed, acceleration = (sum(f * x[:, k] for k, f in shaft.items()) for x in (v, a))
        force = joint.get("viscous", 0) * speed + joint.get("coulomb", 0) * np.sign(speed)
        force += joint.get("rotor_inertia", 0) * acceleration
        force += joint.get("coulomb_positive", 0) * (speed > 0) - joint.get("coulomb_negative", 0) * (speed < 0)
        if joint.get("stribeck"):
            bend = np.exp(-((np.abs(speed) / joint["stribeck_velocity"]) ** joint["stribeck_exponent"]))
            force += joint["stribeck"] * np.sign(speed) * bend
        for k, f in shaft.items():
            tau[:, k] += f * force
        tau[:, j] += joint.get("offset", 0)
    return tau


def relative(measured, predicted, keep):
    """Root of the summed squared residuals over the summed squared torques, in percent."""
    return 100 * np.sqrt(((measured - predicted)[keep] ** 2).sum() / (measured[keep] ** 2).sum())


def identify(program, *arguments):
    start = time.perf_counter()
    run = subprocess.run([program, "identify", *map(str, arguments), "--json"], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return json.loads(run.stdout), time.perf_counter() - start


def write(path, log, rows):
    """Some rows of a log as a log of its own."""
    with gzip.open(path, "wt") as file:
        file.write(",".join(log.header) + "\n")
        np.savetxt(file, log.table[rows], delimiter=",", fmt="%.9g")


def honesty(program, folder, paths, logs, scratch):
    """Difference of base parameters between parts of the logs over the stated error: root mean square."""
    if len(paths) > 1:
        parts = [[path] for path in paths]
    else:
        half = len(logs[0].table) // 2
        parts = []
        for name, rows in (("first", slice(0, half)), ("second", slice(half, None))):
            parts.append([scratch / f"{folder.name}-{name}.csv.gz"])
            write(parts[-1][0], logs[0], rows)
    found = []
    for part in parts:
        result, _ = identify(program, folder / "model.urdf", *part)
        found.append({p["name"]: (p["value"], p["std_error"]) for p in result["base_parameters"]})
    ratios = []
    for i in range(len(found)):
        for j in range(i):
            for name, (value, error) in found[i].items():
                other, other_error = found[j][name]
                ratios.append((value - other) / np.hypot(error, other_error))
    return float(np.sqrt(np.mean(np.square(ratios))))


def study(program, folder, scratch):
    band = BAND.get(folder.name, 10.0)
    paths = sorted(folder.glob("motion*.csv.gz"))
    logs = [Log(path) for path in paths]
    model = pinocchio.buildModelFromUrdf(str(folder / "model.urdf"))
    states = [log.states(band) for log in logs]
    several = len(logs) > 1
    parts, last = [], None
    for k, s in enumerate(states):
        cut = len(s[0]) if several else int((1 - HOLD_OUT) * len(s[0]))
        all_columns = columns(model, s, COUPLING.get(folder.name, {}))
        if several and k + 1 == len(logs):
            last = (all_columns, s, slice(0, None))
        else:
            parts.append((all_columns[:cut], s[3][:cut], s[4][:cut]))
            if not several:
                last = (all_columns, s, slice(cut, None))
    peer_columns, (q, v, a, tau, keep), rows = last
    x = peer(parts)
    arguments = [*paths[:-1], "--validate", paths[-1]] if several else [paths[0], "--holdout", HOLD_OUT]
    result, seconds = identify(program, folder / "model.urdf", *arguments)
    ours = predict(folder, result, q[rows], v[rows], a[rows])
    return {
        "log": folder.name,
        "band": band,
        "program": relative(tau[rows], ours, keep[rows]),
        "peer": relative(tau[rows], (peer_columns @ x)[rows], keep[rows]),
        "heaviest": max(body["mass"] for body in result["bodies"]),
        "vendor": VENDOR.get(folder.name),
        "honesty": honesty(program, folder, paths, logs, scratch),
        "verdict": result.get("verdict", "-"),
        "seconds": seconds,
        "terms": sum(t["chosen"] for t in result.get("terms", [])),
        "candidates": len(result.get("terms", [])),
    }


HEAD = """# Real logs

What `inertial identify` without any option reaches on real logs, beside a peer that is told what to look for. Made by

```sh
cargo build --release -p inertial-cli
$(scripts/python-env.sh) scripts/real_logs.py target/release/inertial ../shared/data/* --markdown > docs/real-logs.md
```

The residual is that of torques that were not fitted, as a share of the torque, in the band given and without joints slower
than 2 % of their greatest speed; both predictions are computed with Pinocchio. The peer is weighted least squares with
Coulomb and viscous friction, offset and rotor inertia in every joint, fitted in the band of the comparison, and is
told of the coupled wrist of the TX40. Honesty is the difference of base parameters between halves of the log (or between logs) over
its stated error, root mean square: 1 where errors are right. A lag of the torques that the program corrected is not known to the
comparison.

| log | band (Hz) | residual (%) | peer (%) | heaviest link (kg) | arm (kg) | honesty | terms chosen | verdict |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"""

TAIL = """
`scripts/real_log_faults.py` injects 22 faults (columns exchanged or negated, wrong zeros, units, gravity and lengths, late or filtered torques,
friction and load that change half way) into each log and counts those that the program refuses or calls doubtful."""


def main():
    paths = [x for x in sys.argv[2:] if not x.startswith("--")]
    if not paths:
        raise SystemExit(__doc__)
    markdown = "--markdown" in sys.argv
    if markdown:
        print(HEAD)
    with tempfile.TemporaryDirectory() as scratch:
        for path in paths:
            r = study(sys.argv[1], pathlib.Path(path), pathlib.Path(scratch))
            vendor = "-" if r["vendor"] is None else f"{r['vendor']:.0f}"
            cells = [r["log"], f"{r['band']:g}", f"{r['program']:.2f}", f"{r['peer']:.2f}", f"{r['heaviest']:.1f}", vendor]
            cells += [f"{r['honesty']:.2f}", f"{r['terms']} of {r['candidates']}", r["verdict"]]
            print("| " + " | ".join(cells) + " |" if markdown else " ".join(cells) + f" ({r['seconds']:.2f} s)", flush=True)
    if markdown:
        print(TAIL)


if __name__ == "__main__":
    main()
