"""Connections that are lost, wherever that may be; and Postgres killed, again and again."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from holdfast.ledger import postgres
from holdfast.ledger.ledger import Row, Transaction
from holdfast.ledger.postgres import PostgresLedger
from tests.ledger.contract import HOLDOUT, A
from tests.ledger.postgres_tests import connect, cut, note, start
from tools.postgres import postgres_server

pytestmark = pytest.mark.cluster


@pytest.fixture
def ledger(url: str) -> Any:
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        yield ledger


def append(ledger: PostgresLedger, then: Callable[[Transaction], object]) -> Row:
    with ledger.begin() as transaction:
        row = transaction.append("recorded", {"answer": 1}, question=A, request="r")
        then(transaction)
    return row


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
        session = ledger._session
        assert session is not None
        pid = session._connection.info.backend_pid
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


def test_names_are_lost_when_another_thread_has_connected_again(ledger: PostgresLedger) -> None:
    with ledger.lock("a") as hold:
        cut(ledger)
        note(ledger)  # made again, by somebody else
        with pytest.raises(ConnectionResetError), ledger.begin():
            hold.check()
    assert ledger.verify().number == 5


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


def test_an_interruption_while_taking_names_leaves_none_taken(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = postgres.Session.all

    def interrupted(self: Any, statement: str, *values: Any) -> Any:
        found = everything(self, statement, *values)
        if "pg_try_advisory_lock" in statement:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(postgres.Session, "all", interrupted)
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
