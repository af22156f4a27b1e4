"""The ledger in Postgres: several holdouts in a database, several servers on a holdout.

It is loaded only when a URL asks for it; `pip install 'psycopg[binary]'`.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from hashlib import sha256
from typing import Any, ClassVar, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus

from holdfast.concurrency import BatchedTask, Batcher, Renewed
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
from holdfast.ledger.locks import forked
from holdfast.ledger.opening import masked

__all__ = ["MIGRATIONS", "PostgresLedger", "PostgresTable", "Step", "key", "parameters"]

# Addresses: URLs as libpq reads them. One is written into the holdout's folder, given on command
# lines and shown in messages: a password has no place in it.

# A server or a network that goes away silently is noticed within a minute.
_DEFAULTS = {
    "application_name": "holdfast",
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    "keepalives_count": "3",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "target_session_attrs": "primary",  # a standby may be behind: an older copy of the ledger
    "tcp_user_timeout": "60000",
}
_SECRETS = frozenset(
    {"oauth_client_secret", "password", "scram_client_key", "scram_server_key", "sslpassword"}
)
# One @, and no colon before it. libpq would take `me:sesame/1@host` for a port and a database.
_PLAIN = re.compile(r"[a-z]+://([^/?:@]*@)?[^@]*")


def parameters(url: str) -> dict[str, Any]:
    """What libpq is told for a URL; what it leaves open is chosen here.

    >>> sorted(set(parameters("postgresql://db.example/holdouts")) - set(_DEFAULTS))
    ['dbname', 'host']
    """
    try:
        given = conninfo_to_dict(url)  # percent-decoded; a name in capitals is unknown to libpq
    except psycopg.Error:
        # Not with the words of libpq: they may repeat a part of the password.
        raise InvalidInput("ledger", masked(url), "a URL: postgresql://host/database") from None
    if not _SECRETS.isdisjoint(given) or not _PLAIN.fullmatch(url):
        hint = (
            "It would be stored and shown. Put it into PGPASSWORD, a file ~/.pgpass (mode 0600) or "
            "a service file; write %40 for an @ in a name."
        )
        raise InvalidInput("ledger", masked(url), "a URL without a password", hint)
    return {**_DEFAULTS, **given}


# What an error of Postgres means for the ledger.

LOST = (
    "The connection to the ledger was lost. What was acknowledged is in it. Ask again with the "
    "same key: what was recorded before is found, and free"
)
_FIRST = (errno.EAGAIN, "Another program wrote first. Ask again")
_RIGHTS = (errno.EACCES, "This role may not do that. Grant it what the ledger needs")

# https://www.postgresql.org/docs/current/errcodes-appendix.html
_ADVICE = {
    "23505": _FIRST,  # the number of the row was taken: somebody wrote without the lock
    "25006": (errno.EROFS, "The database cannot be written. Give the URL of the primary"),
    "40001": _FIRST,
    "40P01": _FIRST,
    "42501": _RIGHTS,
    "53100": (errno.ENOSPC, "The disk of the database is full. Make room and ask again"),
    "53200": (errno.ENOMEM, "The database has too little memory. Make room and ask again"),
    "53300": (errno.EAGAIN, "The database has too many connections. End some and ask again"),
    "57014": (errno.EINTR, "It was interrupted. Ask again"),
    "58030": (errno.EIO, "The disk of the database reports an error. Check it and ask again"),
    "P0001": _FIRST,  # the trigger: the row does not follow the last one any more
}


@contextmanager
def _explained(connection: psycopg.Connection, address: str, patience: float) -> Iterator[None]:
    """Turn an error of Postgres into one that says what it means for the ledger."""
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        message = (
            f"Another process has held the ledger in {address} for more than {patience:g} seconds. "
            "It may be stopped: let it go on, or end it. Nothing was written."
        )
        raise TimeoutError(message) from error
    except psycopg.Error as error:
        said = _message(error)
        if connection.closed:
            raise OSError(errno.ECONNRESET, f"{LOST} ({said})", address) from error
        # The statements are right: what else cannot be read or written is not as it was made.
        number, advice = _ADVICE.get(error.sqlstate or "", (0, ""))
        if not advice:
            remedy = (
                "Ask nothing more of this holdout. Restore the newest state of the database and "
                "check it against the last receipt."
            )
            raise Damaged(f"The ledger in {address}", "sound tables", said, remedy) from error
        message = f"{advice}: what was not acknowledged is not in it ({said})"
        raise OSError(number, message, address) from error


def _message(error: psycopg.Error) -> str:
    """The words of Postgres, on one line."""
    return " ".join(str(error).split())


# The tables, their triggers, and what is asked of them.

FORMAT = 1  # of the schema `holdfast`; `MIGRATIONS` lead from one to the next

REFUSE = " BEGIN RAISE EXCEPTION 'the ledger is append-only'; END "
FOLLOW = """
BEGIN
    IF NEW.number IS DISTINCT FROM (
        SELECT coalesce(max(number), 0) + 1 FROM holdfast.ledger WHERE holdout = NEW.holdout
    ) THEN
        RAISE EXCEPTION 'the ledger is append-only';
    END IF;
    RETURN NEW;
