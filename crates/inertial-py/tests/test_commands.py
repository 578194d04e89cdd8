"""Tests that commands in Python give the results and messages of the program."""

from __future__ import annotations

import json
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import numpy as np
import pytest
from conftest import REPOSITORY, motion, program

import inertial
from inertial import options
from inertial._checks import PROGRAM_ONLY


def written(path, columns):
    """Writes a CSV file with all digits."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(columns) + "\n")
        for row in zip(*(c.tolist() for c in columns.values()), strict=True):
            file.write(",".join(map(repr, row)) + "\n")
    return str(path)


def test_numbers_are_the_programs_bit_for_bit(tmp_path, arm, log):
    path = written(tmp_path / "log.csv", log)
    flags = ["--friction=coulomb+viscous", "--holdout=0.3"]
    said = program("identify", "builtin:arm7", path, *flags, "--json")
    assert said.returncode == 0, said.stderr
    expected = json.loads(said.stdout)
    found = inertial.identify(arm, path, friction="coulomb+viscous", holdout=0.3)
    assert found.to_dict() == expected
    # Columns in memory give the same bits.
    assert inertial.identify(arm, log, friction="coulomb+viscous", holdout=0.3).to_dict() == expected
    for command, call in (("analyze", inertial.analyze), ("check", inertial.check)):
        for name in ("puma560", "quadruped", "four-bar", "space-dual-arm"):
            said = program(command, f"builtin:{name}", "--json")
            assert call(inertial.Mechanism.builtin(name)).to_dict() == json.loads(said.stdout), (command, name)
    said = program("validate", "builtin:arm7", path, "--json")
    assert inertial.validate("builtin:arm7", path).to_dict() == json.loads(said.stdout)


def test_design_simulate_identify():
    robot = inertial.Mechanism.builtin("planar-2r")
    motion = inertial.design(robot, duration=4, starts=1, iterations=5, seed=3)
    assert motion.rank == motion.structural_rank == 6
    said = program("design", "builtin:planar-2r", "--duration=4", "--starts=1", "--iterations=5", "--seed=3", "--json")
    assert motion.to_dict() == json.loads(said.stdout)
    flight = inertial.simulate(robot, motion, rate=200, noise={"tau": 0.01}, seed=1)
    found = inertial.identify(robot, flight.columns)
    truth = {"link1.hx": 1.1, "link2.hx": 0.24}
    for parameter in found.base_parameters:
        if parameter.name in truth:
            # Exceeding five standard errors by chance has a probability below 1e-6.
            assert abs(parameter.value - truth[parameter.name]) < 5 * parameter.std_error


def test_errors_have_the_messages_of_the_program(tmp_path, arm, log):
    (tmp_path / "bad.urdf").write_text("<robot/>")
    said = program("analyze", str(tmp_path / "bad.urdf"))
    assert said.returncode == 2
    with pytest.raises(inertial.ModelError) as error:
        inertial.analyze(tmp_path / "bad.urdf")
    assert said.stderr.strip() == f"inertial: {error.value}"
    with pytest.raises(inertial.OptionError, match="estimator='fast': expected one of ols, wls"):
        inertial.identify(arm, log, estimator="fast")
    with pytest.raises(inertial.LogError, match="^table 1: "):
        inertial.identify(arm, {"t": [0.0, 0.1]})
    with pytest.raises(inertial.Error, match="^table 1: column q.joint1: 2 rows, but the first column has 3$"):
        inertial.identify("builtin:planar-2r", {"t": [1.0, 2.0, 3.0], "q.joint1": [1.0, 2.0]})
    with pytest.raises(inertial.LogError, match="the trajectory: column q.joint1: 1 rows, but the first column has 2"):
        inertial.simulate("builtin:planar-2r", {"t": [0.0, 1.0], "q.joint1": [1.0]})
    with pytest.raises(TypeError, match="expected a path"):
        inertial.identify(arm, [3.0])
    with pytest.raises(inertial.Error, match="is not URDF"):
        inertial.Mechanism.from_urdf("<mujoco/>")
    (tmp_path / "all.xml").write_text('<mujoco><include file="arm.xml"/></mujoco>')
    (tmp_path / "arm.xml").write_text("<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>")
    assert inertial.Mechanism.from_mjcf(tmp_path / "all.xml").nv == 1
    with pytest.raises(inertial.Error, match="all.xml: is not URDF"):
        inertial.Mechanism.from_urdf(tmp_path / "all.xml")
    with pytest.raises(inertial.Error, match="q is 6, expected 7"):
        arm.rnea(np.zeros(6), np.zeros(7), np.zeros(7))
    with pytest.raises(inertial.Error, match="v has 2 samples, q has 3|has 3 samples"):
        arm.regressors(np.zeros((3, 7)), np.zeros((2, 7)), np.zeros((3, 7)))


def test_tables_of_other_libraries_give_equal_results(arm, log):
    expected = inertial.identify(arm, log).to_dict()
    for name in ("pandas", "polars", "pyarrow"):
        library = pytest.importorskip(name)
        table = library.table(log) if name == "pyarrow" else library.DataFrame(log)
        assert inertial.identify(arm, table).to_dict() == expected, name
    records = np.rec.fromarrays(list(log.values()), names=[n.replace(".", "_") for n in log])
    records.dtype.names = tuple(log)
    assert inertial.identify(arm, [records]).to_dict() == expected


def test_tables_may_have_more_than_is_needed(arm, log):
    expected = inertial.identify(arm, log).to_dict()
    assert inertial.identify(arm, {**log, "note": ["moves"] * 2000, "pairs": np.zeros((2000, 2)), "ragged": [[1], [2, 3]]}).to_dict() == expected
    with pytest.raises(inertial.Error, match="q.joint2.*; q.joint2: expected numbers$"):
        inertial.identify(arm, {**log, "q.joint2": ["a"] * 2000})
    with pytest.raises(inertial.Error, match="no columns of numbers, only t"):
        inertial.identify(arm, {"t": ["noon"]})
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    frame = pandas.DataFrame(log)
    assert inertial.identify(arm, frame.assign(note="moves")).to_dict() == expected
    assert inertial.identify(arm, frame.set_index("t")).to_dict() == expected
    assert inertial.identify(arm, frame.astype({"q.joint1": "Float64"})).to_dict() == expected
    assert inertial.identify(arm, polars.DataFrame(log).lazy()).to_dict() == expected
    batch = pyarrow.RecordBatch.from_pydict({name: pyarrow.array(column) for name, column in log.items()})
    assert inertial.identify(arm, batch).to_dict() == expected
    gaps = inertial.identify(arm, {**log, "q.joint1": np.where(np.arange(2000) == 7, np.nan, log["q.joint1"])}).to_dict()
    missing = [None if k == 7 else x for k, x in enumerate(log["q.joint1"].tolist())]
    for table in (
        frame.assign(**{"q.joint1": pandas.array(missing, dtype="Float64")}),
        polars.DataFrame({**log, "q.joint1": missing}),
        pyarrow.table({**log, "q.joint1": pyarrow.array(missing)}),
        {**log, "q.joint1": missing},
    ):
        assert inertial.identify(arm, table).to_dict() == gaps


def test_times_are_seconds_as_in_parquet(tmp_path, arm, log):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame(log)
    stamped = frame.assign(t=pandas.to_datetime(frame.t, unit="s"))
    stamped.to_parquet(tmp_path / "log.parquet")
    expected = inertial.identify(arm, tmp_path / "log.parquet").to_dict()
    assert inertial.identify(arm, stamped).to_dict() == expected
    assert inertial.identify(arm, stamped.assign(t=stamped.t.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"))).to_dict() == expected
    assert inertial.identify(arm, frame.assign(t=pandas.to_timedelta(frame.t, unit="s"))).to_dict() == expected
    assert inertial.identify(arm, polars.from_pandas(stamped)).to_dict() == expected


def test_pages_name_tables_not_files(tmp_path):
    robot = inertial.Mechanism.builtin("planar-2r")
    log = inertial.simulate(robot, inertial.design(robot, duration=4, starts=1, iterations=3))
    inertial.identify(robot, log, report=tmp_path / "page.html", validate=log)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"table 1"' in page and '"table 2"' in page and tempfile.gettempdir() + "/inertial-" not in page
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_simulation_is_a_log(arm):
    robot = inertial.Mechanism.builtin("planar-2r")
    motion = inertial.design(robot, duration=4, starts=1, iterations=3)
    log = inertial.simulate(robot, motion)
    assert inertial.identify(robot, log).to_dict() == inertial.identify(robot, [log.columns]).to_dict()
    assert inertial.validate(robot, [log, log]).samples == 2 * inertial.validate(robot, log).samples
    with pytest.raises(TypeError, match="a log of type Design"):
        inertial.identify(robot, motion)


def test_errors_cross_processes():
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    again = pickle.loads(pickle.dumps(inertial.Error("wrong")))
    assert type(again) is inertial.Error and str(again) == "wrong"
    assert f"{inertial.Error.__module__}.{inertial.Error.__qualname__}" == "inertial.Error"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(FileNotFoundError, match="no such file"):
            pool.submit(inertial.check, "none.urdf").result()
        with pytest.raises(inertial.ModelError, match="no built-in model"):
            pool.submit(inertial.check, "builtin:none").result()
        assert pool.submit(inertial.check, "builtin:arm7").result()


def test_regressors_refuse_wrong_arrays(arm):
    row, rows = np.zeros(7), np.zeros((2, 7))
    with pytest.raises(inertial.Error, match="one sample"):
        arm.regressor(rows, rows, rows)
    with pytest.raises(inertial.Error, match="out holds float32, expected float64"):
        arm.regressors(rows, rows, rows, out=np.zeros((2, 7, 70), dtype=np.float32))
    with pytest.raises(inertial.Error, match="out is read-only"):
        locked = np.zeros((7, 70))
        locked.flags.writeable = False
        arm.regressor(row, row, row, out=locked)
    with pytest.raises(inertial.Error, match="out is not contiguous"):
        arm.regressors(rows, rows, rows, out=np.zeros((2, 70, 7)).transpose(0, 2, 1))
    with pytest.raises(inertial.Error, match="out has 2 dimensions, expected 3"):
        arm.regressors(rows, rows, rows, out=np.zeros((7, 70)))
    with pytest.raises(inertial.Error, match="q: expected numbers"):
        arm.rnea("fast", row, row)
    mine = np.full((7, 70), np.nan)
    assert np.shares_memory(arm.regressor(row, row, row, out=mine), mine) and np.isfinite(mine).all()


def test_analyze_writes_every_format(tmp_path):
    robot = inertial.Mechanism.builtin("cheetah-leg")
    found = inertial.analyze(robot, compare="floating", out=tmp_path / "a.txt")
    said = program("analyze", "builtin:cheetah-leg", "--compare=floating")
    assert (tmp_path / "a.txt").read_text() == said.stdout
    assert found.compared_with == "floating base" and found.comparison["forces"]
    assert inertial.analyze(robot).comparison is None
    inertial.analyze(robot, csv=True, out=tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == program("analyze", "builtin:cheetah-leg", "--csv").stdout
    inertial.analyze("builtin:four-bar", explain=True, out=tmp_path / "a.svg", plots=tmp_path / "plots")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    assert inertial.analyze(robot, compare=inertial.Mechanism.builtin("cheetah-leg", base="floating")).compared_with
    with pytest.raises(inertial.Error, match="explain= selects what is written: give out= too"):
        inertial.analyze(robot, explain=True)
    with pytest.raises(TypeError, match="json= is only an option of the program"):
        inertial.analyze(robot, json=True)
    with pytest.raises(TypeError, match="a model of type list"):
        inertial.analyze(["builtin:arm7"])


def test_several_files_and_models(tmp_path):
    robot = inertial.Mechanism.builtin("planar-2r")
    files = [tmp_path / "m.csv", tmp_path / "m.json"]
    motion = inertial.design(robot, duration=4, starts=1, iterations=2, out=files, robust=robot)
    assert all(path.exists() for path in files)
    log = inertial.simulate(robot, motion, noise={"tau": 0.01})
    # Two models from strings are distinct, although neither has a file name.
    text = (REPOSITORY / "crates/inertial/src/mechanism/builtin/planar-2r.toml").read_text(encoding="utf-8")
    one, other = (inertial.Mechanism.from_string(t) for t in (text, text.replace("mass = 2,", "mass = 5,")))
    assert text.count("mass = 2,") == 1
    masses = [inertial.identify(one, log, prior=prior).bodies[0].mass for prior in ("model", one, other)]
    assert masses[0] == masses[1] and masses[2] > masses[0]
    with pytest.raises(TypeError, match="bounds=: expected a path, not dict"):
        inertial.identify(robot, log, bounds={"bodies": {}})


def test_a_calls_options_win():
    arm = inertial.Mechanism.builtin("puma560", base="floating", gravity=(0, 0, -1))
    assert inertial.analyze(arm).model["base"] == "floating"
    model = inertial.analyze(arm, base="fixed").model
    assert model["base"] == "fixed" and model["gravity"] == [0, 0, -1]
    assert inertial.Summary(arm, base="fixed").samples == 0


def test_validation_applies_the_threshold(arm, log):
    found = inertial.validate(arm, log)
    assert found.passed is None and found
    assert inertial.validate(arm, log, threshold=1.0).passed is True
    no = inertial.validate(arm, log, threshold=1e-9)
    assert no.passed is False and not no and "above the threshold" in str(no)
    assert pickle.loads(pickle.dumps(no)).passed is False


def test_help_describes_every_option():
    for function in (inertial.check, inertial.analyze, inertial.design, inertial.simulate, inertial.identify, inertial.validate):
        lines = [line.strip() for line in function.__doc__.splitlines()]
        kind = getattr(options, f"{function.__name__.capitalize()}Options")
        for name in _all(kind):
            told = [line for line in lines if line.startswith(f"{name}: ")]
            assert len(told) == 1 and len(told[0]) > len(name) + 10, (function, name)
    from inertial import distributed

    for thing, kind in (
        (inertial.Summary, options.UnknownsOptions),
        (inertial.Online, options.UnknownsOptions),
        (inertial.Summary.identify, options.EstimateOptions),
        (inertial.identify_fleet, options.FleetOptions),
        (distributed.identify, options.EstimateOptions),
    ):
        assert all(f"\n        {name}: " in thing.__doc__ for name in _all(kind)), thing
    assert "friction: Friction of the joints [default: auto] [possible values: auto, none, viscous" in inertial.identify.__doc__


def test_results_print_convert_and_pickle(arm, log):
    found = inertial.identify(arm, log, friction="viscous")
    assert str(found).splitlines()[0] == repr(found).removeprefix("<inertial.Identification: ").removesuffix(">")
    assert "<table>" in found._repr_html_() and "link2.hx" in found._repr_html_()
    assert json.loads(found.to_json()) == found.to_dict() == dict(found)
    pandas = pytest.importorskip("pandas")
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == found.rank
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.bodies[0].mass == found.bodies[0].mass
    assert found.joints[0].coulomb is None and found.joints[0].viscous > 0
    with pytest.raises(AttributeError, match="has no weight"):
        found.weight  # noqa: B018


def test_models_from_texts_and_files(tmp_path, arm):
    text = """<robot name="one"><link name="base"/><link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
    <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="2"/></joint></robot>"""
    (tmp_path / "one.urdf").write_text(text)
    ways = [
        inertial.Mechanism.from_urdf(text),
        inertial.Mechanism.from_string(text),
        inertial.Mechanism.from_urdf(tmp_path / "one.urdf"),
        inertial.Mechanism.from_file(str(tmp_path / "one.urdf")),
    ]
    results = [inertial.analyze(way).to_dict() for way in ways]
    assert all(r == results[0] for r in results) and results[0]["rank"] == 3
    again = pickle.loads(pickle.dumps(ways[0]))
    assert inertial.analyze(again).to_dict() == results[0]
    (tmp_path / "two.urdf").write_bytes(text.replace("\n", "\r\n").encode())
    assert inertial.Mechanism.from_urdf(tmp_path / "two.urdf").text == text.replace("\n", "\r\n")
    floating = inertial.Mechanism.from_urdf(text, base="floating", gravity=(0, 0, 0))
    assert floating.nv == 7 and inertial.analyze(floating).to_dict()["model"]["base"] == "floating"
    # Gravity torque of the link with its centre of mass 0.1 m from the axis.
    assert np.allclose(ways[0].rnea([0.0], [0.0], [0.0]), -2 * 9.81 * 0.1)


def test_keyword_arguments_are_the_programs_options():
    # Options for printing and streams exist only in the program.
    besides = {name.replace("_", "-") for name in PROGRAM_ONLY}
    kinds = {
        "check": options.CheckOptions,
        "analyze": options.AnalyzeOptions,
        "design": options.DesignOptions,
        "simulate": options.SimulateOptions,
        "identify": options.IdentifyOptions,
        "validate": options.ValidateOptions,
    }
    for command, kind in kinds.items():
        usage = program(command, "--help").stdout
        offered = set(re.findall(r"^ {2,10}(?:-\w, )?--([a-z-]+)", usage, flags=re.MULTILINE)) - besides
        named = {name.rstrip("_").replace("_", "-") for name in _all(kind)}
        assert named == offered, (command, named ^ offered)


def _all(kind):
    """Returns the keys of a TypedDict, including inherited ones."""
    return kind.__annotations__.keys()


def test_control_c_stops_a_search(tmp_path):
    script = """
        import inertial
        print("begins", flush=True)
        try:
            inertial.design("builtin:arm7", duration=20, starts=1000, iterations=1000, out="motion.csv")
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """
    work = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert work.stdout.readline() == "begins\n"
    time.sleep(1.0)
    work.send_signal(signal.SIGINT)
    assert work.communicate(timeout=300)[0] == "stopped\n"
    assert not list(tmp_path.iterdir())


def test_the_interpreter_is_released(arm):
    import threading

    q = np.zeros((20_000, 7))
    work = threading.Thread(target=lambda: [arm.regressors(q, q, q) for _ in range(10)])
    work.start()
    turns = 0
    while work.is_alive():
        turns += 1
        time.sleep(0)
    # If the GIL were held, this thread would run at most once between two calls.
    assert turns > 20


def test_import_needs_no_heavy_library():
    script = "import inertial, sys; print([m for m in ('numpy', 'pandas', 'dask', 'pinocchio') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_motion_of_a_quadruped_round_trips():
    robot = inertial.Mechanism.builtin("quadruped")
    q = np.zeros((5, robot.nq))
    q[:, 6] = 1.0
    v = np.random.default_rng(0).normal(size=(5, robot.nv))
    y = robot.regressors(q, v, v)
    assert y.shape == (5, robot.nv, len(robot.parameter_names))
    # Rounding errors of sums of some hundred products.
    assert np.allclose(y @ robot.parameters, robot.rnea(q, v, v), atol=1e-9)
    assert motion(inertial.Mechanism.builtin("scara"), 10)["t"].shape == (10,)


def test_outputs_replace_no_input(tmp_path, log):
    """Outputs at the path of an input, and two outputs at one path, are refused."""
    path = written(tmp_path / "log.csv", log)
    before = (tmp_path / "log.csv").read_bytes()
    link = tmp_path / "link.html"
    link.symlink_to(path)
    for options in ({"report": path}, {"summary_out": path}, {"report": link}):
        with pytest.raises(inertial.Error, match="is also an input"):
            inertial.identify("builtin:arm7", path, **options)
    with pytest.raises(inertial.Error, match="two results would be written"):
        inertial.identify("builtin:arm7", path, report=tmp_path / "x", summary_out=tmp_path / "x")
    with pytest.raises(inertial.OptionError, match=r"summary_out=: .*x\.txt: expected a name ending in \.summary or \.json"):
        inertial.identify("builtin:arm7", path, summary_out=tmp_path / "x.txt")
    with pytest.raises(TypeError):
        inertial.identify("builtin:arm7", path, report=True)
    assert (tmp_path / "log.csv").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.html", "log.csv"]
    model = tmp_path / "robot.urdf"
    model.write_text('<robot name="r"><link name="b"/></robot>')
    with pytest.raises(inertial.Error, match="is also an input"):
        inertial.check(model, report=model)


def test_a_threshold_needs_samples_of_every_joint(log):
    """A joint whose torque is nearly always saturated is not evaluated, so the validation does not pass."""
    arm = inertial.Mechanism.builtin("arm7")
    good = inertial.validate(arm, log, threshold=1.0)
    assert good and good.unjudged == [] and all(joint.samples >= 16 for joint in good.joints)
    with pytest.raises(inertial.OptionError, match="threshold"):
        inertial.validate(arm, log, threshold=float("nan"))


def test_columns_are_listed(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("time_ms,actual_q_0,actual_q_1,torque_0,torque_1\n0,0,0,1,2\n10,0.1,0.2,1,2\n", encoding="utf-8")
    alone = inertial.columns(log)
    assert [column.target for column in alone.columns] == ["t", "q1", "q2", "tau1", "tau2"]
    assert alone.missing is None and "[columns]" in alone.map
    written = tmp_path / "map.toml"
    with_model = inertial.columns(log, "builtin:planar-2r", out=written)
    assert with_model.missing is None
    assert written.read_text(encoding="utf-8") == with_model.map
    assert "5 columns, 5 used" in repr(with_model)
    assert inertial.columns(log, "builtin:puma560").missing


def test_exports(tmp_path):
    code = inertial.export("builtin:scara", to="c", out=tmp_path / "arm.c")
    assert [file.name for file in code.files] == ["arm.h", "arm.c", "arm_test.c"]
    assert (tmp_path / "arm.c").read_text(encoding="utf-8") == code.files["arm.c"].text
    load = {
        "schema": "inertial/identification/1",
        "bodies": [
            {
                "name": "payload",
                "mass": 1.5,
                "com": [0.01, 0, 0.05],
                "inertia": {"ixx": 0.003, "ixy": 0, "ixz": 0, "iyy": 0.004, "iyz": 0, "izz": 0.002},
            }
        ],
    }
    assert "set_payload(1.5, [0.01, 0.0, 0.05])" in inertial.export("builtin:scara", to="ur", values=load).files[0].text
    with pytest.raises(inertial.OptionError, match="link"):
        inertial.export("builtin:scara", to="ur")


def test_what_the_papers_ask_for(arm, log):
    assert inertial.analyze("builtin:puma560", rotors="symmetric").rank == 40
    flying = inertial.analyze("builtin:space-dual-arm", measured="momentum", total_momentum="zero")
    assert (flying.rank, flying.total_momentum) == (52, "zero")
    body = inertial.check("builtin:arm7").bodies[0]
    assert body.manifold["m"] == body.mass and min(body.manifold["L"]) > 0 and body.rounding is None
    # The torque noise is normal with a standard deviation of 0.01 N m; five times that is used as its bound.
    planar = inertial.Mechanism.builtin("planar-2r")
    motion = inertial.design(planar, duration=4, starts=1, iterations=3)
    logged = inertial.simulate(planar, motion, noise={"tau": 0.01})
    kept = {"friction": "viscous", "coupling": "none", "bounds_on": ["base"], "cutoff": "off", "decimate": 1}
    found = inertial.identify(planar, logged, noise_bound=0.05, **kept)
    assert len(found.intervals) == found.rank == 6
    for interval, parameter in zip(found.intervals, found.base_parameters):
        assert interval["name"] == parameter.name and interval["lower"] < parameter.value < interval["upper"]
    by_joint = {name: 0.05 for name in planar.coordinate_names}
    assert inertial.identify(planar, logged, noise_bound=by_joint, **kept).intervals == found.intervals
    plain = inertial.identify(arm, log, friction="viscous", estimator="ols", prior="none", cutoff="off")
    given = inertial.identify(arm, log, friction="viscous", estimator="ols", cutoff="off")
    assert sum(b.mass**2 for b in plain.bodies) < sum(b.mass**2 for b in given.bodies)
    with pytest.raises(inertial.OptionError, match="noise_bound"):
        inertial.identify(arm, log, bounds_on=["m"])
