"""Inputs: any table, in memory or in files, as rows of checked columns."""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.concurrency import Closing
from holdfast.errors import InvalidInput
from holdfast.store.duckdb import DuckdbLimits, Progress, Session, no_progress
from holdfast.store.table import (
    Column,
    Field,
    Schema,
    check_names,
    check_twins,
    kind_of,
    quoted,
    quoted_text,
    refuse_arrow,
    refused,
)

__all__ = [
    "MARK",
    "Chosen",
    "Input",
    "RowSums",
    "Survey",
    "added_marks",
    "check_agreement",
    "check_columns",
    "check_types",
    "choose",
    "data_files",
    "fingerprint",
    "is_paths",
    "open_input",
    "row_mark",
    "sums_of",
    "wanted_names",
]


# One pass over the whole input before anything is written: counts, limits, fingerprint.
#
# The fingerprint tells whether data were asked before, under another budget. It is a hash of the
# multiset of rows. Each row becomes a text: its values, in the order of the sorted column names, in
# a form that does not depend on how they are stored (`Field.canonical`), a text with its length
# before it. The MD5 numbers of these texts are added, so that the order of the rows does not
# matter; the two halves of 64 bits apart, in 128 bits, so that no sum overflows. Then
#
#     fingerprint = SHA-256 of (format, number of rows, both sums, sorted column names).
#
# Tables that differ in the order of rows or columns, in the width of integers and floats, or in the
# file format agree. A changed value, a row or column more or less, or a new name makes another. It
# is meant to find a mistake, not an adversary: whoever changes one value has another fingerprint.

_FORMAT = 1


