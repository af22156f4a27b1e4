"""Estimators and terms in SQL: a checked question, its one text, and the SQL that runs for it."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from holdfast.engines.sql.bounds import Interval, hull
from holdfast.engines.sql.language import (
    AGGREGATES,
    Aggregate,
    Call,
    Constant,
    Node,
    Reference,
    Refusal,
    children,
    contains_aggregate,
    refused,
    walk,
)
from holdfast.engines.sql.parser import SchemaLike, check, keywords, parse
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds

__all__ = [
    "BLOCKS_VIEW",
    "COMPANY",
    "KEPT",
    "Comparison",
    "Number",
    "SqlEstimator",
    "SqlTerm",
    "can_lack_value",
    "comparisons",
    "double",
    "known_value",
    "lacks_value",
    "mean_range",
    "quoted",
    "sql_condition",
    "sql_estimator",
    "sql_term",
    "statement",
    "sum_of",
    "term_range",
    "to_sql",
    "to_text",
    "value_of",
    "value_range",
    "view",
]


# Writing: the checked tree as the text that names the question, and as the SQL that runs.
#
# Two spellings of one question have one text, which reads as the same question again. The SQL is
# written for DuckDB with every type settled: numbers are DOUBLE, columns are quoted.


KEPT = "__kept"
"""The column that says whether `where` holds of a row."""

_T = TypeVar("_T")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SQL_TYPES = {
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def quoted(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def double(value: float) -> str:
    """A number as SQL that is a DOUBLE, whatever stands beside it."""
    digits = repr(value)
    return f"({digits})" if "e" in digits else f"({digits}e0)"


def to_text(node: Node) -> str:
    """The one text of all spellings of a question."""
    if isinstance(node, Constant):
        return _constant_text(node)
    if isinstance(node, Reference):
        return node.name if _is_plain(node.name) else quoted(node.name)
    if isinstance(node, Aggregate):
        inside = ", ".join(to_text(each) for each in node.arguments)
        inside = inside or "*"
        distinct = "DISTINCT " if node.distinct else ""
        where = f" FILTER (WHERE {to_text(node.filter)})" if node.filter is not None else ""
        return f"{node.function.name}({distinct}{inside}){where}"
    if node.function.text == "{0}":  # a type that is implied is not written
        return to_text(node.arguments[0])
    if not node.function.text:
        return f"{node.function.name}({', '.join(to_text(each) for each in node.arguments)})"
    # The parts of an operator are bracketed if they are operators too; those of CASE need not be.
    write = to_text if node.function.name == "case" else _bracketed
    return _filled(node.function.text, node.arguments, write)


def _bracketed(node: Node) -> str:
    while isinstance(node, Call) and node.function.text == "{0}":
        (node,) = node.arguments
    operator = isinstance(node, Call) and node.function.text and node.function.name != "case"
    return f"({to_text(node)})" if operator else to_text(node)


def to_sql(node: Node, *, kept: bool = False) -> str:
    """The SQL of an expression. With `kept`, aggregates are over the rows where `KEPT` is true."""
    if isinstance(node, Constant):
        return _constant_sql(node)
    if isinstance(node, Reference):
        return quoted(node.name)
    arguments = [to_sql(each, kept=kept) for each in node.arguments]
    if isinstance(node, Call):
        return _filled(node.function.sql, arguments, str)
    own = [] if node.filter is None else [to_sql(node.filter)]
    conditions = ([KEPT] if kept else []) + own
    where = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
    everything = ", ".join(arguments)
    if node.distinct:
        everything, arguments = f"DISTINCT {everything}", [f"DISTINCT {arguments[0]}"]
    return node.function.sql.format(*arguments, all=everything, f=where)


def _filled(template: str, arguments: Sequence[_T], write: Callable[[_T], str]) -> str:
    parts = [write(each) for each in arguments]
    fields = {"all": ", ".join(parts), "rest": ", ".join(parts[1:])}
    if template.strip("()") == "{case}":
        fields["case"] = _case(arguments, parts)
    return template.format(
        *parts, **fields, **{"and": " AND ".join(parts), "or": " OR ".join(parts)}
    )


def _case(arguments: Sequence[object], parts: Sequence[str]) -> str:
    pairs = zip(parts[:-1:2], parts[1:-1:2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {result}" for condition, result in pairs)
    default = arguments[-1]
    null = isinstance(default, Constant) and default.value is None
    return f"CASE {branches} END" if null else f"CASE {branches} ELSE {parts[-1]} END"


def _constant_text(node: Constant) -> str:
    value = node.value
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return _constant_sql(node)


def _constant_sql(node: Constant) -> str:
    value = node.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return double(value)
    if isinstance(value, datetime.date | datetime.datetime):
        separated = value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else str(value)
        return f"{_SQL_TYPES[node.kind]} '{separated}'"
    return "'" + value.replace("'", "''") + "'"


def _is_plain(name: str) -> bool:
    return _PLAIN_NAME.fullmatch(name) is not None and name.upper() not in keywords()


# Ranges: between which numbers a question's value on a block lies, known before any look at data.
#
# `value_range` serves to lay a grid where none is given: a hint, never a risk to the promise, for
# values outside a grid are projected to its ends. It may use the ranges that the custodian
# declared.
# `mean_range` carries an error bar, and so uses nothing that is declared: see there. `term_range`
# is
# for the terms of `mean`, which are cut: what uses a declared range there says so in its promise.
# `known_value` is for questions that need not be asked, and `lacks_value` for those that some
# blocks
# cannot answer.


_ZERO = Interval(0.0, 0.0, null=False, nan=False)


def value_range(
    tree: Node, ranges: Mapping[str, tuple[float, float]], rows: float
) -> tuple[float, float] | None:
    """Bounds of the value on a block of at most `rows` rows, with columns in declared ranges."""
    declared = {name.casefold(): pair for name, pair in ranges.items()}
    found = _Ranges(rows, declared).of(tree)
    return (
        (float(found.low), float(found.high)) if found.finite and found.low < found.high else None
    )


def term_range(tree: Node, ranges: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """Bounds of an expression of one row with columns in declared ranges; perhaps infinite."""
    declared = {name.casefold(): pair for name, pair in ranges.items()}
    found = _Ranges(math.inf, declared).of(tree)
    return float(found.low), float(found.high)


def mean_range(tree: Node) -> tuple[float, float] | None:
    """[lo, hi] if the value is a plain mean of terms that are all in [lo, hi], whatever the data.

    A mean has an error bar of its own (Chernoff's bound on t independent terms), which holds only
    if every unit contributes exactly one term and every term is within the range. So:

    - the value is avg(e) itself, without FILTER: under a filter the number of terms is random;
    - e is never NULL, for avg leaves NULL out: again a random number of terms;
    - e is never NaN, and within [lo, hi] by its form alone: truth values that are not NULL, as
      coalesce(x > 60, FALSE) or x IS NULL; least(greatest(coalesce(x, 0), 0), 1); CASE with ELSE.
      A declared range does not count, for nothing makes a stored value obey it.

    That units are single rows is for the caller to see to. The average itself is computed in
    floating point, and may be off by some units in the last place.
    """
    if not isinstance(tree, Aggregate) or tree.function.name != "avg" or tree.filter is not None:
        return None
    term = _Ranges(math.inf).of(tree.arguments[0])
    if term.null or term.nan or not term.finite or term.low >= term.high:
        return None
    return term.low, term.high


def known_value(tree: Node, rows: int) -> float | None:
    """The value if it is the same on every block of exactly so many rows, as that of count(*)."""
    found = _Ranges(rows, exact=True).of(tree)
    sure = found.finite and found.low == found.high and not (found.null or found.nan)
    return float(found.low) if sure else None


def lacks_value(tree: Node, *, filtered: bool) -> bool:
    """Whether a filter, this one or a FILTER inside, can leave a block without a value.

    A count is 0 where nothing is left, and no failure; a mean is NULL.
    """
    some = filtered or any(isinstance(node, Aggregate) and node.filter for node in walk(tree))
    return some and _Ranges(math.inf).of(tree).null


@dataclass(frozen=True)
class _Ranges:
    rows: float
    declared: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    exact: bool = False  # every block has just so many rows, and all of them count

    def of(self, node: Node) -> Interval:
        """The interval of an expression, of a row or of aggregates."""
        if isinstance(node, Constant):
            return _constant(node)
        if isinstance(node, Reference):
            return self._column(node)
        arguments = [self.of(each) for each in node.arguments]
        if isinstance(node, Aggregate):
            if self.exact and _counts_all(node, arguments):
                return Interval(self.rows, self.rows, null=False, nan=False)
            return node.function.bound(arguments, self.rows)
        found = self._ratio(node) if node.function.name == "/" else None
        return found or node.function.bound(arguments)

    def _column(self, node: Reference) -> Interval:
        if node.kind == "boolean":
            return Interval(0.0, 1.0, nan=False)
        low, high = self.declared.get(node.name.casefold(), (-math.inf, math.inf))
        return Interval(low, high, nan=False)  # a store has NULL for NaN

    def _ratio(self, node: Call) -> Interval | None:
        """Quotients of aggregates over the same rows that are means: what they average bounds them.

        sum(e · w) / sum(w) with w ≥ 0, sum(e) / count(*), and count(e) / count(*).
        """
        above, below = node.arguments
        if not isinstance(above, Aggregate) or not isinstance(below, Aggregate):
            return None
        if below.filter is not None and below.filter != above.filter:
            return None
        if below.function.name == "count" and not below.arguments:
            return self._per_row(above)
        if above.function.name == below.function.name == "sum" and above.filter == below.filter:
            return self._weighted(above.arguments[0], below.arguments[0])
        return None

    def _per_row(self, above: Aggregate) -> Interval | None:
        if above.function.name in ("count", "count_if"):
            return Interval(0.0, 1.0)
        if above.function.name == "sum":
            return hull([self.of(above.arguments[0]), _ZERO])
        return None

    def _weighted(self, product: Node, weight: Node) -> Interval | None:
        if not isinstance(product, Call) or product.function.name != "*":
            return None
        if weight not in product.arguments or self.of(weight).low < 0:
            return None
        left, right = product.arguments
        # A weight whose value is NULL still counts in sum(w), with a term of 0: hence 0 too.
        value = self.of(left if right == weight else right)
        return hull([value, _ZERO]) if value.null else value


def _counts_all(node: Aggregate, arguments: Sequence[Interval]) -> bool:
    """Whether it is the number of rows: count(*), or of what is never NULL."""
    plain = node.function.name == "count" and not node.distinct and node.filter is None
    return plain and not any(each.null for each in arguments)


def _constant(node: Constant) -> Interval:
    value = node.value
    if value is None:  # no number at all: it bounds nothing away
        return Interval(math.inf, -math.inf, null=True, nan=False)
    if isinstance(value, float | bool):
        return Interval(float(value), float(value), null=False, nan=False)
    return Interval(null=False, nan=False)


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

    @cached_property
    def distinct(self) -> bool:
        """Whether it counts distinct values."""
        return any(isinstance(node, Aggregate) and node.distinct for node in walk(self.tree))

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to evaluate it: all but the tree, and what was read off it."""
        state = {**vars(self), "distinct": self.distinct}
        state.pop("tree", None)  # one that has been sent has none
        return state

    def range(
        self, ranges: Mapping[str, tuple[float, float]], units: int, one_row_units: bool
    ) -> tuple[float, float] | None:
        """Bounds of the value on one block that do not depend on the data, or None.

        `ranges` are the declared ranges of columns. A hint for a grid: see `engines.sql.estimator`.
        """
        return value_range(self.tree, ranges, units if one_row_units else math.inf)

    def known_value(self, units: int, one_row_units: bool) -> float | None:
        """The value if every block has the same one, whatever the data: count(*) is the block's."""
        if self.where is not None or not one_row_units:
            return None
        return known_value(self.tree, units)

    def bounded_mean(self, one_row_units: bool) -> tuple[float, float] | None:
        """[lo, hi] if it is the mean over all units of terms that cannot leave [lo, hi], or None.

        Declared ranges are not used: see `engines.sql.estimator.mean_range` for what is required.
        """
        if self.where is not None or not one_row_units:
            return None
        return mean_range(self.tree)


@dataclass(frozen=True)
class SqlTerm:
    """A function of one row for means: true or false, or a number.

    `text` None is the constant 1: its sums count the units for which `where` is true.
    """

    text: str | None
    where: str | None
    sql: str | None = field(compare=False, repr=False)
    filter: str | None = field(compare=False, repr=False)
    columns: tuple[str, ...] = field(compare=False)
    boolean: bool = field(compare=False, repr=False, default=False)
    tree: Node | None = field(compare=False, repr=False, default=None)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to evaluate it: all but the tree."""
        return {**vars(self), "tree": None}

    def range(self, ranges: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
        """Between which numbers it lies on every row whose columns are in declared ranges.

        NULL and NaN, which are none, may come too. Without declared ranges this holds whatever the
        data are.
        """
        return (1.0, 1.0) if self.tree is None else term_range(self.tree, ranges)


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
    condition = _condition(where, schema)
    try:
        tree = check(parse(expression), schema)
        _require_aggregate(tree)
    except Refusal as refusal:
        raise refused("question", expression, refusal) from None
    return SqlEstimator(
        text=to_text(tree),
        where=None if condition is None else to_text(condition),
        aggregate=to_sql(tree, kept=condition is not None),
        filter=None if condition is None else to_sql(condition),
        columns=_columns(tree, condition),
        tree=tree,
    )


def sql_term(expression: object | None, schema: SchemaLike, where: object | None = None) -> SqlTerm:
    """The term of an SQL expression of one row; None is the constant 1."""
    condition = _condition(where, schema)
    tree = None
    if expression is not None:
        try:
            tree = check(parse(expression), schema)
            _require_term(tree)
        except Refusal as refusal:
            raise refused("term", expression, refusal) from None
    return SqlTerm(
        text=None if tree is None else to_text(tree),
        where=None if condition is None else to_text(condition),
        sql=None if tree is None else to_sql(tree),
        filter=None if condition is None else to_sql(condition),
        columns=_columns(tree, condition),
        boolean=tree is not None and tree.kind == "boolean",
        tree=tree,
    )


def sql_condition(where: object, schema: SchemaLike) -> SqlTerm:
    """A condition on one row, as a term that is true or false."""
    tree = _condition(where, schema)
    if tree is None:
        raise refused("where", where, Refusal("Write it as a text."))
    return SqlTerm(to_text(tree), None, to_sql(tree), None, _columns(tree), boolean=True)


def _condition(where: object | None, schema: SchemaLike) -> Node | None:
    if where is None:
        return None
    try:
        tree = check(parse(where), schema)
        if contains_aggregate(tree):
            raise Refusal("An aggregate cannot stand in it: it is about one row.")
        if tree.kind != "boolean":
            raise Refusal(f"It is a {tree.kind}, not a condition.")
    except Refusal as refusal:
        raise refused("where", where, refusal) from None
    return tree


def _require_aggregate(tree: Node) -> None:
    if not contains_aggregate(tree):
        raise Refusal(f"It has no aggregate. Known are {', '.join(AGGREGATES)}.")
    outside = _bare_column(tree)
    if outside is not None:
        raise Refusal(
            f"The column {outside!r} stands outside an aggregate, and has no one value for a"
            f" block. Write avg({outside}) or the like."
        )
    if tree.kind not in ("number", "boolean"):
        raise Refusal(f"It is a {tree.kind}, not a number.")


def _bare_column(tree: Node) -> str | None:
    """A column that is not inside an aggregate, if there is one."""
    if isinstance(tree, Reference):
        return tree.name
    if isinstance(tree, Aggregate):
        return None
    return next((name for each in children(tree) if (name := _bare_column(each))), None)


def _require_term(tree: Node) -> None:
    if contains_aggregate(tree):
        raise Refusal("It is averaged over the units already: leave the aggregate out.")
    if tree.kind not in ("number", "boolean"):
        raise Refusal(f"It is a {tree.kind}, not a truth value or a number.")


def _columns(*trees: Node | None) -> tuple[str, ...]:
    nodes = [node for tree in trees if tree is not None for node in walk(tree)]
    return tuple(sorted({node.name for node in nodes if isinstance(node, Reference)}))


# Queries: one value, or one sum, for every block of a range.
#
# A filter is never a WHERE of the query, for a block of which it leaves nothing would vanish: it
# is a
# column that the aggregates look at. So every block has its row in the result.
#
# Several numbers of the same rows can be asked in one statement, and each has the bits that it has
# alone. What DuckDB would do otherwise by the company is switched off, see `COMPANY`, or
# outwitted:
# it adds up constants in a way of its own, but only if all that it adds up are constants. Which
# they
# never are: the block's own number, taken as a smallest one, is among them.


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


# Reading a question again, from the one text that it has: what it compares, what it lacks.
#
# Both depend on the text and the names and types of the columns alone.


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
    tree = _tree(text, schema)
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
    """Whether a filter can leave a block without a value, as it can avg(x) and not count(x)."""
    if not filtered and "FILTER" not in text:
        return False
    tree = _tree(text, schema)
    return tree is None or lacks_value(tree, filtered=filtered)


def _tree(text: str, schema: SchemaLike) -> Node | None:
    """The question that the text was written from; None if it has become too long."""
    try:
        return check(parse(text), schema)
    except Refusal:
        return None
