"""Keyword arguments as arguments of the program, and inputs as it can read them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Container, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

from . import _inertial
from ._inertial import Error

if TYPE_CHECKING:
    from .mechanism import Mechanism
    from .summary import Summary

    Model = Union[str, os.PathLike[str], Mechanism]
    #: A file, a summary, what ``simulate`` gave, or a table of columns: a mapping of names to arrays, a pandas or polars
    #: frame, a PyArrow table.
    Log = Union[str, os.PathLike[str], Summary, Mapping[str, Any], Any]

#: Options of the program that have no meaning here, and what does their work.
PROGRAM_ONLY = {
    "help": "help() tells the options",
    "json": "results are objects: to_json() gives the program's text",
    "plot": "plots= writes the curves, report= a page with them",
    "follow": "inertial.Online follows a stream",
    "every": "inertial.Online follows a stream",
    "forget": "inertial.Online follows a stream",
    "window": "inertial.Online follows a stream",
}

#: Options that have a number for each column.
BY_COLUMN = {"noise", "bias", "quantum"}


def flags(options: Mapping[str, Any]) -> list[str]:
    """``prior_weight=2`` as ``--prior-weight=2``, ``offset=True`` as ``--offset``; ``None`` and ``False`` are left out."""
    out: list[str] = []
    for name, value in options.items():
        if name in PROGRAM_ONLY:
            raise Error(f"{name}= is of the program alone; {PROGRAM_ONLY[name]}")
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(flag)
        elif isinstance(value, Mapping):
            if name not in BY_COLUMN:
                raise Error(f"{name}=: expected a path, not a {type(value).__name__}")
            out.append(f"{flag}={','.join(f'{k}={number(v)}' for k, v in value.items())}")
        elif isinstance(value, (str, os.PathLike)):
            out.append(f"{flag}={os.fspath(value)}")
        elif isinstance(value, Iterable) and name == "out":
            # Several files: the option several times.
            out += [f"{flag}={os.fspath(path)}" for path in value]
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


def belongs(options: Mapping[str, Any], allowed: Container[str], known: Container[str], why: str) -> None:
    """Refuses names that are known but not allowed; what is not known, the program refuses in its own words."""
    for name in options:
        if name in known and name not in allowed:
            raise Error(f"{name}=: {why}")


def taken(model: Mechanism, options: Mapping[str, Any]) -> list[str]:
    """The options a model was built with, but for those that the call gives anew."""
    anew = {flag.partition("=")[0] for flag in flags(options)}
    return [option for option in model.options if option.partition("=")[0] not in anew]


def path_of(value: Any, what: str, expected: str) -> str:
    """A path that the program takes for no option."""
    try:
        path = os.fspath(value)
    except TypeError:
        raise Error(f"a {what} of type {type(value).__name__}: expected {expected}") from None
    return os.path.join(".", path) if path.startswith("-") and path != "-" else path


class Call:
    """One call of a command: names of what is given in memory, and a folder for what must be a file."""

    def __init__(self) -> None:
        self.models: dict[str, str] = {}
        self.summaries: dict[str, _inertial.Summary] = {}
        #: What was said when the summaries were made.
        self.notes: list[str] = []
        self._folder: str | None = None
        self._tables = 0
        self._no_numbers: set[str] = set()

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(error, Error):
            message = self.plain(str(error))
            texts = [name for name in sorted(self._no_numbers) if name in message]
            if texts:
                message += f"; {', '.join(texts)}: expected numbers"
            if message != str(error):
                raise Error(message) from None

    def file(self, name: str) -> str:
        """A path in a folder that goes when the call ends."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="inertial-")
        return os.path.join(self._folder, name)

    def model(self, model: Model, options: Mapping[str, Any]) -> list[str]:
        """The arguments that name a model and how it is taken, with the call's options."""
        from .mechanism import Mechanism

        name = self.named(model)
        given = {key: self.named(value) if isinstance(value, Mechanism) else value for key, value in options.items()}
        return [name, *(taken(model, given) if isinstance(model, Mechanism) else []), *flags(given)]

    def named(self, model: Model) -> str:
        """The argument that names a model, each text by a name of its own."""
        from .mechanism import Mechanism

        if not isinstance(model, Mechanism):
            return path_of(model, "model", "a path, builtin:NAME or a Mechanism")
        if model.text is None:
            return model.label
        name, count = model.label, 1
        while self.models.get(name, model.text) != model.text:
            count += 1
            name = f"{model.label} ({count})"
        self.models[name] = model.text
        return name

    def log(self, log: Log) -> str:
        """The argument that names a log."""
        from .summary import Summary

        if isinstance(log, (str, os.PathLike)):
            return path_of(log, "log", "a path")
        if isinstance(log, Summary):
            name = f"summary {len(self.summaries) + 1}"
            self.summaries[name] = log.native
            self.notes += log.notes
            return name
        self._tables += 1
        path = self.file(f"table {self._tables}")
        _inertial.write_log(path, *self.columns(log))
        return path

    def columns(self, table: Any) -> tuple[list[str], list[_inertial.Floats]]:
        """Names and columns of a table; what holds no numbers is left out, as in a file that has more than is needed."""
        from .frames import columns_of

        names, columns, others = columns_of(table)
        self._no_numbers.update(others)
        return names, columns

    def logs(self, logs: Log | Iterable[Log]) -> list[str]:
        """The arguments of one log or several."""
        table = isinstance(logs, (str, os.PathLike, Mapping)) or any(
            hasattr(logs, mark) for mark in ("collect", "columns", "column_names", "dtype", "native")
        )
        several: Iterable[Log] = [logs] if table or not isinstance(logs, Iterable) else logs
        return [self.log(log) for log in several]

    def run(self, arguments: list[str]) -> tuple[bool, str, list[str]]:
        """What the program answers."""
        yes, output, notes = _inertial.call(arguments, self.models, self.summaries)
        for argument in arguments:
            option, _, value = argument.partition("=")
            if option == "--report" and self._folder is not None:
                self._tidy(value)
        return yes, self.plain(output), [*self.notes, *(self.plain(note) for note in notes)]

    def _tidy(self, page: str) -> None:
        """Names tables in a page too; it is replaced whole."""
        with open(page, encoding="utf-8") as file:
            text = file.read()
        handle, new = tempfile.mkstemp(dir=os.path.dirname(page) or ".")
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(self.plain(text))
            shutil.copymode(page, new)
            os.replace(new, page)
        except OSError as error:
            os.unlink(new)
            raise Error(f"{page}: {(error.strerror or str(error)).lower()}") from None

    def plain(self, message: str) -> str:
        """A message that names tables, not the files that stood for them."""
        return message if self._folder is None else message.replace(self._folder + os.sep, "")
