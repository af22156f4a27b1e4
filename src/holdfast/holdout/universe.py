"""Worlds: the finite set of blocks that weights keep a hypothesis about.

Multiplicative weights need to know every block there can be. The custodian says which values each
column can have; a unit is one combination of them, a *cell*, and a block a multiset of cells. The
list of all blocks is public. It is written as a table of its own, block after block, so that any
estimator, SQL or Python, is evaluated on it by the engines that evaluate the sealed blocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.estimator import LocalEstimator
from holdfast.engines.source import Engines, Limits
from holdfast.engines.sql.estimator import SqlEstimator
from holdfast.errors import Infeasible, InvalidInput, real_number
from holdfast.mechanisms.hypothesis import Universe
from holdfast.store.blocks import BlockStore, Contents, Shard, StoredFile
from holdfast.store.table import Schema
from holdfast.theory.weights import multiset_count

__all__ = [
    "WORLD_FILE",
    "Cells",
    "World",
    "check_cells",
    "read_cells",
    "world_size",
    "write_world",
]

WORLD_FILE = "world.parquet"
_ROWS_MAX = 5 * 10**6  # of the table of all blocks
_KINDS = ("boolean", "number", "text")

Value = str | bool | float


@dataclass(frozen=True)
class Cells:
    """Every combination of the values that columns can have, in a fixed order."""

    values: Mapping[str, tuple[Value, ...]]

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return int(np.prod([len(each) for each in self.values.values()], dtype=object))

    def columns(self, numbers: NDArray[np.int64]) -> dict[str, list[Value]]:
        """The values of the cells with these numbers, column by column."""
        cells = list(product(*self.values.values()))
        return {
            name: [cells[number][place] for number in numbers]
            for place, name in enumerate(self.values)
        }

    def numbers(self, table: Any) -> NDArray[np.int64]:
        """The cell of every row of an Arrow table; −1 for rows that are in none."""
        total = np.zeros(table.num_rows, np.int64)
        known = np.ones(table.num_rows, bool)
        for name, values in self.values.items():
            place: dict[object, int] = {value: index for index, value in enumerate(values)}
            found = [place.get(_plain(each), -1) for each in table.column(name).to_pylist()]
            indices = np.array(found, np.int64)
            known &= indices >= 0
            total = total * len(values) + indices
        return np.where(known, total, -1)

    def to_dict(self) -> dict[str, list[Value]]:
        """Plain data."""
        return {name: list(values) for name, values in self.values.items()}


def read_cells(values: Mapping[str, Sequence[object]], schema: Schema) -> Cells:
    """The cells of values by column, checked against the columns that there are."""
    checked: dict[str, tuple[Value, ...]] = {}
    for name, given in values.items():
        column = schema.find(name)
        if column is None or column.kind not in _KINDS:
            allowed = "a column of numbers, text or truth values"
            raise InvalidInput("universe", name, allowed)
        items = tuple(_value(name, each, column.kind) for each in given)
        if not items or len(set(items)) != len(items):
            raise InvalidInput("universe", list(given), f"different values for {name}, at least 1")
        checked[column.name] = items
    if not checked:
        raise InvalidInput("universe", dict(values), "values for at least one column")
    # By name, as the ledger keeps them: a cell has one number, whoever reads it.
    return Cells(dict(sorted(checked.items())))


def world_size(cells: Cells, block_units: int) -> int:
    """How many blocks of so many units there can be."""
    size = multiset_count(cells.count, block_units)
    if size * block_units > _ROWS_MAX:
        raise Infeasible(
            "A universe of all blocks",
            f"at most {_ROWS_MAX:,} rows",
            f"{cells.count:,} cells in blocks of {block_units:,} units make {size:,} blocks",
            "Name fewer values, or use blocks of one unit: block_units=1.",
        )
    return size


def _value(name: str, value: object, kind: str) -> Value:
    if kind == "number":
        return real_number(f"universe of {name}", value)
    wanted: type[str | bool] = bool if kind == "boolean" else str
    if not isinstance(value, wanted):
        raise InvalidInput("universe", value, f"{kind} values for {name}")
    return value


def _plain(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _WorldBlocks(BlockStore):
    """The table of all blocks there can be."""

    def __init__(self, folder: Path, manifest: Contents) -> None:
        super().__init__(folder, manifest)
        self.shards = (Shard(WORLD_FILE, 0, self.blocks, manifest.block_rows),)


class World:
    """All blocks there can be, and which of them the sealed ones are."""

    def __init__(self, store: BlockStore, cells: Cells, limits: Limits | None) -> None:
        self._store, self._cells = store, cells
        self._places: dict[tuple[int, int], NDArray[np.int64]] = {}
        self.universe = Universe.multisets(np.arange(cells.count), store.units)
        manifest = store.manifest
        rows = self.universe.size * store.units
        schema = Schema(tuple(c for c in manifest.schema.columns if c.name in cells.values))
        world = replace(
            manifest,
            rows=rows,
            units=rows,
            blocks=self.universe.size,
            block_rows=rows,
            open_units=0,
            open_rows=0,
            leftover_units=0,
            leftover_rows=0,
            schema=schema,
            files=(),
            shards=(),
            location=None,
        )
        blocks = _WorldBlocks(store.folder, world)
        blocks.values = cells.values
        self._engines = Engines(blocks, limits)

    def admit(self, estimator: SqlEstimator | LocalEstimator) -> tuple[str, ...]:
        """What is assumed; an estimator of columns whose values were not named is refused.

        It would have no value on any block. Blocks are listed without their order: a function that
        depends on it is refused too.
        """
        if isinstance(estimator, LocalEstimator):
            return self._engines.admit(estimator, symmetric=True)
        for name in estimator.columns:
            if name not in self._cells.values:
                named = ", ".join(self._cells.values)
                raise InvalidInput("question", name, f"about columns with named values: {named}")
        return ()

    def values(self, estimator: object) -> NDArray[np.float64]:
        """The estimator's value on every block there can be. Nothing sealed is read."""
        return self._engines.values(estimator, 0, self.universe.size)

    def places(self, start: int, stop: int) -> NDArray[np.int64]:
        """The place of every sealed block among all that there can be."""
        if (start, stop) not in self._places:  # the sealed blocks never change
            table = self._store.table(start, stop, list(self._cells.values))
            numbers = self._cells.numbers(table).reshape(stop - start, -1)
            self._places[start, stop] = self.universe.locate([block.copy() for block in numbers])
        return self._places[start, stop]

    def close(self) -> None:
        """End the workers."""
        self._engines.close()


