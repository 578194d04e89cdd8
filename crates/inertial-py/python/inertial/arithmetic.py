"""Choice of the arithmetic: fast, or with identical results on every processor."""

from __future__ import annotations

import os
from typing import Literal

from . import _inertial


def set_arithmetic(kind: Literal["fast", "reproducible"]) -> None:
    """Sets the arithmetic of this process for all following calls.

    ``"fast"`` uses fused multiply-add if the processor has it; ``"reproducible"`` gives the same bits on every processor. The environment
    variable ``INERTIAL_ARITHMETIC`` sets it when the package is imported, also in worker processes.
    """
    _inertial.set_arithmetic(kind)


if "INERTIAL_ARITHMETIC" in os.environ:
    _inertial.set_arithmetic(os.environ["INERTIAL_ARITHMETIC"])
