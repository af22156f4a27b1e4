"""Waiting for the tasks of a creation, while Control-C is heard and the cluster is watched."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from holdfast.engines.dask.connection import Connection
from holdfast.engines.dask.creation.tasks import Failure
from holdfast.errors import Infeasible

__all__ = ["results"]

_TICK = 0.2  # seconds
_LOOK = 2.0  # seconds between two looks at the workers
_RESULT_SECONDS = 60.0
_AGAIN = "Nothing was created."


def results(
    connection: Connection, futures: Sequence[Any], tick: Callable[[], None] = lambda: None
) -> Iterator[tuple[int, Any]]:
    """The number of each future with its result, as they come; a failure is raised.

    `tick` is called while none comes. Whatever ends it early takes back the tasks that are left.
    """
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    numbers = {future.key: number for number, future in enumerate(futures)}
    waiting = {future.key: future for future in futures}
    watch = _Watch(connection)
    try:
        for future in futures:
            future.add_done_callback(done.put)
        while waiting:
            try:
                future = done.get(timeout=_TICK)
            except queue.Empty:
                watch.look()
                tick()
                continue
            if future.key not in waiting:
                continue
            if future.status in ("pending", "lost"):  # its worker has died with the result
                future.add_done_callback(done.put)
                continue
            found = _result(connection, future)
            del waiting[future.key]
            yield numbers[future.key], found
    finally:
        if waiting:
            connection.cancel(list(waiting.values()))


def _result(connection: Connection, future: Any) -> Any:
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        found = future.result(timeout=_RESULT_SECONDS)
    except KilledWorker:
        given = "one task has ended several workers"
        remedy = f"Give workers more memory, or fewer threads. {_AGAIN}"
        raise Infeasible(
            "Creating on the cluster", "workers that stay alive", given, remedy
        ) from None
    except (CancelledError, OSError):
        raise _lost(connection) from None
    except Exception as error:  # what Dask, or a task within its shuffle, has raised
        given = f"a task has met {type(error).__name__}: {str(error)[:300]}"
        remedy = f"Look at the logs of the workers. {_AGAIN}"
        raise Infeasible("Creating on the cluster", "tasks that end", given, remedy) from None
    if isinstance(found, Failure):
        raise found.error()
    return found


class _Watch:
    """Whether there is a scheduler, and a worker at least now and then."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._looked = self._peopled = time.monotonic()

    def look(self) -> None:
        """Raise if there is nobody left to wait for."""
        now = time.monotonic()
        if now < self._looked + _LOOK:
            return
        self._looked = now
        workers: dict[str, int] | None = None
        with suppress(OSError):
            workers = self._connection.workers()
        if workers is None:
            raise _lost(self._connection)
        if workers:
            self._peopled = now
        elif now > self._peopled + self._connection.address.patience:
            address = self._connection.address
            raise TimeoutError(
                f"The Dask cluster at {address.scheduler} has had no worker for "
                f"{address.patience:g} seconds. Start workers: dask worker {address.scheduler}. "
                f"{_AGAIN}"
            )


def _lost(connection: Connection) -> ConnectionError:
    return ConnectionError(
        f"The Dask scheduler at {connection.address.scheduler} does not answer. Start it, or look "
        f"at the network between here and there. {_AGAIN}"
    )
