"""The random order of units, as workers make it: rows get their places, and parts are sorted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdfast.engines.dask.creation.depot import STAGING
from holdfast.engines.dask.creation.pieces import NUMBER, Piece
from holdfast.engines.dask.creation.presence import at_work, check_wanted
from holdfast.engines.dask.creation.tasks import Job, attempt, scratch
from holdfast.engines.dask.questions import check_versions
from holdfast.engines.store.columns import ID, ROW, UNIT
from holdfast.engines.store.cut import row_schema
from holdfast.engines.store.inputs import Chosen
from holdfast.engines.store.session import Session, no_progress
from holdfast.engines.store.shuffle import place_key
from holdfast.engines.store.survey import MARK, added_marks, row_mark
from holdfast.errors import HoldfastError

__all__ = ["HIGH", "Placing", "Secret", "Staged", "empty_frame", "placed", "stage", "staged_name"]

HIGH, LOW = "__high", "__low"  # the halves of a unit's place
_LOW_BITS = 2**64 - 1
_SIGN = np.uint64(2**63)
_STAGED_GROUP = 2**16  # rows


class Secret:
    """What the places of units depend on; it is in no log and no message."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "<Secret>"


class Staged(NamedTuple):
    """A part of the random order, sorted and stored: so many units, rows and bytes.

    `marks` is the sum of its rows' marks, as in a `Survey`.
    """

    units: int
    rows: int
    bytes: int
    marks: int


@dataclass(frozen=True)
class Placing:
    """What a piece needs to be placed in the random order."""

    job: Job
    chosen: Chosen
    secret: Secret


def placed(piece: Piece, placing: Placing) -> Any:
    """The rows of a piece as they are stored, each with its number and the place of its unit."""
    from distributed import get_worker

    try:
        check_versions(placing.job.versions)
        with at_work(placing.job.creation):
            found = _placed(piece, placing)
        get_worker().log_event(placing.job.creation, "read")
        return found
    except HoldfastError as error:
        raise RuntimeError(str(error)) from None  # others cannot be pickled


def _placed(piece: Piece, placing: Placing) -> Any:
    chosen = placing.chosen
    unit = chosen.unit
    with Session(placing.job.limits, scratch()) as session:
        everything = [each for each in (*chosen.stored, chosen.unit, chosen.ids) if each]
        # Of what is read here, not when it was surveyed: a file may have been replaced since.
        stored = [f"{row_mark(everything)} AS {MARK}"]
        stored += [f"{each.stored} AS {name}" for each, name in _columns(chosen)]
        stored.append(f"{NUMBER} + {piece.first - piece.start} AS {ROW}")
        stored += [f"{unit.identity} AS {ID}"] if unit else []
        inner = f"SELECT {', '.join(stored)} FROM {piece.attach(session)}"
        # The key is a column of a subquery: written twice, it would be computed twice.
        keyed = f"SELECT *, {place_key(placing.secret.text, bool(unit))} AS __key FROM ({inner})"
        halves = (
            f"CAST(__key >> 64 AS UBIGINT) AS {HIGH}, CAST(__key & {_LOW_BITS} AS UBIGINT) AS {LOW}"
        )
        sql = f"SELECT * EXCLUDE (__key), {halves} FROM ({keyed})"
        found = session.watched(
            lambda: session.connection.sql(sql).to_arrow_table(), "reading", no_progress
        )
    return _frame(found, chosen)


def _columns(chosen: Chosen) -> Iterator[tuple[Any, str]]:
    """The stored columns under names that mean nothing to Dask."""
    return ((each, f"c{number}") for number, each in enumerate(chosen.stored))


def _types(chosen: Chosen) -> Any:
    """The columns on their way, without the halves of the place."""
    import pyarrow as pa

    names = [ROW, *(name for _, name in _columns(chosen))]
    fields = [pa.field(*each) for each in zip(names, row_schema(chosen.stored).types, strict=True)]
    return pa.schema([*fields, *([pa.field(ID, pa.string())] if chosen.unit else [])])


def _frame(table: Any, chosen: Chosen) -> Any:
    import pandas as pd
    import pyarrow as pa

    def dtype(arrow_type: Any) -> Any:
        if pa.types.is_string(arrow_type):
            return pd.StringDtype("pyarrow")
        # A missing number is NaN, which Arrow takes for missing again: none other is stored.
        return None if pa.types.is_float64(arrow_type) else pd.ArrowDtype(arrow_type)

    schema = _types(chosen)
    columns = [table.column(each.name).cast(each.type) for each in schema]
    frame = pa.Table.from_arrays(columns, schema=schema).to_pandas(types_mapper=dtype)
    frame[ROW] = table.column(ROW).to_numpy().astype(np.int64)
    for half in (HIGH, LOW):  # signed, as Dask sorts them, in the same order
        frame[half] = (table.column(half).to_numpy() ^ _SIGN).view(np.int64)
    frame[MARK] = table.column(MARK).to_numpy()
    return frame


def empty_frame(chosen: Chosen) -> Any:
    """What `placed` makes of no rows."""
    import pyarrow as pa

    halves = [pa.field(half, pa.uint64()) for half in (HIGH, LOW)]
    fields = [*_types(chosen), *halves, pa.field(MARK, pa.float64())]
    return _frame(pa.schema(fields).empty_table(), chosen)


def stage(frame: Any, number: int, placing: Placing) -> Any:
    """Sort one part of the random order, number its units, and store it without their places."""
    return attempt(_stage, placing.job, frame, number, placing.chosen)


def _stage(job: Job, frame: Any, number: int, chosen: Chosen) -> Staged:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not len(frame):
        return Staged(0, 0, 0, 0)
    by_id = [ID] if chosen.unit else []
    marks = added_marks(frame[MARK].to_numpy())
    table = pa.Table.from_pandas(frame, preserve_index=True).replace_schema_metadata(None)
    table = table.sort_by([(name, "ascending") for name in (HIGH, LOW, *by_id, ROW)])
    schema = _types(chosen)
    units = _numbered(table, (HIGH, LOW, *by_id) if by_id else (ROW,))
    kept = [each for each in schema if each.name != ID]
    columns = [table.column(each.name).cast(each.type) for each in kept]
    fields = [pa.field(UNIT, pa.int64()), *kept]
    table = pa.Table.from_arrays([pa.array(units), *columns], schema=pa.schema(fields))
    check_wanted(job.creation)
    with job.depot.writing(staged_name(number), scratch()) as draft:
        pq.write_table(table, draft, row_group_size=_STAGED_GROUP, compression="lz4")
        size = draft.stat().st_size
        check_wanted(job.creation)
    return Staged(int(units[-1]) + 1, table.num_rows, size, marks)


def _numbered(table: Any, names: tuple[str, ...]) -> Any:
    """The number of each row's unit: a new one wherever one of these columns changes."""
    import pyarrow.compute as pc

    new = np.zeros(table.num_rows, np.bool_)
    for name in names:
        column = table.column(name)
        changed = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        new[1:] |= changed.to_numpy()
    return np.cumsum(new, dtype=np.int64)


def staged_name(number: int) -> str:
    """The file of a part of the random order."""
    return f"{STAGING}/{number:05d}.parquet"
