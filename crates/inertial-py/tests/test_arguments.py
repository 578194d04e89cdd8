"""Tests of arguments (types, names, arrays, addresses) and of the protection of user files."""

from __future__ import annotations

import inspect
import multiprocessing
import re
import subprocess
import sys
import tempfile
import textwrap
import typing

import numpy as np
import pytest
from conftest import motion, stacked, write_parquet

import inertial

FUNCTIONS = (inertial.check, inertial.analyze, inertial.design, inertial.simulate, inertial.identify, inertial.validate)


def test_signatures_show_every_option():
    for function in FUNCTIONS:
        parameters = inspect.signature(function).parameters
        assert all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    friction = inspect.signature(inertial.identify).parameters["friction"]
    assert friction.kind is inspect.Parameter.KEYWORD_ONLY
    assert "coulomb+viscous" in typing.get_args(typing.get_args(friction.annotation)[0])
    assert "cutoff" in inspect.signature(inertial.Summary).parameters


def test_wrong_names_and_types_are_type_errors(tmp_path, arm, log):
    for options, message in (
        ({"fricton": None}, "unexpected keyword argument 'fricton'; did you mean 'friction'"),
        ({"report": True}, "report=: expected a path, not bool"),
        ({"decimate": 2.5}, "decimate=: expected an integer, not float"),
        ({"covariance": "yes"}, "covariance=: expected True or False, not str"),
        ({"cutoff": True}, "cutoff=: expected a number or one of auto, off, not bool"),
        ({"joints": 3}, "joints=: expected a sequence or a text, not int"),
        ({"noise": 1}, "noise=: expected a mapping or a sequence or a text, not int"),
    ):
        with pytest.raises(TypeError, match=message):
            inertial.identify(arm, log, **options)
    with pytest.raises(inertial.OptionError, match="friction='viscose': expected one of .*; did you mean 'viscous'"):
        inertial.identify(arm, log, friction="viscose")
    with pytest.raises(TypeError, match="a model has base, gravity, rotors, lock, xacro_arg and strict"):
        inertial.Mechanism.builtin("arm7", friction="none")
    with pytest.raises(FileNotFoundError):
        inertial.Mechanism.from_file(tmp_path / "none.urdf")
    with pytest.raises(FileNotFoundError):
        inertial.identify(arm, tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match="no file matches this pattern"):
        inertial.identify(arm, tmp_path / "*.csv")


def test_lists_and_mappings_may_be_texts(tmp_path):
    """Options that are lists or mappings also take the texts of the command line."""
    from inertial._checks import checked
    from inertial.options import Arguments, Names, Settings

    assert checked("joints", "a, b", Names) == ["a", "b"]
    assert checked("joints", ["a", "b"], Names) == ["a", "b"]
    assert checked("lock", "a=0.5,b=-1e-3", Settings) == {"a": 0.5, "b": -1e-3}
    assert checked("lock", ["a=0.5", "b=1"], Settings) == {"a": 0.5, "b": 1.0}
    assert checked("lock", {"a": 1}, Settings) == {"a": 1.0}
    assert checked("xacro_arg", {"mass": 3, "left": True, "p": "x"}, Arguments) == {"mass": "3", "left": "true", "p": "x"}
    assert checked("xacro_arg", ["mass:=3", "p=a,b"], Arguments) == {"mass": "3", "p": "a,b"}
    for value in ("a", "a=x", "=1", "a=nan"):
        with pytest.raises(inertial.OptionError, match="lock=.*expected NAME=NUMBER"):
            checked("lock", value, Settings)
    with pytest.raises(inertial.OptionError, match="a is given twice"):
        checked("lock", "a=1,a=2", Settings)
    with pytest.raises(inertial.OptionError, match="expected NAME:=VALUE"):
        checked("xacro_arg", "mass", Arguments)
    # Whole calls.
    for lock in ({"joint2": 0.5}, "joint2=0.5", ["joint2=0.5"]):
        assert inertial.analyze("builtin:planar-2r", lock=lock).rank == 3
    motion = inertial.design("builtin:planar-2r", duration=3, time_limit=0.3)
    log = tmp_path / "log.csv"
    inertial.simulate("builtin:planar-2r", motion, out=log, noise="tau=0.01")
    for names in (["m", "com"], "m,com"):
        found = inertial.identify("builtin:planar-2r", log, bounds_on=names, noise_bound=0.5)
        assert found.intervals
    with pytest.raises(inertial.OptionError, match="bounds_on='mass': expected one of m, com, h, I, base"):
        inertial.identify("builtin:planar-2r", log, bounds_on="mass", noise_bound=0.5)


