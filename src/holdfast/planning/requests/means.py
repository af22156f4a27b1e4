"""The request for means by the direct search: the half-width is the promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from holdfast.errors import real_number, whole_number
from holdfast.planning.parts.direct import DirectPart
from holdfast.planning.requests.base import Request, Setting
from holdfast.theory.coins import reach_of
from holdfast.theory.means import level_tail
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX

__all__ = ["DirectMeans"]


@dataclass(frozen=True)
class DirectMeans(Request):
    """Means of functions of a block with values in [0, 1], all within ± half_width at once.

    `exact`: the values are 0 or 1. Otherwise they are rounded to parts of 2⁻¹⁶, which costs a
    little.
    """

    protocol: ClassVar[str] = "mean"

    queries: int
    half_width: float = 0.1
    exact: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX)
        real_number("half_width", self.half_width, 0, 0.5, open_low=True, open_high=True)

    @property
    def width(self) -> float:
        return 2 * self.half_width

    def starts(self) -> tuple[tuple[float, ...], ...]:
        return ((math.log(0.1 * self.half_width), math.log(1e-3 * self.half_width**2)),)

    def settings_start(self, failure: float) -> tuple[float, float]:
        squared = 2 * math.log(2 / failure)
        return 0.9 * squared / self.half_width, 0.45 * self.half_width

    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        share = math.exp(min(max(own[0], -60.0), 9.0))
        price = (setting.order - 1) * setting.own / self.queries
        questions = self.queries * setting.limit / setting.own
        floor = self._floor(setting, own)
        length = 2 * reach_of(setting.order, price, price, 1 / floor)
        slipped = reach_of(setting.order, price, price, questions / setting.failure)
        rent = math.expm1((setting.order - 1) * setting.limit) / setting.failure
        far = floor * questions / setting.failure

        def half_width(log_blocks: float) -> float:
            blocks = math.exp(log_blocks)
            short = slipped / blocks + math.log2(2 + blocks / length) * far
            toll = rent + rent / share * short
            return length / blocks / 2 + 0.5 - level_tail(setting.order, rent / share, toll, 0.5)

        return _crossing(half_width, self.half_width)

    def _floor(self, setting: Setting, own: Sequence[float]) -> float:
        relative = math.exp(min(max(own[1], -60.0), math.log(0.1)))
        return relative * setting.failure / self.queries

    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> DirectPart | None:
        part = DirectPart(
            name=self.key,
            protocol=self.protocol,
            queries=self.queries,
            half_width=self.half_width,
            apart=1,
            slope=1.0,  # any: the best is found once the blocks are known
            failure=setting.failure,
            look_price=setting.own / self.queries,
            floor=self._floor(setting, own),
            exact=self.exact,
            looks=self.queries,
        )
        if limit is None:
            return part
        looks = max(self.queries, math.floor(limit / part.prices(setting.order).worst))
        apart = part.coin(setting.order).halfsteps.size - 1
        part = replace(part, looks=looks, apart=apart)
        if blocks <= apart:
            return None
        return part.at_best_slope(setting.order, limit, blocks)


def _crossing(falling: object, level: float) -> float:
    """The blocks at which a falling function of their logarithm reaches the level."""
    from scipy.optimize import brentq

    assert callable(falling)
    low, high = 0.0, math.log(BLOCKS_MAX)
    if falling(high) > level:
        return math.inf
    return math.exp(float(brentq(lambda x: falling(x) - level, low, high, xtol=1e-7)))
