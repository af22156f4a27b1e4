"""A plan: what is promised, what carries the promise, and what else would have done it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, cast

from holdfast.errors import InvalidInput
from holdfast.planning.alternatives import METHODS, Alternative, recommended, split_for
from holdfast.planning.shapes import Shape, shape_from_dict
from holdfast.planning.written import json_object
from holdfast.theory.coins import Coin, coin_profile, steepest_coin
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.sizing import Promise, Size, certified

__all__ = ["FORMAT", "Plan"]

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
        from holdfast.planning.explain import explain

        return explain(self)

    def _repr_html_(self) -> str:
        from holdfast.notebook import html_table
        from holdfast.planning.explain import described, title

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
