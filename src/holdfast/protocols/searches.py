"""Searches: any estimator, answered by a search (thm `adaptive-iqr`, `intro-iqr`, `intro-var`).

Every question has its own grid and pays ⌈log₂ r⌉ looks, more than planned if its grid is larger.
The promise, for all answers at once: D[φ ≤ v] > tail_low and D[φ ≥ v] > tail_high.

Estimate    the search
Simple      planned for a tiny tail (thm `gen-simp`, `adaptive-simple-general`): an estimator that
            is well concentrated on a block has a narrow qi(ρ, 1 − ρ) even then, and an interior
            point of the sample is enough: a few dozen blocks
Amplified   two steps for any estimator: the exact median of ℓ sub-blocks is well concentrated
            (lem `amp-med`), and the stable median of the blocks does the rest
Interval    two searches, aimed at c and at m − c. For all questions at once: D[φ < v_low] < 1/2 and
            D[φ > v_high] < 1/2, so that every median of φ lies in [v_low, v_high]; and both ends
            lie in qi(tail, 1 − tail), φ projected onto the grid. Proof: theory/budget.md
Near        is the answer within a tolerance of this guess? For plans without guesses of their own:
            a search on three points, less, within and more
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from types import NoneType
from typing import ClassVar

import numpy as np

from holdfast.errors import Exhausted, InvalidInput, real_number, whole_number
from holdfast.grids import Grid
from holdfast.mechanisms.looks import Counts, search_counts
from holdfast.protocols.answers import (
    LEAST_SHARE,
    Answer,
    Result,
    Verdict,
    interval_promise,
    lies_between,
    near_promise,
    quantiles,
)
from holdfast.protocols.base import (
    Drawn,
    Lesson,
    P,
    Paid,
    Protocol,
    Question,
    Reserve,
    Steps,
    Values,
    Verb,
    block_floats,
    index_in,
    one_per_block,
)
from holdfast.protocols.plans import (
    FLOOR,
    Charge,
    JointPlan,
    Left,
    LookPart,
    Request,
    SetPlan,
    Setting,
    Use,
    VerdictPrices,
    Wanted,
    exactly,
    share_from,
    two_sided,
)
from holdfast.randomness import Entropy
from holdfast.theory.coins import Coin, coin_profile, reach_of, steepest_coin
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.numerics import binomial_tail
from holdfast.theory.sizing import QUERIES_MAX
from holdfast.theory.transfer import FailureClass, place_target

__all__ = [
    "Amplified",
    "AmplifiedEstimates",
    "Estimate",
    "Estimates",
    "Interval",
    "Intervals",
    "Near",
    "SearchPart",
    "SearchProtocol",
    "SearchRequest",
    "Simple",
    "SimpleEstimates",
    "stored_flat_coin",
    "stored_flat_price",
]


@dataclass(frozen=True)
class SearchPart(LookPart):
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
    def tells(self) -> bool:
        return min(self.tail_low, self.tail_high) >= LEAST_SHARE

    @property
    def looks_per_query(self) -> int:
        """⌈log₂ r⌉ on the planned grid, twice that for an interval."""
        return (self.grid - 1).bit_length() * (2 if self.mirrored else 1)

    def words(self) -> tuple[str, str]:
        asked = f"{self.queries:,} questions on a grid of {self.grid:,} points"
        return f"{asked} ({self.looks_per_query} looks each)", self._promised()

    def _promised(self) -> str:
        if self.mirrored:
            inside = f"lies {quantiles(self.tail_low, self.tail_low)}"
            return f"The interval encloses the estimator's median over fresh blocks, and {inside}."
        if self.protocol == "amplified":
            inside = quantiles(self.subblock_tail, self.subblock_tail)
            parts = f"one sub-block of {self.subblocks:,}"
            return f"The answer lies {inside} of the estimator on {parts}."
        if self.protocol == "mean":
            inside = quantiles(self.tail_low, self.tail_high)
            return f"The block mean lies {inside}; without a filter the mean lies in the error bar."
        return lies_between(self.tail_low, self.tail_high)

    @property
    def least_tail(self) -> float:
        return self.subblock_tail if self.subblocks > 1 else min(self.tail_low, self.tail_high)

    def preview(self, plan: SetPlan, units: int) -> tuple[float | None, str]:
        if self.mirrored:
            return None, "between two values that enclose the median of all blocks' values"
        return super().preview(plan, units)

    def on_grid(self, order: float, size: int) -> Charge:
        looks = (size - 1).bit_length() * (2 if self.mirrored else 1)
        price = stored_flat_price(order, self.look_price, self.floor)
        return Charge(self.name, looks * exactly(price), looks)

    def coin(self, order: float) -> Coin:
        """The coin of every look."""
        return stored_flat_coin(order, self.look_price, self.floor)

    def prices(self, order: float) -> VerdictPrices:
        price = stored_flat_price(order, self.look_price, self.floor)
        return VerdictPrices(price, price)

    def planned(self, order: float) -> float:
        return self.queries * self.looks_per_query * self.prices(order).worst

    def left(self, order: float, rest: Fraction, use: Use) -> Left:
        bought = min(self.looks - use.looks, rest // Fraction(self.prices(order).worst))
        return Left(bought // self.looks_per_query, bought)

    def still_possible(self, order: float, rest: Fraction, use: Use) -> str:
        """Questions on the planned grid or, where none is left, what the last looks buy."""
        left = self.left(order, rest, use)
        if left.questions:
            return super().still_possible(order, rest, use)
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


class SearchRequest(Request):
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
class Intervals(SearchRequest):
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
class AmplifiedEstimates(SearchRequest):
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
class SimpleEstimates(SearchRequest):
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


class LookProtocol(Protocol[P]):
    """A protocol that answers by looks: its plan has an order, at which looks have prices."""

    plan: JointPlan

    @cached_property
    def no(self) -> Fraction:
        """What a look costs that says No."""
        return exactly(self.part.prices(self.plan.order).no)  # type: ignore[attr-defined]

    @cached_property
    def yes(self) -> Fraction:
        """What a look costs that says Yes."""
        return exactly(self.part.prices(self.plan.order).yes)  # type: ignore[attr-defined]


class SearchProtocol(LookProtocol[SearchPart]):
    """Searches with the part's coin: what estimates, intervals and their kin have in common."""

    part_type = SearchPart

    def worst(self, question: Question) -> tuple[Charge, ...]:
        grid = self.grid(question)
        assert grid is not None
        return (self.part.on_grid(self.plan.order, grid.size),)

    def _search(
        self, count_at: Callable[[int], int], size: int, target: int, entropy: Entropy
    ) -> int:
        coin = self.part.coin(self.plan.order)
        with np.errstate(all="ignore"):  # whatever the caller's settings are
            return search_counts(count_at, size, target, coin, entropy)


