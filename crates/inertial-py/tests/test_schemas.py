"""Tests that all result objects and built-in models follow the published schemas."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from conftest import REPOSITORY, program

import inertial

jsonschema = pytest.importorskip("jsonschema")

FOLDER = REPOSITORY / "docs" / "schema"
SCHEMAS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
BUILTIN = [
    *("puma560", "scara", "cheetah-leg", "quadruped", "arm7", "planar-2r", "four-bar", "2rru-1rrs", "2prs-1psr"),
    *("space-dual-arm", "space-dual-arm-offset"),
]  # fmt: skip


def objects(schema):
    """Yields every part of a schema that has fields."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def closed(schema: dict) -> dict:
    """Returns a copy of a schema that forbids additional fields."""
    copy = json.loads(json.dumps(schema))
    for part in objects(copy):
        part["additionalProperties"] = False
    return copy


CLOSED = {name: closed(schema) for name, schema in SCHEMAS.items()}


def follows(text: str | dict) -> None:
    """Validates an object against the schema that it names, as published and without additional fields."""
    data = json.loads(text) if isinstance(text, str) else text
    name = re.fullmatch(r"inertial/([\w-]+)/[0-9]+", data["schema"])[1]
    for schema in (SCHEMAS[name], CLOSED[name]):
        jsonschema.Draft202012Validator(schema).validate(data)


def test_schemas_are_schemas_and_stand_alone():
    for name, schema in SCHEMAS.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["$id"].startswith(f"urn:inertial:{name}:")
        # The schema of summaries has its own version.
        version = 3 if name == "summary" else 1
        assert schema["properties"]["schema"]["const"] == f"inertial/{name}/{version}"
        for part in objects(schema):
            for field, content in part["properties"].items():
                assert content.get("description"), f"{name}: {field} has no description"
    # Embedded schemas agree with the published ones, which may have additional fields (streams and momentum).
    for name, other in (("fleet", "identification"), ("design", "trajectory")):
        inner, outer = SCHEMAS[name]["$defs"][other.capitalize()], SCHEMAS[other]
        assert {**outer["properties"], **inner["properties"]} == outer["properties"], (name, other)
        assert set(outer["required"]) <= set(inner["required"])


@pytest.mark.parametrize("name", BUILTIN)
def test_models(name):
    for command in ("analyze", "check"):
        follows(program(command, f"builtin:{name}", "--json").stdout)
    folder = REPOSITORY / "crates/inertial/src/mechanism/builtin"
    text = (folder / f"{name}.toml").read_text(encoding="utf-8")
    follows({"schema": "inertial/mechanism/1", **tomllib.loads(text)})


def test_several_models():
    follows(program("check", "builtin:puma560", "builtin:arm7", "--json").stdout)
    with pytest.raises(jsonschema.ValidationError):
        follows({"schema": "inertial/check/1", "consistent": True})


def test_bodies_that_cannot_exist(tmp_path):
    text = (REPOSITORY / "crates/inertial/src/mechanism/builtin/planar-2r.toml").read_text(encoding="utf-8")
    impossible = re.sub(r"izz = [0-9.]+", "izz = 1e3", text)
    assert impossible != text
    (tmp_path / "robot.toml").write_text(impossible, encoding="utf-8")
    said = program("check", str(tmp_path / "robot.toml"), "--json").stdout
    assert not json.loads(said)["consistent"]
    follows(said)


def test_analyses():
    follows(program("analyze", "builtin:cheetah-leg", "--compare", "floating", "--json").stdout)
    follows(program("analyze", "builtin:puma560", "--static", "--json").stdout)


@pytest.mark.parametrize("name", ["slow-motion", "leg-on-bench", "space-robot"])
def test_studies(name):
    # The published motion alone takes seconds; designs of other motions take longer.
    own = ("--published",) if name == "space-robot" else ()
    said = program("demo", name, *own, "--json")
    assert said.returncode == 0, said.stderr
    follows(said.stdout)


