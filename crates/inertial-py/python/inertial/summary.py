"""What logs say of the unknowns, and estimates that follow a stream."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

from . import _inertial
from ._arguments import Call, flags
from .commands import identify
from .mechanism import Mechanism, _floats

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from numpy.typing import ArrayLike

    from ._arguments import Log, Model
    from .options import EstimateOptions, UnknownsOptions
    from .results import Identification


def _mechanism(model: Model) -> Mechanism:
    if isinstance(model, Mechanism):
        return model
    path = os.fspath(model)
    if path.startswith("builtin:"):
        return Mechanism.builtin(path.removeprefix("builtin:"))
    return Mechanism.from_file(path)


class Summary:
    """What logs say of the unknowns, in a few kilobytes: all that estimates need.

    It is built in one pass over any number of logs or arrays, merges with others of the same model and options, and
    can be pickled. ``identify(model, [summary, ...])`` gives the same as from the logs::

        summary = inertial.Summary(robot, friction="coulomb+viscous")
        summary.add("monday.csv", "tuesday.parquet")
        found = summary.identify()
    """

    def __init__(self, model: Model, **options: Unpack[UnknownsOptions]) -> None:
        self.model = _mechanism(model)
        self.options = options
        # A stand-in for the logs: the program wants one.
        arguments = ["identify", self.model.label, "-", *self.model.options, *flags(options)]
        self.native = _inertial.Summary(self.model.label, self.model.text, arguments)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _revive, (self.model, dict(self.options), self.native)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.native.samples

    def add(self, *logs: Log) -> Summary:
        """Adds logs (files or tables), filtered as ``identify`` does."""
        with Call() as call:
            try:
                notes = self.native.add_logs(call.logs(logs))
            except _inertial.Error as error:
                raise _inertial.Error(call.plain(str(error))) from None
            for note in notes:
                warnings.warn(call.plain(note), Note, stacklevel=2)
        return self

    def add_arrays(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> Summary:
        """Adds samples (rows) as they are, without filtering."""
        self.native.add_arrays(_floats(q), _floats(dq), _floats(ddq), _floats(tau))
        return self

    def merge(self, *others: Summary) -> Summary:
        """Adds what other summaries of the same model and options say."""
        for other in others:
            self.native.merge_with(other.native)
        return self

    def identify(self, **options: Unpack[EstimateOptions]) -> Identification:
        """What are the parameters, given what it says?"""
        together: Any = {**self.options, **options}
        return identify(self.model, [self], **together)

    def to_json(self) -> str:
        """As ``--summary-out`` writes it."""
        return self.native.to_json()

    def __repr__(self) -> str:
        return f"<inertial.Summary of {self.model.name}: {self.samples} samples>"


class Note(UserWarning):
    """What the program would have said beside its result."""


def _revive(model: Mechanism, options: UnknownsOptions, native: _inertial.Summary) -> Summary:
    out = Summary.__new__(Summary)
    out.model, out.options, out.native = model, options, native
    return out


class Online:
    """An estimate that follows a stream of samples; ``forgetting`` is the weight that a sample keeps when the next
    arrives (1: all count alike)::

        online = inertial.Online(robot, forgetting=0.9999)
        for q, dq, ddq, tau in stream:
            online.update(q, dq, ddq, tau)
        online.identify().bodies
    """

    def __init__(self, model: Model, forgetting: float = 1.0, **options: Unpack[UnknownsOptions]) -> None:
        self.model = _mechanism(model)
        self.options = options
        arguments = ["identify", self.model.label, "-", *self.model.options, *flags(options)]
        self._native = _inertial.Online(self.model.label, self.model.text, arguments, forgetting)

    @property
    def samples(self) -> int:
        """Number of samples so far."""
        return self._native.samples

    def update(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> Online:
        """Takes in one sample (vectors) or several (rows), oldest first."""
        self._native.absorb_arrays(_floats(q), _floats(dq), _floats(ddq), _floats(tau))
        return self

    def summary(self) -> Summary:
        """What the samples so far say, the older the less."""
        return _revive(self.model, self.options, self._native.to_summary())

    def identify(self, **options: Unpack[EstimateOptions]) -> Identification:
        """The estimate now; every body in it can exist (with the default estimator)."""
        return self.summary().identify(**options)
