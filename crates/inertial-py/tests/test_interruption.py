"""Tests that an interrupted command leaves the old or the new output, never an incomplete one."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest
from conftest import REPOSITORY, program

#: Total number of interruptions.
TIMES = 200


def command(*arguments: str) -> list[str]:
    named = os.environ.get("INERTIAL_PROGRAM")
    return [*([named] if named else [sys.executable, "-m", "inertial"]), *arguments]


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("interruption")
    text = (REPOSITORY / "crates/inertial/src/mechanism/builtin/planar-2r.toml").read_text(encoding="utf-8")
    (folder / "robot.toml").write_text(text, encoding="utf-8")
    for arguments in (
        ["design", "builtin:planar-2r", "--duration=4", "--starts=1", "--iterations=3", f"--out={folder / 'motion.csv'}"],
        ["simulate", "builtin:planar-2r", str(folder / "motion.csv"), "--rate=1000", f"--out={folder / 'log.csv'}"],
    ):
        made = program(*arguments)
        assert made.returncode == 0, made.stderr
    return folder


def calls(folder: pathlib.Path) -> dict[str, list[str]]:
    """Returns a command for each kind of output, by the name of the output."""
    motion, log, robot = (str(folder / name) for name in ("motion.csv", "log.csv", "robot.toml"))
    return {
        "identified.toml": ["identify", robot, log, "--json", "--out"],
        "found.summary": ["identify", robot, log, "--json", "--summary-out"],
        "simulated.csv": ["simulate", robot, motion, "--rate=2000", "--out"],
        "designed.csv": ["design", robot, "--duration=4", "--starts=1", "--iterations=3", "--out"],
        "page.html": ["analyze", robot, "--report"],
    }


def test_killed_at_random_times(desk):
    rng = random.Random(0)
    finished = 0
    outputs = calls(desk)
    for name, arguments in outputs.items():
        path = desk / name
        call = command(*arguments, str(path))
        start = time.monotonic()
        assert subprocess.run(call, capture_output=True, check=False).returncode == 0, name
        length = time.monotonic() - start
        new = path.read_bytes()
        for k in range(TIMES // len(outputs)):
            path.write_bytes(b"old")
            work = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0, 1.2 * length))
            work.send_signal(signal.SIGKILL if k % 2 else signal.SIGINT)
            work.wait()
            found = path.read_bytes()
            # An interrupted search writes its best motion so far, which differs but is complete.
            whole = found in (b"old", new) or (
                name == "designed.csv" and found.count(b"\n") == new.count(b"\n") and found.endswith(b"\n")
            )
            assert whole, f"{name}: {len(found)} of {len(new)} bytes"
            finished += found != b"old"
    # Some runs must have finished and some not, so that the interruptions covered the whole run.
    assert 0 < finished < TIMES


def test_a_full_disk(desk, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(small)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    try:
        for name, arguments in calls(desk).items():
            if name == "identified.toml":
                continue  # fits on the disk
            path = small / name
            path.write_bytes(b"old")
            said = subprocess.run(command(*arguments, str(path)), capture_output=True, text=True, check=False)
            if path.read_bytes() == b"old":
                assert said.returncode == 2 and len(said.stderr.strip().splitlines()) >= 1, name
                assert name in said.stderr.splitlines()[-1]
            else:
                assert said.returncode == 0
            assert [p.name for p in small.iterdir()] == [name], "a temporary file stayed"
            path.unlink()
    finally:
        subprocess.run(["umount", str(small)], check=True)
