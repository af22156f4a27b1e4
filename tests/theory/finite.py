"""Small mechanisms written out as laws, for exact checks of the paper's statements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

__all__ = ["exponential_law", "neighbours", "one_look_search", "two_look_search"]

Data = tuple[int, ...]


def exponential_law(
    data: Sequence[float], grid: Sequence[float], epsilon: float, target: float = 0.5
) -> list[float]:
    """The output law of the exponential mechanism of `EM-med`, its score recentred at `target`."""
    m = len(data)
    scores = [
        max(sum(y < v for y in data) - target * m, sum(y > v for y in data) - (1 - target) * m)
        for v in grid
    ]
    weights = [math.exp(-epsilon / 2 * (score - min(scores))) for score in scores]
    return [w / math.fsum(weights) for w in weights]


def neighbours(points: Sequence[int], m: int) -> Iterator[tuple[Data, Data]]:
    """All ordered pairs of datasets that differ in one element, the data being sorted lists."""
    for rest in itertools.combinations_with_replacement(points, m - 1):
        for one, two in itertools.permutations(points, 2):
            yield tuple(sorted((*rest, one))), tuple(sorted((*rest, two)))


def one_look_search(size: int, share: Callable[[int], float]) -> int:
    """Binary search with one response a step: share(i) answers for P[φ ≤ T[i]]."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        if share(middle) >= 0.5:
            high = middle
        else:
            low = middle + 1
    return low


def two_look_search(at_most: Sequence[float], below: Sequence[float], slack: float) -> int | None:
    """The search in the proof of `median2sq`: both strict tests, None if it runs out of points."""
    low, high = 0, len(at_most) - 1
    while low <= high:
        middle = (low + high) // 2
        if not at_most[middle] > 0.5 - slack:
            low = middle + 1
        elif not below[middle] < 0.5 + slack:
            high = middle - 1
        else:
            return middle
    return None
