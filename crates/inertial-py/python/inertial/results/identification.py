"""Results of ``identify`` and ``fleet``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .._result import Named, Result
from .._tables import Table, residual, show
from .._saved import save
from ..errors import Error
from ..fitted import FittedModel
from .parts import Body, Joint, Parameter, Residual, bodies_table, joints_table, parameters_table, residuals_table, values_of
from .validation import Validation

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike

    from .._inertial import Floats
    from ..mechanism import Mechanism


class Identification(Result):
    """Parameters identified from measurements."""

    t: float | None
    measured: str | None
    link: str | None
    estimator: str
    samples: int
    rank: int
    excited: int
    least_norm: dict[str, Any] | None
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
    intervals: list[dict[str, Any]] | None
    posterior: dict[str, Any] | None
    not_shown: list[dict[str, float]] | None
    essential: dict[str, Any] | None
    reduced_chi_squared: float | None
    verdict: str | None
    reasons: list[dict[str, Any]] | None
    deviations: list[dict[str, Any]] | None
    lag: dict[str, float] | None
    terms: list[dict[str, Any]] | None
    warnings: list[str]
    warning_codes: list[str]
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
        # Names, values and covariance of the unknowns; `None` for payloads and momentum.
        self._unknowns = unknowns

    def __getstate__(self) -> dict[str, Any]:
        # The reader of saved results does not create NumPy objects, so arrays are saved as bytes.
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
        """Identified robot as a model with ``predict``, ``residuals``, ``to_urdf`` and ``save``; every function accepts it as a model."""
        return self._fitted if self._fitted is not None else self._data.get("model")

    @property
    def mechanism(self) -> Mechanism | None:
        """Mechanism with the identified inertias."""
        return None if self._fitted is None else self._fitted.mechanism

    @property
    def names(self) -> list[str]:
        """Names of the unknowns: base parameters, then terms of the joints."""
        return values_of(self._data)[0] if self._unknowns is None else list(self._unknowns["names"])

    @property
    def theta(self) -> Floats:
        """Estimated values of the unknowns, in the order of :attr:`names`."""
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
        """Covariance of :attr:`theta`: base parameters, then terms of the joints. ``None`` for payloads and momentum."""
        return None if self._unknowns is None else self._unknowns["covariance"]

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Floats:
        """Predicts the forces of a motion; see :meth:`inertial.fitted.FittedModel.predict`."""
        return self._as_model().predict(q, dq, ddq)

    def residuals(self, logs: Any) -> Validation:
        """Computes the residuals on logs; see :meth:`inertial.fitted.FittedModel.residuals`."""
        return self._as_model().residuals(logs)

    def to_urdf(self) -> str:
        """Returns the URDF with the identified values."""
        return self._as_model().to_urdf()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves the result to a file that :func:`inertial.load` reads."""
        save(path, self)

    def _as_model(self) -> FittedModel:
        if self._fitted is None:
            raise Error("this result (of a payload, of drive gains or from momentum) is not a model of the robot's torques")
        return self._fitted

    def plot(self, axes: Any = None) -> Any:
        """Draws the residuals of the joints and the relative errors of the base parameters; needs matplotlib."""
        from .._plots import identification

        return identification(self, axes)

    def _headline(self) -> str:
        verdict = f"; verdict: {self.verdict}" if self.verdict else ""
        excited = f"{self.excited} of {self.rank} base parameters excited"
        return f"{self._data['model']['name']}: {self.samples} samples, {excited} ({self.estimator}){verdict}"

    def _said(self) -> list[str]:
        return [*(reason["message"] for reason in self._data.get("reasons") or []), *super()._said()]

    def _tables(self) -> list[Table]:
        parameters = parameters_table(self.base_parameters)
        if self.essential:
            kept, dropped = self.essential["parameters"], self.essential["dropped"]
            covered = ", ".join(dropped) or "none"
            parameters.below = [f"essential: {len(kept)} of {len(kept) + len(dropped)} unknowns; below the noise: {covered}"]
        return [
            bodies_table(self.bodies, self.least_norm),
            joints_table(self.joints or []),
            parameters,
            residuals_table("fit", self.fit or [], self.fit_relative_rms),
            residuals_table("validation", self.validation or [], self.validation_relative_rms),
        ]


class FleetPayload(Result):
    """Payload of one robot of a fleet, in the frame of the link that carries it."""

    body: Body
    base_parameters: list[Parameter]
    excited: int
    _parts: ClassVar[dict[str, type[Result]]] = {"body": Body, "base_parameters": Parameter}
    _frame = "base_parameters"

    def _headline(self) -> str:
        return f"payload of {self.body.mass:.4g} kg"

    def _tables(self) -> list[Table]:
        return [*self.body._tables(), parameters_table(self.base_parameters)]


class Member(Result):
    """Values of one robot of a fleet."""

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
        return [joints_table(self.joints), residuals_table("joint", self.residuals, None), *carried]


#: Largest number of robots that the table of a fleet lists.
_LISTED = 20


class Fleet(Result):
    """Robots of one type: common link parameters, and the values of each robot."""

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
        return [own, bodies_table(self.common.bodies), parameters_table(self.common.base_parameters)]

    def to_pandas(self, part: str | None = None) -> Any:
        """Returns a pandas frame with a row for each joint of each robot: its terms and its residual."""
        import pandas

        if part is not None:
            return super().to_pandas(part)
        rows = [
            {"robot": k, **joint, **{key: residual[key] for key in ("rms", "relative_rms")}}
            for k, robot in enumerate(self["robots"])
            for joint, residual in zip(robot["joints"], robot["residuals"], strict=True)
        ]
        return pandas.json_normalize(rows)


class RowResidual(Result):
    """Residual of one row of the samples."""

    row: int
    rms: float
    relative_rms: float


class RegressorIdentification(Result):
    """Bodies identified from a regressor that was computed elsewhere.

    ``found["values"]`` and ``std_errors`` have one entry for each column of the regressor.
    """

    rows: int
    columns: int
    rank: int
    bodies: Named[Body]
    std_errors: list[float]
    fit: list[RowResidual]
    duality_gap: float
    warnings: list[str]
    warning_codes: list[str]
    _parts: ClassVar[dict[str, type[Result]]] = {"bodies": Body, "fit": RowResidual}
    _frame = "bodies"

    def _headline(self) -> str:
        return f"{self.rows} rows determine {self.rank} of {self.columns} columns"

    def _tables(self) -> list[Table]:
        rows = [[str(r.row), show(r.rms), residual(r.relative_rms)] for r in self.fit]
        return [bodies_table(self.bodies), Table(["row", "rms", "relative"], rows)]
