"""Robots as Python objects."""

from __future__ import annotations

import html
import importlib
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

from . import _inertial
from ._checks import checked
from ._files import model_text, path_of, stands_alone
from .errors import Error, ModelError
from .options import ModelOptions

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def floats(name: str, array: ArrayLike) -> Floats:
    """Converts an array to contiguous 64-bit floats."""
    import numpy as np

    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise Error(f"{name}: expected numbers, as many for each sample") from None


def _checked(options: Any) -> dict[str, Any]:
    """Checks the options of a model and returns those that are not ``None``."""
    kinds = get_type_hints(ModelOptions)
    for name in options:
        if name not in kinds:
            raise TypeError(f"unexpected keyword argument {name!r}: a model has base, gravity, rotors, lock, xacro_arg and strict")
    found = {name: checked(name, value, kinds[name]) for name, value in options.items()}
    return {name: value for name, value in found.items() if value is not None}


def mechanism_in(model: Any) -> Mechanism | None:
    """Returns a mechanism itself or the mechanism of a result; ``None`` for anything else."""
    if isinstance(model, Mechanism):
        return model
    held = getattr(model, "mechanism", None)
    return held if isinstance(held, Mechanism) else None


def mechanism_of(model: Any) -> Mechanism:
    """Returns the mechanism of a path, a name, a mechanism or a result."""
    held = mechanism_in(model)
    if held is not None:
        return held
    path = path_of(model, "model", "a path, builtin:NAME, a Mechanism or a result")
    if path.startswith("builtin:"):
        return Mechanism.builtin(path.removeprefix("builtin:"))
    return Mechanism.from_file(path)


