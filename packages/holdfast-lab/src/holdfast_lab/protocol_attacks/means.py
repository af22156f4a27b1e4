"""The aggregator against means: the median of block means, and the direct search."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted
from holdfast.grids import IntegerGrid, grid
from holdfast.planning.parts import SearchPart, VerdictPart
from holdfast.planning.requests import (
    DirectMeans,
    Estimates,
    Guesses,
    Intervals,
    MedianMeans,
    Request,
)
from holdfast.protocols.answers import Answer, Claim, Verdict
from holdfast.protocols.budget import Budget
from holdfast.protocols.guesses import Verify
from holdfast.protocols.means import DirectMean, MedianMean
from holdfast.protocols.searches import Estimate, Interval
from holdfast.randomness import uniform_index
from holdfast_lab.protocol_attacks.base import (
    LEVELS,
    JointAttack,
    Notes,
    Run,
    Sample,
    Side,
    Trial,
    critical_count,
    draw_levels,
    refused,
)
from holdfast_lab.protocol_attacks.learners import Aggregator, Feature, Overfit, cut_at, lean

__all__ = [
    "GRID",
    "YES_NO",
    "DirectMeanAttack",
    "IntervalAttack",
    "MeanAttack",
    "MedianMeanAttack",
    "MixtureAttack",
    "OneSidedAttack",
    "Spread",
    "TwoSidedAttack",
    "VerifyAttack",
    "ends",
    "false_interval",
    "false_verdict",
    "textbook_rank",
]

_SIDE = grid(0.5, 1, points=2)  # one look: is the mean above 1/2?
_FINE = grid(0, 1, points=65)
_FINENESS = 3  # parts of a standard deviation in which naive means are weighted


@dataclass(frozen=True)
class MeanAttack(JointAttack):
    """Is the mean of this feature above 1/2? Then the mean of the event of high scores."""

    queries: int
    features: int
    units: int

    @property
    def story(self) -> str:
        return (
            f"The aggregator asks of {self.features} fair features of a unit whether their mean is "
            "above 1/2, then for the mean of an event of high scores, whose true mean is just "
            f"below 1/2, until the budget is exhausted. {self._bar} Naive gives the exact mean of "
            "all units, by whose distance from 1/2 the score is weighted, with its exact binomial "
            f"bar for {self.queries} questions fixed in advance."
        )

    def run(self, side: Side, trial: Trial) -> Run:
        units = self.blocks * self.units
        sample = Sample(draw_levels(self.features + 1, units, trial.blocks), self.units)
        features = [Feature(row, LEVELS // 2) for row in range(self.features)]
        aggregator, notes = Aggregator(), Notes()
        if side == "naive":
            for feature in features:
                excess = 2 * np.count_nonzero(feature.low(sample.data)) - units
                aggregator.learn(feature, round(_FINENESS * excess / math.sqrt(units)))
            event = aggregator.event(0.5, self.features)
            most = critical_count(units, event.mass, self.failure / (2 * self.queries))
            return Run(bool(np.count_nonzero(event(sample.data)) >= most), self.features + 1)
        budget = Budget(self.plan)
        protocol = self._protocol(budget, sample, trial)
        for feature in features:
            answer = self._side(protocol, feature.low)
            notes.add(_misses(answer, feature.mass))
            aggregator.learn(feature, lean(answer.value > 0.5))
        event = aggregator.event(0.5, self.features)
        notes.until_exhausted(lambda: _misses(self._value(protocol, event), event.mass))
        over = notes.until_exhausted(lambda: _misses(self._side(protocol, event), event.mass))
        return notes.run(polite=over and refused(budget, lambda: self._side(protocol, event)))

    @property
    @abstractmethod
    def _bar(self) -> str:
        """What bounds the mean."""

    @abstractmethod
    def _protocol(self, budget: Budget, sample: Sample, trial: Trial) -> Any:
        """The protocol."""

    @abstractmethod
    def _side(self, protocol: Any, function: object) -> Answer:
        """The cheapest answer that tells whether the mean is above 1/2."""

    @abstractmethod
    def _value(self, protocol: Any, function: object) -> Answer:
        """The finest answer."""


def _misses(answer: Answer, mean: float) -> bool:
    assert answer.low is not None
    assert answer.high is not None
    return not answer.low <= mean <= answer.high


@dataclass(frozen=True)
class MedianMeanAttack(MeanAttack):
    """The aggregator against medians of block means."""

    name: ClassVar[str] = "mean, median of block means"
    promise: ClassVar[str] = "every mean lies in its bar"

    queries: int = 38
    features: int = 24
    units: int = 25
    tail: float = 0.01

    @property
    def requests(self) -> tuple[Request, ...]:
        return (MedianMeans(self.queries, 2, self.tail),)

    @property
    def _bar(self) -> str:
        return (
            f"There are {self.units} units in a block; the median of the blocks' means has tails "
            f"above {self.tail:g}, and that bounds the mean by its kl bar."
        )

    def _protocol(self, budget: Budget, sample: Sample, trial: Trial) -> MedianMean:
        return MedianMean(budget, sample, trial.coins)

    def _side(self, protocol: MedianMean, function: object) -> Answer:
        return protocol.ask(function, grid=_SIDE)

    def _value(self, protocol: MedianMean, function: object) -> Answer:
        return protocol.ask(function, grid=_FINE)


@dataclass(frozen=True)
class DirectMeanAttack(MeanAttack):
    """The aggregator against direct searches over the sum."""

    name: ClassVar[str] = "mean, direct search"
    promise: ClassVar[str] = "every mean lies in its bar, and no bar is wider than 0.6"

    queries: int = 30
    features: int = 25
    units: int = 1
    half_width: float = 0.3

    @property
    def requests(self) -> tuple[Request, ...]:
        return (DirectMeans(self.queries, self.half_width),)

    @property
    def _bar(self) -> str:
        return f"Every unit is a block, and bars are at most {2 * self.half_width:g} wide."

    def _protocol(self, budget: Budget, sample: Sample, trial: Trial) -> DirectMean:
        return DirectMean(budget, sample, trial.coins)

    def _side(self, protocol: DirectMean, function: object) -> Answer:
        return protocol.ask(function)

    _value = _side


# The aggregator against intervals.


GRID = IntegerGrid(0, 2)  # low, between, high
YES_NO = IntegerGrid(0, 1)


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


def ends(answer: Answer, grid: IntegerGrid = GRID) -> tuple[int, int]:
    """The grid indices of both ends: an end that is no bound is an end of the grid."""
    first = 0 if answer.low is None else int(answer.low) + 1
    last = grid.size - 1 if answer.high is None else int(answer.high)
    return first, last


def false_interval(answer: Answer, mass: float, tail: float) -> bool:
    """Whether the interval of an indicator breaks its promise, for an event of mass below 1/2.

    It must enclose the median, which is 0, and the upper end for a rare event must be 0 as well.
    """
    first, last = ends(answer, YES_NO)
    return first > 0 or (mass <= tail and last > 0)


def textbook_rank(blocks: int, failure: float) -> int:
    """The largest rank c such that [x₍c₎, x₍m+1−c₎] misses the median with at most `failure`.

    The confidence interval of the sign test, for a question fixed in advance.

    >>> textbook_rank(100, 0.05)
    40
    """
    return blocks + 1 - critical_count(blocks, 0.5, failure / 2)


@dataclass(frozen=True)
class IntervalAttack(JointAttack):
    """Both ends of every interval say something about one event each."""

    name: ClassVar[str] = "interval"
    promise: ClassVar[str] = (
        "every interval encloses the median, and its ends have tails above 0.05"
    )

    queries: int = 26
    features: int = 23
    tail: float = 0.05

    @property
    def requests(self) -> tuple[Request, ...]:
        return (Intervals(self.queries, GRID.size, self.tail),)

    @property
    def story(self) -> str:
        return (
            f"The aggregator asks for the intervals of {self.features} features with three values, "
            "whose outer masses are where the two searches aim: each end tells whether more or "
            "fewer blocks than expected are out there. Then it asks for the intervals of two "
            "events of high scores until the budget is exhausted, one of mass just below 1/2, "
            f"whose median is 0, and one of mass {self.tail:g}, whose upper end must be 0. Naive "
            "is the textbook's interval for a median, between two ranks of the same blocks, for "
            f"{self.queries} questions fixed in advance."
        )

    def run(self, side: Side, trial: Trial) -> Run:
        sample = Sample(draw_levels(self.features + 1, self.blocks, trial.blocks))
        return self._naive(sample) if side == "naive" else self._planned(sample, trial)

    def _features(self, rank: float) -> Iterator[Feature]:
        cut = cut_at(rank / self.blocks)
        return (Feature(row, cut, sides=2) for row in range(self.features))

    def _planned(self, sample: Sample, trial: Trial) -> Run:
        budget, part = Budget(self.plan), self.plan.part("interval")
        assert isinstance(part, SearchPart)
        protocol, notes, aggregator = Interval(budget, sample, trial.coins), Notes(), Aggregator()
        for feature in self._features((part.twice_target - 1) / 2):
            first, last = ends(protocol.ask(Spread(feature), GRID))
            aggregator.learn(feature, lean(first == 0), lean(last == 2))
            notes.add(not first <= 1 <= last)  # the median is 1; the outer masses exceed the tail
        events = cycle([aggregator.event(mass, self.features) for mass in (0.5, self.tail)])

        def ask() -> bool:
            event = next(events)
            return false_interval(protocol.ask(event, YES_NO), event.mass, self.tail)

        over = notes.until_exhausted(ask)
        return notes.run(polite=over and refused(budget, ask))

    def _naive(self, sample: Sample) -> Run:
        rank = textbook_rank(self.blocks, self.failure / self.queries)
        aggregator = Aggregator()
        for feature in self._features(rank - 0.5):
            values = np.sort(Spread(feature)(sample.data))
            low, high = values[rank - 1], values[-rank]
            aggregator.learn(feature, lean(low == 0), lean(high == 2))
        event = aggregator.event(0.5, self.features)
        missed = np.sort(event(sample.data))[rank - 1]
        return Run(bool(missed), self.features + 1)


# The aggregator against guesses: verify, one-sided and two-sided.


def false_verdict(refused: bool, mass: float, tail_low: float, tail_high: float) -> bool:
    """Whether a verdict on the guess 1, for the indicator of an event, breaks the promise.

    >>> false_verdict(False, 0.1, 0.1, 0.4), false_verdict(True, 0.3, 0.1, 0.4)
    (True, False)
    """
    return mass >= tail_high if refused else mass <= tail_low


@dataclass(frozen=True)
class VerifyAttack(JointAttack):
    """Is the event of this feature common enough? Then the same of rare events of high scores."""

    queries: int
    refusals: int
    features: int
    tail_low: float
    tail_high: float
    sides: int
    spare: int  # refusals kept for the end

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

    def run(self, side: Side, trial: Trial) -> Run:
        sample = Sample(draw_levels(self.features + 1, self.blocks, trial.blocks))
        return self._naive(sample) if side == "naive" else self._planned(sample, trial)

    def _planned(self, sample: Sample, trial: Trial) -> Run:
        budget, part = Budget(self.plan), self.plan.part("verify")
        assert isinstance(part, VerdictPart)
        protocol, aggregator, notes = Verify(budget, sample, trial.coins), Aggregator(), Notes()
        cut = cut_at((part.twice_target - 1) / 2 / self.blocks)

        def ask(indicator: Callable[..., Any], mass: float) -> Verdict:
            claim: Claim = "at least" if self.sides == 1 else "equals"
            verdict = protocol.ask(indicator, 1, claim=claim)
            if verdict.refused is not None:
                tails = self.tail_low, self.tail_high
                notes.add(false_verdict(verdict.refused, mass, *tails))
            return verdict

        for feature in (Feature(row, cut) for row in range(self.features)):
            verdict = ask(feature.low, feature.mass)
            aggregator.learn(feature, lean(verdict.refused is False))
            if protocol.refusals_left <= self.spare:
                break
        rare = aggregator.event(self.tail_low, self.features)
        common = aggregator.common(self.tail_high, self.features)
        for _ in range(self.queries):
            if ask(rare, rare.mass).verdict == "exhausted":
                break
            ask(common, common.mass)
        before = budget.spent, budget.buys()
        last = [ask(event, event.mass) for event in (rare, common)]
        polite = all(each.verdict == "exhausted" and each.price == 0 for each in last)
        return notes.run(polite=polite and (budget.spent, budget.buys()) == before)

    def _naive(self, sample: Sample) -> Run:
        needed = critical_count(self.blocks, self.tail_low, self.failure / self.queries)
        aggregator, cut = Aggregator(), cut_at((needed - 0.5) / self.blocks)
        for feature in (Feature(row, cut) for row in range(self.features)):
            above = np.count_nonzero(feature.low(sample.data)) >= needed
            aggregator.learn(feature, lean(bool(above)))
        rare = aggregator.event(self.tail_low, self.features)
        return Run(bool(np.count_nonzero(rare(sample.data)) >= needed), self.features + 1)


@dataclass(frozen=True)
class OneSidedAttack(VerifyAttack):
    """Guesses "at least v"."""

    name: ClassVar[str] = "verify, one-sided"
    promise: ClassVar[str] = "a tail of at most 0.25 is refused, one of at least 0.75 confirmed"

    queries: int = 100
    refusals: int = 12
    features: int = 80
    tail_low: float = 0.25
    tail_high: float = 0.75
    sides: int = 1
    spare: int = 3


@dataclass(frozen=True)
class TwoSidedAttack(VerifyAttack):
    """Guesses v."""

    name: ClassVar[str] = "verify, two-sided"
    promise: ClassVar[str] = "a tail of at most 0.1 is refused, two of at least 0.4 confirmed"

    queries: int = 100
    refusals: int = 12
    features: int = 90
    tail_low: float = 0.1
    tail_high: float = 0.4
    sides: int = 2
    spare: int = 3


# The aggregator against a random mixture of estimates, guesses and intervals on one budget.


_KINDS = ("estimate", "verify", "interval")


class _Holder(ABC):
    """Whoever holds the blocks: says on which side counts are, and whether a promise breaks."""

    ranks: dict[str, float]  # the counts at which answers change
    wrong: bool = False  # whether an answer about a feature broke its promise

    @abstractmethod
    def leans(self, kind: str, feature: Feature) -> tuple[int, int]:
        """What the low event, and the high one, is to count in the score."""

    @abstractmethod
    def breaks(self, kind: str, event: Overfit) -> bool:
        """Whether the answer about an event breaks its promise."""


class _Exact(_Holder):
    def __init__(self, attack: MixtureAttack, sample: Sample) -> None:
        self.attack, self.levels, blocks = attack, sample.data, sample.blocks
        share = attack.failure / attack.questions
        self.counts = {
            "estimate": (blocks + 1) // 2,
            "verify": critical_count(blocks, attack.tail, share),
            "interval": textbook_rank(blocks, share),
        }
        self.ranks = {kind: count - 0.5 for kind, count in self.counts.items()}
        self.ranks["estimate"] = blocks / 2

    def leans(self, kind: str, feature: Feature) -> tuple[int, int]:
        counts = [np.count_nonzero(event(self.levels)) for event in (feature.low, feature.high)]
        low, high = (lean(bool(count >= self.counts[kind])) for count in counts)
        return low, high if feature.sides == 2 else 0

    def breaks(self, kind: str, event: Overfit) -> bool:
        count = int(np.count_nonzero(event(self.levels)))
        if kind == "interval":  # the lower end is 1 if fewer than `rank` blocks have 0
            return self.attack.blocks - count < self.counts[kind]
        return event.mass <= self.attack.tail and count >= self.counts[kind]


class _Planned(_Holder):
    def __init__(self, attack: MixtureAttack, sample: Sample, trial: Trial) -> None:
        self.attack, self.budget = attack, Budget(attack.plan)
        coins, parts = trial.coins, {part.name: part for part in attack.plan.parts}
        self.estimate = Estimate(self.budget, sample, coins)
        self.verify = Verify(self.budget, sample, coins)
        self.interval = Interval(self.budget, sample, coins)
        self.ranks = {}
        for kind, part in parts.items():
            assert isinstance(part, SearchPart | VerdictPart)
            self.ranks[kind] = (part.twice_target - 1) / 2

    def leans(self, kind: str, feature: Feature) -> tuple[int, int]:
        if kind == "estimate":
            return lean(self.estimate.ask(feature.low, YES_NO).value > 0), 0
        if kind == "interval":
            first, last = ends(self.interval.ask(Spread(feature), GRID))
            self.wrong |= not first <= 1 <= last
            return lean(first == 0), lean(last == 2)
        if self.verify.refusals_left <= self.attack.spare:
            raise Exhausted("Guesses", "a refusal", "none to spare", "Ask something else.")
        return lean(self.verify.ask(feature.low, 1).refused is False), 0

    def breaks(self, kind: str, event: Overfit) -> bool:
        tail = self.attack.tail
        if kind == "estimate":
            return self.estimate.ask(event, YES_NO).value > 0 and event.mass <= tail
        if kind == "interval":
            return false_interval(self.interval.ask(event, YES_NO), event.mass, tail)
        refused = self.verify.ask(event, 1).refused
        if refused is None:
            raise Exhausted("Guesses", "a refusal", "none", "Ask something else.")
        return false_verdict(refused, event.mass, tail, self.attack.tail_high)


@dataclass(frozen=True)
class MixtureAttack(JointAttack):
    """Each feature is asked about in a way drawn at random; the events at the end in all ways."""

    name: ClassVar[str] = "mixture of estimate, verify and interval"
    promise: ClassVar[str] = "all their promises at once, with tails of 0.05, and 0.4 for verify"

    queries: int = 20  # of each protocol
    refusals: int = 8
    features: int = 33
    tail: float = 0.05
    tail_high: float = 0.4
    spare: int = 2  # refusals kept for the end

    @property
    def requests(self) -> tuple[Request, ...]:
        return (
            Estimates(self.queries, 2, self.tail, self.tail),
            Guesses(self.queries, self.refusals, self.tail, self.tail_high),
            Intervals(self.queries, GRID.size, self.tail),
        )

    @property
    def questions(self) -> int:
        return 3 * self.queries

    @property
    def story(self) -> str:
        return (
            f"The aggregator asks about {self.features} features, each by an estimate, a guess or "
            "an interval, drawn at random: every protocol answers from the same blocks, and all "
            "answers go into one score. Then it asks about events of high scores of mass "
            f"{self.tail:g} and of mass just below 1/2, in all three ways. Naive is exact as in "
            f"the rows above, for {self.questions} questions fixed in advance."
        )

    def run(self, side: Side, trial: Trial) -> Run:
        sample = Sample(draw_levels(self.features + 1, self.blocks, trial.blocks))
        holder = _Exact(self, sample) if side == "naive" else _Planned(self, sample, trial)
        aggregator, notes, choices = Aggregator(), Notes(), trial.choices
        for row in range(self.features):
            kind = _KINDS[uniform_index(len(_KINDS), choices)]
            rank = holder.ranks[kind]
            cut = LEVELS // 2 if kind == "estimate" else cut_at(rank / self.blocks)
            feature = Feature(row, cut, sides=2 if kind == "interval" else 1)
            # Of rarer events each tells as much, and counts for more in a score of equal parts.
            weight = round(0.5 / math.sqrt(feature.mass * (1 - feature.mass)))
            try:
                low, high = holder.leans(kind, feature)
            except Exhausted:
                continue
            aggregator.learn(feature, weight * low, weight * high)
            notes.add(holder.wrong)
        events = [aggregator.event(mass, self.features) for mass in (self.tail, 0.5)]
        for kind in _KINDS:
            for event in events:
                try:
                    notes.add(holder.breaks(kind, event))
                except Exhausted:
                    continue
        if isinstance(holder, _Planned):
            return notes.run(polite=self._drained(holder, events[0], notes, trial))
        return notes.run()

    @staticmethod
    def _drained(holder: _Planned, event: Overfit, notes: Notes, trial: Trial) -> bool:
        """Whether refusals end; in the first run also whether all of the budget does."""
        kinds = ("verify",) if trial.number else _KINDS
        asks = [partial(holder.breaks, kind, event) for kind in kinds]
        over = [notes.until_exhausted(ask) for ask in asks]
        return all(over) and all(refused(holder.budget, ask) for ask in asks)
