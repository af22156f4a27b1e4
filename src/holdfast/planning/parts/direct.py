"""The part of direct means: one search over the sum, one look's price a question."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from holdfast.planning.parts.base import Left, Part, VerdictPrices
from holdfast.planning.parts.searches import stored_flat_coin, stored_flat_price
from holdfast.theory.coins import Coin
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.means import DirectBars, direct_bars, search_profile, separated
from holdfast.theory.transfer import FailureClass

__all__ = ["DirectPart"]


@dataclass(frozen=True)
class DirectPart(Part):
    """Means by a search over the sum of all blocks' weights (docs/explanation/theory/means.md).

    Thresholds are `apart` half counts apart, so far that one look at most of a question is near
    enough to its threshold to tell anything: a question costs one look. `looks` counts questions.
    """

    kind: ClassVar[str] = "direct"

    name: str
    protocol: str
    queries: int
    half_width: float
    apart: int
    slope: float
    failure: float
    look_price: float
    floor: float
    exact: bool
    looks: int

    def targets(self, blocks: int) -> tuple[int, ...]:
        """Twice the thresholds, placed evenly about the middle."""
        count = max(1, blocks // self.apart)
        return tuple(blocks + self.apart * j for j in range(1 - count, count, 2))

    def coin(self, order: float) -> Coin:
        """The coin of every look."""
        return stored_flat_coin(order, self.look_price, self.floor)

    def prices(self, order: float) -> VerdictPrices:
        price = stored_flat_price(order, self.look_price, self.floor)
        return VerdictPrices(price, price)

    def planned(self, order: float) -> float:
        return self.queries * self.prices(order).worst

    def left(self, order: float, rest: Fraction, looks: int, _: int) -> Left:
        bought = min(self.looks - looks, rest // Fraction(self.prices(order).worst))
        return Left(bought, bought)

    def shares(self, _: int, /) -> tuple[float, ...]:
        return (self.failure,)

    def classes(self, _order: float, _blocks: int) -> tuple[FailureClass, ...]:
        return ()  # one class with a level of its own for every threshold: see `bars`

    def bars(self, order: float, budget: float, blocks: int) -> DirectBars:
        """The ends of every cell's bar, all at the part's own slope."""
        return _bars(self, order, budget, blocks, self.slope)

    def at_best_slope(self, order: float, budget: float, blocks: int) -> DirectPart:
        """The same part with the slope that makes its bars narrowest."""
        return replace(self, slope=_bars(self, order, budget, blocks, None).slope)

    def sound(self, order: float, budget: float, blocks: int) -> bool:
        if self.apart < 1 or not 1 <= self.queries <= self.looks:
            return False
        # One slope proves all bars together (corollary 4): a plan without one proves none.
        if not 0 < self.slope < math.inf:
            return False
        if not separated(self.coin(order), self.targets(blocks)):
            return False
        return self.bars(order, budget, blocks).half_width <= self.half_width


@lru_cache(maxsize=32)
def _bars(
    part: DirectPart, order: float, budget: float, blocks: int, slope: float | None
) -> DirectBars:
    targets, curve = part.targets(blocks), RenyiCurve(order, budget)
    profile = search_profile(part.coin(order), part.looks, len(targets).bit_length())
    return direct_bars(curve, profile, blocks, targets, part.failure, exact=part.exact, slope=slope)
