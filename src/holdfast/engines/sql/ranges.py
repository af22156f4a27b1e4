"""Ranges: between which numbers a question's value on a block lies, known before any look at data.

`value_range` serves to lay a grid where none is given: a hint, never a risk to the promise, for
values outside a grid are projected to its ends. It may use the ranges that the custodian declared.
`mean_range` carries an error bar, and so uses nothing that is declared: see there. `term_range` is
for the terms of `mean`, which are cut: what uses a declared range there says so in its promise.
`known_value` is for questions that need not be asked, and `lacks_value` for those that some blocks
cannot answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.engines.sql.intervals import Interval, hull
from holdfast.engines.sql.tree import Aggregate, Call, Constant, Node, Reference, walk

__all__ = ["known_value", "lacks_value", "mean_range", "term_range", "value_range"]

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
