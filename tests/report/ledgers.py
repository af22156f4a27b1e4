"""Ledgers written by hand: the rows that a holdout would have written, without its data."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from holdfast.grids import Grid, grid
from holdfast.holdout.records import written_result
from holdfast.holdout.spec import AnyPlan, Charter, sets_for
from holdfast.ledger.ledger import Receipt, Row, genesis
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.requests import Estimates, Guesses
from holdfast.planning.solve import plan
from holdfast.protocols.answers import Answer, Claim, Verdict
from holdfast.protocols.budget import Charge
from holdfast.store.blocks import Manifest
from holdfast.store.table import Column, Schema

__all__ = ["IDENTITY", "Writer", "charter", "joint", "simple"]

IDENTITY = "0123456789abcdef0123456789abcdef"
UNITS = 30


@cache
def simple() -> JointPlan:
    """300 estimates."""
    return sets_for(plan(queries=300, grid=32, tail=0.25))[0].plan  # type: ignore[return-value]


@cache
def joint() -> JointPlan:
    """Estimates and guesses on one budget."""
    return joint_plan(Estimates(40, grid=16), Guesses(20, refusals=3))


def charter(*plans: AnyPlan, **changes: Any) -> Charter:
    """What a holdout with these plans would have been created as."""
    sets = sets_for(plans or simple())
    blocks = sum(each.blocks for each in sets)
    columns = changes.pop("columns", ("x", "arm"))
    schema = Schema(tuple(Column(name, kind) for name, kind in zip(columns, _KINDS, strict=False)))
    rows = blocks * UNITS + 107
    manifest = Manifest(
        units=rows,
        blocks=blocks,
        block_units=UNITS,
        unit_column=None,
        open_units=100,
        leftover_units=7,
        schema=schema,
    )
    values: dict[str, Any] = {
        "identity": IDENTITY,
        "name": "trial",
        "manifest": manifest,
        "sets": sets,
        "ranges": {"x": (0.0, 1.0)},
        "categories": {},
        "target": None,
        "seed": None,
        "new_budget": None,
        "earlier": (),
    }
    return Charter(**_with_later_fields({**values, **changes}))


_KINDS = ("number", "text", "boolean", "date", "timestamp")


def _with_later_fields(values: dict[str, Any]) -> dict[str, Any]:
    from dataclasses import fields

    return {each.name: values.get(each.name) for each in fields(Charter)}


@dataclass
class Writer:
    """A chain of rows that grows by questions and answers."""

    charter: Charter
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._add("created", self.charter.to_dict())

    def ask(
        self,
        text: str = "avg(x)",
        value: float = 0.5,
        *,
        where: str | None = None,
        low: float | None = None,
        high: float | None = None,
        points: Grid | None = None,
        end: bool = False,
        certified: bool = True,
        assuming: str = "",
        lost: bool = False,
    ) -> None:
        """An estimate, answered or lost."""
        points = points or grid(0, 1, points=32)
        block_set = self.charter.sets[0]
        part = block_set.plan.part("estimate")  # type: ignore[union-attr]
        price = Fraction(part.prices(block_set.plan.order).worst)  # type: ignore[union-attr]
        charge = Charge("estimate", points.looks * price, points.looks)
        about = {"engine": "sql", "text": text} | ({} if where is None else {"where": where})
        question = {"verb": "ask", "part": "estimate", "estimator": about}
        body = {"set": "main", "question": {**question, "grid": points.to_json()}}
        number = self._add("reserved", {**body, "charge": charge.to_dict()})
        if lost:
            return
        promise = "fresh data give it" + (f"; assuming that {assuming}" if assuming else "")
        answer = Answer(
            *("estimate", value, low, high, 0.25, 0.25, 0.95, promise, float(charge.price), 0.1),
            at_grid_end=end,
            certified=certified,
            block_units=self.charter.manifest.block_units,
        )
        self._record(body, [number], [charge], answer)

    def verify(
        self, guess: float, *, refused: bool, claim: Claim = "equals", gate: bool = False
    ) -> None:
        """A guess that stands (two looks), or is refused by the first."""
        block_set = self.charter.sets[0]
        part = block_set.plan.part("verify")  # type: ignore[union-attr]
        prices = part.prices(block_set.plan.order)  # type: ignore[union-attr]
        yes, no = Fraction(prices.yes), Fraction(prices.no)
        about = {"engine": "sql", "text": "avg(x)"}
        question = {"verb": "verify", "part": "verify", "estimator": about, "guess": guess}
        question |= {"claim": claim} | ({"gate": True} if gate else {})
        body = {"set": "main", "question": question}
        worst = Charge("verify", yes + max(yes, no), 2, 1)
        number = self._add("reserved", {**body, "charge": worst.to_dict()})
        charge = Charge("verify", no, 1, 1) if refused else Charge("verify", 2 * yes, 2)
        units = self.charter.manifest.block_units
        given = Verdict(
            *("verify", guess, claim, None, refused, 0.05, 0.25, 0.95, "it is so"),
            *(float(charge.price), 0.1, 3, True, units),
        )
        self._record(body, [number], [charge], given)

    def _record(
        self, body: dict[str, Any], reserves: list[int], charges: list[Charge], result: Any
    ) -> None:
        written = [charge.to_dict() for charge in charges]
        answer = written_result(result)
        more = {"reserves": reserves, "charges": written, "answer": answer}
        self._add("recorded", {**body, **more})

    def _add(self, kind: str, body: dict[str, Any]) -> int:
        last = self.rows[-1] if self.rows else None
        head = (
            Receipt(IDENTITY, 0, genesis(IDENTITY))
            if last is None
            else Receipt(IDENTITY, last.number, last.digest)
        )
        minute, second = divmod(head.number, 60)
        hour, minute = divmod(minute, 60)
        at = f"2026-01-31T{12 + hour}:{minute:02}:{second:02}.000000+00:00"
        self.rows.append(Row.after(head, kind, body, at=at))
        return self.rows[-1].number
