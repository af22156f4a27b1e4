"""Near: is the answer within a tolerance of this guess? For plans without guesses of their own.

A guess g with tolerance d is a question on three points: below g − d, from there to g + d, above.
Two looks of the plan's own searches answer it, with the promise of every search:

    stands    fresh blocks give at most g + d with more than tail_low, at least g − d with tail_high
    refused   they lie beyond it, on one side, with more than that side's tail; not told is which

So a guess that stands is compatible. One that is refused may be, too: of a right guess with a
narrow tolerance most blocks lie beyond it. Nothing certified speaks against it, and the verdict is
that nobody can tell. A plan made for guesses (`holdfast.protocols.verify`) can tell, refuses fewer
that are right, needs no tolerance, and charges a guess that stands less.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.errors import Exhausted, real_number
from holdfast.protocols.answers import Verdict
from holdfast.protocols.asking import block_floats
from holdfast.protocols.estimate import Searching
from holdfast.protocols.promises import near_promise

__all__ = ["Near"]

_POINTS, _LOOKS = 3, 2


class Near(Searching):
    """Guesses that stand or are refused within a tolerance.

    >>> from holdfast.planning.requests.searches import Estimates

    >>> from holdfast.planning.joint_search import joint_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> from holdfast.protocols.budget import Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(Estimates(20, grid=51, tail_low=0.05, tail_high=0.05))
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> near = Near(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(1), name="estimate")
    >>> [near.ask(np.mean, guess, tolerance=0.05).verdict for guess in (0.4, 0.5, 0.3)]
    ['compatible', 'cannot tell', 'cannot tell']
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
            return self._verdict(None, guess, tolerance, 0.0)
        values = block_floats(self.source, estimator)
        low, high = (math.nextafter(guess + sign * tolerance, sign * math.inf) for sign in (-1, 1))
        if not tolerance:
            low = high = guess
        indices = (values >= low).astype(np.int64) + (values > high)
        found = self._search(indices, _POINTS, self.part.twice_target)
        held.settle(price, _LOOKS)
        return self._verdict(found != 1, guess, tolerance, float(price))

    def _verdict(
        self, refused: bool | None, guess: float, tolerance: float, price: float
    ) -> Verdict:
        part, units = self.part, self.source.units
        tails = part.tail_low, part.tail_high
        return Verdict(
            protocol=self.protocol,
            guess=guess,
            claim="equals",
            tolerance=tolerance,
            refused=refused,
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.budget.plan.confidence,
            promise=near_promise(refused, guess, tolerance, *tails, units),
            price=price,
            budget_left=self.budget.left,
            refusals_left=None,
            certified=self.certified,
            block_units=units,
        )
