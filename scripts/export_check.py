"""Compares inertias written by `inertial export` with those that dynamics libraries read from the URDF.

export_check.py ROBOT.urdf PINOCCHIO.py DRAKE.py PART.xml PART.sdf
"""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET

try:
    import numpy as np
    import pinocchio as pin
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)


def module(path: str):
    """Loads a Python file as a module."""
    spec = importlib.util.spec_from_file_location("exported", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def main() -> int:
    """Returns 0 if everything agrees."""
    robot, for_pinocchio, for_drake, mujoco_part, sdf_part = sys.argv[1:]
    expected = pin.buildModelFromUrdf(robot)
    changed = pin.buildModelFromUrdf(robot)
    for joint in range(1, changed.njoints):
        changed.inertias[joint] = pin.Inertia.Random()
    module(for_pinocchio).set_inertias(changed)
    random = np.random.default_rng(1)
    for _ in range(5):
        q = pin.randomConfiguration(expected, -np.ones(expected.nq), np.ones(expected.nq))
        v, a = random.standard_normal((2, expected.nv))
        forces = [pin.rnea(model, model.createData(), q, v, a) for model in (expected, changed)]
        assert np.allclose(*forces, rtol=1e-12, atol=1e-12), forces
    with open(for_drake, encoding="utf-8") as file:
        compile(file.read(), for_drake, "exec")
    links = {link.get("name"): link.find("inertial") for link in ET.parse(robot).iter("link")}
    for path, mass in ((mujoco_part, lambda e: e.get("mass")), (sdf_part, lambda e: e.findtext("mass"))):
        with open(path, encoding="utf-8") as file:
            parts = ET.fromstring(f"<parts>{file.read()}</parts>").iter("inertial")
        masses = [float(mass(part)) for part in parts]
        assert masses == [float(e.find("mass").get("value")) for e in links.values() if e is not None], masses
    try:
        import mujoco
    except ImportError:
        pass
    else:
        with open(mujoco_part, encoding="utf-8") as file:
            parts = [line for line in file.read().splitlines() if line.startswith("<inertial")]
        bodies = "".join(f"<body>{part}<joint/></body>" for part in parts)
        model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
        assert np.allclose(model.body_mass[1:], masses)
    print("all agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
