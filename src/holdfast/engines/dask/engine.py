"""The engines of a store on a Dask cluster: the same values, from many machines."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.dask.address import Address
from holdfast.engines.dask.connection import Connection, connect
from holdfast.engines.dask.gathering import Gathering, Piece, longest
from holdfast.engines.dask.questions import Question, pack, question, versions
from holdfast.engines.dask.replies import numbers_of
from holdfast.engines.dask.tasks import check, evaluate, verify
from holdfast.engines.dask.trials import (
    TRIAL_BLOCKS,
    Outcome,
    Trial,
    make_trial,
    public_blocks,
    try_out,
)
from holdfast.engines.local.estimators import LocalEstimator
from holdfast.engines.local.terms import failed_sum
from holdfast.engines.local.worker import batch_blocks
from holdfast.engines.source import Engines, Limits, Progress
from holdfast.errors import Unavailable, whole_number
from holdfast.protocols.source import UNIT, Bounds

if TYPE_CHECKING:
    from holdfast.engines.store.reader import BlockStore

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
        self._outcomes: dict[tuple[object, bool, Bounds], Outcome] = {}

    def values(
        self, estimator: Any, start: int, stop: int, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        if isinstance(estimator, LocalEstimator):
            estimator = self.local.check(estimator)
        failure = estimator.failure if isinstance(estimator, LocalEstimator) else math.nan
        found = np.full(self._blocks(start, stop), failure)
        self._fill(found, self._question((estimator,), sums=False), start, progress)
        return found

    def sums(
        self,
        function: Any,
        where: Any,
        start: int,
        stop: int,
        bounds: Bounds = UNIT,
        progress: Progress | None = None,
    ) -> NDArray[np.int64]:
        functions = tuple(
            self.local.check(each) if isinstance(each, LocalEstimator) else each
            for each in (function, where)
        )
        failed = failed_sum(function, self.store.units)
        found = np.full(self._blocks(start, stop), failed, np.int64)
        self._fill(found, self._question(functions, sums=True, bounds=bounds), start, progress)
        return found

    def admit(
        self,
        function: LocalEstimator,
        *,
        rows: bool = False,
        symmetric: bool = False,
        bounds: Bounds = UNIT,
    ) -> tuple[str, ...]:
        """Tried on public blocks, here and on every worker: all must give the same.

        A worker that comes later does so before it evaluates anything.
        """
        self.connection.wait_for_workers()
        assumptions = super().admit(function, rows=rows, symmetric=symmetric, bounds=bounds)
        if not function.built_in:
            self._try_here(function, sums=rows, bounds=bounds)
        functions = (function, None) if rows else (function,)
        asked = self._question(functions, sums=rows, bounds=bounds)
        seconds = self._address.patience + longest(asked.own_limits(), TRIAL_BLOCKS)
        told = versions(asked.packages)
        for reply in self.connection.ask_each_worker(check, told, pack(asked), seconds=seconds):
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

    def _question(
        self, functions: tuple[Any, ...], *, sums: bool, bounds: Bounds = UNIT
    ) -> Question:
        trials = [self._trial(each, sums=sums, bounds=bounds) for each in functions]
        more: dict[str, Any] = {"sums": sums, "trials": trials, "bounds": bounds}
        return question(self._packed, functions, self.limits, **more)

    def _try_here(self, function: LocalEstimator, *, sums: bool, bounds: Bounds) -> Outcome:
        blocks = public_blocks(self.local, self.store, function, sums=sums)
        found = try_out(self.local, function, blocks, sums=sums, bounds=bounds)
        self._outcomes[_known_by(function), sums, bounds] = found
        return found

    def _trial(self, function: Any, *, sums: bool, bounds: Bounds) -> Trial | None:
        """What workers compare, of a function that was admitted."""
        if not isinstance(function, LocalEstimator):
            return None
        known = self._outcomes.get((_known_by(function), sums, bounds))
        if known is None and any(key[0] == _known_by(function) for key in self._outcomes):
            known = self._try_here(function, sums=sums, bounds=bounds)
        if known is None:
            return None
        blocks = public_blocks(self.local, self.store, function, sums=sums)
        about = pack((self._packed, self.limits.told(), sums, bounds, function.payload))
        return make_trial(blocks, known, about)

    def _verify_shards(self) -> None:
        asked = self._question((None,), sums=False)
        pieces = [Piece(shard.first, shard.stop) for shard in self.store.shards]
        gathering = Gathering(self.connection, asked, verify)
        with closing(gathering.answers(pieces, lambda: None)) as checked:
            for _, found in checked:
                if found is None:
                    given = "those who looked at one of the shards ended"
                    needed, remedy = "workers that stay", "Look at their memory and their logs."
                    raise Unavailable("Verifying on the cluster", needed, given, remedy)

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
            batch = _batch(asked, self.store.units)
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


def _known_by(function: LocalEstimator) -> object:
    return function.identity or function.payload


def _is_python(functions: Iterable[Any]) -> bool:
    return any(isinstance(each, LocalEstimator) for each in functions)


def _batch(asked: Question, units: int) -> int:
    """How many blocks a function gets at once, if it gets several: tasks have whole batches."""
    several = asked.sums or all(each is None or each.vectorised for each in asked.functions)
    return batch_blocks(units, sums=asked.sums) if several else 1


def _verify_here(store: BlockStore, files: tuple[Any, ...], holdout: str) -> None:
    from holdfast.engines.store.verified import verify_once

    if files:
        verify_once(store.folder, files, f"{holdout}-open")
