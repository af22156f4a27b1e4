"""Queries: one value, or one sum, for every block of a range.

A filter is never a WHERE of the query, for a block of which it leaves nothing would vanish: it is a
column that the aggregates look at. So every block has its row in the result.

Several numbers of the same rows can be asked in one statement, and each has the bits that it has
alone. What DuckDB would do otherwise by the company is switched off, see `COMPANY`, or outwitted:
it adds up constants in a way of its own, but only if all that it adds up are constants. Which they
never are: the block's own number, taken as a smallest one, is among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.engines.sql.estimator import SqlEstimator, SqlTerm
from holdfast.engines.sql.generate import KEPT, double, quoted
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds

__all__ = ["BLOCKS_VIEW", "COMPANY", "Number", "statement", "sum_of", "value_of", "view"]

BLOCKS_VIEW = "blocks"
COMPANY = ("aggregate_function_rewriter", "aggregate_reuse")
"""DuckDB's optimizers that make an aggregate of others, as avg of sum and count beside it."""

# Dates outside these years would make some functions fail, on some values.
_VIEWS = {
    "number": "CAST({0} AS DOUBLE)",
    "boolean": "CAST({0} AS BOOLEAN)",
    "text": "CAST({0} AS VARCHAR)",
    "date": "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {0} END",
    "timestamp": (
        "CASE WHEN {0} BETWEEN TIMESTAMP '0001-01-01 00:00:00'"
        " AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN {0} END"
    ),
}


@dataclass(frozen=True)
class Number:
    """What is asked of every block: an aggregate, as SQL, and the rows that it is of."""

    aggregate: str
    rows: str = BLOCKS_VIEW
    integer: bool = False
    sociable: bool = True
    """Whether others may be asked in the same statement: what is distinct is grouped apart."""


def view(path: str, columns: Sequence[tuple[str, str]], *, kept: bool = False) -> str:
    """The statement that makes the file's columns a view, each of the type that it has here.

    With `kept` it is a table, in memory.
    """
    parts = [f"{_VIEWS[kind].format(quoted(name))} AS {quoted(name)}" for name, kind in columns]
    source = "'" + path.replace("'", "''") + "'"
    every = ", ".join(["__block", "__unit", *parts])
    what = "TABLE" if kept else "VIEW"
    return f"CREATE OR REPLACE {what} {BLOCKS_VIEW} AS SELECT {every} FROM read_parquet({source})"


def statement(numbers: Sequence[Number], where: str) -> str:
    """Of every block `id` the numbers `value0`, `value1`, …, which are all of the same rows."""
    rows = numbers[0].rows
    values = ", ".join(f"{each.aggregate} AS value{k}" for k, each in enumerate(numbers))
    return f"SELECT min(__block) AS id, {values} FROM {rows} {where} GROUP BY __block"


def value_of(estimator: SqlEstimator) -> Number:
    """The value of every block."""
    rows = BLOCKS_VIEW
    if estimator.filter is not None:
        rows = f"(SELECT *, {estimator.filter} AS {KEPT} FROM {BLOCKS_VIEW})"
    value = f"TRY_CAST({estimator.aggregate} AS DOUBLE)"
    return Number(value, rows, sociable=not estimator.distinct)


def sum_of(
    term: SqlTerm, where: SqlTerm | None, bounds: Bounds = UNIT, *, one_row_units: bool
) -> Number:
    """The sum of every block's units' terms, scaled to [0, 1], in parts of 2⁻¹⁶.

    A unit of several rows has the average of its rows' terms; NULL and NaN count as the lowest.
    """
    conditions = [each for each in (term.filter, where and where.sql) if each is not None]
    kept = " AND ".join(f"({each})" for each in conditions) or "TRUE"
    rows = (
        f"SELECT __block, __unit, {_scaled(term, bounds)} AS __term, {kept} AS {KEPT}"
        f" FROM {BLOCKS_VIEW}"
    )
    if not one_row_units:
        rows = (
            f"SELECT __block, avg(__term) FILTER (WHERE {KEPT}) AS __term,"
            f" bool_or({KEPT}) AS {KEPT} FROM ({rows}) GROUP BY __block, __unit"
        )
    parts = f"CAST(floor(__term * {WEIGHT_SCALE}e0 + 0.5e0) AS BIGINT)"
    total = f"coalesce(CAST(sum({parts}) FILTER (WHERE {KEPT}) AS BIGINT), 0)"
    return Number(total, f"({rows})", integer=True)


def _scaled(term: SqlTerm, bounds: Bounds) -> str:
    """The term as a number from 0 to 1 that is never NULL or NaN: see `protocols.source`."""
    if term.sql is None:
        return "1e0"
    if term.boolean and bounds == UNIT:
        return f"(CASE WHEN {term.sql} THEN 1e0 ELSE 0e0 END)"
    number = f"CAST({term.sql} AS DOUBLE)" if term.boolean else term.sql
    number = f"nullif({number}, CAST('nan' AS DOUBLE))"  # in DuckDB NaN equals NaN
    low, high, span = (double(end) for end in (*bounds, bounds[1] - bounds[0]))
    inside = f"least(greatest(coalesce({number}, {low}), {low}), {high})"
    return inside if bounds == UNIT else f"(({inside} - {low}) / {span})"
