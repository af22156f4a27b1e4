"""The part of searches: estimates, intervals, medians of block means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from holdfast.planning.parts.base import LEAST_SHARE, Left, Part, VerdictPrices
from holdfast.theory.coins import Coin, coin_profile, steepest_coin
from holdfast.theory.numerics import binomial_tail
from holdfast.theory.transfer import FailureClass

__all__ = ["SearchPart", "stored_flat_coin", "stored_flat_price"]


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
        return stored_flat_coin(order, self.look_price, self.floor)

    def prices(self, order: float) -> VerdictPrices:
        price = stored_flat_price(order, self.look_price, self.floor)
        return VerdictPrices(price, price)

    def planned(self, order: float) -> float:
        return self.queries * self.looks_per_query * self.prices(order).worst

    def left(self, order: float, rest: Fraction, looks: int, _: int) -> Left:
        bought = min(self.looks - looks, rest // Fraction(self.prices(order).worst))
        return Left(bought // self.looks_per_query, bought)

    def still_possible(self, order: float, rest: Fraction, looks: int, refusals: int) -> str:
        """Questions on the planned grid or, where none is left, what the last looks buy."""
        left = self.left(order, rest, looks, refusals)
        if left.questions:
            return super().still_possible(order, rest, looks, refusals)
        most = 2 ** (left.looks // (2 if self.mirrored else 1))
        if most < 2:
            return ""
        grids = f"{self.name} on a grid of at most {most:,} points"
        guess = self.protocol in ("estimate", "simple") and left.looks >= 2
        says = min(self.tail_low, self.tail_high) >= LEAST_SHARE
        return f"{grids}, or to verify a guess" if guess and says else grids

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

    def sound(self, _order: float, _budget: float, _blocks: int) -> bool:
        if (self.protocol == "interval") != self.mirrored or self.grid < 2 or self.queries < 1:
            return False
        if self.looks < self.queries * self.looks_per_query:
            return False
        if self.mirrored and self.tail_high != 0.5:  # it would not enclose the median
            return False
        if self.protocol != "amplified":
            return self.subblocks == 1 and self.subblock_tail == 0
        # The median of sub-blocks leaves qi(tail, 1 − tail) with less than the part's own tail.
        reached = binomial_tail(self.subblocks, self.subblock_tail, (self.subblocks + 1) // 2)
        return reached <= min(self.tail_low, self.tail_high)


@lru_cache(maxsize=32)
def stored_flat_coin(order: float, price: float, floor: float) -> Coin:
    """The steepest coin of these numbers, remembered."""
    return steepest_coin(order, price, floor)


@lru_cache(maxsize=32)
def stored_flat_price(order: float, price: float, floor: float) -> float:
    """What one look of it costs, measured."""
    return stored_flat_coin(order, price, floor).price(order)