@pytest.mark.parametrize("family", ["fourier", "spline", "velocity", "cycloid", "quintic"])
def test_trajectories(family, tmp_path):
    files = [tmp_path / "motion.json", tmp_path / "motion.toml"]
    outs = [part for file in files for part in ("--out", str(file))]
    made = program(
        *("design", "builtin:planar-2r", "--duration", "4", "--starts", "1", "--iterations", "3"),
        *("--trajectory", family, "--json", *outs),
    )
    assert made.returncode == 0, made.stderr
    follows(made.stdout)
    stored = json.loads(files[0].read_text(encoding="utf-8"))
    follows(stored)
    assert stored == tomllib.loads(files[1].read_text(encoding="utf-8")) == json.loads(made.stdout)["trajectory"]
    # Written files can be read.
    for file in files:
        read = program("simulate", "builtin:planar-2r", str(file), "--ignore-limits", "--json")
        assert read.returncode == 0, read.stderr
        follows(read.stdout)
    with pytest.raises(jsonschema.ValidationError):
        follows({**stored, "basis": {**stored["basis"], "type": "polynomial"}})


def test_free_flight(tmp_path):
    motion, log = tmp_path / "motion.json", tmp_path / "flight.csv"
    noise = ("--measured", "momentum", "--noise", "dq=5e-5,base.v=5e-5,base.w=8e-5")
    robot = "builtin:space-dual-arm"
    short = ("--duration", "20", "--rate", "10", "--starts", "1", "--iterations", "2")
    follows(program("design", robot, *noise, *short, "--out", str(motion), "--json").stdout)
    follows(motion.read_text(encoding="utf-8"))
    follows(program("simulate", robot, str(motion), *noise, "--rate", "10", "--out", str(log), "--json").stdout)
    for estimator in ("eiv", "ols", "lmi"):
        found = program("identify", robot, str(log), *noise, "--estimator", estimator, "--json")
        assert found.returncode == 0, found.stderr
        follows(found.stdout)


def test_studies():
    ranks = inertial.studies.sampled_rank(samples=500)
    follows(ranks.to_dict())
    assert ranks.rank == 25 and "sampled-rank" in str(ranks)
    follows(inertial.studies.leg_on_bench().to_dict())
    slow = inertial.studies.slow_motion()
    follows(slow.to_dict())
    assert slow.to_dict() == json.loads(program("demo", "slow-motion", "--json").stdout)
    follows(inertial.studies.space_robot(designs=False).to_dict())


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


#: Types of result objects; the types of their parts follow from them.
KINDS = {
    "analysis": inertial.Analysis,
    "check": inertial.Check,
    "design": inertial.Design,
    "simulation": inertial.Simulation,
    "identification": inertial.Identification,
    "validation": inertial.Validation,
    "fleet": inertial.Fleet,
}


def test_types_name_every_entry_and_what_may_be_absent():
    absent: dict[type, dict[str, bool]] = {}
    for name, kind in KINDS.items():
        schema = SCHEMAS[name]
        if name == "check":
            # The package checks one model at a time.
            one, several = (choice["required"] for choice in schema["oneOf"])
            entries = {key: entry for key, entry in schema["properties"].items() if key not in several}
            schema = {**schema, "properties": entries, "required": [*schema["required"], *one]}
        compare(schema, kind, schema, absent)
    # A type is used by several schemas; an entry is optional if it is optional in one of them.
    for kind, entries in absent.items():
        told = annotations(kind)
        for key, may in entries.items():
            assert may == ("None" in told[key]), (kind, key, told[key])


def annotations(kind: type) -> dict[str, str]:
    """Returns the entries of a type, including inherited ones."""
    return {key: text for base in kind.__mro__ for key, text in getattr(base, "__annotations__", {}).items()}


