"""The collector: learns the labels of half the blocks, one a question, then asks about that half.

Labels are uniform on 0 … C − 1. The first question asks for the median label v₀. The next ones call
everything below v₀ low and every label learnt so far high, so that the exact median is the next
label above: after about m/2 questions the collector knows half of the blocks. All of these
questions have harmless answers, near the middle of their own law. Then: "is the label one of those
I know?" Half of the blocks say yes; of fresh blocks next to none.

An exact median gives away one label a question. Looks give their answers somewhere near the middle,
and what was learnt from them holds few blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid, IntegerGrid

__all__ = ["Collector", "Known", "Middle", "Question", "Step"]


class Question(Protocol):
    """A function of a label with values on a grid of whole numbers, and its exact law."""

    @property
    def grid(self) -> Grid:
        """The possible answers."""

    def __call__(self, labels: NDArray[Any]) -> NDArray[Any]:
        """The value of each label."""

    def tails(self, answer: int) -> tuple[float, float]:
        """D[φ ≤ answer] and D[φ ≥ answer]."""


@dataclass(frozen=True)
class Middle:
    """The label itself."""

    size: int

    @property
    def grid(self) -> Grid:
        return IntegerGrid(0, self.size - 1)

    def __call__(self, labels: NDArray[Any]) -> NDArray[Any]:
        return labels

    def tails(self, answer: int) -> tuple[float, float]:
        return (answer + 1) / self.size, (self.size - answer) / self.size


@dataclass(frozen=True, eq=False)
class Step:
    """The next label above `last`, counted from there; low below `first`, high if known.

    With `known` None all labels from `first` to `last` are high, known or not: the same thing where
    the median is exact and of single blocks, and faster. Labels beyond the grid are high as well.
    """

    size: int
    points: int
    first: int
    last: int
    known: NDArray[np.int64] | None = None

    @property
    def grid(self) -> Grid:
        return IntegerGrid(0, self.points - 1)

    @property
    def _low(self) -> int:
        """How many labels are low."""
        return self.first if self.known is None else self.last + 1 - self.known.size

    def __call__(self, labels: NDArray[Any]) -> NDArray[Any]:
        high = self.points - 1
        ahead = labels - self.last
        if self.known is None:
            passed = np.where(labels < self.first, 0, high)
            return np.asarray(np.where(ahead > 0, np.minimum(ahead, high), passed))
        known = np.isin(labels, self.known)
        return np.asarray(np.where(known, high, np.clip(ahead, 0, high)))

    def tails(self, answer: int) -> tuple[float, float]:
        room = self.size - 1 - self.last
        up_to = self.size if answer >= self.points - 1 else self._low + min(answer, room)
        below = 0 if answer <= 0 else self._low + min(answer - 1, room)
        return up_to / self.size, (self.size - below) / self.size


@dataclass(frozen=True, eq=False)
class Known:
    """1 for a label that is known, 0 for any other."""

    size: int
    known: NDArray[np.int64]

    @property
    def grid(self) -> Grid:
        return IntegerGrid(0, 1)

    def __call__(self, labels: NDArray[Any]) -> NDArray[Any]:
        return np.isin(labels, self.known).astype(np.int64)

    def tails(self, answer: int) -> tuple[float, float]:
        mass = self.known.size / self.size
        return (0.0 if answer < 0 else 1.0 if answer else 1 - mass), (mass if answer else 1.0)


class Collector:
    """Chooses the next question from the answers so far.

    `passed` says whether a label may be passed over without being the answer, as with medians of
    sub-blocks: then only known labels are high.

    >>> labels = np.array([900, 100, 500, 400, 800])
    >>> collector = Collector(size=1024, points=512, tail=0.01)
    >>> while not collector.done:
    ...     collector.learn(int(np.median(collector.question(labels))))
    >>> collector.event.known.tolist(), collector.event(labels).tolist(), collector.event.tails(1)
    ([500, 800, 900], [1, 0, 1, 0, 1], (1.0, 0.0029296875))
    """

    def __init__(self, size: int, points: int, tail: float, *, passed: bool = False) -> None:
        self.size, self.points, self.passed = size, points, passed
        self._most = int(tail * size)  # so many known labels are still a rare event
        self._known: list[int] = []
        self._last = -1

    @property
    def done(self) -> bool:
        """Whether no label is left above the last one."""
        return self._last >= self.size - 1

    @property
    def learnt(self) -> int:
        """How many labels are known."""
        return len(self._known)

    @property
    def question(self) -> Question:
        """What to ask next."""
        if not self._known:
            return Middle(self.size)
        known = np.array(self._known) if self.passed else None
        return Step(self.size, self.points, self._known[0], self._last, known)

    def learn(self, answer: int) -> None:
        """Take in the answer to `question`; a low one says nothing, and it is asked again."""
        if not self._known:
            self._last = answer
        elif answer == self.points - 1:  # nobody within the grid
            self._last = min(self._last + self.points - 2, self.size - 1)
            return
        elif answer == 0:
            return
        else:
            self._last += answer
        self._known.append(self._last)

    def again(self) -> None:
        """Start once more above the first label, with what is known."""
        self._last = self._known[0]

    @property
    def event(self) -> Known:
        """The labels learnt, as many as the tail allows."""
        return Known(self.size, np.unique(self._known)[: self._most])
