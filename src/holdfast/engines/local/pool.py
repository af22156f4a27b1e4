"""The pool: workers that are started once, asked together, and replaced when they die."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.jobs import Job
from holdfast.engines.local.worker import UNREADABLE, Question, Range, Setup
from holdfast.engines.processes import Worker, WorkerDied, WorkerTimeout
from holdfast.errors import Damaged, Infeasible

__all__ = ["Pool", "Progress"]

Progress = Callable[[int, int], None]

_STARTS = 3  # of a worker, before it is given up
_GIVES = 2  # of a question to a worker that dies of it
_WORKER = "holdfast.engines.local.worker"
_READ_SECONDS = 600.0  # for blocks to be read: what a worker itself may take, beside the function
# One thread in each process, and sets in the same order in all: values depend on neither.
_ENVIRONMENT = {
    "LOKY_MAX_CPU_COUNT": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


class _Seat:
    """A place for one worker, and the question that it was given."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._worker: Worker | None = None
        self._job: Job | None = None
        self._open = False
        self._lock = threading.Lock()

    def open(self) -> None:
        """Start a worker, and allow others to follow it; none is waited for."""
        with self._lock:
            self._open = True
        self._start()

    def _start(self) -> Worker:
        """The worker, a new one if the last one has died."""
        with self._lock:  # none is started after the last one was killed
            if not self._open:
                needed, given = "an engine that stays open", "it was closed meanwhile"
                raise Infeasible("Evaluating Python functions", needed, given, "Ask again.")
            if self._worker is None or not self._worker.alive:
                self._worker = Worker(_WORKER, self._setup, environment=_ENVIRONMENT)
                self._job = None
            return self._worker

    def call(self, message: object, seconds: float) -> bytes:
        """What the worker replies."""
        for _ in range(_STARTS):
            worker = self._start()
            try:
                worker.ready()
            except (WorkerDied, WorkerTimeout):
                continue  # no function, and no block, has been near it: the machine is busy
            return worker.call(message, seconds + _READ_SECONDS)
        remedy = "Try `python -c 'import holdfast, pandas, pyarrow, cloudpickle'`."
        needed, given = "a Python process that starts", f"{_STARTS} of them did not"
        raise Infeasible("Evaluating Python functions", needed, given, remedy)

    def ask(self, job: Job, start: int, stop: int, *, isolated: bool) -> NDArray[np.float64]:
        """One value per block. A worker that dies is no failure yet: each block is tried alone."""
        blocks = stop - start
        if self._give(job):
            with contextlib.suppress(WorkerDied, WorkerTimeout):
                reply = self.call(Range(start, stop, isolated), _longest(job, blocks))
                if reply == UNREADABLE:
                    remedy = "Restore the holdout from a copy."
                    raise Damaged("The sealed blocks", "files that can be read", "others", remedy)
                if len(reply) == 8 * blocks:
                    return np.frombuffer(reply, np.float64)
            if blocks > 1:
                each = [self.ask(job, k, k + 1, isolated=True) for k in range(start, stop)]
                return np.concatenate(each)
        return np.full(blocks, np.nan)

    def _give(self, job: Job) -> bool:
        """Whether the worker has the question: a package that it names may end a process."""
        for _ in range(_GIVES):
            self._start()
            if self._job is job:
                return True
            with contextlib.suppress(WorkerDied, WorkerTimeout):
                self.call(Question(job), job.limits.load_seconds)
                self._job = job
        return self._job is job

    def kill(self) -> None:
        """End the worker; whoever waits for it gets none in its place."""
        with self._lock:
            self._open = False
            if self._worker is not None:
                self._worker.kill()


def _work(
    job: Job,
    results: queue.SimpleQueue[Any],
    isolated: bool,
    seat: _Seat,
    share: Sequence[tuple[int, int]],
) -> None:
    """Ask one worker for its ranges, one after the other."""
    try:
        for start, stop in share:
            results.put((start, seat.ask(job, start, stop, isolated=isolated)))
    except BaseException as error:
        results.put((0, error))


def _longest(job: Job, blocks: int) -> float:
    """The seconds that a range can take if the worker keeps to its limits."""
    limits = job.limits
    return 3 * blocks * (limits.block_seconds + limits.load_seconds) + blocks * limits.batch_seconds


class Pool:
    """Some workers on one store. One question at a time; `close` ends them."""

    def __init__(self, setup: Setup, workers: int) -> None:
        self._seats = [_Seat(setup) for _ in range(workers)]
        self._lock = threading.Lock()
        self._owner = os.getpid()

    @property
    def workers(self) -> int:
        """How many workers there may be."""
        return len(self._seats)

    def call(self, message: object, seconds: float) -> bytes:
        """One message to one worker."""
        with self._lock:
            self._seats[0].open()
            return self._seats[0].call(message, seconds)

    def ask(
        self,
        job: Job,
        ranges: Sequence[tuple[int, int]],
        *,
        isolated: bool,
        progress: Progress | None,
    ) -> NDArray[np.float64]:
        """The values of consecutive ranges of blocks, in their order.

        Each range goes to a fixed worker, which may still hold its blocks from the last question.
        """
        first, total = ranges[0][0], ranges[-1][1] - ranges[0][0]
        values = np.full(total, np.nan)
        with self._lock:
            shares = [ranges[k :: len(self._seats)] for k in range(len(self._seats))]
            busy = [(seat, share) for seat, share in zip(self._seats, shares, strict=True) if share]
            for seat, _ in busy:
                seat.open()  # here, all at once: they import while none is waited for
            done = 0
            with contextlib.closing(self._gather(job, busy, isolated=isolated)) as gathered:
                for start, got in gathered:
                    values[start - first : start - first + len(got)] = got
                    done += len(got)
                    if progress is not None:
                        progress(done, total)
        return values

    def _gather(
        self, job: Job, busy: Sequence[tuple[_Seat, Any]], *, isolated: bool
    ) -> Generator[tuple[int, NDArray[np.float64]]]:
        """Values as they come, one thread to a worker; an interruption kills the workers."""
        results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        ask = partial(_work, job, results, isolated)
        threads = [threading.Thread(target=ask, args=pair, daemon=True) for pair in busy]
        for thread in threads:
            thread.start()
        try:
            for _ in range(sum(len(share) for _, share in busy)):
                start, got = results.get()
                if isinstance(got, BaseException):
                    raise got
                yield start, got
        except BaseException:
            for seat, _ in busy:
                seat.kill()
            raise
        finally:
            for thread in threads:
                thread.join()

    def close(self) -> None:
        """End the workers; they start again if they are asked again."""
        if os.getpid() != self._owner:
            return
        for seat in self._seats:
            seat.kill()