def test_no_option_takes_a_log_for_its_value(tmp_path, arm, log):
    """Regression test: `report=True` used the path of the log and overwrote the log."""
    path = tmp_path / "log.csv"
    path.write_text("precious")
    with pytest.raises(TypeError):
        inertial.identify(arm, path, report=True)
    assert path.read_text() == "precious"


def test_numbers_of_numpy(arm, log):
    plain = inertial.identify(arm, log, decimate=2, cutoff=9.0, offset=True, friction="viscous")
    numpys = inertial.identify(
        arm, log, decimate=np.int64(2), cutoff=np.float32(9.0), offset=np.True_, friction=np.str_("viscous")
    )
    assert plain.to_dict() == numpys.to_dict()
    assert inertial.analyze("builtin:puma560", gravity=np.array([0, 0, -9.81])).rank == 36


def test_words_of_options_are_those_of_the_types(arm):
    """Literals of the keyword arguments are equal to the possible values of the options in Rust."""
    compared = 0
    for function in FUNCTIONS:
        told = dict(reversed(inertial._inertial.options(function.__name__)))
        for name, parameter in inspect.signature(function).parameters.items():
            words = re.search(r"\[possible values: (.*)\]$", told.get(name, ""))
            literals = [w for kind in typing.get_args(parameter.annotation) for w in typing.get_args(kind) if isinstance(w, str)]
            if words is None:
                assert not literals or name in {"cutoff"}, (function, name)
                continue
            expected = words[1].split(", ")
            # Names of solvers are also accepted as estimators.
            assert literals[: len(expected)] == expected and (len(literals) == len(expected) or name == "estimator"), (function, name)
            compared += 1
    assert compared > 15
    with pytest.raises(inertial.OptionError, match="cutoff=nan: expected a finite number"):
        inertial.identify(arm, {}, cutoff=float("nan"))
    with pytest.raises(inertial.OptionError, match="gravity= invalid length 2, expected an array of length 3"):
        inertial.Mechanism.builtin("arm7", gravity=(0.0, 1.0))
    with pytest.raises(inertial.OptionError, match="friction= cannot be combined with the other options"):
        inertial.identify("builtin:space-dual-arm", {"t": [0.0]}, measured="momentum", friction="viscous")
    with pytest.raises(inertial.OptionError, match="prior_weight=: expected a number from 1e-12 to 1e12"):
        inertial.identify(arm, {"t": [0.0]}, prior_weight=-1)
    with pytest.raises(inertial.OptionError, match="solver=: only the estimator consistent has a solver"):
        inertial.identify(arm, {"t": [0.0]}, estimator="ols", solver="manifold")


def test_arrays_pass_through_no_file(arm, log, monkeypatch, tmp_path):
    """Arrays in memory are not written to files."""

    def refuse(*arguments, **options):
        raise AssertionError("a temporary file")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    monkeypatch.chdir(tmp_path)
    robot = inertial.Mechanism.builtin("planar-2r")
    motion = inertial.design(robot, duration=4, starts=1, iterations=2)
    simulated = inertial.simulate(robot, motion)
    found = inertial.identify(robot, simulated, friction="viscous", coupling="none", columns={"t": "t"})
    assert inertial.validate(found, simulated).relative_rms == pytest.approx(found.fit_relative_rms, rel=1e-9)
    assert found.mechanism.nv == 2 and inertial.prepare(robot, simulated).rate > 0
    earlier = inertial.Summary(robot, friction="viscous", coupling="none", columns={"t": "t"}).add(simulated)
    again = inertial.design(robot, duration=4, starts=1, iterations=2, friction="viscous", prior_summary=earlier)
    assert again.rank == 6
    assert not list(tmp_path.iterdir())


