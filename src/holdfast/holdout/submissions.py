"""Submissions: predictions keyed by row id, checked before anything is asked or charged.

    reading        what was given, by its form: bytes, a file, a table, a dictionary
    csv_bytes      CSV              json_bytes  JSON
    parquet_bytes  Parquet, opened by parquet_worker in a process with little memory
    frames         tables and dictionaries in Python
    values         what one prediction must be, for a metric and a target
    matching       ids in any order, matched with the rows that they name
    keeping        those of the best entries, so that entries can be compared

Every error is about the submission and the public ids alone. Which labels there are is not public:
a prediction of a label that no row has is a wrong prediction, and no error.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from heapq import nsmallest
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.process import Worker, WorkerDied, WorkerTimeout
from holdfast.engines.python.metrics import (
    NEEDS_LABEL,
    NEEDS_PROBABILITY,
    Metric,
    Predictions,
    listed,
)
from holdfast.errors import Damaged, InvalidInput
from holdfast.store.blocks import private, sync_folder
from holdfast.store.duckdb import DuckdbLimits, Session
from holdfast.store.table import Field, plain_array, quoted

__all__ = [
    "FORMS",
    "IDS_FILE",
    "KEPT_FOLDER",
    "PREDICTION",
    "FileToRead",
    "Ids",
    "Kept",
    "Pairs",
    "PredictionKind",
    "RowIds",
    "Submitted",
    "check_columns",
    "check_ids",
    "form_of",
    "is_keyed",
    "most_bytes",
    "pairs_of",
    "read_csv",
    "read_frame",
    "read_ids",
    "read_json",
    "read_parquet",
    "read_submission",
    "refused",
    "row_places",
    "some",
    "start",
    "values_by_row",
    "wanted_for",
    "wanted_values",
    "write_ids",
]


# Pairs: ids and predictions as they were written, before either is understood.


PREDICTION = "prediction"
_NAMED = 3
_LONGEST = 40
_FREE = "Nothing was charged."


@dataclass(frozen=True)
class Pairs:
    """Two Arrow arrays of one length. Values that are text are read as what is wanted."""

    ids: Any
    values: Any

    def __len__(self) -> int:
        return len(self.ids)


def refused(found: str, allowed: str, hint: str = "") -> InvalidInput:
    """The refusal of a submission."""
    return InvalidInput("predictions", found, allowed, f"{hint} {_FREE}".strip())


def some(values: Sequence[object]) -> str:
    """At most three values, short, and without what a terminal would obey."""
    shown = []
    for value in values[:_NAMED]:
        text = str(value)
        text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        shown.append(text if text.isprintable() else ascii(text)[1:-1])
    return ", ".join(shown) + (", …" if len(values) > _NAMED else "")


def check_columns(names: Sequence[object], column: str) -> None:
    """Two columns, the ids' own and `prediction`, in any order."""
    if sorted(str(name) for name in names) != sorted((column, PREDICTION)):
        raise refused(
            f"the columns {some([*names]) or 'of none'}",
            f"two columns, {column} and {PREDICTION}",
            _slip([str(name) for name in names], column),
        )


def _slip(names: list[str], column: str) -> str:
    """What to do about a slip that is often made."""
    others = [name for name in names if name not in (column, PREDICTION)]
    if len(names) == 1:
        found = next((each for each in (";", "\t", "|") if each in names[0]), None)
        return "" if found is None else f"The separator is {found!r}: it must be a comma."
    if len(others) == 1 and len(names) == _COLUMNS:
        wanted = PREDICTION if column in names else column
        return f"Rename {some(others)} to {wanted}."
    if len(others) == 1 and others[0] in ("", "Unnamed: 0"):  # pandas writes its index like that
        return "One column has no name: write the file with index=False."
    return ""


# Predictions in CSV: a header with the ids' own name and `prediction`, then one line a row.


_BLOCK = 2**20  # bytes: a line that is longer is no prediction


