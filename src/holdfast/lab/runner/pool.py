"""Cells measured in parallel: finished ones come out as they are finished."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from holdfast.lab.runner.journal import Done
from holdfast.lab.runner.worker import Failure, Job, measure_cell, start_worker

__all__ = ["measure_all"]

Finished = tuple[Job, Done | Failure]

# Workers share the machine: each with as many threads as there are cores would only be slower.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_AHEAD = 2  # cells handed out for each worker, so that none waits while results are written
_DIED = "The process that measured this cell died: killed, or out of memory.\n"


def measure_all(jobs: Iterable[Job], workers: int) -> Generator[Finished]:
    """Measure every cell, in as many processes as there are workers; in this one if there are none.

    Closing the iterator, or an exception in it, ends the workers at once.
    """
    if not workers:
        for job in jobs:
            yield job, measure_cell(job)
        return
    queue = _Queue(jobs)
    while queue:  # a pool whose process died is of no more use
        with _processes(workers) as executor:
            yield from queue.drain(executor, workers)


class _Queue:
    """Cells to measure. Those in flight when a process died are tried again, one at a time."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._waiting = deque(jobs)
        self._suspects: deque[Job] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting or self._suspects)

    def drain(self, executor: ProcessPoolExecutor, workers: int) -> Iterator[Finished]:
        """Until all is done, or a process dies."""
        running: dict[Future[Done | Failure], Job] = {}
        while self or running:
            self._hand_out(executor, workers, running)
            if not running:  # the pool broke while nothing was in flight
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            lost = []
            for future in finished:
                job, problem = running.pop(future), future.exception()
                if isinstance(problem, BrokenProcessPool):
                    lost.append(job)
                else:
                    yield job, Failure(repr(problem)) if problem else future.result()
            if lost:
                lost += running.values()
                if len(lost) == 1:
                    yield lost[0], Failure(_DIED)
                else:
                    self._suspects.extend(lost)
                return

    def _hand_out(
        self,
        executor: ProcessPoolExecutor,
        workers: int,
        running: dict[Future[Done | Failure], Job],
    ) -> None:
        queue, most = (self._suspects, 1) if self._suspects else (self._waiting, _AHEAD * workers)
        while queue and len(running) < most:
            try:
                future = executor.submit(measure_cell, queue[0])
            except BrokenProcessPool:  # it shows in what is running
                return
            running[future] = queue.popleft()


@contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    before = set(multiprocessing.active_children())
    with _one_thread_each():
        # Spawned, not forked: the parent has threads, and locks that a copy would hold for ever.
        context = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(workers, context, initializer=start_worker)
        try:
            yield executor
        except BaseException:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Set where the workers will read it: before they import numpy."""
    kept = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
