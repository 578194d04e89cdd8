"""Pinocchio's models and parameter order, in and out.

Pinocchio orders a body's parameters ``m mx my mz Ixx Ixy Iyy Ixz Iyz Izz``; here they are
``m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz``. Positions and velocities have the same order (a floating base: ``x y z qx qy qz
qw``, linear velocity first), except that Pinocchio describes unbounded revolute joints by cosine and sine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._inertial import Error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._inertial import Floats
    from .mechanism import Mechanism

#: Where Pinocchio's ten parameters stand in ours: ``ours[..., FROM_OURS]`` is Pinocchio's order, and the other way round.
FROM_OURS = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


def reorder(parameters: ArrayLike) -> Floats:
    """Parameters (vector) or a regressor (columns) of whole bodies from one order to the other: its own inverse."""
    import numpy as np

    array = np.asarray(parameters, dtype=np.float64)
    if array.shape[-1] % 10:
        raise Error(f"{array.shape[-1]} parameters: expected ten for each body (rotors=\"none\" or \"general\")")
    return array.reshape(*array.shape[:-1], -1, 10)[..., FROM_OURS].reshape(array.shape)


def mechanism_of(model: Any, options: Mapping[str, Any]) -> Mechanism:
    """A ``pinocchio.Model`` as a mechanism; each joint's body is named after its first body frame."""
    import numpy as np

    from ._arguments import flags
    from .mechanism import Mechanism

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
            joint["dynamics"] = {"armature": float(model.armature[v])}
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
    return Mechanism(f"the Pinocchio model {model.name}", json.dumps(text), flags(options))


def _parent(frame: Any) -> int:
    return int(frame.parentJoint if hasattr(frame, "parentJoint") else frame.parent)


def _joint(model: Any, k: int) -> dict[str, Any]:
    """Type and axis of a joint, from its motion subspace (linear part first)."""
    import numpy as np
    import pinocchio

    joint = model.joints[k]
    kind = joint.shortname()
    if "Mimic" in kind or "Composite" in kind:
        raise Error(f"joint {model.names[k]} of the Pinocchio model: {kind} is not supported")
    data = joint.createData()
    joint.calc(data, pinocchio.neutral(model))
    s = np.asarray(data.S).reshape(6, -1)
    linear, angular = s[:3], s[3:]
    if s.shape[1] == 6:
        return {"type": "floating"}
    if s.shape[1] == 3 and not linear.any():
        return {"type": "spherical"}
    if s.shape[1] == 3:
        return {"type": "planar", "axis": angular[:, 2].tolist()}
    if s.shape[1] == 1:
        axis, slide = angular[:, 0], linear[:, 0]
        if not slide.any():
            unbounded = joint.nq == 2
            return {"type": "continuous" if unbounded else "revolute", "axis": axis.tolist()}
        if not axis.any():
            return {"type": "prismatic", "axis": slide.tolist()}
        return {"type": "helical", "axis": axis.tolist(), "pitch": float(slide @ axis)}
    raise Error(f"joint {model.names[k]} of the Pinocchio model: {kind} is not supported")


def model_of(mechanism: Mechanism) -> Any:
    """A mechanism without loops and rotors as a ``pinocchio.Model``."""
    import numpy as np
    import pinocchio

    tree = json.loads(mechanism._native.tree())
    if mechanism.loops:
        raise Error(f"{mechanism.name} has loops: a pinocchio.Model is a tree")
    model = pinocchio.Model()
    model.name = mechanism.name
    model.gravity.linear = np.array(tree["gravity"])
    numbers: list[int] = []
    for body in tree["bodies"]:
        parent = 0 if body["parent"] is None else numbers[body["parent"]]
        placement = pinocchio.SE3(np.array(body["rotation"]), np.array(body["translation"]))
        if body["follows"]:
            raise Error(f"{mechanism.name}: joint {body['joint']} follows another: this has no place in the Pinocchio model")
        number = model.addJoint(parent, _pinocchio_joint(pinocchio, body), placement, body["joint"])
        m, hx, hy, hz, *rest = body["parameters"]
        inertia = pinocchio.Inertia.FromDynamicParameters(np.array([m, hx, hy, hz, *rest])[FROM_OURS])
        model.appendBodyToJoint(number, inertia, pinocchio.SE3.Identity())
        frame = model.addJointFrame(number, -1)
        model.addBodyFrame(body["name"], number, pinocchio.SE3.Identity(), frame)
        numbers.append(number)
    model.armature[:] = tree["armature"]
    return model


def _pinocchio_joint(pinocchio: Any, body: Mapping[str, Any]) -> Any:
    import numpy as np

    modes = [np.array(mode) for mode in body["modes"]]
    angular, linear = [m[:3] for m in modes], [m[3:] for m in modes]
    if len(modes) == 1 and not linear[0].any():
        return pinocchio.JointModelRevoluteUnaligned(angular[0])
    if len(modes) == 1 and not angular[0].any():
        return pinocchio.JointModelPrismaticUnaligned(linear[0])
    if len(modes) == 1:
        return pinocchio.JointModelHelicalUnaligned(angular[0], float(linear[0] @ angular[0]))
    if len(modes) == 6:
        return pinocchio.JointModelFreeFlyer()
    if len(modes) == 3 and not np.any(linear):
        return pinocchio.JointModelSpherical()
    raise Error(f"joint {body['joint']}: its type has no counterpart in Pinocchio that this program knows")
