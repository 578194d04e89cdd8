"""Calls of jobs: options, inputs by name, and files to write."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, Union, cast

from . import _inertial
from ._files import existing, expanded, fetched, is_address, path_of, text_of
from ._progress import shown
from .errors import Error
from .frames import columns_of
from .mechanism import Mechanism, mechanism_in, mechanism_of
from .options import ModelOptions

if TYPE_CHECKING:
    from ._progress import Progress

    class SummaryOfLogs(Protocol):
        """Summary of logs, with notes on them."""

        @property
        def native(self) -> _inertial.Summary: ...
        @property
        def notes(self) -> Sequence[str]: ...

    Model = Union[str, os.PathLike[str], Mechanism, Any]
    #: File, pattern of files, address, summary, result of ``simulate``, or table of columns.
    Log = Union[str, os.PathLike[str], SummaryOfLogs, Mapping[str, Any], Any]

T = TypeVar("T")

#: Options whose values are names of text files, and words with another meaning.
_TEXTS: dict[str, tuple[str, ...]] = {"columns": (), "joint_model": (), "bounds": ("links",)}

#: Options whose values are models, and words with another meaning.
_MODELS: dict[str, tuple[str, ...]] = {"prior": ("model", "none"), "compare": ("floating", "fixed")}


def belongs(options: Mapping[str, Any], allowed: Container[str], known: Container[str], why: str) -> None:
    """Raises ``TypeError`` for known names that are not allowed."""
    for name in options:
        if name in known and name not in allowed:
            raise TypeError(f"{name}=: {why}")


def toml(table: Mapping[str, Any]) -> str:
    """Formats a column map as TOML: texts, numbers, and tables of them."""

    def written(value: Any) -> str:
        if isinstance(value, Mapping):
            return "{ " + ", ".join(f"{json.dumps(str(k))} = {written(v)}" for k, v in value.items()) + " }"
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False)
        return repr(float(value))

    return "".join(f"{json.dumps(str(key))} = {written(value)}\n" for key, value in table.items())


def column_map(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the column map of ``columns=``, which has either the sections of a column map or only its columns."""
    parts = {"units", "joints", "columns"}
    return dict(columns) if set(columns) <= parts else {"columns": dict(columns)}


