"""Attacks on every protocol: an adaptive analyst tries to break each promise, in many runs.

Responders hold the same blocks. *Holdfast* is the protocol itself, on its own budget. *Naive*
answers exactly and has no budget: its answers would keep the promise for questions fixed in
advance, and it goes on answering whatever is asked. Holdfast with looks that never err
(`Trial.unerring`) is a third, which shows what the coins are good for.

An attack is an analyst for one protocol: what is planned, the blocks, both responders, and one
conversation. All laws are known exactly (`learners`). The collector attacks searches, corrections,
weights and what uses blocks up; the aggregator means, intervals, verdicts and a mixture of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import count, cycle
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid, grid
from holdfast.randomness import Entropy, SeededEntropy, system_entropy, uniform_index
from holdfast.theory.numerics import binomial_tail, smallest_whole
from holdfast_lab.attacks.conversation import (
    Conversation,
    FloatArray,
    Means,
    Medians,
    Question,
    Replies,
    Responder,
    Verdicts,
    listen,
)
from holdfast_lab.attacks.conversation import Intervals as IntervalQuestion
from holdfast_lab.attacks.learners import (
    LEVELS,
    Aggregator,
    Collector,
    Feature,
    LabelQuestion,
    Overfit,
    cut_at,
    draw_labels,
    draw_levels,
    lean,
)
from holdfast_lab.attacks.targets import (
    AmplifiedEstimates,
    BlockResponder,
    DirectMeans,
    Estimates,
    Guesses,
    HoldfastCorrect,
    HoldfastEstimate,
    HoldfastInterval,
    HoldfastMean,
    HoldfastMedianMean,
    HoldfastRounds,
    HoldfastVerify,
    HoldfastWeights,
    Intervals,
    JointPlan,
    Labelled,
    MedianMeans,
    MemoryHoldout,
    Request,
    RoundsPlan,
    Rows,
    SimpleEstimates,
    SplitPlan,
    Told,
    Wanted,
    WeightedEstimates,
    kept_plan,
    split_plan,
)
from holdfast_lab.attacks.textbook import binomial_limits

Side = Literal["naive", "holdfast"]

MOST = 10_000  # questions: a budget that is not exhausted by then never is


@final
class Unerring(Entropy):
    """No entropy at all: the highest word, again and again, with which no look ever errs.

    >>> from holdfast.mechanisms.looks import look
    >>> from holdfast.theory.coins import logistic_coin
    >>> look(np.arange(-2, 3), logistic_coin(slope=0.1, floor=1e-3), Unerring())
    array([False, False, False,  True,  True])
    """

    __slots__ = ()

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, 2**64 - 1, np.uint64)


@dataclass(frozen=True)
class Trial:
    """One run: where its blocks, the coins and the analyst's own choices come from.

    The blocks are the same for all responders, whatever any of them draws.
    """

    seed: int | None
    number: int
    unerring: bool = False

    @property
    def blocks(self) -> Entropy:
        """For the blocks."""
        return self._stream(0)

    @property
    def coins(self) -> Entropy:
        """For the looks."""
        return Unerring() if self.unerring else self._stream(1)

    @property
    def choices(self) -> Entropy:
        """For the analyst."""
        return self._stream(2)

    def _stream(self, part: int) -> Entropy:
        if self.seed is None:
            return system_entropy()
        return SeededEntropy((self.seed, self.number, part))


@dataclass(frozen=True)
class Run:
    """What came of one attack.

    `polite` says that the budget was exhausted in the end, and that nothing was answered, drawn or
    charged after that; it is true of a responder that has no budget.
    """

    broken: bool
    answered: int
    polite: bool = True


@dataclass(frozen=True)
class Attack(ABC):
    """One attack on one protocol: an analyst, and both responders on the same blocks."""

    name: ClassVar[str]
    promise: ClassVar[str]
    told: ClassVar[str]  # the story; {0} is the attack
    target: ClassVar[Any]  # the responder that it attacks

    queries: int
    confidence: float = field(default=0.95, kw_only=True)
    units: int = field(default=1, kw_only=True)  # of a block

    @property
    def requests(self) -> tuple[Request, ...]:
        """What is planned for."""
        return ()

    @property
    def kept(self) -> tuple[Wanted, ...]:
        """The joint plans that it needs, as requests and confidence."""
        return ((self.requests, self.confidence),)

    @cached_property
    def plan(self) -> Any:
        """The plan that covers it."""
        return kept_plan(*self.requests, confidence=self.confidence)

    @property
    def questions(self) -> int:
        """k: how many questions the plan covers."""
        return self.queries

    @property
    def blocks(self) -> int:
        """How many blocks it asks for."""
        return int(self.plan.blocks)

    @property
    def failure(self) -> float:
        """β."""
        return float(1 - Fraction(repr(self.confidence)))

    @property
    def story(self) -> str:
        """The attack in a paragraph."""
        return self.told.format(self)

    @abstractmethod
    def draw(self, entropy: Entropy) -> NDArray[Any]:
        """The blocks."""

    @abstractmethod
    def naive(self) -> Responder:
        """The textbook, which would be right for questions fixed in advance."""

    def planned(self, rows: NDArray[Any], coins: Entropy) -> Responder:
        """The protocol on its plan."""
        holdout = MemoryHoldout(self.plan, Rows(rows.shape[-1] // self.units, self.units), coins)
        made: Responder = self.target.on(holdout)
        return made

    @abstractmethod
    def converse(self, responder: Any, trial: Trial) -> Conversation:
        """The analyst, who hears nothing of a responder but what its answers say."""

    def drained(self, trial: Trial) -> bool:
        """Whether the analyst goes on until nothing is left."""
        return True

    def run(self, side: Side, trial: Trial) -> Run:
        """One run against one responder."""
        rows = self.draw(trial.blocks)
        responder = self.naive() if side == "naive" else self.planned(rows, trial.coins)
        session = listen(self.converse(responder, trial), rows, responder)
        broken = session.wrong_claims > 0
        if side == "naive" or not self.drained(trial):
            return Run(broken, session.answered)
        before = responder.spent()
        again = [session.last.put(rows, responder).refused for _ in range(2)]
        polite = np.isnan(session.values[-1]) and all(again) and responder.spent() == before
        return Run(broken, session.answered, bool(polite))


def until_refused(questions: Iterator[Question]) -> Conversation:
    """One after the other, until nothing is answered any more."""
    for _ in range(MOST):
        replies = yield next(questions)
        if replies.refused:
            return


def critical_count(trials: int, mass: float, failure: float) -> int:
    """The smallest count that an event of this mass reaches with at most this probability.

    What a textbook compares a count with, for a question fixed in advance.

    >>> critical_count(1000, 0.1, 0.0005)
    133
    """
    return smallest_whole(lambda c: binomial_tail(trials, mass, c) <= failure, trials + 1)


def textbook_rank(blocks: int, failure: float) -> int:
    """The largest rank c such that [x₍c₎, x₍m+1−c₎] misses the median with at most `failure`.

    The confidence interval of the sign test, for a question fixed in advance.

    >>> textbook_rank(100, 0.05)
    40
    """
    return blocks + 1 - critical_count(blocks, 0.5, failure / 2)


@dataclass(frozen=True)
class Textbook(Responder):
    """Exact answers from some of the blocks, each right for a question fixed in advance.

    A median is the value of an index among the blocks in order, each the median of its sub-blocks;
    a guess of it is refused in favour of that, or confirmed by `needed` blocks on either side. Both
    claim tails above `tail`, and so does an event that `needed` blocks have. An interval
    lies between two ranks. Means have the exact binomial bar, if the analyst says what it expects.
    """

    name: ClassVar[str] = "textbook"

    part: tuple[int, int | None] = (0, None)  # of the blocks
    index: int = 0
    subblocks: int = 1
    needed: int = 0
    tail: float = 0.0
    rank: int = 0
    failure: float = 0.05

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        lines = values[:, slice(*self.part)]
        if self.subblocks > 1:
            half = self.subblocks // 2
            groups = lines.reshape(len(lines), -1, self.subblocks)
            lines = np.partition(groups, half, axis=2)[:, :, half]
        answers = np.partition(lines, self.index, axis=1)[:, self.index].astype(np.float64)
        return self._claimed(answers)

    def guessed(self, values: NDArray[Any], points: int, guess: float) -> Replies:
        """Medians of which this is guessed: at most the guess, and at least, in enough blocks."""
        sides = (values <= guess).sum(axis=1), (values >= guess).sum(axis=1)
        confirmed = np.minimum(*sides) >= self.needed
        return self._claimed(np.where(confirmed, guess, self.medians(values, points).values))

    def _claimed(self, answers: FloatArray) -> Replies:
        low = np.full(len(answers), math.nextafter(self.tail, 1.0))
        return Replies(answers, low, 1 - low)

    def verdicts(self, values: NDArray[Any]) -> Replies:
        common = np.count_nonzero(values, axis=1) >= self.needed
        low = np.where(common, math.nextafter(self.tail, 1.0), -np.inf)
        return Replies(common.astype(np.float64), low, np.full(len(values), np.inf))

    def intervals(self, values: NDArray[Any], points: int) -> Replies:
        ordered = np.sort(values, axis=1).astype(np.float64)
        return Replies(ordered[:, 0], ordered[:, self.rank - 1], ordered[:, -self.rank])

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        means = values.mean(axis=1, dtype=np.float64)
        if guesses is None:
            return Replies.unclaimed(means)
        sums = values.sum(axis=1, dtype=np.int64)
        return Replies(means, *binomial_limits(sums, values.shape[1], self.failure))


@dataclass(frozen=True)
class CollectorAttack(Attack):
    """Learns labels of the blocks, one a question."""

    tail: float
    size: int = 2**32  # how many labels there are: no grid limits what an exact answer tells

    def draw(self, entropy: Entropy) -> NDArray[Any]:
        return draw_labels(self.blocks, self.size, entropy)


# The collector against searches: estimate, simple, amplified.


@dataclass(frozen=True)
class SearchAttack(CollectorAttack):
    """Collect labels by searches, then ask about the known ones until the budget is exhausted."""

    target: ClassVar[Any] = HoldfastEstimate

    queries: int = 100
    tail: float = 0.05
    size: int = 2**11
    points: int = 2**6  # of the grid of a step
    steps: int = 100  # questions before the end
    subblocks: int = 1

    @property
    def blocks(self) -> int:
        return int(self.plan.blocks * self.subblocks)

    @property
    def needed(self) -> int:
        """How many labels a majority has; of an odd number of sub-blocks, half and one more."""
        blocks = int(self.plan.blocks)
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

    def naive(self) -> Responder:
        index = (self.plan.blocks - 1) // 2
        return Textbook(tail=self.tail, index=index, subblocks=self.subblocks)

    def converse(self, responder: Any, trial: Trial) -> Conversation:
        """Collect; with enough labels ask about them, and if that fails collect more."""
        collector = Collector(self.size, self.points, self.tail, passed=self.subblocks > 1)
        goal = self.needed
        for _ in range(self.steps):
            ready = collector.done or collector.learnt >= goal
            question: LabelQuestion = collector.event if ready else collector.question
            replies = yield question
            if replies.refused or outside(question, replies, self.tail):
                break
            if ready:
                collector.again()
                goal += self.needed
            else:
                collector.learn(int(replies.values[0]))
        if not isinstance(responder, Textbook):
            yield from until_refused(cycle([collector.event]))


def outside(question: LabelQuestion, replies: Replies, tail: float) -> bool:
    """Whether an answer v breaks D[φ ≤ v] > tail and D[φ ≥ v] > tail."""
    return min(question.tails(int(replies.values[0]))) <= tail


@dataclass(frozen=True)
class EstimateAttack(SearchAttack):
    """The collector against estimates."""

    name: ClassVar[str] = "estimate"
    promise: ClassVar[str] = "both tails of every answer are above 0.05"

    @property
    def requests(self) -> tuple[Request, ...]:
        return (Estimates(self.queries, 2, self.tail, self.tail),)  # questions of one look


@dataclass(frozen=True)
class SimpleAttack(SearchAttack):
    """The collector against interior points."""

    name: ClassVar[str] = "simple"
    promise: ClassVar[str] = "both tails of every answer are above 10⁻⁶"

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

    subblocks: int = 3

    @property
    def requests(self) -> tuple[Request, ...]:
        return (AmplifiedEstimates(self.queries, 2, self.tail, self.subblocks),)


# The collector against guesses that are confirmed or corrected.


@dataclass(frozen=True, eq=False)
class Guessed(LabelQuestion):
    """A question about a label, and what is guessed of its median: perhaps what nobody believes."""

    question: LabelQuestion
    guess: int

    @property
    def points(self) -> int:  # type: ignore[override]
        return self.question.points

    def __call__(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.question(labels)

    def put(self, rows: Any, responder: Any) -> Replies:
        replies: Replies = responder.guessed(self(rows)[np.newaxis], self.points, self.guess)
        return replies

    def tails(self, answer: int) -> tuple[float, float]:
        return (1.0, 0.0) if answer >= self.points else self.question.tails(answer)


@dataclass(frozen=True)
class CorrectAttack(CollectorAttack):
    """Absurd guesses, to be corrected; then a guess that only these blocks confirm."""

    name: ClassVar[str] = "correct"
    promise: ClassVar[str] = "both tails of every confirmed or corrected value are above 0.01"
    target: ClassVar[Any] = HoldfastCorrect
    told: ClassVar[str] = (
        "The collector guesses what nobody could believe, and every correction tells it a "
        "label (of {0.size:,}). Naive corrects without end; Holdfast has "
        "{0.refusals} refusals, of which {0.spare} are kept for the end. Then the "
        'collector guesses yes to "is the label known?": an event of mass at most '
        "{0.tail:g} that must not be confirmed. Naive confirms if both exact counts "
        "reach the binomial's critical value for {0.queries} guesses fixed in advance, "
        "and else gives the exact median."
    )

    queries: int = 60
    tail: float = 0.01
    size: int = 2**12
    refusals: int = 8
    tail_high: float = 0.4
    points: int = 2**5
    steps: int = 40
    spare: int = 2  # refusals kept for the end

    @property
    def requests(self) -> tuple[Request, ...]:
        return (
            Guesses(self.queries, self.refusals, self.tail, self.tail_high),
            Estimates(self.refusals, self.points, self.tail, self.tail),
        )

    def naive(self) -> Textbook:
        needed = critical_count(self.blocks, self.tail, self.failure / (2 * self.queries))
        return Textbook(tail=self.tail, index=(self.blocks - 1) // 2, needed=needed)

    def converse(self, responder: Any, trial: Trial) -> Conversation:
        collector, asked = Collector(self.size, self.points, self.tail), 1
        exact = isinstance(responder, Textbook)

        def more() -> bool:
            if exact:
                return asked < self.steps and collector.learnt <= responder.needed
            return bool(responder.refusals_left > self.spare)

        while more() and not collector.done:
            question = collector.question
            replies = yield Guessed(question, question.points)
            if not np.isnan(replies.values[0]) and replies.values[0] < question.points:
                collector.learn(int(replies.values[0]))
            asked += 1
        last = Guessed(collector.event, 1)
        if exact:
            yield last
        else:
            yield from until_refused(cycle([last]))


# The collector against multiplicative weights.


@dataclass(frozen=True)
class WeightsAttack(CollectorAttack):
    """Collect labels from a hypothesis that believes in more labels than there are."""

    name: ClassVar[str] = "weights"
    promise: ClassVar[str] = "both tails of every answer are above 0.06"

    queries: int = 12
    tail: float = 0.06
    size: int = 2**13
    universe: int = 12_288
    points: int = 2**7
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

    def draw(self, entropy: Entropy) -> NDArray[Any]:
        """The elements of the universe, and then the blocks."""
        return Labelled(draw_labels(self.blocks, self.size, entropy), self.universe).holdout

    def naive(self) -> Responder:
        part, index = (self.universe, None), (self.blocks - 1) // 2
        return Textbook(tail=self.tail, part=part, index=index)

    def planned(self, rows: NDArray[Any], coins: Entropy) -> Responder:
        world = Labelled(rows[self.universe :], self.universe)
        return HoldfastWeights.on(HoldfastWeights.placed(self.plan, world, coins))

    def drained(self, trial: Trial) -> bool:
        return not trial.number  # a Yes is cheap: it takes hundreds of them to exhaust the budget

    def converse(self, responder: Any, trial: Trial) -> Conversation:
        exact = isinstance(responder, Textbook)
        collector, asked = Collector(self.size, self.points, self.tail), 0
        while asked < (self.steps if exact else self.queries - 3) and not collector.done:
            replies = yield collector.question
            collector.learn(int(replies.values[0]))
            asked += 1
        for _ in range(1 if exact else self.queries - asked):
            yield collector.event
        if not exact and self.drained(trial):
            yield from until_refused(cycle([collector.event]))


# The collector against exact answers that are thrown away in time: rounds, and fresh splitting.


@dataclass(frozen=True)
class WorstCase(LabelQuestion):
    """The law on which an exact rank fails most often: masses tail, 1 − 2·tail, tail."""

    points = 3
    tail: float
    size: int = 2**32

    def __call__(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        edge = int(self.tail * self.size)
        return (labels >= edge).astype(np.int64) + (labels >= self.size - edge)

    def tails(self, answer: int) -> tuple[float, float]:
        below = (0.0, self.tail, 1 - self.tail, 1.0)
        return below[answer + 1], below[3 - answer]


@dataclass(frozen=True)
class RoundsAttack(CollectorAttack):
    """Overuse one estimation set after another."""

    name: ClassVar[str] = "rounds"
    promise: ClassVar[str] = "both tails of every answer are above 0.01"
    target: ClassVar[Any] = HoldfastRounds

    queries: int = 24
    tail: float = 0.01
    rounds: int = 2
    tail_high: float = 0.1
    verification: float = 0.955  # the confidence of verdicts alone; nearly all of β

    @property
    def requests(self) -> tuple[Request, ...]:
        return (Guesses(self.queries, self.rounds, self.tail, self.tail_high),)

    @property
    def kept(self) -> tuple[Wanted, ...]:
        return ((self.requests, self.verification),)

    @cached_property
    def plan(self) -> RoundsPlan:
        """One verification set and a stack of estimation sets, each as small as can be proved."""
        verdicts = kept_plan(*self.requests, confidence=self.verification)
        made = (RoundsPlan(verdicts, self.rounds, size, self.confidence) for size in count(1, 2))
        return next(plan for plan in made if plan.verify())

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

    def naive(self) -> Responder:
        first, blocks = self.plan.verification.blocks, self.plan.set_blocks
        part = (first, first + blocks)
        return Textbook(tail=self.tail, part=part, index=(blocks - 1) // 2)

    def converse(self, responder: Any, trial: Trial) -> Conversation:
        """Collect half of a set's labels and ask about them, until the set is thrown away."""
        exact = isinstance(responder, Textbook)
        while True:
            collector, full = Collector(self.size, self.size + 1, self.tail), False
            left = 1 if exact else responder.rounds_left
            while not full and (exact or responder.rounds_left == left):
                full = collector.learnt > self.plan.set_blocks // 2 or collector.done
                replies = yield collector.event if full else collector.question
                if replies.refused:
                    yield WorstCase(self.tail)
                    return
                if not full:
                    collector.learn(int(replies.values[0]))
            if exact:
                return


