"""From a quantile promise to an error bar (theory.md §8).

Answers are grid points and values are projected upwards: the value φ counts as the smallest grid
point ≥ φ. So the answer T[i] stands for the cell (T[i−1], T[i]], and the promise about it reads

    D[φ ≤ upper edge] > tail_low        bounds the mean from above,
    D[φ > lower edge] > tail_high       bounds the mean from below.

At the first grid point there is no lower edge, at the last one no upper edge: pass None there and
that side has no bound (None). Every bar is rounded outward. Proofs and the assumptions each bar
needs: docs/explanation/theory/error-bars.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.theory.numerics import ROUNDING, round_down, round_up

__all__ = [
    "cantelli_bar",
    "deviation_bar",
    "in_quantile_interval",
    "is_approximate_median",
    "is_interior_point",
    "mean_bar",
    "mean_half_width",
    "median_levels",
    "units_for_half_width",
    "verdict_bar",
]

Bar = tuple[float | None, float | None]

_TINY, _HUGE = 1e-290, 1e300  # within these no intermediate result over- or underflows
_DECIDED = 1e-9  # relative: far more than divergences are off by
_SMALL = 0.1  # below this the power series of x − ln(1+x) is used


def mean_bar(
    lower_edge: float | None,
    upper_edge: float | None,
    units: int,
    tail_low: float,
    tail_high: float,
    low: float = 0.0,
    high: float = 1.0,
) -> Bar:
    """Bounds on the mean of φ = average of t independent terms in [low, high] (kl–Chernoff).

    Above: the largest μ with t·kl(v, μ) ≤ ln(1/tail_low), v the upper edge; below alike, with the
    lower edge and tail_high. kl is the divergence between two coins, after scaling to [0, 1].

    Grid step 0.05, 400 units, both tails 1/4 and answer 0.05, so that the cell is (0, 0.05]. A true
    mean of 0.02 keeps the promise. Reading both bars from the answer itself would exclude it:

    >>> [round(x, 4) for x in mean_bar(0.05, 0.05, 400, 0.25, 0.25)]
    [0.0339, 0.0702]
    >>> low, high = mean_bar(0.0, 0.05, 400, 0.25, 0.25)
    >>> low, round(high, 4), low <= 0.02 <= high
    (0.0, 0.0702, True)
    >>> mean_bar(None, 0.0, 400, 0.25, 0.25)  # the first grid point: 1 − (1/4)^(1/400)
    (None, 0.0034597...)
    """
    units = whole_number("units", units, 1, 10**18)
    low = real_number("low", low)
    high = real_number("high", high)
    if not low < high:
        raise InvalidInput("range", (low, high), "two numbers (low, high) with low < high")
    budget_low, budget_high = (
        -math.log(_tail(tail_low)) / units,
        -math.log(_tail(tail_high)) / units,
    )
    base, span = Fraction(low), Fraction(high) - Fraction(low)

    def scaled(edge: float) -> Fraction:
        return min(Fraction(1), max(Fraction(0), (Fraction(_edge(edge)) - base) / span))

    _ordered(lower_edge, upper_edge)
    below = above = None
    if upper_edge is not None:
        above = round_up(base + span * _upper_end(scaled(upper_edge), budget_low))
    if lower_edge is not None:
        below = round_down(base + span * _lower_end(scaled(lower_edge), budget_high))
    return below, above


def cantelli_bar(
    lower_edge: float | None,
    upper_edge: float | None,
    sd: float,
    tail_low: float,
    tail_high: float,
) -> Bar:
    """Bounds on E φ for any φ with standard deviation ≤ sd: edge ± sd·√((1−ρ)/ρ) (Cantelli).

    √3·sd at ρ = 1/4, where the paper's Chebyshev bound has 2·sd (`intro-var`).

    >>> [round(x, 3) for x in cantelli_bar(0.0, 0.0, 1.0, 0.25, 0.25)]
    [-1.732, 1.732]
    """
    sd = real_number("sd", sd, 0)
    tail_low, tail_high = _tail(tail_low), _tail(tail_high)
    up = sd * math.sqrt((1 - tail_low) / tail_low)
    down = sd * math.sqrt((1 - tail_high) / tail_high)
    return _widened(lower_edge, upper_edge, down, up)


def deviation_bar(
    lower_edge: float | None,
    upper_edge: float | None,
    mad: float,
    tail_low: float,
    tail_high: float,
) -> Bar:
    """Bounds on E φ for any φ with mean absolute deviation ≤ mad: edge ± mad/(2ρ).

    2·mad at ρ = 1/4, where the paper has 4·mad (cor `mad-range`).

    >>> [round(x, 6) for x in deviation_bar(0.0, 0.1, 1.0, 0.25, 0.25)]
    [-2.0, 2.1]
    """
    mad = real_number("mad", mad, 0)
    up, down = mad / (2 * _tail(tail_low)), mad / (2 * _tail(tail_high))
    return _widened(lower_edge, upper_edge, down, up)


def mean_half_width(units: int, tail: float) -> float:
    """The most that `mean_bar` can lie beyond an edge, over all edges, for a range of length 1.

    The largest d with min over v of kl(v, v + d) ≤ ln(1/ρ)/t, rounded up; below Pinsker's
    √(ln(1/ρ)/(2t)). Upper and lower bars have the same worst case.

    >>> round(mean_half_width(400, 0.25), 6), round(math.sqrt(math.log(4) / 800), 6)
    (0.04162, 0.041628)
    """
    units = whole_number("units", units, 1, 10**18)
    budget = -math.log(_tail(tail)) / units * (1 + ROUNDING)
    start = min(1.0, math.sqrt(budget / 2) * (1 + ROUNDING))
    return _first_enough(lambda d: _least_divergence(d) >= budget, start)


def units_for_half_width(width: float, tail: float) -> int:
    """The smallest t with mean_half_width(t, ρ) ≤ width.

    ⌈ln(1/ρ) / min over v of kl(v, v + width)⌉, settled by `mean_half_width` itself.

    >>> units_for_half_width(0.05, 0.25), units_for_half_width(0.05, 0.01)
    (278, 921)
    """
    width = real_number("width", width, 0, 1, open_low=True, open_high=True)
    needed = -math.log(_tail(tail)) * (1 + ROUNDING) / _least_divergence(width)
    if abs(needed - round(needed)) > _DECIDED * needed:  # else rounding decides
        return math.ceil(needed)
    units = max(1, math.ceil(needed) - 1)
    while mean_half_width(units, tail) > width:
        units += 1
    return units


def _tail(tail: float) -> float:
    return real_number("tail", tail, 0, 1, open_low=True, open_high=True)


def _edge(edge: float) -> float:
    return real_number("edge", edge)


def _ordered(lower_edge: float | None, upper_edge: float | None) -> None:
    if lower_edge is not None and upper_edge is not None and lower_edge > upper_edge:
        raise InvalidInput("edges", (lower_edge, upper_edge), "(lower, upper) in rising order")


def _widened(lower_edge: float | None, upper_edge: float | None, down: float, up: float) -> Bar:
    _ordered(lower_edge, upper_edge)
    grow = Fraction(1) + Fraction(1, 10**14)  # covers the ulps of the product, root and quotient
    below = above = None
    # Beyond these sizes there is no bar: an error would come after the draw, and tell of it.
    if lower_edge is not None and max(abs(lower_edge), down) < _HUGE:
        below = round_down(Fraction(_edge(lower_edge)) - Fraction(down) * grow)
    if upper_edge is not None and max(abs(upper_edge), up) < _HUGE:
        above = round_up(Fraction(_edge(upper_edge)) + Fraction(up) * grow)
    return below, above


def _log_gap(x: float) -> float:
    """x − ln(1 + x) ≥ 0, without cancellation near 0."""
    if x <= -1:
        return math.inf
    if abs(x) > _SMALL:
        return x - math.log1p(x)
    total = 0.0
    for n in range(18, 1, -1):
        total = 1 / n - x * total
    return total * x * x


def _divergence(v: float, d: float) -> float:
    """kl(v, v + d) = v·g(d/v) + (1−v)·g(−d/(1−v)), g(x) = x − ln(1+x): nothing cancels."""
    zero = v * _log_gap(d / v) if v > 0 else d
    one = (1 - v) * _log_gap(-d / (1 - v)) if v < 1 else -d
    return zero + one


def _upper_end(edge: Fraction, budget: float) -> Fraction:
    """The largest μ with kl(edge, μ) ≤ budget, or a little more; at most 1."""
    v = round_up(edge)
    if 0 < v < _TINY:
        v = _TINY  # so that d/v stays finite; a larger edge only widens
    return min(Fraction(1), Fraction(v) + _distance(v, budget, 1 - v, +1))


def _lower_end(edge: Fraction, budget: float) -> Fraction:
    """The smallest μ with kl(edge, μ) ≤ budget, or a little less; at least 0."""
    v = round_down(edge)
    if v < _TINY:
        return Fraction(0)
    return max(Fraction(0), Fraction(v) - _distance(v, budget, v, -1))


def _distance(v: float, budget: float, room: float, sign: int) -> Fraction:
    """The smallest d in [0, room] that is certain to have kl(v, v ± d) ≥ budget; else room."""
    if room <= 0:
        return Fraction(0)
    goal = budget * (1 + ROUNDING)
    start = min(room, math.sqrt(goal / 2) * (1 + ROUNDING))  # Pinsker: far enough, or the end
    return Fraction(_first_enough(lambda d: _divergence(v, sign * d) >= goal, start))


def _least_divergence(d: float) -> float:
    """min over v of kl(v, v + d), at the root of logit(v) − logit(v+d) + d/((v+d)(1−v−d))."""
    if d >= 1:
        return math.inf
    if d < 1e-3:
        return _divergence(0.5 - 2 * d / 3, d)  # the root, but for a multiple of d³

    def rising(v: float) -> bool:
        q = v + d
        if q >= 1:
            return True
        slope = math.log(v / q) - math.log((1 - v) / (1 - q)) + d / (q * (1 - q))
        return slope >= 0

    return _divergence(_first_enough(rising, 1 - d), d)


def _first_enough(enough: Callable[[float], bool], high: float) -> float:
    """The smallest float in (0, high] with enough(x), by bisection; `high` where none is found."""
    low = 0.0
    while low < (middle := (low + high) / 2) < high:
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


# From a verdict on one side to a bound on the mean.
#
# A verdict says of D[φ ≥ v] or D[φ ≤ v]: above tail_low (Yes), or below tail_high (No). Where φ
# is the average of t independent terms in [low, high], Chernoff's bound makes of it a bound on
# the mean, as in `holdfast.theory.bars`:
#
#     at least v   Yes: D[φ ≥ v] > tail_low        mean ≥ the lower end from v at tail_low
#                  No:  D[φ < v] > 1 − tail_high   mean ≤ the upper end from v at 1 − tail_high
#     at most v    Yes: D[φ ≤ v] > tail_low        mean ≤ the upper end from v at tail_low
#                  No:  D[φ > v] > 1 − tail_high   mean ≥ the lower end from v at 1 − tail_high


def verdict_bar(
    guess: float,
    claim: Literal["at least", "at most"],
    confirmed: bool,
    units: int,
    tail_low: float,
    tail_high: float,
    low: float = 0.0,
    high: float = 1.0,
) -> Bar:
    """The bound on the mean that a one-sided verdict certifies; the range's end on the other side.

    2,500 units a block, tails 10⁻⁶ and 1 − 10⁻⁶, the guess that an accuracy is at least 0.85:

    >>> low, high = verdict_bar(0.85, "at least", True, 2_500, 1e-6, 1 - 1e-6)
    >>> round(low, 3), high
    (0.81, 1.0)
    >>> low, high = verdict_bar(0.85, "at least", False, 2_500, 1e-6, 1 - 1e-6)
    >>> low, round(high, 3)
    (0.0, 0.885)
    """
    # 1 − tail_high rounded down: a smaller tail makes the bound wider.
    tail = tail_low if confirmed else math.nextafter(1 - tail_high, 0.0)
    below = (claim == "at least") == confirmed
    if below:
        bound, _ = mean_bar(guess, None, units, tail, tail, low, high)
        return bound, high
    _, bound = mean_bar(None, guess, units, tail, tail, low, high)
    return low, bound


# Quantile intervals, exactly as the paper defines them, for finite distributions.
#
#     qi(a, b) = {v : P[Y ≤ v] > a and P[Y < v] < b},    0 ≤ a < b ≤ 1.
#
# The first side counts v itself, the second does not, and both comparisons are strict. For a
# finite distribution the set is a closed interval whose two ends are values of the distribution:
# P[Y ≤ v] jumps at a value and keeps the value it jumps to, P[Y < v] changes only after one. (A
# continuous distribution may leave its ends out.) Every comparison is between whole numbers or
# fractions: no division, no rounding. A float level means the number it stores, so 0.3 is a
# little less than 3/10; write Fraction(3, 10) for the latter.


Level = int | float | Fraction
Value = int | float | Fraction | np.integer[Any] | np.floating[Any]
Values = Sequence[Value] | NDArray[Any]
Weights = Sequence[int | Fraction] | NDArray[Any]


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
