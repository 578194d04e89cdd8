"""The program's commands as functions."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._arguments import Call, flags
from ._inertial import read_log
from .results import Analysis, Check, Design, Identification, Simulation, Validation

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from ._arguments import Log, Model
    from .options import (
        AnalyzeOptions,
        CheckOptions,
        DesignOptions,
        IdentifyOptions,
        SimulateOptions,
        ValidateOptions,
    )


def _result(call: Call, arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    _, output, notes = call.run([*arguments, "--json"])
    return json.loads(output), notes


def check(model: Model, **options: Unpack[CheckOptions]) -> Check:
    """Can these inertial parameters belong to physical bodies?"""
    with Call() as call:
        return Check(*_result(call, ["check", *call.model(model), *flags(options)]))


def analyze(model: Model, **options: Unpack[AnalyzeOptions]) -> Analysis:
    """Which parameters can any experiment ever reveal, and in which combinations?"""
    with Call() as call:
        return Analysis(*_result(call, ["analyze", *call.model(model), *flags(options)]))


def design(model: Model, **options: Unpack[DesignOptions]) -> Design:
    """Which motion reveals the parameters best, within the joint limits?"""
    with Call() as call:
        given: dict[str, Any] = dict(options)
        earlier = given.pop("prior_summary", None)
        robust = given.pop("robust", None)
        arguments = ["design", *call.model(model), *flags(given)]
        if earlier is not None:
            path = earlier
            if not isinstance(earlier, (str, os.PathLike)):
                path = call.file("earlier.summary")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(earlier.to_json())
            arguments.append(f"--prior-summary={os.fspath(path)}")
        for other in [robust] if isinstance(robust, (str, os.PathLike)) else robust or []:
            arguments += ["--robust", *call.model(other)[:1]]
        return Design(*_result(call, arguments))


def simulate(
    model: Model, trajectory: str | os.PathLike[str] | Design | Mapping[str, Any] | Any, **options: Unpack[SimulateOptions]
) -> Simulation:
    """What would the sensors read during that motion?

    The trajectory is a file, what :func:`design` gave, or a table with the columns of a trajectory file.
    """
    with Call() as call:
        given: dict[str, Any] = dict(options)
        out = given.pop("out", None)
        if isinstance(trajectory, Design):
            path = call.file("trajectory.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(trajectory.trajectory, file)
        elif isinstance(trajectory, (str, os.PathLike)):
            path = os.fspath(trajectory)
        else:
            path = _csv(call, trajectory)
        target = call.file("log.csv") if out is None else os.fspath(out)
        arguments = ["simulate", *call.model(model), path, *flags(given), f"--out={target}"]
        data, notes = _result(call, arguments)
        return Simulation(data, notes, read_log(target))


def _csv(call: Call, table: Any) -> str:
    from .frames import columns_of

    names, columns = columns_of(table)
    path = call.file("trajectory.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(names) + "\n")
        for row in zip(*(column.tolist() for column in columns), strict=True):
            file.write(",".join(map(repr, row)) + "\n")
    return path


def identify(model: Model, logs: Log | Iterable[Log], **options: Unpack[IdentifyOptions]) -> Identification:
    """What are the parameters, given what was measured?

    Logs are files (CSV, Parquet, MCAP), tables (a mapping of columns, a pandas or polars frame, a PyArrow table) or
    summaries.
    """
    with Call() as call:
        given: dict[str, Any] = dict(options)
        further: list[str] = []
        for name in ("validate", "unloaded", "loaded"):
            others = given.pop(name, None)
            if others is not None:
                further += [f"--{name}", *call.logs(others)]
        arguments = ["identify", *call.model(model), *flags(given), *call.logs(logs), *further]
        return Identification(*_result(call, arguments))


def validate(model: Model, logs: Log | Iterable[Log], **options: Unpack[ValidateOptions]) -> Validation:
    """How well does this model predict what was measured?"""
    with Call() as call:
        return Validation(*_result(call, ["validate", *call.model(model), *flags(options), *call.logs(logs)]))
