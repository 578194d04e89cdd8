"""Regressors and models against Pinocchio."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import inertial
from inertial.pinocchio import reorder

pinocchio = pytest.importorskip("pinocchio")

#: Robots of the package example-robot-data, and whether their base is free.
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


def load(name, floating):
    folders = pathlib.Path(pinocchio.__file__).parents
    found = [f / "share/example-robot-data/robots" / name for f in folders]
    paths = [p for p in found if p.exists()]
    if not paths:
        pytest.skip(f"example-robot-data has no {name}")
    root = [pinocchio.JointModelFreeFlyer()] if floating else []
    return pinocchio.buildModelFromUrdf(str(paths[0]), *root)


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
        # Both round sums of some ten products of numbers up to the largest entry.
        assert np.allclose(reorder(found[k]), expected, rtol=0, atol=1e-11 * max(1, np.abs(expected).max()))


def angles(model, q):
    """The same configuration: where Pinocchio has cosine and sine, an angle."""
    out = []
    for k in range(1, model.njoints):
        joint = model.joints[k]
        part = q[joint.idx_q : joint.idx_q + joint.nq]
        unbounded = joint.nq == 2 and joint.nv == 1
        out.extend([np.arctan2(part[1], part[0])] if unbounded else part)
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


def test_what_pinocchio_cannot_have():
    with pytest.raises(inertial.Error, match="has loops"):
        inertial.Mechanism.builtin("four-bar").to_pinocchio()
