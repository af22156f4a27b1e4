"""Responders that search with looks: estimate, simple, amplified, interval, near."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar

from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.lab.responders.holdfast.base import SPARE, Asked, BlockResponder, Desk
from holdfast.lab.responders.holdfast.claims import NOTHING, Told, mean_claim, of_answer, rank_claim
from holdfast.lab.responders.holdfast.rows import Rows
from holdfast.lab.responders.translate import looks_of
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.parts import SearchPart
from holdfast.planning.requests import (
    AmplifiedEstimates,
    Estimates,
    Intervals,
    Request,
    SimpleEstimates,
)
from holdfast.planning.shapes import BoundedMean
from holdfast.protocols.budget import Budget
from holdfast.protocols.searches import Amplified, Estimate, Interval, Near, Simple
from holdfast.randomness import Entropy

__all__ = [
    "HoldfastAmplified",
    "HoldfastEstimate",
    "HoldfastInterval",
    "HoldfastNear",
    "HoldfastSimple",
]


def _questions(asked: Asked) -> int:
    """Questions of the planned grid whose looks are those planned, and the spare ones."""
    return asked.queries + math.ceil(SPARE / looks_of(asked.points))


class HoldfastEstimate(BlockResponder[Estimate]):
    """A search for every question: the median, or the median of the means of blocks."""

    name: ClassVar[str] = "holdfast-estimate"
    mean_tail: ClassVar[float] = 1e-10
    protocol: ClassVar[type[Estimate]] = Estimate

    @classmethod
    def request(cls, asked: Asked) -> Request:
        """What is planned for."""
        return Estimates(_questions(asked), asked.points, asked.tail, asked.tail)

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        return joint_plan(cls.request(asked), confidence=asked.confidence, blocks=blocks)

    def open(self, plan: JointPlan, source: Rows, entropy: Entropy) -> Estimate:
        return self.protocol(Budget(plan), source, entropy)

    def tell(self, desk: Desk[Estimate], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del guess
        return of_answer(desk.protocol.ask(line, grid, shape=desk.shape), mean=desk.mean)


class HoldfastSimple(HoldfastEstimate):
    """The same with a tiny tail, for a few dozen blocks."""

    name: ClassVar[str] = "holdfast-simple"
    mean_tail: ClassVar[float] = SimpleEstimates.tail
    tails: ClassVar[tuple[float, ...]] = (1e-3, 1e-4, 1e-6)
    protocol: ClassVar[type[Estimate]] = Simple

    @classmethod
    def request(cls, asked: Asked) -> Request:
        return SimpleEstimates(_questions(asked), asked.points, asked.tail)


class HoldfastAmplified(HoldfastEstimate):
    """A search over exact medians of a few sub-blocks: what is promised is of a sub-block."""

    name: ClassVar[str] = "holdfast-amplified"
    mean_tail: ClassVar[float] = 1e-4
    protocol: ClassVar[type[Estimate]] = Amplified

    @classmethod
    def request(cls, asked: Asked) -> Request:
        # Few sub-blocks for a small tail, more where a tail near 1/2 has to be made small.
        subblocks = 3 if asked.tail < 0.03 else 5 if asked.tail < 0.15 else 15
        return AmplifiedEstimates(_questions(asked), asked.points, asked.tail, subblocks)

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        request = cls.request(asked)
        assert isinstance(request, AmplifiedEstimates)
        whole = None if blocks is None else blocks // request.subblocks
        return joint_plan(request, confidence=asked.confidence, blocks=whole)

    @classmethod
    def blocks_of(cls, plan: JointPlan) -> int:
        part = plan.part("amplified")
        assert isinstance(part, SearchPart)
        return plan.blocks * part.subblocks


class HoldfastInterval(BlockResponder[Interval]):
    """Two searches a question, which enclose the median on fresh data.

    A mean's claim: D[φ ≤ high] and D[φ ≥ low] are both above 1/2, and Chernoff's bound does the
    rest. A median's answer is the middle of the interval, whose ends have both their tails.
    """

    name: ClassVar[str] = "holdfast-interval"
    mean_tail: ClassVar[float] = 0.01

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        request = Intervals(_questions(asked), asked.points, asked.tail)
        return joint_plan(request, confidence=asked.confidence, blocks=blocks)

    def open(self, plan: JointPlan, source: Rows, entropy: Entropy) -> Interval:
        return Interval(Budget(plan), source, entropy)

    def tell(self, desk: Desk[Interval], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del guess
        answer = desk.protocol.ask(line, grid)
        if desk.mean:
            return (answer.value, *mean_claim(answer.low, answer.high, desk.units, 0.5, 0.5))
        middle = math.floor(answer.value)  # between the ends, and on the grid
        return (middle, *rank_claim(answer.tail_low, answer.tail_high))


class HoldfastNear(BlockResponder[Near]):
    """Guesses confirmed within a tolerance, by a plan for estimates; refused, there is no value.

    Of a mean the tolerance is what a quarter of all blocks may be off; of a median it is 0.
    """

    name: ClassVar[str] = "holdfast-near"
    mean_tail: ClassVar[float] = 0.01

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        # A guess takes two looks, whatever the grid: a search of three points.
        request = Estimates(asked.queries, 3, asked.tail, asked.tail)
        return joint_plan(request, confidence=asked.confidence, blocks=blocks)

    def open(self, plan: JointPlan, source: Rows, entropy: Entropy) -> Near:
        return Near(Budget(plan), source, entropy, name="estimate")

    def tell(self, desk: Desk[Near], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del grid
        shape = desk.shape
        tolerance = 0.0 if shape is None else _tolerance(desk.units)
        verdict = desk.protocol.ask(line, guess, tolerance=tolerance)
        if verdict.refused is not False:
            return NOTHING
        tails = verdict.tail_low, verdict.tail_high
        if shape is None:
            return (guess, *rank_claim(*tails))
        first, last = (math.nextafter(guess + s * tolerance, s * math.inf) for s in (-1, 1))
        return (guess, *mean_claim(first, last, desk.units, *tails))


@lru_cache(maxsize=64)
def _tolerance(units: int) -> float:
    return BoundedMean().error(units, 0.25)
