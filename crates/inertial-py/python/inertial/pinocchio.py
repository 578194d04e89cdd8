"""Conversion of models and parameter order from and to Pinocchio.

Pinocchio orders a body's parameters ``m mx my mz Ixx Ixy Iyy Ixz Iyz Izz``; here they are
``m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz``. Positions and velocities have the same order (a floating base: ``x y z qx qy qz
qw``, linear velocity first), except that Pinocchio describes the angle of unbounded revolute joints and of planar joints
by cosine and sine. Joints that have no counterpart (``SphericalZYX``, ``Translation``, ``Ellipsoid``, ``Composite``,
``Mimic``) raise an error that names them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._inertial import Error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._inertial import Floats, Mechanism as Native

#: Indices of Pinocchio's ten parameters in our order: ``ours[..., FROM_OURS]`` has Pinocchio's order, and vice versa.
FROM_OURS = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


def reorder(parameters: ArrayLike) -> Floats:
    """Converts parameters (vector) or a regressor (columns) from one order to the other; the conversion is its own inverse."""
    import numpy as np

    array = np.asarray(parameters, dtype=np.float64)
    if array.shape[-1] % 10:
        raise Error(f"{array.shape[-1]} parameters: expected ten for each body (rotors=\"none\" or \"general\")")
    return array.reshape(*array.shape[:-1], -1, 10)[..., FROM_OURS].reshape(array.shape)


#: Joints of Pinocchio with the same coordinates as here.
REVOLUTE = {"JointModelRX", "JointModelRY", "JointModelRZ", "JointModelRevoluteUnaligned"}
#: Joints with cosine and sine as coordinates in Pinocchio, and with an angle here.
CONTINUOUS = {"JointModelRUBX", "JointModelRUBY", "JointModelRUBZ", "JointModelRevoluteUnboundedUnaligned"}
PRISMATIC = {"JointModelPX", "JointModelPY", "JointModelPZ", "JointModelPrismaticUnaligned"}
HELICAL = {"JointModelHX", "JointModelHY", "JointModelHZ", "JointModelHelicalUnaligned"}


def mechanism_file(model: Any) -> tuple[str, str]:
    """Converts a ``pinocchio.Model`` to a name and the text of a mechanism file; the body of each joint is named after its first body frame."""
    import numpy as np

    if not hasattr(model, "njoints"):
        raise Error(f"a {type(model).__name__}: expected a pinocchio.Model")
    names = ["ground"]
    for k in range(1, model.njoints):
        frames = [f.name for f in model.frames if _parent(f) == k and str(f.type).endswith("BODY")]
        name = frames[0] if frames else model.names[k]
        names.append(name if name not in names else model.names[k])
    bodies = []
    for k in range(1, model.njoints):
        placement, inertia = model.jointPlacements[k], model.inertias[k]
        joint = {
            "name": model.names[k],
            **_joint(model, k),
            "origin": {"xyz": placement.translation.tolist(), "rotation": placement.rotation.tolist()},
        }
        v = model.joints[k].idx_v
        q = model.joints[k].idx_q
        if model.joints[k].nq == 1 and model.joints[k].nv == 1:
            limits = {
                "lower": model.lowerPositionLimit[q],
                "upper": model.upperPositionLimit[q],
                "velocity": model.velocityLimit[v],
                "effort": model.effortLimit[v],
            }
            joint["dynamics"] = {
                "armature": float(model.armature[v]),
                "damping": float(model.damping[v]),
                "friction": float(model.friction[v]),
            }
            joint["limits"] = {n: float(x) for n, x in limits.items() if np.isfinite(x) and abs(x) < 1e300}
        tensor = inertia.inertia
        bodies.append(
            {
                "name": names[k],
                "parent": names[model.parents[k]],
                "joint": joint,
                "inertial": {
                    "mass": inertia.mass,
                    "com": inertia.lever.tolist(),
                    "inertia": {
                        "ixx": tensor[0, 0],
                        "ixy": tensor[0, 1],
                        "ixz": tensor[0, 2],
                        "iyy": tensor[1, 1],
                        "iyz": tensor[1, 2],
                        "izz": tensor[2, 2],
                    },
                },
            }
        )
    text = {
        "schema": "inertial/mechanism/1",
        "name": model.name or "robot",
        "gravity": model.gravity.linear.tolist(),
        "bodies": bodies,
    }
    return f"the Pinocchio model {model.name}", json.dumps(text)


def _parent(frame: Any) -> int:
    return int(frame.parentJoint if hasattr(frame, "parentJoint") else frame.parent)


def _joint(model: Any, k: int) -> dict[str, Any]:
    """Returns type and axis of a joint, from its motion subspace (linear part first)."""
    import numpy as np
    import pinocchio

    joint = model.joints[k]
    kind = joint.shortname()
    simple = {"JointModelFreeFlyer": "floating", "JointModelSpherical": "spherical"}
    if kind in simple:
        return {"type": simple[kind]}
    if kind == "JointModelPlanar":
        return {"type": "planar", "axis": [0.0, 0.0, 1.0]}
    known = REVOLUTE | CONTINUOUS | PRISMATIC | HELICAL | {"JointModelUniversal"}
    if kind not in known:
        raise Error(f"joint {model.names[k]} of the Pinocchio model: {kind} is not supported")
    data = joint.createData()
    joint.calc(data, pinocchio.neutral(model))
    s = np.asarray(data.S).reshape(6, -1)
    slide, axis = s[:3, 0], s[3:, 0]
    if kind == "JointModelUniversal":
        return {"type": "universal", "axes": [axis.tolist(), s[3:, 1].tolist()]}
    if kind in PRISMATIC:
        return {"type": "prismatic", "axis": slide.tolist()}
    if kind in HELICAL:
        return {"type": "helical", "axis": axis.tolist(), "pitch": float(slide @ axis)}
    return {"type": "continuous" if kind in CONTINUOUS else "revolute", "axis": axis.tolist()}


def model_of(mechanism: Native) -> Any:
    """Converts a mechanism without loops and rotors to a ``pinocchio.Model``, with limits, armature and friction of its joints."""
    import numpy as np
    import pinocchio

    tree = json.loads(mechanism.tree())
    if mechanism.loops:
        raise Error(f"{mechanism.name} has loops: a pinocchio.Model is a tree")
    if any(body["rotor"] for body in tree["bodies"]):
        raise Error(f'{mechanism.name} has rotors: a pinocchio.Model cannot hold them; load it with rotors="none"')
    model = pinocchio.Model()
    model.name = mechanism.name
    model.gravity.linear = np.array(tree["gravity"])
    numbers: list[int] = []
    for body in tree["bodies"]:
        parent = 0 if body["parent"] is None else numbers[body["parent"]]
        placement = pinocchio.SE3(np.array(body["rotation"]), np.array(body["translation"]))
        if body["follows"]:
            raise Error(f"{mechanism.name}: joint {body['joint']} follows another joint, which the Pinocchio model cannot represent")
        # A universal joint becomes two joints with a massless body between them.
        name = body["joint"] if not model.existJointName(body["joint"]) else f"{body['joint']} {body['name']}"
        number = model.addJoint(parent, _pinocchio_joint(pinocchio, body), placement, name)
        model.appendBodyToJoint(number, _pinocchio_inertia(pinocchio, body["parameters"]), pinocchio.SE3.Identity())
        frame = model.addJointFrame(number, -1)
        model.addBodyFrame(body["name"], number, pinocchio.SE3.Identity(), frame)
        numbers.append(number)
        joint = model.joints[number]
        if joint.nv == 1:
            lower, upper, velocity, effort = body["limits"]
            for limits, at, value in (
                (model.lowerPositionLimit, joint.idx_q, lower),
                (model.upperPositionLimit, joint.idx_q, upper),
                (model.velocityLimit, joint.idx_v, velocity),
                (model.effortLimit, joint.idx_v, effort),
            ):
                if value is not None:
                    limits[at] = value
            model.damping[joint.idx_v], model.friction[joint.idx_v] = body["friction"]
    model.armature[:] = tree["armature"]
    return model


def _pinocchio_inertia(pinocchio: Any, parameters: list[float]) -> Any:
    import numpy as np

    if parameters[0]:
        return pinocchio.Inertia.FromDynamicParameters(np.array(parameters)[FROM_OURS])
    xx, xy, xz, yy, yz, zz = parameters[4:]
    return pinocchio.Inertia(0.0, np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


def _pinocchio_joint(pinocchio: Any, body: Mapping[str, Any]) -> Any:
    import numpy as np

    kind, modes = body["type"], np.array(body["modes"])
    angular, linear = modes[:, :3], modes[:, 3:]
    if kind == "floating":
        return pinocchio.JointModelFreeFlyer()
    if kind == "spherical":
        return pinocchio.JointModelSpherical()
    if kind == "revolute":
        return pinocchio.JointModelRevoluteUnaligned(angular[0])
    if kind == "prismatic":
        return pinocchio.JointModelPrismaticUnaligned(linear[0])
    if kind == "helical":
        return pinocchio.JointModelHelicalUnaligned(angular[0], float(linear[0] @ angular[0]))
    if kind == "planar":
        if np.array_equal(linear[:2], np.eye(3)[:2]) and np.array_equal(angular[2], [0, 0, 1]):
            return pinocchio.JointModelPlanar()
        raise Error(f"joint {body['joint']}: Pinocchio's planar joints have the normal z")
    raise Error(f"joint {body['joint']}: a pinocchio.Model has no {kind} joints")
