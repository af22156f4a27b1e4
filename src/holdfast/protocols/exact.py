"""Exact answers: no coin and no noise, certified because so little can be said.

The plan has counted all that can ever be asked (docs/explanation/theory/transcripts.md). Verdicts
are charged in refusals, answers in questions of the planned grid; what may be said is charged
before anything is evaluated, and a Yes gives its refusal back. Questions are answered one after the
other, whichever thread they come from.

**An exact answer is not stable.** Nothing else about these blocks may be seen by anybody: they must
not also serve looks, another plan, or a second copy of the same one. What an estimator is, and how
long it takes, must not tell more than its answer.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

import numpy as np

from holdfast.errors import Exhausted, InvalidInput, real_number
from holdfast.grids import Grid
from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactPlan, ExactVerdicts
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import Answer, Claim, Verdict, search_promise, verdict_promise
from holdfast.protocols.base import (
    Tallied,
    block_floats,
    block_indices,
    checked_grid,
    checked_shape,
)
from holdfast.protocols.guesses import Corrected, claim_counts
from holdfast.protocols.source import Source

__all__ = ["ExactCorrect", "ExactEstimate", "ExactVerify"]

P = TypeVar("P", bound=ExactPlan)
G = TypeVar("G", bound=ExactVerdicts | ExactCorrections)


class _Exact(Tallied, ABC, Generic[P]):
    """A plan that proves itself, and its blocks."""

    certified = True  # no randomness is drawn: there is nothing to foresee

    def __init__(self, plan: P, source: Source) -> None:
        if not plan.verify():
            raise InvalidInput("plan", plan.blocks, "a plan that certifies itself")
        if source.blocks != plan.blocks:
            hint = "The plan was made for another split of the data."
            raise InvalidInput("blocks", source.blocks, f"the plan's {plan.blocks:,}", hint)
        self.plan, self.source = plan, source
        # Held while a question is answered; should an estimator ask in turn, it must not hang.
        self._lock = threading.RLock()

    @property
    @abstractmethod
    def left(self) -> float:
        """What can still be charged, in refusals or in questions of the planned grid."""

    def _answer(
        self,
        estimator: object,
        grid: Grid,
        rank: int,
        tails: tuple[float, float],
        shape: Shape | None,
        price: float,
    ) -> Answer:
        """The value of this rank on the grid. What it may say was charged before."""
        indices = block_indices(self.source, estimator, grid)
        index = int(np.partition(indices, rank - 1)[rank - 1])
        low, high = None, None
        units, cell = self.source.units, grid.cell(index)
        if shape is not None:
            low, high = shape.bar(cell, units, *tails)
        has_bar = low is not None or high is not None
        return Answer(
            protocol="estimate",
            value=grid.point(index),
            low=low,
            high=high,
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.plan.confidence,
            promise=search_promise(*tails, units, cell, has_bar=has_bar),
            price=price,
            budget_left=self.left,
            at_grid_end=index in (0, grid.size - 1),
            certified=self.certified,
            block_units=units,
            method="exact",
        )


class _Guesses(_Exact[G]):
    """Guesses and refusals that are left; a guess reserves one of each."""

    counts: ClassVar[tuple[str, ...]] = ("asked", "refused")

    def __init__(self, plan: G, source: Source) -> None:
        super().__init__(plan, source)
        self._asked = self._refused = 0

    @property
    def questions_left(self) -> int:
        """How many more guesses there can be."""
        return self.plan.queries - self._asked if self._refused < self.plan.refusals else 0

    @property
    def refusals_left(self) -> int:
        """How many more guesses may be refused."""
        return self.plan.refusals - self._refused if self._asked < self.plan.queries else 0

    @property
    def left(self) -> float:
        return float(self.refusals_left)

    def refuse(self, guess: float, claim: Claim = "equals") -> Verdict:
        """The verdict `exhausted`: nothing is evaluated, nothing is charged."""
        return self._verdict(None, real_number("guess", guess), claim)

    def _confirmed(self, estimator: object, guess: float, claim: Claim) -> bool:
        """Whether every side has enough blocks. The refusal was reserved before."""
        counts = claim_counts(block_floats(self.source, estimator), guess, claim)
        return min(counts) >= self.plan.least

    def _verdict(self, refused: bool | None, guess: float, claim: Claim = "equals") -> Verdict:
        plan, units = self.plan, self.source.units
        tails = plan.tail_low, plan.tail_high
        return Verdict(
            protocol="verify",
            guess=guess,
            claim=claim,
            tolerance=None,
            refused=refused,
            tail_low=plan.tail_low,
            tail_high=plan.tail_high,
            confidence=plan.confidence,
            promise=verdict_promise(refused, guess, claim, *tails, units),
            price=float(refused is True),
            budget_left=self.left,
            refusals_left=self.refusals_left,
            certified=self.certified,
            block_units=units,
        )


class ExactVerify(_Guesses[ExactVerdicts]):
    """Guesses that stand or are refused. Which side failed is not told.

    >>> from holdfast.planning.exact import exact_verdicts
    >>> from holdfast.protocols.source import BlockArray
    >>> plan = exact_verdicts(50, refusals=2)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> verify = ExactVerify(plan, BlockArray(rows, plan.blocks))
    >>> [verify.ask(np.mean, guess).verdict for guess in (0.4, 0.5, 0.3, 0.4)]
    ['compatible', 'not compatible', 'not compatible', 'exhausted']
    """

    protocol = "verify"

    def ask(self, estimator: object, guess: float, *, claim: Claim = "equals") -> Verdict:
        """The verdict on a guess. Exhaustion is a verdict too, free and final."""
        guess = real_number("guess", guess)
        if claim not in ("equals", "at least", "at most"):
            raise InvalidInput("claim", claim, "'equals', 'at least' or 'at most'")
        if claim == "equals" and self.plan.sides == 1:
            hint = "This plan covers one-sided guesses: 'at least' or 'at most'."
            raise InvalidInput("claim", claim, "one-sided", hint)
        with self._lock:
            if not self.questions_left:
                return self.refuse(guess, claim)
            self._asked, self._refused = self._asked + 1, self._refused + 1
            self._charged()
            if not self._confirmed(estimator, guess, claim):
                return self._verdict(True, guess, claim)
            self._refused -= 1
            return self._verdict(False, guess, claim)


class ExactCorrect(_Guesses[ExactCorrections]):
    """Guesses that are confirmed, or corrected by the value of the planned rank on a grid.

    A grid may be larger than planned if those of earlier corrections were smaller; that of the last
    correction may have any size.

    >>> from holdfast.grids import grid
    >>> from holdfast.planning.exact import exact_corrections
    >>> from holdfast.protocols.source import BlockArray
    >>> plan = exact_corrections(50, refusals=2)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> correct = ExactCorrect(plan, BlockArray(rows, plan.blocks))
    >>> [correct.ask(np.mean, guess, grid(0, 1, step=0.04)).value for guess in (0.4, 0.7)]
    [0.4, 0.4]
    """

    protocol = "correct"
    counts = ("asked", "refused", "told")

    def __init__(self, plan: ExactCorrections, source: Source) -> None:
        super().__init__(plan, source)
        self._told = 1  # the product of the sizes of all grids on which a correction was given

    @property
    def confidence(self) -> float:
        """For all values at once."""
        return self.plan.confidence

    @property
    def largest_grid(self) -> int | None:
        """The points that the next correction's grid may have; None if any number."""
        if self._refused >= self.plan.refusals - 1:
            return None  # after the last correction nothing can be asked
        return int(self.plan.grid ** (self._refused + 1)) // self._told

    def ask(
        self, estimator: object, guess: float, grid: Grid, *, shape: Shape | None = None
    ) -> Corrected:
        """Confirm the guess or correct it."""
        checked_shape(shape)
        guess, size = real_number("guess", guess), checked_grid(grid).size
        with self._lock:
            if not self.questions_left:
                return Corrected(self.refuse(guess), None)
            most = self.largest_grid
            if most is not None and size > most:
                hint = "Use a coarser grid, or plan for a larger one."
                raise InvalidInput("grid", size, f"a grid of at most {most:,} points", hint)
            self._asked, self._refused = self._asked + 1, self._refused + 1
            self._told *= size
            self._charged()
            if not self._confirmed(estimator, guess, "equals"):
                plan, tails = self.plan, (self.plan.tail_low, self.plan.tail_low)
                # It is not charged again: the refusal has paid for both.
                correction = self._answer(estimator, grid, plan.rank, tails, shape, price=0.0)
                return Corrected(self._verdict(True, guess), correction)
            self._refused, self._told = self._refused - 1, self._told // size
            return Corrected(self._verdict(False, guess), None)


