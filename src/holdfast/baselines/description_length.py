"""Verification by description length: few possible transcripts, so a union bound covers them all.

(Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, NIPS: description length and
`SparseValidate`.) No noise at all. A guess for a mean is confirmed (Yes) when the mean of the
sample is near it; otherwise (No) the answer is that mean rounded to one of r values; after ℓ
corrections everything is "exhausted". With r = 1 nothing but the verdict is told.

**What the textbook proves.** Fix the analyst, coins included. Her next question is a function of
the answers so far, so at most N questions can ever be asked, one for each list of answers after
which a question is still answered: of i answers j < ℓ are corrections, each one of r values, the
rest Yes. Hence

    N = Σ_{i<k} Σ_{j<ℓ} C(i, j) r^j = Σ_{j<ℓ} C(k, j+1) r^j.

Each is a fixed function, so Hoeffding and a union bound give, but for probability β, for *all
questions that were asked*: |S[φ] − D[φ]| ≤ √(ln(2N/β)/(2n)). ∎ The price is that ln N grows
linearly in ℓ, where noise would make it √ℓ; but the constants are small.

**What does not hold.** The answers are exact functions of the data: nothing is private, and the
bound says nothing about questions that are neither asked here nor determined by the answers.
Whoever looks at the holdout in another way voids it. Holdfast does not certify it; compare
`holdfast.theory.sizing`, which it beats when few guesses are wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

from holdfast.baselines.sums import CELLS, ROUNDING_ERROR, bounded_sum
from holdfast.baselines.uncertified import Uncertified
from holdfast.errors import Infeasible, real_number, whole_number
from holdfast.theory.numerics import ROUNDING

__all__ = [
    "Confirmation",
    "DescriptionLength",
    "DescriptionSize",
    "description_rows",
    "false_discovery",
    "log_questions",
    "transcript_error",
]

_MOST_ROWS = 2**40
_MOST_REFUSALS = 10**6


@dataclass(frozen=True, slots=True)
class Confirmation(Uncertified):
    """The verdict on a guess, with the rounded mean of the sample if it was refused."""

    statement: ClassVar[str] = (
        "a union bound over all transcripts, if nobody sees the sample in any other way; "
        "no privacy, and not certified here"
    )

    verdict: Literal["yes", "no", "exhausted"]
    value: float | None
    refusals_left: int


def log_questions(queries: int, refusals: int, points: int) -> float:
    """ln N, N = Σ_{j<ℓ} C(k, j+1) r^j: how many questions can ever be asked; rounded up.

    >>> round(math.exp(log_questions(3, 1, 5)), 6), round(math.exp(log_questions(3, 2, 5)), 6)
    (3.0, 18.0)
    """
    queries = whole_number("queries", queries, 1, 10**9)
    refusals = min(whole_number("refusals", refusals, 1, 10**9), queries)
    if refusals > _MOST_REFUSALS:
        remedy = "Plan for fewer refusals."
        raise Infeasible("Description length", "a sum over the refusals", f"{refusals:,}", remedy)
    points = whole_number("points", points, 1, 10**12)
    whole = math.lgamma(queries + 1)
    terms = [
        whole - math.lgamma(j + 2) - math.lgamma(queries - j) + j * math.log(points)
        for j in range(refusals)
    ]
    largest = max(terms)
    total = largest + math.log(math.fsum(math.exp(x - largest) for x in terms))
    # The terms cancel numbers as large as ln k!, whose floats are off by a few in 10^16.
    return total + 16 * math.ulp(whole + queries * math.log(points) + 1)


def transcript_error(rows: int, queries: int, refusals: int, points: int, failure: float) -> float:
    """√(ln(2N/β)/(2n)): how far the sample's mean is from the population's; rounded up.

    But for probability β, for all questions that were asked. (The values of rows are rounded to
    2^-16, which is included.)

    >>> round(transcript_error(100_000, 1_000, 10, 50, 0.05), 4)
    0.0216
    """
    rows = whole_number("rows", rows, 1, _MOST_ROWS)
    nats = log_questions(queries, refusals, points) + _nats(failure)
    return (math.sqrt(nats / (2 * rows)) + ROUNDING_ERROR) * (1 + ROUNDING)


def false_discovery(chance: float, queries: int, refusals: int) -> float:
    """`SparseValidate`: the chance that some test of k fires although its hypothesis is true.

    Each test would fire with probability ≤ `chance` on fresh data; the analyst is told the bit
    only and stops after ℓ that fired. min(1, chance · Σ_{j<ℓ} C(k, j+1)).

    >>> round(false_discovery(1e-12, 1_000, 3), 6)
    0.000167
    """
    chance = real_number("chance", chance, 0, 1)
    if chance == 0:
        return 0.0
    nats = log_questions(queries, refusals, 1) + math.log(chance)
    return min(1.0, math.exp(min(nats, 0.0)) * (1 + ROUNDING))


class DescriptionSize(NamedTuple):
    """Rows, and the number of values that a correction can take."""

    rows: int
    points: int


def description_rows(
    queries: int, refusals: int, half_width: float, failure: float
) -> DescriptionSize:
    """The fewest rows with `transcript_error` + 1/(2r) ≤ half_width, over the number of values r.

    With ℓ = k every answer may be a correction: plain estimates, rounded.

    >>> description_rows(1_000, 1_000, 0.1, 0.05)
    DescriptionSize(rows=242301, points=44)
    >>> description_rows(1_000, 10, 0.1, 0.05)
    DescriptionSize(rows=5484, points=111)
    """
    half_width = real_number("half_width", half_width, 1e-3, 1)
    nats = _nats(failure)

    def rows(points: int) -> int:
        left = half_width / (1 + ROUNDING) - 1 / (2 * points) - ROUNDING_ERROR
        if left <= 0:
            return _MOST_ROWS
        return math.ceil((log_questions(queries, refusals, points) + nats) / (2 * left**2))

    # From too coarse to needlessly fine: rows fall, then rise with the logarithm of r.
    low, high = math.floor(1 / (2 * half_width)) + 1, math.ceil(1000 / half_width)
    while high - low > 2:
        first, second = low + (high - low) // 3, high - (high - low) // 3
        if rows(first) <= rows(second):
            high = second
        else:
            low = first
    return min(DescriptionSize(rows(points), points) for points in range(low, high + 1))


class DescriptionLength:
    """Confirms guesses of means, exactly, and corrects at most `refusals` of them.

    Values of a correction are the centres of `points` equal cells of [0, 1]; a guess is confirmed
    within `tolerance` of the sample's mean, half a cell unless told otherwise. With one point only
    the verdict is told, and the tolerance has to be.

    >>> holdout = DescriptionLength(rows=1_000, queries=3, refusals=1, points=20)
    >>> values = [0.0] * 600 + [1.0] * 400
    >>> holdout.ask(values, guess=0.41)
    Confirmation(verdict='yes', value=None, refusals_left=1)
    >>> holdout.ask(values, guess=0.7)
    Confirmation(verdict='no', value=0.425, refusals_left=0)
    >>> holdout.ask(values, guess=0.4).verdict
    'exhausted'
    >>> round(holdout.half_width(failure=0.05), 4)
    0.0739
    """

    def __init__(
        self,
        rows: int,
        queries: int,
        refusals: int,
        points: int,
        *,
        tolerance: float | None = None,
    ) -> None:
        self._rows = whole_number("rows", rows, 1, _MOST_ROWS)
        self._queries = self._left = whole_number("queries", queries, 1, 10**9)
        self._refusals = whole_number("refusals", refusals, 1, self._queries)
        self._refusals_left = self._refusals
        self._points = whole_number("points", points, 1, 10**12)
        if tolerance is None and self._points > 1:
            tolerance = 1 / (2 * self._points)
        self._tolerance = real_number("tolerance", tolerance, 0, 1, open_low=True)

    @property
    def queries_left(self) -> int:
        """How many guesses can still be asked about."""
        return self._left if self._refusals_left else 0

    def half_width(self, failure: float) -> float:
        """How far a confirmed guess or a correction can be from the population's mean.

        But for probability `failure`, all at once; see `transcript_error`.
        """
        error = transcript_error(self._rows, self._queries, self._refusals, self._points, failure)
        cell = 0.0 if self._points == 1 else 1 / (2 * self._points)
        return (error + max(self._tolerance, cell)) * (1 + ROUNDING)

    def ask(self, values: object, guess: float) -> Confirmation:
        """Is the guess near the mean of one value per row, each in [0, 1]?"""
        guess = real_number("guess", guess, 0, 1)
        total, whole = bounded_sum(values, self._rows), self._rows * CELLS
        if self.queries_left == 0:
            return Confirmation("exhausted", None, self._refusals_left)
        self._left -= 1
        if abs(Fraction(total, whole) - Fraction(guess)) <= self._tolerance:  # exact
            return Confirmation("yes", None, self._refusals_left)
        self._refusals_left -= 1
        cell = min(total * self._points // whole, self._points - 1)
        value = None if self._points == 1 else (cell + 0.5) / self._points
        return Confirmation("no", value, self._refusals_left)


def _nats(failure: float) -> float:
    """ln(2/β)."""
    return math.log(2 / real_number("failure", failure, 0, 1, open_low=True, open_high=True))