def write_world(folder: Path, cells: Cells, block_units: int) -> StoredFile:
    """Write the table of all blocks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    universe = Universe.multisets(np.arange(cells.count), block_units)
    numbers = universe.rows(0, universe.size).astype(np.int64).reshape(-1)
    units = np.arange(len(numbers), dtype=np.int64)
    table = pa.table(
        {
            "__block": (units // block_units).astype(np.int32),
            "__unit": units,
            "__row": units,
            **cells.columns(numbers),
        }
    )
    group = max(1, 100_000 // block_units) * block_units
    path = folder / WORLD_FILE
    pq.write_table(table, path, row_group_size=group)
    path.chmod(0o600)
    content = path.read_bytes()
    return StoredFile(WORLD_FILE, hashlib.sha256(content).hexdigest(), len(content))


def check_cells(store: BlockStore, cells: Cells) -> None:
    """Refuse data with a row that is in no cell: a hypothesis could never place its block."""
    step = max(1, 10**6 // store.units)
    for start in range(0, store.blocks, step):
        table = store.table(start, min(store.blocks, start + step), list(cells.values))
        if np.any(cells.numbers(table) < 0):
            hint = "Name every value that occurs; rows with a missing value have no cell."
            raise InvalidInput("universe", sorted(cells.values), "cells for all rows", hint)
