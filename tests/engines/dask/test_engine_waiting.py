"""Waiting for tasks: what becomes of those that are late, lost, suspect or broken. No cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from distributed import KilledWorker

from holdfast.engines.dask import engine
from holdfast.engines.dask.engine import ClusterAddress, ClusterConnection, QuestionTasks, Tasks
from holdfast.engines.dask.worker import Numbers, control, evaluate, question
from holdfast.engines.source import Limits
from holdfast.errors import Unavailable


class Future:
    """One that is told what to become."""

    def __init__(self, key: str, outcome: object = None, status: str = "pending") -> None:
        self.key, self.outcome, self.status = key, outcome, status
        self.watched = 0

    def add_done_callback(self, function: Callable[[Future], None]) -> None:
        self.watched += 1
        if self.watched == 2:  # lost the first time: now it is there
            self.status = "finished"
        if self.status != "pending":
            function(self)

    def result(self, timeout: float) -> object:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


class Line(ClusterConnection):
    """A connection to nowhere."""

    def __init__(self, workers: int = 1, patience: float = 300.0) -> None:
        super().__init__(ClusterAddress("tcp://nowhere:1", patience))
        self.count = workers
        self.cancelled: list[Any] = []

    def threads(self) -> int:
        return self.count

    def running(self, futures: Sequence[Any]) -> set[Any]:
        return {future.key for future in futures if "runs" in future.key}

    def cancel(self, futures: Sequence[Any]) -> None:
        self.cancelled += [future.key for future in futures]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TICK", 0.001)
    monkeypatch.setattr(engine, "LOOK", 0.0)


def replies(line: Line, *futures: Future, seconds: float = 60.0) -> dict[int, Any]:
    tried = Tasks(line, lambda: None, seconds)
    return dict(tried.replies(lambda number: futures[number], len(futures)))


def test_a_task_that_does_not_end_is_no_failure_of_its_blocks() -> None:
    line = Line()
    with pytest.raises(TimeoutError, match="has not ended a task in 0 seconds"):
        replies(line, Future("runs"), seconds=0.05)
    assert line.cancelled == ["runs"]


def test_a_task_that_waits_for_its_turn_is_not_late() -> None:
    class Enough(Exception):
        pass

    ticks = iter(range(300))

    def tick() -> None:
        if next(ticks, None) is None:
            raise Enough

    line = Line()
    with pytest.raises(Enough):
        list(Tasks(line, tick, 0.05).replies(lambda _: Future("queued"), 1))
    assert line.cancelled == ["queued"]


def test_a_reply_that_was_lost_comes_again() -> None:
    assert replies(Line(), Future("lost", "reply", "lost")) == {0: "reply"}


def test_no_more_tasks_are_under_way_than_a_cluster_can_use() -> None:
    line, most, begun = Line(workers=3), 0, 0

    def submit(number: int) -> Future:
        nonlocal begun
        begun += 1
        return Future(str(number), number, "finished")

    for done, _ in enumerate(Tasks(line, lambda: None).replies(submit, 50)):
        most = max(most, begun - done)
    assert (begun, most) == (50, 6)


def test_what_is_broken_and_that_nobody_works_is_said() -> None:
    with pytest.raises(Unavailable, match=r"could not be run \(ModuleNotFoundError\)"):
        replies(Line(), Future("bad", ModuleNotFoundError("no holdfast"), "error"))
    with pytest.raises(ConnectionError, match="does not answer"):
        replies(Line(), Future("bad", OSError("gone"), "finished"))
    with pytest.raises(TimeoutError, match=r"no worker for 0\.05 seconds"):
        replies(Line(workers=0, patience=0.05), Future("waits"))


class Scripted(QuestionTasks):
    """Its rounds go as they are told: by piece, what came back, and whether others flew too."""

    def __init__(self, script: dict[range, list[tuple[Numbers | None, bool]]]) -> None:
        super().__init__(Line(), question(b"", (None,), Limits(), sums=False), evaluate)
        self.script = script
        self.controls = 0

    def _tasks(self, parts: Sequence[range], tick: Callable[[], None]) -> Any:
        return SimpleNamespace(shared=False)

    def _run(self, tasks: Any, parts: Sequence[range]) -> Generator[tuple[range, Numbers | None]]:
        for part in parts:
            numbers, tasks.shared = self.script[part].pop(0)
            yield part, numbers

    def _control(self, seconds: float, tick: Callable[[], None]) -> None:
        self.controls += 1


def test_only_the_block_that_ends_workers_by_itself_has_failed() -> None:
    one = np.ones(1)
    tasks = Scripted(
        {
            range(3): [(None, True)],
            range(3, 5): [(np.ones(2), False)],
            range(1): [(one, True)],
            range(1, 2): [(None, True), (None, True), (one, True)],  # others ended its workers
            range(2, 3): [(None, True), (None, False)],
        }
    )
    found = dict(tasks.answers([range(3), range(3, 5)], lambda: None))
    assert [part for part, numbers in found.items() if numbers is None] == [range(2, 3)]
    assert set(found) == {range(3, 5), range(1), range(1, 2), range(2, 3)}
    assert not any(tasks.script.values())
    assert tasks.controls == 1  # before it was laid to a block
    assert not tasks._connection.isolation.locked()


def test_no_block_has_failed_that_was_never_asked_alone() -> None:
    tasks = Scripted({range(1): [(None, True)] * 4})
    with pytest.raises(ConnectionError, match="loses its workers"):
        list(tasks.answers([range(1)], lambda: None))


class Controlled(Line):
    """Its one task, a control, ends as it is told, after so many workers have begun it."""

    def __init__(self, outcome: object, begun: int) -> None:
        super().__init__()
        self.outcome, self.begun = outcome, begun
        self.told: dict[str, Any] = {}

    def submit(self, task: Any, start: int, stop: int, **more: Any) -> Any:
        assert task is control
        self.told = more
        return Future("control", self.outcome, "finished")

    def starts(self, token: str) -> int:
        assert token == self.told["token"]
        return self.begun


def test_workers_that_die_of_nothing_are_an_error() -> None:
    asked = question(b"", (None,), Limits(), sums=False)
    QuestionTasks(Controlled("reply", 1), asked, evaluate)._control(3.0, lambda: None)  # none did
    for outcome, begun in (("reply", 2), (KilledWorker("control", cast(Any, None), 1), 4)):
        line = Controlled(outcome, begun)
        with pytest.raises(ConnectionError, match="loses its workers"):
            QuestionTasks(line, asked, evaluate)._control(3.0, lambda: None)
        assert line.told["seconds"] == 3.0


class Telling(Line):
    """Its workers say what they are told to say."""

    def __init__(self, *told: Any) -> None:
        super().__init__()
        self.told = list(told)

    def workers(self) -> dict[str, int]:
        return {"tcp://worker:1": 1}

    def _told(self, *_: object) -> list[Any]:
        return self.told


def test_workers_that_cannot_be_asked() -> None:
    reply = "numbers", b""
    assert Telling(OSError(), reply).ask_each_worker(len, seconds=1.0) == [reply]
    with pytest.raises(Unavailable, match="Holdfast on the scheduler and on all workers"):
        Telling(reply, ModuleNotFoundError("holdfast")).ask_each_worker(len, seconds=1.0)
    with pytest.raises(ConnectionError, match="loses its workers"):
        Telling(OSError(), OSError()).ask_each_worker(len, seconds=1.0)


def test_whoever_waits_to_try_alone_can_be_told_to_stop() -> None:
    class Enough(Exception):
        pass

    def tick() -> None:
        raise Enough

    tasks = Scripted({range(1): [(None, False)]})
    with tasks._connection.isolation, pytest.raises(Enough):
        list(tasks.answers([range(1)], tick))


def test_tasks_know_whether_they_were_alone() -> None:
    line = Line()
    tried = Tasks(line, lambda: None)
    list(tried.replies(lambda _: Future("a", 1, "finished"), 1))
    assert not tried.shared
    other = Tasks(line, lambda: None)
    with line.noted(other):
        assert not other.shared
        list(tried.replies(lambda _: Future("b", 1, "finished"), 1))
    assert [tried.shared, other.shared] == [True, True]
    later = Tasks(line, lambda: None)
    list(later.replies(lambda _: Future("c", 1, "finished"), 1))
    assert not later.shared
