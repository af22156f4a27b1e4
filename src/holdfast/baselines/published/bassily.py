"""Bassily, Nissim, Smith, Steinke, Stemmer & Ullman 2016, in the form of later comparisons.

("Algorithmic stability for adaptive data analysis", STOC.) The first proof with the best rate: a
monitor runs the whole conversation on T = ⌊1/β⌋ independent samples and picks the worst answer of
all; if one conversation failed with probability more than β, the worst of T would be wrong by a
lot on average, which privacy forbids. With Gaussian noise, for every κ and δ,

    width = (e^ε − 1 + 2Tδ + t) / (1 − (1 − β)^T),    t = √(k ln(4k/δ)/κ)/n,

ε that of κ and δ (`noise.dp_epsilon`), t how far k noises go but for a probability δ/2. This is
how Rogers et al. 2020 compare with it; the theorem as it is printed, with 18ε, asks for far more
(`holdfast.baselines.noisy_means.rows_by_bassily`). Proofs of both:
docs/explanation/published-widths.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.baselines.published.noise import dp_epsilon, sigma_of, tail_reach
from holdfast.baselines.published.search import checked, checked_target, lowest, most_queries
from holdfast.theory.numerics import ROUNDING

__all__ = ["Bassily", "best", "queries_at", "width"]


class Bassily(NamedTuple):
    """The half-width, and what it was proved with."""

    width: float
    sigma: float
    epsilon: float
    delta: float


def width(rows: int, queries: int, failure: float) -> float:
    """The smallest half-width of k means, over the noise and δ; at most 1.

    >>> round(width(100_000, 29, 0.05), 4), round(width(100_000, 30, 0.05), 4)
    (0.0993, 0.1002)
    """
    return min(1.0, best(rows, queries, failure).width)


def queries_at(rows: int, half_width: float, failure: float) -> int:
    """The most questions with half-widths of at most this; 0 if there is none.

    >>> queries_at(100_000, 0.1, 0.05), queries_at(100_000, 0.1, 0.001)
    (29, 13)
    """
    rows, half_width, failure = checked_target(rows, half_width, failure)
    return most_queries(lambda k: width(rows, k, failure), half_width)


def best(rows: int, queries: int, failure: float) -> Bassily:
    """The choice of noise and δ with the smallest half-width.

    >>> found = best(100_000, 29, 0.05)
    >>> round(found.sigma, 4), round(found.epsilon, 4), f"{found.delta:.1e}"
    (0.006, 0.0277, '1.0e-04')
    """
    rows, queries, failure = checked(rows, queries, failure)

    def at(x: Sequence[float]) -> Bassily:
        kappa, delta = math.exp(min(x[0], 9.0)), math.exp(min(max(x[1], -600.0), -1e-9))
        return _at(rows, queries, failure, kappa, delta)

    nats = math.log(1e4 / failure)
    kappa = math.sqrt(queries * math.log(queries + 2) / nats) / (2 * rows)
    return at(lowest(lambda x: math.log(at(x).width), [math.log(kappa), -nats]))


def _at(rows: int, queries: int, failure: float, kappa: float, delta: float) -> Bassily:
    copies = math.floor(1 / failure)
    epsilon, sigma = dp_epsilon(kappa, delta), sigma_of(rows, queries, kappa)
    drift = math.expm1(min(epsilon, 99.0)) + 2 * copies * delta
    noise = tail_reach(queries, sigma, delta / 2)
    caught = -math.expm1(copies * math.log1p(-failure))
    return Bassily((drift + noise) / caught * (1 + ROUNDING), sigma, epsilon, delta)
