"""The collector against multiplicative weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.lab.protocol_attacks.base import JointAttack, Notes, Run, Side, outside, refused
from holdfast.lab.protocol_attacks.collector import Collector, Question
from holdfast.lab.protocol_attacks.sample import Sample, Trial, draw_labels
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.requests import Request, WeightedEstimates
from holdfast.protocols.budget import Budget
from holdfast.protocols.weights import Weights

__all__ = ["WeightsAttack"]


@lru_cache(maxsize=4)
def _universe(size: int) -> tuple[Universe, NDArray[np.int64]]:
    points = np.arange(size)
    return Universe.points(points), points


@dataclass(frozen=True)
class WeightsAttack(JointAttack):
    """Collect labels from a hypothesis that believes in more labels than there are."""

    name: ClassVar[str] = "weights"
    promise: ClassVar[str] = "both tails of every answer are above 0.06"

    queries: int = 12
    universe: int = 12_288
    size: int = 2**13
    points: int = 2**7
    tail: float = 0.06
    steps: int = 2_000  # questions that naive answers at most

    @property
    def requests(self) -> tuple[Request, ...]:
        return (WeightedEstimates(self.queries, self.universe, self.tail),)

    @property
    def story(self) -> str:
        return (
            f"The universe has {self.universe:,} elements, but blocks have only the first "
            f"{self.size:,} of them as labels: the hypothesis must learn that from refused "
            f"guesses. The collector asks {self.queries - 3} questions for labels, then whether a "
            f"label is known, an event of mass at most {self.tail:g}. Naive gives exact medians, "
            "and goes on until half of the labels are collected."
        )

    def run(self, side: Side, trial: Trial) -> Run:
        sample = Sample(draw_labels(self.blocks, self.size, trial.blocks))
        notes, collector = Notes(), Collector(self.size, self.points, self.tail)
        if side == "naive":
            middle = (self.blocks - 1) // 2

            def exact(question: Question) -> int:
                return int(np.partition(question(sample.data), middle)[middle])

            self._collect(exact, collector, notes, self.steps)
            last = collector.event
            notes.add(outside(last.tails(exact(last)), self.tail))
            return notes.run()
        budget, (universe, points) = Budget(self.plan), _universe(self.universe)
        protocol = Weights(budget, sample, universe, trial.coins)

        def ask(question: Question) -> int:
            return int(protocol.ask_values(question(points), question.grid).value)

        self._collect(ask, collector, notes, self.queries - 3)
        last = collector.event
        while notes.answered < self.queries:
            notes.add(outside(last.tails(ask(last)), self.tail))
        if trial.number:  # a Yes is cheap: it takes hundreds of them to exhaust the budget
            return notes.run()
        over = notes.until_exhausted(lambda: outside(last.tails(ask(last)), self.tail))
        return notes.run(polite=over and refused(budget, lambda: ask(last)))

    def _collect(
        self, ask: Callable[[Question], int], collector: Collector, notes: Notes, most: int
    ) -> None:
        while notes.answered < most and not collector.done:
            question = collector.question
            answer = ask(question)
            notes.add(outside(question.tails(answer), self.tail))
            collector.learn(answer)
