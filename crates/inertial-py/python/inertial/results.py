"""Results: the program's JSON as typed objects that print as tables."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from ._inertial import Floats


class Result(Mapping[str, Any]):
    """A JSON object whose entries are attributes too. Absent entries are ``None``."""

    #: Types of entries that are objects, or lists of them.
    _parts: ClassVar[dict[str, type[Result]]] = {}
    #: The list that the result's table shows, and its columns.
    _table: ClassVar[tuple[str, tuple[str, ...]]] = ("", ())

    def __init__(self, data: Mapping[str, Any], notes: list[str] | None = None) -> None:
        self._data = dict(data)
        #: What the program said beside the result.
        self.notes = notes or []

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
        return [part(x) for x in value] if isinstance(value, list) else part(value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def to_dict(self) -> dict[str, Any]:
        """The program's result object."""
        return self._data

    def to_json(self, indent: int | None = 2) -> str:
        """As the program prints it with --json."""
        return json.dumps(self._data, indent=indent)

    def to_pandas(self) -> Any:
        """The result's table as a pandas frame."""
        import pandas

        name, _ = self._table
        rows = self._data.get(name, [self._data])
        return pandas.json_normalize(rows)

    def _rows(self) -> tuple[tuple[str, ...], list[list[str]]]:
        name, columns = self._table
        return columns, [[_show(row.get(c)) for c in columns] for row in self._data.get(name, [])]

    def _headline(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<inertial.{type(self).__name__}: {self._headline()}>"

    def __str__(self) -> str:
        columns, rows = self._rows()
        lines = [self._headline()]
        if columns:
            widths = [max(len(r[k]) for r in [list(columns), *rows]) for k in range(len(columns))]
            data = self._data.get(self._table[0], [])
            numbers = [all(isinstance(r.get(c), (int, float, type(None))) for r in data) for c in columns]
            for row in [list(columns), *rows]:
                cells = zip(row, widths, numbers, strict=True)
                lines.append("  ".join(x.rjust(w) if right else x.ljust(w) for x, w, right in cells).rstrip())
        lines += [f"note: {w}" for w in [*self._data.get("warnings", []), *self.notes]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns, rows = self._rows()
        cell = html.escape
        head = "".join(f"<th>{cell(c)}</th>" for c in columns)
        body = "".join("<tr>" + "".join(f"<td>{cell(x)}</td>" for x in row) + "</tr>" for row in rows)
        notes = "".join(f"<li>{cell(w)}</li>" for w in [*self._data.get("warnings", []), *self.notes])
        return (
            f"<p><b>{cell(self._headline())}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            + (f"<ul>{notes}</ul>" if notes else "")
        )


def _annotated(kind: type) -> set[str]:
    return {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}


def _show(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list):
        return " ".join(_show(x) for x in value)
    if isinstance(value, dict):
        return _sum(value)
    return str(value)


def _sum(combination: dict[str, float]) -> str:
    """1 a + -2 b as "a - 2 b"."""
    out = ""
    for name, factor in combination.items():
        sign = ("-" if factor < 0 else "") if not out else (" - " if factor < 0 else " + ")
        size = "" if abs(factor) == 1 else f"{abs(factor):.5g} "
        out += f"{sign}{size}{name}"
    return out


class Body(Result):
    """A body of a result: inertia about the centre of mass, along the link's axes (as in URDF)."""

    name: str
    mass: float
    com: list[float]
    mass_std_error: float | None
    com_std_error: list[float] | None
    inertia: dict[str, float]
    consistent: bool
    pseudo_inertia_min_eigenvalue: float

    def _headline(self) -> str:
        return f"{self.name}, {_show(self._data.get('mass'))} kg"


class Parameter(Result):
    """A base parameter."""

    name: str
    value: float
    std_error: float
    relative_std_error: float | None
    combination: dict[str, float] | None

    def _headline(self) -> str:
        return f"{self.name} = {_show(self._data.get('value'))} ± {_show(self._data.get('std_error'))}"


class Joint(Result):
    """A joint's friction, offset and rotor inertia; ``None`` where they were not estimated."""

    name: str
    viscous: float | None
    coulomb: float | None
    offset: float | None
    rotor_inertia: float | None

    def _headline(self) -> str:
        return self.name


class Residual(Result):
    """How well a joint's forces are predicted."""

    joint: str
    rms: float
    relative_rms: float
    rms_raw: float

    def _headline(self) -> str:
        return f"{self.joint}: {100 * self.relative_rms:.2f} %"


class Check(Result):
    """Whether the bodies of a model can exist."""

    consistent: bool
    bodies: list[Body]
    _parts: ClassVar[dict[str, type[Result]]] = {"bodies": Body}
    _table = ("bodies", ("name", "mass", "consistent", "pseudo_inertia_min_eigenvalue", "violations"))

    def _headline(self) -> str:
        return "all bodies can exist" if self.consistent else "some bodies cannot exist"

    def __bool__(self) -> bool:
        return self.consistent


class Analysis(Result):
    """Which parameters can be known, and in which combinations."""

    model: dict[str, Any]
    measured: str
    method: str
    parameters: int
    rank: int
    nullity: int
    bodies: list[Body]
    base_parameters: list[Parameter]
    certificate: dict[str, Any]
    warnings: list[str]
    _parts: ClassVar[dict[str, type[Result]]] = {"bodies": Body, "base_parameters": Parameter}
    _table = ("base_parameters", ("name", "combination"))

    def _headline(self) -> str:
        exact = "exactly" if self.certificate.get("exact") else "numerically"
        return f"{self.model['name']}: {self.rank} of {self.parameters} parameters, or combinations of them, can be known ({exact})"


class Design(Result):
    """A motion that reveals the parameters. ``simulate`` takes it as it is."""

    model: dict[str, Any]
    criterion: dict[str, Any]
    duration: float
    rate: float
    structural_rank: int
    rank: int
    base_parameters: list[Parameter]
    trajectory: dict[str, Any]
    interrupted: bool
    warnings: list[str]
    _parts: ClassVar[dict[str, type[Result]]] = {"base_parameters": Parameter}
    _table = ("base_parameters", ("name", "value", "std_error", "relative", "weak"))

    def _headline(self) -> str:
        return f"{self.model['name']}: {self.duration:g} s of motion show {self.rank} of {self.structural_rank} base parameters"


class Simulation(Result):
    """What the sensors would read: ``columns`` is a log, as ``identify`` takes it."""

    model: dict[str, Any]
    mode: str
    samples: int
    drift: dict[str, Any]
    warnings: list[str]
    #: The log: arrays by name.
    columns: dict[str, Floats]

    def __init__(self, data: Mapping[str, Any], notes: list[str], columns: dict[str, Floats]) -> None:
        super().__init__(data, notes)
        self.columns = columns

    def to_pandas(self) -> Any:
        """The log as a pandas frame."""
        import pandas

        return pandas.DataFrame(self.columns)

    def _headline(self) -> str:
        return f"{self.model['name']}: {self.samples} samples of {len(self.columns)} columns"


class Identification(Result):
    """Parameters found from measurements."""

    model: dict[str, Any]
    estimator: str
    samples: int
    rank: int
    excited: int
    bodies: list[Body]
    joints: list[Joint]
    base_parameters: list[Parameter]
    fit: list[Residual]
    fit_relative_rms: float
    validation: list[Residual]
    validation_relative_rms: float | None
    warnings: list[str]
    _parts: ClassVar[dict[str, type[Result]]] = {
        "bodies": Body,
        "joints": Joint,
        "base_parameters": Parameter,
        "fit": Residual,
        "validation": Residual,
    }
    _table = ("base_parameters", ("name", "value", "std_error", "relative_std_error"))

    def _headline(self) -> str:
        name = self.model["name"] if self.model else "robot"
        return f"{name}: {self.samples} samples, {self.excited} of {self.rank} base parameters shown ({self.estimator})"


class Validation(Result):
    """How well a model predicts measurements."""

    samples: int
    joints: list[Residual]
    relative_rms: float
    _parts: ClassVar[dict[str, type[Result]]] = {"joints": Residual}
    _table = ("joints", ("joint", "rms", "relative_rms", "rms_raw"))

    def _headline(self) -> str:
        return f"residual {100 * self.relative_rms:.2f} % of the measured forces"


class FleetPayload(Result):
    """What a robot of a fleet carries, in the frame of the link that carries it."""

    body: Body
    base_parameters: list[Parameter]
    excited: int
    _parts: ClassVar[dict[str, type[Result]]] = {"body": Body, "base_parameters": Parameter}
    _table = ("base_parameters", ("name", "value", "std_error", "relative_std_error"))

    def _headline(self) -> str:
        return f"payload of {self.body.mass:.4g} kg"


class Member(Result):
    """What is a robot's own in a fleet."""

    joints: list[Joint]
    residuals: list[Residual]
    relative_rms: float
    payload: FleetPayload | None
    _parts: ClassVar[dict[str, type[Result]]] = {"joints": Joint, "residuals": Residual, "payload": FleetPayload}

    def _headline(self) -> str:
        return f"residual {100 * self.relative_rms:.2f} %"


class Fleet(Result):
    """Robots of one type: common link parameters, and what is each robot's own."""

    common: Identification
    robots: list[Member]
    _parts: ClassVar[dict[str, type[Result]]] = {"common": Identification, "robots": Member}
    _table = ("robots", ("relative_rms",))

    def _headline(self) -> str:
        return f"{len(self.robots)} robots; {self.common._headline()}"
