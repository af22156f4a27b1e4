"""Very many questions: private multiplicative weights (`adaptive-general-mwu`, `intro-iqr-mwu`).

A public hypothesis about the law of a block guesses the median of every question; two looks check
the guess on the sample. Confirmed, it is the answer, and costs two cheap looks. Refused, it is a
surprise: the hypothesis learns from it and guesses again. Surprises are few, whatever is asked
(`holdfast.theory.transcripts`), so that their number, and not that of the questions, decides the
size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.mechanisms.hypothesis import Histogram, Side, Universe
from holdfast.mechanisms.looks import look
from holdfast.planning.parts.weights import WeightsPart
from holdfast.protocols.answers import Answer
from holdfast.protocols.asking import Asking
from holdfast.protocols.budget import Budget
from holdfast.protocols.promises import search_promise
from holdfast.protocols.source import Source
from holdfast.protocols.weighing import Weighing
from holdfast.randomness import Entropy
from holdfast.theory.transcripts import learning_rate

__all__ = ["Weights"]


class Weights(Asking[WeightsPart], Weighing):
    """Questions answered by a hypothesis that the sample corrects.

    >>> from holdfast.grids import grid
    >>> from holdfast.planning.requests.weights import WeightedEstimates
    >>> from holdfast.planning.joint_search import joint_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> from holdfast.protocols.budget import Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(WeightedEstimates(queries=200, universe=101, tail=0.05), blocks=1000)
    >>> rows = np.random.default_rng(1).binomial(100, 0.3, size=plan.blocks) / 100
    >>> universe = Universe.points(np.arange(101) / 100)
    >>> weights = Weights(Budget(plan), BlockArray(rows, plan.blocks), universe, SeededEntropy(1))
    >>> answer = weights.ask(lambda blocks: blocks.mean(axis=1), grid(0, 1, step=0.01))
    >>> answer.value, weights.updates > 0
    (0.27, True)
    """

    part_type = WeightsPart
    protocol = "weights"

    def __init__(
        self,
        budget: Budget,
        source: Source,
        universe: Universe,
        entropy: Entropy | None = None,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(budget, source, entropy, name=name)
        self._place(source, universe, self.part.universe)

    @property
    def updates(self) -> int:
        """How often the hypothesis was corrected."""
        return self.hypothesis.updates

    def _weigh(self, indices: NDArray[np.integer], grid: Grid) -> Answer:
        histogram = self.hypothesis.histogram(indices, grid.size)
        sample = indices[self._places]
        price, guess = 0.0, None
        while guess is None:
            paid, guess = self._guess(histogram, sample)
            price += paid
        tail, units, cell = self.part.tail, self.source.units, grid.cell(guess)
        return Answer(
            protocol=self.protocol,
            value=grid.point(guess),
            low=None,
            high=None,
            tail_low=tail,
            tail_high=tail,
            confidence=self.budget.plan.confidence,
            promise=search_promise(tail, tail, units, cell, has_bar=False),
            price=price,
            budget_left=self.budget.left,
            at_grid_end=guess in (0, grid.size - 1),
            certified=self.certified,
            block_units=units,
            method="weights",
        )

    def _guess(self, histogram: Histogram, sample: NDArray[np.integer]) -> tuple[float, int | None]:
        """Check the hypothesis' guess; learn from a refusal. What was paid, and what confirmed."""
        part, blocks = self.part, self.budget.plan.blocks
        median = histogram.median()
        held = self.budget.reserve(part, self._yes + max(self._no, self._yes), 2, noes=1)
        sides: tuple[tuple[Side, int, float], ...] = (
            ("at most", int(np.count_nonzero(sample <= median.guess)), median.at_most),
            ("at least", int(np.count_nonzero(sample >= median.guess)), median.at_least),
        )
        coin = part.coin(self.budget.plan.order)
        for done, (side, count, mass) in enumerate(sides):
            offset = 2 * count - part.twice_target
            if not look(offset, coin.side(offset), self.entropy):
                price = done * self._yes + self._no
                held.settle(price, done + 1, noes=1)
                self._learn(histogram, median.guess, side, learning_rate(part.mass(blocks), mass))
                return float(price), None
        price = 2 * self._yes
        held.settle(price, 2)
        return float(price), median.guess
