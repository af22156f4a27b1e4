"""A population on which every rank is known: blocks of independent fair signs.

A block is a list of ±1, each sign +1 with probability exactly 1/2 and independent of the others.
What an attack makes of them, a sum of signs with chosen orientations, then has a symmetric
binomial law, whatever made the analyst choose them: no rank has to be estimated.

What an analyst may know: the population, the mechanism, its coin and the number of blocks. What it
may not: the blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.grids import IntegerGrid
from holdfast.mechanisms.looks import look, search_many
from holdfast.randomness import Entropy
from holdfast.theory.coins import Coin
from holdfast_lab.attacks.conversation import (
    Bits,
    Conversation,
    FloatArray,
    Question,
    Replies,
    Responder,
    Sample,
    Session,
    central_rank,
    fair_bits,
)
from holdfast_lab.attacks.learners import Collector, GridQuestion, SearchResponder, draw_labels

Table = Callable[[], NDArray[Any]]

_MOST_SIGNS = 10**9


@dataclass(frozen=True)
class SignSum:
    """The law of a sum of n independent fair signs: 2·Bin(n, 1/2) − n."""

    terms: int

    def __post_init__(self) -> None:
        whole_number("terms", self.terms, 0, _MOST_SIGNS)

    def at_most(self, values: NDArray[np.int64] | int) -> FloatArray:
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

    def above(self, values: NDArray[np.int64] | int) -> FloatArray:
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


class FairBlocks:
    """m blocks of n fair signs each, drawn from an entropy: one bit a sign, set for +1."""

    def __init__(self, blocks: int, features: int, entropy: Entropy) -> None:
        self.blocks = whole_number("blocks", blocks, 1, _MOST_SIGNS)
        self.features = whole_number("features", features, 1, _MOST_SIGNS)
        width = -(-self.features // 64)
        self._words = entropy.words(self.blocks * width).reshape(self.blocks, width)

    @classmethod
    def of(cls, bits: Bits) -> FairBlocks:
        """These blocks: a line for each, set for +1."""
        found = cls.__new__(cls)
        found.blocks, found.features = bits.shape
        padded = np.zeros((found.blocks, 64 * -(-found.features // 64)), np.bool_)
        padded[:, : found.features] = bits
        found._words = np.packbits(padded, axis=1).view(np.uint64)
        return found

    @property
    def holdout(self) -> FairBlocks:
        """Itself: all that there is to hold."""
        return self

    def table(self, first: int, end: int) -> Bits:
        """Some of the signs as bits: a line for each sign."""
        return np.ascontiguousarray(self._bits(self._words, end)[:, first:].T).view(np.bool_)

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
        """For each block Σ_j orientation_j·sign_j over the first signs; orientations −1, 0 or 1.

        Of n signs that count those that disagree count −1: the sum is n − 2·#disagreeing.
        """
        wanted, asked = self._packed(orientation > 0), self._packed(orientation != 0)
        disagreeing = np.bitwise_count((self._words ^ wanted) & asked).sum(axis=1, dtype=np.int64)
        return np.count_nonzero(orientation) - 2 * np.asarray(disagreeing)

    def _packed(self, flags: Bits) -> NDArray[np.uint64]:
        padded = np.zeros(64 * self._words.shape[1], np.bool_)
        padded[: flags.size] = flags
        return np.packbits(padded).view(np.uint64)

    @staticmethod
    def _bits(words: NDArray[np.uint64], count: int) -> NDArray[np.uint8]:
        return np.unpackbits(words.view(np.uint8), axis=1, count=count)


# Who holds the blocks: the naive holdout, and the planned one.


class ExactMedian(SearchResponder):
    """The naive holdout: the exact (lower) median of the blocks, every time."""

    name = "naive"

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        middle = (values.shape[1] - 1) // 2
        return Replies.unclaimed(np.partition(values, middle, axis=1)[:, middle])

    def sides(self, offsets: NDArray[np.int64], table: Table) -> Replies:
        return Replies.unclaimed(offsets < 0)

    def chance_low(self, twice_offsets: NDArray[np.int64]) -> FloatArray:
        return (twice_offsets >= 0).astype(np.float64)


class Looks(SearchResponder):
    """The planned holdout: every answer is made of looks with one coin (theory.md §2, §3)."""

    name = "looks"

    def __init__(self, coin: Coin, entropy: Entropy) -> None:
        self.coin, self._entropy = coin, entropy

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        grid = IntegerGrid(0, points - 1)
        return Replies.unclaimed(search_many(values, grid, self.coin, self._entropy))

    def sides(self, offsets: NDArray[np.int64], table: Table) -> Replies:
        return Replies.unclaimed(~look(offsets, self.coin, self._entropy))

    def chance_low(self, twice_offsets: NDArray[np.int64]) -> FloatArray:
        return _yes(self.coin, twice_offsets)


def _yes(coin: Coin, twice_offsets: NDArray[np.int64]) -> FloatArray:
    wrong = coin.error(np.abs(twice_offsets))
    return np.where(twice_offsets > 0, 1 - wrong, wrong)


# What an analyst may ask of blocks of fair signs. Answers are indices into a grid.


_FINAL_POINTS = 1_024
_WORD = 2**64
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd: its multiples are all different, and far apart
_MARGIN = 1e-9  # tails are known to 1e-10: an event of tail ρ is never larger than that


@dataclass(frozen=True)
class Signs(Question):
    """For each of `count` signs: is its median −1 or +1? One look each.

    Both answers are right: in the population the signs are fair. But each leaks which way the
    majority of these blocks leans.
    """

    count: int
    first: int = 0

    @property
    def looks(self) -> int:
        return self.count

    def put(self, rows: FairBlocks, responder: Responder) -> Replies:
        end = self.first + self.count
        offsets = rows.blocks - 2 * rows.positive[self.first : end]
        return responder.sides(offsets, lambda: rows.table(self.first, end))

    def reached(self, values: FloatArray) -> FloatArray:
        return np.where(np.isnan(values), np.nan, 0.5)

    def chance(self, rows: FairBlocks, responder: SearchResponder, tail: float) -> float:
        """That a rank leaves (tail, 1 − tail): all ranks are 1/2."""
        return 0.0


@lru_cache(maxsize=64)
def score_grid(terms: int) -> IntegerGrid:
    """1,024 whole numbers around 0, at least five standard deviations of the sum to each side.

    >>> score_grid(9_990)
    grid(-512, 511, scale='integer')
    """
    half = _FINAL_POINTS // 2
    step = max(1, -(-int(5 * np.ceil(np.sqrt(terms))) // half))
    return IntegerGrid(-half * step, (half - 1) * step, step)


@dataclass(frozen=True, eq=False)
class Score(GridQuestion):
    """The median of Σ_j orientation_j·sign_j over the blocks, by a search of its grid.

    Sums beyond the grid count as its ends. Signs whose orientation is 0 are left out.
    """

    points = _FINAL_POINTS
    orientation: NDArray[np.int64]

    @property
    def terms(self) -> int:
        """How many signs count."""
        return int(np.count_nonzero(self.orientation))

    def __call__(self, blocks: FairBlocks) -> NDArray[np.int64]:
        return score_grid(self.terms).ceiling(blocks.sums(self.orientation))

    def ranks(self, answers: NDArray[np.int64]) -> FloatArray:
        law, grid = SignSum(self.terms), score_grid(self.terms)
        values = grid.points(answers)
        below = np.where(answers == 0, 0.0, law.at_most(values - grid.step))
        up_to = np.where(answers == grid.size - 1, 1.0, law.at_most(values))
        return central_rank(below, up_to)


@dataclass(frozen=True)
class _Event:
    """Scores above a threshold, and of those equal to it a part: together of almost a given mass.

    `levels` of 2⁶⁴ tie levels belong to it, an odd number: then every mask makes another event.
    """

    threshold: int
    levels: int
    mass: float


@lru_cache(maxsize=256)
def rare_event(terms: int, tail: float) -> _Event:
    """Never more than the tail, and less by hardly more than one part in 10⁹."""
    law, most = SignSum(terms), tail * (1 - _MARGIN)
    threshold = law.rare(most)
    above = float(law.above(threshold))
    tied = float(law.above(threshold - 1)) - above
    levels = min(int((most - above) / tied * _WORD), _WORD - 1) | 1
    return _Event(threshold, levels, above + tied * (levels / _WORD))


@dataclass(frozen=True, eq=False)
class RareEvents(Question):
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

    @cached_property
    def event(self) -> _Event:
        """What all of them have in common."""
        return rare_event(self.orientation.size, self.tail)

    def above(self, rows: FairBlocks) -> NDArray[np.int64]:
        """For each question, how many blocks have the event."""
        sums = rows.sums(self.orientation)
        tied = self._chosen(rows)[sums == self.event.threshold]
        surely = np.count_nonzero(sums > self.event.threshold)
        return surely + np.asarray(np.count_nonzero(self._inside(tied), axis=0), np.int64)

    def _chosen(self, rows: FairBlocks) -> NDArray[np.uint64]:
        """The 64 signs of each block that choose among ties."""
        return rows.word(-(-self.orientation.size // 64))

    def _inside(self, words: NDArray[np.uint64]) -> Bits:
        masks = np.arange(self.count, dtype=np.uint64) * _SPREAD
        return np.asarray((words[:, np.newaxis] ^ masks) < np.uint64(self.event.levels))

    def _table(self, rows: FairBlocks) -> Bits:
        sums = rows.sums(self.orientation)[:, np.newaxis]
        tied = (sums == self.event.threshold) & self._inside(self._chosen(rows))
        return np.asarray((sums > self.event.threshold) | tied).T

    def put(self, rows: FairBlocks, responder: Responder) -> Replies:
        return responder.sides(rows.blocks - 2 * self.above(rows), lambda: self._table(rows))

    def reached(self, values: FloatArray) -> FloatArray:
        common = 1.0 - self.event.mass
        high = central_rank(np.where(values > 0, common, 0.0), np.where(values > 0, 1.0, common))
        return np.where(np.isnan(values), np.nan, high)

    def chance(self, rows: FairBlocks, responder: SearchResponder, tail: float) -> float:
        """That a rank leaves (tail, 1 − tail), given the blocks."""
        if self.event.mass > tail:
            return 0.0
        high = 1 - responder.chance_low(rows.blocks - 2 * self.above(rows))
        with np.errstate(divide="ignore"):  # a look that is sure to slip
            return float(-np.expm1(np.log1p(-high).sum()))


def failure_chance(session: Session, rows: Any, responder: SearchResponder, tail: float) -> float:
    """How likely a session was to leave the promised ranks when its last batch was put.

    Exact for the last batch, given all that was asked before, and 1 if it has happened before. On
    average over conversations it is the rate of failure, and it varies less than failures do.
    """
    if session.outside(tail)[: -session.ending].any():
        return 1.0
    last = session.last
    assert isinstance(last, Signs | GridQuestion | RareEvents)
    return last.chance(rows, responder, tail)


# Analysts of blocks. Each says how many `looks` it takes, and draws the blocks that it is about.


_MOST = 10**6
_BATCH = 10_000  # signs at once


class SignAnalyst(ABC):
    """Asks about signs of blocks, and counts its looks."""

    @property
    @abstractmethod
    def looks(self) -> int:
        """How many looks the whole conversation takes."""

    @property
    @abstractmethod
    def features(self) -> int:
        """How many signs a block must have."""

    @property
    def queries(self) -> int:
        """No more than it takes looks."""
        return self.looks

    def sample(self, blocks: int, entropy: Entropy) -> Any:
        """A fresh world of so many blocks."""
        return FairBlocks(blocks, self.features, entropy)

    @abstractmethod
    def converse(self, world: Any) -> Conversation:
        """A new conversation."""

    def learn(self, count: int) -> Generator[Question, Replies, NDArray[np.int64]]:
        """Which way do the first signs lean? A refusal says nothing: then it is 0."""
        leaning = []
        for first in range(0, count, _BATCH):
            replies = yield Signs(min(_BATCH, count - first), first)
            leaning.append(replies.values)
        return np.nan_to_num(2 * np.concatenate(leaning) - 1).astype(np.int64)


@dataclass(frozen=True)
class SignAggregator(SignAnalyst):
    """Asks which way each of many signs leans, adds them up as answered, asks for the median.

    Each answer b_j agrees with a block's own sign a little more often than not: by 1/√(2πm) for
    an exact median, by half the coin's slope for a look. Over J questions the score Σ_j b_j·x_j
    of a block of the holdout drifts by √J times twice that many standard deviations; that of a
    fresh block does not. The answers of a symmetric coin to fair signs all have the same likelihood
    ratio, so that the plain sum is the best score an analyst who knows the coin can form.
    """

    name: ClassVar[str] = "sign-aggregation"

    questions: int = 9_990
    rows: int = 500  # of a world that is drawn by chance

    def __post_init__(self) -> None:
        whole_number("questions", self.questions, 1, _MOST)
        whole_number("rows", self.rows, 1, _MOST)

    @property
    def queries(self) -> int:
        """The signs and their sum."""
        return self.questions + 1

    @property
    def looks(self) -> int:
        return self.questions + score_grid(self.questions).looks

    @property
    def features(self) -> int:
        return self.questions

    def draw(self, chance: np.random.Generator) -> FairBlocks:
        return FairBlocks.of(fair_bits(chance, self.questions, self.rows).T)

    def converse(self, world: FairBlocks) -> Conversation:
        if world.features < self.questions:
            allowed = f"of at least {self.questions:,} signs"
            raise InvalidInput("blocks", world.features, allowed)
        yield Score((yield from self.learn(self.questions)))


@dataclass(frozen=True)
class PersistentAnalyst(SignAnalyst):
    """Learns as the aggregator does, then asks about events of population tail ρ until one slips.

    A coin is never certain: asked often enough about an event that few blocks have, it says Yes
    once. What was learnt brings more blocks into the event, and the count nearer to the target. How
    many looks to spend on which is a matter of the plan: `best_learning` finds it.
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

    def converse(self, world: FairBlocks) -> Conversation:
        orientation = yield from self.learn(self.learnt)
        yield RareEvents(orientation, self.total - self.learnt, self.tail)


