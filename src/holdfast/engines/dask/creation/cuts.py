"""Cutting the random order: shards of whole blocks, about as large as its staged parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from holdfast.engines.dask.creation.depot import SHARDS
from holdfast.engines.dask.creation.placing import staged_name
from holdfast.engines.dask.creation.presence import check_wanted
from holdfast.engines.dask.creation.tasks import Job, scratch
from holdfast.engines.store.cut import Part, RowGroups, group_rows, row_schema
from holdfast.engines.store.files import finished
from holdfast.engines.store.inputs import Chosen
from holdfast.engines.store.manifest import StoredFile
from holdfast.engines.store.write import Split

__all__ = ["Cut", "cut", "open_cut", "shard_bounds", "shard_cuts"]

_BATCH = 2**15  # rows


@dataclass(frozen=True)
class Cut:
    """A file to be cut from the random order: the units start, …, stop − 1.

    `first` is the number that its first unit gets; `sources` are numbers of staged parts, with the
    rank of the first unit of each.
    """

    name: str
    start: int
    stop: int
    first: int
    block_units: int
    sources: tuple[tuple[int, int], ...]


def shard_bounds(split: Split, parts: Sequence[int]) -> list[tuple[int, int]]:
    """The first block of each shard, and the block after its last.

    `parts` are the units of each staged part. A shard ends where a block does, next to the end of
    a part, so that it is made of one part and the edges of its neighbours.

    >>> split = Split(blocks=7, block_units=10, open_units=20, leftover_units=4)
    >>> shard_bounds(split, [30, 34, 30])
    [(0, 1), (1, 4), (4, 7)]
    """
    size = split.block_units
    ends = [end - split.open_units for end in accumulate(parts)]
    near = [(2 * end + size) // (2 * size) for end in ends]
    cuts = sorted({0, split.blocks, *(each for each in near if 0 < each < split.blocks)})
    return list(pairwise(cuts))


def shard_cuts(split: Split, parts: Sequence[int]) -> list[Cut]:
    """What to write into the shards."""
    size, begin = split.block_units, split.open_units
    return [
        _cut(
            f"{SHARDS}/{number:05d}.parquet",
            begin + first * size,
            begin + stop * size,
            first * size,
            split,
            parts,
        )
        for number, (first, stop) in enumerate(shard_bounds(split, parts))
    ]


def open_cut(name: str, split: Split, parts: Sequence[int]) -> Cut:
    """What to write into the open part."""
    return _cut(name, 0, split.open_units, 0, split, parts)


def _cut(name: str, start: int, stop: int, first: int, split: Split, parts: Sequence[int]) -> Cut:
    ranks = [0, *accumulate(parts)]
    sources = tuple(
        (number, low)
        for number, (low, high) in enumerate(pairwise(ranks))
        if max(low, start) < min(high, stop)  # an empty part has no file
    )
    return Cut(name, start, stop, first, split.block_units, sources)


def cut(job: Job, wanted: Cut, chosen: Chosen) -> tuple[StoredFile, int]:
    """Write the open part, or a shard: whole blocks, in row groups of whole blocks."""
    part, schema = Part(wanted.start, wanted.stop), row_schema(chosen.stored)
    with job.depot.writing(wanted.name, scratch()) as draft:
        groups = RowGroups(draft, schema, wanted.block_units, group_rows(chosen.stored))
        with groups:
            for number, rank in wanted.sources:
                for batch in _batches(job, number, wanted.start - rank, wanted.stop - rank):
                    check_wanted(job.creation)
                    units = batch.column(0).to_numpy() + rank
                    rows, own = part.of(batch.select(batch.schema.names[1:]), units)
                    groups.add(rows.rename_columns(schema.names), own + wanted.first)
        stored = finished(draft, wanted.name)
        check_wanted(job.creation)
    return stored, groups.rows


def _batches(job: Job, number: int, start: int, stop: int) -> Iterator[Any]:
    """The rows of a staged part, of the row groups with some of the units start, …, stop − 1."""
    import pyarrow.parquet as pq

    with job.depot.reading(staged_name(number)) as stream, pq.ParquetFile(stream) as file:
        meta = file.metadata
        bounds = [meta.row_group(i).column(0).statistics for i in range(meta.num_row_groups)]
        groups = [i for i, each in enumerate(bounds) if each.min < stop and start <= each.max]
        if groups:
            yield from file.iter_batches(_BATCH, row_groups=groups)
