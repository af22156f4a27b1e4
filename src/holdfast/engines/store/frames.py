"""Tables in memory as an origin of rows: pandas, Polars, Arrow, NumPy, a dictionary of arrays."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.engines.store.session import Session
from holdfast.engines.store.values import refuse_arrow, refused
from holdfast.errors import InvalidInput

__all__ = ["ArrowTable", "Frame", "open_frame"]

_NAME = "__input"
_ALLOWED = (
    "a pandas or Polars DataFrame, an Arrow table, NumPy arrays with names, "
    "or paths of CSV or Parquet files"
)
_PLAIN_OBJECTS = (  # what pandas calls the content of a column of Python objects
    *("string", "boolean", "integer", "floating", "mixed-integer-float", "decimal"),
    *("date", "datetime", "datetime64", "empty"),
)


@dataclass(frozen=True)
class ArrowTable:
    """Columns in memory that DuckDB can read."""

    table: Any

    def attach(self, session: Session) -> str:
        """The table as SQL names it after FROM."""
        session.connection.register(_NAME, self.table)
        return _NAME


@dataclass(frozen=True)
class Frame:
    """Columns of any kind in memory, and their names, whatever they are."""

    names: list[object]
    columns: list[Any]

    def chosen(self, names: Sequence[str], unit: str | None) -> ArrowTable:
        """These columns as an Arrow table; one that cannot be kept is refused by its name."""
        import pyarrow as pa

        arrays = {}
        for name in names:
            array = _array(name, self.columns[self.names.index(name)])
            refuse_arrow(name, array.type, unit=name == unit)
            arrays[name] = _readable(name, array)
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidInput("data", lengths, "columns of one length")
        return ArrowTable(pa.table(arrays))


def open_frame(data: Any, columns: Sequence[str] | None) -> Frame:
    """The columns of a table in memory; `columns` names those of an array without names."""
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "iloc") and getattr(data, "ndim", 0) == 2:
        return Frame(list(data.columns), [data.iloc[:, i] for i in range(data.shape[1])])
    if library == "polars" and hasattr(data, "to_arrow") and hasattr(data, "columns"):
        return open_frame(data.to_arrow(), columns)
    if library == "pyarrow" and hasattr(data, "column_names") and hasattr(data, "num_rows"):
        return Frame(list(data.column_names), [data.column(i) for i in range(data.num_columns)])
    if isinstance(data, np.ndarray):
        return _open_array(data, columns)
    if isinstance(data, Mapping):
        return Frame(list(data), [data[name] for name in data])
    hints = {
        "polars": "Call collect() on a LazyFrame; to_frame() on a Series.",
        "pandas": "Call to_frame() on a Series.",
        "pyarrow": "Make a table of it, or name the files.",
    }
    raise InvalidInput("data", f"a {type(data).__name__}", _ALLOWED, hints.get(library, ""))


def _open_array(data: Any, columns: Sequence[str] | None) -> Frame:
    if data.dtype.names is not None:
        if data.ndim != 1:
            raise InvalidInput("data", data.shape, "one row after the other: one axis")
        return Frame(list(data.dtype.names), [data[name] for name in data.dtype.names])
    table = data[:, None] if data.ndim == 1 else data
    if table.ndim != 2:
        raise InvalidInput("data", data.shape, "an array of rows and columns")
    if columns is None or len(columns) != table.shape[1]:
        given = "none" if columns is None else f"{len(columns)} names"
        allowed = f"{table.shape[1]} names, one for each column of the array"
        raise InvalidInput("columns", given, allowed, 'For example columns=["x", "y"].')
    return Frame(list(columns), [table[:, i] for i in range(table.shape[1])])


def _array(name: str, values: Any) -> Any:
    """A column as an Arrow array; None, NaN and masked values are missing."""
    import pyarrow as pa

    if type(values).__module__.partition(".")[0] == "polars":
        values = values.to_arrow()
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if not hasattr(values, "dtype"):
        values = np.asarray(values, object if _needs_objects(values) else None)
    _check_array(name, values)
    try:
        if values.dtype == object:
            return _objects(name, values)
        return pa.array(_native(values), from_pandas=True)
    except InvalidInput:
        raise
    except OverflowError:
        what = "an integer beyond 64 bits"
        raise refused(name, what, "store it as text if it names something") from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        remedy = f"convert it to numbers, text, booleans, dates or timestamps ({error})"
        raise refused(name, f"the type {values.dtype}", remedy) from None


def _native(values: Any) -> Any:
    """The same values in a type that Arrow knows: no half floats, no foreign order of bytes."""
    if values.dtype == np.float16:
        return values.astype(np.float32)
    foreign = isinstance(values.dtype, np.dtype) and not values.dtype.isnative
    return values.astype(values.dtype.newbyteorder("=")) if foreign else values


def _needs_objects(values: Any) -> bool:
    """Whether numpy would make texts of a list's missing values, or one type of several."""
    return isinstance(values, Sequence) and not all(type(each) is float for each in values)


def _check_array(name: str, values: Any) -> None:
    if getattr(values, "ndim", 1) != 1:
        raise InvalidInput(f"column {name!r}", values.shape, "one value for each row: one axis")
    if getattr(values.dtype, "kind", "") == "c":
        raise refused(name, f"complex numbers ({values.dtype})", "store two columns of floats")


def _objects(name: str, values: Any) -> Any:
    """Python objects of one kind; a column that mixes kinds has no order and no equality."""
    import pandas as pd
    import pyarrow as pa

    series = pd.Series(values)
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind == "date" and any(isinstance(each, datetime.datetime) for each in series):
        kind = "dates mixed with times"
    if kind in ("bytes", "time", "timedelta"):
        return pa.array(series, from_pandas=True)  # to be refused by its name
    if kind not in _PLAIN_OBJECTS:
        remedy = "make all values numbers, or all text, for example by .astype(str)"
        raise refused(name, f"Python objects ({kind})", remedy)
    return pa.array(series, from_pandas=True)


def _readable(name: str, array: Any) -> Any:
    """The same values in a type that DuckDB reads, and only text that is text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t, kind = pa.types, array.type
    try:
        array.validate(full=t.is_string(kind) or t.is_large_string(kind) or t.is_dictionary(kind))
        if t.is_float16(kind):
            return pc.cast(array, pa.float32())
        if t.is_decimal256(kind):
            return pc.cast(array, pa.decimal128(kind.precision, kind.scale))
        if t.is_timestamp(kind) and kind.unit in ("s", "ms"):  # DuckDB's conversion may overflow
            return pc.cast(array, pa.timestamp("us", kind.tz))
    except pa.ArrowException as error:
        raise refused(name, f"this content ({error})", "correct these values") from None
    return array
