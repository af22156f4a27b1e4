"""A Postgres for the tests that need one; they are marked `cluster`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ledger.contract import HOLDOUT, note
from tools.postgres import PostgresServer, postgres_server

_NAME = "tests"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests of a process."""
    with postgres_server() as server:
        server.create_database(_NAME)
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The URL of an empty database. It is one for all: to make one takes longer than a test."""
    others = f"FROM pg_stat_activity WHERE datname = '{_NAME}' AND pid <> pg_backend_pid()"
    postgres.command(f"SELECT pg_terminate_backend(pid, 30000) {others}")
    postgres.command(
        "SET client_min_messages = error; DROP SCHEMA IF EXISTS holdfast CASCADE", _NAME
    )
    postgres.command(f"ALTER DATABASE {_NAME} RESET ALL")
    return postgres.url(_NAME)


@pytest.fixture
def url(database: str) -> str:
    """The URL of a database with a ledger of four rows."""
    from holdfast.ledger.postgres import PostgresLedger

    with PostgresLedger.create(database, HOLDOUT, {"plan": 1}) as ledger:
        note(ledger, 3)
    return database
