"""The stores of the engine contract: row units or id units, in one file or in shards."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.store.blocks import BlockStore, StoredFile
from holdfast.store.table import Column, Schema
from tests.engines.sql.tables import write
from tools.shards import sharded

__all__ = ["BAD", "BLOCKS", "EMPTY", "LAYOUTS", "Stored", "stored"]

BLOCKS, UNITS = 11, 12
BAD, EMPTY = 6, 3  # the block where hostile questions do their worst; the one where x is NULL
CUTS = (4, 5)
LAYOUTS = ("one file, row units", "one file, id units", "shards, row units", "shards, id units")

_KINDS = {**dict.fromkeys("xyw", "number"), "flag": "boolean", "arm": "text", "bad": "number"}
_SCHEMA = Schema(tuple(Column(*each) for each in _KINDS.items()))


@dataclass(frozen=True)
class Stored:
    """A store; the same in one file; and its blocks as data frames, read another way."""

    store: BlockStore
    whole: BlockStore
    frames: list[pd.DataFrame]


def stored(folder: Path, layout: str) -> Stored:
    """A new store of this layout; its data are the same each time."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(7)
    sizes = np.ones(BLOCKS * UNITS, np.int64)
    if "id units" in layout:
        sizes = generator.integers(1, 4, BLOCKS * UNITS)
    units = np.repeat(np.arange(BLOCKS * UNITS), sizes)
    rows, block = len(units), units // UNITS
    x = generator.normal(size=rows)
    columns = {
        "x": pa.array(x, mask=(generator.random(rows) < 0.1) | (block == EMPTY)),
        "y": pa.array(generator.lognormal(sigma=2, size=rows)),
        "w": pa.array(generator.random(rows)),
        "flag": pa.array(generator.random(rows) < 0.3),
        "arm": pa.array(np.array(["a", "b", "c"])[generator.integers(0, 3, rows)]),
        "bad": pa.array((block == BAD).astype(np.int64)),
    }
    whole = _with_file(write(folder, columns, _SCHEMA, BLOCKS, units=units, group_blocks=2))
    table = pq.read_table(whole.folder / "blocks.parquet").to_pandas()
    frames = [each.reset_index(drop=True) for _, each in table.groupby("__block")]
    store = sharded(whole, folder / "sharded", CUTS) if "shards" in layout else whole
    return Stored(store, whole, frames)


def _with_file(store: BlockStore) -> BlockStore:
    content = (store.folder / "blocks.parquet").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    file = StoredFile("blocks.parquet", digest, len(content))
    return BlockStore(store.folder, replace(store.manifest, files=(file,)))
