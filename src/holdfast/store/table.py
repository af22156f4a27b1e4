"""Columns of a holdout: what kinds there are, and which names a column may have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Damaged, InvalidInput

__all__ = [
    "BLOCK",
    "ID",
    "KINDS",
    "LARGEST_INTEGER",
    "MOST_COLUMNS",
    "ROW",
    "UNIT",
    "Column",
    "Field",
    "Schema",
    "check_names",
    "check_twins",
    "kind_of",
    "plain_array",
    "quoted",
    "quoted_text",
    "refuse_arrow",
    "refused",
]

KINDS = ("number", "boolean", "text", "date", "timestamp")
MOST_COLUMNS = 2_000
ROW, ID, BLOCK, UNIT = "__row", "__id", "__block", "__unit"  # hidden columns


@dataclass(frozen=True)
class Column:
    """A name and what kind of values stand under it."""

    name: str
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput("kind", self.kind, f"one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class Schema:
    """The columns that a question may name, in the order of the data.

    >>> schema = Schema((Column("Age", "number"), Column("arm", "text")))
    >>> schema.names, schema.kind("age"), schema.find("weight")
    (('Age', 'arm'), 'number', None)
    """

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names as the data spell them."""
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        """The column of that name; as in SQL, upper and lower case do not matter."""
        folded = name.casefold()
        for each in self.columns:
            if each.name.casefold() == folded:
                return each
        return None

    def kind(self, name: str) -> str:
        """The kind of a column that exists."""
        column = self.find(name)
        if column is None:
            raise InvalidInput("column", name, f"one of {_listed(self.names)}")
        return column.kind

    def to_list(self) -> list[dict[str, str]]:
        """What `from_list` reads."""
        return [{"name": each.name, "kind": each.kind} for each in self.columns]

    @classmethod
    def from_list(cls, entries: object) -> Schema:
        """The schema that `to_list` wrote; anything else is damaged."""
        try:
            plain: Any = entries
            read = cls(tuple(Column(**each) for each in plain))
            if read.to_list() == entries and all(isinstance(name, str) for name in read.names):
                return read
        except (InvalidInput, TypeError):
            pass
        remedy = "Restore the holdout from a copy."
        raise Damaged("The list of columns", "names and kinds", repr(entries)[:80], remedy)


def check_twins(names: Iterable[object]) -> None:
    """Raise if two names mean the same column; an empty name means none."""
    seen: dict[str, object] = {}
    for name in names:
        folded = str(name).casefold()
        if folded in seen and folded:
            hint = (
                f"It meets {seen[folded]!r}: SQL does not tell upper from lower case. Rename one."
            )
            raise InvalidInput("column name", name, "different from every other", hint)
        seen[folded] = name


def check_names(names: Sequence[object]) -> tuple[str, ...]:
    """The names, if every one of them can be written in a question and means one column."""
    check_twins(names)
    checked = tuple(_name(name, position) for position, name in enumerate(names))
    if not 0 < len(checked) <= MOST_COLUMNS:
        hint = "Keep fewer with columns=[…]." if checked else ""
        allowed = f"1 to {MOST_COLUMNS:,}"
        raise InvalidInput("number of columns", len(checked), allowed, hint)
    return checked


def _name(name: object, position: int) -> str:
    where = f"name of column {position + 1}"
    if not isinstance(name, str):
        hint = "Rename it, in pandas by df.columns = df.columns.astype(str)."
        raise InvalidInput(where, name, "text", hint)
    if not name.strip():
        raise InvalidInput(where, name, "not empty", "Name it, or leave it out with columns=[…].")
    if name.startswith("__"):
        hint = "Names that start so are the holdout's own. Rename the column."
        raise InvalidInput(where, name, "free of leading underscores, two or more", hint)
    if not name.isprintable():
        hint = "Rename the column."
        raise InvalidInput(where, name, "printable characters only", hint)
    return name


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return shown if len(names) <= 12 else f"{shown}, … ({len(names)} columns)"


# The policy of values: every type is supported or refused by name, and how it is stored. Data in
# memory and Parquet files have Arrow types, which are judged first (a Parquet reader without them
# would take a duration for a number); what DuckDB then reads has a type of its own, which decides
# how the value is written. A CSV file has DuckDB types only.

LARGEST_INTEGER = 2**53  # up to here a double holds every integer
_LONGEST_DECIMAL = 38
_SHORT_DECIMAL = 15  # digits that survive a plain division by a power of ten

