"""Keyword arguments as arguments of the program, and inputs as it can read them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Container, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

from . import _inertial
from ._files import existing, expanded, fetched, is_address, path_of
from .errors import Error, LogError, ModelError, OptionError

if TYPE_CHECKING:
    from .mechanism import Mechanism
    from .summary import Summary

    Model = Union[str, os.PathLike[str], Mechanism, Any]
    #: A file, a pattern of files, an address, a summary, what ``simulate`` gave, or a table of columns.
    Log = Union[str, os.PathLike[str], Summary, Mapping[str, Any], Any]

#: Words with which the program refuses a call.
_REFUSED = ("invalid value", "unexpected argument", "cannot be used with", "required", "a value is required")


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
        elif isinstance(value, Iterable) and name == "out":
            # Several files: the option several times.
            out += [f"{flag}={os.fspath(path)}" for path in value]
        elif isinstance(value, Iterable):
            out.append(f"{flag}={','.join(number(v) for v in value)}")
        else:
            out.append(f"{flag}={number(value)}")
    return out


def number(value: object) -> str:
    """A number so that the program reads the same one; a text as it is."""
    return repr(value) if isinstance(value, float) else str(value)


def belongs(options: Mapping[str, Any], allowed: Container[str], known: Container[str], why: str) -> None:
    """Refuses names that are known but not allowed."""
    for name in options:
        if name in known and name not in allowed:
            raise TypeError(f"{name}=: {why}")


def taken(model: Mechanism, options: Mapping[str, Any]) -> list[str]:
    """The options a model was built with, but for those that the call gives anew."""
    anew = {flag.partition("=")[0] for flag in flags(options)}
    return [option for option in model.options if option.partition("=")[0] not in anew]


def toml(table: Mapping[str, Any]) -> str:
    """A column map in TOML: texts, numbers, and tables of them."""
    import json

    def written(value: Any) -> str:
        if isinstance(value, Mapping):
            return "{ " + ", ".join(f"{json.dumps(str(k))} = {written(v)}" for k, v in value.items()) + " }"
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False)
        return number(float(value))

    return "".join(f"{json.dumps(str(key))} = {written(value)}\n" for key, value in table.items())


def column_map(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The map that ``columns=`` describes: with the parts of a column map, or as its columns alone."""
    parts = {"units", "joints", "columns"}
    return dict(columns) if set(columns) <= parts else {"columns": dict(columns)}


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
        #: Names of models and logs, for the kind of an error.
        self._named: dict[str, type[Error]] = {}
        #: Copies of files of stores, and what they are copies of.
        self._copies: dict[str, str] = {}

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if type(error) is Error:
            message = self.plain(str(error))
            texts = [name for name in sorted(self._no_numbers) if name in message]
            if texts:
                message += f"; {', '.join(texts)}: expected numbers"
            raise self._kind(message)(message) from None

    def _kind(self, message: str) -> type[Error]:
        """The class of an error, by what it names first."""
        if message.startswith(_REFUSED):
            return OptionError
        return next((kind for name, kind in self._named.items() if message.startswith(f"{name}: ")), Error)

    def file(self, name: str) -> str:
        """A path in a folder that goes when the call ends."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="inertial-")
        return os.path.join(self._folder, name)

    def model(self, model: Model, options: Mapping[str, Any]) -> list[str]:
        """The arguments that name a model and how it is taken, with the call's options."""
        from .mechanism import Mechanism, mechanism_in

        name = self.named(model)
        given = {key: self._option(key, value) for key, value in options.items()}
        held = mechanism_in(model)
        return [name, *(taken(held, given) if isinstance(held, Mechanism) else []), *flags(given)]

    def _option(self, name: str, value: Any) -> Any:
        from .mechanism import mechanism_in

        if mechanism_in(value) is not None:
            return self.named(value)
        if name == "columns" and isinstance(value, Mapping):
            path = self.file("columns")
            with open(path, "w", encoding="utf-8") as file:
                file.write(toml(column_map(value)))
            return path
        if name in {"columns", "joint_model", "bounds", "prior"} and isinstance(value, (str, os.PathLike)):
            path = os.fspath(value)
            return path if (name, path) in _WORDS else existing(path)
        return value

    def named(self, model: Model) -> str:
        """The argument that names a model, each text by a name of its own."""
        from .mechanism import mechanism_in

        held = mechanism_in(model)
        if held is None:
            name = existing(path_of(model, "model", "a path, builtin:NAME, a Mechanism or a result"))
            self._named[name] = ModelError
            return name
        if held.text is None:
            self._named[held.label] = ModelError
            return held.label
        name, count = held.label, 1
        while self.models.get(name, held.text) != held.text:
            count += 1
            name = f"{held.label} ({count})"
        self.models[name] = held.text
        self._named[name] = ModelError
        return name

    def log(self, log: Log, model: Model | None = None) -> list[str]:
        """The arguments that name a log: several where it is a pattern."""
        from .summary import Summary

        if isinstance(log, (str, os.PathLike)):
            names = [self._local(path) for path in expanded(path_of(log, "log", "a path"))]
        elif isinstance(log, Summary):
            names = [f"summary {len(self.summaries) + 1}"]
            self.summaries[names[0]] = log.native
            self.notes += log.notes
        else:
            self._tables += 1
            names = [self.file(f"table {self._tables}")]
            self._named[f"table {self._tables}"] = LogError
            _inertial.write_log(names[0], *self.columns(log, model))
        self._named.update((name, LogError) for name in names)
        return names

    def _local(self, path: str) -> str:
        """A file that the program can read: one of a store is copied."""
        if not is_address(path):
            return existing(path)
        folder = self.file(f"fetched {len(self._copies) + 1}")
        os.mkdir(folder)
        local = fetched(path, folder)
        self._copies[local] = path
        self._named[path] = LogError
        return local

    def columns(self, table: Any, model: Model | None = None) -> tuple[list[str], list[_inertial.Floats]]:
        """Names and columns of a table; what holds no numbers is left out, as in a file that has more than is needed."""
        from .frames import columns_of
        from .mechanism import mechanism_of

        names, columns, others = columns_of(table, None if model is None else lambda: mechanism_of(model).coordinate_names)
        self._no_numbers.update(others)
        return names, columns

    def logs(self, logs: Log | Iterable[Log], model: Model | None = None) -> list[str]:
        """The arguments of one log or several."""
        table = isinstance(logs, (str, os.PathLike, Mapping)) or any(
            hasattr(logs, mark) for mark in ("collect", "columns", "column_names", "dtype", "native", "__arrow_c_stream__")
        )
        several: Iterable[Log] = [logs] if table or not isinstance(logs, Iterable) else logs
        return [name for log in several for name in self.log(log, model)]

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
        """A message that names tables and addresses, not the files that stood for them."""
        for local, path in self._copies.items():
            message = message.replace(local, path)
        return message if self._folder is None else message.replace(self._folder + os.sep, "")


#: Values of options that are words, where others are paths.
_WORDS = {("prior", "model"), ("prior", "none"), ("bounds", "links")}
