"""Exact answers, certified by counting: a union bound over all that can be asked.

Fix the analyst, coins included, and answer without any noise. Then the next question is a function
of the answers so far, its *history*, and after each history it is one fixed function of a block: a
count of blocks is binomial. The promise can fail only in a question that is asked, and for the
first time only after a history without a failure. So it fails with probability at most the sum,
over such histories, of the chance that one fixed question fails (description length: Dwork,
Feldman, Hardt, Pitassi, Reingold & Roth 2015; that only first failures count is our addition).

    k guesses, ℓ refusals     a: false No, b: false Yes, c: the correction after a No, of r values
                              C(k−1, ℓ) r^(ℓ−1)·max(a, c) + Σ_{j<ℓ} C(k−1, j) r^j·max(a, b + c)
    k answers on r points     r^(k−1)·q

Nothing else about the blocks may be seen by anybody. Everything here is a natural logarithm,
rounded up. Proofs, and why no count can be smaller: docs/explanation/theory/transcripts.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.theory.numerics import (
    ROUNDING,
    log_add,
    log_binomial_tail,
    log_products,
    log_sum,
    log_up,
    smallest_whole,
)
from holdfast.theory.sizing import QUERIES_MAX, Split, best_rank

__all__ = [
    "REFUSALS_MAX",
    "Guessing",
    "answer_blocks",
    "best_least",
    "guess_blocks",
    "guess_counts",
    "log_answer_count",
    "log_answer_failure",
    "log_guess_failure",
    "log_share",
]

REFUSALS_MAX = 10**6
_LIMIT = 10**12
_MOST_BITS = 10**7  # of a count of histories: 50 million blocks, where other methods are better
_NEVER = -math.inf


class GuessCounts(NamedTuple):
    """ln C(k−1, ℓ) r^(ℓ−1) and ln Σ_{j<ℓ} C(k−1, j) r^j: histories before the last guess, at it."""

    early: float
    last: float


def guess_counts(queries: int, refusals: int, points: int = 1) -> GuessCounts:
    """How often a first failure can happen, with k guesses, ℓ refusals and r values after a No.

    >>> [round(math.exp(count)) for count in guess_counts(5, 2)]
    [6, 5]
    >>> [round(math.exp(count)) for count in guess_counts(5, 2, points=3)]
    [18, 13]
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    hint = "A guess is refused once; for more than a million, stable looks are far cheaper."
    refusals = whole_number("refusals", refusals, 1, min(queries, REFUSALS_MAX), hint=hint)
    return _guess_counts(queries, refusals, _points(points, refusals - 1))


@lru_cache(maxsize=64)
def _guess_counts(queries: int, refusals: int, points: int) -> GuessCounts:
    i = np.arange(min(refusals, queries - 1))
    logs = log_products((queries - 1 - i) / (i + 1.0) * points)
    early = float(logs[refusals]) - math.log(points) if refusals < queries else _NEVER
    return GuessCounts(log_up(early), log_sum(logs[:refusals]))


@dataclass(frozen=True)
class Guessing:
    """k guesses, ℓ refusals; with more than one point, a No is followed by one of r values.

    All at once: both tails ≥ tail_high ⇒ Yes; one of them ≤ tail_low ⇒ No; both tails of a
    correction > tail_low. With `sides` = 1 a guess is about one of its tails only.
    """

    queries: int
    refusals: int
    tail_low: float
    tail_high: float
    sides: int = 2
    points: int = 1

    def __post_init__(self) -> None:
        guess_counts(self.queries, self.refusals, self.points)
        whole_number("sides", self.sides, 1, 2)
        most = 1.0 if self.sides == 1 else 0.5
        real_number("tail_low", self.tail_low, 0, most, open_low=True, open_high=True)
        real_number("tail_high", self.tail_high, 0, most, open_low=True, open_high=True)
        if self.tail_low >= self.tail_high:
            hint = "Between them a verdict may go either way."
            received = (self.tail_low, self.tail_high)
            raise InvalidInput("tails", received, "tail_low below tail_high", hint)

    @property
    def counts(self) -> GuessCounts:
        """How often a first failure can happen."""
        return guess_counts(self.queries, self.refusals, self.points)

    def rank(self, blocks: int) -> int | None:
        """The middle one, for a correction; None without corrections."""
        return (blocks + 1) // 2 if self.points > 1 else None

    def chances(self, blocks: int, least: int, rank: int | None) -> tuple[float, float, float]:
        """ln of a, b and c: a false No, a false Yes, a correction outside."""
        beyond = math.nextafter(1 - self.tail_high, 1.0)
        no = math.log(self.sides) + log_binomial_tail(blocks, beyond, blocks - least + 1)
        yes = log_binomial_tail(blocks, self.tail_low, least)
        if rank is None:
            return no, yes, _NEVER
        return no, yes, _outside(blocks, rank, self.tail_low, self.tail_low)


def log_guess_failure(guessing: Guessing, blocks: int, least: int, rank: int | None) -> float:
    """ln of C(k−1, ℓ) r^(ℓ−1)·max(a, c) + Σ_{j<ℓ} C(k−1, j) r^j·max(a, b + c), rounded up.

    Yes if each of the sides has `least` of the m blocks. a = sides·P[Bin(m, ρ_hi) < least] bounds a
    false No, b = P[Bin(m, ρ_lo) ≥ least] a false Yes. A No is followed by the value of the given
    rank, and c bounds the chance that one of its tails is ρ_lo or less; without a rank, c = 0.

    >>> math.exp(log_guess_failure(Guessing(1_000, 1, 0.05, 0.25), 113, 11, rank=None))
    0.04...
    """
    early, last = guessing.counts
    no, yes, wrong = guessing.chances(blocks, least, rank)
    return log_add(early + max(no, wrong), last + max(no, log_add(yes, wrong)))


