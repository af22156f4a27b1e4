"""Published attacks: each an analyst, with the world that it draws.

Freedman            screens variables, then tests the survivors on the same rows
VariableSelection   selects attributes with a holdout's help (the experiment of Thresholdout)
Boosting            climbs a leaderboard by the vote of lucky submissions
Quadratic           the strategy of Rogers et al. 2020: weighted votes, again and again
Subgroups           searches real flights for the worst subgroups

`signs.SignAggregator` adds up medians of fair signs, then asks for the median of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast_lab.attacks.conversation import (
    Bits,
    Conversation,
    FloatArray,
    Means,
    Sample,
    fair_bits,
)
from holdfast_lab.attacks.signs import SignAggregator
from holdfast_lab.flights import Cell, Flights, Rows, load_flights

# The boosting attack on a leaderboard (Blum & Hardt 2015, "The Ladder", section 4).


Keep = Literal["half", "lower"]

_MOST = 10**6


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Random labels that nobody can predict, and random predictions of them.

    Everybody sees what the predictions are made from, nobody the labels: the rows held back. So
    whatever the analyst makes of the predictions has loss 1/2 in the population.
    """

    holdout: Bits
    predictions: Bits


@dataclass(frozen=True)
class Boosting:
    """Submits random predictions, keeps those that did well, submits their majority vote.

    What "well" means depends on what the leaderboard shows. If it shows each submission's loss, a
    loss of at most 1/2 (`keep="half"`). If it shows the best so far, as the Ladder does, a score
    below the one before, or a first one below 1/2 (`keep="lower"`). Both rules, and ties that vote
    for 1, are those of the authors' experiment.
    """

    name: ClassVar[str] = "boosting"

    rows: int = 4_000
    submissions: int = 400
    keep: Keep = "half"

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, _MOST)
        whole_number("submissions", self.submissions, 1, _MOST)
        if self.keep not in ("half", "lower"):
            raise InvalidInput("keep", self.keep, "'half' or 'lower'")

    @property
    def queries(self) -> int:
        """The submissions and the vote."""
        return self.submissions + 1

    def draw(self, chance: np.random.Generator) -> Leaderboard:
        return Leaderboard(
            fair_bits(chance, self.rows), fair_bits(chance, self.submissions, self.rows)
        )

    def converse(self, world: Leaderboard) -> Conversation:
        half = np.full(self.submissions, 0.5)
        replies = yield _losses(world.predictions, half)
        kept = self._kept(replies.values)
        votes = np.count_nonzero(world.predictions[kept], axis=0)
        majority = 2 * votes >= np.count_nonzero(kept)
        yield _losses(majority[np.newaxis], np.array([_promised_loss(replies.values[kept])]))

    def _kept(self, scores: FloatArray) -> Bits:
        if self.keep == "half":
            return np.asarray(scores <= 0.5)  # a refusal is not
        before = np.concatenate([[0.5], scores[:-1]])
        return np.asarray(scores < before)


def _losses(predictions: Bits, guesses: FloatArray) -> Means:
    def values(labels: Any) -> Bits:
        return np.asarray(predictions ^ labels)

    return Means(values, np.full(len(predictions), 0.5), guesses)


def _promised_loss(scores: FloatArray) -> float:
    """The loss of the vote as the scores promise it: Φ(−√K · mean of 1 − 2·score), K votes.

    If the scores were losses on fresh rows, a row's K votes would have this mean and variance 1.

    >>> round(_promised_loss(np.full(200, 0.4937)), 3)
    0.429
    """
    if not scores.size:
        return 0.5
    edge = math.sqrt(scores.size) * float(np.mean(1 - 2 * scores))
    return 0.5 * math.erfc(edge / math.sqrt(2))


# Screening variables and then testing the survivors on the same rows (Freedman 1983).
#
# ("A note on screening regression equations", The American Statistician 37.) Nothing predicts
# anything; a first pass keeps the variables that look useful, a second pass finds that they are.
#
# Rows are fair bits, a line for each variable: does it agree with the outcome here? Outcome and
# variables are independent fair signs, and so are their products.


