"""Signatures: whether arguments fit what a function takes, and what becomes of them if they do.

Types are settled before anything runs. Three things become another type by themselves: a text
constant that is compared with a date or timestamp, a date that is compared with a timestamp, and a
boolean that is averaged, summed or counted up.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from holdfast.engines.sql.functions import FUNCTIONS, TIME_PARTS
from holdfast.engines.sql.tree import Call, Constant, Kind, Node

__all__ = ["as_kind", "fit", "one_kind"]

_MOMENTS = ("date", "timestamp")
_SHARED = {
    "same": ("number", "boolean", "text", *_MOMENTS),
    "ordered": ("number", "text", *_MOMENTS),
    "measured": ("number", *_MOMENTS),
}
_DIGITS_MAX = 15


def fit(
    takes: Sequence[str], arguments: Sequence[Node], *, counts_booleans: bool = False
) -> tuple[tuple[Node, ...], Kind | None] | None:
    """The arguments, made to fit, and the type of `same`; None if they do not fit."""
    tokens = _tokens(takes, len(arguments))
    if tokens is None:
        return None
    shared = [x for token, x in zip(tokens, arguments, strict=True) if token in _SHARED]
    same = one_kind(shared) if shared else None
    if any(token in _SHARED and same not in _SHARED[token] for token in tokens):
        return None
    fitted = []
    for token, argument in zip(tokens, arguments, strict=True):
        each = _fitted(same if token in _SHARED else token, argument, counts_booleans)
        if each is None:
            return None
        fitted.append(each)
    if same is None and "moment" in tokens:
        same = fitted[0].kind
    return tuple(fitted), same


def _tokens(takes: Sequence[str], count: int) -> list[str] | None:
    if takes and takes[-1] == "…":
        fixed = list(takes[:-1])
        return None if count < len(fixed) else fixed + [fixed[-1]] * (count - len(fixed))
    return list(takes) if count == len(takes) else None


def one_kind(nodes: Sequence[Node]) -> Kind | None:
    """The one type that all of them have or can take."""
    kinds = {node.kind for node in nodes if not _is_null(node)}
    if "timestamp" in kinds or "date" in kinds:
        wanted: Kind = "timestamp" if "timestamp" in kinds else "date"
        return wanted if all(as_kind(wanted, node) is not None for node in nodes) else None
    return kinds.pop() if len(kinds) == 1 else None


def as_kind(kind: Kind, node: Node) -> Node | None:
    """The node as an expression of that type, if it is one or becomes one by itself."""
    if _is_null(node):
        return Constant(kind, None)
    if node.kind == kind:
        return node
    if isinstance(node, Constant) and kind in ("date", "timestamp"):
        return _moment(kind, node)
    if (node.kind, kind) == ("date", "timestamp"):
        return Call(kind, FUNCTIONS["as timestamp"][0], (node,))
    return None


def _is_null(node: Node) -> bool:
    return isinstance(node, Constant) and node.value is None


def _moment(kind: Kind, node: Constant) -> Constant | None:
    """A constant text, or date, as a date or timestamp."""
    value = node.value
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = value.isoformat()
    if not isinstance(value, str):
        return None
    try:
        if kind == "date":
            return Constant(kind, datetime.date.fromisoformat(value))
        moment = datetime.datetime.fromisoformat(value)
    except ValueError:
        return None
    return None if moment.tzinfo else Constant(kind, moment)


def _fitted(token: str | None, argument: Node, counts_booleans: bool) -> Node | None:
    if _is_null(argument):
        return None
    if token == "any":
        return argument
    if token == "moment":
        return argument if argument.kind in _MOMENTS else None
    if token in ("digits", "fraction", "pattern", "part"):
        return _constant(token, argument)
    if token == "number" and argument.kind == "boolean" and counts_booleans:
        return Call("number", FUNCTIONS["as number"][0], (argument,))
    return as_kind(token, argument) if token is not None else None  # type: ignore[arg-type]


def _constant(token: str, argument: Node) -> Constant | None:
    """The argument if it is a constant of that sort."""
    value = argument.value if isinstance(argument, Constant) else None
    if token == "part":
        part = value.lower() if isinstance(value, str) else None
        return Constant("text", part) if part in TIME_PARTS else None
    if token == "pattern":
        fits = isinstance(value, str)
    elif isinstance(value, bool) or not isinstance(value, float):
        fits = False
    else:
        whole = abs(value) <= _DIGITS_MAX and value == int(value)
        fits = whole if token == "digits" else 0.0 <= value <= 1.0
    return argument if fits and isinstance(argument, Constant) else None
