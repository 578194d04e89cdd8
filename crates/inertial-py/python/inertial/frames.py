"""Tables of other libraries as columns of numbers, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._inertial import Error

if TYPE_CHECKING:
    from ._inertial import Floats


def columns_of(table: Any) -> tuple[list[str], list[Floats]]:
    """Names and columns of a mapping, a pandas or polars frame, a PyArrow table, or a NumPy record array."""
    import numpy as np

    if isinstance(table, Mapping):
        pairs = [(str(name), table[name]) for name in table]
    elif hasattr(table, "column_names") and hasattr(table, "column"):  # PyArrow
        pairs = [(name, table.column(name).to_numpy()) for name in table.column_names]
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):  # pandas, polars
        pairs = [(str(name), table[name].to_numpy()) for name in table.columns]
    elif getattr(getattr(table, "dtype", None), "names", None):  # NumPy records
        pairs = [(name, table[name]) for name in table.dtype.names]
    else:
        raise Error(
            f"a log of type {type(table).__name__}: expected a path, a mapping of columns, "
            "a pandas or polars frame, a PyArrow table or a Summary"
        )
    columns = []
    for name, column in pairs:
        try:
            columns.append(np.ascontiguousarray(column, dtype=np.float64))
        except (TypeError, ValueError):
            raise Error(f"column {name} of the table: expected numbers") from None
    return [name for name, _ in pairs], columns
