"""One look through the whole input before anything is written: counts, limits, fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.store.duckdb import Progress, Session
from holdfast.store.table import Field, quoted

__all__ = [
    "MARK",
    "Sums",
    "Survey",
    "added_marks",
    "fingerprint",
    "row_hash",
    "row_mark",
    "row_text",
    "sums_of",
    "survey",
]


# A fingerprint of the data: what was asked once is not asked again under a new budget.
#
# It is a hash of the multiset of rows. Each row becomes a text: its values, in the order of the
# sorted column names, in a form that does not depend on how they are stored (`Field.canonical`).
# The MD5 numbers of these texts are added, so that the order of the rows does not matter; the two
# halves of 64 bits apart, in 128 bits, so that no sum overflows. Then
#
#     fingerprint = SHA-256 of (format, number of rows, both sums, sorted column names).
#
# Tables that differ in the order of rows or columns, in the width of integers and floats, or in
# the
# file format agree. A changed value, a row or column more or less, or a new name makes another.
# It is
# meant to find a mistake, not an adversary: whoever changes one value has another fingerprint.


_FORMAT = 1


def row_text(fields: Sequence[Field]) -> str:
    """SQL of the text of one row: a text has its length before it, so that no two rows agree."""
    ordered = sorted(fields, key=lambda each: each.name)
    return f"concat_ws(';', {', '.join(each.canonical for each in ordered)})"


def row_hash(fields: Sequence[Field]) -> str:
    """SQL of the 128-bit hash of one row."""
    return f"md5_number({row_text(fields)})"


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
class Sums:
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

    def __add__(self, other: Sums) -> Sums:
        lost = tuple(a + b for a, b in zip(self.lost, other.lost, strict=True))
        low, high = self.low + other.low, self.high + other.high
        marks = (self.marks + other.marks) & _LOW
        return Sums(self.rows + other.rows, self.no_id + other.no_id, low, high, marks, lost)

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


def survey(
    session: Session,
    table: str,
    fields: Sequence[Field],
    unit: Field | None,
    progress: Progress,
) -> Survey:
    """Read all rows once (twice the id of units), and refuse what cannot be kept, by its name."""
    sums = sums_of(session, table, fields, unit, progress)
    found = sums.fingerprint(fields, unit)
    units = _units(session, table, unit, progress) if unit else sums.rows
    return Survey(sums.rows, units, found, sums.marks)


def sums_of(
    session: Session,
    table: str,
    fields: Sequence[Field],
    unit: Field | None,
    progress: Progress,
) -> Sums:
    """Read all rows once."""
    everything = [*fields, *([unit] if unit else [])]
    lost = [f"count({quoted(each.name)}) - count({each.stored})" for each in _strict(fields)]
    missing = f"count(*) - count({unit.identity})" if unit else "0"
    # The hash is a column of a subquery: written twice, it would be computed twice.
    hashed = f"SELECT *, {row_hash(everything)} AS __hash FROM {table}"
    sums = f"sum(CAST(__hash & {_LOW} AS UBIGINT)), sum(CAST(__hash >> 64 AS UBIGINT))"
    marks = f"sum({_marked(everything)})"
    select = ", ".join(["count(*)", missing, sums, marks, *lost])
    row = session.row(f"SELECT {select} FROM ({hashed})", "reading", progress)
    rows, no_id, low, high, marked = (int(each or 0) for each in row[:5])
    return Sums(rows, no_id, low, high, marked & _LOW, tuple(row[5:]))


def _strict(fields: Sequence[Field]) -> list[Field]:
    return [each for each in fields if not each.may_lose]


def _units(session: Session, table: str, unit: Field, progress: Progress) -> int:
    # A table of distinct ids spills to disk; `count(DISTINCT …)` need not.
    ids = f"SELECT DISTINCT {unit.identity} FROM {table}"
    return int(session.row(f"SELECT count(*) FROM ({ids})", "counting units", progress)[0])
