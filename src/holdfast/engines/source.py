"""One store and its engines: values and sums of its blocks."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import SqlEstimator, SqlTerm
from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.protocols.source import UNIT, Bounds
from holdfast.store.blocks import OPEN_FILE, BlockStore, Contents, Manifest, Shard, read_contents
from holdfast.store.user_state import verify_once

if TYPE_CHECKING:
    from holdfast.engines.python.engine import LocalEngine
    from holdfast.engines.python.estimator import LocalEstimator
    from holdfast.engines.python.metrics import PredictionEngine

__all__ = [
    "Engines",
    "Limits",
    "OpenBlocks",
    "check_engine",
    "open_blocks",
    "open_engines",
    "open_store",
    "store_of",
]

Progress = Callable[[int, int], None]
_BLOCK_SECONDS, _MEMORY = 10.0, 4 * 2**30  # the usual: a question does not mention them


class Limits:
    """How much time and memory an estimator may use; on a block that takes more it has failed.

    `seconds` are for all blocks together: beyond, each is evaluated by itself. `workers` are the
    processes, or threads, that an engine may use at once on one machine. What could take more than
    `open_seconds` on the open part is not asked of it.
    """

    def __init__(
        self,
        *,
        block_seconds: float = _BLOCK_SECONDS,
        seconds: float = 600.0,
        memory: int = _MEMORY,
        workers: int | None = None,
        open_seconds: float = math.inf,
    ) -> None:
        self.block_seconds = real_number("block_seconds", block_seconds, 0, open_low=True)
        self.seconds = real_number("seconds", seconds, 0, open_low=True)
        self.memory = whole_number("memory", memory, 2**28, 2**50)
        self.workers = workers
        self.open_seconds = open_seconds
        # What decides whether a block fails, where it is not the usual: another question then.
        self.told: dict[str, float] | None = None
        if (self.block_seconds, self.memory) != (_BLOCK_SECONDS, _MEMORY):
            self.told = {"block_seconds": self.block_seconds, "memory": self.memory}


class Engines:
    """The engines of one store, on this machine; their processes start when they are needed.

    Blocks are asked shard by shard, as a cluster asks them: only one need be here at a time.
    """

    def __init__(self, store: BlockStore, limits: Limits | None = None) -> None:
        self.store, self.limits = store, limits or Limits()
        self.sql = SqlEngine(
            store,
            memory_limit=self.limits.memory,
            threads=self.limits.workers,
            time_limit=self.limits.seconds,
            block_time_limit=self.limits.block_seconds,
        )
        self._local: LocalEngine | None = None
        self._own: PredictionEngine | None = None
        self._lock = threading.Lock()

    def values(
        self, estimator: Any, start: int, stop: int, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """The estimator's value on the blocks start, …, stop − 1; NaN is a failure."""
        if isinstance(estimator, SqlEstimator):
            return self.sql.values(estimator, start, stop, progress=progress)
        ask = partial(self._engine(estimator).values, estimator)
        return self._shard_by_shard(ask, start, stop, progress)

    def sums(
        self,
        function: Any,
        where: Any,
        start: int,
        stop: int,
        bounds: Bounds = UNIT,
        progress: Progress | None = None,
        *,
        terms: bool = False,
    ) -> NDArray[np.int64]:
        """For each of the blocks the sum of its units' terms in parts of 2⁻¹⁶; None is the term 1.

        `where` is a condition of what is summed. Terms are scaled from `bounds` to [0, 1]. With
        `terms`, what is added up, of one unit after another, 0 for those not summed: the units of a
        block are in the order of their numbers, whatever is asked.
        """
        how: dict[str, Any] = {"bounds": bounds, "terms": terms}
        if isinstance(function, SqlTerm) or isinstance(where, SqlTerm):
            return self.sql.sums(function, where, start, stop, progress=progress, **how)
        ask = partial(self._engine(function, where).sums, function, where, **how)
        return self._shard_by_shard(ask, start, stop, progress)

    def admit(
        self,
        function: LocalEstimator,
        *,
        rows: bool = False,
        symmetric: bool = False,
        bounds: Bounds = UNIT,
    ) -> tuple[str, ...]:
        """What is assumed of a Python function, after a try on public blocks; see `LocalEngine`."""
        if function.own:  # nothing of the user's runs: there is nothing to try
            from holdfast.engines.python.estimator import stored_columns

            stored_columns(function, self.store)
            return function.assumes
        tried = self.local.admit(function, rows=rows, symmetric=symmetric, bounds=bounds)
        return tried.assumptions

    def verify(self, holdout: str) -> None:
        """Raise `Damaged` unless the files are as they were written."""
        verify_once(self.store.folder, self.store.kept_files, holdout)

    def _engine(self, function: Any, where: Any = None) -> LocalEngine | PredictionEngine:
        if where is not None or not getattr(function, "own", False):
            return self.local
        return self.own

    def _shard_by_shard(
        self, ask: Callable[..., NDArray[Any]], start: int, stop: int, progress: Progress | None
    ) -> NDArray[Any]:
        """What is asked of the blocks, of each shard while it is there; told as of the whole."""
        found = []
        stop = whole_number("stop", stop, 1, self.store.blocks)
        start = whole_number("start", start, 0, stop - 1)
        for shard in self.store.overlapping(start, stop):
            first, last = max(start, shard.first), min(stop, shard.stop)

            def tell(more: int, _: int, before: int = first - start) -> None:
                assert progress is not None
                progress(before + more, stop - start)

            with self.store.held(shard):
                found.append(ask(first, last, progress=None if progress is None else tell))
        return found[0] if len(found) == 1 else np.concatenate(found)

    @property
    def local(self) -> LocalEngine:
        """The engine for Python callables."""
        from holdfast.engines.python.engine import LocalEngine

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

    @property
    def own(self) -> PredictionEngine:
        """The engine for Holdfast's own metrics of predictions."""
        from holdfast.engines.python.metrics import PredictionEngine

        found = self._own
        if found is None:  # if two threads make one, either will do
            self._own = found = PredictionEngine(self.store)
        return found

    def close(self) -> None:
        """End the workers. They start again by themselves if they are needed again."""
        self.sql.close()
        with self._lock:
            if self._local is not None:
                self._local.close()
            self._local = self._own = None


