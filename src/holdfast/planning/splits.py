"""The plan of fresh splitting: new blocks for every question, and the rank that answers it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from holdfast.errors import real_number, whole_number
from holdfast.theory.sizing import QUERIES_MAX, fresh_split, split_failure

__all__ = ["SplitPlan", "split_plan"]


@dataclass(frozen=True)
class SplitPlan:
    """k questions with m₁ fresh blocks each, answered by the `rank`-th smallest value."""

    queries: int
    tail_low: float
    tail_high: float
    confidence: float
    blocks_per_question: int
    rank: int

    @property
    def blocks(self) -> int:
        """Blocks of all questions together."""
        return self.queries * self.blocks_per_question

    @property
    def failure(self) -> float:
        """β: 0.05 for a confidence of 0.95, as written."""
        return float(1 - Fraction(repr(float(self.confidence))))

    def verify(self) -> bool:
        """Whether each question fails with at most its share of β (docs: splitting)."""
        share = math.nextafter(self.failure / self.queries, 0.0)
        tails = self.tail_low, self.tail_high
        return split_failure(self.blocks_per_question, self.rank, *tails) <= share


def split_plan(
    queries: int, tail_low: float = 0.25, tail_high: float = 0.25, confidence: float = 0.95
) -> SplitPlan:
    """Fresh splitting with the fewest blocks.

    >>> split_plan(10).blocks, split_plan(10).rank
    (270, 14)
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    failure = math.nextafter(float(1 - Fraction(repr(confidence))), 0.0)
    one = fresh_split(queries, failure, tail_low, tail_high)
    return SplitPlan(queries, tail_low, tail_high, confidence, one.blocks, one.rank)
