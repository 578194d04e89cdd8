"""Results of ``validate``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .._result import Result
from .._tables import Table, residual
from .parts import Residual, residuals_table


class Validation(Result):
    """Residuals of the predictions of a model.

    The result is false if the residual is above the given threshold, or if joints in ``unjudged`` have no torques or too few usable
    samples. For measured momentum, ``joints`` lists its components.
    """

    measured: str | None
    samples: int
    joints: list[Residual]
    unjudged: list[str]
    relative_rms: float | None
    relative_rms_raw: float | None
    left_out: float
    _parts: ClassVar[dict[str, type[Result]]] = {"joints": Residual}
    _frame = "joints"

    def __init__(self, data: Mapping[str, Any], notes: list[str] | None = None, passed: bool | None = None) -> None:
        super().__init__(data, notes)
        #: Whether the residual is within the threshold; ``None`` without a threshold.
        self.passed = passed

    def __bool__(self) -> bool:
        return self.passed is not False

    def plot(self, axes: Any = None) -> Any:
        """Draws the residuals of the joints; needs matplotlib."""
        from .._plots import residuals

        return residuals(self["joints"], axes)

    def _headline(self) -> str:
        verdict = {None: "", True: ", within the threshold", False: ", above the threshold"}[self.passed]
        if self.passed is False and self.unjudged:
            verdict = f", {', '.join(self.unjudged)} not judged"
        samples = "" if self._data.get("samples") is None else f"{self.samples} samples: "
        measured = self.measured or "forces"
        return f"{samples}residual {residual(self.relative_rms)} of the measured {measured}{verdict}"

    def _tables(self) -> list[Table]:
        title = "component" if self.measured == "momentum" else "joint"
        return [residuals_table(title, self.joints, None, self.measured)]
