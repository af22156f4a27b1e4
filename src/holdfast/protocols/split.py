"""Fresh splitting: every question gets blocks that no question has seen, and answers exactly.

No coin and no grid: the blocks are independent of the question, so a rank of their values is as
good as for a question fixed in advance (docs/explanation/theory/splitting.md). It is the cheapest
protocol for a few dozen questions; the planner says when. Blocks are fresh once: questions are what
is charged, and the blocks of the next one follow those of all before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from holdfast.errors import real_number, whole_number
from holdfast.protocols.answers import Answer, lies_between, search_promise
from holdfast.protocols.base import (
    BAR_MAX,
    Drawn,
    Lesson,
    P,
    Paid,
    Protocol,
    Question,
    Reserve,
    Steps,
    Values,
    block_floats,
    shown,
)
from holdfast.protocols.plans import Account, Charge, Left, OwnPlan, Use, Wanted
from holdfast.randomness import Entropy
from holdfast.theory.sizing import QUERIES_MAX, fresh_split, split_failure

__all__ = ["Split", "SplitPlan", "ValueProtocol", "split_plan"]


@dataclass(frozen=True)
class SplitPlan(OwnPlan):
    """k questions with m₁ fresh blocks each, answered by the `rank`-th smallest value."""

    kind = "split"
    protocol = "split"

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

    def words(self) -> tuple[str, str]:
        limits = f"{self.queries:,} questions, fresh blocks for each; exact"
        return limits, lies_between(self.tail_low, self.tail_high)

    @property
    def limit(self) -> Fraction:
        return Fraction(self.queries)

    def use(self, account: Account) -> tuple[float, float, str]:
        return account.uses[self.name].looks, self.queries, "questions"

    def left(self, _order: float, _rest: Fraction, use: Use) -> Left:
        return Left(self.queries - use.looks, self.queries - use.looks)

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


class ValueProtocol(Protocol[P]):
    """Answers that are one of the blocks' values, as it came."""

    verb = "ask"
    one_at_a_time = True
    random = False
    on_grid = False

    def _value(
        self, question: Question, drawn: Drawn, tails: tuple[float, float], paid: Paid
    ) -> Answer:
        value = float(drawn["value"])  # an infinite one is kept as text
        kept = drawn_value(value)
        if math.isnan(value) or type(kept) is not type(drawn["value"]) or kept != drawn["value"]:
            raise ValueError(f"no value: {drawn['value']!r}")
        cell = (value, value)
        ends: tuple[float | None, float | None] = (None, None)
        if question.shape is not None and abs(value) < BAR_MAX:
            ends = question.shape.bar(cell, self.units, *tails)
        has_bar = ends != (None, None)
        promise = search_promise(*tails, self.units, cell, has_bar=has_bar, as_it_came=True)
        return self._answer(question, value, ends, tails, promise, paid)


def drawn_value(value: float) -> float | str:
    """A value as the ledger keeps it: infinities are no JSON."""
    return value if math.isfinite(shown(value)) else repr(shown(value))


class Split(ValueProtocol[SplitPlan]):
    """Questions answered from fresh blocks.

    >>> from holdfast.protocols import BlockArray, MemoryHoldout
    >>> plan = split_plan(queries=3)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks))
    >>> answer = holdout.ask(np.mean)
    >>> round(answer.value, 3), answer.budget_left
    (0.396, 2.0)
    """

    of = ("split",)
    part_type = SplitPlan
    says = "split"
    mixes: ClassVar = {
        "split": Wanted(
            lambda mix, k, sure, _: split_plan(k, mix.tail_or(0.25), mix.tail_or(0.25), sure)
        )
    }
    method = "split"

    def worst(self, _question: Question) -> tuple[Charge, ...]:
        return (Charge(self.part.name, Fraction(1), 1),)

    def ask(self, question: Question, _entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        """The value of the planned rank on the next fresh blocks; −∞ if that block failed."""
        (worst,) = self.worst(question)
        account: Account = yield Reserve(worst)
        plan, each = self.part, self.part.blocks_per_question
        first = (account.uses[plan.name].looks - 1) * each
        values = block_floats((yield Values(first, first + each)), each)
        value = float(np.partition(values, plan.rank - 1)[plan.rank - 1])
        return {"value": drawn_value(value)}

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        assert drawn is not None
        return self._value(question, drawn, (self.part.tail_low, self.part.tail_high), paid)
