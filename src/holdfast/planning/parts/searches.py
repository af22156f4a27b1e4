"""The part of searches: estimates, intervals, medians of block means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from holdfast.planning.parts.base import Left, Part, VerdictPrices
from holdfast.theory.binomial import binomial_tail
from holdfast.theory.classes import FailureClass
from holdfast.theory.coin import Coin, steepest_coin
from holdfast.theory.profile import coin_profile

__all__ = ["SearchPart"]


@dataclass(frozen=True)
class SearchPart(Part):
    """Searches with one flat coin: estimates, intervals, medians of block means.

    With `mirrored` every question is two searches, at the target and at its mirror image m − c.
    With sub-blocks a block's value is the exact median of its sub-blocks' values, and
    `subblock_tail` is what is promised of the estimator on one of them (lem `amp-med`).
    """

    kind: ClassVar[str] = "search"

    name: str
    protocol: str
    queries: int
    grid: int
    tail_low: float
    tail_high: float
    twice_target: int
    failure_low: float
    failure_high: float
    look_price: float
    floor: float
    looks: int
    mirrored: bool = False
    subblocks: int = 1
    subblock_tail: float = 0.0

    @property
    def looks_per_query(self) -> int:
        """⌈log₂ r⌉ on the planned grid, twice that for an interval."""
        return (self.grid - 1).bit_length() * (2 if self.mirrored else 1)

    def coin(self, order: float) -> Coin:
        """The coin of every look."""
        return _steepest(order, self.look_price, self.floor)

    def prices(self, order: float) -> VerdictPrices:
        price = _flat_price(order, self.look_price, self.floor)
        return VerdictPrices(price, price)

    def planned(self, order: float) -> float:
        return self.queries * self.looks_per_query * self.prices(order).worst

    def left(self, order: float, rest: Fraction, looks: int, _: int) -> Left:
        bought = min(self.looks - looks, rest // Fraction(self.prices(order).worst))
        return Left(bought // self.looks_per_query, bought)

    def central(self, blocks: int) -> bool:
        """Equal tails about the median: both sides are one failure class."""
        return self.tail_low == self.tail_high and self.twice_target == blocks

    def shares(self, blocks: int, /) -> tuple[float, ...]:
        if self.central(blocks):
            return (max(self.failure_low, self.failure_high),)
        return (self.failure_low, self.failure_high)

    def classes(self, order: float, blocks: int) -> tuple[FailureClass, ...]:
        profile = coin_profile(self.coin(order), self.looks)
        if self.central(blocks):
            failure = min(self.failure_low, self.failure_high)
            return (FailureClass(self.name, self.tail_low, blocks, failure, profile),)
        low = FailureClass(
            f"{self.name}, too low",
            self.tail_low,
            self.twice_target,
            self.failure_low,
            profile,
        )
        high = FailureClass(
            f"{self.name}, too high",
            self.tail_high,
            2 * blocks - self.twice_target,
            self.failure_high,
            profile,
        )
        return (low, high)

    def sound(self, order: float, blocks: int) -> bool:
        if self.subblocks > 1:
            # The median of sub-blocks leaves qi(tail, 1 − tail) with less than the part's own tail.
            reached = binomial_tail(self.subblocks, self.subblock_tail, (self.subblocks + 1) // 2)
            if reached > min(self.tail_low, self.tail_high):
                return False
        return super().sound(order, blocks)


@lru_cache(maxsize=32)
def _steepest(order: float, price: float, floor: float) -> Coin:
    return steepest_coin(order, price, floor)


@lru_cache(maxsize=32)
def _flat_price(order: float, price: float, floor: float) -> float:
    return _steepest(order, price, floor).price(order)
