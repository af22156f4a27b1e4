"""A connection to SQLite, set up so that what it has committed stays, and with clear errors."""

from __future__ import annotations

import errno
import itertools
import os
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from holdfast.errors import Damaged
from holdfast.ledger import statements as sql
from holdfast.ledger.tables import Record, Table

__all__ = ["FULL", "PATIENCE", "Connect", "Connection", "Session", "connect"]

FULL = 2  # PRAGMA synchronous: a commit returns when the disk has it
PATIENCE = 60.0  # seconds to wait for another process
_OLDEST = (3, 37, 0)  # STRICT tables
_AT_ONCE = 100  # rows in one statement


class Connection(Protocol):
    """What a ledger needs of a connection: that of Python's sqlite3, or another."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Any:
        """Run one statement; the cursor has `fetchall` and can be iterated."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


Connect = Callable[[Path], Connection]


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


class Session(Table):
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
        found = self.all(sql.SELECT_HEAD)
        return (found[0][0], found[0][1]) if found else None

    def record(self, number: int) -> Record | None:
        found = self.all(sql.SELECT_ROW, number)
        return found[0] if found else None

    def records(self, first: int, limit: int | None = None) -> list[Record]:
        if limit is None:
            return self.all(sql.SELECT_AFTER, first)
        return self.all(sql.SELECT_SOME, first, limit)

    def recorded(self, questions: Collection[str]) -> list[Record]:
        return self.all(sql.select_recorded(len(questions)), *questions)

    def requested(self, requests: Collection[str]) -> list[Record]:
        return self.all(sql.select_requested(len(requests)), *requests)

    def insert(self, records: list[Record]) -> None:
        for first in range(0, len(records), _AT_ONCE):
            some = records[first : first + _AT_ONCE]
            self.all(sql.insert(len(some)), *itertools.chain.from_iterable(some))

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
