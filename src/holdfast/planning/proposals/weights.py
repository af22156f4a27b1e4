"""The proposal for very many questions."""

from __future__ import annotations

from holdfast.errors import Infeasible
from holdfast.planning.alternatives import Alternative
from holdfast.planning.exact import exact_weights
from holdfast.planning.joint_search import joint_plan
from holdfast.planning.proposals.base import Proposal, blocks_of, cheaper, inside
from holdfast.planning.requests.searches import Estimates
from holdfast.planning.requests.weights import WeightedEstimates

__all__ = ["propose_weights"]


def propose_weights(
    queries: int,
    universe: int,
    tail: float = 0.25,
    grid: int = 32,
    confidence: float = 0.95,
    *,
    looks: bool = False,
) -> Proposal:
    """A hypothesis over a finite universe, corrected by the sample: by looks, or exactly."""
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
    proposal = Proposal("weights", "looks", made.blocks, promise, made, predicted, others)
    if looks:
        return proposal
    try:
        exact = exact_weights(queries, universe, tail, confidence)
    except Infeasible:  # too many histories to count
        return proposal
    told = {**predicted, "updates": exact.updates}
    return cheaper(proposal, Proposal("weights", "exact", exact.blocks, promise, exact, told))
