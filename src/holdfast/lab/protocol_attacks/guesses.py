"""The aggregator against guesses: verify, one-sided and two-sided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from holdfast.lab.protocol_attacks.aggregator import Aggregator, Feature, cut_at, lean
from holdfast.lab.protocol_attacks.base import JointAttack, Notes, Run, Side, critical_count
from holdfast.lab.protocol_attacks.sample import Sample, Trial, draw_levels
from holdfast.planning.parts import VerdictPart
from holdfast.planning.requests import Guesses, Request
from holdfast.protocols.answers import Claim, Verdict
from holdfast.protocols.budget import Budget
from holdfast.protocols.guesses import Verify

__all__ = ["OneSidedAttack", "TwoSidedAttack", "VerifyAttack", "false_verdict"]


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
