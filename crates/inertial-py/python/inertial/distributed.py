"""From one log to a fleet's terabytes: one summary per log on a Dask cluster, merged as a tree.

The answer is the single machine's: a summary is made by the same code from one log, and merging is associative up to
rounding. A worker holds one block of one log and a few summaries of kilobytes, however long the logs are; a lost
worker's logs are summarised again elsewhere.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ._arguments import belongs
from ._help import with_options
from ._inertial import Error
from .mechanism import Mechanism
from .options import EstimateOptions, IdentifyOptions, UnknownsOptions
from .summary import Summary, mechanism_of

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from ._arguments import Model
    from .results import Identification

    Logs = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
    #: Told how many logs of how many are done; or whether a line says so.
    Progress = bool | Callable[[int, int], None] | None

#: Summaries that one task merges.
BRANCHES = 8

#: Options of identify that a cluster has.
ALLOWED = {**UnknownsOptions.__annotations__, **EstimateOptions.__annotations__}


def summarize(path: str, model: Mechanism, options: dict[str, Any]) -> Summary:
    """The summary of one log: a local path, or any that fsspec knows (``s3://…``), copied to disk first."""
    if "://" not in path:
        return Summary(model, **options).add(path)
    with tempfile.TemporaryDirectory(prefix="inertial-") as folder:
        local = _fetched(path, folder)
        summary = Summary(model, **options)
        try:
            summary.add(local)
        except Error as error:
            raise Error(str(error).replace(local, path)) from None
        summary._rename(local, path)
        return summary


def _fetched(path: str, folder: str) -> str:
    """A copy of a file that fsspec knows."""
    try:
        import fsspec

        system, inner = fsspec.core.url_to_fs(path)
        local = os.path.join(folder, os.path.basename(inner) or "log")
        system.get_file(inner, local)
    except FileNotFoundError:
        raise Error(f"{path}: cannot be opened: there is no such file") from None
    # Stores have exceptions of their own; whatever it is, the log cannot be had.
    except Exception as error:
        raise Error(f"{path}: cannot be opened: {str(error) or type(error).__name__}") from None
    return local


def merge(summaries: list[Summary]) -> Summary:
    """One summary of several."""
    first, *others = summaries
    return Summary(first.model, **first.options).merge(first, *others)


def summarize_all(
    model: Model,
    logs: Logs,
    client: Any,
    *,
    retries: int = 3,
    progress: Progress = None,
    **options: Unpack[UnknownsOptions],
) -> Summary:
    """The summary of all logs (paths), made on the cluster.

    ``progress`` is told how many logs of how many are done; ``True`` says it in a line on standard error, ``None`` only
    on a terminal or in a notebook.
    """
    from distributed import as_completed

    robot = mechanism_of(model)
    paths = [os.fspath(log) for log in ([logs] if isinstance(logs, (str, os.PathLike)) else logs)]
    if not paths:
        raise Error("no logs: give at least one")
    # What is wrong with the options is said before any log is read.
    Summary(robot, **options)
    level = client.map(
        summarize, paths, model=robot, options=options, retries=retries, pure=False, key="inertial-summary"
    )
    tell = _progress(progress)
    if tell is not None:
        for done, future in enumerate(as_completed(list(level)), start=1):  # type: ignore[no-untyped-call]
            if future.status == "error":
                break
            tell(done, len(level))
    # In the order of the logs, so that the same logs give the same bits whichever worker is first.
    while len(level) > 1:
        level = [
            client.submit(merge, level[k : k + BRANCHES], retries=retries, pure=False)
            for k in range(0, len(level), BRANCHES)
        ]
    result: Summary = level[0].result()
    return result


@with_options("identify", ALLOWED)
def identify(
    model: Model,
    logs: Logs,
    client: Any,
    *,
    retries: int = 3,
    progress: Progress = None,
    **options: Unpack[IdentifyOptions],
) -> Identification:
    """``inertial.identify`` with the logs summarised on a Dask cluster; the same answer to rounding."""
    why = "not on a cluster; make a Summary there (summarize_all) and call inertial.identify with it"
    belongs(options, ALLOWED, IdentifyOptions.__annotations__, why)
    estimate: Any = {k: v for k, v in options.items() if k in EstimateOptions.__annotations__}
    unknowns: Any = {k: v for k, v in options.items() if k not in estimate}
    if estimate.get("estimator") == "irls":
        raise Error("estimator irls weighs every sample: it needs the logs themselves, not their summaries")
    summary = summarize_all(model, logs, client, retries=retries, progress=progress, **unknowns)
    return summary.identify(**estimate)


def _progress(progress: Progress) -> Callable[[int, int], None] | None:
    if callable(progress):
        return progress
    if progress is False or (progress is None and not (sys.stderr.isatty() or "ipykernel" in sys.modules)):
        return None
    began = time.monotonic()

    def line(done: int, total: int) -> None:
        left = (time.monotonic() - began) * (total - done) / done
        text = f"summaries: {done} of {total} logs, " + (f"about {_duration(left)} left" if done < total else "done")
        # Spaces cover what was longer before.
        print(f"\r{text:<60}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return line


def _duration(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    return f"{hours:.1f} h" if hours >= 1 else f"{minutes:.0f} min" if minutes >= 2 else f"{seconds:.0f} s"
