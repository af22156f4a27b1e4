"""A connection to Postgres, set up so that what it has committed stays, and with clear errors."""

from __future__ import annotations

import errno
import itertools
import os
import select
from collections import deque
from collections.abc import Collection
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

import psycopg
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus

from holdfast.errors import Damaged
from holdfast.ledger.postgres import statements as sql
from holdfast.ledger.postgres.addresses import parameters
from holdfast.ledger.postgres.faults import explained, unconfirmed, unreachable
from holdfast.ledger.tables import STOP, Record, Table

__all__ = ["Session"]

_AT_ONCE = 100  # rows in one statement
_OLDEST = 13  # releases before are no longer maintained

# Nothing but ours ends a session or a statement; a client that goes away is noticed, and its locks
# are free, within a minute. Settings that this server does not know, or has stricter, are left.
_SETTINGS = {
    "client_min_messages": "warning",  # or a commit that is not sure would look like any other
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "search_path": "pg_catalog",
    "statement_timeout": "0",
    "tcp_keepalives_count": "3",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_user_timeout": "60000",  # also of one that dies while it is being told something
    "transaction_timeout": "0",
}
_SET = (
    "SELECT set_config(s.name, given.value, false) FROM pg_catalog.pg_settings AS s "
    "JOIN unnest(%s::text[], %s::text[]) AS given (name, value) ON s.name = given.name"
)
_WAIT_FOR_THE_DISK = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')"
)
_FOUND = (
    "SELECT current_setting('fsync'), current_setting('full_page_writes'), "
    "current_setting('server_encoding'), pg_is_in_recovery(), pg_backend_pid()"
)


