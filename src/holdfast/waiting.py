"""Waiting: for another thread, for work that takes long, or for a moment to come.

A thread that has one question just waits. One that has many at once, as the server keeps one, must
not: it leaves the question where it is, goes on with the others and comes back. Such a thread says
so here, and whatever has to wait in the midst of a question asks here how.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

__all__ = ["Bell", "Host", "bell", "elsewhere", "host", "is_shared", "sleep"]

T = TypeVar("T")


class Bell(Protocol):
    """What one waits for and another rings, once."""

    def wait(self) -> None:
        """Until it rings; at once if it has rung."""
        ...

    def ring(self) -> None:
        """From any thread. The second time nothing happens."""
        ...


class Host(Protocol):
    """A thread that has many questions at once; each of these is called by one of them."""

    def bell(self) -> Bell:
        """One for which this question can wait."""
        ...

    def elsewhere(self, work: Callable[[], T], *, now: bool) -> T:
        """What the work returns, or raises, in another thread: `now`, or soon with others."""
        ...

    def sleep(self, seconds: float) -> None:
        """Go on with others for so long."""
        ...


class _Here(threading.local):
    host: Host | None = None


_here = _Here()


class _Lock:
    """The bell of a thread that has one question."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self) -> None:
        self._lock.acquire()

    def ring(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            return


def host(this: Host) -> None:
    """Say that this thread has many questions, from now until it ends."""
    _here.host = this


def is_shared() -> bool:
    """Whether this thread has many questions."""
    return _here.host is not None


def bell() -> Bell:
    """A new bell, for which the question that asks for it can wait."""
    return _Lock() if _here.host is None else _here.host.bell()


def elsewhere(work: Callable[[], T], *, now: bool = False) -> T:
    """What the work returns. It may take long: no other question waits for it.

    It begins when others may want the same, for which one time is enough; or `now`.

    >>> elsewhere(lambda: 6 * 7)
    42
    """
    return work() if _here.host is None else _here.host.elsewhere(work, now=now)


def sleep(seconds: float) -> None:
    """Wait for so long."""
    if _here.host is None:
        time.sleep(seconds)
    else:
        _here.host.sleep(seconds)
