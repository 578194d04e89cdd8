"""Tests of results as models (prediction, validation, saving) and of the scikit-learn estimator `Identifier`."""

from __future__ import annotations

import pickle
import sys
import types

import numpy as np
import pytest
from conftest import REPOSITORY, motion, stacked

import inertial

ROBOT = REPOSITORY / "testdata/models/planar-2r.urdf"


@pytest.fixture(scope="module")
def urdf() -> inertial.Mechanism:
    return inertial.Mechanism.from_urdf(ROBOT)


def rubbed(robot: inertial.Mechanism, count: int, seed: int) -> dict[str, np.ndarray]:
    """Simulates a log with friction and offsets; a URDF cannot store the offsets."""
    log = motion(robot, count, seed=seed)
    for k, joint in enumerate(robot.coordinate_names):
        log[f"tau.{joint}"] = log[f"tau.{joint}"] + 0.3 * np.sign(log[f"dq.{joint}"]) + 0.5 * (-1) ** k
    return log


def test_a_result_predicts_its_data(urdf):
    log = rubbed(urdf, 4000, 0)
    found = inertial.identify(urdf, log, friction="coulomb+viscous", offset=True)
    q, dq, ddq, tau = (stacked(log, urdf, key) for key in ("q", "dq", "ddq", "tau"))
    left = found.predict(q, dq, ddq) - tau
    # Torque noise of 0.01 N m, and errors of the filter at the jumps of friction.
    assert np.sqrt(np.mean(left**2)) < 0.05
    assert np.array_equal(found.predict(q[0], dq[0], ddq[0]), found.predict(q[:1], dq[:1], ddq[:1])[0])
    arm = inertial.Mechanism.builtin("arm7")
    log = motion(arm, 3000)
    found = inertial.identify(arm, log, friction="viscous")
    q, dq, ddq, tau = (stacked(log, arm, key) for key in ("q", "dq", "ddq", "tau"))
    # Rotor inertias that belong to base parameters are counted once; the noise is 0.01 N m.
    assert np.sqrt(np.mean((found.predict(q, dq, ddq) - tau) ** 2, axis=0)).max() < 0.012


def test_a_prediction_by_hand(urdf):
    log = rubbed(urdf, 4000, 0)
    found = inertial.identify(urdf, log, friction="coulomb+viscous", offset=True)
    q, dq, ddq = (stacked(log, urdf, key) for key in ("q", "dq", "ddq"))
    # Explicit computation from base regressor, friction and offset.
    base = [urdf.parameter_names.index(p.name) for p in found.base_parameters]
    hand = urdf.regressors(q, dq, ddq)[:, :, base] @ np.array([p.value for p in found.base_parameters])
    for k, joint in enumerate(found.joints):
        hand[:, k] += joint.viscous * dq[:, k] + joint.coulomb * np.sign(dq[:, k]) + joint.offset
    assert np.allclose(found.predict(q, dq, ddq), hand, rtol=0, atol=1e-12)


def test_validation_of_a_result_is_that_of_its_fit(urdf):
    log, other = rubbed(urdf, 4000, 0), rubbed(urdf, 3000, 1)
    found = inertial.identify(urdf, log, friction="coulomb+viscous", offset=True)
    again = inertial.validate(found, log)
    assert again.relative_rms == pytest.approx(found.fit_relative_rms, rel=1e-9)
    assert again.passed is None and inertial.validate(found, log, threshold=1e-9).passed is False
    expected = inertial.identify(urdf, log, validate=other, friction="coulomb+viscous", offset=True)
    assert found.residuals(other).relative_rms == pytest.approx(expected.validation_relative_rms, rel=1e-9)


