"""The checked tree of a question: what is left of its text once every part of it is known.

Four kinds of node, each with its type. Operators, CASE, IN and LIKE are calls of functions too. The
tree knows nothing of the text it came from: the SQL that runs is written from the tree alone.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from holdfast.engines.sql.aggregates import AggregateFunction
    from holdfast.engines.sql.functions import Function

__all__ = [
    "Aggregate",
    "Call",
    "Constant",
    "Kind",
    "Node",
    "Reference",
    "Value",
    "children",
    "walk",
]

Kind = Literal["number", "boolean", "text", "date", "timestamp"]
Value = float | bool | str | datetime.date | datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a text, a date, …; None is NULL of that type."""

    kind: Kind
    value: Value


@dataclass(frozen=True, slots=True)
class Reference:
    """A column, by the name it has in the schema."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of one row's values, or of aggregates."""

    kind: Kind
    function: Function
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of all rows of a block, or of those for which `filter` is true."""

    kind: Kind
    function: AggregateFunction
    arguments: tuple[Node, ...]
    distinct: bool = False
    filter: Node | None = None


Node = Constant | Reference | Call | Aggregate


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below; an aggregate's filter comes last."""
    if isinstance(node, Constant | Reference):
        return ()
    if isinstance(node, Aggregate) and node.filter is not None:
        return (*node.arguments, node.filter)
    return node.arguments


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)
