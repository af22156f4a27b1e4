"""A plan for estimates: its numbers, its proof, in words and as JSON; what else would do."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, cast

from holdfast.errors import InvalidInput
from holdfast.protocols.answers import ASSUMPTIONS, html_table
from holdfast.protocols.plans import SetPlan, json_object
from holdfast.protocols.shapes import Shape, shape_from_dict
from holdfast.theory.coins import Coin, coin_profile, steepest_coin
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.paper import adaptive_iqr, adaptive_tails
from holdfast.theory.sizing import (
    FreshShare,
    Promise,
    Size,
    Sized,
    best_exponential,
    best_gaussian,
    certified,
    fresh_split,
    split_failure,
)

__all__ = [
    "FORMAT",
    "METHODS",
    "Alternative",
    "Plan",
    "compare",
    "described",
    "explain",
    "recommended",
    "split_blocks",
    "split_for",
    "split_tail",
    "theorem_chain",
    "title",
]


# The same promise by every known method: what each needs, and what cannot be counted.
#
# paper        the paper's own constants (thm `adaptive-iqr`; other tails re-derived from `gen`)
# split        fresh blocks for every question
# exponential  exponential-mechanism median      } the paper's mechanisms under our analysis
# gaussian     noisy binary search               }
# steepest     the steepest coin
# interior     Bun et al. 2015, 2^O(log* r) blocks instead of log r        asymptotic only
# linear       Steinke & Ullman 2016 for linear queries, without log k     asymptotic only


METHODS = ("paper", "split", "exponential", "gaussian", "steepest")
_CERTIFYING = ("steepest", "split", "gaussian", "exponential")  # preferred in this order on a tie


@dataclass(frozen=True)
class Alternative:
    """A method, the blocks it needs for the promise (None where that cannot be stated), and the
    settings with which it keeps it.
    """

    method: str
    blocks: int | None
    note: str = ""
    settings: tuple[tuple[str, float], ...] = ()


def compare(
    promise: Promise, steepest: Sized, target: float | None = None
) -> tuple[Alternative, ...]:
    """Every method on the same promise, in the order of METHODS, those without a number last.

    With a target of one's own, only the methods that can aim at it are counted.
    """
    free = target is None or (promise.symmetric and target == 0.5)
    entries = (
        Alternative("paper", _paper_blocks(promise)) if free else _aimless("paper"),
        _split(promise) if free else _aimless("split"),
        _exponential(promise) if free else _aimless("exponential"),
        _gaussian(promise, target),
        Alternative("steepest", steepest.size.blocks),
        Alternative("interior", None, "asymptotic only: Bun et al. 2015 state no constants"),
        Alternative("linear", None, "asymptotic only: Steinke & Ullman 2016 state no constants"),
    )
    return tuple(sorted(entries, key=lambda entry: entry.blocks is None))


def recommended(alternatives: tuple[Alternative, ...]) -> Alternative:
    """The certifying method with the fewest blocks."""
    counted = {a.method: a for a in alternatives if a.blocks is not None}
    able = [counted[name] for name in _CERTIFYING if name in counted]
    return min(able, key=lambda a: a.blocks or 0)


def split_blocks(promise: Promise) -> int:
    """Fresh splitting: k times the blocks of one question."""
    return promise.queries * split_for(promise).blocks


def split_for(promise: Promise) -> FreshShare:
    """What splitting gives one question of the promise: its blocks, and the rank that answers."""
    return fresh_split(promise.queries, promise.failure, promise.tail_low, promise.tail_high)


def split_tail(promise: Promise, blocks: int) -> float:
    """The largest tail, on both sides, that `blocks` fresh blocks for one question promise."""
    low, high, share = 0.0, 0.5, promise.failure / promise.queries
    for _ in range(40):
        middle = (low + high) / 2
        if split_failure(blocks, (blocks + 1) // 2, middle, middle) <= share:
            low = middle
        else:
            high = middle
    return low


def _split(promise: Promise) -> Alternative:
    one = split_for(promise)
    settings = (("blocks_per_question", one.blocks), ("rank", one.rank))
    return Alternative("split", promise.queries * one.blocks, "", settings)


def _paper_blocks(promise: Promise) -> int | None:
    """The paper's constants where it states them (ρ = 1/4), else re-derived from `gen`."""
    k, r, beta = promise.queries, promise.grid_size, promise.failure
    try:
        if promise.tail_low == promise.tail_high == 0.25:
            return adaptive_iqr(k, r, beta)
        return adaptive_tails(k, r, beta, promise.tail_low, promise.tail_high).blocks
    except InvalidInput:  # outside the range in which its theorems hold
        return None


