"""An account on a ledger: a budget of units, and questions that cost one each.

It keeps the order that a holdout keeps: charge, draw, record, answer. Whatever has the methods of
`Subject` can take its place in the campaign.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, Self

from holdfast.errors import HoldfastError
from holdfast.ledger.ledger import Ledger, Row, Transaction
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.randomness import system_entropy, uniform_index

__all__ = ["Account", "Acknowledged", "Subject"]

PRICE = 1
_LONGEST_DRAW = 2_000  # microseconds


class Acknowledged(NamedTuple):
    """What a user was told; the answer is None if the budget was exhausted."""

    request: str
    question: str
    answer: str | None


class Subject(Protocol):
    """Something durable that can be asked, and looked at after a crash."""

    @classmethod
    def create(cls, folder: Path, budget: int) -> None:
        """Make one that can pay for so many questions."""
        ...

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open it, in the process that will use it."""
        ...

    @classmethod
    def faults(cls, folder: Path, budget: int, seen: Iterable[Acknowledged]) -> list[str]:
        """What is not as it should be, given what users have seen."""
        ...

    def ask(self, question: str, request: str) -> str | None:
        """The answer, as text, or None if the budget is exhausted."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class Account:
    """The smallest thing that has a budget."""

    ledger_file: ClassVar[str] = "ledger.sqlite"

    def __init__(self, ledger: Ledger, pause: bool = True) -> None:
        self.ledger = ledger
        self._budget = ledger.rows()[0].body["budget"]
        self._spent = self._read = 0
        self._pause = pause

    @classmethod
    def create(cls, folder: Path, budget: int) -> None:
        SqliteLedger.create(folder / "ledger.sqlite", "account", {"budget": budget}).close()

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(SqliteLedger.open(folder / "ledger.sqlite"))

    @classmethod
    def on(cls, folder: Path, ledger: Ledger) -> Self:
        """One on this ledger, which may be elsewhere."""
        del folder
        return cls(ledger, pause=False)

    @classmethod
    def kept(cls, folder: Path) -> set[str]:
        """The answers that its ledger has."""
        with SqliteLedger.open(folder / cls.ledger_file) as ledger:
            return {row.body["drawn"] for row in ledger.rows() if row.kind == "recorded"}

    def ask(self, question: str, request: str) -> str | None:
        with self.ledger.lock(question, request):
            known = _known(self.ledger, question, request)
            if known is not None:
                return known
            with self.ledger.begin() as transaction:
                if self._charged(transaction) + PRICE > self._budget:
                    return None
                held = transaction.append(
                    "reserved", {"price": PRICE}, question=question, request=request
                )
            answer = self._draw()
            with self.ledger.begin() as transaction:
                body = {"drawn": answer, "reserved": held.number}
                transaction.append("recorded", body, question=question, request=request)
            return answer

    def close(self) -> None:
        self.ledger.close()

    def _charged(self, transaction: Transaction) -> int:
        """What all reservations cost, recorded or not; only new rows are read."""
        rows = transaction.rows(after=self._read)
        self._spent += sum(row.body["price"] for row in rows if row.kind == "reserved")
        self._read += len(rows)
        return self._spent

    def _draw(self) -> str:
        entropy = system_entropy()
        if self._pause:
            time.sleep(uniform_index(_LONGEST_DRAW, entropy) / 1e6)
        return f"{int(entropy.words(1)[0]):016x}"

    @classmethod
    def faults(cls, folder: Path, budget: int, seen: Iterable[Acknowledged]) -> list[str]:
        try:
            with SqliteLedger.open(folder / "ledger.sqlite") as ledger:
                ledger.verify()
                rows = ledger.rows()
        except HoldfastError as error:
            return [str(error)]
        return [*_bookkeeping(rows, budget), *_promises(rows, budget, list(seen))]


def _known(ledger: Ledger, question: str, request: str) -> str | None:
    """The answer that this request or this question has already; it is never drawn again."""
    mine = [row for row in ledger.requested(request) if row.kind == "recorded"]
    row = mine[-1] if mine else ledger.recorded(question)
    return None if row is None else str(row.body["drawn"])


def _bookkeeping(rows: list[Row], budget: int) -> list[str]:
    """Faults that the rows show by themselves."""
    faults = []
    held: dict[int, Row] = {}
    answered: set[str | None] = set()
    for row in rows:
        if row.kind == "reserved":
            held[row.number] = row
        elif row.kind == "recorded":
            paid = held.pop(row.body["reserved"], None)
            if paid is None or (paid.question, paid.request) != (row.question, row.request):
                faults.append(f"row {row.number} was answered and not paid")
            if row.question in answered or row.request in answered:
                faults.append(f"row {row.number} was drawn again")
            answered |= {row.question, row.request}
    if _charges(rows) > budget:
        faults.append(f"{_charges(rows)} charged on a budget of {budget}")
    return faults


def _promises(rows: list[Row], budget: int, seen: list[Acknowledged]) -> list[str]:
    """What users have seen, and the rows do not say."""
    answers = {row.question: row.body["drawn"] for row in rows if row.kind == "recorded"}
    faults = [
        f"{each.request} was told {each.answer}, the ledger says {answers.get(each.question)}"
        for each in seen
        if each.answer is not None and each.answer != answers.get(each.question)
    ]
    if any(each.answer is None for each in seen) and _charges(rows) + PRICE <= budget:
        faults.append(f"refused with {_charges(rows)} of {budget} charged")
    return faults


def _charges(rows: list[Row]) -> int:
    return sum(row.body["price"] for row in rows if row.kind == "reserved")
