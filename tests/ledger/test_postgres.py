"""The ledger in Postgres keeps the contract; and what holds for it alone."""

from __future__ import annotations

import errno
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger import postgres
from holdfast.ledger.ledger import Ledger, Row, genesis
from holdfast.ledger.postgres import PostgresLedger, PostgresTable
from holdfast.ledger.witness import Witness
from tests.ledger.contract import HOLDOUT, A, LedgerContract, check_older, note
from tests.ledger.postgres_tests import connect, cut
from tools.postgres import PostgresServer, postgres_server

pytestmark = pytest.mark.cluster


class TestPostgresLedger(LedgerContract):
    @pytest.fixture(autouse=True)
    def _database(self, database: str) -> None:
        self.url = database

    def create(self, folder: Path) -> Ledger:
        return PostgresLedger.create(self.url, HOLDOUT, {"plan": 1})

    def reopen(self, folder: Path) -> Ledger:
        return PostgresLedger.open(self.url, HOLDOUT)


def damage(url: str, *commands: str) -> None:
    """Change the tables as somebody with a shell would."""
    with connect(url) as connection:
        for command in commands:
            connection.execute(command.encode())


def test_several_holdouts_share_a_database(url: str) -> None:
    """Writers of one do not wait for those of another, nor fail because of them."""
    create, again = PostgresLedger.create, PostgresLedger.open
    with create(url, "other", {"plan": 2}) as other, again(url, HOLDOUT) as ledger:
        with ledger.begin() as one, other.begin() as two, create(url, "third", {}) as third:
            one.append("noted", {"who": 1})
            two.append("noted", {"who": 2})
            note(third)
        assert ledger.verify().number == 5
        assert other.verify().number == 2
        assert [row.body for row in other.rows()] == [{"plan": 2}, {"who": 2}]
    with pytest.raises(InvalidInput, match="no ledger yet"):
        PostgresLedger.create(url, "other", {})
    with pytest.raises(InvalidInput, match="holdout"):
        PostgresLedger.create(url, "'; DROP TABLE", {})


@pytest.mark.parametrize(
    "command",
    [
        "UPDATE holdfast.ledger SET body = '{}' WHERE number = 2",
        "DELETE FROM holdfast.ledger WHERE number = 4",
        "TRUNCATE holdfast.ledger",
        "INSERT INTO holdfast.ledger SELECT holdout, 9, version, kind, at, question, request, "
        "body, previous, digest FROM holdfast.ledger LIMIT 1",
        "INSERT INTO holdfast.ledger SELECT 'other', number + 1, version, kind, at, question, "
        "request, body, previous, digest FROM holdfast.ledger LIMIT 1",
        "INSERT INTO holdfast.ledger SELECT * FROM holdfast.ledger WHERE number = 2 "
        "ON CONFLICT (holdout, number) DO UPDATE SET body = '{}'",
    ],
)
def test_postgres_itself_refuses_changes(url: str, command: str) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        damage(url, command)


@pytest.mark.parametrize(
    "command",
    [
        "UPDATE holdfast.ledger SET body = '{}' WHERE number = 2",
        "UPDATE holdfast.ledger SET question = 'aa' WHERE number = 2",
        "UPDATE holdfast.ledger SET kind = 'waived' WHERE number = 2",
        "UPDATE holdfast.ledger SET digest = previous WHERE number = 4",
        "DELETE FROM holdfast.ledger WHERE number = 2",
        "DELETE FROM holdfast.ledger WHERE number = 1",
        "UPDATE holdfast.ledger SET holdout = 'another'",
        "DELETE FROM holdfast.format",
        "DROP TABLE holdfast.ledger",
    ],
)
def test_changes_behind_the_triggers_are_noticed(url: str, command: str) -> None:
    off, on = ("SET session_replication_role = replica", "SET session_replication_role = origin")
    damage(url, off, command, on)
    for use in ("verify", "rows"):
        with pytest.raises((Damaged, InvalidInput)), PostgresLedger.open(url, HOLDOUT) as ledger:
            getattr(ledger, use)()


