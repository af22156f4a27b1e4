"""Fresh splitting, the method everybody knows: every question gets blocks that nobody has used.

A question gets m₁ blocks of its own, and its answer is the s-th smallest of their values. It is
outside qi(a, b) only if at least s blocks fall in a set of probability ≤ a, or at least m₁ − s + 1
blocks in one of probability ≤ 1 − b. With `tail_low` = a and `tail_high` = 1 − b:

    failure(m₁, s) ≤ P[Bin(m₁, a) ≥ s] + P[Bin(m₁, 1−b) ≥ m₁ − s + 1] = P_a[X ≥ s] + P_b[X < s],

where X counts the blocks below. That is the sum of the two errors of a test between a coin of
bias a and one of bias b, so the best s is where their likelihoods cross, and the best sum,
1 − TV(Bin(m₁, a), Bin(m₁, b)), never grows with m₁: bisection finds the smallest m₁. A union
bound gives each of the k questions failure β/k; adaptivity costs nothing because no block is
used twice. For equal tails s is the middle and m₁ the smallest odd number with
2·P[Bin(m₁, ρ) ≥ m₁/2] ≤ β/k (theory.md §9).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.arguments import real_number, whole_number
from holdfast.errors import InvalidInput
from holdfast.theory.amplification import median_samples
from holdfast.theory.binomial import binomial_tail, smallest_whole

__all__ = ["Split", "best_rank", "fresh_blocks", "fresh_split", "split_failure"]

_LIMIT = 10**12


class Split(NamedTuple):
    """What one question gets: `blocks` fresh blocks, answered by the `rank`-th smallest value."""

    blocks: int
    rank: int


def fresh_blocks(queries: int, failure: float, tail: float) -> int:
    """Blocks that `queries` questions need together: k·m₁, for the tail ρ on both sides.

    >>> [fresh_blocks(k, 0.05, 0.25) for k in (100, 1_000, 10_000)]
    [4300, 57000, 730000]
    >>> [fresh_blocks(k, 0.05, 0.01) for k in (100, 1_000, 10_000)]
    [500, 5000, 70000]
    """
    queries, share = _share(queries, failure)
    return queries * median_samples(share, tail)


def fresh_split(queries: int, failure: float, tail_low: float, tail_high: float) -> Split:
    """The fewest blocks for one of `queries` questions, and the rank that answers it.

    Promises D[φ ≤ v] > tail_low and D[φ ≥ v] > tail_high, that is v ∈ qi(tail_low, 1 − tail_high),
    for all questions at once with probability ≥ 1 − failure.

    >>> fresh_split(1_000, 0.05, 0.25, 0.25)
    Split(blocks=57, rank=29)
    >>> fresh_split(1_000, 0.05, 0.85, 0.05)
    Split(blocks=548, rank=498)
    """
    _, share = _share(queries, failure)
    tail_low, tail_high = _tails(tail_low, tail_high)

    def enough(blocks: int) -> bool:
        rank = best_rank(blocks, tail_low, tail_high)
        return split_failure(blocks, rank, tail_low, tail_high) <= share

    blocks = smallest_whole(enough, _LIMIT)
    return Split(blocks, best_rank(blocks, tail_low, tail_high))


def split_failure(blocks: int, rank: int, tail_low: float, tail_high: float) -> float:
    """P[Bin(m₁, a) ≥ s] + P[Bin(m₁, 1−b) ≥ m₁ − s + 1], rounded up and at most 1.

    >>> split_failure(43, 22, 0.25, 0.25)
    0.00040...
    """
    blocks = whole_number("blocks", blocks, 1, 2 * _LIMIT)
    rank = whole_number("rank", rank, 1, blocks)
    tail_low, tail_high = _tails(tail_low, tail_high)
    low = binomial_tail(blocks, tail_low, rank)
    high = binomial_tail(blocks, tail_high, blocks - rank + 1)
    return min(1.0, low + high)


def best_rank(blocks: int, tail_low: float, tail_high: float) -> int:
    """The rank s that fails least: the first count that bias b explains at least as well as bias a.

    (b/a)ˢ ((1−b)/(1−a))^(m₁−s) ≥ 1. Rounding may move s by one where two ranks are equally good.

    >>> best_rank(43, 0.25, 0.25), best_rank(100, 0.85, 0.05)
    (22, 91)
    """
    blocks = whole_number("blocks", blocks, 1, 2 * _LIMIT)
    tail_low, tail_high = _tails(tail_low, tail_high)
    if tail_low == 0:
        return 1
    if tail_high == 0:
        return blocks
    gain = math.log((1 - tail_high) / tail_low)
    loss = math.log((1 - tail_low) / tail_high)
    return min(blocks, max(1, math.ceil(blocks * loss / (gain + loss))))


def _share(queries: int, failure: float) -> tuple[int, float]:
    """k, and β/k rounded down."""
    queries = whole_number("queries", queries, 1, 10**9)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    return queries, math.nextafter(failure / queries, 0.0)


def _tails(tail_low: float, tail_high: float) -> tuple[float, float]:
    low = real_number("tail_low", tail_low, 0, 1, open_high=True)
    high = real_number("tail_high", tail_high, 0, 1, open_high=True)
    if low + high >= 1:
        hint = "The answer has to fit between the tails."
        raise InvalidInput("tails", (tail_low, tail_high), "two numbers with a sum below 1", hint)
    return low, high
