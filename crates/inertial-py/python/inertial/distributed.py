"""Identification on a Dask cluster: one summary per log, merged as a tree.

The result equals that of a single machine up to rounding: the same code summarizes each log, and merging is associative up to
rounding. A worker holds one block of one log and a few summaries, regardless of the length of the logs. The logs of a lost
worker are summarized again by another one. A log that cannot be used is not tried again; its message is returned with all others.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ._call import belongs
from ._checks import with_options
from ._files import expanded, is_address
from ._progress import shown
from .errors import Error, FailedLogs, OptionError
from .mechanism import Mechanism, mechanism_of
from .options import EstimateOptions, IdentifyOptions, UnknownsOptions
from .summary import Summary

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from ._call import Model
    from ._progress import Progress
    from .results import Identification

    Logs = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

#: Number of summaries that one task merges.
BRANCHES = 8

#: Largest number of failed logs that an error message lists; ``failures`` has all of them.
LISTED = 10


class ClusterOptions(UnknownsOptions, EstimateOptions, total=False):
    """Options of identify that a cluster supports."""


class Part:
    """Outcome for some logs: a summary, and the messages of the logs that cannot be used."""

    def __init__(self, summary: Summary | None, failures: dict[str, str]) -> None:
        self.summary = summary
        self.failures = failures


def summarize(
    path: str, model: Mechanism, options: dict[str, Any], checkpoint: str | None = None, retries: int = 0
) -> Part:
    """Summarizes one log: a local path, or an address that fsspec supports (``s3://…``), which is copied to disk first.

    ``checkpoint`` is a folder for finished summaries; ``retries`` applies to stores that do not answer.
    """
    saved = None if checkpoint is None else os.path.join(checkpoint, _key(path, model, options) + ".summary")
    if saved is not None and os.path.exists(saved):
        return Part(Summary.load(saved), {})
    for attempt in range(retries + 1):
        try:
            summary = Summary(model, **options).add(path)
        except FileNotFoundError as error:
            return Part(None, {path: f"{path}: {error.strerror}"})
        except Error as error:
            # A store may answer later; an error of the log itself would occur again.
            if is_address(path) and "cannot be opened" in str(error) and attempt < retries:
                time.sleep(2**attempt)
                continue
            return Part(None, {path: str(error)})
        if saved is not None:
            summary.save(saved, diagnostics=True)
        return Part(summary, {})
    raise AssertionError("the last attempt returns")


def _key(path: str, model: Mechanism, options: dict[str, Any]) -> str:
    """Returns a hash of everything that the summary of a log depends on: the current log, the model and the options."""
    state: list[Any] = [path, model.label, model.text, model.options, sorted(options.items())]
    if not is_address(path) and os.path.exists(path):
        about = os.stat(path)
        state += [about.st_size, about.st_mtime_ns]
    return hashlib.sha256(json.dumps(state, default=str).encode()).hexdigest()[:32]


def merge(parts: list[Part]) -> Part:
    """Merges several parts into one."""
    summaries = [part.summary for part in parts if part.summary is not None]
    failures = {path: message for part in parts for path, message in part.failures.items()}
    return Part(summaries[0].merge(*summaries[1:]) if summaries else None, failures)


def _summary_of(
    robot: Mechanism,
    paths: list[str],
    client: Any,
    options: dict[str, Any],
    *,
    retries: int,
    progress: Progress,
    checkpoint: str | os.PathLike[str] | None,
) -> Part:
    from distributed import as_completed

    folder = None if checkpoint is None else os.fspath(checkpoint)
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    # Errors of logs are returned as values, so Dask retries only the logs of lost workers.
    level = [client.submit(summarize, path, robot, options, folder, retries, pure=False) for path in paths]
    tell = shown(progress, "summaries", "logs")
    if tell is not None:
        for done, _ in enumerate(as_completed(list(level)), start=1):  # type: ignore[no-untyped-call]
            tell(done, len(level))
    # Summaries are merged in the order of the logs, so that the result does not depend on which worker ends first.
    while len(level) > 1:
        level = [
            client.submit(merge, level[k : k + BRANCHES], pure=False) for k in range(0, len(level), BRANCHES)
        ]
    result: Part = level[0].result()
    return result


def _paths(logs: Logs) -> list[str]:
    """Returns the paths of all logs, with patterns expanded."""
    several = [logs] if isinstance(logs, (str, os.PathLike)) else logs
    paths = [path for log in several for path in expanded(os.fspath(log))]
    if not paths:
        raise OptionError("no logs: give at least one")
    return paths


def _checked_summary(part: Part, on_error: str, count: int) -> Summary:
    """Returns the summary; raises an error if logs failed and must not be left out, or if there is no summary."""
    if part.failures and (on_error == "raise" or part.summary is None):
        messages = list(part.failures.values())
        if count == 1:
            raise FailedLogs(messages[0], part.failures)
        more = [f"and {len(messages) - LISTED} more"] if len(messages) > LISTED else []
        text = "\n  ".join([f"{len(messages)} of {count} logs cannot be used:", *messages[:LISTED], *more])
        raise FailedLogs(text, part.failures)
    if part.summary is None:
        raise Error("there is no summary")
    if not part.failures:
        return part.summary
    left_out = [f"left out: {message}" for message in part.failures.values()]
    return part.summary._with(part.summary.native, left_out)


@with_options("identify", UnknownsOptions, also=[IdentifyOptions])
def summarize_all(
    model: Model,
    logs: Logs,
    client: Any,
    *,
    retries: int = 3,
    progress: Progress = None,
    on_error: Literal["raise", "skip"] = "raise",
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Unpack[UnknownsOptions],
) -> Summary:
    """Summarizes logs (paths, patterns, addresses) on a Dask cluster.

    ``progress`` is called with the number of finished logs and the total; ``True`` shows a line on standard error or a bar in
    a notebook, ``None`` only if the output is interactive and the work takes longer than a second. Logs that cannot be used raise
    :class:`inertial.errors.FailedLogs` with all their messages, or are left out (``on_error="skip"``) with a note each.
    ``checkpoint`` names a folder that all workers can access: finished summaries are kept there, and a second call continues
    from them. ``retries`` applies to stores that do not answer; logs of lost workers are always summarized again.
    """
    robot = mechanism_of(model)
    if on_error not in {"raise", "skip"}:
        raise OptionError(f"on_error={on_error!r}: expected raise or skip")
    paths = _paths(logs)
    # Invalid options raise an error before any log is read.
    Summary(robot, **options)
    part = _summary_of(
        robot, paths, client, dict(options), retries=retries, progress=progress, checkpoint=checkpoint
    )
    return _checked_summary(part, on_error, len(paths))


@with_options("identify", ClusterOptions, also=[IdentifyOptions])
def identify(
    model: Model,
    logs: Logs,
    client: Any,
    *,
    retries: int = 3,
    progress: Progress = None,
    on_error: Literal["raise", "skip"] = "raise",
    checkpoint: str | os.PathLike[str] | None = None,
    holdout: float | None = None,
    **options: Unpack[ClusterOptions],
) -> Identification:
    """Identifies the parameters as ``inertial.identify`` does, with the logs summarized on a Dask cluster.

    The result is the same up to rounding. ``holdout`` is the fraction of the *logs* (at least one log, taken from the end of the list)
    that is used for validation instead of the fit. See :func:`summarize_all` for the other arguments.
    """
    allowed = {**UnknownsOptions.__annotations__, **EstimateOptions.__annotations__}
    why = "not on a cluster; make a Summary there (summarize_all) and call inertial.identify with it"
    belongs(options, allowed, IdentifyOptions.__annotations__, why)
    estimate: Any = {k: v for k, v in options.items() if k in EstimateOptions.__annotations__}
    unknowns: Any = {k: v for k, v in options.items() if k not in estimate}
    if estimate.get("estimator") == "irls":
        raise OptionError("estimator irls weights every sample: it needs the logs themselves, not their summaries")
    paths = _paths(logs)
    kept: list[str] = []
    if holdout is not None:
        if not 0 < holdout < 1 or len(paths) < 2:
            raise OptionError("holdout=: expected a fraction between 0 and 1, and at least two logs")
        count = min(max(round(holdout * len(paths)), 1), len(paths) - 1)
        paths, kept = paths[:-count], paths[-count:]
    how: Any = {"retries": retries, "on_error": on_error, "checkpoint": checkpoint}
    summary = summarize_all(model, paths, client, progress=progress, **how, **unknowns)
    found = summary.identify(**estimate)
    if kept:
        _validate(found, summarize_all(model, kept, client, progress=False, **how, **unknowns))
    return found


def _validate(found: Identification, kept: Summary) -> None:
    """Adds the residuals of logs that were not fitted."""
    values = dict(zip(found.names, found.theta, strict=True))
    missing = [name for name in values if name not in kept.names]
    if missing:
        raise Error(f"{', '.join(missing)} have coupled drives: validate with inertial.identify, or use coupling='none'")
    data = kept.native.residuals(np.array([values.get(name, 0.0) for name in kept.names]))
    found._data["validation"] = data["joints"]
    for name in ("relative_rms", "relative_rms_raw", "left_out"):
        found._data[f"validation_{name}"] = data[name]
