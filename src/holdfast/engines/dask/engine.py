"""The engines of a store on a Dask cluster: the same values, from many machines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from numpy.typing import NDArray

from holdfast.concurrency import Renewed
from holdfast.engines.dask.worker import (
    CONTROLS,
    TRIAL_BLOCKS,
    ClusterQuestion,
    ExpectedOutcome,
    Numbers,
    Reply,
    check,
    control,
    evaluate,
    hold,
    numbers_of,
    pack,
    public_blocks,
    question,
    try_out,
    verify,
    versions,
)
from holdfast.engines.python.estimator import LocalEstimator, failed_sum, stored_columns
from holdfast.engines.python.worker import batch_blocks
from holdfast.engines.source import Engines, Limits, Progress
from holdfast.errors import HoldfastError, InvalidInput, Unavailable, real_number, whole_number
from holdfast.protocols.source import UNIT, Bounds
from holdfast.store.user_state import verify_once

if TYPE_CHECKING:
    from holdfast.store.blocks import BlockStore

__all__ = ["ClusterAddress", "ClusterConnection", "DaskEngines", "Tasks", "connect"]

Task = Callable[..., Reply]
Tick = Callable[[], None]

AGAIN = "What was charged stays charged; ask again, with the same request key."
TICK = 0.2  # seconds between two looks at whether anybody still wants to wait
LOOK = 2.0  # … at the workers
_SCHEMES = {"dask": "tcp", "dask+tls": "tls"}
_PATIENCE = 300.0
_CONNECT_SECONDS = 30.0
_PAUSE = 0.5  # seconds between two looks at whether workers have come
_ASKS = 3  # of all workers, while those that were asked die
_INLINE = 2**16  # bytes: a longer question is sent once, not with every task
_PART = 2**22  # bytes: Dask warns of tasks from ten million on
_LOUD = ("distributed", "distributed.client", "tornado.application")
_AHEAD = 2  # tasks for each thread of the cluster: those on a worker that dies are all suspect
_RESULT_SECONDS = 5.0  # for a reply that is there to come here
_TRIES = 3  # of one block, while other tasks of this process may have ended its worker
_SLACK = 1200.0  # for the starts of processes, and a file that comes from afar
_FEWEST_BLOCKS = 8  # of a task with a Python function, if all threads have one: two are asked twice
_SHARES = 4  # of the blocks, for each thread of the cluster: so progress shows


@dataclass(frozen=True)
class ClusterAddress:
    """A scheduler, and how many seconds a question waits for a cluster without workers."""

    scheduler: str
    patience: float = _PATIENCE

    @classmethod
    def read(cls, url: str) -> ClusterAddress:
        """The address in a URL.

        >>> ClusterAddress.read("dask://scheduler:8786?patience=60")
        ClusterAddress(scheduler='tcp://scheduler:8786', patience=60.0)
        >>> ClusterAddress.read("dask+tls://10.0.0.1:8786").scheduler
        'tls://10.0.0.1:8786'
        """
        allowed = "dask://host:port or dask+tls://host:port, as in dask://10.0.0.1:8786"
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
            options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        except ValueError:
            raise InvalidInput("engine", url, allowed) from None
        plain = not parts.path.strip("/") and not parts.fragment and parts.username is None
        if parts.scheme not in _SCHEMES or not host or not port or not plain:
            raise InvalidInput("engine", url, allowed)
        if set(options) - {"patience"}:
            raise InvalidInput("engine", url, "an address whose one option is patience=seconds")
        text = options.get("patience", str(_PATIENCE))
        try:
            seconds = float(text)
        except ValueError:
            raise InvalidInput("patience", text, "a number of seconds") from None
        patience = real_number("patience", seconds, 0, open_low=True)
        host = f"[{host}]" if ":" in host else host
        return cls(f"{_SCHEMES[parts.scheme]}://{host}:{port}", patience)


class ClusterConnection(Renewed):
    """A Dask client, made when it is needed, and again after it has lost its scheduler.

    Safe to share between threads; a fork gets a client of its own.
    """

    def __init__(self, address: ClusterAddress) -> None:
        self.address = address
        self._client: Any = None
        super().__init__()

    def _renew(self) -> None:
        if self._client is not None:  # after a fork: its thread is not here
            _left.append(self._client)
        self._client = None
        self._users: set[int] = set()
        self._lock = threading.Lock()
        self._under_way: set[Tasks] = set()
        self.isolation = threading.Lock()
        """Held by whoever tries tasks one at a time, to see which of them ends its worker."""

    def use(self, user: object) -> None:
        """Keep the line open until this user has released it."""
        with self._lock:
            self._users.add(id(user))

    @property
    def client(self) -> Any:
        """The client, connected."""
        with self._lock:
            if self._client is not None and self._client.status not in ("running", "connecting"):
                self._client = None
            if self._client is None:
                self._client = _new_client(self.address)
            return self._client

    def release(self, user: object) -> None:
        """One user has no more to ask. After the last, the line is closed; the next opens it."""
        with self._lock:
            self._users.discard(id(user))
            if self._users:
                return
            client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=2)

    @contextlib.contextmanager
    def noted(self, tasks: Tasks) -> Iterator[None]:
        """Around tasks that are under way: all that are at the same time are shared."""
        with self._lock:
            tasks.shared = bool(self._under_way)
            for each in self._under_way:
                each.shared = True
            self._under_way.add(tasks)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.discard(tasks)

    def workers(self) -> dict[str, int]:
        """The threads of every worker that takes tasks, by its address."""
        with self._speaking() as client:
            told = self._call(client, client.scheduler.identity, n_workers=-1)
        found: Mapping[str, Any] = told["workers"]
        running = {name: each for name, each in found.items() if each["status"] == "running"}
        return {name: int(each["nthreads"]) for name, each in running.items()}

    def threads(self) -> int:
        """How many threads these workers have."""
        return sum(self.workers().values())

    def wait_for_workers(self) -> None:
        """Return when there is a worker; raise when there was none for too long."""
        deadline = time.monotonic() + self.address.patience
        while not self.threads():
            if time.monotonic() > deadline:
                raise self.deserted()
            time.sleep(_PAUSE)

    def ask_each_worker(
        self, function: Callable[..., Any], *arguments: object, seconds: float
    ) -> list[Reply]:
        """What the workers say that are there now; one that dies meanwhile says nothing."""
        for _ in range(_ASKS):
            told = self._told(function, arguments, seconds)
            errors = [each for each in told if isinstance(each, Exception)]
            for error in errors:
                if not isinstance(error, OSError):
                    raise broken(error)
            if len(errors) < len(told):
                return [each for each in told if not isinstance(each, Exception)]
            self.wait_for_workers()
        raise self.unstable()

    def _told(
        self, function: Callable[..., Any], arguments: tuple[object, ...], seconds: float
    ) -> list[Any]:
        workers, deadline = list(self.workers()), time.monotonic() + seconds
        with self._speaking() as client:
            run = client._run(function, *arguments, workers=workers, on_error="return")
            asked = asyncio.run_coroutine_threadsafe(run, client.loop.asyncio_loop)
            try:
                while not wait([asked], LOOK).done and time.monotonic() < deadline:
                    self.workers()  # a scheduler that answers no more ends this
                if asked.done():
                    return list(asked.result().values())
            finally:
                asked.cancel()
        raise self.stuck(seconds)

    def starts(self, token: str) -> int:
        """How many workers have begun a control."""
        with self._speaking() as client:
            events = self._call(client, client.scheduler.events, topic=CONTROLS)
        return sum(each == token for _, each in events)

    def _call(self, client: Any, what: Any, **arguments: object) -> Any:
        """What the scheduler says: one that was stopped says nothing, for ever."""
        return client.sync(what, callback_timeout=self.address.patience, **arguments)

    def send(self, question: object) -> Any:
        """A question as tasks take it: a long one is kept by the cluster, not sent with each."""
        text = pack(question)
        if len(text) <= _INLINE:
            return text
        parts = [text[k : k + _PART] for k in range(0, len(text), _PART)]
        with self._speaking() as client:
            return [client.submit(hold, part, pure=False) for part in parts]

    def submit(self, task: Task, start: int, stop: int, **more: object) -> Any:
        """A future for some blocks."""
        # Of any worker: Dask forgets tasks that prefer one if all workers die before others come.
        key = f"holdfast-{task.__name__}-{uuid.uuid4().hex}"
        with self._speaking() as client:
            return client.submit(task, start, stop, key=key, pure=False, **more)

    @contextlib.contextmanager
    def _speaking(self) -> Iterator[Any]:
        client = self.client
        try:
            yield client
        except (AttributeError, CancelledError, OSError, RuntimeError):  # a line that was cut
            raise self.lost() from None

    def running(self, futures: Sequence[Any]) -> set[Any]:
        """The keys of those that a worker evaluates right now."""
        keys = [future.key for future in futures]
        with contextlib.suppress(Exception):
            client = self.client
            stacks: Mapping[str, Mapping[Any, object]] = self._call(
                client, client.scheduler.call_stack, keys=keys
            )
            return {key for each in stacks.values() for key in each}
        return set()

    def cancel(self, futures: Sequence[Any]) -> None:
        """Take tasks back; those that run see it themselves."""
        if futures:
            with contextlib.suppress(Exception):
                self.client.cancel(list(futures))

    def lost(self, again: str = AGAIN) -> ConnectionError:
        """That the scheduler is not there."""
        return ConnectionError(
            f"The Dask scheduler at {self.address.scheduler} does not answer. Start it, or look "
            f"at the network between here and there. {again}"
        )

    def deserted(self, again: str = AGAIN) -> TimeoutError:
        """That there are no workers."""
        return TimeoutError(
            f"The Dask cluster at {self.address.scheduler} has had no worker for "
            f"{self.address.patience:g} seconds. Start workers: dask worker "
            f"{self.address.scheduler}. {again}"
        )

    def unstable(self) -> ConnectionError:
        """That workers die, and not of what they evaluate."""
        return ConnectionError(
            f"The Dask cluster at {self.address.scheduler} loses its workers, even those that "
            f"evaluate nothing, so that it cannot be told which blocks fail. See what ends them: "
            f"their logs, the memory of their machines, who else uses them. {AGAIN}"
        )

    def stuck(self, seconds: float) -> TimeoutError:
        """That a task runs for longer than its engine lets it."""
        return TimeoutError(
            f"A worker of the Dask cluster at {self.address.scheduler} has not ended a task in "
            f"{seconds:,.0f} seconds, though each estimator is stopped long before. See what "
            f"holds it up: its log, its machine. {AGAIN}"
        )


def broken(error: Exception) -> Unavailable:
    """That a worker, or the scheduler, cannot run what it was sent: no task raises."""
    needed = "Holdfast on the scheduler and on all workers, as here"
    given = f"a task could not be run ({type(error).__name__})"
    remedy = "Install the same packages on all of them, and look at their logs."
    return Unavailable("Evaluating on the cluster", needed, given, remedy)


_left: list[Any] = []  # clients of the process that this one was forked from: freed, they close
_open: dict[ClusterAddress, ClusterConnection] = {}


def connect(address: ClusterAddress) -> ClusterConnection:
    """The process's connection to this scheduler."""
    known = _open.get(address)
    return known or _open.setdefault(address, ClusterConnection(address))


