"""What a number of failures says about the rate of failure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

import numpy as np

from holdfast.errors import Infeasible, real_number, whole_number
from holdfast.theory.numerics import smallest_whole


def failure_rate_bound(failures: int, trials: int, confidence: float = 0.95) -> float:
    """The one-sided Clopper–Pearson upper bound: rates above it would show more failures.

    The largest p with P[Bin(n, p) ≤ k] ≥ 1 − confidence, which is I⁻¹_confidence(k + 1, n − k)
    (Clopper & Pearson 1934). With no failure at all it is 1 − (1 − confidence)^(1/n).

    >>> round(failure_rate_bound(0, 300), 5), round(failure_rate_bound(3, 300), 5)
    (0.00994, 0.02564)
    """
    trials = whole_number("trials", trials, 1, 10**12)
    failures = whole_number("failures", failures, 0, trials)
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    if failures == trials:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(failures + 1, trials - failures, confidence))


# What curves on log axes say: exponents, growth, and where one falls below another.


def fitted_slope(x: Iterable[float], y: Iterable[float]) -> float:
    """The exponent b of y ≈ c·xᵇ: least squares on the logarithms; NaN without two different x.

    >>> round(fitted_slope([1, 10, 100], [3, 30, 300]), 12)
    1.0
    >>> round(fitted_slope([100, 400, 1600], [7, 14, 28]), 12)
    0.5
    """
    points = [(a, b) for a, b in zip(x, y, strict=True) if a > 0 and b > 0 and math.isfinite(b)]
    if len({a for a, _ in points}) < 2:
        return math.nan
    across, up = np.log(np.array(points, np.float64)).T
    across = across - across.mean()
    return float(across @ (up - up.mean()) / (across @ across))


def growth(x: Iterable[float], y: Iterable[float]) -> float:
    """How many times y at the largest x is y at the smallest; NaN without two different x.

    >>> growth([10, 1000, 100], [5, 20, 10])
    4.0
    """
    points = sorted(zip(x, y, strict=True))
    if len({a for a, _ in points}) < 2:
        return math.nan
    return float(points[-1][1] / points[0][1])


def per_decade(x: Iterable[float], y: Iterable[float]) -> list[float]:
    """What each tenfold x adds to y, from point to point: the same number if y grows with log x.

    >>> per_decade([10, 100, 10000], [5.0, 7.0, 11.0])
    [2.0, 2.0]
    """
    points = sorted(zip(x, y, strict=True))
    return [float((b - d) / math.log10(a / c)) for (c, d), (a, b) in pairwise(points) if a > c]


def first_below(
    ours: Callable[[int], float], theirs: Callable[[int], float], last: int
) -> int | None:
    """The smallest k ≤ last with ours(k) < theirs(k), by doubling and halving; else None.

    Exact where a curve that has fallen below the other one stays there.

    >>> first_below(lambda k: 100 * k**0.5, lambda k: 10 * k, last=1000)
    101
    >>> first_below(lambda k: 2 * k, lambda k: k, last=1000) is None
    True
    """
    try:
        return smallest_whole(lambda k: ours(k) < theirs(k), last)
    except Infeasible:
        return None


def crossing_point(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """Where ours falls to theirs, between the points that both have: straight lines on log axes.

    >>> crossing_point({10: 10, 100: 100}, {10: 1, 100: 1000})
    31.6...
    >>> crossing_point({10: 10, 100: 100}, {10: 1, 100: 99}) is None
    True
    """
    before: tuple[float, float] | None = None  # the last point above, and by how much
    for k in sorted(set(ours) & set(theirs)):
        gap = math.log(ours[k] / theirs[k])
        if gap <= 0:
            if before is None:
                return float(k)
            share = before[1] / (before[1] - gap)
            return float(before[0] * (k / before[0]) ** share)
        before = (k, gap)
    return None


# Whether so many failures can come from a promised rate.


_SURPRISE = 1e-6


def can_be_rate(failed: int, sessions: int, rate: float) -> bool:
    """False if so many failures, or more, have a chance below a millionth at the rate.

    >>> can_be_rate(1, 4, 0.05), can_be_rate(4, 4, 0.05), can_be_rate(5, 5, 0.05)
    (True, True, False)
    """
    return 1 - failure_rate_bound(sessions - failed, sessions, 1 - _SURPRISE) <= rate
