"""Turns: one thread at a time, and no open connection when the process forks.

A child that inherits an open connection to SQLite inherits its idea of the locks, but not the
locks: what it opens itself is then not protected, and the parent may delete the log that it writes
to (https://sqlite.org/howtocorrupt.html, section 2.6). So such a connection is closed before a fork
and opened again when it is needed, on either side. One to a server may stay with the parent.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from holdfast.errors import InvalidInput

__all__ = ["Turns"]

_all: WeakSet[Turns] = WeakSet()
_waiting: list[Turns] = []  # whose turn a fork has taken


class Turns(ABC):
    """Something with a connection, which one thread uses at a time."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._owner: int | None = None
        self._lost = False
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
        self._not_mine()
        with self._mutex:
            self._not_lost()
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = None

    def _not_mine(self) -> None:
        """Refuse what would wait for its own thread."""
        if self._mine:
            hint = "End the one that is running first; what it must read, it can read itself."
            raise InvalidInput("ledger", "a use inside its own transaction", "used in turn", hint)

    def _not_lost(self) -> None:
        """Refuse to go on in a child that was forked in the middle of a turn."""
        if self._lost:
            hint = "Fork outside of transactions, or open the ledger in a process started anew."
            raise InvalidInput("ledger", "one forked inside a transaction", "a whole one", hint)

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