@dataclass(frozen=True)
class Freedman:
    """Keeps the variables whose agreement with the outcome is significant at `level`, lets them
    vote, each for or against as its sign says, and asks how often the vote is right.

    A tied vote counts as half right: it is cast by a coin. In the population every vote is right
    half the time.
    """

    name: ClassVar[str] = "freedman"

    rows: int = 100
    variables: int = 50
    level: float = 0.25

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, _MOST)
        whole_number("variables", self.variables, 1, _MOST)
        real_number("level", self.level, 0, 1, open_low=True, open_high=True)

    @property
    def queries(self) -> int:
        """One for each variable, and the vote."""
        return self.variables + 1

    def draw(self, chance: np.random.Generator) -> Sample:
        return Sample(fair_bits(chance, self.variables, self.rows))

    def converse(self, world: Sample) -> Conversation:
        from scipy.special import ndtr, ndtri

        half = np.full(self.variables, 0.5)
        replies = yield Means(lambda table: table, half, half)
        leans = np.nan_to_num(2 * replies.values - 1)  # a refusal leans nowhere
        kept = np.abs(leans) * math.sqrt(self.rows) > ndtri(1 - self.level / 2)
        edge = np.abs(leans[kept]).sum() / math.sqrt(max(int(kept.sum()), 1))
        yield Means(_vote(np.sign(leans) * kept), np.array([0.5]), np.array([float(ndtr(edge))]))


def _vote(signs: FloatArray) -> Callable[[Any], FloatArray]:
    """How often the vote is right: for and against are counted apart, as bits."""

    def values(table: Any) -> FloatArray:
        margin = _lead(table[signs > 0]) - _lead(table[signs < 0])
        return np.asarray((1.0 + np.sign(margin)) / 2)[np.newaxis]

    return values


def _lead(agreeing: Bits) -> FloatArray:
    return np.asarray(2.0 * np.count_nonzero(agreeing, axis=0) - len(agreeing))


# The strategy of Rogers et al. 2020, "Guaranteed Validity for Empirical Approaches to Adaptive
# Data Analysis" (AISTATS), with which they test their mechanisms.
#
# A row has k + 1 fair signs x(1), …, x(k + 1), all independent. Most questions ask how often a sign
# agrees with the last one,
#
#     φ_j(x) = (1 + x(j)·x(k + 1)) / 2,
#
# and those whose numbers are in a set S how often the last sign is predicted by all signs asked
# about before, each with the log-odds of its answer a_i as weight:
#
#     φ_j(x) = 1  if  sign(Σ_i x(i)·ln((1 + c_i)/(1 − c_i))) = x(k + 1),   c_i = 2·a_i − 1,
#
# with sign(0) = 1. The truth of every question is 1/2. Their "quadratic" strategy, that of section
# 3, has S = {4, 9, 16, …}.


_BATCH = 500  # questions at once: their table is as long as the rows
_TIE = 1e-9  # of the largest weight: what rounding makes of a vote that is tied
_SURE = 1 - 1e-15  # an answer of 0 or 1 would weigh without end


@dataclass(frozen=True, eq=False)
class Agreements:
    """Rows of signs: whether each agrees with the last one, packed, and the last one itself.

    Signs and agreements have the same law: fair and independent of each other and of the last.
    """

    packed: np.ndarray[tuple[int, int], np.dtype[np.uint8]]
    last: Bits

    def agree(self, first: int, end: int) -> Bits:
        """A line for each of these signs."""
        bits = np.unpackbits(self.packed[first:end], axis=1, count=self.last.size)
        return bits.view(np.bool_)


