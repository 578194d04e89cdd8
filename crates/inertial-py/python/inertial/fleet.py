"""Many robots of one type, solved together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import _inertial
from ._arguments import flags
from ._inertial import Error
from .results import Fleet

if TYPE_CHECKING:
    import sys

    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from .options import EstimateOptions
    from .summary import Summary


def identify_fleet(
    summaries: Iterable[Summary],
    *,
    payload: str | None = None,
    carrying: Iterable[bool] = (),
    **options: Unpack[EstimateOptions],
) -> Fleet:
    """Link parameters that robots of one type have in common, and each robot's own friction, offsets and payload.

    One summary per robot, all of the same model and options. Each robot's own terms are eliminated from its summary, so
    the cost grows with the number of robots only by that. Where robots carry something of their own, ``payload`` names
    the link that carries it, and ``carrying`` tells for each robot whether it carries something.
    """
    robots, loaded = list(summaries), list(carrying)
    if not robots:
        raise Error("a fleet of no robots: give a summary for each")
    if bool(loaded) != (payload is not None):
        raise Error("payload= names the link that carries it and carrying= tells which robots do: give both or neither")
    first = robots[0]
    model = first.model
    arguments = ["identify", model.label, "-", *model.options, *flags(first.options), *flags(options)]
    if payload is not None:
        arguments += ["--payload", payload]
    text = _inertial.identify_fleet(arguments, model.label, model.text, [robot.native for robot in robots], loaded)
    return Fleet(json.loads(text))
