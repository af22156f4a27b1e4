"""Public blocks on which a function is tried: of the open part, or made up from the schema.

Made-up blocks show no data, and try what data can do: numbers around 0 and far from it, heavy
tails, few different values, one value only, NULLs; texts, dates and truth values likewise.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.jobs import Job

__all__ = ["TEXTS", "TrialBlocks", "trial_blocks"]

TEXTS = ("a", "b", "c", "d", "e")

_BLOCKS = 8
_FEWEST_OPEN = 3  # blocks; with fewer, nothing could be compared
_MOST_CELLS = 2_000_000
_SEED = 20_181  # any number: the blocks are the same for everybody
_EPOCH_DAYS = 18_000


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


def trial_blocks(store: Any, job: Job, open_table: Any = None) -> TrialBlocks:
    """Blocks of the open part if it has enough of them, else made-up ones.

    `open_table` has the hidden columns too; without it the store's own open part is read.
    """
    if open_table is None and store.open_path is not None:
        open_table = _first_rows(store, _columns(job))
    found = None if open_table is None else _open_blocks(store, job, open_table)
    return _made_up(store, job) if found is None else found


def _first_rows(store: Any, columns: list[str]) -> Any:
    """The first blocks of the open part: the rest need not be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches, blocks = [], 0
    with pq.ParquetFile(store.open_path) as file:
        for batch in file.iter_batches(columns=["__block", *columns]):
            batches.append(batch)
            blocks = batch.column("__block")[-1].as_py()
            if blocks > _BLOCKS:
                break
    return pa.Table.from_batches(batches)


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
    ][:_BLOCKS]
    if len(complete) < _FEWEST_OPEN:
        return None
    everything = TrialBlocks(table.select(columns), tuple(rows), store.units, True)
    return everything.ordered(complete)


def _columns(job: Job) -> list[str]:
    names: dict[str, None] = {}
    for columns in job.needs.values():
        names.update(dict.fromkeys(columns))
    return list(names | {"__unit": None})


def _made_up(store: Any, job: Job) -> TrialBlocks:
    import pyarrow as pa

    columns = _columns(job)
    units = int(max(2, min(store.units, _MOST_CELLS // (_BLOCKS * len(columns)))))
    units = min(units, store.units)
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
            data[name] = _column(store.schema.kind(name), rows, generator)
    return TrialBlocks(pa.table(data), tuple(int(each) for each in rows), units, False)


def _column(kind: str, rows: NDArray[np.int64], generator: np.random.Generator) -> Any:
    import pyarrow as pa

    size = int(rows[-1])
    missing = np.zeros(size, np.bool_)
    for block, share in ((2, 0.1), (6, 0.9)):
        span = slice(int(rows[block]), int(rows[block + 1]))
        missing[span] = generator.random(span.stop - span.start) < share
    if kind == "number":
        return pa.array(_numbers(rows, generator), mask=missing)
    if kind == "boolean":
        return pa.array(generator.random(size) < 0.5, mask=missing)
    if kind == "text":
        picked = generator.integers(0, len(TEXTS), size)
        return pa.array([TEXTS[k] for k in picked], pa.string(), mask=missing)
    days = _EPOCH_DAYS + generator.integers(0, 1000, size)
    if kind == "date":
        return pa.array(days.astype("datetime64[D]"), mask=missing)
    moments = days * 86_400_000_000 + generator.integers(0, 86_400_000_000, size)
    return pa.array(moments.astype("datetime64[us]"), mask=missing)


def _numbers(rows: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.float64]:
    """One kind of numbers in every block."""
    values = np.empty(int(rows[-1]))
    for block in range(len(rows) - 1):
        size = int(rows[block + 1] - rows[block])
        kinds = (
            generator.normal(size=size),
            generator.normal(1000.0, 10.0, size),
            generator.normal(size=size),
            generator.integers(0, 2, size).astype(np.float64),
            generator.standard_cauchy(size),
            generator.lognormal(2.0, 1.0, size),
            generator.normal(size=size),
            np.full(size, float(generator.integers(1, 9))),
        )
        values[rows[block] : rows[block + 1]] = kinds[block % len(kinds)]
    return values
