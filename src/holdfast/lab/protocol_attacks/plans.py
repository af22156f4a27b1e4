"""The plans of the attacks, kept in plans.json: some take many seconds to find.

A kept plan proves itself again when it is read, like any plan. One that is missing, or that this
version no longer proves, is made anew. `write_plans` makes all of them again. Every run has a
budget of its own, and every budget asks its plan for a proof: here it is remembered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import cast

from holdfast.errors import InvalidInput
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.requests import Request

__all__ = ["PLANS", "KeptPlan", "Wanted", "kept_plan", "write_plans"]

PLANS = Path(__file__).with_name("plans.json")

Wanted = tuple[tuple[Request, ...], float]


@dataclass(frozen=True)
class KeptPlan(JointPlan):
    """A joint plan that remembers whether its numbers prove themselves; they never change."""

    @classmethod
    def of(cls, plan: JointPlan) -> KeptPlan:
        """The same plan."""
        return cls(**{field.name: getattr(plan, field.name) for field in fields(JointPlan)})

    def verify(self) -> bool:
        return _proved(self)


@lru_cache(maxsize=64)
def _proved(plan: KeptPlan) -> bool:
    return JointPlan.verify(plan)


@lru_cache(maxsize=64)
def kept_plan(*requests: Request, confidence: float) -> KeptPlan:
    """The plan for these requests, from the file if it is there and proves itself."""
    try:
        data = json.loads(PLANS.read_text("utf-8"))[repr((requests, confidence))]
        plan = JointPlan.from_dict(cast(Mapping[str, object], data))
    except (OSError, ValueError, KeyError, TypeError, InvalidInput):
        plan = joint_plan(*requests, confidence=confidence)
    return KeptPlan.of(plan)


def write_plans(wanted: Iterable[Wanted], path: Path = PLANS) -> None:
    """Make the plans for these requests and confidences again, and keep them."""
    made = {repr(each): joint_plan(*each[0], confidence=each[1]).to_dict() for each in wanted}
    path.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
