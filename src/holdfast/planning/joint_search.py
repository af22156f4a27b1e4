"""The search for a joint plan: order, budget, and how the protocols divide them.

Nelder–Mead over the order, the budget, each request's part of it and its own parameters, with
smooth estimates of the blocks (`holdfast.theory.coins`). What it finds is then built in full:
real coins, measured prices, the fewest blocks at which every failure class holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.planning.cache import recall, remember
from holdfast.planning.joint import JointPlan, check_one_split
from holdfast.planning.parts import Part
from holdfast.planning.requests import Request, Setting
from holdfast.theory.divergence import ORDER_MAX
from holdfast.theory.sizing import BLOCKS_MAX, minimise, order_from

__all__ = ["joint_plan"]

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
