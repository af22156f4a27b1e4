"""Connections that are lost, wherever that may be; what an error means; replicas; kills."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from holdfast.errors import Damaged
from holdfast.ledger import postgres
from holdfast.ledger.ledger import Row, Transaction
from holdfast.ledger.postgres import PostgresLedger, PostgresTable, key
from tests.ledger.contract import HOLDOUT, A, note
from tests.ledger.postgres_tests import connect, cut, start
from tools.postgres import PostgresServer, postgres_server

cluster = pytest.mark.cluster


@pytest.fixture
def ledger(url: str) -> Any:
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        yield ledger


def append(ledger: PostgresLedger, then: Callable[[Transaction], object]) -> Row:
    with ledger.begin() as transaction:
        row = transaction.append("recorded", {"drawn": 1}, question=A, request="r")
        then(transaction)
    return row


@cluster
@pytest.mark.parametrize("use", ["rows", "head", "verify", "begin", "lock"])
def test_lost_before_a_use_it_is_made_again(ledger: PostgresLedger, use: str) -> None:
    cut(ledger)
    if use == "begin":
        note(ledger)
    elif use == "lock":
        with ledger.lock("a") as hold, ledger.begin():
            hold.check()
    else:
        getattr(ledger, use)()
    assert ledger.verify().number == 4 + (use == "begin")


@cluster
@pytest.mark.parametrize("reads", [True, False], ids=["noticed by a read", "noticed by the commit"])
def test_lost_inside_a_transaction_nothing_is_written(ledger: PostgresLedger, reads: bool) -> None:
    def lose(transaction: Transaction) -> None:
        cut(ledger)
        if reads:
            transaction.rows()

    with pytest.raises(ConnectionResetError, match="connection to the ledger was lost"):
        append(ledger, lose)
    assert ledger.requested("r") == []  # asked again with the same key, it is not there
    append(ledger, lambda _: None)
    assert len(ledger.requested("r")) == 1
    assert ledger.verify().number == 5


@cluster
@pytest.mark.parametrize("arrives", [True, False], ids=["after", "before"])
def test_lost_in_the_commit_a_retry_finds_out(
    ledger: PostgresLedger, arrives: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is lost just before, or just after, it has committed: the caller sees the same."""
    execute = psycopg.ClientCursor.execute

    def lossy(cursor: Any, statement: bytes, *values: Any) -> Any:
        assert statement.endswith(b"; COMMIT")
        if arrives:
            execute(cursor, statement, *values)
        cut(ledger)
        return execute(cursor, b"SELECT 1" if arrives else statement, *values[:0])

    monkeypatch.setattr(psycopg.ClientCursor, "execute", lossy)
    with pytest.raises(ConnectionResetError, match="Ask again with the same key") as caught:
        append(ledger, lambda _: None)
    assert caught.value.errno == errno.ECONNRESET
    monkeypatch.undo()
    assert len(ledger.requested("r")) == arrives
    assert (ledger.recorded(A) is not None) is arrives
    assert ledger.verify().number == 4 + arrives
    note(ledger)


@cluster
def test_killed_while_the_commit_waits_for_the_disk(ledger: PostgresLedger) -> None:
    """The backend is killed inside of COMMIT: a deferred trigger keeps it there."""
    with connect(ledger.url) as other:
        other.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql "
            "AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END'"
        )
        other.execute(
            "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON holdfast.ledger "
            "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()"
        )
        pid = ledger._table._connection.info.backend_pid
        waits = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"

        def kill() -> None:
            while not other.execute(waits, (pid,)).fetchall():
                pass
            other.execute("SELECT pg_terminate_backend(%s)", (pid,))

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(ConnectionResetError, match="was lost"):
            append(ledger, lambda _: None)
        killer.join(30)
        other.execute("DROP FUNCTION slow CASCADE")
    assert ledger.verify().number == 4
    note(ledger)


