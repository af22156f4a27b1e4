"""Beside a crowd: threads for what takes long, one for each errand that is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from holdfast.concurrency import Bell

__all__ = ["Beside", "Errand"]

T = TypeVar("T")


class Errand(Generic[T]):
    """Work that is done in another thread, for a question that waits for its bell."""

    def __init__(self, work: Callable[[], T], bell: Bell) -> None:
        self._work, self._bell = work, bell
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """In the other thread."""
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error

    def ring(self) -> None:
        """It is over."""
        self._bell.ring()

    def give_up(self, error: BaseException) -> None:
        """There is no thread for it."""
        self._error = error
        self._bell.ring()

    def outcome(self) -> T:
        """Wait for it."""
        self._bell.wait()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # it has run


class Beside:
    """As many threads as there ever were errands at once: no commit waits for a slow query.

    Both methods are called in the thread of the crowd.
    """

    def __init__(self) -> None:
        self._idle: list[_Hand] = []  # the last one has worked last, and is the quickest to begin

    def send(self, errand: Errand[Any]) -> None:
        """Have it run."""
        try:
            hand = self._idle.pop() if self._idle else _Hand(self._idle)
        except RuntimeError as error:  # the machine has no more threads; later it may have
            errand.give_up(error)
        else:
            hand.take(errand)

    def close(self) -> None:
        """End the threads. No errand is under way."""
        while self._idle:
            self._idle.pop().take(None)


class _Hand:
    """A thread that does one errand after another, and is among the idle in between."""

    def __init__(self, idle: list[_Hand]) -> None:
        self._idle = idle
        self._errand: Errand[Any] | None = None
        self._wanted = threading.Lock()
        self._wanted.acquire()
        threading.Thread(target=self._work, name="holdfast-beside", daemon=True).start()

    def take(self, errand: Errand[Any] | None) -> None:
        """Do this next, or end; it does nothing else now."""
        self._errand = errand
        self._wanted.release()

    def _work(self) -> None:
        while self._wanted.acquire() and (errand := self._errand) is not None:
            errand.run()
            self._errand = None  # nobody needs what it holds
            self._idle.append(self)  # before the bell: whoever goes on then finds it there
            errand.ring()
            del errand
