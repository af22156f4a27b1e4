"""The ledger in SQLite: one file, its write-ahead log beside it, and a folder of locks.

Writers pass a gate, one after another, before they reach SQLite. SQLite could arrange that by
itself, but its waiting is unfair; and its releases before 3.51.3 can lose pages when two
connections write and checkpoint at the same instant (https://sqlite.org/wal.html#walresetbug).
Behind the gate no two ever do.
"""

from __future__ import annotations

import errno
import itertools
import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self
from urllib.parse import quote

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger.ledger import (
    COLUMNS,
    STOP,
    Hold,
    Ledger,
    Receipt,
    Record,
    Row,
    Table,
    holdout_id,
    verify_chain,
)
from holdfast.ledger.locks import Stripes, exclusive, forked

__all__ = [
    "SELECT_RECORDED",
    "SELECT_REQUESTED",
    "Connect",
    "SqlConnection",
    "SqliteLedger",
    "SqliteTable",
    "connect",
]

APPLICATION_ID = 0x486F4C44  # "HoLD", in the header of the file
FORMAT = 1  # user_version


def _refuse(table: str, event: str, condition: str = "") -> str:
    return (
        f"CREATE TRIGGER {table}_{event.lower()} BEFORE {event} ON {table} {condition} "
        f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )


# The triggers stop mistakes, not an attacker: that is what the chain and the receipts are for. That
# of an insertion also stops INSERT OR REPLACE, which deletes without asking the other trigger.
SCHEMA = (
    "CREATE TABLE identity (one INTEGER PRIMARY KEY CHECK (one = 1), holdout TEXT NOT NULL) STRICT",
    "CREATE TABLE ledger (number INTEGER PRIMARY KEY, version INTEGER NOT NULL, "
    "kind TEXT NOT NULL, at TEXT NOT NULL, question TEXT, request TEXT, body TEXT NOT NULL, "
    "previous TEXT NOT NULL, digest TEXT NOT NULL) STRICT",
    "CREATE INDEX answers ON ledger (question, number) WHERE kind = 'recorded'",
    "CREATE INDEX requests ON ledger (request, number) WHERE request IS NOT NULL",
    _refuse("identity", "INSERT", "WHEN EXISTS (SELECT 1 FROM identity)"),
    _refuse("identity", "UPDATE"),
    _refuse("identity", "DELETE"),
    _refuse(
        "ledger",
        "INSERT",
        "WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM ledger)",
    ),
    _refuse("ledger", "UPDATE"),
    _refuse("ledger", "DELETE"),
)

_HEAD = "SELECT number, digest FROM ledger ORDER BY number DESC LIMIT 1"
_ROW = f"SELECT {COLUMNS} FROM ledger WHERE number = ?"
_AFTER = f"SELECT {COLUMNS} FROM ledger WHERE number >= ? ORDER BY number"
SELECT_RECORDED = (
    f"SELECT {COLUMNS} FROM ledger WHERE kind = 'recorded' AND question = ? ORDER BY number"
)
SELECT_REQUESTED = f"SELECT {COLUMNS} FROM ledger WHERE request = ? ORDER BY number"


@cache
def _insert(rows: int) -> str:
    """The insertion of so many rows."""
    row = f"({', '.join('?' * len(COLUMNS.split()))})"
    return f"INSERT INTO ledger ({COLUMNS}) VALUES {', '.join([row] * rows)}"


FULL = 2  # PRAGMA synchronous: a commit returns when the disk has it
PATIENCE = 60.0  # seconds to wait for another process
_OLDEST = (3, 37, 0)  # STRICT tables
_AT_ONCE = 100  # rows in one statement


class SqlConnection(Protocol):
    """What a ledger needs of a connection: that of Python's sqlite3, or another."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Any:
        """Run one statement; the cursor has `fetchall` and can be iterated."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


Connect = Callable[[Path], SqlConnection]


def connect(path: Path) -> sqlite3.Connection:
    """A standard connection to a file that exists, in which every statement stands for itself."""
    if sqlite3.sqlite_version_info < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        message = f"SQLite {sqlite3.sqlite_version} is too old for a ledger; it needs {oldest}."
        raise OSError(errno.ENOSYS, message, str(path))
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=rw",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,  # a ledger lets in one thread at a time
    )