END
"""

# The triggers stop mistakes, not an attacker: that is what the chain and the receipts are for.
# "C" orders text by its bytes: no update of the system's languages can disorder an index.
SCHEMA = (
    "CREATE SCHEMA holdfast",
    "CREATE TABLE holdfast.format (one int PRIMARY KEY CHECK (one = 1), version int NOT NULL)",
    f"INSERT INTO holdfast.format VALUES (1, {FORMAT})",
    'CREATE TABLE holdfast.ledger (holdout text COLLATE "C" NOT NULL, number bigint NOT NULL, '
    'version int NOT NULL, kind text COLLATE "C" NOT NULL, at text NOT NULL, '
    'question text COLLATE "C", request text COLLATE "C", body text NOT NULL, '
    "previous text NOT NULL, digest text NOT NULL, PRIMARY KEY (holdout, number))",
    "CREATE INDEX answers ON holdfast.ledger (holdout, question, number) WHERE kind = 'recorded'",
    "CREATE INDEX requests ON holdfast.ledger (holdout, request, number) WHERE request IS NOT NULL",
    f"CREATE FUNCTION holdfast.refuse() RETURNS trigger LANGUAGE plpgsql AS $${REFUSE}$$",
    f"CREATE FUNCTION holdfast.follow() RETURNS trigger LANGUAGE plpgsql AS $${FOLLOW}$$",
    "CREATE TRIGGER ledger_insert BEFORE INSERT ON holdfast.ledger "
    "FOR EACH ROW EXECUTE FUNCTION holdfast.follow()",
    "CREATE TRIGGER ledger_change BEFORE UPDATE OR DELETE OR TRUNCATE ON holdfast.ledger "
    "FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse()",
)

_OWN = "FROM holdfast.ledger WHERE holdout = %s"
SELECT_HEAD = f"SELECT number, digest {_OWN} ORDER BY number DESC LIMIT 1"
SELECT_ROW = f"SELECT {COLUMNS} {_OWN} AND number = %s"
SELECT_AFTER = f"SELECT {COLUMNS} {_OWN} AND number >= %s ORDER BY number"
SELECT_SOME = f"{SELECT_AFTER} LIMIT %s"
SELECT_RECORDED = f"SELECT {COLUMNS} {_OWN} AND kind = 'recorded' AND question = %s ORDER BY number"
SELECT_REQUESTED = f"SELECT {COLUMNS} {_OWN} AND request = %s ORDER BY number"


def key(*words: str) -> int:
    """The number of an advisory lock: all programs that use the database share them.

    >>> key("writer", "flights-1")
    -6650190943949076220
    """
    digest = sha256(" ".join(("holdfast", *words)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


@cache
def _begin(holdout: str) -> str:
    """One message: begin, wait for all other writers, and read the head.

    The lock ends with the transaction, after its commit is durable and seen. Each statement sees
    what was committed before it; behind the lock that does not change any more. SERIALIZABLE would
    add nothing to that, and fail: it takes two holdouts on one page of an index for a conflict.
    """
    head = SELECT_HEAD.replace("%s", f"'{holdout}'")  # an id: letters, digits, - and _
    lock = f"SELECT pg_advisory_xact_lock({key('writer', holdout)})"
    return f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {lock}; {head}"


@cache
def _insert(rows: int) -> str:
    """The insertion of so many rows."""
    row = f"({', '.join(['%s'] * (1 + len(COLUMNS.split())))})"
    return f"INSERT INTO holdfast.ledger (holdout, {COLUMNS}) VALUES {', '.join([row] * rows)}"


# A connection, set up so that what it has committed stays, and with clear errors.

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


class PostgresTable(Table):
    """One connection, durable, whose errors say what to do; for the rows of one holdout."""

    def __init__(self, url: str, holdout: str, patience: float) -> None:
        self._url, self._holdout, self._patience = url, holdout, patience
        self._process = os.getpid()
        self._pending: list[Record] = []  # not yet sent
        self._first: list[Record] | None = None  # the head, as a transaction has begun
        try:
            self._connection = psycopg.connect(autocommit=True, **parameters(url))
        except psycopg.Error as error:
            message = (
                "The database of the ledger cannot be reached. Check that it runs, its address, "
                f"and the password (PGPASSWORD, ~/.pgpass); then ask again ({_message(error)})"
            )
            raise OSError(errno.ECONNREFUSED, message, url) from error
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
            cursor = self._connection.execute(_begin(self._holdout).encode())
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
            found = self.all(SELECT_HEAD, self._holdout)
        return (found[0][0], found[0][1]) if found else None

    def record(self, number: int) -> Record | None:
        found = self.all(SELECT_ROW, self._holdout, number)
        return found[0] if found else None

    def records(self, first: int, limit: int | None = None) -> list[Record]:
        if limit is None:
            return self.all(SELECT_AFTER, self._holdout, first)
        return self.all(SELECT_SOME, self._holdout, first, limit)

    def recorded(self, question: str) -> list[Record]:
        return self.all(SELECT_RECORDED, self._holdout, question)

    def requested(self, request: str) -> list[Record]:
        return self.all(SELECT_REQUESTED, self._holdout, request)

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
                message = (
                    "The commit was not confirmed by the replica. Nothing was told. See that the "
                    f"replica runs, then ask again with the same key ({self._warnings[0]})"
                )
                raise OSError(errno.EIO, message, self._url)

    def _send(self, records: list[Record], then: str) -> str | None:
        rows = ((self._holdout, *record) for record in records)
        text = (_insert(len(records)) if records else "") + then
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
        return _explained(self._connection, self._url, self._patience)

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


# Whether the tables of the ledgers are as they were made, and nothing else acts on them.

# As Postgres itself spells it, from 13 on. NOT NULL is said of columns: 18 lists it twice.
_CATALOG = """
WITH own AS (SELECT * FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace)
SELECT 'table', relname::text,
    concat_ws(' ', relkind, relpersistence, relrowsecurity, relforcerowsecurity)
    FROM own WHERE relkind NOT IN ('i', 't')
