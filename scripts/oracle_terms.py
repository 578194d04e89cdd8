#!/usr/bin/env python3
"""Checks whether `identify` selects the simulated joint terms, and whether the model that it writes predicts better.

usage: scripts/oracle_terms.py PROGRAM [ROBOT ...]

Torques come from Pinocchio: inverse dynamics of ten URDFs of example-robot-data with inertias that differ from the file, with noise, and
with and without friction, offsets, rotor inertias and a lag of the torques. The program is called without options for each log. Prints
one line per robot and case, then the failures and their number. Exits with status 77 if Pinocchio is not installed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import pinocchio as pin
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

ROBOTS = [
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "ur_description/urdf/ur10_robot.urdf",
    "ur_description/urdf/ur3_robot.urdf",
    "kinova_description/robots/kinova.urdf",
    "xarm_description/urdf/xarm7.urdf",
    "z1_description/urdf/z1.urdf",
    "so_arm_description/urdf/so101.urdf",
    "talos_data/robots/talos_left_arm.urdf",
    "double_pendulum_description/urdf/double_pendulum.urdf",
]
CASES = {
    "none": (),
    "friction": ("viscous", "coulomb"),
    "offset": ("offset",),
    "rotors": ("viscous", "coulomb", "rotor_inertia"),
    "lag": ("viscous", "coulomb", "lag"),
    "all": ("viscous", "coulomb", "offset", "rotor_inertia", "lag"),
}
RATE, SECONDS, LAG = 250.0, 20.0, 0.02
# Standard deviation of the noise relative to the RMS torque.
NOISE = 0.005


def folder():
    for prefix in Path(pin.__file__).resolve().parents:
        found = prefix / "share" / "example-robot-data" / "robots"
        if found.is_dir():
            return found
    sys.exit(77)


def motion(model, rng, extra=0.0):
    """Returns times, positions, velocities and accelerations of a sum of sines within the limits of all joints."""
    t = np.arange(0.0, SECONDS + extra, 1.0 / RATE)
    q, v, a = (np.zeros((len(t), model.nv)) for _ in range(3))
    for joint in [joint for joint in list(model.joints)[1:] if joint.nv == 1]:
        j = joint.idx_v
        low, high = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
        # Joints without limits have two coordinates (cosine and sine).
        if joint.nq == 2 or not (np.isfinite(low) and np.isfinite(high) and high - low < 6.28 and high > low):
            low, high = -2.5, 2.5
        speed = model.velocityLimit[j]
        # Slower joints would hardly move, and an offset could not be distinguished from gravity.
        speed = speed if 2 < speed < 10 else 3.0
        w = 2 * np.pi * rng.uniform(0.08, 0.7, 5)
        phase = rng.uniform(0, 2 * np.pi, 5)
        size = rng.uniform(0.4, 1.0, 5)
        scale = min(0.4 * (high - low) / size.sum(), 0.7 * speed / (size * w).sum())
        for w, phase, size in zip(w, phase, scale * size):
            q[:, j] += size * np.sin(w * t + phase)
            v[:, j] += size * w * np.cos(w * t + phase)
            a[:, j] -= size * w * w * np.sin(w * t + phase)
        q[:, j] += 0.5 * (low + high)
    return t, q, v, a


def changed(model, rng):
    """Returns the robot with changed inertias, to simulate a real robot that differs from its file."""
    out = model.copy()
    for inertia in list(out.inertias)[1:]:
        inertia.mass *= rng.uniform(0.8, 1.25)
        inertia.lever = inertia.lever + rng.normal(scale=0.005, size=3)
    return out


def log(path, names, model, terms, rng):
    t, q, v, a = motion(model, rng, LAG)
    # Pinocchio represents continuous joints by cosine and sine.
    states = []
    for row in q:
        parts = []
        for joint in list(model.joints)[1:]:
            if joint.nv == 1:
                angle = row[joint.idx_v]
                parts += [np.cos(angle), np.sin(angle)] if joint.nq == 2 else [angle]
        states.append(np.array(parts))
    data = model.createData()
    tau = np.array([pin.rnea(model, data, q, v, a) for q, v, a in zip(states, v, a)])
    rms = np.sqrt((tau**2).mean(axis=0)).max() * 0.1 + np.sqrt((tau**2).mean(axis=0))
    # Each term contributes up to a quarter of the joint's RMS torque.
    share = 0.25 * rms
    if "viscous" in terms:
        tau += v * share / np.abs(v).max(axis=0)
    if "coulomb" in terms:
        tau += np.sign(v) * share
    if "offset" in terms:
        tau += share * np.where(rng.random(model.nv) < 0.5, 1.0, -1.0)
    if "rotor_inertia" in terms:
        tau += a * share / np.abs(a).max(axis=0)
    late = round(LAG * RATE) if "lag" in terms else 0
    count = round(SECONDS * RATE)
    tau = tau[round(LAG * RATE) - late :][:count] + NOISE * rms * rng.normal(size=(count, model.nv))
    start = round(LAG * RATE)
    table = np.hstack([t[start : start + count, None], q[start : start + count], tau])
    header = ",".join(["t"] + [f"q.{n}" for n in names] + [f"tau.{n}" for n in names])
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.9g")


def identify(program, arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode > 1 or not done.stdout:
        return None, done.stderr.strip().splitlines()[-1:]
    return json.loads(done.stdout), None


def main():
    program, wanted = sys.argv[1], sys.argv[2:]
    wrong, candidates, false = [], 0, []
    for k, name in enumerate(ROBOTS):
        path = folder() / name
        robot = path.stem
        if wanted and robot not in wanted:
            continue
        # Mimic joints have no coordinates.
        model = pin.buildModelFromUrdf(str(path), mimic=True)
        names = [name for name, joint in list(zip(model.names, model.joints))[1:] if joint.nv == 1]
        if model.nv != len(names):
            sys.exit(f"{robot}: has a joint with several degrees of freedom")
        for case, terms in CASES.items():
            rng = np.random.default_rng([k, len(case)])
            with tempfile.TemporaryDirectory() as place:
                csv, out = Path(place) / "log.csv", Path(place) / "found.urdf"
                log(csv, names, changed(model, rng), terms, rng)
                call = ["identify", path, csv, "--json", "--out", out]
                found, error = identify(program, call)
                if found is None:
                    wrong.append(f"{robot}, {case}: {error}")
                    continue
                missed = []
                for term in found.get("terms", []):
                    kind = term["term"]
                    simulated = kind in terms
                    if simulated and not term["chosen"]:
                        missed.append(f"{kind} of {term['joint']}")
                    if not simulated:
                        candidates += 1
                        if term["chosen"]:
                            false.append(f"{robot}, {case}: {kind} of {term['joint']}")
                lag = found.get("lag") or {}
                seconds = lag.get("seconds", lag.get("value", 0.0)) if isinstance(lag, dict) else lag
                if ("lag" in terms) != (abs(seconds or 0.0) > 0.25 * LAG):
                    missed.append(f"lag {lag}")
                # Compare the written model with the original one by `validate` on the whole log.
                before, error = identify(program, ["validate", path, csv, "--json"])
                after, error = identify(program, ["validate", out, csv, "--json"])
                ratio = None
                if before and after:
                    ratio = after["relative_rms"] / before["relative_rms"]
                    if ratio > 1.0:
                        wrong.append(f"{robot}, {case}: the residual of the written model is {ratio:.3f} times that of the original")
                else:
                    wrong.append(f"{robot}, {case}: validate: {error}")
                if missed:
                    wrong.append(f"{robot}, {case}: not selected: {', '.join(missed)}")
                print(f"{robot}, {case}: residual {found['fit_relative_rms']:.4f}, verdict {found['verdict']}, "
                      f"written model {ratio}, missed {len(missed)}", flush=True)
    print("\n".join(wrong + [f"not simulated: {line}" for line in false]))
    print(f"{len(wrong)} wrong; {len(false)} of {candidates} terms that were not simulated were selected")


main()
