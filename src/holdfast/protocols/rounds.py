"""Effective rounds: estimation sets used exactly until verification fails, then thrown away.

After Dwork et al. (2015), for any estimator. An answer is the exact median of the current set's
values. The verification set, asked by two looks, confirms it. If it does not, the set has been
overused (or was unlucky): it is thrown away, and the next one, which no answer depended
on, answers at once. Only refusals are scarce, so that the number of rounds, not of questions, is
what counts. With the last set gone the rounds are over.

The plan: the verification set carries k guesses and ℓ refusals, and each of the ℓ estimation sets
answers exactly until one of its answers is refused. β is divided in three:

    verification   false Yes, false No                      (joint plan of one part)
    fresh answers  the answer that a new set gives at once   (ℓ − 1)·P[median outside qi(tail_low)]
    rounds         a set fails on its own, without being     ℓ·k·P[median outside qi(tail_high)]
                   overused

so that, with the planned confidence, every answer lies in qi(tail_low, 1 − tail_low), and a round
ends only because its questions depended on its own answers (docs/explanation/theory/budget.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from holdfast.errors import Exhausted
from holdfast.protocols.answers import Answer, lies_between
from holdfast.protocols.base import (
    Drawn,
    Lesson,
    Paid,
    Question,
    Reserve,
    Steps,
    Values,
    block_floats,
)
from holdfast.protocols.guesses import Guesses, VerdictPart, Verify
from holdfast.protocols.plans import (
    Account,
    Charge,
    JointPlan,
    Left,
    OwnPlan,
    Use,
    Wanted,
    plan_from_dict,
    typed,
)
from holdfast.protocols.split import ValueProtocol, drawn_value
from holdfast.randomness import Entropy
from holdfast.theory.sizing import median_failure, median_samples
from holdfast.theory.transfer import total_failure

__all__ = ["EffectiveRounds", "RoundsPlan", "in_rounds"]


@dataclass(frozen=True)
class RoundsPlan(OwnPlan):
    """The verification set's plan, and how many estimation sets of how many blocks."""

    kind = "rounds"
    protocol = "rounds"

    verification: JointPlan
    sets: int
    set_blocks: int
    confidence: float

    @property
    def guesses(self) -> VerdictPart:
        """What the verification set is planned for."""
        part = self.verification.part("verify")
        assert isinstance(part, VerdictPart)
        return part

    @property
    def queries(self) -> int:  # type: ignore[override]
        """Questions in all rounds together."""
        return self.guesses.queries

    @property
    def order(self) -> float:  # type: ignore[override]
        return self.verification.order

    @property
    def looks(self) -> int:  # type: ignore[override]
        """Of the verification set."""
        return self.guesses.looks

    @property
    def most_refusals(self) -> int:
        return self.sets

    def words(self) -> tuple[str, str]:
        tail = self.guesses.tail_low
        return f"{self.queries:,} questions in {self.sets:,} rounds; exact", lies_between(
            tail, tail
        )

    @property
    def least_tail(self) -> float:
        return self.guesses.tail_low

    @property
    def limit(self) -> Fraction:
        return self.verification.limit

    def use(self, account: Account) -> tuple[float, float, str]:
        return account.uses[self.name].refusals, self.sets, "rounds"

    def price(self, charge: Charge) -> Fraction:
        """In sets that are thrown away: what looks cost is the verification set's own concern."""
        return Fraction(charge.noes)

    def rest(self, account: Account) -> float:
        """Sets that are not thrown away, the current one included."""
        return float(self.sets - account.uses[self.name].refusals)

    def left(self, order: float, rest: Fraction, use: Use) -> Left:
        found = self.guesses.left(order, rest, use)
        return Left(found.questions if use.refusals < self.sets else 0, found.looks)

    def kept(self) -> dict[str, object]:
        own = {"sets": self.sets, "set_blocks": self.set_blocks, "confidence": self.confidence}
        return {"kind": self.kind, "verification": self.verification.kept(), **own}

    @classmethod
    def read(cls, data: dict[str, Any]) -> Self:
        verification = plan_from_dict(data.pop("verification"))
        if not isinstance(verification, JointPlan):
            raise TypeError("verification must be a plan for guesses")
        return cls(verification, **typed(cls, data))

    @property
    def blocks(self) -> int:
        """Blocks of all sets together."""
        return self.verification.blocks + self.sets * self.set_blocks

    def verify(self) -> bool:
        """Prove the verification set's plan again, and add up the three parts of β."""
        part = self.guesses
        if part.sides != 2 or self._short() or not self.verification.verify():
            return False
        fresh = (self.sets - 1) * median_failure(self.set_blocks, part.tail_low)
        alone = self.sets * part.queries * median_failure(self.set_blocks, part.tail_high)
        shares = [self.verification.failure, fresh, alone]
        return total_failure(shares) <= 1 - Fraction(repr(float(self.confidence)))

    def _short(self) -> bool:
        """Whether the sets are more than the refusals that the verification set can bear."""
        return not 1 <= self.sets <= self.guesses.refusals