def _gaussian(promise: Promise, target: float | None) -> Alternative:
    sized = best_gaussian(promise, target)
    settings = (("sigma", sized.parameters[0]), ("twice_target", sized.size.twice_target))
    return Alternative("gaussian", sized.size.blocks, "", settings)


def _exponential(promise: Promise) -> Alternative:
    if not promise.symmetric:
        return Alternative("exponential", None, "its score is built for the median: equal tails")
    sized = best_exponential(promise)
    return Alternative("exponential", sized.size.blocks, "", (("epsilon", sized.parameters[1]),))


def _aimless(method: str) -> Alternative:
    return Alternative(method, None, "aims where its own promise is cheapest, not at a target")


# A plan: what is promised, what carries the promise, and what else would have done it.


FORMAT = 1


@dataclass(frozen=True)
class Plan:
    """An immutable plan. `print(plan)` explains it; `plan.verify()` proves it again.

    `blocks`, `looks`, `order`, `budget`, `floor` and `tau` describe the steepest coin. `method` is
    the recommended way to keep the promise, usually the same one; `settings`, `block_size`, `rows`,
    `leftover` and `error` are for the recommended method.
    """

    method: str
    queries: int
    grid: int
    tail_low: float
    tail_high: float
    confidence: float
    blocks: int
    twice_target: int
    failure_low: float
    failure_high: float
    looks: int
    order: float
    look_price: float
    budget: float
    floor: float
    tau: float
    alternatives: tuple[Alternative, ...]
    binding: str
    settings: tuple[tuple[str, float], ...] = ()
    shape: Shape | None = None
    block_size: int | None = None
    rows: int | None = None
    leftover: int | None = None
    error: float | None = None
    rounding: float | None = None

    @property
    def promise(self) -> Promise:
        """The promise alone."""
        return Promise(self.queries, self.grid, self.tail_low, self.tail_high, self.confidence)

    @property
    def tail(self) -> float | None:
        """The tail, where both sides have the same."""
        return self.tail_low if self.tail_low == self.tail_high else None

    @property
    def tails(self) -> tuple[float, float]:
        """(a, b): every answer lies in qi(a, b)."""
        return self.tail_low, float(1 - Fraction(repr(self.tail_high)))

    @property
    def target(self) -> float:
        """The quantile that the looks aim at."""
        return self.twice_target / (2 * self.blocks)

    @property
    def recommended_blocks(self) -> int:
        """Blocks of the recommended method."""
        return self.blocks_of(self.method)

    def blocks_of(self, method: str) -> int:
        """Blocks that one of the compared methods needs."""
        for alternative in self.alternatives:
            if alternative.method == method and alternative.blocks is not None:
                return alternative.blocks
        known = ", ".join(a.method for a in self.alternatives if a.blocks is not None)
        raise InvalidInput("method", method, f"one of {known}")

    def coin(self) -> Coin:
        """The coin of every look, rebuilt from its order, price and floor."""
        return steepest_coin(self.order, self.look_price, self.floor)

    def as_set(self) -> SetPlan:
        """What is sealed for it: the same with a part that has a name."""
        from holdfast.planning.joint import joint_from

        if self.method != "split":
            return joint_from(self)
        from holdfast.protocols.split import split_plan

        return split_plan(self.queries, self.tail_low, self.tail_high, self.confidence)

    def verify(self) -> bool:
        """Rebuild the coin, measure its price, and check the transfer theorem from scratch."""
        promise, coin = self.promise, self.coin()
        spent = promise.looks * coin.price(self.order)
        if self.looks != promise.looks or self.tau != coin.tau or spent > self.budget:
            return False
        size = Size(self.blocks, self.twice_target, self.failure_low, self.failure_high)
        curve = RenyiCurve(self.order, self.budget)
        return certified(promise, curve, coin_profile(coin, self.looks), size)

    def _consistent(self) -> bool:
        """Whether the numbers beside the promise fit it and each other."""
        chosen = recommended(self.alternatives)
        if chosen.method != self.method or self.blocks_of("steepest") != self.blocks:
            return False
        if not set(METHODS) <= {a.method for a in self.alternatives}:
            return False
        return self._splits() and self._fits_rows() and self._errs()

    def _splits(self) -> bool:
        """Splitting, where it is counted, keeps the promise with the blocks and rank it names."""
        counted = {a.method: a.blocks for a in self.alternatives if a.blocks is not None}
        one = split_for(self.promise)
        if "split" in counted and counted["split"] != self.queries * one.blocks:
            return False
        if self.method != "split":
            return bool(self.settings) == (self.method != "steepest")
        return dict(self.settings) == {"blocks_per_question": one.blocks, "rank": one.rank}

    def _fits_rows(self) -> bool:
        if self.rows is None or self.block_size is None:
            return self.leftover is None
        return 0 <= self.rows - self.block_size * self.recommended_blocks == self.leftover

    def _errs(self) -> bool:
        if self.shape is None or self.block_size is None:
            return self.error is None and self.rounding is None
        sampling = self.shape.error(self.block_size, min(self.tail_low, self.tail_high))
        return self.error == sampling + (self.rounding or 0.0) and (self.rounding or 0.0) >= 0.0

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text, as `holdfast plan --json` prints them."""
        data: dict[str, object] = {"format": FORMAT, "tail": self.tail, "tails": list(self.tails)}
        for field in fields(self):
            data[field.name] = getattr(self, field.name)
        counted = [a for a in self.alternatives if a.blocks is not None]
        data["alternatives"] = [{"method": a.method, "blocks": a.blocks} for a in counted]
        uncounted = [a for a in self.alternatives if a.blocks is None]
        data["settings"] = dict(self.settings)
        data["shape"] = None if self.shape is None else self.shape.to_dict()
        data["uncounted"] = [{"method": a.method, "note": a.note} for a in uncounted]
        return data

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Plan:
        """The plan that `to_dict` wrote; refused if it is not one, or does not prove itself.

        The promise is proved again from its numbers; what stands beside it must be consistent.
        """
        names = {field.name for field in fields(cls)}
        derived = {"format", "tail", "tails", "uncounted"}
        if data.get("format") != FORMAT or set(data) != names | derived:
            hint = "Make the plan again with this version of Holdfast."
            raise InvalidInput("plan", sorted(map(str, data)), f"a plan of format {FORMAT}", hint)
        try:
            plan = cls(**{name: _field(name, data) for name in names})
            sound = plan.verify() and plan._consistent() and plan.to_dict() == dict(data)
        except (TypeError, ValueError, AttributeError, ArithmeticError, KeyError) as wrong:
            raise InvalidInput("plan", str(wrong), "a complete plan as it was written") from wrong
        if not sound:
            hint = "It was changed after it was made: make it again."
            raise InvalidInput("plan", plan.blocks, "a plan that certifies its own promise", hint)
        return plan

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that `to_json` wrote."""
        return cls.from_dict(json_object(text, "a plan"))

    def __str__(self) -> str:
        return explain(self)

    def _repr_html_(self) -> str:
        return html_table(title(self), described(self))


