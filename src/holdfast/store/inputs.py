"""Inputs: any table, in memory or in files, as rows of checked columns."""

from __future__ import annotations

import csv
import datetime
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from holdfast.concurrency import Closing
from holdfast.errors import InvalidInput
from holdfast.store.duckdb import Limits, Progress, Session, no_progress
from holdfast.store.scan import Survey, survey
from holdfast.store.table import (
    Column,
    Field,
    Schema,
    check_names,
    check_twins,
    kind_of,
    quoted_text,
    refuse_arrow,
    refused,
)

__all__ = [
    "ArrowTable",
    "Chosen",
    "CsvFiles",
    "Frame",
    "Input",
    "ParquetFiles",
    "check_agreement",
    "check_columns",
    "check_types",
    "choose",
    "data_files",
    "is_paths",
    "open_csv",
    "open_frame",
    "open_input",
    "open_parquet",
    "wanted_names",
]


# CSV files as an origin of rows.
#
# The first line names the columns and, by the sign that stands most often between the names, the
# delimiter. The types are found by reading everything, so that they do not depend on which rows
# happen to come first. Dates are read only in the form 2026-11-30: 01/02/2020 is two dates.


_DELIMITERS = ",;\t|"
_NAMED = "a CSV file whose first line names the columns"


@dataclass(frozen=True)
class CsvFiles:
    """Files with the same first line, read one after the other, as columns of known types."""

    files: tuple[Path, ...]
    delimiter: str
    names: list[object]
    types: tuple[str, ...]  # DuckDB's, of every column
    missing: tuple[str, ...]

    def chosen(self, names: Sequence[str], unit: str | None) -> CsvFiles:  # noqa: ARG002
        """CSV has no types of its own to refuse."""
        return self

    def attach(self, session: Session) -> str:  # noqa: ARG002
        """The files as SQL names them after FROM."""
        types = zip(self._labels(), self.types, strict=True)
        pairs = ", ".join(f"{label}: {quoted_text(each)}" for label, each in types)
        return self._read(f"auto_detect = false, columns = {{{pairs}}}")

    def sniffed(self) -> str:
        """The same, with types that DuckDB finds by reading everything."""
        labels = ", ".join(self._labels())
        return self._read(f"names = [{labels}], sample_size = -1, files_to_sniff = -1")

    def _labels(self) -> list[str]:
        """The names, as texts of SQL; an empty one has its place instead."""
        return [quoted_text(str(name) or f"__{i}") for i, name in enumerate(self.names)]

    def _read(self, options: str) -> str:
        files = ", ".join(quoted_text(str(file)) for file in self.files)
        missing = ", ".join(quoted_text(text) for text in self.missing)
        return (
            f"read_csv([{files}], header = true, delim = {quoted_text(self.delimiter)}, "
            "quote = '\"', escape = '\"', comment = '', skip = 0, strict_mode = true, "
            f"dateformat = '%Y-%m-%d', nullstr = [{missing}], hive_partitioning = false, {options})"
        )


def open_csv(
    files: Sequence[Path], session: Session, missing: Sequence[str], progress: Progress
) -> CsvFiles:
    """Read the first lines, then everything to find the types."""
    delimiter, names = _first_line(files[0])
    check_twins(names)  # DuckDB would rename one
    for file in files[1:]:
        if _first_line(file) != (delimiter, names):
            hint = f"Compare {files[0].name} and {file.name}."
            raise InvalidInput("data", file.name, "files with the same first line", hint)
    texts = ("VARCHAR",) * len(names)
    plain = CsvFiles(tuple(files), delimiter, list(names), texts, tuple(missing))
    return replace(plain, types=tuple(_types(plain, session, progress)))


def _types(plain: CsvFiles, session: Session, progress: Progress) -> list[str]:
    def sniff() -> list[str]:
        return list(session.described(plain.sniffed()).values())

    try:
        return session.watched(sniff, "finding types", progress)
    except InvalidInput:
        # What makes it impossible is in some line: reading plain text finds which.
        count = f"SELECT count(*) FROM {plain.attach(session)}"
        session.row(count, "finding the error", progress)
        raise


def _first_line(file: Path) -> tuple[str, list[str]]:
    import pyarrow as pa

    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            record = _record(io.TextIOWrapper(stream, "utf-8-sig", newline=""))
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


def _record(lines: io.TextIOWrapper) -> str:
    """The first line, with those that follow while a quotation is open."""
    record = lines.readline()
    while record.count('"') % 2 and (more := lines.readline()):
        record += more
    return record


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# Parquet files as an origin of rows.


