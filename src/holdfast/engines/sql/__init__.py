"""The SQL engine: questions are parsed, checked, written anew and run in a locked DuckDB.

language     what may be written: one table of functions, and the checked tree
parser       text to tree, or a refusal that says why
bounds       intervals that values of expressions cannot leave
estimator    tree to SQL; what is known of its values
engine       SqlEngine: estimators on the blocks of a store
worker       the process that DuckDB runs in
"""

from __future__ import annotations

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import (
    Comparison,
    SqlEstimator,
    SqlTerm,
    can_lack_value,
    comparisons,
    sql_condition,
    sql_estimator,
    sql_term,
)
from holdfast.engines.sql.language import meant

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
