"""A population on which every rank is known: blocks of independent fair signs.

A block is a list of ±1, each sign +1 with probability exactly 1/2 and independent of the others.
What an attack makes of them, a sum of signs with chosen orientations, then has a symmetric
binomial law, whatever made the analyst choose them: no rank has to be estimated.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.grids import Grid, IntegerGrid
from holdfast.mechanisms.looks import look, search
from holdfast.randomness import Entropy
from holdfast.theory.coins import Coin
from holdfast_lab.protocol_attacks.learners import Collector
from holdfast_lab.protocol_attacks.learners import Question as LabelQuestion

__all__ = [
    "Analyst",
    "Conversation",
    "ExactMedian",
    "FairBlocks",
    "Heard",
    "LabelAnalyst",
    "Labelled",
    "Looks",
    "PersistentAnalyst",
    "Question",
    "RareEvents",
    "Responder",
    "Score",
    "SignAggregator",
    "SignSum",
    "Signs",
    "answer_chance",
    "best_learning",
    "central_rank",
    "expected_breaking",
    "expected_failure",
    "interview",
    "margin",
    "score_grid",
]

_MOST_SIGNS = 10**9


@dataclass(frozen=True)
class SignSum:
    """The law of a sum of n independent fair signs: 2·Bin(n, 1/2) − n."""

    terms: int

    def __post_init__(self) -> None:
        whole_number("terms", self.terms, 0, _MOST_SIGNS)

    def at_most(self, values: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """P[sum ≤ value], right to 1e-10 relative (tested against whole-number arithmetic).

        >>> [float(p) for p in SignSum(3).at_most(np.array([-4, -3, -1, 0, 3]))]
        [0.0, 0.125, 0.5, 0.5, 1.0]
        """
        from scipy.special import betainc

        ups = np.clip((np.asarray(values, np.int64) + self.terms) // 2, -1, self.terms)
        inside = (ups >= 0) & (ups < self.terms)
        # P[Bin(n, 1/2) ≤ k] = I_{1/2}(n − k, k + 1)
        safe = np.where(inside, ups, 0)
        tail = betainc(np.maximum(self.terms - safe, 1), safe + 1, 0.5)
        return np.asarray(np.where(inside, tail, np.where(ups < 0, 0.0, 1.0)))

    def above(self, values: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """P[sum > value], as exact where it is small: the law is symmetric."""
        return self.at_most(-np.asarray(values, np.int64) - 1)

    def rare(self, tail: float) -> int:
        """The smallest value that is exceeded with probability at most `tail`.

        >>> law = SignSum(4_999)
        >>> law.rare(0.01), float(law.above(law.rare(0.01)))
        (165, 0.0094...)
        """
        low, high = -self.terms - 1, self.terms  # above(low) = 1 > tail ≥ 0 = above(high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.above(middle) <= tail else (middle, high)
        return high


def central_rank(
    below: NDArray[np.float64] | float, up_to: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """The population rank of an answer v, given D[φ < v] and D[φ ≤ v].

    Where the law has an atom v has a whole interval of ranks; this is the one nearest to 1/2, the
    kindest. So D[φ ≤ v] ≤ ρ just if the rank is ≤ ρ, and D[φ ≥ v] ≤ ρ just if it is ≥ 1 − ρ.

    >>> [float(central_rank(*pair)) for pair in ((0.1, 0.3), (0.3, 0.6), (0.7, 0.9))]
    [0.3, 0.5, 0.7]
    """
    return np.asarray(np.clip(0.5, below, up_to), np.float64)


class FairBlocks:
    """m blocks of n fair signs each, drawn from an entropy: one bit a sign, set for +1."""

    def __init__(self, blocks: int, features: int, entropy: Entropy) -> None:
        self.blocks = whole_number("blocks", blocks, 1, _MOST_SIGNS)
        self.features = whole_number("features", features, 1, _MOST_SIGNS)
        width = -(-self.features // 64)
        self._words = entropy.words(self.blocks * width).reshape(self.blocks, width)

    def signs(self, count: int) -> NDArray[np.int64]:
        """The first signs of all blocks: a table of ±1."""
        return 2 * self._bits(self._words, count).astype(np.int64) - 1

    def word(self, index: int) -> NDArray[np.uint64]:
        """For each block 64 of its signs, read as one number: uniform on 0 … 2⁶⁴ − 1."""
        return self._words[:, index]

    @cached_property
    def positive(self) -> NDArray[np.int64]:
        """For each sign, how many blocks have it +1."""
        total = np.zeros(self.features, np.int64)
        for start in range(0, self.blocks, 255):  # sums of 255 bits fit a byte, and bytes are fast
            bits = self._bits(self._words[start : start + 255], self.features)
            total += np.add.reduce(bits, axis=0, dtype=np.uint8)
        return total

    def sums(self, orientation: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each block Σ_j orientation_j·sign_j, orientation ±1 over the first signs.

        Of n signs those that disagree count −1: the sum is n − 2·#disagreeing.
        """
        wanted = self._packed(orientation > 0)
        asked = self._packed(np.ones(orientation.size, np.bool_))
        disagreeing = np.bitwise_count((self._words ^ wanted) & asked).sum(axis=1, dtype=np.int64)
        return orientation.size - 2 * np.asarray(disagreeing)

    def _packed(self, flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
        padded = np.zeros(64 * self._words.shape[1], np.bool_)
        padded[: flags.size] = flags
        return np.packbits(padded).view(np.uint64)

    @staticmethod
    def _bits(words: NDArray[np.uint64], count: int) -> NDArray[np.uint8]:
        return np.unpackbits(words.view(np.uint8), axis=1, count=count)


# Who holds the blocks of fair signs: the naive holdout, and the planned one.


class Responder(Protocol):
    """Whoever holds the blocks: answers with medians on a grid."""

    def low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """On a grid of two points: is the median the low one? Offsets are twice C − m/2."""

    def chance_low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """How likely `low` says so."""

    def median(self, values: NDArray[np.int64], grid: Grid) -> int:
        """The index of the median on a grid."""


class ExactMedian:
    """The naive holdout: the exact (lower) median of the blocks, every time."""

    def low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        return twice_offsets >= 0

    def chance_low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.low(twice_offsets).astype(np.float64)

    def median(self, values: NDArray[np.int64], grid: Grid) -> int:
        return int(np.sort(grid.ceiling(values))[(values.size - 1) // 2])


@dataclass(frozen=True)
class Looks:
    """The planned holdout: every answer is made of looks with one coin (theory.md §2, §3)."""

    coin: Coin
    entropy: Entropy

    def low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        return look(twice_offsets, self.coin, self.entropy)

    def chance_low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        wrong = self.coin.error(np.abs(twice_offsets))
        return np.where(twice_offsets > 0, 1 - wrong, wrong)

    def median(self, values: NDArray[np.int64], grid: Grid) -> int:
        return search(values, grid, self.coin, self.entropy)


# What an analyst may ask of blocks of fair signs.
#
# A batch of questions knows four things: the counts or values that it takes from the blocks, how
# many looks it costs, the population rank of every answer, and how likely an answer is to leave the
# promised ranks. Answers are indices into the grid.


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


# Analysts: each a conversation that chooses its next questions from the answers so far.
#
# `converse` is a generator: it yields a batch of questions and is sent their answers.
#
#     def converse(self):
#         answers = yield Signs(100)          # a first batch
#         yield Score(2 * answers - 1)        # a question made from its answers
#
# What an analyst may know: the population, the mechanism, its coin and the number of blocks. What
# it may not: the blocks. `interview` lets one talk to a responder and keeps the books.


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
    many looks to spend on which is a matter of the plan: `holdfast_lab.attacks.sign_sums` finds it.
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


# The collector of labels, against blocks of fair signs: 64 signs of a block are its label.
#
# It learns the labels of the holdout's blocks, one a question: everything below the first answer
# counts as low, every label known so far as high, and then an exact median is the next label. In
# the end it asks whether a label is known. Many blocks have such a label, fresh ones next to never.
# Against looks it is weak, for a search with coins ends somewhere near the middle.


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


# How an analyst should divide its looks, and where it should win: a model of its attack.
#
# An analyst who knows the coin can compute what learning is worth. Each look at a fair sign agrees
# with a block's own sign more often than not by a small margin a, so that after n of them the score
# of a block of the holdout is N(a·√n, 1), that of a fresh one N(0, 1). The event {score > z_ρ} then
# holds a share f = Φ(a·√n − z_ρ) of the holdout's blocks, a binomial count of them, and each of the
# N − n looks that are left slips with the probability of the coin at that count.
#
# The model decides how an analyst plays, never what an audit reports: that is played and counted.


_SHARES = np.arange(0.02, 0.99, 0.02)
_MOST_BLOCKS = 10**7


def margin(coin: Coin, blocks: int) -> float:
    """How much more often than not a look at a fair sign agrees with the sign of one block: a.

    The other blocks' count is binomial; a block moves it by one, and P[Yes] by the coin's slope.

    >>> from holdfast.theory.coins import probit_coin
    >>> round(margin(probit_coin(sigma=100.0, floor=1e-9), 400), 6)  # 1/√(2π(100² + 100))
    0.00397
    """
    others = np.arange(blocks)
    gained = _yes(coin, 2 * others + 2 - blocks) - _yes(coin, 2 * others - blocks)
    return float(_binomial(blocks - 1, 0.5) @ gained)


def expected_failure(coin: Coin, blocks: int, looks: int, learnt: int, tail: float) -> float:
    """The modelled rate of failure, if so many of the looks are spent on learning."""
    return _failure(coin, blocks, looks, learnt, tail, margin(coin, blocks))


def best_learning(coin: Coin, blocks: int, looks: int, tail: float) -> float:
    """The share of the looks to be spent on learning."""
    return _best(coin, blocks, looks, tail)[1]


@lru_cache(maxsize=64)
def expected_breaking(coin: Coin, looks: int, tail: float, failure: float) -> int:
    """The fewest blocks at which the modelled rate of failure is at most `failure`.

    >>> from holdfast.planning.solve import plan
    >>> made = plan(queries=100, grid=32, tail=0.01)
    >>> made.blocks, expected_breaking(made.coin(), made.looks, 0.01, 0.05)
    (110, 80)
    """
    low, high = 1, 2
    while high < _MOST_BLOCKS and _best(coin, high, looks, tail)[0] > failure:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        kept = _best(coin, middle, looks, tail)[0] <= failure
        low, high = (low, middle) if kept else (middle, high)
    return high


@lru_cache(maxsize=1024)
def _best(coin: Coin, blocks: int, looks: int, tail: float) -> tuple[float, float]:
    a = margin(coin, blocks)
    rates = [_failure(coin, blocks, looks, round(q * looks), tail, a) for q in _SHARES]
    return max(zip(rates, _SHARES.tolist(), strict=True))


def _failure(coin: Coin, blocks: int, looks: int, learnt: int, tail: float, a: float) -> float:
    from scipy.special import ndtr, ndtri

    share = float(ndtr(a * np.sqrt(learnt) + ndtri(tail)))
    slip = _yes(coin, 2 * np.arange(blocks + 1) - blocks)
    with np.errstate(divide="ignore"):
        fails = -np.expm1((looks - learnt) * np.log1p(-slip))
    return float(_binomial(blocks, share) @ fails)


def _yes(coin: Coin, twice_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    wrong = coin.error(np.abs(twice_offsets))
    return np.where(twice_offsets > 0, 1 - wrong, wrong)


def _binomial(trials: int, share: float) -> NDArray[np.float64]:
    """The probabilities of all counts."""
    from scipy.special import gammaln, xlog1py, xlogy

    counts = np.arange(trials + 1)
    ways = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    law = np.exp(ways + xlogy(counts, share) + xlog1py(trials - counts, -share))
    return np.asarray(law / law.sum())
