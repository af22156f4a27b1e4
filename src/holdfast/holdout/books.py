"""Books: the state of a holdout as a pure fold over the rows of its ledger.

The same rows give the same books, whoever reads them: the process that asks, another one that takes
over after a crash, and `holdfast check`. A reservation without a record counts at its worst case.

    reserved   {set, question, charge | tally, asker?}
    recorded   {set, question, reserves: [row numbers], charges | tally, answer, learnt?, asker?}
    noted      {access: {…}}  (access.py)  or another note, which changes no account

An answer of null settles what a question reserved that was exhausted on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from holdfast.errors import Damaged, HoldfastError
from holdfast.holdout.grants import Grants
from holdfast.holdout.spec import BlockSet
from holdfast.holdout.usage import tally_shares
from holdfast.ledger.ledger import Row
from holdfast.planning.joint import JointPlan
from holdfast.protocols.budget import Account, Charge

__all__ = ["Books", "JointBook", "TallyBook", "read_tally", "written_tally"]

_Shares = tuple[Fraction, Fraction]  # of a set's budget, and of its questions
_NOTHING: _Shares = (Fraction(0), Fraction(0))


class JointBook:
    """The account of a set whose plan is joint, and what each asker has used of it."""

    def __init__(self, plan: JointPlan) -> None:
        self.account = Account(plan)
        self._open: dict[int, tuple[Charge, str | None]] = {}
        self._accounts: dict[str, Account] = {}  # as if each asker had a budget of their own

    def reserve(self, number: int, body: Mapping[str, Any]) -> None:
        worst, asker = Charge.from_dict(body["charge"]), body.get("asker")
        self.account.hold(worst)
        self._open[number] = worst, asker
        if asker is not None:
            self._account_of(asker).hold(worst)

    def record(self, body: Mapping[str, Any]) -> None:
        for number, data in zip(body["reserves"], body["charges"], strict=True):
            (worst, asker), actual = self._open.pop(number), Charge.from_dict(data)
            self.account.settle(worst, actual)
            if asker is not None:
                self._accounts[asker].settle(worst, actual)

    def used_by(self, asker: str) -> Fraction:
        """The share of the budget that an asker has used: of what they have used most of."""
        account = self._accounts.get(asker)
        return Fraction(0) if account is None else account.share

    def used_with(self, asker: str, body: Mapping[str, Any]) -> Fraction:
        """The same, after a reservation that is not made yet."""
        account = self._account_of(asker).copy()
        account.hold(Charge.from_dict(body["charge"]))
        return account.share

    def _account_of(self, asker: str) -> Account:
        if asker not in self._accounts:
            self._accounts[asker] = Account(self.account.plan)
        return self._accounts[asker]

    @property
    def unsettled(self) -> int:
        """Reservations without a record: questions in flight, or lost in a crash."""
        return len(self._open)


class TallyBook:
    """The tally of a set whose protocol is charged in things said."""

    def __init__(self, block_set: BlockSet) -> None:
        self.tally: dict[str, int] | None = None  # None: nothing was ever asked
        self._set = block_set
        self._open: set[int] = set()
        self._used: dict[str, _Shares] = {}

    def reserve(self, number: int, body: Mapping[str, Any]) -> None:
        self._change(body)
        self._open.add(number)

    def record(self, body: Mapping[str, Any]) -> None:
        self._open.difference_update(body["reserves"])
        self._change(body)

    def used_by(self, asker: str) -> Fraction:
        """The share of the budget that an asker has used, or of the questions: the larger."""
        return max(self._used.get(asker, _NOTHING))

    def used_with(self, asker: str, body: Mapping[str, Any]) -> Fraction:
        """The same, after a change of the tally that is not made yet."""
        used, taken = self._used.get(asker, _NOTHING), self._taken(body)
        return max(used[0] + taken[0], used[1] + taken[1])

    def share_of(self, body: Mapping[str, Any]) -> Fraction:
        """The share of the budget that a change of the tally takes, or gives back."""
        return self._taken(body)[0]

    def _taken(self, body: Mapping[str, Any]) -> _Shares:
        after = tally_shares(self._set, read_tally(body["tally"]))
        before = tally_shares(self._set, self.tally)
        return after[0] - before[0], after[1] - before[1]

    def _change(self, body: Mapping[str, Any]) -> None:
        asker = body.get("asker")
        if asker is not None:  # computed only where it is needed: a tally can be a huge number
            used, taken = self._used.get(asker, _NOTHING), self._taken(body)
            self._used[asker] = used[0] + taken[0], used[1] + taken[1]
        self.tally = read_tally(body["tally"])

    @property
    def unsettled(self) -> int:
        """Reservations without a record."""
        return len(self._open)


class Books:
    """One book for every set, up to some row of the ledger."""

    def __init__(self, sets: Iterable[BlockSet]) -> None:
        self._books: dict[str, JointBook | TallyBook] = {
            each.name: JointBook(each.plan) if isinstance(each.plan, JointPlan) else TallyBook(each)
            for each in sets
        }
        self.number = 0  # the last row that was read
        self.answers = 0
        self.grants = Grants()
        # What weights were taught, by set and part.
        self.learnt: dict[tuple[str, str], list[dict[str, Any]]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sets."""
        return tuple(self._books)

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
            self.grants.latest = max(self.grants.latest, row.at)

    def _apply(self, row: Row) -> None:
        if row.kind == "reserved":
            self._books[row.body["set"]].reserve(row.number, row.body)
        elif row.kind == "recorded":
            self._books[row.body["set"]].record(row.body)
            self.answers += row.body["answer"] is not None
            if "learnt" in row.body:
                place = (row.body["set"], row.body["question"]["part"])
                self.learnt.setdefault(place, []).append(row.body["learnt"])
        elif row.kind == "noted" and "access" in row.body:
            self.grants.read(row)


def written_tally(tally: Mapping[str, int]) -> dict[str, str]:
    """Counts as text: what may still be said can be a number of thousands of digits."""
    return {name: hex(count) for name, count in tally.items()}


def read_tally(data: Mapping[str, str]) -> dict[str, int]:
    """The tally that `written_tally` wrote."""
    tally = {name: int(text, 16) for name, text in data.items()}
    if any(count < 0 for count in tally.values()):
        raise ValueError("a tally counts from 0")
    return tally
