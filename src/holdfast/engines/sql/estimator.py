"""Estimators and terms in SQL: a checked question, its one text, and the SQL that runs for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from holdfast.engines.sql.aggregates import AGGREGATES
from holdfast.engines.sql.calls import contains_aggregate
from holdfast.engines.sql.check import SchemaLike, check
from holdfast.engines.sql.generate import to_sql, to_text
from holdfast.engines.sql.parse import parse
from holdfast.engines.sql.ranges import known_value, mean_range, term_range, value_range
from holdfast.engines.sql.refusals import Refusal, refused
from holdfast.engines.sql.tree import Aggregate, Node, Reference, children, walk

__all__ = ["SqlEstimator", "SqlTerm", "sql_condition", "sql_estimator", "sql_term"]


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

        `ranges` are the declared ranges of columns. A hint for a grid: see `engines.sql.ranges`.
        """
        return value_range(self.tree, ranges, units if one_row_units else math.inf)

    def known_value(self, units: int, one_row_units: bool) -> float | None:
        """The value if every block has the same one, whatever the data: count(*) is the block's."""
        if self.where is not None or not one_row_units:
            return None
        return known_value(self.tree, units)

    def bounded_mean(self, one_row_units: bool) -> tuple[float, float] | None:
        """[lo, hi] if it is the mean over all units of terms that cannot leave [lo, hi], or None.

        Declared ranges are not used: see `engines.sql.ranges.mean_range` for what is required.
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

    >>> from holdfast.engines.store.columns import Column, Schema
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
