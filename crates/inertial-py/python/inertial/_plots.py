"""Plots of results with matplotlib: ``pip install inertial[plot]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import Error


def _axes(axes: Any, count: int) -> Any:
    """Returns the given axes, or creates new ones in one column."""
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise Error("pictures need matplotlib: pip install matplotlib") from None
    return pyplot.subplots(count, 1, layout="constrained")[1]


def residuals(joints: Sequence[Mapping[str, Any]], axes: Any = None) -> Any:
    """Draws the relative residuals as bars."""
    axes = _axes(axes, 1)
    axes.bar([joint["joint"] for joint in joints], [100 * (joint["relative_rms"] or 0.0) for joint in joints])
    axes.set_ylabel("residual (% of the measured force)")
    return axes


def identification(found: Mapping[str, Any], axes: Any = None) -> Any:
    """Draws the residuals of the joints, and the standard errors of the base parameters."""
    upper, lower = _axes(axes, 2)
    residuals(found["fit"], upper)
    parameters = [p for p in found["base_parameters"] if p.get("relative_std_error") is not None]
    lower.bar([p["name"] for p in parameters], [100 * p["relative_std_error"] for p in parameters])
    lower.set_yscale("log")
    lower.set_ylabel("standard error (% of the value)")
    lower.tick_params(axis="x", labelrotation=90)
    return upper, lower


def simulation(columns: Mapping[str, Any], axes: Any = None) -> Any:
    """Draws the columns of a log over time, with one plot for each quantity."""
    quantities: dict[str, list[str]] = {}
    for name in columns:
        if name != "t":
            quantities.setdefault(name.partition(".")[0], []).append(name)
    axes = _axes(axes, len(quantities))
    for one, (quantity, names) in zip(axes if len(quantities) > 1 else [axes], quantities.items(), strict=True):
        for name in names:
            one.plot(columns["t"], columns[name], label=name)
        one.set_ylabel(quantity)
    (axes[-1] if len(quantities) > 1 else axes).set_xlabel("t (s)")
    return axes
