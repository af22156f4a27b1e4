"""Books: the state of a holdout as a pure fold over the rows of its ledger.

The same rows give the same books, whoever reads them: the process that asks, another one that takes
over after a crash, and `holdfast check`. A reservation without a record counts at its worst case.

    reserved   {set, question, charge}  or  {set, question, tally}
    recorded   {set, question, reserves: [row numbers], charges | tally, answer, learnt?}

An answer of null settles what a question reserved that was exhausted on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.errors import Damaged, HoldfastError
from holdfast.holdout.sets import BlockSet
from holdfast.ledger.rows import Row
from holdfast.planning.joint import JointPlan
from holdfast.protocols.account import Account, Charge

__all__ = ["Books", "JointBook", "TallyBook", "read_tally", "written_tally"]


class JointBook:
    """The account of a set whose plan is joint."""

    def __init__(self, plan: JointPlan) -> None:
        self.account = Account(plan)
        self._open: dict[int, Charge] = {}

    def reserve(self, number: int, body: Mapping[str, Any]) -> None:
        worst = Charge.from_dict(body["charge"])
        self.account.hold(worst)
        self._open[number] = worst

    def record(self, body: Mapping[str, Any]) -> None:
        for number, actual in zip(body["reserves"], body["charges"], strict=True):
            self.account.settle(self._open.pop(number), Charge.from_dict(actual))

    @property
    def unsettled(self) -> int:
        """Reservations without a record: questions in flight, or lost in a crash."""
        return len(self._open)


class TallyBook:
    """The tally of a set whose protocol is charged in things said."""

    def __init__(self) -> None:
        self.tally: dict[str, int] | None = None  # None: nothing was ever asked
        self._open: set[int] = set()

    def reserve(self, number: int, body: Mapping[str, Any]) -> None:
        self.tally = read_tally(body["tally"])
        self._open.add(number)

    def record(self, body: Mapping[str, Any]) -> None:
        self._open.difference_update(body["reserves"])
        self.tally = read_tally(body["tally"])

    @property
    def unsettled(self) -> int:
        """Reservations without a record."""
        return len(self._open)


class Books:
    """One book for every set, up to some row of the ledger."""

    def __init__(self, sets: Iterable[BlockSet]) -> None:
        self._books: dict[str, JointBook | TallyBook] = {
            each.name: JointBook(each.plan) if isinstance(each.plan, JointPlan) else TallyBook()
            for each in sets
        }
        self.number = 0  # the last row that was read
        self.answers = 0
        # What weights were taught, by set and part.
        self.learnt: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def __getitem__(self, name: str) -> JointBook | TallyBook:
        return self._books[name]

    def account(self, name: str) -> Account:
        """The account of a joint set."""
        book = self._books[name]
        assert isinstance(book, JointBook)
        return book.account

    def tally(self, name: str) -> dict[str, int] | None:
        """The tally of another set."""
        book = self._books[name]
        assert isinstance(book, TallyBook)
        return book.tally

    def read(self, rows: Iterable[Row]) -> None:
        """Go on to later rows, each of which must be affordable and fit what came before."""
        for row in rows:
            try:
                self._apply(row)
            except (HoldfastError, KeyError, TypeError, ValueError) as wrong:
                remedy = "It was not written by this version of Holdfast, or not by Holdfast."
                what = f"Row {row.number} of the ledger"
                raise Damaged(what, "a charge that fits the plan", str(wrong), remedy) from wrong
            self.number = row.number

    def _apply(self, row: Row) -> None:
        if row.kind == "reserved":
            self._books[row.body["set"]].reserve(row.number, row.body)
        elif row.kind == "recorded":
            self._books[row.body["set"]].record(row.body)
            self.answers += row.body["answer"] is not None
            if "learnt" in row.body:
                place = (row.body["set"], row.body["question"]["part"])
                self.learnt.setdefault(place, []).append(row.body["learnt"])


def written_tally(tally: Mapping[str, int]) -> dict[str, str]:
    """Counts as text: what may still be said can be a number of thousands of digits."""
    return {name: hex(count) for name, count in tally.items()}


def read_tally(data: Mapping[str, str]) -> dict[str, int]:
    """The tally that `written_tally` wrote."""
    tally = {name: int(text, 16) for name, text in data.items()}
    if any(count < 0 for count in tally.values()):
        raise ValueError("a tally counts from 0")
    return tally
