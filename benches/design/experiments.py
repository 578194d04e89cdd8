#!/usr/bin/env python3
"""Checks that the scatter of simulated experiments agrees with the standard errors that designs for real arms predict.

usage: benches/design/experiments.py [EXPERIMENTS] [ROBOT…]     (default: 100, ur5 and panda)

For each robot, the script designs a motion of 20 s at 100 Hz within the limits of the URDF. It checks position, speed, acceleration and
torque at 1 kHz, computed from the coefficients with numpy and Pinocchio. Then it simulates and identifies EXPERIMENTS logs with different
torque noise, and compares the standard deviation of every base parameter with its expected standard error. A standard deviation from N
experiments has a relative uncertainty of 1/sqrt(2N). Needs target/release/inertial (or the program named by INERTIAL) and the Python
packages of scripts/python-env.sh.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pinocchio as pin

sys.path.insert(0, str(Path(__file__).resolve().parent))
from slsqp import ACCELERATION, DURATION, MARGIN, PROGRAM, RATE, ROBOTS, arm, find_data, fixed_fingers  # noqa: E402

NOISE = 0.1


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def states(trajectory, rate, model):
    """Returns positions, velocities and accelerations of a Fourier series, in the order of the model."""
    t = np.arange(int(round(trajectory["duration"] * rate)) + 1) / rate
    period = trajectory["basis"]["period"]
    q, v, a = (np.zeros((model.nv, len(t))) for _ in range(3))
    for joint, c in zip(trajectory["joints"], trajectory["coefficients"]):
        j = model.joints[model.getJointId(joint)].idx_v
        q[j] += c[0]
        for k in range(1, (len(c) + 1) // 2):
            w = 2 * np.pi * k / period
            s, o = np.sin(w * t), np.cos(w * t)
            q[j] += c[2 * k - 1] * s + c[2 * k] * o
            v[j] += w * (c[2 * k - 1] * o - c[2 * k] * s)
            a[j] -= w * w * (c[2 * k - 1] * s + c[2 * k] * o)
    return q, v, a


def used(model, q, v, a):
    """Returns the largest used fraction of each kind of limit, after subtracting margins; at most one if the limits hold."""
    data = model.createData()
    tau = np.array([pin.rnea(model, data, q[:, i], v[:, i], a[:, i]) for i in range(q.shape[1])]).T
    middle = 0.5 * (model.upperPositionLimit + model.lowerPositionLimit)
    half = 0.5 * (model.upperPositionLimit - model.lowerPositionLimit) * (1 - MARGIN)
    keep = 1 - MARGIN
    return {
        "position": np.abs((q - middle[:, None]) / half[:, None]).max(),
        "speed": np.abs(v / (keep * model.velocityLimit)[:, None]).max(),
        "acceleration": np.abs(a).max() / (keep * ACCELERATION),
        "torque": np.abs(tau / (keep * model.effortLimit)[:, None]).max(),
    }


def study(name, count, folder):
    path = find_data() / ROBOTS[name]
    model, file, motion = arm(path), fixed_fingers(path, folder), folder / "motion.json"
    options = ["--duration", DURATION, "--rate", RATE, "--acceleration", ACCELERATION, "--margin", MARGIN]
    design = json.loads(run("design", file, *options, "--noise", f"tau={NOISE}", "--json", "--out", motion))
    limits = used(model, *states(design["trajectory"], 1000.0, model))
    promised = {p["name"]: p["std_error"] for p in design["base_parameters"]}
    values = []
    for seed in range(count):
        log = folder / "log.csv"
        run("simulate", file, motion, "--rate", RATE, "--friction", "none", "--noise", f"tau={NOISE}", "--seed", seed, "--out", log)
        found = json.loads(run("identify", file, log, "--estimator", "ols", "--cutoff", "off", "--json"))
        values.append({p["name"]: p["value"] for p in found["base_parameters"]})
    ratio = np.array([np.std([v[n] for v in values], ddof=1) / s for n, s in promised.items()])
    print(
        f"{name}: rank {design['rank']} of {design['structural_rank']}; limits used at 1 kHz: "
        + ", ".join(f"{k} {100 * v:.2f} %" for k, v in limits.items())
        + f"; spread of {count} experiments over the expected error: mean {ratio.mean():.3f}, "
        f"{ratio.min():.3f} to {ratio.max():.3f}, {np.mean(np.abs(ratio - 1) < 0.2) * 100:.0f} % within 20 %"
    )
    return design["rank"] == design["structural_rank"] and max(limits.values()) <= 1 + 1e-9 and abs(ratio.mean() - 1) < 0.2


def main():
    arguments = sys.argv[1:]
    count = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else 100
    with tempfile.TemporaryDirectory() as folder:
        held = [study(name, count, Path(folder)) for name in arguments or ROBOTS]
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