UNION ALL
SELECT 'column', concat(relname, '.', attname),
    concat_ws(' ', format_type(atttypid, atttypmod), attcollation::regcollation, attnotnull,
        attidentity, attgenerated, pg_get_expr(adbin, adrelid))
    FROM own JOIN pg_attribute AS a ON attrelid = own.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relkind NOT IN ('i', 't')
UNION ALL
SELECT 'constraint', conname::text, concat_ws(' ', convalidated, pg_get_constraintdef(c.oid))
    FROM own JOIN pg_constraint AS c ON conrelid = own.oid AND contype <> 'n'
UNION ALL
SELECT 'index', indexrelid::regclass::text,
    concat_ws(' ', indisvalid, indisready, indislive, pg_get_indexdef(indexrelid))
    FROM own JOIN pg_index ON indrelid = own.oid AND relkind <> 't'
UNION ALL
SELECT 'trigger', tgname::text, concat_ws(' ', tgenabled, pg_get_triggerdef(t.oid))
    FROM own JOIN pg_trigger AS t ON tgrelid = own.oid AND NOT tgisinternal
UNION ALL
SELECT 'function', proname::text, concat_ws(' ', lanname, prosecdef, proconfig, prosrc)
    FROM pg_proc JOIN pg_language AS l ON l.oid = prolang
    WHERE pronamespace = 'holdfast'::regnamespace
