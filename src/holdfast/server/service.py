"""The service: what requests share: holdouts, tokens, rates, bodies in flight, threads, jobs."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import shutil
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from fastapi import Request

from holdfast.concurrency import Closing
from holdfast.engines.source import Limits
from holdfast.holdout.scoring import Scorers, read_scorers, unscored
from holdfast.holdout.spec import HoldoutSpec
from holdfast.holdout.tokens import Role
from holdfast.server.auth import Authenticator, Caller, Holdouts, Served
from holdfast.server.errors import HttpError, facts_of, full
from holdfast.server.jobs import Jobs
from holdfast.server.monitoring import RequestCounts, log_event
from holdfast.server.schedule import Pacing
from holdfast.server.settings import Settings

__all__ = ["Bodies", "Callers", "Rates", "Service", "note", "service_of", "with_room"]

T = TypeVar("T")
Callers = tuple[list[Caller], dict[str, Exception]]


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


class Bodies:
    """How many bytes of bodies may be here at once: of one token, and of all together.

    What is read into memory takes many times as much there.
    """

    def __init__(self, of_one: int, of_all: int) -> None:
        self._of_one, self._of_all = of_one, of_all
        self._held: Counter[str] = Counter()  # only the loop's thread touches it

    @contextmanager
    def held(self, name: str, size: int) -> Iterator[None]:
        """Room for a body, before it is read."""
        if self._held[name] and self._held[name] + size > self._of_one:
            raise HttpError("too_many", "Your other bodies are still being read.", wait=1.0)
        if self._held.total() + size > max(self._of_all, size):
            raise HttpError("busy", "Too many bodies are being read. Send it again.", wait=1.0)
        self._held[name] += size
        try:
            yield
        finally:
            self._held[name] -= size
            if not self._held[name]:
                del self._held[name]


_READERS = 8  # threads for what asks nothing of the data, so that questions never block it
_READ_SECONDS = 60.0  # until whoever waits for them is told to come again
_PATIENCE = 5.0  # seconds for what is still being answered when connections are closed
_FAILURES = 30  # attempts without a token that holds, from one address
_FAILURE_RATE = 0.5  # … and how many more a second
_OF_ALL = 4  # of the largest bodies may be here at once
_SICK_SECONDS = 10.0  # between two lines of the log about one holdout
_SEEN_READY = 1.0  # seconds for which that it is ready stays true


class Service(Closing):
    """The holdouts of a server, and everything that a request passes on its way to them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._scorers = Scorers() if settings.metrics is None else read_scorers(settings.metrics)
        limits = Limits(open_seconds=settings.question_seconds)
        self.holdouts = Holdouts(settings.folders, settings.engine, limits)
        for each in self.holdouts:
            each.holdout.scorers = self._scorers
        self._closing = threading.Event()
        self.counts = RequestCounts()
        self.authenticator = Authenticator(
            self.holdouts,
            open_to_all=settings.open_to_all and settings.loopback,
            pacing=self._pacing,
            sick=self._log_sick,
        )
        self.jobs = Jobs(settings, self._closing)
        largest = max(settings.body_limit, settings.submission_limit)
        self.bodies = Bodies(largest, _OF_ALL * largest)
        self._rates = Rates(settings.rate, settings.burst)
        self._failures = Rates(_FAILURE_RATE, _FAILURES)
        self._asking = ThreadPoolExecutor(settings.threads, "holdfast-ask")
        self._reading = ThreadPoolExecutor(_READERS, "holdfast-read")
        self._asked: set[Future[Any]] = set()  # and not answered yet
        self._most_asked = settings.threads + settings.waiting
        # Its round may be behind others, and its slot twice as long.
        self._ask_seconds = _READ_SECONDS + 8 * settings.question_seconds
        self._ready_until = -math.inf
        self._sick_until: dict[str, float] = {}

    @property
    def metric_names(self) -> list[str]:
        """The metrics that a submission can be scored by."""
        return list(self._scorers.names)

    def over_rows(self, spec: HoldoutSpec) -> list[str]:
        """Those of them that are means over rows, of which a score can be expected."""
        if spec.target is None:
            return []
        find = self._scorers.find
        return [name for name in self._scorers.names if unscored(spec, find(name)).terms]

    def _pacing(self, served: Served, wanted: Callable[[], None]) -> Pacing:
        settings = self.settings
        return Pacing(
            served.schedule,
            self._closing,
            served.holdout,
            slot=settings.slot,
            most=settings.question_seconds,
            slowness=settings.slowness,
            late=partial(self.counts.late, served.name),
            wanted=wanted,
        )

    # Who is let in.

    async def caller(self, request: Request, name: str, role: Role) -> Caller:
        """Who asks this holdout; counted against their rate."""
        find = partial(self.authenticator.caller, name, _token(request), role)
        caller = await self._let_in(request, find)
        note(request, holdout=caller.served.name, token=caller.asker.id)
        self._within_rate(caller)
        return caller

    async def callers(self, request: Request) -> Callers:
        """Whoever asks, at all holdouts that their token may see."""
        found, away = await self._let_in(request, partial(self._callers, _token(request)))
        if found:
            self._within_rate(found[0])
        return found, away

    def _callers(self, token: str | None) -> Callers:
        found, away = self.authenticator.callers(token)
        if not found and not away:
            self.authenticator.caller("", token, "viewer")  # says what is needed
        return found, away

    async def _let_in(self, request: Request, find: Callable[[], T]) -> T:
        """What is found; whoever guesses at tokens is slowed down.

        A token that holds is always let in: behind a proxy all clients have one address.
        """
        try:
            return await self.read(find)
        except HttpError as error:
            address = request.client.host if request.client is not None else "?"
            wait = self._failures.wait(address) if error.kind == "unauthorized" else 0.0
            if wait:
                raise _too_many(wait) from None
            raise

    def _within_rate(self, caller: Caller) -> None:
        wait = self._rates.wait(f"{caller.served.name}/{caller.asker.id}")
        if wait:
            raise _too_many(wait)

    # Threads.

    async def read(self, work: Callable[[], T]) -> T:
        """Do what asks nothing of the data."""
        return await _within(_READ_SECONDS, self._reading.submit(with_room, work))

    async def ask(self, work: Callable[[], T], caller: Caller) -> T:
        """Ask the data a question."""
        if len(self._asked) >= self._most_asked:
            raise HttpError("busy", "Too many questions are waiting. Ask again soon.", wait=1.0)
        asked = self._asking.submit(with_room, work, caller)
        self._asked.add(asked)
        asked.add_done_callback(self._asked.discard)
        return await _within(self._ask_seconds, asked)

    async def ready(self) -> None:
        """Whether every ledger can be read, by the threads that requests need; else it raises."""
        if time.monotonic() >= self._ready_until:
            await self.read(self._read_heads)
            self._ready_until = time.monotonic() + _SEEN_READY

    def _log_sick(self, served: Served, error: Exception) -> None:
        """Say which holdout cannot be read, and why: not for every request of anybody's."""
        now = time.monotonic()
        if now >= self._sick_until.get(served.name, now):
            self._sick_until[served.name] = now + _SICK_SECONDS
            log_event("holdout away", level=logging.ERROR, holdout=served.name, **facts_of(error))

    def _read_heads(self) -> None:
        for served in self.holdouts:
            try:
                served.holdout.journal.head()
            except Exception as error:
                self._log_sick(served, error)
                message = "Some holdout cannot be asked now. The log says which, and why."
                raise HttpError("busy", message, wait=5.0) from None

    def close(self) -> None:
        """Let the questions that are being answered end, and close the holdouts.

        One that takes too long is abandoned: its price stays paid, as after a crash.
        """
        self._closing.set()
        self._asking.shutdown(wait=False, cancel_futures=True)
        late = len(wait(tuple(self._asked), _PATIENCE).not_done)
        end = partial(self._reading.shutdown, cancel_futures=True)
        reading = threading.Thread(target=end, daemon=True)
        reading.start()
        reading.join(_PATIENCE)
        late += reading.is_alive()
        if (late or not self.jobs.end(_PATIENCE)) and self.settings.state is not None:
            log_event("abandoned", questions=late)
            if self.settings.workers == 1:
                shutil.rmtree(self.settings.state, ignore_errors=True)
            os._exit(0)  # a thread that waits for an evaluation cannot be stopped otherwise
        self.jobs.close()
        self.holdouts.close()


