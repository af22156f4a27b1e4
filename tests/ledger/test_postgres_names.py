"""Names that a thread wanted, and was interrupted while another took them for it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.ledger import postgres
from holdfast.ledger.postgres import PostgresLedger, key
from tests.ledger.contract import HOLDOUT
from tests.ledger.postgres_tests import connect

pytestmark = pytest.mark.cluster


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


def test_an_interruption_while_another_thread_takes_the_names_leaves_none_taken(
    url: str, monkeypatch: pytest.MonkeyPatch, interruptible: None
) -> None:
    """The first thread leads alone; the second one then for itself and for this thread."""
    take, main, gone = postgres._take, threading.get_ident(), threading.Event()
    batches: list[int] = []

    def watched(session: Any, keys: frozenset[int]) -> frozenset[int]:
        taken = take(session, keys)
        batches.append(len(keys))
        if batches == [1]:
            wait_until(lambda: len(ledger._names._wishes._waiting) == 2)
        elif batches == [1, 2]:
            signal.pthread_kill(main, signal.SIGINT)
            assert gone.wait(30)
        return taken

    monkeypatch.setattr(postgres, "_take", watched)
    with PostgresLedger.open(url, HOLDOUT) as ledger:
        threads = [threading.Thread(target=hold, args=(ledger, name)) for name in ("a", "b")]
        threads[0].start()
        wait_until(lambda: batches == [1])
        threads[1].start()
        wait_until(lambda: len(ledger._names._wishes._waiting) == 1)
        with pytest.raises(KeyboardInterrupt):
            hold(ledger, "c")
        gone.set()
        for thread in threads:
            thread.join(30)
        assert batches[:2] == [1, 2]
        assert [name for name in ("a", "b", "c") if not is_free(url, name)] == []
