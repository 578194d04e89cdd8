"""Results: the program's JSON as typed objects that print as tables."""

from .experiments import Design, DesignedParameter, Simulation
from .identification import (
    Fleet,
    FleetPayload,
    Identification,
    Member,
    RegressorIdentification,
    RowResidual,
)
from .parts import Body, Joint, Parameter, Residual
from .structure import Analysis, AnalyzedBody, BaseParameter, Check, CheckedBody
from .texts import Column, Columns, Export, ExportedFile
from .validation import Validation

__all__ = [
    "Analysis",
    "AnalyzedBody",
    "BaseParameter",
    "Body",
    "Check",
    "CheckedBody",
    "Column",
    "Columns",
    "Design",
    "DesignedParameter",
    "Export",
    "ExportedFile",
    "Fleet",
    "FleetPayload",
    "Identification",
    "Joint",
    "Member",
    "Parameter",
    "RegressorIdentification",
    "Residual",
    "RowResidual",
    "Simulation",
    "Validation",
]
