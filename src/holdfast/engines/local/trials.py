"""Public blocks on which a function is tried: of the open part, or made up from the schema.

Made-up blocks show no data, and try what data can do: numbers around 0 and far from it, heavy
tails, few different values, one value only, NULLs; texts, dates and truth values likewise. Where a
range or all values of a column were declared, they keep to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.jobs import Job

__all__ = ["TrialBlocks", "drawn_blocks", "trial_blocks"]

Examples = Mapping[str, Sequence[object]]

_TEXTS = ("a", "b", "c", "d", "e")
_BLOCKS = 8
_FEWEST_OPEN = 3  # blocks; with fewer, nothing could be compared
_TERM_UNITS = 128  # in a block, at least, for terms: they see the rows of many blocks at once
_OPEN_UNITS = 32  # so that a function that fails on some open rows is not taken for one on most
_MOST_CELLS = 2_000_000
_SEED = 20_181  # any number: the blocks are the same for everybody
_EPOCH_DAYS = 18_000
_PLACE = ("__block", "__unit")


@dataclass(frozen=True)
class TrialBlocks:
    """Rows of a few whole blocks, and where each begins."""

    table: Any
    rows: tuple[int, ...]
    units: int
    is_open: bool

    @property
    def blocks(self) -> int:
        """How many there are."""
        return len(self.rows) - 1

    def ordered(self, order: Sequence[int]) -> TrialBlocks:
        """The same blocks, some of them, in another order."""
        import pyarrow as pa

        pieces = [self.table.slice(self.rows[k], self.rows[k + 1] - self.rows[k]) for k in order]
        sizes = [piece.num_rows for piece in pieces]
        rows = (0, *(int(each) for each in np.cumsum(sizes)))
        return TrialBlocks(pa.concat_tables(pieces), rows, self.units, self.is_open)

    def parts(self) -> list[NDArray[np.int64]]:
        """The numbers of each block's rows."""
        return [np.arange(a, b) for a, b in itertools.pairwise(self.rows)]

    def regrouped(self, parts: Sequence[NDArray[np.int64]], units: int) -> TrialBlocks:
        """Blocks made of rows by their numbers, each of which may come in several blocks."""
        rows = (0, *(int(each) for each in np.cumsum([len(part) for part in parts])))
        return TrialBlocks(self.table.take(np.concatenate(parts)), rows, units, self.is_open)

    def written(self) -> bytes:
        """The table as bytes."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        return bytes(sink.getvalue())


def trial_blocks(
    store: Any, job: Job, open_table: Any = None, examples: Examples | None = None
) -> TrialBlocks:
    """Blocks of the open part if it has enough of them, else made-up ones.

    `open_table` has the hidden columns too; without it the store's own open part is read. For
    terms, blocks that are small are put together. `examples` are values that made-up rows have in
    some columns.
    """
    if open_table is None and store.open_path is not None:
        open_table = _first_rows(store, _columns(job), _open_count(store, job))
    found = None if open_table is None else _open_blocks(store, job, open_table)
    return _made_up(store, job, examples or {}) if found is None else found


def drawn_blocks(store: Any, job: Job) -> TrialBlocks | None:
    """Blocks of units drawn from the open part, with replacement; None if there is none.

    For an open part that fills too few blocks to compare: a function that knows the data's own
    values can be tried on them all the same.
    """
    if store.open_path is None:
        return None
    table = _first_rows(store, _columns(job), _open_count(store, job))
    numbers = np.stack([np.asarray(table.column(name).to_numpy()) for name in _PLACE])
    first = np.flatnonzero(np.any(np.diff(numbers, prepend=-1) != 0, axis=0))
    ends = np.append(first, table.num_rows)
    columns, units = _columns(job), _trial_units(store, job, len(_columns(job)))
    generator = np.random.default_rng(_SEED)
    picked = generator.integers(0, len(first), (_BLOCKS, units))
    parts = [np.concatenate([np.arange(ends[k], ends[k + 1]) for k in each]) for each in picked]
    per_unit = np.diff(ends)[picked.ravel()]
    rows = (0, *(int(each) for each in np.cumsum([len(part) for part in parts])))
    data = {name: table.column(name).take(np.concatenate(parts)) for name in columns}
    data["__unit"] = np.repeat(np.arange(picked.size), per_unit)  # drawn twice, it is two units
    return TrialBlocks(_table(data), rows, units, True)


def _table(data: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(data)


def _together(store: Any, job: Job) -> int:
    """How many of the store's blocks are one here."""
    return max(1, -(-_TERM_UNITS // store.units)) if job.sums else 1


def _first_rows(store: Any, columns: list[str], wanted: int) -> Any:
    """The first blocks of the open part: the rest need not be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches, blocks = [], 0
    with pq.ParquetFile(store.open_path) as file:
        for batch in file.iter_batches(columns=["__block", *columns]):
            batches.append(batch)
            blocks = batch.column("__block")[-1].as_py()
            if blocks > wanted:
                break
    return pa.Table.from_batches(batches)


def _open_count(store: Any, job: Job) -> int:
    """How many of the store's blocks are read of the open part at most."""
    return max(_BLOCKS * _together(store, job), _OPEN_UNITS // int(store.units))


def _open_blocks(store: Any, job: Job, table: Any) -> TrialBlocks | None:
    columns = _columns(job)
    if not {*columns, "__block"} <= set(table.column_names):
        return None
    number = np.asarray(table.column("__block").to_numpy(), np.int64)
    unit = np.asarray(table.column("__unit").to_numpy(), np.int64)
    first = np.flatnonzero(np.diff(number, prepend=-1))
    rows = [*first.tolist(), len(number)]
    complete = [
        k
        for k, (a, b) in enumerate(itertools.pairwise(rows))
        if len(np.unique(unit[a:b])) == store.units
    ][: _open_count(store, job)]
    each = min(_together(store, job), len(complete) // _FEWEST_OPEN)
    if each == 0:
        return None
    most = each * (len(complete) // each)
    everything = TrialBlocks(table.select(columns), tuple(rows), store.units, True)
    found = everything.ordered(complete[:most])
    return replace(found, rows=found.rows[::each], units=each * store.units)


def _columns(job: Job) -> list[str]:
    names: dict[str, None] = {}
    for columns in job.needs.values():
        names.update(dict.fromkeys(columns))
    return list(names | {"__unit": None})


def _trial_units(store: Any, job: Job, columns: int) -> int:
    """How many units a trial's block has: as many as the store's, if they are not too many."""
    wanted = store.units * _together(store, job)
    return int(min(wanted, max(2, _MOST_CELLS // (_BLOCKS * columns))))


def _made_up(store: Any, job: Job, examples: Examples) -> TrialBlocks:
    columns = _columns(job)
    units = _trial_units(store, job, len(columns))
    generator = np.random.default_rng(_SEED)
    per_unit = np.ones(_BLOCKS * units, np.int64)
    if not store.manifest.one_row_units:
        per_unit = generator.integers(1, 4, _BLOCKS * units)
    starts = np.concatenate([[0], np.cumsum(per_unit)])
    rows = starts[::units]
    data: dict[str, Any] = {}
    for name in columns:
        if name == "__unit":
            data[name] = np.repeat(np.arange(_BLOCKS * units), per_unit)
        elif name == "__row":
            data[name] = np.arange(starts[-1]) % store.manifest.rows
        else:
            values = examples.get(name) or store.values.get(name)
            data[name] = _column(
                store.schema.kind(name), rows, generator, values, store.ranges.get(name)
            )
    return TrialBlocks(_table(data), tuple(int(each) for each in rows), units, False)


def _column(
    kind: str,
    rows: NDArray[np.int64],
    generator: np.random.Generator,
    values: Sequence[object] | None,
    ends: tuple[float, float] | None,
) -> Any:
    import pyarrow as pa

    size = int(rows[-1])
    missing = np.zeros(size, np.bool_)
    for block, share in ((2, 0.1), (6, 0.9)):
        span = slice(int(rows[block]), int(rows[block + 1]))
        missing[span] = generator.random(span.stop - span.start) < share
    known = _known(kind, values)
    if known:
        picked = [known[k] for k in generator.integers(0, len(known), size)]
        return pa.array(picked, mask=missing)
    if kind == "number":
        return pa.array(_numbers(rows, generator, ends), mask=missing)
    if kind == "boolean":
        return pa.array(generator.random(size) < 0.5, mask=missing)
    if kind == "text":
        texts = [_TEXTS[k] for k in generator.integers(0, len(_TEXTS), size)]
        return pa.array(texts, pa.string(), mask=missing)
    days = _EPOCH_DAYS + generator.integers(0, 1000, size)
    if kind == "date":
        return pa.array(days.astype("datetime64[D]"), mask=missing)
    moments = days * 86_400_000_000 + generator.integers(0, 86_400_000_000, size)
    return pa.array(moments.astype("datetime64[us]"), mask=missing)


_PLAIN: dict[str, Any] = {"number": float, "boolean": bool, "text": str}


def _known(kind: str, values: Sequence[object] | None) -> list[Any]:
    """Values that a column of this kind can have; none, if they are of another."""
    try:
        return [_PLAIN[kind](each) for each in values or ()]
    except (LookupError, OverflowError, TypeError, ValueError):
        return []


def _numbers(
    rows: NDArray[np.int64], generator: np.random.Generator, ends: tuple[float, float] | None
) -> NDArray[np.float64]:
    """One kind of numbers in every block."""
    values = np.empty(int(rows[-1]))
    for block in range(len(rows) - 1):
        size = int(rows[block + 1] - rows[block])
        kinds: Sequence[NDArray[np.float64]] = (
            generator.normal(size=size),
            generator.normal(1000.0, 10.0, size),
            generator.normal(size=size),
            generator.integers(0, 2, size).astype(np.float64),
            generator.standard_cauchy(size),
            generator.lognormal(2.0, 1.0, size),
            generator.normal(size=size),
            np.full(size, float(generator.integers(1, 9))),
        )
        if ends is not None:
            kinds = [_within(each, k, ends) for k, each in enumerate(kinds)]
        values[rows[block] : rows[block + 1]] = kinds[block % len(kinds)]
    return values


_SPREADS = ((0.5, 0.25), (-24.5, 0.025), (0.5, 0.25), (0, 1), (0.5, 0.1), (0, 0.02), (0.5, 0.25))


def _within(
    values: NDArray[np.float64], kind: int, ends: tuple[float, float]
) -> NDArray[np.float64]:
    """The same kind of numbers between two ends: all over, near the middle, at both ends, …"""
    low, high = ends
    middle, scale = _SPREADS[kind] if kind < len(_SPREADS) else (0.0, 0.1)
    shares = np.clip(middle + scale * values, 0.0, 1.0)
    return np.clip(low + (high - low) * shares, low, high)
