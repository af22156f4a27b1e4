"""Verify and correct: the reusable holdout for any estimator (`intro-rh`).

A guess comes from open data. If it is confirmed, it is the answer, nearly free; if not, a search on
the holdout answers instead. Both share one budget on the same blocks. (The paper also allows a
budget for each on disjoint data. That two sources are disjoint cannot be seen from outside.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.errors import Exhausted, InvalidInput, real_number
from holdfast.grids import Grid
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.asking import checked_shape
from holdfast.protocols.estimate import Estimate
from holdfast.protocols.verify import Verify

__all__ = ["Correct", "Corrected"]


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
    >>> from holdfast.planning.requests.searches import Estimates
    >>> from holdfast.planning.requests.guesses import Guesses
    >>> from holdfast.planning.joint_search import joint_plan
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
