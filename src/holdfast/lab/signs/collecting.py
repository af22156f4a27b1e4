"""The collector of labels, against blocks of fair signs: 64 signs of a block are its label.

It learns the labels of the holdout's blocks, one a question: everything below the first answer
counts as low, every label known so far as high, and then an exact median is the next label. In the
end it asks whether a label is known. Many blocks have such a label, fresh ones next to never.
Against looks it is weak, for a search with coins ends somewhere near the middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import real_number, whole_number
from holdfast.grids import Grid
from holdfast.lab.protocol_attacks.collector import Collector
from holdfast.lab.protocol_attacks.collector import Question as LabelQuestion
from holdfast.lab.signs.analysts import Conversation
from holdfast.lab.signs.population import FairBlocks, central_rank
from holdfast.lab.signs.questions import answer_chance
from holdfast.lab.signs.responders import Responder

__all__ = ["LabelAnalyst", "Labelled"]

_MOST = 10**6
_MOST_BITS = 40


@dataclass(frozen=True, eq=False)
class Labelled:
    """A question about labels: numbers below `size`, a power of two, uniform in the population."""

    question: LabelQuestion
    size: int

    @cached_property
    def grid(self) -> Grid:
        """The possible answers."""
        return self.question.grid

    @property
    def looks(self) -> int:
        return self.grid.looks

    def _values(self, blocks: FairBlocks) -> NDArray[np.int64]:
        labels = (blocks.word(0) & np.uint64(self.size - 1)).astype(np.int64)
        return np.asarray(self.question(labels), np.int64)

    def ask(self, blocks: FairBlocks, responder: Responder) -> NDArray[np.int64]:
        return np.array([responder.median(self._values(blocks), self.grid)])

    def ranks(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        tails = np.array([self.question.tails(int(answer)) for answer in answers])
        return central_rank(1 - tails[:, 1], tails[:, 0])

    def chance(self, blocks: FairBlocks, responder: Responder, tail: float) -> float:
        ranks = self.ranks(np.arange(self.grid.size))
        indices = self.grid.ceiling(self._values(blocks))
        return answer_chance(indices, ranks, responder, tail)


@dataclass(frozen=True)
class LabelAnalyst:
    """Collects labels as long as its looks last, and asks about those that it knows."""

    total: int
    blocks: int
    tail: float = 0.01

    def __post_init__(self) -> None:
        whole_number("total", self.total, 2, _MOST)
        whole_number("blocks", self.blocks, 1, _MOST)
        real_number("tail", self.tail, 0, 0.5, open_low=True, open_high=True)

    @property
    def looks(self) -> int:
        return self.total

    @property
    def features(self) -> int:
        return 64

    @property
    def needed(self) -> int:
        """How many labels a majority of the blocks has, if all are different."""
        return self.blocks // 2 + 1

    @cached_property
    def _bits(self) -> int:
        """Of a label: as few as make the labels of a majority a rare event."""
        return min(_MOST_BITS, int(np.ceil(np.log2(self.needed / self.tail))))

    @cached_property
    def _cheapest(self) -> tuple[float, int]:
        """The looks that a label costs, if answers are exact, and the looks of a question then."""
        missed = np.log1p(-min(0.5, self.blocks / 2**self._bits))
        looks = np.arange(2, self._bits + 1)
        costs = looks / -np.expm1(missed * (2.0**looks - 2))
        return float(costs.min()), int(looks[np.argmin(costs)])

    @property
    def points(self) -> int:
        """Of the grid on which it asks for the next label."""
        return int(2 ** self._cheapest[1])

    @property
    def expected_looks(self) -> float:
        """How many looks the labels of a majority take, if answers are exact."""
        return self._bits + self.needed * self._cheapest[0]

    def converse(self) -> Conversation:
        size, left = 2**self._bits, self.total - 1  # one look is kept for the end
        collector = Collector(size, self.points, self.tail)
        while not collector.done:
            question = Labelled(collector.question, size)
            left -= question.looks
            if left < 0:
                break
            before = collector.learnt
            answers = yield question
            collector.learn(int(answers[0]))
            if collector.learnt > max(before, self.needed - 1) and left > 0:
                left -= 1
                yield Labelled(collector.event, size)
        yield Labelled(collector.event, size)
