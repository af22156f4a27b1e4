"""Verify: is this guess right? Yes, No, or exhausted; only a No costs much (thm `sv`, `intro-rh`).

A guess v is checked by at most two looks, #{φ ≤ v} and #{φ ≥ v} against the target, the second
only if the first says Yes. For all guesses at once: both tails at least tail_high ⇒ Yes; one of
them at most tail_low ⇒ No; after the planned number of refusals, exhausted. One-sided: "at least v"
asks only D[φ ≥ v], "at most v" only D[φ ≤ v].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput, real_number
from holdfast.mechanisms.looks import look
from holdfast.planning.parts.verdicts import VerdictPart
from holdfast.protocols.answers import Claim, Verdict
from holdfast.protocols.asking import Asking, block_floats
from holdfast.protocols.promises import verdict_promise

__all__ = ["Claim", "Verify", "claim_counts"]


class Verify(Asking[VerdictPart]):
    """Guesses that stand or are refused.

    >>> from holdfast.planning.requests.guesses import Guesses

    >>> from holdfast.planning.joint_search import joint_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> from holdfast.protocols.budget import Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(Guesses(50, refusals=2))
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> verify = Verify(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> [verify.ask(np.mean, guess).verdict for guess in (0.4, 0.5, 0.3, 0.4)]
    ['compatible', 'not compatible', 'not compatible', 'exhausted']
    """

    part_type = VerdictPart
    protocol = "verify"

    def ask(self, estimator: object, guess: float, *, claim: Claim = "equals") -> Verdict:
        """The verdict on a guess. Exhaustion is a verdict too, free and final."""
        sides = self._sides(claim)
        guess = real_number("guess", guess)
        worst = (sides - 1) * self._yes + max(self._no, self._yes)
        try:
            held = self.budget.reserve(self.part, worst, sides, noes=1)
        except Exhausted:
            return self.refuse(guess, claim)
        values = block_floats(self.source, estimator)
        yes = self._looks(claim_counts(values, guess, claim))
        price = yes * self._yes + (self._no if yes < sides else 0)
        held.settle(price, yes + (yes < sides), noes=int(yes < sides))
        return self._verdict(yes < sides, guess, claim, float(price))

    def refuse(self, guess: float, claim: Claim = "equals") -> Verdict:
        """The verdict `exhausted`: nothing is drawn, nothing is charged."""
        return self._verdict(None, real_number("guess", guess), claim, 0.0)

    @property
    def refusals_left(self) -> int:
        """How many more guesses may be refused."""
        return self.budget.buys()[self.part.name].refusals or 0

    def _sides(self, claim: Claim) -> int:
        if claim not in ("equals", "at least", "at most"):
            raise InvalidInput("claim", claim, "'equals', 'at least' or 'at most'")
        sides = 2 if claim == "equals" else 1
        if sides > self.part.sides:
            hint = "This plan covers one-sided guesses: 'at least' or 'at most'."
            raise InvalidInput("claim", claim, "one-sided", hint)
        return sides

    def _looks(self, counts: list[int]) -> int:
        """How many looks said Yes before the first No."""
        coin = self.part.coin(self.budget.plan.order)
        for done, count in enumerate(counts):
            offset = 2 * count - self.part.twice_target
            if not look(offset, coin.side(offset), self.entropy):
                return done
        return len(counts)

    def _verdict(self, refused: bool | None, guess: float, claim: Claim, price: float) -> Verdict:
        part, units = self.part, self.source.units
        return Verdict(
            protocol=self.protocol,
            guess=guess,
            claim=claim,
            tolerance=None,
            refused=refused,
            tail_low=part.tail_low,
            tail_high=part.tail_high,
            confidence=self.budget.plan.confidence,
            promise=verdict_promise(refused, guess, claim, part.tail_low, part.tail_high, units),
            price=price,
            budget_left=self.budget.left,
            refusals_left=self.refusals_left,
            certified=self.certified,
            block_units=units,
        )


def claim_counts(values: NDArray[np.float64], guess: float, claim: Claim) -> list[int]:
    """#{φ ≤ v} and #{φ ≥ v}, or the one that the claim is about."""
    at_most = int(np.count_nonzero(values <= guess))
    at_least = int(np.count_nonzero(values >= guess))
    return {"equals": [at_most, at_least], "at most": [at_most], "at least": [at_least]}[claim]
