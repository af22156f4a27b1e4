"""Multiplicative weights without noise: the histories of guesses that are corrected (theory §7).

A public hypothesis guesses every answer; a guess is confirmed if both its sides have `least` of the
m blocks, and otherwise the side that has fewer is told, the hypothesis updated and the same
question guessed again. A refused guess has at most (least − 1)/m of the sample on its side,
exactly, so there are never more than ℓ = `most_updates` refusals, and the promise fails only in a
false Yes. The k − 1 earlier questions ended with a Yes, and up to ℓ Noes of two kinds came before:

    P[some answer outside qi(ρ, 1 − ρ)] ≤ Σ_{j≤ℓ} 2^j C(k−1+j, j)·P[Bin(m, ρ) ≥ least].

Proof: docs/explanation/theory/transcripts.md. All numbers are logarithms, rounded up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast.arguments import real_number, whole_number
from holdfast.theory.binomial import smallest_whole
from holdfast.theory.log_tails import log_binomial_tail, log_products, log_sum, log_up
from holdfast.theory.sizing import QUERIES_MAX
from holdfast.theory.transcripts import REFUSALS_MAX, log_share
from holdfast.theory.updates import HIGHEST_MASS, LOWEST_MASS, largest_mass, most_updates

__all__ = [
    "WeighingBlocks",
    "log_weighing_count",
    "log_weighing_failure",
    "weighing_blocks",
]

_LIMIT = 10**12


def log_weighing_count(queries: int, updates: int) -> float:
    """ln Σ_{j≤ℓ} 2^j C(k−1+j, j), rounded up: a No tells its side, and its question comes again.

    >>> round(math.exp(log_weighing_count(1, 3))), round(math.exp(log_weighing_count(3, 1)))
    (15, 7)
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    i = np.arange(whole_number("updates", updates, 0, REFUSALS_MAX))
    return log_sum(log_products(2 * (queries + i) / (i + 1.0)))


def log_weighing_failure(blocks: int, least: int, queries: int, updates: int, tail: float) -> float:
    """ln of Σ_{j≤ℓ} 2^j C(k−1+j, j)·P[Bin(m, ρ) ≥ least], rounded up: no other failure counts.

    >>> math.exp(log_weighing_failure(1_230, 285, 10**6, 19, 0.05))
    0.02...
    """
    return log_up(log_weighing_count(queries, updates) + log_binomial_tail(blocks, tail, least))


class WeighingBlocks(NamedTuple):
    """Blocks, the count that both sides of a guess must reach, and the most updates."""

    blocks: int
    least: int
    updates: int


def weighing_blocks(queries: int, universe: int, tail: float, failure: float) -> WeighingBlocks:
    """Blocks for k answers of weights over |Z| elements in qi(ρ, 1 − ρ); near the fewest.

    A refused guess has at most least − 1 of m blocks on its side, a mass that bounds the updates
    (`most_updates`). For each number of updates the largest mass is known, so blocks and count are
    tied together; the best number is found on ever finer grids.

    >>> weighing_blocks(10**6, 100, 0.05, 0.05)
    WeighingBlocks(blocks=1230, least=285, updates=19)
    """
    tail = real_number("tail", tail, 0, 0.49, open_low=True)
    share = log_share(failure)

    def at(updates: int) -> WeighingBlocks:
        mass = largest_mass(universe, updates)
        limit = share - log_weighing_count(queries, updates)

        def blocks(least: int) -> int:
            return max(1, math.ceil((least - 1) / mass))

        def enough(least: int) -> bool:
            return log_up(log_binomial_tail(blocks(least), tail, least)) <= limit

        least = smallest_whole(enough, _LIMIT)
        least = next(c for c in range(max(1, least - 8), least + 1) if enough(c))
        return WeighingBlocks(blocks(least), least, updates)

    low = most_updates(universe, max(LOWEST_MASS, tail + 0.02 * (HIGHEST_MASS - tail)))
    high = min(most_updates(universe, HIGHEST_MASS), REFUSALS_MAX)
    while high - low > 16:
        tried = sorted({round(x) for x in np.geomspace(low + 1, high + 1, 17) - 1})
        best = min(range(len(tried)), key=lambda i: at(tried[i]))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
    return min(at(updates) for updates in range(low, high + 1))
