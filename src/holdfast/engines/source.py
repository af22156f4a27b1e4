"""One store and its engines as a source of values for protocols."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import real_number, whole_number

if TYPE_CHECKING:
    from holdfast.engines.local import LocalEngine
    from holdfast.engines.sql import SqlEngine
    from holdfast.engines.store import BlockStore

__all__ = ["EngineSource", "Engines", "Limits"]

Progress = Callable[[int, int], None]

_BLOCK_SECONDS, _MEMORY = 10.0, 4 * 2**30  # the usual: a question does not mention them


class Limits:
    """How much time and memory an estimator may use; on a block that takes more it has failed.

    `seconds` are for all blocks together: beyond, each is evaluated by itself.
    """

    def __init__(
        self,
        *,
        block_seconds: float = _BLOCK_SECONDS,
        seconds: float = 600.0,
        memory: int = _MEMORY,
        workers: int | None = None,
    ) -> None:
        self.block_seconds = real_number("block_seconds", block_seconds, 0, open_low=True)
        self.seconds = real_number("seconds", seconds, 0, open_low=True)
        self.memory = whole_number("memory", memory, 2**28, 2**50)
        self.workers = workers

    def told(self) -> dict[str, float] | None:
        """What decides whether a block fails, where it is not the usual: another question then."""
        if (self.block_seconds, self.memory) == (_BLOCK_SECONDS, _MEMORY):
            return None
        return {"block_seconds": self.block_seconds, "memory": self.memory}


class Engines:
    """The engines of one store, each started when it is first needed."""

    def __init__(self, store: BlockStore, limits: Limits | None = None) -> None:
        self.store, self.limits = store, limits or Limits()
        self._sql: SqlEngine | None = None
        self._local: LocalEngine | None = None
        self._lock = threading.Lock()

    @property
    def sql(self) -> SqlEngine:
        """The engine for SQL."""
        from holdfast.engines.sql import SqlEngine

        with self._lock:
            if self._sql is None:
                limits = self.limits
                self._sql = SqlEngine(
                    self.store,
                    memory_limit=limits.memory,
                    time_limit=limits.seconds,
                    block_time_limit=limits.block_seconds,
                )
            return self._sql

    @property
    def local(self) -> LocalEngine:
        """The engine for Python callables."""
        from holdfast.engines.local import LocalEngine

        with self._lock:
            if self._local is None:
                limits = self.limits
                self._local = LocalEngine(
                    self.store,
                    workers=limits.workers,
                    memory_limit=limits.memory,
                    block_time_limit=limits.block_seconds,
                )
            return self._local

    def close(self) -> None:
        """End the workers. They start again by themselves if they are needed again."""
        with self._lock:
            for engine in (self._sql, self._local):
                if engine is not None:
                    engine.close()
            self._sql = self._local = None


class EngineSource:
    """The blocks start, …, stop − 1 of a store, as protocols ask them."""

    def __init__(
        self, engines: Engines, start: int, stop: int, progress: Progress | None = None
    ) -> None:
        self._engines, self._start, self._stop = engines, start, stop
        self._progress = progress

    @property
    def blocks(self) -> int:
        return self._stop - self._start

    @property
    def units(self) -> int:
        return self._engines.store.units

    def values(self, estimator: Any, /) -> NDArray[np.float64]:
        from holdfast.engines.sql import SqlEstimator

        if isinstance(estimator, SqlEstimator):
            return self._engines.sql.values(
                estimator, self._start, self._stop, progress=self._progress
            )
        return self._engines.local.values(
            estimator, self._start, self._stop, progress=self._progress
        )

    def sums(self, function: Any, /, where: Any = None) -> NDArray[np.int64]:
        from holdfast.engines.sql import SqlTerm

        if isinstance(function, SqlTerm) or isinstance(where, SqlTerm):
            return self._engines.sql.sums(function, where, self._start, self._stop)
        return self._engines.local.sums(function, where, self._start, self._stop)

    def part(self, start: int, stop: int, /) -> EngineSource:
        stop = whole_number("stop", stop, 1, self.blocks)
        start = whole_number("start", start, 0, stop - 1)
        first = self._start
        return EngineSource(self._engines, first + start, first + stop, self._progress)
