"""Very many questions: private multiplicative weights (`adaptive-general-mwu`, `intro-iqr-mwu`).

A public hypothesis about the law of a block guesses the median of every question; two looks check
the guess on the sample. Confirmed, it is the answer, and costs two cheap looks. Refused, it is a
surprise: the hypothesis learns from it and guesses again. Surprises are few, whatever is asked
(`holdfast.theory.updates`), so that their number, and not that of the questions, decides the size.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.mechanisms.hypothesis import Histogram, Hypothesis, Side
from holdfast.mechanisms.look import look
from holdfast.mechanisms.universe import Progress, Universe
from holdfast.planning.parts import WeightsPart
from holdfast.protocols.answers import Answer
from holdfast.protocols.asking import Asking, checked_grid
from holdfast.protocols.budget import Budget
from holdfast.protocols.source import Source
from holdfast.randomness import Entropy
from holdfast.theory.updates import learning_rate

__all__ = ["Weights"]


class Weights(Asking[WeightsPart]):
    """Questions answered by a hypothesis that the sample corrects.

    >>> from holdfast.grids import grid
    >>> from holdfast.planning import WeightedEstimates, joint_plan
    >>> from holdfast.protocols import BlockArray, Budget
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
        if universe.size != self.part.universe:
            allowed = f"the plan's universe of {self.part.universe:,} elements"
            raise InvalidInput("universe", universe.size, allowed)
        if universe.block_size != source.units:
            raise InvalidInput("block_size", universe.block_size, f"the source's {source.units:,}")
        self.universe = universe
        self.hypothesis = Hypothesis(universe.size)
        self._places = universe.locate(source.values(_itself))
        self._lock = threading.RLock()

    @property
    def updates(self) -> int:
        """How often the hypothesis was corrected."""
        return self.hypothesis.updates

    def ask(
        self,
        estimator: Callable[[NDArray[Any]], object],
        grid: Grid,
        *,
        progress: Progress | None = None,
    ) -> Answer:
        """The answer for a symmetric estimator, which gets many blocks at once, one in each row."""
        return self.ask_values(self.universe.evaluate(estimator, progress=progress), grid)

    def ask_all(
        self,
        estimators: Iterable[Callable[[NDArray[Any]], object]],
        grid: Grid,
        *,
        progress: Progress | bool = False,
    ) -> list[Answer]:
        """Answers for a list of estimators; `progress(done, total)` after each of them.

        With True a bar on standard error says how far it is.
        """
        questions = list(estimators)
        answers = []
        with _display(progress, len(questions)) as report:
            for done, estimator in enumerate(questions, start=1):
                answers.append(self.ask(estimator, grid))
                report(done, len(questions))
        return answers

    def ask_values(self, values: object, grid: Grid) -> Answer:
        """The answer for an estimator given by its value on every element of the universe."""
        return self.ask_indices(checked_grid(grid).ceiling(values), grid)

    def ask_indices(self, indices: NDArray[np.integer], grid: Grid) -> Answer:
        """The answer for an estimator given by its grid index on every element."""
        if indices.shape != (self.universe.size,):
            allowed = f"one for each of {self.universe.size:,} elements"
            raise InvalidInput("values", indices.shape, allowed)
        with self._lock:
            return self._answer(indices, grid)

    def _answer(self, indices: NDArray[np.integer], grid: Grid) -> Answer:
        histogram = self.hypothesis.histogram(indices, grid.size)
        sample = indices[self._places]
        price, confirmed = 0.0, None
        try:
            while confirmed is None:
                paid, confirmed = self._guess(histogram, sample)
                price += paid
        finally:
            histogram.commit()  # what was learnt and paid for is kept, whatever comes next
        guess = confirmed  # not the median now: rounding may have moved it since
        return Answer(
            protocol=self.protocol,
            value=grid.point(guess),
            low=None,
            high=None,
            tail_low=self.part.tail,
            tail_high=self.part.tail,
            confidence=self.budget.plan.confidence,
            promise=f"fresh data lie on either side of it with more than {self.part.tail:.4g}",
            price=price,
            budget_left=self.budget.left,
            at_grid_end=guess in (0, grid.size - 1),
            certified=self.certified,
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
                histogram.shrink(median.guess, side, learning_rate(part.mass(blocks), mass))
                return float(price), None
        price = 2 * self._yes
        held.settle(price, 2)
        return float(price), median.guess


def _itself(block: NDArray[Any]) -> object:
    return block


@contextmanager
def _display(progress: Progress | bool, total: int) -> Iterator[Progress]:
    """Whoever wants to hear of progress: a function, a bar, or nobody."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda _done, _total: None
    else:
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("asking", total=total)
            yield lambda done, _total: bar.update(task, completed=done)
