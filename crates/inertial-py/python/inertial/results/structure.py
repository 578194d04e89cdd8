"""Results of ``check`` and ``analyze``."""

from __future__ import annotations

from typing import Any, ClassVar

from .._result import Result
from .._tables import Table, combination, show


class CheckedBody(Result):
    """Consistency of a body, with the reasons if it is not physically consistent."""

    name: str
    mass: float
    consistent: bool
    pseudo_inertia_min_eigenvalue: float
    manifold: dict[str, Any] | None
    rounding: dict[str, Any] | None
    violations: list[str]
    reasons: list[str] | None
    doubts: list[str] | None
    doubt_reasons: list[str] | None
    nearest: dict[str, Any] | None

    def _headline(self) -> str:
        doubtful = f", doubtful: {'; '.join(self.doubts)}" if self.doubts else ""
        verdict = f"consistent{doubtful}" if self.consistent else f"not consistent: {'; '.join(self.violations)}"
        return f"{self.name}, {show(self.mass)} kg: {verdict}"


class Check(Result):
    """Physical consistency of the bodies of a model. The result is true if all bodies are consistent."""

    consistent: bool
    bodies: list[CheckedBody]
    _parts: ClassVar[dict[str, type[Result]]] = {"bodies": CheckedBody}
    _frame = "bodies"

    def _headline(self) -> str:
        return "all bodies are physically consistent" if self.consistent else "some bodies are not physically consistent"

    def _tables(self) -> list[Table]:
        rows = [[b.name, show(b.mass), show(b.consistent), "; ".join(b.violations + (b.doubts or []))] for b in self.bodies]
        return [Table(["body", "mass (kg)", "consistent", "reason"], rows)]

    def __bool__(self) -> bool:
        return self.consistent


class AnalyzedBody(Result):
    """Status of each parameter of a body: "identifiable", "combined" or "unidentifiable"."""

    name: str
    parent: str
    joint: str
    joint_type: str
    velocity_span: int
    identifiable_span: int
    transfer_freedoms: int
    parameters: dict[str, str]
    base_parameters: list[str]

    def _headline(self) -> str:
        words = {"identifiable": "alone", "combined": "in combinations", "unidentifiable": "not"}
        found = {word: [p for p in _TEN if self.parameters.get(p) == status] for status, word in words.items()}
        described = ", ".join(f"{word} {' '.join(names)}" for word, names in found.items() if names)
        return f"{self.name} on {self.joint} ({self.joint_type}): identifiable {described}"


class BaseParameter(Result):
    """Identifiable combination of parameters."""

    name: str
    #: Factors by parameter; absent if a model has too many combinations to list.
    combination: dict[str, float] | None

    def _headline(self) -> str:
        return combination(self.combination) if self.combination else self.name


#: Names of the ten parameters of a body.
_TEN = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


class Analysis(Result):
    """Identifiable parameters and combinations of parameters."""

    model: dict[str, Any]
    measured: str
    total_momentum: str | None
    motions: str
    method: str
    parameters: int
    rank: int
    rank_literal: int
    nullity: int
    bodies: list[AnalyzedBody]
    base_parameters: list[BaseParameter]
    null_vectors: list[dict[str, Any]] | None
    principles: dict[str, int] | None
    principles_in_paper: dict[str, int] | None
    null_space: list[dict[str, Any]]
    assumed: list[dict[str, Any]] | None
    certificate: dict[str, Any]
    compared_with: str | None
    comparison: dict[str, Any] | None
    warnings: list[str]
    warning_codes: list[str]
    _parts: ClassVar[dict[str, type[Result]]] = {"bodies": AnalyzedBody, "base_parameters": BaseParameter}

    def _headline(self) -> str:
        exact = "exactly" if self.certificate.get("exact") else "numerically"
        return f"{self.model['name']}: {self.rank} of {self.parameters} parameters, or combinations of them, are identifiable ({exact})"

    def _tables(self) -> list[Table]:
        shown = [p for p in _TEN if any(p in body.parameters for body in self.bodies)]
        marks = {"identifiable": "★", "combined": "○", "unidentifiable": "✕"}

        def mark(body: AnalyzedBody, parameter: str) -> str:
            status = body.parameters.get(parameter)
            combined = status == "combined" and parameter in body.base_parameters
            return "●" if combined else marks.get(status or "", "")

        rows = [[body.name, *(mark(body, p) for p in shown)] for body in self.bodies]
        legend = ["★ alone  ● in combination with others  ○ only as part of another's combination  ✕ not"]
        sums = [[p._headline()] for p in self.base_parameters if len(p.combination or ()) > 1]
        return [Table(["body", *shown], rows, legend), Table(["combinations"], sums)]

    def to_pandas(self, part: str | None = None) -> Any:
        """Returns a pandas frame with a row for each parameter: body, name, status, whether it is a base parameter, and its combination."""
        import pandas

        if part is not None:
            return super().to_pandas(part)
        sums = {p.name: p._headline() for p in self.base_parameters}
        rows = [
            (body.name, name, status, name in body.base_parameters, sums.get(f"{body.name}.{name}", ""))
            for body in self.bodies
            for name, status in sorted(body.parameters.items(), key=lambda item: _TEN.index(item[0]))
        ]
        return pandas.DataFrame(rows, columns=["body", "parameter", "status", "base", "combination"])
