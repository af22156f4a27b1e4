"""Combining: what several threads, or questions in one, want at once, one of them does for all.

    thread 1   do(a) ── leads: run([a]) ──────────────▶ a's result
    thread 2   do(b) ── waits ── leads: run([b, c]) ──▶ b's result
    thread 3   do(c) ── waits ────────────────────────▶ c's result

While one batch runs the next one gathers, so that batches are as large as the crowd: a durable
commit, or a message to another process, then costs the same for one as for many. Nobody is told a
result before `run` has returned.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakSet

from holdfast import waiting

__all__ = ["Combiner", "Job", "Renewed"]

T = TypeVar("T")
R = TypeVar("R")

_renewed: WeakSet[Renewed] = WeakSet()


class Renewed(ABC):
    """Something with locks that other threads may hold when the process forks.

    In the child those threads are gone, and would hold them for ever: there it gets new ones.
    """

    def __init__(self) -> None:
        self._renew()
        _renewed.add(self)

    @abstractmethod
    def _renew(self) -> None:
        """Make the locks, and forget whoever waits for them."""


def _renew_all() -> None:
    for each in list(_renewed):
        each._renew()


os.register_at_fork(after_in_child=_renew_all)


class Job(Generic[T, R]):
    """One thread's task, and what became of it."""

    __slots__ = ("_bell", "_error", "_result", "batch", "gone", "leads", "settled", "task")

    def __init__(self, task: T) -> None:
        self.task = task
        self.settled = False
        self.leads = False
        self.gone = False  # its thread waits for it no more
        self.batch: list[Job[T, R]] = []  # that it leads
        self._bell = waiting.bell()
        self._error: BaseException | None = None
        self._result: R | None = None

    def succeed(self, result: R) -> None:
        """The task is done."""
        self._result, self.settled = result, True

    def fail(self, error: BaseException) -> None:
        """The task is not done, and will not be."""
        self._error, self.settled = error, True

    def reopen(self) -> None:
        """What was said of it does not count: it will be tried again."""
        self._error, self._result, self.settled = None, None, False

    def outcome(self) -> R:
        """The result, or else the error."""
        assert self.settled
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # it is settled, and has no error

    @property
    def result(self) -> R | None:
        """The result, if there is one by now."""
        return self._result

    def wait(self) -> None:
        """Until it is settled, or leads."""
        self._bell.wait()

    def wake(self) -> None:
        """Its thread goes on; the second time nothing happens."""
        self._bell.ring()


class Combiner(Renewed, Generic[T, R]):
    """Gathers tasks; the leader's `run` settles every job of a batch.

    It is given with each task, not kept: whoever owns a combiner is freed as if it had none. If it
    raises, the jobs that it did not settle are tried again in a later batch, all but the leader's
    own, to which the exception belongs: so an interruption of one thread is its own.

    >>> def run(jobs: list[Job[int, int]]) -> None:
    ...     for job in jobs:
    ...         job.succeed(job.task**2)
    >>> Combiner().do(run, 7)
    49
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        super().__init__()

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Job[T, R]] = []  # the first of them leads next
        self._led = False

    def do(self, run: Callable[[list[Job[T, R]]], None], task: T) -> R:
        """What becomes of the task, alone or with those of other threads."""
        job = self._job(task)
        try:
            with self._lock:
                self._waiting.append(job)
                job.leads, self._led = not self._led, True
            waits = not job.leads
            if waits:
                job.wait()
            if job.leads:  # at once if others have gathered already, behind another batch
                waiting.elsewhere(partial(self._lead, run, job), now=waits)
        except BaseException:  # an interruption of this thread, wherever it was
            self._leave(job)
            raise
        return job.outcome()

    def _job(self, task: T) -> Job[T, R]:
        return Job(task)

    def _lead(self, run: Callable[[list[Job[T, R]]], None], own: Job[T, R]) -> None:
        """Run one batch, which begins with the leader's own job; then another thread leads."""
        with self._lock:
            own.batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        try:
            run(own.batch)
        except BaseException as error:
            own.fail(error)
        self._leave(own)

    def _leave(self, own: Job[T, R]) -> None:
        """Wake whoever is served, and let another lead. Done twice it does no more than once."""
        with self._lock:
            own.gone = True  # whatever becomes of another's batch that it is in
            if own in self._waiting:  # what has not begun shall not begin
                self._waiting.remove(own)
            if own.leads:
                again = [job for job in own.batch if not job.settled and not job.gone]
                own.leads, own.batch = False, [job for job in own.batch if job.settled]
                self._waiting[:0] = again
                self._led = bool(self._waiting)
                if self._waiting:
                    self._waiting[0].leads = True
                    self._waiting[0].wake()
        for job in own.batch:
            if job.settled:
                job.wake()
