"""Tables of other libraries as columns of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._inertial import Error

if TYPE_CHECKING:
    from ._inertial import Floats

#: Seconds in the units of NumPy's times.
UNITS = {"D": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def columns_of(table: Any) -> tuple[list[str], list[Floats], list[str]]:
    """Names and columns of a mapping, a pandas or polars frame, a PyArrow table, or a NumPy record array; and the names of
    columns that hold no numbers. Times become seconds, as in Parquet files."""
    names, columns, others = [], [], []
    for name, column in _pairs(table):
        numbers = _numbers(column)
        if numbers is None:
            others.append(name)
        else:
            names.append(name)
            columns.append(numbers)
    if not names:
        found = f", only {', '.join(others)}" if others else ""
        raise Error(f"the table has no columns of numbers{found}")
    return names, columns, others


def _pairs(table: Any) -> Iterator[tuple[str, Any]]:
    from ._result import Result
    from .results import Simulation

    if isinstance(table, Simulation):
        table = table.columns
    if hasattr(table, "collect") and hasattr(table, "lazy"):  # a lazy frame of polars
        table = table.collect()
    if isinstance(table, Mapping) and not isinstance(table, Result):
        yield from ((str(name), table[name]) for name in table)
    elif hasattr(table, "column_names") and hasattr(table, "column"):  # PyArrow
        yield from ((name, table.column(name)) for name in table.column_names)
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):  # pandas, polars
        index: Any = getattr(table, "index", None)
        if getattr(index, "name", None) is not None:
            yield str(index.name), index
        yield from ((str(name), table[name]) for name in table.columns)
    elif hasattr(table, "schema") and hasattr(table, "column"):  # a record batch of PyArrow
        yield from ((name, table.column(name)) for name in table.schema.names)
    elif getattr(getattr(table, "dtype", None), "names", None):  # NumPy records
        yield from ((name, table[name]) for name in table.dtype.names)
    else:
        raise Error(
            f"a log of type {type(table).__name__}: expected a path, a mapping of columns, "
            "a pandas or polars frame, a PyArrow table, a Simulation or a Summary"
        )


def _numbers(column: Any) -> Floats | None:
    """A column's numbers, gaps as NaN; ``None`` where it holds something else."""
    import numpy as np

    zone = getattr(getattr(column, "dtype", None), "tz", None)
    if zone is not None and hasattr(column, "array"):  # pandas gives objects where times have a zone
        column = column.array.tz_convert(None)
    if hasattr(column, "to_numpy"):
        try:
            column = column.to_numpy(zero_copy_only=False)  # an array of PyArrow with gaps
        except TypeError:
            column = column.to_numpy()
    try:
        array = np.asarray(column)
    except ValueError:  # lists of different lengths
        return None
    if array.dtype.kind == "c":
        return None
    if array.dtype.kind in "mM":
        unit, count = np.datetime_data(array.dtype)
        if unit not in UNITS:
            return None
        seconds: Floats = array.astype(np.int64).astype(np.float64) * (count * UNITS[unit])
        seconds[np.isnat(array)] = np.nan
        return seconds
    if array.dtype.kind == "O":
        # Gaps of nullable columns: None, or pandas' own mark.
        gap = np.array([x is None or type(x).__name__ == "NAType" for x in array.ravel()], dtype=bool)
        array = np.where(gap.reshape(array.shape), np.nan, array)
    try:
        numbers = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.ndim == 1 else None