@dataclass(frozen=True)
class ParquetFiles:
    """Files with the same columns, read one after the other."""

    files: tuple[Path, ...]
    arrow_schema: Any

    def attach(self, session: Session) -> str:  # noqa: ARG002
        """The files as SQL names them after FROM."""
        names = ", ".join(quoted_text(str(file)) for file in self.files)
        return f"read_parquet([{names}], hive_partitioning = false)"

    def chosen(self, names: Sequence[str], unit: str | None) -> ParquetFiles:
        """Refuse, by its name, a column of a type that cannot be kept."""
        check_types(names, unit, self.arrow_schema)
        return self

    @property
    def names(self) -> list[object]:
        """The names of all columns."""
        return list(self.arrow_schema.names)


def open_parquet(files: Sequence[Path]) -> ParquetFiles:
    """Read what the files say of themselves; they must agree."""
    schemas = [_schema(file) for file in files]
    check_agreement([file.name for file in files], schemas)
    return ParquetFiles(tuple(files), schemas[0])


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


# Tables in memory as an origin of rows: pandas, Polars, Arrow, NumPy, a dictionary of arrays.


_NAME = "__input"
_ALLOWED = (
    "a pandas or Polars DataFrame, an Arrow table, NumPy arrays with names, "
    "or paths of CSV or Parquet files"
)
_PLAIN_OBJECTS = (  # what pandas calls the content of a column of Python objects
    *("string", "boolean", "integer", "floating", "mixed-integer-float", "decimal"),
    *("date", "datetime", "datetime64", "empty"),
)


@dataclass(frozen=True)
class ArrowTable:
    """Columns in memory that DuckDB can read."""

    table: Any

    def attach(self, session: Session) -> str:
        """The table as SQL names it after FROM."""
        session.connection.register(_NAME, self.table)
        return _NAME


@dataclass(frozen=True)
class Frame:
    """Columns of any kind in memory, and their names, whatever they are."""

    names: list[object]
    columns: list[Any]

    def chosen(self, names: Sequence[str], unit: str | None) -> ArrowTable:
        """These columns as an Arrow table; one that cannot be kept is refused by its name."""
        import pyarrow as pa

        arrays = {}
        for name in names:
            array = _array(name, self.columns[self.names.index(name)])
            refuse_arrow(name, array.type, unit=name == unit)
            arrays[name] = _readable(name, array)
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidInput("data", lengths, "columns of one length")
        return ArrowTable(pa.table(arrays))


def open_frame(data: Any, columns: Sequence[str] | None) -> Frame:
    """The columns of a table in memory; `columns` names those of an array without names."""
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "iloc") and getattr(data, "ndim", 0) == 2:
        return Frame(list(data.columns), [data.iloc[:, i] for i in range(data.shape[1])])
    if library == "polars" and hasattr(data, "to_arrow") and hasattr(data, "columns"):
        return open_frame(data.to_arrow(), columns)
    if library == "pyarrow" and hasattr(data, "column_names") and hasattr(data, "num_rows"):
        return Frame(list(data.column_names), [data.column(i) for i in range(data.num_columns)])
    if isinstance(data, np.ndarray):
        return _open_array(data, columns)
    if isinstance(data, Mapping):
        return Frame(list(data), [data[name] for name in data])
    hints = {
        "polars": "Call collect() on a LazyFrame; to_frame() on a Series.",
        "pandas": "Call to_frame() on a Series.",
        "pyarrow": "Make a table of it, or name the files.",
    }
    raise InvalidInput("data", f"a {type(data).__name__}", _ALLOWED, hints.get(library, ""))


def _open_array(data: Any, columns: Sequence[str] | None) -> Frame:
    if data.dtype.names is not None:
        if data.ndim != 1:
            raise InvalidInput("data", data.shape, "one row after the other: one axis")
        return Frame(list(data.dtype.names), [data[name] for name in data.dtype.names])
    table = data[:, None] if data.ndim == 1 else data
    if table.ndim != 2:
        raise InvalidInput("data", data.shape, "an array of rows and columns")
    if columns is None or len(columns) != table.shape[1]:
        given = "none" if columns is None else f"{len(columns)} names"
        allowed = f"{table.shape[1]} names, one for each column of the array"
        raise InvalidInput("columns", given, allowed, 'For example columns=["x", "y"].')
    return Frame(list(columns), [table[:, i] for i in range(table.shape[1])])


def _array(name: str, values: Any) -> Any:
    """A column as an Arrow array; None, NaN and masked values are missing."""
    import pyarrow as pa

    if type(values).__module__.partition(".")[0] == "polars":
        values = values.to_arrow()
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if not hasattr(values, "dtype"):
        values = np.asarray(values, object if _needs_objects(values) else None)
    _check_array(name, values)
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


def _needs_objects(values: Any) -> bool:
    """Whether numpy would make texts of a list's missing values, or one type of several."""
    return isinstance(values, Sequence) and not all(type(each) is float for each in values)


def _check_array(name: str, values: Any) -> None:
    if getattr(values, "ndim", 1) != 1:
        raise InvalidInput(f"column {name!r}", values.shape, "one value for each row: one axis")
    if getattr(values.dtype, "kind", "") == "c":
        raise refused(name, f"complex numbers ({values.dtype})", "store two columns of floats")


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
