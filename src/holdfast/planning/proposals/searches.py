"""Proposals for protocols that search, or split: estimates and their kin."""

from __future__ import annotations

from holdfast.errors import InvalidInput
from holdfast.planning.alternatives import Alternative
from holdfast.planning.exact import exact_estimates
from holdfast.planning.joint import JointPlan
from holdfast.planning.joint_search import joint_plan
from holdfast.planning.proposals.base import Proposal, inside
from holdfast.planning.requests.searches import AmplifiedEstimates, Estimates, SimpleEstimates
from holdfast.planning.splits import split_plan
from holdfast.theory.paper import adaptive_simple

__all__ = [
    "propose_amplified",
    "propose_estimate",
    "propose_exact",
    "propose_simple",
    "propose_split",
]


def propose_estimate(
    queries: int, grid: int = 32, tail: float = 0.25, confidence: float = 0.95
) -> Proposal:
    """A search for every question."""
    made = joint_plan(Estimates(queries, grid, tail, tail), confidence=confidence)
    return Proposal("estimate", "search", made.blocks, inside(queries, tail, confidence), made)


def propose_exact(
    queries: int, grid: int = 32, tail: float = 0.25, confidence: float = 0.95
) -> Proposal:
    """Exact quantiles, every history counted: for a few dozen questions."""
    made = exact_estimates(queries, grid, tail, tail, confidence)
    return Proposal("exact", "exact", made.blocks, inside(queries, tail, confidence), made)


def propose_split(queries: int, tail: float = 0.25, confidence: float = 0.95) -> Proposal:
    """Fresh blocks for every question."""
    made = split_plan(queries, tail, tail, confidence)
    return Proposal("split", "split", made.blocks, inside(queries, tail, confidence), made)


def propose_amplified(
    queries: int, grid: int = 32, tail: float = 0.25, confidence: float = 0.95
) -> Proposal:
    """Exact medians of sub-blocks, then a search; sized in sub-blocks, with the best number."""

    def at(subblocks: int) -> JointPlan:
        request = AmplifiedEstimates(queries, grid, tail, subblocks)
        return joint_plan(request, confidence=confidence)

    best, made = 3, at(3)
    for subblocks in (5, 7, 9, 11, 13, 15, 19, 23, 29, 35, 43, 53, 65):
        other = at(subblocks)
        if other.blocks * subblocks < made.blocks * best:
            best, made = subblocks, other
        elif other.blocks * subblocks > 1.2 * made.blocks * best:
            break
    predicted = {"subblocks": best, "whole_blocks": made.blocks}
    promise = inside(queries, tail, confidence)
    return Proposal("amplified", "search", made.blocks * best, promise, made, predicted)


def propose_simple(
    queries: int, grid: int = 32, tail: float = 1e-6, confidence: float = 0.95
) -> Proposal:
    """Interior points of a few blocks, for well-concentrated estimators."""
    made = joint_plan(SimpleEstimates(queries, grid, tail), confidence=confidence)
    promise = inside(queries, tail, confidence)
    try:
        paper = adaptive_simple(queries, grid, 1 - confidence)
        others = (Alternative("paper", paper.blocks, f"at its own tail, {paper.tail:.2g}"),)
    except InvalidInput:
        others = (Alternative("paper", None, "outside the range of its theorem"),)
    return Proposal("simple", "search", made.blocks, promise, made, {"tail": tail}, others)
