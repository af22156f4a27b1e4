"""Plans for several protocols: the search for a joint plan, and plans for a mix of protocols.

Protocols that answer by looks share one budget on one set of blocks. Those that answer exactly,
split or go in rounds have sets of their own. β is divided equally over the sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, cast

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.planning.plan import Plan
from holdfast.planning.solve import plan, recall, remember
from holdfast.protocols.guesses import Guesses
from holdfast.protocols.plans import (
    JointPlan,
    LookPart,
    ProtocolMix,
    Request,
    SetPlan,
    Setting,
    check_one_split,
    json_object,
    plan_from_dict,
)
from holdfast.protocols.registry import mix_names, wanted
from holdfast.protocols.rounds import RoundsPlan, in_rounds
from holdfast.protocols.searches import SearchPart
from holdfast.theory.divergence import ORDER_MAX
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX, minimise, order_from

__all__ = [
    "joint_from",
    "joint_plan",
    "plans_for",
    "read_mix",
    "rounds_plan",
    "written_plan",
]


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


def written_plan(text: str) -> Plan | SetPlan:
    """The plan that `holdfast plan --json` wrote, of whatever protocol; it proves itself again.

    >>> from holdfast.planning.proposals import propose_split
    >>> made = propose_split(3)
    >>> written_plan(made.to_json()) == made.plan
    True
    """
    data = json_object(text, "a plan")
    data.pop("told", None)  # what as many rows give without a plan
    if "protocol" in data and isinstance(data.get("plan"), Mapping):  # beside what it predicts
        return plan_from_dict(data["plan"])
    return JointPlan.from_dict(data) if "parts" in data else Plan.from_dict(data)


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

    >>> from holdfast.protocols import Estimates, Guesses
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
            parts: list[LookPart] = []
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


def rounds_plan(
    queries: int,
    rounds: int,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
) -> RoundsPlan:
    """Effective rounds with the fewest blocks: `queries` questions, at most `rounds` rounds.

    >>> made = rounds_plan(queries=100, rounds=3)
    >>> made.sets, made.set_blocks, made.verify()
    (3, 69, True)
    """
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    return in_rounds(joint_plan, Guesses(queries, rounds, tail_low, tail_high), confidence)


def read_mix(text: str, queries: int | None, **more: Any) -> ProtocolMix:
    """`estimate,verify=100`: names, each with its own number of questions or the common one.

    >>> dict(read_mix("estimate, verify=100", 500).queries)
    {'estimate': 500, 'verify': 100}
    >>> dict(read_mix("correct", 500, refusals=20).queries)
    {'verify': 500, 'estimate': 20}
    >>> dict(read_mix("score=20, gate=5", None).queries)
    {'score': 25}
    """
    counts: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = item.partition("=")
        name = name.strip()
        if name in counts:
            raise InvalidInput("protocols", text, "a list that names each protocol once")
        try:
            count = whole_number("queries", float(number), 0, QUERIES_MAX) if number else queries
        except ValueError:  # no number, or not a whole one
            raise InvalidInput("protocols", item, "NAME or NAME=QUESTIONS") from None
        if count is None:
            hint = "Give --queries, or a number for each: estimate=500."
            raise InvalidInput("queries", None, f"known for {name}", hint)
        counts[name] = count
    if "correct" in counts:  # a guess that is verified, and a search for each that is refused
        guesses = counts.pop("correct")
        counts.setdefault("verify", guesses)
        counts.setdefault("estimate", min(guesses, more.get("refusals", ProtocolMix.refusals)))
    if "score" in counts and "gate" in counts:  # both are what is told
        counts["score"] += counts.pop("gate")
    names = mix_names()
    for name in counts:
        if name not in names:
            raise InvalidInput("protocols", name, f"some of {', '.join(names)}")
    return ProtocolMix(counts, **more)


def plans_for(mix: ProtocolMix, units: int | None = None) -> list[SetPlan]:
    """The plans that keep the mix, one for each set of blocks.

    >>> [type(each).__name__ for each in plans_for(read_mix("estimate,verify,split=3", 20))]
    ['JointPlan', 'SplitPlan']
    """
    own = [name for name in mix.queries if wanted(name).own]
    shared = [name for name in mix.queries if name not in own]
    share = _share(mix.confidence, len(own) + bool(shared))
    plans: list[SetPlan] = []
    if shared == ["estimate"]:
        grid, k = mix.grid, mix.queries["estimate"]
        # Alone, estimates make the best of the units there are, unless the tail is given.
        known = {} if mix.tail is not None or units is None or own else {"rows": units}
        tail = {} if known else {"tail": mix.tail or 0.25}
        made = plan(queries=k, grid=grid, confidence=share, **known, **tail)  # type: ignore[arg-type]
        plans.append(joint_from(made))
    elif shared:
        requests = [wanted(name).make(mix, mix.queries[name], share, units) for name in shared]
        plans.append(joint_plan(*requests, confidence=share))  # type: ignore[arg-type]
    for name in own:
        asked = wanted(name)
        found = asked.make(mix, mix.queries[name], share, units)
        plans.append(asked.planned(joint_plan, found, share))
    return [_beside(each, plans) for each in plans]


def _beside(made: SetPlan, plans: Sequence[SetPlan]) -> SetPlan:
    """What is told has all units if it is alone, and as many as all others beside them."""
    others = sum(int(each.blocks * each.subblocks) for each in plans if each is not made)
    told = made.past() is not None
    return cast(SetPlan, replace(cast(Any, made), blocks=others)) if told and others else made


def _share(confidence: float, sets: int) -> float:
    """The confidence of each set, so that all together keep what was asked for."""
    if sets == 1:
        return confidence
    beta = (1 - Fraction(repr(confidence))) / sets
    share = float(1 - beta)
    while 1 - Fraction(repr(share)) > beta:
        share = math.nextafter(share, 1.0)
    return share
