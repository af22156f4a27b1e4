"""The plan for means: the fewest rows that give every mean the wanted half-width.

Two ways, and the cheaper one is taken: the median of block means with the kl bar (few large
blocks), and the direct search over the sum (rows as blocks). Fresh rows for every question are a
third, for very few questions.
"""

from __future__ import annotations

import math
from fractions import Fraction

from holdfast.errors import real_number
from holdfast.planning.alternatives import Alternative
from holdfast.planning.joint import joint_from
from holdfast.planning.joint_search import joint_plan
from holdfast.planning.kept import KeptPlan
from holdfast.planning.proposals.base import Proposal, paper_estimation
from holdfast.planning.requests.means import DirectMeans
from holdfast.planning.solve import plan
from holdfast.planning.splits import split_plan
from holdfast.theory.bars import units_for_half_width

__all__ = ["propose_mean"]


def propose_mean(queries: int, half_width: float = 0.1, confidence: float = 0.95) -> Proposal:
    """Means of functions with values in [0, 1], each within `half_width`, with the fewest rows.

    >>> made = propose_mean(100, half_width=0.1)
    >>> made.method, made.predicted["rows"] < 29_204
    ('direct search', True)
    """
    half_width = real_number("half_width", half_width, 0, 0.5, open_low=True, open_high=True)
    core = plan(queries=queries, error=half_width, confidence=confidence)
    assert core.block_size is not None
    direct = joint_plan(DirectMeans(queries, half_width), confidence=confidence)
    split = split_plan(queries, *_split_tails(queries, confidence), confidence)
    ways: dict[str, tuple[KeptPlan, int]] = {
        "direct search": (direct, 1),
        "median of block means": (joint_from(core, "mean"), core.block_size),
        "split": (split, units_for_half_width(half_width, split.tail_low)),
    }
    rows = {method: made.blocks * units for method, (made, units) in ways.items()}
    method = min(rows, key=rows.__getitem__)
    made, units = ways[method]
    predicted = {"rows": rows[method], "block_size": units, "half_width": half_width}
    others = (
        Alternative("paper", _paper_rows(queries, core.grid, half_width, confidence)),
        *(Alternative(name, count) for name, count in rows.items()),
    )
    promise = (
        f"every mean lies within {half_width:g} of the middle of its bar, all {queries:,} at once "
        f"with probability at least {confidence:g}"
    )
    return Proposal("mean", method, made.blocks, promise, made, predicted, others, "rows")


def _split_tails(queries: int, confidence: float) -> tuple[float, float]:
    """One fresh block a question is enough for tails of β/(2k): its mean itself is the answer."""
    beta = float(1 - Fraction(repr(float(confidence))))
    tail = beta / (2 * queries) * (1 - 1e-9)
    return tail, tail


def _paper_rows(queries: int, grid: int, half_width: float, confidence: float) -> int | None:
    """Thm `adaptive-iqr` and `intro-var`: within 2 sd ≤ 2·(1/2)/√t of the mean, at ρ = 1/4."""
    blocks = paper_estimation(queries, grid, 0.25, 1 - confidence)
    return None if blocks is None else blocks * math.ceil(1 / half_width**2)