@dataclass(frozen=True)
class Quadratic:
    """Asks for agreements, and every so often how well their weighted vote predicts."""

    name: ClassVar[str] = "quadratic"

    rows: int = 10_000
    queries: int = 2_500

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, _MOST)
        whole_number("queries", self.queries, 2, _MOST)

    @property
    def votes(self) -> tuple[int, ...]:
        """S: the numbers of the questions about the vote, counted from 1."""
        return tuple(root**2 for root in range(2, math.isqrt(self.queries) + 1))

    def draw(self, chance: np.random.Generator) -> Sample:
        signs = self.queries - len(self.votes)
        width = -(-self.rows // 8)
        packed = np.frombuffer(chance.bytes(signs * width), np.uint8).reshape(signs, width)
        return Sample(Agreements(packed, fair_bits(chance, self.rows)))

    def converse(self, world: Sample) -> Conversation:
        del world  # nothing but the answers is used
        vote, signs, asked = _Vote(), 0, 0
        for number in (*self.votes, self.queries + 1):
            while asked < number - 1:
                count = min(_BATCH, number - 1 - asked)
                replies = yield _agreements(signs, signs + count)
                vote.learn(replies.values)
                signs, asked = signs + count, asked + count
            if number <= self.queries:
                yield Means(vote, np.array([0.5]), np.array([vote.promised]))
                asked += 1


def _agreements(first: int, end: int) -> Means:
    half = np.full(end - first, 0.5)
    return Means(lambda rows: rows.agree(first, end), half, half)


class _Vote:
    """The weighted vote of the signs asked about so far, as a question.

    It remembers the votes it has added up: a function may.
    """

    def __init__(self) -> None:
        self._weights: list[FloatArray] = []
        self._squares = 0.0
        self._added = 0
        self._sums: FloatArray | None = None

    def learn(self, answers: FloatArray) -> None:
        """The weights of the next signs; one whose question was refused has none."""
        edge = np.clip(np.nan_to_num(2 * answers - 1), -_SURE, _SURE)
        self._weights.append(np.log((1 + edge) / (1 - edge)))
        self._squares += float(edge @ edge)

    @property
    def promised(self) -> float:
        """How often the vote predicts the last sign if the answers are true: Φ(√(Σ c²))."""
        return 0.5 * math.erfc(-math.sqrt(self._squares / 2))

    def __call__(self, rows: Agreements) -> Bits:
        weights = np.concatenate(self._weights)
        sums = np.zeros(rows.last.size) if self._sums is None else self._sums
        for first in range(self._added, weights.size, _BATCH):
            end = min(first + _BATCH, weights.size)
            sums = sums + weights[first:end] @ (2.0 * rows.agree(first, end) - 1)
        self._sums, self._added = sums, weights.size
        tied = np.abs(sums) <= _TIE * np.abs(weights).max(initial=0.0)
        return np.where(tied, rows.last, sums > 0)[np.newaxis]


# A search for the worst flights, subgroup by subgroup, on a sample of real ones.
#
# The analyst keeps a list of cells, at first the one with all flights. Round by round it splits
# every cell of the list by the next column of the schedule, asks of each part how often flights in
# it are late, and keeps the worst parts, until they have a given share of the flights on the list
# before. In the end it asks how often flights on the list are late.
#
# Asked is the share of all flights that are in a cell *and* late, a mean over all rows. The
# schedule is public, and so is a cell's share of the flights; the quotient is the rate. What cannot
# be a rate, because it is above 1, tells nothing of the part: it inherits the rate of the cell it
# is from.
#
# The population is all flights that left New York in 2013. Rows are drawn from it with replacement,
# so that they are independent, as every promise about them needs.


_SUBGROUPS_BATCH = 100  # questions at once
_UNKNOWN = 0.5


@dataclass(frozen=True)
class Listed:
    """What a search has found: cells, their share of all flights, and how many of them are late."""

    cells: tuple[Cell, ...]
    share: float
    rate: float


@dataclass(eq=False)
class FlightSample:
    """Flights held back, as row numbers; `found` is what the last conversation has found."""

    flights: Flights
    holdout: Rows
    found: Listed | None = None


@dataclass(frozen=True)
class Subgroups:
    """Refines a list of subgroups, the worst first, with at most so many questions."""

    name: ClassVar[str] = "subgroups"

    rows: int = 30_000
    queries: int = 450
    keep: float = 0.7
    columns: tuple[str, ...] = ("part", "origin", "carrier", "month")
    least: float = 0.0002  # of all flights: smaller parts are not asked about

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, 10**7)
        whole_number("queries", self.queries, 2, 10**6)
        real_number("keep", self.keep, 0, 1, open_low=True)
        real_number("least", self.least, 0, 1)

    def draw(self, chance: np.random.Generator) -> FlightSample:
        flights = load_flights()
        return FlightSample(flights, flights.sample(self.rows, chance))

    def converse(self, world: FlightSample) -> Conversation:
        flights, left = world.flights, self.queries - 1
        found: dict[Cell, float] = {(): _UNKNOWN}
        for column in self.columns:
            parts = self._parts(flights, found, column, left)
            left -= len(parts.cells)
            answers: list[FloatArray] = []
            for first in range(0, len(parts.cells), _SUBGROUPS_BATCH):
                replies = yield parts.question(flights, first, first + _SUBGROUPS_BATCH)
                answers.append(replies.values)
            if answers:
                found = parts.worst(np.concatenate(answers), self.keep)
        rows = flights.listed(found)
        world.found = Listed(
            tuple(found), rows.size / flights.count, float(flights.late[rows].mean())
        )
        yield _last_question(flights, world.found)

    def _parts(self, flights: Flights, found: dict[Cell, float], column: str, most: int) -> _Parts:
        least = self.least * flights.count
        split = {cell: flights.parts(cell, (column,), least) for cell in found}
        cells = [(part, found[cell]) for cell, parts in split.items() for part in parts][:most]
        shares = [flights.rows(part).size / flights.count for part, _ in cells]
        before = [rate for _, rate in cells]
        return _Parts([part for part, _ in cells], np.array(shares), np.array(before))