def resolved(entry: dict, schema: dict) -> dict:
    """Resolves a reference of an entry to a part of its schema or to the schema of identifications."""
    place, _, path = entry.get("$ref", "").partition("#")
    if "$ref" not in entry:
        return entry
    part = SCHEMAS["identification"] if place else schema
    for step in path.split("/")[1:]:
        part = part[step]
    return part


def compare(schema: dict, kind: type, whole: dict, absent: dict[type, dict[str, bool]]) -> None:
    told, own = annotations(kind), absent.setdefault(kind, {})
    for key, entry in schema["properties"].items():
        # Some entries are properties that return arrays or objects.
        if key == "schema" or isinstance(getattr(kind, key, None), property):
            continue
        assert key in told, (kind, key)
        own[key] = own.get(key, False) or key not in schema["required"] or "null" in entry.get("type", [])
        item = entry.get("items", entry)
        if key in kind._parts:
            compare(resolved(item, whole), kind._parts[key], whole, absent)


def test_invalid_objects_are_refused():
    data = inertial.analyze("builtin:planar-2r").to_dict()
    with pytest.raises(jsonschema.ValidationError):
        follows({**data, "rank": "six"})
    with pytest.raises(jsonschema.ValidationError):
        follows({k: v for k, v in data.items() if k != "certificate"})


def test_examples_of_the_guide():
    pages = [REPOSITORY / "README.md", REPOSITORY / "crates/inertial-py/README.md", *(REPOSITORY / "docs").glob("*.md")]
    checked = 0
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```json\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
            example = json.loads(block)
            # Fragments are marked as ```json fragment and are not checked.
            assert "schema" in example, f"{page.name}: the example names no schema: {block}"
            follows(example)
            checked += 1
    assert checked > 0


#: Replacements of a number in an input that cause divisions by zero, overflows and missing results.
HOSTILE = ("0", "-0.0", "1e-320", "1e300", "-1e49", "9e49", "NaN", "", "1e-9")


@pytest.mark.parametrize("value", HOSTILE)
def test_results_of_hostile_logs(tmp_path, value):
    """Results of logs with degenerate columns and cells follow the schema: absent values are optional there."""
    lines = (REPOSITORY / "fuzz/seeds/csv/comma.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines]
    log = tmp_path / "log.csv"
    answered = 0
    for column in range(1, len(rows[0])):
        for stride in (1, 7):
            changed = [[value if k == column and i % stride == 0 else x for k, x in enumerate(row)] for i, row in enumerate(rows[1:])]
            log.write_text("\n".join(",".join(row) for row in [rows[0], *changed]) + "\n", encoding="utf-8")
            for command in (("identify",), ("identify", "--estimator", "wls", "--friction", "none"), ("validate", "--threshold", "0.1")):
                done = program(command[0], "builtin:planar-2r", str(log), *command[1:], "--trust-units", "--json")
                assert done.returncode in (0, 1, 2), done.stderr
                if done.stdout:
                    follows(strict(done.stdout))
                    answered += 1
    # Logs with the other values may all be refused.
    assert answered > 0 or value not in ("0", "1e-320", "1e-9")


@pytest.mark.parametrize("value", HOSTILE)
def test_results_of_hostile_models(tmp_path, value):
    for seed in ("mechanism/dh.toml", "urdf/arm.urdf", "mjcf/walker.xml"):
        text = (REPOSITORY / "fuzz/seeds" / seed).read_text(encoding="utf-8")
        for place in list(re.finditer(r"(?<![\w.])-?\d+\.?\d*", text))[::3]:
            model = tmp_path / "model"
            model.write_text(text[: place.start()] + value + text[place.end() :], encoding="utf-8")
            for command in ("check", "analyze"):
                done = program(command, str(model), "--json")
                assert done.returncode in (0, 1, 2), done.stderr
                if done.stdout:
                    follows(strict(done.stdout))


def strict(text: str) -> dict:
    """Parses JSON and rejects NaN and infinities, which Python accepts by default."""
    return json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} in the JSON"))
