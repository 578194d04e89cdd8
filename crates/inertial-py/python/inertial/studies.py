"""Studies of the papers, also available as ``inertial demo``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _inertial
from ._result import Result
from ._tables import Table, show
from .mechanism import mechanism_of

if TYPE_CHECKING:
    from ._call import Model

__all__ = ["leg_on_bench", "sampled_rank", "slow_motion", "space_robot"]


class Study(Result):
    """Result of a study, with the content of ``inertial demo NAME --json``."""

    _frame = "rows"

    def _headline(self) -> str:
        name = str(self._data["schema"]).split("/")[1]
        values = [f"{key} {show(x)}" for key, x in self._data.items() if isinstance(x, (bool, int, float))]
        return ", ".join([name, *values])

    def _tables(self) -> list[Table]:
        rows = self._data.get("rows") or [{}]
        names = [key for key, x in rows[0].items() if isinstance(x, (bool, int, float))]
        return [Table(names, [[show(row.get(name)) for name in names] for row in rows])] if names else []


def sampled_rank(model: Model = "builtin:2rru-1rrs", *, samples: int = 5000, seed: int = 1) -> Study:
    """Compares numerical ranks of regressors sampled with closure errors of the loops with the proved rank (paper 004)."""
    return Study(_inertial.sampled_rank(mechanism_of(model).native, samples, seed))


def leg_on_bench() -> Study:
    """Compares predictions of parameters that were identified with a free and with a fixed torso (paper 003, table 6)."""
    return Study(_inertial.leg_on_bench())


def slow_motion(*, seed: int = 1) -> Study:
    """Estimates a body from slow and fast motions, with and without physical consistency (paper 001)."""
    return Study(_inertial.slow_motion(seed))


def space_robot(*, designs: bool = True) -> Study:
    """Repeats the published experiment with a free-flying robot with two arms, and adds new designs if ``designs`` is true (paper 002)."""
    return Study(_inertial.space_robot(designs))
