"""The journal: a holdout's ledger, and the state that its rows add up to.

What is read or written at the same time shares a transaction: nothing is acknowledged before the
commit that holds it, and what is wrong with one of them is its own. Nothing of a ledger is shown
before its head is witnessed: otherwise an older copy would be accepted after somebody saw what it
lacks.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, TypeVar

from holdfast.concurrency import Combiner, Job, Renewed
from holdfast.errors import Exhausted
from holdfast.holdout.spec import BlockSet
from holdfast.holdout.state import HoldoutState
from holdfast.ledger.ledger import Ledger, Receipt, Row, Transaction
from holdfast.ledger.witness import Witness

__all__ = ["Journal"]

Work = Callable[[Transaction, HoldoutState], Any]
T = TypeVar("T")
_AT_ONCE = 500


class Journal(Renewed):
    """The ledger of one holdout, and its state."""

    def __init__(self, ledger: Ledger, witness: Witness, sets: tuple[BlockSet, ...]) -> None:
        self.ledger, self.witness = ledger, witness
        self._sets = sets
        self._works: Combiner[Work, Any] = Combiner()
        super().__init__()

    def _renew(self) -> None:
        self._state = HoldoutState(self._sets)
        self._lock = threading.RLock()

    def is_known(self, key: str | None) -> bool:
        """Whether a question was answered before, so that it is free."""
        return key is not None and self.ledger.recorded(key) is not None

    def receipt(self, row: Row) -> Receipt:
        """The receipt of a row."""
        return Receipt(self.ledger.holdout, row.number, row.digest)

    def witnessed(self, row: Row) -> Receipt:
        """The receipt of a row, which may be shown from now on."""
        receipt = self.receipt(row)
        self.witness.see(receipt)
        return receipt

    def head(self) -> Receipt:
        """The receipt of the last row: whatever was read before may be shown."""
        head = self.ledger.head()
        self.witness.see(head)
        return head

    def pages(self, after: int, most: int | None = None) -> Iterator[Row]:
        """The rows after one, read some at a time: a long ledger is never all in memory.

        After one that is still to come, which a reader may name, there are none.
        """
        return islice(self._pages(after), most)

    def _pages(self, after: int) -> Iterator[Row]:
        while after < self.ledger.head().number:
            rows = self.ledger.rows(after, _AT_ONCE)
            yield from rows
            after = rows[-1].number

    @contextmanager
    def state(self) -> Iterator[HoldoutState]:
        """The state as of now, for whoever only reads."""
        with self._lock:  # not in the middle of a transaction, which may be undone
            state, number = self._state, self._state.number
        # Without the lock, for others read at the same time; the state may have gone on since.
        rows = self.ledger.rows(number)
        with self._lock:
            if self._state is not state:  # begun anew
                rows = self.ledger.rows(self._state.number)
            self._catch_up([row for row in rows if row.number > self._state.number])
            yield self._state

    def read(self, look: Callable[[HoldoutState], T]) -> T:
        """What is seen in the state as of now."""
        with self.state() as state:
            return look(state)

    def write(self, work: Callable[[Transaction, HoldoutState], T]) -> T:
        """What the work returns, when its rows are durable: with those of others, in one commit.

        It gets a transaction, with the state as of then, and keeps it up to date. What it raises
        undoes all that it did; `Exhausted` it raises before it has noted or appended anything. It
        may be done again, if the work of another thread has undone the transaction.
        """
        result: T = self._works.do(self._run, work)
        return result

    def _run(self, jobs: list[Job[Work, Any]]) -> None:
        """Settle all jobs in one transaction. Whoever undoes it is left out, and it is done again.

        Then the head is witnessed for all who have an answer in it: they need not wait for each
        other. Whatever is wrong with that, each will see for itself.
        """
        left = jobs
        while left:
            doing: Job[Work, Any] | None = None
            try:
                with self.writing() as (transaction, state):
                    answers = state.answers
                    for doing in left:
                        before = transaction.head
                        try:
                            doing.succeed(doing.task(transaction, state))
                        except Exhausted as refused:
                            if transaction.head is not before:
                                raise
                            doing.fail(refused)
                    doing = None  # what goes wrong from here on is nobody's work
            except BaseException as error:
                left = _undone(left, doing, error)
            else:
                if state.answers > answers:
                    with suppress(Exception):
                        self.witness.see(transaction.head)
                return

    @contextmanager
    def writing(self) -> Iterator[tuple[Transaction, HoldoutState]]:
        """A transaction of one's own, with the state as of its start. An exception undoes both."""
        with self._lock:
            head = None
            try:
                with self.ledger.begin() as transaction:
                    self._catch_up(transaction.rows(self._state.number))
                    head = transaction.head
                    yield transaction, self._state
            except BaseException as error:
                # Refused before anything was noted: no need to read all rows again. Otherwise
                # what was noted may not have happened.
                if not (isinstance(error, Exhausted) and transaction.head is head):
                    self._state = HoldoutState(self._sets)
                raise

    def _catch_up(self, rows: list[Row]) -> None:
        try:
            self._state.read(rows)
        except BaseException:
            self._state = HoldoutState(self._sets)
            raise


def _undone(
    jobs: list[Job[Work, Any]], doing: Job[Work, Any] | None, error: BaseException
) -> list[Job[Work, Any]]:
    """Those of an undone transaction that can be tried again: all but whose work has undone it."""
    for job in jobs:
        job.reopen()
    if not isinstance(error, Exception):  # an interruption of the thread that leads
        if doing is None:  # perhaps after the commit: nothing may be done again
            message = "It was interrupted; ask again, with the same key"
            for job in jobs:
                job.fail(InterruptedError(errno.EINTR, message))
        raise error
    for job in jobs if doing is None else [doing]:
        job.fail(error)
    return [job for job in jobs if not job.settled]
