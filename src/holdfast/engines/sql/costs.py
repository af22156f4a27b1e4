"""What a question in SQL takes at worst, from its checked tree and the size of the table alone.

How long DuckDB takes depends on the rows: a branch of CASE is evaluated where it is taken, FILTER
and coalesce skip rows, `%` and `sin` take longer on large numbers. Whoever can see the time would
learn from it. So a server waits for as long as the question could take on the worst rows:

    seconds = 2 · (rows · Σ weights + 50 µs · nodes + 100 ns · blocks) · slowness + 1 ms

The sum goes over all nodes of the tree, each as often as the SQL that is made of it repeats it,
with every branch taken by every row. Weights are nanoseconds a row, in one thread, measured once on
made-up columns, the largest of: ordinary numbers, 1e308, subnormal ones, quotients of 1e608; texts
of 64 characters (`python -m tools.costs` measures them again). `slowness` is how much slower than
there the machine is.
"""

from __future__ import annotations

import math
import string
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from holdfast.engines.process import Worker
from holdfast.engines.sql.estimator import SqlEstimator, SqlTerm
from holdfast.engines.sql.language import Call, Constant, Node, Reference, walk
from holdfast.engines.sql.parser import reread

if TYPE_CHECKING:
    from holdfast.store.blocks import Manifest

__all__ = [
    "AGGREGATE",
    "AGGREGATE_WEIGHTS",
    "USUAL",
    "WEIGHTS",
    "seconds_at_worst",
    "slowness",
    "start",
    "weight_of",
]

USUAL = 20.0  # what most functions stay below, with room
WEIGHTS = {
    "%": 6_100.0,  # by long division, a bit at a time
    "mod": 6_100.0,
    "trim": 290.0,
    "cos": 90.0,
    "tan": 75.0,
    "lower": 75.0,
    "upper": 65.0,
    "atan2": 60.0,
    "contains": 60.0,
    "sin": 55.0,
    "cbrt": 40.0,
    "round": 40.0,
    "log": 35.0,
    "<": 35.0,
    "starts_with": 35.0,
}
"""Nanoseconds a row of the functions that take longer than usual."""
AGGREGATE_WEIGHTS = {"mad": 60.0, "regr_r2": 50.0}
AGGREGATE = 40.0  # of all others
_DISTINCT = 60.0
_COLUMN = 10.0  # that is read
_ROW = 20.0  # grouped, and cut to a range
_UNIT = 200.0  # a row of a unit of several, which are averaged first
_PREDICTION = 500.0  # a row that is scored
_NODE, _BLOCK, _LEAST = 50e-6, 100e-9, 1e-3  # seconds
_MARGIN = 2.0
_PATIENCE = 60.0  # seconds, for a measurement
_SLOWEST = 10.0  # beyond, the machine was busy with something else
_REFERENCE = 63.0  # nanoseconds a row of what `slowness` runs, where the weights were measured


def weight_of(node: Node) -> float:
    """Nanoseconds a row, with every branch taken.

    >>> from holdfast.engines.sql.estimator import sql_estimator
    >>> from holdfast.store.table import Column, Schema
    >>> schema = Schema((Column("x", "number"),))
    >>> weight_of(sql_estimator("avg(sin(x))", schema).tree)
    105.0
    """
    if isinstance(node, Constant):
        return 0.0
    if isinstance(node, Reference):
        return _COLUMN
    arguments = [weight_of(each) for each in node.arguments]
    if isinstance(node, Call):
        return WEIGHTS.get(node.function.name, USUAL) + _written(node.function.sql, arguments, 0.0)
    own = AGGREGATE_WEIGHTS.get(node.function.name, AGGREGATE) + _DISTINCT * node.distinct
    condition = 0.0 if node.filter is None else weight_of(node.filter)
    return own + _written(node.function.sql, arguments, condition)


def _written(template: str, arguments: list[float], condition: float) -> float:
    """What the arguments weigh, each as often as the SQL repeats it."""
    total = 0.0
    for _, name, _, _ in string.Formatter().parse(template):
        if name is None:
            continue
        if name.isdigit():
            total += arguments[int(name)]
        elif name == "f":
            total += condition
        else:  # all of them, or all but the first
            total += sum(arguments[1 if name == "rest" else 0 :])
    return total


def seconds_at_worst(
    estimator: Any, where: Any, manifest: Manifest, rows: int, slowness: float = 1.0
) -> float | None:
    """How long an estimator or a term takes on all blocks; None of what is not Holdfast's own."""
    if isinstance(estimator, SqlEstimator):
        trees = [estimator.tree]
        if estimator.where is not None:
            condition = _condition(estimator.where, manifest.schema)
            if condition is None:
                return math.inf  # its one text is too long to be read again
            trees.append(condition)
    elif isinstance(estimator, SqlTerm):  # summed, and what a filter keeps is counted
        trees = [estimator.tree, *([where.tree] * 2 if isinstance(where, SqlTerm) else [])]
    elif getattr(estimator, "own", False):
        return _MARGIN * slowness * 1e-9 * rows * _PREDICTION + _LEAST
    else:
        return None
    weight = _ROW + (0.0 if manifest.one_row_units else _UNIT) + sum(map(weight_of, trees))
    nodes = sum(1 for tree in trees for _ in walk(tree))
    work = 1e-9 * rows * weight + _NODE * nodes + _BLOCK * manifest.blocks
    return _MARGIN * slowness * work + _LEAST


_condition = lru_cache(maxsize=256)(reread)


def slowness() -> float:
    """How many times as long this machine takes as the one of the weights; at least once.

    Measured with made-up rows, in a process of its own: nothing of a holdout is touched.
    """
    worker = Worker("holdfast.engines.sql.costs", environment={"OPENBLAS_NUM_THREADS": "1"})
    try:
        return min(max(1.0, float(worker.call(None, _PATIENCE)) / _REFERENCE), _SLOWEST)
    finally:
        worker.kill()


def start(_: object) -> Callable[[object], bytes]:
    """What that process does."""
    return lambda _: repr(_measured()).encode()


def _measured(rows: int = 200_000, turns: int = 9) -> float:
    """Nanoseconds a row, in one thread of DuckDB."""
    import duckdb

    sql = f"SELECT sum(sin(power(range + 1e0, 1.7e0))) FROM range({rows})"
    connection, times = duckdb.connect(":memory:", config={"threads": 1}), []
    for _ in range(turns):
        begin = time.perf_counter()
        connection.execute(sql).fetchall()
        times.append(time.perf_counter() - begin)
    return 1e9 * min(times) / rows
