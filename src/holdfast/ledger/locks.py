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
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path

from holdfast.errors import InvalidInput

__all__ = ["STRIPES", "Stripes", "exclusive"]

STRIPES = 2**12
_SHORTEST, _LONGEST = 0.0001, 0.002  # seconds between two tries

_held: dict[object, int] = {}  # the descriptors of the locks that this process holds
# The folders in which this thread holds locks.
_mine: ContextVar[frozenset[tuple[int, str]]] = ContextVar("_mine", default=frozenset())


def _close_in_child() -> None:
    for descriptor in _held.values():
        os.close(descriptor)  # closing a copy leaves the parent's lock in place
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)


@contextmanager
def exclusive(path: Path | str, *, timeout: float | None = None) -> Iterator[None]:
    """Hold the file's lock. With a timeout (seconds), give up with a `TimeoutError`."""
    key = object()
    descriptor = _held[key] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait(descriptor, path, timeout)
        yield
    finally:
        if _held.pop(key, None) is not None:  # not so in a child that was forked meanwhile
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _wait(descriptor: int, path: Path | str, timeout: float | None) -> None:
    """Try often and at even intervals: a waiter's chances do not fall with its time in the queue.

    SQLite's own way, to wait longer after every failure, starves whoever has waited longest.
    """
    if timeout is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    end = time.monotonic() + timeout
    pause = _SHORTEST
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                message = (
                    f"Another process has held {path} for more than {timeout:g} seconds. It may be "
                    "stopped: let it go on, or end it. Nothing was written."
                )
                raise TimeoutError(message) from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        else:
            return


class Stripes:
    """Locks by name: 4,096 files, a name's file chosen by its hash.

    All names are taken in one call, in the order of their files, so that no two callers can wait
    for each other. For the same reason, a thread that holds some may not take more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.resolve())  # a path is slow to join, and to compare

    @contextmanager
    def hold(self, *names: str) -> Iterator[None]:
        """Hold the locks of all the names."""
        place = os.getpid(), self._folder  # a forked child holds nothing
        if place in _mine.get():
            hint = "Take all names in one call."
            raise InvalidInput("names", names, "taken by a thread that holds no lock yet", hint)
        stripes = set()
        for name in names:
            digest = sha256(name.encode()).digest()
            stripes.add(int.from_bytes(digest[:8], "big") % STRIPES)
        _mine.set(_mine.get() | {place})
        try:
            with ExitStack() as stack:
                for stripe in sorted(stripes):
                    stack.enter_context(exclusive(f"{self._folder}{os.sep}{stripe:03x}"))
                yield
        finally:
            _mine.set(_mine.get() - {place})

    @property
    def held(self) -> bool:
        """Whether this thread holds some."""
        return (os.getpid(), self._folder) in _mine.get()
