"""Sessions: one question on its way through the door, what it reserves and what that comes to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from holdfast.errors import Exhausted
from holdfast.holdout.books import Books, JointBook, TallyBook, written_tally
from holdfast.holdout.grants import Asker
from holdfast.holdout.questions import Question
from holdfast.holdout.records import Result, is_answer, written_result
from holdfast.holdout.spec import BlockSet
from holdfast.ledger.ledger import Hold, Row, Transaction
from holdfast.planning.joint import JointPlan
from holdfast.protocols.budget import Account, Budget, Charge, Reservation

if TYPE_CHECKING:
    from holdfast.holdout.door import Door

__all__ = ["Learnt", "LedgerBudget", "Pace", "Session", "require_quota"]

Learnt = dict[str, Any]
Pace = Callable[[float], None]  # since when the data were touched, by the monotonic clock

_SLACK = Fraction(1, 10**9)  # a tenth of the budget pays for a tenth of its questions


def require_quota(book: JointBook | TallyBook, asker: Asker, body: Mapping[str, Any]) -> None:
    """Raise `Exhausted` if the asker's quota does not cover this reservation too."""
    if asker.quota is None:
        return
    used, after = book.used_by(asker.id), book.used_with(asker.id, body)
    quota = Fraction(repr(asker.quota))
    if after > quota + _SLACK:
        remedy = "Ask the custodian for a larger quota. Questions asked before are free."
        needed = f"{float(after - used):.4g} of the budget"
        raise Exhausted("Your quota", needed, f"{max(0.0, float(quota - used)):.4g}", remedy)


class Session:
    """One question on its way through the door: what it has reserved, and what that came to."""

    def __init__(
        self,
        door: Door,
        names: Hold,
        question: Question,
        block_set: BlockSet,
        request: str | None,
        asker: Asker | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._door, self._names = door, names
        self._question, self._set = question, block_set
        self._request, self._asker, self._pace = request, asker, pace
        self._touched: float | None = None  # since when time may depend on the data
        self._reserves: list[int] = []
        self._actual: dict[int, Charge] = {}
        self._worst: dict[int, Charge] = {}
        self._tally: Mapping[str, int] | None = None

    @property
    def charged(self) -> bool:
        """Whether anything was reserved."""
        return bool(self._reserves)

    def pause(self) -> None:
        """Hide when this was reached, if the question has seen the data: what follows is written.

        A question of two steps reserves twice, and whoever watches the ledger sees the second.
        """
        if self.charged and self._pace is not None:
            assert self._touched is not None  # by its reservation, at the latest
            self._pace(self._touched)

    def hold(self, worst: Charge) -> tuple[int, Account]:
        """Charge the worst case durably, or raise `Exhausted` and write nothing.

        With the number of the row comes a copy of the account as it was then.
        """
        self.pause()
        body = self._body(charge=worst.to_dict())

        def work(transaction: Transaction, books: Books) -> tuple[int, Account]:
            book = books[self._set.name]
            assert isinstance(book, JointBook)
            self._within_quota(book, body)
            book.reserve(books.number + 1, body)  # raises before anything is written
            number = books.number = self._append(transaction, "reserved", body).number
            return number, book.account.copy()

        number, account = self._door.write(work)
        self._pays(number)
        self._worst[number] = worst
        return number, account

    def settle(self, number: int, actual: Charge) -> None:
        """What the reservation came to; durable with the answer."""
        self._actual[number] = actual

    def apply_to(self, account: Account) -> None:
        """Settle in a copy of the account what is settled, but not yet recorded."""
        for number, actual in self._actual.items():
            account.settle(self._worst[number], actual)

    def tell(self, tally: Mapping[str, int]) -> None:
        """Charge a worst-case tally durably."""
        self.pause()
        body = self._body(tally=written_tally(tally))

        def work(transaction: Transaction, books: Books) -> Row:
            self._within_quota(books[self._set.name], body)
            return self._append_read(transaction, books, "reserved", body)

        self._pays(self._door.write(work).number)

    def touches(self) -> None:
        """The data are touched from here on, if they were not before."""
        if self._touched is None:
            self._touched = time.monotonic()

    def _pays(self, number: int) -> None:
        self.touches()
        self._reserves.append(number)

    def finish(self, tally: Mapping[str, int]) -> None:
        """The tally after the answer; durable with it."""
        self._tally = tally

    def record(self, result: Result, learnt: Learnt | None) -> Row:
        """Write the answer and what it cost, together."""
        answer = written_result(result) if is_answer(result) else None
        body = self._body(reserves=self._reserves, answer=answer)
        if self._tally is not None:
            body["tally"] = written_tally(self._tally)
        else:
            charges = [self._actual.get(n, self._worst[n]) for n in self._reserves]
            body["charges"] = [charge.to_dict() for charge in charges]
        if learnt is not None:
            body["learnt"] = learnt
        return self._door.write(
            lambda transaction, books: self._append_read(transaction, books, "recorded", body)
        )

    def budget(self) -> LedgerBudget:
        """The set's budget, as this question pays into it."""
        assert isinstance(self._set.plan, JointPlan)
        return LedgerBudget(self._set.plan, self._door, self._set.name, self)

    def start(self) -> dict[str, int] | None:
        """The set's tally before this question."""
        return self._door.read(lambda books: books.tally(self._set.name))

    def _within_quota(self, book: JointBook | TallyBook, body: Mapping[str, Any]) -> None:
        """Refuse what would take an asker beyond their share, before anything is written."""
        if self._asker is not None:
            require_quota(book, self._asker, body)

    def _body(self, **facts: object) -> dict[str, Any]:
        if self._asker is not None:
            facts["asker"] = self._asker.id
        return {"set": self._set.name, "question": self._question.to_dict(), **facts}

    def _append(self, transaction: Transaction, kind: str, body: dict[str, Any]) -> Row:
        self._names.check()  # else another may be answering the same question
        return transaction.append(kind, body, question=self._question.key, request=self._request)

    def _append_read(
        self, transaction: Transaction, books: Books, kind: str, body: dict[str, Any]
    ) -> Row:
        row = self._append(transaction, kind, body)
        books.read([row])
        return row


class LedgerBudget(Budget):
    """A budget whose account the ledger keeps, for one question. Its plan was proved before."""

    def __init__(self, plan: JointPlan, door: Door, name: str, session: Session) -> None:
        self.plan = plan
        self._door, self._name, self._session = door, name, session
        self._lock = threading.Lock()
        self._source = None
        self._copy: Account | None = None

    @property
    def _account(self) -> Account:
        """The account as of the last charge, or of the first look at it: see `_hold`."""
        if self._copy is None:
            self._account = self._door.read(lambda books: books.account(self._name).copy())
        assert self._copy is not None
        return self._copy

    @_account.setter
    def _account(self, account: Account) -> None:
        """Less what this question has settled already."""
        self._session.apply_to(account)
        self._copy = account

    def _hold(self, worst: Charge) -> int:
        number, self._account = self._session.hold(worst)
        return number

    def _settle(self, held: Reservation, actual: Charge) -> None:
        with self._lock:
            worst = held.close(actual)
            self._session.settle(held.ticket, actual)
            self._account.settle(worst, actual)  # in this copy; in the ledger with the answer
