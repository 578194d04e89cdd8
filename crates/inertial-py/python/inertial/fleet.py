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


def identify_fleet(summaries: Iterable[Summary], **options: Unpack[EstimateOptions]) -> Fleet:
    """Link parameters that robots of one type have in common, and each robot's own friction and offsets.

    One summary per robot, all of the same model and options. Each robot's own terms are eliminated from its summary, so
    the cost grows with the number of robots only by that.
    """
    robots = list(summaries)
    if not robots:
        raise Error("a fleet of no robots: give a summary for each")
    first = robots[0]
    model = first.model
    arguments = ["identify", model.label, "-", *model.options, *flags(first.options), *flags(options)]
    text = _inertial.identify_fleet(arguments, model.label, model.text, [robot.native for robot in robots])
    return Fleet(json.loads(text))
