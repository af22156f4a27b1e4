"""The engines of a store on a Dask cluster: the same values, from many machines."""

from __future__ import annotations

import math
import queue
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.dask.connection import Address, Connection, Task, broken, connect
from holdfast.engines.dask.worker import (
    TRIAL_BLOCKS,
    Numbers,
    Outcome,
    Question,
    Trial,
    check,
    control,
    evaluate,
    make_trial,
    numbers_of,
    pack,
    public_blocks,
    question,
    try_out,
    verify,
    versions,
)
from holdfast.engines.python.estimator import LocalEstimator, checked_estimator, failed_sum
from holdfast.engines.python.worker import batch_blocks
from holdfast.engines.source import Engines, Limits, Progress
from holdfast.errors import Unavailable, whole_number
from holdfast.protocols.source import UNIT, Bounds

if TYPE_CHECKING:
    from holdfast.store.blocks import BlockStore

__all__ = [
    "TICK",
    "DaskEngines",
    "Gathering",
    "Piece",
    "Round",
    "Submit",
    "Tick",
    "longest",
]


# A round: some tasks, from the first that is submitted until each has ended in some way.


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


# One question on a cluster: what becomes of its tasks when workers die, or are not there.
#
# a worker dies             Dask runs its tasks elsewhere: the values are the same
# workers die of a task     its blocks are asked one at a time; one that still ends workers has
# failed
# workers die without one   an error: no block has failed if a control that does nothing ends too
# a task does not end       an error: the engine on the worker would have ended it
# no worker, no scheduler   an error, after as many seconds as the user has patience


_TRIES = 3  # of one block, while other tasks of this process may have ended its worker
_SLACK = 1200.0  # for the starts of processes, and a file that comes from afar


class Piece(NamedTuple):
    """The blocks start, …, stop − 1, all of one shard."""

    start: int
    stop: int


def longest(limits: Limits, blocks: int) -> float:
    """The seconds that a task can take if its engine keeps to its limits."""
    alone = 4 * blocks * (limits.block_seconds + 120.0)
    return limits.seconds * (1 + blocks // 1024) + alone + _SLACK


class Gathering:
    """One question, asked of pieces of a store on a cluster."""

    def __init__(self, connection: Connection, question: Question, task: Task) -> None:
        self._connection, self._question, self._task = connection, question, task
        self._versions = versions(question.packages)
        self._limits = question.own_limits()

    def answers(
        self, pieces: Sequence[Piece], tick: Tick
    ) -> Generator[tuple[Piece, Numbers | None]]:
        """Every piece with its numbers, as they come; None for blocks that end their workers."""
        suspects = []
        with closing(self._run(self._round(pieces, tick), pieces)) as found:
            for piece, numbers in found:
                if numbers is None:
                    suspects.append(piece)
                else:
                    yield piece, numbers
        for suspect in suspects:
            for block in range(suspect.start, suspect.stop):
                alone = Piece(block, block + 1)
                yield alone, self._alone(alone, tick)

    def _alone(self, piece: Piece, tick: Tick) -> Numbers | None:
        """One block, while no other suspect is asked from here."""
        lock = self._connection.isolation
        while not lock.acquire(timeout=TICK):
            tick()
        try:
            for _ in range(_TRIES):
                tried, began = self._round([piece], tick), time.monotonic()
                [(_, numbers)] = self._run(tried, [piece])
                if numbers is not None:
                    return numbers
                if not tried.shared:
                    self._control(time.monotonic() - began, tick)
                    return None
        finally:
            lock.release()
        raise self._connection.unstable()

    def _control(self, seconds: float, tick: Tick) -> None:
        """Raise if workers die as well while one of them does nothing for so long.

        Then they are killed by others, and a block that ended with them has not failed. What
        becomes of a control does not depend on the data.
        """
        line, token = self._connection, uuid.uuid4().hex
        seconds = min(seconds, longest(self._limits, 1))
        tries = Round(line, seconds + _SLACK, tick)
        told = {"seconds": seconds, "token": token}
        [(_, reply)] = tries.replies(lambda _: line.submit(control, 0, 1, **told), 1)
        if reply is None or line.starts(token) > 1:
            raise line.unstable()

    def _round(self, pieces: Sequence[Piece], tick: Tick) -> Round:
        most = max(piece.stop - piece.start for piece in pieces)
        return Round(self._connection, longest(self._limits, most + TRIAL_BLOCKS), tick)

    def _run(
        self, tries: Round, pieces: Sequence[Piece]
    ) -> Generator[tuple[Piece, Numbers | None]]:
        line, text = self._connection, self._connection.send(self._question)

        def submit(number: int) -> Any:
            told = {"versions": self._versions, "question": text}
            return line.submit(self._task, *pieces[number], **told)

        with closing(tries.replies(submit, len(pieces))) as replies:
            for number, reply in replies:
                piece, numbers = pieces[number], None
                if reply is not None:
                    blocks = piece.stop - piece.start
                    numbers = numbers_of(reply, blocks, integers=self._question.sums)
                yield piece, numbers


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
            estimator = checked_estimator(estimator, self.store)
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
            checked_estimator(each, self.store) if isinstance(each, LocalEstimator) else each
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
        """What workers compare, of a function that was admitted; Holdfast's own needs no trial."""
        if not isinstance(function, LocalEstimator) or function.own:
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
    from holdfast.store.user_state import verify_once

    if files:
        verify_once(store.folder, files, f"{holdout}-open")
