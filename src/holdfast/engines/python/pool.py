"""The pool: workers that are started once, asked together, and replaced when they die."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.process import Worker, WorkerDied, WorkerTimeout
from holdfast.engines.python.estimator import Job
from holdfast.engines.python.worker import (
    LOADED,
    NO_MEMORY,
    UNREADABLE,
    Control,
    Question,
    Range,
    Reading,
    Setup,
    too_large,
    unreadable,
)
from holdfast.errors import HoldfastError, Unavailable

__all__ = [
    "CONTROLS",
    "Pool",
    "Progress",
    "Seat",
]


# A seat: a place for one worker, and what becomes of the blocks with which a worker ends.
#
# What fails with a block is the block's failure, and gives NaN; what fails without one is the
# machine's, and an error. Where it could be either, a control tells them apart:
#
#     a worker ends with a range      each of its blocks is asked alone, in a new worker
#     … while it reads a block        an error: no function was near it
#     … with a block, alone again     NaN, if a control can load the function
#     a function cannot be loaded     if a control can load it, the range is asked again; if that
#                                     fails too, each of its blocks alone; then NaN
#     a question ends its workers     an error: the last of them was new, and held no block
#
# A control is a new worker that reads nothing, loads the function and asks it of nothing. There is
# one when a block is first to be laid to its own charge, and one after the last: what is gone for
# good meanwhile is seen.
#
# That a control is made may depend on the data; what becomes of it does not, for the function has
# passed one when it was admitted (see admission), unless it is malicious: it can write no file and
# end nobody else where the kernel has Landlock (see confinement), but it can leave marks that no
# Landlock forbids, as the times and modes of its files, and fail to load on them, or by the clock.
# The function is not called: one that ends its worker on public blocks too would turn each such
# end
# on sealed ones into an error that tells of them.


_STARTS = 3  # of a worker, before it is given up
_GIVES = 2  # of a question to a worker that dies of it: the second is new, and holds no block
CONTROLS = 2  # workers that may fail to load a function before it is the machine's fault
_WORKER = "holdfast.engines.python.worker"
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


class _Found(NamedTuple):
    """What a worker said of a range."""

    values: NDArray[np.float64]
    loaded: bool


class Seat:
    """A place for one worker, and the question that it was given."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._worker: Worker | None = None
        self._job: Job | None = None
        self._controlled = False
        self._doubtful = False  # whether a failure that may be the machine's is a block's
        self._open = False
        self._lock = threading.Lock()

    def open(self) -> None:
        """Start a worker, and allow others to follow it; none is waited for."""
        with self._lock:
            self._open = True
            self._controlled = self._doubtful = False
        self._start()

    def _start(self) -> Worker:
        """The worker, a new one if the last one has died."""
        with self._lock:  # none is started after the last one was killed
            if not self._open:
                needed, given = "an engine that stays open", "it was closed meanwhile"
                raise Unavailable("Evaluating Python functions", needed, given, "Ask again.")
            if self._worker is None or not self._worker.alive:
                self._worker = _started(self._setup)
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
        raise _unstarted("Try `python -c 'import holdfast, pandas, pyarrow, cloudpickle'`.")

    def ask(self, job: Job, start: int, stop: int, *, isolated: bool) -> NDArray[np.float64]:
        """One value per block, NaN for failures. A worker that dies is no failure yet."""
        found = self._range(job, start, stop, isolated=isolated)
        if found is not None and not found.loaded:
            self._control(job)
            found = self._range(job, start, stop, isolated=isolated)
        if found is None or not found.loaded:
            return np.concatenate([self._alone(job, block) for block in range(start, stop)])
        return found.values

    def _range(self, job: Job, start: int, stop: int, *, isolated: bool) -> _Found | None:
        """What a worker says of these blocks; None if it ends."""
        self._give(job)
        with contextlib.suppress(WorkerDied, WorkerTimeout):
            reply = _readable(self.call(Range(start, stop, isolated), _longest(job, stop - start)))
            if len(reply) == 1 + 8 * (stop - start):
                return _Found(np.frombuffer(reply[1:], np.float64), reply[:1] == LOADED)
        return None

    def _alone(self, job: Job, block: int) -> NDArray[np.float64]:
        """The value of a block with which a worker has ended; NaN if that happens again."""
        self._give(job)
        try:
            _readable(self.call(Reading(block, block + 1), 0.0))
        except (WorkerDied, WorkerTimeout):
            self._blame(too_large("the process that reads it was ended"))
        found = self._range(job, block, block + 1, isolated=True)
        if found is None or not found.loaded:
            self._control(job)
            self._doubtful = True
        return np.array([np.nan]) if found is None else found.values

    def settle(self, job: Job) -> None:
        """A last control, if blocks have failed that the machine may have failed since the first.

        Called when the last range has been asked.
        """
        if self._doubtful:
            self._controlled = False
            self._control(job)

    def _give(self, job: Job) -> None:
        """See that the worker has the question: a package that it names may end a process."""
        for _ in range(_GIVES):
            self._start()
            if self._job is job:
                return
            with contextlib.suppress(WorkerDied, WorkerTimeout):
                self.call(Question(job), job.limits.load_seconds)
                self._job = job
                return
        self._blame(_unloadable("processes end while they load the packages that it names"))

    def _control(self, job: Job) -> None:
        """Raise unless a new worker, which has held no block, can load the function.

        A thousand blocks that end their worker need not a thousand: the first and the last do.
        """
        if self._controlled:
            return
        for _ in range(CONTROLS):
            with self._lock:
                if self._worker is not None:
                    self._worker.kill()
            with contextlib.suppress(WorkerDied, WorkerTimeout):
                if self.call(Control(job), 3 * job.limits.load_seconds) == LOADED:
                    self._controlled = True
                    return
        given = "it can no longer be loaded, in a process that holds no data either"
        self._blame(_unloadable(given))

    def _blame(self, error: HoldfastError) -> NoReturn:
        """Raise the error, or another if the workers have ended because the engine was closed."""
        self._start()
        raise error from None

    def kill(self) -> None:
        """End the worker; whoever waits for it gets none in its place."""
        with self._lock:
            self._open = False
            if self._worker is not None:
                self._worker.kill()


