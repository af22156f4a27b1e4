"""Data that a function refers to: plain values, containers, arrays, and frames by their values."""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import struct
import sys
import uuid
from collections.abc import Callable
from types import EllipsisType, NoneType, NotImplementedType
from typing import Any

import numpy as np

from holdfast.engines.local.identity.encoder import Encoder

__all__ = ["PLAIN", "add_data"]

_MOST_CELLS = 500_000  # of a table that is not numpy's: read one by one


def _text(kind: str) -> Callable[[Encoder, Any], None]:
    return lambda encoder, value: encoder.write(kind, str(value))


def _shown(kind: str) -> Callable[[Encoder, Any], None]:
    return lambda encoder, value: encoder.write(kind, repr(value))


def _float(encoder: Encoder, value: float) -> None:
    encoder.write(
        "float", struct.pack("<d", value)
    )  # tells -0.0 from 0.0, and one NaN from another


def _complex(encoder: Encoder, value: complex) -> None:
    encoder.write("complex", struct.pack("<dd", value.real, value.imag))


def _integer(encoder: Encoder, value: int) -> None:
    encoder.write("int", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


# Values that cannot be changed, by their exact type.
PLAIN: dict[type, Callable[[Encoder, Any], None]] = {
    NoneType: _shown("None"),
    EllipsisType: _shown("Ellipsis"),
    NotImplementedType: _shown("NotImplemented"),
    bool: _shown("bool"),
    int: _integer,
    float: _float,
    complex: _complex,
    str: _text("str"),
    bytes: lambda encoder, value: encoder.write("bytes", value),
    range: _shown("range"),
    slice: lambda encoder, value: encoder.add_all("slice", (value.start, value.stop, value.step)),
    tuple: lambda encoder, value: encoder.add_all("tuple", value),
    frozenset: lambda encoder, value: encoder.add_set("frozenset", value),
    np.dtype: lambda encoder, value: _dtype(encoder, value),
    datetime.date: _shown("date"),
    datetime.timedelta: _shown("timedelta"),
    decimal.Decimal: _text("decimal"),
    fractions.Fraction: _text("fraction"),
    pathlib.PurePosixPath: _text("path"),
    pathlib.PosixPath: _text("path"),
    uuid.UUID: _text("uuid"),
}


def _dtype(encoder: Encoder, value: Any) -> None:
    encoder.write("dtype", repr(value.descr) if value.names else value.str)


def _scalar(encoder: Encoder, value: Any) -> None:
    _array(encoder, np.asarray(value))


def _array(encoder: Encoder, value: Any) -> None:
    encoder.write("array", *value.shape)
    encoder.write("order", *_travelling(value))
    _dtype(encoder, value.dtype)
    if value.dtype.hasobject:
        encoder.add_all("items", value.ravel().tolist())
    else:
        encoder.write("bytes", np.ascontiguousarray(value).tobytes())


def _travelling(value: Any) -> tuple[str, str]:
    """Order in memory and whether it may be written to, as pickle keeps them.

    An array that is contiguous in neither order arrives as a copy: in C's order, and writeable.
    """
    flags = value.flags
    if not (flags.c_contiguous or flags.f_contiguous):
        return "C", "writeable"
    return "C" if flags.c_contiguous else "F", "writeable" if flags.writeable else "fixed"


def _masked(encoder: Encoder, value: Any) -> None:
    _array(encoder, np.ma.getdata(value))
    _array(encoder, np.array(np.ma.getmaskarray(value)))
    encoder.write("fill")
    _array(encoder, np.array(value.fill_value))


def _dict(encoder: Encoder, value: dict[Any, Any]) -> None:
    # In the order of insertion: what iterates over it sees that order.
    encoder.add_all("dict", (each for pair in value.items() for each in pair))


def _values(encoder: Encoder, values: Any) -> None:
    """The values of a pandas column or index, whatever holds them."""
    array = values.to_numpy()
    encoder.write("column", str(values.dtype))
    categories = getattr(values.dtype, "categories", None)
    if categories is not None:
        encoder.write("ordered", str(values.dtype.ordered))
        _values(encoder, categories)
    if array.dtype.hasobject:
        encoder.add_all("items", [_missing(each) for each in array.tolist()])
    else:
        _array(encoder, np.array(array))  # a copy: how the column lies in its frame is an accident


def _missing(value: object) -> object:
    """The marks of a missing value, which are not plain, by their names."""
    return ("missing", repr(value)) if type(value).__name__ in {"NAType", "NaTType"} else value


def _index(encoder: Encoder, index: Any) -> None:
    encoder.add_all("index", index.names)
    levels = range(index.nlevels)
    for level in levels:
        _values(encoder, index.get_level_values(level))


def _series(encoder: Encoder, series: Any) -> None:
    encoder.add(series.name)
    _index(encoder, series.index)
    _values(encoder, series)
    encoder.add(series.attrs)


def _frame(encoder: Encoder, frame: Any) -> None:
    encoder.write("frame", *frame.shape)
    _index(encoder, frame.columns)
    _index(encoder, frame.index)
    for place in range(frame.shape[1]):
        _values(encoder, frame.iloc[:, place])
    encoder.add(frame.attrs)


def _moment(encoder: Encoder, value: Any) -> None:
    encoder.write("moment", type(value).__name__, repr(value), str(getattr(value, "unit", "")))


def _table(encoder: Encoder, table: Any) -> None:
    """A table or a column of polars or Arrow."""
    rows = table.to_arrow() if hasattr(table, "to_arrow") else table
    cells = rows.num_rows * rows.num_columns if hasattr(rows, "num_columns") else len(rows)
    if cells > _MOST_CELLS:
        raise ValueError("too many cells to read one by one")
    encoder.write("table", str(getattr(rows, "schema", None) or rows.type))
    encoder.write("name", str(getattr(table, "name", "")))
    encoder.add(rows.to_pydict() if hasattr(rows, "to_pydict") else rows.to_pylist())


# Types of packages that may not be loaded: by module, then name.
_FOREIGN: dict[tuple[str, str], Callable[[Encoder, Any], None]] = {
    ("pandas", "Index"): _index,
    ("pandas", "Series"): _series,
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Timestamp"): _moment,
    ("pandas", "Timedelta"): _moment,
    ("polars", "Series"): _table,
    ("polars", "DataFrame"): _table,
    ("pyarrow", "Table"): _table,
    ("pyarrow", "RecordBatch"): _table,
    ("pyarrow", "Array"): _table,
    ("pyarrow", "ChunkedArray"): _table,
}

_CONTAINERS: dict[type, Callable[[Encoder, Any], None]] = {
    list: lambda encoder, value: encoder.add_all("list", value),
    dict: _dict,
    set: lambda encoder, value: encoder.add_set("set", value),
    bytearray: lambda encoder, value: encoder.write("bytearray", bytes(value)),
    np.ndarray: _array,
    np.ma.MaskedArray: _masked,
}


def add_data(encoder: Encoder, value: object) -> bool:
    """Write a container, an array or a frame; False if value is none of these, exactly."""
    known = _CONTAINERS.get(type(value))
    if known is None and isinstance(value, np.generic):
        known = _scalar
    if known is None and isinstance(value, np.dtype):  # each dtype has a class of its own
        known = _dtype
    if known is None:
        known = _foreign(value)
    if known is None:
        return False
    encoder.write("data", type(value).__module__, type(value).__qualname__)
    known(encoder, value)
    return True


def _foreign(value: object) -> Callable[[Encoder, Any], None] | None:
    top = type(value).__module__.partition(".")[0]
    for (package, name), write in _FOREIGN.items():
        if package == top and package in sys.modules:
            kind = getattr(sys.modules[package], name, None)
            if isinstance(kind, type) and isinstance(value, kind):
                return write
    return None
