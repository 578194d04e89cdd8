#!/usr/bin/env python3
"""Compares designs with SciPy's SLSQP at equal time, with the same robot, criterion and limits.

usage: benches/design/slsqp.py [SECONDS] [ROBOT…]     (default: 20 s, ur5 and panda)

Both minimize the D-criterion of the base parameters over Fourier series of 20 s at 100 Hz that start and end at rest, within limits of
position, speed, acceleration and torque. The reference is a simple implementation: Pinocchio's regressor, numpy, and SLSQP with finite
differences, starting from a small random motion. For speed, it uses every tenth sample and checks limits at 50 times. This script
evaluates the criterion of both results at 100 Hz. Both get the same elapsed time; ours uses all cores. Needs target/release/inertial (or
the program named by INERTIAL) and the Python packages of scripts/python-env.sh with scipy.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.optimize import minimize

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(pin.__file__).resolve().parents[4] / "share" / "example-robot-data" / "robots"
ROBOTS = {
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "panda": "panda_description/urdf/panda.urdf",
}
PROGRAM = os.environ.get("INERTIAL", str(ROOT / "target/release/inertial"))
DURATION, RATE, HARMONICS, MARGIN, ACCELERATION = 20.0, 100.0, 8, 0.05, 10.0
# Our names of the ten parameters in Pinocchio's order.
ORDER = ["m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"]


class Gone(Exception):
    """The time limit is reached."""


def find_data():
    for prefix in [DATA] + [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path]:
        if prefix.is_dir():
            return prefix
    raise SystemExit("example-robot-data is not installed")


def arm(path):
    """Returns the model with grippers fixed at zero."""
    model = pin.buildModelFromUrdf(str(path))
    fingers = [j for j in range(1, model.njoints) if "finger" in model.names[j]]
    return pin.buildReducedModel(model, fingers, pin.neutral(model)) if fingers else model


def fixed_fingers(path, folder):
    """Writes the URDF with grippers fixed at zero for our program and returns its path."""
    text = path.read_text()
    if "finger_joint" not in text:
        return path
    out = []
    for line in text.splitlines():
        if "<joint" in line and "finger_joint" in line:
            line = line.replace('"prismatic"', '"fixed"')
        if "<mimic" not in line:
            out.append(line)
    file = folder / f"fixed_{path.name}"
    file.write_text("\n".join(out))
    return file


class Problem:
    def __init__(self, model, columns):
        self.model, self.data, self.columns, self.n = model, model.createData(), columns, model.nv
        w = 2 * np.pi / DURATION
        t = np.arange(int(DURATION * RATE) + 1) / RATE
        rows = [np.array([np.ones_like(t), 0 * t, 0 * t])]
        for k in range(2, HARMONICS + 1):
            s = lambda k: np.array([np.sin(k * w * t), k * w * np.cos(k * w * t), -((k * w) ** 2) * np.sin(k * w * t)])
            c = lambda k: np.array([np.cos(k * w * t), -k * w * np.sin(k * w * t), -((k * w) ** 2) * np.cos(k * w * t)])
            rows.append(s(k) - k * s(1))
            rows.append(c(k) - k * k * c(1) + np.array([np.full_like(t, k * k - 1.0), 0 * t, 0 * t]))
        # Scale each function by its largest value.
        self.basis = np.array([r / np.abs(r[0]).max() for r in rows])
        lower, upper = model.lowerPositionLimit, model.upperPositionLimit
        spare = 0.5 * MARGIN * (upper - lower)
        self.lower, self.upper = lower + spare, upper - spare
        self.velocity = (1 - MARGIN) * model.velocityLimit
        self.acceleration = np.full(self.n, (1 - MARGIN) * ACCELERATION)
        self.effort = (1 - MARGIN) * model.effortLimit
        self.few = slice(0, None, len(t) // 50)
        self.tenth = slice(0, None, 10)
        self.best, self.end = (np.inf, None), np.inf

    def motion(self, x, part=slice(None)):
        c = x.reshape(self.n, len(self.basis))
        return [c @ self.basis[:, d, part] for d in range(3)]

    def criterion(self, q, v, a):
        total = np.zeros((len(self.columns),) * 2)
        for i in range(q.shape[1]):
            y = pin.computeJointTorqueRegressor(self.model, self.data, q[:, i], v[:, i], a[:, i])[:, self.columns]
            total += y.T @ y
        sign, log = np.linalg.slogdet(total)
        return -log / (2 * len(total)) if sign > 0 else 1e3

    def objective(self, x):
        if time.time() > self.end:
            raise Gone
        value = self.criterion(*self.motion(x, self.tenth))
        if value < self.best[0] and self.constraints(x).min() >= -1e-6:
            self.best = (value, x.copy())
        return value

    def constraints(self, x):
        q, v, a = self.motion(x, self.few)
        tau = np.array([pin.rnea(self.model, self.data, q[:, i], v[:, i], a[:, i]) for i in range(q.shape[1])]).T
        reach = 0.5 * (self.upper - self.lower)
        parts = [(self.upper[:, None] - q) / reach[:, None], (q - self.lower[:, None]) / reach[:, None]]
        for value, limit in [(v, self.velocity), (a, self.acceleration), (tau, self.effort)]:
            parts += [1 - value / limit[:, None], 1 + value / limit[:, None]]
        return np.concatenate([p.ravel() for p in parts])


def reference(problem, seconds):
    random = np.random.default_rng(1)
    middle = 0.5 * (problem.lower + problem.upper)
    size = 0.5
    while True:
        x = random.normal(size=(problem.n, len(problem.basis))) * size * 0.1
        x[:, 0] = middle
        if problem.constraints(x.ravel()).min() >= 0:
            break
        size *= 0.8
    problem.end = time.time() + seconds
    try:
        minimize(
            problem.objective,
            x.ravel(),
            method="SLSQP",
            constraints={"type": "ineq", "fun": problem.constraints},
            options={"maxiter": 10_000},
        )
    except Gone:
        pass
    return problem.criterion(*problem.motion(problem.best[1]))


def ours(path, seconds):
    start = time.time()
    command = [PROGRAM, "design", path, "--json", "--duration", DURATION, "--rate", RATE]
    command += ["--harmonics", HARMONICS, "--acceleration", ACCELERATION, "--margin", MARGIN, "--time-limit", seconds]
    command += ["--iterations", 10_000]
    result = json.loads(subprocess.run([str(c) for c in command], check=True, capture_output=True).stdout)
    return result, time.time() - start


def main():
    arguments = sys.argv[1:]
    seconds = float(arguments.pop(0)) if arguments and arguments[0].replace(".", "").isdigit() else 20.0
    folder = ROOT / "target"
    for name in arguments or ROBOTS:
        path = find_data() / ROBOTS[name]
        result, took = ours(fixed_fingers(path, folder), seconds)
        model = arm(path)
        # A body has the name of the link nearest to the base, the child of its joint.
        link_joint = {}
        for frame in model.frames:
            if frame.type == pin.FrameType.BODY:
                link_joint.setdefault(frame.name, frame.parentJoint)
        columns = []
        for parameter in result["base_parameters"]:
            link, entry = parameter["name"].rsplit(".", 1)
            columns.append(10 * (link_joint[link] - 1) + ORDER.index(entry))
        problem = Problem(model, columns)
        w = 2 * np.pi / DURATION
        t = np.arange(int(DURATION * RATE) + 1) / RATE
        q, v, a = (np.zeros((model.nv, len(t))) for _ in range(3))
        for joint, c in zip(result["trajectory"]["joints"], result["trajectory"]["coefficients"]):
            j = model.joints[model.getJointId(joint)].idx_v
            q[j] += c[0]
            for k in range(1, HARMONICS + 1):
                s, o = np.sin(k * w * t), np.cos(k * w * t)
                q[j] += c[2 * k - 1] * s + c[2 * k] * o
                v[j] += k * w * (c[2 * k - 1] * o - c[2 * k] * s)
                a[j] -= (k * w) ** 2 * (c[2 * k - 1] * s + c[2 * k] * o)
        mine = problem.criterion(q, v, a)
        other = reference(problem, took)
        print(
            f"{name}: {len(columns)} base parameters, {took:.1f} s each: ours {mine:.4f} (reported by the program: "
            f"{result['criterion']['value']:.4f}), SLSQP {other:.4f}; standard errors smaller by a factor of {np.exp(other - mine):.2f}"
        )


if __name__ == "__main__":
    main()
