"""Keyword arguments as arguments of the program, and inputs as it can read them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

from . import _inertial

if TYPE_CHECKING:
    from .mechanism import Mechanism
    from .summary import Summary

    Model = Union[str, os.PathLike[str], Mechanism]
    #: A file, a summary, or a table of columns: a mapping of names to arrays, a pandas or polars frame, a PyArrow table.
    Log = Union[str, os.PathLike[str], Summary, Mapping[str, Any], Any]


def flags(options: Mapping[str, Any]) -> list[str]:
    """``prior_weight=2`` as ``--prior-weight=2``, ``offset=True`` as ``--offset``; ``None`` and ``False`` are left out."""
    out: list[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(flag)
        elif isinstance(value, Mapping):
            out.append(f"{flag}={','.join(f'{k}={number(v)}' for k, v in value.items())}")
        elif isinstance(value, (str, os.PathLike)):
            out.append(f"{flag}={os.fspath(value)}")
        elif isinstance(value, Iterable):
            out.append(f"{flag}={','.join(number(v) for v in value)}")
        else:
            out.append(f"{flag}={number(value)}")
    return out


def number(value: object) -> str:
    """A number so that the program reads the same one; anything else as it prints."""
    if isinstance(value, (str, int)):
        return str(value)
    try:
        return repr(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)


class Call:
    """One call of a command: names of what is given in memory, and a folder for what must be a file."""

    def __init__(self) -> None:
        self.models: dict[str, str] = {}
        self.summaries: dict[str, _inertial.Summary] = {}
        self._folder: str | None = None
        self._tables = 0

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def file(self, name: str) -> str:
        """A path in a folder that goes when the call ends."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="inertial-")
        return os.path.join(self._folder, name)

    def model(self, model: Model) -> list[str]:
        """The argument that names a model, and the options it was built with."""
        from .mechanism import Mechanism

        if not isinstance(model, Mechanism):
            return [os.fspath(model)]
        if model.text is not None:
            self.models[model.label] = model.text
        return [model.label, *model.options]

    def log(self, log: Log) -> str:
        """The argument that names a log."""
        from .frames import columns_of
        from .summary import Summary

        if isinstance(log, (str, os.PathLike)):
            return os.fspath(log)
        if isinstance(log, Summary):
            name = f"memory {len(self.summaries) + 1}.summary"
            self.summaries[name] = log.native
            return name
        self._tables += 1
        path = self.file(f"table {self._tables}")
        names, columns = columns_of(log)
        _inertial.write_log(path, names, columns)
        return path

    def logs(self, logs: Log | Iterable[Log]) -> list[str]:
        """The arguments of one log or several."""
        table = isinstance(logs, (str, os.PathLike, Mapping)) or any(
            hasattr(logs, mark) for mark in ("columns", "column_names", "dtype", "native")
        )
        several: Iterable[Log] = [logs] if table or not isinstance(logs, Iterable) else logs
        return [self.log(log) for log in several]

    def run(self, arguments: list[str]) -> tuple[bool, str, list[str]]:
        """What the program answers."""
        try:
            yes, output, notes = _inertial.call(arguments, self.models, self.summaries)
        except _inertial.Error as error:
            raise _inertial.Error(self.plain(str(error))) from None
        return yes, output, [self.plain(note) for note in notes]

    def plain(self, message: str) -> str:
        """A message that names tables, not the files that stood for them."""
        return message if self._folder is None else message.replace(self._folder + os.sep, "")
