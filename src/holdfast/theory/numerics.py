"""Sums and differences that cancel, written so that they do not.

Prices and divergences of neighbouring coins are tiny numbers made from numbers near 1: as their
formulas stand, a float keeps few digits of them. These keep about thirteen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from holdfast.errors import Infeasible, real_number, whole_number

__all__ = [
    "ROUNDING",
    "binomial_tail",
    "exp_beyond_linear",
    "log_binomial_tail",
    "log_co_ratio",
    "log_ratio",
    "log_up",
    "moment_excess",
    "round_down",
    "round_up",
    "smallest_whole",
]

# Relative: by this much a bound is moved towards safety. It covers what one evaluation loses, at
# most about 1e-13 (tested against 50-digit arithmetic), and is far too little to change a plan.
ROUNDING = 1e-12

# Floats, for a float is divided faster by one than by a whole number.
_FALLING = tuple(float(n) for n in range(16, 2, -1))
_RISING = tuple((float(n), float(n - 1)) for n in range(2, 18))


def exp_beyond_linear(u: float) -> float:
    """eᵘ − 1 − u ≥ 0, without cancellation near 0."""
    if abs(u) > 0.5:
        return math.expm1(u) - u
    if abs(u) < 1e-3:  # most of a coin's steps; what is left out is below 1e-14 of it
        return u * u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5)))
    total = 1.0
    for n in _FALLING:
        total = 1.0 + total * u / n
    return total * u * u / 2


def entropy_gap(x: float) -> float:
    """x eˣ − eˣ + 1 ≥ 0, without cancellation near 0: Σ_{n≥2} xⁿ / (n (n−2)!)."""
    if abs(x) > 0.5:
        return x * math.exp(x) - math.expm1(x)
    if abs(x) < 1e-3:
        return x * x * (1 / 2 + x * (1 / 3 + x * (1 / 8 + x * (1 / 30 + x / 144))))
    total = 0.0
    power = x * x
    for n, before in _RISING:
        total += power / n
        power *= x / before
        if -1e-17 * total < power < 1e-17 * total:  # no further term changes a bit of it
            break
    return total


def moment_excess(s: float, x: float) -> float:
    """e^((s+1)x) − 1 − (s+1)(eˣ − 1) ≥ 0."""
    return math.exp(x) * exp_beyond_linear(s * x) + s * entropy_gap(x)


def log_ratio(p: float, q: float) -> float:
    """ln(p/q); the difference of near-equal floats is exact, their quotient is not."""
    gap = (p - q) / q
    return math.log1p(gap) if abs(gap) < 0.5 else math.log(p) - math.log(q)


def log_co_ratio(p: float, q: float) -> float:
    """ln((1−p)/(1−q)), accurate for tiny p and q."""
    gap = (q - p) / (1 - q)
    return math.log1p(gap) if abs(gap) < 0.5 else math.log1p(-p) - math.log1p(-q)


def round_up(x: Fraction) -> float:
    """The least float that is at least x."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def round_down(x: Fraction) -> float:
    """The greatest float that is at most x."""
    nearest = float(x)
    return nearest if Fraction(nearest) <= x else math.nextafter(nearest, -math.inf)


# Binomial tails, rounded outward, and the search for the smallest whole number that is enough.


# The incomplete beta function is right to about 1e-12 (tested against sums of exact fractions).
_ROUNDING = 1e-10
_TINY = math.ulp(0.0)


def binomial_tail(trials: int, probability: float, at_least: int) -> float:
    """P[Bin(n, p) ≥ c] = I_p(c, n − c + 1), rounded up, also where it is 10⁻³⁰⁰.

    >>> binomial_tail(3, 0.5, 2)
    0.50000000005
    >>> binomial_tail(57, 0.25, 29)
    2.3...e-05
    """
    trials = whole_number("trials", trials, 0, 10**15)
    probability = real_number("probability", probability, 0, 1)
    if at_least <= 0:
        return 1.0
    if at_least > trials or probability == 0:
        return 0.0
    from scipy.special import betainc

    exact = float(betainc(at_least, trials - at_least + 1, probability))
    return min(1.0, exact * (1 + _ROUNDING) + _TINY)


def smallest_whole(enough: Callable[[int], bool], limit: int) -> int:
    """The smallest n in [1, limit] with enough(n), for a condition that stays true once true.

    >>> smallest_whole(lambda n: n * n >= 50, 100)
    8
    """
    high = 1
    while not enough(high):
        if high >= limit:
            remedy = "Ask fewer questions, or allow a larger tail or a lower confidence."
            raise Infeasible("Size", f"more than {limit:,}", "that is the limit", remedy)
        high = min(2 * high, limit)
    low = high // 2  # not enough, or zero
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


