"""Writing a holdout's data: read once more, in random order, and cut into blocks as they come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from holdfast.engines.store.columns import Schema
from holdfast.engines.store.cut import Part, RowGroups, group_rows, numbered, row_schema
from holdfast.engines.store.files import finished, private, sync_folder
from holdfast.engines.store.inputs import Input
from holdfast.engines.store.manifest import BLOCKS_FILE, OPEN_FILE, Contents, StoredFile
from holdfast.engines.store.session import Progress, Session, no_progress
from holdfast.engines.store.shuffle import shuffled
from holdfast.engines.store.survey import MARK, Survey, added_marks
from holdfast.engines.store.values import Field
from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.randomness import Entropy

__all__ = ["Split", "check_unchanged", "contents_of", "split_units", "write_store"]

_BATCHES_A_GROUP = 4


@dataclass(frozen=True)
class Split:
    """How the units are divided: t units for each block, the open part, and what is left over."""

    blocks: int
    block_units: int
    open_units: int
    leftover_units: int


def split_units(
    units: int, blocks: int, open_fraction: float = 0.0, block_units: int | None = None
) -> Split:
    """The largest blocks that the units outside of the open part allow, or of so many units.

    >>> split_units(1_000, 7, open_fraction=0.1)
    Split(blocks=7, block_units=128, open_units=100, leftover_units=4)
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
    return Split(blocks, t, opened, units - opened - blocks * t)


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
    with _all_or_nothing() as made:
        rows = _write(folder, data, split, entropy, found, tell, made)
        files = tuple(finished(file) for file in made)
        sync_folder(folder)
    return contents_of(found, split, *rows, data.schema, data.unit, files)


def contents_of(
    found: Survey,
    split: Split,
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


@contextmanager
def _all_or_nothing() -> Iterator[list[Path]]:
    """A list for the files that are made: they are removed if not all goes well."""
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for file in made:
            file.unlink(missing_ok=True)
        raise


def _write(
    folder: Path,
    data: Input,
    split: Split,
    entropy: Entropy,
    found: Survey,
    progress: Progress,
    made: list[Path],
) -> tuple[int, int]:
    """How many rows went into the blocks, and into the open part."""
    rows_a_group = group_rows(data.fields)
    parts = {OPEN_FILE: Part(0, split.open_units)} if split.open_units else {}
    sealed = split.open_units + split.blocks * split.block_units
    parts[BLOCKS_FILE] = Part(split.open_units, sealed)
    with ExitStack() as stack:
        session = stack.enter_context(Session(data.limits, folder))
        batches = shuffled(data, session, entropy, rows_a_group // _BATCHES_A_GROUP, progress)
        writers = {}
        for name in parts:
            made.append(private(folder / name))
            writer = RowGroups(made[-1], row_schema(data.fields), split.block_units, rows_a_group)
            writers[name] = stack.enter_context(writer)
        seen = last = marks = 0
        for batch, units in session.reading(numbered(batches)):
            for name, part in parts.items():
                writers[name].add(*part.of(batch, units))
            seen, last = seen + batch.num_rows, int(units[-1]) + 1
            marks += added_marks(batch.column(MARK).to_numpy())
            progress("writing", min(1.0, seen / found.rows))
    check_unchanged(found, seen, last, marks)
    return writers[BLOCKS_FILE].rows, writers[OPEN_FILE].rows if OPEN_FILE in writers else 0
