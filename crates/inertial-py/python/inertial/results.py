"""Results: the program's JSON as typed objects that print as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ._result import Named, Result
from ._tables import Table, combination, percent, residual, show, with_error
from .errors import Error
from .fitted import FittedModel, save, values_of

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike

    from ._inertial import Floats
    from .mechanism import Mechanism


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
        possible = "can exist" if self.consistent else "cannot exist"
        return f"{self.name}: {with_error(self.mass, self.mass_std_error)} kg, {possible}"

    def _tables(self) -> list[Table]:
        rows = [
            ["centre of mass (m)", with_error(self.com, self.com_std_error, 3)],
            ["inertia (kg m²)", ", ".join(f"{name} {show(x, 4)}" for name, x in self.inertia.items())],
        ]
        return [Table(["quantity", "value"], rows)]


class Joint(Result):
    """A joint's friction, offset, rotor inertia and other terms; ``None`` where they were not estimated."""

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

        def told(title: str, name: str, value: float) -> str:
            return f"{title} {with_error(value, errors.get(name))}"

        found = [told(title, key, self._data[key]) for key, title in _TERMS.items() if self._data.get(key) is not None]
        found += [told(name, name, x) for name, x in (self.terms or {}).items()]
        if self.turns_with:
            found.append(f"its drive turns with {combination(self.turns_with)}")
        return f"{self.name}: {', '.join(found) or 'nothing was estimated of it'}"


#: Titles of a joint's terms, as the program has them.
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
    """A base parameter as it was found."""

    name: str
    value: float
    std_error: float
    relative_std_error: float | None
    model: float | None
    difference_in_std_errors: float | None

    def _headline(self) -> str:
        return f"{self.name} = {with_error(self.value, self.std_error)}"


class Residual(Result):
    """How well a joint's forces are predicted."""

    joint: str
    #: Samples that count.
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
        return f"{self.joint}: rms {show(self.rms, 4)}, {residual(self.relative_rms)} of what was measured"


def _bodies(bodies: list[Body]) -> Table:
    header = ["body", "mass (kg)", "centre of mass (m)", "can exist"]
    rows = [
        [b.name, with_error(b.mass, b.mass_std_error), with_error(b.com, b.com_std_error, 3), show(b.consistent)]
        for b in bodies
    ]
    return Table(header, rows)


def _joints(joints: list[Joint]) -> Table:
    """Those terms that were asked for."""
    shown = [key for key in _TERMS if any(joint.get(key) is not None for joint in joints)]
    rows = []
    for joint in joints if shown else []:
        errors = joint.std_errors or {}
        rows.append([joint.name, *(with_error(joint.get(key), errors.get(key)) for key in shown)])
    below = [joint._headline() for joint in joints if joint.terms or joint.turns_with]
    return Table(["joint", *(_TERMS[key] for key in shown)], rows, below)


def _parameters(parameters: list[Parameter]) -> Table:
    rows = [[p.name, show(p.value), show(p.std_error, 2), percent(p.relative_std_error)] for p in parameters]
    return Table(["base parameter", "value", "standard error", "relative"], rows)


def _residuals(title: str, residuals: list[Residual], together: float | None) -> Table:
    rows = [
        [r.joint, show(r.rms, 4), residual(r.relative_rms), show(r.rms_raw, 4), show(r.durbin_watson, 3)]
        for r in residuals
    ]
    below = [] if together is None else [f"all joints: {residual(together)}"]
    return Table([title, "rms (N m, N)", "of force", "unfiltered", "Durbin-Watson"], rows, below)


class CheckedBody(Result):
    """Whether a body can exist, and what speaks against it."""

    name: str
    mass: float
    consistent: bool
    pseudo_inertia_min_eigenvalue: float
    violations: list[str]
    reasons: list[str] | None
    nearest: dict[str, Any] | None

    def _headline(self) -> str:
        verdict = "can exist" if self.consistent else f"cannot exist: {'; '.join(self.violations)}"
        return f"{self.name}, {show(self.mass)} kg: {verdict}"


