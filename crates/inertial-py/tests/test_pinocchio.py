"""Compares regressors and models with Pinocchio."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import inertial
from inertial.pinocchio import reorder

pinocchio = pytest.importorskip("pinocchio")

#: Robots of the package example-robot-data, and whether their base is floating.
ROBOTS = {
    "ur_description/urdf/ur5_robot.urdf": False,
    "ur_description/urdf/ur10_robot.urdf": False,
    "panda_description/urdf/panda.urdf": False,
    "kinova_description/robots/kinova.urdf": False,
    "double_pendulum_description/urdf/double_pendulum.urdf": False,
    "z1_description/urdf/z1.urdf": False,
    "solo_description/robots/solo12.urdf": True,
    "anymal_b_simple_description/robots/anymal.urdf": True,
    "hyq_description/robots/hyq_no_sensors.urdf": True,
    "talos_data/robots/talos_reduced.urdf": True,
}


def paths(name):
    folders = pathlib.Path(pinocchio.__file__).parents
    found = [f / "share/example-robot-data/robots" / name for f in folders]
    there = [p for p in found if p.exists()]
    if not there:
        pytest.skip(f"example-robot-data has no {name}")
    return there


def load(name, floating):
    root = [pinocchio.JointModelFreeFlyer()] if floating else []
    return pinocchio.buildModelFromUrdf(str(paths(name)[0]), *root)


@pytest.mark.parametrize("name", ROBOTS)
def test_regressors_agree(name):
    model = load(name, ROBOTS[name])
    robot = inertial.Mechanism.from_pinocchio(model)
    assert (robot.nv, len(robot.parameters)) == (model.nv, 10 * (model.njoints - 1))
    data = model.createData()
    rng = np.random.default_rng(1)
    bound = np.ones(model.nq)
    theirs = [pinocchio.randomConfiguration(model, -bound, bound) for _ in range(5)]
    q = np.array([angles(model, x) for x in theirs])
    v, a = rng.normal(size=(2, 5, model.nv))
    found = robot.regressors(q, v, a)
    for k in range(5):
        expected = pinocchio.computeJointTorqueRegressor(model, data, theirs[k], v[k], a[k])
        # Rounding errors of sums of about ten products, relative to the largest entry.
        assert np.allclose(reorder(found[k]), expected, rtol=0, atol=1e-11 * max(1, np.abs(expected).max()))


def angles(model, q):
    """Converts a configuration of Pinocchio: cosine and sine become an angle."""
    out = []
    for k in range(1, model.njoints):
        joint = model.joints[k]
        part = q[joint.idx_q : joint.idx_q + joint.nq]
        if (joint.nq, joint.nv) == (2, 1) or joint.shortname() == "JointModelPlanar":
            part = [*part[:-2], np.arctan2(part[-1], part[-2])]
        out.extend(part)
    return np.array(out)


@pytest.mark.parametrize("name", ["puma560", "arm7", "scara"])
def test_models_out_and_in(name):
    robot = inertial.Mechanism.builtin(name, rotors="none")
    model = robot.to_pinocchio()
    again = inertial.Mechanism.from_pinocchio(model)
    rng = np.random.default_rng(2)
    q, v, a = rng.normal(size=(3, 4, robot.nv))
    assert np.allclose(again.regressors(q, v, a), robot.regressors(q, v, a), atol=1e-12)
    assert np.allclose(again.parameters, robot.parameters, atol=1e-12)
    data = model.createData()
    for k in range(4):
        expected = pinocchio.rnea(model, data, q[k], v[k], a[k])
        assert np.allclose(again.rnea(q, v, a)[k], expected, atol=1e-10)


def test_limits_and_friction_go_out_and_in():
    model = load("ur_description/urdf/ur5_robot.urdf", False)
    model.damping[:], model.friction[:] = np.arange(6) + 1.0, np.arange(6) + 7.0
    model.armature[:] = 0.1
    again = inertial.Mechanism.from_pinocchio(model).to_pinocchio()
    names = ("lowerPositionLimit", "upperPositionLimit", "velocityLimit", "effortLimit", "armature", "damping", "friction")
    for name in names:
        assert np.array_equal(getattr(again, name), getattr(model, name)), name
    urdf = next(p for p in paths("ur_description/urdf/ur5_robot.urdf"))
    assert np.array_equal(inertial.Mechanism.from_urdf(urdf).to_pinocchio().effortLimit, model.effortLimit)


#: All joint types of Pinocchio, and whether they are supported.
JOINTS = {
    "RX": True, "RY": True, "RZ": True, "RevoluteUnaligned": True,
    "RUBX": True, "RUBY": True, "RUBZ": True, "RevoluteUnboundedUnaligned": True,
    "PX": True, "PY": True, "PZ": True, "PrismaticUnaligned": True,
    "HX": True, "HY": True, "HZ": True, "HelicalUnaligned": True,
    "Universal": True, "Planar": True, "Spherical": True, "FreeFlyer": True,
    "SphericalZYX": False, "Translation": False, "Ellipsoid": False, "Composite": False, "Mimic": False,
}  # fmt: skip


def joint_of(name):
    axis, other = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    arguments = {
        "RevoluteUnaligned": [axis], "PrismaticUnaligned": [axis], "HelicalUnaligned": [axis, 0.3],
        "HX": [0.3], "HY": [0.3], "HZ": [0.3], "Universal": [axis, other],
    }  # fmt: skip
    if name == "RevoluteUnboundedUnaligned":
        # Only a URDF can define this joint with an arbitrary axis.
        wheel = """<robot name="wheel"><link name="hub"/><link name="rim"/><joint name="spin" type="continuous">
            <parent link="hub"/><child link="rim"/><axis xyz="0.6 0 0.8"/></joint></robot>"""
        return pinocchio.buildModelFromXML(wheel).joints[1]
    if name == "Composite":
        return pinocchio.JointModelComposite(pinocchio.JointModelRX())
    return getattr(pinocchio, f"JointModel{name}")(*arguments.get(name, []))


def test_every_joint_is_known():
    there = {name.removeprefix("JointModel") for name in dir(pinocchio) if name.startswith("JointModel")} - {""}
    assert there <= JOINTS.keys()


@pytest.mark.parametrize("name", JOINTS)
def test_joints_move_alike_or_are_refused(name):
    if not hasattr(pinocchio, f"JointModel{name}") or name == "Mimic":
        pytest.skip(f"no JointModel{name} of its own")
    model = pinocchio.Model()
    first = model.addJoint(0, pinocchio.JointModelRY(), pinocchio.SE3.Random(), "first")
    second = model.addJoint(first, joint_of(name), pinocchio.SE3.Random(), "second")
    for number in (first, second):
        model.appendBodyToJoint(number, pinocchio.Inertia.Random(), pinocchio.SE3.Identity())
    if not JOINTS[name]:
        with pytest.raises(inertial.Error, match=f"joint second of the Pinocchio model: JointModel{name} is not supported"):
            inertial.Mechanism.from_pinocchio(model)
        return
    robot = inertial.Mechanism.from_pinocchio(model)
    rng = np.random.default_rng(3)
    data, bound = model.createData(), np.ones(model.nq)
    ways = [robot]
    # Round trip. `to_pinocchio` writes a universal joint as two hinges with a massless body, which cannot be converted back.
    if name != "Universal":
        ways.append(inertial.Mechanism.from_pinocchio(robot.to_pinocchio()))
    for _ in range(3):
        theirs = pinocchio.randomConfiguration(model, -bound, bound)
        v, a = rng.normal(size=(2, model.nv))
        expected = pinocchio.rnea(model, data, theirs, v, a)
        for way in ways:
            # Rounding errors of sums of some hundred products.
            assert np.allclose(way.rnea(angles(model, theirs), v, a), expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_a_universal_joint_goes_out_as_two():
    model = pinocchio.Model()
    number = model.addJoint(0, joint_of("Universal"), pinocchio.SE3.Identity(), "gimbal")
    model.appendBodyToJoint(number, pinocchio.Inertia.Random(), pinocchio.SE3.Identity())
    out = inertial.Mechanism.from_pinocchio(model).to_pinocchio()
    q, v, a = np.random.default_rng(4).normal(size=(3, 2))
    expected = pinocchio.rnea(model, model.createData(), q, v, a)
    assert np.allclose(pinocchio.rnea(out, out.createData(), q, v, a), expected, atol=1e-12)


def test_models_without_pinocchio_counterpart_are_refused():
    with pytest.raises(inertial.Error, match="has loops"):
        inertial.Mechanism.builtin("four-bar").to_pinocchio()
    with pytest.raises(inertial.Error, match='quadruped has rotors: .* rotors="none"'):
        inertial.Mechanism.builtin("quadruped").to_pinocchio()
    assert inertial.Mechanism.builtin("quadruped", rotors="none").to_pinocchio().nv == 18
    with pytest.raises(inertial.Error, match="a int: expected a pinocchio.Model"):
        inertial.Mechanism.from_pinocchio(3)
    text = """schema = "inertial/mechanism/1"
        [[bodies]]
        name = "puck"
        parent = "ground"
        joint = {{ name = "table", type = "{}", axis = [1, 0, 0] }}
        inertial = {{ mass = 1, com = [0, 0, 0], inertia = {{ ixx = 1, ixy = 0, ixz = 0, iyy = 1, iyz = 0, izz = 1 }} }}"""
    with pytest.raises(inertial.Error, match="joint table: Pinocchio's planar joints have the normal z"):
        inertial.Mechanism.from_string(text.format("planar")).to_pinocchio()
    with pytest.raises(inertial.Error, match="joint table: a pinocchio.Model has no cylindrical joints"):
        inertial.Mechanism.from_string(text.format("cylindrical")).to_pinocchio()


def test_bodies_from_its_regressor():
    model = load("ur_description/urdf/ur5_robot.urdf", False)
    data, rng = model.createData(), np.random.default_rng(3)
    truth = np.concatenate([inertia.toDynamicParameters() for inertia in model.inertias[1:]])
    rows, forces = [], []
    for _ in range(300):
        q = pinocchio.randomConfiguration(model, np.full(model.nq, -3.0), np.full(model.nq, 3.0))
        v, a = rng.normal(size=model.nv), rng.normal(size=model.nv)
        rows.append(pinocchio.computeJointTorqueRegressor(model, data, q, v, a).copy())
        forces.append(pinocchio.rnea(model, data, q, v, a) + 0.01 * rng.normal(size=model.nv))
    robot = inertial.Mechanism.from_pinocchio(model)
    for prior in ({"model": robot}, {"bodies": model.njoints - 1}):
        found = inertial.identify_regressor(np.array(rows), np.array(forces), column_order="pinocchio", **prior)
        assert found.rank == inertial.analyze(robot).rank
        assert all(body.consistent for body in found.bodies)
        # The noise is 0.01 N m.
        assert all(abs(r.rms - 0.01) < 0.002 for r in found.fit)
        predicted = np.array(rows)[:, :, :] @ np.array(found["values"])[_pinocchio_columns(model.njoints - 1)]
        assert np.abs(predicted - np.array(rows) @ truth).max() < 0.02
    with pytest.raises(inertial.Error, match="60"):
        inertial.identify_regressor(np.zeros((10, 59)), np.zeros(10), bodies=6)


def _pinocchio_columns(bodies):
    own = np.array([0, 1, 2, 3, 4, 5, 7, 6, 8, 9])
    return np.concatenate([10 * k + own for k in range(bodies)])
