"""Binomial tails, rounded outward, and the search for the smallest whole number that is enough."""

from __future__ import annotations

import math
from collections.abc import Callable

from holdfast.arguments import real_number, whole_number
from holdfast.errors import Infeasible

__all__ = ["binomial_tail", "smallest_whole"]

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
