"""Estimators and terms in SQL: a checked question, its one text, and the SQL that runs for it."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from holdfast.engines.sql.language import (
    Aggregate,
    Call,
    Constant,
    Node,
    Reference,
    ValueRange,
    hull,
    walk,
)
from holdfast.engines.sql.parser import SchemaLike, keywords, read, reread
from holdfast.engines.sql.worker import BLOCKS_VIEW, Number
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds
from holdfast.store.table import quoted

__all__ = [
    "Comparison",
    "SqlEstimator",
    "SqlTerm",
    "can_lack_value",
    "comparisons",
    "sql_condition",
    "sql_estimator",
    "sql_term",
    "sum_of",
    "to_text",
    "value_of",
]

Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class SqlEstimator:
    """One number for each block: an aggregate of its rows, or of those for which `where` is true.

    Two estimators are equal if their texts are: `text` and `where` identify the question.
    """

    text: str
    where: str | None
    aggregate: str = field(compare=False, repr=False)
    filter: str | None = field(compare=False, repr=False)
    columns: tuple[str, ...] = field(compare=False)
    tree: Node = field(compare=False, repr=False)
    distinct: bool = field(compare=False, repr=False)  # whether it counts distinct values

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to evaluate it: all but the tree."""
        return {**vars(self), "tree": None}

    def range(self, ranges: Ranges, units: int, one_row_units: bool) -> tuple[float, float] | None:
        """Bounds of the value on one block that do not depend on the data, or None.

        `ranges` are the declared ranges of columns. It serves to lay a grid where none is given: a
        hint, never a risk to the promise, for values outside a grid are projected to its ends.
        """
        found = _Bounds(units if one_row_units else math.inf, ranges).of(self.tree)
        if not found.finite or found.low >= found.high:
            return None
        return float(found.low), float(found.high)

    def known_value(self, units: int, one_row_units: bool) -> float | None:
        """The value if every block has the same one, whatever the data: count(*) is the block's."""
        if self.where is not None or not one_row_units:
            return None
        found = _Bounds(units, exact=True).of(self.tree)
        sure = found.finite and found.low == found.high and not (found.null or found.nan)
        return float(found.low) if sure else None

    def bounded_mean(self, one_row_units: bool) -> tuple[float, float] | None:
        """[lo, hi] if it is the mean over all units of terms that cannot leave [lo, hi], or None.

        A mean has an error bar of its own (Chernoff's bound on t independent terms), which holds
        only if every unit contributes exactly one term and every term is within the range. So:

        - the value is avg(e) itself, without FILTER: under a filter the number of terms is random;
        - e is never NULL, for avg leaves NULL out: again a random number of terms;
        - e is never NaN, and within [lo, hi] by its form alone: truth values that are not NULL, as
          coalesce(x > 60, FALSE) or x IS NULL; least(greatest(coalesce(x, 0), 0), 1); CASE with
          ELSE. A declared range does not count, for nothing makes a stored value obey it.

        The average itself is computed in floating point, and may be off by some units in the last
        place.
        """
        tree = self.tree
        if self.where is not None or not one_row_units:
            return None
        if not isinstance(tree, Aggregate) or tree.function.name != "avg" or tree.filter:
            return None
        term = _Bounds(math.inf).of(tree.arguments[0])
        if term.null or term.nan or not term.finite or term.low >= term.high:
            return None
        return term.low, term.high


