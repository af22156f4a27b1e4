"""Where a ledger is: in the folder, or in a database that the folder names."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast.ledger import opening
from holdfast.ledger.opening import ADDRESS, create_ledger, has_ledger, open_ledger, prepare_ledger
from holdfast.ledger.sqlite import SqliteLedger
from tests.ledger.contract import HOLDOUT
from tools.postgres import PostgresServer


def test_without_a_url_it_is_a_file(tmp_path: Path) -> None:
    assert not has_ledger(tmp_path)
    prepare_ledger(None)
    create_ledger(tmp_path, None, HOLDOUT, {"plan": 1})
    assert has_ledger(tmp_path)
    assert not (tmp_path / ADDRESS).exists()
    with open_ledger(tmp_path) as ledger:
        assert isinstance(ledger, SqliteLedger)
        assert ledger.rows()[0].body == {"plan": 1}
    with pytest.raises(InvalidInput, match=r"The ledger of this holdout is ledger\.sqlite"):
        open_ledger(tmp_path, "postgresql://127.0.0.1/elsewhere")
    with pytest.raises(InvalidInput, match=r"got 'postgresql://…'\."):
        open_ledger(tmp_path, "postgresql://me:sesame@127.0.0.1/elsewhere")


def test_a_folder_without_a_ledger_and_one_with_two(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="a folder with a ledger"):
        open_ledger(tmp_path)
    create_ledger(tmp_path, None, HOLDOUT, {})
    (tmp_path / ADDRESS).write_text(json.dumps({"ledger": "postgresql://x/y", "holdout": "h"}))
    with pytest.raises(Damaged, match="found both"):
        open_ledger(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"ledger": "x", "holdout": "../x"}',
        b"\x00",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"ledger": "postgresql://me:sesame@x/y", "holdout"',
    ],
    ids=range(8),
)
def test_an_address_that_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ADDRESS).write_bytes(content)
    with pytest.raises(Damaged, match="Put back the copy") as caught:
        open_ledger(tmp_path)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "ledger.sqlite", "mysql://host/db", "postgres:db", 5])
def test_what_is_no_address(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput, match="postgresql://host/database"):
        create_ledger(tmp_path, url, HOLDOUT, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:sesame@127.0.0.1:1/db",
        "postgresql://me@127.0.0.1:1/db?password=sesame",
        "postgresql://127.0.0.1:1/db?user=me&password=sesame&sslmode=require",
        "postgresql://127.0.0.1:1/db?sslpassword=sesame",
        "postgresql://me:ses/ame@127.0.0.1:port/db?password=sesame",
        "postgresql://me:sesame@127.0.0.1:1/db?nonsense=1",
        "postgresql+psycopg://me:sesame@127.0.0.1:1/db",
        "POSTGRESQL://me:sesame@127.0.0.1:1/db",
        " postgresql://me:sesame@127.0.0.1:1/db",
        "host=127.0.0.1 port=1 password=sesame",
        "postgresql://127.0.0.1:1/db?password=se@same",
        "postgresql://127.0.0.1:1/db?pass%77ord=sesame",
        "postgresql://127.0.0.1:1/db?PASSWORD=sesame",
        "postgresql://127.0.0.1:1/db?oauth_client_secret=sesame",
        "postgresql://127.0.0.1:1/db?scram_client_key=sesame",
        "postgresql://127.0.0.1:1/db?scram_server_key=sesame",
        "postgresql://me:ses\name@127.0.0.1:1/db",
        "postgresql://me:1/sesame@127.0.0.1:1/db",
        "postgresql://me:se@same@127.0.0.1:1/db",
    ],
)
def test_a_password_is_neither_stored_nor_shown(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        create_ledger(tmp_path, url, HOLDOUT, {})
    shown = f"{caught.value} {caught.value.__cause__} {caught.value.value}"
    assert "ame" not in shown.replace("name", "")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ADDRESS).write_text(json.dumps({"ledger": url, "holdout": HOLDOUT}))
    with pytest.raises(InvalidInput) as caught:
        open_ledger(tmp_path)
    assert "ame" not in str(caught.value).replace("name", "")


def test_a_database_that_cannot_be_reached(tmp_path: Path) -> None:
    url = "postgresql://127.0.0.1:1/db"
    with pytest.raises(ConnectionRefusedError, match=r"cannot be reached.*then ask again"):
        prepare_ledger(url)
    with pytest.raises(ConnectionRefusedError):
        create_ledger(tmp_path, url, HOLDOUT, {})
    assert list(tmp_path.iterdir()) == []


def test_without_its_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    with pytest.raises(HoldfastError, match=r"pip install 'psycopg\[binary\]'"):
        create_ledger(tmp_path, "postgresql://127.0.0.1/db", HOLDOUT, {})


def test_what_only_some_need_is_loaded_when_it_is_asked_for() -> None:
    """The libraries of the client, of the ledger in Postgres and of the engine on Dask."""
    code = (
        "import sys, holdfast\nprint({'httpx2', 'holdfast.client'} & {*sys.modules})\n"
        "import holdfast.ledger.opening, holdfast.engines.dask.engine\n"
        "print({'psycopg', 'dask', 'distributed'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n" * 2


@pytest.mark.cluster
def test_in_a_database_the_folder_names_it(tmp_path: Path, database: str) -> None:
    create_ledger(tmp_path, database, HOLDOUT, {"plan": 1})
    assert has_ledger(tmp_path)
    [file] = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"holdout": HOLDOUT, "ledger": database}
    with open_ledger(tmp_path) as ledger, open_ledger(tmp_path, f"{database}?sslmode=prefer") as it:
        assert ledger.rows() == it.rows()
        assert ledger.rows()[0].body == {"plan": 1}
    with pytest.raises(FileExistsError):
        create_ledger(tmp_path, database, HOLDOUT, {"plan": 1})
    assert has_ledger(tmp_path)


@pytest.mark.cluster
def test_a_ledger_that_is_not_made_is_not_named(tmp_path: Path, database: str) -> None:
    with pytest.raises(InvalidInput, match="body"):
        create_ledger(tmp_path, database, HOLDOUT, {"plan": float("nan")})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.cluster
def test_the_password_comes_from_the_environment(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.command("CREATE ROLE guarded LOGIN PASSWORD 'sesame'")
    postgres.command("CREATE DATABASE guarded OWNER guarded")
    url = postgres.url("guarded", user="guarded")
    for given in (None, "wrong"):
        if given is not None:
            monkeypatch.setenv("PGPASSWORD", given)
        with pytest.raises(OSError, match=r"cannot be reached.*PGPASSWORD"):
            create_ledger(tmp_path, url, HOLDOUT, {})
    monkeypatch.setenv("PGPASSWORD", "sesame")
    create_ledger(tmp_path, url, HOLDOUT, {})
    assert "sesame" not in (tmp_path / ADDRESS).read_text()
    with open_ledger(tmp_path) as ledger:
        assert ledger.verify().number == 1


@pytest.mark.cluster
def test_rights_that_are_missing_are_said(
    tmp_path: Path, postgres: PostgresServer, database: str
) -> None:
    name = database.rpartition("/")[2]
    postgres.command("DROP ROLE IF EXISTS guest")
    postgres.command("CREATE ROLE guest LOGIN")
    url = postgres.url(name, user="guest")
    with pytest.raises(PermissionError, match=r"role may not.*permission denied for database"):
        create_ledger(tmp_path, url, HOLDOUT, {})
    create_ledger(tmp_path, database, HOLDOUT, {})
    with pytest.raises(PermissionError, match="permission denied for"):
        open_ledger(tmp_path, url)
    postgres.command("GRANT USAGE ON SCHEMA holdfast TO guest", name)
    postgres.command("GRANT SELECT ON ALL TABLES IN SCHEMA holdfast TO guest", name)
    with open_ledger(tmp_path, url) as ledger:
        assert len(ledger.rows()) == 1  # may look
        with pytest.raises(PermissionError, match="denied"), ledger.begin() as transaction:
            transaction.append("noted", {})
        postgres.command("GRANT INSERT ON holdfast.ledger TO guest", name)
        with ledger.begin() as transaction:  # all that a server needs
            transaction.append("noted", {})
        assert ledger.verify().number == 2
