"""Names that are held across threads, processes and machines, as long as a connection stands.

Between the threads of a process, which share a connection, names are claimed in memory; between
connections they are advisory locks of Postgres. All names are taken, or none: nobody who waits has
something that another waits for. Threads that take or release at once share a message.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from holdfast.combining import Combiner, Job, Renewed
from holdfast.errors import InvalidInput
from holdfast.ledger.postgres.sessions import Session
from holdfast.ledger.postgres.statements import key

__all__ = ["Names"]

_SHORTEST, _LONGEST = 0.0005, 0.01  # seconds between two tries

_TAKE = "SELECT k, pg_try_advisory_lock(k) FROM unnest(%s::bigint[]) AS k"
_RELEASE = "SELECT pg_advisory_unlock(k) FROM unnest(%s::bigint[]) AS k"

Reach = Callable[[], AbstractContextManager[Session]]

_mine = threading.local()  # the holdouts of which this thread holds names


@dataclass(frozen=True)
class _Wish:
    """Keys to take; or to release, in the session that has them."""

    keys: frozenset[int]
    held_by: Session | None = None


class Names(Renewed):
    """The names of one holdout. `reach` gives a session; it is given each time, not kept."""

    def __init__(self, holdout: str) -> None:
        self._holdout = holdout
        self._wishes: Combiner[_Wish, Session | None] = Combiner()
        super().__init__()

    def _renew(self) -> None:
        self._changed = threading.Condition()
        self._claimed: set[int] = set()

    @contextmanager
    def hold(self, reach: Reach, names: tuple[str, ...]) -> Iterator[Session]:
        """Hold all the names; what is given is the session that has them."""
        with self._alone(names):
            keys = frozenset(key("name", self._holdout, name) for name in names)
            with self._claim(keys):
                session = self._take(reach, keys)
                try:
                    yield session
                finally:
                    # Whatever goes wrong now, the names are free when the connection is closed.
                    with suppress(Exception):
                        if not session.closed:
                            self._wishes.do(partial(_grant, reach), _Wish(keys, session))

    def _take(self, reach: Reach, keys: frozenset[int]) -> Session:
        pause = _SHORTEST
        while True:
            session = self._wishes.do(partial(_grant, reach), _Wish(keys))
            if session is not None:
                return session
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    @contextmanager
    def _claim(self, keys: frozenset[int]) -> Iterator[None]:
        changed, claimed = self._changed, self._claimed  # a child, forked meanwhile, has others
        with changed:
            while claimed & keys:
                changed.wait()
            claimed |= keys
        try:
            yield
        finally:
            with changed:
                claimed -= keys
                changed.notify_all()

    @contextmanager
    def _alone(self, names: tuple[str, ...]) -> Iterator[None]:
        """Refuse a thread that holds some already: it might wait for itself."""
        if not hasattr(_mine, "holdouts"):
            _mine.holdouts = set()
        place = (os.getpid(), self._holdout)
        if place in _mine.holdouts:
            hint = "Take all names in one call."
            raise InvalidInput("names", names, "taken by a thread that holds no lock yet", hint)
        _mine.holdouts.add(place)
        try:
            yield
        finally:
            _mine.holdouts.discard(place)


def _grant(reach: Reach, jobs: list[Job[_Wish, Session | None]]) -> None:
    """Release, take, and give back what was taken of those who cannot have all."""
    with reach() as session:
        try:
            back = [job.task.keys for job in jobs if job.task.held_by is session]
            _release(session, frozenset().union(*back))
            wanted = [job.task.keys for job in jobs if job.task.held_by is None]
            taken = _take(session, frozenset().union(*wanted))
            vain = [keys & taken for keys in wanted if not keys <= taken]
            _release(session, frozenset().union(*vain))
        except BaseException:
            session.close()  # what it may have taken must not stay taken
            raise
        for job in jobs:
            keys = job.task.keys
            job.succeed(session if job.task.held_by is None and keys <= taken else None)


def _take(session: Session, keys: frozenset[int]) -> frozenset[int]:
    found = session.all(_TAKE, list(keys)) if keys else []
    return frozenset(each for each, is_taken in found if is_taken)


def _release(session: Session, keys: frozenset[int]) -> None:
    if keys:
        session.all(_RELEASE, list(keys))
