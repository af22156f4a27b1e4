"""Inputs: any table, in memory or in files, as rows of checked columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from holdfast.closing import Closing
from holdfast.engines.store.columns import Column, Schema, check_names
from holdfast.engines.store.csv_files import open_csv
from holdfast.engines.store.frames import open_frame
from holdfast.engines.store.parquet_files import open_parquet
from holdfast.engines.store.paths import data_files, is_paths
from holdfast.engines.store.session import Limits, Progress, Session, no_progress
from holdfast.engines.store.survey import Survey, survey
from holdfast.engines.store.values import Field, kind_of
from holdfast.errors import InvalidInput

__all__ = ["Chosen", "Input", "check_columns", "choose", "open_input", "wanted_names"]


class _Table(Protocol):
    def attach(self, session: Session) -> str: ...


class _Origin(Protocol):
    @property
    def names(self) -> list[object]: ...

    def chosen(self, names: Sequence[str], unit: str | None) -> _Table: ...


class Input(Closing):
    """Rows that can be read again and again; made by `open_input`, closed by `with`."""

    def __init__(
        self,
        table: _Table,
        fields: Sequence[Field],
        unit: Field | None,
        limits: Limits,
        session: Session,
        ids: Field | None = None,
    ) -> None:
        self.fields = tuple(fields)
        self.unit = unit
        self.ids = ids
        self.limits = limits
        self._table: _Table | None = table
        self._session = session
        self._survey: Survey | None = None

    @property
    def schema(self) -> Schema:
        """The columns that will be stored: all but the ids of units and of rows."""
        return Schema(tuple(Column(each.name, str(each.kind)) for each in self.fields))

    def attach(self, session: Session) -> str:
        """The rows as SQL names them after FROM, in a session."""
        if self._table is None:
            raise InvalidInput("input", "a closed one", "open", "Open the data again.")
        return self._table.attach(session)

    def survey(self, progress: Progress | None = None) -> Survey:
        """Counts and fingerprint, by reading everything; the second time they are known."""
        if self._survey is None:
            session, tell = self._session, progress or no_progress
            table = self.attach(session)
            fields = (*self.fields, *(() if self.ids is None else (self.ids,)))
            self._survey = survey(session, table, fields, self.unit, tell)
            session.close()  # what follows has a session of its own, in the holdout's folder
        return self._survey

    def count(self) -> tuple[int, int]:
        """How many rows and how many units there are."""
        found = self.survey()
        return found.rows, found.units

    def fingerprint(self) -> str:
        """The same for the same rows, in whatever order, type width or file format."""
        return self.survey().fingerprint

    def close(self) -> None:
        """Let go of the data."""
        self._table = None
        self._session.close()


def open_input(
    data: Any,
    *,
    unit: str | None = None,
    ids: str | None = None,
    columns: Sequence[str] | None = None,
    weight: object = None,
    missing: Sequence[str] = ("",),
    memory_limit: str | None = None,
    threads: int | None = None,
    scratch: Path | None = None,
    progress: Progress | None = None,
) -> Input:
    """Open a table: types and names are checked at once, values when they are first read.

    `data` is a pandas or Polars DataFrame, an Arrow table, a dictionary of arrays, a NumPy array
    (with fields, or with names in `columns`), or paths and patterns of CSV or Parquet files.
    `unit` is the column whose equal values make one unit of several rows, `ids` one that names
    every row; neither is stored. `columns` keeps these columns only. `missing` are the fields of
    a CSV file that mean that there is no value.
    `scratch` is a folder for what does not fit into `memory_limit`.

    >>> import numpy as np
    >>> with open_input({"id": np.array([1, 1, 2]), "x": np.array([0.5, 1, 2])}, unit="id") as rows:
    ...     rows.schema.names, rows.count()
    (('x',), (3, 2))
    """
    if weight is not None:
        hint = "Every unit counts the same; a question may weigh: sum(w * x) / sum(w)."
        raise InvalidInput("weight", weight, "left out", hint)
    limits = Limits(memory_limit, threads)
    check_columns(columns)
    session = Session(limits, scratch)
    try:
        origin = _origin(data, columns, missing, session, progress or no_progress)
        names = wanted_names(origin.names, columns, unit, ids, data)
        table = origin.chosen(names, unit)
        chosen = choose(names, session.described(table.attach(session)), unit, ids)
    except BaseException:
        session.close()
        raise
    return Input(table, chosen.stored, chosen.unit, limits, session, chosen.ids)


def check_columns(columns: Sequence[str] | None) -> None:
    """Refuse a name where names are meant: its letters would be them."""
    if isinstance(columns, str):
        raise InvalidInput("columns", columns, "a list of names", f"Write [{columns!r}].")


class Chosen(NamedTuple):
    """The columns of an input: those that are stored, and those that name units and rows."""

    stored: tuple[Field, ...]
    unit: Field | None
    ids: Field | None


def choose(
    names: Sequence[str], found: Mapping[str, str], unit: str | None, ids: str | None
) -> Chosen:
    """What becomes of the columns of these names, which DuckDB has found to be of these types."""
    fields = [Field(n, found[n], kind_of(n, found[n], unit=n == unit)) for n in names]
    stored = tuple(each for each in fields if each.name not in (unit, ids))
    if not stored:
        hint = "Ids are not stored."
        raise InvalidInput("data", list(names), "at least one column besides the id", hint)
    units, rows = (next((each for each in fields if each.name == n), None) for n in (unit, ids))
    return Chosen(stored, units, rows)


def _origin(
    data: Any,
    columns: Sequence[str] | None,
    missing: Sequence[str],
    session: Session,
    progress: Progress,
) -> _Origin:
    if not is_paths(data):
        return open_frame(data, columns)
    form, files = data_files(data)
    if form == "parquet":
        return open_parquet(files)
    return open_csv(files, session, missing, progress)


def wanted_names(
    names: Sequence[object],
    columns: Sequence[str] | None,
    unit: str | None,
    ids: str | None,
    data: Any,
) -> tuple[str, ...]:
    """The names to keep, in the order of the data; those asked for must exist."""
    asked = [*(columns or []), *(name for name in (unit, ids) if name is not None)]
    for name in asked:
        if name not in names:
            what = {unit: "unit", ids: "ids"}.get(name, "columns")
            index = getattr(getattr(data, "index", None), "names", [])
            hint = "It is in the index: call reset_index() first." if name in index else ""
            shown = ", ".join(str(each) for each in names[:12])
            raise InvalidInput(what, name, f"among the columns ({shown})", hint)
    return check_names(names if columns is None else [name for name in names if name in asked])
