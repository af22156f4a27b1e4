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
from fractions import Fraction

from holdfast.errors import InvalidInput, whole_number
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts.base import Left, Part
from holdfast.protocols.account import Account, Charge

__all__ = ["Budget", "Reservation"]


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

    >>> from holdfast.planning.requests.guesses import Guesses

    >>> from holdfast.planning.joint_search import joint_plan
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
