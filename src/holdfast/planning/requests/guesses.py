"""The request for verification: k guesses, at most ℓ refusals (thm `sv`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.planning.parts.verdicts import VerdictPart
from holdfast.planning.requests.base import FLOOR, Request, Setting, share_from, two_sided
from holdfast.theory.coins import reach_of
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.sizing import QUERIES_MAX
from holdfast.theory.transfer import place_target

__all__ = ["Guesses", "verdict_prices"]


def verdict_prices(spend: float, noes: int, looks: int, ratio: float) -> tuple[float, float]:
    """A and B with A/B = ratio, so that `noes` of `looks` looks say No for `spend` together."""
    yes = spend / (looks + noes * (ratio - 1))
    return yes * ratio, yes


@dataclass(frozen=True)
class Guesses(Request):
    """Guesses to verify. For all of them at once:

    D[φ ≤ v] and D[φ ≥ v] both ≥ tail_high ⇒ Yes;   one of them ≤ tail_low ⇒ No;   after
    `refusals` refusals, exhausted. With `sides` = 1 only one of the two is asked about.
    """

    protocol: ClassVar[str] = "verify"

    queries: int
    refusals: int
    tail_low: float = 0.05
    tail_high: float = 0.25
    sides: int = 2
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX // 2)
        whole_number("refusals", self.refusals, 1, self.queries, hint="A guess is refused once.")
        whole_number("sides", self.sides, 1, 2)
        real_number("tail_low", self.tail_low, 0, 1, open_low=True, open_high=True)
        most = 1.0 if self.sides == 1 else 0.5
        real_number("tail_high", self.tail_high, 0, most, open_low=True, open_high=True)
        if self.tail_low >= self.tail_high:
            hint = "Between them a verdict may go either way."
            received = (self.tail_low, self.tail_high)
            raise InvalidInput("tails", received, "tail_low below tail_high", hint)

    @property
    def looks(self) -> int:
        """Most looks."""
        return self.sides * self.queries

    @property
    def width(self) -> float:
        return self.tail_high - self.tail_low

    def starts(self) -> tuple[tuple[float, ...], ...]:
        balanced = math.log(max(2.0, self.looks / self.refusals))
        return ((balanced, 0.0), (-7.0, 0.0))  # two prices, and nearly flat

    def _own(self, setting: Setting, own: Sequence[float]) -> tuple[float, float, float, float]:
        """Prices of No and Yes, and the two shares of β."""
        ratio = 1 + math.exp(min(own[0], 30.0))
        if own[0] < -6.0:
            ratio = 1.0  # flat: every look costs the same
        spend = (setting.order - 1) * setting.own
        no, yes = verdict_prices(spend, self.refusals, self.looks, ratio)
        low = setting.failure * share_from(own[1])
        return no, yes, low, (setting.failure - low) * (1 - 1e-15)

    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        no, yes, low, high = self._own(setting, own)
        reach = reach_of(setting.order, yes, no, self.looks / low)
        reach += reach_of(setting.order, no, yes, self.looks / high)
        return two_sided(setting, (self.tail_low, 1 - self.tail_high), (low, high), reach)

    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> VerdictPart | None:
        no, yes, low, high = self._own(setting, own)
        part = VerdictPart(
            name=self.key,
            protocol=self.protocol,
            queries=self.queries,
            refusals=self.refusals,
            sides=self.sides,
            tail_low=self.tail_low,
            tail_high=self.tail_high,
            twice_target=blocks,
            failure_low=low,
            failure_high=high,
            no_price=no,
            yes_price=yes,
            false_yes=FLOOR * low / self.looks,
            false_no=FLOOR * high / self.looks,
            looks=self.looks,
        )
        if limit is None:
            return part
        false_yes, false_no = part.classes(setting.order, blocks)
        curve = RenyiCurve(setting.order, limit)
        count = place_target(curve, blocks, false_yes, false_no)
        return None if count is None else replace(part, twice_target=2 * count)
