"""The ledger in Postgres: one connection a process, which writes, reads and holds names.

A writer waits for all others of its holdout in the database itself, so that it does not matter on
which machines they are. Should one get past that lock, the key of the table refuses its rows: the
number that follows the head is given once. Either way transactions are as if one after another.

A connection that is lost is made again by itself. What its transaction wrote is in the ledger or
not; nobody was told of it, and the same request finds out. Names are lost with it: `Hold.check`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Self

from holdfast.errors import InvalidInput
from holdfast.ledger.base import TableLedger
from holdfast.ledger.interface import Hold
from holdfast.ledger.postgres.addresses import parameters
from holdfast.ledger.postgres.catalog import check_catalog
from holdfast.ledger.postgres.faults import LOST, changed
from holdfast.ledger.postgres.formats import MIGRATIONS, Step, enter, install
from holdfast.ledger.postgres.names import Names
from holdfast.ledger.postgres.sessions import Session
from holdfast.ledger.receipts import Receipt, holdout_id
from holdfast.ledger.rows import Row, genesis, verify_chain
from holdfast.ledger.tables import Record, Table, TableTransaction

__all__ = ["PostgresLedger"]

_PAGE = 1_000  # rows read at a time to verify all

_abandoned: list[Session | None] = []  # kept from being closed: they are the parent's


class PostgresLedger(TableLedger):
    """The ledger of one holdout in a database, by the URL of the database.

    `create` it once, then `open` it from as many processes and machines as you like.
    """

    patience: ClassVar[float] = 60.0  # seconds to wait for another process

    def __init__(self, url: str, holdout: str, steps: Mapping[int, Step] = MIGRATIONS) -> None:
        super().__init__(holdout_id(holdout))
        parameters(url)  # refuses what is no URL, or says too much
        self.url = url
        self._steps = steps
        self._session: Session | None = None
        self._names = Names(holdout)

    @classmethod
    def prepare(cls, url: str) -> None:
        """Make the tables in a database that has none; refuse one that cannot keep a ledger."""
        session = Session(url, "", cls.patience)
        try:
            install(session)
            enter(session, url, MIGRATIONS)
        finally:
            session.close()

    @classmethod
    def create(cls, url: str, holdout: str, body: dict[str, Any]) -> Self:
        """A ledger with its first row, `created`; the tables too, if there are none."""
        ledger = cls(url, holdout)
        cls.prepare(url)
        try:
            ledger._fill(Receipt(holdout, 0, genesis(holdout)), body)
        except BaseException:
            with suppress(Exception):  # the error that led here is the one to show
                ledger.close()
            raise
        return ledger

    @classmethod
    def open(cls, url: str, holdout: str, *, steps: Mapping[int, Step] = MIGRATIONS) -> Self:
        """Open the ledger, after migrating the tables if an earlier Holdfast made them."""
        ledger = cls(url, holdout, steps)
        try:
            with ledger._reading() as (session, head):
                if head.number == 0:
                    hint = "Is it the database in which the holdout was created?"
                    raise InvalidInput("ledger", url, f"the database of holdout {holdout}", hint)
                first = session.records(1, 1)
                verify_chain(holdout, map(Row.from_record, first), read=True)
        except BaseException:
            with suppress(Exception):
                ledger.close()
            raise
        return ledger

    def verify(self) -> Receipt:
        with self._turn():
            session = self._reach()
            self._head(session)
            check_catalog(session)
            records = map(Row.from_record, _pages(session))
            return verify_chain(self._holdout, records, read=True)

    @contextmanager
    def lock(self, *names: str) -> Iterator[Hold]:
        self._outside(names)
        with self._names.hold(self._reaching, names) as session:
            yield _SessionHold(self, session)

    @contextmanager
    def _reaching(self) -> Iterator[Session]:
        with self._turn():
            yield self._reach()

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        session = self._reach()
        try:
            session.begin()
            yield session
            self._not_lost()
            session.commit()
        except BaseException:
            if self._session is session:  # not so in a child that was forked meanwhile
                session.rollback()
            raise

    def _reach(self) -> Session:
        """The session, made anew if there is none, or if it cannot be used any more."""
        if self._session is None or not self._session.ready:
            self._disconnect()
            session = Session(self.url, self._holdout, self.patience)
            try:
                enter(session, self.url, self._steps)
            except BaseException as error:
                session.close()
                if isinstance(error, InvalidInput) and self._known is not None:
                    raise changed(error, self.url) from error
                raise
            self._session = session
        return self._session

    def _fill(self, start: Receipt, body: dict[str, Any]) -> None:
        with self._turn():
            with self._writing() as session:
                if session.head() is not None:
                    raise InvalidInput("holdout", self._holdout, "one that has no ledger yet")
                transaction = TableTransaction(session, start)
                transaction.append("created", body)
                transaction.write()
            self._known = transaction.head

    def _disconnect(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            session.close()

    def _abandon(self) -> None:
        if self._session is not None:
            self._session.abandon()
            _abandoned.append(self._session)
            self._session = None

    def _part(self) -> None:
        """The parent keeps its connection: names are held through it."""

    def _after_fork_in_child(self) -> None:
        super()._after_fork_in_child()
        self._abandon()


class _SessionHold(Hold):
    """Names that are held as long as a session lives."""

    def __init__(self, ledger: PostgresLedger, session: Session) -> None:
        self._ledger, self._session = ledger, session

    def check(self) -> None:
        if self._ledger._session is not self._session or self._session.closed:
            raise OSError(errno.ECONNRESET, LOST, self._ledger.url)


def _pages(table: Table) -> Iterator[Record]:
    """All rows, some at a time: they need not fit into memory."""
    number = 1
    while page := table.records(number, _PAGE):
        yield from page
        number = page[-1][0] + 1
