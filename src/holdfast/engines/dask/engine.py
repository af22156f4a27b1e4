"""The engines of a store on a Dask cluster: the same values, from many machines."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import whole_number
from holdfast.engines.dask.address import Address
from holdfast.engines.dask.connection import Connection, connect
from holdfast.engines.dask.gathering import Gathering, Piece
from holdfast.engines.dask.questions import Question, pack, question, versions
from holdfast.engines.dask.replies import numbers_of
from holdfast.engines.dask.tasks import check, evaluate, verify
from holdfast.engines.local.estimators import LocalEstimator
from holdfast.engines.local.worker import batch_blocks
from holdfast.engines.source import Engines, Limits, Progress
from holdfast.errors import Infeasible

if TYPE_CHECKING:
    from holdfast.engines.store import BlockStore

__all__ = ["DaskEngines"]

_FEWEST_BLOCKS = 8  # of a task with a Python function, if all threads have one: two are asked twice
_SHARES = 4  # of the blocks, for each thread of the cluster: so progress shows


class DaskEngines(Engines):
    """The engines of one store, on the cluster at `url`: see `Address`.

    Each shard is a task. SQL runs on a whole shard, as it does on one machine, so that every bit of
    its values is the same; what Python functions are asked may be several tasks.
    """

    def __init__(self, store: BlockStore, limits: Limits | None, url: str) -> None:
        super().__init__(store, limits)
        self._address = Address.read(url)
        # Workers have other folders to work in.
        self._packed = pack(type(store)(store.folder.absolute(), store.manifest))
        self._verified = False

    def values(
        self, estimator: Any, start: int, stop: int, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        if isinstance(estimator, LocalEstimator):
            estimator = self.local.check(estimator)
        failure = estimator.failure if isinstance(estimator, LocalEstimator) else math.nan
        found = np.full(self._blocks(start, stop), failure)
        self._fill(found, self._question((estimator,), sums=False), start, progress)
        return found

    def sums(self, function: Any, where: Any, start: int, stop: int) -> NDArray[np.int64]:
        functions = tuple(
            self.local.check(each) if isinstance(each, LocalEstimator) else each
            for each in (function, where)
        )
        found = np.zeros(self._blocks(start, stop), np.int64)
        self._fill(found, self._question(functions, sums=True), start, None)
        return found

    def admit(
        self, function: LocalEstimator, *, rows: bool = False, symmetric: bool = False
    ) -> tuple[str, ...]:
        """Tried here, on public blocks. The cluster has what it needs, or it is refused."""
        assumptions = super().admit(function, rows=rows, symmetric=symmetric)
        installed = versions(self._question((function,), sums=rows).packages)
        for reply in self.connection.ask_each_worker(check, installed):
            numbers_of(reply, 0, integers=False)
        return assumptions

    def verify(self, holdout: str) -> None:
        """Raise `Damaged` unless the files are as they were written: once by the cluster.

        After that every worker verifies a shard itself, before it evaluates anything on it.
        """
        if self._verified:
            self.connection.wait_for_workers()  # before anything is charged
            return
        shards = {shard.name for shard in self.store.shards}
        here = tuple(file for file in self.store.kept_files if file.name not in shards)
        _verify_here(self.store, here, holdout)
        self._verify_shards()
        self._verified = True

    @property
    def connection(self) -> Connection:
        """The connection of this process to the cluster."""
        found = connect(self._address)
        found.use(self)
        return found

    def close(self) -> None:
        """Let go of the cluster and end the workers here. All start again if they are needed."""
        super().close()
        connect(self._address).release(self)

    def _blocks(self, start: int, stop: int) -> int:
        last = whole_number("stop", stop, 1, self.store.blocks)
        return last - whole_number("start", start, 0, last - 1)

    def _question(self, functions: tuple[Any, ...], *, sums: bool) -> Question:
        return question(self._packed, functions, self.limits, sums=sums)

    def _verify_shards(self) -> None:
        asked = self._question((None,), sums=False)
        pieces = [Piece(shard.first, shard.stop) for shard in self.store.shards]
        gathering = Gathering(self.connection, asked, verify)
        with closing(gathering.answers(pieces, lambda: None)) as checked:
            for piece, found in checked:
                if found is None:
                    given = f"those who looked at blocks {piece.start:,} to {piece.stop:,} ended"
                    needed, remedy = "workers that stay", "Look at their memory and their logs."
                    raise Infeasible("Verifying on the cluster", needed, given, remedy)

    def _fill(
        self,
        found: NDArray[Any],
        asked: Question,
        start: int,
        progress: Progress | None,
    ) -> None:
        done, total = 0, len(found)

        def tell() -> None:
            if progress is not None:
                progress(done, total)

        tell()
        pieces = self._pieces(asked, start, start + total)
        gathering = Gathering(self.connection, asked, evaluate)
        with closing(gathering.answers(pieces, tell)) as answers:
            for piece, numbers in answers:
                if numbers is not None:
                    found[piece.start - start : piece.stop - start] = numbers
                done += piece.stop - piece.start
                tell()

    def _pieces(self, asked: Question, start: int, stop: int) -> list[Piece]:
        """The shards of these blocks, or parts of them where a cluster would be idle otherwise."""
        size = stop - start
        if _is_python(asked.functions) and self.store.manifest.location is None:
            batch = _batch(asked.functions, self.store.units)
            threads = max(1, self.connection.threads())
            fewest = min(_FEWEST_BLOCKS, -(-size // threads))
            share = max(fewest, -(-size // (_SHARES * threads)))
            size = -(-share // batch) * batch
        pieces: list[Piece] = []
        for shard in self.store.overlapping(start, stop):
            end = min(stop, shard.stop)
            lows = range(max(start, shard.first), end, size)
            pieces += [Piece(low, min(low + size, end)) for low in lows]
        return pieces


def _is_python(functions: Iterable[Any]) -> bool:
    return any(isinstance(each, LocalEstimator) for each in functions)


def _batch(functions: Iterable[Any], units: int) -> int:
    """How many blocks a vectorised function gets at once: tasks have whole batches of them."""
    several = all(each is None or each.vectorised for each in functions)
    return batch_blocks(units) if several else 1


def _verify_here(store: BlockStore, files: tuple[Any, ...], holdout: str) -> None:
    from holdfast.engines.store import verify_once

    if files:
        verify_once(store.folder, files, f"{holdout}-open")
