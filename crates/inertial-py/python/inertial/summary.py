"""Summaries of logs, and online estimation from a stream."""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _inertial
from ._call import Call, belongs, texts_of
from ._checks import with_options
from ._files import existing
from .commands import identify
from .errors import Error, LogError
from .mechanism import Mechanism, floats, mechanism_of
from .options import EstimateOptions, IdentifyOptions, ModelOptions, UnknownsOptions

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Self, Unpack
    else:
        from typing_extensions import Self, Unpack

    from numpy.typing import ArrayLike

    from ._call import Log, Model
    from ._progress import Progress
    from ._inertial import Floats
    from .results import Identification


#: Largest number of notes that a summary keeps. Further notes are only counted, so that a summary of many logs stays small.
KEPT = 100

#: First bytes of a saved summary.
_MAGIC = b"inertial-summary-file-2\n"


def _unknowns(
    model: Model, options: Mapping[str, Any], texts: Mapping[str, str] | None = None
) -> tuple[Mechanism, dict[str, Any], dict[str, str]]:
    """Returns the robot, the options of its unknowns and of the preparation of logs, and the texts that these options name."""
    allowed, known = UnknownsOptions.__annotations__, IdentifyOptions.__annotations__
    belongs(options, allowed, known, "is an option of identify, not of the unknowns")
    own = {name: options[name] for name in ModelOptions.__annotations__ if name in options}
    robot = mechanism_of(model).with_options(own)
    return (robot, *texts_of({name: value for name, value in options.items() if name not in own}, texts))


@with_options("identify", UnknownsOptions, also=[IdentifyOptions])
class Summary:
    """Information of logs about the unknowns: everything that estimates need, in tens of kilobytes for logs of any length. Immutable.

    A summary is built in one pass over any number of logs or arrays. Summaries of the same model and options can be added (``a + b``,
    ``sum(list)``), saved and pickled. ``identify(model, [summary, ...])`` returns the same result as for the logs::

        summary = inertial.Summary(robot, friction="coulomb+viscous").add("monday.csv", "tuesday.parquet")
        found = summary.identify()
    """

    def __init__(self, model: Model, **options: Unpack[UnknownsOptions]) -> None:
        self.model, given, texts = _unknowns(model, options)
        self.options: dict[str, Any] = dict(options)
        self.native = _inertial.Summary(self.model.native, given, texts)
        self._notes: tuple[str, ...] = ()
        self._more_notes = 0

    @classmethod
    def _made(
        cls, model: Mechanism, options: dict[str, Any], native: _inertial.Summary, notes: tuple[str, ...], more_notes: int
    ) -> Summary:
        out = cls.__new__(cls)
        out.model, out.options, out.native, out._notes, out._more_notes = model, options, native, notes, more_notes
        return out

    def _with(self, native: _inertial.Summary, notes: list[str], more: int = 0) -> Summary:
        """Returns a summary of the same model and options with other content and further notes."""
        room = max(KEPT - len(self._notes), 0)
        kept = (*self._notes, *notes[:room])
        return self._made(self.model, self.options, native, kept, self._more_notes + more + len(notes[room:]))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _revive, (self.model, self.options, self.native, self._notes, self._more_notes)

    @property
    def notes(self) -> list[str]:
        """Notes on the logs; the ``notes`` of identification results include them."""
        more = [f"and {self._more_notes} more notes on logs"] if self._more_notes else []
        return [*self._notes, *more]

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.native.samples

    @property
    def names(self) -> list[str]:
        """Names of the unknowns: base parameters, then terms of the joints."""
        return self.native.names

    def add(self, *logs: Log, progress: Progress = None) -> Summary:
        """Returns this summary with further logs added (files or tables), prepared as by ``identify``."""
        with Call("Summary.add", self.model, {}, progress) as call:
            if any(isinstance(log, Summary) for log in logs):
                raise TypeError("add takes logs; combine summaries with +")
            named = [name for log in logs for name in call.logs(log)]
            return self._with(*self.native.with_logs(call.inputs, named, call.tell))

    def add_arrays(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> Summary:
        """Returns this summary with further samples (rows) added, without filtering."""
        return self._with(self.native.with_arrays(*_samples(q, dq, ddq, tau)), [])

    def merge(self, *others: Summary) -> Summary:
        """Returns this summary merged with others of the same model and options."""
        for other in others:
            if not isinstance(other, Summary):
                raise TypeError(f"merge of a {type(other).__name__}: expected a Summary")
        out = self._with(self.native.merged([other.native for other in others]), [])
        for other in others:
            out = out._with(out.native, list(other._notes), other._more_notes)
        return out

    def __add__(self, other: object) -> Summary:
        return self.merge(other) if isinstance(other, Summary) else NotImplemented

    def __radd__(self, other: object) -> Summary:
        # sum() starts with the integer zero.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    @with_options("identify", EstimateOptions, also=[IdentifyOptions])
    def identify(self, **options: Unpack[EstimateOptions]) -> Identification:
        """Estimates the parameters from this summary."""
        together: Any = {**self.options, **options}
        return identify(self.model, [self], **together)

    def to_json(self) -> str:
        """Returns the JSON that ``--summary-out`` writes to a name that ends in ``.json``."""
        return self.native.to_json()

    def to_bytes(self, *, diagnostics: bool = False) -> bytes:
        """Packs the summary, the model and the options into bytes.

        With ``diagnostics`` the bytes are more than ten times as many, and identification results have whiteness tests of the
        residuals (Durbin-Watson, Ljung-Box). Without them, estimates and residuals are the same, and standard errors nearly so.
        """
        head = {
            "label": self.model.label,
            "text": self.model.text,
            "model_options": self.model.options,
            "options": self.options,
            "texts": self.native.texts,
            "notes": self._notes,
            "more_notes": self._more_notes,
        }
        # The model's text is the larger part of a small summary.
        packed = zlib.compress(json.dumps(head, default=os.fspath).encode(), 9)
        return _MAGIC + len(packed).to_bytes(4, "little") + packed + self.native.to_bytes(diagnostics)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Creates a summary from the bytes of :meth:`to_bytes`."""
        if not data.startswith(_MAGIC):
            raise LogError("not a summary that save() wrote; give one of --summary-out to identify() as a log")
        size = int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 4], "little")
        rest = data[len(_MAGIC) + 4 :]
        try:
            head = json.loads(zlib.decompress(rest[:size]))
        except (ValueError, zlib.error):
            raise LogError("the summary is damaged") from None
        model = Mechanism(head["label"], head["text"], head["model_options"])
        robot, given, texts = _unknowns(model, head["options"], head["texts"])
        native = _inertial.Summary(robot.native, given, texts, rest[size:])
        return cls._made(model, head["options"], native, tuple(head["notes"]), head["more_notes"])  # type: ignore[return-value]

    def save(self, path: str | os.PathLike[str], *, diagnostics: bool = False) -> None:
        """Writes the summary to a file, completely or not at all; see :meth:`to_bytes`."""
        _inertial.write_file(path, self.to_bytes(diagnostics=diagnostics))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a summary from a file that :meth:`save` wrote."""
        existing(os.fspath(path))
        with open(path, "rb") as file:
            data = file.read()
        try:
            return cls.from_bytes(data)
        except Error as error:
            raise LogError(f"{os.fspath(path)}: {error}") from None

    def __repr__(self) -> str:
        return f"<inertial.Summary of {self.model.name}: {self.samples} samples>"

    def _repr_html_(self) -> str:
        import html

        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes[:10])
        return f"<p><b>{html.escape(repr(self)[1:-1])}</b></p>" + (f"<ul>{notes}</ul>" if notes else "")


