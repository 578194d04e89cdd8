"""Identification as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._checks import checked
from .errors import Error
from .mechanism import floats, mechanism_of
from .options import IdentifyOptions
from .summary import Summary

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._call import Model
    from ._inertial import Floats
    from .results import Identification


class Identifier:
    """Identifies parameters from arrays, as a scikit-learn regressor: ``cross_val_score`` and pipelines accept it.

    ``X`` has a row for each sample: positions, velocities and accelerations of all coordinates, ``[q, dq, ddq]``; ``y`` has the
    forces. Samples are used as they are: filter them first (:func:`inertial.identify` filters logs)::

        scores = cross_val_score(inertial.Identifier(robot, friction="viscous"), np.hstack([q, dq, ddq]), tau)
    """

    def __init__(
        self,
        model: Model = None,
        *,
        friction: str = "auto",
        offset: bool | str = "auto",
        rotors: str | None = None,
        estimator: str | None = None,
        prior: Any = None,
        prior_weight: float | None = None,
    ) -> None:
        # scikit-learn requires that arguments are stored unchanged and checked in fit().
        self.model = model
        self.friction = friction
        self.offset = offset
        self.rotors = rotors
        self.estimator = estimator
        self.prior = prior
        self.prior_weight = prior_weight

    _names = ("model", "friction", "offset", "rotors", "estimator", "prior", "prior_weight")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the constructor arguments."""
        return {name: getattr(self, name) for name in self._names}

    def set_params(self, **parameters: Any) -> Identifier:
        """Changes constructor arguments."""
        for name, value in parameters.items():
            if name not in self._names:
                raise TypeError(f"an Identifier has no {name!r}; it has {', '.join(self._names)}")
            setattr(self, name, value)
        return self

    def fit(self, X: ArrayLike, y: ArrayLike) -> Identifier:
        """Estimates the parameters."""
        from typing import get_type_hints

        import numpy as np

        if self.model is None:
            raise TypeError("an Identifier needs a model")
        kinds = get_type_hints(IdentifyOptions)
        given = {name: checked(name, getattr(self, name), kinds[name]) for name in self._names[1:]}
        robot = mechanism_of(self.model)
        unknowns: Any = {name: given[name] for name in ("friction", "offset", "rotors") if given[name] is not None}
        summary = Summary(robot, coupling="none", **unknowns).add_arrays(*self._parts(robot, X), floats("y", y))
        estimate: Any = {name: given[name] for name in ("estimator", "prior", "prior_weight") if given[name] is not None}
        self.result_: Identification = summary.identify(**estimate)
        self.n_features_in_ = np.shape(X)[1]
        return self

    @staticmethod
    def _parts(robot: Any, X: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Splits the columns of ``X`` into positions, velocities and accelerations."""
        import numpy as np

        values = floats("X", X)
        n = len(robot.coordinate_names)
        # Positions with quaternions have more numbers than velocities.
        width = robot.nq + 2 * robot.nv if robot.loops == 0 else 3 * n
        if values.ndim != 2 or values.shape[1] != width:
            raise Error(f"X is {' by '.join(map(str, values.shape))}, expected {width} columns: positions, velocities, accelerations")
        q, dq, ddq = np.split(values, [width - 2 * n, width - n], axis=1)
        return np.ascontiguousarray(q), np.ascontiguousarray(dq), np.ascontiguousarray(ddq)

    def predict(self, X: ArrayLike) -> Floats:
        """Predicts the forces of each sample."""
        if not hasattr(self, "result_"):
            raise Error("the Identifier has not been fitted: call fit(X, y)")
        return self.result_.predict(*self._parts(self.result_.model.prior, X))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Returns the coefficient of determination R² of the prediction, averaged over the coordinates."""
        import numpy as np

        measured = floats("y", y)
        left = ((measured - self.predict(X)) ** 2).sum(axis=0)
        spread = ((measured - measured.mean(axis=0)) ** 2).sum(axis=0)
        return float(np.mean(1 - left / np.where(spread > 0, spread, np.nan)))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True, multi_output=True),
            regressor_tags=_regressor_tags(),
        )

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names if getattr(self, name) is not None)
        return f"Identifier({given})"


def _regressor_tags() -> Any:
    from sklearn.utils import RegressorTags

    return RegressorTags()
