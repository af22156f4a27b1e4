"""Blocks in the form that a function wants: a chunk of whole blocks is turned once, then cut.

The form of a block depends on the schema alone, never on the values of its neighbours: numbers are
float64 with NaN for NULL in pandas and numpy, whether or not a NULL occurs; booleans are pandas'
nullable kind, or float64 in numpy; text is text; dates and times are datetime64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chunk", "make_chunk", "select"]

_TEXT_BYTES = 64  # a Python text in an array of objects, roughly


@dataclass(frozen=True)
class Chunk:
    """Rows of whole blocks, in one form."""

    kind: str
    data: Any
    rows: NDArray[np.int64]
    """The first row of every block in the chunk, and the number of rows."""
    size: int
    """Bytes, roughly."""

    @property
    def blocks(self) -> int:
        """How many blocks the chunk has."""
        return len(self.rows) - 1

    def between(self, first: int, last: int) -> Any:
        """The rows first, …, last − 1 as something that may be written to."""
        if self.kind == "pandas":
            import pandas as pd

            frame = self.data.iloc[first:last].copy()
            frame.index = pd.RangeIndex(last - first)
            return frame
        if self.kind == "numpy":
            return {name: array[first:last].copy() for name, array in self.data.items()}
        rows = self.data.slice(first, last - first)
        if self.kind == "polars":
            import polars as pl

            return pl.from_arrow(rows)
        return rows

    def rectangle(self, first: int, last: int, units: int) -> dict[str, NDArray[Any]]:
        """Columns of the rows first, …, last − 1 as (blocks, units) arrays, not copied."""
        return {name: array[first:last].reshape(-1, units) for name, array in self.data.items()}


def make_chunk(table: Any, kind: str, rows: NDArray[np.int64], units: int) -> Chunk:
    """A chunk from an Arrow table of whole blocks; units are numbered within their blocks."""
    if "__unit" in table.column_names:
        unit = column_array(table.column("__unit")).astype(np.int64) % units
        table = table.set_column(table.column_names.index("__unit"), "__unit", [_arrow(unit)])
    if kind == "numpy":
        data: Any = {name: column_array(table.column(name)) for name in table.column_names}
        size = sum(_bytes(array) for array in data.values())
    elif kind == "pandas":
        data = _frame(_plain_text(table))
        size = int(data.memory_usage(index=False).sum())
    else:
        data = _plain_text(table).combine_chunks()
        size = int(data.nbytes)
    return Chunk(kind, data, rows - rows[0], size)


def select(block: Any, kind: str, columns: Sequence[str]) -> Any:
    """Some columns of a block."""
    if kind == "numpy":
        return {name: block[name] for name in columns}
    return block[list(columns)] if kind == "pandas" else block.select(list(columns))


def _arrow(array: NDArray[Any]) -> Any:
    import pyarrow as pa

    return pa.array(array)


def _plain_text(table: Any) -> Any:
    """Text as text: whether it is stored by a dictionary is nobody's business."""
    import pyarrow as pa

    for place, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(place, column.name, table.column(place).cast(pa.string()))
    return table


def _frame(table: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    for place, column in enumerate(table.schema):
        if pa.types.is_integer(column.type):
            doubles = table.column(place).cast(pa.float64())
            table = table.set_column(place, column.name, doubles)
    nullable = {pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(use_threads=False, date_as_object=False, types_mapper=nullable.get)


def column_array(column: Any) -> NDArray[Any]:
    """One Arrow column as an array of its own: float64, datetime64 or text and None."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_dictionary(kind):
        column = column.cast(pa.string())
    array = np.asarray(column.to_numpy())
    wanted = array.dtype if array.dtype.kind in "fM" else np.dtype(object)
    result = np.empty(len(array), np.float64 if wanted.kind == "f" else wanted)
    result[:] = array
    return result


def _bytes(array: NDArray[Any]) -> int:
    return len(array) * _TEXT_BYTES if array.dtype.hasobject else array.nbytes