def _samples(q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    return floats("q", q), floats("dq", dq), floats("ddq", ddq), floats("tau", tau)


def _revive(
    model: Mechanism, options: dict[str, Any], native: _inertial.Summary, notes: tuple[str, ...], more_notes: int
) -> Summary:
    return Summary._made(model, options, native, notes, more_notes)


@with_options("identify", UnknownsOptions, also=[IdentifyOptions])
class Online:
    """Online estimation from a stream of samples.

    With each new sample, the weights of all earlier samples are multiplied by ``forgetting`` (1: equal weights)::

        online = inertial.Online(robot, forgetting=0.9999)
        for q, dq, ddq, tau in stream:
            online.update(q, dq, ddq, tau)
        online.identify().bodies
    """

    def __init__(self, model: Model, forgetting: float = 1.0, **options: Unpack[UnknownsOptions]) -> None:
        self.model, given, texts = _unknowns(model, options)
        self.options: dict[str, Any] = dict(options)
        self._native = _inertial.Online(self.model.native, given, texts, float(forgetting))

    @property
    def samples(self) -> int:
        """Number of samples so far."""
        return self._native.samples

    def update(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> Online:
        """Adds one sample (vectors) or several (rows), oldest first."""
        self._native.absorb_arrays(*_samples(q, dq, ddq, tau))
        return self

    def summary(self) -> Summary:
        """Returns the summary of the samples so far, with less weight on older ones."""
        return Summary._made(self.model, self.options, self._native.to_summary(), (), 0)

    def identify(self, **options: Unpack[EstimateOptions]) -> Identification:
        """Returns the current estimate; with the default estimator its bodies are physically consistent."""
        return self.summary().identify(**options)

    def __repr__(self) -> str:
        return f"<inertial.Online of {self.model.name}: {self.samples} samples>"
