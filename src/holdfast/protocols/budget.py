"""The account of a plan: what has been charged to it, and what that leaves.

A question first holds the most that it can cost; if that does not fit, nothing is drawn and nothing
is charged. After the draw it is settled at what it did cost: a Yes is cheaper than a No. Why the
settled charges, and not those held, may be counted: docs/explanation/theory/budget.md.

Charges are added up without rounding, so that their sum never exceeds the limit, not even in the
last bit. An account is plain arithmetic: a holdout in memory and a durable ledger both keep one,
and the same charges give the same account.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from holdfast.errors import Exhausted, InvalidInput
from holdfast.protocols.plans import Left, Part, SetPlan
from holdfast.theory.numerics import ROUNDING

__all__ = ["Account", "Charge", "Use", "exactly"]

_USED_UP = "The budget is used up: nothing more can be asked of it."


@dataclass(frozen=True)
class Charge:
    """What one question costs one part: its price, looks, and how many of them said No.

    >>> charge = Charge("estimate", Fraction(1, 3), 5)
    >>> Charge.from_dict(charge.to_dict()) == charge
    True
    """

    part: str
    price: Fraction
    looks: int
    noes: int = 0

    @property
    def nothing(self) -> Charge:
        """The same part, charged nothing."""
        return Charge(self.part, Fraction(0), 0)

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
        price, counts = data["price"], (data["looks"], data["noes"])
        if not isinstance(price, str) or set(map(type, counts)) != {int}:
            raise InvalidInput("charge", dict(data), "a charge as it was written")
        return cls(str(data["part"]), _fraction(price), *counts)  # type: ignore[arg-type]


@lru_cache(maxsize=1024)  # a plan has few prices, and each is read several times a question
def _fraction(text: str) -> Fraction:
    return Fraction(text)


@lru_cache(maxsize=1024)
def exactly(price: float) -> Fraction:
    """A price as it is stored, for sums without rounding."""
    return Fraction(price)


@dataclass(frozen=True)
class Use:
    """What one part has used of its own allowance."""

    looks: int = 0
    refusals: int = 0


class Account:
    """What has been charged to one plan. Not safe to share between threads: its keeper locks."""

    def __init__(self, plan: SetPlan) -> None:
        self.plan = plan
        self.limit = plan.limit
        self.charged = Fraction(0)
        self.uses = {name: Use() for name in plan.names}

    def copy(self) -> Account:
        """An account with the same charges, which goes its own way."""
        other = Account.__new__(Account)  # its limit is known: a question copies it every time
        other.plan, other.limit, other.charged = self.plan, self.limit, self.charged
        other.uses = dict(self.uses)
        return other

    @property
    def spent(self) -> float:
        """What has been charged or is held, rounded up."""
        return float(self.charged) * (1 + ROUNDING)

    @property
    def left(self) -> float:
        """What can still be charged, rounded down."""
        return self.plan.rest(self)

    @property
    def share(self) -> Fraction:
        """The share that is charged of the budget, or of a part's own looks or refusals: the most.

        Whatever it is of, so much of the whole plan is no longer there for others.
        """
        shares = [self.charged / self.limit]
        for name, use in self.uses.items():
            part = self.plan.part(name)
            shares.append(Fraction(use.looks, part.looks))
            if part.most_refusals:
                shares.append(Fraction(use.refusals, part.most_refusals))
        return max(shares)

    def hold(self, worst: Charge) -> None:
        """Charge the worst case of a question, or raise `Exhausted` and change nothing."""
        part = self.plan.part(worst.part)
        lacking: tuple[str, str] | None = part.lacking(self.uses[part.name], worst)
        if lacking is None and self.charged + worst.price > self.limit:
            lacking = f"a price of {float(worst.price):.4g}", f"{self.left:.4g}"
        if lacking is not None:
            others = "; ".join(filter(None, map(self.still_possible, self.plan.parts)))
            remedy = f"Still possible: {others}." if others else _USED_UP
            raise Exhausted(f"The budget for {part.name}", *lacking, remedy)
        self.add(worst)

    def settle(self, worst: Charge, actual: Charge) -> None:
        """Replace what was held by what the draw did cost."""
        if actual == worst:  # as it is for most questions
            return
        if not actual.within(worst):
            raise InvalidInput("settlement", float(actual.price), "within what was reserved")
        use = self.uses[worst.part]
        self.charged += actual.price - worst.price
        self.uses[worst.part] = Use(
            use.looks + actual.looks - worst.looks, use.refusals + actual.noes - worst.noes
        )

    def left_of(self, part: Part) -> Left:
        """What the rest of the budget would still buy, spent on this part alone."""
        return part.left(self.plan.order, self.limit - self.charged, self.uses[part.name])

    def still_possible(self, part: Part) -> str:
        """What the rest would still buy of this part, in words; empty if nothing."""
        return part.still_possible(self.plan.order, self.limit - self.charged, self.uses[part.name])

    def searches_left(self, part: Part, looks: int, price: Fraction) -> int:
        """How many more questions of so many looks this part could answer, were all its own."""
        by_looks = (part.looks - self.uses[part.name].looks) // looks
        return max(0, min(by_looks, (self.limit - self.charged) // price))

    def add(self, charge: Charge) -> None:
        """Charge what was found to fit, here or of another account of which this is a part."""
        use = self.uses[charge.part]
        self.charged += charge.price
        self.uses[charge.part] = Use(use.looks + charge.looks, use.refusals + charge.noes)