class Check(Result):
    """Whether the bodies of a model can exist. True where they can."""

    consistent: bool
    bodies: list[CheckedBody]
    _parts: ClassVar[dict[str, type[Result]]] = {"bodies": CheckedBody}
    _frame = "bodies"

    def _headline(self) -> str:
        return "all bodies can exist" if self.consistent else "some bodies cannot exist"

    def _tables(self) -> list[Table]:
        rows = [[b.name, show(b.mass), show(b.consistent), "; ".join(b.violations)] for b in self.bodies]
        return [Table(["body", "mass (kg)", "can exist", "because"], rows)]

    def __bool__(self) -> bool:
        return self.consistent


class AnalyzedBody(Result):
    """What can be known of a body's parameters: "identifiable", "combined" or "unidentifiable"."""

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
        told = ", ".join(f"{word} {' '.join(names)}" for word, names in found.items() if names)
        return f"{self.name} on {self.joint} ({self.joint_type}): known {told}"


class BaseParameter(Result):
    """A combination of parameters that can be known."""

    name: str
    #: Absent where the combinations of a model are too many to list.
    combination: dict[str, float] | None

    def _headline(self) -> str:
        return combination(self.combination) if self.combination else self.name


#: Parameters of a body.
_TEN = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


class Analysis(Result):
    """Which parameters can be known, and in which combinations."""

    model: dict[str, Any]
    measured: str
    motions: str
    method: str
    parameters: int
    rank: int
    rank_literal: int
    nullity: int
    bodies: list[AnalyzedBody]
    base_parameters: list[BaseParameter]
    null_vectors: list[dict[str, Any]] | None
    null_space: list[dict[str, Any]] | None
    assumed: list[dict[str, Any]] | None
    certificate: dict[str, Any]
    compared_with: str | None
    comparison: dict[str, Any] | None
    warnings: list[str]
    _parts: ClassVar[dict[str, type[Result]]] = {"bodies": AnalyzedBody, "base_parameters": BaseParameter}

    def _headline(self) -> str:
        exact = "exactly" if self.certificate.get("exact") else "numerically"
        return f"{self.model['name']}: {self.rank} of {self.parameters} parameters, or combinations of them, can be known ({exact})"

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
        """A row for each parameter: its body, name, status, whether it is a base parameter, and its combination."""
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


class DesignedParameter(Result):
    """How well a motion shows a base parameter, or why it does not."""

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
    """A motion that reveals the parameters. ``simulate`` takes it as it is."""

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
    _parts: ClassVar[dict[str, type[Result]]] = {
        "base_parameters": DesignedParameter,
        "joint_terms": DesignedParameter,
    }
    _frame = "base_parameters"

    def _headline(self) -> str:
        return f"{self.model['name']}: {self.duration:g} s of motion show {self.rank} of {self.structural_rank} base parameters"

    def _tables(self) -> list[Table]:
        rows = [
            [p.name, show(p.value), show(p.std_error, 2), percent(p.relative), p.reason or "" if p.weak else ""]
            for p in self.base_parameters
        ]
        return [Table(["base parameter", "value", "standard error", "relative", "weak because"], rows)]


class Simulation(Result):
    """What the sensors would read: a log, as ``identify`` takes it."""

    model: dict[str, Any]
    mode: str
    measured: str
    samples: int
    start: float
    end: float
    seed: int
    drift: dict[str, Any]
    warnings: list[str]
    #: The log: arrays by name.
    columns: dict[str, Floats]

    def __init__(self, data: Mapping[str, Any], notes: list[str], columns: dict[str, Floats]) -> None:
        super().__init__(data, notes)
        self.columns = columns

    def plot(self, axes: Any = None) -> Any:
        """Draws the columns over time, those of a quantity in one picture; needs matplotlib."""
        from ._plots import simulation

        return simulation(self, axes)

    def to_pandas(self, part: str | None = None) -> Any:
        """The log as a pandas frame."""
        import pandas

        return pandas.DataFrame(self.columns) if part is None else super().to_pandas(part)

    def _headline(self) -> str:
        return f"{self.model['name']}: {self.samples} samples of {len(self.columns)} columns, {self.start:g} s to {self.end:g} s"

    def _tables(self) -> list[Table]:
        rows = [[name, *(show(float(x), 4) for x in (c.min(), c.max(), c.std()))] for name, c in self.columns.items()]
        return [Table(["column", "least", "greatest", "standard deviation"], rows)]


