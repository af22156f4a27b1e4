"""Quantile intervals, exactly as the paper defines them, for finite distributions.

    qi(a, b) = {v : P[Y ≤ v] > a and P[Y < v] < b},    0 ≤ a < b ≤ 1.

The first side counts v itself, the second does not, and both comparisons are strict. For a finite
distribution the set is a closed interval whose two ends are values of the distribution: P[Y ≤ v]
jumps at a value and keeps the value it jumps to, P[Y < v] changes only after one. (A continuous
distribution may leave its ends out.) Every comparison is between whole numbers or fractions:
no division, no rounding. A float level means the number it stores, so 0.3 is a little less than
3/10; write Fraction(3, 10) for the latter.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput

__all__ = [
    "grid_interval",
    "in_quantile_interval",
    "is_approximate_median",
    "is_interior_point",
    "median_levels",
    "quantile_interval",
]

Level = int | float | Fraction
Value = int | float | Fraction | np.integer[Any] | np.floating[Any]
Values = Sequence[Value] | NDArray[Any]
Weights = Sequence[int | Fraction] | NDArray[Any]


class _Points(Protocol):
    """What is needed of a grid: how many points, and the point at an index, in rising order."""

    @property
    def size(self) -> int: ...

    def point(self, index: int) -> Value: ...


def in_quantile_interval(
    v: Value, values: Values, a: Level, b: Level, weights: Weights | None = None
) -> bool:
    """Whether v ∈ qi(a, b) of the multiset `values` (or of the values with these weights).

    >>> in_quantile_interval(1, [1, 2, 3, 4], 0.25, 0.75)  # P[Y ≤ 1] = 1/4 is not > 1/4
    False
    >>> in_quantile_interval(2, [1, 2, 3, 4], 0.25, 0.75)
    True
    >>> in_quantile_interval(0, [0, 1], 0.25, 0.75, weights=[Fraction(1, 5), Fraction(4, 5)])
    False
    """
    low, high = _levels(a, b)
    at_most, below, total = _masses(v, values, weights)
    return at_most > low * total and below < high * total


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


def median_levels(alpha: Level) -> tuple[Fraction, Fraction]:
    """((1 − α)/2, (1 + α)/2): v is an α-approximate median when it is in that quantile interval.

    >>> median_levels(Fraction(1, 4))
    (Fraction(3, 8), Fraction(5, 8))
    """
    exact = _fraction("alpha", alpha)
    if not 0 < exact <= 1:
        raise InvalidInput("alpha", alpha, "a number in (0, 1]")
    return (1 - exact) / 2, (1 + exact) / 2


def is_approximate_median(
    v: Value, values: Values, alpha: Level, weights: Weights | None = None
) -> bool:
    """Whether v ∈ qi((1 − α)/2, (1 + α)/2), the paper's α-approximate median.

    >>> is_approximate_median(2, [1, 2, 3, 4], 0.5), is_approximate_median(1, [1, 2, 3, 4], 0.5)
    (True, False)
    """
    return in_quantile_interval(v, values, *median_levels(alpha), weights)


def is_interior_point(v: Value, values: Values, weights: Weights | None = None) -> bool:
    """Whether smallest ≤ v ≤ largest: the same as a 1-approximate median, qi(0, 1).

    >>> is_interior_point(2.5, [1, 4]), is_interior_point(4.5, [1, 4])
    (True, False)
    """
    return is_approximate_median(v, values, 1, weights)


def _number(parameter: str, value: object, allowed: str) -> int | float | Fraction:
    """A number in Python's own types, which compare exactly with each other; never NaN."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float | np.floating) and not math.isnan(value):
        return float(value)
    if isinstance(value, Fraction):
        return value
    raise InvalidInput(parameter, value, allowed)


def _fraction(parameter: str, value: Level) -> Fraction:
    """The exact value; floats are binary fractions already."""
    number = _number(parameter, value, "a finite number")
    if math.isinf(number):
        raise InvalidInput(parameter, value, "a finite number")
    return Fraction(number)


def _levels(a: Level, b: Level) -> tuple[Fraction, Fraction]:
    low, high = _fraction("a", a), _fraction("b", b)
    if not 0 <= low < high <= 1:
        raise InvalidInput("levels", (a, b), "(a, b) with 0 ≤ a < b ≤ 1")
    return low, high


def _array(values: Values) -> NDArray[Any]:
    """One-dimensional and in a type whose comparisons are exact: int64, float64 or objects."""
    array = np.asarray(values)
    if array.ndim != 1 or not len(array):
        raise InvalidInput("values", values, "a non-empty list of numbers")
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    elif array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        array = array.astype(np.float64)  # numpy would round v to the smaller type
    elif array.dtype.kind not in "iu":
        array = array.astype(object)
    if bool(np.any(array != array)):
        hint = "NaN has no rank; project the values onto the grid first, where it counts as lowest."
        raise InvalidInput("values", values, "numbers, not NaN", hint)
    return array


def _masses(
    v: Value, values: Values, weights: Weights | None
) -> tuple[int | Fraction, int | Fraction, int | Fraction]:
    """Mass of {Y ≤ v}, of {Y < v}, and of everything."""
    v = _number("v", v, "a number, not NaN")
    array = _array(values)
    same = array.dtype.kind in {int: "iu", float: "f"}.get(type(v), "")
    if not same:
        array = array.astype(object)  # Python compares int, float and Fraction exactly
    at_most, below = array <= v, array < v
    if weights is None:
        return int(np.count_nonzero(at_most)), int(np.count_nonzero(below)), len(array)
    masses = _weights(weights, len(array))
    return (
        sum(mass for mass, inside in zip(masses, at_most.tolist(), strict=True) if inside),
        sum(mass for mass, inside in zip(masses, below.tolist(), strict=True) if inside),
        sum(masses),
    )


def _weights(weights: Weights, length: int) -> list[int | Fraction]:
    masses = weights.tolist() if isinstance(weights, np.ndarray) else list(weights)
    if len(masses) != length:
        raise InvalidInput("weights", weights, f"as many as there are values ({length:,})")
    for mass in masses:
        if isinstance(mass, bool) or not isinstance(mass, int | Fraction) or mass < 0:
            hint = "A float would be rounded; write Fraction(1, 3) or count in whole numbers."
            raise InvalidInput("weights", mass, "whole numbers or fractions, none negative", hint)
    if not any(masses):
        raise InvalidInput("weights", weights, "not all zero")
    return masses
