"""Locks between processes and threads, which the kernel releases when their holder dies.

Each acquisition opens its file anew: a lock of this sort belongs to the open file, so it also
works between the threads of one process. A fork would share the open file with the child, and the
lock would live as long as the longer-lived of the two; the child therefore closes its copies.

And turns: what the threads of one process use one after another, and no fork may copy in use.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from weakref import WeakSet

from holdfast.errors import InvalidInput

__all__ = ["STRIPES", "ForkSafe", "Stripes", "exclusive", "forked"]

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
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
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


# ForkSafe: one thread at a time, and no open connection when the process forks.
#
# A child that inherits an open connection to SQLite inherits its idea of the locks, but not the
# locks: what it opens itself is then not protected, and the parent may delete the log that it
# writes to (https://sqlite.org/howtocorrupt.html, section 2.6). So such a connection is closed
# before a fork and opened again when it is needed, on either side. One to a server may stay with
# the parent.


_all: WeakSet[ForkSafe] = WeakSet()
_waiting: list[ForkSafe] = []  # whose turn a fork has taken


class ForkSafe(ABC):
    """Something with a connection, which one thread uses at a time."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._owner: int | None = None
        self._lost = False  # in a child that was forked in the middle of a turn
        _all.add(self)

    @abstractmethod
    def _disconnect(self) -> None:
        """Close the connection, if there is one."""

    @abstractmethod
    def _abandon(self) -> None:
        """Forget the connection without closing it."""

    @property
    def _mine(self) -> bool:
        """Whether it is this thread's turn."""
        return self._owner == threading.get_ident()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        me = threading.get_ident()
        if self._owner == me:  # it would wait for its own thread
            hint = "End the one that is running first; what it must read, it can read itself."
            raise InvalidInput("ledger", "a use inside its own transaction", "used in turn", hint)
        with self._mutex:
            if self._lost:
                raise forked()
            self._owner = me
            try:
                yield
            finally:
                self._owner = None

    def _part(self) -> None:
        """Make ready to be copied. A connection that the copy can abandon may stay open."""
        self._disconnect()

    def _before_fork(self) -> None:
        if not self._mine:  # then wait for the thread whose turn it is
            self._mutex.acquire()
            _waiting.append(self)
            self._part()

    def _after_fork_in_child(self) -> None:
        if self._mine:
            self._abandon()
            self._lost, self._owner, self._mutex = True, None, threading.Lock()


def forked() -> InvalidInput:
    """What a child is told that was forked in the middle of a turn."""
    hint = "Fork outside of transactions, or open the ledger in a process started anew."
    return InvalidInput("ledger", "one forked inside a transaction", "a whole one", hint)


def _before() -> None:
    for each in sorted(_all, key=id):  # one order: two threads may fork at once
        each._before_fork()


def _after() -> None:
    while _waiting:
        _waiting.pop()._mutex.release()


def _after_in_child() -> None:
    _after()
    for each in list(_all):
        each._after_fork_in_child()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