# Logarithms of binomial tails and of counts, rounded up, for numbers far outside the floats.


_ULP = 2.0**-52
_MOST_TERMS = 2**20


def log_binomial_tail(trials: int, probability: float, at_least: int) -> float:
    """ln P[Bin(n, p) ≥ c], rounded up, however small it is.

    For c > np it is P[Bin = c]·(1 + r₁ + r₁r₂ + …) with r_j = (n−c−j+1)·p/((c+j)·(1−p)) < 1. These
    fall, so that all after the last one that is summed are at most a geometric series. Elsewhere it
    is 1 less the tail of the other side. The first factor is Loader's (2000)

        ln P[Bin = c] = δ(n) − δ(c) − δ(n−c) − D(c, np) − D(n−c, n(1−p)) + ½·ln(n/(2πc(n−c))),

    δ(m) = ln m! less Stirling's formula, D(x, m) = x·ln(x/m) + m − x, in which nothing cancels.
    Chernoff's bound, exp(−D(c, np) − D(n−c, n(1−p))), is some five nats more. It needs no SciPy,
    whose import takes longer than most answers.

    >>> log_binomial_tail(57, 0.25, 29), log_binomial_tail(24_059, 0.25, 12_030)
    (-10.64..., -3466.08...)
    """
    n = whole_number("trials", trials, 0, 10**15)
    p = real_number("probability", probability, 0, 1)
    if at_least <= 0 or (p == 1 and at_least <= n):
        return log_up(0.0)
    if at_least > n or p == 0:
        return -math.inf
    if at_least > n * p:
        return log_up(_log_far_tail(n, p, 1 - p, at_least)[1])
    below = _log_far_tail(n, 1 - p, p, n - at_least + 1)[0]
    return log_up(math.log1p(-math.exp(below)) if below < 0 else -math.inf)


def _log_far_tail(n: int, p: float, q: float, c: int) -> tuple[float, float]:
    """Below and above ln P[Bin(n, p) ≥ c], for c > np and q = 1 − p.

    D is off by a few units of itself and of |c − np|, since n·p is rounded; the k-th product by 4k.
    """
    first, away = 0.0, abs(c - n * p)
    if c == n:
        first, away = n * math.log(p), n * abs(math.log(p))
    else:
        apart = _deviance(c, n * p) + _deviance(n - c, n * q)
        first = _stirling(n) - _stirling(c) - _stirling(n - c) - apart
        first += 0.5 * math.log(n / (2 * math.pi * c * (n - c)))
        away += apart
    odds = p / q
    fall = max(1e-9, -math.log(max(1e-300, odds * (n - c) / (c + 1))))
    terms = 16 + int(min(40 / fall, 9 * math.sqrt(n * p * q)))  # about as many as are felt
    while True:
        terms = min(n - c, terms, _MOST_TERMS)
        steps = np.arange(1, terms + 1)
        products = np.cumprod((n - c + 1 - steps) * odds / (c + steps))
        total = 1.0 + float(products.sum())
        after = (n - c - terms) * odds / (c + terms + 1)
        rest = float(products[-1]) * after / (1 - after) if terms else 0.0
        if rest <= _ULP * total or terms in (n - c, _MOST_TERMS):
            break
        terms *= 4
    slack = 16 * _ULP * (8 + away + terms)
    return first + math.log(total) - slack, first + math.log(total + rest) + slack


def _deviance(x: int, mean: float) -> float:
    """x·ln(x/m) + m − x for x > 0, by a series in (x − m)/(x + m) where they are near."""
    gap = x - mean
    if abs(gap) >= 0.1 * (x + mean):
        return x * (math.log(x) - math.log(mean)) - gap
    share = gap / (x + mean)
    total, term = gap * share, 2 * x * share
    for odd in range(3, 100, 2):
        term *= share * share
        total, before = total + term / odd, total
        if total == before:
            break
    return total


def _stirling(m: int) -> float:
    """ln m! − (m + ½)·ln m + m − ½·ln 2π, for m > 0."""
    if m < 16:
        return math.lgamma(m + 1) - (m + 0.5) * math.log(m) + m - 0.5 * math.log(2 * math.pi)
    square = 1 / (m * m)
    inner = 1 / 1260 - square * (1 / 1680 - square / 1188)
    return (1 / 12 - square * (1 / 360 - square * inner)) / m


def log_up(logarithm: float) -> float:
    """Moved towards safety, by more than a few operations lose."""
    return logarithm + ROUNDING * (1 + abs(logarithm)) if logarithm > -math.inf else logarithm
