"""Cutting the random order of units into the open part, the blocks and the leftover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.store.columns import BLOCK, ID, ROW, UNIT
from holdfast.engines.store.values import Field

__all__ = ["Part", "RowGroups", "group_rows", "numbered", "row_schema"]

_FEWEST_GROUP_ROWS = 1_024
_MOST_GROUP_ROWS = 200_000
_GROUP_BYTES = 32 * 2**20  # a wide table has fewer rows in a group: it is held in memory


def group_rows(fields: Sequence[Field]) -> int:
    """About how many rows a group of a table with these columns has."""
    by_bytes = _GROUP_BYTES // (8 * (len(fields) + 3))
    return max(_FEWEST_GROUP_ROWS, min(_MOST_GROUP_ROWS, by_bytes))


def row_schema(fields: Sequence[Field]) -> Any:
    """The Arrow types of the number of the row, and of the columns as they are stored."""
    import pyarrow as pa

    types = {
        "boolean": pa.bool_(),
        "text": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    found = [
        pa.int64() if each.is_integer else types.get(str(each.kind), pa.float64())
        for each in fields
    ]
    named = zip((each.name for each in fields), found, strict=True)
    return pa.schema([pa.field(ROW, pa.int64()), *(pa.field(*each) for each in named)])


@dataclass(frozen=True)
class Part:
    """A run of units in the random order, start … stop − 1."""

    start: int
    stop: int

    def of(self, batch: Any, units: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
        """The rows of a batch that belong to it, and their units, counted from its start."""
        first, last = np.searchsorted(units, [self.start, self.stop])
        return batch.slice(first, last - first), units[first:last] - self.start


def numbered(batches: Iterable[Any]) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    """Each batch with the number of each row's unit; without ids every row is a unit."""
    import pyarrow.compute as pc

    count, last = 0, None
    for batch in batches:
        if not batch.num_rows:
            continue
        if ID not in batch.schema.names:
            units = np.arange(count, count + batch.num_rows, dtype=np.int64)
            count += batch.num_rows
            yield batch, units
            continue
        ids = batch.column(batch.schema.get_field_index(ID))
        new = np.ones(len(ids), np.bool_)
        new[0] = count == 0 or ids[0].as_py() != last
        changed = pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1))
        new[1:] = changed.to_numpy(zero_copy_only=False)
        units = count - 1 + np.cumsum(new, dtype=np.int64)
        count, last = int(units[-1]) + 1, ids[-1].as_py()
        yield batch, units


class RowGroups:
    """A Parquet file whose row groups hold whole blocks, written as the rows come.

    A group gets about `group_rows` rows; a block that is larger is a group of its own. So a query
    that reads some blocks reads little else, and no block is ever added up by two threads.
    """

    def __init__(self, file: Path, schema: Any, block_units: int, group_rows: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        fields = [pa.field(BLOCK, pa.int32()), pa.field(UNIT, pa.int64()), *schema]
        self._schema = pa.schema(fields)
        texts = [field.name for field in fields if pa.types.is_string(field.type)]
        counted = [field.name for field in fields if field.name.startswith("__")]
        self._writer = pq.ParquetWriter(
            file,
            self._schema,
            compression="snappy",
            use_dictionary=texts or False,
            column_encoding=dict.fromkeys(counted, "DELTA_BINARY_PACKED"),
        )
        self._block_units = block_units
        self._group_rows = group_rows
        self._waiting: list[Any] = []
        self._blocks: list[NDArray[np.int64]] = []
        self._rows_waiting = 0
        self.rows = 0

    def add(self, batch: Any, units: NDArray[np.int64]) -> None:
        """Rows that come next, and their units."""
        import pyarrow as pa

        if not batch.num_rows:
            return
        blocks = units // self._block_units
        hidden = [pa.array(blocks, pa.int32()), pa.array(units)]
        columns = [batch.column(batch.schema.get_field_index(n)) for n in self._schema.names[2:]]
        cast = [c.cast(f.type) for c, f in zip(columns, list(self._schema)[2:], strict=True)]
        self._waiting.append(pa.Table.from_arrays([*hidden, *cast], schema=self._schema))
        self._blocks.append(blocks)
        self._rows_waiting += batch.num_rows
        self.rows += batch.num_rows
        ended = blocks[-1] != self._blocks[0][0]  # else a large block goes on
        if ended and self._rows_waiting > self._group_rows:
            self._write()

    def _write(self, *, all_of_it: bool = False) -> None:
        """Write groups while a block ends among the rows that wait; the last may go on."""
        import pyarrow as pa

        table, blocks = pa.concat_tables(self._waiting), np.concatenate(self._blocks)
        ends = np.flatnonzero(np.diff(blocks)) + 1
        if all_of_it:
            ends = np.append(ends, len(blocks))
        start = 0
        while ends.size and (all_of_it or len(blocks) - start > self._group_rows):
            fitting = np.searchsorted(ends, start + self._group_rows, side="right")
            stop = int(ends[max(int(fitting) - 1, 0)])
            self._writer.write_table(table.slice(start, stop - start), stop - start)
            start, ends = stop, ends[ends > stop]
        self._waiting, self._blocks = [table.slice(start)], [blocks[start:]]
        self._rows_waiting = len(blocks) - start

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and self._rows_waiting:
            self._write(all_of_it=True)
        self._waiting.clear()
        self._writer.close()
