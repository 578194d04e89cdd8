"""Fixtures and helpers of the tests."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import inertial

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
#: Folder of models and measured data next to the checkout; may be missing.
SHARED = REPOSITORY.parent / "shared"


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the program named by INERTIAL_PROGRAM, or the one of the package."""
    named = os.environ.get("INERTIAL_PROGRAM")
    command = [named] if named else [sys.executable, "-m", "inertial"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


def write_parquet(path, log: dict[str, np.ndarray]) -> None:
    """Writes a log as a Parquet file."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(log), path)


def motion(robot: inertial.Mechanism, count: int, rate: float = 200.0, seed: int = 0) -> dict[str, np.ndarray]:
    """Simulates a log of a smooth motion of all joints with the torques of the model."""
    rng = np.random.default_rng(seed)
    t = np.arange(count) / rate
    q, v, a = (np.zeros((count, robot.nv)) for _ in range(3))
    for _ in range(4):
        w = rng.uniform(0.5, 5.0, robot.nv)
        phase = rng.uniform(0, 6, robot.nv)
        size = rng.uniform(0.1, 0.4, robot.nv)
        angle = np.outer(t, w) + phase
        q += size * np.sin(angle)
        v += size * w * np.cos(angle)
        a -= size * w**2 * np.sin(angle)
    tau = robot.rnea(q, v, a) + 0.05 * v + rng.normal(scale=0.01, size=v.shape)
    out = {"t": t}
    for key, values in (("q", q), ("dq", v), ("ddq", a), ("tau", tau)):
        for k, name in enumerate(robot.coordinate_names):
            out[f"{key}.{name}"] = np.ascontiguousarray(values[:, k])
    return out


def stacked(log: dict[str, np.ndarray], robot: inertial.Mechanism, key: str) -> np.ndarray:
    """Returns the columns of a quantity as a matrix."""
    return np.stack([log[f"{key}.{name}"] for name in robot.coordinate_names], axis=1)


@pytest.fixture(scope="session")
def arm() -> inertial.Mechanism:
    """The builtin 7-axis arm."""
    return inertial.Mechanism.builtin("arm7")


@pytest.fixture(scope="session")
def log(arm: inertial.Mechanism) -> dict[str, np.ndarray]:
    """Simulated log of the builtin arm."""
    return motion(arm, 2000)
