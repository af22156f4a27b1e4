"""Rényi divergence between two coins, and its inverse: the largest probability a budget allows.

    D_a(p‖q) = ln(pᵃ q¹⁻ᵃ + (1−p)ᵃ (1−q)¹⁻ᵃ) / (a − 1),   a > 1.

The sum in the logarithm is 1 + (a−1)·D to first order, so evaluating it as written loses every
digit of a small divergence. With x = ln(p/q), y = ln((1−p)/(1−q)) and s = a − 1 it equals

    1 + q·e(x) + (1−q)·e(y),    e(x) = eˣ (eˢˣ − 1 − s x) + s (x eˣ − eˣ + 1),

where both brackets are non-negative and have short power series: nothing cancels
(`holdfast.theory.numerics`).
"""

from __future__ import annotations

import math

from holdfast.arguments import real_number
from holdfast.theory.numerics import ROUNDING, log_co_ratio, log_ratio, moment_excess

__all__ = [
    "ORDER_MAX",
    "ORDER_MIN",
    "bernoulli_divergence",
    "divergence",
    "largest_probability",
    "smallest_probability",
]

ORDER_MIN = 1.01
ORDER_MAX = 1e4

_LOG_TINY = -690.0  # floats below e⁻⁶⁹⁰ soon lose digits


def bernoulli_divergence(a: float, p: float, q: float) -> float:
    """D_a(p‖q) without checks, for inner loops: a > 1 and 0 ≤ p, q ≤ 1 are the caller's care."""
    if p == q:
        return 0.0
    if q in (0.0, 1.0):
        return math.inf
    if p == 0.0:
        return -math.log1p(-q)
    if p == 1.0:
        return -math.log(q)
    s = a - 1.0
    x, y = log_ratio(p, q), log_co_ratio(p, q)
    one, two = math.log(q) + a * x, math.log1p(-q) + a * y
    if max(one, two) < 1.0 and x < 700.0:
        return math.log1p(q * moment_excess(s, x) + (1 - q) * moment_excess(s, y)) / s
    # The sum exceeds e, so nothing cancels, but it may not fit a float.
    high, low = max(one, two), min(one, two)
    return (high + math.log1p(math.exp(low - high))) / s


def divergence(order: float, p: float, q: float) -> float:
    """D_order(p‖q) of Bernoulli(p) from Bernoulli(q), to about 1e-13 relative.

    >>> round(divergence(2, 0.5, 0.25), 12) == round(math.log(4 / 3), 12)
    True
    >>> divergence(20, 0.02, 0.0125)
    0.264402...
    """
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    return bernoulli_divergence(a, real_number("p", p, 0, 1), real_number("q", q, 0, 1))


def largest_probability(order: float, budget: float, q: float) -> float:
    """F(q) = max{P : D_order(P‖q) ≤ budget}, rounded up.

    The largest probability an event can have under a law that is `budget`-close to one that
    gives it q. Concave and nondecreasing in q, F(q) ≥ q, F(0) = 0 (theory: transfer).

    >>> largest_probability(20, 0.264402, 0.0125)
    0.019999...
    """
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    limit = real_number("budget", budget, 0)
    q = real_number("q", q, 0, 1)
    if q == 0.0 or limit == 0.0:
        return q
    if bernoulli_divergence(a, 1.0, q) <= limit:
        return 1.0
    # Bisect the log-odds: full relative accuracy for P near 0 and for 1 − P near 0 alike.
    low, high = math.log(q) - math.log1p(-q), 40.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if bernoulli_divergence(a, 1.0 / (1.0 + math.exp(-middle)), q) <= limit:
            low = middle
        else:
            high = middle
    return min(1.0, (1.0 + ROUNDING) / (1.0 + math.exp(-high)))


def smallest_probability(order: float, budget: float, p: float) -> float:
    """G(p) = min{Q : F(Q) ≥ p}, rounded down: the inverse of `largest_probability`.

    >>> smallest_probability(20, 0.264402, 0.02)
    0.012500...
    """
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    limit = real_number("budget", budget, 0)
    p = real_number("p", p, 0, 1)
    if p == 0.0 or limit == 0.0:
        return p
    # F(Q) ≥ p exactly when D(p‖Q) ≤ budget, and D(p‖Q) falls as Q rises to p.
    low, high = math.log(p) - limit - 800.0, math.log(p)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        q = math.exp(middle)
        if q > 0.0 and bernoulli_divergence(a, p, q) <= limit:
            high = middle
        else:
            low = middle
    if low < _LOG_TINY:
        return 0.0
    # An order near 1 determines Q that much less well.
    return math.exp(low) * (1.0 - ROUNDING * max(1.0, 1.0 / (a - 1.0)))
