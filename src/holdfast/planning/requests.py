"""What a study wants of each protocol, one module per kind."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.planning.parts import DirectPart, Part, SearchPart, VerdictPart, WeightsPart
from holdfast.theory.coins import distance_of, reach_of
from holdfast.theory.divergence import Curve, RenyiCurve
from holdfast.theory.means import level_tail
from holdfast.theory.numerics import binomial_tail
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX
from holdfast.theory.transcripts import largest_mass
from holdfast.theory.transfer import decisive_mass, place_target

__all__ = [
    "FLOOR",
    "AmplifiedEstimates",
    "DirectMeans",
    "Estimates",
    "Guesses",
    "Intervals",
    "MedianMeans",
    "Request",
    "Setting",
    "SimpleEstimates",
    "WeightedEstimates",
    "share_from",
    "two_sided",
    "verdict_prices",
]


# Requests: what a study wants of each protocol. A joint plan is made for several of them.
#
# Each request knows how many blocks it would need at a given setting (roughly, for the search over
# settings), and makes the part that keeps its promise (exactly: it is then certified).


FLOOR = 1e-6  # chance, times looks over β, at which coins level off: it costs next to nothing


@dataclass(frozen=True)
class Setting:
    """Order and limit of the whole budget; what one request may use of it and of β."""

    order: float
    limit: float
    own: float
    failure: float

    @property
    def curve(self) -> Curve:
        return RenyiCurve(self.order, self.limit)

    def drift(self, tail: float, failure: float) -> float:
        """The share of blocks below which the sample proves nothing about a tail."""
        return decisive_mass(self.curve, tail, failure) / failure


class Request(ABC):
    """What a study wants of one protocol."""

    protocol: ClassVar[str]
    queries: int
    name: str
    subblocks: int = 1  # as in the part

    @property
    def key(self) -> str:
        """The name of its part: its own, or the protocol's."""
        return self.name or self.protocol

    def starts(self) -> tuple[tuple[float, ...], ...]:
        """Where to start the search for the request's own parameters."""
        return ((),)

    @property
    @abstractmethod
    def width(self) -> float:
        """How far apart the tails are: the size of the promise, for first guesses of settings."""

    def settings_start(self, failure: float) -> tuple[float, float]:
        """Order − 1 and budget near which good plans of this width have been found."""
        width, nats = max(self.width, 0.02), max(1.0, -math.log(failure) / 3)
        excess = (4 + 28 * (1 - width) / width) * nats
        return min(excess, 60.0), 0.8 * width**3

    @abstractmethod
    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        """The blocks that the setting needs, as a real number; infinite if none is enough."""

    @abstractmethod
    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> Part | None:
        """The part at this setting, certified or not; None if no target fits these blocks.

        `limit` is the budget of the whole plan once all its coins are measured.
        """


def share_from(logit: float) -> float:
    """A share of β between 0.2 % and 99.8 %."""
    return 1 / (1 + math.exp(-min(max(logit, -6.0), 6.0)))


def two_sided(
    setting: Setting, tails: tuple[float, float], shares: tuple[float, float], reaches: float
) -> float:
    """Blocks for two failure classes with the best target between them."""
    low, high = (setting.drift(t, f) for t, f in zip(tails, shares, strict=True))
    return reaches / (1 - low - high) if low + high < 1 else math.inf


# The request for verification: k guesses, at most ℓ refusals (thm `sv`).


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


# The request for means by the direct search: the half-width is the promise.


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


# Requests that searches answer: estimates, intervals, and medians of sub-blocks.


def _tail(value: object, high: float) -> float:
    return real_number("tail", value, 0, high, open_low=True, open_high=True)


@dataclass(frozen=True)
class Estimates(Request):
    """Questions answered by a search: v ∈ qi(tail_low, 1 − tail_high) for all of them at once."""

    protocol: ClassVar[str] = "estimate"

    queries: int
    grid: int = 32
    tail_low: float = 0.25
    tail_high: float = 0.25
    target: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX)
        whole_number("grid", self.grid, 2, 2**62)
        _tail(self.tail_low, 1)
        _tail(self.tail_high, 1)
        if self.tail_low + self.tail_high >= 1:
            received = (self.tail_low, 1 - self.tail_high)
            raise InvalidInput("tails", received, "an interval (a, b) with a < b")
        if self.target is not None and not self.tail_low < self.target < 1 - self.tail_high:
            allowed = f"between the tails, in ({self.tail_low:g}, {1 - self.tail_high:g})"
            raise InvalidInput("target", self.target, allowed)

    @property
    def looks(self) -> int:
        """Planned looks."""
        return self.queries * (self.grid - 1).bit_length()

    @property
    def width(self) -> float:
        if self.target is None:
            return 1 - self.tail_low - self.tail_high
        return 2 * min(self.target - self.tail_low, 1 - self.tail_high - self.target)

    @property
    def central(self) -> bool:
        """Equal tails about the median: one failure class."""
        return self.tail_low == self.tail_high and self.target in (None, 0.5)

    def starts(self) -> tuple[tuple[float, ...], ...]:
        return ((),) if self.central else ((0.0,),)

    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        price = (setting.order - 1) * setting.own / self.looks
        most = self.looks * setting.limit / setting.own

        def reach(failure: float) -> float:
            return reach_of(setting.order, price, price, most / failure)

        if self.central:
            drift = setting.drift(self.tail_low, setting.failure)
            return reach(setting.failure) / (0.5 - drift) if drift < 0.5 else math.inf
        share = share_from(own[0])
        low, high = setting.failure * share, setting.failure * (1 - share)
        if self.target is None:
            tails = (self.tail_low, self.tail_high)
            return two_sided(setting, tails, (low, high), reach(low) + reach(high))
        below = self.target - setting.drift(self.tail_low, low)
        above = 1 - self.target - setting.drift(self.tail_high, high)
        if min(below, above) <= 0:
            return math.inf
        return max(reach(low) / below, reach(high) / above)

    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> SearchPart | None:
        price = setting.own / self.looks
        most = self.looks * setting.limit / setting.own
        low = high = setting.failure
        if not self.central:
            low = setting.failure * share_from(own[0])
            high = (setting.failure - low) * (1 - 1e-15)
        shape = SearchPart(
            name=self.key,
            protocol=self.protocol,
            queries=self.queries,
            grid=self.grid,
            tail_low=self.tail_low,
            tail_high=self.tail_high,
            twice_target=blocks if self.central else 0,
            failure_low=low,
            failure_high=high,
            look_price=price,
            floor=FLOOR * min(low, high) / most,
            looks=self.looks,
        )
        if limit is None:
            return shape
        # The whole budget may go to this protocol: so many looks it buys, and no more.
        looks = max(self.looks, math.floor(limit / shape.prices(setting.order).worst))
        shape = replace(shape, looks=looks)
        if self.central:
            return shape
        below, above = shape.classes(setting.order, blocks)
        curve = RenyiCurve(setting.order, limit)
        count = place_target(curve, blocks, below, above, quantile=self.target)
        return None if count is None else replace(shape, twice_target=2 * count)


