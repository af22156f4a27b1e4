"""The budget that all protocols share: admit or refuse before every draw.

A question first reserves the most that it can cost; if that does not fit, nothing is drawn and
nothing is charged. After the draw it is settled at what it did cost: a Yes is cheaper than a No.
Why the settled charges, and not the reserved ones, may be counted:
docs/explanation/theory/budget.md.

This class keeps its account in memory. `holdfast.holdout` has one that a ledger keeps: what was
reserved and never settled stays spent.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from holdfast.errors import Exhausted, InvalidInput, whole_number
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts import Left, Part
from holdfast.theory.numerics import ROUNDING

__all__ = [
    "Account",
    "Budget",
    "Charge",
    "Reservation",
]


# An account: what has been charged to a plan's budget, and what that leaves.
#
# One currency, stability at the plan's order. Charges are added up without rounding, so that their
# sum never exceeds the limit, not even in the last bit. An account is plain arithmetic: a budget
# in
# memory and a durable ledger both keep one, and the same charges give the same account.


_USED_UP = "The budget is used up: nothing more can be asked of it."


@dataclass(frozen=True)
class Charge:
    """What one question costs one part: stability, looks, and how many of them said No.

    >>> charge = Charge("estimate", Fraction(1, 3), 5)
    >>> Charge.from_dict(charge.to_dict()) == charge
    True
    """

    part: str
    price: Fraction
    looks: int
    noes: int = 0

    def within(self, held: Charge) -> bool:
        """Whether it is no more than what was held for it."""
        return (
            self.part == held.part
            and 0 <= self.price <= held.price
            and 0 <= self.looks <= held.looks
            and 0 <= self.noes <= held.noes
        )

    def to_dict(self) -> dict[str, object]:
        """Plain data; the price is an exact fraction, as text."""
        return {
            "part": self.part,
            "price": str(self.price),
            "looks": self.looks,
            "noes": self.noes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Charge:
        """The charge that `to_dict` wrote."""
        price, looks, noes = data["price"], data["looks"], data["noes"]
        if not isinstance(price, str) or type(looks) is not int or type(noes) is not int:
            raise InvalidInput("charge", dict(data), "a charge as it was written")
        return cls(str(data["part"]), _fraction(price), looks, noes)


@lru_cache(maxsize=1024)  # a plan has few prices, and each is read several times a question
def _fraction(text: str) -> Fraction:
    return Fraction(text)


@dataclass
class _Use:
    """What one part has used of its own allowance."""

    looks: int = 0
    refusals: int = 0


class Account:
    """What has been charged to one plan. Not safe to share between threads: its keeper locks."""

    def __init__(self, plan: JointPlan) -> None:
        self.plan = plan
        self.limit = Fraction(plan.budget)
        self.charged = Fraction(0)
        self._uses = {name: _Use() for name in plan.names}

    def copy(self) -> Account:
        """An account with the same charges, which goes its own way."""
        other = Account.__new__(Account)  # its limit is known: a question copies it every time
        other.plan, other.limit, other.charged = self.plan, self.limit, self.charged
        other._uses = {name: replace(use) for name, use in self._uses.items()}
        return other

    @property
    def spent(self) -> float:
        """What has been charged or is held, rounded up."""
        return float(self.charged) * (1 + ROUNDING)

    @property
    def left(self) -> float:
        """What can still be charged, rounded down."""
        if not self.charged:
            return float(self.limit)
        return float(self.limit - self.charged) * (1 - ROUNDING)

    @property
    def share(self) -> Fraction:
        """The share that is charged of the budget, or of a part's own looks or refusals: the most.

        Whatever it is of, so much of the whole plan is no longer there for others.
        """
        shares = [self.charged / self.limit]
        for name, use in self._uses.items():
            part = self.plan.part(name)
            shares.append(Fraction(use.looks, part.looks))
            if part.most_refusals:
                shares.append(Fraction(use.refusals, part.most_refusals))
        return max(shares)

    def hold(self, worst: Charge) -> None:
        """Charge the worst case of a question, or raise `Exhausted` and change nothing."""
        part = self.plan.part(worst.part)
        use, allowed = self._uses[part.name], part.most_refusals
        if allowed is not None and use.refusals + worst.noes > allowed:
            raise self._refusal(part, "another refusal", f"none of {allowed}")
        if use.looks + worst.looks > part.looks:
            unused = part.looks - use.looks
            raise self._refusal(part, f"{worst.looks:,} looks", f"{unused:,} of {part.looks:,}")
        if self.charged + worst.price > self.limit:
            raise self._refusal(part, f"a price of {float(worst.price):.4g}", f"{self.left:.4g}")
        self._add(worst, 1)

    def settle(self, worst: Charge, actual: Charge) -> None:
        """Replace what was held by what the draw did cost."""
        if actual == worst:  # as it is for most questions
            return
        if not actual.within(worst):
            raise InvalidInput("settlement", float(actual.price), "within what was reserved")
        self._add(worst, -1)
        self._add(actual, 1)

    def left_of(self, part: Part) -> Left:
        """What the rest of the budget would still buy, spent on this part alone."""
        use, rest = self._uses[part.name], self.limit - self.charged
        return part.left(self.plan.order, rest, use.looks, use.refusals)

    def still_possible(self, part: Part) -> str:
        """What the rest would still buy of this part, in words; empty if nothing."""
        use, rest = self._uses[part.name], self.limit - self.charged
        return part.still_possible(self.plan.order, rest, use.looks, use.refusals)

    def searches_left(self, part: Part, looks: int) -> int:
        """How many more questions of so many looks this part could answer, were all its own."""
        price = looks * Fraction(part.prices(self.plan.order).no)
        by_looks = (part.looks - self._uses[part.name].looks) // looks
        return max(0, min(by_looks, (self.limit - self.charged) // price))

    def buys(self) -> dict[str, Left]:
        """`left_of` for every part."""
        return {part.name: self.left_of(part) for part in self.plan.parts}

    def _add(self, charge: Charge, times: int) -> None:
        use = self._uses[charge.part]
        self.charged += charge.price if times == 1 else times * charge.price
        use.looks += times * charge.looks
        use.refusals += times * charge.noes

    def _refusal(self, part: Part, needed: str, left: str) -> Exhausted:
        others = "; ".join(filter(None, map(self.still_possible, self.plan.parts)))
        remedy = f"Still possible: {others}." if others else _USED_UP
        return Exhausted(f"The budget for {part.name}", needed, left, remedy)


class Reservation:
    """The worst case of one question, held until it is settled; never settled, it stays spent."""

    def __init__(self, budget: Budget, part: Part, worst: Charge, ticket: int) -> None:
        self._budget, self._part, self._worst = budget, part, worst
        self.ticket = ticket  # under which the budget holds it
        self._open = True

    @property
    def price(self) -> Fraction:
        """The most that the question can cost."""
        return self._worst.price

    @property
    def looks(self) -> int:
        """The most looks that it can take."""
        return self._worst.looks

    @property
    def noes(self) -> int:
        """The most of them that can say No."""
        return self._worst.noes

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
        self._budget._settle(self, Charge(self._part.name, price, looks, noes))

    def cancel(self) -> None:
        """Free all of it: nothing was drawn."""
        self.settle(Fraction(0), 0)

    def close(self, actual: Charge) -> Charge:
        """What was held, once, for a settlement that fits; whoever calls it holds the lock."""
        if not self._open or not actual.within(self._worst):
            allowed = "made once, within what was reserved"
            raise InvalidInput("settlement", float(actual.price), allowed)
        self._open = False
        return self._worst


class Budget:
    """One plan's budget. Safe to share between threads.

    >>> from holdfast.planning.requests import Guesses

    >>> from holdfast.planning.joint import joint_plan
    >>> budget = Budget(joint_plan(Guesses(100, refusals=3)))
    >>> budget.left == budget.plan.budget, budget.buys()["verify"]
    (True, Left(questions=100, looks=200, refusals=3))
    """

    def __init__(self, plan: JointPlan) -> None:
        if not plan.verify():
            hint = "Make the plan again: this one does not prove its own promises."
            raise InvalidInput("plan", plan.names, "a plan that certifies itself", hint)
        self.plan = plan
        self._account = Account(plan)
        self._lock = threading.Lock()
        self._source: object = None

    def bind(self, source: object) -> None:
        """Tie the budget to its blocks: it pays for what one source tells, and no other."""
        with self._lock:
            self._source = source if self._source is None else self._source
            if self._source is not source:
                hint = "A budget pays for one split of the data. Use its own source, or a new plan."
                raise InvalidInput("source", "another one", "the one that the budget is for", hint)

    @property
    def spent(self) -> float:
        """What has been charged or is reserved, rounded up."""
        return self._account.spent

    @property
    def left(self) -> float:
        """What can still be charged, rounded down."""
        return self._account.left

    def reserve(self, part: Part, price: Fraction, looks: int, noes: int = 0) -> Reservation:
        """Hold the worst case of a question, or raise `Exhausted` and change nothing."""
        looks = whole_number("looks", looks, 0, 2**62)
        noes = whole_number("noes", noes, 0, looks)
        if price < 0:
            raise InvalidInput("price", float(price), "at least 0")
        if self.plan.part(part.name) != part:
            raise InvalidInput("part", part.name, "a part of this budget's plan")
        worst = Charge(part.name, price, looks, noes)
        return Reservation(self, part, worst, self._hold(worst))

    def buys(self) -> dict[str, Left]:
        """For every part: what the rest of the budget would still buy, spent on it alone."""
        with self._lock:
            return self._account.buys()

    def exhausted(self, name: str) -> bool:
        """Whether the part can no longer answer one question of its planned size."""
        return self.buys()[name].questions == 0

    def _hold(self, worst: Charge) -> int:
        with self._lock:
            self._account.hold(worst)
        return 0

    def _settle(self, held: Reservation, actual: Charge) -> None:
        with self._lock:
            self._account.settle(held.close(actual), actual)