class Estimate(SearchProtocol):
    """Questions answered by a search.

    >>> from holdfast.grids import grid
    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols import BlockArray, Estimates, MemoryHoldout
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(Estimates(20, grid=51, tail_low=0.05, tail_high=0.05))
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> answer = holdout.ask(np.mean, grid(0, 1, step=0.02))
    >>> answer.value, answer.tail, answer.certified  # a seed is foreseeable: no certificate
    (0.4, 0.05, False)
    """

    verb: ClassVar[Verb] = "ask"
    of = ("estimate",)
    says = "estimate"
    mixes: ClassVar = {
        "estimate": Wanted(
            lambda mix, k, *_: Estimates(k, mix.grid, mix.tail_or(0.25), mix.tail_or(0.25)),
            own=False,
        )
    }

    def ask(self, question: Question, entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        (worst,) = self.worst(question)
        yield Reserve(worst)
        return {"index": self.index(question, (yield Values()), entropy)}

    def index(self, question: Question, values: object, entropy: Entropy) -> int:
        """The index of the answer's point; what it takes has been reserved."""
        count_at = self._count_at(values, question.points)
        return self._search(count_at, question.points.size, self.part.twice_target, entropy)

    def _count_at(self, values: object, grid: Grid) -> Callable[[int], int]:
        """How many blocks' values are projected onto a point of the grid or a lower one."""
        with np.errstate(all="ignore"):
            counts = Counts(values, grid)
        one_per_block(counts.array, self.plan.blocks)
        return counts.at_most

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        tails = self.part.tail_low, self.part.tail_high
        return self._on_grid(question, drawn, tails, paid, question.shape)


class Simple(Estimate):
    """Questions about well-concentrated estimators."""

    of = ("simple",)
    says = "simple"
    mixes: ClassVar = {"simple": Wanted(lambda mix, k, *_: SimpleEstimates(k, mix.grid), own=False)}

    @property
    def outside(self) -> float:
        """A bound on the chance that any answer is no interior point of the blocks' values.

        An answer outside takes a look that errs by the whole distance from 0 (or m) to the target.
        """
        blocks, twice = self.plan.blocks, self.part.twice_target
        distance = np.array([min(twice, 2 * blocks - twice)])
        error = self.part.coin(self.plan.order).error(distance)
        return min(1.0, float(error[0]) * self.part.looks)


class Amplified(Estimate):
    """Questions about the estimator on a sub-block; the source's blocks are the sub-blocks.

    ℓ sub-blocks that follow each other make one block, and its value is their exact median.
    """

    of = ("amplified",)
    says = "amplified"
    mixes: ClassVar = {
        "amplified": Wanted(lambda mix, k, *_: AmplifiedEstimates(k, mix.grid, mix.tail_or(0.25)))
    }

    def _count_at(self, values: object, grid: Grid) -> Callable[[int], int]:
        blocks, each = self.plan.blocks, self.part.subblocks
        indices = one_per_block(grid.ceiling(values), blocks * each).reshape(blocks, each)
        medians = np.partition(indices, each // 2, axis=1)[:, each // 2]
        return lambda index: int(np.count_nonzero(medians <= index))

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        tails = self.part.subblock_tail, self.part.subblock_tail
        return self._on_grid(question, drawn, tails, paid, question.shape)


class Interval(Estimate):
    """Questions answered by an interval.

    Values are projected upwards: the low end is the lower edge of its grid cell. An end at an end
    of the grid is no bound, and None. `value` is the interval's middle.
    """

    verb = "interval"
    of = ("interval",)
    says = "interval"
    mixes: ClassVar = {
        "interval": Wanted(lambda mix, k, *_: Intervals(k, mix.grid, mix.tail_or(0.25)), own=False)
    }

    def ask(self, question: Question, entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        (worst,) = self.worst(question)
        yield Reserve(worst)
        grid, target = question.points, self.part.twice_target
        count_at = self._count_at((yield Values()), grid)
        first = self._search(count_at, grid.size, target, entropy)
        last = self._search(count_at, grid.size, 2 * self.plan.blocks - target, entropy)
        # Where all promises hold they are in order; where they are not, both ends are kept.
        return {"first": min(first, last), "last": max(first, last)}

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        assert drawn is not None
        grid, tail = question.points, self.part.tail_low
        first, last = index_in(grid, drawn["first"]), index_in(grid, drawn["last"])
        if first > last:
            raise ValueError("the ends of an interval are in order")
        low, high = grid.cell(first)[0], grid.cell(last)[1]
        value = grid.point(first) / 2 + grid.point(last) / 2
        promise = interval_promise(tail, self.units, low, high)
        at_end = first == 0 or last == grid.size - 1
        return self._answer(
            question, value, (low, high), (tail, tail), promise, paid, at_grid_end=at_end
        )


_POINTS = 3  # of the grid that a guess and its tolerance are


class Near(SearchProtocol):
    """Guesses that stand or are refused within a tolerance.

    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols import BlockArray, Estimates, MemoryHoldout
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(Estimates(20, grid=51, tail_low=0.05, tail_high=0.05))
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> [holdout.verify(np.mean, guess, tolerance=0.05).verdict for guess in (0.4, 0.5, 0.3)]
    ['compatible', 'cannot tell', 'cannot tell']
    """

    verb = "verify"
    of = ("estimate", "simple")
    says = "verify"
    on_grid = False
    by_tolerance = True

    def admit(self, question: Question) -> None:
        if question.claim not in (None, "equals"):
            hint = "Only a plan with a part for guesses can be asked for one side."
            raise InvalidInput("claim", question.claim, "'equals' for this plan", hint)

    def worst(self, _question: Question) -> tuple[Charge, ...]:
        return (self.part.on_grid(self.plan.order, _POINTS),)

    def ask(self, question: Question, entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        """The verdict on a guess. Exhaustion is a verdict too, free and final."""
        (worst,) = self.worst(question)
        try:
            yield Reserve(worst)
        except Exhausted:
            return None
        values = block_floats((yield Values()), self.plan.blocks)
        assert question.guess is not None
        low = high = question.guess
        if question.tolerance:
            low = math.nextafter(low - question.tolerance, -math.inf)
            high = math.nextafter(high + question.tolerance, math.inf)
        place = (values >= low).astype(np.int64) + (values > high)
        target = self.part.twice_target
        found = self._search(
            lambda index: int(np.count_nonzero(place <= index)), _POINTS, target, entropy
        )
        return {"refused": found != 1}

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Result:
        refused = None if drawn is None else drawn["refused"]
        if type(refused) not in (bool, NoneType):
            raise ValueError(f"neither refused nor not: {refused!r}")
        tails = self.part.tail_low, self.part.tail_high
        guess, tolerance = float(question.guess or 0.0), float(question.tolerance or 0.0)
        return Verdict(
            protocol=self.says,
            guess=guess,
            claim="equals",
            tolerance=tolerance,
            refused=refused,
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.confidence,
            promise=near_promise(refused, guess, tolerance, *tails, self.units),
            price=paid.price(),
            budget_left=paid.left,
            refusals_left=None,
            certified=self.certified,
            block_units=self.units,
            reading=question.about.get("reading"),
        )
