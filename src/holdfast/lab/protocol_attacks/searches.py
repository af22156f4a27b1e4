"""The collector against searches: estimate, simple, amplified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from holdfast.errors import Exhausted
from holdfast.lab.protocol_attacks.base import JointAttack, Notes, Run, Side, outside, refused
from holdfast.lab.protocol_attacks.collector import Collector, Question
from holdfast.lab.protocol_attacks.sample import Sample, Trial, draw_labels
from holdfast.planning.requests import AmplifiedEstimates, Estimates, Request, SimpleEstimates
from holdfast.protocols.budget import Budget
from holdfast.protocols.searches import Amplified, Estimate, Simple

__all__ = ["AmplifiedAttack", "EstimateAttack", "SearchAttack", "SimpleAttack"]


@dataclass(frozen=True)
class SearchAttack(JointAttack):
    """Collect labels by searches, then ask about the known ones until the budget is exhausted."""

    protocol: ClassVar[type[Estimate]]

    queries: int
    points: int  # of the grid of a step
    size: int  # how many labels there are
    tail: float
    steps: int  # questions before the end
    subblocks: int = 1

    @property
    def requests(self) -> tuple[Request, ...]:
        return (Estimates(self.queries, self.points, self.tail, self.tail),)

    @property
    def needed(self) -> int:
        """How many labels a majority has; of an odd number of sub-blocks, half and one more."""
        blocks = self.plan.blocks
        return (blocks - (blocks - 1) // 2) * (self.subblocks // 2 + 1)

    @property
    def story(self) -> str:
        medians = "" if self.subblocks == 1 else f", each the median of {self.subblocks} sub-blocks"
        return (
            f"The collector: about {self.needed} searches on up to {self.size:,} points learn a "
            "label each. Then it asks whether a label is known, again and again until the budget "
            f"is exhausted: an event of mass at most {self.tail:g}, and yes breaks the promise. "
            f"Naive gives the exact median of the same blocks{medians}."
        )

    def run(self, side: Side, trial: Trial) -> Run:
        sample = Sample(draw_labels(self.plan.blocks * self.subblocks, self.size, trial.blocks))
        notes = Notes()
        if side == "naive":
            self._collect(lambda question: self._exact(sample, question), notes)
            return notes.run()
        budget = Budget(self.plan)
        protocol = self.protocol(budget, sample, trial.coins)

        def ask(question: Question) -> int:
            return int(protocol.ask(question, question.grid).value)

        last = self._collect(ask, notes)
        ends = notes.until_exhausted(lambda: outside(last.tails(ask(last)), self.tail))
        return notes.run(polite=ends and refused(budget, lambda: ask(last)))

    def _collect(self, ask: Callable[[Question], int], notes: Notes) -> Question:
        """Collect; with enough labels ask about them, and if that fails collect more."""
        collector = Collector(self.size, self.points, self.tail, passed=self.subblocks > 1)
        goal = self.needed
        while notes.answered < self.steps and not notes.broken:
            ready = collector.done or collector.learnt >= goal
            question: Question = collector.event if ready else collector.question
            try:
                answer = ask(question)
            except Exhausted:
                break
            notes.add(outside(question.tails(answer), self.tail))
            if ready:
                collector.again()
                goal += self.needed
            else:
                collector.learn(answer)
        return collector.event

    def _exact(self, sample: Sample, question: Question) -> int:
        """The lower median of the blocks, each the median of its sub-blocks."""
        values = question(sample.data)
        if self.subblocks > 1:
            half = self.subblocks // 2
            groups = values.reshape(-1, self.subblocks)
            values = np.partition(groups, half, axis=1)[:, half]
        middle = (values.size - 1) // 2
        return int(np.partition(values, middle)[middle])


@dataclass(frozen=True)
class EstimateAttack(SearchAttack):
    """The collector against estimates."""

    name: ClassVar[str] = "estimate"
    promise: ClassVar[str] = "both tails of every answer are above 0.05"
    protocol: ClassVar[type[Estimate]] = Estimate

    queries: int = 100
    points: int = 2**6
    size: int = 2**11
    tail: float = 0.05
    steps: int = 100

    @property
    def requests(self) -> tuple[Request, ...]:
        return (Estimates(self.queries, 2, self.tail, self.tail),)  # questions of one look


@dataclass(frozen=True)
class SimpleAttack(SearchAttack):
    """The collector against interior points."""

    name: ClassVar[str] = "simple"
    promise: ClassVar[str] = "both tails of every answer are above 10⁻⁶"
    protocol: ClassVar[type[Estimate]] = Simple

    queries: int = 10
    points: int = 2**22
    size: int = 2**24
    tail: float = 1e-6
    steps: int = 11

    @property
    def requests(self) -> tuple[Request, ...]:
        return (SimpleEstimates(self.queries, self.points, self.tail),)


@dataclass(frozen=True)
class AmplifiedAttack(SearchAttack):
    """The collector against medians of sub-blocks."""

    name: ClassVar[str] = "amplified"
    promise: ClassVar[str] = "both tails of every answer on a sub-block are above 0.05"
    protocol: ClassVar[type[Estimate]] = Amplified

    queries: int = 100
    points: int = 2**6
    size: int = 2**11
    tail: float = 0.05
    steps: int = 100
    subblocks: int = 3

    @property
    def requests(self) -> tuple[Request, ...]:
        return (AmplifiedEstimates(self.queries, 2, self.tail, self.subblocks),)

    @property
    def blocks(self) -> int:
        return self.plan.blocks * self.subblocks
