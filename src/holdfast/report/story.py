"""What happened to a holdout, read from the rows of its ledger and from nothing else.

The same rows give the same story, and the same story the same page, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from holdfast.grids import Grid
from holdfast.holdout.books import Books
from holdfast.holdout.records import Result, read_result
from holdfast.holdout.spec import BlockSet, Charter
from holdfast.holdout.status import SetStatus, Status, status_of
from holdfast.ledger.ledger import Receipt, Row, verify_chain
from holdfast.planning.joint import JointPlan
from holdfast.protocols.budget import Charge

__all__ = ["Asked", "Lost", "Spending", "Story", "Use", "read_story"]


@dataclass(frozen=True)
class Asked:
    """A question that was answered. `share` is what it took of its set's budget."""

    number: int
    row: Row
    set: str
    question: dict[str, Any]
    grid: Grid | None
    result: Result
    charges: tuple[Charge, ...]
    share: float

    @property
    def text(self) -> str:
        """The estimator, as people read it."""
        return str(self.question["estimator"].get("text", ""))

    @property
    def where(self) -> str | None:
        """The filter."""
        kept = self.question["estimator"].get("where")
        return None if kept is None else str(kept)


@dataclass(frozen=True)
class Lost:
    """A reservation without a record: charged in full, its answer never seen."""

    row: Row
    set: str
    place: float  # on the axis of question numbers


@dataclass
class Use:
    """Looks of one part, and how many of them said No; lost ones at their worst."""

    looks: int = 0
    noes: int = 0

    def add(self, charge: Charge) -> None:
        """Count one charge."""
        self.looks += charge.looks
        self.noes += charge.noes


@dataclass
class Spending:
    """One set's budget over its questions: (question number, share spent), rising."""

    points: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0)])
    uses: dict[str, Use] = field(default_factory=dict)
    charged: Fraction = Fraction(0)


@dataclass(frozen=True)
class Story:
    """Everything that the page shows."""

    charter: Charter
    status: Status
    head: Receipt
    first: Row
    last: Row
    asked: tuple[Asked, ...]
    lost: tuple[Lost, ...]
    spending: dict[str, Spending]

    @property
    def sets(self) -> list[tuple[BlockSet, SetStatus]]:
        """Every set with its state."""
        return list(zip(self.charter.sets, self.status.sets, strict=True))


def read_story(holdout: str, rows: Sequence[Row]) -> Story:
    """Follow the rows; a broken chain, or a plan that no longer proves itself, is refused."""
    head = verify_chain(holdout, rows)
    charter = Charter.from_dict(holdout, rows[0].body)
    reader = _Reader(charter, head, rows)
    for row in rows:
        reader.read(row)
    return Story(
        charter=charter,
        status=reader.status(),
        head=head,
        first=rows[0],
        last=rows[-1],
        asked=tuple(reader.asked),
        lost=tuple(reader.lost),
        spending=reader.spending,
    )


class _Reader:
    """The fold over the rows."""

    def __init__(self, charter: Charter, head: Receipt, rows: Sequence[Row]) -> None:
        self._charter, self._head = charter, head
        self._sets = {each.name: each for each in charter.sets}
        settled = (row.body["reserves"] for row in rows if row.kind == "recorded")
        self._settled = {number for numbers in settled for number in numbers}
        self._books = Books(charter.sets)
        self.asked: list[Asked] = []
        self.lost: list[Lost] = []
        self.spending = {name: Spending() for name in self._sets}

    def status(self) -> Status:
        return status_of(self._charter, Path(), self._books, self._head)

    def read(self, row: Row) -> None:
        self._books.read([row])
        if row.kind == "recorded":
            self._recorded(row)
        elif row.kind == "reserved" and row.number not in self._settled:
            self._never_recorded(row)

    def _recorded(self, row: Row) -> None:
        name, question = row.body["set"], row.body["question"]
        charges = tuple(Charge.from_dict(each) for each in row.body.get("charges", ()))
        number = len(self.asked) + 1
        before = self.spending[name].points[-1][1]
        after = self._spend(name, charges, float(number))
        receipt = str(Receipt(self._charter.identity, row.number, row.digest))
        grid = question.get("grid")
        self.asked.append(
            Asked(
                number=number,
                row=row,
                set=name,
                question=question,
                grid=None if grid is None else Grid.from_json(grid),
                result=read_result(row.body["answer"], receipt, cached=False),
                charges=charges,
                share=max(0.0, after - before),
            )
        )

    def _never_recorded(self, row: Row) -> None:
        charge = row.body.get("charge")
        charges = () if charge is None else (Charge.from_dict(charge),)
        place = len(self.asked) + 0.5
        self._spend(row.body["set"], charges, place)
        self.lost.append(Lost(row, row.body["set"], place))

    def _spend(self, name: str, charges: tuple[Charge, ...], place: float) -> float:
        """Add charges to a set's curve; what other questions hold at the moment is not in it."""
        spending, plan = self.spending[name], self._sets[name].plan
        for charge in charges:
            spending.uses.setdefault(charge.part, Use()).add(charge)
            spending.charged += charge.price
        if isinstance(plan, JointPlan):
            share = float(spending.charged / Fraction(plan.budget))
        else:
            share = next(each.used for each in self.status().sets if each.name == name)
        spending.points.append((place, share))
        return share
