"""The aggregator: many yes/no questions about features, added up into one event that overfits.

A feature's event is a level below (or above) a cut, and its mass is a whole number of 2⁻¹⁶. One
question each: is the count of the event above the protocol's own target? Whatever the answer, it is
harmless. But a block with the event makes the answer "above" a little more likely, by 1/√(2πm)
where the answer is exact. A score adds +1 for every event that was said to be above, −1 for every
other. It is a sum of independent steps: its law is known, and so is the mass of {score > q}, which
one more level splits to any mass that is wanted. (Where an answer says how far above, the score
adds that.)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid, IntegerGrid
from holdfast_lab.protocol_attacks.base import LEVELS

__all__ = [
    "Aggregator",
    "Collector",
    "Feature",
    "Known",
    "Middle",
    "Overfit",
    "Question",
    "Step",
    "cut_at",
    "lean",
]


def cut_at(share: float) -> int:
    """The cut whose event has about this mass, neither empty nor certain."""
    return min(max(round(share * LEVELS), 1), LEVELS - 1)


def lean(above: bool) -> int:
    """+1 for an event whose count was said to be above, −1 for any other."""
    return 1 if above else -1


@dataclass(frozen=True)
class Feature:
    """Feature `row` of the table: low for levels below `cut`, high above its mirror image.

    With `sides` = 1 there is no high.
    """

    row: int
    cut: int
    sides: int = 1

    @property
    def mass(self) -> float:
        """Of the low event, and of the high one."""
        return self.cut / LEVELS

    def low(self, levels: NDArray[Any]) -> NDArray[np.bool_]:
        """Which blocks have the low event."""
        return np.asarray(levels[self.row] < self.cut)

    def high(self, levels: NDArray[Any]) -> NDArray[np.bool_]:
        """Which blocks have the high event."""
        return np.asarray(levels[self.row] >= LEVELS - self.cut)


class Aggregator:
    """Collects what was said about features, and makes events of it."""

    def __init__(self) -> None:
        self._learnt: list[tuple[Feature, int, int]] = []

    @property
    def learnt(self) -> int:
        """How many features have been asked about."""
        return len(self._learnt)

    def learn(self, feature: Feature, low: int, high: int = 0) -> None:
        """What the low event, and the high one, is to count in the score."""
        self._learnt.append((feature, low, high))

    def event(self, mass: float, tie: int) -> Overfit:
        """The event of high scores with almost this mass, never more; row `tie` splits ties."""
        return self._split(mass, tie)

    def common(self, mass: float, tie: int) -> Overfit:
        """The event of low scores with almost this mass, never less: the sample avoids it."""
        return self._split(1 - mass, tie, rare=False)

    def _split(self, mass: float, tie: int, *, rare: bool = True) -> Overfit:
        law, lowest = self._law()
        above = np.concatenate([np.cumsum(law[::-1])[::-1][1:], [0.0]])  # P[score > lowest + i]
        index = int(np.argmax(above <= mass))
        # One level less than fits: sums of floats are not exact in the last digits.
        levels = int(max(0.0, (mass - above[index]) / law[index] * LEVELS - 1))
        reached = float(above[index] + law[index] * levels / LEVELS)
        return Overfit(tuple(self._learnt), lowest + index, levels, tie, reached, rare)

    def _law(self) -> tuple[NDArray[np.float64], int]:
        """The probabilities of all scores, from the lowest on, and that lowest score."""
        groups = Counter((f.cut, f.sides, low, high) for f, low, high in self._learnt)
        law, lowest = np.ones(1), 0
        for (cut, sides, low, high), count in groups.items():
            law = np.convolve(law, _power(cut, sides, low, high, count))
            lowest += count * min(low, high, 0)
        return law, lowest


@lru_cache(maxsize=4096)
def _power(cut: int, sides: int, low: int, high: int, count: int) -> NDArray[np.float64]:
    """The law of `count` steps: `low` with probability p, `high` too if there is one, else 0."""
    one = np.zeros(max(low, high, 0) - min(low, high, 0) + 1)
    base, p = min(low, high, 0), cut / LEVELS
    one[low - base] += p
    one[-base] += 1 - sides * p
    if sides == 2:
        one[high - base] += p
    result = np.ones(1)
    for _ in range(count):
        result = np.convolve(result, one)
    return result


@dataclass(frozen=True, eq=False)
class Overfit:
    """Scores above `score`, and of those equal to it the blocks whose tie level is low enough.

    With `rare` False it is the complement: low scores.
    """

    learnt: tuple[tuple[Feature, int, int], ...]
    score: int
    levels: int
    tie: int
    above: float
    rare: bool = True

    @cached_property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        """Rows, cuts, and what the low and the high event of each feature count."""
        features = [feature for feature, _, _ in self.learnt]
        rows = np.array([feature.row for feature in features])
        cuts = np.array([feature.cut for feature in features])
        return rows, cuts, *(np.array([each[i] for each in self.learnt], float) for i in (1, 2))

    @property
    def mass(self) -> float:
        """D of the event."""
        return self.above if self.rare else 1 - self.above

    def __call__(self, levels: NDArray[Any]) -> NDArray[np.bool_]:
        """Which blocks have the event."""
        rows, cuts, lows, highs = self._columns
        asked = levels[rows]
        score = lows @ (asked < cuts[:, np.newaxis])  # whole numbers, exact in floats
        if highs.any():
            score += highs @ (asked >= LEVELS - cuts[:, np.newaxis])
        tied = (score == self.score) & (levels[self.tie] < self.levels)
        inside = (score > self.score) | tied
        return np.asarray(inside if self.rare else ~inside)


# The collector: learns the labels of half the blocks, one a question, then asks about that half.
#
# Labels are uniform on 0 … C − 1. The first question asks for the median label v₀. The next ones
# call everything below v₀ low and every label learnt so far high, so that the exact median is the
# next label above: after about m/2 questions the collector knows half of the blocks. All of these
# questions have harmless answers, near the middle of their own law. Then: "is the label one of
# those I know?" Half of the blocks say yes; of fresh blocks next to none.
#
# An exact median gives away one label a question. Looks give their answers somewhere near the
# middle, and what was learnt from them holds few blocks.


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