_WHOLE = {"queries", "grid", "blocks", "twice_target", "looks", "block_size", "rows", "leftover"}
_TEXT = {"method", "binding"}
_OPTIONAL = {"block_size", "rows", "leftover", "error", "rounding"}


def _field(name: str, data: Mapping[str, object]) -> Any:
    """One field of a written plan in its own type; a TypeError says which one is not."""
    value = data[name]
    if name == "alternatives":
        entries = cast(list[dict[str, Any]], [*cast(Any, value), *cast(Any, data["uncounted"])])
        return tuple(Alternative(**{"blocks": None, **entry}) for entry in entries)
    if name == "settings":
        return tuple((str(key), number) for key, number in cast(Any, value).items())
    if name == "shape":
        return None if value is None else shape_from_dict(cast(Mapping[str, object], value))
    if value is None and name in _OPTIONAL:
        return None
    wanted: type = str if name in _TEXT else int if name in _WHOLE else float
    if type(value) is not wanted:
        raise TypeError(f"{name} must be of type {wanted.__name__}")
    return value


# A plan in words: the promise, the numbers, the alternatives, the chain of theorems.


_CHAINS = {
    "steepest": (
        "look (coins) → search → adaptive composition of Rényi divergence (divergence) → "
        "profile and centred transfer (transfer)"
    ),
    "gaussian": "Gaussian counts (gaussian) → search → Gaussian composition → centred transfer",
    "exponential": "exponential median (exponential) → composition → centred transfer",
    "split": "fresh blocks for every question, binomial tails, union bound (splitting)",
}


