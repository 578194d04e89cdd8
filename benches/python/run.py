#!/usr/bin/env python3
"""Measures the Python package.

Compares regressors with a loop over Pinocchio, summaries with the program, and two workers of a cluster with one, and measures the import
time. Alternatives take turns in one run; times are the shortest of several rounds.

    benches/python/run.py [PROGRAM]      PROGRAM: target/release/inertial

Needs the package, pin and dask[distributed] in this interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import pinocchio

import inertial
from inertial import distributed as cluster

ROUNDS = 5
SAMPLES = 20_000


def least(*works):
    """Returns the shortest time of each function; the functions run alternately, under the same load."""
    times = [[] for _ in works]
    for _ in range(ROUNDS):
        for list_, work in zip(times, works, strict=True):
            start = time.perf_counter()
            work()
            list_.append(time.perf_counter() - start)
    return [min(t) for t in times]


def importing() -> None:
    code = "import time; t = time.perf_counter(); import inertial; print(time.perf_counter() - t)"
    run = lambda: float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)  # noqa: E731
    print(f"import: {1e3 * min(run() for _ in range(10)):.1f} ms")


def regressors(robot: inertial.Mechanism) -> None:
    model = robot.to_pinocchio()
    data = model.createData()
    q, v, a = np.random.default_rng(0).normal(size=(3, SAMPLES, robot.nv))
    out = np.zeros((SAMPLES, robot.nv, len(robot.parameters)))

    def peer() -> None:
        for k in range(SAMPLES):
            out[k] = pinocchio.computeJointTorqueRegressor(model, data, q[k], v[k], a[k])

    ours, theirs = least(lambda: robot.regressors(q, v, a, out=out), peer)
    print(
        f"regressors of {robot.name}: {1e6 * ours / SAMPLES:.2f} µs per sample, Pinocchio's loop "
        f"{1e6 * theirs / SAMPLES:.2f} µs: {theirs / ours:.1f} times"
    )


def written(robot: inertial.Mechanism, path: str, count: int, seed: int) -> None:
    t = np.arange(count) / 1000
    rng = np.random.default_rng(seed)
    w, phase = rng.uniform(1, 6, robot.nv), rng.uniform(0, 6, robot.nv)
    angle = np.outer(t, w) + phase
    q, v, a = 0.5 * np.sin(angle), 0.5 * w * np.cos(angle), -0.5 * w**2 * np.sin(angle)
    tau = robot.rnea(q, v, a) + rng.normal(scale=0.1, size=q.shape)
    columns = {"t": t}
    for key, values in (("q", q), ("dq", v), ("tau", tau)):
        columns |= {f"{key}.{n}": np.ascontiguousarray(values[:, k]) for k, n in enumerate(robot.coordinate_names)}
    inertial._inertial.write_log(path, list(columns), list(columns.values()))


def summaries(robot: inertial.Mechanism, program: str, folder: str) -> None:
    path = os.path.join(folder, "long.parquet")
    written(robot, path, 500_000, 0)
    call = [program, "identify", "builtin:arm7", path, "--friction=coulomb+viscous", "--json"]
    ours, theirs = least(
        lambda: inertial.Summary(robot, friction="coulomb+viscous").add(path).identify(),
        lambda: subprocess.run(call, capture_output=True, check=True),
    )
    print(f"summary and estimate of 500 000 samples: {ours:.2f} s, the program {theirs:.2f} s: {theirs / ours:.2f} of its speed")


def workers(robot: inertial.Mechanism, folder: str) -> None:
    from distributed import Client, LocalCluster

    paths = []
    for k in range(8):
        paths.append(os.path.join(folder, f"shard{k}.parquet"))
        written(robot, paths[-1], 200_000, k)
    times = []
    os.environ["RAYON_NUM_THREADS"] = "1"
    for count in (1, 2):
        with LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as local, Client(local) as client:
            work = lambda: cluster.identify(robot, paths, client, friction="viscous", progress=False)  # noqa: E731, B023
            work()
            times += least(work)
    print(f"8 logs of 200 000 samples: one worker {times[0]:.2f} s, two {times[1]:.2f} s: {times[0] / times[1]:.2f} times")


def main() -> None:
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/inertial"
    warnings.simplefilter("ignore")
    robot = inertial.Mechanism.builtin("arm7")
    importing()
    regressors(robot)
    with tempfile.TemporaryDirectory() as folder:
        summaries(robot, program, folder)
        workers(robot, folder)


if __name__ == "__main__":
    main()
