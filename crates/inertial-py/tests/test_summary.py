"""Tests of summaries (merging, pickling, clusters), fleets and streams."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from conftest import motion, stacked, write_parquet

import inertial


def values(result):
    return np.array([p.value for p in result.base_parameters])


def numbers(entry):
    """Returns a number, an array or a tensor (dictionary) as a list."""
    return list(entry.values()) if isinstance(entry, dict) else np.atleast_1d(entry).tolist()


@pytest.mark.parametrize("parts", [1, 7, 64])
def test_parts_merge_to_the_whole(arm, log, parts):
    arrays = [stacked(log, arm, key) for key in ("q", "dq", "ddq", "tau")]
    whole = inertial.Summary(arm, friction="viscous").add_arrays(*arrays).identify(estimator="wls")
    pieces = [
        inertial.Summary(arm, friction="viscous").add_arrays(*(a[k::parts] for a in arrays)) for k in range(parts)
    ]
    order = np.random.default_rng(parts).permutation(parts)
    merged = inertial.Summary(arm, friction="viscous").merge(*(pickle.loads(pickle.dumps(pieces[k])) for k in order))
    assert merged.samples == 2000
    found = merged.identify(estimator="wls")
    # Merging orthogonal factors causes only rounding errors.
    assert np.allclose(values(found), values(whole), rtol=0, atol=1e-10 * np.abs(values(whole)).max())


def test_summary_of_a_log_is_that_of_identify(arm, log):
    found = inertial.identify(arm, log, friction="viscous", cutoff=10)
    summary = inertial.Summary(arm, friction="viscous", cutoff=10).add(log)
    again = summary.identify()
    # Deviations of model and sensors are estimated from samples, which a summary does not store.
    assert again.deviations is None and found.deviations
    assert again.to_dict() == {key: value for key, value in found.items() if key != "deviations"}
    assert again.notes == found.notes == summary.notes == pickle.loads(pickle.dumps(summary)).notes != []
    with pytest.raises(inertial.Error, match="different models or joint terms"):
        inertial.Summary(arm).merge(inertial.Summary(arm, friction="none"))


def test_a_summary_keeps_few_notes(log):
    from inertial.summary import KEPT

    robot = inertial.Mechanism.builtin("arm7")
    whole = inertial.Summary(robot, decimate=2)
    part = inertial.Summary(robot, decimate=2).add(log)
    for _ in range(KEPT):
        whole = whole + part
    assert len(part.notes) > 1 and len(whole.notes) == KEPT + 1
    assert whole.notes[-1] == f"and {(len(part.notes) - 1) * KEPT} more notes on logs"
    assert "more in notes" in str(whole.identify())


def test_summaries_refuse_invalid_arguments(tmp_path, arm, log):
    with pytest.raises(inertial.Error, match="momentum needs all samples"):
        inertial.Summary("builtin:space-dual-arm", measured="momentum")
    with pytest.raises(TypeError, match="estimator=: is an option of identify"):
        inertial.Summary(arm, estimator="ols")
    with pytest.raises(TypeError, match="merge of a dict: expected a Summary"):
        inertial.Summary(arm).merge({})
    with pytest.raises(TypeError, match="add takes logs; combine summaries"):
        inertial.Summary(arm).add(inertial.Summary(arm))


def test_reports_and_models_of_a_summary(tmp_path, arm, log):
    summary = inertial.Summary(arm, friction="viscous").add(log)
    found = summary.identify(report=tmp_path / "page.html", out=tmp_path / "arm.toml")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "summary 1" in page and found.bodies[0].name in page
    again = inertial.Mechanism.from_file(tmp_path / "arm.toml")
    assert inertial.check(again).bodies[2].mass == pytest.approx(found.bodies[2].mass, rel=1e-12)


def test_online_is_the_batch_estimate_where_nothing_is_forgotten(arm, log):
    arrays = [stacked(log, arm, key) for key in ("q", "dq", "ddq", "tau")]
    online = inertial.Online(arm, friction="viscous")
    for k in range(0, 2000, 100):
        online.update(*(a[k : k + 100] for a in arrays))
    batch = inertial.Summary(arm, friction="viscous").add_arrays(*arrays).identify(estimator="wls")
    found = online.identify(estimator="wls")
    assert np.allclose(values(found), values(batch), rtol=0, atol=1e-9 * np.abs(values(batch)).max())
    assert all(body.consistent for body in online.identify().bodies)


def test_a_fleet_shares_links_and_keeps_friction():
    arm = inertial.Mechanism.builtin("puma560", rotors="none")
    truths = [0.1, 0.5, 1.3]
    robots = []
    rows = []
    for k, viscous in enumerate(truths):
        log = motion(arm, 1500, seed=k)
        q, dq, ddq, tau = (stacked(log, arm, key) for key in ("q", "dq", "ddq", "tau"))
        tau = tau + (viscous - 0.05) * dq
        summary = inertial.Summary(arm, friction="viscous", offset="no", coupling="none")
        robots.append(summary.add_arrays(q, dq, ddq, tau))
        rows.append((arm.regressors(q, dq, ddq), dq, tau))
    fleet = inertial.identify_fleet(robots, estimator="ols")
    for robot, viscous in zip(fleet.robots, truths, strict=True):
        for joint in robot.joints:
            # Torque noise of 0.01 N m with 1500 samples gives errors of some 1e-4.
            assert abs(joint.viscous - viscous) < 5e-3
    # Equivalent large least-squares problem with common base columns and a block of friction for each robot.
    names = [p.name for p in fleet.common.base_parameters]
    pick = [arm.parameter_names.index(n) for n in names]
    blocks, n = [], arm.nv
    for k, (y, dq, _) in enumerate(rows):
        friction = np.zeros((*dq.shape, 3 * n))
        friction[:, range(n), range(n * k, n * k + n)] = dq
        blocks.append(np.concatenate([y[:, :, pick], friction], axis=2).reshape(-1, len(pick) + 3 * n))
    solution = np.linalg.lstsq(np.concatenate(blocks), np.concatenate([r[2].ravel() for r in rows]), rcond=None)[0]
    assert np.allclose(values(fleet.common), solution[: len(pick)], rtol=0, atol=1e-8)
    own = [joint.viscous for robot in fleet.robots for joint in robot.joints]
    assert np.allclose(own, solution[len(pick) :], rtol=0, atol=1e-8)
    with pytest.raises(inertial.Error, match="no robots"):
        inertial.identify_fleet([])
    frame = fleet.to_pandas()
    assert list(frame.columns) == ["robot", "name", "viscous", "rms", "relative_rms"] and len(frame) == 3 * n
    assert frame.viscous.tolist() == own


def test_fleets_write_the_common_model(tmp_path):
    robot = inertial.Mechanism.builtin("planar-2r")
    motion = inertial.design(robot, duration=4, starts=1, iterations=3)
    logs = [inertial.simulate(robot, motion, noise={"tau": 0.02}, seed=seed) for seed in range(3)]
    robots = [inertial.Summary(robot, friction="viscous", coupling="none").add(log) for log in logs]
    fleet = inertial.identify_fleet(robots, out=tmp_path / "common.toml")
    written = inertial.Mechanism.from_file(tmp_path / "common.toml")
    for body, checked in zip(fleet.common.bodies, inertial.check(written).bodies, strict=True):
        assert checked.mass == pytest.approx(body.mass, rel=1e-12)
    # The written model has the common inertias; its friction is unchanged.
    assert inertial.validate(written, logs).relative_rms < 0.01
    assert fleet.notes[0].startswith("robot 0: table 1: ") and any(n.startswith("robot 2: ") for n in fleet.notes)
    for name in ("report", "plots"):
        with pytest.raises(TypeError, match=f"{name}=: not available for a fleet"):
            inertial.identify_fleet(robots, **{name: tmp_path / name})
    with pytest.raises(TypeError, match="holdout=: give it when the summaries are made"):
        inertial.identify_fleet(robots, holdout=0.3)


def test_robots_of_a_fleet_carry_payloads_of_their_own():
    bare = inertial.Mechanism.builtin("puma560", rotors="none")
    robots, masses = [], [0.0, 1.5, 0.4]
    for k, mass in enumerate(masses):
        log = motion(bare, 1500, seed=k)
        q, dq, ddq, tau = (stacked(log, bare, key) for key in ("q", "dq", "ddq", "tau"))
        # A ball on the last link, 0.1 m from its origin; it has the regressor columns of that link.
        ball = mass * np.array([1, 0, 0, 0.1, 0.012, 0, 0, 0.012, 0, 0.002])
        last = [bare.parameter_names.index(f"link6.{p}") for p in "m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz".split()]
        tau = tau + bare.regressors(q, dq, ddq)[:, :, last] @ ball
        robots.append(inertial.Summary(bare, friction="viscous", coupling="none").add_arrays(q, dq, ddq, tau))
    fleet = inertial.identify_fleet(robots, payload="link6", carrying=[m > 0 for m in masses])
    assert fleet.robots[0].payload is None
    assert all(body.consistent for body in fleet.common.bodies)
    for robot, mass in zip(fleet.robots[1:], masses[1:], strict=True):
        assert robot.payload.body.consistent
        by_name = {p.name: p for p in robot.payload.base_parameters}
        # Only `hz` is compared here; the Rust tests check combinations that contain the mass.
        assert abs(by_name["payload.hz"].value - 0.1 * mass) < 6 * by_name["payload.hz"].std_error
        assert "payload of" in str(robot.payload)
    with pytest.raises(inertial.Error, match="every robot carries a payload"):
        inertial.identify_fleet(robots, payload="link6", carrying=[True] * 3)
    with pytest.raises(inertial.Error, match="both or neither"):
        inertial.identify_fleet(robots, payload="link6")
    with pytest.raises(inertial.Error, match="no link hand"):
        inertial.identify_fleet(robots, payload="hand", carrying=[False, True, True])


#: Number of logs of the cluster tests; summaries are merged in three levels.
LOGS = 65


@pytest.fixture(scope="module")
def many(tmp_path_factory, arm):
    """Writes many short logs and returns their paths."""
    folder = tmp_path_factory.mktemp("logs")
    paths = []
    for k in range(LOGS):
        paths.append(str(folder / f"log{k}.parquet"))
        log = motion(arm, 500, seed=k)
        write_parquet(paths[-1], log)
    return paths


def test_summaries_add_up_and_are_saved(tmp_path, arm, log):
    one = inertial.Summary(arm, friction="viscous").add(log)
    other = inertial.Summary(arm, friction="viscous").add(motion(arm, 700, seed=3))
    both = sum([one, other])
    assert one.samples + other.samples == both.samples and (one + other).to_json() == both.to_json()
    assert one.samples == inertial.Summary(arm, friction="viscous").add(log).samples, "a summary has changed"
    with pytest.raises(TypeError):
        one + 3
    both.save(tmp_path / "both.summary", diagnostics=True)
    again = inertial.load(tmp_path / "both.summary")
    assert again.to_json() == both.to_json() and again.notes == both.notes
    assert again.identify().to_dict() == both.identify().to_dict()
    # In place of a log, the file is read as one of the program's summaries.
    as_log = inertial.identify(arm, tmp_path / "both.summary", friction="viscous")
    assert np.array_equal(values(as_log), values(both.identify()))
    # Without diagnostics, the estimate is the same and the size is less than a tenth.
    small = inertial.Summary.from_bytes(both.to_bytes())
    assert 10 * len(both.to_bytes()) < len(both.to_bytes(diagnostics=True))
    given = dict(friction="viscous", offset=False, rotors="none", coupling="none")
    short = inertial.Summary(arm, **given).add(log)
    assert len(short.to_bytes()) < 60_000
    found, full = small.identify(estimator="wls"), both.identify(estimator="wls")
    assert np.array_equal(values(found), values(full))
    # Only the score of each block is stored, not its information matrix; standard errors differ by the weight of one of sixteen blocks.
    assert np.allclose([p.std_error for p in found.base_parameters], [p.std_error for p in full.base_parameters], rtol=0.3)
    assert found.fit[0].rms == full.fit[0].rms and found.fit[0].durbin_watson is None
    for damage in (b"", b"inertial", both.to_bytes()[:-9], b"x" * 100):
        (tmp_path / "bad").write_bytes(damage)
        with pytest.raises(inertial.LogError, match="bad: "):
            inertial.Summary.load(tmp_path / "bad")


@pytest.fixture
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as local, distributed.Client(local) as client:
        yield client


def test_a_cluster_gives_the_result_of_a_single_machine(arm, many, client):
    from inertial import distributed as cluster

    assert LOGS > cluster.BRANCHES**2
    alone = inertial.identify(arm, many, friction="viscous", decimate=2)
    told = []
    victim = client.scheduler_info()["workers"]
    pid = client.run(lambda: __import__("os").getpid())[next(iter(victim))]

    def progress(done, total):
        if not told:
            # Kill one of the two workers while logs are left.
            __import__("os").kill(pid, 9)
        told.append((done, total))

    paths = [f"file://{many[0]}", *many[1:]]
    together = cluster.identify(arm, paths, client, friction="viscous", decimate=2, progress=progress)
    assert told[-1][1] == LOGS
    assert together.samples == alone.samples
    assert np.allclose(values(together), values(alone), rtol=0, atol=1e-10 * np.abs(values(alone)).max())
    for key in ("mass", "com", "inertia"):
        ours, theirs = (np.array([numbers(body[key]) for body in r["bodies"]]) for r in (together, alone))
        assert np.allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max()), key
    # Notes on the logs are returned with the given names of the logs.
    assert together.notes[:4] == [note.replace(many[0], paths[0]) for note in alone.notes[:4]]
    assert sum(len(re.findall("more notes", note)) for note in together.notes) == 1


def test_a_cluster_reports_errors(tmp_path, arm, many, client, capsys):
    from inertial import distributed as cluster

    one = cluster.identify(arm, many[0], client, progress=True)
    alone = inertial.identify(arm, many[0])
    # Deviations need the samples, which a summary does not contain.
    expected = {key: value for key, value in alone.items() if key != "deviations"}
    at = expected["warning_codes"].index("not-diagnosed")
    for key in ("warnings", "warning_codes"):
        expected[key] = [value for k, value in enumerate(expected[key]) if k != at]
    assert one.to_dict() == expected
    assert "summaries: 1 of 1 logs, done" in capsys.readouterr().err
    missing = tmp_path / "none.csv"
    with pytest.raises(FileNotFoundError):
        inertial.identify(arm, missing)
    (tmp_path / "bad.csv").write_text("t,q1\n0,0\n")
    bad = [str(missing), f"file://{missing}", f"file://{tmp_path}/bad.csv", "nowhere://x.csv"]
    with pytest.raises(inertial.errors.FailedLogs, match="4 of 5 logs cannot be used") as error:
        cluster.identify(arm, [many[0], *bad], client, retries=0)
    assert list(error.value.failures) == bad
    assert all(message.startswith(f"{path}: ") for path, message in error.value.failures.items())
    skipped = cluster.identify(arm, [many[0], *bad], client, retries=0, on_error="skip")
    assert skipped["base_parameters"] == one["base_parameters"]
    assert [note for note in skipped.notes if note.startswith("left out: ")] == [
        f"left out: {error.value.failures[path]}" for path in bad
    ]
    with pytest.raises(inertial.LogError, match=f"^file://{tmp_path}/bad.csv: "):
        cluster.identify(arm, f"file://{tmp_path}/bad.csv", client, retries=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'fricton'; did you mean 'friction'"):
        cluster.identify(arm, many, client, fricton="viscous")
    with pytest.raises(TypeError, match="summary_out=: not on a cluster"):
        cluster.identify(arm, many, client, summary_out="s")
    with pytest.raises(inertial.Error, match="no logs"):
        cluster.identify(arm, [], client)
    with pytest.raises(FileNotFoundError, match="no file matches"):
        cluster.identify(arm, str(tmp_path / "none*.csv"), client)


def test_a_cluster_continues_from_a_checkpoint_and_holds_out(tmp_path, arm, many, client):
    from inertial import distributed as cluster

    folder = many[0].rpartition("/")[0]
    names = sorted(many[:10])
    found = cluster.identify(arm, f"{folder}/log[0-9].parquet", client, friction="viscous", checkpoint=tmp_path)
    assert len(list(tmp_path.iterdir())) == 10
    for path in tmp_path.iterdir():
        assert inertial.Summary.load(path).samples > 0
    again = cluster.identify(arm, names, client, friction="viscous", checkpoint=tmp_path)
    assert again.to_dict() == found.to_dict()
    held = cluster.identify(arm, names, client, friction="viscous", coupling="none", holdout=0.3)
    alone = inertial.identify(arm, names[:7], validate=names[7:], friction="viscous", coupling="none")
    # The order of merging changes rounding errors.
    assert held.validation_relative_rms == pytest.approx(alone.validation_relative_rms, rel=1e-9)


def test_progress_estimates_the_remaining_time(capsys, monkeypatch):
    from inertial import _progress

    # Without a terminal, progress is printed only on request.
    assert _progress.shown(None, "summaries") is None and _progress.shown(False, "summaries") is None
    times = iter([0.0, 10.0, 700.0])
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(times))
    line = _progress.shown(True, "summaries", "logs")
    line(1, 4)
    line(2, 400)
    said = capsys.readouterr().err.split("\r")
    assert said[1].strip() == "summaries: 1 of 4 logs, about 30 s left"
    assert said[2].strip() == "summaries: 2 of 400 logs, about 38.7 h left"


def test_flips_are_refused(arm, log):
    """A summary with a changed bit is refused because of its checksum."""
    whole = inertial.Summary(arm).add(log).to_bytes()
    rng = np.random.default_rng(5)
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        with pytest.raises((inertial.Error, ValueError)):
            inertial.Summary.from_bytes(bytes(damaged))


def test_a_log_that_counts_twice_is_noted(arm, log):
    once = inertial.Summary(arm).add(log)
    assert not any("share rows" in note for note in once.identify().notes)
    assert any("share rows" in note for note in (once + once).identify().notes)
