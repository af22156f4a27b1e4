"""Plans: what is promised of one set of blocks, as plain numbers that prove themselves.

A plan has parts, one for everything that can be asked of its blocks. Where questions are answered
by looks, the parts share one budget (`JointPlan`); any other plan is its own only part. At run time
two things are enforced (`Account`): what the plan has in all, and each part's own
number of looks and refusals.

A request is what a study wants of one protocol. It knows how many blocks it would need at a given
setting (roughly, for the search over settings in `holdfast.planning`), and makes the part that
keeps its promise (exactly: it is then certified).
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import Any, ClassVar, Self, cast

from holdfast.errors import Exhausted, InvalidInput, real_number, whole_number
from holdfast.protocols.answers import html_table, number, rounded_up
from holdfast.theory.bars import mean_half_width
from holdfast.theory.divergence import ORDER_MAX, ORDER_MIN, Curve, RenyiCurve
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.privacy import look_divergence
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX
from holdfast.theory.transfer import FailureClass, all_hold, decisive_mass, total_failure

__all__ = [
    "FLOOR",
    "JOINT_FORMAT",
    "Account",
    "Charge",
    "JointPlan",
    "Left",
    "LookPart",
    "OwnPlan",
    "Part",
    "ProtocolMix",
    "Request",
    "SetPlan",
    "Setting",
    "Use",
    "VerdictPrices",
    "Wanted",
    "bar_words",
    "check_one_split",
    "exactly",
    "json_object",
    "plan_from_dict",
    "share_from",
    "two_sided",
    "typed",
]

JOINT_FORMAT = 1


@dataclass(frozen=True)
class Left:
    """What is left for one part, were all the rest of the budget spent on it."""

    questions: int
    looks: int
    refusals: int | None = None


@dataclass(frozen=True)
class VerdictPrices:
    """What one look costs in stability, by its verdict, rounded up."""

    no: float
    yes: float

    @property
    def worst(self) -> float:
        """The dearer of the two: what must be free before the coin is flipped."""
        return max(self.no, self.yes)


class Part(ABC):
    """What can be asked of a plan's blocks under one name."""

    name: str
    protocol: str
    queries: int
    looks: int
    subblocks: int = 1
    """Sub-blocks whose exact median is one block's value; 1 where a block is not divided."""
    most_refusals: Any = None
    """How many looks may say No; None if that does not matter."""

    @property
    def points(self) -> int:
        """The planned number of points of a question's grid."""
        return int(getattr(self, "grid", 32))

    @property
    def elements(self) -> int | None:
        """How many different blocks there can be, where a hypothesis about them is kept."""
        return getattr(self, "universe", None)

    @property
    def one_sided(self) -> bool:
        """Whether guesses are about one side, and no equality."""
        return getattr(self, "sides", 2) == 1

    @property
    def tells(self) -> bool:
        """Whether a verdict on a guess can say more than "cannot tell" (`Verdict.verdict`)."""
        return True

    @abstractmethod
    def words(self) -> tuple[str, str]:
        """How it is limited, and what is promised of its answers, for people."""

    @abstractmethod
    def left(self, order: float, rest: Fraction, use: Use) -> Left:
        """What `rest` of the budget still buys, after this use of the part."""

    def still_possible(self, order: float, rest: Fraction, use: Use) -> str:
        """What `left` still buys, in words; empty if nothing can be asked."""
        left = self.left(order, rest, use)
        return f"{self.name} ({left.questions:,})" if left.questions else ""

    def on_grid(self, _order: float, _size: int) -> Charge | None:
        """What a question on a grid of so many points costs; None where that does not matter."""
        return None

    def preview(self, _plan: SetPlan, units: int) -> tuple[float | None, str]:
        """The widest bar of a share of units on blocks of so many, and what it says of one."""
        cell = 0.5 / (self.points - 1) if hasattr(self, "grid") else 0.0
        return bar_words(min(0.5, mean_half_width(units, self.least_tail) + cell))

    def forecast(self, _units: int, _open_units: int) -> tuple[dict[str, Any], ...]:
        """What bars to expect as questions are asked, where that is not fixed by the plan."""
        return ()

    @property
    def least_tail(self) -> float:
        """The smaller tail of what is answered about one block."""
        tails: Any = self
        return float(min(tails.tail_low, tails.tail_high))

    def lacking(self, use: Use, worst: Charge) -> tuple[str, str] | None:
        """What a charge needs of the part, and what is left; None if it has enough."""
        allowed = self.most_refusals
        if allowed is not None and use.refusals + worst.noes > allowed:
            return "another refusal", f"none of {allowed}"
        if use.looks + worst.looks > self.looks:
            return f"{worst.looks:,} looks", f"{self.looks - use.looks:,} of {self.looks:,}"
        return None