class SqliteTable(Table):
    """One connection, durable, whose errors say what to do."""

    def __init__(self, path: Path, connect: Connect, synchronous: int = FULL) -> None:
        self._path = path
        with _explained(path):
            self._connection = connect(path)
        try:
            self._configure(synchronous)
        except BaseException:
            self.close()
            raise

    def all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Every row that the statement gives."""
        try:  # not `with _explained`: this is the path of every question, a dozen times
            return list(self._connection.execute(statement, values).fetchall())
        except (sqlite3.Error, UnicodeDecodeError):
            with _explained(self._path):
                raise

    def each(self, statement: str, *values: Any) -> Generator[tuple[Any, ...]]:
        """The rows that the statement gives, one at a time."""
        with _explained(self._path):
            yield from self._connection.execute(statement, values)

    def one(self, statement: str, *values: Any) -> Any:
        """The first value of the first row, or None if there is no row."""
        rows = self.all(statement, *values)
        return rows[0][0] if rows else None

    def head(self) -> tuple[int, str] | None:
        found = self.all(_HEAD)
        return (found[0][0], found[0][1]) if found else None

    def record(self, number: int) -> Record | None:
        found = self.all(_ROW, number)
        return found[0] if found else None

    def records(self, first: int, limit: int | None = None) -> list[Record]:
        return self.all(f"{_AFTER} LIMIT ?", first, -1 if limit is None else limit)

    def recorded(self, question: str) -> list[Record]:
        return self.all(SELECT_RECORDED, question)

    def requested(self, request: str) -> list[Record]:
        return self.all(SELECT_REQUESTED, request)

    def insert(self, records: list[Record]) -> None:
        for first in range(0, len(records), _AT_ONCE):
            some = records[first : first + _AT_ONCE]
            self.all(_insert(len(some)), *itertools.chain.from_iterable(some))

    def copy(self, path: Path) -> None:
        """Write all that is committed into a new file, by SQLite's backup; on the disk for good."""
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        source: Any = self._connection  # Python's own, which alone can do this
        with _explained(path), closing(connect(path)) as target:
            source.backup(target)

    def close(self) -> None:
        """Close the connection; the last one of all processes moves the log into the file."""
        with _explained(self._path):
            self._connection.close()

    def check_format(self) -> None:
        """Refuse a file that is no ledger, or one of another format."""
        path, application = str(self._path), self.one("PRAGMA application_id")
        version = self.one("PRAGMA user_version")
        if application == 0 and self.one("SELECT count(*) FROM sqlite_schema") == 0:
            remedy = (
                "If its creation was interrupted, delete the folder and create the holdout again. "
                "If not, ledger.sqlite-wal is missing: put it back."
            )
            raise Damaged(f"The ledger {path}", "a finished one", "an empty database", remedy)
        if application != APPLICATION_ID:
            raise InvalidInput("path", path, "a ledger", "This is a database of another program.")
        if version != FORMAT:
            hint = f"It has format {version}: open it with the Holdfast that wrote it."
            raise InvalidInput("path", path, f"a ledger of format {FORMAT}", hint)

    def _configure(self, synchronous: int) -> None:
        self.all(f"PRAGMA synchronous = {synchronous}")
        self.all("PRAGMA fullfsync = ON")  # on macOS, a plain sync stops at the disk's own cache
        self.all("PRAGMA checkpoint_fullfsync = ON")
        self.all("PRAGMA cell_size_check = ON")
        self.all("PRAGMA trusted_schema = OFF")
        mode = self.one("PRAGMA journal_mode = WAL")
        found = (mode, self.one("PRAGMA synchronous"))
        if found != ("wal", synchronous):
            message = (
                f"SQLite cannot keep a write-ahead log here (journal {found[0]}, synchronous "
                f"{found[1]}). Put the holdout on a local disk: network folders will not do."
            )
            raise OSError(errno.ENOTSUP, message, str(self._path))