class _Searches(Request):
    """A request that searches keep for it: estimates under another name."""

    @property
    @abstractmethod
    def searches(self) -> Estimates:
        """The searches."""

    @property
    def width(self) -> float:
        return self.searches.width

    def starts(self) -> tuple[tuple[float, ...], ...]:
        return self.searches.starts()

    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        return self.searches.rough_blocks(setting, own)

    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> SearchPart | None:
        part = self.searches.part(setting, own, blocks, limit)
        return None if part is None else self._rename(part)

    @abstractmethod
    def _rename(self, part: SearchPart) -> SearchPart:
        """The same searches as a part of this protocol."""


@dataclass(frozen=True)
class Intervals(_Searches):
    """Two searches a question: [v_low, v_high] encloses the median of φ on fresh data.

    And it is no wider than qi(tail, 1 − tail): v_low has the tails (tail, 1/2), v_high the mirror.
    """

    protocol: ClassVar[str] = "interval"

    queries: int
    grid: int = 32
    tail: float = 0.25
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX // 2)
        whole_number("grid", self.grid, 2, 2**62)
        _tail(self.tail, 0.5)

    @property
    def searches(self) -> Estimates:
        return Estimates(2 * self.queries, self.grid, self.tail, 0.5)

    def _rename(self, part: SearchPart) -> SearchPart:
        return replace(
            part, name=self.key, protocol=self.protocol, queries=self.queries, mirrored=True
        )


@dataclass(frozen=True)
class AmplifiedEstimates(_Searches):
    """A search over exact medians of `subblocks` sub-blocks: the two-step version of `gen-simp`.

    The promise is about the estimator on one sub-block: if D[φ ≤ v] ≤ tail, the median of ℓ of them
    is ≤ v with probability at most P[Bin(ℓ, tail) ≥ ℓ/2], the tail that the search needs.
    """

    protocol: ClassVar[str] = "amplified"

    queries: int
    grid: int = 32
    tail: float = 0.25
    subblocks: int = 15
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX)
        whole_number("grid", self.grid, 2, 2**62)
        _tail(self.tail, 0.5)
        if whole_number("subblocks", self.subblocks, 1, 10**6) % 2 == 0:
            hint = "An even number is never better than the odd one before it."
            raise InvalidInput("subblocks", self.subblocks, "an odd number", hint)

    @property
    def searches(self) -> Estimates:
        amplified = binomial_tail(self.subblocks, self.tail, (self.subblocks + 1) // 2)
        return Estimates(self.queries, self.grid, amplified, amplified)

    def _rename(self, part: SearchPart) -> SearchPart:
        return replace(
            part,
            name=self.key,
            protocol=self.protocol,
            subblocks=self.subblocks,
            subblock_tail=self.tail,
        )


@dataclass(frozen=True)
class SimpleEstimates(_Searches):
    """Estimates with a tiny tail: interior points of a few blocks (thm `gen-simp`).

    For estimators so concentrated on a block that even qi(10⁻⁶, 1 − 10⁻⁶) is narrow.
    """

    protocol: ClassVar[str] = "simple"

    queries: int
    grid: int = 32
    tail: float = 1e-6
    name: str = ""

    def __post_init__(self) -> None:
        _ = self.searches  # checks all of it

    @property
    def searches(self) -> Estimates:
        return Estimates(self.queries, self.grid, self.tail, self.tail)

    def _rename(self, part: SearchPart) -> SearchPart:
        return replace(part, name=self.key, protocol=self.protocol)


@dataclass(frozen=True)
class MedianMeans(_Searches):
    """Means of a bounded function: the stable median of the blocks' means, with the kl bar."""

    protocol: ClassVar[str] = "mean"

    queries: int
    grid: int = 64
    tail: float = 0.01
    name: str = ""

    def __post_init__(self) -> None:
        _ = self.searches  # checks all of it

    @property
    def searches(self) -> Estimates:
        return Estimates(self.queries, self.grid, self.tail, self.tail)

    def _rename(self, part: SearchPart) -> SearchPart:
        return replace(part, name=self.key, protocol=self.protocol)


# The request for very many questions: multiplicative weights over a finite universe.


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
