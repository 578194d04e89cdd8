"""Logs as arrays, prepared for identification."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import _inertial
from ._call import Call, texts_of
from ._checks import with_options
from .errors import Error
from .mechanism import Mechanism
from .options import LogOptions

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from ._call import Log, Model
    from ._inertial import Floats


class Prepared:
    """A log on a uniform grid: filtered positions, velocities, accelerations and forces, one row for each sample.

    :meth:`equations` gives the regressor and the forces of a fit: both sides of each equation of motion pass the same low-pass,
    because filtering and building the regressor do not commute.
    """

    def __init__(self, mechanism: Mechanism, data: dict[str, Any]) -> None:
        self.mechanism = mechanism
        #: Times (s).
        self.t: Floats = data["t"]
        #: Positions, samples by coordinates.
        self.q: Floats = data["q"]
        #: Velocities.
        self.dq: Floats = data["dq"]
        #: Accelerations.
        self.ddq: Floats = data["ddq"]
        #: Forces as they are fitted.
        self.tau: Floats = data["tau"]
        #: Forces as the sensors gave them.
        self.tau_raw: Floats = data["tau_raw"]
        #: Which forces count, samples by coordinates.
        self.keep: Any = data["keep"]
        #: Samples per second.
        self.rate: float = data["rate"]
        #: Cut-off of the low-pass (Hz); ``None`` where there is none.
        self.cutoff: float | None = data["cutoff"]
        #: What was repaired and chosen.
        self.notes: list[str] = data["notes"]
        # Of the low-pass of the equations: weights of forces and of columns, centres of rows, and which rows count.
        self._filter: Any = tuple(data.get(name) for name in ("weights", "column_weights", "centres", "row_keep"))

    def equations(self) -> tuple[Floats, Floats]:
        """W and y with ``y = W @ parameters`` but for friction and noise: one row for each usable force, coordinate after
        coordinate. It has the columns of all inertial parameters; choose those of base parameters for a fit."""
        import numpy as np

        if self.mechanism.loops:
            raise Error("equations are not available for robots with loops; use inertial.identify")
        y = self.mechanism.regressors(self.q, self.dq, self.ddq)
        weights, column_weights, centres, keep = self._filter
        if weights is None:
            rows, forces, keep = y, self.tau, self.keep
        else:
            half = len(weights) // 2
            rows = np.stack([np.tensordot(column_weights, y[c - half : c + half + 1], axes=1) for c in centres])
            forces = np.stack([weights @ self.tau[c - half : c + half + 1] for c in centres])
        parts = [(rows[keep[:, k], k], forces[keep[:, k], k]) for k in range(keep.shape[1])]
        return np.concatenate([w for w, _ in parts]), np.concatenate([f for _, f in parts])

    def __repr__(self) -> str:
        cutoff = "no filter" if self.cutoff is None else f"cut-off {self.cutoff:.4g} Hz"
        return f"<inertial.Prepared log of {self.mechanism.name}: {len(self.t)} samples at {self.rate:.4g} Hz, {cutoff}>"


@with_options("identify", LogOptions)
def prepare(model: Model, log: Log, **options: Unpack[LogOptions]) -> Prepared:
    """A log as :func:`identify` prepares it: repaired, on a uniform grid, filtered, differentiated."""
    with Call("prepare", model, {}) as call:
        names = call.log(log)
        if len(names) != 1:
            raise Error(f"prepare takes one log, not {len(names)}")
        given, texts = texts_of(options)
        for name, text in texts.items():
            call.inputs.add_text(name, text)
        data = _inertial.prepare(call.mechanism, call.inputs, names[0], given)
        data["notes"] = [f"{names[0]}: {note}" for note in data["notes"]]
        return Prepared(call.robot, data)