def test_results_are_written_saved_and_taken_as_models(tmp_path, urdf):
    log = rubbed(urdf, 2000, 0)
    found = inertial.identify(urdf, log, friction="coulomb+viscous", offset=True, out=tmp_path / "out.urdf")
    assert found.to_urdf() == (tmp_path / "out.urdf").read_text(encoding="utf-8")
    assert inertial.check(found).bodies[0].mass == pytest.approx(found.bodies["link1"].mass, rel=1e-9)
    assert inertial.analyze(found.model).rank == 6
    found.save(tmp_path / "found")
    again = inertial.load(tmp_path / "found")
    assert again.to_dict() == found.to_dict()
    assert np.array_equal(again.covariance, found.covariance) and again.names == found.names
    q = np.zeros(2)
    assert np.array_equal(again.predict(q, q, q), found.predict(q, q, q))
    assert again.residuals(log).relative_rms == found.residuals(log).relative_rms
    (tmp_path / "evil").write_bytes(b"inertial-result-1\n" + pickle.dumps(print))
    with pytest.raises(inertial.Error, match="it is not a saved result"):
        inertial.load(tmp_path / "evil")


def test_values_as_arrays(arm, log):
    found = inertial.identify(arm, log, friction="viscous", covariance=True, estimator="wls")
    n, rotors = found.rank, sum("rotor_inertia" in joint.std_errors for joint in found.joints)
    assert rotors == 5 and len(found.names) == len(found.theta) == n + 7 + rotors and found.names[n] == f"{found.joints[0].name}.viscous"
    assert found.covariance.shape == (len(found.names),) * 2 and np.array_equal(found.covariance, found.covariance.T)
    # The covariance agrees with the standard errors for every estimator.
    for result in (found, inertial.identify(arm, log, friction="viscous", covariance=True)):
        errors = dict(zip(result.names, result.std_errors, strict=True))
        told = {p.name: p.std_error for p in result.base_parameters}
        told |= {f"{joint.name}.{term}": x for joint in result.joints for term, x in joint.std_errors.items()}
        assert told.keys() == errors.keys() and all(told[name] == pytest.approx(errors[name], rel=1e-12) for name in told)
        assert np.array_equal(np.sqrt(np.diag(result.covariance)), result.std_errors)
        assert np.array_equal(result["covariance"], result.covariance[:n, :n])
        assert np.array_equal(result.theta[:n], [p.value for p in result.base_parameters])
    assert found.bodies["link2"].name == "link2" == found.bodies[1].name
    with pytest.raises(KeyError, match="there are link1"):
        found.bodies["hand"]
    assert found.model["name"] == "arm7" and found.model.name == "arm7"
    assert "<table>" in found.model._repr_html_() and "joint1" in arm._repr_html_()


def test_scikit_learn_takes_the_identifier(urdf):
    selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.base import clone

    log = motion(urdf, 1200)
    q, dq, ddq, tau = (stacked(log, urdf, key) for key in ("q", "dq", "ddq", "tau"))
    features = np.hstack([q, dq, ddq])
    identifier = inertial.Identifier(urdf, friction="viscous")
    scores = selection.cross_val_score(identifier, features, tau, cv=3)
    # The noise is 0.01 N m, the torques are several N m.
    assert scores.min() > 0.999
    assert clone(identifier).get_params()["friction"] == "viscous"
    fitted = identifier.fit(features, tau)
    assert fitted.predict(features).shape == tau.shape and fitted.result_.rank == 6
    with pytest.raises(inertial.OptionError, match="friction='none at all'"):
        inertial.Identifier(urdf, friction="none at all").fit(features, tau)


def test_a_verdict_is_printed_with_its_reason(urdf):
    log = motion(urdf, 2000)
    assert "verdict: good" in str(inertial.identify(urdf, log))
    first = f"tau.{urdf.coordinate_names[0]}"
    found = inertial.identify(urdf, {**log, first: -log[first]})
    for text in (str(found), found._repr_html_(), repr(found)):
        assert f"verdict: {found.verdict}" in text and found.verdict != "good"
    assert found.reasons[0]["message"] in str(found)


def test_pictures(urdf):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    log = motion(urdf, 600)
    found = inertial.identify(urdf, log, friction="viscous")
    upper, lower = found.plot()
    assert len(upper.patches) == 2 and "%" in lower.get_ylabel()
    assert inertial.validate(urdf, log).plot().patches


