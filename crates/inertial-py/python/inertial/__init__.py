"""Identification of the inertial parameters of robots from measured motion.

The package finds which parameters, or combinations of them, are identifiable, designs motions that excite them, and estimates them
from logs so that every body is physically consistent::

    import inertial

    robot = inertial.Mechanism.from_urdf("robot.urdf")
    print(inertial.analyze(robot))
    motion = inertial.design(robot, duration=20)
    found = inertial.identify(robot, ["log.csv"], friction="coulomb+viscous")
    print(found)
    found.bodies["link_1"].mass
    found.model.predict(q, dq, ddq)

Functions and options have the same names and meaning as in the program (``inertial identify --help``), with ``_`` instead of
``-``. Invalid inputs raise :class:`Error` or one of its subclasses in :mod:`inertial.errors`.
"""

from __future__ import annotations

from . import errors, pga, studies
from ._inertial import Error, __version__
from ._result import Result
from .arithmetic import set_arithmetic
from .commands import analyze, check, columns, design, export, identify, simulate, validate
from .errors import LogError, ModelError, OptionError
from .fitted import FittedModel
from .fleet import identify_fleet
from .identifier import Identifier
from .loading import load
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
    "studies",
    "validate",
]
