"""The one framework of all attacks: an analyst chooses questions, a responder holds the rows.

Questions come in batches that are chosen together; the next batch may use all earlier replies.
A question is a function of one row (a unit, or a block): `interview` evaluates it, for an analyst
may not see the rows. A responder gets numbers, and never learns where they come from. So every
analyst can talk to every responder that answers its kind of question.

A new responder is one class: a `name`, and an answer to the kinds of questions that it takes. One
that knows means derives from `MeanResponder`, and answers medians by searching for them.

    class Rounded(MeanResponder):
        name = "rounded"

        def __init__(self, terms: Terms) -> None: ...     # nothing that depends on the rows

        def means(self, values, guesses):                 # a line of values for each question
            return Replies.unclaimed(values.mean(axis=1).round(1))

A gate is a responder with `verdicts`: 1, 0, or NaN for nothing more. `RESPONDERS` of `textbook`
has those that experiments can name; Holdfast's own are in `targets`.

A new analyst is one class: `queries`, a world to `draw`, and a conversation about it.

    class Twice(NamedTuple):
        name = "twice"
        rows, queries = 100, 2

        def draw(self, chance):                           # a world, with its `holdout`
            return Sample(fair_bits(chance, 1, self.rows))

        def converse(self, world):
            replies = yield Means(lambda bits: bits, np.array([0.5]))
            level = replies.values[0]                     # NaN if it was refused
            yield Means(lambda bits: bits == (level > 0.5), np.array([0.5]))

A new kind of question is a `Question`: how it is put, and what is true of it in the population.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.randomness import Entropy

Bits = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Evaluate = Callable[[Any], NDArray[Any]]


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
    def unclaimed(cls, values: NDArray[Any]) -> Replies:
        """Values that come without a claim."""
        wide = np.full(len(values), np.inf)
        return cls(np.asarray(values, np.float64), -wide, wide)

    @classmethod
    def around(cls, values: FloatArray, half_width: float) -> Replies:
        """Values claimed to be this near to the truth."""
        return cls(values, values - half_width, values + half_width)

    @property
    def refused(self) -> bool:
        """Whether there is no value at all."""
        return bool(np.isnan(self.values).all())


@dataclass(frozen=True)
class Terms:
    """What a responder is told before the first question: nothing that depends on the rows."""

    rows: int
    queries: int
    entropy: Entropy
    failure: float = 0.05
    half_width: float | None = None


class Responder:
    """Whoever holds the rows. `certified` says whether its claims are Holdfast's promise.

    `values` have a line for each question and a column for each row. What is not answered is not
    overridden.
    """

    name: ClassVar[str] = ""
    certified: ClassVar[bool] = False
    fewest: int | None = None  # blocks that its certificate would need, where that is known

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        """Means of values in [0, 1]; `guesses` are what the analyst expects."""
        self._unknown("means")

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        """Medians of whole numbers below `points`; answers are such numbers."""
        self._unknown("medians")

    def sides(self, offsets: NDArray[np.int64], table: Callable[[], NDArray[Any]]) -> Replies:
        """Medians on two points, of which only counts need to be known.

        Of each question twice how many more than half of the rows are at the lower point; whoever
        wants the values takes the `table`.
        """
        return self.medians(table(), 2)

    def verdicts(self, values: NDArray[Any]) -> Replies:
        """Are rows with this property common enough? 1, 0, or NaN when nothing is left."""
        self._unknown("verdicts")

    def intervals(self, values: NDArray[Any], points: int) -> Replies:
        """Intervals for medians: `low` and `high` of a reply are indices of points."""
        self._unknown("intervals")

    def spent(self) -> object:
        """What it has charged so far, to be compared; None without a budget."""
        return None

    def _unknown(self, kind: str) -> NoReturn:
        hint = "Ask another kind of question, or another responder."
        raise InvalidInput("question", kind, f"of a kind that {self.name} answers", hint)


class Question(ABC):
    """Questions chosen together."""

    @property
    def looks(self) -> int:
        """What they cost, where looks are counted."""
        return 0

    @abstractmethod
    def put(self, rows: Any, responder: Responder) -> Replies:
        """Evaluate it on the rows, and ask."""

    @abstractmethod
    def reached(self, values: FloatArray) -> FloatArray:
        """What claims are about, given the answers: the truth of a mean, the rank of a median."""

    def errors(self, values: FloatArray, reached: FloatArray) -> FloatArray:
        """How far answers are from the truth; ranks, from 1/2."""
        return np.abs(reached - 0.5)

    def wrong(self, replies: Replies, reached: FloatArray) -> Bits:
        """Which claims are false."""
        outside = (reached < replies.low) | (reached > replies.high)
        return np.asarray(~np.isnan(replies.values) & outside)


@dataclass(frozen=True, eq=False)
class Means(Question):
    """Each the mean of a function of one row, with values in [0, 1].

    `truths` are the means in the population. `guesses` are what the analyst expects, from open
    data or otherwise; responders that confirm guesses use them.
    """

    values: Evaluate
    truths: FloatArray
    guesses: FloatArray | None = None

    def put(self, rows: Any, responder: Responder) -> Replies:
        return responder.means(self.values(rows), self.guesses)

    def reached(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.truths, np.float64)

    def errors(self, values: FloatArray, reached: FloatArray) -> FloatArray:
        return np.abs(values - reached)


@dataclass(frozen=True, eq=False)
class Medians(Question):
    """Each the median of a function of one row, values 0 … points − 1.

    `law` has a line for each question: P[value ≤ i] in the population, for every point i.
    """

    values: Evaluate
    law: FloatArray

    @property
    def points(self) -> int:
        """How many values are possible."""
        return int(self.law.shape[1])

    def put(self, rows: Any, responder: Responder) -> Replies:
        return responder.medians(self.values(rows), self.points)

    def reached(self, values: FloatArray) -> FloatArray:
        """The population rank of each answer, NaN where there is none."""
        padded = np.concatenate([np.zeros((len(self.law), 1)), self.law], axis=1)
        answered = np.nan_to_num(values).astype(np.int64)
        lines = np.arange(len(self.law))
        ranks = central_rank(padded[lines, answered], padded[lines, answered + 1])
        return np.where(np.isnan(values), np.nan, ranks)


@dataclass(frozen=True, eq=False)
class Verdicts(Question):
    """Is an event common enough? `masses` are what it has in the population."""

    values: Evaluate
    masses: FloatArray

    def put(self, rows: Any, responder: Responder) -> Replies:
        return responder.verdicts(self.values(rows))

    def reached(self, values: FloatArray) -> FloatArray:
        return self.masses


@dataclass(frozen=True, eq=False)
class Intervals(Question):
    """An interval that is to enclose the median of a function with values 0 … points − 1.

    `law` is as in `Medians`, of one question. Both ends are to have tails above `tail` as well.
    """

    values: Evaluate
    law: FloatArray
    tail: float

    def put(self, rows: Any, responder: Responder) -> Replies:
        return responder.intervals(self.values(rows), self.law.size)

    def reached(self, values: FloatArray) -> FloatArray:
        """The index of the population's median."""
        return np.full(len(values), float(np.argmax(self.law >= 0.5)))

    def wrong(self, replies: Replies, reached: FloatArray) -> Bits:
        ends = np.clip([replies.low, replies.high], 0, self.law.size - 1)  # refused, it has none
        first, last = ends.astype(np.int64)
        below = np.concatenate([[0.0], self.law])
        thin = (self.law[first] <= self.tail) | (1 - below[last] <= self.tail)
        return np.asarray(super().wrong(replies, reached) | (~np.isnan(replies.values) & thin))