class EffectiveRounds(ValueProtocol[RoundsPlan]):
    """Questions answered from one estimation set after another.

    >>> from holdfast.planning.joint import rounds_plan
    >>> from holdfast.protocols import BlockArray, MemoryHoldout
    >>> plan = rounds_plan(queries=50, rounds=2)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks))
    >>> answer = holdout.ask(np.mean)
    >>> round(answer.value, 3), answer.budget_left
    (0.395, 2.0)
    """

    of = ("rounds",)
    part_type = RoundsPlan
    says = "rounds"
    mixes: ClassVar = {
        "rounds": Wanted(
            lambda mix, k, *_: Guesses(k, min(mix.rounds, k)),
            plan=lambda *asked: in_rounds(*asked),
        )
    }
    method = "rounds"
    random = True  # verification is by looks

    @property
    def _verify(self) -> Verify:
        plan, sure = self.part, self.confidence
        return Verify(plan.verification, plan.guesses, self.units, sure, certified=self.certified)

    def _own(self, charges: tuple[Charge, ...]) -> tuple[Charge, ...]:
        return tuple(replace(each, part=self.part.name) for each in charges)

    def worst(self, question: Question) -> tuple[Charge, ...]:
        """The worst case is that the set is thrown away."""
        return self._own(self._verify.worst(question))

    def ask(self, question: Question, entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        """The current set's median, confirmed; or the next set's; or `Exhausted`."""
        (worst,) = self.worst(question)
        account: Account = yield Reserve(worst)
        thrown = account.uses[self.part.name].refusals - worst.noes
        guess = self._median((yield self._set(thrown)))
        values = yield Values(0, self.part.verification.blocks)
        drawn = self._verify.looked(replace(question, guess=guess), values, entropy)
        if self._refused(question, drawn):
            if thrown + 1 >= self.part.sets:
                remedy = "All estimation sets are used up: the last one was thrown away."
                raise Exhausted("The budget for rounds", "another round", "none", remedy)
            guess = self._median((yield self._set(thrown + 1)))
        return {**drawn, "value": drawn_value(guess)}

    def _set(self, number: int) -> Values:
        plan = self.part
        first = plan.verification.blocks + number * plan.set_blocks
        return Values(first, first + plan.set_blocks)

    def _median(self, values: object) -> float:
        floats = block_floats(values, self.part.set_blocks)
        middle = (floats.size - 1) // 2
        return float(np.partition(floats, middle)[middle])

    def _refused(self, question: Question, drawn: Drawn) -> bool:
        return any(each.noes for each in self._verify.charges(question, drawn))

    def charges(self, question: Question, drawn: Drawn) -> tuple[Charge, ...]:
        return self._own(self._verify.charges(question, drawn))

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        assert drawn is not None
        tail = self.part.guesses.tail_low
        charges = tuple(replace(each, price=self.part.price(each)) for each in paid.charges)
        return self._value(question, drawn, (tail, tail), replace(paid, charges=charges))


_FRESH, _ROUNDS = 0.05, 0.05  # shares of β: sizes depend on them only through logarithms


def in_rounds(plan: Callable[..., JointPlan], guesses: Any, confidence: float) -> RoundsPlan:
    """As many rounds as there are refusals, with the fewest blocks in each.

    `plan` is `holdfast.planning.joint.joint_plan`, which plans the verification set.
    """
    beta = float(1 - Fraction(repr(confidence)))
    sure = math.nextafter(1 - (1 - _FRESH - _ROUNDS) * beta, 1.0)
    rounds = guesses.refusals
    fresh = median_samples(_FRESH * beta / max(1, rounds - 1), guesses.tail_low)
    alone = median_samples(_ROUNDS * beta / (rounds * guesses.queries), guesses.tail_high)
    return RoundsPlan(plan(guesses, confidence=sure), rounds, max(fresh, alone), confidence)