def test_progress_is_reported(arm, capsys):
    told = []
    inertial.design(arm, duration=10, starts=2, iterations=3, progress=lambda done, total: told.append((done, total)))
    assert told and all(0 <= done <= total == 6 for done, total in told) and told == sorted(told)

    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        inertial.design(arm, duration=10, starts=1000, iterations=1000, progress=stop)
    inertial.design("builtin:arm7", duration=10, starts=2, iterations=3, progress=True)
    assert "design: " in capsys.readouterr().err
    with pytest.raises(TypeError, match="progress=: expected True, False, None or a function, not str"):
        inertial.identify(arm, {"t": [0.0]}, progress="bar")


def test_arrays_are_logs(arm, log):
    expected = inertial.identify(arm, log, friction="viscous")
    arrays = {key: stacked(log, arm, key) for key in ("q", "dq", "ddq", "tau")}
    assert inertial.identify(arm, {"t": log["t"], **arrays}, friction="viscous").to_dict() == expected.to_dict()
    assert inertial.identify(arm, {"rate": 200.0, **arrays}, friction="viscous").to_dict() == expected.to_dict()
    assert inertial.identify(arm, arrays, friction="viscous", rate=200.0).to_dict() == expected.to_dict()
    with pytest.raises(inertial.LogError, match="no column t .time in seconds.; rate= sets the sampling rate .Hz. of a log without times"):
        inertial.identify(arm, arrays)
    with pytest.raises(inertial.OptionError, match="rate=: .* has a time column"):
        inertial.identify(arm, {"t": log["t"], **arrays}, rate=200.0)
    with pytest.raises(inertial.LogError, match="q has 6 columns, expected one for each coordinate: 7"):
        inertial.identify(arm, {**arrays, "t": log["t"], "q": arrays["q"][:, :6]})


def test_anything_that_speaks_arrow_is_a_log(arm, log):
    pyarrow = pytest.importorskip("pyarrow")

    class Stream:
        """An object that supports only Arrow's C stream interface."""

        def __arrow_c_stream__(self, requested_schema=None):
            return pyarrow.table(log).__arrow_c_stream__(requested_schema)

    assert inertial.identify(arm, Stream()).to_dict() == inertial.identify(arm, log).to_dict()


def test_columns_by_a_mapping(arm, log):
    expected = inertial.identify(arm, log, friction="viscous").to_dict()
    other = {"stamp": log["t"] * 1000, **{name.replace("tau.", "torque_"): x for name, x in log.items() if name != "t"}}
    names = {f"tau.{joint}": f"torque_{joint}" for joint in arm.coordinate_names}
    found = inertial.identify(
        arm, other, friction="viscous", columns={"columns": {"t": "stamp", **names}, "units": {"t": "ms"}}
    )
    values, wanted = ([p["value"] for p in r["base_parameters"]] for r in (found, expected))
    # The conversion from milliseconds causes rounding errors.
    assert np.allclose(values, wanted, rtol=1e-6, atol=1e-9)
    renamed = {("stamp" if name == "t" else name): x for name, x in log.items()}
    assert inertial.identify(arm, renamed, friction="viscous", columns={"t": "stamp"}).to_dict() == expected


def test_addresses_and_patterns(tmp_path, arm):
    fsspec = pytest.importorskip("fsspec")
    for k in range(3):
        log = motion(arm, 500, seed=k)
        write_parquet(tmp_path / f"log{k}.parquet", log)
    paths = [tmp_path / f"log{k}.parquet" for k in range(3)]
    expected = inertial.identify(arm, paths).to_dict()
    assert inertial.identify(arm, tmp_path / "log*.parquet").to_dict() == expected
    store = fsspec.filesystem("memory")
    for path in paths:
        store.put_file(str(path), f"/logs/{path.name}")
    found = inertial.identify(arm, "memory://logs/log*.parquet")
    assert found.to_dict() == expected
    assert any(note.startswith("memory:///logs/log0.parquet: ") for note in found.notes)
    with pytest.raises(FileNotFoundError):
        inertial.identify(arm, "memory://logs/none.parquet")


