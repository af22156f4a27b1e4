"""Two analysts' ways to learn of blocks, and the questions that they put: all laws are exact.

The *collector* learns labels, one a question. The *aggregator* adds up what many answers gave away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.randomness import Entropy
from holdfast_lab.attacks.conversation import (
    Bits,
    FloatArray,
    Question,
    Replies,
    Responder,
    central_rank,
    looks_of,
)

# Questions about one number of a block, on a grid of whole numbers.


class SearchResponder(Responder, ABC):
    """A responder that searches for medians, and of which every chance is known."""

    @abstractmethod
    def chance_low(self, twice_offsets: NDArray[np.int64]) -> FloatArray:
        """How likely a look says that the median is at most here; offsets are twice C − m/2."""


class GridQuestion(Question):
    """The median of a function of a block with values 0 … points − 1, of which the law is known."""

    points: int

    @abstractmethod
    def __call__(self, blocks: Any, /) -> NDArray[np.int64]:
        """The value of each block."""

    @abstractmethod
    def ranks(self, answers: NDArray[np.int64]) -> FloatArray:
        """The population rank of each answer."""

    @property
    def looks(self) -> int:
        return looks_of(self.points)

    def put(self, rows: Any, responder: Responder) -> Replies:
        return responder.medians(self(rows)[np.newaxis], self.points)

    def reached(self, values: FloatArray) -> FloatArray:
        if np.isnan(values).any():
            return np.full(len(values), np.nan)
        return self.ranks(values.astype(np.int64))

    def chance(self, rows: Any, responder: SearchResponder, tail: float) -> float:
        """Given the blocks: how likely a rank leaves (tail, 1 − tail)? Exact, nothing is drawn."""
        return answer_chance(self(rows), self.ranks(np.arange(self.points)), responder, tail)


def answer_chance(
    indices: NDArray[np.int64], ranks: FloatArray, responder: SearchResponder, tail: float
) -> float:
    """How likely a search of the blocks' indices ends where the rank leaves (tail, 1 − tail).

    Ranks rise with the answer, so that what leaves the interval is up to one index, or from one on.
    """
    below = int(np.count_nonzero(ranks <= tail)) - 1
    within = int(np.count_nonzero(ranks < 1 - tail)) - 1
    at_most = np.searchsorted(np.sort(indices), np.arange(ranks.size), side="right")
    low = responder.chance_low(2 * at_most - indices.size)
    return _ends_at_most(low, below) + 1 - _ends_at_most(low, within)


def _ends_at_most(low: FloatArray, index: int) -> float:
    """How likely a bisection ends at most at an index; low[i] is how likely a look at i says so."""
    if index < 0:
        return 0.0
    first, last, reached, ended = 0, low.size - 1, 1.0, 0.0
    while first < last and last > index:
        middle = (first + last) // 2
        if middle <= index:  # low: it ends at or below the middle, and that is enough
            ended += reached * float(low[middle])
            reached *= 1 - float(low[middle])
            first = middle + 1
        else:  # high: it ends above
            reached *= float(low[middle])
            last = middle
    return ended + (reached if last <= index else 0.0)


# Blocks: labels and levels, drawn uniformly, so that every mass is known exactly.
#
# A block's *label* is a whole number below a power of two. Its *levels* are numbers below 2¹⁶, one
# for each of many features, all independent. The last axis runs over blocks.


LEVELS = 2**16


def draw_labels(count: int, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Independent labels, uniform on 0 … size − 1, size a power of two."""
    return (entropy.words(count) & np.uint64(size - 1)).astype(np.int64)


def draw_levels(features: int, count: int, entropy: Entropy) -> NDArray[np.uint16]:
    """A table of independent levels, one row for each feature."""
    words = entropy.words(-(-features * count // 4))
    return words.view(np.uint16)[: features * count].reshape(features, count)


# The aggregator: many yes/no questions about features, added up into one event that overfits.
#
# A feature's event is a level below (or above) a cut, and its mass is a whole number of 2⁻¹⁶. One
# question each: is the count of the event above the protocol's own target? Whatever the answer, it
# is harmless. But a block with the event makes the answer "above" a little more likely, by 1/√(2πm)
# where the answer is exact. A score adds +1 for every event that was said to be above, −1 for every
# other. It is a sum of independent steps: its law is known, and so is the mass of {score > q},
# which one more level splits to any mass that is wanted. (Where an answer says how far above, the
# score adds that.)


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

    def low(self, levels: NDArray[Any]) -> Bits:
        """Which blocks have the low event."""
        return np.asarray(levels[self.row] < self.cut)

    def high(self, levels: NDArray[Any]) -> Bits:
        """Which blocks have the high event."""
        return np.asarray(levels[self.row] >= LEVELS - self.cut)


class Aggregator:
    """Collects what was said about features, and makes events of it."""

    def __init__(self) -> None:
        self._learnt: list[tuple[Feature, int, int]] = []

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

    def _law(self) -> tuple[FloatArray, int]:
        """The probabilities of all scores, from the lowest on, and that lowest score."""
        groups = Counter((f.cut, f.sides, low, high) for f, low, high in self._learnt)
        law, lowest = np.ones(1), 0
        for (cut, sides, low, high), count in groups.items():
            law = np.convolve(law, _power(cut, sides, low, high, count))
            lowest += count * min(low, high, 0)
        return law, lowest


@lru_cache(maxsize=4096)
def _power(cut: int, sides: int, low: int, high: int, count: int) -> FloatArray:
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

    def __call__(self, levels: NDArray[Any]) -> Bits:
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


class LabelQuestion(GridQuestion):
    """A function of a label with values on a grid of whole numbers, and its exact law."""

    @abstractmethod
    def tails(self, answer: int) -> tuple[float, float]:
        """D[φ ≤ answer] and D[φ ≥ answer]."""

    def ranks(self, answers: NDArray[np.int64]) -> FloatArray:
        tails = np.array([self.tails(int(answer)) for answer in answers])
        return central_rank(1 - tails[:, 1], tails[:, 0])


@dataclass(frozen=True)
class Middle(LabelQuestion):
    """The label itself."""

    points: int

    def __call__(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        return labels

    def tails(self, answer: int) -> tuple[float, float]:
        return (answer + 1) / self.points, (self.points - answer) / self.points


@dataclass(frozen=True, eq=False)
class Step(LabelQuestion):
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
    def _low(self) -> int:
        """How many labels are low."""
        return self.first if self.known is None else self.last + 1 - self.known.size

    def __call__(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
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
class Known(LabelQuestion):
    """1 for a label that is known, 0 for any other."""

    points = 2
    size: int
    known: NDArray[np.int64]

    def __call__(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
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
    def question(self) -> LabelQuestion:
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
