"""Rogers, Roth, Smith, Srebro, Thakkar & Woodworth 2020, theorem 2.1.

("Guaranteed validity for empirical approaches to adaptive data analysis", AISTATS.) Gaussian noise
tells little about the rows: at most ρkn nats. Little information makes the square of the error
small on average (Russo & Zou 2016), Markov's inequality makes it small but for β/2, and the other
half of β is for the noise:

    width = √( min over λ in [0, 1) of (2ρkn − ln(1 − λ))/λ / (2nβ) ) + √(ln(4k/β)/ρ)/(2n),

for every ρ > 0. With u = 1/(1 − λ) the inner minimum is u where 2ρkn = u − 1 − ln u, so that one
parameter is left to choose. The noise is σ = 1/(n√(8ρ)): a value in [0, 1] is within 1/2 of the
middle, which is what its information costs, and twice that is what its privacy costs. With the
noise that has concentrated privacy ρ, σ = 1/(n√(2ρ)), the last term would be twice as large, and
at n = 100,000 and a half-width of 0.1 only 263 questions would be left of 935.

Markov's inequality has its price: β is under a root, not a logarithm, and nothing is left of it at
β = 0.001. Proof: docs/explanation/published-widths.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.baselines.published.noise import tail_reach
from holdfast.baselines.published.search import checked, checked_target, lowest, most_queries
from holdfast.theory.numerics import ROUNDING

__all__ = ["Rogers", "best", "queries_at", "width"]


class Rogers(NamedTuple):
    """The half-width, the noise, and the most nats that all answers tell about the rows."""

    width: float
    sigma: float
    nats: float


def width(rows: int, queries: int, failure: float) -> float:
    """The smallest half-width of k means, over the noise; at most 1.

    >>> round(width(100_000, 935, 0.05), 6), round(width(100_000, 936, 0.05), 6)
    (0.099995, 0.100022)
    """
    return min(1.0, best(rows, queries, failure).width)


def queries_at(rows: int, half_width: float, failure: float) -> int:
    """The most questions with half-widths of at most this; 0 if there is none.

    >>> queries_at(100_000, 0.1, 0.05), queries_at(100_000, 0.1, 0.001)
    (935, 0)
    """
    rows, half_width, failure = checked_target(rows, half_width, failure)
    return most_queries(lambda k: width(rows, k, failure), half_width)


def best(rows: int, queries: int, failure: float) -> Rogers:
    """The choice of noise with the smallest half-width.

    >>> found = best(100_000, 935, 0.05)
    >>> round(found.sigma, 5), round(found.nats, 2)
    (0.00987, 12.0)
    """
    rows, queries, failure = checked(rows, queries, failure)

    def at(x: Sequence[float]) -> Rogers:
        excess = math.exp(min(max(x[0], -40.0), 60.0))  # u − 1
        return _at(rows, queries, failure, excess)

    return at(lowest(lambda x: math.log(at(x).width), [0.0]))


def _at(rows: int, queries: int, failure: float, excess: float) -> Rogers:
    """At u = 1 + excess: 2ρkn = u − 1 − ln u, and ρ = 1/(8n²σ²)."""
    gap = excess - math.log1p(excess)
    if excess < 1e-4:  # what cancels above
        gap = excess**2 / 2 * (1 - 2 * excess / 3)
    nats = gap / 2
    sigma = math.sqrt(queries / (8 * rows * nats))
    sample = math.sqrt((1 + excess) / (2 * rows * failure))
    total = sample + tail_reach(queries, sigma, failure / 2)
    return Rogers(total * (1 + ROUNDING), sigma, nats)