@dataclass(frozen=True, eq=False)
class _Parts:
    """One round: the parts of the cells on the list, their shares, and the rates before."""

    cells: list[Cell]
    shares: FloatArray
    before: FloatArray

    def question(self, flights: Flights, first: int, end: int) -> Means:
        """Some of them: the share of all flights that are in a part, and late."""
        cells = self.cells[first:end]
        truths = np.array(
            [
                float(np.count_nonzero(flights.late[flights.rows(cell)]) / flights.count)
                for cell in cells
            ]
        )

        def values(rows: Rows) -> NDArray[np.bool_]:
            return np.stack([flights.contains(cell, rows) for cell in cells]) & flights.late[rows]

        return Means(values, truths, (self.before * self.shares)[first:end])

    def worst(self, answers: FloatArray, keep: float) -> dict[Cell, float]:
        """The worst parts, up to this share of them all, with their rates; equal ones in order."""
        rates = answers / self.shares
        rates = np.where(rates <= 1, rates, self.before)  # nor is a refusal
        order = np.argsort(-rates, kind="stable")
        needed = keep * self.shares.sum() * (1 - 1e-12)
        count = 1 + int(np.searchsorted(np.cumsum(self.shares[order]), needed))
        return {self.cells[i]: float(rates[i]) for i in order[:count].tolist()}


def _last_question(flights: Flights, listed: Listed) -> Means:
    on_list = np.zeros(flights.count, np.bool_)
    on_list[flights.listed(listed.cells)] = True
    wanted = on_list & flights.late
    truth = float(np.count_nonzero(wanted) / flights.count)
    return Means(lambda rows: wanted[rows][np.newaxis], np.array([truth]))


# Variable selection on a holdout: the experiment of the paper that introduced Thresholdout.
#
# (Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, "The reusable holdout", Science 349:636.) A
# training set and a holdout of n rows each have d normal attributes and a random label ±1. The
# analyst keeps the attributes whose correlation with the label exceeds 1/√n on both sets with the
# same sign, takes the k of them that are largest on the training set, and classifies by the sign of
# their signed sum. Then it asks the holdout how good that is.


REACH = 127 / 32
"""Attributes are clipped here, in standard deviations: questions map [−REACH, REACH] to [0, 1]."""

