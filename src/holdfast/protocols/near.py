"""Near: is the answer within a tolerance of this guess? For plans without guesses of their own.

A guess g with tolerance d is a question on three points: below g − d, from there to g + d, above.
Two looks of the plan's own searches answer it, with the promise of every search:

    yes   fresh data give at most g + d with more than tail_low, at least g − d with tail_high
    no    they lie beyond it, on one side, with more than that side's tail; not told is which

A plan made for guesses (`holdfast.protocols.verify`) refuses fewer that are right, needs no
tolerance, and charges a Yes less.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.arguments import real_number
from holdfast.errors import Exhausted
from holdfast.protocols.answers import Verdict, VerdictWord
from holdfast.protocols.asking import block_floats
from holdfast.protocols.estimate import Searching
from holdfast.protocols.promises import near_promise

__all__ = ["Near"]

_POINTS, _LOOKS = 3, 2


class Near(Searching):
    """Guesses that are confirmed or refused within a tolerance.

    >>> from holdfast.planning import Estimates, joint_plan
    >>> from holdfast.protocols import BlockArray, Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(Estimates(20, grid=51, tail_low=0.05, tail_high=0.05))
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> near = Near(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(1), name="estimate")
    >>> [near.ask(np.mean, guess, tolerance=0.05).verdict for guess in (0.4, 0.5, 0.3)]
    ['yes', 'no', 'no']
    """

    protocol = "verify"
    served_by = ("estimate", "simple")

    def ask(self, estimator: object, guess: float, *, tolerance: float = 0.0) -> Verdict:
        """The verdict on a guess. Exhaustion is a verdict too, free and final."""
        guess = real_number("guess", guess)
        tolerance = real_number("tolerance", tolerance, 0)
        price = _LOOKS * self._no
        try:
            held = self.budget.reserve(self.part, price, _LOOKS)
        except Exhausted:
            return self._verdict("exhausted", guess, tolerance, 0.0)
        values = block_floats(self.source, estimator)
        low, high = (math.nextafter(guess + sign * tolerance, sign * math.inf) for sign in (-1, 1))
        if not tolerance:
            low = high = guess
        indices = (values >= low).astype(np.int64) + (values > high)
        found = self._search(indices, _POINTS, self.part.twice_target)
        held.settle(price, _LOOKS)
        return self._verdict("yes" if found == 1 else "no", guess, tolerance, float(price))

    def _verdict(
        self, verdict: VerdictWord, guess: float, tolerance: float, price: float
    ) -> Verdict:
        part = self.part
        return Verdict(
            protocol=self.protocol,
            verdict=verdict,
            guess=guess,
            tail_low=part.tail_low,
            tail_high=part.tail_high,
            confidence=self.budget.plan.confidence,
            promise=near_promise(part.tail_low, part.tail_high, tolerance),
            price=price,
            budget_left=self.budget.left,
            refusals_left=None,
            certified=self.certified,
        )
