"""Joint identification of several robots of one type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import _inertial
from ._call import Call, belongs
from ._checks import with_options
from .errors import Error
from .options import EstimateOptions, FleetOptions, IdentifyOptions, LogOptions
from .results import Fleet

if TYPE_CHECKING:
    import sys

    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from .summary import Summary


@with_options("identify", FleetOptions, also=[IdentifyOptions])
def identify_fleet(
    summaries: Iterable[Summary],
    *,
    payload: str | None = None,
    carrying: Iterable[bool] = (),
    **options: Unpack[FleetOptions],
) -> Fleet:
    """Identifies the link parameters that robots of one type have in common, and each robot's own friction, offsets and payload.

    ``summaries`` has one summary per robot, all with the same model and options. Each robot's own terms are eliminated from its summary,
    which is the only cost per robot. If robots carry different payloads, ``payload`` names the link that carries them, and
    ``carrying`` states for each robot whether it carries one. ``out`` writes the model with the parameters that the robots have
    in common.
    """
    robots, loaded = list(summaries), list(carrying)
    if not robots:
        raise Error("the fleet has no robots: give a summary for each")
    if bool(loaded) != (payload is not None):
        raise Error("payload= names the link that carries it, carrying= the robots that do: give both or neither")
    here, alone, all_known = (o.__annotations__ for o in (FleetOptions, EstimateOptions, IdentifyOptions))
    belongs(options, alone, all_known, "give it when the summaries are made, or identify robots one by one")
    belongs(options, here, alone, "not available for a fleet; call identify with one robot's summary")
    first = robots[0]
    # The preparation of logs is already part of the summaries.
    unknowns = {name: value for name, value in first.options.items() if name not in LogOptions.__annotations__}
    together = {**unknowns, **options, **({} if payload is None else {"payload": payload})}
    with Call("identify_fleet", first.model, together) as call:
        call.texts.update(first.native.texts)
        data, notes = call.run(_inertial.identify_fleet, [robot.native for robot in robots], [bool(x) for x in loaded])
    of_logs = [f"robot {k}: {note}" for k, robot in enumerate(robots) for note in robot.notes]
    return Fleet(data, [*of_logs, *notes])