@cluster
def test_names_are_lost_with_the_connection_and_the_holder_is_told(ledger: PostgresLedger) -> None:
    def lose() -> None:
        with ledger.lock("a", "b") as hold:
            with ledger.begin() as transaction:
                hold.check()
                transaction.append("reserved", {})
            cut(ledger)
            other = threading.Thread(target=take)
            other.start()
            other.join(30)
            with ledger.begin() as transaction:
                hold.check()
                transaction.append("recorded", {})

    def take() -> None:
        with (
            PostgresLedger.open(ledger.url, HOLDOUT) as other,
            other.lock("a") as hold,
            other.begin() as transaction,
        ):
            hold.check()
            transaction.append("noted", {"free": "at once"})

    with pytest.raises(ConnectionResetError, match="Ask again with the same key"):
        lose()
    assert [row.kind for row in ledger.rows(after=4)] == ["reserved", "noted"]
    with ledger.lock("a", "b") as hold, ledger.begin():
        hold.check()


@cluster
def test_names_are_lost_when_another_thread_has_connected_again(ledger: PostgresLedger) -> None:
    with ledger.lock("a") as hold:
        cut(ledger)
        note(ledger)  # made again, by somebody else
        with pytest.raises(ConnectionResetError), ledger.begin():
            hold.check()
    assert ledger.verify().number == 5


