"""Conversion of tables of other libraries to columns of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._result import Result
from .errors import Error, LogError

if TYPE_CHECKING:
    from ._inertial import Floats

#: Length (s) of the time units of NumPy.
UNITS = {"D": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

#: Quantities that may be given as one array with a column for each coordinate.
QUANTITIES = ("q", "dq", "ddq", "tau")


def columns_of(
    table: Any, coordinates: Callable[[], Sequence[str]] | None = None
) -> tuple[list[str], list[Floats], list[str]]:
    """Returns names and columns of a table, and the names of columns that are not numeric.

    The table is a mapping, a pandas or polars frame, an Arrow table, or a NumPy record array. Times are converted to seconds, as for
    Parquet files.

    An array ``q``, ``dq``, ``ddq`` or ``tau`` of samples by coordinates becomes a column for each coordinate; a mapping with such
    arrays may give ``rate`` (Hz) instead of times.
    """
    names, columns, others = [], [], []
    pairs = list(_pairs(table))
    arrays = coordinates is not None and any(name in QUANTITIES and _ndim(column) == 2 for name, column in pairs)
    if arrays:
        pairs = list(_with_times(pairs))
    for name, column in pairs:
        if arrays and name in QUANTITIES and _ndim(column) == 2:
            found = _spread(name, column, coordinates() if coordinates else ())
            names += [each for each, _ in found]
            columns += [each for _, each in found]
            continue
        numbers = _numbers(column)
        if numbers is None:
            others.append(name)
        else:
            names.append(name)
            columns.append(numbers)
    if not names:
        found_names = f", only {', '.join(others)}" if others else ""
        raise LogError(f"the table has no columns of numbers{found_names}")
    return names, columns, others


def _ndim(column: Any) -> int:
    import numpy as np

    try:
        return int(getattr(column, "ndim", None) or np.ndim(column))
    except ValueError:  # lists of different lengths
        return 1


def _with_times(pairs: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Adds a column of times, computed from ``rate`` if it is given. Without times and ``rate``, the option ``rate`` is needed."""
    import numpy as np

    given = dict(pairs)
    rate = given.pop("rate", None)
    if "t" not in given and rate is not None:
        count = next(len(given[name]) for name in QUANTITIES if name in given)
        yield "t", np.arange(count) / float(rate)
    yield from given.items()


def _spread(name: str, array: Any, coordinates: Sequence[str]) -> list[tuple[str, Floats]]:
    """Splits an array of samples by coordinates into one column for each coordinate."""
    import numpy as np

    try:
        values = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise LogError(f"{name}: expected numbers") from None
    if values.shape[1] != len(coordinates):
        expected = f"{len(coordinates)} ({', '.join(coordinates)})"
        raise LogError(f"{name} has {values.shape[1]} columns, expected one for each coordinate: {expected}")
    return [(f"{name}.{joint}", np.ascontiguousarray(values[:, k])) for k, joint in enumerate(coordinates)]


def _pairs(table: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(table, Result) and table._log() is not None:
        table = table._log()
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
    elif hasattr(table, "__arrow_c_stream__"):  # other libraries with Arrow's C interface
        yield from _pairs(_imported(table))
    else:
        raise TypeError(
            f"a log of type {type(table).__name__}: expected a path, a mapping of columns, "
            "a pandas or polars frame, an Arrow table, a Simulation or a Summary"
        )


def _imported(table: Any) -> Any:
    """Imports a table that supports Arrow's C stream interface."""
    try:
        import pyarrow
    except ImportError:
        raise Error(f"a {type(table).__name__} needs pyarrow: pip install pyarrow") from None
    return pyarrow.RecordBatchReader.from_stream(table).read_all()


def _numbers(column: Any) -> Floats | None:
    """Returns the numbers of a column, with gaps as NaN; ``None`` if it is not numeric."""
    import numpy as np

    zone = getattr(getattr(column, "dtype", None), "tz", None)
    if zone is not None and hasattr(column, "array"):  # pandas converts times with a zone to objects
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
        # Gaps of nullable columns are None or pandas.NA.
        gap = np.array([x is None or type(x).__name__ == "NAType" for x in array.ravel()], dtype=bool)
        array = np.where(gap.reshape(array.shape), np.nan, array)
    try:
        numbers = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.ndim == 1 else None