def best_least(guessing: Guessing, blocks: int) -> int:
    """The count to ask for that fails least often.

    The bound falls up to where a reaches c; from there the weighted sum of a and b falls until
    their likelihoods cross, as in `best_rank`; where a reaches b + c it rises.

    >>> best_least(Guessing(1_000, 10, 0.05, 0.25), 1_153)
    145
    """
    low, high, rank = guessing.tail_low, guessing.tail_high, guessing.rank(blocks)
    early, last = guessing.counts

    def past_correction(least: int) -> bool:
        no, _, wrong = guessing.chances(blocks, least, rank)
        return no >= wrong

    def past_yes(least: int) -> bool:
        no, yes, wrong = guessing.chances(blocks, least, rank)
        return no >= log_add(yes, wrong)

    candidates = [smallest_whole(past, blocks + 1) for past in (past_correction, past_yes)]
    candidates += [least - 1 for least in candidates]
    if early > _NEVER:
        drift = math.log((1 - low) / (1 - high))
        crossing = last - early - math.log(guessing.sides) + blocks * drift
        candidates.append(math.ceil(crossing / (math.log(high / low) + drift)))
    inside = sorted({min(max(least, 1), blocks) for least in candidates})
    return min(inside, key=lambda least: log_guess_failure(guessing, blocks, least, rank))


class GuessBlocks(NamedTuple):
    """Blocks, the count that every side of a guess must reach, and the rank of a correction."""

    blocks: int
    least: int
    rank: int | None


def guess_blocks(guessing: Guessing, failure: float) -> GuessBlocks:
    """The fewest blocks that keep the promise but for `failure`, up to the steps of the count.

    >>> guess_blocks(Guessing(1_000, 10, 0.05, 0.25), 0.05)
    GuessBlocks(blocks=1153, least=145, rank=None)
    >>> guess_blocks(Guessing(1_000, 10, 0.05, 0.25, points=32), 0.05)
    GuessBlocks(blocks=1830, least=232, rank=915)
    """
    share = log_share(failure)

    def at(blocks: int) -> GuessBlocks:
        return GuessBlocks(blocks, best_least(guessing, blocks), guessing.rank(blocks))

    def enough(blocks: int) -> bool:
        return log_guess_failure(guessing, *at(blocks)) <= share

    blocks, fewer = 0, smallest_whole(enough, _LIMIT)
    # Where a and b are balanced, fewer blocks may suit a whole count better: go some steps back.
    while fewer != blocks:
        blocks = fewer
        back = min(4 * blocks // at(blocks).least, 200)
        fewer = next(m for m in range(max(1, blocks - back), blocks + 1) if enough(m))
    return at(blocks)


def log_answer_count(queries: int, points: int) -> float:
    """(k−1)·ln r, rounded up: the histories before the last of k answers on r points.

    >>> round(log_answer_count(20, 32), 3)
    65.849
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    return log_up((queries - 1) * math.log(_points(points, queries - 1)))


def log_answer_failure(
    blocks: int, rank: int, queries: int, points: int, tail_low: float, tail_high: float
) -> float:
    """ln of r^(k−1)·(P[Bin(m, ρ_lo) ≥ s] + P[Bin(m, ρ_hi) ≥ m − s + 1]), s the rank; rounded up.

    >>> math.exp(log_answer_failure(461, 231, 20, 32, 0.25, 0.25))
    0.04...
    """
    return log_up(log_answer_count(queries, points) + _outside(blocks, rank, tail_low, tail_high))


def answer_blocks(
    queries: int, points: int, tail_low: float, tail_high: float, failure: float
) -> Split:
    """The fewest blocks for k exact quantiles on grids of r points, and their rank.

    >>> [answer_blocks(k, 32, 0.25, 0.25, 0.05).blocks for k in (10, 50, 100, 1_000)]
    [223, 1181, 2383, 24059]
    """
    share = log_share(failure)

    def enough(blocks: int) -> bool:
        rank = best_rank(blocks, tail_low, tail_high)
        return log_answer_failure(blocks, rank, queries, points, tail_low, tail_high) <= share

    blocks = smallest_whole(enough, _LIMIT)
    return Split(blocks, best_rank(blocks, tail_low, tail_high))


def log_share(failure: float) -> float:
    """ln β, rounded down."""
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    logarithm = math.log(failure)
    return logarithm - ROUNDING * (1 - logarithm)


def _outside(blocks: int, rank: int, tail_low: float, tail_high: float) -> float:
    """ln of the chance that a fixed quantile leaves its tails, as in `split_failure`."""
    low = log_binomial_tail(blocks, tail_low, rank)
    return log_add(low, log_binomial_tail(blocks, tail_high, blocks - rank + 1))


def _points(points: int, answers: int) -> int:
    """r, if r^answers is a count that a computer can hold."""
    points = whole_number("points", points, 1, 2**62)
    bits = answers * (points - 1).bit_length()
    if bits > _MOST_BITS:
        remedy = "Ask fewer questions, or allow fewer refusals; stable looks are cheaper here."
        needed, given = f"{bits:,} bits", f"the limit is {_MOST_BITS:,}"
        raise Infeasible("A count of all that can be asked", needed, given, remedy)
    return points
