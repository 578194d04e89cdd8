"""Dynamics of URDFs by Pinocchio, for tests/pinocchio.rs.

usage: oracle_pinocchio.py list              prints the URDFs of example-robot-data, one path per line
       oracle_pinocchio.py BASE URDF [...]   prints one JSON document for the pairs BASE (fixed|floating) URDF
Ends with status 77 where Pinocchio is not installed.

Angles of continuous joints are written as angles, so that positions read as in URDF; everything else is Pinocchio's own:
parameters are m mcx mcy mcz Ixx Ixy Iyy Ixz Iyz Izz in the joint's frame, free flyers have their linear velocity first.
"""

import json
import sys
from pathlib import Path

try:
    import numpy as np
    import pinocchio as pin
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

SAMPLES = 3


def robots():
    """All URDFs of the example-robot-data package, which installs beside Pinocchio."""
    for prefix in Path(pin.__file__).resolve().parents:
        folder = prefix / "share" / "example-robot-data" / "robots"
        if folder.is_dir():
            return sorted(folder.rglob("*.urdf"))
    return []


def positions(joint, rng):
    """A random position of one joint: Pinocchio's coordinates, and those of the URDF reader."""
    name = joint.shortname()
    if joint.nq == 2:  # continuous: cosine and sine
        angle = rng.uniform(-3, 3)
        return [np.cos(angle), np.sin(angle)], [angle]
    if name == "JointModelPlanar":
        x, y, angle = rng.uniform(-1, 1, 3)
        return [x, y, np.cos(angle), np.sin(angle)], [x, y, angle]
    if name == "JointModelFreeFlyer":
        quaternion = rng.normal(size=4)
        q = [*rng.uniform(-1, 1, 3), *(quaternion / np.linalg.norm(quaternion))]
        return q, q
    assert joint.nq == 1, name
    angle = rng.uniform(-1, 1)
    return [angle], [angle]


def robot(base, path):
    args = [str(path)] if base == "fixed" else [str(path), pin.JointModelFreeFlyer()]
    try:
        model, coupled = pin.buildModelFromUrdf(*args, mimic=True), True
    except ValueError:  # a joint that stands before the one it follows: free, and the reader is told
        model, coupled = pin.buildModelFromUrdf(*args), False
    data = model.createData()
    rng = np.random.default_rng(20)
    mimic = any(j.shortname() == "JointModelMimic" for j in model.joints)
    joints = []
    for name, joint, inertia, place in list(zip(model.names, model.joints, model.inertias, model.jointPlacements))[1:]:
        joints.append({
            "name": name,
            "v": joint.idx_v,
            "nv": joint.nv,
            "parameters": inertia.toDynamicParameters().tolist(),
            "follows": joint.shortname() == "JointModelMimic",
            "rotation": np.asarray(place.rotation).tolist(),
            "translation": np.asarray(place.translation).tolist(),
        })
    samples = []
    for _ in range(SAMPLES):
        q, ours = np.zeros(model.nq), {}
        for name, joint in list(zip(model.names, model.joints))[1:]:
            if joint.nq > 0:
                q[joint.idx_q:joint.idx_q + joint.nq], ours[name] = positions(joint, rng)
        v, a = rng.uniform(-2, 2, model.nv), rng.uniform(-5, 5, model.nv)
        mass = np.triu(pin.crba(model, data, q))
        sample = {
            "q": {name: np.asarray(x).tolist() for name, x in ours.items()},
            "v": v.tolist(),
            "a": a.tolist(),
            "tau": pin.rnea(model, data, q, v, a).tolist(),
            "mass": (mass + np.triu(mass, 1).T).tolist(),
        }
        if not mimic:  # Pinocchio's regressor does not know mimic joints
            sample["regressor"] = pin.computeJointTorqueRegressor(model, data, q, v, a).tolist()
            sample["kinetic"] = pin.computeKineticEnergy(model, data, q, v)
            sample["potential"] = pin.computePotentialEnergy(model, data, q)
            momentum, centre = pin.computeCentroidalMomentum(model, data, q, v), data.com[0]
            at_origin = momentum.angular + np.cross(centre, momentum.linear)
            sample["momentum"] = [*momentum.linear.tolist(), *at_origin.tolist()]
        samples.append(sample)
    return {"path": str(path), "base": base, "mimic": coupled, "nv": model.nv, "joints": joints, "samples": samples}


def main(arguments):
    if arguments == ["list"]:
        print("\n".join(str(path) for path in robots()))
        return
    print(json.dumps([robot(base, path) for base, path in zip(arguments[::2], arguments[1::2])]))


main(sys.argv[1:])
