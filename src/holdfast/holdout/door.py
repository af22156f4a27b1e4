"""The door: charge, draw, record, answer, in that order, for every question.

    1. lock      the question (and its request key), against every other thread and process
    2. known?    a recorded answer is returned, free; a request key that paid names one question
    3. reserve   the worst case is charged in one transaction with the check that it fits
    4. draw      the estimator is evaluated and the coins are flipped
    5. record    answer and actual charge in one transaction; only then is the answer shown

Whatever happens between 3 and 5, a crash, a signal, a full disk, leaves the worst case charged and
the answer unseen. Asked again, the question is drawn anew and charged again: nobody saw the first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.errors import Exhausted, InvalidInput
from holdfast.holdout.books import Books, JointBook, TallyBook, written_tally
from holdfast.holdout.questions import Question
from holdfast.holdout.records import Result, is_answer, read_result, written_result
from holdfast.holdout.sets import BlockSet
from holdfast.ledger.interface import Ledger, Transaction
from holdfast.ledger.receipts import Receipt
from holdfast.ledger.rows import Row
from holdfast.ledger.witness import Witness
from holdfast.planning.joint import JointPlan
from holdfast.protocols.account import Account, Charge
from holdfast.protocols.budget import Budget, Reservation

__all__ = ["Door", "LedgerBudget", "Session"]

Learnt = dict[str, Any]


class Door:
    """The ledger of one holdout, and the books that its rows add up to."""

    def __init__(self, ledger: Ledger, witness: Witness, sets: tuple[BlockSet, ...]) -> None:
        self.ledger, self.witness = ledger, witness
        self._sets = sets
        self._books = Books(sets)
        self._lock = threading.RLock()

    def answer(
        self,
        question: Question,
        block_set: BlockSet,
        request: str | None,
        draw: Callable[[Session], tuple[Result, Learnt | None]],
    ) -> Result:
        """The recorded answer, or a new one that `draw` makes and pays for through the session."""
        with self.ledger.lock(*self._names(question, block_set, request)):
            known = self._known(question, request)
            if known is not None:
                return known
            session = Session(self, question, block_set, request)
            result, learnt = draw(session)
            if not session.charged:  # exhausted: nothing was drawn, there is nothing to keep
                return result
            row = session.record(result, learnt)
            if not is_answer(result):  # exhausted on the way: it may be affordable later
                return result
        receipt = Receipt(self.ledger.holdout, row.number, row.digest)
        self.witness.see(receipt)
        return read_result(row.body["answer"], str(receipt), cached=False)

    @contextmanager
    def books(self) -> Iterator[Books]:
        """The books as of now, for whoever only reads."""
        with self._lock:
            self._catch_up(self.ledger.rows(self._books.number))
            yield self._books

    @contextmanager
    def writing(self) -> Iterator[tuple[Transaction, Books]]:
        """A transaction, with the books as of its start. An exception undoes both."""
        with self._lock:
            try:
                with self.ledger.begin() as transaction:
                    self._catch_up(transaction.rows(self._books.number))
                    yield transaction, self._books
            except Exhausted:
                raise  # refused before anything was noted: no need to read all rows again
            except BaseException:
                self._books = Books(self._sets)  # what was noted in them may not have happened
                raise

    def _catch_up(self, rows: list[Row]) -> None:
        try:
            self._books.read(rows)
        except BaseException:
            self._books = Books(self._sets)
            raise

    def _names(self, question: Question, block_set: BlockSet, request: str | None) -> list[str]:
        if request is not None and question.key is None:
            hint = "It has no identity that a second request could be compared with."
            raise InvalidInput("request", request, "left out for this estimator", hint)
        names = []
        if question.key is not None:
            names.append(f"question {question.key}")
        if request is not None:
            names.append(f"request {request}")
        if one_at_a_time(block_set, question):
            names.append(f"set {block_set.name}")
        return names

    def _known(self, question: Question, request: str | None) -> Result | None:
        with self.ledger.begin() as transaction:
            row = self._requested(transaction, question, request)
            if row is None and question.key is not None:
                row = transaction.recorded(question.key)
        if row is None:
            return None
        receipt = Receipt(self.ledger.holdout, row.number, row.digest)
        return read_result(row.body["answer"], str(receipt), cached=True)

    def _requested(
        self, transaction: Transaction, question: Question, request: str | None
    ) -> Row | None:
        """The answer that this request key was given before."""
        if request is None:
            return None
        rows = transaction.requested(request)
        asked = question.to_dict()
        for row in rows:
            if row.body.get("question") != asked or row.question != question.key:
                hint = "Use a new key for a new question."
                raise InvalidInput("request", request, "a key that named no other question", hint)
        answered = (row for row in reversed(rows) if row.kind == "recorded" and row.body["answer"])
        return next(answered, None)


def one_at_a_time(block_set: BlockSet, question: Question) -> bool:
    """Whether the set's answers depend on the order in which its questions are answered."""
    if not isinstance(block_set.plan, JointPlan):
        return True
    return block_set.plan.part(question.part).protocol == "weights"


