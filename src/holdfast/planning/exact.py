"""Plans without noise: exact answers, certified by counting all that can be asked.

They need the fewest blocks where little is said: few refusals, few questions. A plan is its own
certificate: `verify()` proves it again from its numbers. Proofs, and what the analyst must not
have: docs/explanation/theory/transcripts.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, cast

from holdfast.errors import real_number, whole_number
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX, best_rank
from holdfast.theory.transcripts import (
    HIGHEST_MASS,
    LOWEST_MASS,
    REFUSALS_MAX,
    Guessing,
    answer_blocks,
    guess_blocks,
    log_answer_failure,
    log_guess_failure,
    log_share,
    log_weighing_failure,
    most_updates,
    weighing_blocks,
)

__all__ = [
    "ExactCorrections",
    "ExactEstimates",
    "ExactPlan",
    "ExactVerdicts",
    "ExactWeights",
    "exact_corrections",
    "exact_estimates",
    "exact_verdicts",
    "exact_weights",
]


class ExactPlan(ABC):
    """What all plans without noise have in common."""

    protocol: ClassVar[str]
    queries: int
    confidence: float
    blocks: int

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX)
        real_number("confidence", self.confidence, 0, 1, open_low=True, open_high=True)
        whole_number("blocks", self.blocks, 1, BLOCKS_MAX)
        self._check()
        for field in fields(cast(Any, self)):  # 1e3 is welcome, and stored as 1000
            plain = int if field.type == "int" else float
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))

    @abstractmethod
    def _check(self) -> None:
        """Refuse numbers that make no sense."""

    @property
    @abstractmethod
    def log_bound(self) -> float:
        """ln of what is proved to bound the chance that the promise fails; rounded up."""

    @property
    def bound(self) -> float:
        """What is proved to bound the chance that the promise fails, at most `failure`."""
        return math.exp(min(self.log_bound, 0.0))

    @property
    def failure(self) -> float:
        """β: 0.05 for a confidence of 0.95, as written."""
        return float(1 - Fraction(repr(float(self.confidence))))

    def verify(self) -> bool:
        """Prove the promise again: every history counted, every tail evaluated."""
        return self.log_bound <= log_share(self.failure)


@dataclass(frozen=True)
class ExactVerdicts(ExactPlan):
    """k guesses, at most ℓ refusals: Yes if each side has `least` of the blocks.

    All at once: both tails ≥ tail_high ⇒ Yes; one of them ≤ tail_low ⇒ No. With `sides` = 1 a guess
    is about one of its tails; a plan for two sides covers such guesses too.
    """

    protocol: ClassVar[str] = "verify"

    queries: int
    refusals: int
    sides: int
    tail_low: float
    tail_high: float
    confidence: float
    blocks: int
    least: int

    def _check(self) -> None:
        _ = self.guessing  # it refuses what makes no sense
        whole_number("least", self.least, 1, self.blocks)

    @property
    def guessing(self) -> Guessing:
        """What is asked and promised."""
        return Guessing(self.queries, self.refusals, self.tail_low, self.tail_high, self.sides)

    @property
    def log_bound(self) -> float:
        return log_guess_failure(self.guessing, self.blocks, self.least, None)


@dataclass(frozen=True)
class ExactCorrections(ExactPlan):
    """k guesses, at most ℓ refusals, each followed by the value of rank `rank` on a grid.

    All at once: both tails of a guess ≥ tail_high ⇒ it is confirmed; every confirmed guess and
    every correction has both tails > tail_low.
    """

    protocol: ClassVar[str] = "correct"

    queries: int
    refusals: int
    grid: int
    tail_low: float
    tail_high: float
    confidence: float
    blocks: int
    least: int
    rank: int

    def _check(self) -> None:
        whole_number("grid", self.grid, 2, 2**62)
        _ = self.guessing
        whole_number("least", self.least, 1, self.blocks)
        whole_number("rank", self.rank, 1, self.blocks)

    @property
    def guessing(self) -> Guessing:
        """What is asked and promised."""
        tails = self.tail_low, self.tail_high
        return Guessing(self.queries, self.refusals, *tails, points=self.grid)

    @property
    def log_bound(self) -> float:
        return log_guess_failure(self.guessing, self.blocks, self.least, self.rank)


@dataclass(frozen=True)
class ExactEstimates(ExactPlan):
    """k answers, each the value of rank `rank` on a grid: v ∈ qi(tail_low, 1 − tail_high)."""

    protocol: ClassVar[str] = "estimate"

    queries: int
    grid: int
    tail_low: float
    tail_high: float
    confidence: float
    blocks: int
    rank: int

    def _check(self) -> None:
        whole_number("grid", self.grid, 2, 2**62)
        best_rank(self.blocks, _tail(self.tail_low), _tail(self.tail_high))  # their sum is below 1
        whole_number("rank", self.rank, 1, self.blocks)

    @property
    def log_bound(self) -> float:
        tails = self.tail_low, self.tail_high
        return log_answer_failure(self.blocks, self.rank, self.queries, self.grid, *tails)


@dataclass(frozen=True)
class ExactWeights(ExactPlan):
    """k answers of a hypothesis over a universe, with at most `updates` refused guesses."""

    protocol: ClassVar[str] = "weights"

    queries: int
    universe: int
    tail: float
    confidence: float
    blocks: int
    least: int
    updates: int

    def _check(self) -> None:
        whole_number("universe", self.universe, 1, 10**30)
        _tail(self.tail)
        whole_number("least", self.least, 1, self.blocks)
        whole_number("updates", self.updates, 0, REFUSALS_MAX)

    @property
    def mass(self) -> float:
        """The most of the sample that a refused guess has on its side."""
        return max((self.least - 1) / self.blocks, LOWEST_MASS)

    @property
    def log_bound(self) -> float:
        return log_weighing_failure(self.blocks, self.least, self.queries, self.updates, self.tail)

    def verify(self) -> bool:
        """As for every plan, and that there are never more updates, whatever the data are."""
        few = self.mass <= HIGHEST_MASS and most_updates(self.universe, self.mass) <= self.updates
        return few and super().verify()


def exact_verdicts(
    queries: int,
    refusals: int,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
    *,
    sides: int = 2,
) -> ExactVerdicts:
    """Exact verdicts with the fewest blocks.

    >>> exact_verdicts(1_000, refusals=10).blocks, exact_verdicts(1_000, refusals=1).blocks
    (1153, 113)
    """
    guessing = Guessing(queries, refusals, tail_low, tail_high, sides)
    size = guess_blocks(guessing, _failure(confidence))
    tails = tail_low, tail_high
    return ExactVerdicts(queries, refusals, sides, *tails, confidence, size.blocks, size.least)


def exact_corrections(
    queries: int,
    refusals: int,
    grid: int = 32,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
) -> ExactCorrections:
    """Exact verdicts and corrections with the fewest blocks.

    >>> exact_corrections(1_000, refusals=10).blocks
    1830
    """
    grid = whole_number("grid", grid, 2, 2**62)
    guessing = Guessing(queries, refusals, tail_low, tail_high, points=grid)
    size = guess_blocks(guessing, _failure(confidence))
    assert size.rank is not None
    tails = tail_low, tail_high
    return ExactCorrections(queries, refusals, grid, *tails, confidence, *size[:2], size.rank)


def exact_estimates(
    queries: int,
    grid: int = 32,
    tail_low: float = 0.25,
    tail_high: float = 0.25,
    confidence: float = 0.95,
) -> ExactEstimates:
    """Exact quantiles with the fewest blocks.

    >>> exact_estimates(20).blocks, exact_estimates(100).blocks
    (461, 2383)
    """
    grid = whole_number("grid", grid, 2, 2**62)
    tails = _tail(tail_low), _tail(tail_high)
    size = answer_blocks(queries, grid, *tails, _failure(confidence))
    return ExactEstimates(queries, grid, *tails, confidence, size.blocks, size.rank)


def exact_weights(
    queries: int, universe: int, tail: float = 0.25, confidence: float = 0.95
) -> ExactWeights:
    """Exact multiplicative weights with few blocks.

    >>> exact_weights(10**6, universe=100, tail=0.05).blocks
    1230
    """
    size = weighing_blocks(queries, universe, tail, _failure(confidence))
    return ExactWeights(queries, universe, tail, confidence, *size)


def _failure(confidence: float) -> float:
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    return float(1 - Fraction(repr(confidence)))


def _tail(tail: float) -> float:
    return real_number("tail", tail, 0, 1, open_low=True, open_high=True)
