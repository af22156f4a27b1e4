"""Plans for scores: as many means as wanted with the narrowest bars that the rows allow."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from holdfast.errors import Infeasible, whole_number
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts import DirectPart
from holdfast.theory.means import best_direct, narrowest_direct
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX

__all__ = ["score_plan"]

_WANTED = 0.25  # the half-width that a refusal says the rows for


def score_plan(queries: int, rows: int, confidence: float = 0.95) -> JointPlan:
    """So many means of terms between 0 and 1, such as accuracies, by a search over their sum.

    Every row is a block, and every row is used. The half-width is about the smallest that so many
    rows allow. Where even the bars of the lowest and the highest answer overlap no two answers
    could exclude each other, whatever the data: such a plan says nothing, and is refused.

    >>> plan = score_plan(20, 2_000)
    >>> plan.blocks, round(plan.part("mean").half_width, 2)
    (2000, 0.16)
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    rows = whole_number("rows", rows, 1, BLOCKS_MAX)
    plan = _narrowest(queries, rows, confidence)
    (part,) = plan.parts
    assert isinstance(part, DirectPart)
    bars = part.bars(plan.order, plan.budget, plan.blocks)
    if bars.high[0] < bars.low[-1]:
        return plan
    wanted = best_direct(queries, _WANTED, confidence, exact=False).blocks
    raise Infeasible(
        "The bars would say nothing",
        "a lowest and a highest answer that exclude each other",
        f"with {rows:,} row(s) and {queries:,} question(s) their bars would be "
        f"[0, {bars.high[0]:.3f}] and [{bars.low[-1]:.3f}, 1]",
        f"Ask fewer questions, or seal more rows: about {wanted:,} give bars of ±{_WANTED:g}.",
    )


def _narrowest(queries: int, rows: int, confidence: float) -> JointPlan:
    """The plan of `narrowest_direct`, on one budget of its own."""
    made = narrowest_direct(queries, rows, confidence, exact=False)
    part = DirectPart(
        name="mean",
        protocol="mean",
        queries=queries,
        half_width=0.5,
        apart=made.coin.halfsteps.size - 1,
        slope=1.0,
        # The share is added up without rounding, and 0.05 is stored as a little more than 1/20.
        failure=math.nextafter(float(1 - Fraction(repr(float(confidence)))), 0.0),
        look_price=made.price,
        floor=made.floor,
        exact=made.exact,
        looks=queries,
    )
    limit = part.planned(made.order) * (1 + 1e-12)
    part = part.at_best_slope(made.order, limit, rows)
    part = replace(part, half_width=part.bars(made.order, limit, rows).half_width)
    return JointPlan(rows, made.order, limit, confidence, (part,))
