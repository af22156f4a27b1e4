"""Plans for scores: as many means as wanted with the narrowest bars that the rows allow."""

from __future__ import annotations

import math

from holdfast.arguments import whole_number
from holdfast.errors import Infeasible
from holdfast.planning.joint import JointPlan
from holdfast.planning.joint_search import joint_plan
from holdfast.planning.requests import DirectMeans
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX

__all__ = ["score_plan"]

_WIDEST = 0.499
_STEPS = 12
_CLOSE = 0.995  # of the rows: near enough


def score_plan(queries: int, rows: int, confidence: float = 0.95) -> JointPlan:
    """So many means of terms between 0 and 1, such as accuracies, by a search over their sum.

    Every row is a block. The half-width is the smallest that so many rows allow, within 1 %.

    >>> plan = score_plan(20, 2_000)
    >>> plan.blocks, round(plan.part("mean").half_width, 2)
    (2000, 0.16)
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    rows = whole_number("rows", rows, 1, BLOCKS_MAX)
    best: JointPlan | None = None
    low, width = 0.0, min(_WIDEST, 4.0 * math.sqrt(math.log(queries + 2) / rows))
    high = _WIDEST
    for _ in range(_STEPS):
        needed = joint_plan(DirectMeans(queries, width), confidence=confidence).blocks
        if needed <= rows:
            request, high = DirectMeans(queries, width), width
            best = joint_plan(request, confidence=confidence, blocks=rows)
            if needed >= _CLOSE * rows:
                break
        else:
            low = width
        if low >= high or (needed > rows and width >= _WIDEST):
            break
        # Blocks fall with the square of the width: that hits in a few steps, or bisection does.
        aim = width * math.sqrt(needed / rows) * 1.0005
        width = aim if low < aim < high else (low + high) / 2
    if best is None:
        remedy = "Ask fewer questions, or seal more rows."
        raise Infeasible("Scores", "more rows", f"{rows:,} are too few for {queries:,}", remedy)
    return best
