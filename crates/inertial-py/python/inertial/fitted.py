"""Identified robot as a model that predicts forces, and can be compared with logs, written and saved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._call import Call
from ._result import Result
from ._saved import save
from ._tables import Table
from .errors import Error
from .mechanism import Mechanism, floats

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._call import Identified, Log
    from ._inertial import Summary
    from .results.validation import Validation
    from ._inertial import Floats

#: Options that only affect outputs, or whose logs are not kept.
_OUTPUTS = ("out", "report", "plots", "summary_out", "validate", "holdout", "covariance", "essential", "force")

#: Options of identifications whose results cannot predict the torques of the whole robot.
_OTHER_JOBS = ("payload", "gains", "loaded", "unloaded", "known_payload")


def fitted(
    data: Mapping[str, Any], model: Mechanism, options: Mapping[str, Any], summary: Summary | None
) -> FittedModel | None:
    """Returns the model of a result; ``None`` for payloads, drive gains and momentum."""
    other = any(options.get(name) is not None for name in _OTHER_JOBS)
    if other or options.get("measured") == "momentum" or "base_parameters" not in data:
        return None
    kept = {name: value for name, value in options.items() if name not in _OUTPUTS and value is not None}
    # The identified lag also applies to logs of later predictions.
    if data.get("lag") is not None:
        kept["lag"] = data["lag"]["value"]
    return FittedModel(data.get("model", {}), model, dict(data), kept, summary)


class _Logs:
    """Logs of the fit, in the form that calls accept."""

    notes: tuple[str, ...] = ()

    def __init__(self, native: Summary) -> None:
        self.native = native


class FittedModel(Result):
    """Identified robot: base parameters, and friction, offsets and rotor inertias of its joints.

    ``model["name"]``, ``model["bodies"]`` and ``model["dof"]`` are those of the result object.
    """

    name: str
    bodies: int
    dof: int

    def __init__(
        self,
        data: Mapping[str, Any],
        mechanism: Mechanism,
        result: dict[str, Any],
        options: dict[str, Any],
        summary: Summary | None,
    ) -> None:
        super().__init__(data)
        #: Given model, with its own parameters.
        self.prior = mechanism
        self._result, self._options, self._summary = result, options, summary

    @property
    def mechanism(self) -> Mechanism:
        """Mechanism with the identified inertias, which every function accepts as a model."""
        if "_mechanism" not in self.__dict__:
            made = Mechanism.from_string(self.to_text())
            self.__dict__["_mechanism"] = Mechanism(made.label, made.text, self.prior.options)
        return self.__dict__["_mechanism"]  # type: ignore[no-any-return]

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Floats:
        """Predicts the forces of one sample (vectors) or many (rows): inertia, gravity, friction, offsets and rotors."""
        import numpy as np

        positions, velocities, accelerations = floats("q", q), floats("dq", dq), floats("ddq", ddq)
        one = positions.ndim == 1
        if one:
            positions, velocities, accelerations = (x[None] for x in (positions, velocities, accelerations))
        names = self.prior.parameter_names
        parameters = self._result["base_parameters"]
        columns = [names.index(parameter["name"]) for parameter in parameters]
        values = np.array([parameter["value"] for parameter in parameters])
        tau: Floats = self.prior.regressors(positions, velocities, accelerations)[:, :, columns] @ values
        tau += self._joint_forces(velocities, accelerations)
        return tau[0] if one else tau

    def _joint_forces(self, v: Floats, a: Floats) -> Floats:
        """Computes the forces of friction, offsets and rotors."""
        import numpy as np

        coordinates = self.prior.coordinate_names
        out = np.zeros_like(v)
        for joint in self._result.get("joints", []):
            if joint.get("terms"):
                raise Error(f"{joint['name']} has formula terms (joint_model=), which are not predicted here")
            if joint.get("gain") is not None:
                raise Error(f"{joint['name']} has a drive gain: torques are not predicted here")
            shaft = joint.get("turns_with") or {joint["name"]: 1.0}
            factors = np.array([shaft.get(name, 0.0) for name in coordinates])
            speed, acceleration = v @ factors, a @ factors
            sign = np.sign(speed)
            force = (joint.get("viscous") or 0.0) * speed + (joint.get("coulomb") or 0.0) * sign
            force += (joint.get("coulomb_positive") or 0.0) * (sign + 1) / 2
            force += (joint.get("coulomb_negative") or 0.0) * (sign - 1) / 2
            # A rotor that acts like the inertia of its link is part of the base parameters: it has no standard error of its own.
            if "rotor_inertia" in joint.get("std_errors", {}):
                force += joint["rotor_inertia"] * acceleration
            if joint.get("stribeck") and joint.get("stribeck_velocity"):
                ratio = np.abs(speed / joint["stribeck_velocity"]) ** joint["stribeck_exponent"]
                force += joint["stribeck"] * sign * np.exp(-ratio)
            out += np.outer(force, factors)
            if joint.get("offset") is not None and joint["name"] in coordinates:
                out[:, coordinates.index(joint["name"])] += joint["offset"]
        return out

    def residuals(self, logs: Log | Iterable[Log], **pages: Any) -> Validation:
        """Computes the residuals on logs, which are prepared as for the identification. On the same logs, these are the residuals of the fit.

        ``report`` and ``plots`` write a page and curves.
        """
        from .results.validation import Validation

        done = self._again(validate=logs, **pages)
        found = done.data
        data = {
            "schema": "inertial/validation/1",
            "samples": found.get("validation_samples"),
            "joints": found["validation"],
            "relative_rms": found["validation_relative_rms"],
            "relative_rms_raw": found["validation_relative_rms_raw"],
            "left_out": found["validation_left_out"],
        }
        return Validation({key: value for key, value in data.items() if value is not None}, done.notes)

    def to_text(self) -> str:
        """Returns the text of the model with the identified values, in the format of the given model."""
        text = self._again(write=True).text
        if text is None:
            raise Error(f"{self.prior.label} cannot be written")
        return text

    def to_urdf(self) -> str:
        """Returns the URDF with the identified ``<inertial>`` and ``<dynamics>`` elements; all other text is unchanged."""
        text = self.to_text()
        if not text.lstrip().startswith("<"):
            raise Error(f"{self.prior.label} is not a URDF: to_text() returns the mechanism file with the new values")
        return text

    def _again(self, **more: Any) -> Identified:
        """Repeats the identification from the summary of its logs, with further outputs."""
        if self._summary is None:
            raise Error("the estimator irls weights every sample: its logs would be needed again")
        with Call("identify", self.prior, {**self._options, **more}) as call:
            return call.identify(_Logs(self._summary))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves the model to a file that :func:`inertial.load` reads."""
        save(path, self)

    def _headline(self) -> str:
        return f"identified {self.name}: {self.bodies} bodies, {self.dof} degrees of freedom"

    def _tables(self) -> list[Table]:
        from .results.parts import Body, bodies_table

        return [bodies_table([Body(body) for body in self._result["bodies"]], self._result.get("least_norm"))]
