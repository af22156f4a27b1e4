"""Combining: every task is settled once, errors stay with their task, and nobody is forgotten."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from holdfast import concurrency
from holdfast.concurrency import BatchedTask, Batcher

Jobs = list[BatchedTask[int, int]]


class Slow:
    """A run that can be held up, so that a crowd gathers behind it."""

    def __init__(self, settle: Callable[[Jobs], None]) -> None:
        self.batches: list[list[int]] = []
        self.entered, self.go_on = threading.Event(), threading.Event()
        self._settle = settle
        self.batcher: Batcher[int, int] = Batcher()

    def _run(self, jobs: Jobs) -> None:
        self.batches.append([job.task for job in jobs])
        self.entered.set()
        assert self.go_on.wait(120)
        self._settle(jobs)

    def do(self, task: int) -> int:
        return self.batcher.do(self._run, task)

    def crowd(self, tasks: list[int]) -> list[Future[int]]:
        """The first task is in `run`, and all others wait behind it, in their order."""
        pool = ThreadPoolExecutor(len(tasks))
        futures = [pool.submit(self.do, tasks[0])]
        assert self.entered.wait(120)
        for i, task in enumerate(tasks[1:], 1):
            futures.append(pool.submit(self.do, task))
            while len(self.batcher._waiting) < i:
                pass
        pool.shutdown(wait=False)
        return futures


def squares(jobs: Jobs) -> None:
    for job in jobs:
        job.succeed(job.task**2)


def test_those_who_wait_are_served_together() -> None:
    slow = Slow(squares)
    futures = slow.crowd([0, 1, 2, 3, 4])
    slow.go_on.set()
    assert [future.result(30) for future in futures] == [0, 1, 4, 9, 16]
    assert slow.batches == [[0], [1, 2, 3, 4]]


def test_nobody_is_told_before_the_run_has_ended() -> None:
    settled, end = threading.Event(), threading.Event()

    def settle_and_go_on(jobs: Jobs) -> None:
        squares(jobs)
        if len(jobs) > 1:
            settled.set()
            assert end.wait(120)

    slow = Slow(settle_and_go_on)
    futures = slow.crowd([0, 1, 2])
    slow.go_on.set()
    assert futures[0].result(30) == 0
    assert settled.wait(120)
    assert [future.done() for future in futures] == [True, False, False]
    end.set()
    assert [future.result(30) for future in futures] == [0, 1, 4]


def test_an_error_of_one_is_its_own() -> None:
    def odd_ones_fail(jobs: Jobs) -> None:
        for job in jobs:
            if job.task % 2:
                job.fail(KeyError(job.task))
            else:
                job.succeed(job.task)

    slow = Slow(odd_ones_fail)
    futures = slow.crowd([0, 1, 2, 3])
    slow.go_on.set()
    assert [futures[i].result(30) for i in (0, 2)] == [0, 2]
    for i in (1, 3):
        with pytest.raises(KeyError, match=str(i)):
            futures[i].result(30)


def test_an_interruption_of_the_leader_is_its_own() -> None:
    def first_is_interrupted(jobs: Jobs) -> None:
        if jobs[0].task == 1:
            jobs[1].succeed(22)  # settled already: not done a second time
            raise KeyboardInterrupt
        squares(jobs)

    slow = Slow(first_is_interrupted)
    futures = slow.crowd([0, 1, 2, 3])
    slow.go_on.set()
    assert [futures[i].result(30) for i in (0, 2, 3)] == [0, 22, 9]
    with pytest.raises(KeyboardInterrupt):
        futures[1].result(30)
    assert slow.batches == [[0], [1, 2, 3], [3]]
    assert slow.do(5) == 25


class InterruptedWaiting(BatchedTask[int, int]):
    """Its thread is interrupted, before or after it is woken to lead."""

    def wait(self) -> None:
        if self.task == 7:
            super().wait()
        if self.task in (6, 7):
            raise KeyboardInterrupt
        super().wait()


@pytest.mark.parametrize("task", [6, 7], ids=["waiting", "made the leader"])
def test_an_interruption_while_waiting_leaves_the_others_going(
    task: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(squares)
    monkeypatch.setattr(concurrency, "BatchedTask", InterruptedWaiting)
    pool = ThreadPoolExecutor(3)
    first = pool.submit(slow.do, 2)
    assert slow.entered.wait(120)
    second = pool.submit(slow.do, task)
    if task == 6:
        with pytest.raises(KeyboardInterrupt):
            second.result(30)
    else:
        while not slow.batcher._waiting:
            pass
    third = pool.submit(slow.do, 3)
    slow.go_on.set()
    assert (first.result(30), third.result(30)) == (4, 9)
    with pytest.raises(KeyboardInterrupt):
        second.result(30)
    assert slow.do(4) == 16
    assert all(task not in batch for batch in slow.batches)
    pool.shutdown()


def test_a_crowd_of_threads_loses_and_doubles_nothing() -> None:
    done: list[int] = []

    def note(jobs: Jobs) -> None:
        done.extend(job.task for job in jobs)
        squares(jobs)

    batcher: Batcher[int, int] = Batcher(most=5)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(partial(batcher.do, note), range(2000)))
    assert found == [i**2 for i in range(2000)]
    assert sorted(done) == list(range(2000))


FORKED = """
import os, threading
from holdfast.concurrency import Batcher

entered, go_on = threading.Event(), threading.Event()

def run(jobs):
    entered.set()
    go_on.wait()
    for job in jobs:
        job.succeed(job.task + 1)

batcher = Batcher()
thread = threading.Thread(target=batcher.do, args=(run, 1))
thread.start()
entered.wait()
child = os.fork()
if child == 0:  # the thread that leads is not here
    go_on.set()
    os._exit(batcher.do(run, 6))
status = os.waitpid(child, 0)[1]
go_on.set()
thread.join()
print(os.waitstatus_to_exitcode(status), batcher.do(run, 1))
"""


def test_a_child_that_is_forked_in_the_middle_can_go_on() -> None:
    run = [sys.executable, "-W", "ignore", "-c", FORKED]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("7 2\n", "")
