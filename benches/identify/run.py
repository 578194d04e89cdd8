#!/usr/bin/env python3
"""Compares identification of a 7-axis arm from a long log by our program and by Pinocchio + NumPy + CVXPY, in one run.

usage: benches/identify/run.py PROGRAM [--rows N] [--keep FOLDER]

Both read the same CSV, apply a zero-phase low-pass filter with the same cut-off frequency, reduce the regressors of every sample (and of
every n-th sample, the default of our program) to a triangular factor, and solve the same kind of problem: weighted least squares over
physically consistent pseudo-inertias and nonnegative friction. As usual, joints slower than 2 % of their highest speed are excluded from
the peer's rows, because the sign of their friction is uncertain. Prints the time of each stage of the peer, the total time, the error
of the estimated friction and the peak memory of both. Needs the packages of scripts/python-requirements.txt.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

RATE = 1000.0
AXES = ["0 0 1", "0 1 0", "0 0 1", "0 -1 0", "0 0 1", "0 1 0", "0 0 1"]
LIMITS = 'lower="-2.9" upper="2.9" effort="300" velocity="5"'
VISCOUS, COULOMB = 0.8, 1.5
BLOCK = 2000  # number of samples whose regressors are factored at once


def model_text():
    links = ['<link name="base"/>']
    joints = []
    for k, axis in enumerate(AXES):
        mass, size = 6.0 - 0.7 * k, 0.02 * (7 - k)
        links.append(
            f'<link name="link{k + 1}"><inertial><origin xyz="0.01 {0.01 * k} 0.08"/><mass value="{mass}"/>'
            f'<inertia ixx="{size}" ixy="0" ixz="0" iyy="{size}" iyz="0" izz="{0.6 * size}"/></inertial></link>')
        parent = f"link{k}" if k else "base"
        joints.append(
            f'<joint name="joint{k + 1}" type="revolute"><parent link="{parent}"/><child link="link{k + 1}"/>'
            f'<origin xyz="0 0 0.18"/><axis xyz="{axis}"/><limit {LIMITS}/></joint>')
    return '<robot name="arm">' + "".join(links + joints) + "</robot>"


def generate(folder, rows):
    """Writes the model and the log of a Fourier series with friction and sensor noise; Pinocchio computes the torques."""
    import numpy as np
    import pinocchio as pin
    (folder / "model.urdf").write_text(model_text())
    model = pin.buildModelFromXML(model_text())
    data = model.createData()
    random = np.random.default_rng(1)
    t = np.arange(rows) / RATE
    base = 2 * np.pi * 0.1
    q, v, a = np.zeros((3, rows, 7))
    for k in range(1, 6):
        s, c = random.uniform(-0.35, 0.35, (2, 7))
        sine, cosine = np.sin(k * base * t)[:, None], np.cos(k * base * t)[:, None]
        q += s * sine + c * cosine
        v += k * base * (s * cosine - c * sine)
        a -= (k * base) ** 2 * (s * sine + c * cosine)
    tau = np.array([pin.rnea(model, data, q[i], v[i], a[i]) for i in range(rows)])
    tau += VISCOUS * v + COULOMB * np.sign(v) + random.normal(0, 0.3, tau.shape)
    q += random.normal(0, 1e-5, q.shape)
    header = ",".join(["t"] + [f"q{k}" for k in range(1, 8)] + [f"tau{k}" for k in range(1, 8)])
    with open(folder / "log.csv", "w") as out:
        out.write(header + "\n")
        for i in range(rows):
            out.write(",".join(map(repr, [float(t[i]), *map(float, q[i]), *map(float, tau[i])])) + "\n")
    subprocess.run(["gzip", "-k", "-1", folder / "log.csv"], check=True)


def peer(folder, cutoff, every):
    clock = [time.perf_counter()]
    import cvxpy as cp
    import numpy as np
    import pinocchio as pin
    import scipy.signal
    stages = {}

    def stage(name):
        now = time.perf_counter()
        stages[name] = now - clock[0]
        clock[0] = now

    stage("import")
    model = pin.buildModelFromUrdf(str(folder / "model.urdf"))
    data = model.createData()
    log = np.loadtxt(folder / "log.csv", delimiter=",", skiprows=1)
    stage("read")
    b = scipy.signal.butter(4, cutoff, fs=RATE, output="sos")
    smooth = scipy.signal.sosfiltfilt(b, log[:, 1:], axis=0)
    q, tau = smooth[:, :7], smooth[:, 7:]
    v = np.gradient(q, 1 / RATE, axis=0)
    a = np.gradient(v, 1 / RATE, axis=0)
    margin = int(2 * RATE / cutoff)
    picked = range(margin, len(q) - margin, every)
    slow = 0.02 * np.abs(v).max(axis=0)
    stage("filter")
    n = 70 + 14
    factors, counts = [np.zeros((n + 1, n + 1)) for _ in range(7)], np.zeros(7)
    rows = np.zeros((BLOCK, 7, n + 1))
    for start in range(0, len(picked), BLOCK):
        part = picked[start:start + BLOCK]
        rows[:] = 0
        for i, s in enumerate(part):
            rows[i, :, :70] = pin.computeJointTorqueRegressor(model, data, q[s], v[s], a[s])
        index = np.asarray(part)
        for j in range(7):
            rows[:len(part), j, 70 + j] = v[index, j]
            rows[:len(part), j, 77 + j] = np.sign(v[index, j])
            rows[:len(part), j, n] = tau[index, j]
            moving = np.abs(v[index, j]) >= slow[j]
            counts[j] += moving.sum()
            factors[j] = np.linalg.qr(np.vstack([factors[j], rows[:len(part), j][moving]]), mode="r")
    stage("summary")
    # Weights from the residuals of a separate least-squares fit of each joint.
    stacked = []
    for factor, count in zip(factors, counts):
        residual = abs(factor[n, n]) / np.sqrt(count)
        stacked.append(factor / residual)
    r = np.linalg.qr(np.vstack(stacked), mode="r")
    truth = np.concatenate([model.inertias[k].toDynamicParameters() for k in range(1, 8)])
    x = cp.Variable(n)
    constraints = [x[70:] >= 0]
    for k in range(7):
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = (x[10 * k + i] for i in range(10))
        half = (xx + yy + zz) / 2
        pseudo = cp.bmat([[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz], [hx, hy, hz, m]])
        constraints.append(pseudo >> 0)
    cost = cp.sum_squares(r[:n, :n] @ x - r[:n, n]) + 1e-3 * cp.sum_squares(x[:70] - truth)
    problem = cp.Problem(cp.Minimize(cost), constraints)
    stage("weights")
    problem.solve(solver=cp.CLARABEL)
    stage("lmi")
    print(json.dumps({"stages": stages, "samples": len(picked), "friction": [float(f) for f in x.value[70:]]}))


def timed(command):
    """Returns elapsed time, peak memory (MB), JSON output and messages of a process.

    Linux includes the memory that a process had before `exec`, so this script imports no large packages itself.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out = process.stdout.read()
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}: {error}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024, json.loads(out), error


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = args.keep or pathlib.Path(made)
        folder.mkdir(exist_ok=True)
        if not (folder / "log.csv.gz").exists():
            subprocess.run([sys.executable, __file__, "--generate", folder, str(args.rows)], check=True)
        ours = {}
        for name, log, more in (("csv", "log.csv", []), ("csv.gz", "log.csv.gz", []), ("every sample", "log.csv", ["--decimate", "1"])):
            call = [args.program, "identify", folder / "model.urdf", folder / log, "--friction", "coulomb+viscous", "--json", *more]
            ours[name] = min((timed(call) for _ in range(3)), key=lambda x: x[0])
            seconds, memory, result, _ = ours[name]
            viscous = max(abs(j["viscous"] - VISCOUS) for j in result["joints"])
            coulomb = max(abs(j["coulomb"] - COULOMB) for j in result["joints"])
            print(f"inertial, {name}: {seconds:.2f} s, {memory:.0f} MB, "
                  f"friction within {viscous:.3f} (viscous), {coulomb:.3f} (Coulomb)")
        note = next(line for line in ours["csv"][3].splitlines() if "low-pass at" in line)
        cutoff = float(note.split("low-pass at ")[1].split()[0])
        every = int(re.search(r"one sample of (\d+)", ours["csv"][3])[1])
        for name, step, mine in (("downsampled like ours", every, "csv"), ("every sample", 1, "every sample")):
            seconds, memory, result, _ = timed([sys.executable, __file__, "--peer", folder, str(cutoff), str(step)])
            stages = ", ".join(f"{k} {v:.2f}" for k, v in result["stages"].items())
            viscous = max(abs(x - VISCOUS) for x in result["friction"][:7])
            coulomb = max(abs(x - COULOMB) for x in result["friction"][7:])
            print(f"peer, {name}: {seconds:.2f} s, {memory:.0f} MB ({stages}), "
                  f"friction within {viscous:.3f} (viscous), {coulomb:.3f} (Coulomb)")
            print(f"  ratio {seconds / ours[mine][0]:.1f}, {seconds / ours['csv'][0]:.1f} relative to our default")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--generate"]:
        generate(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["--peer"]:
        peer(pathlib.Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
