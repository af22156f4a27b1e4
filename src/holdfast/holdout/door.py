"""The door: charge, draw, record, answer, in that order, for every question.

    1. lock      the question (and its request key), against every other thread and process
    2. known?    a recorded answer is returned, free; a request key that paid names one question
    3. reserve   the worst case is charged in one transaction with the check that it fits
    4. draw      the estimator is evaluated and the coins are flipped
    5. record    answer and actual charge in one transaction; only then is the answer shown

Steps 3 and 5 of questions that are asked at the same time share a transaction: nothing is
acknowledged before the commit that holds it, and what is wrong with one of them is its own.

Whatever happens between 3 and 5, a crash, a signal, a full disk, leaves the worst case charged and
the answer unseen. Asked again, the question is drawn anew and charged again: nobody saw the first.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from holdfast.concurrency import Combiner, Job, Renewed
from holdfast.errors import Exhausted, InvalidInput
from holdfast.holdout.books import Books
from holdfast.holdout.grants import Asker
from holdfast.holdout.questions import Question
from holdfast.holdout.records import Result, is_answer, read_result
from holdfast.holdout.sessions import Learnt, LedgerBudget, Pace, Session, require_quota
from holdfast.holdout.spec import BlockSet
from holdfast.ledger.ledger import Ledger, Receipt, Row, Transaction
from holdfast.ledger.witness import Witness
from holdfast.planning.joint import JointPlan

__all__ = ["Door", "Learnt", "LedgerBudget", "Pace", "Session", "Work", "require_quota"]

Work = Callable[[Transaction, Books], Any]
Look = Callable[[Books], Any]
T = TypeVar("T")


class Door(Renewed):
    """The ledger of one holdout, and the books that its rows add up to."""

    def __init__(self, ledger: Ledger, witness: Witness, sets: tuple[BlockSet, ...]) -> None:
        self.ledger, self.witness = ledger, witness
        self._sets = sets
        self._works: Combiner[Work, Any] = Combiner()
        self._looks: Combiner[Look, Any] = Combiner()
        super().__init__()

    def _renew(self) -> None:
        self._books = Books(self._sets)
        self._lock = threading.RLock()

    def answer(
        self,
        question: Question,
        block_set: BlockSet,
        request: str | None,
        asker: Asker | None,
        pace: Pace | None,
        draw: Callable[[Session], tuple[Result, Learnt | None]],
    ) -> Result:
        """The recorded answer, or a new one that `draw` makes and pays for through the session.

        `pace` waits after the draw, whatever became of it, before anything more is written.
        """
        with self.ledger.lock(*self._names(question, block_set, request)) as names:
            known = self._known(question, request)
            if known is None:
                session = Session(self, names, question, block_set, request, asker, pace)
                try:
                    result, learnt = draw(session)
                finally:
                    session.pause()
                if not session.charged:  # exhausted: nothing was drawn, there is nothing to keep
                    return result
                row = session.record(result, learnt)
                if not is_answer(result):  # exhausted on the way: it may be affordable later
                    return result
        # Also of an answer that another has recorded, who may have died before it was witnessed.
        receipt = self._receipt(known or row)
        self.witness.see(receipt)
        return read_result((known or row).body["answer"], str(receipt), cached=known is not None)

    def is_known(self, question: Question) -> bool:
        """Whether the question was answered before, so that it is free."""
        if question.key is None:
            return False
        return self.ledger.recorded(question.key) is not None

    def head(self) -> Receipt:
        """The receipt of the last row, which is witnessed: whatever was read before may be shown.

        Otherwise an older copy of the ledger would be accepted after somebody saw what it lacks.
        """
        head = self.ledger.head()
        self.witness.see(head)
        return head

    @contextmanager
    def books(self) -> Iterator[Books]:
        """The books as of now, for whoever only reads; no question waits in it, see `read`."""
        with self._lock:  # not in the middle of a transaction, which may be undone
            books, number = self._books, self._books.number
        # Without the lock, for others read at the same time; the books may have gone on since.
        rows = self.ledger.rows(number)
        with self._lock:
            if self._books is not books:  # begun anew
                rows = self.ledger.rows(self._books.number)
            self._catch_up([row for row in rows if row.number > self._books.number])
            yield self._books

    def read(self, look: Callable[[Books], T]) -> T:
        """What is seen in the books as of now; for all who look at once they are read once."""
        found: T = self._looks.do(self._look, look)
        return found

    def _look(self, jobs: list[Job[Look, Any]]) -> None:
        with self.books() as books:
            for job in jobs:
                try:
                    job.succeed(job.task(books))
                except Exception as error:  # this one's own
                    job.fail(error)

    def write(self, work: Callable[[Transaction, Books], T]) -> T:
        """What the work returns, when its rows are durable: with those of others, in one commit.

        It gets a transaction, with the books as of then, and keeps them up to date. What it raises
        undoes all that it did; `Exhausted` it raises before it has noted or appended anything. It
        may be done again, if the work of another thread has undone the transaction.
        """
        result: T = self._works.do(self._run, work)
        return result

    def _run(self, jobs: list[Job[Work, Any]]) -> None:
        left = jobs
        while left:
            wrong = self._run_together(left)
            left = [] if wrong is None else [job for job in left if job is not wrong]
        rows = [each.result for each in jobs if isinstance(each.result, Row)]
        answers = [row for row in rows if row.kind == "recorded"]
        if answers:  # the newest for all, who need not wait for each other then
            with suppress(Exception):  # whatever is wrong, each will see for itself
                self.witness.see(self._receipt(answers[-1]))

    def _run_together(self, jobs: list[Job[Work, Any]]) -> Job[Work, Any] | None:
        """Settle all jobs in one transaction; or none of them but the one that undid it."""
        doing: Job[Work, Any] | None = None
        try:
            with self.writing() as (transaction, books):
                for doing in jobs:
                    _do(doing, transaction, books)
                doing = None  # what goes wrong from here on is nobody's work
        except BaseException as error:
            for job in jobs:
                job.reopen()
            if not isinstance(error, Exception):  # an interruption of the thread that leads
                if doing is None:  # perhaps after the commit: nothing may be done again
                    message = "It was interrupted; ask again, with the same key"
                    for job in jobs:
                        job.fail(InterruptedError(errno.EINTR, message))
                raise
            for job in jobs if doing is None else [doing]:
                job.fail(error)
        return doing

    @contextmanager
    def writing(self) -> Iterator[tuple[Transaction, Books]]:
        """A transaction of one's own, with the books as of its start. An exception undoes both."""
        with self._lock:
            number = 0
            try:
                with self.ledger.begin() as transaction:
                    self._catch_up(transaction.rows(self._books.number))
                    number = transaction.number
                    yield transaction, self._books
            except BaseException as error:
                # Refused before anything was noted: no need to read all rows again. Otherwise
                # what was noted may not have happened.
                if not (isinstance(error, Exhausted) and transaction.number == number):
                    self._books = Books(self._sets)
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

    def _known(self, question: Question, request: str | None) -> Row | None:
        # Whoever may answer this question or use this key waits for the lock that is held here.
        row = self._requested(question, request)
        if row is None and question.key is not None:
            row = self.ledger.recorded(question.key)
        return row

    def _receipt(self, row: Row) -> Receipt:
        return Receipt(self.ledger.holdout, row.number, row.digest)

    def _requested(self, question: Question, request: str | None) -> Row | None:
        """The answer that this request key was given before."""
        if request is None:
            return None
        rows = self.ledger.requested(request)
        asked = question.to_dict()
        for row in rows:
            if row.body.get("question") != asked or row.question != question.key:
                hint = "Use a new key for a new question."
                raise InvalidInput("request", request, "a key that named no other question", hint)
        answered = (row for row in reversed(rows) if row.kind == "recorded" and row.body["answer"])
        return next(answered, None)


def _do(job: Job[Work, Any], transaction: Transaction, books: Books) -> None:
    before = transaction.number
    try:
        job.succeed(job.task(transaction, books))
    except Exhausted as refused:
        if transaction.number != before:
            raise
        job.fail(refused)


def one_at_a_time(block_set: BlockSet, question: Question) -> bool:
    """Whether the set's answers depend on the order in which its questions are answered."""
    if not isinstance(block_set.plan, JointPlan):
        return True
    return block_set.plan.part(question.part).protocol == "weights"
