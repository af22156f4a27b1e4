"""The request for very many questions: multiplicative weights over a finite universe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from holdfast.errors import Infeasible, real_number, whole_number
from holdfast.planning.parts.weights import WeightsPart
from holdfast.planning.requests.base import FLOOR, Request, Setting, share_from
from holdfast.theory.coins import distance_of, reach_of
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.sizing import QUERIES_MAX
from holdfast.theory.transcripts import largest_mass
from holdfast.theory.transfer import place_target

__all__ = ["WeightedEstimates"]

_UNIVERSE_MAX = 10**30


@dataclass(frozen=True)
class WeightedEstimates(Request):
    """Very many questions about blocks out of a universe of so many elements.

    v ∈ qi(tail, 1 − tail) for all of them at once; only updates of the hypothesis cost much.
    """

    protocol: ClassVar[str] = "weights"

    queries: int
    universe: int
    tail: float = 0.25
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX // 4)
        whole_number("universe", self.universe, 2, _UNIVERSE_MAX)
        hint = "The hypothesis' median must lie well inside of the tails."
        real_number("tail", self.tail, 0, 0.45, open_low=True, hint=hint)

    @property
    def width(self) -> float:
        return 0.5 - self.tail

    def starts(self) -> tuple[tuple[float, ...], ...]:
        gap = (0.5 - self.tail) / 2
        updates = math.log(self.universe) / (2 * gap**2)
        ratio = max(2.0, 2 * self.queries / updates)
        return ((math.log(ratio), 0.0, math.log(updates)),)

    def _own(self, setting: Setting, own: Sequence[float]) -> tuple[float, float, float, float]:
        """Prices of No and Yes, and the two shares of β."""
        ratio, updates = 1 + math.exp(min(own[0], 30.0)), math.exp(min(own[2], 25.0))
        spend = (setting.order - 1) * setting.own
        yes = spend / (2 * self.queries + updates * (ratio + 1))
        low = setting.failure * share_from(own[1])
        return ratio * yes, yes, low, (setting.failure - low) * (1 - 1e-15)

    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        no, yes, low, high = self._own(setting, own)
        updates = math.ceil(math.exp(min(own[2], 25.0)))
        try:
            mass = largest_mass(self.universe, updates)
        except Infeasible:
            return math.inf
        looks = 2 * (self.queries + updates)
        counts = reach_of(setting.order, yes, no, looks / low)
        counts += distance_of(setting.order, no, yes, high / looks)
        room = mass - setting.drift(self.tail, low)
        return counts / room if room > 0 else math.inf

    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> WeightsPart | None:
        no, yes, low, high = self._own(setting, own)
        updates = math.ceil(math.exp(min(own[2], 25.0)))
        looks = 2 * (self.queries + updates)
        part = WeightsPart(
            name=self.key,
            protocol=self.protocol,
            queries=self.queries,
            updates=updates,
            universe=self.universe,
            tail=self.tail,
            twice_target=blocks,
            twice_slack=0,
            failure_low=low,
            failure_updates=high,
            no_price=no,
            yes_price=yes,
            false_yes=FLOOR * low / looks,
            false_no=FLOOR * high / looks,
            looks=looks,
        )
        if limit is None:
            return part
        errors = part.coin(setting.order).above.halfsteps
        slack = int(np.argmax(errors * looks <= high))
        (outside,) = part.classes(setting.order, blocks)
        count = place_target(RenyiCurve(setting.order, limit), blocks, outside)
        return None if count is None else replace(part, twice_target=2 * count, twice_slack=slack)