_NESTED = "store one number or text in each row, in columns of their own"
_MOMENT = "store the hours, minutes or seconds as a number"
_LENGTH = "store its length as a number, in days or seconds"
_BYTES = "store it as text, or leave the column out with columns=[…]"
_MISSING = "all its values are missing and nothing says of what type: leave it out with columns=[…]"
_EXTENSIONS = ("arrow.uuid", "arrow.json")
_PLAIN = "convert it to numbers, text, booleans, dates or timestamps first"


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def refused(name: str, what: str, remedy: str) -> InvalidInput:
    """The refusal of a column, which says what it holds and what to do."""
    allowed = "of numbers, booleans, text, dates or timestamps"
    hint = f"{what[:1].upper()}{what[1:]} is not supported: {remedy}."
    return InvalidInput(f"column {name!r}", what, allowed, hint)


def refuse_arrow(name: str, arrow_type: Any, *, unit: bool = False) -> None:
    """Raise if an Arrow type cannot be kept; as an id of units every plain type can be."""
    import pyarrow as pa

    t = pa.types
    packed = t.is_dictionary(arrow_type) or t.is_run_end_encoded(arrow_type)
    plain = arrow_type.value_type if packed else arrow_type
    if t.is_null(plain):
        raise refused(name, "null", _MISSING)
    if t.is_nested(plain):
        raise refused(name, f"nested ({arrow_type})", _NESTED)
    if isinstance(plain, pa.BaseExtensionType) and plain.extension_name not in _EXTENSIONS:
        raise refused(name, f"the extension type {plain}", _PLAIN)
    if t.is_decimal(plain) and plain.precision > _LONGEST_DECIMAL:
        raise refused(name, f"a decimal of more than 38 digits ({plain})", "store it as a float")
    if t.is_duration(plain) or t.is_interval(plain):
        raise refused(name, f"a duration ({arrow_type})", _LENGTH)
    if unit:
        return
    if t.is_time(plain):
        raise refused(name, f"a time of day ({arrow_type})", _MOMENT)
    tests = (t.is_binary, t.is_large_binary, t.is_fixed_size_binary, t.is_binary_view)
    if any(test(plain) for test in tests):
        raise refused(name, f"binary ({arrow_type})", _BYTES)


_INTEGERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}
_FLOATS = {"FLOAT", "DOUBLE"}
_TEXTS = {"VARCHAR", "UUID", "JSON"}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*\d+\)")
_OTHERS = (  # (pattern, what it is called, what to do)
    (re.compile(r'"?NULL"?'), "null", _MISSING),
    (re.compile(r"TIME\b.*"), "a time of day", _MOMENT),
    (re.compile(r"INTERVAL"), "a duration", _LENGTH),
    (re.compile(r"BLOB|BIT"), "binary", _BYTES),
    (re.compile(r".*\]|(STRUCT|MAP|UNION|VARIANT).*"), "nested", _NESTED),
)
_AS_ID = ("a time of day", "binary")


def kind_of(name: str, duckdb_type: str, *, unit: bool = False) -> str | None:
    """The kind of a column of this type; None for a type that only an id of units may have."""
    kinds = {
        **dict.fromkeys(_INTEGERS | _FLOATS, "number"),
        **dict.fromkeys(_TEXTS, "text"),
        **dict.fromkeys(_TIMESTAMPS | _ZONED, "timestamp"),
        "BOOLEAN": "boolean",
        "DATE": "date",
    }
    if duckdb_type in kinds:
        return kinds[duckdb_type]
    if _DECIMAL.fullmatch(duckdb_type):
        return "number"
    if duckdb_type.startswith("ENUM"):
        return "text"
    for pattern, what, remedy in _OTHERS:
        if pattern.fullmatch(duckdb_type):
            if unit and what in _AS_ID:
                return None
            raise refused(name, f"{what} ({duckdb_type})", remedy)
    raise refused(name, f"the type {duckdb_type}", _PLAIN)


