"""Beside a crowd: threads for what takes long, one for each errand that is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from holdfast.waiting import Bell

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

    All methods are called in the thread of the crowd.
    """

    def __init__(self) -> None:
        self._errands: SimpleQueue[Errand[Any] | None] = SimpleQueue()
        self._out = self._threads = 0

    def send(self, errand: Errand[Any]) -> None:
        """Have it run. `came_back` must follow, once its outcome is there."""
        self._out += 1
        try:
            if self._out > self._threads:
                self._hire()
        except RuntimeError as error:  # the machine has no more threads; later it may have
            errand.give_up(error)
        else:
            self._errands.put(errand)

    def came_back(self) -> None:
        """One errand is over."""
        self._out -= 1

    def close(self) -> None:
        """End the threads, each after what it is at."""
        for _ in range(self._threads):
            self._errands.put(None)

    def _hire(self) -> None:
        threading.Thread(target=self._work, name="holdfast-beside", daemon=True).start()
        self._threads += 1

    def _work(self) -> None:
        while (errand := self._errands.get()) is not None:
            errand.run()
