"""The collector against searches: estimate, simple, amplified."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.requests import (
    AmplifiedEstimates,
    Estimates,
    Guesses,
    Request,
    SimpleEstimates,
    WeightedEstimates,
)
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.splits import SplitPlan, split_plan
from holdfast.protocols.budget import Budget
from holdfast.protocols.guesses import Correct, Corrected, Verify
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.searches import Amplified, Estimate, Simple
from holdfast.protocols.split import Split
from holdfast.protocols.weights import Weights
from holdfast_lab.protocol_attacks.base import (
    Attack,
    JointAttack,
    Notes,
    Run,
    Sample,
    Side,
    Trial,
    Wanted,
    critical_count,
    draw_labels,
    kept_plan,
    outside,
    refused,
)
from holdfast_lab.protocol_attacks.learners import Collector, Question

__all__ = [
    "AmplifiedAttack",
    "CorrectAttack",
    "EstimateAttack",
    "RoundsAttack",
    "SearchAttack",
    "SimpleAttack",
    "SplitAttack",
    "WeightsAttack",
    "WorstCase",
]


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


# The collector against guesses that are confirmed or corrected.


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


# The collector against multiplicative weights.


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


# The collector against exact answers that are thrown away in time: rounds, and fresh splitting.
#
# Labels are whole numbers below 2³²: no grid limits what an exact answer tells.


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
