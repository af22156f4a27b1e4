"""Known remedies as responders, and naive reuse; `RESPONDERS` has all that experiments can name."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import IntegerGrid
from holdfast.mechanisms.exponential import exponential_median
from holdfast.theory import published
from holdfast.theory.sizing import Promise, Sized, best_exponential, best_gaussian, split_failure
from holdfast_lab.attacks.conversation import (
    FloatArray,
    MeanResponder,
    Replies,
    Responder,
    Session,
    Terms,
    floats_from,
    interview,
    known_guesses,
)
from holdfast_lab.attacks.signs import ExactMedian, Looks
from holdfast_lab.attacks.targets import HOLDFAST, confidence_of, tail_of
from holdfast_lab.baselines.guess_and_check import GuessAndCheck as Holdout
from holdfast_lab.baselines.guess_and_check import check_rows
from holdfast_lab.baselines.ladder import Ladder as Board
from holdfast_lab.baselines.sparse_vector import SparseRule, sparse_step


class Naive(ExactMedian):
    """Exact answers about the sample.

    The claim is what a careful textbook gives for k means fixed in advance: Hoeffding's interval
    at β/k. It is false of questions chosen by earlier answers, which is the point. Medians come
    without a claim.
    """

    name: ClassVar[str] = "naive"

    def __init__(self, terms: Terms) -> None:
        self._half_width = math.sqrt(math.log(2 * terms.queries / terms.failure) / (2 * terms.rows))

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        return Replies.around(values.mean(axis=1, dtype=np.float64), self._half_width)


# Noisy means: the sample's mean with Gaussian or Laplace noise, scaled for the terms.


class Gaussian(MeanResponder):
    """Means with Gaussian noise, as much as makes the published bound smallest.

    Both the noise and the half-width that is claimed are those of Rogers et al. 2020, theorem 2.1
    (`holdfast.theory.published`), the best published for this many rows and questions.
    """

    name: ClassVar[str] = "gaussian"

    def __init__(self, terms: Terms) -> None:
        found = published.rogers_best(terms.rows, terms.queries, terms.failure)
        self._sigma, self._half_width = found.sigma, found.width
        self._chance = floats_from(terms.entropy)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        noise = self._chance.normal(0.0, self._sigma, len(values))
        return Replies.around(values.mean(axis=1, dtype=np.float64) + noise, self._half_width)


class Laplace(Gaussian):
    """Means with Laplace noise of the same standard deviation; nothing is claimed."""

    name: ClassVar[str] = "laplace"

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        noise = self._chance.laplace(0.0, self._sigma / math.sqrt(2), len(values))
        return Replies.unclaimed(values.mean(axis=1, dtype=np.float64) + noise)


# Medians with textbook noise: Gaussian counts, and the exponential mechanism.
#
# Both are tuned for the promise that Holdfast makes, tails of 1/2 − `Terms.half_width`: the noise
# is the one at which the same theorem certifies them on the fewest blocks. They are asked on the
# rows there are, enough or not, and claim nothing; `blocks` is what their own certificates would
# need.


_TAIL = 0.01


def _promise(terms: Terms) -> Promise:
    """What is planned for: questions on two points."""
    tail = _TAIL if terms.half_width is None else tail_of(terms.half_width)
    return Promise(terms.queries, 2, tail, tail, confidence_of(terms.failure))


class GaussianMedian(Looks):
    """Noisy binary search: every count with Gaussian noise (cor `SQ-med`)."""

    name = "gaussian-median"

    def __init__(self, terms: Terms) -> None:
        sized = _gaussian(_promise(terms))
        assert sized.coin is not None  # noise on counts is a coin of its own
        super().__init__(sized.coin, terms.entropy)
        self.fewest = sized.size.blocks


class ExponentialMedian(Responder):
    """The exponential mechanism's median (thm `EM-med`)."""

    name: ClassVar[str] = "exponential-median"

    def __init__(self, terms: Terms) -> None:
        self._sized, self._entropy = _exponential(_promise(terms)), terms.entropy
        self.fewest = self._sized.size.blocks

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        grid, epsilon = IntegerGrid(0, points - 1), self._sized.parameters[1]
        answers = [exponential_median(line, grid, epsilon, self._entropy) for line in values]
        return Replies.unclaimed(np.array(answers))


