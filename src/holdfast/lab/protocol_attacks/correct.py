"""The collector against guesses that are confirmed or corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from holdfast.lab.protocol_attacks.base import (
    JointAttack,
    Notes,
    Run,
    Side,
    critical_count,
    outside,
)
from holdfast.lab.protocol_attacks.collector import Collector, Question
from holdfast.lab.protocol_attacks.sample import Sample, Trial, draw_labels
from holdfast.planning.requests import Estimates, Guesses, Request
from holdfast.protocols.budget import Budget
from holdfast.protocols.guesses import Correct, Corrected, Verify
from holdfast.protocols.searches import Estimate

__all__ = ["CorrectAttack"]


@dataclass(frozen=True)
class CorrectAttack(JointAttack):
    """Absurd guesses, to be corrected; then a guess that only these blocks confirm."""

    name: ClassVar[str] = "correct"
    promise: ClassVar[str] = "both tails of every confirmed or corrected value are above 0.01"

    queries: int = 60
    refusals: int = 8
    tail_low: float = 0.01
    tail_high: float = 0.4
    points: int = 2**5
    size: int = 2**12
    steps: int = 40
    spare: int = 2  # refusals kept for the end

    @property
    def requests(self) -> tuple[Request, ...]:
        return (
            Guesses(self.queries, self.refusals, self.tail_low, self.tail_high),
            Estimates(self.refusals, self.points, self.tail_low, self.tail_low),
        )

    @property
    def story(self) -> str:
        return (
            "The collector guesses what nobody could believe, and every correction tells it a "
            f"label (of {self.size:,}). Naive corrects without end; Holdfast has "
            f"{self.refusals} refusals, of which {self.spare} are kept for the end. Then the "
            'collector guesses yes to "is the label known?": an event of mass at most '
            f"{self.tail_low:g} that must not be confirmed. Naive confirms if both exact counts "
            f"reach the binomial's critical value for {self.queries} guesses fixed in advance, "
            "and else gives the exact median."
        )

    def run(self, side: Side, trial: Trial) -> Run:
        sample = Sample(draw_labels(self.blocks, self.size, trial.blocks))
        return self._naive(sample) if side == "naive" else self._planned(sample, trial)

    def _collector(self) -> Collector:
        return Collector(self.size, self.points, self.tail_low)

    def _naive(self, sample: Sample) -> Run:
        needed = critical_count(self.blocks, self.tail_low, self.failure / (2 * self.queries))
        collector, middle, asked = self._collector(), (self.blocks - 1) // 2, 1
        while asked < self.steps and not collector.done and collector.learnt <= needed:
            values = collector.question(sample.data)  # the guess is above all of them: refused
            collector.learn(int(np.partition(values, middle)[middle]))
            asked += 1
        confirmed = np.count_nonzero(collector.event(sample.data)) >= needed
        return Run(bool(confirmed), asked)

    def _planned(self, sample: Sample, trial: Trial) -> Run:
        budget, coins, notes = Budget(self.plan), trial.coins, Notes()
        correct = Correct(Verify(budget, sample, coins), Estimate(budget, sample, coins))
        collector = self._collector()

        def ask(question: Question, guess: int) -> Corrected:
            told = correct.ask(question, guess, question.grid)
            if told.value is not None:
                notes.add(outside(_tails(question, int(told.value)), self.tail_low))
            return told

        while correct.verify.refusals_left > self.spare and not collector.done:
            question = collector.question
            told = ask(question, question.grid.size)
            if told.correction is not None:
                collector.learn(int(told.correction.value))
        event = collector.event
        for _ in range(self.queries):
            if ask(event, 1).verdict.verdict == "exhausted":
                break
        before = budget.spent, budget.buys()
        last = ask(event, 1)
        polite = last.verdict.verdict == "exhausted" and last.value is None and last.price == 0
        return notes.run(polite=polite and (budget.spent, budget.buys()) == before)


def _tails(question: Question, value: int) -> tuple[float, float]:
    """The tails of a value, which may be a guess above all possible ones."""
    return (1.0, 0.0) if value >= question.grid.size else question.tails(value)