def bar_words(half_width: float) -> tuple[float, str]:
    """A half-width, and what it says of a share of units."""
    if half_width >= 0.5:
        return half_width, "a share of units anywhere from 0 to 1: such a bar says nothing"
    return half_width, f"a share of units within ±{rounded_up(half_width, 2)} or less"


class LookPart(Part):
    """One protocol's part in a plan of looks: which coin, what it costs, what can go wrong.

    From its numbers and the plan's order it rebuilds its coin, measures what a look costs, and
    lists its failure classes (`holdfast.theory.transfer`).
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[LookPart]]] = {}

    def __init_subclass__(cls) -> None:
        cls.kinds[cls.kind] = cls

    @abstractmethod
    def classes(self, order: float, blocks: int) -> tuple[FailureClass, ...]:
        """What can go wrong with looks, each with its share of β."""

    @abstractmethod
    def shares(self, blocks: int, /) -> tuple[float, ...]:
        """The shares of β that the part uses, those without a look included."""

    @abstractmethod
    def prices(self, order: float) -> VerdictPrices:
        """What a look costs at this order, measured on the coin as it is stored."""

    @abstractmethod
    def planned(self, order: float) -> float:
        """What the planned use of the part costs at most, in stability."""

    def divergences(
        self, plan: JointPlan, order: float, noes: int, yeses: int
    ) -> tuple[float, float]:
        """What a No and a Yes tell of one unit, at this order; the coin is that of the plan's."""
        del noes, yeses
        told = look_divergence(self.coin(plan.order), order)
        return told, told

    @abstractmethod
    def coin(self, order: float) -> Any:
        """The coin of every look."""

    @abstractmethod
    def sound(self, order: float, budget: float, blocks: int) -> bool:
        """Whether what stands beside the classes fits; the classes are checked by the plan."""

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text."""
        return {"kind": self.kind, **asdict(cast(Any, self))}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> LookPart:
        """The part that `to_dict` wrote."""
        _load_kinds()
        kind: Any = LookPart.kinds[data["kind"]]
        values = {name: value for name, value in data.items() if name != "kind"}
        return cast(LookPart, kind(**typed(kind, values)))


class SetPlan(ABC):
    """What is promised of one set of blocks."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[SetPlan]]] = {}
    order: float
    confidence: float
    subblocks: int = 1
    """Sub-blocks that make one block: the same number for all parts."""
    by_looks: ClassVar[bool] = False
    """Whether answers are drawn by coins, so that one unit has a limit on what is told of it."""

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            cls.kinds[cls.kind] = cls

    blocks: Any
    """How many there are."""
    parts: Any
    """What can be asked of them, as a tuple of `Part`."""

    @property
    @abstractmethod
    def set_name(self) -> str:
        """What the set of its blocks is called."""

    @property
    @abstractmethod
    def limit(self) -> Fraction:
        """What all charges together may come to."""

    @abstractmethod
    def verify(self) -> bool:
        """Whether the promise can be proved from the plan's numbers, again and from scratch."""

    def as_set(self) -> SetPlan:
        """What is sealed for it: itself."""
        return self

    def past(self) -> Any:
        """What was told so far, to begin with; None where levels do not depend on it."""
        return None

    @abstractmethod
    def use(self, account: Account) -> tuple[float, float, str]:
        """What is used of how much, and of what."""

    def price(self, charge: Charge) -> Fraction:
        """What a charge takes of what `use` counts."""
        return charge.price

    def paying(self, currency: str) -> str:
        """What limits its questions, for people."""
        return f"Answers are exact, and what is limited is how much is said: {currency}."

    @abstractmethod
    def rest(self, account: Account) -> float:
        """What can still be charged, rounded down."""

    @property
    def failure(self) -> float:
        """β: 0.05 for a confidence of 0.95, as written."""
        return float(1 - Fraction(repr(float(self.confidence))))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts: those of their protocols, unless the plan has two of one."""
        return tuple(part.name for part in self.parts)

    @property
    def universes(self) -> tuple[int, ...]:
        """The numbers of different blocks that hypotheses were planned for."""
        return tuple(part.elements for part in self.parts if part.elements is not None)

    def part(self, name: str) -> Any:
        """The part of this name."""
        for part in self.parts:
            if part.name == name:
                return part
        hint = "Make a plan that covers it."
        raise InvalidInput("protocol", name, f"one of {', '.join(self.names)}", hint)

    def kept(self) -> dict[str, object]:
        """Plain data with the plan's kind, as a ledger keeps it."""
        return {"kind": self.kind, **asdict(cast(Any, self))}

    @classmethod
    def read(cls, data: dict[str, Any]) -> Self:
        """The plan that `kept` wrote, less its kind."""
        return cast(Self, cast(Any, cls)(**typed(cls, data)))


