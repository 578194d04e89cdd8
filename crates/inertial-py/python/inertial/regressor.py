"""Identification from a regressor that was computed elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from . import _inertial
from .errors import Error
from .mechanism import mechanism_of
from .results import RegressorIdentification

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._call import Model


def identify_regressor(
    regressor: ArrayLike,
    rhs: ArrayLike,
    *,
    bodies: int | None = None,
    model: Model | None = None,
    rows_per_sample: int | None = None,
    column_order: Literal["inertial", "pinocchio"] = "inertial",
    prior_kind: Literal["entropic", "euclidean"] = "entropic",
    prior_weight: float = 1.0,
) -> RegressorIdentification:
    """Identifies physically consistent bodies from the rows of ``regressor @ parameters = rhs``.

    The regressor has ten columns for each body, ``m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz`` (or in the order of Pinocchio's
    ``computeJointTorqueRegressor``), then columns of other unknowns, such as friction. It has one row for each equation, or
    the shape samples by rows by columns; ``rhs`` has one number for each row. Each row of a sample has its own noise level:
    by default, ``rows_per_sample`` is the second dimension of a three-dimensional regressor, otherwise the number of columns of a
    two-dimensional ``rhs``, otherwise 1.
    ``model`` gives the names of the bodies and the prior; without it ``bodies`` is their number.
    """
    import numpy as np

    rows = np.asarray(regressor, dtype=np.float64)
    forces = np.asarray(rhs, dtype=np.float64)
    if rows_per_sample is None:
        rows_per_sample = rows.shape[1] if rows.ndim == 3 else forces.shape[1] if forces.ndim == 2 else 1
    if rows.ndim == 3:
        rows = rows.reshape(-1, rows.shape[2])
    if rows.ndim != 2 or forces.ndim not in (1, 2):
        raise Error("expected a regressor with two or three dimensions and a right-hand side with one or two")
    rows, forces = np.ascontiguousarray(rows), np.ascontiguousarray(forces).reshape(-1)
    mechanism = None if model is None else mechanism_of(model).native
    data = _inertial.identify_regressor(
        rows, forces, bodies, int(rows_per_sample), column_order, prior_kind, float(prior_weight), mechanism
    )
    return RegressorIdentification(data)
