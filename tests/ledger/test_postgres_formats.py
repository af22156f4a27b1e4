"""Tables of an earlier format, realistic and only for these tests, and of a later one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger import postgres
from holdfast.ledger import postgres as sql
from holdfast.ledger.ledger import Row, genesis
from holdfast.ledger.postgres import PostgresLedger, Session
from tests.ledger.contract import HOLDOUT
from tests.ledger.postgres_tests import connect, cut, note

pytestmark = pytest.mark.cluster

FORMAT_0 = (
    "CREATE SCHEMA holdfast",
    "CREATE TABLE holdfast.format (version int NOT NULL)",
    "INSERT INTO holdfast.format VALUES (0)",
    "CREATE TABLE holdfast.events (holdout text, number bigint, version int, kind text, at text, "
    "question text, request text, body text, digest text)",  # `previous` was left to the reader
)


def step(session: Session) -> None:
    """From format 0 to 1."""
    rows = session.all("SELECT * FROM holdfast.events ORDER BY holdout, number")
    session.all("DROP TABLE holdfast.events, holdfast.format")
    session.all("DROP SCHEMA holdfast")
    for statement in sql.SCHEMA:
        session.all(statement)
    previous = genesis(HOLDOUT)
    for holdout, *facts, digest in rows:
        session.all(sql.insert(1), holdout, *facts, previous, digest)
        previous = digest


def failing_step(session: Session) -> None:
    step(session)
    raise KeyError("halfway")


def version(url: str) -> int:
    with connect(url) as connection:
        found = connection.execute("SELECT version FROM holdfast.format").fetchone()
    assert found is not None
    return int(found[0])


@pytest.fixture
def rows(url: str) -> list[Row]:
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        return ledger.rows()


@pytest.fixture
def old(url: str, rows: list[Row]) -> str:
    with connect(url) as connection:
        connection.execute("DROP SCHEMA holdfast CASCADE")
        for statement in FORMAT_0:
            connection.execute(statement.encode())
        for row in rows:
            *facts, _, digest = row.record()
            connection.execute(
                "INSERT INTO holdfast.events VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [HOLDOUT, *facts, digest],
            )
    return url


def test_an_older_format_is_brought_up_to_date_with_every_row(old: str, rows: list[Row]) -> None:
    with PostgresLedger.open(old, HOLDOUT, steps={0: step}) as ledger:
        assert ledger.rows() == rows
        note(ledger)
    assert version(old) == sql.FORMAT == 1
    with PostgresLedger.open(old, HOLDOUT) as ledger:
        assert ledger.verify().number == 5


def test_several_that_open_at_once_migrate_once(old: str, rows: list[Row]) -> None:
    done: list[int] = []

    def counted(session: Session) -> None:
        done.append(1)
        step(session)

    def work() -> None:
        with PostgresLedger.open(old, HOLDOUT, steps={0: counted}) as ledger:
            note(ledger)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert done == [1]
    with PostgresLedger.open(old, HOLDOUT) as ledger:
        assert ledger.verify().number == 8


def test_a_migration_that_fails_leaves_the_old_format(old: str, rows: list[Row]) -> None:
    with pytest.raises(KeyError, match="halfway"):
        PostgresLedger.open(old, HOLDOUT, steps={0: failing_step})
    assert version(old) == 0
    with PostgresLedger.open(old, HOLDOUT, steps={0: step}) as ledger:
        assert ledger.rows() == rows


def test_nothing_is_migrated_under_a_process_that_is_connected(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        monkeypatch.setattr(sql, "FORMAT", 2)
        monkeypatch.setattr(PostgresLedger, "patience", 0.2)
        newer: dict[int, Callable[[Session], Any]] = {1: lambda session: None}
        with pytest.raises(TimeoutError, match="Another process"):
            PostgresLedger.open(url, HOLDOUT, steps=newer)
        note(ledger)
        ledger.close()
        PostgresLedger.open(url, HOLDOUT, steps=newer).close()
        monkeypatch.setattr(sql, "FORMAT", 1)
        # As the older one would. Whoever asks has made no mistake, and is told of no address.
        with pytest.raises(ConnectionRefusedError, match="newer Holdfast"):
            ledger.rows()


def test_a_format_without_a_way_forward_is_refused(old: str) -> None:
    with pytest.raises(InvalidInput, match="an earlier Holdfast"):
        PostgresLedger.open(old, HOLDOUT)


def test_a_newer_format_is_refused(url: str) -> None:
    with connect(url) as connection:
        connection.execute("UPDATE holdfast.format SET version = 2")
    with pytest.raises(InvalidInput, match=r"newer Holdfast has changed it \(format 2\)"):
        PostgresLedger.open(url, HOLDOUT)
    with pytest.raises(InvalidInput, match="newer Holdfast"):
        PostgresLedger.create(url, "another", {})
    assert version(url) == 2


def test_a_database_without_ledgers_and_one_without_this_ledger(database: str) -> None:
    with pytest.raises(InvalidInput, match="a database with ledgers"):
        PostgresLedger.open(database, HOLDOUT)
    PostgresLedger.create(database, "another", {}).close()
    with pytest.raises(InvalidInput, match=f"the database of holdout {HOLDOUT}"):
        PostgresLedger.open(database, HOLDOUT)


def test_tables_that_are_gone_are_no_fault_of_whoever_asks(url: str) -> None:
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        cut(ledger)
        with connect(url) as connection:
            connection.execute("DROP SCHEMA holdfast CASCADE")
        with pytest.raises(ConnectionRefusedError, match="not as it was"):
            note(ledger)


def test_tables_are_made_whatever_transactions_are_by_default(database: str) -> None:
    url = f"{database}?options=-c%20default_transaction_read_only%3Don"
    with PostgresLedger.create(url, HOLDOUT, {}) as ledger:
        note(ledger)
        assert ledger.verify().number == 2


def test_several_that_create_at_once_make_the_tables_once(database: str) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            PostgresLedger.create(database, f"holdout-{number}", {}).close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with PostgresLedger.open(database, "holdout-3") as ledger:
        assert ledger.verify().number == 1


def test_a_creation_that_fails_leaves_no_row(database: str) -> None:
    with pytest.raises(InvalidInput, match="body"):
        PostgresLedger.create(database, HOLDOUT, {"x": float("nan")})
    with PostgresLedger.create(database, HOLDOUT, {"x": 1}) as ledger:
        assert ledger.verify().number == 1


def test_an_odd_format_is_damage(url: str) -> None:
    with connect(url) as connection:
        connection.execute("DELETE FROM holdfast.format")
    with pytest.raises(Damaged, match="the format of its tables"):
        PostgresLedger.open(url, HOLDOUT)
    assert postgres.MIGRATIONS == {}