def _load_kinds() -> None:
    """Load every protocol: what is read may be of any."""
    import_module("holdfast.protocols.registry")


def plan_from_dict(data: Mapping[str, object]) -> SetPlan:
    """The plan that `kept` wrote; refused unless it proves itself again.

    >>> from holdfast.protocols.split import split_plan
    >>> plan = split_plan(3)
    >>> plan_from_dict(plan.kept()) == plan
    True
    """
    _load_kinds()
    try:
        values = dict(data)
        plan = SetPlan.kinds[cast(str, values.pop("kind"))].read(values)
        sound = plan.verify() and plan.kept() == dict(data)
    except (TypeError, KeyError, AttributeError, ArithmeticError, ValueError) as wrong:
        raise InvalidInput("plan", str(wrong), "a complete plan as it was written") from wrong
    if not sound:
        hint = "It was changed after it was made: make it again."
        raise InvalidInput("plan", data.get("kind"), "one that certifies its own promises", hint)
    return plan


def typed(kind: Any, data: dict[str, Any]) -> dict[str, Any]:
    """The numbers, each in the type that it was written with."""
    types = {field.name: field.type for field in fields(kind)}
    for name, value in data.items():
        if type(value).__name__ != types[name]:
            raise TypeError(f"{name} must be of type {types[name]}")
    return data


def json_object(text: str, what: str) -> dict[str, Any]:
    """The object in a JSON text, or an error that says what it should have been.

    >>> json_object('{"blocks": 3}', "a plan")
    {'blocks': 3}
    """
    try:
        data = json.loads(text)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise InvalidInput("plan", text, f"the JSON text of {what}") from wrong
    if not isinstance(data, dict):
        raise InvalidInput("plan", data, "a JSON object")
    return data