_ADVICE = {  # primary result codes of SQLite: https://sqlite.org/rescode.html
    sqlite3.SQLITE_FULL: (errno.ENOSPC, "The disk is full. Make room and ask again"),
    sqlite3.SQLITE_BUSY: (errno.EAGAIN, "Another program holds the ledger. End it and ask again"),
    sqlite3.SQLITE_LOCKED: (errno.EAGAIN, "Another program holds the ledger. End it and ask again"),
    sqlite3.SQLITE_READONLY: (errno.EACCES, "The ledger cannot be written. Check who owns it"),
    sqlite3.SQLITE_PERM: (errno.EACCES, "The ledger cannot be written. Check who owns it"),
    sqlite3.SQLITE_CANTOPEN: (errno.ENOENT, "The ledger cannot be opened. Check its folder"),
    sqlite3.SQLITE_NOMEM: (errno.ENOMEM, "There is not enough memory. Make room and ask again"),
    sqlite3.SQLITE_INTERRUPT: (errno.EINTR, "It was interrupted. Ask again"),
    sqlite3.SQLITE_IOERR: (errno.EIO, "The disk reports an error. Check it and ask again"),
}


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn an error of SQLite into one that says what it means for the ledger."""
    try:
        yield
    except sqlite3.ProgrammingError:  # a mistake of the caller
        raise
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the text of an error may be damaged too
        # The statements are right: what else cannot be read or written is not as it was made.
        number, advice = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, (0, ""))
        if not advice:
            remedy = (
                "Ask nothing more of this holdout. Put back the newest copy of the whole folder "
                "and check it against the last receipt."
            )
            raise Damaged(f"The ledger {path}", "a sound database", str(error), remedy) from error
        message = f"{advice}: what was not acknowledged is not in it ({error})"
        raise OSError(number, message, str(path)) from error


_abandoned: list[SqliteTable | None] = []  # kept from being closed, which would touch the file


class SqliteLedger(Ledger):
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
        holdout_id(holdout)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            raise InvalidInput("path", str(path), "a file that does not exist yet") from None
        try:
            ledger = cls(path, connect)
            ledger._fill(holdout, body)
        except BaseException:
            for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
                each.unlink(missing_ok=True)
            raise
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)  # the name of the file too, not only its contents
        finally:
            os.close(descriptor)
        return ledger

    @classmethod
    def open(cls, path: Path, *, connect: Connect = connect) -> Self:
        """Open the file."""
        if not path.is_file():
            hint = "Is it the folder of a holdout?"
            raise InvalidInput("path", str(path), "a ledger that exists", hint)
        ledger = cls(path, connect)
        try:
            with ledger._turn(), ledger._writing() as table:
                table.check_format()
                ledger.holdout = table.one("SELECT holdout FROM identity") or ""
                first = table.all(_ROW, 1)
                verify_chain(ledger.holdout, map(Row.from_record, first), read=True)
                ledger._known = ledger._head(table)
        except BaseException:
            with suppress(Exception):  # the error that led here is the one to show
                ledger.close()
            raise
        return ledger

    def verify(self) -> Receipt:
        with self._turn():
            table = self._reach()
            self._head(table)
            faults = [text for (text,) in table.all("PRAGMA integrity_check") if text != "ok"]
            if faults:
                raise Damaged("The ledger", "a sound database", faults[0], STOP)
            written = {text for (text,) in table.all("SELECT sql FROM sqlite_schema") if text}
            if written != set(SCHEMA):
                odd = min(map(repr, written ^ set(SCHEMA)))  # what is damaged may be no text
                raise Damaged("The ledger", "its own tables and triggers", odd, STOP)
            with closing(table.each(_AFTER, 0)) as records:
                return verify_chain(self.holdout, map(Row.from_record, records), read=True)

    def copy(self, path: Path) -> Receipt:
        """Write the ledger as of one moment into a new file, mode 0600; its head at that moment."""
        with self._turn(), exclusive(self._gate, timeout=PATIENCE):
            table = self._reach()
            head = self._head(table)
            table.copy(path)
        return head

    @contextmanager
    def lock(self, *names: str) -> Iterator[Hold]:
        self._outside(names)
        with self._stripes.hold(*names):
            yield Hold()

    @contextmanager
    def _writing(self) -> Iterator[SqliteTable]:
        with exclusive(self._gate, timeout=PATIENCE):
            table = self._reach()
            try:
                table.all("BEGIN IMMEDIATE")
                yield table
                if self._lost:
                    raise forked()
                table.all("COMMIT")
            except BaseException:
                if self._table is table:  # not so in a child that was forked meanwhile
                    try:
                        table.all("ROLLBACK")
                    except Exception:  # the error that led here is the one to show
                        with suppress(Exception):
                            self._disconnect()
                raise

    def _reach(self) -> SqliteTable:
        """The table, connected anew if it is not or if the file was replaced."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise Damaged(f"The ledger {self.path}", "a file", "none", STOP) from None
        file = (found.st_dev, found.st_ino)
        if self._table is not None and file != self._file:
            self._disconnect()
        if self._table is None:
            self._table, self._file = SqliteTable(self.path, self._connect, self.synchronous), file
        table: SqliteTable = self._table
        return table

    def _fill(self, holdout: str, body: dict[str, Any]) -> None:
        with self._turn():
            self.holdout = holdout
            with self._writing() as table:
                for statement in SCHEMA:
                    table.all(statement)
                table.all(f"PRAGMA application_id = {APPLICATION_ID}")
                table.all(f"PRAGMA user_version = {FORMAT}")
                table.all("INSERT INTO identity VALUES (1, ?)", holdout)
                head = self._create(table, body)
            self._known = head
            table.all("PRAGMA wal_checkpoint(TRUNCATE)")  # the file alone is a ledger already

    def _abandon(self) -> None:
        _abandoned.append(self._table)
        self._table = None
