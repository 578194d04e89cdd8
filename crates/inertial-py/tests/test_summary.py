"""Summaries: merged, pickled, on a cluster; fleets; streams."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from conftest import motion, stacked

import inertial


def values(result):
    return np.array([p.value for p in result.base_parameters])


def part(log, rows):
    return {name: column[rows] for name, column in log.items()}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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
    # Orthogonal factors merge with rounding only.
    assert np.allclose(values(found), values(whole), rtol=0, atol=1e-10 * np.abs(values(whole)).max())


def test_summary_of_a_log_is_that_of_identify(arm, log):
    found = inertial.identify(arm, log, friction="viscous", cutoff=10)
    assert inertial.Summary(arm, friction="viscous", cutoff=10).add(log).identify().to_dict() == found.to_dict()
    with pytest.raises(inertial.Error, match="different models or joint terms"):
        inertial.Summary(arm).merge(inertial.Summary(arm, offset=True))


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
        robots.append(inertial.Summary(arm, friction="viscous", coupling="none").add_arrays(q, dq, ddq, tau))
        rows.append((arm.regressors(q, dq, ddq), dq, tau))
    fleet = inertial.identify_fleet(robots, estimator="ols")
    for robot, viscous in zip(fleet.robots, truths, strict=True):
        for joint in robot.joints:
            # Torque noise of 0.01 N m on 1500 samples: errors of some 1e-4.
            assert abs(joint.viscous - viscous) < 5e-3
    # The same by one large least-squares problem: base columns in common, a block of friction for each robot.
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


def test_robots_of_a_fleet_carry_payloads_of_their_own():
    bare = inertial.Mechanism.builtin("puma560", rotors="none")
    robots, masses = [], [0.0, 1.5, 0.4]
    for k, mass in enumerate(masses):
        log = motion(bare, 1500, seed=k)
        q, dq, ddq, tau = (stacked(log, bare, key) for key in ("q", "dq", "ddq", "tau"))
        # A ball 0.1 m out on the last link: its columns are that link's.
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
        # The mass, where the motion shows it alone; else its combination is judged with its own error in the Rust tests.
        assert abs(by_name["payload.hz"].value - 0.1 * mass) < 6 * by_name["payload.hz"].std_error
        assert "payload of" in str(robot.payload)
    with pytest.raises(inertial.Error, match="carries nothing"):
        inertial.identify_fleet(robots, payload="link6", carrying=[True] * 3)
    with pytest.raises(inertial.Error, match="both or neither"):
        inertial.identify_fleet(robots, payload="link6")
    with pytest.raises(inertial.Error, match="no link hand"):
        inertial.identify_fleet(robots, payload="hand", carrying=[False, True, True])


def test_a_cluster_gives_the_single_machines_answer(tmp_path, arm):
    distributed = pytest.importorskip("distributed")
    from inertial import distributed as cluster

    paths = []
    for k in range(6):
        paths.append(str(tmp_path / f"log{k}.parquet"))
        log = motion(arm, 4000, seed=k)
        inertial._inertial.write_log(paths[-1], list(log), list(log.values()))
    alone = inertial.identify(arm, paths, friction="viscous")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as local, distributed.Client(local) as client:
        told = []
        victim = client.scheduler_info()["workers"]
        pid = client.run(lambda: __import__("os").getpid())[next(iter(victim))]

        def progress(done, total):
            if not told:
                # One of the two dies while logs are left.
                __import__("os").kill(pid, 9)
            told.append((done, total))

        paths[0] = f"file://{paths[0]}"
        together = cluster.identify(arm, paths, client, friction="viscous", progress=progress)
    assert told[-1][1] == 6
    assert together.samples == alone.samples
    assert np.allclose(values(together), values(alone), rtol=0, atol=1e-10 * np.abs(values(alone)).max())
    masses = [[b.mass for b in r.bodies] for r in (together, alone)]
    assert np.allclose(masses[0], masses[1], rtol=1e-8)
