from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.sqlite import FORMAT, SELECT_RECORDED, SELECT_REQUESTED, SqliteLedger, connect
from holdfast.ledger.witness import Witness
from tests.ledger.contract import HOLDOUT, A, LedgerContract, check_older, note

FILE = "ledger.sqlite"


def make(folder: Path) -> SqliteLedger:
    return SqliteLedger.create(folder / FILE, HOLDOUT, {"plan": 1})


class TestSqliteLedger(LedgerContract):
    def create(self, folder: Path) -> Ledger:
        return make(folder)

    def reopen(self, folder: Path) -> Ledger:
        return SqliteLedger.open(folder / FILE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with make(tmp_path) as ledger:
        note(ledger, 3)
    return tmp_path / FILE


def damage(path: Path, *commands: str) -> None:
    """Change the file as somebody with a shell would."""
    with sqlite3.connect(path) as connection:
        for command in commands:
            connection.execute(command)
    connection.close()


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with make(tmp_path) as ledger, ledger.lock("a"):
            note(ledger)
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*")}
    finally:
        os.umask(old)
    assert modes.pop("locks") == 0o700
    assert {f"{FILE}-wal", "writer"} < set(modes)
    assert set(modes.values()) == {0o600}


def test_it_waits_for_the_disk_and_says_what_it_is(path: Path) -> None:
    seen: dict[str, Any] = {}

    def spying(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(lambda text: seen.setdefault(text, connection))
        return connection

    with SqliteLedger.open(path, connect=spying):
        connection = seen["PRAGMA synchronous = 2"]
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    header = path.read_bytes()[:100]
    assert header[68:72] == b"HoLD"
    assert header[60:64] == (1).to_bytes(4, "big")


@pytest.mark.parametrize(
    "command",
    [
        "UPDATE ledger SET body = '{}' WHERE number = 2",
        "DELETE FROM ledger WHERE number = 4",
        "INSERT INTO ledger SELECT 9, version, kind, at, '', '', body, '', '' FROM ledger LIMIT 1",
        "INSERT OR REPLACE INTO ledger SELECT * FROM ledger WHERE number = 2",
        "UPDATE identity SET holdout = 'x'",
        "DELETE FROM identity",
        "INSERT OR REPLACE INTO identity VALUES (1, 'x')",
    ],
)
def test_sqlite_itself_refuses_changes(path: Path, command: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        damage(path, command)


@pytest.mark.parametrize(
    "command",
    [
        "UPDATE ledger SET body = '{}' WHERE number = 2",
        "UPDATE ledger SET body = replace(body, ':', ': ') WHERE number = 2",
        "UPDATE ledger SET question = 'aa' WHERE number = 2",
        "UPDATE ledger SET at = '2020-01-01T00:00:00.000000+00:00' WHERE number = 4",
        "UPDATE ledger SET kind = 'waived' WHERE number = 2",
        "UPDATE ledger SET version = 2 WHERE number = 2",
        "UPDATE ledger SET digest = previous WHERE number = 4",
        "DELETE FROM ledger WHERE number = 2",
        "DELETE FROM ledger WHERE number = 1",
        "UPDATE identity SET holdout = 'flights-2'",
        "DELETE FROM identity",
    ],
)
def test_changes_behind_the_triggers_are_noticed(path: Path, command: str) -> None:
    with sqlite3.connect(path) as connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
    connection.close()
    drops = [f"DROP TRIGGER {name}" for name, _ in triggers]
    damage(path, *drops, command, *(text for _, text in triggers))
    with pytest.raises((Damaged, InvalidInput)), SqliteLedger.open(path) as ledger:
        ledger.verify()
    with pytest.raises((Damaged, InvalidInput)), SqliteLedger.open(path) as ledger:
        ledger.rows()


@pytest.mark.parametrize("what", ["TRIGGER ledger_update", "INDEX answers"])
def test_a_missing_trigger_or_index_is_noticed(path: Path, what: str) -> None:
    damage(path, f"DROP {what}")
    with SqliteLedger.open(path) as ledger, pytest.raises(Damaged, match="tables and triggers"):
        ledger.verify()


def test_a_tail_cut_off_is_noticed_by_whoever_saw_it(path: Path, tmp_path: Path) -> None:
    witness = Witness(tmp_path / "state")
    older = path.read_bytes()
    with SqliteLedger.open(path) as ledger:
        note(ledger)
        witness.see(ledger.head())
    path.write_bytes(older)
    seen = witness.last(HOLDOUT)
    assert seen is not None
    check_older(SqliteLedger.open(path), seen)


@pytest.mark.parametrize("use", ["rows", "begin", "head", "verify"])
def test_a_process_notices_that_the_file_was_swapped_under_it(path: Path, use: str) -> None:
    older = path.with_name("older")
    shutil.copy(path, older)
    with SqliteLedger.open(path) as ledger:
        note(ledger)
        older.replace(path)
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink()
        with pytest.raises(Damaged, match="as seen before"):
            note(ledger) if use == "begin" else getattr(ledger, use)()


def test_a_process_notices_that_the_file_is_gone(path: Path) -> None:
    with SqliteLedger.open(path) as ledger:
        path.unlink()
        with pytest.raises(Damaged, match="found none"):
            ledger.rows()


def test_creation_does_not_overwrite_and_leaves_nothing_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / FILE
    with pytest.raises(InvalidInput, match="body"):
        SqliteLedger.create(path, HOLDOUT, {"x": float("nan")})
    assert list(tmp_path.glob(f"{FILE}*")) == []
    with pytest.raises(InvalidInput, match="holdout"):
        SqliteLedger.create(path, "../x", {})
    make(tmp_path).close()
    with pytest.raises(InvalidInput, match="does not exist yet"):
        make(tmp_path)
    with SqliteLedger.open(path) as ledger:
        assert ledger.verify().number == 1


def test_what_is_not_a_ledger_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / FILE
    with pytest.raises(InvalidInput, match="that exists"):
        SqliteLedger.open(path)
    path.touch()
    with pytest.raises(Damaged, match=r"ledger\.sqlite-wal is missing"):
        SqliteLedger.open(path)
    damage(path, "CREATE TABLE ledger (x)")
    with pytest.raises(InvalidInput, match="another program"):
        SqliteLedger.open(path)
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    path.write_bytes(b"no database at all, but long enough to be one" * 100)
    with pytest.raises(Damaged, match="file is not a database"):
        SqliteLedger.open(path)


@pytest.mark.parametrize("version", [FORMAT - 1, FORMAT + 1, 2**31 - 1, -1, -(2**31)])
def test_another_format_is_refused_and_left_alone(path: Path, version: int) -> None:
    damage(path, f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=f"It has format {version}: "):
        SqliteLedger.open(path)
    assert path.read_bytes() == before


def test_a_full_disk_is_said_clearly_and_changes_nothing(path: Path) -> None:
    def small(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute(f"PRAGMA max_page_count = {path.stat().st_size // 4096 + 1}")
        return connection

    with SqliteLedger.open(path, connect=small) as ledger:
        before = ledger.head()
        with pytest.raises(OSError, match="disk is full") as caught, ledger.begin() as transaction:
            transaction.append("noted", {"text": "x" * 100_000})
        assert caught.value.errno == errno.ENOSPC
        assert ledger.verify() == before
        note(ledger)
        assert ledger.verify().number == before.number + 1


def test_a_program_that_holds_the_file_is_said_clearly(path: Path) -> None:
    def impatient(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute("PRAGMA busy_timeout = 1")
        return connection

    with SqliteLedger.open(path, connect=impatient) as ledger:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match="Another program holds the ledger") as caught:
            note(ledger)
        assert caught.value.errno == errno.EAGAIN
        other.execute("ROLLBACK")
        other.close()
        note(ledger)


def test_lookups_use_their_indexes(path: Path) -> None:

    connection = sqlite3.connect(path)
    for statement, names, index in (
        (SELECT_RECORDED, [A], "answers"),
        (SELECT_REQUESTED, [A], "requests"),
    ):
        plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", names).fetchall()
        assert f"USING INDEX {index} " in plan[0][3]
        assert len(plan) == 1  # nothing is sorted
    connection.close()


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("Could not decode to UTF-8 column"),  # has no code
        sqlite3.DatabaseError("no such column"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "the text of an error"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_sqlite_cannot_explain_is_damage(path: Path, error: Exception) -> None:
    class Broken(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            if "FROM ledger" in arguments[0]:
                raise error
            return super().execute(*arguments)

    with pytest.raises(Damaged, match="a sound database"):
        SqliteLedger.open(path, connect=lambda p: Broken(p, isolation_level=None))