def central_rank(below: FloatArray | float, up_to: FloatArray | float) -> FloatArray:
    """The population rank of an answer v, given D[φ < v] and D[φ ≤ v].

    Where the law has an atom v has a whole interval of ranks; this is the one nearest to 1/2, the
    kindest. So D[φ ≤ v] ≤ ρ just if the rank is ≤ ρ, and D[φ ≥ v] ≤ ρ just if it is ≥ 1 − ρ.

    >>> [float(central_rank(*pair)) for pair in ((0.1, 0.3), (0.3, 0.6), (0.7, 0.9))]
    [0.3, 0.5, 0.7]
    """
    return np.asarray(np.clip(0.5, below, up_to), np.float64)


class World(Protocol):
    """A sample of a population whose truths are known."""

    @property
    def holdout(self) -> Any:
        """The rows that the responder holds."""


class Sample(NamedTuple):
    """A world with nothing but its rows."""

    holdout: Any


Conversation = Generator[Question, Replies, None]


class Analyst(Protocol):
    """Asks questions, each chosen with the replies to all earlier ones in hand."""

    @property
    def queries(self) -> int:
        """The most questions that it asks."""

    def converse(self, world: Any) -> Conversation:
        """A new conversation about its rows, which are not to be read."""


@dataclass(frozen=True, eq=False)
class Session:
    """All replies of one conversation, in order; what they reached, and which claims are false.

    `last` is the question that was put last, whose replies are the last `ending`.
    """

    looks: int
    last: Question
    ending: int
    values: FloatArray
    low: FloatArray
    high: FloatArray
    reached: FloatArray
    errors: FloatArray
    wrong: Bits

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
        return int(np.count_nonzero(self.wrong))

    @property
    def rank(self) -> float:
        """Of all ranks that were reached the one farthest from 1/2."""
        return float(self.reached[np.nanargmax(self.errors)])

    def outside(self, tail: float) -> Bits:
        """Which ranks left the promised interval (tail, 1 − tail)."""
        return np.asarray((self.reached <= tail) | (self.reached >= 1 - tail))  # NaN is not


