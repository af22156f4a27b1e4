"""Replicas: a commit that they did not confirm, and one that is taken for the primary."""

from __future__ import annotations

import errno
import threading
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.ledger import postgres
from holdfast.ledger.postgres import PostgresLedger
from tests.ledger.contract import HOLDOUT
from tests.ledger.postgres_tests import connect, note
from tools.postgres import PostgresServer, postgres_server

WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def give_up_waiting(url: str) -> None:
    """Do as an operator who is tired of waiting for the replica."""
    with connect(url) as operator:
        while not (waiting := operator.execute(WAITS).fetchall()):
            time.sleep(0.01)
        operator.execute("SELECT pg_cancel_backend(%s)", waiting[0])


@pytest.mark.cluster
def test_a_commit_that_the_replica_has_not_confirmed_is_not_acknowledged(
    postgres: PostgresServer, url: str
) -> None:
    name = url.rpartition("/")[2]
    postgres.command(f"ALTER DATABASE {name} SET client_min_messages = error")
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        postgres.command("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        postgres.command("SELECT pg_reload_conf()")
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
        assert ledger._session is not None
        assert ledger._session.closed
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


@pytest.mark.cluster
def test_a_standby_is_refused_whatever_the_url_says() -> None:
    with postgres_server() as server:
        PostgresLedger.create(server.url(), HOLDOUT, {}).close()
        server.stop()
        (server.folder / "data" / "standby.signal").touch()
        server.start()
        with pytest.raises(OSError, match="URL of the primary") as caught:
            PostgresLedger.open(f"{server.url()}?target_session_attrs=any", HOLDOUT)
        assert caught.value.errno == errno.EROFS


@pytest.mark.cluster
def test_a_client_that_goes_silent_is_noticed_within_a_minute(url: str) -> None:
    with PostgresLedger.open(url, HOLDOUT) as ledger, ledger._reaching() as session:
        assert session.one("SHOW tcp_user_timeout") == "60000"
