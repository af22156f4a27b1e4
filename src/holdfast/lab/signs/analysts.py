"""Analysts: each a conversation that chooses its next questions from the answers so far.

`converse` is a generator: it yields a batch of questions and is sent their answers.

    def converse(self):
        answers = yield Signs(100)          # a first batch
        yield Score(2 * answers - 1)        # a question made from its answers

What an analyst may know: the population, the mechanism, its coin and the number of blocks. What it
may not: the blocks. `interview` lets one talk to a responder and keeps the books.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.lab.signs.population import FairBlocks
from holdfast.lab.signs.questions import Question, RareEvents, Score, Signs, score_grid
from holdfast.lab.signs.responders import Responder

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
    chance: float = math.nan  # of leaving the promised ranks, in the last batch or before it

    def outside(self, tail: float) -> bool:
        """Whether an answer left the promised ranks."""
        return not tail < self.rank < 1 - tail


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

    A coin is never certain: asked often enough about an event that few blocks have, it says Yes
    once. What was learnt brings more blocks into the event, and the count nearer to the target. How
    many looks to spend on which is a matter of the plan: `holdfast.lab.signs.tuning` finds it.
    """

    total: int = 10_000
    learning: float = 0.6  # of the looks
    tail: float = 0.01

    def __post_init__(self) -> None:
        whole_number("total", self.total, 2, _MOST)
        real_number("learning", self.learning, 0, 1, open_low=True, open_high=True)
        real_number("tail", self.tail, 0, 0.5, open_low=True, open_high=True)

    @property
    def looks(self) -> int:
        return self.total

    @property
    def learnt(self) -> int:
        """How many signs it asks about."""
        return min(self.total - 1, -int(-self.learning * self.total // 1))  # rounded up

    @property
    def features(self) -> int:
        return 64 * (-(-self.learnt // 64) + 1)  # and 64 that choose among ties

    def converse(self) -> Conversation:
        answers = yield Signs(self.learnt)
        yield RareEvents(2 * answers - 1, self.total - self.learnt, self.tail)


def interview(
    analyst: Analyst, blocks: FairBlocks, responder: Responder, tail: float | None = None
) -> Heard:
    """One conversation: the most extreme rank of all its answers, and what it cost.

    With a tail also the chance that a rank leaves (tail, 1 − tail): exact for the last batch, given
    all that was asked before, and 1 if it has happened before. On average over conversations it is
    the rate of failure, and it varies less than failures do.
    """
    if blocks.features < analyst.features:
        raise InvalidInput("blocks", blocks.features, f"of at least {analyst.features:,} signs")
    conversation = analyst.converse()
    question = next(conversation)
    rank, looks = 0.5, 0
    while True:
        answers, before = question.ask(blocks, responder), rank
        rank = _farther(rank, question.ranks(answers))
        looks += question.looks
        try:
            following = conversation.send(answers)
        except StopIteration:
            break
        question = following
    if tail is None:
        return Heard(rank, looks)
    sure = not tail < before < 1 - tail
    return Heard(rank, looks, 1.0 if sure else question.chance(blocks, responder, tail))


def _farther(rank: float, ranks: NDArray[np.float64]) -> float:
    farthest = float(ranks[np.argmax(np.abs(ranks - 0.5))])
    return max(rank, farthest, key=lambda x: abs(x - 0.5))
