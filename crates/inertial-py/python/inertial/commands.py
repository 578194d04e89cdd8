"""The program's commands as functions."""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._arguments import Call
from ._checks import with_options
from ._files import existing, path_of
from ._inertial import read_log
from .errors import LogError, OptionError
from .fitted import FittedModel, fitted
from .options import (
    AnalyzeOptions,
    CheckOptions,
    DesignOptions,
    IdentifyOptions,
    SimulateOptions,
    ValidateOptions,
)
from .results import Analysis, Check, Design, Identification, Simulation, Validation

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from ._arguments import Log, Model


def _result(call: Call, arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    _, output, notes = call.run([*arguments, "--json"])
    return json.loads(output), notes


@with_options("check", CheckOptions)
def check(model: Model, **options: Unpack[CheckOptions]) -> Check:
    """Can these inertial parameters belong to physical bodies?"""
    with Call() as call:
        return Check(*_result(call, ["check", *call.model(model, options)]))


@with_options("analyze", AnalyzeOptions)
def analyze(model: Model, **options: Unpack[AnalyzeOptions]) -> Analysis:
    """Which parameters can any experiment ever reveal, and in which combinations?

    ``out`` takes what the program would print: tables for people, or what ``csv``, ``latex`` or ``explain`` ask for.
    """
    with Call() as call:
        given: dict[str, Any] = dict(options)
        printed = {name: given.pop(name, None) for name in ("out", "csv", "latex", "explain")}
        shapes = [name for name in ("csv", "latex", "explain") if printed[name]]
        if shapes and printed["out"] is None:
            raise OptionError(f"{shapes[0]}= says what is written: give out= too")
        found = Analysis(*_result(call, ["analyze", *call.model(model, given)]))
        if printed["out"] is not None:
            call.run(["analyze", *call.model(model, {**given, **printed, "report": None, "plots": None})])
        return found


@with_options("design", DesignOptions)
def design(model: Model, **options: Unpack[DesignOptions]) -> Design:
    """Which motion reveals the parameters best, within the joint limits?

    ``out`` is a file or several; ``prior_summary`` a file or a :class:`Summary`; ``robust`` a model or several.
    """
    with Call() as call:
        given: dict[str, Any] = dict(options)
        earlier = given.pop("prior_summary", None)
        robust = given.pop("robust", None)
        arguments = ["design", *call.model(model, given)]
        if earlier is not None:
            path = earlier
            if not isinstance(earlier, (str, os.PathLike)):
                path = call.file("earlier.summary")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(earlier.to_json())
            arguments.append(f"--prior-summary={os.fspath(path)}")
        several = isinstance(robust, Iterable) and not isinstance(robust, (str, os.PathLike))
        for other in robust if several else [robust] if robust is not None else []:
            arguments += ["--robust", call.named(other)]
        return Design(*_result(call, arguments))


@with_options("simulate", SimulateOptions)
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
            path = existing(path_of(trajectory, "trajectory", "a path"))
        else:
            path = _csv(call, trajectory)
        target = call.file("log.csv") if out is None else os.fspath(out)
        arguments = ["simulate", *call.model(model, given), path, f"--out={target}"]
        data, notes = _result(call, arguments)
        return Simulation(data, notes, read_log(target))


def _csv(call: Call, table: Any) -> str:
    names, columns = call.columns(table)
    if len({len(column) for column in columns}) > 1:
        counts = ", ".join(f"{name} {len(column)}" for name, column in zip(names, columns, strict=True))
        raise LogError(f"the trajectory's columns have different lengths: {counts}")
    path = call.file("trajectory.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(names) + "\n")
        for row in zip(*(column.tolist() for column in columns), strict=True):
            file.write(",".join(map(repr, row)) + "\n")
    return path


@with_options("identify", IdentifyOptions)
def identify(model: Model, logs: Log | Iterable[Log], **options: Unpack[IdentifyOptions]) -> Identification:
    """What are the parameters, given what was measured?

    Logs are files (CSV, Parquet, MCAP; patterns like ``logs/*.csv`` and addresses like ``s3://bucket/log.csv`` too), tables (a
    mapping of columns or of arrays ``q``, ``dq``, ``ddq``, ``tau``; a pandas or polars frame, an Arrow table), what
    :func:`simulate` gave, or summaries; so are those of ``validate``, ``unloaded`` and ``loaded``.
    """
    with Call() as call:
        given: dict[str, Any] = dict(options)
        named = call.logs(logs, model)
        for name in ("validate", "unloaded", "loaded"):
            others = given.pop(name, None)
            if others is not None:
                named += [f"--{name}", *call.logs(others, model)]
        # The summary makes the result a model that can be compared with other logs.
        kept = call.file("kept") if _has_summary(given) else None
        if kept is not None:
            named.append(f"--summary-out={kept}")
        data, notes = _result(call, ["identify", *call.model(model, given), *named])
        summary = None
        if kept is not None:
            with open(kept, "rb") as file:
                summary = zlib.compress(file.read(), 1)
    return Identification(data, notes, fitted(data, model, options, summary))


def _has_summary(options: Mapping[str, Any]) -> bool:
    """Whether an identification can keep the summary of its logs."""
    other = any(options.get(name) is not None for name in ("payload", "gains", "known_payload", "summary_out"))
    return not other and options.get("measured") != "momentum" and options.get("estimator") != "irls"


@with_options("validate", ValidateOptions)
def validate(model: Model, logs: Log | Iterable[Log], **options: Unpack[ValidateOptions]) -> Validation:
    """How well does this model predict what was measured?

    With ``threshold`` the result is true where the residual is not above it, and its ``passed`` says so. A result of
    :func:`identify` predicts with everything that was identified, and logs are prepared as they were for it.
    """
    threshold = options.get("threshold")
    if isinstance(model, (Identification, FittedModel)):
        found = (model.model if isinstance(model, Identification) else model).residuals(logs)
        return Validation(found.to_dict(), found.notes, None if threshold is None else found.relative_rms <= threshold)
    with Call() as call:
        yes, output, notes = call.run(["validate", *call.model(model, options), *call.logs(logs, model), "--json"])
        return Validation(json.loads(output), notes, yes if threshold is not None else None)
