"""Tests of printed results and of their conversion to data frames."""

from __future__ import annotations

import numpy as np
import pytest

import inertial


@pytest.fixture(scope="module")
def robot():
    return inertial.Mechanism.builtin("planar-2r")


@pytest.fixture(scope="module")
def motion(robot):
    return inertial.design(robot, duration=5, starts=1, iterations=5)


@pytest.fixture(scope="module")
def log(robot, motion):
    return inertial.simulate(robot, motion, noise={"tau": 0.02})


@pytest.fixture(scope="module")
def found(robot, log):
    return inertial.identify(robot, log, friction="coulomb+viscous", offset=True, holdout=0.3)


def cells(text, name):
    """Returns the cells of the row that starts with a name."""
    return next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()


def test_an_identification_prints_all_results(found):
    text = str(found)
    body = found.bodies[1]
    assert cells(text, "link2")[:4] == ["link2", f"{body.mass:.5g}", "±", f"{body.mass_std_error:.2g}"]
    assert cells(text, "link2")[-1] == "yes"
    joint = found.joints[0]
    terms = [f"{joint[key]:.5g} ± {joint.std_errors[key]:.2g}" for key in ("viscous", "coulomb", "offset")]
    assert cells(text, "joint1") == ["joint1", *" ".join(terms).split()]
    parameter = found.base_parameters[0]
    assert cells(text, parameter.name)[:3] == [parameter.name, f"{parameter.value:.5g}", f"{parameter.std_error:.2g}"]
    assert f"all joints: {100 * found.fit_relative_rms:.2f} %" in text
    assert f"all joints: {100 * found.validation_relative_rms:.2f} %" in text
    assert "mass (kg)" in text and "centre of mass (m)" in text
    assert text.rstrip().splitlines()[-1].startswith("note: table 1: ")
    # Columns of numbers are right-aligned.
    rows = [line for line in text.splitlines() if line.startswith(("base parameter", "link1.h", "link2.h", "link1.I"))]
    assert len({len(row) for row in rows}) == 1
    page = found._repr_html_()
    assert page.count("<table>") == 5 and "<td>link2</td>" in page and "<li>table 1: " in page


def test_absent_values_are_not_printed(robot, log):
    text = str(inertial.identify(robot, log))
    assert "viscous" not in text and "validation" not in text and "essential" not in text
    essential = inertial.identify(robot, log, essential=True)
    covered = essential.essential["dropped"]
    # Both are zero in the model. Noise decides whether a zero value is dropped, so either may remain.
    assert covered and set(covered) <= {"link1.hy", "link2.hy"}
    assert f"essential: {6 - len(covered)} of 6 unknowns; below the noise: {', '.join(covered)}" in str(essential)


def test_parts_print_as_lines(found, robot, log, motion):
    assert str(found.bodies[0]).startswith(f"link1: {found.bodies[0].mass:.5g} ± ")
    assert "ixx" in str(found.bodies[0]) and "<td>" in found.bodies[0]._repr_html_()
    assert str(found.joints[0]).startswith(f"joint1: viscous {found.joints[0].viscous:.5g} ± ")
    assert "joint1: viscous" in found.joints[0]._repr_html_()
    assert str(inertial.identify(robot, log).joints[0]) == "joint1: nothing was estimated"
    assert str(found.base_parameters[0]).startswith(f"link1.hx = {found.base_parameters[0].value:.5g} ± ")
    assert str(found.fit[0]).endswith("% of the measured forces")
    weak = [p for p in motion.base_parameters if p.weak]
    assert weak and "weak: " in str(weak[0])
    assert str(inertial.check(robot).bodies[0]) == "link1, 2 kg: consistent"


def test_an_analysis_prints_marks_and_combinations(robot):
    analysis = inertial.analyze(robot)
    text = str(analysis)
    assert cells(text, "link1") == ["link1", *"✕●★✕✕✕✕✕✕●"]
    assert "\nlink1.hx + 0.5 link2.m\n" in text
    assert str(analysis.base_parameters[0]) == "link1.hx + 0.5 link2.m"
    assert str(analysis.bodies[0]).startswith("link1 on joint1 (revolute): identifiable alone hy, in combinations hx Izz, not m ")
    pandas = pytest.importorskip("pandas")
    frame = analysis.to_pandas()
    assert list(frame.columns) == ["body", "parameter", "status", "base", "combination"]
    assert len(frame) == analysis.parameters and frame.base.sum() == analysis.rank and not frame.isna().any().any()
    assert frame.combination[1] == "link1.hx + 0.5 link2.m" and list(frame.parameter[:3]) == ["m", "hx", "hy"]
    assert isinstance(analysis.to_pandas("bodies"), pandas.DataFrame)
    with pytest.raises(AttributeError, match="AnalyzedBody has no mass"):
        analysis.bodies[0].mass  # noqa: B018


def test_a_simulation_prints_its_columns(log):
    row = cells(str(log), "tau.joint1")
    column = log.columns["tau.joint1"]
    assert row[1:] == [f"{x:.4g}" for x in (column.min(), column.max(), column.std())]
    assert "0 s to 5 s" in repr(log) and "<td>tau.joint1</td>" in log._repr_html_()
    assert np.array_equal(log.to_pandas()["t"], log.columns["t"])


def test_a_fleet_prints_its_robots(robot, log):
    summary = inertial.Summary(robot, friction="viscous", coupling="none").add(log)
    fleet = inertial.identify_fleet([summary] * 25)
    text = str(fleet)
    assert cells(text, "19")[1:] == [f"{100 * fleet.robots[19].relative_rms:.2f}", "%"]
    assert "and 5 more\n" in text and "link2.hx" in text and "and 15 more in notes" in text
    assert cells(str(fleet.robots[0]), "joint1")[1] == f"{fleet.robots[0].joints[0].viscous:.5g}"
    assert "<td>19</td>" in fleet._repr_html_()


def test_warnings_of_a_regressor_are_shown_once():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 10))
    rows[:, 9] = rows[:, 8]
    forces = rows @ [2, 0.1, 0.2, 0.3, 1, 0, 0, 1, 0, 1] + 0.01 * rng.normal(size=300)
    found = inertial.identify_regressor(rows, forces, bodies=1)
    assert len(found.warnings) >= 1
    assert all(str(found).count(warning) == 1 for warning in found.warnings)