_gaussian: Callable[[Promise], Sized] = lru_cache(maxsize=32)(best_gaussian)
_exponential: Callable[[Promise], Sized] = lru_cache(maxsize=32)(best_exponential)


# The textbook's sparse vector: verdicts on guesses, and silence after too many refusals.


_REFUSALS = 20
_EPSILON = 1.0
_WIDTHS = 4.0  # of 1/√n


class SparseVector(MeanResponder):
    """Is the holdout's mean within a tolerance of the guess? At most 20 times No.

    Yes is answered by the guess itself, No and "exhausted" by NaN: a verdict is all there is. The
    tolerance is that of the terms, else 4/√n. The count that is compared is n − |Σφ − n·guess|,
    rounded down, which one row moves by at most 1; all verdicts together are 1-private.

    Without a guess the verdict is on "at least 1/2", and the answer the middle of the half in
    which the mean then lies: 3/4 for Yes, 1/4 for No. Nothing is claimed.
    """

    name: ClassVar[str] = "sparse-vector"

    def __init__(self, terms: Terms) -> None:
        refusals = min(_REFUSALS, terms.queries)
        self._rule = SparseRule(refusals, sparse_step(refusals, _EPSILON))
        self._state = self._rule.start()
        self._chance = floats_from(terms.entropy)
        self._rows = terms.rows
        self._tolerance = terms.half_width or _WIDTHS / math.sqrt(terms.rows)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        sums = values.sum(axis=1, dtype=np.float64)
        if guesses is None:
            yes, no = np.full(len(sums), 0.75), np.full(len(sums), 0.25)
            counts, threshold = sums, self._rows / 2
        else:
            yes, no = known_guesses(guesses, len(sums)), np.full(len(sums), np.nan)
            counts = self._rows - np.abs(sums - self._rows * yes)
            threshold = self._rows * (1 - self._tolerance)
        verdicts = self._verdicts(np.floor(counts).astype(np.int64), math.floor(threshold))
        answers = {"yes": yes, "no": no, "exhausted": np.full(len(sums), np.nan)}
        return Replies.unclaimed(
            np.array([answers[word][place] for place, word in enumerate(verdicts)], np.float64)
        )

    def _verdicts(self, counts: NDArray[np.int64], threshold: int) -> list[str]:
        said: list[str] = []
        for count in counts.tolist():
            word, self._state = self._rule.ask(self._state, (count, threshold), self._draw)
            said.append(word)
        return said

    def _draw(self, scale: Fraction) -> int:
        return round(self._chance.laplace(0.0, float(scale)))


# Fresh splitting: every question gets rows that nobody has used.


_STEPS = 40  # of a bisection


