"""Computes the dynamics of URDFs with Pinocchio, for tests/all/pinocchio.rs.

usage: oracle_pinocchio.py list              prints the URDFs of example-robot-data, one path per line
       oracle_pinocchio.py BASE URDF [...]   prints one JSON document for the pairs BASE (fixed|floating) URDF
Exits with status 77 if Pinocchio is not installed.

Positions of continuous joints are written as angles, as in URDF. Everything else follows Pinocchio's conventions: parameters are
m mcx mcy mcz Ixx Ixy Iyy Ixz Iyz Izz in the joint's frame, and free flyers have their linear velocity first.
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
    """Returns all URDFs of the package example-robot-data, which is installed next to Pinocchio."""
    for prefix in Path(pin.__file__).resolve().parents:
        folder = prefix / "share" / "example-robot-data" / "robots"
        if folder.is_dir():
            return sorted(folder.rglob("*.urdf"))
    return []


def positions(joint, rng):
    """Returns a random position of one joint in the coordinates of Pinocchio and of our URDF reader."""
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
    except ValueError:  # a joint is defined before the joint that it mimics: both read the joints as independent
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
        if not mimic:  # Pinocchio's regressor does not support mimic joints
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
