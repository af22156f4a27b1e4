"""Very many questions without noise: the hypothesis of `weights`, corrected by exact verdicts.

A guess, the hypothesis' median, is confirmed if both its sides have the planned count of blocks.
Otherwise one side is told to have fewer, the hypothesis learns, and the question is guessed again.
A refused guess has less than that count on its side, exactly, so the plan's bound on the updates
holds for all data and never ends an interaction (docs/explanation/theory/transcripts.md).

As for `holdfast.protocols.exact`: nothing else about these blocks may be seen by anybody.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput
from holdfast.grids import Grid
from holdfast.mechanisms.hypothesis import Histogram, Side, Universe
from holdfast.planning.exact import ExactWeights
from holdfast.protocols.answers import Answer
from holdfast.protocols.promises import search_promise
from holdfast.protocols.source import Source
from holdfast.protocols.tally import Tallied
from holdfast.protocols.weighing import Weighing
from holdfast.theory.transcripts import learning_rate

__all__ = ["ExactWeighing"]


class ExactWeighing(Tallied, Weighing):
    """Questions answered by a hypothesis that exact verdicts correct. Charged in questions.

    >>> from holdfast.grids import grid
    >>> from holdfast.planning.exact import exact_weights
    >>> from holdfast.protocols.source import BlockArray
    >>> plan = exact_weights(queries=200, universe=101, tail=0.05)
    >>> rows = np.random.default_rng(1).binomial(100, 0.3, size=plan.blocks) / 100
    >>> universe = Universe.points(np.arange(101) / 100)
    >>> weighing = ExactWeighing(plan, BlockArray(rows, plan.blocks), universe)
    >>> answer = weighing.ask(lambda blocks: blocks.mean(axis=1), grid(0, 1, step=0.01))
    >>> answer.value, answer.certified, 0 < weighing.updates <= plan.updates
    (0.32, True, True)
    """

    protocol = "weights"
    counts = ("asked", "refused")
    certified = True  # no randomness is drawn: there is nothing to foresee

    def __init__(self, plan: ExactWeights, source: Source, universe: Universe) -> None:
        if not plan.verify():
            raise InvalidInput("plan", plan.blocks, "a plan that certifies itself")
        if source.blocks != plan.blocks:
            hint = "The plan was made for another split of the data."
            raise InvalidInput("blocks", source.blocks, f"the plan's {plan.blocks:,}", hint)
        self._place(source, universe, plan.universe)
        self.plan, self.source = plan, source
        self._refused = 0
        self._asked = 0

    @property
    def updates(self) -> int:
        """How often the hypothesis was corrected."""
        return self._refused

    @property
    def questions_left(self) -> int:
        """How many more questions there can be."""
        return self.plan.queries - self._asked

    def _weigh(self, indices: NDArray[np.integer], grid: Grid) -> Answer:
        if not self.questions_left:
            remedy = "All planned questions have been asked."
            raise Exhausted("The budget for weights", "another question", "none", remedy)
        self._asked += 1
        self._charged()
        histogram = self.hypothesis.histogram(indices, grid.size)
        sample = indices[self._places]
        guess = None
        while guess is None:
            if self._refused > self.plan.updates:  # impossible, and so the proof's concern
                remedy = "The hypothesis was refused more often than can be."
                raise Exhausted("The budget for weights", "an update", "none", remedy)
            guess = self._confirmed(histogram, sample)
        return self._answer(grid, guess)

    def _confirmed(self, histogram: Histogram, sample: NDArray[np.integer]) -> int | None:
        """The hypothesis' guess if it is confirmed; otherwise learn from the refusal."""
        guess, at_most, at_least = histogram.median()
        sides: tuple[tuple[Side, int, float], ...] = (
            ("at most", int(np.count_nonzero(sample <= guess)), at_most),
            ("at least", int(np.count_nonzero(sample >= guess)), at_least),
        )
        for side, count, mass in sides:
            if count < self.plan.least:
                self._refused += 1
                self._learn(histogram, guess, side, learning_rate(self.plan.mass, mass))
                return None
        return guess

    def _answer(self, grid: Grid, guess: int) -> Answer:
        tail, units, cell = self.plan.tail, self.source.units, grid.cell(guess)
        return Answer(
            protocol=self.protocol,
            value=grid.point(guess),
            low=None,
            high=None,
            tail_low=tail,
            tail_high=tail,
            confidence=self.plan.confidence,
            promise=search_promise(tail, tail, units, cell, has_bar=False),
            price=1.0,
            budget_left=float(self.questions_left),
            at_grid_end=guess in (0, grid.size - 1),
            certified=self.certified,
            block_units=units,
            method="exact",
        )
