"""The proposal for very many questions."""

from __future__ import annotations

from holdfast.planning.alternatives import Alternative
from holdfast.planning.joint_search import joint_plan
from holdfast.planning.proposals.base import Proposal, blocks_of, inside
from holdfast.planning.requests import Estimates, WeightedEstimates

__all__ = ["propose_weights"]


def propose_weights(
    queries: int, universe: int, tail: float = 0.25, grid: int = 32, confidence: float = 0.95
) -> Proposal:
    """A hypothesis over a finite universe, corrected by the sample."""
    request = WeightedEstimates(queries, universe, tail)
    made = joint_plan(request, confidence=confidence)
    part = made.parts[0]
    assert part.most_refusals is not None
    predicted = {"queries": queries, "universe": universe, "tail": tail}
    predicted["updates"] = part.most_refusals
    searches = blocks_of(Estimates(queries, grid, tail, tail), confidence=confidence)
    note = "`adaptive-general-mwu` states only an order of growth"
    others = (Alternative("paper", None, note), Alternative("estimate", searches))
    promise = inside(queries, tail, confidence)
    return Proposal("weights", "weights", made.blocks, promise, made, predicted, others)
