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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import product
from typing import Any, cast

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.notebook import html_table
from holdfast.planning.parts import PART_KINDS, Part, SearchPart
from holdfast.planning.plan import Plan, json_object
from holdfast.planning.requests import Request, Setting
from holdfast.planning.solve import recall, remember
from holdfast.theory.divergence import ORDER_MAX, ORDER_MIN, RenyiCurve
from holdfast.theory.sizing import BLOCKS_MAX, minimise, order_from
from holdfast.theory.transfer import all_hold, total_failure

__all__ = [
    "JOINT_FORMAT",
    "JointPlan",
    "check_one_split",
    "joint_from",
    "joint_plan",
]

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


# The search for a joint plan: order, budget, and how the protocols divide them.
#
# Nelder–Mead over the order, the budget, each request's part of it and its own parameters, with
# smooth estimates of the blocks (`holdfast.theory.coins`). What it finds is then built in full:
# real coins, measured prices, the fewest blocks at which every failure class holds.


_FORMAT = "joint 2"  # change it whenever the search or the theorems behind it change
_NEVER = 700.0
_WINDOW = 24  # sizes tried below the one that bisection finds: rounding makes single ones fail


def joint_plan(
    *requests: Request, confidence: float = 0.95, blocks: int | None = None
) -> JointPlan:
    """The plan with the fewest blocks that keeps all requests at once, on one budget.

    β is divided equally over the requests. With `blocks` given the plan uses as many of them as it
    can: all of them, or a few less where whole counts round against it. Too few are refused.

    >>> from holdfast.planning.requests import Estimates

    >>> from holdfast.planning.requests import Guesses
    >>> made = joint_plan(Estimates(100, grid=32, tail_low=0.05, tail_high=0.05), Guesses(100, 5))
    >>> made.names, made.verify()
    (('estimate', 'verify'), True)
    """
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    names = [request.key for request in requests]
    if not names or len(set(names)) != len(names):
        hint = "Give the requests of one protocol different names."
        raise InvalidInput("requests", names, "at least one, each under its own name", hint)
    check_one_split(names, requests)
    if blocks is not None:
        blocks = whole_number("blocks", blocks, 1, BLOCKS_MAX)
    # Rounded down twice: the shares, added up without rounding, must not exceed β.
    beta = math.nextafter(float(1 - Fraction(repr(confidence))), 0.0)
    search = _Search(requests, math.nextafter(beta / len(requests), 0.0))
    key = repr((_FORMAT, requests, confidence))
    known = recall(key, search.length)
    if known is not None:  # certified like everything else, and used only if it gives its blocks
        made = search.build_if_sound(known[0], confidence)
        if made is not None and made.blocks == known[1]:
            return _at(made, search, known[0], blocks)
    for x in search.candidates():
        made = search.build(x, confidence)
        if made is not None:
            remember(key, x, made.blocks)
            return _at(made, search, x, blocks)
    raise Infeasible(
        "Size of the plan",
        "more blocks, or finer coins, than can be computed",
        f"{', '.join(names)} were asked for at confidence {confidence:g}",
        "Ask fewer questions, use coarser grids, or choose tails further apart.",
    )


