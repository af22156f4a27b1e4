"""Locks between processes and threads, which the kernel releases when their holder dies.

Each acquisition opens its file anew: a lock of this sort belongs to the open file, so it also
works between the threads of one process. A fork would share the open file with the child, and the
lock would live as long as the longer-lived of the two; the child therefore closes its copies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path

from holdfast import concurrency
from holdfast.errors import InvalidInput

__all__ = ["Stripes", "exclusive"]

STRIPES = 2**12
_SHORTEST, _LONGEST = 0.0001, 0.002  # seconds between two tries
_RAREST = 0.02  # … of a question that may wait for another's whole evaluation

_held: dict[object, int] = {}  # the descriptors of the locks that this process holds
# The folders in which this thread, or question of many in a thread, holds locks.
_mine: ContextVar[frozenset[tuple[int, str]]] = ContextVar("_mine", default=frozenset())


def _close_in_child() -> None:
    for descriptor in _held.values():
        os.close(descriptor)  # closing a copy leaves the parent's lock in place
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)


@contextmanager
def exclusive(path: Path, *, timeout: float | None = None) -> Iterator[None]:
    """Hold the file's lock. With a timeout (seconds), give up with a `TimeoutError`."""
    key = _take(path, timeout)
    try:
        yield
    finally:
        _give_back(key)


def _take(path: Path | str, timeout: float | None = None) -> object:
    """A key to the file's lock, which is held until it is given back."""
    key = object()
    descriptor = _held[key] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if timeout is None:
            _take_whenever(descriptor)
        else:
            _wait(descriptor, path, timeout)
    except BaseException:
        _give_back(key)
        raise
    return key


def _take_whenever(descriptor: int) -> None:
    if not concurrency.is_shared():
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    pause = _LONGEST
    while not _try(descriptor):
        concurrency.sleep(pause)
        pause = min(1.5 * pause, _RAREST)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _give_back(key: object) -> None:
    descriptor = _held.pop(key, None)
    if descriptor is not None:  # None in a child that was forked meanwhile
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _wait(descriptor: int, path: Path | str, timeout: float) -> None:
    """Try often and at even intervals: a waiter's chances do not fall with its time in the queue.

    SQLite's own way, to wait longer after every failure, starves whoever has waited longest.
    """
    end = time.monotonic() + timeout
    pause = _SHORTEST
    while not _try(descriptor):
        if time.monotonic() > end:
            message = (
                f"Another process has held {path} for more than {timeout:g} seconds. It may be "
                "stopped: let it go on, or end it. Nothing was written."
            )
            raise TimeoutError(message)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)


class Stripes:
    """Locks by name: 4,096 files, a name's file chosen by its hash.

    All names are taken in one call, in the order of their files, so that no two callers can wait
    for each other. For the same reason, a question that holds some may not take more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.resolve())  # a path is slow to join, and to compare

    @contextmanager
    def hold(self, *names: str) -> Iterator[None]:
        """Hold the locks of all the names."""
        if self.held:
            hint = "Take all names in one call."
            raise InvalidInput("names", names, "taken by a thread that holds no lock yet", hint)
        stripes = sorted({_stripe(name) for name in names})
        taken: list[object] = []
        place = self._place()
        _mine.set(_mine.get() | {place})
        try:
            for stripe in stripes:  # one by one: what is held if the next one fails is given back
                taken.append(_take(f"{self._folder}{os.sep}{stripe:03x}"))  # noqa: PERF401
            yield
        finally:
            for each in reversed(taken):
                _give_back(each)
            _mine.set(_mine.get() - {place})

    @property
    def held(self) -> bool:
        """Whether this thread, or this question of many in it, holds some."""
        return self._place() in _mine.get()

    def _place(self) -> tuple[int, str]:
        return os.getpid(), self._folder  # a forked child holds nothing


def _stripe(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big") % STRIPES