class Split(Responder):
    """⌊n/k⌋ rows for each of k questions; whatever comes later is refused.

    All k claims hold at once with probability 1 − β, each with β/k: for questions with values 0
    and 1 the exact binomial limits (Clopper & Pearson 1934), for other means Hoeffding's, for the
    rank of a median the exact tails of `holdfast.theory.sizing`. With fewer rows than questions
    nothing at all is answered.
    """

    name: ClassVar[str] = "split"

    def __init__(self, terms: Terms) -> None:
        self._each = terms.rows // terms.queries
        self._left = terms.queries if self._each else 0
        self._share = terms.failure / terms.queries
        self._asked = 0

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        fresh, refused = self._fresh(values)
        means = fresh.mean(axis=1, dtype=np.float64)
        if values.dtype == np.bool_:
            limits = binomial_limits(fresh.sum(axis=1), max(self._each, 1), self._share)
            return _with_refusals(Replies(means, *limits), refused)
        half_width = math.sqrt(math.log(2 / self._share) / (2 * max(self._each, 1)))
        return _with_refusals(Replies.around(means, half_width), refused)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        fresh, refused = self._fresh(values)
        rank = (fresh.shape[1] - 1) // 2
        answers = np.partition(fresh, rank, axis=1)[:, rank].astype(np.float64)
        tail = median_tail(fresh.shape[1], self._share)
        low = np.full(len(answers), tail)
        return _with_refusals(Replies(answers, low, 1 - low), refused)

    def _fresh(self, values: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Each question's own rows, and how many questions at the end get none."""
        served = min(len(values), self._left)
        self._left -= served
        first = (self._asked + np.arange(served)) * self._each
        self._asked += served
        columns = first[:, np.newaxis] + np.arange(max(self._each, 1))
        return np.take_along_axis(values[:served], columns, axis=1), len(values) - served


def binomial_limits(
    counts: NDArray[np.int64], rows: int, failure: float
) -> tuple[FloatArray, FloatArray]:
    """Clopper & Pearson's limits for the probability, two-sided at this failure.

    >>> low, high = binomial_limits(np.array([0, 5, 10]), 10, 0.05)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187, 0.692], [0.308, 0.813, 1.0])
    """
    from scipy.special import betaincinv

    low = betaincinv(np.maximum(counts, 1), rows - np.maximum(counts, 1) + 1, failure / 2)
    under = np.minimum(counts, rows - 1)
    high = betaincinv(under + 1, rows - under, 1 - failure / 2)
    return np.where(counts > 0, low, 0.0), np.where(counts < rows, high, 1.0)


def median_tail(rows: int, failure: float) -> float:
    """The largest tail ρ, up to 1e-12, that the sample's median keeps but for this failure.

    >>> round(median_tail(43, 0.0005), 3), round(median_tail(3, 1e-6), 5)
    (0.254, 0.00041)
    """
    low, high = 0.0, 0.5
    for _ in range(_STEPS):
        middle = (low + high) / 2
        fits = split_failure(rows, (rows - 1) // 2 + 1, middle, middle) <= failure
        low, high = (middle, high) if fits else (low, middle)
    return low


def _with_refusals(replies: Replies, refused: int) -> Replies:
    nothing = Replies.unclaimed(np.full(refused, np.nan))
    return Replies(
        np.concatenate([replies.values, nothing.values]),
        np.concatenate([replies.low, nothing.low]),
        np.concatenate([replies.high, nothing.high]),
    )


# Thresholdout, as in the experiment of its authors (Dwork et al. 2015, Science 349:636).


_THRESHOLD, _TOLERANCE = 4.0, 1.0  # in units of 1/√n


class Thresholdout(MeanResponder):
    """The guess, if the holdout's mean is near it; otherwise that mean with noise.

    T = 4/√n and τ = 1/√n. Near is: within T plus Gaussian noise of standard deviation τ, fresh for
    every question; the noise on the answer has the same. No budget is kept. So did the authors'
    experiment; the algorithm of their theorem,
    `holdfast_lab.baselines.sparse_vector.Thresholdout`, has Laplace noise
    of scale 4σ on the comparison, wider than T at σ = τ. Nothing is claimed. Without a guess it
    is 1/2.

    T and τ belong to one scale. `span` is how long the range [0, 1] of the questions is on it:
    for correlations that were mapped from [−c, c] it is 2c.
    """

    name: ClassVar[str] = "thresholdout"

    def __init__(self, terms: Terms, *, span: float = 1.0) -> None:
        unit = 1 / (span * math.sqrt(terms.rows))
        self._threshold, self._tolerance = _THRESHOLD * unit, _TOLERANCE * unit
        self._chance = floats_from(terms.entropy)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        means = values.mean(axis=1, dtype=np.float64)
        expected = known_guesses(guesses, len(means))
        noise = self._chance.normal(0.0, self._tolerance, (2, len(means)))
        far = np.abs(means - expected) > self._threshold + noise[0]
        return Replies.unclaimed(np.where(far, means + noise[1], expected))


# Guess and check, of Rogers et al. 2020: guesses are confirmed, or corrected without noise.


_CORRECTIONS = 20
_GUESS_AND_CHECK_STEPS = 20  # of a bisection
_LEAST = 1e-3


class GuessAndCheck(MeanResponder):
    """Every answer within one half-width of the truth, which is its authors' claim.

    The half-width is that of the terms, else the smallest that the rows can keep for all the
    questions if 20 guesses have to be corrected. If more have to be, it may fall silent.
    """

    name: ClassVar[str] = "guess-and-check"

    def __init__(self, terms: Terms) -> None:
        self._holdout = Holdout(terms.rows, terms.failure)
        self._half_width = terms.half_width or check_width(terms.rows, terms.queries, terms.failure)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        known = known_guesses(guesses, len(values)).tolist()
        said = [
            self._holdout.ask(line, guess, self._half_width).value
            for line, guess in zip(values, known, strict=True)
        ]
        return Replies.around(np.array(said, np.float64), self._half_width)  # None is NaN


@lru_cache(maxsize=64)
def check_width(rows: int, queries: int, failure: float) -> float:
    """The smallest half-width, up to 1e-6, at which a last question can still be corrected.

    >>> round(check_width(10_000, 10_020, 0.05), 3)
    0.12
    """
    corrections = min(_CORRECTIONS, queries - 1)
    low, high = _LEAST, 1.0
    for _ in range(_GUESS_AND_CHECK_STEPS):
        middle = (low + high) / 2
        enough = check_rows(queries, corrections, middle, failure).rows <= rows
        low, high = (low, middle) if enough else (middle, high)
    return high


# The Ladder of Blum & Hardt 2015: every submission is told the best score so far.


class Ladder(MeanResponder):
    """Means are losses, and the reply is the least so far; without a step it is parameter-free.

    Of a question that does not lead, the reply says only that. So it claims nothing, and searches
    for medians are led astray by it: it was made for leaderboards.
    """

    name: ClassVar[str] = "ladder"

    def __init__(self, terms: Terms, *, step: float | None = None) -> None:
        self._board = Board(terms.rows, step)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        return Replies.unclaimed(np.array([self._board.ask(losses).value for losses in values]))


# A responder that is watched: what it says, beside what the rows say.


class Watched(Responder):
    """Passes every mean on, and keeps the sample's own mean and the guess of each."""

    name: ClassVar[str] = "watched"

    def __init__(self, responder: Responder) -> None:
        self.responder = responder
        self._sample: list[FloatArray] = []
        self._guesses: list[FloatArray] = []

    @property
    def sample(self) -> FloatArray:
        """The means of the sample, of all questions so far."""
        return np.concatenate(self._sample)

    @property
    def guesses(self) -> FloatArray:
        """What the analyst expected of each; NaN where it did not say."""
        return np.concatenate(self._guesses)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        self._sample.append(values.mean(axis=1, dtype=np.float64))
        self._guesses.append(np.full(len(values), np.nan) if guesses is None else guesses)
        return self.responder.means(values, guesses)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        return self.responder.medians(values, points)


RESPONDERS: dict[str, Callable[[Terms], Responder]] = {
    each.name: each
    for each in (
        Naive,
        Split,
        Gaussian,
        Laplace,
        Thresholdout,
        Ladder,
        GuessAndCheck,
        SparseVector,
        GaussianMedian,
        ExponentialMedian,
    )
} | HOLDFAST


def conversation_of(
    cell: Any,
    analyst: Any,
    responder: str,
    make: Callable[[Terms], Responder] | None = None,
    **terms: Any,
) -> tuple[Any, Watched, Session]:
    """An experiment's cell: its world, whoever was asked, and what came of the conversation."""
    told = Terms(analyst.rows, analyst.queries, cell.entropy(), **terms)
    watched = Watched((make or RESPONDERS[responder])(told))
    world = analyst.draw(cell.shared_chance())
    return world, watched, interview(analyst, world, watched)
