"""Checks of keyword arguments against their types, and function signatures that list them."""

from __future__ import annotations

import collections.abc
import difflib
import functools
import inspect
import math
import operator
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from . import _inertial
from .errors import OptionError

F = TypeVar("F", bound=Callable[..., Any])

#: Options of the program that are not available in Python, with their replacements.
PROGRAM_ONLY = {
    "arithmetic": "inertial.set_arithmetic sets it for the process",
    "help": "help() lists the options",
    "json": "results are objects; to_json() returns the program's JSON",
    "plot": "plots= writes the curves, report= a page with them, and results have plot()",
    "follow": "inertial.Online follows a stream",
    "every": "inertial.Online follows a stream",
    "forget": "inertial.Online follows a stream",
    "window": "inertial.Online follows a stream",
    "regressor": "inertial.identify_regressor takes arrays",
    "rhs": "inertial.identify_regressor takes arrays",
    "bodies": "inertial.identify_regressor takes arrays",
    "column_order": "inertial.identify_regressor takes arrays",
    "rows_per_sample": "inertial.identify_regressor takes arrays",
}


def checked(name: str, value: Any, kind: Any) -> Any:
    """Converts the value of an option to a plain Python object of type ``kind``; ``None`` stands for the default.

    Raises ``TypeError`` if the type is wrong and :class:`inertial.OptionError` if a word is not one of the possible values.
    """
    if value is None or kind is Any:
        return value
    choices = get_args(kind) if get_origin(kind) in {Union, type(int | str)} else (kind,)
    value = _from_text(name, value, choices)
    words: list[str] = []
    for choice in choices:
        if get_origin(choice) is Literal:
            words += [str(word) for word in get_args(choice)]
            if isinstance(value, str) and value in get_args(choice):
                return str(value)
            continue
        try:
            found = _plain(value, choice)
        except OptionError as error:
            raise OptionError(f"{name}={error}") from None
        if found is not None:
            return found
    if words and isinstance(value, str):
        near = difflib.get_close_matches(value, words, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise OptionError(f"{name}={value!r}: expected one of {', '.join(words)}{hint}")
    raise TypeError(f"{name}=: expected {_words(kind)}, not {type(value).__name__}")


def _from_text(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """Parses a list or mapping written as on the command line ("m,com", "elbow=0.5"); returns other values unchanged."""
    if str not in choices:
        return value
    origins = {get_origin(choice): choice for choice in choices}
    mapping, sequence = origins.get(collections.abc.Mapping), origins.get(collections.abc.Sequence)
    if mapping is not None and sequence is not None:
        if get_args(mapping)[1] is float:
            return _settings(name, value)
        return _arguments(name, value)
    if sequence is not None and isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        known = [word for inner in get_args(sequence) if get_origin(inner) is Literal for word in get_args(inner)]
        wrong = [part for part in parts if known and part not in known]
        if wrong:
            raise OptionError(f"{name}={wrong[0]!r}: expected one of {', '.join(known)}")
        return parts
    return value


def _texts(value: Any) -> list[str] | None:
    """Returns a text or a sequence of texts as a list; ``None`` for other values."""
    if isinstance(value, str):
        return [value]
    is_list = isinstance(value, (list, tuple)) and all(isinstance(x, str) for x in value)
    return list(value) if is_list else None


def _settings(name: str, value: Any) -> Any:
    """Parses numbers by name from texts such as "elbow=0.5,wrist=0"; returns other values unchanged."""
    texts = _texts(value)
    if texts is None:
        return value
    out: dict[str, float] = {}
    for part in (part for text in texts for part in text.split(",") if part.strip()):
        key, _, number = part.partition("=")
        try:
            found = float(number)
        except ValueError:
            found = math.nan
        if not key.strip() or not math.isfinite(found):
            raise OptionError(f"{name}={part!r}: expected NAME=NUMBER")
        if key.strip() in out:
            raise OptionError(f"{name}=: {key.strip()} is given twice")
        out[key.strip()] = found
    return out


def _arguments(name: str, value: Any) -> Any:
    """Returns the arguments of a xacro file from a mapping or from texts such as "prefix:=left_". Values may be numbers and bools."""
    if isinstance(value, Mapping):
        return {str(key): str(x).lower() if isinstance(x, bool) else str(x) for key, x in value.items()}
    texts = _texts(value)
    if texts is None:
        return value
    out: dict[str, str] = {}
    for text in texts:
        key, found, word = text.partition(":=" if ":=" in text else "=")
        if not found or not key.strip():
            raise OptionError(f"{name}={text!r}: expected NAME:=VALUE")
        out[key.strip()] = word
    return out


def _is_bool(value: Any) -> bool:
    """Returns whether a value is a bool of Python or NumPy."""
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b" and value.ndim == 0


def _plain(value: Any, kind: Any) -> Any:
    """Converts a value to a type; returns ``None`` if it has another type."""
    if kind is bool:
        return bool(value) if _is_bool(value) else None
    if _is_bool(value):
        return None
    if kind is int:
        try:
            return operator.index(value)
        except TypeError:
            return None
    if kind is float:
        if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") or getattr(value, "ndim", 0) > 0:
            return None
        number = float(value)
        if not math.isfinite(number):
            raise OptionError(f"{number}: expected a finite number")
        return number
    if kind is str:
        return str(value) if isinstance(value, str) else None
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else None
    origin = get_origin(kind) or kind
    if origin is os.PathLike:
        return os.fspath(value) if isinstance(value, os.PathLike) else None
    if origin is collections.abc.Mapping:
        return _mapping(value, kind)
    if origin in {collections.abc.Sequence, collections.abc.Iterable}:
        return _list(value, kind)
    return value if kind is Any else None


def _mapping(value: Any, kind: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    inner = get_args(kind)[1] if get_args(kind) else Any
    out = {str(key): x if inner is Any else _plain(x, inner) for key, x in value.items()}
    return None if any(x is None for x in out.values()) else out


def _list(value: Any, kind: Any) -> list[Any] | None:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, collections.abc.Iterable):
        return None
    inner = get_args(kind)[0] if get_args(kind) else Any
    choices = get_args(inner) if get_origin(inner) in {Union, type(int | str)} else (inner,)
    out = []
    for x in value:
        found = next((y for y in (_plain(x, choice) for choice in choices) if y is not None), None)
        if found is None:
            return None
        out.append(found)
    return out


def _words(kind: Any) -> str:
    """Describes a type in words."""
    if get_origin(kind) in {Union, type(int | str)}:
        words = list(dict.fromkeys(_words(k) for k in get_args(kind)))
        # Paths may be texts.
        return " or ".join(word for word in words if word != "a text" or "a path" not in words)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    origin = get_origin(kind) or kind
    names = {
        bool: "True or False",
        int: "an integer",
        float: "a number",
        str: "a text",
        os.PathLike: "a path",
        collections.abc.Mapping: "a mapping",
        collections.abc.Sequence: "a sequence",
        collections.abc.Iterable: "a sequence",
    }
    return names.get(origin, getattr(origin, "__name__", str(origin)))


def with_options(
    command: str, options: type, *, leave_out: Collection[str] = (), also: Collection[type] = ()
) -> Callable[[F], F]:
    """Decorates a function or class that takes ``**options``.

    The decorator lists the options in the signature, checks them in each call, and documents each of them in the docstring.
    ``also`` are types with options of other functions; these are passed on unchecked, so that the function can refer to the
    function that has them.
    """
    kinds = {name: kind for name, kind in get_type_hints(options).items() if name not in leave_out}
    elsewhere = {name for other in also for name in get_type_hints(other)} - set(kinds)

    def decorate(function: F) -> F:
        if inspect.isclass(function):
            made = decorate(function.__init__)
            function.__init__ = made  # type: ignore[method-assign]
            function.__doc__ = (function.__doc__ or "").rstrip() + (made.__doc__ or "").rstrip()
            return function
        own = inspect.signature(function)
        positional = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        named = {p.name for p in positional}

        @functools.wraps(function)
        def call(*arguments: Any, **given: Any) -> Any:
            for name in given:
                if name in named or name in elsewhere:
                    continue
                if name in kinds:
                    given[name] = checked(name, given[name], kinds[name])
                elif name in PROGRAM_ONLY:
                    raise TypeError(f"{name}= is only an option of the program; {PROGRAM_ONLY[name]}")
                else:
                    near = difflib.get_close_matches(name, [*kinds, *named], 1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}")
            return function(*arguments, **{name: value for name, value in given.items() if value is not None or name in named})

        shown = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Union[kind, None])
            for name, kind in kinds.items()
            if name not in named
        ]
        call.__signature__ = own.replace(parameters=[*positional, *shown])  # type: ignore[attr-defined]
        call.__annotations__ = {
            **{name: kind for name, kind in function.__annotations__.items() if name != "options"},
            **{p.name: p.annotation for p in shown},
        }
        descriptions = dict(reversed(_inertial.options(command)))
        lines = [f"        {name}: {descriptions[name]}" for name in kinds if name in descriptions]
        call.__doc__ = "\n".join([(function.__doc__ or "").rstrip(), "", "    Options:", *lines])
        return call  # type: ignore[return-value]

    return decorate