@pytest.mark.parametrize(
    "command",
    [
        "DROP TRIGGER ledger_change ON holdfast.ledger",
        "ALTER TABLE holdfast.ledger DISABLE TRIGGER ledger_insert",
        "DROP INDEX holdfast.answers",
        "ALTER TABLE holdfast.ledger SET UNLOGGED",
        "CREATE OR REPLACE FUNCTION holdfast.refuse() RETURNS trigger LANGUAGE plpgsql "
        "AS 'BEGIN RETURN NULL; END'",
        "ALTER FUNCTION holdfast.follow() SECURITY DEFINER",
        "ALTER FUNCTION holdfast.follow() SET search_path = public",
        "CREATE RULE swallow AS ON INSERT TO holdfast.ledger DO INSTEAD NOTHING",
        "CREATE RULE copy AS ON UPDATE TO holdfast.format DO ALSO NOTHING",
        "ALTER TABLE holdfast.ledger ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY later ON holdfast.ledger USING (number > 2)",
        "CREATE TABLE public.child () INHERITS (holdfast.ledger)",
        "CREATE OR REPLACE TRIGGER ledger_insert BEFORE INSERT ON holdfast.ledger "
        "FOR EACH ROW WHEN (NEW.number < 9) EXECUTE FUNCTION holdfast.follow()",
        "CREATE OR REPLACE TRIGGER ledger_change BEFORE UPDATE OF kind OR DELETE OR TRUNCATE "
        "ON holdfast.ledger FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse()",
        "CREATE TRIGGER more BEFORE UPDATE ON holdfast.format "
        "FOR EACH ROW EXECUTE FUNCTION holdfast.refuse()",
        "DROP INDEX holdfast.answers; CREATE INDEX answers ON holdfast.ledger (question)",
        "ALTER TABLE holdfast.ledger ADD CHECK (number < 9)",
        "ALTER TABLE holdfast.ledger DROP CONSTRAINT ledger_pkey; "
        "CREATE UNIQUE INDEX ledger_pkey ON holdfast.ledger (holdout, number)",
        "ALTER TABLE holdfast.ledger ALTER question SET DEFAULT 'aa'",
        "ALTER TABLE holdfast.ledger ALTER body DROP NOT NULL",
        "ALTER TABLE holdfast.ledger ADD more int",
        "ALTER TABLE holdfast.ledger ALTER version TYPE bigint",
    ],
)
def test_tables_that_are_not_as_they_were_made_are_noticed(url: str, command: str) -> None:
    damage(url, command)
    with (
        PostgresLedger.open(url, HOLDOUT) as ledger,
        pytest.raises(Damaged, match="tables and triggers"),
    ):
        ledger.verify()


@pytest.mark.parametrize(
    "command",
    [
        "CREATE RULE swallow AS ON INSERT TO holdfast.ledger DO INSTEAD NOTHING",
        "CREATE OR REPLACE FUNCTION holdfast.follow() RETURNS trigger LANGUAGE plpgsql "
        "AS 'BEGIN RETURN NULL; END'",
    ],
)
@pytest.mark.parametrize("count", [1, 150])
def test_rows_that_are_swallowed_are_not_acknowledged(url: str, command: str, count: int) -> None:
    damage(url, command)
    with PostgresLedger.open(url, HOLDOUT) as ledger:

        def write() -> None:
            with ledger.begin() as transaction:
                for _ in range(count):
                    transaction.append("noted", {})

        with pytest.raises(Damaged, match="all rows to be inserted"):
            write()
        assert ledger.head().number == 4


def test_an_older_backup_put_back_is_noticed(
    postgres: PostgresServer, url: str, tmp_path: Path
) -> None:
    name = url.rpartition("/")[2]
    witness, copy = Witness(tmp_path / "state"), tmp_path / "copy"
    postgres.dump(name, copy)
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        note(ledger)
        witness.see(ledger.head())
        postgres.restore(name, copy)
        for use in ("rows", "head", "verify"):  # by the process that has seen more
            with pytest.raises(Damaged, match="as seen before"):
                getattr(ledger, use)()
        with pytest.raises(Damaged, match="as seen before"):
            note(ledger)
    seen = witness.last(HOLDOUT)
    assert seen is not None
    check_older(PostgresLedger.open(url, HOLDOUT), seen)  # and by one that has not


def test_a_server_that_does_not_wait_for_its_disk_is_refused() -> None:
    with postgres_server(fsync="off") as careless:
        with pytest.raises(OSError, match=r"does not wait for its disk \(fsync off") as caught:
            PostgresLedger.create(careless.url(), HOLDOUT, {})
        assert caught.value.errno == errno.ENOTSUP
        assert careless.command("SELECT to_regclass('holdfast.ledger')").strip() == ""