@dataclass(frozen=True)
class _Search:
    requests: tuple[Request, ...]
    failure: float

    @property
    def length(self) -> int:
        """How many numbers a point of the search has."""
        own = sum(len(request.starts()[0]) for request in self.requests)
        return 1 + len(self.requests) + own

    def candidates(self) -> list[tuple[float, ...]]:
        """Points of the search, the best first."""
        rough = []
        for extras in product(*(request.starts() for request in self.requests)):
            start = [*self._middle(), *(x for own in extras for x in own)]
            rough.append(minimise(self.objective, start, 0.7))
        rough.sort(key=self.objective)
        return [minimise(self.objective, rough[0], 0.15), *rough]

    def _middle(self) -> list[float]:
        """A first guess: where the neediest of the requests would be alone."""
        starts = [request.settings_start(self.failure) for request in self.requests]
        excess, budget = min(starts, key=lambda start: start[1])
        return [math.log(excess), math.log(budget), *([0.0] * (len(self.requests) - 1))]

    def settings(self, x: Sequence[float]) -> list[tuple[Setting, Sequence[float]]]:
        """Each request's setting and its own parameters at a point of the search."""
        order = min(order_from(math.exp(min(x[0], 9.0))), ORDER_MAX)
        limit = math.exp(min(max(x[1], -30.0), 8.0))
        count = len(self.requests)
        logits = [0.0, *(min(max(v, -12.0), 12.0) for v in x[2 : count + 1])]
        parts = [math.exp(v) for v in logits]
        place, result = count + 1, []
        for request, part in zip(self.requests, parts, strict=True):
            length = len(request.starts()[0])
            own = limit * part / sum(parts)
            setting = Setting(order, limit, own, self.failure)
            result.append((setting, x[place : place + length]))
            place += length
        return result

    def objective(self, x: Sequence[float]) -> float:
        """ln of the blocks that the neediest request wants (a smooth maximum)."""
        total = 0.0
        try:
            settings = self.settings(x)
            for request, (setting, own) in zip(self.requests, settings, strict=True):
                needed = request.rough_blocks(setting, own)
                if not 0 < needed < BLOCKS_MAX:
                    return _NEVER + setting.limit
                total += needed**16 / 1e190 if len(self.requests) > 1 else needed
        except (ArithmeticError, ValueError):
            return _NEVER
        if len(self.requests) == 1:
            return math.log(total)
        return (math.log(total) + 190 * math.log(10)) / 16

    def build_if_sound(self, x: Sequence[float], confidence: float) -> JointPlan | None:
        """`build` for a point that anything may have written."""
        if self.objective(x) > math.log(BLOCKS_MAX):
            return None
        try:
            return self.build(x, confidence)
        except (InvalidInput, ArithmeticError):
            return None

    def build(
        self, x: Sequence[float], confidence: float, blocks: int | None = None
    ) -> JointPlan | None:
        """The certified plan at a point of the search, with the fewest blocks or with these."""
        settings = self.settings(x)
        order = settings[0][0].order
        pairs = list(zip(self.requests, settings, strict=True))
        shapes = [request.part(setting, own, 2) for request, (setting, own) in pairs]
        limit = sum(part.planned(order) for part in shapes if part is not None) * (1 + 1e-12)

        def at(blocks: int) -> JointPlan | None:
            parts: list[Part] = []
            for request, (setting, own) in pairs:
                part = request.part(setting, own, blocks, limit)
                if part is None:
                    return None
                parts.append(part)
            plan = JointPlan(blocks, order, limit, confidence, tuple(parts))
            return plan if plan.verify() else None

        if blocks is not None:
            return at(blocks)
        return _fewest(at)


def _fewest(at: Callable[[int], JointPlan | None]) -> JointPlan | None:
    high = 2
    while at(high) is None:
        high *= 2
        if high > BLOCKS_MAX:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if at(middle) is None:
            low = middle
        else:
            high = middle
    earlier = (at(size) for size in range(max(1, high - _WINDOW), high))
    return next((plan for plan in earlier if plan is not None), None) or at(high)


def _at(made: JointPlan, search: _Search, x: Sequence[float], blocks: int | None) -> JointPlan:
    if blocks is None or blocks == made.blocks:
        return made
    if blocks < made.blocks:
        raise Infeasible(
            "Not enough blocks",
            f"{made.blocks:,} blocks",
            f"there are {blocks:,}",
            "Ask fewer questions, accept a smaller tail or lower confidence, or bring more data.",
        )
    # Targets and thresholds are whole counts, so that a size can fail above one that passes. What
    # holds on some of the blocks needs no more of them: the rest is left out.
    near = range(blocks, max(made.blocks, blocks - _WINDOW), -1)
    larger = (search.build(x, made.confidence, size) for size in near)
    return next((plan for plan in larger if plan is not None), made)