class OwnPlan(SetPlan, Part):
    """A plan that is its own only part, charged in questions or refusals and not in looks."""

    order = 2.0  # nothing depends on it

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self,)

    @property
    def set_name(self) -> str:
        return self.protocol

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the set."""
        return self.set_name

    @property
    def looks(self) -> int:  # type: ignore[override]
        """Every question is one."""
        return self.queries

    def rest(self, account: Account) -> float:
        return float(account.limit - account.charged)

    def lacking(self, use: Use, worst: Charge) -> tuple[str, str] | None:
        short = super().lacking(use, worst)
        return short and ("another question", "none")


@dataclass(frozen=True)
class JointPlan(SetPlan):
    """Several protocols on one budget, certified together.

        for all protocols at once, with probability at least `confidence`, every promise is kept,

    whatever mixture of the parts is used, in whatever order, as long as what is charged stays
    within `budget` and every part within its looks and refusals. `verify()` proves it again: it
    rebuilds every coin and checks every failure class at the curve of the whole budget; the shares
    of β add up to at most 1 − confidence. Proof: docs/explanation/theory/budget.md.
    """

    kind: ClassVar[str] = "joint"
    by_looks: ClassVar[bool] = True

    blocks: int
    order: float
    budget: float
    confidence: float
    parts: tuple[LookPart, ...]

    def __post_init__(self) -> None:
        whole_number("blocks", self.blocks, 1, BLOCKS_MAX)
        real_number("order", self.order, ORDER_MIN, ORDER_MAX)
        real_number("budget", self.budget, 0, open_low=True)
        real_number("confidence", self.confidence, 0, 1, open_low=True, open_high=True)
        if not self.parts or len(set(self.names)) != len(self.names):
            raise InvalidInput("parts", self.names, "at least one, each name once")
        check_one_split(self.names, self.parts)

    @property
    def set_name(self) -> str:
        """Plans of looks share the main set, unless their blocks are made of sub-blocks."""
        return "main" if self.subblocks == 1 else "amplified"

    @property
    def subblocks(self) -> int:  # type: ignore[override]
        return self.parts[0].subblocks

    @property
    def limit(self) -> Fraction:
        return Fraction(self.budget)

    def use(self, account: Account) -> tuple[float, float, str]:
        return account.spent, self.budget, "stability"

    def paying(self, _currency: str) -> str:
        return (
            f"All questions share one budget: {number(self.budget)} in Rényi stability at order "
            f"{number(self.order)}. Every look at the data takes a part of it before it is drawn."
        )

    def rest(self, account: Account) -> float:
        if not account.charged:
            return float(account.limit)
        return float(account.limit - account.charged) * (1 - ROUNDING)

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

    def kept(self) -> dict[str, object]:
        return {"kind": self.kind, "plan": self.to_dict()}

    @classmethod
    def read(cls, data: dict[str, Any]) -> Self:
        return cls.from_dict(data["plan"])

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text, as `holdfast plan --json` prints them."""
        data: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        data["parts"] = [part.to_dict() for part in self.parts]
        return {"format": JOINT_FORMAT, "protocols": list(self.names), **data}

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """The plan that `to_dict` wrote; refused unless it proves itself again."""
        names = {f.name for f in fields(cls)} | {"format", "protocols"}
        if data.get("format") != JOINT_FORMAT or set(data) != names:
            hint = "Make the plan again with this version of Holdfast."
            received = sorted(map(str, data))
            raise InvalidInput("plan", received, f"a joint plan of format {JOINT_FORMAT}", hint)
        try:
            values = {f.name: data[f.name] for f in fields(cls)}
            parts = cast(list[Mapping[str, Any]], data["parts"])
            values["parts"] = tuple(map(LookPart.from_dict, parts))
            plan = cls(**cast(dict[str, Any], values))
            sound = plan.verify() and plan.to_dict() == dict(data)
        except (TypeError, ValueError, AttributeError, ArithmeticError, KeyError) as wrong:
            raise InvalidInput("plan", str(wrong), "a complete plan as it was written") from wrong
        if not sound:
            hint = "It was changed after it was made: make it again."
            raise InvalidInput("plan", plan.blocks, "a plan that certifies its own promises", hint)
        return plan

    @classmethod
    def from_json(cls, text: str) -> Self:
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


FLOOR = 1e-6  # chance, times looks over β, at which coins level off: it costs next to nothing


@dataclass(frozen=True)
class Setting:
    """Order and limit of the whole budget; what one request may use of it and of β."""

    order: float
    limit: float
    own: float
    failure: float

    @property
    def curve(self) -> Curve:
        return RenyiCurve(self.order, self.limit)

    def drift(self, tail: float, failure: float) -> float:
        """The share of blocks below which the sample proves nothing about a tail."""
        return decisive_mass(self.curve, tail, failure) / failure


