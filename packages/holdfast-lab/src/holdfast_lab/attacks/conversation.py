"""The conversation between an analyst, who chooses questions, and a responder, who holds the rows.

Questions come in batches that are chosen together; the next batch may use all earlier replies.

    def converse(self, world):
        replies = yield Means(...)      # a first batch
        yield Means(...)                # made from its replies

A question is about one row (a unit): the mean of a bounded function, or the median of a function
with few values. It knows its truth in the population, which the analyst may know too. What an
analyst may not know are the rows: a question is a function, and `interview` evaluates it. A
responder gets numbers, and never learns where they come from. So every analyst can talk to every
responder; `holdfast_lab.attacks.conversation` goes between medians and means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.randomness import Entropy
from holdfast_lab.attacks.sign_sums import central_rank

__all__ = [
    "Analyst",
    "Conversation",
    "MeanResponder",
    "Means",
    "Medians",
    "Question",
    "Replies",
    "Responder",
    "Session",
    "Terms",
    "World",
    "block_means",
    "floats_from",
    "interview",
    "known_guesses",
    "looks_of",
]

FloatArray = NDArray[np.float64]
Evaluate = Callable[[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Means:
    """Questions chosen together: each the mean of a function of one row, with values in [0, 1].

    `values` takes the rows and gives a table: a line for each question, a column for each row.
    `truths` are the means in the population. `guesses` are what the analyst expects, from open
    data or otherwise; responders that confirm guesses use them.
    """

    values: Evaluate
    truths: FloatArray
    guesses: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Medians:
    """Questions chosen together: each the median of a function of one row, values 0 … points − 1.

    `law` has a line for each question: P[value ≤ i] in the population, for every point i.
    """

    values: Evaluate
    law: FloatArray

    @property
    def points(self) -> int:
        """How many values are possible."""
        return int(self.law.shape[1])

    def ranks(self, answers: FloatArray) -> FloatArray:
        """The population rank of each answer, NaN where there is none."""
        padded = np.concatenate([np.zeros((len(self.law), 1)), self.law], axis=1)
        answered = np.nan_to_num(answers).astype(np.int64)
        lines = np.arange(len(self.law))
        ranks = central_rank(padded[lines, answered], padded[lines, answered + 1])
        return np.where(np.isnan(answers), np.nan, ranks)


Question = Means | Medians


@dataclass(frozen=True, eq=False)
class Replies:
    """One reply a question: a value, NaN if it was refused, and what is claimed of the truth.

    The claim is a closed interval, for the mean in the population or for the population rank of
    the answer: −∞ to ∞ where nothing is claimed.
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def unclaimed(cls, values: FloatArray) -> Replies:
        """Values that come without a claim."""
        wide = np.full(len(values), np.inf)
        return cls(np.asarray(values, np.float64), -wide, wide)

    @classmethod
    def around(cls, values: FloatArray, half_width: float) -> Replies:
        """Values claimed to be this near to the truth."""
        return cls(values, values - half_width, values + half_width)


@dataclass(frozen=True)
class Terms:
    """What a responder is told before the first question: nothing that depends on the rows."""

    rows: int
    queries: int
    entropy: Entropy
    failure: float = 0.05
    half_width: float | None = None


class Responder(ABC):
    """Whoever holds the rows. `certified` says whether its claims are Holdfast's promise."""

    name: ClassVar[str]
    certified: ClassVar[bool] = False

    @abstractmethod
    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        """Replies to means: a line of `values` for each question."""

    @abstractmethod
    def medians(self, values: NDArray[Any], points: int) -> Replies:
        """Replies to medians, values whole numbers below `points`; answers are such numbers."""


class World(Protocol):
    """A sample of a population whose truths are known."""

    @property
    def holdout(self) -> Any:
        """The rows that the responder holds."""

    @property
    def rows(self) -> int:
        """How many they are."""


Conversation = Generator[Question, Replies, None]


class Analyst(Protocol):
    """Asks questions, each chosen with the replies to all earlier ones in hand."""

    name: ClassVar[str]

    @property
    def queries(self) -> int:
        """The most questions that it asks."""

    def draw(self, chance: np.random.Generator) -> Any:
        """A fresh world."""

    def converse(self, world: Any) -> Conversation:
        """A new conversation about its rows, which are not to be read."""


