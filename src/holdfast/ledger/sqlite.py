"""The ledger in SQLite: one file, its write-ahead log beside it, and a folder of locks.

Writers pass a gate, one after another, before they reach SQLite. SQLite could arrange that by
itself, but its waiting is unfair; and its releases before 3.51.3 can lose pages when two
connections write and checkpoint at the same instant (https://sqlite.org/wal.html#walresetbug).
Behind the gate no two ever do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Self

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger import statements as sql
from holdfast.ledger.base import TableLedger
from holdfast.ledger.interface import Hold
from holdfast.ledger.locks import Stripes, exclusive
from holdfast.ledger.migrations import MIGRATIONS, Step, migrate
from holdfast.ledger.receipts import Receipt, holdout_id
from holdfast.ledger.rows import Row, genesis, verify_chain
from holdfast.ledger.sessions import FULL, PATIENCE, Connect, Session, connect
from holdfast.ledger.tables import STOP, TableTransaction

__all__ = ["SqliteLedger"]

_abandoned: list[Session | None] = []  # kept from being closed, which would touch the file


class SqliteLedger(TableLedger):
    """A ledger in a file; `create` it once, then `open` it from as many processes as you like.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with SqliteLedger.create(folder / "ledger.sqlite", "flights-1", {"rows": 5}) as ledger:
    ...     with ledger.begin() as transaction:
    ...         row = transaction.append("noted", {"text": "opened for the study"})
    ...     [(row.number, row.kind) for row in ledger.rows()]
    [(1, 'created'), (2, 'noted')]
    """

    synchronous: ClassVar[int] = FULL  # a test turns it down, and must lose rows

    def __init__(self, path: Path, connect: Connect) -> None:
        super().__init__("")
        self.path = path
        self._connect = connect
        self._session: Session | None = None
        self._file: tuple[int, int] | None = None  # device and inode of what is open
        locks = path.parent / "locks"
        locks.mkdir(mode=0o700, exist_ok=True)
        self._gate = locks / "writer"
        self._stripes = Stripes(locks)

    @classmethod
    def create(
        cls, path: Path, holdout: str, body: dict[str, Any], *, connect: Connect = connect
    ) -> Self:
        """Make the file, mode 0600, with its first row, `created`."""
        start = Receipt(holdout_id(holdout), 0, genesis(holdout))
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            raise InvalidInput("path", str(path), "a file that does not exist yet") from None
        try:
            ledger = cls(path, connect)
            ledger._fill(start, body)
        except BaseException:
            for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
                each.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
        return ledger

    @classmethod
    def open(
        cls, path: Path, *, connect: Connect = connect, steps: Mapping[int, Step] = MIGRATIONS
    ) -> Self:
        """Open the file, after migrating it if an earlier Holdfast wrote it."""
        if not path.is_file():
            hint = "Is it the folder of a holdout?"
            raise InvalidInput("path", str(path), "a ledger that exists", hint)
        ledger = cls(path, connect)
        try:
            with ledger._turn(), ledger._writing() as session:
                migrate(session, str(path), steps)
                ledger._holdout = session.one("SELECT holdout FROM identity") or ""
                first = session.all(sql.SELECT_ROW, 1)
                verify_chain(ledger._holdout, map(Row.from_record, first), read=True)
                ledger._known = ledger._head(session)
        except BaseException:
            with suppress(Exception):  # the error that led here is the one to show
                ledger.close()
            raise
        return ledger

    def verify(self) -> Receipt:
        with self._turn():
            session = self._reach()
            self._head(session)
            faults = [text for (text,) in session.all("PRAGMA integrity_check") if text != "ok"]
            if faults:
                raise Damaged("The ledger", "a sound database", faults[0], STOP)
            written = {text for (text,) in session.all("SELECT sql FROM sqlite_schema") if text}
            if written != set(sql.SCHEMA):
                odd = sorted(written ^ set(sql.SCHEMA))[0]
                raise Damaged("The ledger", "its own tables and triggers", f"{odd!r}", STOP)
            with closing(session.each(sql.SELECT_AFTER, 0)) as records:
                return verify_chain(self._holdout, map(Row.from_record, records), read=True)

    def copy(self, path: Path) -> Receipt:
        """Write the ledger as of one moment into a new file, mode 0600; its head at that moment."""
        with self._turn(), exclusive(self._gate, timeout=PATIENCE):
            session = self._reach()
            head = self._head(session)
            session.copy(path)
        return head

    @contextmanager
    def lock(self, *names: str) -> Iterator[Hold]:
        self._outside(names)
        with self._stripes.hold(*names):
            yield Hold()

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """A session inside BEGIN … COMMIT, which no other writer can be in meanwhile."""
        with exclusive(self._gate, timeout=PATIENCE):
            session = self._reach()
            try:
                session.all("BEGIN IMMEDIATE")
                yield session
                self._not_lost()
                session.all("COMMIT")
            except BaseException:
                self._undo(session)
                raise

    def _undo(self, session: Session) -> None:
        if self._session is session:  # not so in a child that was forked meanwhile
            try:
                session.all("ROLLBACK")
            except Exception:  # the error that led here is the one to show
                with suppress(Exception):
                    self._disconnect()

    def _reach(self) -> Session:
        """The session, made anew if there is none or if the file was replaced."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise Damaged(f"The ledger {self.path}", "a file", "none", STOP) from None
        file = (found.st_dev, found.st_ino)
        if self._session is not None and file != self._file:
            self._disconnect()
        if self._session is None:
            self._session = Session(self.path, self._connect, self.synchronous)
            self._file = file
        return self._session

    def _fill(self, start: Receipt, body: dict[str, Any]) -> None:
        with self._turn():
            with self._writing() as session:
                for statement in sql.SCHEMA:
                    session.all(statement)
                session.all(f"PRAGMA application_id = {sql.APPLICATION_ID}")
                session.all(f"PRAGMA user_version = {sql.FORMAT}")
                session.all(sql.INSERT_IDENTITY, start.holdout)
                transaction = TableTransaction(session, start)
                transaction.append("created", body)
                transaction.write()
            self._holdout, self._known = start.holdout, transaction.head
            session.all("PRAGMA wal_checkpoint(TRUNCATE)")  # the file alone is a ledger already

    def _disconnect(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            session.close()

    def _abandon(self) -> None:
        _abandoned.append(self._session)
        self._session = None


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable, not only its contents."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
