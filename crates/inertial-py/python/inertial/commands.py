"""Functions for the jobs of the program."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _inertial
from ._call import Call
from ._checks import with_options
from ._files import existing, path_of
from .fitted import FittedModel, fitted
from .options import (
    AnalyzeOptions,
    CheckOptions,
    ColumnsOptions,
    DesignOptions,
    ExportOptions,
    IdentifyOptions,
    SimulateOptions,
    ValidateOptions,
)
from .results import Analysis, Check, Columns, Design, Export, Identification, Simulation, Validation

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from ._call import Log, Model
    from ._progress import Progress


@with_options("check", CheckOptions)
def check(model: Model, **options: Unpack[CheckOptions]) -> Check:
    """Checks whether the bodies of a model are physically consistent.

    A CSV file is a printed table: columns ``body, m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz``, one line per body. Each number
    represents all values that round to it.
    """
    if isinstance(model, (str, os.PathLike)) and os.fspath(model).lower().endswith(".csv"):
        others = sorted(set(options) - {"tolerance"})
        if others:
            raise TypeError(f"{others[0]}=: needs a model, but {os.fspath(model)} is a table")
        return Check(*_inertial.check_table(existing(os.fspath(model)), dict(options)))
    with Call("check", model, options) as call:
        return Check(*call.run(_inertial.check))


@with_options("analyze", AnalyzeOptions)
def analyze(model: Model, **options: Unpack[AnalyzeOptions]) -> Analysis:
    """Finds the parameters that experiments can determine, and in which combinations.

    ``out`` receives the output of the program: readable tables, or the format selected by ``csv``, ``latex`` or ``explain``.
    """
    with Call("analyze", model, options) as call:
        return Analysis(*call.run(_inertial.analyze))


@with_options("columns", ColumnsOptions)
def columns(
    log: str | os.PathLike[str], model: Model | None = None, **options: Unpack[ColumnsOptions]
) -> Columns:
    """Lists the columns of a log and their interpretation.

    With a model, columns are also recognized by the names of its joints, and ``missing`` describes the
    columns that the model requires and the log lacks. ``map`` is a column map in TOML to edit. Options of the model need a model.
    """
    # Without a model, any mechanism serves as a placeholder; its joint names are not used.
    with Call("columns", "builtin:planar-2r" if model is None else model, options) as call:
        call.given["log"] = call.logs(existing(path_of(log, "log", "a path")))[0]
        return Columns(*call.run(_inertial.columns, model is not None))


@with_options("design", DesignOptions)
def design(model: Model, *, progress: Progress = None, **options: Unpack[DesignOptions]) -> Design:
    """Designs a motion that determines the parameters best within the joint limits.

    ``out`` is one file or several; ``prior_summary`` is a file or a :class:`Summary`, or several; ``robust`` is one model or several.
    ``progress`` is called with the amount of work done and the total, or is ``True`` for a bar.
    """
    with Call("design", model, options, progress) as call:
        if "prior_summary" in call.given:
            call.given["prior_summary"] = [
                existing(os.fspath(one)) if isinstance(one, (str, os.PathLike)) else call.summary(one)
                for one in _several(call.given["prior_summary"])
            ]
        if "robust" in call.given:
            call.given["robust"] = [call.named(one) for one in _several(call.given["robust"])]
        return Design(*call.run(_inertial.design))


def _several(given: Any) -> list[Any]:
    """Returns one value or several values as a list."""
    several = isinstance(given, Iterable) and not isinstance(given, (str, os.PathLike, Mapping))
    return list(given) if several else [given]


@with_options("simulate", SimulateOptions)
def simulate(
    model: Model,
    trajectory: str | os.PathLike[str] | Design | Mapping[str, Any] | Any,
    *,
    progress: Progress = None,
    **options: Unpack[SimulateOptions],
) -> Simulation:
    """Simulates the sensor readings during a motion.

    The trajectory is a file, a result of :func:`design`, or a table with the columns of a trajectory file.
    ``progress`` is called with the amount of work done and the total, or is ``True`` for a bar.
    """
    with Call("simulate", model, options, progress) as call:
        if isinstance(trajectory, Design):
            name = "the trajectory"
            call.inputs.add_text(name, json.dumps(trajectory.trajectory))
        elif isinstance(trajectory, (str, os.PathLike)):
            name = existing(path_of(trajectory, "trajectory", "a path"))
        else:
            name = "the trajectory"
            call.inputs.add_table(name, *call.columns(trajectory))
        call.given["trajectory"] = name
        return Simulation(*call.run(_inertial.simulate))


@with_options("export", ExportOptions)
def export(model: Model, **options: Unpack[ExportOptions]) -> Export:
    """Exports values for controllers, simulators and programs, and C code of the dynamics.

    ``values`` is a result of :func:`identify`, or a file with one, whose values replace those of the model; the
    result of a payload is the load itself. ``out`` is the file to write; for C code the source, with the other files beside it.
    """
    with Call("export", model, options) as call:
        values = call.given.get("values")
        if isinstance(values, Mapping):
            name = "the result"
            call.inputs.add_text(name, json.dumps(dict(values)))
            call.given["values"] = name
        elif values is not None:
            call.given["values"] = existing(path_of(values, "values", "a path or a result"))
        return Export(*call.run(_inertial.export))


@with_options("identify", IdentifyOptions)
def identify(
    model: Model, logs: Log | Iterable[Log], *, progress: Progress = None, **options: Unpack[IdentifyOptions]
) -> Identification:
    """Identifies the parameters from measured data.

    A log is a file (text table, Parquet, ``.npz``, ``.mat``, ROS bag, LeRobot dataset), a pattern of files such as ``logs/*.csv``, an
    address such as ``s3://bucket/log.csv``, a table (a mapping of columns or of arrays ``q``, ``dq``, ``ddq``, ``tau``; a pandas or
    polars frame, an Arrow table), a result of :func:`simulate`, or a summary. The same applies to the logs of ``validate``,
    ``unloaded`` and ``loaded``.
    ``progress`` is called with the amount of work done and the total, or is ``True`` for a bar.
    """
    with Call("identify", model, options, progress) as call:
        done = call.identify(logs)
        fit = fitted(done.data, call.robot, options, done.summary)
        return Identification(done.data, done.notes, fit, done.unknowns)


@with_options("validate", ValidateOptions)
def validate(
    model: Model, logs: Log | Iterable[Log], *, progress: Progress = None, **options: Unpack[ValidateOptions]
) -> Validation:
    """Compares the predictions of a model with measured data.

    With ``threshold`` the result is true, and its ``passed`` is ``True``, if the residual is not above the threshold and every joint
    has enough usable samples. If the model is a result of :func:`identify`, all identified values are used for the prediction, and
    logs are prepared as for that result. ``progress`` is called with the amount of work done and the total, or is ``True`` for a bar.
    """
    threshold = options.get("threshold")
    if isinstance(model, (Identification, FittedModel)):
        for name in options:
            if name not in ("threshold", "report", "plots"):
                raise TypeError(f"{name}=: a result prepares logs as in its identification; validate its mechanism instead")
        pages: Any = {name: options[name] for name in ("report", "plots") if name in options}
        found = (model._as_model() if isinstance(model, Identification) else model).residuals(logs, **pages)
        left = found.relative_rms
        passed = None if threshold is None else not found.unjudged and left is not None and left <= threshold
        return Validation(found.to_dict(), found.notes, passed)
    with Call("validate", model, options, progress) as call:
        call.given["logs"] = call.logs(logs)
        data, notes, passed = call.run(_inertial.validate)
        return Validation(data, notes, passed if threshold is not None else None)
