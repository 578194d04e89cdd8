"""A robot in Python."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from . import _inertial
from ._arguments import flags
from ._inertial import Error

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from .options import ModelOptions

    Floats = NDArray[np.float64]


def floats(name: str, array: ArrayLike) -> Floats:
    """Numbers as the library takes them."""
    import numpy as np

    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise Error(f"{name}: expected numbers, as many for each sample") from None


def _text_of(path: str | os.PathLike[str]) -> str:
    try:
        # Line ends stay as they are: what is written from it changes values and no other byte.
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise Error(f"{os.fspath(path)}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise Error(f"{os.fspath(path)}: is no text: byte {error.start} is not UTF-8") from None


def _target(out: Any, dimensions: int) -> None:
    """Refuses arrays that regressors cannot be written into."""
    import numpy as np

    if not isinstance(out, np.ndarray):
        raise Error(f"out is a {type(out).__name__}, expected a NumPy array of float64")
    if out.dtype != np.float64:
        raise Error(f"out holds {out.dtype}, expected float64")
    if out.ndim != dimensions:
        raise Error(f"out has {out.ndim} dimensions, expected {dimensions}")
    if not (out.flags.writeable and out.flags.c_contiguous):
        raise Error("out is " + ("not contiguous" if out.flags.writeable else "read-only"))


class Mechanism:
    """A robot: bodies, joints, loops and rotors, with their inertial parameters. Immutable; can be pickled.

    Make one by :meth:`from_urdf`, :meth:`from_mjcf`, :meth:`from_file`, :meth:`from_string`, :meth:`builtin` or
    :meth:`from_pinocchio`. ``base``, ``gravity`` and ``rotors`` are the program's options.
    """

    def __init__(self, label: str, text: str | None, options: list[str] | None = None) -> None:
        #: What messages call it; where there is no text, what the program reads it from.
        self.label = label
        #: The model's text; ``None`` where the program reads it itself.
        self.text = text
        self._native = _inertial.Mechanism(label, text, options or [])

    def __reduce__(self) -> tuple[type[Mechanism], tuple[str, str | None, list[str]]]:
        return Mechanism, (self.label, self.text, self.options)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Unpack[ModelOptions]) -> Mechanism:
        """From a URDF, URDF+, MJCF or mechanism file, recognised by its content."""
        return cls._with_text(os.fspath(path), _text_of(path), options)

    @classmethod
    def _with_text(cls, path: str, text: str, options: Any) -> Mechanism:
        # Files that the text includes are found beside its path only.
        return cls(path, None if "<include" in text else text, flags(options))

    @classmethod
    def from_string(cls, text: str, **options: Unpack[ModelOptions]) -> Mechanism:
        """From the text of a URDF, URDF+, MJCF or mechanism file."""
        return cls("the model's text", text, flags(options))

    @classmethod
    def from_urdf(cls, source: str | os.PathLike[str], **options: Unpack[ModelOptions]) -> Mechanism:
        """From a URDF (or URDF+): a file or its text."""
        return cls._from_xml(source, "robot", "URDF", options)

    @classmethod
    def from_mjcf(cls, source: str | os.PathLike[str], **options: Unpack[ModelOptions]) -> Mechanism:
        """From an MJCF: a file or its text."""
        return cls._from_xml(source, "mujoco", "MJCF", options)

    @classmethod
    def _from_xml(cls, source: str | os.PathLike[str], root: str, kind: str, options: Any) -> Mechanism:
        given = isinstance(source, str) and source.lstrip().startswith("<")
        label, text = ("the model's text", str(source)) if given else (os.fspath(source), _text_of(source))
        if f"<{root}" not in text:
            raise Error(f"{label}: is no {kind}, expected the element <{root}>")
        return cls.from_string(text, **options) if given else cls._with_text(label, text, options)

    @classmethod
    def builtin(cls, name: str, **options: Unpack[ModelOptions]) -> Mechanism:
        """A model that ships with the program: puma560, arm7, quadruped, four-bar, ..."""
        return cls(f"builtin:{name}", None, flags(options))

    @classmethod
    def from_pinocchio(cls, model: Any, **options: Unpack[ModelOptions]) -> Mechanism:
        """From a ``pinocchio.Model``; see :mod:`inertial.pinocchio`."""
        from .pinocchio import mechanism_of

        return mechanism_of(model, options)

    def to_pinocchio(self) -> Any:
        """The same robot as a ``pinocchio.Model``; see :mod:`inertial.pinocchio`."""
        from .pinocchio import model_of

        return model_of(self)

    @property
    def options(self) -> list[str]:
        """The options it was built with, as arguments of the program."""
        return self._native.options

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def nq(self) -> int:
        """Number of position coordinates (of the tree, where there are loops)."""
        return self._native.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates (of the tree, where there are loops)."""
        return self._native.nv

    @property
    def loops(self) -> int:
        """Number of loops."""
        return self._native.loops

    @property
    def bodies(self) -> list[str]:
        """Names of the bodies, in the order of their parameters."""
        return self._native.bodies

    @property
    def coordinate_names(self) -> list[str]:
        """Names of the (independent) velocity coordinates: rows of the regressor."""
        return self._native.coordinate_names

    @property
    def parameter_names(self) -> list[str]:
        """Names of the inertial parameters: columns of the regressor."""
        return self._native.parameter_names

    @property
    def parameters(self) -> Floats:
        """The model's own inertial parameters, ten per body: m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz."""
        return self._native.parameters

    def rnea(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Floats:
        """Forces of a motion: one sample (vectors) or many (rows)."""
        return self._native.rnea(floats("q", q), floats("v", v), floats("a", a))

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Floats | None = None) -> Floats:
        """Y with ``tau = Y @ parameters``, coordinates by parameters. With loops, of the independent coordinates."""
        motion = floats("q", q), floats("v", v), floats("a", a)
        if any(x.ndim != 1 for x in motion):
            raise Error("regressor is of one sample: expected vectors; regressors takes rows of samples")
        if out is not None:
            _target(out, 2)
        one: Floats = self._native.regressors(*motion, None if out is None else out[None])[0]
        return one

    def regressors(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Floats | None = None) -> Floats:
        """The same of many samples (rows): samples by coordinates by parameters, into ``out`` where it is given."""
        if out is not None:
            _target(out, 3)
        return self._native.regressors(floats("q", q), floats("v", v), floats("a", a), out)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return self.__reduce__()[1] == other.__reduce__()[1]

    def __hash__(self) -> int:
        return hash((self.label, self.text, *self.options))

    def __repr__(self) -> str:
        loops = f", {self.loops} loops" if self.loops else ""
        return f"<inertial.Mechanism {self.name}: {len(self.bodies)} bodies, {self.nv} coordinates{loops}>"
