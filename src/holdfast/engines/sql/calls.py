"""Calls: which row of the tables a name and its arguments mean, or why none."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engines.sql.aggregates import AGGREGATE_ALIASES, AGGREGATES, REFUSED
from holdfast.engines.sql.functions import ALIASES, FUNCTIONS
from holdfast.engines.sql.reasons import HINTS
from holdfast.engines.sql.refusals import Refusal, meant
from holdfast.engines.sql.signatures import as_kind, fit, one_kind
from holdfast.engines.sql.tree import Aggregate, Call, Node, walk

__all__ = ["CALLABLE", "aggregate_of", "call_of", "case_of", "contains_aggregate", "unknown"]

CALLABLE = frozenset(name for name, rows in FUNCTIONS.items() if not rows[0].text)
"""Functions that are written name(…); the others are operators."""


def call_of(name: str, arguments: Sequence[Node]) -> Call:
    """The function of that name which takes these arguments."""
    for function in FUNCTIONS[name]:
        fitted = fit(function.takes, arguments)
        if fitted is not None:
            nodes, same = fitted
            kind = same if function.gives == "same" else function.gives
            return Call(kind, function, nodes)  # type: ignore[arg-type]
    raise _misfit(name, [row.takes for row in FUNCTIONS[name]], arguments)


def aggregate_of(name: str, arguments: Sequence[Node], *, distinct: bool) -> Aggregate:
    """The aggregate of that name which takes these arguments; booleans may count as numbers."""
    if any(contains_aggregate(each) for each in arguments):
        raise Refusal(f"{name} is taken of an aggregate. Aggregates cannot be nested.")
    for row in AGGREGATES[name]:
        fitted = fit(row.takes, arguments, counts_booleans=True)
        if fitted is not None:
            nodes, same = fitted
            kind = same if row.gives == "same" else row.gives
            return Aggregate(kind, row, nodes, distinct)  # type: ignore[arg-type]
    raise _misfit(name, [row.takes for row in AGGREGATES[name]], arguments)


def case_of(parts: Sequence[Node]) -> Call:
    """CASE of condition, result, …, and the result of ELSE; NULL takes the results' type."""
    conditions, results = parts[:-1:2], [*parts[1:-1:2], parts[-1]]
    if any(each.kind != "boolean" for each in conditions):
        raise Refusal("After WHEN write a condition: CASE WHEN x > 0 THEN 1 ELSE 0 END.")
    kind = one_kind(results)
    typed = [as_kind(kind, each) if kind else None for each in results]
    whole = [each for each in typed if each is not None]
    if kind is None or len(whole) < len(results):
        raise Refusal("The results of a CASE must have one type, and not all be NULL.")
    if kind == "text":
        raise Refusal("The results of a CASE cannot be texts. Compare the texts in its conditions.")
    mixed = [each for pair in zip(conditions, whole, strict=False) for each in pair]
    return Call(kind, FUNCTIONS["case"][0], (*mixed, whole[-1]))


def contains_aggregate(node: Node) -> bool:
    """Whether some part of it is an aggregate."""
    return any(isinstance(below, Aggregate) for below in walk(node))


def unknown(name: str) -> Refusal:
    """Why there is no such function here."""
    hint = HINTS.get(name, "")
    if name in REFUSED:
        return Refusal(f"{name} is not allowed: {REFUSED[name]}.{hint}")
    known = [*AGGREGATES, *AGGREGATE_ALIASES, *sorted(CALLABLE), *ALIASES]
    return Refusal(f"There is no function {name[:40]!r} here.{hint or meant(name, known)}")


def _misfit(name: str, signatures: Sequence[Sequence[str]], arguments: Sequence[Node]) -> Refusal:
    given = ", ".join(each.kind for each in arguments)
    taken = " or ".join(dict.fromkeys(f"({', '.join(takes)})" for takes in signatures))
    return Refusal(f"{name} takes {taken} and was given ({given}).{HINTS.get(name, '')}")
