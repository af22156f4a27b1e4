"""Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi & Shenfeld 2020, for Gaussian noise.

("A new analysis of differential privacy's generalization guarantees", ITCS.) Think of the rows as
drawn again after the last answer, from what the answers leave possible. An answer that is near the
sample is then near the mean of that posterior, and privacy keeps the posterior's mean near the
population's. For all ε, δ of the noise, all α, β′ with which its answers are near the sample, and
all c, d > 0,

    width = α + c + e^ε − 1 + 2d     but for a probability     β′/c + δ/d.

With k Gaussian noises α = σ√2·erfc⁻¹(β′/k). Given β, the best c and d have
c + 2d = (√β′ + √(2δ))²/β. Their own figures take β′ = δ and c = d, where c + 2d = 6δ/β
(`shares="equal"`); choosing all of them (`shares="best"`) gains a little. Proof:
docs/explanation/published-widths.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from holdfast.baselines.published.noise import dp_epsilon, sigma_of, union_reach
from holdfast.baselines.published.search import checked, checked_target, lowest, most_queries
from holdfast.errors import InvalidInput
from holdfast.theory.numerics import ROUNDING

__all__ = ["Jung", "Shares", "best", "queries_at", "width"]

Shares = Literal["best", "equal"]


class Jung(NamedTuple):
    """The half-width, and what it was proved with; `missed` is β′."""

    width: float
    sigma: float
    epsilon: float
    delta: float
    missed: float


def width(rows: int, queries: int, failure: float, *, shares: Shares = "best") -> float:
    """The smallest half-width of k means, over the noise, δ and the shares of β; at most 1.

    >>> round(width(100_000, 153, 0.05), 4), round(width(100_000, 153, 0.05, shares="equal"), 4)
    (0.0994, 0.0999)
    """
    return min(1.0, best(rows, queries, failure, shares=shares).width)


def queries_at(rows: int, half_width: float, failure: float, *, shares: Shares = "best") -> int:
    """The most questions with half-widths of at most this; 0 if there is none.

    >>> [queries_at(100_000, 0.1, 0.05, shares=shares) for shares in ("best", "equal")]
    [156, 153]
    >>> [queries_at(100_000, 0.1, 0.001, shares=shares) for shares in ("best", "equal")]
    [77, 77]
    """
    rows, half_width, failure = checked_target(rows, half_width, failure)
    return most_queries(lambda k: width(rows, k, failure, shares=shares), half_width)


def best(rows: int, queries: int, failure: float, *, shares: Shares = "best") -> Jung:
    """The choice with the smallest half-width.

    >>> found = best(100_000, 153, 0.05)
    >>> round(found.sigma, 4), round(found.epsilon, 4), found.missed < found.delta
    (0.0094, 0.0432, True)
    """
    rows, queries, failure = checked(rows, queries, failure)
    if shares not in ("best", "equal"):
        raise InvalidInput("shares", shares, "'best' or 'equal'")

    def at(x: Sequence[float]) -> Jung:
        kappa, delta, missed = math.exp(min(x[0], 9.0)), _chance(x[1]), _chance(x[-1])
        return _at(rows, queries, failure, kappa, delta, missed, shares)

    nats = math.log(1e4 / failure)
    kappa = math.sqrt(queries * math.log(queries + 2) / nats) / (2 * rows)
    start = [math.log(kappa), -nats, -nats][: 2 if shares == "equal" else 3]
    return at(lowest(lambda x: math.log(at(x).width), start))


def _chance(log_chance: float) -> float:
    return math.exp(min(max(log_chance, -600.0), -1e-9))


def _at(
    rows: int,
    queries: int,
    failure: float,
    kappa: float,
    delta: float,
    missed: float,
    shares: Shares,
) -> Jung:
    epsilon, sigma = dp_epsilon(kappa, delta), sigma_of(rows, queries, kappa)
    if shares == "equal":
        resampled = 3 * (missed + delta) / failure
    else:
        resampled = (math.sqrt(missed) + math.sqrt(2 * delta)) ** 2 / failure
    drift = math.expm1(min(epsilon, 99.0)) + resampled
    total = drift + union_reach(queries, sigma, missed)
    return Jung(total * (1 + ROUNDING), sigma, epsilon, delta, missed)
