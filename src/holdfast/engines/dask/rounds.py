"""A round: some tasks, from the first that is submitted until each has ended in some way."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError
from typing import Any

from holdfast.engines.dask.connection import Connection, broken

__all__ = ["TICK", "Round", "Submit", "Tick"]

Submit = Callable[[int], Any]
Tick = Callable[[], None]

TICK = 0.2  # seconds between two looks at whether anybody still wants to wait
_LOOK = 2.0  # … at the workers
_AHEAD = 2  # tasks for each thread of the cluster: those on a worker that dies are all suspect
_RESULT_SECONDS = 5.0  # for a reply that is there to come here
_LATER = object()


class Round:
    """Waits for tasks; `seconds` is what each may run: an engine ends what takes longer."""

    def __init__(self, connection: Connection, seconds: float, tick: Tick) -> None:
        self._connection, self._seconds, self._tick = connection, seconds, tick
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._waiting: dict[Any, tuple[int, Any]] = {}  # number and future, by key
        self._began = self._looked = time.monotonic()
        self._threads = 0
        self._deserted: float | None = None
        self._seen: dict[Any, float] = {}  # since when a task was seen to run
        self.shared = False
        """Whether other tasks of this process were on their way at the same time."""

    def replies(self, submit: Submit, count: int) -> Generator[tuple[int, Any]]:
        """Each of the numbers 0, …, count − 1 with its reply; None if it ended its workers."""
        begun = 0
        try:
            with self._connection.flight() as flight:
                self._look()
                while begun < count or self._waiting:
                    while begun < count and len(self._waiting) < self._window:
                        self._wait_for(begun, submit(begun))
                        begun += 1
                    self._watch()
                    for key, reply in self._some():
                        number, _ = self._waiting.pop(key)
                        self.shared = flight.shared
                        yield number, reply
        finally:
            self._connection.cancel([future for _, future in self._waiting.values()])

    @property
    def _window(self) -> int:
        return _AHEAD * max(1, self._threads)

    def _wait_for(self, number: int, future: Any) -> None:
        self._waiting[future.key] = number, future
        future.add_done_callback(self._done.put)

    def _some(self) -> list[tuple[Any, Any]]:
        """Those that have ended by now."""
        try:
            future = self._done.get(timeout=TICK)
        except queue.Empty:
            self._tick()
            return []
        if future.key not in self._waiting:
            return []
        reply = self._reply(future)
        if reply is _LATER:
            future.add_done_callback(self._done.put)
            return []
        return [(future.key, reply)]

    def _reply(self, future: Any) -> Any:
        from distributed import KilledWorker

        if future.status in ("pending", "lost"):  # its worker has died with the reply
            return _LATER
        try:
            return future.result(timeout=_RESULT_SECONDS)
        except KilledWorker:
            return None
        except TimeoutError:
            return _LATER
        except (CancelledError, OSError):
            raise self._connection.lost() from None
        except Exception as error:
            raise broken(error) from None

    def _watch(self) -> None:
        """Look at the cluster, now and then; raise if a task has run for too long."""
        now = time.monotonic()
        if now < self._looked + _LOOK:
            return
        self._look()
        if now < self._began + self._seconds:
            return
        running = self._connection.running([future for _, future in self._waiting.values()])
        self._seen = {key: self._seen.get(key, now) for key in running & set(self._waiting)}
        if any(now > since + self._seconds for since in self._seen.values()):
            raise self._connection.stuck(self._seconds)  # the engine would have ended it

    def _look(self) -> None:
        """See which workers there are: not for long without any."""
        self._threads = self._connection.threads()
        self._looked = now = time.monotonic()
        if self._threads:
            self._deserted = None
            return
        self._deserted = now if self._deserted is None else self._deserted
        if now - self._deserted > self._connection.address.patience:
            raise self._connection.deserted()
