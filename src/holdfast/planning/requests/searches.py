"""Requests that searches answer: estimates, intervals, and medians of sub-blocks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.planning.parts.searches import SearchPart
from holdfast.planning.requests.base import FLOOR, Request, Setting, share_from, two_sided
from holdfast.theory.coins import reach_of
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.numerics import binomial_tail
from holdfast.theory.sizing import QUERIES_MAX
from holdfast.theory.transfer import place_target

__all__ = ["AmplifiedEstimates", "Estimates", "Intervals", "MedianMeans", "SimpleEstimates"]


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
