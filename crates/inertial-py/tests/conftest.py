"""What the tests of the package share."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import inertial

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
#: Models and measured data beside the checkout, where they are.
SHARED = REPOSITORY.parent / "shared"


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the program: the one that INERTIAL_PROGRAM names, else the package's own."""
    named = os.environ.get("INERTIAL_PROGRAM")
    command = [named] if named else [sys.executable, "-m", "inertial"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


def write_parquet(path, log: dict[str, np.ndarray]) -> None:
    """Writes a log as a Parquet file."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(log), path)


def motion(robot: inertial.Mechanism, count: int, rate: float = 200.0, seed: int = 0) -> dict[str, np.ndarray]:
    """A log of a smooth motion of all joints with the torques that the model gives."""
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
    """The columns of a quantity side by side."""
    return np.stack([log[f"{key}.{name}"] for name in robot.coordinate_names], axis=1)


@pytest.fixture(scope="session")
def arm() -> inertial.Mechanism:
    """The arm that ships with the program."""
    return inertial.Mechanism.builtin("arm7")


@pytest.fixture(scope="session")
def log(arm: inertial.Mechanism) -> dict[str, np.ndarray]:
    """Its motion."""
    return motion(arm, 2000)