def test_commits_wait_for_the_disk_whatever_the_role_says(
    postgres: PostgresServer, url: str
) -> None:
    name = url.rpartition("/")[2]
    for setting in ("synchronous_commit = off", "statement_timeout = 200"):
        postgres.command(f"ALTER DATABASE {name} SET {setting}")
    with PostgresLedger.open(url, HOLDOUT) as ledger, ledger._reaching() as session:
        assert session.one("SHOW synchronous_commit") == "on"
        session.all("SELECT pg_sleep(0.3)")
    postgres.command(f"ALTER DATABASE {name} SET synchronous_commit = remote_apply")
    with PostgresLedger.open(url, HOLDOUT) as ledger, ledger._reaching() as session:
        assert session.one("SHOW synchronous_commit") == "remote_apply"


def test_a_database_of_another_encoding_is_refused(postgres: PostgresServer) -> None:
    postgres.command("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(OSError, match="encoding of the database is LATIN1"):
        PostgresLedger.create(postgres.url("latin"), HOLDOUT, {})


def test_a_writer_past_the_lock_writes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number that follows the head is given once, whoever asks for it."""
    whole = postgres._begin(HOLDOUT)
    begin, _, head = whole.split("; ")
    monkeypatch.setattr(postgres, "_begin", lambda holdout: f"{begin}; {head}")
    with PostgresLedger.open(url, HOLDOUT) as ledger, PostgresLedger.open(url, HOLDOUT) as other:

        def late() -> None:
            with ledger.begin() as transaction:
                note(other)
                transaction.append("noted", {"late": True})

        with pytest.raises(OSError, match="wrote first") as caught:
            late()
        assert caught.value.errno == errno.EAGAIN
        assert ledger.verify() == other.head()
        assert ledger.verify().number == 5
        note(ledger)  # and goes on


def test_a_writer_waits_for_another_and_not_for_ever(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresLedger, "patience", 0.2)
    with PostgresLedger.open(url, HOLDOUT) as ledger, PostgresLedger.open(url, HOLDOUT) as other:
        with other.begin() as transaction:
            with pytest.raises(TimeoutError, match=r"for more than 0\.2 seconds"):
                note(ledger)
            assert len(ledger.rows()) == 4  # readers do not wait
            transaction.append("noted", {})
        note(ledger)
        assert ledger.verify().number == 6


def test_many_rows_in_one_transaction(url: str) -> None:
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        for count in (1, 99, 100, 101, 250):
            with ledger.begin() as transaction:
                for i in range(count):
                    row = transaction.append("noted", {"i": i, "text": "100 %s; 'quoted' \\"})
            assert ledger.rows()[-1] == row
        assert ledger.verify().number == 4 + 551
        assert [row.number for row in ledger.rows(after=4, limit=3)] == [5, 6, 7]


def test_lookups_use_their_indexes(url: str) -> None:
    with connect(url) as connection:
        connection.execute("SET enable_seqscan = off")  # of a few rows it would be quicker
        for statement, values, index in (
            (postgres.SELECT_RECORDED, (HOLDOUT, A), "answers"),
            (postgres.SELECT_REQUESTED, (HOLDOUT, A), "requests"),
            (postgres.SELECT_HEAD, (HOLDOUT,), "ledger_pkey"),
            (postgres.SELECT_AFTER, (HOLDOUT, 3), "ledger_pkey"),
        ):
            plan = connection.execute(f"EXPLAIN {statement}".encode(), values).fetchall()
            assert f"{index} " in "\n".join(line for (line,) in plan)


# Tables of an earlier format, realistic and only for these tests, and of a later one.


FORMAT_0 = (
    "CREATE SCHEMA holdfast",
    "CREATE TABLE holdfast.format (version int NOT NULL)",
    "INSERT INTO holdfast.format VALUES (0)",
    "CREATE TABLE holdfast.events (holdout text, number bigint, version int, kind text, at text, "
    "question text, request text, body text, digest text)",  # `previous` was left to the reader
)


def step(table: PostgresTable) -> None:
    """From format 0 to 1."""
    rows = table.all("SELECT * FROM holdfast.events ORDER BY holdout, number")
    table.all("DROP TABLE holdfast.events, holdfast.format")
    table.all("DROP SCHEMA holdfast")
    for statement in postgres.SCHEMA:
        table.all(statement)
    previous = genesis(HOLDOUT)
    for holdout, *facts, digest in rows:
        table.all(postgres._insert(1), holdout, *facts, previous, digest)
        previous = digest


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
    damage(url, "DROP SCHEMA holdfast CASCADE", *FORMAT_0)
    with connect(url) as connection:
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
    assert version(old) == postgres.FORMAT == 1
    with PostgresLedger.open(old, HOLDOUT) as ledger:
        assert ledger.verify().number == 5


def test_several_that_open_at_once_migrate_once(old: str, rows: list[Row]) -> None:
    done: list[int] = []

    def counted(table: PostgresTable) -> None:
        done.append(1)
        step(table)

    def work() -> None:
        with PostgresLedger.open(old, HOLDOUT, steps={0: counted}) as ledger:
            note(ledger)

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(work) for _ in range(4)]:
            each.result(60)
    assert done == [1]
    with PostgresLedger.open(old, HOLDOUT) as ledger:
        assert ledger.verify().number == 8


def test_a_migration_that_fails_leaves_the_old_format(old: str, rows: list[Row]) -> None:
    def fail(table: PostgresTable) -> None:
        step(table)
        raise KeyError("halfway")

    with pytest.raises(KeyError, match="halfway"):
        PostgresLedger.open(old, HOLDOUT, steps={0: fail})
    assert version(old) == 0
    with pytest.raises(InvalidInput, match="an earlier Holdfast"):  # without a way forward
        PostgresLedger.open(old, HOLDOUT)
    with PostgresLedger.open(old, HOLDOUT, steps={0: step}) as ledger:
        assert ledger.rows() == rows


def test_nothing_is_migrated_under_a_process_that_is_connected(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        monkeypatch.setattr(postgres, "FORMAT", 2)
        monkeypatch.setattr(PostgresLedger, "patience", 0.2)
        newer: dict[int, Callable[[PostgresTable], Any]] = {1: lambda table: None}
        with pytest.raises(TimeoutError, match="Another process"):
            PostgresLedger.open(url, HOLDOUT, steps=newer)
        note(ledger)
        ledger.close()
        PostgresLedger.open(url, HOLDOUT, steps=newer).close()
        monkeypatch.setattr(postgres, "FORMAT", 1)
        # As the older one would. Whoever asks has made no mistake, and is told of no address.
        with pytest.raises(ConnectionRefusedError, match="newer Holdfast"):
            ledger.rows()


def test_a_newer_format_is_refused_and_an_odd_one_is_damage(url: str) -> None:
    damage(url, "UPDATE holdfast.format SET version = 2")
    with pytest.raises(InvalidInput, match=r"newer Holdfast has changed it \(format 2\)"):
        PostgresLedger.open(url, HOLDOUT)
    with pytest.raises(InvalidInput, match="newer Holdfast"):
        PostgresLedger.create(url, "another", {})
    assert version(url) == 2
    damage(url, "DELETE FROM holdfast.format")
    with pytest.raises(Damaged, match="the format of its tables"):
        PostgresLedger.open(url, HOLDOUT)
    assert postgres.MIGRATIONS == {}


def test_a_database_without_ledgers_and_one_without_this_ledger(database: str) -> None:
    with pytest.raises(InvalidInput, match="a database with ledgers"):
        PostgresLedger.open(database, HOLDOUT)
    PostgresLedger.create(database, "another", {}).close()
    with pytest.raises(InvalidInput, match=f"the database of holdout {HOLDOUT}"):
        PostgresLedger.open(database, HOLDOUT)


def test_tables_that_are_gone_are_no_fault_of_whoever_asks(url: str) -> None:
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        cut(ledger)
        damage(url, "DROP SCHEMA holdfast CASCADE")
        with pytest.raises(ConnectionRefusedError, match="not as it was"):
            note(ledger)


def test_tables_are_made_whatever_transactions_are_by_default(database: str) -> None:
    url = f"{database}?options=-c%20default_transaction_read_only%3Don"
    with PostgresLedger.create(url, HOLDOUT, {}) as ledger:
        note(ledger)
        assert ledger.verify().number == 2


def test_several_that_create_at_once_make_the_tables_once(database: str) -> None:
    def work(number: int) -> None:
        PostgresLedger.create(database, f"holdout-{number}", {}).close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    with PostgresLedger.open(database, "holdout-3") as ledger:
        assert ledger.verify().number == 1


def test_a_creation_that_fails_leaves_no_row(database: str) -> None:
    with pytest.raises(InvalidInput, match="body"):
        PostgresLedger.create(database, HOLDOUT, {"x": float("nan")})
    with PostgresLedger.create(database, HOLDOUT, {"x": 1}) as ledger:
        assert ledger.verify().number == 1
