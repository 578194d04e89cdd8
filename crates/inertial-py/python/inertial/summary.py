"""What logs say of the unknowns, and estimates that follow a stream."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from . import _inertial
from ._arguments import Call, belongs, flags, path_of, taken
from ._help import with_options
from ._inertial import Error
from .commands import identify
from .mechanism import Mechanism, floats
from .options import EstimateOptions, IdentifyOptions, UnknownsOptions

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from numpy.typing import ArrayLike

    from ._arguments import Log, Model
    from ._inertial import Floats
    from .results import Identification


#: Notes that a summary keeps. Those of more logs are counted only, so that a summary stays small however many logs it is of.
KEPT = 100


def arguments_of(model: Mechanism, options: UnknownsOptions) -> list[str]:
    """The arguments of ``identify`` that say what the unknowns are, with a stand-in for the logs."""
    allowed, known = UnknownsOptions.__annotations__, IdentifyOptions.__annotations__
    belongs(options, allowed, known, "is said when parameters are identified, not of the unknowns")
    return ["identify", model.label, "-", *taken(model, options), *flags(options)]


def mechanism_of(model: Model) -> Mechanism:
    if isinstance(model, Mechanism):
        return model
    path = path_of(model, "model", "a path, builtin:NAME or a Mechanism")
    if path.startswith("builtin:"):
        return Mechanism.builtin(path.removeprefix("builtin:"))
    return Mechanism.from_file(path)


@with_options("identify", UnknownsOptions.__annotations__)
class Summary:
    """What logs say of the unknowns, in a few kilobytes: all that estimates need.

    It is built in one pass over any number of logs or arrays, merges with others of the same model and options, and
    can be pickled. ``identify(model, [summary, ...])`` gives the same as from the logs::

        summary = inertial.Summary(robot, friction="coulomb+viscous")
        summary.add("monday.csv", "tuesday.parquet")
        found = summary.identify()
    """

    def __init__(self, model: Model, **options: Unpack[UnknownsOptions]) -> None:
        self.model = mechanism_of(model)
        self.options = options
        self.native = _inertial.Summary(self.model.label, self.model.text, arguments_of(self.model, options))
        self._notes: list[str] = []
        self._more_notes = 0

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _revive, (self.model, dict(self.options), self.native, self._notes, self._more_notes)

    @property
    def notes(self) -> list[str]:
        """What the program said of the logs; it stands in the ``notes`` of what is identified, too."""
        more = [f"and {self._more_notes} more notes on logs"] if self._more_notes else []
        return [*self._notes, *more]

    def _keep(self, notes: list[str], more: int = 0) -> None:
        room = KEPT - len(self._notes)
        self._notes += notes[:room]
        self._more_notes += more + len(notes[room:])

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.native.samples

    def add(self, *logs: Log) -> Summary:
        """Adds logs (files or tables), filtered as ``identify`` does."""
        with Call() as call:
            if any(isinstance(log, Summary) for log in logs):
                raise Error("add takes logs; merge takes summaries")
            notes = self.native.add_logs(call.logs(logs))
            self._keep([call.plain(note) for note in notes])
        return self

    def _rename(self, local: str, name: str) -> None:
        """Calls a log in the notes by another name than that of the file that stood for it."""
        self._notes = [note.replace(local, name) for note in self._notes]

    def add_arrays(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> Summary:
        """Adds samples (rows) as they are, without filtering."""
        self.native.add_arrays(*_samples(q, dq, ddq, tau))
        return self

    def merge(self, *others: Summary) -> Summary:
        """Adds what other summaries of the same model and options say."""
        for other in others:
            if not isinstance(other, Summary):
                raise Error(f"merge of a {type(other).__name__}: expected a Summary")
            self.native.merge_with(other.native)
            self._keep(other._notes, other._more_notes)
        return self

    @with_options("identify", EstimateOptions.__annotations__)
    def identify(self, **options: Unpack[EstimateOptions]) -> Identification:
        """What are the parameters, given what it says?"""
        together: Any = {**self.options, **options}
        return identify(self.model, [self], **together)

    def to_json(self) -> str:
        """As ``--summary-out`` writes it."""
        return self.native.to_json()

    def __repr__(self) -> str:
        return f"<inertial.Summary of {self.model.name}: {self.samples} samples>"


def _samples(q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    return floats("q", q), floats("dq", dq), floats("ddq", ddq), floats("tau", tau)


def _revive(
    model: Mechanism, options: UnknownsOptions, native: _inertial.Summary, notes: list[str], more_notes: int
) -> Summary:
    out = Summary.__new__(Summary)
    out.model, out.options, out.native, out._notes, out._more_notes = model, options, native, notes, more_notes
    return out


@with_options("identify", UnknownsOptions.__annotations__)
class Online:
    """An estimate that follows a stream of samples; ``forgetting`` is the weight that a sample keeps when the next
    arrives (1: all count alike)::

        online = inertial.Online(robot, forgetting=0.9999)
        for q, dq, ddq, tau in stream:
            online.update(q, dq, ddq, tau)
        online.identify().bodies
    """

    def __init__(self, model: Model, forgetting: float = 1.0, **options: Unpack[UnknownsOptions]) -> None:
        self.model = mechanism_of(model)
        self.options = options
        arguments = arguments_of(self.model, options)
        self._native = _inertial.Online(self.model.label, self.model.text, arguments, forgetting)

    @property
    def samples(self) -> int:
        """Number of samples so far."""
        return self._native.samples

    def update(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> Online:
        """Takes in one sample (vectors) or several (rows), oldest first."""
        self._native.absorb_arrays(*_samples(q, dq, ddq, tau))
        return self

    def summary(self) -> Summary:
        """What the samples so far say, the older the less."""
        return _revive(self.model, self.options, self._native.to_summary(), [], 0)

    def identify(self, **options: Unpack[EstimateOptions]) -> Identification:
        """The estimate now; every body in it can exist (with the default estimator)."""
        return self.summary().identify(**options)

    def __repr__(self) -> str:
        return f"<inertial.Online of {self.model.name}: {self.samples} samples>"
