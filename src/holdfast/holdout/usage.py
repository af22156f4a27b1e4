"""Usage: how much of a set's budget is used, in the currency that its plan is charged in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from holdfast.holdout.spec import BlockSet
from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactVerdicts

__all__ = ["tally_shares", "tally_use"]


def tally_use(block_set: BlockSet, tally: Mapping[str, int]) -> tuple[float, float, str]:
    """What is used of how much, and of what, where a set is charged in things said."""
    plan = block_set.plan
    if isinstance(plan, ExactVerdicts | ExactCorrections):
        return tally.get("refused", 0), plan.refusals, "refusals"
    if isinstance(plan, ExactEstimates):
        room = tally.get("room", plan.grid ** (plan.queries - 1))
        # As the protocol rounds it: rounding must not cost a whole question.
        left = round(1 + math.log(room) / math.log(plan.grid), 9) if room else 0.0
        return plan.queries - left, plan.queries, "questions"
    if "thrown" in tally or hasattr(plan, "sets"):
        return tally.get("thrown", 0), plan.sets, "rounds"  # type: ignore[union-attr]
    return tally.get("asked", 0), plan.queries, "questions"  # type: ignore[union-attr]


def tally_shares(block_set: BlockSet, tally: Mapping[str, int] | None) -> tuple[Fraction, Fraction]:
    """The shares of the set's budget, and of its questions, that a tally has used."""
    used, budget, _ = tally_use(block_set, tally or {})
    queries = int(getattr(block_set.plan, "queries", 0))
    asked = Fraction((tally or {}).get("asked", 0), queries) if queries else Fraction(0)
    return Fraction(used) / Fraction(budget), asked
