"""Saved results, models and summaries."""

from __future__ import annotations

import os
from typing import Any

from ._saved import read
from .summary import Summary


def load(path: str | os.PathLike[str]) -> Any:
    """Reads a file that ``save`` of a result, a model or a summary wrote."""
    found = read(path)
    return Summary.load(path) if found is None else found
