"""Writing a holdout's data: read once more, in random order, and cut into blocks as they come."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.randomness import Entropy
from holdfast.store.blocks import (
    BLOCKS_FILE,
    OPEN_FILE,
    Contents,
    StoredFile,
    finished,
    private,
    sync_folder,
)
from holdfast.store.duckdb import Progress, Session, no_progress
from holdfast.store.inputs import MARK, Input, Survey, added_marks, row_mark
from holdfast.store.table import BLOCK, ID, ROW, UNIT, Field, Schema, quoted

__all__ = [
    "RowGroups",
    "UnitRun",
    "UnitSplit",
    "check_unchanged",
    "contents_of",
    "drawn_secret",
    "group_rows",
    "place_key",
    "row_schema",
    "split_units",
    "write_store",
]


# The random order of the units, made by an external sort, and streamed. A unit's place is decided
# by a hash of its number, or id, under a secret of 128 bits that is drawn for this holdout and
# never stored: whoever does not know it sees a random order. Rows of one unit come one after the
# other, in their order in the input. Ties of the hash are split by id and row.

_SORTED = 0.5  # DuckDB counts the sort as half of the query, handing out the rows as the other


def _shuffled(
    data: Input, session: Session, entropy: Entropy, batch_rows: int, progress: Progress
) -> Iterator[Any]:
    """Batches of Arrow: the stored columns, the number and the hash of the row, and its unit's id.

    The last only with units.
    """
    relation = session.connection.sql(_query(data, data.attach(session), drawn_secret(entropy)))

    def sort() -> tuple[Iterator[Any], list[Any]]:
        """The batches, the first of them apart: when it is there the sort is done."""
        # A relation streams its result; what `execute` returns would be kept in memory first.
        batches = iter(relation.to_arrow_reader(batch_rows))
        return batches, list(itertools.islice(batches, 1))

    batches, first = session.watched(sort, "shuffling", progress, _SORTED)
    return itertools.chain(first, batches)


def drawn_secret(entropy: Entropy) -> str:
    """128 bits, as they are written before the number or the id of a unit."""
    high, low = (int(word) for word in entropy.words(2))
    return f"{high:016x}{low:016x}"


def place_key(secret: str, by_id: bool) -> str:
    """SQL of what units are ordered by: 128 bits that nobody foretells without the secret."""
    named = ID if by_id else f"CAST({ROW} AS VARCHAR)"
    return f"md5_number('{secret}:' || {named})"


def _query(data: Input, table: str, secret: str) -> str:
    everything = [each for each in (*data.fields, data.unit, data.ids) if each]
    # Of what is read now, not when it was surveyed; before names get another meaning.
    stored = [f"{row_mark(everything)} AS {MARK}"]
    stored += [f"{each.stored} AS {quoted(each.name)}" for each in data.fields]
    names = [MARK, *(quoted(each.name) for each in data.fields)]
    # Numbered before anything else: in the order in which the input has its rows.
    row = f"row_number() OVER () - 1 AS {ROW}"
    key = place_key(secret, data.unit is not None)
    if data.unit is None:
        inner = f"SELECT {', '.join([*stored, row])} FROM {table}"
        return f"SELECT {', '.join([*names, ROW])} FROM ({inner}) ORDER BY {key}, {ROW}"
    inner = f"SELECT {', '.join([*stored, row, f'{data.unit.identity} AS {ID}'])} FROM {table}"
    return f"SELECT {', '.join([*names, ROW, ID])} FROM ({inner}) ORDER BY {key}, {ID}, {ROW}"


# Cutting the random order of units into the open part, the blocks and the leftover.

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
class UnitRun:
    """A run of units in the random order, start … stop − 1."""

    start: int
    stop: int

    def of(self, batch: Any, units: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
        """The rows of a batch that belong to it, and their units, counted from its start."""
        first, last = np.searchsorted(units, [self.start, self.stop])
        return batch.slice(first, last - first), units[first:last] - self.start


def _numbered(batches: Iterable[Any]) -> Iterator[tuple[Any, NDArray[np.int64]]]:
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


_BATCHES_A_GROUP = 4


@dataclass(frozen=True)
class UnitSplit:
    """How the units are divided: t units for each block, the open part, and what is left over."""

    blocks: int
    block_units: int
    open_units: int
    leftover_units: int


def split_units(
    units: int, blocks: int, open_fraction: float = 0.0, block_units: int | None = None
) -> UnitSplit:
    """The largest blocks that the units outside of the open part allow, or of so many units.

    >>> split_units(1_000, 7, open_fraction=0.1)
    UnitSplit(blocks=7, block_units=128, open_units=100, leftover_units=4)
    """
    blocks = whole_number("blocks", blocks, 1, 2**31 - 1)
    share = real_number("open_fraction", open_fraction, 0, 1, open_high=True)
    # The fraction as it is written: 0.29 of 100 units are 29, not 28.
    opened = int(Fraction(repr(share)) * units)
    least = 1 if block_units is None else whole_number("block_units", block_units, 1, 10**15)
    t = (units - opened) // blocks
    if t < least:
        needed = f"at least {blocks * least:,} units, {least:,} for each block"
        given = f"{units - opened:,} of {units:,} units are left outside of the open part"
        remedy = "Plan for fewer questions or a smaller tail, or bring more data."
        raise Infeasible("Cutting the data into blocks", needed, given, remedy)
    t = t if block_units is None else least
    return UnitSplit(blocks, t, opened, units - opened - blocks * t)


def write_store(
    folder: Path,
    data: Input,
    *,
    blocks: int,
    open_fraction: float = 0.0,
    block_units: int | None = None,
    entropy: Entropy,
    progress: Progress | None = None,
) -> Contents:
    """Write `blocks.parquet`, and `open.parquet` if there is an open part, into a folder.

    The units are in random order, drawn from `entropy`: the open part is the first of them, the
    blocks follow, and what does not fill a block is counted and written nowhere. Memory is that of
    DuckDB's limit and of one row group, whatever the size of the data. After an error the folder
    is as it was before.
    """
    tell = progress or no_progress
    found = data.survey(tell)
    split = split_units(found.units, blocks, open_fraction, block_units)
    for name in (BLOCKS_FILE, OPEN_FILE):
        if (folder / name).exists():
            hint = "A holdout is written once. Choose another folder."
            raise InvalidInput("folder", str(folder), f"a folder without {name}", hint)
    made: list[Path] = []
    try:
        rows = _write(folder, data, split, entropy, found, tell, made)
        files = tuple(finished(file) for file in made)
        sync_folder(folder)
    except BaseException:
        for file in made:
            file.unlink(missing_ok=True)
        raise
    return contents_of(found, split, *rows, data.schema, data.unit, files)


def contents_of(
    found: Survey,
    split: UnitSplit,
    sealed: int,
    opened: int,
    schema: Schema,
    unit: Field | None,
    files: tuple[StoredFile, ...],
) -> Contents:
    """What was written: so many rows sealed and open, in these files."""
    return Contents(
        rows=found.rows,
        units=found.units,
        blocks=split.blocks,
        block_units=split.block_units,
        block_rows=sealed,
        unit_column=unit.name if unit else None,
        open_units=split.open_units,
        open_rows=opened,
        leftover_units=split.leftover_units,
        leftover_rows=found.rows - sealed - opened,
        schema=schema,
        files=files,
    )


def check_unchanged(found: Survey, rows: int, units: int, marks: int) -> None:
    """Refuse data that have other rows or units when they are read for the second time.

    `marks` is the sum over the rows, as in the survey, or of such sums.
    """
    if (rows, units, marks % 2**64) != (found.rows, found.units, found.marks):
        given = f"it now has {rows:,} rows and {units:,} units, and had {found.rows:,} rows"
        if rows == found.rows:
            given = f"its {rows:,} rows have other values than before"
        remedy = "Create the holdout when nobody writes to the data."
        raise Infeasible("Reading the data twice", "data that do not change", given, remedy)


def _write(
    folder: Path,
    data: Input,
    split: UnitSplit,
    entropy: Entropy,
    found: Survey,
    progress: Progress,
    made: list[Path],
) -> tuple[int, int]:
    """How many rows went into the blocks, and into the open part."""
    rows_a_group = group_rows(data.fields)
    parts = {OPEN_FILE: UnitRun(0, split.open_units)} if split.open_units else {}
    sealed = split.open_units + split.blocks * split.block_units
    parts[BLOCKS_FILE] = UnitRun(split.open_units, sealed)
    with ExitStack() as stack:
        session = stack.enter_context(Session(data.limits, folder))
        batches = _shuffled(data, session, entropy, rows_a_group // _BATCHES_A_GROUP, progress)
        writers = {}
        for name in parts:
            made.append(private(folder / name))
            writer = RowGroups(made[-1], row_schema(data.fields), split.block_units, rows_a_group)
            writers[name] = stack.enter_context(writer)
        seen = last = marks = 0
        for batch, units in session.reading(_numbered(batches)):
            for name, part in parts.items():
                writers[name].add(*part.of(batch, units))
            seen, last = seen + batch.num_rows, int(units[-1]) + 1
            marks += added_marks(batch.column(MARK).to_numpy())
            progress("writing", min(1.0, seen / found.rows))
    check_unchanged(found, seen, last, marks)
    return writers[BLOCKS_FILE].rows, writers[OPEN_FILE].rows if OPEN_FILE in writers else 0