@cluster
@pytest.mark.parametrize("down", [False, True])
def test_lost_before_the_names_are_given_back_nothing_is_raised(
    ledger: PostgresLedger, down: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger.lock("a"):
        note(ledger)
        cut(ledger)
        if down:  # and it cannot be made again
            monkeypatch.setattr(ledger, "url", "postgresql://127.0.0.1:1/none")
    monkeypatch.undo()
    with ledger.lock("a") as hold, ledger.begin():
        hold.check()
    assert ledger.verify().number == 5


@cluster
def test_an_interruption_while_taking_names_leaves_none_taken(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = PostgresTable.all

    def interrupted(self: Any, statement: str, *values: Any) -> Any:
        found = everything(self, statement, *values)
        if "pg_try_advisory_lock" in statement:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(PostgresTable, "all", interrupted)
    with pytest.raises(KeyboardInterrupt), ledger.lock("a"):
        pass
    monkeypatch.undo()
    taken: list[PostgresLedger] = []

    def take() -> None:
        for each in (ledger, other):
            with each.lock("a"):
                taken.append(each)

    with PostgresLedger.open(ledger.url, HOLDOUT) as other:
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        thread.join(30)
        assert taken == [ledger, other]


WRITER = """
import random
ledger, count = opened(), int(sys.argv[2])
for i in range(count, 10**6):
    print("next", flush=True)
    if not sys.stdin.readline():
        break
    try:
        with ledger.lock(f"request {i}") as hold, ledger.begin() as transaction:
            hold.check()
            row = transaction.append("noted", {"i": i}, request=f"w{i}")
        print("kept", row.number, row.digest, flush=True)
    except OSError as error:
        print("lost", type(error).__name__, flush=True)
"""


@cluster
def test_kill_9_of_postgres_loses_nothing_that_was_acknowledged() -> None:
    """A writer goes on while Postgres is killed and started, in the middle of its commits."""
    with postgres_server() as server:
        PostgresLedger.create(server.url(), HOLDOUT, {}).close()
        kept: dict[int, str] = {}
        lost = 0
        with start(server.url(), WRITER, "0") as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            for turn in range(60):
                assert writer.stdout.readline() == "next\n"
                killer = threading.Timer(turn % 7 * 0.0007, server.kill)
                writer.stdin.write("\n")
                writer.stdin.flush()
                if turn % 3 == 0:
                    killer.start()
                word, *said = writer.stdout.readline().split()
                if word == "kept":
                    kept[int(said[0])] = said[1]
                else:
                    assert said[0] in {"ConnectionResetError", "ConnectionRefusedError"}
                    lost += 1
                if turn % 3 == 0:
                    killer.join()
                    server.start()
            writer.stdin.close()
            assert writer.stderr is not None
            assert writer.stderr.read() == ""
        with PostgresLedger.open(server.url(), HOLDOUT) as ledger:
            ledger.verify()
            digests = {row.number: row.digest for row in ledger.rows()}
        assert len(kept) >= 40
        assert kept.items() <= digests.items()
        assert len(digests) <= 1 + len(kept) + lost


@cluster
def test_a_stopped_process_is_waited_for_and_not_for_ever(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresLedger, "patience", 0.3)
    program = """
ledger = opened()
with ledger.begin() as transaction:
    transaction.append("noted", {})
    print("in", flush=True)
    sys.stdin.read()
"""
    with start(url, program) as holder, PostgresLedger.open(url, HOLDOUT) as ledger:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "in\n"
        os.kill(holder.pid, signal.SIGSTOP)
        with pytest.raises(TimeoutError, match="It may be stopped"):
            note(ledger)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait(30)
        monkeypatch.setattr(PostgresLedger, "patience", 30)
        ledger.close()
        note(ledger)
        assert ledger.verify().number == 5  # the other's row was undone


# Names that a thread wanted, and was interrupted while another took them for it.


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.001)


def hold(ledger: PostgresLedger, name: str) -> None:
    with ledger.lock(name):
        pass


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell's job in the background ignores the interrupt, and so would this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def is_free(url: str, name: str) -> bool:
    with connect(url) as other:
        tried = other.execute("SELECT pg_try_advisory_lock(%s)", (key("name", HOLDOUT, name),))
        return tried.fetchone() == (True,)


@cluster
def test_an_interruption_while_another_thread_takes_the_names_leaves_none_taken(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch, interruptible: None
) -> None:
    """The first thread leads alone; the second one then for itself and for this thread."""
    everything, main, gone = PostgresTable.all, threading.get_ident(), threading.Event()
    batches: list[int] = []

    def watched(table: Any, statement: str, *values: Any) -> Any:
        taken = everything(table, statement, *values)
        if "pg_try_advisory_lock" in statement:
            batches.append(len(values[0]))
            if batches == [1]:
                wait_until(lambda: len(ledger._names._requests._waiting) == 2)
            elif batches == [1, 2]:
                signal.pthread_kill(main, signal.SIGINT)
                assert gone.wait(30)
        return taken

    monkeypatch.setattr(PostgresTable, "all", watched)
    threads = [threading.Thread(target=hold, args=(ledger, name)) for name in ("a", "b")]
    threads[0].start()
    wait_until(lambda: batches == [1])
    threads[1].start()
    wait_until(lambda: len(ledger._names._requests._waiting) == 1)
    with pytest.raises(KeyboardInterrupt):
        hold(ledger, "c")
    gone.set()
    for thread in threads:
        thread.join(30)
    assert batches[:2] == [1, 2]
    assert [name for name in ("a", "b", "c") if not is_free(ledger.url, name)] == []


# Replicas: a commit that they did not confirm, and one that is taken for the primary.

WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def give_up_waiting(url: str) -> None:
    """Do as an operator who is tired of waiting for the replica."""
    with connect(url) as operator:
        while not (waiting := operator.execute(WAITS).fetchall()):
            time.sleep(0.01)
        operator.execute("SELECT pg_cancel_backend(%s)", waiting[0])


def until_commits_wait(url: str) -> None:
    """A new setting holds when a process of the server has read it: commit until one waits."""
    waited = threading.Event()

    def commit() -> None:
        with connect(url) as writer:
            writer.execute("CREATE TABLE tried (n int)")
            while not waited.is_set():
                writer.execute("INSERT INTO tried VALUES (1)")

    writing = threading.Thread(target=commit, daemon=True)
    writing.start()
    with connect(url) as operator:
        while writing.is_alive():
            for waiting in operator.execute(WAITS).fetchall():
                waited.set()
                operator.execute("SELECT pg_cancel_backend(%s)", waiting)
            time.sleep(0.01)


@cluster
def test_a_commit_that_the_replica_has_not_confirmed_is_not_acknowledged(
    postgres: PostgresServer, url: str
) -> None:
    name = url.rpartition("/")[2]
    postgres.command(f"ALTER DATABASE {name} SET client_min_messages = error")
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        postgres.command("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        postgres.command("SELECT pg_reload_conf()")
        until_commits_wait(postgres.url())
        operator = threading.Thread(target=give_up_waiting, args=(postgres.url(),), daemon=True)
        operator.start()
        try:
            with pytest.raises(OSError, match=r"not confirmed by the replica.*same key") as caught:
                note(ledger)
        finally:
            postgres.command("ALTER SYSTEM RESET synchronous_standby_names")
            postgres.command("SELECT pg_reload_conf()")
            operator.join(30)
        assert caught.value.errno == errno.EIO
        assert ledger._table.closed
        assert ledger.head().number == 5  # it is there, and was not acknowledged
        note(ledger)
        assert ledger.verify().number == 6


@pytest.mark.parametrize(
    ("severity", "function", "kept"),
    [
        ("WARNING", "SyncRepWaitForLSN", ["said why"]),
        ("WARNING", "EndTransactionBlock", ["said why"]),
        ("WARNING", "GetNewTransactionId", []),  # a vacuum is due: the commit is as good as any
        ("INFO", "SyncRepWaitForLSN", []),
    ],
)
def test_what_makes_a_commit_doubtful(severity: str, function: str, kept: list[str]) -> None:
    notice: Any = SimpleNamespace(
        severity_nonlocalized=severity,
        source_function=function,
        message_primary="said",
        message_detail="why",
    )
    found: deque[str] = deque()
    postgres._keep_warning(found, notice)
    assert list(found) == kept


@cluster
def test_a_standby_is_refused_whatever_the_url_says() -> None:
    with postgres_server() as server:
        PostgresLedger.create(server.url(), HOLDOUT, {}).close()
        server.stop()
        (server.folder / "data" / "standby.signal").touch()
        server.start()
        with pytest.raises(OSError, match="URL of the primary") as caught:
            PostgresLedger.open(f"{server.url()}?target_session_attrs=any", HOLDOUT)
        assert caught.value.errno == errno.EROFS


@cluster
def test_a_client_that_goes_silent_is_noticed_within_a_minute(url: str) -> None:
    with PostgresLedger.open(url, HOLDOUT) as ledger, ledger._reaching() as session:
        assert session.one("SHOW tcp_user_timeout") == "60000"


# What an error of Postgres means; without a Postgres.

URL = "postgresql://db.example/holdouts"


def explain(error: psycopg.Error, *, closed: bool = False) -> None:
    connection: Any = SimpleNamespace(closed=closed)
    with postgres._explained(connection, URL, 60.0):
        raise error


@pytest.mark.parametrize(
    ("kind", "number", "words"),
    [
        (psycopg.errors.DiskFull, errno.ENOSPC, "Make room and ask again"),
        (psycopg.errors.OutOfMemory, errno.ENOMEM, "Make room and ask again"),
        (psycopg.errors.TooManyConnections, errno.EAGAIN, "End some and ask again"),
        (psycopg.errors.ReadOnlySqlTransaction, errno.EROFS, "URL of the primary"),
        (psycopg.errors.InsufficientPrivilege, errno.EACCES, "Grant it what the ledger needs"),
        (psycopg.errors.SerializationFailure, errno.EAGAIN, "wrote first. Ask again"),
        (psycopg.errors.UniqueViolation, errno.EAGAIN, "wrote first. Ask again"),
        (psycopg.errors.QueryCanceled, errno.EINTR, "Ask again"),
        (psycopg.errors.IoError, errno.EIO, "Check it and ask again"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_can_be_helped_says_how(kind: type[psycopg.Error], number: int, words: str) -> None:
    with pytest.raises(OSError, match=words) as caught:
        explain(kind("what Postgres\n\tsaid"))
    assert caught.value.errno == number
    assert caught.value.filename == URL
    assert "what was not acknowledged is not in it (what Postgres said)" in str(caught.value)


@pytest.mark.parametrize("kind", [psycopg.OperationalError, psycopg.errors.AdminShutdown])
def test_a_lost_connection_says_nothing_of_what_is_not_known(kind: type[psycopg.Error]) -> None:
    with pytest.raises(TimeoutError, match=r"more than 60 seconds.*Nothing was written"):
        explain(psycopg.errors.LockNotAvailable("waited"))  # which is a wait that ended
    with pytest.raises(ConnectionResetError, match="Ask again with the same key") as caught:
        explain(kind("gone"), closed=True)
    assert "is not in it" not in str(caught.value)


@pytest.mark.parametrize(
    "kind",
    [psycopg.errors.DataCorrupted, psycopg.errors.UndefinedTable, psycopg.errors.IndexCorrupted],
)
def test_what_postgres_cannot_explain_is_damage(kind: type[psycopg.Error]) -> None:
    with pytest.raises(Damaged, match="sound tables, found odd"):
        explain(kind("odd"))
