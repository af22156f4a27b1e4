"""The aggregator against a random mixture of estimates, guesses and intervals on one budget."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from holdfast.errors import Exhausted
from holdfast.lab.protocol_attacks.aggregator import Aggregator, Feature, Overfit, cut_at, lean
from holdfast.lab.protocol_attacks.base import (
    JointAttack,
    Notes,
    Run,
    Side,
    critical_count,
    refused,
)
from holdfast.lab.protocol_attacks.guesses import false_verdict
from holdfast.lab.protocol_attacks.intervals import (
    GRID,
    YES_NO,
    Spread,
    ends,
    false_interval,
    textbook_rank,
)
from holdfast.lab.protocol_attacks.sample import LEVELS, Sample, Trial, draw_levels
from holdfast.planning.parts import SearchPart, VerdictPart
from holdfast.planning.requests import Estimates, Guesses, Intervals, Request
from holdfast.protocols.budget import Budget
from holdfast.protocols.guesses import Verify
from holdfast.protocols.searches import Estimate, Interval
from holdfast.randomness import uniform_index

__all__ = ["MixtureAttack"]

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
