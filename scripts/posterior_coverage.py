#!/usr/bin/env python3
"""Measures how often the credible intervals of `identify --posterior` contain the true values near the boundary of possible bodies.

usage: scripts/posterior_coverage.py PROGRAM [DRAWS] [--distance LOW HIGH]

Each draw is a plate of random size and direction behind a force/torque sensor. Its thickness (second moment along its normal) is uniform
between LOW and HIGH standard errors (0 and 4), where 0 is the boundary. The log has exact accelerations and angular rates, and forces with
white noise. The script computes the forces with the Newton-Euler equations. It prints the share of intervals that contain the true value
for each quantity, and fails if the share of a quantity differs from 95 % by more than 4 %.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

RATE, SECONDS = 100.0, 8.0
NOISE = {"f": 0.5, "t": 0.05}
MODEL = '<robot name="r"><link name="tool"/></robot>'
NAMES = ["m", "cx", "cy", "cz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"]
PAIRS = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]


def cross(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def about(w):
    """Returns the matrix that maps Ixx Ixy Ixz Iyy Iyz Izz to the product of the inertia and w."""
    x, y, z = w
    return np.array([[x, y, z, 0, 0, 0], [0, x, 0, y, z, 0], [0, 0, x, 0, y, z]])


def motion(rng):
    """Returns times, accelerations, angular rates and angular accelerations of a random motion."""
    t = np.arange(0, SECONDS, 1 / RATE)
    frequency = 2 * np.pi * rng.uniform(0.2, 1.0, (3, 3))
    phase = rng.uniform(0, 2 * np.pi, (2, 3, 3))
    w = sum(1.2 * np.sin(t[:, None] * frequency[k] + phase[0, k]) for k in range(3))
    dw = sum(1.2 * frequency[k] * np.cos(t[:, None] * frequency[k] + phase[0, k]) for k in range(3))
    a = sum(3.0 * np.sin(t[:, None] * frequency[k] + phase[1, k]) for k in range(3)) + [0.0, 0.0, 9.81]
    return t, a, w, dw


def regressor(a, w, dw):
    """Returns the rows of forces and moments of all samples in the ten parameters about the origin of the sensor."""
    rows = np.zeros((len(a), 6, 10))
    for out, a, w, dw in zip(rows, a, w, dw):
        out[:3, 0] = a
        out[:3, 1:4] = cross(dw) + cross(w) @ cross(w)
        out[3:, 1:4] = -cross(a)
        out[3:, 4:] = about(dw) + cross(w) @ about(w)
    return rows


def parameters(mass, com, central):
    """Returns m, m c and the inertia about the origin."""
    inertia = central + mass * (com @ com * np.eye(3) - np.outer(com, com))
    return np.concatenate([[mass], mass * com, [inertia[i, j] for i, j in PAIRS]])


def body(rng, thickness):
    """Returns mass, centre of mass and central inertia of a plate with a second moment `thickness(normal, mass, com)` along its normal."""
    mass, com = rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    sizes = mass * rng.uniform(0.05, 0.15, 2) ** 2
    second = turn @ np.diag([*sizes, thickness(turn[:, 2], mass, com)]) @ turn.T
    return mass, com, np.trace(second) * np.eye(3) - second


def standard_error(rows, normal, mass, com):
    """Returns the standard error of the central second moment along a direction, with unknown offsets of the sensor."""
    weights = np.repeat([1 / NOISE["f"], 1 / NOISE["t"]], 3)
    offsets = np.broadcast_to(np.eye(6), (len(rows), 6, 6))
    scaled = (np.concatenate([rows, offsets], axis=2) * weights[:, None]).reshape(-1, 16)
    covariance = np.linalg.inv(scaled.T @ scaled)[:10, :10]
    # Second moment about the origin: n' (tr(I)/2 - I) n, minus (n' m c)^2/m.
    gradient = np.zeros(10)
    gradient[4:] = [(0.5 * (i == j) - normal[i] * normal[j]) * (1 if i == j else 2) for i, j in PAIRS]
    along = normal @ com
    gradient[0] = along**2
    gradient[1:4] = -2 * along * normal
    return np.sqrt(gradient @ covariance @ gradient)


def draw(program, folder, rng, low, high):
    """Returns whether each quantity is inside its interval, and the verdict about the consistency of least squares."""
    t, a, w, dw = motion(rng)
    rows = regressor(a, w, dw)
    share = rng.uniform(low, high)
    mass, com, central = body(rng, lambda *plate: share * standard_error(rows, *plate))
    noise = rng.normal(size=(len(t), 6)) * np.repeat([NOISE["f"], NOISE["t"]], 3)
    wrench = rows @ parameters(mass, com, central) + rng.normal(size=6) + noise
    header = "t," + ",".join(f"{name}.{axis}" for name in ("acc", "gyro", "alpha") for axis in "xyz")
    header += ",ft.fx,ft.fy,ft.fz,ft.tx,ft.ty,ft.tz"
    log = folder / "log.csv"
    np.savetxt(log, np.column_stack([t, a, w, dw, wrench]), delimiter=",", header=header, comments="")
    call = [program, "identify", folder / "tool.urdf", log, "--payload", "tool", "--cutoff", "off", "--posterior", "--json"]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)["posterior"]["intervals"]
    truth = dict(zip(NAMES, [mass, *com, *(central[i, j] for i, j in PAIRS)]))
    intervals = {i["name"].split(".")[-1]: i for i in found if i["kind"] != "base"}
    return [intervals[name]["lower"] <= truth[name] <= intervals[name]["upper"] for name in NAMES]


def main():
    words = sys.argv[1:]
    low, high = 0.0, 4.0
    if "--distance" in words:
        k = words.index("--distance")
        low, high = map(float, words[k + 1 : k + 3])
        del words[k : k + 3]
    program, draws = words[0], int(words[1]) if len(words) > 1 else 500
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "tool.urdf").write_text(MODEL)
        inside = np.array([draw(program, folder, rng, low, high) for _ in range(draws)])
    shares = inside.mean(axis=0)
    for name, share in zip(NAMES, shares):
        print(f"{name:4} {100 * share:5.1f} %")
    print(f"all  {100 * inside.mean():5.1f} %  ({draws} draws, {low:g} to {high:g} standard errors from the boundary)")
    sys.exit(any(abs(shares - 0.95) > 0.04))


main()