@dataclass(frozen=True, eq=False)
class Session:
    """All replies of one conversation, in order.

    `reached` is what a claim is about: the truth of a mean, the population rank of a median.
    `errors` are how far a value is from its truth, or the rank of a median from 1/2.
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray
    reached: FloatArray
    errors: FloatArray

    @property
    def asked(self) -> int:
        """How many questions were asked."""
        return self.values.size

    @property
    def answered(self) -> int:
        """How many got a value."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    @property
    def worst_error(self) -> float:
        """The largest of the errors; 0 if nothing was answered."""
        return float(np.nan_to_num(self.errors).max(initial=0.0))

    @property
    def wrong_claims(self) -> int:
        """How many claims are false."""
        answered = ~np.isnan(self.values)
        outside = (self.reached < self.low) | (self.reached > self.high)
        return int(np.count_nonzero(answered & outside))


def interview(analyst: Analyst, world: World, responder: Responder) -> Session:
    """One conversation: every question is evaluated on the rows, and only then put."""
    columns: list[tuple[FloatArray, ...]] = []
    conversation = analyst.converse(world)
    question = next(conversation)
    while True:
        replies, reached, errors = _put(question, world, responder)
        columns.append((replies.values, replies.low, replies.high, reached, errors))
        try:
            question = conversation.send(replies)
        except StopIteration:
            return Session(*map(np.concatenate, zip(*columns, strict=True)))


def _put(
    question: Question, world: World, responder: Responder
) -> tuple[Replies, FloatArray, FloatArray]:
    values = question.values(world.holdout)
    if isinstance(question, Means):
        replies = responder.means(values, question.guesses)
        truths = np.asarray(question.truths, np.float64)
        return replies, truths, np.abs(replies.values - truths)
    replies = responder.medians(values, question.points)
    ranks = question.ranks(replies.values)
    return replies, ranks, np.abs(ranks - 0.5)


# From medians to means and back, so that every responder can answer every analyst.
#
# A median on a grid is found from means by binary search (cor `SQ-med`): is the mean of 1(φ ≤
# point) at least 1/2? A mean is found from medians as the median of the means of blocks.


def looks_of(points: int) -> int:
    """How many means a binary search of so many points takes.

    >>> [looks_of(points) for points in (2, 3, 32)]
    [1, 2, 5]
    """
    return (points - 1).bit_length()


class MeanResponder(Responder):
    """A responder that knows means only: medians are searched for, all questions in step."""

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        lines = np.arange(len(values))
        low, high = np.zeros_like(lines), np.full_like(lines, points - 1)
        refused = np.zeros(len(lines), np.bool_)
        for _ in range(looks_of(points)):
            middle = (low + high) // 2
            below = values <= middle[:, np.newaxis]
            means = self.means(below, None).values
            refused |= np.isnan(means) & (low < high)
            up_to = means >= 0.5  # NaN is not
            low, high = (
                np.where(up_to | (low == high), low, middle + 1),
                np.where(up_to & (low < high), middle, high),
            )
        return Replies.unclaimed(np.where(refused, np.nan, low))


def block_means(values: NDArray[Any], units: int) -> FloatArray:
    """The means of blocks of so many rows, a line for each question; rows left over are not used.

    >>> block_means(np.array([[0, 1, 1, 1, 0]]), units=2)
    array([[0.5, 1. ]])
    """
    blocks = values.shape[1] // units
    kept = values[:, : blocks * units]
    return np.asarray(kept.reshape(len(values), blocks, units).mean(axis=2, dtype=np.float64))


def known_guesses(guesses: FloatArray | None, count: int) -> FloatArray:
    """A guess for every mean, in [0, 1]: 1/2 where the analyst has none.

    >>> known_guesses(np.array([0.2, np.nan, 1.5]), 3), known_guesses(None, 2)
    (array([0.2, 0.5, 1. ]), array([0.5, 0.5]))
    """
    if guesses is None:
        return np.full(count, 0.5)
    return np.clip(np.where(np.isnan(guesses), 0.5, guesses), 0.0, 1.0)


# Noise for the lab, many draws at once.
#
# `holdfast_lab.baselines.noise` is exact and takes 0.05 to 0.1 ms a draw: minutes for a million
# questions. The lab's responders certify nothing, so they add floats. What exact noise protects
# from, an analyst who reads the lowest bits of an answer, is not among the lab's analysts.


def floats_from(entropy: Entropy) -> np.random.Generator:
    """A generator of floats, seeded by four words of the entropy.

    >>> from holdfast.randomness import SeededEntropy
    >>> floats_from(SeededEntropy(1)).normal(size=3).round(3).tolist()
    [1.141, -0.774, -0.83]
    """
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy.words(4).tolist())))
