"""The aggregator against means: the median of block means, and the direct search."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from holdfast.grids import grid
from holdfast.lab.protocol_attacks.aggregator import Aggregator, Feature, lean
from holdfast.lab.protocol_attacks.base import (
    JointAttack,
    Notes,
    Run,
    Side,
    critical_count,
    refused,
)
from holdfast.lab.protocol_attacks.sample import LEVELS, Sample, Trial, draw_levels
from holdfast.planning.requests import DirectMeans, MedianMeans, Request
from holdfast.protocols.answers import Answer
from holdfast.protocols.budget import Budget
from holdfast.protocols.means import DirectMean, MedianMean

__all__ = ["DirectMeanAttack", "MeanAttack", "MedianMeanAttack"]

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
