"""The smallest width over what can be chosen, and the largest number of questions at a width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.errors import real_number, whole_number
from holdfast.theory.sizing import minimise

__all__ = ["QUERIES_MOST", "ROWS_MOST", "checked", "checked_target", "lowest", "most_queries"]

ROWS_MOST = 10**12
QUERIES_MOST = 10**9


def checked(rows: int, queries: int, failure: float) -> tuple[int, int, float]:
    """n, k and β, in their plain types."""
    return (
        whole_number("rows", rows, 1, ROWS_MOST),
        whole_number("queries", queries, 1, QUERIES_MOST),
        real_number("failure", failure, 0, 1, open_low=True, open_high=True),
    )


def checked_target(rows: int, half_width: float, failure: float) -> tuple[int, float, float]:
    """n, the wanted half-width and β, in their plain types."""
    rows, _, failure = checked(rows, 1, failure)
    width = real_number("half_width", half_width, 0, 0.5, open_low=True, open_high=True)
    return rows, width, failure


def lowest(
    objective: Callable[[Sequence[float]], float], start: Sequence[float]
) -> tuple[float, ...]:
    """The point where a smooth function is lowest, by Nelder–Mead started again and again.

    Whatever it returns is a choice that a theorem allows: a search that stops early makes a width
    larger, not wrong.

    >>> [round(x, 2) for x in lowest(lambda x: (x[0] - 1) ** 2 + (x[1] + 2) ** 2, [0.0, 0.0])]
    [1.0, -2.0]
    """
    point = tuple(start)
    for spread in (1.0, 0.1, 0.01):
        point = min(point, minimise(objective, point, spread), key=objective)
    return point


def most_queries(width: Callable[[int], float], half_width: float) -> int:
    """The largest k with width(k) ≤ half_width, for a width that grows with k; 0 if there is none.

    >>> most_queries(lambda k: k / 1_000, 0.1), most_queries(lambda k: k, 0.1)
    (100, 0)
    """
    low, high = 0, 1
    while high <= QUERIES_MOST and width(high) <= half_width:
        low, high = high, 2 * high
    high = min(high, QUERIES_MOST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if width(middle) <= half_width:
            low = middle
        else:
            high = middle
    return low