class Request(ABC):
    """What a study wants of one protocol."""

    protocol: ClassVar[str]
    queries: int
    name: str
    subblocks: int = 1  # as in the part

    @property
    def key(self) -> str:
        """The name of its part: its own, or the protocol's."""
        return self.name or self.protocol

    def starts(self) -> tuple[tuple[float, ...], ...]:
        """Where to start the search for the request's own parameters."""
        return ((),)

    @property
    @abstractmethod
    def width(self) -> float:
        """How far apart the tails are: the size of the promise, for first guesses of settings."""

    def settings_start(self, failure: float) -> tuple[float, float]:
        """Order − 1 and budget near which good plans of this width have been found."""
        width, nats = max(self.width, 0.02), max(1.0, -math.log(failure) / 3)
        excess = (4 + 28 * (1 - width) / width) * nats
        return min(excess, 60.0), 0.8 * width**3

    @abstractmethod
    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        """The blocks that the setting needs, as a real number; infinite if none is enough."""

    @abstractmethod
    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> LookPart | None:
        """The part at this setting, certified or not; None if no target fits these blocks.

        `limit` is the budget of the whole plan once all its coins are measured.
        """


def share_from(logit: float) -> float:
    """A share of β between 0.2 % and 99.8 %."""
    return 1 / (1 + math.exp(-min(max(logit, -6.0), 6.0)))


def two_sided(
    setting: Setting, tails: tuple[float, float], shares: tuple[float, float], reaches: float
) -> float:
    """Blocks for two failure classes with the best target between them."""
    low, high = (setting.drift(t, f) for t, f in zip(tails, shares, strict=True))
    return reaches / (1 - low - high) if low + high < 1 else math.inf


@dataclass(frozen=True)
class ProtocolMix:
    """How many questions of each protocol, and what is promised of them."""

    queries: Mapping[str, int]
    grid: int = 32
    tail: float | None = None
    confidence: float = 0.95
    refusals: int = 10
    rounds: int = 5
    universe: int | None = None

    def __post_init__(self) -> None:
        if not self.queries:
            raise InvalidInput("protocols", "", "at least one protocol")
        for name, count in self.queries.items():
            whole_number(f"queries for {name}", count, 1, QUERIES_MAX)
        whole_number("grid", self.grid, 2, 2**62)
        whole_number("refusals", self.refusals, 1, QUERIES_MAX)
        whole_number("rounds", self.rounds, 1, QUERIES_MAX)
        real_number("confidence", self.confidence, 0, 1, open_low=True, open_high=True)
        if self.tail is not None:
            real_number("tail", self.tail, 0, 0.5, open_low=True, open_high=True)

    def tail_or(self, default: float) -> float:
        """The tail, if it was given."""
        return default if self.tail is None else self.tail


def _alone(plan: Callable[..., JointPlan], request: Request, confidence: float) -> JointPlan:
    return plan(request, confidence=confidence)


@dataclass(frozen=True)
class Wanted:
    """What `--protocols` makes of a name: a request that shares a budget, or a plan of its own.

    `make(mix, queries, confidence, units)`; where it is `own`, a request is planned by itself, by
    `plan(joint_plan, request, confidence)`.
    """

    make: Callable[[ProtocolMix, int, float, int | None], Request | SetPlan]
    own: bool = True
    plan: Callable[[Callable[..., JointPlan], Request, float], SetPlan] = _alone

    def planned(
        self, joint_plan: Callable[..., JointPlan], made: Request | SetPlan, confidence: float
    ) -> SetPlan:
        """The plan that was made, or that of the request."""
        return made if isinstance(made, SetPlan) else self.plan(joint_plan, made, confidence)


# Accounts: what has been charged to a plan, and what that leaves.
#
# A question first holds the most that it can cost; if that does not fit, nothing is drawn and
# nothing is charged. After the draw it is settled at what it did cost: a Yes is cheaper than a No.
# Why the settled charges, and not those held, may be counted: docs/explanation/theory/budget.md.
#
# Charges are added up without rounding, so that their sum never exceeds the limit, not even in the
# last bit. An account is plain arithmetic: a holdout in memory and a durable ledger both keep one,
# and the same charges give the same account.


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
