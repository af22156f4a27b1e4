"""The ends of a quantile interval, and the grid points in it: what membership must agree with."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from holdfast.theory.bars import Level, Value, Values, Weights, _array, _levels, _weights

__all__ = ["grid_interval", "quantile_interval"]


class _Points(Protocol):
    """What is needed of a grid: how many points, and the point at an index, in rising order."""

    @property
    def size(self) -> int: ...

    def point(self, index: int) -> Value: ...


def quantile_interval(
    values: Values, a: Level, b: Level, weights: Weights | None = None
) -> tuple[Any, Any]:
    """The two ends of qi(a, b), both included: values of the multiset, never in between.

    With m values in rising order (counted from 0) they are number ⌊a·m⌋ and ⌈b·m⌉ − 1.

    >>> quantile_interval([1, 2, 3, 4], 0.25, 0.75)
    (2, 3)
    >>> quantile_interval([5, 1, 1, 9], 0, 1)
    (1, 9)
    """
    low, high = _levels(a, b)
    array = _array(values)
    if weights is None:
        ordered = np.sort(array)
        first = math.floor(low * len(ordered))
        last = math.ceil(high * len(ordered)) - 1
        return ordered[first : first + 1].tolist()[0], ordered[last : last + 1].tolist()[0]
    masses = _weights(weights, len(array))
    pairs = sorted(
        (pair for pair in zip(array.tolist(), masses, strict=True) if pair[1]), key=lambda p: p[0]
    )
    total = sum(masses)
    at_most: Fraction | int = 0
    lower = upper = None
    for value, mass in pairs:
        if at_most < high * total:  # still the mass of what comes before this value
            upper = value
        if at_most <= low * total:
            lower = value
        at_most += mass
    return lower, upper


def grid_interval(
    grid: _Points, values: Values, a: Level, b: Level, weights: Weights | None = None
) -> tuple[int, int] | None:
    """First and last index of the grid points in qi(a, b), or None when it contains none.

    Values that lie on the grid always leave at least one. Works by bisection: the grid may be huge.
    """
    low, high = quantile_interval(values, a, b, weights)
    indices = range(grid.size)
    first = bisect_left(indices, low, key=grid.point)
    last = bisect_right(indices, high, key=grid.point) - 1
    return (first, last) if first <= last else None
