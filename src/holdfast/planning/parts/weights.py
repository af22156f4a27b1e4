"""The part of private multiplicative weights: a public hypothesis guesses, looks verify."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from holdfast.planning.parts.base import Left, Part, VerdictPrices
from holdfast.planning.parts.verdicts import stored_coin, stored_prices, verdict_left
from holdfast.theory.coins import VerdictCoin, coin_profile
from holdfast.theory.transcripts import HIGHEST_MASS, LOWEST_MASS, most_updates
from holdfast.theory.transfer import FailureClass

__all__ = ["WeightsPart"]


@dataclass(frozen=True)
class WeightsPart(Part):
    """k answers with at most `updates` refused guesses (thm `adaptive-general-mwu`).

    A guess is the hypothesis' median. Confirmed, it is the answer: the class of a false Yes. A No
    that errs by `twice_slack`/2 counts or more has probability at most `failure_updates` over all
    looks; without one, every refused guess has a sample mass of at most `mass`, and then the
    number of updates is bounded (docs/explanation/theory/weights.md).
    """

    kind: ClassVar[str] = "weights"

    name: str
    protocol: str
    queries: int
    updates: int
    universe: int
    tail: float
    twice_target: int
    twice_slack: int
    failure_low: float
    failure_updates: float
    no_price: float
    yes_price: float
    false_yes: float
    false_no: float
    looks: int

    @property
    def most_refusals(self) -> int | None:
        return self.updates

    def mass(self, blocks: int) -> float:
        """The most of the sample that a refused guess has on its side."""
        return (self.twice_target + self.twice_slack) / (2 * blocks)

    def coin(self, order: float) -> VerdictCoin:
        """The coin of every look."""
        return stored_coin(order, self.no_price, self.yes_price, self.false_yes, self.false_no)

    def prices(self, order: float) -> VerdictPrices:
        key = (order, self.no_price, self.yes_price, self.false_yes, self.false_no)
        return stored_prices(*key)

    def planned(self, order: float) -> float:
        prices = self.prices(order)
        return 2 * self.queries * prices.yes + self.updates * (prices.no + prices.yes)

    def left(self, order: float, rest: Fraction, looks: int, refusals: int) -> Left:
        prices, unused = self.prices(order), self.looks - looks
        return verdict_left(prices, 2, rest, unused, self.updates - refusals)

    def shares(self, _: int, /) -> tuple[float, ...]:
        return (self.failure_low, self.failure_updates)

    def classes(self, order: float, blocks: int) -> tuple[FailureClass, ...]:
        del blocks  # the reach is the target itself
        profile = coin_profile(self.coin(order).below, self.looks)
        name = f"{self.name}, outside"
        return (FailureClass(name, self.tail, self.twice_target, self.failure_low, profile),)

    def sound(self, order: float, _budget: float, blocks: int) -> bool:
        counted = self.looks >= 2 * (self.queries + self.updates)
        if not counted or self.twice_slack < 0 or min(self.queries, self.updates) < 1:
            return False
        wrong_no = float(self.coin(order).above.error(np.array([self.twice_slack]))[0])
        mass = self.mass(blocks)
        if wrong_no * self.looks > self.failure_updates or not LOWEST_MASS <= mass <= HIGHEST_MASS:
            return False
        return most_updates(self.universe, mass) <= self.updates
