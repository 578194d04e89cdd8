"""Base class of results: the program's JSON as an object that prints as tables."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from ._tables import Table

#: Largest number of notes that are printed with a result.
_PRINTED_NOTES = 10


R = TypeVar("R", bound="Result")


class Named(list[R]):
    """List whose entries are found by index or by name: ``bodies[0]`` and ``bodies["link_1"]``."""

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, str):
            return super().__getitem__(place)
        for entry in self:
            if (entry._data.get("name") or entry._data.get("joint")) == place:
                return entry
        known = ", ".join(str(entry._data.get("name") or entry._data.get("joint")) for entry in self)
        raise KeyError(f"there is no {place!r}; there are {known}")


class Result(Mapping[str, Any]):
    """JSON object whose entries are also attributes. Optional entries that are absent are ``None``."""

    #: Types of entries that are objects, or lists of them.
    _parts: ClassVar[dict[str, type[Result]]] = {}
    #: Name of the list that :meth:`to_pandas` returns by default.
    _frame: ClassVar[str] = ""

    def __init__(self, data: Mapping[str, Any], notes: list[str] | None = None) -> None:
        self._data = dict(data)
        #: Notes about repairs, choices and omissions.
        self.notes = notes or []

    def _log(self) -> Mapping[str, Any] | None:
        """Returns the columns of a log, if the result has them."""
        return None

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = self._data.get(name)
        part = self._parts.get(name)
        if name not in self._data and name not in _annotated(type(self)):
            raise AttributeError(f"{type(self).__name__} has no {name}; it has {', '.join(self._data)}")
        if part is None or value is None:
            return value
        return Named(part(x) for x in value) if isinstance(value, list) else part(value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result object of the program as a dictionary."""
        return self._data

    def to_json(self, indent: int | None = 2) -> str:
        """Returns the JSON that the program prints with --json."""
        return json.dumps(self._data, indent=indent)

    def to_pandas(self, part: str | None = None) -> Any:
        """Returns the main list of the result as a pandas frame, or another ``part`` ("bodies", "joints", "fit", …)."""
        import pandas

        return pandas.json_normalize(self._data.get(part or self._frame, [self._data]))

    def _tables(self) -> list[Table]:
        return []

    def _headline(self) -> str:
        return type(self).__name__

    def _said(self) -> list[str]:
        more = len(self.notes) - _PRINTED_NOTES
        rest = [f"and {more} more in notes"] if more > 0 else []
        return [*self._data.get("warnings", []), *self.notes[:_PRINTED_NOTES], *rest]

    def __repr__(self) -> str:
        return f"<inertial.{type(self).__name__}: {self._headline()}>"

    def __str__(self) -> str:
        tables = [text for text in (table.text() for table in self._tables()) if text]
        notes = "\n".join(f"note: {note}" for note in self._said())
        return "\n\n".join([self._headline(), *tables, *([notes] if notes else [])])

    def _repr_html_(self) -> str:
        tables = "".join(table.html() for table in self._tables())
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self._said())
        return f"<p><b>{html.escape(self._headline())}</b></p>{tables}" + (f"<ul>{notes}</ul>" if notes else "")


def _annotated(kind: type) -> set[str]:
    return {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}