def _new_client(address: ClusterAddress) -> Any:
    first = "distributed" not in sys.modules
    try:
        import distributed
    except ImportError:
        wanted = "pip install 'dask[dataframe]' distributed fsspec"
        message = f"The engine dask:// needs Dask, here and on its workers: {wanted}."
        raise HoldfastError(message) from None
    if first:  # nobody else here uses it: what it has to say, Holdfast says in its own words
        for name in _LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL)
    seconds = min(_CONNECT_SECONDS, address.patience)
    try:
        make: Callable[..., Any] = distributed.Client
        return make(address.scheduler, timeout=seconds, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ConnectionError(
            f"There is no Dask scheduler at {address.scheduler} ({type(error).__name__}: "
            f"{str(error)[:200]}). Start one: dask scheduler. Nothing was evaluated."
        ) from None


class Tasks:
    """Some tasks, from the first that is submitted until each has ended in some way.

    `seconds` is what each may run: an engine ends what takes longer.
    """

    again = AGAIN
    """What is said if nobody is there to wait for."""

    def __init__(
        self, connection: ClusterConnection, tick: Tick, seconds: float = math.inf
    ) -> None:
        self._connection, self._tick, self._seconds = connection, tick, seconds
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._waiting: dict[Any, tuple[int, Any]] = {}  # number and future, by key
        self._began = self._looked = time.monotonic()
        self._threads = 0
        self._deserted: float | None = None
        self._seen: dict[Any, float] = {}  # since when a task was seen to run
        self.shared = False
        """Whether other tasks of this process were under way at the same time."""

    def replies(
        self, submit: Callable[[int], Any], count: int, *, at_once: bool = False
    ) -> Generator[tuple[int, Any]]:
        """Each of the numbers 0, …, count − 1 with its reply; None if it ended its workers.

        No more are under way than the cluster can use, unless all were submitted `at_once`.
        """
        begun = 0
        try:
            with self._connection.noted(self):
                self.look()
                while begun < count or self._waiting:
                    most = count if at_once else _AHEAD * max(1, self._threads)
                    while begun < count and len(self._waiting) < most:
                        future = submit(begun)
                        self._waiting[future.key] = begun, future
                        future.add_done_callback(self._done.put)
                        begun += 1
                    self._watch()
                    try:
                        future = self._done.get(timeout=TICK)
                    except queue.Empty:
                        self._tick()
                        continue
                    if future.key in self._waiting:
                        yield from self._reply(future)
        finally:
            self._connection.cancel([future for _, future in self._waiting.values()])

    def _reply(self, future: Any) -> Generator[tuple[int, Any]]:
        """The reply, if it is there and does not come later."""
        from distributed import KilledWorker

        reply, later = None, future.status in ("pending", "lost")  # its worker has died with it
        try:
            reply = None if later else future.result(timeout=_RESULT_SECONDS)
        except KilledWorker:
            pass
        except TimeoutError:
            later = True
        except (CancelledError, OSError):
            raise self._connection.lost(self.again) from None
        except Exception as error:
            raise self.failed(error) from None
        if later:
            future.add_done_callback(self._done.put)
        else:
            yield self._waiting.pop(future.key)[0], reply

    def failed(self, error: Exception) -> HoldfastError:
        """That a task has raised: none of Holdfast's own does."""
        return broken(error)

    def _watch(self) -> None:
        """Look at the cluster, now and then; raise if a task has run for too long."""
        now = time.monotonic()
        if now < self._looked + LOOK:
            return
        self.look()
        if now < self._began + self._seconds:
            return
        running = self._connection.running([future for _, future in self._waiting.values()])
        self._seen = {key: self._seen.get(key, now) for key in running & set(self._waiting)}
        if any(now > since + self._seconds for since in self._seen.values()):
            raise self._connection.stuck(self._seconds)  # the engine would have ended it

    def look(self) -> None:
        """See which workers there are: not for long without any."""
        self._threads = self._connection.threads()
        self._looked = now = time.monotonic()
        if self._threads:
            self._deserted = None
            return
        self._deserted = now if self._deserted is None else self._deserted
        if now - self._deserted > self._connection.address.patience:
            raise self._connection.deserted(self.again)


def longest(limits: Limits, blocks: int) -> float:
    """The seconds that a task can take if its engine keeps to its limits."""
    alone = 4 * blocks * (limits.block_seconds + 120.0)
    return limits.seconds * (1 + blocks // 1024) + alone + _SLACK


class QuestionTasks:
    """One question, asked of ranges of blocks on a cluster.

    a worker dies             Dask runs its tasks elsewhere: the values are the same
    workers die of a task     its blocks are asked one at a time; one that still ends workers
                              has failed
    workers die without one   an error: no block has failed if a control that does nothing
                              ends too
    a task does not end       an error: the engine on the worker would have ended it
    no worker, no scheduler   an error, after as many seconds as the user has patience
    """

    def __init__(
        self, connection: ClusterConnection, question: ClusterQuestion, task: Task, width: int = 1
    ) -> None:
        self._connection, self._question, self._task = connection, question, task
        self._width = width  # the numbers of each block
        self._versions = versions(question.packages)
        self._limits = question.own_limits()

    def answers(
        self, parts: Sequence[range], tick: Tick
    ) -> Generator[tuple[range, Numbers | None]]:
        """Ranges of blocks with their numbers, as they come; None for one that ends its workers."""
        suspects = []
        with contextlib.closing(self._run(self._tasks(parts, tick), parts)) as found:
            for part, numbers in found:
                if numbers is None:
                    suspects.append(part)
                else:
                    yield part, numbers
        for suspect in suspects:
            for block in suspect:
                alone = range(block, block + 1)
                yield alone, self._alone(alone, tick)

    def _alone(self, block: range, tick: Tick) -> Numbers | None:
        """One block, while no other suspect is asked from here."""
        lock = self._connection.isolation
        while not lock.acquire(timeout=TICK):
            tick()
        try:
            for _ in range(_TRIES):
                tasks, began = self._tasks([block], tick), time.monotonic()
                [(_, numbers)] = self._run(tasks, [block])
                if numbers is not None:
                    return numbers
                if not tasks.shared:
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
        told = {"seconds": seconds, "token": token}
        tasks = Tasks(line, tick, seconds + _SLACK)
        [(_, reply)] = tasks.replies(lambda _: line.submit(control, 0, 1, **told), 1)
        if reply is None or line.starts(token) > 1:
            raise line.unstable()

    def _tasks(self, parts: Sequence[range], tick: Tick) -> Tasks:
        most = max(map(len, parts))
        return Tasks(self._connection, tick, longest(self._limits, most + TRIAL_BLOCKS))

    def _run(self, tasks: Tasks, parts: Sequence[range]) -> Generator[tuple[range, Numbers | None]]:
        line = self._connection
        told = {"versions": self._versions, "question": line.send(self._question)}

        def submit(number: int) -> Any:
            return line.submit(self._task, parts[number].start, parts[number].stop, **told)

        with contextlib.closing(tasks.replies(submit, len(parts))) as replies:
            for number, reply in replies:
                part, numbers = parts[number], None
                if reply is not None:
                    count = len(part) * self._width
                    numbers = numbers_of(reply, count, integers=self._question.sums)
                yield part, numbers


class DaskEngines(Engines):
    """The engines of one store, on the cluster at `url`: see `ClusterAddress`.

    Each shard is a task. SQL runs on a whole shard, as it does on one machine, so that every bit of
    its values is the same; what Python functions are asked may be several tasks.
    """

    def __init__(self, store: BlockStore, limits: Limits | None, url: str) -> None:
        super().__init__(store, limits)
        self._address = ClusterAddress.read(url)
        # Workers have other folders to work in.
        self._packed = pack(type(store)(store.folder.absolute(), store.manifest))
        self._verified = False
        self._expected: dict[tuple[object, bool, Bounds], ExpectedOutcome] = {}

    @property
    def connection(self) -> ClusterConnection:
        """The connection of this process to the cluster."""
        found = connect(self._address)
        found.use(self)
        return found

    def close(self) -> None:
        """Let go of the cluster and end the workers here. All start again if they are needed."""
        super().close()
        connect(self._address).release(self)

    def values(
        self, estimator: Any, start: int, stop: int, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        failure = estimator.failure if isinstance(estimator, LocalEstimator) else math.nan
        found = np.full((self._blocks(start, stop), 1), failure)
        self._fill(found, self._question((estimator,), sums=False), start, progress)
        return found.reshape(-1)

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
        units = self.store.units
        width = units if terms else 1
        shape, failed = (self._blocks(start, stop), width), failed_sum(function, units // width)
        found = np.full(shape, failed, np.int64)
        asked = self._question((function, where), sums=True, terms=terms, bounds=bounds)
        self._fill(found, asked, start, progress)
        return found.reshape(-1)

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
        names = {shard.name for shard in self.store.shards}
        here = tuple(file for file in self.store.kept_files if file.name not in names)
        if here:
            verify_once(self.store.folder, here, f"{holdout}-open")
        shards = [range(shard.first, shard.stop) for shard in self.store.shards]
        tasks = QuestionTasks(self.connection, self._question((None,), sums=False), verify)
        with contextlib.closing(tasks.answers(shards, lambda: None)) as checked:
            for _, found in checked:
                if found is None:
                    given = "those who looked at one of the shards ended"
                    needed, remedy = "workers that stay", "Look at their memory and their logs."
                    raise Unavailable("Verifying on the cluster", needed, given, remedy)
        self._verified = True

    def _blocks(self, start: int, stop: int) -> int:
        last = whole_number("stop", stop, 1, self.store.blocks)
        return last - whole_number("start", start, 0, last - 1)

    def _question(
        self, functions: tuple[Any, ...], *, sums: bool, terms: bool = False, bounds: Bounds = UNIT
    ) -> ClusterQuestion:
        """With what workers compare, of functions that were admitted; Holdfast's own need none."""
        expected: list[ExpectedOutcome | None] = []
        for function in functions:
            known = None
            if isinstance(function, LocalEstimator):
                stored_columns(function, self.store)  # or it is refused
            if isinstance(function, LocalEstimator) and not function.own:
                name = _known_by(function)
                known = self._expected.get((name, sums, bounds))
                if known is None and any(key[0] == name for key in self._expected):
                    known = self._try_here(function, sums=sums, bounds=bounds)
            expected.append(known)
        more: dict[str, Any] = {"expected": tuple(expected), "bounds": bounds, "terms": terms}
        return question(self._packed, functions, self.limits, sums=sums, **more)

    def _try_here(self, function: LocalEstimator, *, sums: bool, bounds: Bounds) -> ExpectedOutcome:
        blocks = public_blocks(self.local, function, sums=sums)
        found = try_out(self.local, function, blocks, sums=sums, bounds=bounds)
        about = pack((self._packed, self.limits.told, sums, bounds, function.payload))
        made = ExpectedOutcome.make(blocks, found, about)
        self._expected[_known_by(function), sums, bounds] = made
        return made

    def _fill(
        self, found: NDArray[Any], asked: ClusterQuestion, start: int, progress: Progress | None
    ) -> None:
        """Fill the rows of `found`, one for each block, but for those that have failed."""
        done, total = 0, len(found)

        def tell() -> None:
            if progress is not None:
                progress(done, total)

        tell()
        parts = self._parts(asked, start, start + total)
        tasks = QuestionTasks(self.connection, asked, evaluate, found.shape[1])
        with contextlib.closing(tasks.answers(parts, tell)) as answers:
            for part, numbers in answers:
                if numbers is not None:
                    rows = found[part.start - start : part.stop - start]
                    rows[:] = numbers.reshape(rows.shape)
                done += len(part)
                tell()

    def _parts(self, asked: ClusterQuestion, start: int, stop: int) -> list[range]:
        """The shards of these blocks, or parts of them where a cluster would be idle otherwise."""
        size, functions = stop - start, asked.functions
        if (
            any(isinstance(each, LocalEstimator) for each in functions)
            and self.store.manifest.location is None
        ):
            threads = max(1, self.connection.threads())
            fewest = min(_FEWEST_BLOCKS, -(-size // threads))
            size = max(fewest, -(-size // (_SHARES * threads)))
            if asked.sums or all(each is None or each.vectorised for each in functions):
                batch = batch_blocks(self.store.units, sums=asked.sums)
                size = -(-size // batch) * batch  # a function gets several: whole batches
        parts: list[range] = []
        for shard in self.store.overlapping(start, stop):
            end = min(stop, shard.stop)
            lows = range(max(start, shard.first), end, size)
            parts += [range(low, min(low + size, end)) for low in lows]
        return parts


def _known_by(function: LocalEstimator) -> object:
    return function.identity or function.payload