def test_pages_keep_the_secrets_of_the_process(tmp_path):
    script = """
        import inertial
        robot = inertial.Mechanism.builtin("planar-2r")
        inertial.analyze(robot, report="page.html")
    """
    call = [sys.executable, "-c", textwrap.dedent(script), "--password", "hunter2"]
    subprocess.run(call, cwd=tmp_path, check=True)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "hunter2" not in page and "inertial.analyze('builtin:planar-2r', report='page.html')" in page


def _child(queue, arm, log):
    y = arm.regressors(np.zeros((100, 7)), np.zeros((100, 7)), np.zeros((100, 7)))
    queue.put((inertial.identify(arm, log).samples, float(y.sum())))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_works_after_a_call_in_the_parent(arm, log):
    expected = inertial.identify(arm, log).samples
    arm.regressors(np.zeros((100, 7)), np.zeros((100, 7)), np.zeros((100, 7)))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue, arm, log))
    child.start()
    try:
        # A forked child would wait forever for threads that do not exist in it.
        assert queue.get(timeout=120)[0] == expected
    finally:
        child.kill()
        child.join()


def test_regressors_of_one_configuration_and_of_quantities(arm):
    rng = np.random.default_rng(1)
    q, v, a = rng.normal(size=(3, 5, arm.nv))
    many = arm.regressors(q, v, a)
    one = arm.regressor(q[0], v[0], a[0])
    # The order of summation differs.
    assert np.allclose(one, many[0], rtol=0, atol=1e-12 * np.abs(many[0]).max())
    assert np.array_equal(arm.regressor(list(q[0]), list(v[0]), list(a[0])), arm.regressors(q[:1], v[:1], a[:1])[0])
    still = np.zeros_like(q)
    assert np.allclose(arm.gravity_regressor(q), arm.regressors(q, still, still), atol=1e-12)
    assert np.allclose(arm.gravity_regressor(q[0]), arm.gravity_regressor(q)[0], rtol=0, atol=0)
    # Kinetic energy from the mass matrix, whose columns are computed by inverse dynamics.
    plain = inertial.Mechanism.builtin("puma560", rotors="none")
    q, v = rng.normal(size=(2, plain.nv))
    rest = plain.regressor(q, 0 * q, 0 * q) @ plain.parameters
    columns = [plain.regressor(q, 0 * q, unit) @ plain.parameters - rest for unit in np.eye(plain.nv)]
    energy = plain.kinetic_energy_regressor(q, v) @ plain.parameters
    assert energy == pytest.approx(0.5 * v @ np.array(columns) @ v, rel=1e-10)
    # The power of gravity torques is the rate of change of the potential energy.
    step = 1e-6
    change = [plain.potential_energy_regressor(q + s * step * v) @ plain.parameters for s in (1, -1)]
    assert (change[0] - change[1]) / (2 * step) == pytest.approx(rest @ v, rel=1e-6)
    # Shapes of the momentum regressor and of the base regressor.
    assert plain.momentum_regressor(q, v).shape == (6, len(plain.parameters))
    base, names = plain.base_regressor(q, v, v)
    assert base.shape == (plain.nv, 36) and len(names) == 36
    assert plain.joint_names == [f"joint{k}" for k in range(1, 7)]
    assert plain.gravity.tolist() == [0, 0, -9.81] and plain.limits["joint1"]["lower"] < 0


def test_arithmetic_is_chosen_for_the_process(arm):
    with pytest.raises(inertial.OptionError, match="expected one of fast, reproducible"):
        inertial.set_arithmetic("exact")
    with pytest.raises(TypeError, match="inertial.set_arithmetic"):
        inertial.check(arm, arithmetic="fast")
    inertial.set_arithmetic("reproducible")
    inertial.set_arithmetic("fast")