UNION ALL
SELECT 'rule', rulename::text, pg_get_ruledef(r.oid)
    FROM own JOIN pg_rewrite AS r ON ev_class = own.oid
UNION ALL
SELECT 'policy', polname::text, relname::text
    FROM own JOIN pg_policy ON polrelid = own.oid
UNION ALL
SELECT 'inheritance', inhrelid::regclass::text, inhparent::regclass::text
    FROM pg_inherits JOIN own ON own.oid IN (inhrelid, inhparent) AND relkind <> 'i'
"""

_LEDGER = {
    "holdout": 'text "C" t',
    "number": "bigint - t",
    "version": "integer - t",
    "kind": 'text "C" t',
    "at": 'text "default" t',
    "question": 'text "C" f',
    "request": 'text "C" f',
    "body": 'text "default" t',
    "previous": 'text "default" t',
    "digest": 'text "default" t',
}
_INDEXES = {
    "format_pkey": "UNIQUE INDEX format_pkey ON holdfast.format USING btree (one)",
    "ledger_pkey": "UNIQUE INDEX ledger_pkey ON holdfast.ledger USING btree (holdout, number)",
    "answers": "INDEX answers ON holdfast.ledger USING btree (holdout, question, number) "
    "WHERE (kind = 'recorded'::text)",
    "requests": "INDEX requests ON holdfast.ledger USING btree (holdout, request, number) "
    "WHERE (request IS NOT NULL)",
}
_TRIGGERS = {
    "ledger_insert": "BEFORE INSERT ON holdfast.ledger "
    "FOR EACH ROW EXECUTE FUNCTION holdfast.follow()",
    "ledger_change": "BEFORE DELETE OR UPDATE OR TRUNCATE ON holdfast.ledger "
    "FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse()",
}
_EXPECTED: frozenset[tuple[str, str, str]] = frozenset(
    {
        ("table", "format", "r p f f"),  # a plain table, permanent, without row security
        ("table", "ledger", "r p f f"),
        ("column", "format.one", "integer - t  "),
        ("column", "format.version", "integer - t  "),
        *(("column", f"ledger.{name}", f"{value}  ") for name, value in _LEDGER.items()),
        ("constraint", "format_one_check", "t CHECK ((one = 1))"),
        ("constraint", "format_pkey", "t PRIMARY KEY (one)"),
        ("constraint", "ledger_pkey", "t PRIMARY KEY (holdout, number)"),
        *(("index", f"holdfast.{name}", f"t t t CREATE {it}") for name, it in _INDEXES.items()),
        *(("trigger", name, f"O CREATE TRIGGER {name} {it}") for name, it in _TRIGGERS.items()),
        ("function", "refuse", f"plpgsql f {REFUSE}"),
        ("function", "follow", f"plpgsql f {FOLLOW}"),
    }
)


def _check_catalog(table: PostgresTable) -> None:
    """Refuse tables, indexes and triggers that are not as they were made."""
    found = {(kind, name, value) for kind, name, value in table.all(_CATALOG)}
    if found != _EXPECTED:
        odd = sorted(found ^ _EXPECTED)[0]
        raise Damaged("The ledger", "its own tables and triggers", " ".join(odd)[:200], STOP)


# The tables of all ledgers in a database: made, checked, and brought up to date. A step changes how
# rows are stored, never what they say: their digests stay. All steps and the new version number are
# one transaction. Whoever is connected holds the format as it is, so that no tables change under a
# Holdfast that does not know the new ones.

Step = Callable[[PostgresTable], None]

MIGRATIONS: Mapping[int, Step] = {}  # from this format to the next; format 1 is the first

_KEY = key("format")
# Asked of the catalogue as of now: `to_regclass` may answer as of before a lock was waited for.
_IS_THERE = (
    "SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE n.nspname = 'holdfast' AND c.relname = 'format')"
)


def _install(table: PostgresTable) -> None:
    """Make the tables, unless they are there."""

    def make(alone: PostgresTable) -> None:
        if not alone.one(_IS_THERE):  # nobody else has made them meanwhile
            for statement in SCHEMA:
                alone.all(statement)

    if not table.one(_IS_THERE):
        _alone(table, make)


def _enter(table: PostgresTable, url: str, steps: Mapping[int, Step]) -> None:
    """Hold the format as it is, as long as the connection lives; brought up to date before."""
    table.all(f"SELECT pg_advisory_lock_shared({_KEY})")
    if _check(table, url, steps) < FORMAT:
        table.all(f"SELECT pg_advisory_unlock_shared({_KEY})")
        _alone(table, lambda alone: _migrate(alone, url, steps))
        table.all(f"SELECT pg_advisory_lock_shared({_KEY})")
        _check(table, url, {})


def _alone(table: PostgresTable, work: Callable[[PostgresTable], None]) -> None:
    """Do the work in one transaction, while nobody else holds the format."""
    table.all("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")  # whatever the role has
    try:
        table.all(f"SELECT pg_advisory_xact_lock({_KEY})")
        work(table)
        table.commit()
    except BaseException:
        table.rollback()
        raise


def _migrate(table: PostgresTable, url: str, steps: Mapping[int, Step]) -> None:
    for old in range(_check(table, url, steps), FORMAT):
        steps[old](table)
        table.all("UPDATE holdfast.format SET version = %s", old + 1)


def _check(table: PostgresTable, url: str, steps: Mapping[int, Step]) -> int:
    """The format of the tables, if they can be used or migrated."""
    if not table.one(_IS_THERE):
        hint = "Is it the database in which the holdout was created?"
        raise InvalidInput("ledger", url, "a database with ledgers", hint)
    version = table.one("SELECT version FROM holdfast.format")
    if version is None:
        raise Damaged("The ledger", "the format of its tables", "none", STOP)
    if version > FORMAT:
        hint = f"A newer Holdfast has changed it (format {version}). Install that one."
        raise InvalidInput("ledger", url, f"a database of format {FORMAT} or older", hint)
    if any(old not in steps for old in range(version, FORMAT)):
        hint = f"Its format, {version}, is too old. Open it with an earlier Holdfast first."
        raise InvalidInput("ledger", url, f"a database of format {FORMAT}", hint)
    return int(version)


# Names that are held across threads, processes and machines, as long as a connection stands.
# Between the threads of a process, which share a connection, names are claimed in memory; between
# connections they are advisory locks of Postgres. All names are taken, or none: nobody who waits
# has something that another waits for. Threads that take or release at once share a message.

_SHORTEST, _LONGEST = 0.0005, 0.01  # seconds between two tries

_TAKE = "SELECT k, pg_try_advisory_lock(k) FROM unnest(%s::bigint[]) AS k"
_RELEASE = "SELECT pg_advisory_unlock(k) FROM unnest(%s::bigint[]) AS k"

Reach = Callable[[], AbstractContextManager[PostgresTable]]

_mine = threading.local()  # the holdouts of which this thread holds names


class _Wanted:
    """Keys to take; and once it is over, to release in the connection that has them.

    It may end, by an interruption, while another thread takes the keys for it.
    """

    def __init__(self, keys: frozenset[int]) -> None:
        self.keys = keys
        self.held_by: PostgresTable | None = None
        self.is_over = False
        self._lock = threading.Lock()

    def grant(self, table: PostgresTable) -> bool:
        """Say which connection has the keys; false if nobody wants them any more."""
        with self._lock:
            if not self.is_over:
                self.held_by = table
            return not self.is_over

    def end(self) -> PostgresTable | None:
        """Want them no more; what is returned is the connection that has them."""
        with self._lock:
            self.is_over = True
            return self.held_by


class Names(Renewed):
    """The names of one holdout. `reach` gives a connection; it is given each time, not kept."""

    def __init__(self, holdout: str) -> None:
        self._holdout = holdout
        self._requests: Batcher[_Wanted, PostgresTable | None] = Batcher()
        super().__init__()

    def _renew(self) -> None:
        self._changed = threading.Condition()
        self._claimed: set[int] = set()

    @contextmanager
    def hold(self, reach: Reach, names: tuple[str, ...]) -> Iterator[PostgresTable]:
        """Hold all the names; what is given is the connection that has them."""
        with self._alone(names):
            keys = frozenset(key("name", self._holdout, name) for name in names)
            with self._claim(keys):
                wanted = _Wanted(keys)
                try:
                    yield self._take(reach, wanted)
                finally:
                    table = wanted.end()
                    # Whatever goes wrong now, the names are free when the connection is closed.
                    with suppress(Exception):
                        if table is not None and not table.closed:
                            self._requests.do(partial(_grant, reach), wanted)

    def _take(self, reach: Reach, wanted: _Wanted) -> PostgresTable:
        pause = _SHORTEST
        while True:
            table = self._requests.do(partial(_grant, reach), wanted)
            if table is not None:
                return table
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    @contextmanager
    def _claim(self, keys: frozenset[int]) -> Iterator[None]:
        changed, claimed = self._changed, self._claimed  # a child, forked meanwhile, has others
        with changed:
            while claimed & keys:
                changed.wait()
            claimed |= keys
        try:
            yield
        finally:
            with changed:
                claimed -= keys
                changed.notify_all()

    @contextmanager
    def _alone(self, names: tuple[str, ...]) -> Iterator[None]:
        """Refuse a thread that holds some already: it might wait for itself."""
        if not hasattr(_mine, "holdouts"):
            _mine.holdouts = set()
        place = (os.getpid(), self._holdout)
        if place in _mine.holdouts:
            hint = "Take all names in one call."
            raise InvalidInput("names", names, "taken by a thread that holds no lock yet", hint)
        _mine.holdouts.add(place)
        try:
            yield
        finally:
            _mine.holdouts.discard(place)


def _grant(reach: Reach, jobs: list[BatchedTask[_Wanted, PostgresTable | None]]) -> None:
    """Release, take, and give back what was taken of those who cannot have all, or have gone."""
    with reach() as table:
        try:
            over = [job.task for job in jobs if job.task.is_over]
            _release(table, _keys(each for each in over if each.held_by is table))
            wanted = [job.task for job in jobs if job.task not in over]
            taken = _take(table, _keys(wanted))
            granted = [each for each in wanted if each.keys <= taken and each.grant(table)]
            _release(table, taken - _keys(granted))
            for job in jobs:
                job.succeed(table if job.task in granted else None)
        except BaseException:
            table.close()  # what it may have taken must not stay taken
            raise


def _keys(many: Iterable[_Wanted]) -> frozenset[int]:
    return frozenset().union(*(each.keys for each in many))


def _take(table: PostgresTable, keys: frozenset[int]) -> frozenset[int]:
    found = table.all(_TAKE, list(keys)) if keys else []
    return frozenset(each for each, is_taken in found if is_taken)


def _release(table: PostgresTable, keys: frozenset[int]) -> None:
    if keys:
        table.all(_RELEASE, list(keys))


_PAGE = 1_000  # rows read at a time to verify all
_abandoned: list[PostgresTable | None] = []  # kept from being closed: they are the parent's


class PostgresLedger(Ledger):
    """The ledger of one holdout in a database, by the URL of the database.

    `create` it once, then `open` it from as many processes and machines as you like. A process has
    one connection, which writes, reads and holds names.

    A writer waits for all others of its holdout in the database itself, so that it does not matter
    on which machines they are. Should one get past that lock, the key of the table refuses its
    rows: the number that follows the head is given once. Either way transactions are as if one
    after another.

    A connection that is lost is made again by itself. What its transaction wrote is in the ledger
    or not; nobody was told of it, and the same request finds out. Names are lost with it:
    `Hold.check`.
    """

    patience: ClassVar[float] = 60.0  # seconds to wait for another process

    def __init__(self, url: str, holdout: str, steps: Mapping[int, Step] = MIGRATIONS) -> None:
        super().__init__(holdout_id(holdout))
        parameters(url)  # refuses what is no URL, or says too much
        self.url = url
        self._steps = steps
        self._names = Names(holdout)

    @classmethod
    def prepare(cls, url: str) -> None:
        """Make the tables in a database that has none; refuse one that cannot keep a ledger."""
        table = PostgresTable(url, "", cls.patience)
        try:
            _install(table)
            _enter(table, url, MIGRATIONS)
        finally:
            table.close()

    @classmethod
    def create(cls, url: str, holdout: str, body: dict[str, Any]) -> Self:
        """A ledger with its first row, `created`; the tables too, if there are none."""
        ledger = cls(url, holdout)
        cls.prepare(url)
        try:
            with ledger._turn():
                with ledger._writing() as table:
                    if table.head() is not None:
                        raise InvalidInput("holdout", holdout, "one that has no ledger yet")
                    head = ledger._create(table, body)
                ledger._known = head
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
            with ledger._reading() as (table, head):
                if head.number == 0:
                    hint = "Is it the database in which the holdout was created?"
                    raise InvalidInput("ledger", url, f"the database of holdout {holdout}", hint)
                first = table.records(1, 1)
                verify_chain(holdout, map(Row.from_record, first), read=True)
        except BaseException:
            with suppress(Exception):
                ledger.close()
            raise
        return ledger

    def verify(self) -> Receipt:
        with self._turn():
            table = self._reach()
            self._head(table)
            _check_catalog(table)
            records = map(Row.from_record, _pages(table))
            return verify_chain(self.holdout, records, read=True)

    @contextmanager
    def lock(self, *names: str) -> Iterator[Hold]:
        self._outside(names)
        with self._names.hold(self._reaching, names) as table:
            yield _ConnectionHold(self, table)

    @contextmanager
    def _reaching(self) -> Iterator[PostgresTable]:
        with self._turn():
            yield self._reach()

    @contextmanager
    def _writing(self) -> Iterator[PostgresTable]:
        table = self._reach()
        try:
            table.begin()
            yield table
            if self._lost:
                raise forked()
            table.commit()
        except BaseException:
            if self._table is table:  # not so in a child that was forked meanwhile
                table.rollback()
            raise

    def _reach(self) -> PostgresTable:
        """The table, connected anew if it is not, or if it cannot be used any more."""
        if self._table is None or not self._table.ready:
            self._disconnect()
            table = PostgresTable(self.url, self.holdout, self.patience)
            try:
                _enter(table, self.url, self._steps)
            except BaseException as error:
                table.close()
                if isinstance(error, InvalidInput) and self._known is not None:
                    # The tables were there: no fault of whoever asks.
                    message = f"The database of the ledger is not as it was. {error.hint}"
                    raise OSError(errno.ECONNREFUSED, message, self.url) from error
                raise
            self._table = table
        reached: PostgresTable = self._table
        return reached

    def _abandon(self) -> None:
        if self._table is not None:
            self._table.abandon()
            _abandoned.append(self._table)
            self._table = None

    def _part(self) -> None:
        """The parent keeps its connection: names are held through it."""

    def _after_fork_in_child(self) -> None:
        super()._after_fork_in_child()
        self._abandon()


class _ConnectionHold(Hold):
    """Names that are held as long as a connection lives."""

    def __init__(self, ledger: PostgresLedger, table: PostgresTable) -> None:
        self._ledger, self._table = ledger, table

    def check(self) -> None:
        if self._ledger._table is not self._table or self._table.closed:
            raise OSError(errno.ECONNRESET, LOST, self._ledger.url)


def _pages(table: Table) -> Iterator[Record]:
    """All rows, some at a time: they need not fit into memory."""
    number = 1
    while page := table.records(number, _PAGE):
        yield from page
        number = page[-1][0] + 1
