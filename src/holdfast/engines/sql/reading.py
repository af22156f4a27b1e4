"""Reading a question again, from the one text that it has: what it compares, what it lacks.

Both depend on the text and the names and types of the columns alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from holdfast.engines.sql.check import SchemaLike, check
from holdfast.engines.sql.parse import parse
from holdfast.engines.sql.ranges import lacks_value
from holdfast.engines.sql.refusals import Refusal
from holdfast.engines.sql.tree import Call, Constant, Node, Reference, walk

__all__ = ["Comparison", "can_lack_value", "comparisons"]

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

    >>> from holdfast.engines.store.columns import Column, Schema
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
