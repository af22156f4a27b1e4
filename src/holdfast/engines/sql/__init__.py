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

__all__ = ["SqlEngine", "SqlEstimator", "SqlTerm", "sql_condition", "sql_estimator", "sql_term"]
