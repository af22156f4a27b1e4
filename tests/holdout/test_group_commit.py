"""Questions asked at once share a commit: nothing is told before it, and errors stay apart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.errors import Exhausted
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.state import HoldoutState, Journal
from holdfast.ledger.ledger import Transaction
from holdfast.ledger.sqlite import SqliteLedger
from tests.holdout import plans
from tests.holdout.plans import ESTIMATE
from tests.holdout.tables import sealed

Work = Callable[[Transaction, HoldoutState], Any]


class Held:
    """A door whose commits wait for a word; batches gather behind them."""

    def __init__(self, door: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
        self.journal = door
        self.reached = threading.Semaphore(0)  # commits that wait
        self._go_on = threading.Semaphore(0)
        self.fails: BaseException | None = None
        self.fails_late: BaseException | None = None  # when all is committed
        begin = door.ledger.begin

        @contextmanager
        def held() -> Iterator[Transaction]:
            with begin() as transaction:
                yield transaction
                self.reached.release()
                assert self._go_on.acquire(timeout=30)
                if self.fails is not None:
                    raise self.fails
            if self.fails_late is not None:
                raise self.fails_late

        monkeypatch.setattr(door.ledger, "begin", held)

    def crowd(self, works: list[Work]) -> list[Future[Any]]:
        """The first work is about to be committed, the others wait behind it, in their order."""
        pool = ThreadPoolExecutor(len(works))
        futures = [pool.submit(self.journal.write, works[0])]
        self.wait()
        for i, work in enumerate(works[1:], 1):
            futures.append(pool.submit(self.journal.write, work))
            while len(self.journal._works._waiting) < i:
                pass
        pool.shutdown(wait=False)
        return futures

    def wait(self) -> None:
        assert self.reached.acquire(timeout=30)

    def commit(self) -> None:
        self._go_on.release()


@pytest.fixture
def holdout(tmp_path: Path) -> Iterator[Holdout]:
    with sealed(tmp_path / "a.holdfast", plans.crowd()) as found:
        yield found


@pytest.fixture
def held(holdout: Holdout, monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(holdout.journal, monkeypatch)


def noting(text: str) -> Work:
    def work(transaction: Transaction, books: HoldoutState) -> int:
        row = transaction.append("noted", {"text": text})
        books.read([row])
        return row.number

    return work


def on_disk(holdout: Holdout) -> list[str]:
    """What another process would read."""
    with SqliteLedger.open(holdout.path / "ledger.sqlite") as other:
        return [row.body["text"] for row in other.rows(1)]


def test_nothing_is_told_before_the_commit_that_holds_it(holdout: Holdout, held: Held) -> None:
    futures = held.crowd([noting("a"), noting("b"), noting("c")])
    assert not futures[0].done()
    held.commit()
    assert futures[0].result(30) == 2
    held.wait()  # b and c are written, and not yet committed
    assert [future.done() for future in futures] == [True, False, False]
    held.commit()
    assert [future.result(30) for future in futures[1:]] == [3, 4]
    assert not held.reached.acquire(blocking=False)  # one commit for all who waited
    assert on_disk(holdout) == ["a", "b", "c"]
    assert holdout.journal._state.number == 4


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize(
    "error",
    [KeyError("mine"), Exhausted("The budget", "more", "less", "")],
    ids=lambda error: type(error).__name__,
)
def test_an_error_undoes_its_own_rows_alone_and_hurts_nobody(
    holdout: Holdout, held: Held, error: Exception, writes: bool
) -> None:
    def wrong(transaction: Transaction, books: HoldoutState) -> None:
        if writes:
            noting("never")(transaction, books)
        raise error

    futures = held.crowd([noting("a"), noting("b"), wrong, noting("c")])
    held.commit()
    held.wait()
    assert not any(future.done() for future in (futures[1], futures[3]))
    held.commit()
    with pytest.raises(type(error)):
        futures[2].result(30)
    assert [futures[i].result(30) for i in (0, 1, 3)] == [2, 3, 4]
    assert on_disk(holdout) == ["a", "b", "c"]
    assert holdout.journal._state.number == 4


def test_a_commit_that_fails_is_acknowledged_to_nobody(holdout: Holdout, held: Held) -> None:
    futures = held.crowd([noting("a"), noting("b"), noting("c")])
    held.commit()
    assert futures[0].result(30) == 2
    held.wait()
    held.fails = OSError("The disk reports an error")
    held.commit()
    for future in futures[1:]:
        with pytest.raises(OSError, match="disk reports"):
            future.result(30)
    held.fails = None
    assert on_disk(holdout) == ["a"]
    assert holdout.journal._state.number in (1, 2)  # read anew, not ahead of the ledger


def test_an_interruption_of_the_leader_leaves_the_others_to_go_on(
    holdout: Holdout, held: Held
) -> None:
    def interrupted(transaction: Transaction, books: HoldoutState) -> None:
        noting("never")(transaction, books)
        raise KeyboardInterrupt

    futures = held.crowd([noting("a"), interrupted, noting("b"), noting("c")])
    held.commit()
    with pytest.raises(KeyboardInterrupt):
        futures[1].result(30)
    held.wait()
    held.commit()
    assert [futures[i].result(30) for i in (0, 2, 3)] == [2, 3, 4]
    assert on_disk(holdout) == ["a", "b", "c"]


def test_what_may_be_committed_is_not_done_again(holdout: Holdout, held: Held) -> None:
    """The leader is interrupted after the commit: nobody can know, so everybody asks again."""
    futures = held.crowd([noting("a"), noting("b"), noting("c")])
    held.commit()
    futures[0].result(30)
    held.wait()
    held.fails_late = KeyboardInterrupt()
    held.commit()
    with pytest.raises(KeyboardInterrupt):
        futures[1].result(30)
    with pytest.raises(InterruptedError, match="with the same key"):
        futures[2].result(30)
    assert on_disk(holdout) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("plan", "affords"), [(plans.estimates, 6), (plans.split, 3)], ids=["looks", "exact"]
)
def test_threads_are_granted_what_the_budget_affords(
    tmp_path: Path, plan: Any, affords: int
) -> None:
    """More questions than are paid for, from many threads: each is answered or refused, once."""
    with sealed(tmp_path / "a.holdfast", plan()) as holdout:
        points = hf.grid(0, 1, points=ESTIMATE.grid)

        def ask(i: int) -> bool:
            try:
                return not holdout.ask(f"avg(x) + {i}", grid=points).cached
            except Exhausted:
                return False

        with ThreadPoolExecutor(8) as pool:
            granted = sum(pool.map(ask, range(24)))
        kinds = [row.kind for row in holdout.journal.ledger.rows()]
    assert granted == affords
    assert (kinds.count("reserved"), kinds.count("recorded")) == (affords, affords)
    assert check_holdout(holdout.path).passed
