"""The schedule: when a question is evaluated, and when its answer is recorded and leaves.

How long an evaluation takes can depend on the data. What anyone but the custodian sees of it must
not. So a question has a cost, the seconds that it would take on the worst rows (see
`holdfast.engines.sql.costs`), and the time of every step follows from costs and arrivals alone:

    price paid ─ waits for its round ─▶ evaluated ─▶ waits for the end of its slot ─▶ recorded

Evaluations at one holdout go in rounds, one after the other: one question that takes long, or many
short ones, which the engine does together. A round takes the costs of its questions, however soon
they are done: nobody who waits for the next one can see when this one had ended. The slot ends s,
2s, 4s, 8s, … after the price was paid, the first of them after the round. An answer that misses
it, for the machine had other things to do, waits for the next one, and is counted and logged. Where
answers are by what is told, one more slot follows, in which it is found what is told.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.engines.sql.costs import seconds_at_worst
from holdfast.errors import InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.questions import Asked
from holdfast.server.errors import HttpError

__all__ = ["Pacing", "Schedule", "slot_end"]

_SHORT = 0.01  # seconds: questions that cost no more share a round …
_TOGETHER = 16  # … so many at most
_AROUND = 0.01  # seconds of a round beside its costs: threads, messages, coins


def slot_end(elapsed: float, slot: float) -> float:
    """The end of the slot that a time lies in, both in seconds from the start.

    >>> [slot_end(elapsed, 0.05) for elapsed in (0.0, 0.049, 0.051, 0.11, 0.3)]
    [0.05, 0.05, 0.1, 0.2, 0.4]
    """
    if elapsed <= slot:
        return slot
    end: float = slot * 2.0 ** math.ceil(math.log2(elapsed / slot))
    return end if end >= elapsed else 2 * end  # the logarithm may be rounded down


@dataclass
class _Round:
    start: float
    seconds: float
    questions: int = 1
    closed: bool = False

    @property
    def end(self) -> float:
        return self.start + self.seconds


class Schedule:
    """The rounds at one holdout, by the monotonic clock."""

    def __init__(self) -> None:
        self._last = _Round(0.0, 0.0, closed=True)
        self._lock = threading.Lock()

    def enter(self, cost: float) -> _Round:
        """The round of a question that comes now; its end is final when it has started."""
        short = cost <= _SHORT
        with self._lock:
            now, last = time.monotonic(), self._last
            if short and not last.closed and last.start > now and last.questions < _TOGETHER:
                last.seconds += cost
                last.questions += 1
                return last
            start = max(now, last.end)
            self._last = _Round(start, _AROUND + cost, closed=not short)
            return self._last

    @property
    def behind(self) -> float:
        """Seconds until all that have come are done."""
        with self._lock:
            return max(0.0, self._last.end - time.monotonic())


class Pacing:
    """One question on its way: see `holdfast.holdout.answering.Pace`.

    `late` is told of an answer that missed its slot; `wanted` may raise where the asker has left.
    """

    def __init__(
        self,
        schedule: Schedule,
        closing: threading.Event,
        holdout: Holdout,
        *,
        slot: float,
        most: float,
        slowness: float,
        late: Callable[[float], None],
        wanted: Callable[[], None] = lambda: None,
    ) -> None:
        self._schedule, self._closing, self._holdout = schedule, closing, holdout
        self._slot, self._most, self._slowness = slot, most, slowness
        self._late, self._wanted = late, wanted
        self._cost: float | None = None
        self._start, self._due = 0.0, math.inf
        self.begun = False
        """Whether anything was charged, or the data were touched."""

    @property
    def planned(self) -> tuple[float, float] | None:
        """When it was paid for and when its slot ends, once that is known."""
        if not self.begun:
            return None
        return self._start, self._start + slot_end(self._due - self._start, self._slot)

    def admit(self, asked: Asked) -> None:
        """Refuse, free, what could take too long; and what would have to wait for too long."""
        manifest, rows = self._holdout.spec.manifest, self._holdout.planned_rows
        costs = [
            seconds_at_worst(each.estimator, each.where, manifest, rows, self._slowness)
            for each in asked.estimands
        ]
        known = [each for each in costs if each is not None]
        self._cost = sum(known) if len(known) == len(costs) else None
        if self._cost is not None and self._cost > self._most:
            allowed = f"one that takes at most {self._most:g} seconds on any rows"
            hint = "Ask for less at once. Nothing was charged."
            raise InvalidInput("question", "one that could take longer", allowed, hint)
        if self._schedule.behind > 2 * self._most:
            raise HttpError("busy", "Too many long questions are waiting. Ask again soon.", wait=5)

    def begin(self) -> None:
        """Wait for a round."""
        self.begun, self._start = True, time.monotonic()
        self._due = self._start
        if self._cost is not None:  # else it is not Holdfast's own: its slot is by the clock
            mine = self._schedule.enter(self._cost)
            if mine.start > self._start:
                self._closing.wait(mine.start - self._start)
            self._due = mine.end

    def again(self, seconds: float) -> None:
        """A slot from now on for what takes so long at worst, outside of the rounds."""
        self._start = time.monotonic()
        self._due = self._start + seconds * self._slowness

    def wait(self) -> None:
        """Wait for the end of the slot. A server that is closing waits no more.

        Nobody but its custodian can close it.
        """
        assert self.planned is not None
        end = self.planned[1]
        over = time.monotonic() - end
        if over > 0:
            if self._cost is not None:
                self._late(over)
            end = self._start + slot_end(time.monotonic() - self._start, self._slot)
        self._closing.wait(max(0.0, end - time.monotonic()))
        self._wanted()
