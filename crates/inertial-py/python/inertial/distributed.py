"""From one log to a fleet's terabytes: one summary per log on a Dask cluster, merged as a tree.

The answer is the single machine's: a summary is made by the same code from one log, and merging is associative up to
rounding. A worker holds one block of one log and a few summaries of kilobytes, however long the logs are; a lost
worker's logs are summarised again elsewhere.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ._inertial import Error
from .mechanism import Mechanism
from .options import EstimateOptions
from .summary import Summary, _mechanism

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from ._arguments import Model
    from .options import IdentifyOptions
    from .results import Identification

#: Summaries that one task merges.
BRANCHES = 8


def summarize(path: str, model: Mechanism, options: dict[str, Any]) -> Summary:
    """The summary of one log: a local path, or any that fsspec knows (``s3://…``), copied to disk first."""
    if "://" not in path:
        return Summary(model, **options).add(path)
    import fsspec

    system, inner = fsspec.core.url_to_fs(path)
    with tempfile.TemporaryDirectory(prefix="inertial-") as folder:
        local = os.path.join(folder, os.path.basename(inner) or "log")
        system.get_file(inner, local)
        return Summary(model, **options).add(local)


def merge(summaries: list[Summary]) -> Summary:
    """One summary of several."""
    first, *others = summaries
    return Summary(first.model, **first.options).merge(first, *others)


def summarize_all(
    model: Model,
    logs: Iterable[str | os.PathLike[str]],
    client: Any,
    *,
    retries: int = 3,
    progress: bool | Callable[[int, int], None] | None = None,
    **options: Any,
) -> Summary:
    """The summary of all logs, made on the cluster; ``progress`` is told how many logs of how many are done."""
    from distributed import as_completed

    robot = _mechanism(model)
    paths = [os.fspath(log) for log in logs]
    if not paths:
        raise Error("no logs: give at least one")
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


def identify(
    model: Model,
    logs: Iterable[str | os.PathLike[str]],
    client: Any,
    *,
    retries: int = 3,
    progress: bool | Callable[[int, int], None] | None = None,
    **options: Unpack[IdentifyOptions],
) -> Identification:
    """``inertial.identify`` with the logs summarised on a Dask cluster; the same answer to rounding."""
    estimate = {k: v for k, v in options.items() if k in EstimateOptions.__annotations__}
    unknowns = {k: v for k, v in options.items() if k not in estimate}
    for name in ("validate", "holdout", "payload", "unloaded", "gains", "loaded", "known_payload", "summary_out"):
        if name in unknowns:
            raise Error(f"{name}: not on a cluster; make a Summary there and call inertial.identify with it")
    if estimate.get("estimator") == "irls":
        raise Error("estimator irls weighs every sample: it needs the logs themselves, not their summaries")
    summary = summarize_all(model, logs, client, retries=retries, progress=progress, **unknowns)
    return summary.identify(**estimate)  # type: ignore[arg-type]


def _progress(progress: bool | Callable[[int, int], None] | None) -> Callable[[int, int], None] | None:
    if callable(progress):
        return progress
    if progress is False or not sys.stderr.isatty():
        return None

    def line(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\rsummaries: {done} of {total} logs", end=end, file=sys.stderr, flush=True)

    return line
