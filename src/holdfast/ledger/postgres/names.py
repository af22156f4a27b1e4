"""Names that are held across threads, processes and machines, as long as a connection stands.

Between the threads of a process, which share a connection, names are claimed in memory; between
connections they are advisory locks of Postgres. All names are taken, or none: nobody who waits has
something that another waits for. Threads that take or release at once share a message.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
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


class _Wish:
    """Keys to take; and once it is over, to release in the session that has them.

    It may end, by an interruption, while another thread takes the keys for it.
    """

    def __init__(self, keys: frozenset[int]) -> None:
        self.keys = keys
        self.held_by: Session | None = None
        self.is_over = False
        self._lock = threading.Lock()

    def grant(self, session: Session) -> bool:
        """Say which session has the keys; false if nobody wants them any more."""
        with self._lock:
            if not self.is_over:
                self.held_by = session
            return not self.is_over

    def end(self) -> Session | None:
        """Want them no more; what is returned is the session that has them."""
        with self._lock:
            self.is_over = True
            return self.held_by


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
                wish = _Wish(keys)
                try:
                    yield self._take(reach, wish)
                finally:
                    session = wish.end()
                    # Whatever goes wrong now, the names are free when the connection is closed.
                    with suppress(Exception):
                        if session is not None and not session.closed:
                            self._wishes.do(partial(_grant, reach), wish)

    def _take(self, reach: Reach, wish: _Wish) -> Session:
        pause = _SHORTEST
        while True:
            session = self._wishes.do(partial(_grant, reach), wish)
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
    """Release, take, and give back what was taken of those who cannot have all, or have gone."""
    with reach() as session:
        try:
            over = [job.task for job in jobs if job.task.is_over]
            _release(session, _keys(wish for wish in over if wish.held_by is session))
            wanted = [job.task for job in jobs if job.task not in over]
            taken = _take(session, _keys(wanted))
            granted = [wish for wish in wanted if wish.keys <= taken and wish.grant(session)]
            _release(session, taken - _keys(granted))
            for job in jobs:
                job.succeed(session if job.task in granted else None)
        except BaseException:
            session.close()  # what it may have taken must not stay taken
            raise


def _keys(wishes: Iterable[_Wish]) -> frozenset[int]:
    return frozenset().union(*(wish.keys for wish in wishes))


def _take(session: Session, keys: frozenset[int]) -> frozenset[int]:
    found = session.all(_TAKE, list(keys)) if keys else []
    return frozenset(each for each, is_taken in found if is_taken)


def _release(session: Session, keys: frozenset[int]) -> None:
    if keys:
        session.all(_RELEASE, list(keys))
