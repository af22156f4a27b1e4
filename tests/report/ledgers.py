"""Ledgers written by hand: the rows that a holdout would have written, without its data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from holdfast.grids import Grid, grid
from holdfast.holdout.records import row_facts
from holdfast.holdout.spec import AnyPlan, HoldoutSpec, sets_for
from holdfast.ledger.ledger import Receipt, Row, genesis
from holdfast.planning.joint import joint_plan
from holdfast.planning.solve import plan
from holdfast.protocols.base import Paid, Question
from holdfast.protocols.guesses import Guesses
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.searches import Estimates
from holdfast.protocols.shapes import KnownSd
from holdfast.store.blocks import Manifest
from holdfast.store.table import Column, Schema

__all__ = ["AVERAGE", "IDENTITY", "Writer", "chained", "joint", "simple", "spec_for"]

AVERAGE = {"engine": "sql", "text": "avg(x)"}
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


def spec_for(*plans: AnyPlan, **changes: Any) -> HoldoutSpec:
    """What a holdout with these plans would have been created as."""
    sets = sets_for(plans or simple())
    blocks = sum(each.blocks for each in sets)
    columns = changes.pop("columns", {"x": "number", "arm": "text"})
    manifest = Manifest(
        units=blocks * UNITS + 107,
        blocks=blocks,
        block_units=UNITS,
        unit_column=changes.pop("unit", None),
        open_units=100,
        leftover_units=7,
        schema=Schema(tuple(Column(name, kind) for name, kind in columns.items())),
    )
    given = {"identity": IDENTITY, "name": "trial", "manifest": manifest, "sets": sets}
    given |= {"ranges": {"x": (0.0, 1.0)}, "categories": {}, "earlier": (), **changes}
    return HoldoutSpec(**{each.name: given.get(each.name) for each in fields(HoldoutSpec)})  # type: ignore[arg-type]


def chained(rows: list[Row], kind: str, body: dict[str, Any]) -> Row:
    """The next row, a second after the last."""
    last = rows[-1] if rows else None
    number, digest = (0, genesis(IDENTITY)) if last is None else (last.number, last.digest)
    minute, second = divmod(number, 60)
    hour, minute = divmod(minute, 60)
    at = f"2026-01-31T{12 + hour}:{minute:02}:{second:02}.000000+00:00"
    return Row.after(Receipt(IDENTITY, number, digest), kind, body, at=at)


@dataclass
class Writer:
    """A chain of rows that grows by questions and answers."""

    spec: HoldoutSpec
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._add("created", self.spec.to_dict())

    def ask(
        self,
        text: str = "avg(x)",
        value: float = 0.5,
        *,
        where: str | None = None,
        sd: float | None = None,
        points: Grid | None = None,
        assumes: str | None = None,
        lost: bool = False,
    ) -> None:
        """An estimate, at the next point of its grid and with a bar if `sd` is known, or lost."""
        points = points or grid(0, 1, points=32)
        about = {**AVERAGE, "text": text} | ({} if where is None else {"where": where})
        shape = None if sd is None else KnownSd(sd)
        drawn = None if lost else {"index": int(points.ceiling(value))}
        self.add(Question("ask", "estimate", about, points, shape=shape), drawn, assumes)

    def verify(self, guess: float, *, refused: bool, claim: str = "equals") -> None:
        """A guess that stands, or is refused by the first look."""
        asked = Question("verify", "verify", AVERAGE, guess=guess, claim=claim)
        sides = 2 if claim == "equals" else 1
        self.add(asked, {"yes": 0 if refused else sides})

    def add(
        self, question: Question, drawn: dict[str, Any] | None, assumes: str | None = None
    ) -> None:
        """The rows of a question of which this was drawn; None: it was lost after its first."""
        name = next(each.name for each, part in self.spec.parts if part.name == question.part)
        protocol = self.spec.protocol_of(name, question)
        body = {"set": name, "question": question.facts}
        (worst,) = protocol.worst(question)
        self._add("reserved", {**body, "charge": worst.to_dict()})
        if drawn is not None:
            paid = Paid(protocol.charges(question, drawn), 0.1, 3)
            facts = row_facts(paid, drawn, None, [] if assumes is None else [assumes])
            self._add("recorded", {**body, "reserves": [self.rows[-1].number], **facts})

    def _add(self, kind: str, body: dict[str, Any]) -> None:
        self.rows.append(chained(self.rows, kind, body))
