"""The service: one request's way from its token to the holdout and back."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar

from fastapi import Request

from holdfast.concurrency import Closing
from holdfast.holdout.grants import Role
from holdfast.holdout.scoring import Scorers, read_scorers
from holdfast.server.auth import Doorman, Hosts, Seat
from holdfast.server.errors import Fault
from holdfast.server.jobs import Jobs
from holdfast.server.monitoring import Counts, log_event
from holdfast.server.scheduler import Crowd, Ending, pace_of
from holdfast.server.settings import Settings

__all__ = [
    "Rates",
    "Service",
    "service_of",
]


# Rates: how many requests one token, or one address without a token, may make.


class Rates:
    """A bucket for every name: it holds `burst` requests and fills by `rate` a second.

    >>> now = [0.0]
    >>> rates = Rates(rate=1.0, burst=2, clock=lambda: now[0])
    >>> [rates.wait("a") for _ in range(3)]
    [0.0, 0.0, 1.0]
    >>> now[0] = 1.0
    >>> rates.wait("a"), rates.wait("b")
    (0.0, 0.0)
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        *,
        names: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._burst, self._names, self._clock = rate, float(burst), names, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, name: str) -> float:
        """0 if a request may be made now, which counts it; else the seconds until one may."""
        with self._lock:
            full = self._filled(name)
            if full < 1.0:
                return (1.0 - full) / self._rate
            self._buckets[name] = (full - 1.0, self._clock())
            self._buckets.move_to_end(name)
            while len(self._buckets) > self._names:  # the one that has been quiet for longest
                self._buckets.popitem(last=False)
            return 0.0

    def _filled(self, name: str) -> float:
        full, then = self._buckets.get(name, (self._burst, 0.0))
        return min(self._burst, full + (self._clock() - then) * self._rate)


T = TypeVar("T")
_READERS = 8  # threads for what asks nothing of the data, so that questions never block it
_PATIENCE = 5.0  # seconds for what is still being answered when connections are closed
_FAILURES = 30  # attempts without a token that holds, from one address
_FAILURE_RATE = 0.5  # … and how many more a second


class Service(Closing):
    """The holdouts of a server, and everything that a request passes on its way to them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._scorers = Scorers() if settings.metrics is None else read_scorers(settings.metrics)
        self.hosts = Hosts(settings.folders, settings.engine)
        for each in self.hosts:
            each.holdout.scorers = self._scorers
        self._closing = Ending()
        self.doorman = Doorman(
            self.hosts,
            open_to_all=settings.open_to_all and settings.loopback,
            pace=pace_of(settings.slot, self._closing),
        )
        self.counts = Counts()
        self.jobs = Jobs(settings, self._closing)
        self._rates = Rates(settings.rate, settings.burst)
        self._failures = Rates(_FAILURE_RATE, _FAILURES)
        self._asking = ThreadPoolExecutor(settings.threads, "holdfast-ask")
        self._crowd = Crowd(settings.threads)
        self._reading = ThreadPoolExecutor(_READERS, "holdfast-read")
        self._asked: set[Future[Any]] = set()  # and not answered yet
        self._most = settings.threads + settings.waiting

    @property
    def metric_names(self) -> list[str]:
        """The metrics that a submission can be scored by."""
        return list(self._scorers.names)

    async def read(self, request: Request, role: Role, work: Callable[[Seat], T]) -> T:
        """Do what asks nothing of the data."""
        return await self._run(self._reading, lambda: work(self._seat(request, role)))

    async def read_all(self, request: Request, work: Callable[[list[Seat]], T]) -> T:
        """Likewise for all holdouts that the token may see."""

        def run() -> T:
            token = self._token(request)
            seats = self._let_in(request, lambda: self.doorman.seats(token))
            self._within_rate(seats[0])
            return work(seats)

        return await self._run(self._reading, run)

    async def admit(self, request: Request, role: Role) -> None:
        """Refuse whoever may not ask, before a large body of theirs is read."""
        name, token = request.path_params["holdout"], self._token(request)
        find = partial(self.doorman.seat, name, token, role)
        await self._run(self._reading, lambda: self._let_in(request, find))

    async def ask(self, request: Request, work: Callable[[Seat], T], *, light: bool = False) -> T:
        """Ask the data a question, in a thread of its own; a light one with many in one thread."""
        if len(self._asked) + self._crowd.size >= self._most:
            raise Fault("busy", "Too many questions are waiting. Ask again soon.", wait=1.0)
        if light:
            hosted = self.hosts.get(request.path_params["holdout"])
            if hosted is None or hosted.is_light:
                return await self._crowd.submit(lambda: work(self._seat(request, "analyst")))
        asked = self._asking.submit(lambda: work(self._seat(request, "analyst")))
        self._asked.add(asked)
        asked.add_done_callback(self._asked.discard)
        return await asyncio.wrap_future(asked)

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def _seat(self, request: Request, role: Role) -> Seat:
        name, token = request.path_params["holdout"], self._token(request)
        seat = self._let_in(request, lambda: self.doorman.seat(name, token, role))
        note(request, holdout=seat.hosted.name, token=seat.asker.id)
        self._within_rate(seat)
        return seat

    def _let_in(self, request: Request, find: Callable[[], T]) -> T:
        """What is found; whoever guesses at tokens is slowed down.

        A token that holds is always let in: behind a proxy all clients have one address.
        """
        try:
            return find()
        except Fault as fault:
            address = request.client.host if request.client is not None else "?"
            wait = self._failures.wait(address) if fault.kind == "unauthorized" else 0.0
            if wait:
                raise _too_many(wait) from None
            raise

    def _within_rate(self, seat: Seat) -> None:
        wait = self._rates.wait(f"{seat.hosted.name}/{seat.asker.id}")
        if wait:
            raise _too_many(wait)

    @staticmethod
    def _token(request: Request) -> str | None:
        """The token that was sent; None if there is none."""
        given = request.headers.getlist("authorization")
        if not given:
            return None
        kind, _, token = given[0].partition(" ")
        alone = len(given) == 1  # of two, a proxy may have checked the other one
        return token.strip() if alone and kind.casefold() == "bearer" else ""

    def close(self) -> None:
        """Let the questions that are being answered end, and close the holdouts.

        One that takes too long is abandoned: its price stays paid, as after a crash.
        """
        self._closing.set()
        self._crowd.end()
        self._asking.shutdown(wait=False, cancel_futures=True)
        _, asked = wait(tuple(self._asked), _PATIENCE)
        late = len(asked) + self._crowd.close(_PATIENCE)
        if (late or not self.jobs.end(_PATIENCE)) and self.settings.state is not None:
            log_event("abandoned", questions=late)
            if self.settings.workers == 1:
                shutil.rmtree(self.settings.state, ignore_errors=True)
            os._exit(0)  # a thread that waits for an evaluation cannot be stopped otherwise
        self.jobs.close()
        self._reading.shutdown(wait=True, cancel_futures=True)
        self.hosts.close()


def note(request: Request, **facts: Any) -> None:
    """Add to what the log says of a request."""
    request.scope.setdefault("holdfast_facts", {}).update(facts)


def service_of(request: Request) -> Service:
    """The service of the app that got the request."""
    service: Service = request.app.state.service
    return service


def _too_many(wait: float) -> Fault:
    return Fault("too_many", f"Too many requests: wait {math.ceil(wait)} s.", wait=wait)
