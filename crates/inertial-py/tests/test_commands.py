"""Commands from Python: the program's numbers and words."""

from __future__ import annotations

import json
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from conftest import motion, program

import inertial
from inertial import options


def written(path, columns):
    """A CSV that has every digit."""
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
    # From memory: the same columns, so the same bits.
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
            # Five standard errors: by chance less than once in a million.
            assert abs(parameter.value - truth[parameter.name]) < 5 * parameter.std_error


def test_errors_have_the_programs_words(tmp_path, arm, log):
    said = program("analyze", str(tmp_path / "none.urdf"))
    assert said.returncode == 2
    with pytest.raises(inertial.Error) as error:
        inertial.analyze(tmp_path / "none.urdf")
    assert said.stderr.strip() == f"inertial: {error.value}"
    with pytest.raises(inertial.Error, match="possible values: ols, wls"):
        inertial.identify(arm, log, estimator="fast")
    with pytest.raises(inertial.Error, match="unexpected argument '--fricton'"):
        inertial.identify(arm, log, fricton="viscous")
    with pytest.raises(inertial.Error, match="^table 1: "):
        inertial.identify(arm, {"t": [0.0, 0.1]})
    with pytest.raises(inertial.Error, match="expected a path"):
        inertial.identify(arm, [3.0])
    with pytest.raises(inertial.Error, match="is no URDF"):
        inertial.Mechanism.from_urdf("<mujoco/>")
    with pytest.raises(inertial.Error, match="q is 6, expected 7"):
        arm.rnea(np.zeros(6), np.zeros(7), np.zeros(7))
    with pytest.raises(inertial.Error, match="v has 2 samples, q has 3|has 3 samples"):
        arm.regressors(np.zeros((3, 7)), np.zeros((2, 7)), np.zeros((3, 7)))


def test_tables_of_other_libraries_give_the_same(arm, log):
    expected = inertial.identify(arm, log).to_dict()
    for name in ("pandas", "polars", "pyarrow"):
        library = pytest.importorskip(name)
        table = library.table(log) if name == "pyarrow" else library.DataFrame(log)
        assert inertial.identify(arm, table).to_dict() == expected, name
    records = np.rec.fromarrays(list(log.values()), names=[n.replace(".", "_") for n in log])
    records.dtype.names = tuple(log)
    assert inertial.identify(arm, [records]).to_dict() == expected


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
    floating = inertial.Mechanism.from_urdf(text, base="floating", gravity=(0, 0, 0))
    assert floating.nv == 7 and inertial.analyze(floating).to_dict()["model"]["base"] == "floating"
    # A zero first moment along gravity: hanging, it needs no torque.
    assert np.allclose(ways[0].rnea([0.0], [0.0], [0.0]), -2 * 9.81 * 0.1)


def test_keyword_arguments_are_the_programs_options():
    # Not for programs: what is printed, and streams.
    besides = {"json", "help", "csv", "latex", "explain", "compare", "follow", "every", "forget", "window", "plot", "plots"}
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
        if command == "analyze":
            offered -= {"out"}
        named = {name.rstrip("_").replace("_", "-") for name in _all(kind)}
        assert named == offered, (command, named ^ offered)


def _all(kind):
    """Keys of a TypedDict and of those it extends."""
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


def test_the_interpreter_is_released(arm):
    import threading

    q = np.zeros((20_000, 7))
    work = threading.Thread(target=lambda: [arm.regressors(q, q, q) for _ in range(10)])
    work.start()
    turns = 0
    while work.is_alive():
        turns += 1
        time.sleep(0)
    # Held, the interpreter would give this thread a turn between two calls at most.
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
    # Rounding of sums of some hundred products.
    assert np.allclose(y @ robot.parameters, robot.rnea(q, v, v), atol=1e-9)
    assert motion(inertial.Mechanism.builtin("scara"), 10)["t"].shape == (10,)