def interview(analyst: Analyst, world: World, responder: Responder) -> Session:
    """One conversation: every question is evaluated on the rows, and only then put."""
    return listen(analyst.converse(world), world.holdout, responder)


def listen(conversation: Conversation, rows: Any, responder: Responder) -> Session:
    """The same, of a conversation that has begun."""
    columns: list[tuple[NDArray[Any], ...]] = []
    question, looks = next(conversation), 0
    while True:
        replies = question.put(rows, responder)
        values, reached = replies.values, question.reached(replies.values)
        judged = question.errors(values, reached), question.wrong(replies, reached)
        columns.append((values, replies.low, replies.high, reached, *judged))
        looks += question.looks
        try:
            question = conversation.send(replies)
        except StopIteration:
            whole: list[Any] = [np.concatenate(each) for each in zip(*columns, strict=True)]
            return Session(looks, question, values.size, *whole)


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


def known_guesses(guesses: FloatArray | None, count: int) -> FloatArray:
    """A guess for every mean, in [0, 1]: 1/2 where the analyst has none.

    >>> known_guesses(np.array([0.2, np.nan, 1.5]), 3), known_guesses(None, 2)
    (array([0.2, 0.5, 1. ]), array([0.5, 0.5]))
    """
    if guesses is None:
        return np.full(count, 0.5)
    return np.clip(np.where(np.isnan(guesses), 0.5, guesses), 0.0, 1.0)


# Chance for the lab, many draws at once.
#
# `holdfast_lab.baselines.noise` is exact and takes 0.05 to 0.1 ms a draw: minutes for a million
# questions. The lab's responders certify nothing, so they add floats. What exact noise protects
# from, an analyst who reads the lowest bits of an answer, is not among the lab's analysts.


def fair_bits(chance: np.random.Generator, *shape: int) -> Bits:
    """A table of independent fair bits: one random bit each.

    >>> fair_bits(np.random.default_rng(2), 2, 3).shape
    (2, 3)
    """
    size = math.prod(shape)
    packed = np.frombuffer(chance.bytes(-(-size // 8)), np.uint8)
    return np.unpackbits(packed, count=size).reshape(shape).view(np.bool_)


def floats_from(entropy: Entropy) -> np.random.Generator:
    """A generator of floats, seeded by four words of the entropy.

    >>> from holdfast.randomness import SeededEntropy
    >>> floats_from(SeededEntropy(1)).normal(size=3).round(3).tolist()
    [1.141, -0.774, -0.83]
    """
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy.words(4).tolist())))