def fingerprint(names: Sequence[str], rows: int, low: int, high: int) -> str:
    """The fingerprint of a table with these sums of the lower and upper halves of row hashes.

    >>> fingerprint(["x"], 1, 2, 3)[:16]
    '67cbe800ed18f55d'
    """
    facts = [_FORMAT, rows, low, high, sorted(names)]
    text = json.dumps(facts, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


MARK = "__mark"
_LOW = 2**64 - 1


@dataclass(frozen=True)
class Survey:
    """What is known of an input once all of it was read.

    `marks` is the sum of the rows' marks, modulo 2^64: whoever reads the input again knows by it
    that these are the rows of the fingerprint.
    """

    rows: int
    units: int
    fingerprint: str
    marks: int


def row_mark(fields: Sequence[Field]) -> str:
    """SQL of 52 bits, as a DOUBLE, that change with any value of a row.

    DuckDB's own hash costs little beside the fingerprint's, and means nothing elsewhere. No
    integer: before it sorts, DuckDB makes these narrower by statistics that do not know of NaN.
    """
    return f"CAST({_marked(fields)} AS DOUBLE)"


def _marked(fields: Sequence[Field]) -> str:
    return f"hash({', '.join(quoted(name) for name in sorted(each.name for each in fields))}) >> 12"


def added_marks(marks: NDArray[np.float64]) -> int:
    """Their sum, modulo 2^64, which is what NumPy does."""
    return int(marks.astype(np.uint64).sum(dtype=np.uint64))


@dataclass(frozen=True)
class RowSums:
    """What is added up over rows, hence over the pieces of an input too.

    rows, no_id   how many rows there are, and how many of them have no id of a unit
    low, high     sums of the halves of the rows' hashes
    marks         as in a `Survey`
    lost          for each column that must be kept exactly, how many values cannot be
    """

    rows: int
    no_id: int
    low: int
    high: int
    marks: int
    lost: tuple[int, ...]

    def __add__(self, other: RowSums) -> RowSums:
        lost = tuple(a + b for a, b in zip(self.lost, other.lost, strict=True))
        low, high = self.low + other.low, self.high + other.high
        marks = (self.marks + other.marks) & _LOW
        return RowSums(self.rows + other.rows, self.no_id + other.no_id, low, high, marks, lost)

    def fingerprint(self, fields: Sequence[Field], unit: Field | None) -> str:
        """The fingerprint of these rows; what cannot be kept is refused, by its name."""
        if not self.rows:
            raise InvalidInput("data", "0 rows", "a table with at least one row")
        for each, count in zip(_strict(fields), self.lost, strict=True):
            if count:
                raise each.lost(count)
        if unit and self.no_id:
            hint = "Leave these rows out, or give each an id of its own."
            allowed = "present in every row"
            raise InvalidInput(f"unit id {unit.name!r}", f"{self.no_id:,} missing", allowed, hint)
        names = [each.name for each in (*fields, *([unit] if unit else []))]
        return fingerprint(names, self.rows, self.low, self.high)


def sums_of(
    session: Session, table: str, fields: Sequence[Field], unit: Field | None, progress: Progress
) -> RowSums:
    """Read all rows once."""
    everything = [*fields, *([unit] if unit else [])]
    lost = [f"count({quoted(each.name)}) - count({each.stored})" for each in _strict(fields)]
    missing = f"count(*) - count({unit.identity})" if unit else "0"
    # The hash is a column of a subquery: written twice, it would be computed twice.
    ordered = sorted(everything, key=attrgetter("name"))
    text = f"concat_ws(';', {', '.join(each.canonical for each in ordered)})"
    hashed = f"SELECT *, md5_number({text}) AS __hash FROM {table}"
    sums = f"sum(CAST(__hash & {_LOW} AS UBIGINT)), sum(CAST(__hash >> 64 AS UBIGINT))"
    marks = f"sum({_marked(everything)})"
    select = ", ".join(["count(*)", missing, sums, marks, *lost])
    row = session.row(f"SELECT {select} FROM ({hashed})", "reading", progress)
    rows, no_id, low, high, marked = (int(each or 0) for each in row[:5])
    return RowSums(rows, no_id, low, high, marked & _LOW, tuple(row[5:]))


def _strict(fields: Sequence[Field]) -> list[Field]:
    return [each for each in fields if not each.may_lose]


# Where rows come from: files or memory.

Rows = tuple[str, Any]  # what they are called after FROM; the table of that name, if in memory
_NAME = "__input"


@dataclass(frozen=True)
class _Origin:
    """All columns of an input, by their names, whatever these are."""

    names: list[object]
    sql: str
    columns: list[Any] | None = None  # if they are in memory
    arrow_schema: Any = None  # of Parquet files

    def chosen(self, names: Sequence[str], unit: str | None) -> Rows:
        """The rows with these columns; one that cannot be kept is refused by its name."""
        import pyarrow as pa

        if self.columns is None:
            if self.arrow_schema is not None:  # CSV has no types of its own to refuse
                check_types(names, unit, self.arrow_schema)
            return self.sql, None
        arrays = {}
        for name in names:
            array = _array(name, self.columns[self.names.index(name)])
            refuse_arrow(name, array.type, unit=name == unit)
            arrays[name] = _readable(name, array)
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidInput("data", lengths, "columns of one length")
        return self.sql, pa.table(arrays)


def _attached(rows: Rows, session: Session) -> str:
    """The rows as SQL names them after FROM, in a session."""
    name, table = rows
    if table is not None:
        session.connection.register(name, table)
    return name


# CSV files. The first line names the columns and, by the sign that stands most
# often between the names, the delimiter. The types are found by reading everything, so that they do
# not depend on which rows come first. Dates are read only as 2026-11-30: 01/02/2020 is two dates.

_DELIMITERS = ",;\t|"
_NAMED = "a CSV file whose first line names the columns"


def _open_csv(
    files: Sequence[Path], session: Session, missing: Sequence[str], progress: Progress
) -> _Origin:
    """Read the first lines, then everything to find the types."""
    delimiter, names = _first_line(files[0])
    check_twins(names)  # DuckDB would rename one
    for file in files[1:]:
        if _first_line(file) != (delimiter, names):
            hint = f"Compare {files[0].name} and {file.name}."
            raise InvalidInput("data", file.name, "files with the same first line", hint)
    # An empty name has its place instead.
    labels = [quoted_text(str(name) or f"__{i}") for i, name in enumerate(names)]
    listed = ", ".join(quoted_text(str(file)) for file in files)
    nothing = ", ".join(quoted_text(text) for text in missing)

    def read(options: str) -> str:
        return (
            f"read_csv([{listed}], header = true, delim = {quoted_text(delimiter)}, "
            "quote = '\"', escape = '\"', comment = '', skip = 0, strict_mode = true, "
            f"dateformat = '%Y-%m-%d', nullstr = [{nothing}], hive_partitioning = false, {options})"
        )

    def typed(types: Iterable[str]) -> str:
        pairs = zip(labels, types, strict=True)
        columns = ", ".join(f"{label}: {quoted_text(each)}" for label, each in pairs)
        return read(f"auto_detect = false, columns = {{{columns}}}")

    sniffed = read(f"names = [{', '.join(labels)}], sample_size = -1, files_to_sniff = -1")
    try:
        job = partial(session.described, sniffed)
        types = session.watched(job, "finding types", progress).values()
    except InvalidInput:
        # What makes it impossible is in some line: reading plain text finds which.
        count = f"SELECT count(*) FROM {typed(['VARCHAR'] * len(names))}"
        session.row(count, "finding the error", progress)
        raise
    return _Origin(list(names), typed(types))


def _first_line(file: Path) -> tuple[str, list[str]]:
    import pyarrow as pa

    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
            record = lines.readline()
            while record.count('"') % 2 and (more := lines.readline()):  # a quotation is open
                record += more
    except UnicodeDecodeError:
        hint = "Convert it, for example with iconv -t UTF-8."
        raise InvalidInput("data", str(file), "a CSV file in UTF-8", hint) from None
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput("data", str(file), _NAMED, str(error)) from None
    if not record.strip():
        raise InvalidInput("data", str(file), _NAMED, "Its first line is empty.")
    outside = re.sub(r'"[^"]*"', "", record)
    delimiter = max(_DELIMITERS, key=outside.count)
    names = [name.strip() for name in next(csv.reader([record], delimiter=delimiter))]
    if all(_is_number(name) for name in names):
        hint = "It holds numbers only: add a line with names."
        raise InvalidInput("first line", record.strip(), "the names of the columns", hint)
    return delimiter, names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# Parquet files.


def _open_parquet(files: Sequence[Path]) -> _Origin:
    """Read what the files say of themselves; they must agree."""
    schemas = [_schema(file) for file in files]
    check_agreement([file.name for file in files], schemas)
    names = ", ".join(quoted_text(str(file)) for file in files)
    sql = f"read_parquet([{names}], hive_partitioning = false)"
    return _Origin(list(schemas[0].names), sql, arrow_schema=schemas[0])


def check_agreement(names: Sequence[str], schemas: Sequence[Any]) -> None:
    """Refuse files of which one has other columns, or other types, than the first."""
    check_twins(schemas[0].names)  # DuckDB would rename one
    for name, schema in zip(names[1:], schemas[1:], strict=True):
        _same(names[0], schemas[0], name, schema)


def check_types(names: Sequence[str], unit: str | None, schema: Any) -> None:
    """Refuse, by its name, a column of a type that cannot be kept."""
    for name in names:
        refuse_arrow(name, schema.field(name).type, unit=name == unit)


def _schema(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split(".")[0]
        raise InvalidInput("data", str(file), "a readable Parquet file", f"{reason}.") from None


def _same(first: str, expected: Any, file: str, found: Any) -> None:
    hint = "Rewrite the files so that all have the same columns and types."
    missing = sorted(set(expected.names) ^ set(found.names))
    if missing or len(expected.names) != len(found.names):
        only = [name for name in missing if name in expected.names]
        where = f"only in {first}" if only else f"only in {file}"
        what = f"column {missing[0]!r} {where}" if missing else "a repeated column"
        raise InvalidInput("data", what, "files with the same columns", hint)
    for name in expected.names:
        a, b = _plain(expected.field(name).type), _plain(found.field(name).type)
        if a != b:
            what = f"column {name!r}: {a} in {first}, {b} in {file}"
            raise InvalidInput("data", what, "files with the same types", hint)


def _plain(arrow_type: Any) -> Any:
    """The type of the values, however they are packed."""
    import pyarrow as pa

    packed = pa.types.is_dictionary(arrow_type)
    plain = arrow_type.value_type if packed else arrow_type
    views = (pa.large_string(), pa.string_view())
    return pa.string() if plain in views else plain


# Tables in memory: pandas, Polars, Arrow, NumPy, a dictionary of arrays.

_ALLOWED = (
    "a pandas or Polars DataFrame, an Arrow table, NumPy arrays with names, "
    "or paths of CSV or Parquet files"
)
_PLAIN_OBJECTS = (  # what pandas calls the content of a column of Python objects
    *("string", "boolean", "integer", "floating", "mixed-integer-float", "decimal"),
    *("date", "datetime", "datetime64", "empty"),
)


def _open_frame(data: Any, columns: Sequence[str] | None) -> _Origin:
    """The columns of a table in memory; `columns` names those of an array without names."""
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "iloc") and getattr(data, "ndim", 0) == 2:
        return _Origin(list(data.columns), _NAME, [data.iloc[:, i] for i in range(data.shape[1])])
    if library == "polars" and hasattr(data, "to_arrow") and hasattr(data, "columns"):
        return _open_frame(data.to_arrow(), columns)
    if library == "pyarrow" and hasattr(data, "column_names") and hasattr(data, "num_rows"):
        return _Origin(
            list(data.column_names), _NAME, [data.column(i) for i in range(data.num_columns)]
        )
    if isinstance(data, np.ndarray):
        return _open_array(data, columns)
    if isinstance(data, Mapping):
        return _Origin(list(data), _NAME, [data[name] for name in data])
    hints = {
        "polars": "Call collect() on a LazyFrame; to_frame() on a Series.",
        "pandas": "Call to_frame() on a Series.",
        "pyarrow": "Make a table of it, or name the files.",
    }
    raise InvalidInput("data", f"a {type(data).__name__}", _ALLOWED, hints.get(library, ""))


def _open_array(data: Any, columns: Sequence[str] | None) -> _Origin:
    if data.dtype.names is not None:
        if data.ndim != 1:
            raise InvalidInput("data", data.shape, "one row after the other: one axis")
        return _Origin(list(data.dtype.names), _NAME, [data[name] for name in data.dtype.names])
    table = data[:, None] if data.ndim == 1 else data
    if table.ndim != 2:
        raise InvalidInput("data", data.shape, "an array of rows and columns")
    if columns is None or len(columns) != table.shape[1]:
        given = "none" if columns is None else f"{len(columns)} names"
        allowed = f"{table.shape[1]} names, one for each column of the array"
        raise InvalidInput("columns", given, allowed, 'For example columns=["x", "y"].')
    return _Origin(list(columns), _NAME, [table[:, i] for i in range(table.shape[1])])


def _array(name: str, values: Any) -> Any:
    """A column as an Arrow array; None, NaN and masked values are missing."""
    import pyarrow as pa

    if type(values).__module__.partition(".")[0] == "polars":
        values = values.to_arrow()
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if not hasattr(values, "dtype"):
        # Else numpy would make texts of a list's missing values, or one type of several.
        some = isinstance(values, Sequence) and not all(type(each) is float for each in values)
        values = np.asarray(values, object if some else None)
    if getattr(values, "ndim", 1) != 1:
        raise InvalidInput(f"column {name!r}", values.shape, "one value for each row: one axis")
    if getattr(values.dtype, "kind", "") == "c":
        raise refused(name, f"complex numbers ({values.dtype})", "store two columns of floats")
    try:
        if values.dtype == object:
            return _objects(name, values)
        return pa.array(_native(values), from_pandas=True)
    except InvalidInput:
        raise
    except OverflowError:
        what = "an integer beyond 64 bits"
        raise refused(name, what, "store it as text if it names something") from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        remedy = f"convert it to numbers, text, booleans, dates or timestamps ({error})"
        raise refused(name, f"the type {values.dtype}", remedy) from None


def _native(values: Any) -> Any:
    """The same values in a type that Arrow knows: no half floats, no foreign order of bytes."""
    if values.dtype == np.float16:
        return values.astype(np.float32)
    foreign = isinstance(values.dtype, np.dtype) and not values.dtype.isnative
    return values.astype(values.dtype.newbyteorder("=")) if foreign else values


def _objects(name: str, values: Any) -> Any:
    """Python objects of one kind; a column that mixes kinds has no order and no equality."""
    import pandas as pd
    import pyarrow as pa

    series = pd.Series(values)
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind == "date" and any(isinstance(each, datetime.datetime) for each in series):
        kind = "dates mixed with times"
    if kind in ("bytes", "time", "timedelta"):
        return pa.array(series, from_pandas=True)  # to be refused by its name
    if kind not in _PLAIN_OBJECTS:
        remedy = "make all values numbers, or all text, for example by .astype(str)"
        raise refused(name, f"Python objects ({kind})", remedy)
    return pa.array(series, from_pandas=True)


def _readable(name: str, array: Any) -> Any:
    """The same values in a type that DuckDB reads, and only text that is text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t, kind = pa.types, array.type
    try:
        array.validate(full=t.is_string(kind) or t.is_large_string(kind) or t.is_dictionary(kind))
        if t.is_float16(kind):
            return pc.cast(array, pa.float32())
        if t.is_decimal256(kind):
            return pc.cast(array, pa.decimal128(kind.precision, kind.scale))
        if t.is_timestamp(kind) and kind.unit in ("s", "ms"):  # DuckDB's conversion may overflow
            return pc.cast(array, pa.timestamp("us", kind.tz))
    except pa.ArrowException as error:
        raise refused(name, f"this content ({error})", "correct these values") from None
    return array


# Paths and patterns of files, as a list of files of one format.

_FORMATS = {
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst"),
    "parquet": (".parquet", ".pq"),
}
_PATHS_ALLOWED = (
    "paths of CSV files (.csv, .tsv, also .gz or .zst) or of Parquet files (.parquet, .pq)"
)


def is_paths(data: object) -> bool:
    """Whether the data are given as a path or a list of paths."""
    if isinstance(data, str | os.PathLike):
        return True
    return (
        isinstance(data, Sequence)
        and len(data) > 0
        and all(isinstance(each, str | os.PathLike) for each in data)
    )


def data_files(data: Any) -> tuple[str, tuple[Path, ...]]:
    """The format, "csv" or "parquet", and the files in the order given; a pattern's are sorted."""
    given: Iterable[Any] = [data] if isinstance(data, str | os.PathLike) else data
    files = tuple(file for each in given for file in _expanded(os.fspath(each)))
    formats = {_format(file) for file in files}
    if len(formats) > 1:
        hint = "Create a holdout from files of one format."
        raise InvalidInput("data", [file.name for file in files], "files of one format", hint)
    return formats.pop(), files


def _expanded(text: str) -> list[Path]:
    path = Path(text).expanduser()
    if path.is_dir():
        hint = f"Name its files, for example by the pattern {str(path / '*.parquet')!r}."
        raise InvalidInput("data", text, _PATHS_ALLOWED, hint)
    if path.exists():  # a name with * or [ in it is a name before it is a pattern
        return [path]
    if "://" in text:
        hint = "Download the file first, or let a cluster read it: engine='dask://…'."
        raise InvalidInput("data", text, _PATHS_ALLOWED, hint)
    pattern = path.relative_to(path.anchor)
    found = sorted(each for each in Path(path.anchor).glob(str(pattern)) if each.is_file())
    if not found:
        raise InvalidInput(
            "data", text, _PATHS_ALLOWED, "No file has this name or fits this pattern."
        )
    return found


def _format(file: Path) -> str:
    name = file.name.lower()
    for each, endings in _FORMATS.items():
        if name.endswith(endings):
            return each
    raise InvalidInput("data", str(file), _PATHS_ALLOWED, "The ending of the name says the format.")


class Input(Closing):
    """Rows that can be read again and again; made by `open_input`, closed by `with`."""

    def __init__(
        self,
        rows: Rows,
        fields: Sequence[Field],
        unit: Field | None,
        limits: DuckdbLimits,
        session: Session,
        ids: Field | None = None,
    ) -> None:
        self.fields = tuple(fields)
        self.unit = unit
        self.ids = ids
        self.limits = limits
        self._rows: Rows | None = rows
        self._session = session
        self._survey: Survey | None = None

    @property
    def schema(self) -> Schema:
        """The columns that will be stored: all but the ids of units and of rows."""
        return Schema(tuple(Column(each.name, str(each.kind)) for each in self.fields))

    def attach(self, session: Session) -> str:
        """The rows as SQL names them after FROM, in a session."""
        if self._rows is None:
            raise InvalidInput("input", "a closed one", "open", "Open the data again.")
        return _attached(self._rows, session)

    def survey(self, progress: Progress | None = None) -> Survey:
        """Counts and fingerprint, by reading all rows (twice the id of units) the first time.

        What cannot be kept is refused, by its name.
        """
        if self._survey is None:
            session, tell, unit = self._session, progress or no_progress, self.unit
            table = self.attach(session)
            fields = (*self.fields, *(() if self.ids is None else (self.ids,)))
            sums = sums_of(session, table, fields, unit, tell)
            found, units = sums.fingerprint(fields, unit), sums.rows
            if unit is not None:
                # A table of distinct ids spills to disk; `count(DISTINCT …)` need not.
                ids = f"SELECT DISTINCT {unit.identity} FROM {table}"
                count = session.row(f"SELECT count(*) FROM ({ids})", "counting units", tell)
                units = int(count[0])
            self._survey = Survey(sums.rows, units, found, sums.marks)
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
        self._rows = None
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
    limits = DuckdbLimits(memory_limit, threads)
    check_columns(columns)
    session = Session(limits, scratch)
    try:
        form, files = data_files(data) if is_paths(data) else ("memory", ())
        if form == "memory":
            origin = _open_frame(data, columns)
        elif form == "parquet":
            origin = _open_parquet(files)
        else:
            origin = _open_csv(files, session, missing, progress or no_progress)
        names = wanted_names(origin.names, columns, unit, ids, data)
        rows = origin.chosen(names, unit)
        chosen = choose(names, session.described(_attached(rows, session)), unit, ids)
    except BaseException:
        session.close()
        raise
    return Input(rows, chosen.stored, chosen.unit, limits, session, chosen.ids)


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
