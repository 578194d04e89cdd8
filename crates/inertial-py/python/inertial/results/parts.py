"""Parts that several results share: bodies, joints, parameters and residuals, with their tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._result import Result
from .._tables import Table, combination, percent, residual, show, with_error

if TYPE_CHECKING:
    from .._inertial import Floats


class Body(Result):
    """Estimated body; its inertia is about the centre of mass, along the axes of the link (as in URDF)."""

    name: str
    links: list[str] | None
    mass: float
    com: list[float]
    mass_std_error: float | None
    com_std_error: list[float] | None
    inertia: dict[str, float]
    consistent: bool
    pseudo_inertia_min_eigenvalue: float
    manifold: dict[str, Any] | None

    def _headline(self) -> str:
        possible = "consistent" if self.consistent else "not consistent"
        return f"{self.name}: {with_error(self.mass, self.mass_std_error)} kg, {possible}"

    def _tables(self) -> list[Table]:
        rows = [
            ["centre of mass (m)", with_error(self.com, self.com_std_error, 3)],
            ["inertia (kg m²)", ", ".join(f"{name} {show(x, 4)}" for name, x in self.inertia.items())],
        ]
        return [Table(["quantity", "value"], rows)]


class Joint(Result):
    """Friction, offset, rotor inertia and other terms of a joint; ``None`` if they were not estimated."""

    name: str
    viscous: float | None
    coulomb: float | None
    coulomb_positive: float | None
    coulomb_negative: float | None
    stribeck: float | None
    stribeck_velocity: float | None
    stribeck_exponent: float | None
    offset: float | None
    rotor_inertia: float | None
    gain: float | None
    gain_std_error: float | None
    terms: dict[str, float] | None
    turns_with: dict[str, float] | None
    std_errors: dict[str, float] | None

    def _headline(self) -> str:
        errors = self.std_errors or {}

        def term(title: str, name: str, value: float) -> str:
            return f"{title} {with_error(value, errors.get(name))}"

        found = [term(title, key, self._data[key]) for key, title in _TERMS.items() if self._data.get(key) is not None]
        found += [term(name, name, x) for name, x in (self.terms or {}).items()]
        if self.turns_with:
            found.append(f"its drive turns with {combination(self.turns_with)}")
        return f"{self.name}: {', '.join(found) or 'nothing was estimated'}"


#: Titles of the terms of a joint, as in the output of the program.
_TERMS = {
    "viscous": "viscous",
    "coulomb": "Coulomb",
    "coulomb_positive": "forward",
    "coulomb_negative": "backward",
    "stribeck": "Stribeck",
    "stribeck_velocity": "at speed",
    "stribeck_exponent": "exponent",
    "offset": "offset",
    "rotor_inertia": "rotor inertia",
    "gain": "gain",
    "gain_std_error": "its error",
}


class Parameter(Result):
    """Estimated base parameter."""

    name: str
    value: float
    std_error: float
    relative_std_error: float | None
    model: float | None
    difference_in_std_errors: float | None

    def _headline(self) -> str:
        return f"{self.name} = {with_error(self.value, self.std_error)}"


class Residual(Result):
    """Residual of the predicted forces of a joint."""

    joint: str
    #: Number of samples that are used.
    samples: int | None
    rms: float
    relative_rms: float | None
    rms_raw: float | None
    relative_rms_raw: float | None
    left_out: float | None
    durbin_watson: float | None
    white: bool | None
    ljung_box: float | None
    ljung_box_p: float | None

    def _headline(self) -> str:
        return f"{self.joint}: rms {show(self.rms, 4)}, {residual(self.relative_rms)} of the measured forces"


def bodies_table(bodies: list[Body], least_norm: dict[str, Any] | None = None) -> Table:
    """Returns the table of bodies. Those of a least-norm solution have a centre of mass only if their mass is identifiable alone."""

    def com(b: Body) -> str:
        determined = b.mass > 0 and (least_norm is None or b.name in least_norm["masses"])
        return with_error(b.com, b.com_std_error, 3) if determined else "-"

    mass = "mass (kg)" if least_norm is None else "least-norm mass (kg)"
    below = [] if least_norm is None else ["least-norm values: one of many sets that predict the same forces, not physical bodies"]
    rows = [[b.name, with_error(b.mass, b.mass_std_error), com(b), show(b.consistent)] for b in bodies]
    return Table(["body", mass, "centre of mass (m)", "consistent"], rows, below)


def joints_table(joints: list[Joint]) -> Table:
    """Returns the table of joint terms, with the columns that some joint has."""
    shown = [key for key in _TERMS if any(joint.get(key) is not None for joint in joints)]
    rows = []
    for joint in joints if shown else []:
        errors = joint.std_errors or {}
        rows.append([joint.name, *(with_error(joint.get(key), errors.get(key)) for key in shown)])
    below = [joint._headline() for joint in joints if joint.terms or joint.turns_with]
    return Table(["joint", *(_TERMS[key] for key in shown)], rows, below)


def parameters_table(parameters: list[Parameter]) -> Table:
    rows = [[p.name, show(p.value), show(p.std_error, 2), percent(p.relative_std_error)] for p in parameters]
    return Table(["base parameter", "value", "standard error", "relative"], rows)


def residuals_table(title: str, residuals: list[Residual], together: float | None, measured: str | None = None) -> Table:
    rows = [
        [r.joint, show(r.rms, 4), residual(r.relative_rms), show(r.rms_raw, 4), show(r.durbin_watson, 3)]
        for r in residuals
    ]
    below = [] if together is None else [f"all joints: {residual(together)}"]
    heads = ["rms (N s, N m s)", "of momentum"] if measured == "momentum" else ["rms (N m, N)", "of force"]
    return Table([title, *heads, "unfiltered", "Durbin-Watson"], rows, below)


def values_of(result: Mapping[str, Any]) -> tuple[list[str], Floats, Floats]:
    """Returns names, values and standard errors of all unknowns of a result: base parameters, then terms of the joints."""
    import numpy as np

    names = [parameter["name"] for parameter in result.get("base_parameters", [])]
    values = [parameter["value"] for parameter in result.get("base_parameters", [])]
    errors = [parameter["std_error"] for parameter in result.get("base_parameters", [])]
    terms = ("viscous", "coulomb", "coulomb_positive", "coulomb_negative", "stribeck", "offset", "rotor_inertia")
    for joint in result.get("joints", []):
        std_errors = joint.get("std_errors", {})
        for term in terms:
            if joint.get(term) is not None and (term != "rotor_inertia" or term in std_errors):
                names.append(f"{joint['name']}.{term}")
                values.append(joint[term])
                errors.append(std_errors.get(term, float("nan")))
    return names, np.array(values, dtype=float), np.array(errors, dtype=float)