class Session:
    """One question on its way through the door: what it has reserved, and what that came to."""

    def __init__(
        self, door: Door, question: Question, block_set: BlockSet, request: str | None
    ) -> None:
        self._door, self._question, self._set = door, question, block_set
        self._request = request
        self._reserves: list[int] = []
        self._actual: dict[int, Charge] = {}
        self._worst: dict[int, Charge] = {}
        self._tally: Mapping[str, int] | None = None

    @property
    def charged(self) -> bool:
        """Whether anything was reserved."""
        return bool(self._reserves)

    def hold(self, worst: Charge) -> int:
        """Charge the worst case durably, or raise `Exhausted` and write nothing."""
        with self._door.writing() as (transaction, books):
            body = self._body(charge=worst.to_dict())
            book = books[self._set.name]
            assert isinstance(book, JointBook)
            book.reserve(books.number + 1, body)  # raises before anything is written
            number = books.number = self._append(transaction, "reserved", body).number
        self._reserves.append(number)
        self._worst[number] = worst
        return number

    def settle(self, number: int, actual: Charge) -> None:
        """What the reservation came to; durable with the answer."""
        self._actual[number] = actual

    def apply_to(self, account: Account) -> None:
        """Settle in a copy of the account what is settled, but not yet recorded."""
        for number, actual in self._actual.items():
            account.settle(self._worst[number], actual)

    def tell(self, tally: Mapping[str, int]) -> None:
        """Charge a worst-case tally durably."""
        with self._door.writing() as (transaction, books):
            body = self._body(tally=written_tally(tally))
            row = self._append(transaction, "reserved", body)
            books.read([row])
        self._reserves.append(row.number)

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
        with self._door.writing() as (transaction, books):
            row = self._append(transaction, "recorded", body)
            books.read([row])
        return row

    def budget(self) -> LedgerBudget:
        """The set's budget, as this question pays into it."""
        assert isinstance(self._set.plan, JointPlan)
        return LedgerBudget(self._set.plan, self._door, self._set.name, self)

    def start(self) -> dict[str, int] | None:
        """The set's tally before this question."""
        with self._door.books() as books:
            book = books[self._set.name]
            assert isinstance(book, TallyBook)
            return book.tally

    def _body(self, **facts: object) -> dict[str, Any]:
        return {"set": self._set.name, "question": self._question.to_dict(), **facts}

    def _append(self, transaction: Transaction, kind: str, body: dict[str, Any]) -> Row:
        return transaction.append(kind, body, question=self._question.key, request=self._request)


class LedgerBudget(Budget):
    """A budget whose account the ledger keeps, for one question. Its plan was proved before."""

    def __init__(self, plan: JointPlan, door: Door, name: str, session: Session) -> None:
        self.plan = plan
        self._door, self._name, self._session = door, name, session
        self._lock = threading.Lock()
        self._sources: dict[int, object] = {}
        self._see()

    def _hold(self, worst: Charge) -> int:
        number = self._session.hold(worst)
        self._see()
        return number

    def _settle(self, held: Reservation, actual: Charge) -> None:
        with self._lock:
            worst = held.close(actual)
            self._session.settle(held.ticket, actual)
            self._account.settle(worst, actual)  # in this copy; in the ledger with the answer

    def _see(self) -> None:
        """Copy the account as it is now, less what this question has settled already."""
        with self._door.books() as books:
            self._account = books.account(self._name).copy()
        self._session.apply_to(self._account)