_CLUSTERS = ("dask://", "dask+tls://")


def open_store(folder: Path, manifest: Manifest) -> BlockStore:
    """The blocks of the holdout in a folder, whose ledger has this manifest."""
    return store_of(folder, read_contents(folder, manifest))


def store_of(folder: Path, contents: Contents) -> BlockStore:
    """The blocks in a folder, or where the manifest says that they are."""
    if contents.location is None:
        return BlockStore(folder, contents)
    from holdfast.store.remote import RemoteStore

    return RemoteStore(folder, contents)


def check_engine(engine: str | None) -> str | None:
    """The same, if it is something that can be asked."""
    if engine is None or str(engine).startswith(_CLUSTERS):
        return engine
    allowed = "left out, for this machine, or dask://HOST:PORT, the address of a Dask scheduler"
    raise InvalidInput("engine", engine, allowed)


def open_engines(store: BlockStore, limits: Limits | None, engine: str | None = None) -> Engines:
    """The engines of this machine, or those of a cluster at an address."""
    if check_engine(engine) is None:
        return Engines(store, limits)
    from holdfast.engines.dask.engine import DaskEngines

    assert engine is not None
    return DaskEngines(store, limits, engine)


class OpenBlocks(BlockStore):
    """A store whose blocks, as large as the sealed ones, are cut from the open part.

    Anybody may see it. An estimator's values on it show where its answers may lie, at no price.
    """

    def __init__(self, folder: Path, manifest: Contents) -> None:
        super().__init__(folder, manifest)
        rest = manifest.leftover_units > 0  # a last block that is not whole
        self.shards = (Shard(OPEN_FILE, 0, self.blocks + rest, manifest.block_rows),)


def open_blocks(store: BlockStore) -> OpenBlocks | None:
    """The open part as blocks; None if it does not fill one."""
    sealed = store.manifest
    blocks = sealed.open_units // sealed.block_units
    if not blocks:
        return None
    manifest = replace(
        sealed,
        rows=sealed.open_rows,
        units=sealed.open_units,
        blocks=blocks,
        block_rows=sealed.open_rows,  # of the file: the last block may be incomplete, and is unused
        open_units=0,
        open_rows=0,
        leftover_units=sealed.open_units - blocks * sealed.block_units,
        leftover_rows=0,
        shards=(),
        location=None,
    )
    made = OpenBlocks(store.folder, manifest)
    made.data_rows = sealed.rows
    return made
