"""Verify: is this guess right? Yes, No, or exhausted; only a No costs much (thm `sv`, `intro-rh`).

A guess v is checked by at most two looks, #{φ ≤ v} and #{φ ≥ v} against the target, the second
only if the first says Yes. For all guesses at once: both tails at least tail_high ⇒ Yes; one of
them at most tail_low ⇒ No; after the planned number of refusals, exhausted. One-sided: "at least v"
asks only D[φ ≥ v], "at most v" only D[φ ≤ v].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput, real_number
from holdfast.grids import Grid
from holdfast.mechanisms.looks import look
from holdfast.planning.parts import VerdictPart
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import Answer, Claim, Verdict, verdict_promise
from holdfast.protocols.base import Asking, block_floats, checked_shape
from holdfast.protocols.searches import Estimate

__all__ = [
    "Claim",
    "Correct",
    "Corrected",
    "Verify",
    "claim_counts",
]


class Verify(Asking[VerdictPart]):
    """Guesses that stand or are refused.

    >>> from holdfast.planning.requests import Guesses

    >>> from holdfast.planning.joint import joint_plan
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


# Verify and correct: the reusable holdout for any estimator (`intro-rh`).
#
# A guess comes from open data. If it is confirmed, it is the answer, nearly free; if not, a
# search on
# the holdout answers instead. Both share one budget on the same blocks. (The paper also allows a
# budget for each on disjoint data. That two sources are disjoint cannot be seen from outside.)


@dataclass(frozen=True)
class Corrected:
    """The verdict on the guess, and the answer that took its place if it was refused."""

    verdict: Verdict
    correction: Answer | None

    @property
    def value(self) -> float | None:
        """The guess if it is compatible, or the correction; None if nothing is known."""
        if self.correction is not None:
            return self.correction.value
        return self.verdict.guess if self.verdict.verdict == "compatible" else None

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text: the value, and both steps."""
        correction = None if self.correction is None else self.correction.to_dict()
        steps = {"verdict": self.verdict.to_dict(), "correction": correction}
        return {"value": self.value, "tail": self.tail, "price": self.price, **steps}

    def _repr_html_(self) -> str:
        correction = "" if self.correction is None else self.correction._repr_html_()
        return self.verdict._repr_html_() + correction

    @property
    def tail(self) -> float:
        """The value lies in qi(tail, 1 − tail), whichever way it was found."""
        return self.verdict.tail_low if self.correction is None else self.correction.tail

    @property
    def price(self) -> float:
        """What both steps cost together."""
        return self.verdict.price + (0.0 if self.correction is None else self.correction.price)


class Correct:
    """Guesses that are confirmed or corrected.

    >>> import numpy as np
    >>> from holdfast.grids import grid
    >>> from holdfast.planning.requests import Estimates
    >>> from holdfast.planning.requests import Guesses
    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> from holdfast.protocols.budget import Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> requests = Guesses(50, refusals=2), Estimates(2, tail_low=0.05, tail_high=0.05)
    >>> plan = joint_plan(*requests, blocks=2000)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> source, budget = BlockArray(rows, plan.blocks), Budget(plan)
    >>> correct = Correct(
    ...     Verify(budget, source, SeededEntropy(1)), Estimate(budget, source, SeededEntropy(2))
    ... )
    >>> [correct.ask(np.mean, guess, grid(0, 1, step=0.04)).value for guess in (0.4, 0.7)]
    [0.4, 0.44]
    """

    def __init__(self, verify: Verify, estimate: Estimate) -> None:
        if verify.part.sides != 2:
            raise InvalidInput("verify", verify.part.name, "a part with two-sided guesses")
        if verify.budget is not estimate.budget:
            hint = "Make one plan for both requests: joint_plan(Guesses(…), Estimates(…))."
            raise InvalidInput("budget", "two", "one for guesses and corrections", hint)
        self.verify, self.estimate = verify, estimate

    @property
    def confidence(self) -> float:
        """For all values at once."""
        return self.verify.budget.plan.confidence

    def ask(
        self, estimator: object, guess: float, grid: Grid, *, shape: Shape | None = None
    ) -> Corrected:
        """Confirm the guess or correct it. The correction is paid for before the guess is drawn."""
        checked_shape(shape)
        real_number("guess", guess)
        try:
            held = self.estimate.reserve(grid)
        except Exhausted:
            return Corrected(self.verify.refuse(guess), None)
        verdict = self.verify.ask(estimator, guess)
        if not verdict.refused:
            held.cancel()
            return Corrected(replace(verdict, budget_left=self.verify.budget.left), None)
        return Corrected(verdict, self.estimate.draw(held, estimator, grid, shape=shape))
