"""A joint plan: several protocols on one budget, certified together.

    for all protocols at once, with probability at least `confidence`, every promise is kept,

whatever mixture of the parts is used, in whatever order, as long as what is charged stays within
`budget` and every part within its looks and refusals. `verify()` proves it again: it rebuilds every
coin and checks every failure class at the curve of the whole budget; the shares of β add up to at
most 1 − confidence. Proof: docs/explanation/theory/budget.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.notebook import html_table
from holdfast.planning.parts import PART_KINDS, Part, SearchPart
from holdfast.planning.plan import Plan
from holdfast.planning.written import json_object
from holdfast.theory.divergence import ORDER_MAX, ORDER_MIN, RenyiCurve
from holdfast.theory.sizing import BLOCKS_MAX
from holdfast.theory.transfer import all_hold, total_failure

if TYPE_CHECKING:
    from holdfast.planning.requests import Request

__all__ = ["JOINT_FORMAT", "JointPlan", "check_one_split", "joint_from"]

JOINT_FORMAT = 1


@dataclass(frozen=True)
class JointPlan:
    """Blocks, the budget (order and limit), and one part for every protocol it covers."""

    blocks: int
    order: float
    budget: float
    confidence: float
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        whole_number("blocks", self.blocks, 1, BLOCKS_MAX)
        real_number("order", self.order, ORDER_MIN, ORDER_MAX)
        real_number("budget", self.budget, 0, open_low=True)
        real_number("confidence", self.confidence, 0, 1, open_low=True, open_high=True)
        if not self.parts or len(set(self.names)) != len(self.names):
            raise InvalidInput("parts", self.names, "at least one, each name once")
        check_one_split(self.names, self.parts)

    @property
    def subblocks(self) -> int:
        """Sub-blocks that make one block: the same number for all parts."""
        return self.parts[0].subblocks

    @property
    def failure(self) -> float:
        """β: 0.05 for a confidence of 0.95, as written."""
        return float(1 - Fraction(repr(float(self.confidence))))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts: those of their protocols, unless the plan has two of one."""
        return tuple(part.name for part in self.parts)

    def part(self, name: str) -> Part:
        """The part of this name."""
        for part in self.parts:
            if part.name == name:
                return part
        hint = "Make a plan that covers it."
        raise InvalidInput("protocol", name, f"one of {', '.join(self.names)}", hint)

    def verify(self) -> bool:
        """Rebuild every coin and prove every failure class from scratch."""
        curve = RenyiCurve(self.order, self.budget)
        shares = [share for part in self.parts for share in part.shares(self.blocks)]
        if total_failure(shares) > 1 - Fraction(repr(float(self.confidence))):
            return False
        if sum(part.planned(self.order) for part in self.parts) > self.budget:
            return False  # it would not pay for what it says it is for
        return all(
            part.sound(self.order, self.budget, self.blocks)
            and all_hold(part.classes(self.order, self.blocks), curve, self.blocks)
            for part in self.parts
        )

    def __str__(self) -> str:
        lines = [f"{label:<10}{text}" for label, text in self.described().items()]
        return "\n".join([f"Plan for {', '.join(self.names)}", *(f"  {line}" for line in lines)])

    def described(self) -> dict[str, str]:
        """The plan in labelled lines, for people."""
        promises = {part.name: f"{part.queries:,} questions" for part in self.parts}
        return {
            **promises,
            "blocks": f"{self.blocks:,}",
            "budget": f"{self.budget:.4g} at order {self.order:.4g}, shared by all",
            "promise": f"all of it at once with probability at least {self.confidence:g}",
        }

    def _repr_html_(self) -> str:
        return html_table(f"Plan for {', '.join(self.names)}", self.described())

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text, as `holdfast plan --json` prints them."""
        data: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        data["parts"] = [part.to_dict() for part in self.parts]
        return {"format": JOINT_FORMAT, "protocols": list(self.names), **data}

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> JointPlan:
        """The plan that `to_dict` wrote; refused unless it proves itself again."""
        names = {f.name for f in fields(cls)} | {"format", "protocols"}
        if data.get("format") != JOINT_FORMAT or set(data) != names:
            hint = "Make the plan again with this version of Holdfast."
            received = sorted(map(str, data))
            raise InvalidInput("plan", received, f"a joint plan of format {JOINT_FORMAT}", hint)
        try:
            values = {f.name: data[f.name] for f in fields(cls)}
            values["parts"] = tuple(map(_part, cast(list[Mapping[str, Any]], data["parts"])))
            plan = cls(**cast(dict[str, Any], values))
            sound = plan.verify() and plan.to_dict() == dict(data)
        except (TypeError, ValueError, AttributeError, ArithmeticError, KeyError) as wrong:
            raise InvalidInput("plan", str(wrong), "a complete plan as it was written") from wrong
        if not sound:
            hint = "It was changed after it was made: make it again."
            raise InvalidInput("plan", plan.blocks, "a plan that certifies its own promises", hint)
        return plan

    @classmethod
    def from_json(cls, text: str) -> JointPlan:
        """The plan that `to_json` wrote."""
        return cls.from_dict(json_object(text, "a joint plan"))


def check_one_split(names: Sequence[str], parts: Sequence[Part | Request]) -> None:
    """Refuse medians of sub-blocks beside anything that divides the data in another way.

    All prices are those of a count that one block moves by 1 at most. A block of one split may be
    spread over several of another, and moves their count by as many.
    """
    if len({part.subblocks for part in parts}) > 1:
        allowed = "all of one split of the data: all with the same number of sub-blocks"
        hint = "Make a plan of its own, on rows of its own, for medians of sub-blocks."
        raise InvalidInput("parts", list(names), allowed, hint)


def joint_from(plan: Plan, protocol: str = "estimate") -> JointPlan:
    """A plan of searches as a joint plan with one part; the same coin, the same blocks.

    >>> from holdfast.planning.solve import plan
    >>> joint_from(plan(queries=100, grid=32, tail=0.25)).blocks
    1413
    """
    # The shares are added up without rounding, and 0.05 is stored as a little more than 1/20.
    part = SearchPart(
        name=protocol,
        protocol=protocol,
        queries=plan.queries,
        grid=plan.grid,
        tail_low=plan.tail_low,
        tail_high=plan.tail_high,
        twice_target=plan.twice_target,
        failure_low=math.nextafter(plan.failure_low, 0.0),
        failure_high=math.nextafter(plan.failure_high, 0.0),
        look_price=plan.look_price,
        floor=plan.floor,
        looks=plan.looks,
    )
    made = JointPlan(plan.blocks, plan.order, plan.budget, plan.confidence, (part,))
    if not made.verify():
        hint = "Make it again: it does not certify its own promise."
        raise InvalidInput("plan", plan.blocks, "a plan that proves itself", hint)
    return made


def _part(data: Mapping[str, Any]) -> Part:
    """One part of a written plan; every number in the type that it was written with."""
    kind = PART_KINDS[data["kind"]]
    values = {name: value for name, value in data.items() if name != "kind"}
    types = {f.name: f.type for f in fields(cast(Any, kind))}
    for name, value in values.items():
        if type(value).__name__ != types[name]:
            raise TypeError(f"{name} must be of type {types[name]}")
    return cast(Part, cast(Any, kind)(**values))
