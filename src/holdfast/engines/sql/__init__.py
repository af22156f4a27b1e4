"""The SQL engine: questions are parsed, checked, written anew and run in a locked DuckDB."""

from __future__ import annotations

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import (
    SqlEstimator,
    SqlTerm,
    sql_condition,
    sql_estimator,
    sql_term,
)
from holdfast.engines.sql.reading import Comparison, can_lack_value, comparisons
from holdfast.engines.sql.refusals import meant

__all__ = [
    "Comparison",
    "SqlEngine",
    "SqlEstimator",
    "SqlTerm",
    "can_lack_value",
    "comparisons",
    "meant",
    "sql_condition",
    "sql_estimator",
    "sql_term",
]
