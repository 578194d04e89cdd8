"""Tests of projective geometric algebra and the tetrahedral-point model against matrices and inverse dynamics."""

import doctest

import inertial
import numpy as np
import pytest
from inertial import pga


def test_examples():
    assert doctest.testmod(pga).failed == 0


def test_motors_move_as_matrices():
    generator = np.random.default_rng(1)
    motor = pga.Motor.exp(pga.Line(generator.normal(size=3), generator.normal(size=3)))
    other = pga.Motor.exp(pga.Line(generator.normal(size=3), generator.normal(size=3)))
    # The left factor acts first.
    assert (motor * other).matrix() == pytest.approx(other.matrix() @ motor.matrix(), abs=1e-14)
    x = generator.normal(size=3)
    moved = motor.transform(pga.Point(x))
    assert np.array(moved.position) / moved.weight == pytest.approx((motor.matrix() @ [*x, 1])[:3], abs=1e-14)
    assert motor.reverse().matrix() == pytest.approx(np.linalg.inv(motor.matrix()), abs=1e-14)
    twist = motor.log()
    assert pga.Motor.exp(twist).matrix() == pytest.approx(motor.matrix(), abs=1e-13)


def test_incidence():
    generator = np.random.default_rng(2)
    a, b, c = (pga.Point(x) for x in generator.normal(size=(3, 3)))
    line = a.join(b)
    plane = line.join(c)
    assert [plane.incidence(p) for p in (a, b, c)] == pytest.approx([0, 0, 0], abs=1e-14)
    assert c.join(line) == plane
    # Two planes through a line intersect in this line.
    d = pga.Point(generator.normal(size=3))
    meet = plane.meet(line.join(d))
    ratio = np.array([*meet.direction, *meet.moment]) / np.array([*line.direction, *line.moment])
    assert ratio == pytest.approx(np.full(6, ratio[0]))
    assert line.wedge(a.join(c)) == pytest.approx(0, abs=1e-14)
    assert pga.Point([1, 0, 0]).velocity(pga.Line([0, 0, 2], [0, 0, 0])) == pga.Point([0, 2, 0], 0)


def test_the_tetrahedral_model_is_inverse_dynamics():
    for name in ("puma560", "cheetah-leg"):
        robot = inertial.Mechanism.builtin(name)
        q, v, a = np.random.default_rng(3).normal(size=(3, robot.nv))
        torque = robot.tetrahedral_regressor(q, v, a) @ robot.pseudo_inertia_entries()
        assert torque == pytest.approx(robot.regressor(q, v, a) @ robot.parameters, rel=1e-12, abs=1e-12)
