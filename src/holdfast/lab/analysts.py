"""Analysts: each a conversation that chooses its next questions from the answers so far.

`converse` is a generator: it yields a batch of questions and is sent their answers.

    def converse(self):
        answers = yield Signs(100)          # a first batch
        yield Score(2 * answers - 1)        # a question made from its answers

What an analyst may know: the population, the mechanism, its coin and the number of blocks. What it
may not: the blocks. `interview` lets one talk to a responder and keeps the books.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import real_number, whole_number
from holdfast.errors import InvalidInput
from holdfast.lab.population import FairBlocks, SignSum
from holdfast.lab.questions import Extremes, Question, Responder, Score, Signs, score_grid

__all__ = [
    "Analyst",
    "Conversation",
    "Heard",
    "PersistentAnalyst",
    "SignAggregator",
    "interview",
]

Conversation = Generator[Question, NDArray[np.int64], None]

_MOST = 10**6
_SPARE = 100  # signs that the persistent analyst may leave out


class Analyst(Protocol):
    """Asks questions, each chosen with the answers to all earlier ones in hand."""

    @property
    def looks(self) -> int:
        """How many looks the whole conversation takes."""

    @property
    def features(self) -> int:
        """How many signs a block must have."""

    def converse(self) -> Conversation:
        """A new conversation."""


class Heard(NamedTuple):
    """What came of a conversation."""

    rank: float  # the population rank, of all the answers', that is farthest from 1/2
    looks: int


@dataclass(frozen=True)
class SignAggregator:
    """Asks which way each of many signs leans, adds them up as answered, asks for the median.

    Each answer b_j agrees with a block's own sign a little more often than not: by 1/√(2πm) for
    an exact median, by half the coin's slope for a look. Over J questions the score Σ_j b_j·x_j
    of a block of the holdout drifts by √J times twice that many standard deviations; that of a
    fresh block does not. The answers of a symmetric coin to fair signs all have the same likelihood
    ratio, so that the plain sum is the best score an analyst who knows the coin can form.
    """

    questions: int = 9_990

    def __post_init__(self) -> None:
        whole_number("questions", self.questions, 1, _MOST)

    @property
    def looks(self) -> int:
        return self.questions + score_grid(self.questions).looks

    @property
    def features(self) -> int:
        return self.questions

    def converse(self) -> Conversation:
        answers = yield Signs(self.questions)
        yield Score(2 * answers - 1)


@dataclass(frozen=True)
class PersistentAnalyst:
    """Learns as the aggregator does, then asks about events of population tail ρ until one slips.

    The strongest attack on looks that we know. A coin is never certain: asked often enough about
    an event that few blocks have, it says Yes once. What was learnt brings more blocks into the
    event and the count nearer to the target.
    """

    total: int = 10_000
    learning: float = 0.6  # of the looks; 0.5 and 0.7 did as well within the noise
    tail: float = 0.01

    def __post_init__(self) -> None:
        whole_number("total", self.total, 4, _MOST)
        real_number("learning", self.learning, 0.5, 1, open_high=True)
        real_number("tail", self.tail, 0, 0.5, open_low=True, open_high=True)

    @property
    def looks(self) -> int:
        return self.total

    @property
    def features(self) -> int:
        return min(self.total - 1, -int(-self.learning * self.total // 1))  # rounded up

    def converse(self) -> Conversation:
        answers = yield Signs(self.features)
        used = _fullest(self.features, self.total - self.features, self.tail)
        yield Extremes(2 * answers[:used] - 1, self.total - self.features, self.tail)


@lru_cache(maxsize=64)
def _fullest(learnt: int, left_out: int, tail: float) -> int:
    """How many of the signs to add up, nearly all, so that the rare event almost fills the tail.

    Sums of signs are whole numbers: their tails come in steps, at other places for other lengths.
    """
    lengths = range(max(left_out, learnt - _SPARE), learnt + 1)
    laws = [SignSum(length - 1) for length in lengths]
    return max(laws, key=lambda law: float(law.above(law.rare(tail)))).terms + 1


def interview(analyst: Analyst, blocks: FairBlocks, responder: Responder) -> Heard:
    """One conversation: the most extreme rank of all its answers, and what it cost."""
    if blocks.features < analyst.features:
        raise InvalidInput("blocks", blocks.features, f"of at least {analyst.features:,} signs")
    conversation = analyst.converse()
    question = next(conversation)
    rank, looks = 0.5, 0
    while True:
        answers = question.ask(blocks, responder)
        ranks = question.ranks(answers)
        farthest = float(ranks[np.argmax(np.abs(ranks - 0.5))])
        rank = max(rank, farthest, key=lambda x: abs(x - 0.5))
        looks += question.looks
        try:
            question = conversation.send(answers)
        except StopIteration:
            return Heard(rank, looks)