class Identification(Result):
    """Parameters found from measurements."""

    t: float | None
    measured: str | None
    estimator: str
    samples: int
    rank: int
    excited: int
    bodies: Named[Body]
    joints: Named[Joint]
    base_parameters: Named[Parameter]
    fit: list[Residual]
    fit_relative_rms: float | None
    fit_relative_rms_raw: float | None
    fit_left_out: float | None
    validation: list[Residual]
    validation_relative_rms: float | None
    validation_relative_rms_raw: float | None
    validation_left_out: float | None
    duality_gap: float | None
    not_shown: list[dict[str, float]] | None
    essential: dict[str, Any] | None
    reduced_chi_squared: float | None
    verdict: str | None
    reasons: list[dict[str, Any]] | None
    deviations: list[dict[str, Any]] | None
    lag: dict[str, float] | None
    terms: list[dict[str, Any]] | None
    warnings: list[str]
    _parts: ClassVar[dict[str, type[Result]]] = {
        "bodies": Body,
        "joints": Joint,
        "base_parameters": Parameter,
        "fit": Residual,
        "validation": Residual,
    }
    _frame = "base_parameters"

    def __init__(
        self,
        data: Mapping[str, Any],
        notes: list[str] | None = None,
        model: FittedModel | None = None,
        unknowns: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, notes)
        self._fitted = model
        # Names, values and covariance of the unknowns; of payloads and momentum the result has them.
        self._unknowns = unknowns

    def __getstate__(self) -> dict[str, Any]:
        # Saved results are read without NumPy's classes.
        state = dict(self.__dict__)
        if self._unknowns is not None:
            arrays = {name: self._unknowns[name].tobytes() for name in ("values", "covariance")}
            state["_unknowns"] = {"names": self._unknowns["names"], **arrays}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        import numpy as np

        self.__dict__.update(state)
        if self._unknowns is not None:
            values, covariance = (np.frombuffer(self._unknowns[name]) for name in ("values", "covariance"))
            covariance = covariance.reshape(len(values), len(values))
            self._unknowns = {"names": self._unknowns["names"], "values": values, "covariance": covariance}

    @property
    def model(self) -> Any:
        """What was identified, as a model: ``predict``, ``residuals``, ``to_urdf``, ``save``; every function takes it."""
        return self._fitted if self._fitted is not None else self._data.get("model")

    @property
    def mechanism(self) -> Mechanism | None:
        """The model with the identified inertias."""
        return None if self._fitted is None else self._fitted.mechanism

    @property
    def names(self) -> list[str]:
        """Names of the unknowns: base parameters, then terms of the joints."""
        return values_of(self._data)[0] if self._unknowns is None else list(self._unknowns["names"])

    @property
    def theta(self) -> Floats:
        """The estimate: values of the unknowns, in the order of :attr:`names`."""
        return values_of(self._data)[1] if self._unknowns is None else self._unknowns["values"]

    @property
    def std_errors(self) -> Floats:
        """Standard errors of :attr:`theta`."""
        import numpy as np

        if self._unknowns is None:
            return values_of(self._data)[2]
        found: Floats = np.sqrt(np.maximum(np.diag(self._unknowns["covariance"]), 0))
        return found

    @property
    def covariance(self) -> Floats | None:
        """Covariance of :attr:`theta`: base parameters, then terms of the joints. ``None`` of payloads and from momentum."""
        return None if self._unknowns is None else self._unknowns["covariance"]

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Floats:
        """Forces of a motion: :meth:`inertial.fitted.FittedModel.predict`."""
        return self._as_model().predict(q, dq, ddq)

    def residuals(self, logs: Any) -> Validation:
        """Residuals on logs: :meth:`inertial.fitted.FittedModel.residuals`."""
        return self._as_model().residuals(logs)

    def to_urdf(self) -> str:
        """The URDF with the identified values."""
        return self._as_model().to_urdf()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves it; :func:`inertial.load` reads it again."""
        save(path, self)

    def _as_model(self) -> FittedModel:
        if self._fitted is None:
            raise Error("this result (of a payload, of drive gains or from momentum) is no model of the robot's torques")
        return self._fitted

    def plot(self, axes: Any = None) -> Any:
        """Draws the residuals of the joints and the relative errors of the base parameters; needs matplotlib."""
        from ._plots import identification

        return identification(self, axes)

    def _headline(self) -> str:
        return f"{self._data['model']['name']}: {self.samples} samples, {self.excited} of {self.rank} base parameters shown ({self.estimator})"

    def _tables(self) -> list[Table]:
        parameters = _parameters(self.base_parameters)
        if self.essential:
            kept, dropped = self.essential["parameters"], self.essential["dropped"]
            covered = ", ".join(dropped) or "none"
            parameters.below = [f"essential: {len(kept)} of {len(kept) + len(dropped)} unknowns; noise covers {covered}"]
        return [
            _bodies(self.bodies),
            _joints(self.joints or []),
            parameters,
            _residuals("fit", self.fit or [], self.fit_relative_rms),
            _residuals("validation", self.validation or [], self.validation_relative_rms),
        ]


class Validation(Result):
    """How well a model predicts measurements. False where the residual is above the threshold that was asked for, or joints in
    ``unjudged`` have too few samples that count."""

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
        #: Whether the residual is within the threshold; ``None`` where none was asked for.
        self.passed = passed

    def __bool__(self) -> bool:
        return self.passed is not False

    def plot(self, axes: Any = None) -> Any:
        """Draws the residuals of the joints; needs matplotlib."""
        from ._plots import residuals

        return residuals(self["joints"], axes)

    def _headline(self) -> str:
        verdict = {None: "", True: ", within the threshold", False: ", above the threshold"}[self.passed]
        if self.passed is False and self.unjudged:
            verdict = f", too few samples of {', '.join(self.unjudged)}"
        return f"{self.samples} samples: residual {residual(self.relative_rms)} of the measured forces{verdict}"

    def _tables(self) -> list[Table]:
        return [_residuals("joint", self.joints, None)]


class FleetPayload(Result):
    """What a robot of a fleet carries, in the frame of the link that carries it."""

    body: Body
    base_parameters: list[Parameter]
    excited: int
    _parts: ClassVar[dict[str, type[Result]]] = {"body": Body, "base_parameters": Parameter}
    _frame = "base_parameters"

    def _headline(self) -> str:
        return f"payload of {self.body.mass:.4g} kg"

    def _tables(self) -> list[Table]:
        return [*self.body._tables(), _parameters(self.base_parameters)]


class Member(Result):
    """What is a robot's own in a fleet."""

    joints: list[Joint]
    residuals: list[Residual]
    relative_rms: float | None
    payload: FleetPayload | None
    _parts: ClassVar[dict[str, type[Result]]] = {"joints": Joint, "residuals": Residual, "payload": FleetPayload}
    _frame = "joints"

    def _headline(self) -> str:
        payload = f", {self.payload._headline()}" if self.payload is not None else ""
        return f"residual {residual(self.relative_rms)}{payload}"

    def _tables(self) -> list[Table]:
        carried = self.payload._tables() if self.payload is not None else []
        return [_joints(self.joints), _residuals("joint", self.residuals, None), *carried]


