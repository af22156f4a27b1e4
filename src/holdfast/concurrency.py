"""Concurrency: many writes done together, what survives a fork, and closing."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, Self, TypeVar
from weakref import WeakSet

__all__ = ["BatchedTask", "Batcher", "Closing", "Renewed"]

T = TypeVar("T")
R = TypeVar("R")


# Combining: what several threads want at once, one of them does for all.
#
#     thread 1   do(a) ── leads: run([a]) ──────────────▶ a's result
#     thread 2   do(b) ── waits ── leads: run([b, c]) ──▶ b's result
#     thread 3   do(c) ── waits ────────────────────────▶ c's result
#
# While one batch runs the next one gathers, so that batches grow with those who wait: a durable
# commit, or a message to another process, then costs the same for one as for many. Nobody is told a
# result before `run` has returned.


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


@dataclass(eq=False, slots=True)
class BatchedTask(Generic[T, R]):
    """One thread's task, and what became of it."""

    task: T
    settled: bool = False
    leads: bool = False
    gone: bool = False  # its thread waits for it no more
    batch: list[BatchedTask[T, R]] = field(default_factory=list)  # that it leads
    awake: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None
    result: R | None = None

    def succeed(self, result: R) -> None:
        """The task is done."""
        self.result, self.settled = result, True

    def fail(self, error: BaseException) -> None:
        """The task is not done, and will not be."""
        self.error, self.settled = error, True

    def reopen(self) -> None:
        """What was said of it does not count: it will be tried again."""
        self.error, self.result, self.settled = None, None, False

    def wait(self) -> None:
        """Until it is settled, or leads."""
        self.awake.wait()


class Batcher(Renewed, Generic[T, R]):
    """Gathers tasks; the leader's `run` settles every job of a batch.

    It is given with each task, not kept: whoever owns a batcher is freed as if it had none. If it
    raises, the jobs that it did not settle are tried again in a later batch, all but the leader's
    own, to which the exception belongs: so an interruption of one thread is its own.

    >>> def run(jobs: list[Job[int, int]]) -> None:
    ...     for job in jobs:
    ...         job.succeed(job.task**2)
    >>> Batcher().do(run, 7)
    49
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        super().__init__()

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[BatchedTask[T, R]] = []  # the first of them leads next
        self._led = False

    def do(self, run: Callable[[list[BatchedTask[T, R]]], None], task: T) -> R:
        """What becomes of the task, alone or with those of other threads."""
        job: BatchedTask[T, R] = BatchedTask(task)
        try:
            with self._lock:
                self._waiting.append(job)
                job.leads, self._led = not self._led, True
            if not job.leads:
                job.wait()
            if job.leads:  # one batch, which begins with its own job; then another thread leads
                with self._lock:
                    every, most = self._waiting, self._most
                    job.batch, self._waiting = every[:most], every[most:]
                try:
                    run(job.batch)
                except BaseException as error:
                    job.fail(error)
                self._leave(job)
        except BaseException:  # an interruption of this thread, wherever it was
            self._leave(job)
            raise
        assert job.settled
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]  # it is settled, and has no error

    def _leave(self, own: BatchedTask[T, R]) -> None:
        """Wake whoever is served, and let another lead. Done twice it does no more than once."""
        with self._lock:
            own.gone = True  # whatever becomes of another's batch that it is in
            if own in self._waiting:  # what has not begun shall not begin
                self._waiting.remove(own)
            if own.leads:
                served: list[BatchedTask[T, R]] = []
                again: list[BatchedTask[T, R]] = []
                for job in own.batch:
                    if job.settled:
                        served.append(job)
                    elif not job.gone:
                        again.append(job)
                own.leads, own.batch = False, served
                self._waiting[:0] = again
                self._led = bool(self._waiting)
                if self._waiting:
                    self._waiting[0].leads = True
                    self._waiting[0].awake.set()
        for job in own.batch:
            job.awake.set()


# What can be closed, and is closed by `with`.


class Closing(ABC):
    """Holds something that has to be given back."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