_LEVELS = 16  # of an attribute, for each standard deviation
_TOGETHER = 500  # questions in a batch


class _Law(NamedTuple):
    """An attribute times the label, in halves of levels: 2^16 equally likely whole numbers."""

    atoms: NDArray[np.int8]

    @property
    def mean(self) -> float:
        return float(self.atoms.mean()) / (2 * _LEVELS)

    @property
    def variance(self) -> float:
        return float(self.atoms.var()) / (2 * _LEVELS) ** 2


@cache
def _law(bias: float) -> _Law:
    """N(bias, 1), cut into bins of 1/16, each bin at its middle, an odd number of 32nds."""
    from scipy.special import ndtri

    values = ndtri((np.arange(2**16) + 0.5) / 2**16) + bias
    return _Law(np.clip(2 * np.floor(_LEVELS * values) + 1, -127, 127).astype(np.int8))


@dataclass(frozen=True, eq=False)
class Attributes:
    """The holdout: a line for each attribute, a column for each row; and what training showed.

    The label is random and independent, so only attribute × label matters: that is what is kept,
    in 32nds of a standard deviation. `training` has the correlations on the training set.
    """

    holdout: NDArray[np.int8]
    training: FloatArray
    signals: int
    bias: float
    seed: int


@dataclass(frozen=True)
class VariableSelection:
    """Selects attributes with a holdout's help, then asks for the classifier's accuracy.

    `signals` attributes lean towards the label by `lean`/√n each, the others not at all.
    `sizes` are the numbers of attributes whose classifiers are asked for, as many as there are.
    Attributes are bounded and rounded to sixteenths; a tied sum counts as half right.

    The training set is not drawn, only what is seen of it. Its correlations are N(bias, 1/n). A
    column, given its correlation w, is w plus N(0, I − 11ᵀ/n); so the signed sum of k columns is
    the sum of |w| plus √k times such a vector, and grows by independent pieces.

    With `one_scale` accuracies are put on the scale of the correlations, as numbers in
    [−REACH, REACH]: for a responder whose thresholds belong to that scale.
    """

    name: ClassVar[str] = "variable-selection"

    rows: int = 10_000
    variables: int = 10_000
    signals: int = 0
    lean: float = 6.0
    sizes: tuple[int, ...] = tuple(range(25, 501, 25))
    one_scale: bool = False

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 2, _MOST)
        whole_number("variables", self.variables, 1, _MOST)
        whole_number("signals", self.signals, 0, self.variables)
        real_number("lean", self.lean, 0)
        for size in self.sizes:
            whole_number("sizes", size, 1, _MOST)
        if list(self.sizes) != sorted(set(self.sizes)) or not self.sizes:
            raise InvalidInput("sizes", self.sizes, "growing numbers")

    @property
    def queries(self) -> int:
        """One for each attribute, and one for each classifier."""
        return self.variables + len(self.sizes)

    def draw(self, chance: np.random.Generator) -> Attributes:
        bias = self.lean / math.sqrt(self.rows)
        leans = np.where(np.arange(self.variables) < self.signals, bias, 0.0)
        training = leans + chance.standard_normal(self.variables) / math.sqrt(self.rows)
        seed, words = int(chance.integers(2**63)), -(-self.rows // 4)
        bits = np.random.SFC64(int(chance.integers(2**63)))  # 10^8 draws: the fastest there is
        holdout = np.empty((self.variables, self.rows), np.int8)
        for place in range(self.variables):
            drawn = bits.random_raw(words).view(np.uint16)[: self.rows]
            np.take(_law(leans[place]).atoms, drawn, out=holdout[place], mode="clip")
        return Attributes(holdout, training, self.signals, bias, seed)

    def converse(self, world: Attributes) -> Conversation:
        least = 1 / math.sqrt(self.rows)
        said = np.empty(self.variables)
        for start in range(0, self.variables, _TOGETHER):
            lines = slice(start, min(start + _TOGETHER, self.variables))
            replies = yield _correlations(world, lines)
            said[lines] = REACH * (2 * replies.values - 1)
        strong = np.minimum(np.abs(world.training), np.abs(said)) > least  # a refusal is not
        chosen = np.flatnonzero(strong & (np.sign(world.training) == np.sign(said)))
        chosen = chosen[np.argsort(-np.abs(world.training[chosen]), kind="stable")]
        classifiers = _Classifiers(world, chosen, self.sizes)
        yield Means(
            lambda table: self._scaled(classifiers.right(table)),
            self._scaled(classifiers.truths()),
            self._scaled(classifiers.training()),
        )

    def accuracies(self, replies: FloatArray) -> FloatArray:
        """Accuracies from replies to the classifiers' questions."""
        return REACH * (2 * replies - 1) if self.one_scale else replies

    def _scaled(self, accuracies: FloatArray) -> FloatArray:
        return (1 + accuracies / REACH) / 2 if self.one_scale else accuracies


class _Classifiers(NamedTuple):
    """One for each size: the sign of the signed sum of the first attributes chosen."""

    world: Attributes
    chosen: NDArray[np.int64]
    sizes: tuple[int, ...]

    @property
    def signs(self) -> NDArray[np.int8]:
        return np.sign(self.world.training[self.chosen]).astype(np.int8)

    def pieces(self) -> list[slice]:
        """What each size adds to the one before; nothing once all are in."""
        ends = np.minimum((0, *self.sizes), self.chosen.size).tolist()
        return [slice(low, high) for low, high in pairwise(ends)]

    def right(self, table: Any) -> FloatArray:
        """For each size and row: 1 if right, 0 if wrong, 1/2 on a tie."""
        signs = self.signs[:, np.newaxis]
        added = [
            (signs[piece] * table[self.chosen[piece]]).sum(axis=0, dtype=np.int64)
            for piece in self.pieces()
        ]
        return np.asarray((1.0 + np.sign(np.cumsum(added, axis=0))) / 2, np.float64)

    def truths(self) -> FloatArray:
        """Φ(mean of the sum / its standard deviation): sums of 16ths are smooth enough."""
        from scipy.special import ndtr

        leaning = self.chosen < self.world.signals
        null, biased = _law(0.0), _law(self.world.bias)
        mean = np.where(leaning, biased.mean, 0.0) * self.signs
        variance = np.where(leaning, biased.variance, null.variance)
        ends = [piece.stop for piece in self.pieces()]
        means, variances = (np.concatenate([[0.0], x.cumsum()])[ends] for x in (mean, variance))
        return np.asarray(ndtr(means / np.sqrt(np.maximum(variances, null.variance))))

    def training(self) -> FloatArray:
        """The accuracies on the training set."""
        chance = np.random.Generator(np.random.Philox(self.world.seed))
        strength = np.abs(self.world.training[self.chosen])
        rows: int = self.world.holdout.shape[1]
        accuracies: list[float] = []
        score = np.zeros(rows)
        for piece in self.pieces():
            grown = chance.standard_normal(rows)
            grown -= grown.mean()
            score += strength[piece].sum() + math.sqrt(piece.stop - piece.start) * grown
            accuracies.append(float(np.mean((1.0 + np.sign(score)) / 2)))
        return np.array(accuracies)


def _correlations(world: Attributes, lines: slice) -> Means:
    """A batch of attributes, mapped from [−REACH, REACH] to [0, 1]."""
    leaning = np.arange(lines.start, lines.stop) < world.signals
    truths = np.where(leaning, _law(world.bias).mean, 0.0)

    def mapped(correlations: FloatArray) -> FloatArray:
        return np.clip((1 + correlations / REACH) / 2, 0, 1)

    def values(table: Any) -> NDArray[np.float32]:
        return np.asarray(table[lines].astype(np.float32) * (1 / 254) + 0.5, np.float32)

    return Means(values, mapped(truths), mapped(world.training[lines]))


ANALYSTS: dict[str, type[Any]] = {
    each.name: each
    for each in (Freedman, VariableSelection, Boosting, Quadratic, SignAggregator, Subgroups)
}
