"""Locks between processes and threads, which the kernel releases when their holder dies.

Each acquisition opens its file anew: a lock of this sort belongs to the open file, so it also
works between the threads of one process. A fork would share the open file with the child, and the
lock would live as long as the longer-lived of the two; the child therefore closes its copies.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from holdfast.errors import InvalidInput

__all__ = ["Stripes", "exclusive"]

STRIPES = 256
_SHORTEST, _LONGEST = 0.0001, 0.002  # seconds between two tries

_held: dict[object, int] = {}  # the descriptors of the locks that this process holds
_mine = threading.local()  # the folders in which this thread holds locks


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
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            _wait(descriptor, path, timeout)
    except BaseException:
        _give_back(key)
        raise
    return key


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
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                message = (
                    f"Another process has held {path} for more than {timeout:g} seconds. It may be "
                    "stopped: let it go on, or end it. Nothing was written."
                )
                raise TimeoutError(message) from None
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)


class Stripes:
    """Locks by name: 256 files, a name's file chosen by its hash.

    All names are taken in one call, in the order of their files, so that no two callers can wait
    for each other. For the same reason, a thread that holds some may not take more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.resolve())  # a path is slow to join, and to compare

    @contextmanager
    def hold(self, *names: str) -> Iterator[None]:
        """Hold the locks of all the names."""
        if self.held:
            hint = "Take all names in one call."
            raise InvalidInput("names", names, "taken by a thread that holds no lock yet", hint)
        stripes = sorted({sha256(name.encode()).digest()[0] % STRIPES for name in names})
        mine, key = self._place()
        taken: list[object] = []
        mine.add(key)
        try:
            for stripe in stripes:  # one by one: what is held if the next one fails is given back
                taken.append(_take(f"{self._folder}{os.sep}{stripe:02x}"))  # noqa: PERF401
            yield
        finally:
            for each in reversed(taken):
                _give_back(each)
            mine.discard(key)

    @property
    def held(self) -> bool:
        """Whether this thread holds some."""
        mine, key = self._place()
        return key in mine

    def _place(self) -> tuple[set[tuple[int, str]], tuple[int, str]]:
        """What the thread holds, and this folder in it; a forked child holds nothing."""
        if not hasattr(_mine, "folders"):
            _mine.folders = set()
        return _mine.folders, (os.getpid(), self._folder)
