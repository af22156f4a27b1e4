"""One look through the whole input before anything is written: counts, limits, fingerprint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.engines.store.fingerprint import fingerprint, row_hash
from holdfast.engines.store.session import Progress, Session
from holdfast.engines.store.values import Field, quoted
from holdfast.errors import InvalidInput

__all__ = ["Survey", "survey"]

_LOW = 2**64 - 1


@dataclass(frozen=True)
class Survey:
    """What is known of an input once all of it was read."""

    rows: int
    units: int
    fingerprint: str


def survey(
    session: Session,
    table: str,
    fields: Sequence[Field],
    unit: Field | None,
    progress: Progress,
) -> Survey:
    """Read all rows once (twice the id of units), and refuse what cannot be kept, by its name."""
    everything = [*fields, *([unit] if unit else [])]
    strict = [each for each in fields if not each.may_lose]
    lost = [f"count({quoted(each.name)}) - count({each.stored})" for each in strict]
    missing = f"count(*) - count({unit.identity})" if unit else "0"
    # The hash is a column of a subquery: written twice, it would be computed twice.
    hashed = f"SELECT *, {row_hash(everything)} AS __hash FROM {table}"
    sums = f"sum(CAST(__hash & {_LOW} AS UBIGINT)), sum(CAST(__hash >> 64 AS UBIGINT))"
    select = ", ".join(["count(*)", missing, sums, *lost])
    row = session.row(f"SELECT {select} FROM ({hashed})", "reading", progress)
    rows, no_id, low, high = row[:4]
    if not rows:
        raise InvalidInput("data", "0 rows", "a table with at least one row")
    for each, count in zip(strict, row[4:], strict=True):
        if count:
            raise each.lost(count)
    if unit and no_id:
        hint = "Leave these rows out, or give each an id of its own."
        allowed = "present in every row"
        raise InvalidInput(f"unit id {unit.name!r}", f"{no_id:,} missing", allowed, hint)
    names = [each.name for each in everything]
    units = _units(session, table, unit, progress) if unit else rows
    return Survey(rows, units, fingerprint(names, rows, int(low), int(high)))


def _units(session: Session, table: str, unit: Field, progress: Progress) -> int:
    # A table of distinct ids spills to disk; `count(DISTINCT …)` need not.
    ids = f"SELECT DISTINCT {unit.identity} FROM {table}"
    return int(session.row(f"SELECT count(*) FROM ({ids})", "counting units", progress)[0])
