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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from holdfast.errors import real_number
from holdfast.theory.numerics import ROUNDING, log_co_ratio, log_ratio, moment_excess

__all__ = [
    "ORDER_MAX",
    "ORDER_MIN",
    "Curve",
    "GaussianCurve",
    "RenyiCurve",
    "bernoulli_divergence",
    "divergence",
    "largest_probability",
    "smallest_probability",
]

ORDER_MIN = 1.01
ORDER_MAX = 1e4

_LOG_TINY = -690.0  # floats below e⁻⁶⁹⁰ soon lose digits
_CLOSE = 1e-14  # relative: where the search for a crossing ends
_SECANTS = 16  # then halves: rounding may lead secants astray


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
    # Search the log-odds: full relative accuracy for P near 0 and for 1 − P near 0 alike.
    above = _crossing(
        lambda odds: bernoulli_divergence(a, _probability(odds), q),
        limit,
        (math.log(q) - math.log1p(-q), 40.0),
        math.sqrt(2.0 * limit / (a * q * (1.0 - q))),
    )
    return min(1.0, (1.0 + ROUNDING) * _probability(above))


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
    def costs(minus_log: float) -> float:
        q = math.exp(-minus_log)
        return bernoulli_divergence(a, p, q) if q > 0.0 else math.inf

    last = limit + 800.0 - math.log(p)
    first_step = math.sqrt(2.0 * limit * (1.0 - p) / (a * p))
    below = -_crossing(costs, limit, (-math.log(p), last), first_step)
    if below < _LOG_TINY:
        return 0.0
    # An order near 1 determines Q that much less well.
    return math.exp(below) * (1.0 - ROUNDING * max(1.0, 1.0 / (a - 1.0)))


def _probability(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > _LOG_TINY else math.exp(log_odds)


def _crossing(
    costs: Callable[[float], float], limit: float, ends: tuple[float, float], step: float
) -> float:
    """A point where a rising divergence exceeds the limit; hardly below, it does not.

    Secant steps on the root of the divergence, nearly a straight line from 0 at the first end.
    They aim a little beyond the crossing, so that both ends of the bracket close on it.
    """
    goal, (low, high) = math.sqrt(limit), ends
    before, root_before, x = low, 0.0, low + step
    for count in range(200):
        if count > _SECANTS or not low < x < high:
            x = 0.5 * (low + high)
        close = _CLOSE * (1.0 + abs(x))
        if high - low <= close:
            break
        root = math.sqrt(costs(x))
        low, high = (x, high) if root <= goal else (low, x)
        rise, run = root - root_before, x - before
        before, root_before = x, root
        beyond = math.copysign(0.25 * close, goal - root)
        x = x + (goal - root) / rise * run + beyond if 0.0 < rise * run < math.inf else low
    return high


# Stability curves: how likely an event can be under one law, given its chance under a close one.
#
# A curve F says of two laws M and Q: every event of probability q under Q has probability at most
# F(q) under M. All that the transfer theorem needs is that F is concave and nondecreasing; it can
# come from a Rényi divergence, from Gaussian differential privacy, from an (ε, δ) profile, or from
# a numerically composed one (`holdfast.theory.transfer`).


class Curve(Protocol):
    """A concave, nondecreasing F with F(q) ≥ q, rounded up, and its inverse, rounded down."""

    def largest(self, q: float) -> float:
        """F(q): the most an event of probability q can become."""
        ...

    def smallest(self, p: float) -> float:
        """min{q : F(q) ≥ p}: the least an event of probability p can have been."""
        ...


@dataclass(frozen=True)
class RenyiCurve:
    """F(q) = max{P : D_order(P‖q) ≤ budget} (theory.md §4)."""

    order: float
    budget: float

    def largest(self, q: float) -> float:
        return largest_probability(self.order, self.budget, q)

    def smallest(self, p: float) -> float:
        return smallest_probability(self.order, self.budget, p)


@dataclass(frozen=True)
class GaussianCurve:
    """F(q) = Φ(Φ⁻¹(q) + mu): mu-Gaussian differential privacy (Dong, Roth & Su 2022).

    >>> round(GaussianCurve(mu=1.0).largest(0.05), 4)
    0.2595
    """

    mu: float

    def largest(self, q: float) -> float:
        return self._shift(q, self.mu, 1 + ROUNDING)

    def smallest(self, p: float) -> float:
        return self._shift(p, -self.mu, 1 - ROUNDING)

    @staticmethod
    def _shift(probability: float, mu: float, rounding: float) -> float:
        from scipy.special import ndtr, ndtri

        probability = real_number("probability", probability, 0, 1)
        return min(1.0, float(ndtr(ndtri(probability) + mu)) * rounding)
