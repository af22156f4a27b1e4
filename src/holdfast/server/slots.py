"""Slots: when an answer is recorded, and leaves.

How long an evaluation takes can depend on the data. What anyone but the custodian sees of it is the
slot that it ended in: after a draw, whatever became of it, the server waits until s, 2s, 4s, 8s, …
since the data were first touched, which is when its price is paid, and only then records the
answer. Whoever asked, whoever watches the transcript and whoever waits for a job then all see the
same: which power of two.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from holdfast import concurrency

__all__ = ["Ending", "pace_of", "slot_end"]


class Ending:
    """That a server is closing, as an event: set once, and waited for by all of its questions.

    Every answer waits for it, in vain. `threading.Event` makes a lock for each wait and has all
    threads queue for another one; here they wait for one lock that is held until the end.
    """

    def __init__(self) -> None:
        self._held = threading.Lock()
        self._held.acquire()
        self._set = False

    def is_set(self) -> bool:
        """Whether it has come."""
        return self._set

    def set(self) -> None:
        """Let everyone go."""
        if not self._set:
            self._set = True
            self._held.release()

    def wait(self, seconds: float) -> None:
        """Until it comes, but not longer. A crowd is told by itself that it has come."""
        if concurrency.is_shared():
            concurrency.sleep(seconds)
        elif self._held.acquire(timeout=seconds):
            self._held.release()  # for the next one


def slot_end(elapsed: float, slot: float) -> float:
    """The end of the slot that a time lies in, both in seconds from the start.

    >>> [slot_end(elapsed, 0.05) for elapsed in (0.0, 0.049, 0.051, 0.11, 0.3)]
    [0.05, 0.05, 0.1, 0.2, 0.4]
    """
    if elapsed <= slot:
        return slot
    end: float = slot * 2.0 ** math.ceil(math.log2(elapsed / slot))
    return end if end >= elapsed else 2 * end  # the logarithm may be rounded down


def pace_of(slot: float, closing: Ending) -> Callable[[float], None]:
    """What waits for the end of a slot since a moment of the monotonic clock.

    A server that is closing waits no more: nobody but its custodian can close it.
    """

    def pace(start: float) -> None:
        end = start + slot_end(time.monotonic() - start, slot)
        closing.wait(max(0.0, end - time.monotonic()))

    return pace