def test_a_prepared_log_has_the_equations_of_the_fit():
    robot = inertial.Mechanism.builtin("puma560", rotors="none")
    log = motion(robot, 4000)
    prepared = inertial.prepare(robot, log)
    assert prepared.q.shape == prepared.tau.shape == (len(prepared.t), 6) and prepared.notes
    w, y = prepared.equations()
    found = inertial.identify(robot, log, estimator="ols", friction="none", offset=False)
    columns = [robot.parameter_names.index(p.name) for p in found.base_parameters]
    solution = np.linalg.lstsq(w[:, columns], y, rcond=None)[0]
    values = np.array([p.value for p in found.base_parameters])
    # Same least-squares problem, solved by another factorization.
    assert np.allclose(solution, values, rtol=0, atol=1e-7 * np.abs(values).max())
    fixed = inertial.prepare(robot, log, cutoff=8, decimate=1)
    assert fixed.cutoff == 8 and fixed.rate == pytest.approx(200)
    assert inertial.prepare(robot, log, filter="off").cutoff is None
    with pytest.raises(inertial.LogError, match="^table 1: "):
        inertial.prepare(robot, {"t": [0.0, 1.0]})


def test_xacro(tmp_path):
    (tmp_path / "part.xacro").write_text(
        '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="rod" params="name parent mass:=${m}">'
        '<link name="${name}"><inertial><mass value="${mass}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        '<joint name="j_${name}" type="continuous"><parent link="${parent}"/><child link="${name}"/></joint></xacro:macro></robot>'
    )
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(
        '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="part.xacro"/>'
        '<xacro:arg name="mass" default="2"/><xacro:property name="m" value="$(arg mass)"/><link name="base"/>'
        '<xacro:rod name="a" parent="base"/><xacro:rod name="b" parent="a" mass="${m / 2}"/></robot>'
    )
    robot = inertial.Mechanism.from_file(path, xacro_arg={"mass": "3"})
    assert robot.nv == 2 and robot.bodies == ["a", "b"]
    assert robot.options["xacro_arg"] == {"mass": "3"}
    for given in ({"mass": 3}, "mass:=3", ["mass=3"]):
        assert inertial.Mechanism.from_file(path, xacro_arg=given).options["xacro_arg"] == {"mass": "3"}
    assert inertial.Mechanism.from_urdf(path).nv == 2
    with pytest.raises(inertial.ModelError, match="not read from a file"):
        inertial.Mechanism.from_string(path.read_text())


URDF = """<?xml version="1.0" encoding="{encoding}"?>
<robot name="Kärntner Arm"><link name="base"/>
<link name="a"><inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint></robot>"""


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16"])
def test_models_in_other_encodings(tmp_path, encoding):
    path = tmp_path / "robot.urdf"
    path.write_bytes(URDF.format(encoding=encoding).encode(encoding))
    for robot in (inertial.Mechanism.from_file(path), inertial.Mechanism.from_urdf(path)):
        assert (robot.nv, list(robot.bodies)) == (1, ["a"])
        assert pickle.loads(pickle.dumps(robot)).nv == 1
    assert inertial.check(path)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_printed_tables_are_checked(tmp_path, separator):
    path = tmp_path / "table.csv"
    header = ["name", "m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"]
    rows = [header, ["good", *"2 0 0 0 1 0 0 1 0 1".split()], ["bad", *"2 0 0 0 1 0 0 1 0 4".split()]]
    path.write_text("\n".join(separator.join(row) for row in rows))
    found = inertial.check(path)
    assert not found and [body.consistent for body in found.bodies] == [True, False]
    with pytest.raises(TypeError, match="needs a model"):
        inertial.check(path, fix=True, out="x.urdf")


def test_names_of_robot_descriptions(tmp_path, monkeypatch):
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="a"/><link name="b"/>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    package, robot = types.ModuleType("robot_descriptions"), types.ModuleType("robot_descriptions.arm_description")
    package.__path__, robot.URDF_PATH = [], str(path)
    monkeypatch.setitem(sys.modules, "robot_descriptions", package)
    monkeypatch.setitem(sys.modules, "robot_descriptions.arm_description", robot)
    assert inertial.Mechanism.from_description("arm_description").nv == 1
    with pytest.raises(inertial.ModelError, match="no leg_description"):
        inertial.Mechanism.from_description("leg_description")
    del robot.URDF_PATH
    with pytest.raises(inertial.ModelError, match="neither"):
        inertial.Mechanism.from_description("arm_description")
