"""The collector against exact answers that are thrown away in time: rounds, and fresh splitting.

Labels are whole numbers below 2³²: no grid limits what an exact answer tells.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted
from holdfast.lab.protocol_attacks.base import Attack, Notes, Run, Side, outside, refused
from holdfast.lab.protocol_attacks.collector import Collector, Question
from holdfast.lab.protocol_attacks.plans import Wanted, kept_plan
from holdfast.lab.protocol_attacks.sample import Sample, Trial, draw_labels
from holdfast.planning.requests import Guesses
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.splits import SplitPlan, split_plan
from holdfast.protocols.guesses import Verify
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.split import Split

__all__ = ["RoundsAttack", "SplitAttack", "WorstCase"]

_SIZE = 2**32


@dataclass(frozen=True)
class WorstCase:
    """The law on which an exact rank fails most often: masses tail, 1 − 2·tail, tail."""

    tail: float

    def __call__(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        edge = int(self.tail * _SIZE)
        return (labels >= edge).astype(np.int64) + (labels >= _SIZE - edge)

    def tails(self, answer: int) -> tuple[float, float]:
        """D[φ ≤ answer] and D[φ ≥ answer]."""
        below = (0.0, self.tail, 1 - self.tail, 1.0)
        return below[answer + 1], below[3 - answer]


@dataclass(frozen=True)
class RoundsAttack(Attack):
    """Overuse one estimation set after another."""

    name: ClassVar[str] = "rounds"
    promise: ClassVar[str] = "both tails of every answer are above 0.01"

    queries: int = 24
    rounds: int = 2
    tail_low: float = 0.01
    tail_high: float = 0.1
    verification: float = 0.955  # the confidence of verdicts alone; nearly all of β
    confidence: float = 0.95

    @property
    def _guesses(self) -> Guesses:
        return Guesses(self.queries, self.rounds, self.tail_low, self.tail_high)

    @property
    def kept(self) -> tuple[Wanted, ...]:
        return (((self._guesses,), self.verification),)

    @cached_property
    def plan(self) -> RoundsPlan:
        """One verification set and a stack of estimation sets, each as small as can be proved."""
        verdicts = kept_plan(self._guesses, confidence=self.verification)
        made = (RoundsPlan(verdicts, self.rounds, size, self.confidence) for size in count(1, 2))
        return next(plan for plan in made if plan.verify())

    @property
    def questions(self) -> int:
        return self.queries

    @property
    def blocks(self) -> int:
        return self.plan.blocks

    @property
    def failure(self) -> float:
        return float(1 - Fraction(repr(self.confidence)))

    @property
    def story(self) -> str:
        return (
            "Answers come exactly from an estimation set, "
            f"{self.plan.set_blocks} blocks, so that the collector knows half of its labels after "
            f"{self.plan.set_blocks // 2 + 1} questions. It then asks whether a label is known; "
            "verification notices, the set is thrown away, the next set answers, and the "
            f"collector starts again, until {self.rounds} sets are used up. Naive uses one "
            "estimation set without verification."
        )

    def run(self, side: Side, trial: Trial) -> Run:
        plan, notes = self.plan, Notes()
        whole = Sample(draw_labels(self.blocks, _SIZE, trial.blocks))
        if side == "naive":
            first, middle = plan.verification.blocks, (plan.set_blocks - 1) // 2
            one = whole.part(first, first + plan.set_blocks).data
            self._collect(lambda question: int(np.partition(question(one), middle)[middle]), notes)
            return notes.run()
        rounds = EffectiveRounds.of(plan, whole, trial.coins)
        with suppress(Exhausted):
            while True:
                self._collect(
                    lambda question: int(rounds.ask(question).value),
                    notes,
                    sets=lambda: rounds.rounds_left,
                )
        again = partial(rounds.ask, WorstCase(self.tail_low))
        assert isinstance(rounds.verify, Verify)  # the plan has looks
        return notes.run(polite=refused(rounds.verify.budget, again))

    def _collect(
        self,
        ask: Callable[[Question], int],
        notes: Notes,
        sets: Callable[[], int] = lambda: 1,
    ) -> None:
        """Collect half of a set's labels and ask about them, until the set is thrown away."""
        collector, full, left = Collector(_SIZE, _SIZE + 1, self.tail_low), False, sets()
        while not full and sets() == left:
            full = collector.learnt > self.plan.set_blocks // 2 or collector.done
            question: Question = collector.event if full else collector.question
            answer = ask(question)
            notes.add(outside(question.tails(answer), self.tail_low))
            if not full:
                collector.learn(answer)


@dataclass(frozen=True)
class SplitAttack(Attack):
    """Collect labels that are never used again, then ask the law on which ranks fail most."""

    name: ClassVar[str] = "split"
    promise: ClassVar[str] = "both tails of every answer are above 0.05"

    queries: int = 24
    tail: float = 0.05
    confidence: float = 0.95

    @cached_property
    def plan(self) -> SplitPlan:
        """Fresh blocks for every question."""
        return split_plan(self.queries, self.tail, self.tail, self.confidence)

    @property
    def questions(self) -> int:
        return self.queries

    @property
    def blocks(self) -> int:
        return self.plan.blocks

    @property
    def failure(self) -> float:
        return self.plan.failure

    @property
    def story(self) -> str:
        each = self.plan.blocks_per_question
        return (
            f"Every question has {each} blocks of its own, and nothing that was learnt of others "
            "helps. So the collector collects in vain; the rest of the questions have the law "
            "with three values on which an exact rank fails most often, of masses "
            f"{self.tail:g}, {1 - 2 * self.tail:g} and {self.tail:g}. Naive answers all questions "
            f"from the same {each} blocks."
        )

    def run(self, side: Side, trial: Trial) -> Run:
        sample = Sample(draw_labels(self.blocks, _SIZE, trial.blocks))
        each, rank, notes = self.plan.blocks_per_question, self.plan.rank, Notes()
        split, reused = Split(self.plan, sample), sample.part(0, each).data

        def ask(question: Question | WorstCase) -> int:
            if side == "naive":
                answer = int(np.partition(question(reused), rank - 1)[rank - 1])
            else:
                answer = int(split.ask(question).value)
            notes.add(outside(question.tails(answer), self.tail))
            return answer

        collector = Collector(_SIZE, _SIZE + 1, self.tail)
        for _ in range(min(each // 2 + 1, self.queries - 1)):
            collector.learn(ask(collector.question))
        ask(collector.event)
        while notes.answered < self.queries:
            ask(WorstCase(self.tail))
        if side == "naive":
            return notes.run()
        with suppress(Exhausted):
            ask(WorstCase(self.tail))
        return notes.run(polite=notes.answered == self.queries and split.questions_left == 0)