def _readable(reply: bytes) -> bytes:
    """The reply, unless it says that the blocks could not be read: no function was near them."""
    if reply == UNREADABLE:
        raise unreadable()
    if reply == NO_MEMORY:
        raise too_large("there is not enough of it")
    return reply


def _started(setup: Setup) -> Worker:
    """A new worker. There may be no room for a process just now: then a little later."""
    for attempt in range(_STARTS):
        time.sleep(0.1 * attempt)
        with contextlib.suppress(OSError):
            return Worker(_WORKER, setup, environment=_ENVIRONMENT)
    raise _unstarted("Look at the machine: memory, and how many processes it allows.")


def _unstarted(remedy: str) -> Unavailable:
    needed, given = "a Python process that starts", f"{_STARTS} of them did not"
    return Unavailable("Evaluating Python functions", needed, given, remedy)


def _unloadable(given: str) -> Unavailable:
    needed = "a function that can be loaded, as when it was tried"
    remedy = "Look at the machine: memory, and the packages and files that the function needs."
    return Unavailable("Evaluating Python functions", needed, given, remedy)


def _longest(job: Job, blocks: int) -> float:
    """The seconds that a range can take if the worker keeps to its limits."""
    limits = job.limits
    return 3 * blocks * (limits.block_seconds + limits.load_seconds) + blocks * limits.batch_seconds


Progress = Callable[[int, int], None]


def _work(
    job: Job,
    results: queue.SimpleQueue[Any],
    isolated: bool,
    seat: Seat,
    share: Sequence[tuple[int, int]],
) -> None:
    """Ask one worker for its ranges, one after the other."""
    try:
        for start, stop in share:
            values = seat.ask(job, start, stop, isolated=isolated)
            if (start, stop) == share[-1]:
                seat.settle(job)
            results.put((start, values))
    except BaseException as error:
        results.put((0, error))


class Pool:
    """Some workers on one store. One question at a time; `close` ends them."""

    def __init__(self, setup: Setup, workers: int) -> None:
        self._seats = [Seat(setup) for _ in range(workers)]
        self._public = Seat(setup)  # for trials and their controls: it never holds a sealed block
        self._lock = threading.Lock()
        self._owner = os.getpid()

    @property
    def workers(self) -> int:
        """How many workers there may be."""
        return len(self._seats)

    def call(self, message: object, seconds: float) -> bytes:
        """One message to the worker that functions are tried in."""
        with self._lock:
            for seat in (self._public, *self._seats):
                seat.open()  # whoever tries will ask: they import meanwhile
            return self._public.call(message, seconds)

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
        self, job: Job, busy: Sequence[tuple[Seat, Any]], *, isolated: bool
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
        for seat in (self._public, *self._seats):
            seat.kill()
