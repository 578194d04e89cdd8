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
    """Log on a uniform grid: filtered positions, velocities, accelerations and forces, one row for each sample.

    :meth:`equations` returns the regressor and the forces of a fit. Both sides of each equation of motion are filtered with the same
    low-pass filter, because filtering and computing the regressor do not commute.
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
        #: Forces that are fitted.
        self.tau: Floats = data["tau"]
        #: Measured forces without filtering.
        self.tau_raw: Floats = data["tau_raw"]
        #: Whether each force is used, samples by coordinates.
        self.keep: Any = data["keep"]
        #: Sampling rate (Hz).
        self.rate: float = data["rate"]
        #: Cut-off of the low-pass filter (Hz); ``None`` without a filter.
        self.cutoff: float | None = data["cutoff"]
        #: Notes about repairs and choices.
        self.notes: list[str] = data["notes"]
        # Low-pass filter of the equations: weights of forces and of columns, centres of rows, and whether each row is used.
        self._filter: Any = tuple(data.get(name) for name in ("weights", "column_weights", "centres", "row_keep"))

    def equations(self) -> tuple[Floats, Floats]:
        """Computes W and y with ``y = W @ parameters`` except for friction and noise.

        There is one row for each usable force, coordinate after coordinate. W has the columns of all inertial parameters; select those
        of base parameters for a fit.
        """
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
    """Prepares a log as :func:`identify` does: repairs, resampling on a uniform grid, filtering and differentiation."""
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
