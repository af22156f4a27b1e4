"""What the tests of the ledger in Postgres share."""

from __future__ import annotations

import subprocess
from typing import Any

import psycopg

from holdfast.ledger.postgres import PostgresLedger
from tests.ledger import contract

OPENED = """
from holdfast.ledger.postgres import PostgresLedger

def opened():
    return PostgresLedger.open(sys.argv[1], "flights-1")
"""


def connect(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection of somebody else; `with` closes it."""
    return psycopg.connect(url, autocommit=True)


def cut(ledger: PostgresLedger) -> None:
    """End the ledger's connection, as an administrator would, and wait until it has ended."""
    pid = ledger._table._connection.info.backend_pid
    with connect(ledger.url) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 30000)", (pid,))


def start(url: str, program: str, *arguments: str) -> subprocess.Popen[str]:
    """A program in a process of its own, given the URL."""
    return contract.start(OPENED + program, url, *arguments)


def together(*processes: subprocess.Popen[str]) -> list[str]:
    """What programs print after they have said `ready`, and were all let go at once."""
    try:
        for each in processes:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in processes:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        told = [each.communicate(timeout=60) for each in processes]
    finally:
        for each in processes:
            each.kill()
            each.communicate()
    assert {errors for _, errors in told} == {""}
    return [printed for printed, _ in told]
