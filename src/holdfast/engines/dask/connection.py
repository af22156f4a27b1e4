"""The line to a scheduler: one for each process and address, opened when it is first needed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, wait
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from holdfast.concurrency import Renewed
from holdfast.engines.dask.worker import CONTROLS, Reply, hold, pack
from holdfast.errors import HoldfastError, InvalidInput, Unavailable, real_number

__all__ = [
    "Address",
    "Connection",
    "Flight",
    "broken",
    "connect",
]


# Where a cluster is: dask://host:port, with what the user says about waiting for it.


_SCHEMES = {"dask": "tcp", "dask+tls": "tls"}
_PATIENCE = 300.0


@dataclass(frozen=True)
class Address:
    """A scheduler, and how many seconds a question waits for a cluster without workers."""

    scheduler: str
    patience: float = _PATIENCE

    @classmethod
    def read(cls, url: str) -> Address:
        """The address in a URL.

        >>> Address.read("dask://scheduler:8786?patience=60")
        Address(scheduler='tcp://scheduler:8786', patience=60.0)
        >>> Address.read("dask+tls://10.0.0.1:8786").scheduler
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
        patience = _patience(options.get("patience"))
        host = f"[{host}]" if ":" in host else host
        return cls(f"{_SCHEMES[parts.scheme]}://{host}:{port}", patience)


def _patience(text: str | None) -> float:
    if text is None:
        return _PATIENCE
    try:
        seconds = float(text)
    except ValueError:
        raise InvalidInput("patience", text, "a number of seconds") from None
    return real_number("patience", seconds, 0, open_low=True)


_CONNECT_SECONDS = 30.0
_PAUSE = 0.5  # seconds between two looks at the workers
_LOOK = 2.0  # … while they are asked something
_ASKS = 3  # of all workers, while those that were asked die
_INLINE = 2**16  # bytes: a longer question is sent once, not with every task
_PART = 2**22  # bytes: Dask warns of tasks from ten million on
_AGAIN = "What was charged stays charged; ask again, with the same request key."
_LOUD = ("distributed", "distributed.client", "tornado.application")

Task = Callable[..., Reply]


class Flight:
    """Some tasks that are on their way, and whether others of this process were meanwhile."""

    def __init__(self) -> None:
        self.shared = False


class Connection(Renewed):
    """A Dask client, made when it is needed, and again after it has lost its scheduler.

    Safe to share between threads; a fork gets a client of its own.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._client: Any = None
        super().__init__()

    def _renew(self) -> None:
        if self._client is not None:  # after a fork: its thread is not here
            _left.append(self._client)
        self._client = None
        self._users: set[int] = set()
        self._lock = threading.Lock()
        self._flights: set[Flight] = set()
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
    def flight(self) -> Iterator[Flight]:
        """Around tasks that are on their way."""
        own = Flight()
        with self._lock:
            own.shared = bool(self._flights)
            for each in self._flights:
                each.shared = True
            self._flights.add(own)
        try:
            yield own
        finally:
            with self._lock:
                self._flights.discard(own)

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
                while not wait([asked], _LOOK).done and time.monotonic() < deadline:
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

    def lost(self) -> ConnectionError:
        """That the scheduler is not there."""
        return ConnectionError(
            f"The Dask scheduler at {self.address.scheduler} does not answer. Start it, or look "
            f"at the network between here and there. {_AGAIN}"
        )

    def deserted(self) -> TimeoutError:
        """That there are no workers."""
        return TimeoutError(
            f"The Dask cluster at {self.address.scheduler} has had no worker for "
            f"{self.address.patience:g} seconds. Start workers: dask worker "
            f"{self.address.scheduler}. {_AGAIN}"
        )

    def unstable(self) -> ConnectionError:
        """That workers die, and not of what they evaluate."""
        return ConnectionError(
            f"The Dask cluster at {self.address.scheduler} loses its workers, even those that "
            f"evaluate nothing, so that it cannot be told which blocks fail. See what ends them: "
            f"their logs, the memory of their machines, who else uses them. {_AGAIN}"
        )

    def stuck(self, seconds: float) -> TimeoutError:
        """That a task runs for longer than its engine lets it."""
        return TimeoutError(
            f"A worker of the Dask cluster at {self.address.scheduler} has not ended a task in "
            f"{seconds:,.0f} seconds, though each estimator is stopped long before. See what "
            f"holds it up: its log, its machine. {_AGAIN}"
        )


def broken(error: Exception) -> Unavailable:
    """That a worker, or the scheduler, cannot run what it was sent: no task raises."""
    needed = "Holdfast on the scheduler and on all workers, as here"
    given = f"a task could not be run ({type(error).__name__})"
    remedy = "Install the same packages on all of them, and look at their logs."
    return Unavailable("Evaluating on the cluster", needed, given, remedy)


_left: list[Any] = []  # clients of the process that this one was forked from: freed, they close
_open: dict[Address, Connection] = {}


def connect(address: Address) -> Connection:
    """The process's connection to this scheduler."""
    known = _open.get(address)
    return known or _open.setdefault(address, Connection(address))


def _new_client(address: Address) -> Any:
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
