"""Which creations a worker works for: one that is given up ends before its files are removed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Abandoned", "abandon", "at_work", "check_wanted"]

_PAUSE = 0.05
_lock = threading.Lock()
_running: Counter[str] = Counter()
_given_up: set[str] = set()


class Abandoned(Exception):
    """Nobody wants what the task makes."""


@contextmanager
def at_work(creation: str) -> Iterator[None]:
    """Around everything that a task does for a creation."""
    with _lock:
        check_wanted(creation)
        _running[creation] += 1
    try:
        yield
    finally:
        with _lock:
            _running[creation] -= 1


def check_wanted(creation: str) -> None:
    """Raise `Abandoned` if a creation was given up; asked before each file, and now and then."""
    if creation in _given_up:
        raise Abandoned


async def abandon(creation: str, seconds: float) -> bool:
    """Give up a creation on this worker, and wait for its tasks; whether all have ended."""
    _given_up.add(creation)
    deadline = time.monotonic() + seconds
    while _running[creation] > 0 and time.monotonic() < deadline:
        await asyncio.sleep(_PAUSE)
    return _running[creation] <= 0