@dataclass(frozen=True)
class Field:
    """A column as the input has it, and the SQL of what becomes of its values.

    `stored` is NULL where the value cannot be kept; if `may_lose`, that is a missing value (NaN),
    else an error, which `lost` describes.
    """

    name: str
    duckdb_type: str
    kind: str | None

    @property
    def is_integer(self) -> bool:
        """Whether the values are whole numbers by type."""
        return self.duckdb_type in _INTEGERS

    @property
    def stored(self) -> str:
        """The value as it is written to disk."""
        x, kind = quoted(self.name), self.kind
        if self.is_integer:
            inside = f"{x} BETWEEN -{LARGEST_INTEGER} AND {LARGEST_INTEGER}"
            return f"CASE WHEN {inside} THEN TRY_CAST({x} AS BIGINT) END"
        if self.duckdb_type in _FLOATS:
            return f"CASE WHEN NOT isnan({x}) THEN CAST({x} AS DOUBLE) END"
        digits = _DECIMAL.fullmatch(self.duckdb_type)
        if digits is not None:
            # A division of more digits rounds twice; the text is read with one rounding.
            plain = int(digits[1]) <= _SHORT_DECIMAL
            return f"CAST({x} AS DOUBLE)" if plain else f"CAST(CAST({x} AS VARCHAR) AS DOUBLE)"
        if kind == "date":
            return f"CASE WHEN {x} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {x} END"
        if kind == "timestamp":
            zoned = self.duckdb_type in _ZONED
            utc = f"timezone('UTC', TRY_CAST({x} AS TIMESTAMPTZ))" if zoned else x
            moment = f"TRY_CAST({utc} AS TIMESTAMP)"
            first, last = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
            return f"CASE WHEN {moment} BETWEEN {first} AND {last} THEN {moment} END"
        return f"CAST({x} AS VARCHAR)" if kind == "text" else x

    @property
    def may_lose(self) -> bool:
        """Whether a value that is not kept is only a missing one."""
        return self.duckdb_type in _FLOATS

    def lost(self, count: int) -> InvalidInput:
        """The refusal of a column with values that cannot be kept."""
        if self.kind == "number":
            allowed = "of integers from −2^53 to 2^53, which every program can compare exactly"
            hint = "Store it as text if it names something, else in larger units or as a float."
            what = "integers beyond ±2^53"
        else:
            allowed = "of the years 1 to 9999"
            hint = "Replace infinite and far dates by a missing value."
            what = f"{self.kind}s outside of these years"
        return InvalidInput(f"column {self.name!r}", f"{count:,} {what}", allowed, hint)

    @property
    def identity(self) -> str:
        """The value of an id as a text that no other value has; NULL for none."""
        x = quoted(self.name)
        if self.duckdb_type in _FLOATS:
            return f"CASE WHEN NOT isnan({x}) THEN CAST(CAST({x} AS DOUBLE) + 0.0 AS VARCHAR) END"
        return f"hex({x})" if self.duckdb_type == "BLOB" else f"CAST({x} AS VARCHAR)"

    @property
    def canonical(self) -> str:
        """The value as the fingerprint reads it: the same however the number or text is stored."""
        return f"coalesce({self._canonical()}, 'n')"

    def _canonical(self) -> str:
        x = self.stored
        if self.kind == "number":
            # All 64 bits, no decimals to round; + 0.0 makes one zero of two.
            bits = f"CAST(CAST(CAST({x} AS DOUBLE) + 0.0 AS BIT) AS BIGINT)"
            number = f"CAST({bits} AS VARCHAR)"
            # Only an id may be an integer that no double holds.
            return f"coalesce({number}, 'i' || {self.identity})" if self.is_integer else number
        if self.kind == "boolean":
            return f"'b' || CAST(CAST({x} AS INTEGER) AS VARCHAR)"
        if self.kind in ("date", "timestamp"):  # a date is the midnight that it begins with
            return f"'m' || CAST(epoch_us({x}) AS VARCHAR)"
        text = x if self.kind == "text" else self.identity
        return f"'t' || CAST(strlen({text}) AS VARCHAR) || ':' || {text}"


_NUMPY = {"double": "float64", "float": "float32", "int32": "int32", "int64": "int64"}


def plain_array(column: Any) -> NDArray[Any]:
    """An Arrow column as an array, as its `to_numpy` gives it; missing doubles are NaN.

    Plain ones are taken from their buffers: `to_numpy` loads pandas, which takes longer than most
    questions.
    """
    whole = column.combine_chunks() if hasattr(column, "num_chunks") else column
    kind, size = str(whole.type), len(whole)
    if size and kind in ("string", "large_string"):
        coded = whole.dictionary_encode()
        words = np.array([*coded.dictionary.to_pylist(), None], object)
        found: NDArray[Any] = words[_plain(coded.indices, len(words) - 1)]
        return found
    known = kind in _NUMPY or kind == "bool"
    if not known or not size or (whole.null_count and kind != "double"):
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    return _plain(whole, np.nan)


def _plain(whole: Any, missing: float) -> NDArray[Any]:
    """Numbers or booleans from their buffers."""
    kind, size = str(whole.type), len(whole)
    valid, data = whole.buffers()
    if kind == "bool":
        return _bits(data, whole.offset, size)
    array = np.frombuffer(data, _NUMPY[kind])[whole.offset : whole.offset + size]
    if not whole.null_count:
        return array
    return np.where(_bits(valid, whole.offset, size), array, missing)


def _bits(data: Any, first: int, count: int) -> NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=first + count, bitorder="little")
    return bits[first:].astype(np.bool_)
