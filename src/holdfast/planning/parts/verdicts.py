"""The part of verification: guesses that are confirmed or refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from holdfast.planning.parts.base import Left, Part, VerdictPrices
from holdfast.theory.coins import VerdictCoin, coin_profile, refusal_price, verdict_coin
from holdfast.theory.transfer import FailureClass

__all__ = ["VerdictPart", "stored_coin", "stored_prices", "verdict_left"]


@dataclass(frozen=True)
class VerdictPart(Part):
    """Guesses that are confirmed or refused, with at most `refusals` refusals (theory.md §6)."""

    kind: ClassVar[str] = "verdict"

    name: str
    protocol: str
    queries: int
    refusals: int
    sides: int
    tail_low: float
    tail_high: float
    twice_target: int
    failure_low: float
    failure_high: float
    no_price: float
    yes_price: float
    false_yes: float
    false_no: float
    looks: int

    def coin(self, order: float) -> VerdictCoin:
        """The coin of every look."""
        return stored_coin(order, self.no_price, self.yes_price, self.false_yes, self.false_no)

    def prices(self, order: float) -> VerdictPrices:
        key = (order, self.no_price, self.yes_price, self.false_yes, self.false_no)
        return stored_prices(*key)

    def planned(self, order: float) -> float:
        # k guesses and ℓ refusals: ℓ looks say No, and at most sides·k − ℓ say Yes.
        prices = self.prices(order)
        return self.refusals * prices.worst + (self.looks - self.refusals) * prices.yes

    @property
    def most_refusals(self) -> int | None:
        return self.refusals

    def left(self, order: float, rest: Fraction, looks: int, refusals: int) -> Left:
        prices = self.prices(order)
        return verdict_left(prices, self.sides, rest, self.looks - looks, self.refusals - refusals)

    def still_possible(self, order: float, rest: Fraction, looks: int, refusals: int) -> str:
        """Guesses or, where none is left, those about one side, which cost less."""
        both = super().still_possible(order, rest, looks, refusals)
        unused = self.looks - looks, self.refusals - refusals
        one_sided = verdict_left(self.prices(order), 1, rest, *unused).questions
        return both or (f"{self.name} of one side ({one_sided:,})" if one_sided else "")

    def shares(self, _: int, /) -> tuple[float, ...]:
        return (self.failure_low, self.failure_high)

    def classes(self, order: float, blocks: int) -> tuple[FailureClass, ...]:
        coin = self.coin(order)
        false_yes = FailureClass(
            f"{self.name}, false Yes",
            self.tail_low,
            self.twice_target,
            self.failure_low,
            coin_profile(coin.below, self.looks),
        )
        false_no = FailureClass(
            f"{self.name}, false No",
            math.nextafter(1 - self.tail_high, 1.0),
            2 * blocks - self.twice_target,
            self.failure_high,
            coin_profile(coin.above, self.looks),
        )
        return (false_yes, false_no)

    def sound(self, _order: float, _budget: float, _blocks: int) -> bool:
        counted = self.looks == self.sides * self.queries and self.sides in (1, 2)
        return counted and 1 <= self.refusals <= self.queries


def verdict_left(
    prices: VerdictPrices, sides: int, rest: Fraction, looks: int, refusals: int
) -> Left:
    """Guesses and refusals that `rest` buys, with so many looks and refusals not yet used."""
    yes, no = Fraction(prices.yes), Fraction(prices.no)
    # Every guess must be able to end in a No: that much is kept in hand.
    in_hand = (sides - 1) * yes + max(no, yes)
    if rest < in_hand or refusals < 1 or looks < sides:
        return Left(0, 0, 0)
    affordable = 1 + int((rest - in_hand) // ((sides - 1) * yes + no))
    bought = min(looks, sides + int((rest - in_hand) // yes))
    return Left(bought // sides, bought, min(refusals, affordable, looks - sides + 1))


@lru_cache(maxsize=32)
def stored_coin(
    order: float, no: float, yes: float, false_yes: float, false_no: float
) -> VerdictCoin:
    """The verdict coin of these numbers, remembered."""
    return verdict_coin(order, no, yes, false_yes, false_no)


@lru_cache(maxsize=32)
def stored_prices(
    order: float, no: float, yes: float, false_yes: float, false_no: float
) -> VerdictPrices:
    """A Yes at its aimed price, a No at the smallest price that then covers every half step."""
    coin = stored_coin(order, no, yes, false_yes, false_no)
    refusal = refusal_price(coin, order, yes)
    rounding = (1 + 1e-15) / (order - 1)
    return VerdictPrices(refusal * rounding, yes * rounding)
