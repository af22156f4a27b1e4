"""A protocol that nobody needs: all that a new one takes is such a module and a registry line.

Every question has blocks of its own and is answered by their largest value v. If D[φ ≤ v] ≤ tail,
all of them lie where at most `tail` of fresh blocks do: P ≤ tail^each. For all answers at once,
D[φ ≤ v] > tail but for a probability of queries·tail^each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from holdfast.protocols.answers import Answer, at_least
from holdfast.protocols.base import (
    Drawn,
    Lesson,
    Paid,
    Protocol,
    Question,
    Reserve,
    Steps,
    Values,
    block_floats,
)
from holdfast.protocols.plans import Account, Charge, Left, OwnPlan, Use, Wanted
from holdfast.randomness import Entropy


@dataclass(frozen=True)
class HighestPlan(OwnPlan):
    """k questions with so many fresh blocks each."""

    kind = "toy"
    protocol = "toy"

    queries: int
    tail: float
    confidence: float
    each: int

    @property
    def blocks(self) -> int:
        return self.queries * self.each

    def words(self) -> tuple[str, str]:
        return f"{self.queries:,} questions", "The answer is no rarely exceeded value."

    @property
    def least_tail(self) -> float:
        return self.tail

    @property
    def limit(self) -> Fraction:
        return Fraction(self.queries)

    def use(self, account: Account) -> tuple[float, float, str]:
        return account.uses[self.name].looks, self.queries, "questions"

    def left(self, _order: float, _rest: Fraction, use: Use) -> Left:
        return Left(self.queries - use.looks, self.queries - use.looks)

    def verify(self) -> bool:
        return self.queries * Fraction(self.tail) ** self.each <= Fraction(self.failure)


def highest_plan(queries: int, confidence: float = 0.95, tail: float = 0.5) -> HighestPlan:
    each = math.ceil(math.log((1 - confidence) / queries) / math.log(tail)) + 1
    return HighestPlan(queries, tail, confidence, each)


class Highest(Protocol[HighestPlan]):
    verb = "ask"
    of = ("toy",)
    part_type = HighestPlan
    says = "toy"
    method = "highest"
    one_at_a_time = True
    random = False
    on_grid = False
    mixes: ClassVar = {"toy": Wanted(lambda _mix, k, sure, _units: highest_plan(k, sure))}

    def worst(self, _question: Question) -> tuple[Charge, ...]:
        return (Charge(self.part.name, Fraction(1), 1),)

    def ask(self, question: Question, _entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        account: Account = yield Reserve(*self.worst(question))
        first = (account.uses[self.part.name].looks - 1) * self.part.each
        each = self.part.each
        values = block_floats((yield Values(first, first + each)), each)
        return {"value": float(values.max())}

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        assert drawn is not None
        if type(drawn["value"]) is not float:
            raise ValueError("no value")
        said = f"{at_least(self.part.tail)} fresh blocks give {drawn['value']:g} or less"
        tails = self.part.tail, 0.0
        return self._answer(question, drawn["value"], (None, None), tails, said, paid)