def texts_of(options: Mapping[str, Any], known: Mapping[str, str] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the options with texts replaced by names, and these texts by name. Known texts are not read again."""
    given, texts = dict(options), dict(known or {})
    for name, words in _TEXTS.items():
        value = given.get(name)
        if isinstance(value, Mapping):
            given[name], texts[name] = name, toml(column_map(value))
        elif value is not None and value not in words:
            path = os.fspath(value)
            given[name] = path
            if path not in texts:
                texts[path] = text_of(path)
    return given, texts


class Outputs:
    """Files to write."""

    def __init__(self, options: dict[str, Any], command: str) -> None:
        out = options.pop("out", None)
        several = isinstance(out, Iterable) and not isinstance(out, (str, os.PathLike))
        self.out: list[str] = [os.fspath(path) for path in (out if several else [] if out is None else [out])]
        self.report = options.pop("report", None)
        self.plots = options.pop("plots", None)
        self.summary_out = options.pop("summary_out", None)
        #: Text of the call, shown on report pages.
        self.command = command


class Identified(NamedTuple):
    """Outcome of an identification."""

    data: dict[str, Any]
    notes: list[str]
    #: Names, values and covariance of the unknowns.
    unknowns: dict[str, Any] | None
    #: Summary of the logs, from which all estimates but those of ``irls`` can be computed again.
    summary: _inertial.Summary | None
    #: Text of the model with the identified values, if ``write`` is set.
    text: str | None


class Call:
    """Call of a job: the model, named inputs in memory, and a folder for copies of remote files."""

    def __init__(self, function: str, model: Model, options: Mapping[str, Any], progress: Progress = None) -> None:
        self._function = function
        self._options = dict(options)
        own = {name: self._options[name] for name in ModelOptions.__annotations__ if name in options}
        self.robot = mechanism_of(model).with_options(own)
        self.mechanism = self.robot.native
        self.inputs = _inertial.Inputs()
        self.inputs.add_model(self.robot.label, self.robot.text)
        #: Options of the job.
        self.given = {name: value for name, value in self._options.items() if name not in own}
        #: Texts that options name.
        self.texts: dict[str, str] = {}
        #: Notes of the summaries.
        self.notes: list[str] = []
        self.tell = shown(progress, function)
        self._models = {self.robot.label: self.robot.text}
        self._folder: str | None = None
        self._tables = self._summaries = 0
        self._no_numbers: set[str] = set()

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(error, Error):
            texts = [name for name in sorted(self._no_numbers) if name in str(error)]
            if texts:
                raise type(error)(f"{error}; {', '.join(texts)}: expected numbers") from None

    def named(self, model: Model) -> str:
        """Adds another model to the inputs and returns its name; each text has its own name."""
        held = mechanism_in(model)
        if held is None:
            name = existing(path_of(model, "model", "a path, builtin:NAME, a Mechanism or a result"))
            self.inputs.add_model(name, None)
            return name
        name, count = held.label, 1
        while self._models.get(name, held.text) != held.text:
            count += 1
            name = f"{held.label} ({count})"
        self._models[name] = held.text
        self.inputs.add_model(name, held.text)
        return name

    def log(self, log: Log) -> list[str]:
        """Adds a log to the inputs and returns its name, or several names if it is a pattern."""
        if isinstance(log, (str, os.PathLike)):
            return [self._file(path) for path in expanded(path_of(log, "log", "a path"))]
        if isinstance(getattr(log, "native", None), _inertial.Summary):
            return [self.summary(cast("SummaryOfLogs", log))]
        names, columns = self.columns(log)
        self._tables += 1
        name = f"table {self._tables}"
        self.inputs.add_table(name, names, columns)
        return [name]

    def summary(self, summary: SummaryOfLogs) -> str:
        """Adds a summary to the inputs and returns its name."""
        self._summaries += 1
        name = f"summary {self._summaries}"
        summary.native.add_to(self.inputs, name)
        self.texts.update(summary.native.texts)
        self.notes += summary.notes
        return name

    def _file(self, path: str) -> str:
        """Adds a log file to the inputs and returns its path; a remote file is copied first."""
        if not is_address(path):
            self.inputs.add_log(existing(path))
            return path
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="inertial-")
        folder = tempfile.mkdtemp(dir=self._folder)
        self.inputs.add_log(path, fetched(path, folder))
        return path

    def columns(self, table: Any) -> tuple[list[str], list[_inertial.Floats]]:
        """Returns names and columns of a table; columns that are not numeric are left out, as for files."""
        names, columns, others = columns_of(table, lambda: self.robot.coordinate_names)
        self._no_numbers.update(others)
        return names, columns

    def logs(self, logs: Log | Iterable[Log]) -> list[str]:
        """Adds one log or several to the inputs and returns their names."""
        table = isinstance(logs, (str, os.PathLike, Mapping)) or any(
            hasattr(logs, mark) for mark in ("collect", "columns", "column_names", "dtype", "native", "__arrow_c_stream__")
        )
        several: Iterable[Log] = [logs] if table or not isinstance(logs, Iterable) else logs
        return [name for log in several for name in self.log(log)]

    def run(self, job: Callable[..., T], *more: Any) -> T:
        """Runs a job and returns its outcome."""
        for name, words in _MODELS.items():
            if name in self.given and self.given[name] not in words:
                self.given[name] = self.named(self.given[name])
        self.given, texts = texts_of(self.given, self.texts)
        self.texts.update(texts)
        for name, text in self.texts.items():
            self.inputs.add_text(name, text)
        self.outputs = Outputs(self.given, self._command())
        try:
            return job(self, self.given, *more)
        finally:
            if hasattr(self.tell, "close"):
                self.tell.close()

    def identify(self, logs: Log | Iterable[Log]) -> Identified:
        """Runs the identification with these logs; the options of the call may name further ones."""
        before = self._summaries
        self.given["logs"] = self.logs(logs)
        if self._summaries - before == len(self.given["logs"]) and "validate" not in self.given:
            # The logs of a summary have been read with these options; a summary itself has no columns.
            for name in ("columns", "topic"):
                self.given.pop(name, None)
        for name in ("validate", "unloaded", "loaded"):
            if name in self.given:
                self.given[name] = self.logs(self.given[name])
        data, notes, unknowns, summary, text = self.run(_inertial.identify, self.texts)
        return Identified(data, [*self.notes, *notes], unknowns, summary, text)

    def _command(self) -> str:
        """Returns the call as Python code, with the names of inputs only."""
        first = [self.robot.label, *(self.given[name] for name in ("trajectory", "logs") if name in self.given)]
        options = {**self._options, **{name: self.given[name] for name in self._options if name in self.given}}
        shown = [_literal(x) for x in first]
        shown += [f"{name}={_literal(value)}" for name, value in options.items() if name not in ("trajectory", "logs")]
        return f"inertial.{self._function}({', '.join(shown)})"


def _literal(value: Any) -> str:
    """Formats a value as Python code."""
    if isinstance(value, os.PathLike):
        return repr(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value) if isinstance(value, (str, int, float, bool, Mapping)) else f"<{type(value).__name__}>"
