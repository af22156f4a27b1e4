"""Grids for questions that name none: from bounds that do not depend on the sealed data.

Two sources. A value may have bounds that hold for all data, or for all data within the ranges that
the custodian declared: a correlation, a rate, the mean of a bounded column. Or the open part, which
anybody may see, shows where the estimator lies. The finer grid is taken: that of the open part,
within the bounds, wherever at least five open blocks have values that are not all the same. Either
is a hint and never a risk to the promise: values beyond an end are projected onto it, and an answer
at the end of its grid says so.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid, grid

__all__ = ["ENOUGH", "finer_grid", "grid_between", "grid_from_values", "no_grid"]

ENOUGH = 5  # open blocks with a value, where bounds are known too
_BEYOND = 3.0  # spreads beyond the open blocks' extremes
_NICE = (Fraction(1), Fraction(2), Fraction(5, 2), Fraction(5))
_POWERS = 20


def grid_between(low: float, high: float, points: int) -> Grid:
    """Equal steps between known bounds.

    >>> grid_between(-1, 1, 33)
    grid(-1, 1, step=0.0625)
    """
    if not low < high:
        return grid([low])
    try:
        return grid(low, high, points=max(2, points))
    except InvalidInput:  # the bounds are closer than so many floats
        return grid([low, high])


def finer_grid(low: float, high: float, values: NDArray[np.float64] | None, points: int) -> Grid:
    """A grid between known bounds: around what open blocks say, if they say enough and it is finer.

    >>> finer_grid(0, 2029, np.array([180.0, 205, 233, 260, 290]), 51)
    grid(50, 420, step=10)
    >>> finer_grid(0, 2029, np.array([180.0, 290]), 51)
    grid(0, 2029, step=40.58)
    """
    wide = grid_between(low, high, points)
    known = _numbers(values)
    if known.size < ENOUGH or known.min() == known.max():
        return wide
    if known.min() >= high or known.max() <= low:  # the bounds were declared, and are wrong
        return wide
    near = grid_from_values(known, points, (low, high))
    if near is None or near.size < 2 or wide.size < 2:
        return wide
    steps = [float(each.point(1) - each.point(0)) for each in (near, wide)]
    return near if steps[0] < steps[1] else wide


def grid_from_values(
    values: NDArray[np.float64], points: int, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Grid | None:
    """A grid around what open blocks say, in round steps; None if they say nothing.

    >>> grid_from_values(np.array([9.0, 10.0, 11.5]), 32)
    grid(6, 14.5, step=0.5)
    """
    known = _numbers(values)
    if known.size == 0:
        return None
    low, high = float(known.min()), float(known.max())
    beyond = _BEYOND * _spread(known, low, high)
    return _round_grid(max(bounds[0], low - beyond), min(bounds[1], high + beyond), points)


def _numbers(values: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Those that a grid can be laid around."""
    if values is None:
        return np.empty(0)
    return values[np.isfinite(values) & (np.abs(values) < 1e15)]


def _spread(known: NDArray[np.float64], low: float, high: float) -> float:
    """Three quarters of what lies between the quartiles, or something, where that is nothing."""
    lower, upper = np.quantile(known, [0.25, 0.75])
    candidates = (0.75 * float(upper - lower), (high - low) / 2, abs(high) / 10, 1e-6)
    return next(each for each in candidates if each > 0)


def _round_grid(low: float, high: float, points: int) -> Grid:
    """At most so many points, in a step of 1, 2, 2.5 or 5 times a power of ten."""
    ends = Fraction(low), Fraction(high)
    least = (ends[1] - ends[0]) / max(1, points - 2)
    power = math.floor(math.log10(least.numerator) - math.log10(least.denominator))
    if points > 2:  # of two points, no round ones need lie on either side of 0
        for step in (f * Fraction(10) ** (power + n) for n in range(_POWERS) for f in _NICE):
            first, last = math.floor(ends[0] / step), math.ceil(ends[1] / step)
            if last - first < points:
                with suppress(InvalidInput):  # closer than floats are: try a wider one
                    return grid(first * step, last * step, step=step)
    return grid([low, high])


def no_grid() -> InvalidInput:
    """The error for a question without a grid, where nothing is known of its values."""
    hint = (
        "Nothing that does not depend on the sealed data bounds this estimator: declare ranges of "
        "its columns at creation, keep an open part, or name the grid."
    )
    return InvalidInput("grid", None, "a grid of possible answers, LOW:HIGH:STEP", hint)
