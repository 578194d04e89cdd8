"""Runs every code block of the README and the guide."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY, program

import inertial

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "crates/inertial-py/README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *REPOSITORY.glob("CONTRIBUTING.md"),
]
#: Lines that build the project or run its tests or benchmarks; they are not run.
BUILDING = re.compile(r"cargo |\.ci/|\./scripts/|scripts/|benches/|pip install|npm |mdbook |git |rustup |python -m venv|maturin ")


def blocks(language: str):
    """Yields the code blocks of a language with their locations."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            yield pytest.param(match[1], id=f"{page.relative_to(REPOSITORY)}:{line}")


@pytest.mark.parametrize("code", list(blocks("python")))
def test_python(code, tmp_path):
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


@pytest.fixture(scope="session")
def desk(tmp_path_factory) -> pathlib.Path:
    """Creates a folder with the program and the files that the commands of the guide use."""
    folder = tmp_path_factory.mktemp("desk")
    robot = (REPOSITORY / "testdata/models/planar-2r.urdf").read_text(encoding="utf-8")
    for name in ("robot.urdf", "my_robot.urdf", "arm.urdf"):
        (folder / name).write_text(robot, encoding="utf-8")
    made = program(
        "design", "builtin:planar-2r", "--duration=4", "--starts=1", "--iterations=3", f"--out={folder / 'motion.csv'}"
    )
    assert made.returncode == 0, made.stderr
    for k, name in enumerate(("log", "a", "b", "c", "monday", "tuesday", "validation", "other")):
        made = program(
            "simulate", "builtin:planar-2r", str(folder / "motion.csv"), "--noise=tau=0.01", f"--seed={k}",
            f"--out={folder / (name + '.csv')}",
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
    (folder / "bin").mkdir()
    command = os.environ.get("INERTIAL_PROGRAM") or f"{sys.executable} -m inertial"
    # Servers are stopped after three seconds.
    served = f'if [ "$1" = serve ]; then timeout --signal=INT 3 {command} "$@"; exit 0; fi'
    (folder / "bin/inertial").write_text(f'#!/bin/sh\n{served}\nexec {command} "$@"\n')
    (folder / "bin/inertial").chmod(0o755)
    return folder


def test_the_robot_of_the_guide_is_the_one_that_its_logs_are_of(desk):
    """The URDF has the same torques as the builtin model that simulated the logs."""
    ours, other = inertial.Mechanism.from_urdf(desk / "robot.urdf"), inertial.Mechanism.builtin("planar-2r")
    motion = np.random.default_rng(0).normal(size=(3, 20, 2))
    assert np.allclose(ours.rnea(*motion), other.rnea(*motion), rtol=0, atol=1e-12)


@pytest.mark.parametrize("code", list(blocks("sh")))
def test_commands(code, desk):
    lines = [line for line in code.splitlines() if not BUILDING.search(line)]
    if not any(line.strip() and not line.strip().startswith("#") for line in lines):
        pytest.skip("builds the project or runs its tests")
    environment = {**os.environ, "PATH": f"{desk / 'bin'}:{os.environ['PATH']}"}
    script = "set -e\n" + "\n".join(lines)
    said = subprocess.run(
        ["bash", "-c", script], cwd=desk, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert said.returncode == 0, f"{script}\n{said.stderr}"


@pytest.mark.parametrize("code", list(blocks("toml")))
def test_toml(code):
    import tomllib

    data = tomllib.loads(code)
    if str(data.get("schema", "")).startswith("inertial/mechanism"):
        inertial.Mechanism.from_string(code)


def test_links_lead_somewhere():
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_book_has_every_page():
    summary = REPOSITORY / "docs/SUMMARY.md"
    if not summary.exists():
        pytest.skip("no SUMMARY.md")
    listed = set(re.findall(r"\(([\w-]+\.md)\)", summary.read_text(encoding="utf-8")))
    assert {p.name for p in (REPOSITORY / "docs").glob("*.md")} - {"SUMMARY.md"} == listed
