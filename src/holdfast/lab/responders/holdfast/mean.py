"""Means: the direct search over the sum of all rows, and the median of the means of blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from numpy.typing import NDArray

from holdfast.errors import Exhausted, Infeasible
from holdfast.lab.conversation import FloatArray, Replies, Terms
from holdfast.lab.protocol_attacks.plans import KeptPlan
from holdfast.lab.responders.holdfast.base import SPARE, Asked, confidence_of, points_for, units_for
from holdfast.lab.responders.holdfast.claims import NOTHING, Told, as_replies, of_answer
from holdfast.lab.responders.holdfast.rows import Rows
from holdfast.lab.responders.holdfast.searches import HoldfastEstimate
from holdfast.lab.responders.translate import MeanResponder, looks_of
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.parts import DirectPart
from holdfast.planning.requests import MedianMeans
from holdfast.protocols.budget import Budget
from holdfast.protocols.means import DirectMean, MedianMean
from holdfast.theory.means import best_direct, narrowest_direct

__all__ = ["HoldfastMean", "HoldfastMedianMean", "narrowest_means"]


@lru_cache(maxsize=64)
def narrowest_means(queries: int, rows: int, failure: float) -> KeptPlan:
    """The plan whose bars are the narrowest that so many rows allow; it proves itself.

    >>> plan = narrowest_means(queries=20, rows=1_000, failure=0.05)
    >>> plan.blocks, round(plan.part("mean").half_width, 2)
    (1000, 0.22)
    """
    confidence = confidence_of(failure)
    found = narrowest_direct(queries, rows, confidence, exact=False)
    part = DirectPart(
        name="mean",
        protocol="mean",
        queries=queries,
        half_width=0.5,
        apart=found.coin.halfsteps.size - 1,
        slope=found.slope or 0.0,
        # The shares are added up without rounding, and 0.05 is stored as a little more than 1/20.
        failure=math.nextafter(failure, 0.0),
        look_price=found.price,
        floor=found.floor,
        exact=False,
        looks=queries,
    )
    budget = part.planned(found.order) * (1 + 1e-12)
    width = part.bars(found.order, budget, rows).half_width
    plan = JointPlan(rows, found.order, budget, confidence, (replace(part, half_width=width),))
    if not plan.verify():
        remedy = "Ask fewer questions, or bring more rows."
        raise Infeasible("Means", "a plan that proves itself", f"{rows:,} rows", remedy)
    return KeptPlan.of(plan)


class HoldfastMean(MeanResponder):
    """The protocol `mean` with the narrowest bars that the rows allow.

    Medians are searched for by means, as `MeanResponder` does; the plan then covers all of those.
    """

    name: ClassVar[str] = "holdfast-mean"
    certified: ClassVar[bool] = True

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.protocol: DirectMean | MedianMean | None = None  # from the first question on

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        if self.protocol is None:
            self.protocol = self._open(self._terms.queries)
        return as_replies([self._told(self.protocol, line) for line in values])

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        if self.protocol is None:
            self.protocol = self._open(self._terms.queries * looks_of(points) + SPARE)
        return super().medians(values, points)

    def _told(self, protocol: DirectMean | MedianMean, line: NDArray[Any]) -> Told:
        try:
            return of_answer(protocol.ask(line), mean=True)
        except Exhausted:
            return NOTHING

    def _open(self, queries: int) -> DirectMean | MedianMean:
        terms = self._terms
        plan = narrowest_means(queries, terms.rows, terms.failure)
        part = plan.part("mean")
        assert isinstance(part, DirectPart)
        if terms.half_width is not None and part.half_width > terms.half_width:
            raise _too_wide(queries, terms, part.half_width)
        return DirectMean(Budget(plan), Rows(terms.rows), terms.entropy)


class HoldfastMedianMean(HoldfastMean):
    """The protocol `mean` the other way: the stable median of the means of few large blocks."""

    name: ClassVar[str] = "holdfast-median-mean"

    def _open(self, queries: int) -> MedianMean:
        terms = self._terms
        points, tail = points_for(terms.rows), HoldfastEstimate.mean_tail
        asked = Asked(queries, points, tail, terms.failure)
        plan = _median_plan(asked)
        units = units_for(terms, asked, plan.blocks)
        return MedianMean(Budget(plan), Rows(plan.blocks, units), terms.entropy)


@lru_cache(maxsize=64)
def _median_plan(asked: Asked) -> KeptPlan:
    request = MedianMeans(asked.queries, asked.points, asked.tail)
    return KeptPlan.of(joint_plan(request, confidence=asked.confidence))


def _too_wide(queries: int, terms: Terms, found: float) -> Infeasible:
    assert terms.half_width is not None
    confidence = confidence_of(terms.failure)
    rows = best_direct(queries, terms.half_width, confidence, exact=False).blocks
    given = f"{terms.rows:,} give a half-width of {found:.3g}"
    remedy = "Ask fewer questions, accept a wider claim, or bring more rows."
    return Infeasible("Not enough rows", f"{rows:,} rows", given, remedy)