class Session(Table):
    """One connection, durable, whose errors say what to do; for the rows of one holdout."""

    def __init__(self, url: str, holdout: str, patience: float) -> None:
        self._url, self._holdout, self._patience = url, holdout, patience
        self._process = os.getpid()
        self._pending: list[Record] = []  # not yet sent
        self._first: list[Record] | None = None  # the head, as a transaction has begun
        try:
            self._connection = psycopg.connect(autocommit=True, **parameters(url))
        except psycopg.Error as error:
            raise unreachable(error, url) from error
        self._warnings: deque[str] = deque(maxlen=1)
        self._connection.add_notice_handler(partial(_keep_warning, self._warnings))
        self._readable = select.poll()
        self._readable.register(self._connection.fileno(), select.POLLIN)
        try:
            self._configure()
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        if hasattr(self, "_connection") and self._process == os.getpid():
            self.close()

    @property
    def closed(self) -> bool:
        """Whether the connection is known to be lost, or is that of a parent of this process."""
        return self._process != os.getpid() or self._connection.closed

    @property
    def ready(self) -> bool:
        """Whether it can be used, as far as can be known without a word to the server."""
        with suppress(psycopg.Error, OSError):
            while not self.closed and self._readable.poll(0):
                self._connection.pgconn.consume_input()  # fails where the stream has ended
        # Not in the middle of something that was interrupted.
        return self._connection.info.transaction_status == TransactionStatus.IDLE

    def all(self, statement: str, *values: Any) -> list[Record]:
        """Every row that the statement gives."""
        self._flush()
        with self._explained():
            cursor = self._connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description is not None else []

    def one(self, statement: str, *values: Any) -> Any:
        """The first value of the first row, or None if there is no row."""
        rows = self.all(statement, *values)
        return rows[0][0] if rows else None

    def begin(self) -> None:
        """Begin a transaction, which no other writer can be in meanwhile."""
        self._pending = []
        with self._explained():
            cursor = self._connection.execute(sql.begin(self._holdout).encode())
            while cursor.nextset():
                pass
            self._first = cursor.fetchall()

    def commit(self) -> None:
        """End it: what was inserted last and the commit are one message."""
        records, self._pending, self._first = self._pending, [], None
        self._end(records, "; COMMIT")

    def rollback(self) -> None:
        """Undo it; the connection is closed if that is not certain."""
        self._pending, self._first = [], None
        with suppress(psycopg.Error):
            self._connection.execute(b"ROLLBACK")
        if self._connection.info.transaction_status != TransactionStatus.IDLE:
            self.close()

    def head(self) -> tuple[int, str] | None:
        found, self._first = self._first, None
        if found is None:
            found = self.all(sql.SELECT_HEAD, self._holdout)
        return (found[0][0], found[0][1]) if found else None

    def record(self, number: int) -> Record | None:
        found = self.all(sql.SELECT_ROW, self._holdout, number)
        return found[0] if found else None

    def records(self, first: int, limit: int | None = None) -> list[Record]:
        if limit is None:
            return self.all(sql.SELECT_AFTER, self._holdout, first)
        return self.all(sql.SELECT_SOME, self._holdout, first, limit)

    def recorded(self, questions: Collection[str]) -> list[Record]:
        return self.all(sql.SELECT_RECORDED, self._holdout, list(questions))

    def requested(self, requests: Collection[str]) -> list[Record]:
        return self.all(sql.SELECT_REQUESTED, self._holdout, list(requests))

    def insert(self, records: list[Record]) -> None:
        self._pending += records  # sent with what follows

    def close(self) -> None:
        """Close the connection; its locks end with it."""
        self._connection.close()

    def abandon(self) -> None:
        """In a child of this process: let go of the parent's connection, without a word."""
        with suppress(psycopg.Error, OSError):
            nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            os.dup2(nowhere, self._connection.fileno(), inheritable=False)
            os.close(nowhere)

    def _flush(self) -> None:
        if self._pending:
            records, self._pending = self._pending, []
            self._end(records, "")

    def _end(self, records: list[Record], then: str) -> None:
        """Send rows, and with the last of them a statement."""
        last = max(0, len(records) - 1) // _AT_ONCE * _AT_ONCE
        with self._explained():
            for first in range(0, last, _AT_ONCE):
                self._send(records[first : first + _AT_ONCE], "")
            self._warnings.clear()
            status = self._send(records[last:], then)
            if then and status != "COMMIT":  # that of a transaction that had failed undoes it
                raise psycopg.errors.SerializationFailure(f"{status} instead of COMMIT")
            if then and self._warnings:  # committed here, but the replica may not have it
                self.close()
                raise unconfirmed(self._warnings[0], self._url)

    def _send(self, records: list[Record], then: str) -> str | None:
        rows = ((self._holdout, *record) for record in records)
        text = (sql.insert(len(records)) if records else "") + then
        # Quoted here: several statements in one message have no parameters.
        cursor = psycopg.ClientCursor(self._connection)
        cursor.execute(text.removeprefix("; ").encode(), list(itertools.chain.from_iterable(rows)))
        if records and cursor.rowcount != len(records):  # a rule or a trigger swallows them
            found = f"{cursor.rowcount} of {len(records)}"
            raise Damaged(f"The ledger in {self._url}", "all rows to be inserted", found, STOP)
        while cursor.nextset():
            pass
        return cursor.statusmessage

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self._connection, self._url, self._patience)

    def _configure(self) -> None:
        version = self._connection.info.server_version // 10_000
        if version < _OLDEST:
            message = f"Postgres {version} is too old for a ledger; it needs {_OLDEST} or newer"
            raise OSError(errno.ENOSYS, message, self._url)
        settings = {**_SETTINGS, "lock_timeout": f"{self._patience * 1000:.0f}"}
        self.all(_SET, list(settings), list(settings.values()))
        self.all(_WAIT_FOR_THE_DISK)
        ((fsync, pages, encoding, is_standby, process),) = self.all(_FOUND)
        if is_standby:
            message = "This is a standby, which may be behind. Give the URL of the primary"
            raise OSError(errno.EROFS, message, self._url)
        if (fsync, pages) != ("on", "on"):
            message = (
                f"This Postgres does not wait for its disk (fsync {fsync}, full_page_writes "
                f"{pages}): a power cut would lose answers that were given. Set both to on"
            )
            raise OSError(errno.ENOTSUP, message, self._url)
        if encoding != "UTF8":
            message = f"The encoding of the database is {encoding}. Make one with ENCODING 'UTF8'"
            raise OSError(errno.ENOTSUP, message, self._url)
        if process != self._connection.info.backend_pid:
            message = (
                "Something stands between here and Postgres, such as PgBouncer: locks would be "
                "another's. Give the URL of Postgres itself"
            )
            raise OSError(errno.ENOTSUP, message, self._url)


def _keep_warning(kept: deque[str], notice: Diagnostic) -> None:
    """Keep what makes a commit doubtful: any warning but the one that a vacuum is due."""
    is_warning = notice.severity_nonlocalized == "WARNING"
    if is_warning and notice.source_function != "GetNewTransactionId":
        kept.append(" ".join(filter(None, (notice.message_primary, notice.message_detail))))
