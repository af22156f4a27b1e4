"""Very many questions: private multiplicative weights (`adaptive-general-mwu`, `intro-iqr-mwu`).

A public hypothesis about the law of a block guesses the median of every question; two looks check
the guess on the sample. Confirmed, it is the answer, and costs two cheap looks. Refused, it is a
surprise: the hypothesis learns from it and guesses again. Surprises are few, whatever is asked
(`holdfast.theory.transcripts`), so that their number, and not that of the questions, decides the
size.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput
from holdfast.grids import Grid
from holdfast.mechanisms.hypothesis import Histogram, Hypothesis, Progress, Side, Universe
from holdfast.mechanisms.looks import look
from holdfast.planning.exact import ExactWeights
from holdfast.planning.parts import WeightsPart
from holdfast.protocols.answers import Answer, search_promise
from holdfast.protocols.base import Asking, Tallied, checked_grid
from holdfast.protocols.budget import Budget
from holdfast.protocols.source import Source
from holdfast.randomness import Entropy
from holdfast.theory.transcripts import learning_rate

__all__ = [
    "ExactWeighing",
    "Step",
    "Weighing",
    "Weights",
]


# What multiplicative weights have in common, asked by looks or exactly.


Step = tuple[int, Side, float]  # a refused guess, the side that had too little, the rate


class Weighing(ABC):
    """Questions about blocks out of a universe, one at a time."""

    def _place(self, source: Source, universe: Universe, planned: int) -> None:
        """Find every block's place in the universe that was planned for."""
        if universe.size != planned:
            allowed = f"the plan's universe of {planned:,} elements"
            raise InvalidInput("universe", universe.size, allowed)
        if universe.block_size != source.units:
            raise InvalidInput("block_size", universe.block_size, f"the source's {source.units:,}")
        self.universe = universe
        self.hypothesis = Hypothesis(universe.size)
        self.steps: list[Step] = []  # what the last question taught the hypothesis
        self._places = universe.locate(source.values(_itself))
        self._lock = threading.RLock()

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
        progress: Progress | bool | None = None,
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
            self.steps = []
            return self._weigh(indices, grid)

    def repeat(self, indices: NDArray[np.integer], size: int, steps: Iterable[Step]) -> None:
        """Learn again what an earlier object learnt from a question."""
        histogram = self.hypothesis.histogram(indices, size)
        for guess, side, rate in steps:
            histogram.shrink(guess, side, rate)

    def _learn(self, histogram: Histogram, guess: int, side: Side, rate: float) -> None:
        histogram.shrink(guess, side, rate)
        self.steps.append((guess, side, rate))

    @abstractmethod
    def _weigh(self, indices: NDArray[np.integer], grid: Grid) -> Answer:
        """Guess, be refused and learn, until a guess is confirmed."""


def _itself(block: NDArray[Any]) -> object:
    return block


@contextmanager
def _display(progress: Progress | bool | None, total: int) -> Iterator[Progress]:
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


class Weights(Asking[WeightsPart], Weighing):
    """Questions answered by a hypothesis that the sample corrects.

    >>> from holdfast.grids import grid
    >>> from holdfast.planning.requests import WeightedEstimates
    >>> from holdfast.planning.joint import joint_plan
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


# Very many questions without noise: the hypothesis of `weights`, corrected by exact verdicts.
#
# A guess, the hypothesis' median, is confirmed if both its sides have the planned count of blocks.
# Otherwise one side is told to have fewer, the hypothesis learns, and the question is guessed
# again.
# A refused guess has less than that count on its side, exactly, so the plan's bound on the updates
# holds for all data and never ends an interaction (docs/explanation/theory/transcripts.md).
#
# As for `holdfast.protocols.exact`: nothing else about these blocks may be seen by anybody.


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