@dataclass(frozen=True)
class SplitAttack(CollectorAttack):
    """Collect labels that are never used again, then ask the law on which ranks fail most."""

    name: ClassVar[str] = "split"
    promise: ClassVar[str] = "both tails of every answer are above 0.05"
    target: ClassVar[Any] = HoldfastEstimate

    queries: int = 24
    tail: float = 0.05

    @property
    def kept(self) -> tuple[Wanted, ...]:
        return ()

    @cached_property
    def plan(self) -> SplitPlan:
        """Fresh blocks for every question."""
        return split_plan(self.queries, self.tail, self.tail, self.confidence)

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

    def naive(self) -> Responder:
        part = (0, self.plan.blocks_per_question)
        return Textbook(tail=self.tail, part=part, index=self.plan.rank - 1)

    def converse(self, responder: Any, trial: Trial) -> Conversation:
        collector = Collector(self.size, self.size + 1, self.tail)
        learning = min(self.plan.blocks_per_question // 2 + 1, self.queries - 1)
        for _ in range(learning):
            replies = yield collector.question
            collector.learn(int(replies.values[0]))
        yield collector.event
        for _ in range(self.queries - learning - 1):
            yield WorstCase(self.tail)
        if not isinstance(responder, Textbook):
            yield WorstCase(self.tail)  # one more than planned


# The aggregator: is the count of a feature's event above the target? Then an event of high scores.


@dataclass(frozen=True)
class AggregatorAttack(Attack):
    """Asks about features, each in one row of the levels; the row after them splits ties."""

    features: int

    def draw(self, entropy: Entropy) -> NDArray[Any]:
        return draw_levels(self.features + 1, self.blocks * self.units, entropy)


def _line(event: Callable[[NDArray[Any]], NDArray[Any]]) -> Callable[[Any], NDArray[Any]]:
    return lambda levels: event(levels)[np.newaxis]


_SIDE = grid(0.5, 1, points=2)  # one look: is the mean above 1/2?
_FINE = grid(0, 1, points=65)
_FINENESS = 3  # parts of a standard deviation in which naive means are weighted


@dataclass(frozen=True, eq=False)
class MeanOn(Means):
    """A mean that is asked for on a grid."""

    grid: Grid | None = None

    def put(self, rows: Any, responder: Any) -> Replies:
        replies: Replies = responder.means_on(self.values(rows), grid=self.grid)
        return replies


@dataclass(frozen=True)
class MeanAttack(AggregatorAttack):
    """Is the mean of this feature above 1/2? Then the mean of the event of high scores."""

    bar: ClassVar[str]

    @property
    def story(self) -> str:
        return (
            f"The aggregator asks of {self.features} fair features of a unit whether their mean is "
            f"above 1/2, then for the mean of an event of high scores, whose true mean is just "
            f"below 1/2, until the budget is exhausted. {self.bar.format(self)} Naive gives the "
            "exact mean of all units, by whose distance from 1/2 the score is weighted, with its "
            f"exact binomial bar for {self.queries} questions fixed in advance."
        )

    def naive(self) -> Responder:
        return Textbook(failure=self.failure / self.queries)

    def question(self, event: Callable[..., Any], mass: float, *, fine: bool = False) -> Question:
        """The cheapest that tells whether the mean is above 1/2, or the finest there is."""
        return Means(_line(event), np.array([mass]))

    def converse(self, responder: Any, trial: Trial) -> Conversation:
        exact, units = isinstance(responder, Textbook), self.blocks * self.units
        aggregator = Aggregator()
        for feature in (Feature(row, LEVELS // 2) for row in range(self.features)):
            if exact:
                replies = yield Means(_line(feature.low), np.array([feature.mass]))
                excess = 2 * round(replies.values[0] * units) - units
                aggregator.learn(feature, round(_FINENESS * excess / math.sqrt(units)))
            else:
                replies = yield self.question(feature.low, feature.mass)
                aggregator.learn(feature, lean(replies.values[0] > 0.5))
        event = aggregator.event(0.5, self.features)
        if exact:
            yield Means(_line(event), np.array([event.mass]), np.array([0.5]))
            return
        for fine in (True, False):
            yield from until_refused(cycle([self.question(event, event.mass, fine=fine)]))


@dataclass(frozen=True)
class MedianMeanAttack(MeanAttack):
    """The aggregator against medians of block means."""

    name: ClassVar[str] = "mean, median of block means"
    target: ClassVar[Any] = HoldfastMedianMean
    promise: ClassVar[str] = "every mean lies in its bar"
    bar: ClassVar[str] = (
        "There are {0.units} units in a block; the median of the blocks' means has tails "
        "above {0.tail:g}, and that bounds the mean by its kl bar."
    )

    queries: int = 38
    features: int = 24
    tail: float = 0.01
    units: int = field(default=25, kw_only=True)

    @property
    def requests(self) -> tuple[Request, ...]:
        return (MedianMeans(self.queries, 2, self.tail),)

    def question(self, event: Callable[..., Any], mass: float, *, fine: bool = False) -> Question:
        return MeanOn(_line(event), np.array([mass]), grid=_FINE if fine else _SIDE)


@dataclass(frozen=True)
class DirectMeanAttack(MeanAttack):
    """The aggregator against direct searches over the sum."""

    name: ClassVar[str] = "mean, direct search"
    target: ClassVar[Any] = HoldfastMean
    promise: ClassVar[str] = "every mean lies in its bar, and no bar is wider than 0.6"
    bar: ClassVar[str] = "Every unit is a block, and bars are at most {0.width:g} wide."

    queries: int = 30
    features: int = 25
    half_width: float = 0.3

    @property
    def width(self) -> float:
        """Of a bar, at most."""
        return 2 * self.half_width

    @property
    def requests(self) -> tuple[Request, ...]:
        return (DirectMeans(self.queries, self.half_width),)


# The aggregator against intervals.


_SIDES = 3  # low, between, high


@dataclass(frozen=True)
class Spread:
    """0 for a block with the low event, 2 for one with the high event, 1 for any other.

    >>> Spread(Feature(row=0, cut=2**14, sides=2))(np.array([[0, 2**15, 2**16 - 1]])).tolist()
    [0, 1, 2]
    """

    feature: Feature

    def __call__(self, levels: NDArray[Any]) -> NDArray[np.int64]:
        low, high = self.feature.low(levels), self.feature.high(levels)
        return 1 - low.astype(np.int64) + high


def _of_feature(feature: Feature) -> IntervalQuestion:
    law = np.array([feature.mass, 1 - feature.mass, 1.0])
    return IntervalQuestion(_line(Spread(feature)), law, 0.0)  # outer masses exceed the tail


def _of_event(event: Overfit, tail: float) -> IntervalQuestion:
    return IntervalQuestion(_line(event), np.array([1 - event.mass, 1.0]), tail)


def _leans(replies: Replies) -> tuple[int, int]:
    """What the ends of an interval tell of both events."""
    return lean(bool(replies.low[0] == 0)), lean(bool(replies.high[0] == _SIDES - 1))


def _target(plan: JointPlan, part: str) -> float:
    """The count at which the answers of a part change."""
    found: Any = plan.part(part)
    return float((found.twice_target - 1) / 2)


@dataclass(frozen=True)
class IntervalAttack(AggregatorAttack):
    """Both ends of every interval say something about one event each."""

    name: ClassVar[str] = "interval"
    target: ClassVar[Any] = HoldfastInterval
    promise: ClassVar[str] = (
        "every interval encloses the median, and its ends have tails above 0.05"
    )
    told: ClassVar[str] = (
        "The aggregator asks for the intervals of {0.features} features with three values, "
        "whose outer masses are where the two searches aim: each end tells whether more or "
        "fewer blocks than expected are out there. Then it asks for the intervals of two "
        "events of high scores until the budget is exhausted, one of mass just below 1/2, "
        "whose median is 0, and one of mass {0.tail:g}, whose upper end must be 0. Naive "
        "is the textbook's interval for a median, between two ranks of the same blocks, for "
        "{0.queries} questions fixed in advance."
    )

    queries: int = 26
    features: int = 23
    tail: float = 0.05

    @property
    def requests(self) -> tuple[Request, ...]:
        return (Intervals(self.queries, _SIDES, self.tail),)

    def naive(self) -> Textbook:
        return Textbook(rank=textbook_rank(self.blocks, self.failure / self.queries))

    def converse(self, responder: Any, trial: Trial) -> Conversation:
        exact, aggregator = isinstance(responder, Textbook), Aggregator()
        rank = responder.rank - 0.5 if exact else _target(self.plan, "interval")
        cut = cut_at(rank / self.blocks)
        for feature in (Feature(row, cut, sides=2) for row in range(self.features)):
            replies = yield _of_feature(feature)
            aggregator.learn(feature, *_leans(replies))
        events = [aggregator.event(mass, self.features) for mass in (0.5, self.tail)]
        if exact:
            yield _of_event(events[0], 0.0)
        else:
            yield from until_refused(cycle([_of_event(event, self.tail) for event in events]))


# The aggregator against guesses: verify, one-sided and two-sided.


def _verdict(event: Callable[..., Any], mass: float) -> Verdicts:
    return Verdicts(_line(event), np.array([mass]))


@dataclass(frozen=True)
class VerifyAttack(AggregatorAttack):
    """Is the event of this feature common enough? Then the same of rare events of high scores."""

    target: ClassVar[Any] = HoldfastVerify

    queries: int = 100
    features: int = 80
    refusals: int = 12
    tail_low: float = 0.25
    tail_high: float = 0.75
    sides: int = 1
    spare: int = 3  # refusals kept for the end

    @property
    def requests(self) -> tuple[Request, ...]:
        tails = self.tail_low, self.tail_high
        return (Guesses(self.queries, self.refusals, *tails, sides=self.sides),)

    @property
    def story(self) -> str:
        form = '"at least 1"' if self.sides == 1 else "1"
        return (
            f"The aggregator guesses {form} for the indicators of {self.features} features, each "
            "of the mass at which verdicts change, as long as there are refusals "
            f"({self.refusals} are planned, {self.spare} are kept for the end). Then it guesses 1 "
            f"for an event of high scores of mass {self.tail_low:g}, which must be refused, and "
            f"for one of low scores of mass {self.tail_high:g}, which must be confirmed, until it "
            "is exhausted. Naive compares the exact count with the binomial's critical value for "
            f"{self.queries} guesses fixed in advance, and refuses as often as need be."
        )

    def naive(self) -> Textbook:
        needed = critical_count(self.blocks, self.tail_low, self.failure / self.queries)
        return Textbook(needed=needed, tail=self.tail_low)

    def converse(self, responder: Any, trial: Trial) -> Conversation:
        exact, aggregator = isinstance(responder, Textbook), Aggregator()
        rank = responder.needed - 0.5 if exact else _target(self.plan, "verify")
        cut = cut_at(rank / self.blocks)
        for feature in (Feature(row, cut) for row in range(self.features)):
            replies = yield _verdict(feature.low, feature.mass)
            aggregator.learn(feature, lean(replies.values[0] > 0))
            if not exact and responder.refusals_left <= self.spare:
                break
        rare = aggregator.event(self.tail_low, self.features)
        if exact:
            yield _verdict(rare, rare.mass)
            return
        common = aggregator.common(self.tail_high, self.features)
        events = (rare, common)
        yield from until_refused(cycle([_verdict(event, event.mass) for event in events]))


@dataclass(frozen=True)
class OneSidedAttack(VerifyAttack):
    """Guesses "at least v"."""

    name: ClassVar[str] = "verify, one-sided"
    promise: ClassVar[str] = "a tail of at most 0.25 is refused, one of at least 0.75 confirmed"


@dataclass(frozen=True)
class TwoSidedAttack(VerifyAttack):
    """Guesses v."""

    name: ClassVar[str] = "verify, two-sided"
    promise: ClassVar[str] = "a tail of at most 0.1 is refused, two of at least 0.4 confirmed"

    features: int = 90
    tail_low: float = 0.1
    tail_high: float = 0.4
    sides: int = 2


# The aggregator against a random mixture of estimates, guesses and intervals on one budget.


_KINDS = ("estimate", "verify", "interval")


class _Mixed(HoldfastInterval, HoldfastVerify):
    """Estimates, verdicts and intervals from the same blocks, all paid from one budget."""

    name = "mixture"

    def tell(self, line: NDArray[Any], guess: float, grid: Grid) -> Told:
        return BlockResponder.tell(self, line, guess, grid)


@dataclass(frozen=True)
class MixtureAttack(AggregatorAttack):
    """Each feature is asked about in a way drawn at random; the events at the end in all ways."""

    target: ClassVar[Any] = _Mixed
    name: ClassVar[str] = "mixture of estimate, verify and interval"
    promise: ClassVar[str] = "all their promises at once, with tails of 0.05, and 0.4 for verify"
    told: ClassVar[str] = (
        "The aggregator asks about {0.features} features, each by an estimate, a guess or "
        "an interval, drawn at random: every protocol answers from the same blocks, and all "
        "answers go into one score. Then it asks about events of high scores of mass "
        "{0.tail:g} and of mass just below 1/2, in all three ways. Naive is exact as in "
        "the rows above, for {0.questions} questions fixed in advance."
    )

    queries: int = 20  # of each protocol
    features: int = 33
    refusals: int = 8
    tail: float = 0.05
    tail_high: float = 0.4
    spare: int = 2  # refusals kept for the end

    @property
    def requests(self) -> tuple[Request, ...]:
        return (
            Estimates(self.queries, 2, self.tail, self.tail),
            Guesses(self.queries, self.refusals, self.tail, self.tail_high),
            Intervals(self.queries, _SIDES, self.tail),
        )

    @property
    def questions(self) -> int:
        return 3 * self.queries

    def naive(self) -> Textbook:
        blocks, share = self.blocks, self.failure / self.questions
        needed, rank = critical_count(blocks, self.tail, share), textbook_rank(blocks, share)
        return Textbook(index=blocks // 2, needed=needed, tail=self.tail, rank=rank)

    def converse(self, responder: Any, trial: Trial) -> Conversation:
        exact, aggregator, choices = isinstance(responder, Textbook), Aggregator(), trial.choices
        for row in range(self.features):
            kind = _KINDS[uniform_index(len(_KINDS), choices)]
            cut = LEVELS // 2
            if kind != "estimate":
                counts = {"verify": responder.needed, "interval": responder.rank} if exact else {}
                rank = counts[kind] - 0.5 if exact else _target(self.plan, kind)
                cut = cut_at(rank / self.blocks)
            feature = Feature(row, cut, sides=2 if kind == "interval" else 1)
            # Of rarer events each tells as much, and counts for more in a score of equal parts.
            weight = round(0.5 / math.sqrt(feature.mass * (1 - feature.mass)))
            if kind == "verify" and not exact and responder.refusals_left <= self.spare:
                continue
            replies = yield self._asked(kind, feature)
            if not replies.refused:
                low, high = lean(replies.values[0] > 0), 0
                if kind == "interval":
                    low, high = _leans(replies)
                aggregator.learn(feature, weight * low, weight * high)
        events = [aggregator.event(mass, self.features) for mass in (self.tail, 0.5)]
        tail = 0.0 if exact else self.tail
        for kind in _KINDS:
            for event in events:
                yield self._asked(kind, event, tail)
        if not exact:
            # Refusals end; in the first run also all of the budget does.
            for kind in _KINDS[1:2] if trial.number else _KINDS:
                yield from until_refused(cycle([self._asked(kind, events[0], tail)]))

    @staticmethod
    def _asked(kind: str, about: Feature | Overfit, tail: float = 0.0) -> Question:
        if kind == "interval":
            return _of_feature(about) if isinstance(about, Feature) else _of_event(about, tail)
        event = about.low if isinstance(about, Feature) else about
        if kind == "verify":
            return _verdict(event, about.mass)
        law = np.array([[1 - about.mass, 1.0]])
        return Medians(lambda levels: event(levels)[np.newaxis].astype(np.int64), law)


ATTACKS: tuple[Attack, ...] = (
    EstimateAttack(),
    IntervalAttack(),
    MedianMeanAttack(),
    DirectMeanAttack(),
    OneSidedAttack(),
    TwoSidedAttack(),
    CorrectAttack(),
    RoundsAttack(),
    WeightsAttack(),
    SimpleAttack(),
    AmplifiedAttack(),
    SplitAttack(),
    MixtureAttack(),
)
