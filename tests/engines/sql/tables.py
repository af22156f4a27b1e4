"""Stores for the SQL tests, written directly: the data may be worse than a real store lets in."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.engines.sql.worker import SqlSetup, start
from holdfast.store.blocks import BlockStore, Contents
from holdfast.store.table import Column, Schema

__all__ = [
    "HOSTILE_SCHEMA",
    "SCHEMA",
    "by_pandas",
    "hostile_store",
    "path_of",
    "plain_store",
    "same",
    "worker",
    "write",
]

_KINDS = {
    **dict.fromkeys(("x", "y", "w", "n"), "number"),
    "flag": "boolean",
    "arm": "text",
    "born": "date",
    "seen": "timestamp",
    **dict.fromkeys(("Arr Delay", "order"), "number"),
}
SCHEMA = Schema(tuple(Column(*each) for each in _KINDS.items()))
HOSTILE_SCHEMA = Schema(SCHEMA.columns[:8])

_NUMBERS = [
    *(None, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 60.0, 1e15, -1e15, 2.0**53, 1e19, -1e19),
    *(float("inf"), float("-inf"), float("nan"), 1.7976931348623157e308, -1.7976931348623157e308),
    *(1e300, -1e300, 1e150, -1e150, 5e-324, -5e-324, 2.2e-308, 1e-160, 170.0, 171.0, 710.0, -746.0),
]
_TEXTS = [None, "", " ", "A", "a", "Ab", "SECRET-4711", "ß", "é", "\U0001f600", "%", "_", "it's"]
_TEXTS += ["x" * 5000, "5", "1e400", "NaN", "null", "2020-01-01", "\\", "{0}", "A\nB", "İ"]
_DAYS = [None, 0, -1, 18262, 2932896, 2932897, -719162, -719163, 2**31 - 1, -(2**31), 106751992]
_DAYS += [-(2**31) + 1, 2**31 - 2]
_MICROSECONDS = [None, 0, -1, 1577836800000000, 253402300799999999, 253402300800000000]
_MICROSECONDS += [2**63 - 1, -(2**63), -(2**63) + 1, 2**63 - 2, -62135596800000000, 10**18]


def write(
    folder: Path,
    columns: Mapping[str, Any],
    schema: Schema,
    blocks: int,
    *,
    units: NDArray[np.int64] | None = None,
    group_blocks: int = 4,
) -> BlockStore:
    """A store of these columns, whose rows are in block order; `units` numbers each row's."""
    rows = len(next(iter(columns.values())))
    numbers = np.arange(rows) if units is None else units
    count = int(numbers[-1]) + 1
    block = (numbers // (count // blocks)).astype(np.int32)
    hidden = {"__block": block, "__unit": numbers.astype(np.int64), "__row": np.arange(rows)}
    table = pa.table({**hidden, **columns})
    ends = np.searchsorted(block, np.arange(0, blocks + group_blocks, group_blocks))
    with pq.ParquetWriter(folder / "blocks.parquet", table.schema) as writer:
        for low, high in itertools.pairwise(ends):
            if high > low:
                writer.write_table(table.slice(low, high - low), row_group_size=int(high - low))
    contents = Contents(
        rows=rows,
        units=count,
        blocks=blocks,
        block_units=count // blocks,
        block_rows=rows,
        unit_column=None if rows == count else "id",
        open_units=0,
        open_rows=0,
        leftover_units=0,
        leftover_rows=0,
        schema=schema,
        files=(),
    )
    return BlockStore(folder, contents)


def hostile_store(folder: Path, blocks: int = 8, rows: int = 48) -> BlockStore:
    """The worst values there are; the first block is all NULL, the second constant."""
    generator, size = np.random.default_rng(1), (blocks - 2) * rows
    values: dict[str, tuple[Sequence[object], Any]] = {
        **dict.fromkeys(("x", "y", "w"), (_NUMBERS, pa.float64())),
        "n": ([None, *range(-3, 8), 2**53, -(2**53)], pa.int64()),
        "flag": ([None, True, False], pa.bool_()),
        "arm": (_TEXTS, pa.string()),
        "born": (_DAYS, pa.int32()),
        "seen": (_MICROSECONDS, pa.int64()),
    }
    columns = {}
    for name, (drawn, kind) in values.items():
        some = [drawn[k] for k in generator.integers(0, len(drawn), size)]
        columns[name] = pa.array([None] * rows + [drawn[-1]] * rows + some, kind)
    columns["born"] = columns["born"].cast(pa.date32())
    columns["seen"] = columns["seen"].cast(pa.timestamp("us"))
    return write(folder, columns, HOSTILE_SCHEMA, blocks)


def plain_store(folder: Path, blocks: int = 40, rows: int = 25) -> BlockStore:
    """Decent data with some NULLs, for comparison with pandas."""
    generator, size = np.random.default_rng(2), blocks * rows
    x = generator.normal(size=size)
    missing = generator.random(size) < 0.1
    days = generator.integers(10_000, 20_000, size)
    columns = {
        "x": pa.array(x, mask=missing),
        "y": pa.array(0.5 * x + generator.lognormal(sigma=2, size=size)),
        "w": pa.array(generator.random(size)),
        "n": pa.array(generator.integers(0, 12, size)),
        "flag": pa.array(generator.random(size) < 0.3),
        "arm": pa.array(np.array(["A", "B", "CC"])[generator.integers(0, 3, size)]),
        "born": pa.array(days.astype(np.int32)).cast(pa.date32()),
        "seen": pa.array(days * 86_400_000_000 + 3_600_000_000 * (days % 24)).cast(
            pa.timestamp("us")
        ),
        "Arr Delay": pa.array(generator.normal(5, 40, size)),
        "order": pa.array(generator.random(size)),
    }
    return write(folder, columns, SCHEMA, blocks)


def path_of(store: BlockStore) -> str:
    return str(store.place(store.shards[0]))


def worker(store: BlockStore, threads: int = 1, *, in_memory: bool = True) -> Any:
    """What a worker's process runs, in this one."""
    columns = tuple((each.name, each.kind) for each in store.schema.columns)
    return start(SqlSetup((path_of(store),), columns, threads, 2**28, in_memory=in_memory))


# Values to compare with: bit for bit, or those of a loop over data frames.


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Bit for bit, but that every NaN is as good as every other."""
    fixed = [np.where(np.isnan(each), np.nan, each) for each in (one, other)]
    return fixed[0].tobytes() == fixed[1].tobytes()


def by_pandas(store: BlockStore, function: Callable[[pd.DataFrame], object]) -> NDArray[np.float64]:
    """The same by a loop over data frames."""
    tables = [store.table(k, k + 1).to_pandas() for k in range(store.blocks)]
    return np.array([function(table) for table in tables], np.float64)