_MOST_BITS = 40


@dataclass(frozen=True)
class LabelAnalyst(SignAnalyst):
    """Collects labels as long as its looks last, and asks about those that it knows.

    Against looks the collector is weak, for a search with coins ends somewhere near the middle.
    """

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

    def sample(self, blocks: int, entropy: Entropy) -> Sample:
        return Sample(draw_labels(blocks, 2**self._bits, entropy))

    def converse(self, world: Sample) -> Conversation:
        left = self.total - 1  # one look is kept for the end
        collector = Collector(2**self._bits, self.points, self.tail)
        while not collector.done:
            question = collector.question
            left -= question.looks
            if left < 0:
                break
            before = collector.learnt
            replies = yield question
            collector.learn(int(replies.values[0]))
            if collector.learnt > max(before, self.needed - 1) and left > 0:
                left -= 1
                yield collector.event
        yield collector.event


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

    >>> from holdfast_lab.attacks.targets import plan
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


def _binomial(trials: int, share: float) -> FloatArray:
    """The probabilities of all counts."""
    from scipy.special import gammaln, xlog1py, xlogy

    counts = np.arange(trials + 1)
    ways = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    law = np.exp(ways + xlogy(counts, share) + xlog1py(trials - counts, -share))
    return np.asarray(law / law.sum())
