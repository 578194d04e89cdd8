"""Every result object and every built-in model follows the published schemas."""

from __future__ import annotations

import json
import pathlib
import re
import tomllib

import pytest
from conftest import REPOSITORY, motion, program

import inertial

jsonschema = pytest.importorskip("jsonschema")
referencing = pytest.importorskip("referencing")

FOLDER = REPOSITORY / "docs" / "schema"
BUILTIN = ["puma560", "scara", "cheetah-leg", "quadruped", "arm7", "planar-2r", "four-bar", "2rru-1rrs", "2prs-1psr"]


def follows(text: str | dict) -> None:
    """Checks an object against the schema that it names."""
    data = json.loads(text) if isinstance(text, str) else text
    name = re.fullmatch(r"inertial/(\w+)/1", data["schema"])[1]
    resources = [(p.name, referencing.Resource.from_contents(json.loads(p.read_text()))) for p in FOLDER.glob("*.json")]
    registry = referencing.Registry().with_resources(resources)
    schema = json.loads((FOLDER / f"{name}.json").read_text())
    # References are to files beside it.
    schema["$id"] = f"{name}.json"
    jsonschema.Draft202012Validator(schema, registry=registry).validate(data)


@pytest.mark.parametrize("name", BUILTIN)
def test_models(name):
    for command in ("analyze", "check"):
        follows(program(command, f"builtin:{name}", "--json").stdout)
    folder = REPOSITORY / "crates/inertial/src/mechanism/builtin"
    text = (folder / f"{name}.toml").read_text(encoding="utf-8")
    follows({"schema": "inertial/mechanism/1", **tomllib.loads(text)})


def test_results(tmp_path):
    robot = inertial.Mechanism.builtin("planar-2r")
    design = inertial.design(robot, duration=4, starts=1, iterations=3, friction="viscous")
    follows(design.to_dict())
    log = inertial.simulate(robot, design, noise={"tau": 0.01})
    follows(log.to_dict())
    follows(inertial.validate(robot, log.columns).to_dict())
    for options in (
        {"friction": "coulomb+viscous", "offset": True, "essential": True, "covariance": True, "holdout": 0.3},
        {"estimator": "ols", "friction": "stribeck"},
        {"payload": "link2"},
    ):
        follows(inertial.identify(robot, log.columns, **options).to_dict())
    summary = inertial.Summary(robot, coupling="none").add(log)
    follows(summary.to_json())
    follows(inertial.identify_fleet([summary, summary]).to_dict())
    follows(program("bench", "builtin:planar-2r", "--json").stdout)


#: Types of result objects; parts are found from them.
KINDS = {
    "analysis": inertial.Analysis,
    "check": inertial.Check,
    "design": inertial.Design,
    "simulation": inertial.Simulation,
    "identification": inertial.Identification,
    "validation": inertial.Validation,
    "fleet": inertial.Fleet,
}


@pytest.mark.parametrize("name", KINDS)
def test_types_name_every_entry_and_what_may_be_absent(name):
    compare(json.loads((FOLDER / f"{name}.json").read_text()), KINDS[name])


def compare(schema: dict, kind: type) -> None:
    told = {key: text for base in kind.__mro__ for key, text in getattr(base, "__annotations__", {}).items()}
    for key, entry in schema["properties"].items():
        if key == "schema":
            continue
        assert key in told, (kind, key)
        absent = key not in schema["required"] or "null" in entry.get("type", [])
        assert absent == ("None" in told[key]), (kind, key, told[key])
        part = entry.get("items", entry)
        if "properties" in part and key in kind._parts:
            compare(part, kind._parts[key])


def test_what_is_wrong_is_refused():
    data = inertial.analyze("builtin:planar-2r").to_dict()
    with pytest.raises(jsonschema.ValidationError):
        follows({**data, "rank": "six"})
    with pytest.raises(jsonschema.ValidationError):
        follows({k: v for k, v in data.items() if k != "certificate"})


def test_examples_of_the_guide():
    for page in (REPOSITORY / "docs").glob("*.md"):
        for block in re.findall(r"^```json\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL):
            json.loads(block)
    assert pathlib.Path(FOLDER / "analysis.json").exists()