def read_csv(content: bytes, column: str) -> Pairs:
    """The pairs of a CSV file. What a field means is decided later: here all are text."""
    import pyarrow as pa
    from pyarrow import csv

    allowed = f"CSV in UTF-8 with the columns {column} and {PREDICTION}"
    try:
        names = _header(content, allowed)
        check_columns(names, column)
        table = csv.read_csv(
            pa.BufferReader(content),
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=csv.ParseOptions(newlines_in_values=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys((column, PREDICTION), pa.string()),
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        raise refused("something else", allowed, "Every line has two fields.") from None
    found = (table.column(name).combine_chunks() for name in (column, PREDICTION))
    return Pairs(*found)


def _header(content: bytes, allowed: str) -> list[str]:
    import csv

    first = content[:_BLOCK].split(b"\n", 1)[0].removeprefix(b"\xef\xbb\xbf")
    try:
        return next(csv.reader([first.decode("utf-8").strip("\r")]), [])
    except (UnicodeDecodeError, csv.Error):
        raise refused("something else", allowed) from None


# Predictions in Python: a dictionary, a table of pandas, Polars or Arrow, a pandas Series.


_ALLOWED = "integers or text, and predictions that are numbers, text, true or false"


def is_keyed(given: object) -> bool:
    """Whether these are predictions with their ids, and not a plain list in the rows' order."""
    if isinstance(given, Mapping):
        return True
    library = type(given).__module__.partition(".")[0]
    named = any(hasattr(given, name) for name in ("columns", "column_names", "index"))
    return library in ("pandas", "polars", "pyarrow") and named


def read_frame(given: Any, column: str) -> Pairs:
    """The pairs of a table with the two columns, or of a mapping from ids to predictions."""
    if isinstance(given, Mapping):
        return pairs_of([*given.keys()], [*given.values()])
    if getattr(given, "ndim", 2) == 1 and hasattr(given, "index"):  # a Series by its index
        return pairs_of(given.index.tolist(), given.tolist())
    arrow = type(given).__module__.partition(".")[0] == "pyarrow"  # a frame looks long for a name
    check_columns(list(given.column_names if arrow else given.columns), column)
    ids = given[column]
    return Pairs(_column(ids, "ids"), _column(given[PREDICTION], "predictions", ids))


def _column(values: Any, what: str, ids: Any = ()) -> Any:
    """A column as an Arrow array of one kind; what is plain already is taken as it is."""
    import pyarrow as pa

    kind = str(getattr(values, "dtype", ""))
    if kind in ("int64", "float64", "bool"):
        return pa.array(values.to_numpy())
    found = values.to_arrow() if hasattr(values, "to_arrow") else values  # of Polars
    found = pa.array(values) if kind == "str" else found
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    if isinstance(found, pa.Array) and not found.null_count:
        plain = _plain(found.type)
        with suppress(pa.ArrowException):
            return found if plain is None else found.cast(plain)
    return _array(_listed(values), what, _listed(ids))


def _listed(column: Any) -> list[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def pairs_of(ids: Sequence[Any], values: Sequence[Any]) -> Pairs:
    """Python values as two Arrow arrays, each of one kind."""
    return Pairs(_array(ids, "ids"), _array(values, "predictions", ids))


def _array(values: Sequence[Any], what: str, ids: Sequence[Any] = ()) -> Any:
    """Integers, floats, truth values or text; integers among floats are floats.

    `ids`: those of what is missing are named.
    """
    import pyarrow as pa

    kinds = {type(value) for value in values}
    if any(issubclass(kind, np.generic) for kind in kinds):  # numbers and text of NumPy's
        values = [each.item() if isinstance(each, np.generic) else each for each in values]
        kinds = {type(value) for value in values}
    if kinds <= {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {int, bool} and all(abs(value) < 2**63 for value in values):
        return pa.array([int(value) for value in values], pa.int64())
    if kinds <= {int, float, bool}:
        try:
            return pa.array([float(value) for value in values], pa.float64())
        except OverflowError:
            raise refused(f"{what} beyond every float", _ALLOWED) from None
    if kinds <= {str}:
        try:
            return pa.array(values, pa.string())
        except (UnicodeError, pa.ArrowException):  # half a pair of surrogates
            raise refused(f"{what} that are not Unicode", _ALLOWED) from None
    if what == "ids" and kinds <= {int, str}:
        return pa.array([str(value) for value in values], pa.string())
    empty = [each is None or (isinstance(each, float) and each != each) for each in values]
    missing = [place for place, each in enumerate(empty) if each]
    if missing:
        named = some([ids[place] for place in missing[:4]] if ids else missing[:4])
        raise refused(f"{len(missing):,} missing {what} (for {named})", _ALLOWED)
    others = kinds - {bool, int, float, str}
    raise refused(f"{what} of several kinds" if not others else f"other {what}", _ALLOWED)


# Predictions in JSON: {"id": prediction, …}, or [{"id": …, "prediction": …}, …].


_COMMAS = 20  # a row


class _NotFinite(ValueError):
    """A number that JSON does not have."""


def read_json(content: bytes, column: str, rows: int) -> Pairs:
    """The pairs of a JSON text. Both forms keep ids that come twice, to be refused as such."""
    allowed = f'JSON: {{"{column}": prediction, …}} or [{{"{column}": …, "{PREDICTION}": …}}, …]'
    # Counted before it is read: brackets take a few bytes here and a hundred in memory.
    if content.count(b"[") + content.count(b"{") > 2 * rows + 1000:
        raise refused("more lists and objects than rows", allowed)
    if content.count(b",") > _COMMAS * rows + 1000:  # some may be inside of ids and labels
        raise refused("many more values than rows", allowed)
    try:
        # An object is a list of its pairs: Python's own would keep the last of two equal keys.
        data = json.loads(content, object_pairs_hook=_Object, parse_constant=_not_finite)
    except _NotFinite:
        raise refused("numbers that are not finite", "finite numbers") from None
    except (ValueError, RecursionError):  # RecursionError: nested beyond reason
        raise refused("something else", allowed) from None
    if isinstance(data, _Object):
        return pairs_of([key for key, _ in data], [value for _, value in data])
    if not isinstance(data, list):
        raise refused(type(data).__name__, allowed)
    return _json_bytes_listed(data, column, allowed)


class _Object(list[tuple[str, Any]]):
    """A JSON object as its pairs."""


def _json_bytes_listed(data: list[Any], column: str, allowed: str) -> Pairs:
    ids: list[Any] = []
    values: list[Any] = []
    for each in data:
        if not isinstance(each, _Object):
            raise refused("a list of something else", allowed)
        if len(each) != 2 or {key for key, _ in each} != {column, PREDICTION}:
            check_columns([key for key, _ in each], column)
            raise refused("an object with other keys", allowed)
        pair = dict(each)
        ids.append(pair[column])
        values.append(pair[PREDICTION])
    return pairs_of(ids, values)


def _not_finite(_: str) -> NoReturn:
    raise _NotFinite


# What opens a Parquet file of a stranger: a process that may take little memory and no files.
#
# The reply is `+` and an Arrow stream of two plain columns, or what the file is instead.


_COLUMNS = 2
_TEXT = 200 * 4 + 8  # bytes of a text, on average over a batch; the longest is checked later
_BATCH = 2**14


@dataclass(frozen=True)
class FileToRead:
    """The file, and how many rows it may have."""

    content: bytes
    rows: int


def start(_: object) -> Callable[[FileToRead], bytes]:
    """Called by the process when it starts."""
    import pyarrow.parquet  # noqa: F401 – loaded before memory is limited

    return answer


def answer(asked: FileToRead) -> bytes:
    """The two columns, or what the file is instead."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(pa.BufferReader(asked.content), pre_buffer=False) as file:
            return _columns(file, asked.rows)
    except (pa.ArrowException, OSError, ValueError):
        return b"something else"


def _columns(file: Any, rows: int) -> bytes:
    import pyarrow as pa

    schema = file.schema_arrow
    if len(schema.names) != _COLUMNS:
        return "\n".join(["columns", *schema.names[:10]]).encode()
    types = [_plain(field.type) for field in schema]
    if None in types:
        return b"columns of other types"
    if file.metadata.num_rows > rows:
        return f"{file.metadata.num_rows:,} rows".encode()
    plain = pa.schema(zip(schema.names, types, strict=True))
    sink, seen = pa.BufferOutputStream(), 0
    with pa.ipc.new_stream(sink, plain) as stream:
        for batch in file.iter_batches(batch_size=_BATCH, use_threads=False):
            arrays = [array.cast(kind) for array, kind in zip(batch.columns, types, strict=True)]
            made, seen = pa.record_batch(arrays, schema=plain), seen + batch.num_rows
            if seen > rows or made.nbytes > made.num_rows * 2 * _TEXT:
                return b"more rows, or longer text, than there can be"
            stream.write_batch(made)
    return b"+" + bytes(sink.getvalue())


def _plain(kind: Any) -> Any:
    """What a column of this type is sent as; None if it can be no id and no prediction."""
    import pyarrow as pa

    t = pa.types
    kind = kind.value_type if t.is_dictionary(kind) else kind
    if t.is_boolean(kind):
        return pa.bool_()
    if t.is_integer(kind):
        return pa.int64()
    if t.is_floating(kind):
        return pa.float64()
    texts = (t.is_string, t.is_large_string, t.is_string_view)
    return pa.string() if any(test(kind) for test in texts) else None


# Predictions in Parquet. A small file can say that it is huge: another process opens it.


_MEMORY = 2**30  # bytes, above what an idle process takes
_SECONDS = 60.0
_WORKER = "holdfast.holdout.submissions"
# Arrow's own pools reserve a gigabyte of addresses before they begin.
_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system"}


def read_parquet(content: bytes, column: str, rows: int) -> Pairs:
    """The pairs of a Parquet file."""
    import pyarrow as pa

    allowed = f"Parquet with the columns {column} and {PREDICTION}, of numbers or text"
    worker = Worker(_WORKER, memory_limit=_MEMORY, environment=_ENVIRONMENT)
    try:
        reply = worker.call(FileToRead(content, rows), _SECONDS)
    except (WorkerDied, WorkerTimeout):
        raise refused("a file that takes too much memory or time", allowed) from None
    finally:
        worker.kill()
    if reply[:1] != b"+":
        said, *names = reply.decode("utf-8").split("\n")
        if said == "columns":
            check_columns(names, column)
        raise refused(said if said != "columns" else "other columns", allowed)
    table = pa.ipc.open_stream(reply[1:]).read_all()
    check_columns(table.column_names, column)
    found = (table.column(name).combine_chunks() for name in (column, PREDICTION))
    return Pairs(*found)


# What one prediction must be, and text as such.
#
# A metric takes a label, a number, a probability or a score. A label is of the target's kind:
# text,
# a number, or true and false, which are 1 and 0.


_VALUES_LONGEST = 200
_NUMBER = r"^\s*[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,6})?\s*$"
_ZERO_ONE = (0.0, 1.0)


@dataclass(frozen=True)
class PredictionKind:
    """What predictions must be: text, or numbers of a kind."""

    text: bool = False
    label: bool = False  # whole numbers are integers then
    within: tuple[float, float] | None = None
    binary: bool = False
    called: str = "numbers"
    known: tuple[object, ...] = ()
    """Labels that are public."""

    def describe(self) -> str:
        """For errors."""
        labels = f", as the labels are: {listed(self.known)}" if self.known else ""
        if self.text:
            return f"text of at most {_VALUES_LONGEST} characters{labels}"
        if self.binary:
            return "0 or 1"
        if self.within is None:
            return f"finite numbers{labels}"
        low, high = self.within
        return f"{self.called} between {low:g} and {high:g}"


def wanted_for(
    metric: Metric, kind: str, target: str, span: tuple[float, float] | None = None
) -> PredictionKind:
    """What a metric takes for a target of this kind; refused if it cannot be.

    `span` is where numbers must lie, if errors are bounded by it.
    """
    if kind not in ("boolean", "number", "text"):
        hint = "Seal the target as a number or as text."
        raise InvalidInput("target", target, "a column of numbers, text or truth values", hint)
    label = metric.predicted == NEEDS_LABEL
    if kind == "text" and (metric.binary or not label):
        hint = "For text labels use accuracy, error_rate, balanced_accuracy or f1_macro."
        raise InvalidInput("metric", metric.name, "one for labels that are text", hint)
    if metric.predicted == NEEDS_PROBABILITY:
        return PredictionKind(within=_ZERO_ONE, called="probabilities")
    if not label:
        return PredictionKind(within=span)
    return PredictionKind(
        text=kind == "text", label=True, binary=metric.binary or kind == "boolean"
    )


def values_by_row(array: NDArray[Any], wanted: PredictionKind) -> NDArray[Any]:
    """Predictions in the order of the rows, held to the same rules; rows are named by number."""
    import pyarrow as pa

    numbers = pa.array(np.arange(len(array)))
    if array.dtype.kind == "O":
        plain = [each.item() if isinstance(each, np.generic) else each for each in array]
        return wanted_values(Pairs(numbers, pairs_of([], plain).values), wanted)
    doubles = array.astype(np.float64) if array.dtype.kind == "f" else array
    return wanted_values(Pairs(numbers, pa.array(doubles)), wanted)


def wanted_values(pairs: Pairs, wanted: PredictionKind) -> NDArray[Any]:
    """The predictions as an array; refused, with a few ids, where they are something else."""
    import pyarrow as pa

    values = pairs.values
    if wanted.label and not wanted.text and _is_whole(values, wanted.binary):
        return np.array(plain_array(values), np.int64)
    bad = plain_array(values.is_null())
    is_text = pa.types.is_string(values.type)
    if wanted.text:
        if not is_text:
            found = listed(values.drop_null().unique()[: _NAMED + 1].to_pylist())
            raise refused(f"numbers ({found})", wanted.describe())
        return _texts(pairs, bad)
    if is_text:
        values, bad = _numbers(values)
        if bad.all():
            found = listed(pairs.values.drop_null().unique()[: _NAMED + 1].to_pylist())
            raise refused(f"text ({found})", wanted.describe())
    array = plain_array(values.cast(pa.float64())) + 0.0  # one zero
    bad = bad | ~np.isfinite(array)
    if wanted.binary:
        bad |= ~np.isin(array, _ZERO_ONE)
    elif wanted.within is not None:
        bad |= ~((array >= wanted.within[0]) & (array <= wanted.within[1]))
    _refuse(pairs, bad, wanted)
    whole = wanted.label and bool(np.all(array == np.rint(array)) and np.all(abs(array) < 2**53))
    return array.astype(np.int64) if whole else array


def _is_whole(values: Any, binary: bool) -> bool:
    """Whether these are whole numbers that a float holds, 0 and 1 if they must be: most labels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(values.type) or values.null_count or not len(values):
        return False
    low, high = (int(each.as_py()) for each in pc.min_max(values).values())
    return -1 < low <= high < 2 if binary else -(2**53) < low <= high < 2**53


def _texts(pairs: Pairs, bad: NDArray[np.bool_]) -> NDArray[Any]:
    import pyarrow.compute as pc

    lengths = plain_array(pc.utf8_length(pairs.values))  # NaN where there is none
    _refuse(pairs, bad | (lengths > _VALUES_LONGEST), PredictionKind(text=True))
    found = np.empty(len(pairs), object)
    found[:] = pairs.values.to_pylist()
    return found


def _numbers(text: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Text as numbers, and where it is none; `true` and `false` are 1 and 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    for word, number in (("^true$", "1"), ("^false$", "0")):
        text = pc.replace_substring_regex(text, word, number)
    good = plain_array(pc.match_substring_regex(text, _NUMBER)) == True  # noqa: E712 – None is none
    text = pc.replace_substring_regex(text, r"^\+", "")
    if not good.all():
        text = pc.if_else(good, text, "nan")
    return pc.cast(text, pa.float64()), ~good


def _refuse(pairs: Pairs, bad: NDArray[np.bool_], wanted: PredictionKind) -> None:
    if bad.any():
        places = np.flatnonzero(bad)
        ids = [pairs.ids[int(place)].as_py() for place in places[:4]]
        found = f"{len(places):,} other predictions (for {some(ids)})"
        raise refused(found, wanted.describe())


# Public ids of rows: what predictions are keyed by.
#
# The ids are kept in the order of the data in a file of their own. They are public: a submission
# names them, and so may an error. They are not sealed with the data, and no question can be about
# them.


IDS_FILE = "ids.parquet"
_ID = "id"
_IDS_LONGEST = 200  # characters of one id
_REMEMBERED = 2**20  # ids that are compared with the next ones
_NEAR = 16  # numbers to an id, at most, of which a table is made
_RESTORE = "Restore the holdout from a copy."


@dataclass(frozen=True)
class Ids:
    """What the first row says of the ids: their column, how many there are, their file's hash."""

    column: str
    kind: str  # integer or text
    rows: int
    sha256: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ids:
        """What `to_dict` wrote."""
        types = {"column": str, "kind": str, "rows": int, "sha256": str}
        known = set(data) == set(types) and all(isinstance(data[n], types[n]) for n in types)
        if not known or data["kind"] not in ("integer", "text"):
            raise ValueError("ids of another form")
        return cls(**data)


class RowIds:
    """The ids in the order of the data; `sealed` are the rows that are not open, None if all."""

    def __init__(self, about: Ids, values: Any, sealed: NDArray[np.int64] | None = None) -> None:
        self.about, self.values = about, values  # an Arrow array of integers or text
        self.sealed = sealed
        self._last: tuple[Any, NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return self.about.rows

    def rows(self, keys: Any) -> NDArray[np.int64]:
        """The row of each id, −1 where there is none; the same ids again are found at once."""
        last = self._last  # another thread may put others there
        if last is not None and keys.equals(last[0]):
            return last[1]
        rows = self._found(keys)
        if len(rows) <= _REMEMBERED:
            self._last = keys, rows
        return rows

    def _found(self, keys: Any) -> NDArray[np.int64]:
        import pyarrow.compute as pc

        if self._by_number is not None and not keys.null_count:
            low, table = self._by_number
            places = plain_array(keys) - low
            if len(places) and places.min() >= 0 and places.max() < len(table):
                return np.asarray(table[places])
        found = pc.index_in(keys, value_set=self.values)
        return np.array(plain_array(found.fill_null(-1) if found.null_count else found), np.int64)

    @cached_property
    def _by_number(self) -> tuple[int, NDArray[np.int64]] | None:
        """Where whole numbers lie near each other: the least, and the row of each from it on."""
        if self.about.kind != "integer":
            return None
        numbers = plain_array(self.values)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low > _NEAR * len(numbers):
            return None
        table = np.full(high - low + 1, -1, np.int64)
        table[numbers - low] = np.arange(len(numbers))
        return low, table


class _Table(Protocol):
    """An input, wherever its rows are read."""

    limits: DuckdbLimits

    def attach(self, session: Session) -> str: ...


def write_ids(folder: Path, table: _Table, field: Field, rows: int) -> Ids:
    """Write the ids of an input, one for every row, or say why a column cannot be ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    integer = _is_integer(field)
    with Session(table.limits, folder) as session:
        source = table.attach(session)
        found = session.connection.sql(_query(field, source, integer)).to_arrow_table()
    ids = found.column(_ID).combine_chunks()
    if isinstance(ids, pa.ChunkedArray):
        ids = pa.concat_arrays(ids.chunks)
    _check(field.name, ids, rows, integer)
    path = folder / IDS_FILE
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    pq.write_table(pa.table({_ID: ids}), path)
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Ids(field.name, "integer" if integer else "text", rows, digest)


def _is_integer(field: Field) -> bool:
    if not field.is_integer and field.kind != "text":
        hint = "Store them as text."
        raise InvalidInput("ids", field.name, "a column of integers or text", hint)
    return field.is_integer


def _query(field: Field, source: str, integer: bool) -> str:
    value = f"TRY_CAST({quoted(field.name)} AS {'BIGINT' if integer else 'VARCHAR'})"
    # Numbered as the sealed rows are: in the order in which the input has them.
    numbered = f"SELECT {value} AS {_ID}, row_number() OVER () AS __row FROM {source}"
    return f"SELECT {_ID} FROM ({numbered}) ORDER BY __row"


def _check(name: str, ids: Any, rows: int, integer: bool) -> None:
    import pyarrow.compute as pc

    what = f"ids {name!r}"
    if len(ids) != rows:
        raise InvalidInput(what, f"{len(ids):,} values", f"{rows:,}, one for every row")
    if ids.null_count:
        hint = "Integers must be below 2^63." if integer else ""
        raise InvalidInput(what, f"{ids.null_count:,} missing", "present in every row", hint)
    twice = rows - pc.count_distinct(ids).as_py()
    if twice:
        hint = "An id names one row. Make one, such as the number of the row."
        raise InvalidInput(what, f"{twice:,} repeated", "different in every row", hint)
    if integer:
        return
    if pc.max(pc.utf8_length(ids)).as_py() > _IDS_LONGEST or not pc.all(_ids_plain(ids)).as_py():
        allowed = f"text of 1 to {_IDS_LONGEST} printable characters without spaces around it"
        raise InvalidInput(what, "others", allowed)


def _ids_plain(ids: Any) -> Any:
    import pyarrow.compute as pc

    trimmed = pc.equal(pc.utf8_trim_whitespace(ids), ids)
    return pc.and_(pc.utf8_is_printable(ids), pc.and_(trimmed, pc.not_equal(ids, "")))


def check_ids(folder: Path, ids: Ids) -> None:
    """Raise `Damaged` unless the file is, byte for byte, as it was written."""
    path = folder / IDS_FILE
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise Damaged(str(path), "a readable file", str(error.strerror), _RESTORE) from None
    if digest != ids.sha256:
        wanted, found = f"SHA-256 {ids.sha256[:16]}…", f"{digest[:16]}…"
        raise Damaged(str(path), wanted, found, _RESTORE)


def read_ids(folder: Path, about: Ids, sealed: NDArray[np.int64] | None = None) -> RowIds:
    """The ids, if their file is unchanged; `sealed` are the rows that are not open."""
    import pyarrow.parquet as pq

    check_ids(folder, about)
    with pq.ParquetFile(folder / IDS_FILE) as file:
        column = file.read().column(_ID)
    values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return RowIds(about, values, sealed)


# Matching: ids in any order, each once, with the rows that they name.


_INTEGER = r"^\s*[+-]?[0-9]{1,18}\s*$"


def row_places(pairs: Pairs, ids: RowIds) -> NDArray[np.int64]:
    """The row of every pair; refused unless every id is there, once, and no other.

    Those of open rows may be left out. Which rows belong to no block is in no file, so that theirs
    are needed like those of sealed ones.
    """
    allowed = f"one prediction for each of the {len(ids):,} ids in {ids.about.column}"
    if ids.sealed is not None:
        allowed = (
            f"one prediction for each of the {len(ids.sealed):,} ids in {ids.about.column} that "
            f"are not open; the {len(ids) - len(ids.sealed):,} of open rows may be left out"
        )
    if not len(pairs):
        raise refused("none", allowed)
    if len(pairs) > 2 * len(ids) + 1000:
        raise refused(f"{len(pairs):,} rows", allowed)
    keys = _keys(pairs.ids, ids.about.kind == "integer", allowed)
    rows = ids.rows(keys)
    if rows.min() < 0:
        unknown = np.flatnonzero(rows < 0)
        named = some([pairs.ids[int(place)].as_py() for place in unknown[:4]])
        raise refused(f"{len(unknown):,} unknown ids ({named})", allowed)
    seen = np.zeros(len(ids), np.bool_)
    seen[rows] = True
    if np.count_nonzero(seen) < len(rows):
        _refuse_ids(np.flatnonzero(np.bincount(rows) > 1), "that come twice", ids, allowed)
    needed = np.arange(len(ids)) if ids.sealed is None else ids.sealed
    lacking = ~seen[needed]
    if lacking.any():
        _refuse_ids(needed[lacking], "without a prediction", ids, allowed)
    return rows


def _refuse_ids(found: NDArray[np.int64], what: str, ids: RowIds, allowed: str) -> NoReturn:
    # By their own order: that of the rows is sealed, and can tell of what is in them.
    named = some(nsmallest(4, ids.values.take(found).to_pylist()))
    raise refused(f"{len(found):,} ids {what} ({named})", allowed)


def _keys(given: Any, integer: bool, allowed: str) -> Any:
    """The ids in the type that the holdout's have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = pa.types.is_string(given.type)
    if pa.types.is_boolean(given.type):
        raise refused("true and false for ids", allowed)
    if pa.types.is_floating(given.type):
        given = _whole(given, allowed)
    if not integer:
        return given if is_text else given.cast(pa.string())
    if not is_text:
        return given
    good = plain_array(pc.match_substring_regex(given, _INTEGER))
    wrong = np.flatnonzero(good != True)  # noqa: E712 – None is none
    if len(wrong):
        named = some([given[int(place)].as_py() for place in wrong[:4]])
        raise refused(f"{len(wrong):,} ids that are no integers ({named})", allowed)
    plain = pc.replace_substring_regex(given, r"^\s*\+?", "")
    return pc.cast(pc.utf8_trim_whitespace(plain), pa.int64())


def _whole(given: Any, allowed: str) -> Any:
    import pyarrow as pa

    try:
        return given.cast(pa.int64())
    except pa.ArrowException:
        raise refused("ids that are fractions", allowed) from None


# Reading: what was given, by its form, as one prediction for every row in the rows' order.


FORMS = ("csv", "json", "parquet")
_LARGEST = 2**29
_A_ROW = 2_000  # bytes: an id of 200 characters and a label of as many, escaped
_SUFFIXES = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".pq": "parquet"}
_STARTS = ((b"PAR1", "parquet"), (b"{", "json"), (b"[", "json"))


def read_submission(
    given: object, ids: RowIds, wanted: PredictionKind, *, form: str | None = None
) -> Submitted:
    """Predictions, and the rows that they are for.

    `given` is bytes of CSV, JSON or Parquet (`form` says which; else it is seen), the path of such
    a file, a dictionary from ids to predictions, or a table with the two columns.
    """
    pairs = _pairs(given, ids, form)
    rows = row_places(pairs, ids)
    return Submitted(wanted_values(pairs, wanted), rows, ids)


@dataclass(frozen=True)
class Submitted:
    """Predictions as they were given, each with the number of its row."""

    values: NDArray[Any]
    rows: NDArray[np.int64]
    ids: RowIds

    def by_row(self) -> Predictions:
        """In the order of the rows; an open row may have none, and something stands there."""
        size, kind = len(self.ids), self.values.dtype
        arranged = np.full(size, "" if kind.hasobject else 0, kind)
        arranged[self.rows] = self.values
        return Predictions(arranged, self.ids.sealed, complete=len(self.rows) == size)


def most_bytes(ids: RowIds) -> int:
    """The most bytes that a submission for these rows can sensibly have."""
    return min(_LARGEST, 100_000 + _A_ROW * len(ids))


def _pairs(given: object, ids: RowIds, form: str | None) -> Pairs:
    column = ids.about.column
    if isinstance(given, str | Path):
        content, form = _file(Path(given), most_bytes(ids), form)
    elif isinstance(given, bytes | bytearray | memoryview):
        content = bytes(given)
    else:
        return read_frame(given, column)
    if len(content) > most_bytes(ids):
        allowed = f"at most {most_bytes(ids):,} bytes for {len(ids):,} rows"
        raise refused(f"{len(content):,} bytes", allowed)
    chosen = form_of(content) if form is None else form
    if chosen == "parquet":
        return read_parquet(content, column, 2 * len(ids) + 1000)
    if chosen == "json":
        return read_json(content, column, len(ids))
    if chosen != "csv":
        raise refused(str(chosen), f"one of {', '.join(FORMS)}")
    return read_csv(content, column)


def form_of(content: bytes) -> str:
    """The form that bytes have, by how they begin.

    >>> form_of(b" {}"), form_of(b"id,prediction")
    ('json', 'csv')
    """
    start = content[:64].lstrip()
    return next((form for first, form in _STARTS if start.startswith(first)), "csv")


def _file(path: Path, most: int, form: str | None) -> tuple[bytes, str | None]:
    if not path.is_file():
        raise refused(str(path), "in a file that exists")
    size = path.stat().st_size
    if size > most:
        raise refused(f"{size:,} bytes", f"at most {most:,} bytes")
    return path.read_bytes(), form or _SUFFIXES.get(path.suffix.lower())


# Keeping: the predictions of entries, one file each, which the custodian's account alone can read.
#
# A file has the name of the question by which its predictions were scored, and these give that key
# again, which shows that they are the same. To lose one loses no answer: entered again they are
# known, and kept. Whoever changes anything here holds the ledger's lock of this folder's name.


KEPT_FOLDER = "predictions"
_KEPT_SUFFIX = ".parquet"
_COMPLETE = b"open rows too"


class Kept:
    """The predictions that are kept in a holdout's folder, by the keys of their questions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / KEPT_FOLDER

    @property
    def files(self) -> dict[str, str]:
        """Their names in the holdout's folder, by their keys."""
        there = self._folder.glob(f"*{_KEPT_SUFFIX}")
        found = sorted(each.name for each in there if each.is_file())
        return {name.removesuffix(_KEPT_SUFFIX): f"{KEPT_FOLDER}/{name}" for name in found}

    def read(self, key: str) -> Predictions | None:
        """Predictions for all rows; None if there are none. `OSError` or `ValueError`: damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._folder / f"{key}{_KEPT_SUFFIX}"
        if not path.exists():
            return None
        try:
            if not path.is_file():  # a pipe would be waited for
                raise TypeError("no file")
            with pq.ParquetFile(path) as file:
                column = file.read([PREDICTION]).column(PREDICTION)
                complete = file.schema_arrow.metadata[_COMPLETE] == b"1"
        except (pa.ArrowException, LookupError, TypeError) as wrong:
            raise ValueError("a damaged file") from wrong
        if not pa.types.is_string(column.type):
            return Predictions(np.array(plain_array(column.combine_chunks())), complete=complete)
        values = np.empty(len(column), object)
        values[:] = column.to_pylist()
        return Predictions(values, complete=complete)

    def keep(self, key: str, predictions: Predictions) -> None:
        """Write predictions: a reader finds all of them, or none."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._folder.mkdir(mode=0o700, exist_ok=True)
        table = pa.table({PREDICTION: pa.array(predictions.values)})
        table = table.replace_schema_metadata({_COMPLETE: str(int(predictions.complete))})
        path = self._folder / f"{key}{_KEPT_SUFFIX}"
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        try:
            pq.write_table(table, private(part))
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            part.rename(path)
        finally:
            part.unlink(missing_ok=True)
        sync_folder(self._folder)

    def drop_others(self, keys: Container[str]) -> None:
        """Remove all but these, and what a process that was killed has left."""
        if not self._folder.exists():
            return
        for each in self._folder.iterdir():
            if each.suffix != _KEPT_SUFFIX or each.stem not in keys:
                each.unlink(missing_ok=True)
