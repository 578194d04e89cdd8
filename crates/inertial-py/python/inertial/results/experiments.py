"""Results of ``design`` and ``simulate``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .._result import Result
from .._tables import Table, percent, show, with_error

if TYPE_CHECKING:
    from .._inertial import Floats


class DesignedParameter(Result):
    """Expected error of a base parameter or joint term, and the reason if it is weakly excited."""

    name: str
    value: float
    std_error: float | None
    relative: float | None
    inflation: float | None
    weak: bool
    reason: str | None

    def _headline(self) -> str:
        weak = f", weak: {self.reason}" if self.weak else ""
        return f"{self.name} to {with_error(self.value, self.std_error)}{weak}"


class Design(Result):
    """Designed motion that excites the parameters; ``simulate`` accepts it as a trajectory."""

    model: dict[str, Any]
    measured: str
    criterion: dict[str, Any]
    duration: float
    rate: float
    samples: int
    structural_rank: int
    rank: int
    unknowns: int
    excited: int
    smallest_singular_value: float
    condition: float | None
    scaled_condition: float | None
    base_parameters: list[DesignedParameter]
    joint_terms: list[DesignedParameter]
    weak: list[str]
    limits: list[dict[str, Any]]
    trajectory: dict[str, Any]
    interrupted: bool
    converged: bool
    warnings: list[str]
    warning_codes: list[str]
    _parts: ClassVar[dict[str, type[Result]]] = {
        "base_parameters": DesignedParameter,
        "joint_terms": DesignedParameter,
    }
    _frame = "base_parameters"

    def _headline(self) -> str:
        return f"{self.model['name']}: {self.duration:g} s of motion excite {self.rank} of {self.structural_rank} base parameters"

    def _tables(self) -> list[Table]:
        rows = [
            [p.name, show(p.value), show(p.std_error, 2), percent(p.relative), p.reason or "" if p.weak else ""]
            for p in self.base_parameters
        ]
        return [Table(["base parameter", "value", "standard error", "relative", "reason if weak"], rows)]


class Simulation(Result):
    """Simulated sensor readings; ``identify`` accepts them as a log."""

    model: dict[str, Any]
    mode: str
    measured: str
    samples: int
    start: float
    end: float
    seed: int
    drift: dict[str, Any]
    warnings: list[str]
    warning_codes: list[str]
    #: Columns of the log: arrays by name.
    columns: dict[str, Floats]

    def __init__(self, data: Mapping[str, Any], notes: list[str], columns: dict[str, Floats]) -> None:
        super().__init__(data, notes)
        self.columns = columns

    def _log(self) -> Mapping[str, Any]:
        return self.columns

    def plot(self, axes: Any = None) -> Any:
        """Draws the columns over time, with one plot for each quantity; needs matplotlib."""
        from .._plots import simulation

        return simulation(self.columns, axes)

    def to_pandas(self, part: str | None = None) -> Any:
        """Returns the log as a pandas frame, or a ``part`` of the result."""
        import pandas

        return pandas.DataFrame(self.columns) if part is None else super().to_pandas(part)

    def _headline(self) -> str:
        return f"{self.model['name']}: {self.samples} samples of {len(self.columns)} columns, {self.start:g} s to {self.end:g} s"

    def _tables(self) -> list[Table]:
        rows = [[name, *(show(float(x), 4) for x in (c.min(), c.max(), c.std()))] for name, c in self.columns.items()]
        return [Table(["column", "least", "greatest", "standard deviation"], rows)]
