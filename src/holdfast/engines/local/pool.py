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
from holdfast.engines.local.seats import Seat
from holdfast.engines.local.worker import Setup

__all__ = ["Pool", "Progress"]

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
