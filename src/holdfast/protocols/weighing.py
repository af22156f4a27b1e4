"""What multiplicative weights have in common, asked by looks or exactly."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.mechanisms.hypothesis import Histogram, Hypothesis, Progress, Side, Universe
from holdfast.protocols.answers import Answer
from holdfast.protocols.asking import checked_grid
from holdfast.protocols.source import Source

__all__ = ["Step", "Weighing"]

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
