"""The board: memory that a worker shares with the process that evaluates blocks for it.

The evaluating process writes how far it has come and by when it must have gone on; the worker reads
that when the process is gone, or too late. What is on the board survives the process.
"""

from __future__ import annotations

import mmap
from enum import IntEnum

import numpy as np

__all__ = ["Board", "Status"]

_HEADER = 64
_TEXT = 2_000


class Status(IntEnum):
    """How far the process has come, as it says itself."""

    STARTED = 0
    LOADED = 1
    FINISHED = 2
    LEFT = 3  # something stays behind after a block: the next one starts afresh
    CHANGED = 4  # the first block gave another value when it was asked again
    UNLOADABLE = 5


class Board:
    """Values of some items, each of one or more blocks, and the state of who computes them."""

    def __init__(self, blocks: int, items: int) -> None:
        self._memory = mmap.mmap(-1, _HEADER + 8 * blocks + items + _TEXT)
        self._deadline = np.frombuffer(self._memory, np.float64, 1)
        self._state = np.frombuffer(self._memory, np.int64, 2, 8)
        self.values = np.frombuffer(self._memory, np.float64, blocks, _HEADER)
        self.failed = np.frombuffer(self._memory, np.bool_, items, _HEADER + 8 * blocks)
        self._text = _HEADER + 8 * blocks + items

    @property
    def deadline(self) -> float:
        """When the present step must have ended, by the monotonic clock."""
        return float(self._deadline[0])

    @deadline.setter
    def deadline(self, moment: float) -> None:
        self._deadline[0] = moment

    @property
    def status(self) -> Status:
        """What the process said last."""
        return Status(int(self._state[0]))

    @status.setter
    def status(self, status: Status) -> None:
        self._state[0] = int(status)

    @property
    def done(self) -> int:
        """How many items the process has finished."""
        return int(self._state[1])

    @done.setter
    def done(self, items: int) -> None:
        self._state[1] = items

    @property
    def text(self) -> str:
        """Why the first failure happened; written on public data only."""
        data = self._memory[self._text : self._text + _TEXT]
        return data.rstrip(b"\0").decode("utf-8", "replace")

    @text.setter
    def text(self, text: str) -> None:
        data = text.encode("utf-8", "replace")[:_TEXT]
        self._memory[self._text : self._text + len(data)] = data