def _target(out: Any, dimensions: int) -> None:
    """Raises an error if regressors cannot be written into the array ``out``."""
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
    """Robot: bodies, joints, loops and rotors, with their inertial parameters. Immutable; can be pickled.

    Create one with :meth:`from_urdf`, :meth:`from_mjcf`, :meth:`from_file`, :meth:`from_string`, :meth:`builtin` or
    :meth:`from_pinocchio`. ``base``, ``gravity``, ``rotors``, ``lock``, ``xacro_arg`` and ``strict`` are options of each of these methods.
    """

    def __init__(self, label: str, text: str | None, options: Mapping[str, Any] | None = None) -> None:
        #: Name used in messages; if ``text`` is ``None``, the path or the name of the builtin model.
        self.label = label
        #: Text of the model; ``None`` if it is read from the place that ``label`` names.
        self.text = text
        self.native = _inertial.Mechanism(label, text, dict(options or {}))

    def __reduce__(self) -> tuple[type[Mechanism], tuple[str, str | None, dict[str, Any]]]:
        return Mechanism, (self.label, self.text, self.options)

    def with_options(self, options: Mapping[str, Any]) -> Mechanism:
        """Returns the model with changed options; the model itself if no options are given."""
        return Mechanism(self.label, self.text, {**self.options, **options}) if options else self

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Unpack[ModelOptions]) -> Mechanism:
        """Reads a URDF, URDF+, xacro, MJCF, SDF, USD or mechanism file; the format is recognized by its content."""
        return cls._of_file(os.fspath(path), model_text(path, ModelError), options)

    @classmethod
    def _of_file(cls, path: str, text: str | None, options: Any) -> Mechanism:
        return cls(path, text if text is not None and stands_alone(text) else None, _checked(options))

    @classmethod
    def from_string(cls, text: str, **options: Unpack[ModelOptions]) -> Mechanism:
        """Parses the text of a URDF, URDF+, xacro (without includes), MJCF, SDF, USD or mechanism file."""
        return cls("the model's text", text, _checked(options))

    @classmethod
    def from_urdf(cls, source: str | os.PathLike[str], **options: Unpack[ModelOptions]) -> Mechanism:
        """Reads a URDF or URDF+, given as a file or as text."""
        return cls._from_xml(source, "robot", "URDF", options)

    @classmethod
    def from_mjcf(cls, source: str | os.PathLike[str], **options: Unpack[ModelOptions]) -> Mechanism:
        """Reads an MJCF, given as a file or as text."""
        return cls._from_xml(source, "mujoco", "MJCF", options)

    @classmethod
    def _from_xml(cls, source: str | os.PathLike[str], root: str, kind: str, options: Any) -> Mechanism:
        given = isinstance(source, str) and source.lstrip().startswith("<")
        text = str(source) if given else model_text(source, ModelError)
        label = "the model's text" if given else os.fspath(source)
        if text is not None and f"<{root}" not in text:
            raise ModelError(f"{label}: is not {kind}, expected the element <{root}>")
        return cls(label, text, _checked(options)) if given else cls._of_file(label, text, options)

    @classmethod
    def builtin(cls, name: str, **options: Unpack[ModelOptions]) -> Mechanism:
        """Loads a model that is part of the package: puma560, arm7, quadruped, four-bar, ..."""
        return cls(f"builtin:{name}", None, _checked(options))

    @classmethod
    def from_description(cls, name: str, **options: Unpack[ModelOptions]) -> Mechanism:
        """Loads a robot of the package ``robot_descriptions``, such as ``panda_description``: its URDF, or its MJCF if it has no URDF."""
        try:
            module = importlib.import_module(f"robot_descriptions.{name}")
        except ImportError as error:
            raise ModelError(f"robot_descriptions has no {name}, or is not installed: {error}") from None
        for kind in ("URDF_PATH", "MJCF_PATH"):
            path = getattr(module, kind, None)
            if path is not None:
                return cls.from_file(path, **options)
        raise ModelError(f"robot_descriptions.{name} has neither a URDF nor an MJCF")

    @classmethod
    def from_pinocchio(cls, model: Any, **options: Unpack[ModelOptions]) -> Mechanism:
        """Converts a ``pinocchio.Model``; see :mod:`inertial.pinocchio`."""
        from .pinocchio import mechanism_file

        return cls(*mechanism_file(model), _checked(options))

    def to_pinocchio(self) -> Any:
        """Converts the robot to a ``pinocchio.Model``; see :mod:`inertial.pinocchio`."""
        from .pinocchio import model_of

        return model_of(self.native)

    @property
    def options(self) -> dict[str, Any]:
        """Options with which it was built: those of ``base``, ``gravity``, ``rotors``, ``lock``, ``xacro_arg`` and ``strict`` that were given."""
        return self.native.options

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.native.name

    @property
    def nq(self) -> int:
        """Number of position coordinates; with loops, those of the spanning tree."""
        return self.native.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates; with loops, those of the spanning tree."""
        return self.native.nv

    @property
    def loops(self) -> int:
        """Number of loops."""
        return self.native.loops

    @property
    def bodies(self) -> list[str]:
        """Names of the bodies, in the order of their parameters."""
        return self.native.bodies

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints that move."""
        return self.native.joint_names

    @property
    def gravity(self) -> Floats:
        """Gravity (m/s², world frame)."""
        return self.native.gravity

    @property
    def limits(self) -> dict[str, dict[str, float]]:
        """Limits of each joint: ``lower``, ``upper``, ``velocity``, ``effort``; infinite if the model has none."""
        return self.native.limits

    @property
    def coordinate_names(self) -> list[str]:
        """Names of the (independent) velocity coordinates: rows of the regressor."""
        return self.native.coordinate_names

    @property
    def parameter_names(self) -> list[str]:
        """Names of the inertial parameters: columns of the regressor."""
        return self.native.parameter_names

    @property
    def parameters(self) -> Floats:
        """Inertial parameters of the model, ten per body: m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz."""
        return self.native.parameters

    def rnea(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Floats:
        """Computes the forces of a motion, of one sample (vectors) or many (rows)."""
        return self.native.rnea(floats("q", q), floats("v", v), floats("a", a))

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Floats | None = None) -> Floats:
        """Computes the regressor Y of one sample, coordinates by parameters, with ``tau = Y @ parameters``.

        With loops, the rows belong to the independent coordinates. The result is written to ``out`` if it is given.
        """
        if out is None:
            found = self.native.regressor_of_one(q, v, a)
            if found is not None:
                return found
        motion = floats("q", q), floats("v", v), floats("a", a)
        if any(x.ndim != 1 for x in motion):
            raise Error("regressor takes one sample: expected vectors; use regressors for rows of samples")
        if out is not None:
            _target(out, 2)
        one: Floats = self.native.regressors(*motion, None if out is None else out[None])[0]
        return one

    def regressors(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Floats | None = None) -> Floats:
        """Computes the regressors of many samples (rows): samples by coordinates by parameters, written to ``out`` if it is given."""
        if out is not None:
            _target(out, 3)
        return self.native.regressors(floats("q", q), floats("v", v), floats("a", a), out)

    def base_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Floats, list[str]]:
        """Computes the regressor of the base parameters, of one sample or many (rows), and returns it with the names of its columns."""
        names = self.native.base_parameter_names()
        columns = [self.parameter_names.index(name) for name in names]
        of = self.regressor if floats("q", q).ndim == 1 else self.regressors
        return of(q, v, a)[..., columns], names

    def momentum_regressor(self, q: ArrayLike, v: ArrayLike) -> Floats:
        """Computes Y with ``[p, l] = Y @ parameters``: linear and angular momentum about the origin of the base, in its frame."""
        return self._quantity("momentum", q, v)

    def kinetic_energy_regressor(self, q: ArrayLike, v: ArrayLike) -> Floats:
        """Computes the row y with ``T = y @ parameters``: kinetic energy without armature."""
        return self._quantity("kinetic-energy", q, v)[..., 0, :]

    def potential_energy_regressor(self, q: ArrayLike) -> Floats:
        """Computes the row y with ``U = y @ parameters``: potential energy."""
        return self._quantity("potential-energy", q)[..., 0, :]

    def gravity_regressor(self, q: ArrayLike) -> Floats:
        """Computes Y with ``tau = Y @ parameters`` at rest."""
        return self._quantity("gravity", q)

    def tetrahedral_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Floats:
        """Computes Y with ``tau = Y @ pseudo_inertia_entries()`` for one sample of a tree, from the lines and points of the robot.

        Y has ten columns for each body, rotors included: the entries xx, xy, xz, yy, yz, zz, xw, yw, zw, ww of its pseudo-inertia. A
        coefficient vanishes if the line of a joint meets the line along which a point of the body is accelerated.
        """
        motion = [floats(name, x).tolist() for name, x in (("q", q), ("v", v), ("a", a))]
        return self.native.tetrahedral_regressor(*motion)

    def pseudo_inertia_entries(self) -> Floats:
        """Returns the entries of the pseudo-inertias of all bodies, in the order of the columns of :meth:`tetrahedral_regressor`."""
        return self.native.pseudo_inertia_entries()

    def _quantity(self, name: str, q: ArrayLike, v: ArrayLike | None = None) -> Floats:
        import numpy as np

        positions = floats("q", q)
        velocities = np.zeros((*positions.shape[:-1], self.nv)) if v is None else floats("v", v)
        found = self.native.quantity_regressors(name, positions, velocities)
        return found[0] if positions.ndim == 1 else found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return self.__reduce__()[1] == other.__reduce__()[1]

    def __hash__(self) -> int:
        return hash((self.label, self.text, str(sorted(self.options.items()))))

    def __repr__(self) -> str:
        loops = f", {self.loops} loops" if self.loops else ""
        return f"<inertial.Mechanism {self.name}: {len(self.bodies)} bodies, {self.nv} coordinates{loops}>"

    def _repr_html_(self) -> str:
        from ._tables import Table, show

        rows = [[name, *(show(x, 4) for x in limits.values())] for name, limits in self.limits.items()]
        table = Table(["joint", "lower", "upper", "velocity", "effort"], rows)
        return f"<p><b>{html.escape(repr(self)[1:-1])}</b></p>{table.html()}"
