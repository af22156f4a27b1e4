"""What an analyst may ask of blocks of fair signs.

A batch of questions knows four things: the counts or values that it takes from the blocks, how
many looks it costs, the population rank of every answer, and how likely an answer is to leave the
promised ranks. Answers are indices into the grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import IntegerGrid
from holdfast.lab.signs.population import FairBlocks, SignSum, central_rank
from holdfast.lab.signs.responders import Responder

__all__ = ["Question", "RareEvents", "Score", "Signs", "answer_chance", "score_grid"]

_FINAL_POINTS = 1_024
_WORD = 2**64
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd: its multiples are all different, and far apart
_MARGIN = 1e-9  # tails are known to 1e-10: an event of tail ρ is never larger than that


class Question(Protocol):
    """A batch of questions that are chosen together."""

    @property
    def looks(self) -> int:
        """What the batch costs."""

    def ask(self, blocks: FairBlocks, responder: Responder) -> NDArray[np.int64]:
        """The answers, as grid indices."""

    def ranks(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        """The population rank of each answer."""

    def chance(self, blocks: FairBlocks, responder: Responder, tail: float) -> float:
        """Given the blocks: how likely a rank leaves (tail, 1 − tail)? Exact, nothing is drawn."""


@dataclass(frozen=True)
class Signs:
    """For each of the first `count` signs: is its median −1 or +1? One look each.

    Both answers are right: in the population the signs are fair. But each leaks which way the
    majority of these blocks leans.
    """

    count: int

    @property
    def looks(self) -> int:
        return self.count

    def ask(self, blocks: FairBlocks, responder: Responder) -> NDArray[np.int64]:
        at_most_low = blocks.blocks - blocks.positive[: self.count]
        return np.where(responder.low(2 * at_most_low - blocks.blocks), 0, 1)

    def ranks(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        return central_rank(answers / 2, (answers + 1) / 2)

    def chance(self, blocks: FairBlocks, responder: Responder, tail: float) -> float:  # noqa: ARG002
        return 0.0  # both ranks are 1/2


@lru_cache(maxsize=64)
def score_grid(terms: int) -> IntegerGrid:
    """1,024 whole numbers around 0, at least five standard deviations of the sum to each side.

    >>> score_grid(9_990)
    grid(-512, 511, scale='integer')
    """
    half = _FINAL_POINTS // 2
    step = -(-int(5 * np.ceil(np.sqrt(terms))) // half)
    return IntegerGrid(-half * step, (half - 1) * step, step)


@dataclass(frozen=True, eq=False)
class Score:
    """The median of Σ_j orientation_j·sign_j over the blocks, by a search of its grid."""

    orientation: NDArray[np.int64]

    @property
    def grid(self) -> IntegerGrid:
        """The possible answers."""
        return score_grid(self.orientation.size)

    @property
    def looks(self) -> int:
        return self.grid.looks

    def ask(self, blocks: FairBlocks, responder: Responder) -> NDArray[np.int64]:
        return np.array([responder.median(blocks.sums(self.orientation), self.grid)])

    def ranks(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        # Values above the grid count as its highest point, those below as its lowest.
        law, grid = SignSum(self.orientation.size), self.grid
        values = grid.points(answers)
        below = np.where(answers == 0, 0.0, law.at_most(values - grid.step))
        up_to = np.where(answers == grid.size - 1, 1.0, law.at_most(values))
        return central_rank(below, up_to)

    def chance(self, blocks: FairBlocks, responder: Responder, tail: float) -> float:
        ranks = self.ranks(np.arange(self.grid.size))
        indices = self.grid.ceiling(blocks.sums(self.orientation))
        return answer_chance(indices, ranks, responder, tail)


def answer_chance(
    indices: NDArray[np.int64],
    ranks: NDArray[np.float64],
    responder: Responder,
    tail: float,
) -> float:
    """How likely a search of the blocks' indices ends where the rank leaves (tail, 1 − tail).

    Ranks rise with the answer, so that what leaves the interval is up to one index, or from one on.
    """
    below = int(np.count_nonzero(ranks <= tail)) - 1
    within = int(np.count_nonzero(ranks < 1 - tail)) - 1
    at_most = np.searchsorted(np.sort(indices), np.arange(ranks.size), side="right")
    low = responder.chance_low(2 * at_most - indices.size)
    return _ends_at_most(low, below) + 1 - _ends_at_most(low, within)


def _ends_at_most(low: NDArray[np.float64], index: int) -> float:
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


@dataclass(frozen=True)
class _Event:
    """Scores above a threshold, and of those equal to it a part: together of almost a given mass.

    `levels` of 2⁶⁴ tie levels belong to it, an odd number: then every mask makes another event.
    """

    threshold: int
    levels: int
    mass: float


@lru_cache(maxsize=256)
def _event(terms: int, tail: float) -> _Event:
    """Never more than the tail, and less by hardly more than one part in 10⁹."""
    law, most = SignSum(terms), tail * (1 - _MARGIN)
    threshold = law.rare(most)
    above = float(law.above(threshold))
    tied = float(law.above(threshold - 1)) - above
    levels = min(int((most - above) / tied * _WORD), _WORD - 1) | 1
    return _Event(threshold, levels, above + tied * (levels / _WORD))


@dataclass(frozen=True, eq=False)
class RareEvents:
    """Rare events, over and over: is the median of 1(event) 0, or 1? One look each.

    An event is a high score Σ_j orientation_j·sign_j, of population mass ρ: the answer 1 breaks the
    promise. Sums of signs are whole numbers; of the blocks that are tied at the threshold so many
    belong to the event as fill up its mass, chosen by 64 more signs, differently in each question.
    So no question is asked twice.
    """

    orientation: NDArray[np.int64]
    count: int
    tail: float

    @property
    def looks(self) -> int:
        return self.count

    @property
    def features(self) -> int:
        """How many signs a block must have."""
        return 64 * (self._tie_word + 1)

    @property
    def mass(self) -> float:
        """Of each event, in the population."""
        return self._one.mass

    @cached_property
    def _one(self) -> _Event:
        return _event(self.orientation.size, self.tail)

    @property
    def _tie_word(self) -> int:
        return -(-self.orientation.size // 64)

    def above(self, blocks: FairBlocks) -> NDArray[np.int64]:
        """For each question, how many blocks have the event."""
        sums, event = blocks.sums(self.orientation), self._one
        tied = blocks.word(self._tie_word)[sums == event.threshold]
        masks = np.arange(self.count, dtype=np.uint64) * _SPREAD
        inside = (tied[:, np.newaxis] ^ masks) < np.uint64(event.levels)
        surely = np.count_nonzero(sums > event.threshold)
        return surely + np.asarray(np.count_nonzero(inside, axis=0), np.int64)

    def _offsets(self, blocks: FairBlocks) -> NDArray[np.int64]:
        return blocks.blocks - 2 * self.above(blocks)

    def ask(self, blocks: FairBlocks, responder: Responder) -> NDArray[np.int64]:
        return np.where(responder.low(self._offsets(blocks)), 0, 1)

    def ranks(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        common = 1.0 - self.mass
        return central_rank(np.where(answers == 0, 0.0, common), np.where(answers == 0, common, 1))

    def chance(self, blocks: FairBlocks, responder: Responder, tail: float) -> float:
        if self.mass > tail:
            return 0.0
        high = 1 - responder.chance_low(self._offsets(blocks))
        with np.errstate(divide="ignore"):  # a look that is sure to slip
            return float(-np.expm1(np.log1p(-high).sum()))
