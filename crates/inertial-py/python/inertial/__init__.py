"""Weighs a robot by moving it.

Which inertial parameters of a robot can any experiment reveal, and in which combinations; which motion reveals them;
and what are they, given what was measured, so that every body can exist::

    import inertial

    robot = inertial.Mechanism.from_urdf("robot.urdf")
    print(inertial.analyze(robot))
    motion = inertial.design(robot, duration=20)
    found = inertial.identify(robot, ["log.csv"], friction="coulomb+viscous")
    print(found)
    found.bodies["link_1"].mass
    found.model.predict(q, dq, ddq)

Functions and options have the names and meaning of the program's (``inertial identify --help``), with ``_`` for ``-``.
What is wrong with an input is said by :class:`Error` and its subclasses in :mod:`inertial.errors`.
"""

from __future__ import annotations

from . import errors, pga
from ._inertial import Error, __version__
from ._result import Result
from .arithmetic import set_arithmetic
from .commands import analyze, check, columns, design, export, identify, simulate, validate
from .errors import LogError, ModelError, OptionError
from .fitted import FittedModel, load
from .fleet import identify_fleet
from .identifier import Identifier
from .mechanism import Mechanism
from .prepared import Prepared, prepare
from .regressor import identify_regressor
from .results import (
    Analysis,
    Check,
    Columns,
    Design,
    Export,
    Fleet,
    Identification,
    RegressorIdentification,
    Simulation,
    Validation,
)
from .summary import Online, Summary

__all__ = [
    "Analysis",
    "Check",
    "Columns",
    "Design",
    "Error",
    "Export",
    "FittedModel",
    "Fleet",
    "Identification",
    "Identifier",
    "LogError",
    "Mechanism",
    "ModelError",
    "Online",
    "OptionError",
    "Prepared",
    "RegressorIdentification",
    "Result",
    "Simulation",
    "Summary",
    "Validation",
    "__version__",
    "analyze",
    "check",
    "columns",
    "design",
    "errors",
    "export",
    "identify",
    "identify_fleet",
    "identify_regressor",
    "load",
    "pga",
    "prepare",
    "set_arithmetic",
    "simulate",
    "validate",
]
