"""Parts of a joint plan, one module per kind."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, cast

import numpy as np

from holdfast.theory.coins import (
    Coin,
    VerdictCoin,
    coin_profile,
    refusal_price,
    steepest_coin,
    verdict_coin,
)
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.means import DirectBars, direct_bars, search_profile, separated
from holdfast.theory.numerics import binomial_tail
from holdfast.theory.transcripts import HIGHEST_MASS, LOWEST_MASS, most_updates
from holdfast.theory.transfer import FailureClass

__all__ = [
    "LEAST_SHARE",
    "PART_KINDS",
    "DirectPart",
    "Left",
    "Part",
    "SearchPart",
    "VerdictPart",
    "VerdictPrices",
    "WeightsPart",
    "stored_coin",
    "stored_flat_coin",
    "stored_flat_price",
    "stored_prices",
    "verdict_left",
]


# Parts of a joint plan: what one protocol may do, with which coin, and what can go wrong.
#
# A part is plain numbers. From them and the plan's order it rebuilds its coin, measures what a
# look
# costs, and lists its failure classes (`holdfast.theory.transfer`). At run time two things are
# enforced: the budget that all parts share, and each part's own number of looks and refusals.


LEAST_SHARE = 0.01
"""The least share of fresh blocks that says anything of a guess: 1 in 100.

A convention, and the only one: nearly every guess has 1 fresh block in a million on either side of
it, so that certifying as little is no verdict. It decides words (`Verdict.verdict`), and what is
refused because no other word could come of it; no bound depends on it.
"""


@dataclass(frozen=True)
class Left:
    """What is left for one part, were all the rest of the budget spent on it."""

    questions: int
    looks: int
    refusals: int | None = None


@dataclass(frozen=True)
class VerdictPrices:
    """What one look costs in stability, by its verdict, rounded up."""

    no: float
    yes: float

    @property
    def worst(self) -> float:
        """The dearer of the two: what must be free before the coin is flipped."""
        return max(self.no, self.yes)


class Part(ABC):
    """One protocol's part in a plan."""

    kind: ClassVar[str]
    name: str
    protocol: str
    queries: int
    looks: int
    subblocks: int = 1
    """Sub-blocks whose exact median is one block's value; 1 where a block is not divided."""

    @abstractmethod
    def classes(self, order: float, blocks: int) -> tuple[FailureClass, ...]:
        """What can go wrong with looks, each with its share of β."""

    @abstractmethod
    def shares(self, blocks: int, /) -> tuple[float, ...]:
        """The shares of β that the part uses, those without a look included."""

    @abstractmethod
    def prices(self, order: float) -> VerdictPrices:
        """What a look costs at this order, measured on the coin as it is stored."""

    @abstractmethod
    def planned(self, order: float) -> float:
        """What the planned use of the part costs at most, in stability."""

    @abstractmethod
    def left(self, order: float, rest: Fraction, looks: int, refusals: int) -> Left:
        """What `rest` of the budget still buys, after so many looks and refusals of this part."""

    def still_possible(self, order: float, rest: Fraction, looks: int, refusals: int) -> str:
        """What `left` still buys, in words; empty if nothing can be asked."""
        left = self.left(order, rest, looks, refusals)
        return f"{self.name} ({left.questions:,})" if left.questions else ""

    @property
    def most_refusals(self) -> int | None:
        """How many looks may say No; None if that does not matter."""
        return None

    @abstractmethod
    def sound(self, order: float, budget: float, blocks: int) -> bool:
        """Whether what stands beside the classes fits; the classes are checked by the plan."""

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text."""
        return {"kind": self.kind, **asdict(cast(Any, self))}


# The part of searches: estimates, intervals, medians of block means.


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


# The part of direct means: one search over the sum, one look's price a question.


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


# The part of verification: guesses that are confirmed or refused.


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


# The part of private multiplicative weights: a public hypothesis guesses, looks verify.


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


PART_KINDS: dict[str, type[Part]] = {
    part.kind: part for part in (SearchPart, DirectPart, VerdictPart, WeightsPart)
}
