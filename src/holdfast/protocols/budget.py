"""The budget that all protocols share: admit or refuse before every draw.

One currency, stability at the plan's order. A question first reserves the most that it can cost;
if that does not fit, nothing is drawn and nothing is charged. After the draw it is settled at what
it did cost: a Yes is cheaper than a No. Charges are added up without rounding, so that their sum
never exceeds the limit, not even in the last bit. Why the settled charges, and not the reserved
ones, may be counted: docs/explanation/theory/budget.md.

This class keeps its account in memory. A ledger that outlives the process wraps `reserve` and
`settle`: what was reserved and never settled stays spent.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction

from holdfast.arguments import whole_number
from holdfast.errors import Exhausted, InvalidInput
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts import Left, Part
from holdfast.theory.numerics import ROUNDING

__all__ = ["Budget", "Reservation"]


@dataclass
class _Use:
    """What one part has used of its own allowance."""

    looks: int = 0
    refusals: int = 0


class Reservation:
    """The worst case of one question, held until it is settled; never settled, it stays spent."""

    def __init__(self, budget: Budget, part: Part, price: Fraction, looks: int, noes: int) -> None:
        self._budget, self._part = budget, part
        self.price, self.looks, self.noes = price, looks, noes
        self._open = True

    def pays_for(self, budget: Budget, part: Part, looks: int) -> None:
        """Refuse to be used for anything but the question that it was made for."""
        same = self._budget is budget and self._part == part and self.looks == looks
        if not same or not self._open:
            hint = "Reserve again: every question pays for itself, once."
            raise InvalidInput(
                "reservation", self._part.name, "an open one for this question", hint
            )

    def settle(self, price: Fraction, looks: int, noes: int = 0) -> None:
        """Charge what the draw did cost, at most what was reserved, and free the rest."""
        self._budget._settle(self, price, looks, noes)

    def cancel(self) -> None:
        """Free all of it: nothing was drawn."""
        self.settle(Fraction(0), 0)


class Budget:
    """One plan's budget. Safe to share between threads.

    >>> from holdfast.planning import Guesses, joint_plan
    >>> budget = Budget(joint_plan(Guesses(100, refusals=3)))
    >>> budget.left == budget.plan.budget, budget.buys()["verify"]
    (True, Left(questions=100, looks=200, refusals=3))
    """

    def __init__(self, plan: JointPlan) -> None:
        if not plan.verify():
            hint = "Make the plan again: this one does not prove its own promises."
            raise InvalidInput("plan", plan.names, "a plan that certifies itself", hint)
        self.plan = plan
        self._limit = Fraction(plan.budget)
        self._spent = Fraction(0)
        self._uses = {name: _Use() for name in plan.names}
        self._lock = threading.Lock()
        self._sources: dict[int, object] = {}

    def bind(self, source: object, blocks: int) -> None:
        """Tie the budget to its blocks: to one source for blocks, and one for sub-blocks."""
        with self._lock:
            if self._sources.setdefault(blocks, source) is not source:
                hint = "A budget pays for one split of the data. Use its own source, or a new plan."
                raise InvalidInput("source", "another one", "the one that the budget is for", hint)

    @property
    def spent(self) -> float:
        """What has been charged or is reserved, rounded up."""
        return float(self._spent) * (1 + ROUNDING)

    @property
    def left(self) -> float:
        """What can still be charged, rounded down."""
        return (
            float(self._limit - self._spent) * (1 - ROUNDING) if self._spent else float(self._limit)
        )

    def reserve(self, part: Part, price: Fraction, looks: int, noes: int = 0) -> Reservation:
        """Hold the worst case of a question, or raise `Exhausted` and change nothing."""
        looks = whole_number("looks", looks, 0, 2**62)
        noes = whole_number("noes", noes, 0, looks)
        if price < 0:
            raise InvalidInput("price", float(price), "at least 0")
        if self.plan.part(part.name) != part:
            raise InvalidInput("part", part.name, "a part of this budget's plan")
        with self._lock:
            use = self._uses[part.name]
            allowed = part.most_refusals
            if allowed is not None and use.refusals + noes > allowed:
                raise self._refusal(part, "another refusal", f"none of {allowed}")
            if use.looks + looks > part.looks:
                unused = part.looks - use.looks
                raise self._refusal(part, f"{looks:,} looks", f"{unused:,} of {part.looks:,}")
            if self._spent + price > self._limit:
                raise self._refusal(part, f"a price of {float(price):.4g}", f"{self.left:.4g}")
            self._spent += price
            use.looks += looks
            use.refusals += noes
        return Reservation(self, part, price, looks, noes)

    def buys(self) -> dict[str, Left]:
        """For every part: what the rest of the budget would still buy, spent on it alone."""
        with self._lock:
            return {part.name: self._left(part) for part in self.plan.parts}

    def exhausted(self, name: str) -> bool:
        """Whether the part can no longer answer one question of its planned size."""
        return self.buys()[name].questions == 0

    def _left(self, part: Part) -> Left:
        use, rest = self._uses[part.name], self._limit - self._spent
        return part.left(self.plan.order, rest, use.looks, use.refusals)

    def _refusal(self, part: Part, needed: str, left: str) -> Exhausted:
        buys = {p.name: self._left(p).questions for p in self.plan.parts}
        others = [f"{name} ({count:,})" for name, count in buys.items() if count]
        remedy = f"Still possible: {', '.join(others)}." if others else "The holdout is used up."
        return Exhausted(f"The budget for {part.name}", needed, left, remedy)

    def _settle(self, held: Reservation, price: Fraction, looks: int, noes: int) -> None:
        with self._lock:
            fits = 0 <= price <= held.price and 0 <= looks <= held.looks and 0 <= noes <= held.noes
            if not held._open or not fits:
                allowed = "made once, within what was reserved"
                raise InvalidInput("settlement", float(price), allowed)
            held._open = False
            use = self._uses[held._part.name]
            self._spent -= held.price - price
            use.looks -= held.looks - looks
            use.refusals -= held.noes - noes
