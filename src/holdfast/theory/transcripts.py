"""Exact verdicts, certified by counting: a union bound over all that can be asked.

Fix the analyst, coins included, and answer without any noise. Then the next question is a function
of the answers so far, its *history*, and after each history it is one fixed function of a block: a
count of blocks is binomial. The promise can fail only in a question that is asked, and for the
first time only after a history without a failure. So it fails with probability at most the sum,
over such histories, of the chance that one fixed question fails (description length: Dwork,
Feldman, Hardt, Pitassi, Reingold & Roth 2015; that only first failures count is our addition):

    k guesses, ℓ refusals     a: false No, b: false Yes
                              C(k−1, ℓ)·a + Σ_{j<ℓ} C(k−1, j)·max(a, b)

Nothing else about the blocks may be seen by anybody. Everything here is a natural logarithm,
rounded up. Proofs, and why no count can be smaller: docs/explanation/theory/transcripts.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.theory.numerics import (
    ROUNDING,
    log_add,
    log_binomial_tail,
    log_products,
    log_sum,
    log_up,
    smallest_whole,
)
from holdfast.theory.sizing import QUERIES_MAX

__all__ = [
    "REFUSALS_MAX",
    "Guessing",
    "best_least",
    "guess_blocks",
    "guess_counts",
    "log_guess_failure",
    "log_share",
]

REFUSALS_MAX = 10**6
_LIMIT = 10**12
_NEVER = -math.inf


class GuessCounts(NamedTuple):
    """ln C(k−1, ℓ) and ln Σ_{j<ℓ} C(k−1, j): histories before the last guess, at it."""

    early: float
    last: float


def guess_counts(queries: int, refusals: int) -> GuessCounts:
    """How often a first failure can happen, with k guesses and ℓ refusals.

    >>> [round(math.exp(count)) for count in guess_counts(5, 2)]
    [6, 5]
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    hint = "A guess is refused once; for more than a million, stable looks are far cheaper."
    refusals = whole_number("refusals", refusals, 1, min(queries, REFUSALS_MAX), hint=hint)
    return _guess_counts(queries, refusals)


@lru_cache(maxsize=64)
def _guess_counts(queries: int, refusals: int) -> GuessCounts:
    i = np.arange(min(refusals, queries - 1))
    logs = log_products((queries - 1 - i) / (i + 1.0))
    early = float(logs[refusals]) if refusals < queries else _NEVER
    return GuessCounts(log_up(early), log_sum(logs[:refusals]))


@dataclass(frozen=True)
class Guessing:
    """k guesses, ℓ refusals.

    All at once: both tails ≥ tail_high ⇒ Yes; one of them ≤ tail_low ⇒ No. With `sides` = 1 a guess
    is about one of its tails only.
    """

    queries: int
    refusals: int
    tail_low: float
    tail_high: float
    sides: int = 2

    def __post_init__(self) -> None:
        guess_counts(self.queries, self.refusals)
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
        return guess_counts(self.queries, self.refusals)

    def chances(self, blocks: int, least: int) -> tuple[float, float]:
        """ln of a and b: a false No, a false Yes."""
        beyond = math.nextafter(1 - self.tail_high, 1.0)
        no = math.log(self.sides) + log_binomial_tail(blocks, beyond, blocks - least + 1)
        return no, log_binomial_tail(blocks, self.tail_low, least)


def log_guess_failure(guessing: Guessing, blocks: int, least: int) -> float:
    """ln of C(k−1, ℓ)·a + Σ_{j<ℓ} C(k−1, j)·max(a, b), rounded up.

    Yes if each of the sides has `least` of the m blocks. a = sides·P[Bin(m, ρ_hi) < least] bounds a
    false No, b = P[Bin(m, ρ_lo) ≥ least] a false Yes.

    >>> math.exp(log_guess_failure(Guessing(1_000, 1, 0.05, 0.25), 113, 11))
    0.04...
    """
    early, last = guessing.counts
    no, yes = guessing.chances(blocks, least)
    return log_add(early + no, last + max(no, yes))


def best_least(guessing: Guessing, blocks: int) -> int:
    """The count to ask for that fails least often.

    The weighted sum of a and b falls until their likelihoods cross, as in `best_rank`; where a
    reaches b it rises.

    >>> best_least(Guessing(1_000, 10, 0.05, 0.25), 1_153)
    145
    """
    low, high = guessing.tail_low, guessing.tail_high
    early, last = guessing.counts

    def past_yes(least: int) -> bool:
        no, yes = guessing.chances(blocks, least)
        return no >= yes

    reached = smallest_whole(past_yes, blocks + 1)
    candidates = [reached - 1, reached]
    if early > _NEVER:
        drift = math.log((1 - low) / (1 - high))
        crossing = last - early - math.log(guessing.sides) + blocks * drift
        candidates.append(math.ceil(crossing / (math.log(high / low) + drift)))
    inside = sorted({min(max(least, 1), blocks) for least in candidates})
    return min(inside, key=lambda least: log_guess_failure(guessing, blocks, least))


class GuessBlocks(NamedTuple):
    """Blocks, and the count that every side of a guess must reach."""

    blocks: int
    least: int


def guess_blocks(guessing: Guessing, failure: float) -> GuessBlocks:
    """The fewest blocks that keep the promise but for `failure`, up to the steps of the count.

    >>> guess_blocks(Guessing(1_000, 10, 0.05, 0.25), 0.05)
    GuessBlocks(blocks=1153, least=145)
    """
    share = log_share(failure)

    def at(blocks: int) -> GuessBlocks:
        return GuessBlocks(blocks, best_least(guessing, blocks))

    def enough(blocks: int) -> bool:
        return log_guess_failure(guessing, *at(blocks)) <= share

    blocks, fewer = 0, smallest_whole(enough, _LIMIT)
    # Where a and b are balanced, fewer blocks may suit a whole count better: go some steps back.
    while fewer != blocks:
        blocks = fewer
        back = min(4 * blocks // at(blocks).least, 200)
        fewer = next(m for m in range(max(1, blocks - back), blocks + 1) if enough(m))
    return at(blocks)


def log_share(failure: float) -> float:
    """ln β, rounded down."""
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    logarithm = math.log(failure)
    return logarithm - ROUNDING * (1 - logarithm)
