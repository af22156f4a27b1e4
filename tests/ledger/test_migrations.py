"""A format before the first: realistic, and only for these tests."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from holdfast.errors import InvalidInput
from holdfast.ledger import sqlite as sql
from holdfast.ledger.ledger import Row, genesis
from holdfast.ledger.sqlite import Session, SqliteLedger
from tests.ledger.contract import HOLDOUT

FORMAT_0 = (
    "CREATE TABLE holdout (id TEXT)",
    "CREATE TABLE events (number INTEGER PRIMARY KEY, version INT, kind TEXT, at TEXT, "
    "question TEXT, request TEXT, body TEXT, digest TEXT)",  # `previous` was left to the reader
)


def step(session: Session) -> None:
    """From format 0 to 1."""
    for statement in sql.SCHEMA:
        session.all(statement)
    session.all(sql.INSERT_IDENTITY, session.one("SELECT id FROM holdout"))
    previous = genesis(session.one("SELECT id FROM holdout"))
    for *facts, digest in session.all("SELECT * FROM events ORDER BY number"):
        session.all(sql.insert(1), *facts, previous, digest)
        previous = digest
    session.all("DROP TABLE events")
    session.all("DROP TABLE holdout")


def failing_step(session: Session) -> None:
    step(session)
    raise KeyError("halfway")


@pytest.fixture
def rows(tmp_path: Path) -> list[Row]:
    (tmp_path / "new").mkdir()
    with SqliteLedger.create(tmp_path / "new" / "ledger.sqlite", HOLDOUT, {"plan": 1}) as ledger:
        for i in range(5):
            with ledger.begin() as transaction:
                transaction.append("reserved", {"price": i}, question=f"{i:02x}", request=f"r{i}")
        return ledger.rows()


@pytest.fixture
def old(tmp_path: Path, rows: list[Row]) -> Path:
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as connection:
        for statement in FORMAT_0:
            connection.execute(statement)
        connection.execute("INSERT INTO holdout VALUES (?)", (HOLDOUT,))
        for row in rows:
            *facts, _, digest = row.record()
            connection.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [*facts, digest]
            )
        connection.execute(f"PRAGMA application_id = {sql.APPLICATION_ID}")
    connection.close()
    return path


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return int(found)


def test_an_older_format_is_brought_up_to_date_with_every_row(old: Path, rows: list[Row]) -> None:
    with SqliteLedger.open(old, steps={0: step}) as ledger:
        assert ledger.rows() == rows
        ledger.verify()
        with ledger.begin() as transaction:
            transaction.append("noted", {})
    assert version(old) == sql.FORMAT == 1
    with SqliteLedger.open(old) as ledger:
        assert ledger.verify().number == 7


def test_a_migration_that_fails_leaves_the_old_format(old: Path, rows: list[Row]) -> None:
    with pytest.raises(KeyError, match="halfway"):
        SqliteLedger.open(old, steps={0: failing_step})
    assert version(old) == 0
    with SqliteLedger.open(old, steps={0: step}) as ledger:
        assert ledger.rows() == rows


def test_a_format_without_a_way_forward_is_refused(old: Path) -> None:
    with pytest.raises(InvalidInput, match="an earlier Holdfast"):
        SqliteLedger.open(old)


def test_a_newer_format_is_refused(old: Path) -> None:
    with sqlite3.connect(old) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(InvalidInput, match=r"newer Holdfast wrote it \(format 2\)"):
        SqliteLedger.open(old, steps={0: step})
    assert version(old) == 2
