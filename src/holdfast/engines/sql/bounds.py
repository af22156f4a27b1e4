"""Intervals: between which numbers an expression's value lies, whatever the data.

An interval bounds every value that is a number; `null` and `nan` say whether NULL and NaN are
possible too. NaN sorts above all numbers, as in DuckDB. +, −, ·, / and rounding are monotone in
floating point as they are over the reals, so the ends are exact; where a library computes (exp, ln,
powers) the ends are moved outwards by a few units in the last place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

__all__ = [
    "Bound",
    "Interval",
    "absolute",
    "add",
    "case",
    "coalesce",
    "divide",
    "fixed",
    "greatest",
    "hull",
    "least",
    "modulo",
    "monotone",
    "multiply",
    "negate",
    "never_null",
    "nullable",
    "power",
    "same_steps",
    "strict",
    "subtract",
]

_LIBRARY_ULPS = 4  # more than any of glibc's functions is off


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from low to high; perhaps NULL, perhaps NaN."""

    low: float = -math.inf
    high: float = math.inf
    null: bool = True
    nan: bool = True

    @property
    def finite(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    def holds(self, number: float) -> bool:
        return self.low <= number <= self.high


Bound = Callable[[Sequence[Interval]], Interval]


def _any_null(arguments: Sequence[Interval]) -> bool:
    return any(each.null for each in arguments)


def _any_nan(arguments: Sequence[Interval]) -> bool:
    return any(each.nan for each in arguments)


def strict(low: float, high: float, *, nan: bool = False) -> Bound:
    """Always between low and high; NULL of NULL, NaN perhaps of NaN."""

    def bound(arguments: Sequence[Interval]) -> Interval:
        return Interval(low, high, _any_null(arguments), nan or _any_nan(arguments))

    return bound


def fixed(low: float, high: float) -> Bound:
    """Always between low and high, NULL of NULL, and never NaN: truth values, parts of a date."""
    return lambda arguments: Interval(low, high, _any_null(arguments), nan=False)


def nullable(bound: Bound) -> Bound:
    """The same, and perhaps NULL."""
    return lambda arguments: replace(bound(arguments), null=True)


def never_null(bound: Bound) -> Bound:
    """The same, and never NULL."""
    return lambda arguments: replace(bound(arguments), null=False)


def _around(ends: Sequence[float], null: bool, nan: bool) -> Interval:
    """The interval of these ends; what is no number (∞ − ∞) bounds nothing."""
    low = min(-math.inf if math.isnan(x) else x for x in ends)
    high = max(math.inf if math.isnan(x) else x for x in ends)
    return Interval(low, high, null, nan)


def hull(intervals: Sequence[Interval]) -> Interval:
    """The smallest interval that holds all of them."""
    low, high = min(x.low for x in intervals), max(x.high for x in intervals)
    return Interval(low, high, _any_null(intervals), _any_nan(intervals))


def negate(arguments: Sequence[Interval]) -> Interval:
    """−x"""
    (x,) = arguments
    return replace(x, low=-x.high, high=-x.low)


def absolute(arguments: Sequence[Interval]) -> Interval:
    """|x|"""
    (x,) = arguments
    ends = abs(x.low), abs(x.high)
    return replace(x, low=0.0 if x.holds(0.0) else min(ends), high=max(ends))


def add(arguments: Sequence[Interval]) -> Interval:
    """x + y"""
    x, y = arguments
    nan = _any_nan(arguments) or not (x.finite or y.finite)
    low, high = x.low + y.low, x.high + y.high
    low = -math.inf if math.isnan(low) else low
    high = math.inf if math.isnan(high) else high
    return Interval(low, high, _any_null(arguments), nan)


def subtract(arguments: Sequence[Interval]) -> Interval:
    """x − y"""
    x, y = arguments
    return add([x, negate([y])])


def multiply(arguments: Sequence[Interval]) -> Interval:
    """x·y"""
    x, y = arguments
    nan = (not x.finite and y.holds(0.0)) or (not y.finite and x.holds(0.0))
    # 0·∞ is NaN as a value; as an end of values that are numbers it is 0.
    ends = [
        0.0 if 0.0 in (a, b) else a * b
        for a, b in itertools.product((x.low, x.high), (y.low, y.high))
    ]
    return _around(ends, _any_null(arguments), nan or _any_nan(arguments))


def divide(arguments: Sequence[Interval]) -> Interval:
    """x / y, where a division by 0 is NULL."""
    x, y = arguments
    null = _any_null(arguments) or y.holds(0.0)
    nan = _any_nan(arguments) or not (x.finite or y.finite)
    if not y.holds(0.0):
        ends = [a / b for a, b in itertools.product((x.low, x.high), (y.low, y.high))]
        return _around(ends, null, nan)
    same_sign = (x.low >= 0 and y.low >= 0) or (x.high <= 0 and y.high <= 0)
    return Interval(0.0 if same_sign else -math.inf, math.inf, null, nan)


def modulo(arguments: Sequence[Interval]) -> Interval:
    """The remainder has the sign of x and is smaller than |y|; of 0 it is NULL."""
    x, y = arguments
    most = max(abs(y.low), abs(y.high))
    low, high = (0.0 if x.low >= 0 else -most), (0.0 if x.high <= 0 else most)
    nan = _any_nan(arguments) or not x.finite
    return Interval(low, high, _any_null(arguments) or y.holds(0.0), nan)


def power(arguments: Sequence[Interval]) -> Interval:
    """For x ≥ 0 monotone in x and in y, so that the corners bound it; else whole powers alone."""
    x, y = arguments
    null, nan = _any_null(arguments), _any_nan(arguments)
    if x.low >= 0:
        corners = itertools.product((x.low, x.high), (y.low, y.high))
        ends = [_power(a, b) for a, b in corners]
        if x.low == 0 and y.low < 0 and (y.low < y.high or y.low % 2 == 1):
            ends.append(-math.inf)  # of −0, which is no lower than 0: power(−0, −1) is −∞
        return _outwards(_around(ends, null, nan))
    if y.low == y.high and y.low >= 0 and y.low.is_integer():
        ends = [_power(x.low, y.low), _power(x.high, y.low)]
        if y.low % 2 == 0 and x.holds(0.0):
            ends.append(0.0)
        if y.low == 0:
            ends = [1.0]
        return _outwards(_around(ends, null, nan))
    return Interval(null=null, nan=True)


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:  # 0 to a negative power
        return math.inf


def _outwards(x: Interval) -> Interval:
    low, high = x.low, x.high
    for _ in range(_LIBRARY_ULPS):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return replace(x, low=low, high=high)


def monotone(
    function: Callable[[float], float],
    domain: tuple[float, float] = (-math.inf, math.inf),
    image: tuple[float, float] = (-math.inf, math.inf),
) -> Bound:
    """An increasing function of a library; NaN outside its domain, and inside its image always."""

    def at(end: float, otherwise: float) -> float:
        try:
            return function(end)
        except OverflowError:
            return math.inf if end > 0 else -math.inf
        except ValueError:  # an end of the domain, as ln 0
            return otherwise

    def bound(arguments: Sequence[Interval]) -> Interval:
        (x,) = arguments
        low, high = max(x.low, domain[0]), min(x.high, domain[1])
        nan = x.nan or x.low < domain[0] or x.high > domain[1]
        if low > high:
            return Interval(*image, x.null, nan)
        wide = _outwards(Interval(at(low, image[0]), at(high, image[1]), x.null, nan))
        return replace(wide, low=max(wide.low, image[0]), high=min(wide.high, image[1]))

    return bound


def same_steps(function: Callable[[float], float]) -> Bound:
    """Rounding to steps: increasing, the same everywhere, and infinity stays as it is."""

    def at(end: float) -> float:
        return end if math.isinf(end) else float(function(end))

    return lambda arguments: replace(
        arguments[0], low=at(arguments[0].low), high=at(arguments[0].high)
    )


def least(arguments: Sequence[Interval]) -> Interval:
    """The least of those that are not NULL; NaN is above all numbers."""
    every = hull(arguments)
    solid = [x for x in arguments if not x.null and not x.nan]
    high = min([every.high, *(x.high for x in solid)])
    null = all(x.null for x in arguments)
    return Interval(every.low, high, null, every.nan and not solid)


def greatest(arguments: Sequence[Interval]) -> Interval:
    """The greatest of those that are not NULL; NaN is above all numbers."""
    every = hull(arguments)
    low = max([every.low, *(x.low for x in arguments if not x.null)])
    return Interval(low, every.high, all(x.null for x in arguments), every.nan)


def coalesce(arguments: Sequence[Interval]) -> Interval:
    """The first that is not NULL."""
    last = next((n for n, x in enumerate(arguments) if not x.null), len(arguments) - 1)
    return replace(hull(arguments[: last + 1]), null=arguments[last].null)


def case(arguments: Sequence[Interval]) -> Interval:
    """CASE: condition, value, condition, value, …, and the value of ELSE."""
    values = [*arguments[1:-1:2], arguments[-1]]
    return hull(values)