@dataclass(frozen=True)
class SqlTerm:
    """A function of one row for means, or a condition: true or false, or a number."""

    text: str
    sql: str = field(compare=False, repr=False)
    columns: tuple[str, ...] = field(compare=False)
    boolean: bool = field(compare=False, repr=False)
    tree: Node = field(compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to evaluate it: all but the tree."""
        return {**vars(self), "tree": None}

    def range(self, ranges: Ranges) -> tuple[float, float]:
        """Between which numbers it lies on every row whose columns are in declared ranges.

        NULL and NaN, which are none, may come too. Without declared ranges this holds whatever the
        data are; what uses one says so in its promise.
        """
        found = _Bounds(math.inf, ranges).of(self.tree)
        return float(found.low), float(found.high)


def sql_estimator(
    expression: object, schema: SchemaLike, where: object | None = None
) -> SqlEstimator:
    """The estimator of an SQL aggregate; refused with the reason if it is not allowed.

    >>> from holdfast.store.table import Column, Schema
    >>> schema = Schema((Column("arr_delay", "number"), Column("carrier", "text")))
    >>> estimator = sql_estimator("MEAN( Arr_Delay )", schema, where="carrier in ('UA')")
    >>> estimator.text, estimator.where
    ('avg(arr_delay)', "carrier IN ('UA')")
    >>> sql_estimator("avg(arr_dely)", schema)
    Traceback (most recent call last):
    holdfast.errors.InvalidInput: question must be an SQL aggregate of the columns, as avg(x) or
    sum(x * w) / sum(w); got 'avg(arr_dely)'. There is no column 'arr_dely'. Did you mean
    'arr_delay'?
    """
    condition = None if where is None else read("where", where, schema)
    tree, columns, distinct = read("question", expression, schema)
    return SqlEstimator(
        text=to_text(tree),
        where=None if condition is None else to_text(condition.tree),
        aggregate=_to_sql(tree, kept=condition is not None),
        filter=None if condition is None else _to_sql(condition.tree),
        columns=tuple(sorted(columns.union(condition.columns if condition else ()))),
        tree=tree,
        distinct=distinct,
    )


def sql_term(expression: object, schema: SchemaLike, what: str = "term") -> SqlTerm:
    """The term of an SQL expression of one row."""
    tree, columns, _ = read(what, expression, schema)
    names = tuple(sorted(columns))
    return SqlTerm(to_text(tree), _to_sql(tree), names, tree.kind == "boolean", tree)


def sql_condition(where: object, schema: SchemaLike) -> SqlTerm:
    """A condition on one row, as a term that is true or false."""
    return sql_term(where, schema, "where")


@dataclass(frozen=True)
class _Bounds:
    """Intervals of expressions, on blocks of at most `rows` rows with columns in their ranges."""

    rows: float
    declared: Ranges = field(default_factory=dict)
    exact: bool = False  # every block has just so many rows, and all of them count

    def of(self, node: Node) -> ValueRange:
        """The interval of an expression, of a row or of aggregates."""
        if isinstance(node, Constant):
            return _constant_interval(node)
        if isinstance(node, Reference):
            if node.kind == "boolean":
                return ValueRange(0.0, 1.0, nan=False)
            ends = self.declared.get(node.name, (-math.inf, math.inf))
            return ValueRange(*ends, nan=False)  # a store has NULL for NaN
        arguments = list(map(self.of, node.arguments))
        if isinstance(node, Call):
            ratio = self._ratio(node) if node.function.name == "/" else None
            return ratio or node.function.bound(arguments)
        whole = node.function.name == "count" and not (node.distinct or node.filter)
        if self.exact and whole and not any(each.null for each in arguments):
            return ValueRange(self.rows, self.rows, null=False, nan=False)
        return node.function.bound(arguments, self.rows)

    def _ratio(self, node: Call) -> ValueRange | None:
        """Quotients of aggregates over the same rows that are means: what they average bounds them.

        sum(e · w) / sum(w) with w ≥ 0, sum(e) / count(*), and count(e) / count(*).
        """
        above, below = node.arguments
        if not isinstance(above, Aggregate) or not isinstance(below, Aggregate):
            return None
        if below.filter is not None and below.filter != above.filter:
            return None
        if below.function.name == "count" and not below.arguments:
            if above.function.name in ("count", "count_if"):
                return ValueRange(0.0, 1.0)
            if above.function.name == "sum":
                return hull([self.of(above.arguments[0]), _ZERO])
        elif above.function.name == below.function.name == "sum" and above.filter == below.filter:
            return self._weighted(above.arguments[0], below.arguments[0])
        return None

    def _weighted(self, product: Node, weight: Node) -> ValueRange | None:
        if not isinstance(product, Call) or product.function.name != "*":
            return None
        if weight not in product.arguments or self.of(weight).low < 0:
            return None
        left, right = product.arguments
        # A weight whose value is NULL still counts in sum(w), with a term of 0: hence 0 too.
        value = self.of(left if right == weight else right)
        return hull([value, _ZERO]) if value.null else value


_ZERO = ValueRange(0.0, 0.0, null=False, nan=False)


def _constant_interval(node: Constant) -> ValueRange:
    value = node.value
    if value is None:  # no number at all: it bounds nothing away
        return ValueRange(math.inf, -math.inf, null=True, nan=False)
    if isinstance(value, float | bool):
        return ValueRange(float(value), float(value), null=False, nan=False)
    return ValueRange(null=False, nan=False)


# Writing: the checked tree as the text that names the question, and as the SQL that runs.
#
# Two spellings of one question have one text, which reads as the same question again. The SQL is
# written for DuckDB with every type settled: numbers are DOUBLE, columns are quoted.

_KEPT = "__kept"  # the column that says whether `where` holds of a row
_T = TypeVar("_T")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SQL_TYPES = {"date": "DATE", "timestamp": "TIMESTAMP"}


def _double(value: float) -> str:
    """A number as SQL that is a DOUBLE, whatever stands beside it."""
    digits = repr(value)
    return f"({digits})" if "e" in digits else f"({digits}e0)"


def to_text(node: Node) -> str:
    """The one text of all spellings of a question."""
    if isinstance(node, Constant):
        number = isinstance(node.value, float)
        return repr(node.value).removesuffix(".0") if number else _constant_sql(node)
    if isinstance(node, Reference):
        plain = _PLAIN_NAME.fullmatch(node.name) and node.name.upper() not in keywords()
        return node.name if plain else quoted(node.name)
    if isinstance(node, Aggregate):
        inside = ", ".join(map(to_text, node.arguments)) or "*"
        distinct = "DISTINCT " if node.distinct else ""
        where = f" FILTER (WHERE {to_text(node.filter)})" if node.filter is not None else ""
        return f"{node.function.name}({distinct}{inside}){where}"
    if node.function.text == "{0}":  # a type that is implied is not written
        return to_text(node.arguments[0])
    if not node.function.text:
        return f"{node.function.name}({', '.join(map(to_text, node.arguments))})"
    # The parts of an operator are bracketed if they are operators too; those of CASE need not be.
    write = to_text if node.function.name == "case" else _bracketed
    return _filled(node.function.text, node.arguments, write)


def _bracketed(node: Node) -> str:
    while isinstance(node, Call) and node.function.text == "{0}":
        (node,) = node.arguments
    operator = isinstance(node, Call) and node.function.text and node.function.name != "case"
    return f"({to_text(node)})" if operator else to_text(node)


def _to_sql(node: Node, *, kept: bool = False) -> str:
    """The SQL of an expression. With `kept`, aggregates are over the rows where `_KEPT` is true."""
    if isinstance(node, Constant):
        return _constant_sql(node)
    if isinstance(node, Reference):
        return quoted(node.name)
    arguments = [_to_sql(each, kept=kept) for each in node.arguments]
    if isinstance(node, Call):
        return _filled(node.function.sql, arguments, str)
    own = [] if node.filter is None else [_to_sql(node.filter)]
    conditions = ([_KEPT] if kept else []) + own
    where = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
    everything = ", ".join(arguments)
    if node.distinct:
        everything, arguments = f"DISTINCT {everything}", [f"DISTINCT {arguments[0]}"]
    return node.function.sql.format(*arguments, all=everything, f=where)


def _filled(template: str, arguments: Sequence[_T], write: Callable[[_T], str]) -> str:
    parts = [write(each) for each in arguments]
    fields = {
        "all": ", ".join(parts),
        "rest": ", ".join(parts[1:]),
        "and": " AND ".join(parts),
        "or": " OR ".join(parts),
    }
    if template.strip("()") == "{case}":
        pairs = zip(parts[:-1:2], parts[1:-1:2], strict=True)
        branches = " ".join(f"WHEN {condition} THEN {result}" for condition, result in pairs)
        default = arguments[-1]
        null = isinstance(default, Constant) and default.value is None
        fields["case"] = f"CASE {branches} END" if null else f"CASE {branches} ELSE {parts[-1]} END"
    return template.format(*parts, **fields)


def _constant_sql(node: Constant) -> str:
    value = node.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, datetime.date | datetime.datetime):
        separated = value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else str(value)
        return f"{_SQL_TYPES[node.kind]} '{separated}'"
    return "'" + value.replace("'", "''") + "'"


# What is asked of every block: one value, one sum, or the terms of its units.
#
# A filter is never a WHERE of the query, for a block of which it leaves nothing would vanish: it is
# a column that the aggregates look at. So every block has its row in the result.


def value_of(estimator: SqlEstimator) -> Number:
    """The value of every block."""
    rows = BLOCKS_VIEW
    if estimator.filter is not None:
        rows = f"(SELECT *, {estimator.filter} AS {_KEPT} FROM {BLOCKS_VIEW})"
    value = f"TRY_CAST({estimator.aggregate} AS DOUBLE)"
    return Number(value, rows, alone=estimator.distinct)


_PARTS = f"CAST(floor(__term * {WEIGHT_SCALE}e0 + 0.5e0) AS BIGINT)"
_SUM = f"coalesce(CAST(sum({_PARTS}) FILTER (WHERE {_KEPT}) AS BIGINT), 0)"
# No CASE: what fails on a row that is left out fails here as it does in a sum.
_EACH = f"coalesce({_PARTS}, 0) * CAST(coalesce({_KEPT}, FALSE) AS BIGINT)"


def sum_of(
    term: SqlTerm | None,
    where: SqlTerm | None,
    bounds: Bounds = UNIT,
    *,
    one_row_units: bool,
    units: int | None = None,
) -> Number:
    """The sum of every block's units' terms, scaled to [0, 1], in parts of 2⁻¹⁶.

    A unit of several rows has the average of its rows' terms; NULL and NaN count as the lowest.
    With `units`, of which a block has so many, what is added up, of each of them.
    """
    # A row for each unit: its term, and whether any of it is kept.
    kept = "TRUE" if where is None else f"({where.sql})"
    rows = (
        f"SELECT __block, __unit, {_scaled(term, bounds)} AS __term, {kept} AS {_KEPT}"
        f" FROM {BLOCKS_VIEW}"
    )
    if not one_row_units:
        rows = (
            f"SELECT __block, __unit, avg(__term) FILTER (WHERE {_KEPT}) AS __term,"
            f" bool_or({_KEPT}) AS {_KEPT} FROM ({rows}) GROUP BY __block, __unit"
        )
    return Number(_SUM if units is None else _EACH, f"({rows})", integer=True, units=units)


def _scaled(term: SqlTerm | None, bounds: Bounds) -> str:
    """The term as a number from 0 to 1 that is never NULL or NaN: see `protocols.source`."""
    if term is None:
        return "1e0"
    if term.boolean and bounds == UNIT:
        return f"(CASE WHEN {term.sql} THEN 1e0 ELSE 0e0 END)"
    number = f"CAST({term.sql} AS DOUBLE)" if term.boolean else term.sql
    number = f"nullif({number}, CAST('nan' AS DOUBLE))"  # in DuckDB NaN equals NaN
    low, high, span = (_double(end) for end in (*bounds, bounds[1] - bounds[0]))
    inside = f"least(greatest(coalesce({number}, {low}), {low}), {high})"
    return inside if bounds == UNIT else f"(({inside} - {low}) / {span})"


# Reading a question again, from the one text that it has: what it compares, what it lacks. Both
# depend on the text and the names and types of the columns alone.

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EQUAL = ("=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


@dataclass(frozen=True)
class Comparison:
    """A column that is compared with a constant: column, operator, constant, in this order."""

    column: str
    operator: str
    constant: str | float


@lru_cache(maxsize=256)
def comparisons(text: str, schema: SchemaLike) -> tuple[Comparison, ...]:
    """Every column of text or numbers that a question compares with a constant, in its order.

    >>> from holdfast.store.table import Column, Schema
    >>> schema = Schema((Column("sex", "text"), Column("age", "number")))
    >>> for each in comparisons("sex IN ('f', 'm') AND 90 < age", schema):
    ...     print(each.column, each.operator, each.constant)
    sex = f
    sex = m
    age > 90.0
    """
    tree = reread(text, schema)
    calls = () if tree is None else (node for node in walk(tree) if isinstance(node, Call))
    return tuple(each for call in calls for each in _compared(call.function.name, call.arguments))


def _compared(name: str, arguments: tuple[Node, ...]) -> list[Comparison]:
    if name == "in":
        return [each for other in arguments[1:] for each in _pair("=", arguments[0], other)]
    if name == "between":
        tested, low, high = arguments
        return [*_pair(">=", tested, low), *_pair("<=", tested, high)]
    if name not in _EQUAL and name not in _TURNED:
        return []
    left, right = arguments
    return _pair(name, left, right) or _pair(_TURNED.get(name, name), right, left)


def _pair(name: str, left: Node, right: Node) -> list[Comparison]:
    if not isinstance(left, Reference) or not isinstance(right, Constant):
        return []
    value = right.value
    if isinstance(value, bool) or not isinstance(value, str | float):
        return []
    return [Comparison(left.name, name, value)]


@lru_cache(maxsize=256)
def can_lack_value(text: str, schema: SchemaLike, filtered: bool) -> bool:
    """Whether a filter, this one or a FILTER inside, can leave a block without a value.

    A count is 0 where nothing is left, and no failure; a mean is NULL.
    """
    if not filtered and "FILTER" not in text:
        return False
    tree = reread(text, schema)
    if tree is None:
        return True
    inside = any(isinstance(node, Aggregate) and node.filter for node in walk(tree))
    return (filtered or inside) and _Bounds(math.inf).of(tree).null
