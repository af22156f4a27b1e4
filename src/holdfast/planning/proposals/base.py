"""What a proposal is: a certified plan, what it predicts, and what else would do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.planning.alternatives import Alternative
from holdfast.planning.joint_search import joint_plan
from holdfast.planning.kept import KeptPlan, kept_dict
from holdfast.planning.requests.base import Request
from holdfast.theory.paper import adaptive_iqr, adaptive_tails

__all__ = [
    "ALONE",
    "Proposal",
    "blocks_of",
    "cheaper",
    "inside",
    "paper_estimation",
]

ALONE = "exact answers: these blocks may serve no other protocol"


@dataclass(frozen=True)
class Proposal:
    """A certified plan for a protocol, what it predicts, and what else would do."""

    protocol: str
    method: str
    blocks: int
    promise: str
    plan: KeptPlan
    predicted: Mapping[str, float] = field(default_factory=dict)
    alternatives: tuple[Alternative, ...] = ()
    counted_in: str = "blocks"  # what the alternatives count

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text, as `holdfast plan --protocol … --json` prints them."""
        counted = [a for a in self.alternatives if a.blocks is not None]
        uncounted = [a for a in self.alternatives if a.blocks is None]
        return {
            "protocol": self.protocol,
            "method": self.method,
            "blocks": self.blocks,
            **self.predicted,
            "promise": self.promise,
            "alternatives": [{"method": a.method, self.counted_in: a.blocks} for a in counted],
            "uncounted": [{"method": a.method, "note": a.note} for a in uncounted],
            "plan": kept_dict(self.plan),
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)


def paper_estimation(queries: int, grid: int, tail: float, failure: float) -> int | None:
    """The paper's blocks for estimates, where its theorems hold."""
    try:
        if tail == 0.25:
            return adaptive_iqr(queries, grid, failure)
        return adaptive_tails(queries, grid, failure, tail, tail).blocks
    except InvalidInput:
        return None


def blocks_of(request: Request, *, confidence: float) -> int | None:
    """The blocks of a request planned alone, or None if it cannot be."""
    try:
        return joint_plan(request, confidence=confidence).blocks
    except HoldfastError:
        return None


def inside(queries: int, tail: float, confidence: float) -> str:
    """The promise of answers, in words."""
    return (
        f"every answer lies in qi({tail:g}, {1 - tail:g}) of its estimator on fresh data, all "
        f"{queries:,} at once with probability at least {confidence:g}"
    )


def cheaper(looks: Proposal, exact: Proposal | None) -> Proposal:
    """The proposal with fewer blocks, the other one among its alternatives."""
    if exact is None:
        return looks
    best, other = (looks, exact) if looks.blocks <= exact.blocks else (exact, looks)
    note = ALONE if other is exact else "may share its blocks with other protocols"
    entry = Alternative(other.method, other.blocks, note)
    return replace(best, alternatives=(*looks.alternatives, entry))