#: Robots of a fleet that a table lists.
_LISTED = 20


class Fleet(Result):
    """Robots of one type: common link parameters, and what is each robot's own."""

    common: Identification
    robots: list[Member]
    _parts: ClassVar[dict[str, type[Result]]] = {"common": Identification, "robots": Member}
    _frame = "robots"

    def _headline(self) -> str:
        return f"{len(self['robots'])} robots; {self.common._headline()}"

    def _tables(self) -> list[Table]:
        robots = self.robots
        carries = any(robot.payload is not None for robot in robots)
        rows = []
        for k, robot in enumerate(robots[:_LISTED]):
            payload = [show(robot.payload.body.mass if robot.payload is not None else None)] if carries else []
            rows.append([str(k), residual(robot.relative_rms), *payload])
        below = [f"and {len(robots) - _LISTED} more"] if len(robots) > _LISTED else []
        own = Table(["robot", "residual", *(["payload (kg)"] if carries else [])], rows, below)
        return [own, _bodies(self.common.bodies), _parameters(self.common.base_parameters)]

    def to_pandas(self, part: str | None = None) -> Any:
        """A row for each joint of each robot: its own terms and its residual."""
        import pandas

        if part is not None:
            return super().to_pandas(part)
        rows = [
            {"robot": k, **joint, **{key: residual[key] for key in ("rms", "relative_rms")}}
            for k, robot in enumerate(self["robots"])
            for joint, residual in zip(robot["joints"], robot["residuals"], strict=True)
        ]
        return pandas.json_normalize(rows)