class ExactEstimate(_Exact[ExactEstimates]):
    """Questions answered by the value of the planned rank on a grid.

    What all grids but the last can say must have been planned: the product of their sizes is at
    most r^(k−1). So a larger grid is allowed, and costs ln(its size)/ln r questions; a smaller one
    leaves room for more questions.

    >>> from holdfast.grids import grid
    >>> from holdfast.planning.exact import exact_estimates
    >>> from holdfast.protocols.source import BlockArray
    >>> plan = exact_estimates(20, grid=51, tail_low=0.05, tail_high=0.05)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> estimates = ExactEstimate(plan, BlockArray(rows, plan.blocks))
    >>> answer = estimates.ask(np.mean, grid(0, 1, step=0.02))
    >>> answer.value, answer.certified, estimates.questions_left
    (0.4, True, 19)
    """

    protocol = "estimate"
    counts = ("room",)

    def __init__(self, plan: ExactEstimates, source: Source) -> None:
        super().__init__(plan, source)
        self._room = plan.grid ** (plan.queries - 1)  # exact; with none left nothing is said

    @property
    def left(self) -> float:
        if not self._room:
            return 0.0
        return round(1 + math.log(self._room) / math.log(self.plan.grid), 9)

    @property
    def questions_left(self) -> int:
        """How many more questions on grids of the planned size there can be."""
        most = round(self.left)
        return most if not most or self.plan.grid ** (most - 1) <= self._room else most - 1

    def ask(self, estimator: object, grid: Grid, *, shape: Shape | None = None) -> Answer:
        """The estimator's value. With a shape that is known to hold, its mean's error bar too.

        A bar needs an estimator that cannot fail on a block, and a fixed number of terms.
        """
        checked_shape(shape)
        plan, size = self.plan, checked_grid(grid).size
        with self._lock:
            if not self._room:
                remedy = "Nothing more can be asked of these blocks: they answer exactly."
                raise Exhausted("The budget for estimate", "another question", "none", remedy)
            self._room //= size
            self._charged()
            tails, price = (plan.tail_low, plan.tail_high), math.log(size) / math.log(plan.grid)
            return self._answer(estimator, grid, plan.rank, tails, shape, price)
