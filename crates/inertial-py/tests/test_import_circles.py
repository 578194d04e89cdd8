"""The check of circles of imports, on small trees with known circles."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/import_circles.py"
spec = importlib.util.spec_from_file_location("import_circles", SCRIPT)
assert spec is not None and spec.loader is not None
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


RUST = {
    "lib.rs": "mod arm;\npub use arm::Link;",
    "arm/mod.rs": "mod joint;\nmod link;\npub use link::Link;\nuse joint::Joint;\nstruct Arm(Joint);",
    # Through the names that two module files re-export, and in a list of lists.
    "arm/joint.rs": "use crate::{Link, other::{self}};\npub struct Joint(Link, super::Arm);",
    "arm/link.rs": "pub struct Link;",
}


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("pub struct Link;", []),
        ("use super::joint::Joint;\npub struct Link(Box<Joint>);", [["arm/joint", "arm/link"]]),
        ("pub struct Link(Box<super::joint::Joint>);", [["arm/joint", "arm/link"]]),
        ("use super::*;\npub struct Link;", []),
        ("// use super::joint::Joint;\npub struct Link;\n#[cfg(test)]\nmod tests { use super::super::joint::Joint; }", []),
    ],
)
def test_rust(tmp_path: Path, link: str, found: list[list[str]]) -> None:
    imports = check.RustFiles(written(tmp_path, {**RUST, "arm/link.rs": link})).imports()
    assert [["/".join(name) for name in group] for group in check.circles(imports)] == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("x = 1", []),
        ("def f():\n    from .commands import run", [["body", "commands"]]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import commands", [["body", "commands"]]),
        ("import commands", []),
    ],
)
def test_python(tmp_path: Path, body: str, found: list[list[str]]) -> None:
    files = {
        "__init__.py": "from .commands import run",
        "commands.py": "from .results import Body\ndef run(): ...",
        "results/__init__.py": "from ..body import Body",
        "body.py": body,
    }
    imports = check.python_imports(written(tmp_path, files))
    assert [["/".join(name) for name in group] for group in check.circles(imports)] == found
