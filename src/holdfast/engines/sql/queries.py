"""Queries: one value, or one sum, for every block of a range.

A filter is never a WHERE of the query, for a block of which it leaves nothing would vanish: it is a
column that the aggregates look at. So every block has its row in the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engines.sql.estimator import SqlEstimator, SqlTerm
from holdfast.engines.sql.generate import KEPT, quoted
from holdfast.protocols.source import WEIGHT_SCALE

__all__ = ["BLOCKS_VIEW", "sums_query", "values_query", "view"]

BLOCKS_VIEW = "blocks"

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


def view(path: str, columns: Sequence[tuple[str, str]], *, kept: bool = False) -> str:
    """The statement that makes the file's columns a view, each of the type that it has here.

    With `kept` it is a table, in memory.
    """
    parts = [f"{_VIEWS[kind].format(quoted(name))} AS {quoted(name)}" for name, kind in columns]
    source = "'" + path.replace("'", "''") + "'"
    every = ", ".join(["__block", "__unit", *parts])
    what = "TABLE" if kept else "VIEW"
    return f"CREATE OR REPLACE {what} {BLOCKS_VIEW} AS SELECT {every} FROM read_parquet({source})"


def values_query(estimator: SqlEstimator) -> str:
    """Of every block `id` the `value`; the range of blocks is put for {where}."""
    source = BLOCKS_VIEW
    if estimator.filter is not None:
        source = f"(SELECT *, {estimator.filter} AS {KEPT} FROM {BLOCKS_VIEW})"
    value = f"TRY_CAST({estimator.aggregate} AS DOUBLE)"
    return _ready(f"SELECT __block AS id, {value} AS value FROM {source}", "GROUP BY __block")


def sums_query(term: SqlTerm, where: SqlTerm | None, *, one_row_units: bool) -> str:
    """Of every block `id` the sum `value` of its units' terms, in parts of 2⁻¹⁶.

    A unit of several rows has the average of its rows' terms; NULL and NaN count as 0.
    """
    conditions = [each for each in (term.filter, where and where.sql) if each is not None]
    kept = " AND ".join(f"({each})" for each in conditions) or "TRUE"
    rows = (
        f"SELECT __block, __unit, {_clipped(term)} AS __term, {kept} AS {KEPT} FROM {BLOCKS_VIEW}"
    )
    if not one_row_units:
        rows = (
            f"SELECT __block, avg(__term) FILTER (WHERE {KEPT}) AS __term,"
            f" bool_or({KEPT}) AS {KEPT} FROM ({rows}) GROUP BY __block, __unit"
        )
    parts = f"CAST(floor(__term * {WEIGHT_SCALE}e0 + 0.5e0) AS BIGINT)"
    total = f"coalesce(CAST(sum({parts}) FILTER (WHERE {KEPT}) AS BIGINT), 0)"
    return _ready(f"SELECT __block AS id, {total} AS value FROM ({rows})", "GROUP BY __block")


def _clipped(term: SqlTerm) -> str:
    """The term as a number from 0 to 1 that is never NULL or NaN."""
    if term.sql is None:
        return "1e0"
    if term.boolean:
        return f"(CASE WHEN {term.sql} THEN 1e0 ELSE 0e0 END)"
    number = f"nullif({term.sql}, CAST('nan' AS DOUBLE))"  # in DuckDB NaN equals NaN
    return f"least(greatest(coalesce({number}, 0e0), 0e0), 1e0)"


def _ready(select: str, group: str) -> str:
    """With braces doubled that are not ours: names and texts may contain some."""
    return select.replace("{", "{{").replace("}", "}}") + " {where} " + group
