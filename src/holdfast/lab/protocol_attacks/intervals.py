"""The aggregator against intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import IntegerGrid
from holdfast.lab.protocol_attacks.aggregator import Aggregator, Feature, cut_at, lean
from holdfast.lab.protocol_attacks.base import (
    JointAttack,
    Notes,
    Run,
    Side,
    critical_count,
    refused,
)
from holdfast.lab.protocol_attacks.sample import Sample, Trial, draw_levels
from holdfast.planning.parts import SearchPart
from holdfast.planning.requests import Intervals, Request
from holdfast.protocols.answers import Answer
from holdfast.protocols.budget import Budget
from holdfast.protocols.searches import Interval

__all__ = [
    "GRID",
    "YES_NO",
    "IntervalAttack",
    "Spread",
    "ends",
    "false_interval",
    "textbook_rank",
]

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