async def _within(seconds: float, future: Future[T]) -> T:
    """What a thread returns. One that is too late goes on, and counts, but nobody waits for it."""
    return await asyncio.wait_for(asyncio.wrap_future(future), seconds)


def with_room(work: Callable[[], T], caller: Caller | None = None) -> T:
    """What the work returns; busy, where the machine has no room and nothing was charged."""
    try:
        return work()
    except Exception as error:
        if full(error) and (caller is None or not caller.pacing.begun):
            message = "The server has no room for it now. Ask again, with the same key."
            raise HttpError("busy", message, wait=5.0) from error
        raise


def note(request: Request, **facts: Any) -> None:
    """Add to what the log says of a request."""
    request.scope.setdefault("holdfast_facts", {}).update(facts)


def service_of(request: Request) -> Service:
    """The service of the app that got the request."""
    service: Service = request.app.state.service
    return service


def _token(request: Request) -> str | None:
    """The token that was sent; None if there is none."""
    given = request.headers.getlist("authorization")
    if not given:
        return None
    kind, _, token = given[0].partition(" ")
    alone = len(given) == 1  # of two, a proxy may have checked the other one
    return token.strip() if alone and kind.casefold() == "bearer" else ""


def _too_many(wait: float) -> HttpError:
    return HttpError("too_many", f"Too many requests: wait {math.ceil(wait)} s.", wait=wait)