def theorem_chain(method: str) -> str:
    """Which theorems carry a method's promise; names in brackets are pages of the theory."""
    return _CHAINS[method]


def explain(plan: Plan, *, others: bool = True) -> str:
    """The plan as a short text, with or without the line of alternatives."""
    items = described(plan)
    if not others:
        del items["others"]
    return "\n".join([title(plan), *(_item(label, text) for label, text in items.items())])


def title(plan: Plan) -> str:
    """What the plan is for."""
    questions = "1 question" if plan.queries == 1 else f"{plan.queries:,} questions"
    return f"Plan for {questions} on a grid of {plan.grid:,} points"


def described(plan: Plan) -> dict[str, str]:
    """The plan in labelled lines."""
    a, b = plan.tails
    interval = f"({a:.4g}, {b:.4g})" if a > 1e-3 else f"({a:.4g}, 1 − {plan.tail_high:.4g})"
    together = "it" if plan.queries == 1 else f"all {plan.queries:,}"
    items = {
        "promise": (
            f"every answer lies in the {interval} quantile interval of its estimator on "
            f"fresh data, {together} at once with probability at least {plan.confidence:.6g}"
        ),
        "method": _method(plan),
        "binding": plan.binding,
        "coin": (
            f"{plan.looks:,} looks at order {plan.order:.4g} and price {plan.look_price:.4g}: "
            f"budget {plan.budget:.4g}; floor {plan.floor:.3g} after {plan.tau:g} counts; "
            f"target quantile {plan.target:.4g}"
        ),
    }
    if plan.rows is not None:
        items["data"] = _data(plan)
    if plan.error is not None:
        items["error"] = _error(plan)
    items["others"] = _others(plan)
    return {**items, "proof": theorem_chain(plan.method), "assumes": ASSUMPTIONS}


def _item(label: str, text: str) -> str:
    return textwrap.fill(text, width=98, initial_indent=f"  {label:<9}", subsequent_indent=" " * 11)


def _method(plan: Plan) -> str:
    blocks = f"{plan.recommended_blocks:,} blocks"
    if plan.method == "split":
        return (
            f"fresh splitting, {blocks}: for so few questions it is cheaper than the steepest "
            f"coin's {plan.blocks:,}"
        )
    names = {"steepest": "steepest coin", "gaussian": "Gaussian counts"}
    settings = ", ".join(f"{name} {value:.4g}" for name, value in plan.settings)
    text = f"{names.get(plan.method, plan.method)}, {blocks}"
    return f"{text} ({settings})" if settings else text


def _data(plan: Plan) -> str:
    used = (plan.rows or 0) - (plan.leftover or 0)
    text = f"{plan.recommended_blocks:,} blocks of {plan.block_size:,} units use {used:,} units"
    return f"{text}; {plan.leftover:,} left over" if plan.leftover else text


def _error(plan: Plan) -> str:
    about = plan.shape.describe() if plan.shape is not None else "the estimator"
    span = plan.shape.span if plan.shape is not None else None
    if span is not None and plan.error is not None and plan.error >= span / 2:
        return f"none: for {about} a bar of ±{plan.error:.4g} would say nothing"
    text = f"±{plan.error:.4g} about the middle of the answer's grid cell, for {about}"
    if plan.rounding:
        return f"{text}; ±{plan.rounding:.4g} of it is the cell"
    return f"{text}; half the cell comes on top"


def _others(plan: Plan) -> str:
    counted = [f"{a.method} {a.blocks:,}" for a in plan.alternatives if a.blocks is not None]
    return " · ".join(counted) + " blocks for the same promise"
