"""Sharded copies of stores: the same blocks, in several files."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.store.blocks import BlockStore, Shard, StoredFile

__all__ = ["shard_files", "sharded"]


def sharded(
    store: BlockStore, folder: Path, cuts: Sequence[int], group_blocks: int = 3
) -> BlockStore:
    """The store's blocks in shards/NNNNN.parquet, cut before the blocks `cuts`, in a new folder."""
    (folder / "shards").mkdir(parents=True)
    shards, files = shard_files(store, folder, cuts, group_blocks)
    kept = tuple(file for file in store.manifest.files if file.name != "blocks.parquet")
    for file in kept:
        (folder / file.name).write_bytes((store.folder / file.name).read_bytes())
    manifest = replace(store.manifest, shards=shards, files=(*kept, *files))
    return BlockStore(folder, manifest)


def shard_files(
    store: BlockStore, folder: Path, cuts: Sequence[int], group_blocks: int = 3
) -> tuple[tuple[Shard, ...], tuple[StoredFile, ...]]:
    """Write the shards; a row group has at most `group_blocks` whole blocks."""
    table = pq.read_table(store.folder / "blocks.parquet")
    shards, files = [], []
    for number, (first, stop) in enumerate(itertools.pairwise([0, *cuts, store.blocks])):
        name = f"shards/{number:05}.parquet"
        rows = 0
        with pq.ParquetWriter(folder / name, table.schema) as writer:
            for low in range(first, stop, group_blocks):
                high = min(stop, low + group_blocks)
                block = table.column("__block")
                some = table.filter(pc.and_(pc.greater_equal(block, low), pc.less(block, high)))
                writer.write_table(some, row_group_size=max(1, some.num_rows))
                rows += some.num_rows
        shards.append(Shard(name, first, stop, rows))
        content = (folder / name).read_bytes()
        files.append(StoredFile(name, hashlib.sha256(content).hexdigest(), len(content)))
    return tuple(shards), tuple(files)
