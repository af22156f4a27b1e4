"""Guess and check: any heuristic guesses, a holdout checks (Rogers et al. 2020, AISTATS).

(Rogers, Roth, Smith, Srebro, Thakkar & Woodworth, "Guaranteed validity for empirical approaches to
adaptive data analysis".) The analyst brings a guess for a mean, from open rows or from anywhere,
and the half-width that she wants to claim. A holdout of n rows, used for nothing else, confirms it
or, when it cannot, answers with its own mean rounded to the centre of one of p equal cells. There
is no noise. How sure it must be depends on what was asked before: with i questions and f
corrections behind it, of p_1, …, p_f cells, the next question may fail with probability

    β_i = β · c(i) · c(f) / (C(i, f) · p_1 ⋯ p_f),        c(x) = 6 / (π² (x + 1)²).

A guess g with half-width w is confirmed if means outside g ± w are refuted at β_i, by Chernoff's
bound: n·kl(h, g ± w) ≥ ln(2/β_i) on both sides, h the holdout's mean. A correction is given if
v + 1/(2p) ≤ w, v = √(ln(2/β_i)/(2n)), with the fewest cells p; if there is none, the holdout is
exhausted.

**What the textbook proves.** But for probability β every answer is within its half-width of the
population's mean, all at once, however many there are. *Proof.* Fix the analyst, her coins and the
open rows: she then asks fixed questions, one after each list of answers. Let one be asked after i
answers of which f are corrections, and let D be its mean. If D > g + w, it is confirmed only if h
is below a limit c with P[h ≤ c] ≤ e^(−n·kl(c, D)) ≤ e^(−n·kl(c, g + w)) ≤ β_i/2, and D < g − w
alike; a correction is wrong only if |h − D| > v. Both together: h is in a lower or an upper tail of
probability at most β_i/2 each. Of the lists with the same corrected places the shares
1/(p_1 ⋯ p_f) add up to at most 1, there are C(i, f) such places, and Σ c(x) = 1. ∎

Their own program counts ⌈1/γ⌉ answers for a rounding to multiples of γ, which are up to
⌊1/γ⌋ + 1; cells and their centres are p exactly, and half as far from the mean.

**What does not hold.** Nothing is private, and nothing is promised once anybody sees the holdout
in another way. Holdfast does not certify it; `holdfast.theory.told` has the bounds of the same kind
that it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

from holdfast.errors import Infeasible, real_number, whole_number
from holdfast.theory.numerics import ROUNDING
from holdfast_lab.baselines.noise import CELLS, ROUNDING_ERROR, Uncertified, as_mean, bounded_sum

_MOST_ROWS = 2**40
_MOST_ASKED = 10**12
_LOG_ZETA = math.log(math.pi**2 / 6)
_SAFE = 1e-9  # far more than a divergence of two floats loses by cancellation at 2^-17 apart


@dataclass(frozen=True, slots=True)
class CheckedGuess(Uncertified):
    """The guess, or the holdout's rounded mean, or None once it is exhausted."""

    statement: ClassVar[str] = (
        "within its half-width, all answers at once, if nobody sees the holdout in any other way; "
        "no privacy, and not certified here"
    )

    value: float | None
    half_width: float
    source: Literal["guess", "holdout", "exhausted"]
    failures: int


def log_share(asked: int, failures: int, log_values: float, failure: float) -> float:
    """ln β_i after so many questions and corrections, ln(p_1 ⋯ p_f) = log_values; rounded down.

    >>> round(math.exp(log_share(0, 0, 0.0, 0.05)), 6)  # 0.05·36/π⁴
    0.018479
    >>> round(log_share(3, 1, math.log(20), 0.05) - log_share(0, 0, 0.0, 0.05), 6)
    -8.253228
    """
    counted = math.lgamma(asked + 1) - math.lgamma(failures + 1) - math.lgamma(asked - failures + 1)
    shares = -2 * (math.log(asked + 1) + math.log(failures + 1)) - 2 * _LOG_ZETA
    exact = math.log(failure) + shares - counted - log_values
    return exact - 16 * math.ulp(math.lgamma(asked + 1) + log_values + 1)


def check_half_width(rows: int, asked: int, failures: int, points: int, failure: float) -> float:
    """v: how near the holdout is to the population after so many questions and corrections.

    √(ln(2/β_i)/(2n)), each correction one of `points` values. A guess that is off the holdout's
    mean by e is confirmed at half-widths from e + v on, and at smaller ones near 0 and 1.
    (Values are rounded to 2^-16, which is included.)

    >>> round(check_half_width(10_000, asked=1_000, failures=0, points=1, failure=0.05), 4)
    0.0304
    >>> round(check_half_width(10_000, asked=1_000, failures=10, points=20, failure=0.05), 4)
    0.0732
    """
    rows = whole_number("rows", rows, 1, _MOST_ROWS)
    asked = whole_number("asked", asked, 0, _MOST_ASKED)
    failures = whole_number("failures", failures, 0, asked)
    points = whole_number("points", points, 1, 10**12)
    failure = _chance(failure)
    return _half_width(rows, log_share(asked, failures, failures * math.log(points), failure))


class CheckSize(NamedTuple):
    """Rows of the holdout, and the number of values that a correction can take."""

    rows: int
    points: int


def check_rows(queries: int, failures: int, half_width: float, failure: float) -> CheckSize:
    """The fewest rows with which the last of k questions can still be corrected.

    Of the k − 1 before it f were corrected. v + 1/(2p) ≤ half_width, over the number of values.

    >>> check_rows(1_000, 10, 0.1, 0.05)
    CheckSize(rows=6..., points=...)
    """
    queries = whole_number("queries", queries, 1, _MOST_ASKED)
    failures = whole_number("failures", failures, 0, queries - 1)
    half_width = real_number("half_width", half_width, 1e-3, 1)
    failure = _chance(failure)

    def nats(points: int) -> float:
        return math.log(2) - log_share(queries - 1, failures, failures * math.log(points), failure)

    return _fewest(nats, half_width)


def _fewest(nats: Callable[[int], float], half_width: float) -> CheckSize:
    """The fewest rows with √(nats/2n) + 1/(2p) ≤ half_width, over the number of values p."""

    def rows(points: int) -> int:
        left = half_width / (1 + ROUNDING) - 1 / (2 * points) - ROUNDING_ERROR
        return _MOST_ROWS if left <= 0 else math.ceil(nats(points) / (2 * left**2))

    # From too coarse to needlessly fine: rows fall, then rise with the logarithm of p.
    low, high = math.floor(1 / (2 * half_width)) + 1, math.ceil(1000 / half_width)
    while high - low > 2:
        first, second = low + (high - low) // 3, high - (high - low) // 3
        if rows(first) <= rows(second):
            high = second
        else:
            low = first
    return min(CheckSize(rows(points), points) for points in range(low, high + 1))


class GuessAndCheck:
    """A holdout that checks guesses for means, and corrects those it cannot confirm.

    >>> holdout = GuessAndCheck(rows=10_000, failure=0.05)
    >>> values = [0.0] * 6_000 + [1.0] * 4_000
    >>> holdout.ask(values, guess=0.41, half_width=0.05)
    CheckedGuess(value=0.41, half_width=0.05, source='guess', failures=0)
    >>> holdout.ask(values, guess=0.7, half_width=0.05)
    CheckedGuess(value=0.40625, half_width=0.05, source='holdout', failures=1)
    >>> holdout.ask(values, guess=0.7, half_width=0.01)
    CheckedGuess(value=None, half_width=0.01, source='exhausted', failures=2)
    """

    def __init__(self, rows: int, failure: float) -> None:
        self._rows = whole_number("rows", rows, 1, _MOST_ROWS)
        self._failure = _chance(failure)
        self._asked = self._failures = 0
        self._log_values = 0.0
        self._exhausted = False

    @property
    def exhausted(self) -> bool:
        """Whether a correction could not be given: from then on nothing is answered."""
        return self._exhausted

    def smallest_half_width(self) -> float:
        """The half-width at which a perfect guess in the middle of [0, 1] is confirmed now."""
        return _half_width(self._rows, self._log_share())

    def ask(self, values: object, guess: float, half_width: float) -> CheckedGuess:
        """Is the mean of one value per row, each in [0, 1], within `half_width` of the guess?"""
        guess = real_number("guess", guess, 0, 1)
        half_width = real_number("half_width", half_width, 0, 1, open_low=True)
        mean = as_mean(bounded_sum(values, self._rows), self._rows)
        if self._exhausted:
            return CheckedGuess(None, half_width, "exhausted", self._failures)
        share = self._log_share()
        self._asked += 1
        if _confirmed(mean, guess, half_width, (math.log(2) - share) / self._rows):
            return CheckedGuess(guess, half_width, "guess", self._failures)
        self._failures += 1
        left = (half_width / (1 + ROUNDING)) - _half_width(self._rows, share)
        if left <= 0:
            self._exhausted = True
            return CheckedGuess(None, half_width, "exhausted", self._failures)
        points = math.ceil(1 / (2 * left))
        self._log_values += math.log(points)
        cell = min(math.floor(mean * points), points - 1)
        return CheckedGuess((cell + 0.5) / points, half_width, "holdout", self._failures)

    def _log_share(self) -> float:
        return log_share(self._asked, self._failures, self._log_values, self._failure)

    def __repr__(self) -> str:
        return f"<GuessAndCheck: {self._asked} questions, {self._failures} not confirmed>"


def _confirmed(mean: float, guess: float, half_width: float, nats: float) -> bool:
    """Whether means beyond guess ± half_width are refuted: kl(h, ·) ≥ nats on both sides."""
    high, low = guess + half_width, guess - half_width
    return (high >= 1 or _refuted(mean, high - ROUNDING_ERROR, nats)) and (
        low <= 0 or _refuted(1 - mean, 1 - low - ROUNDING_ERROR, nats)
    )


def _refuted(mean: float, edge: float, nats: float) -> bool:
    """Whether a population's mean of `edge` or more is refuted by a sample's mean below it."""
    if mean >= edge:
        return False
    divergence = (1 - mean) * (math.log1p(-mean) - math.log1p(-edge)) if mean < 1 else 0.0
    if mean > 0:
        divergence += mean * (math.log(mean) - math.log(edge))
    return divergence * (1 - _SAFE) - 1e-15 >= nats * (1 + ROUNDING)


def _half_width(rows: int, share: float) -> float:
    drift = math.sqrt((math.log(2) - share) / (2 * rows))
    return (drift + ROUNDING_ERROR) * (1 + ROUNDING)


def _chance(failure: float) -> float:
    return real_number("failure", failure, 0, 1, open_low=True, open_high=True)


# Verification by description length: few possible transcripts, so a union bound covers them all.
#
# (Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, NIPS: description length and
# `SparseValidate`.) No noise at all. A guess for a mean is confirmed (Yes) when the mean of the
# sample is near it; otherwise (No) the answer is that mean rounded to one of r values; after ℓ
# corrections everything is "exhausted". With r = 1 nothing but the verdict is told.
#
# **What the textbook proves.** Fix the analyst, coins included. Her next question is a function of
# the answers so far, so at most N questions can ever be asked, one for each list of answers after
# which a question is still answered: of i answers j < ℓ are corrections, each one of r values, the
# rest Yes. Hence
#
#     N = Σ_{i<k} Σ_{j<ℓ} C(i, j) r^j = Σ_{j<ℓ} C(k, j+1) r^j.
#
# Each is a fixed function, so Hoeffding and a union bound give, but for probability β, for *all
# questions that were asked*: |S[φ] − D[φ]| ≤ √(ln(2N/β)/(2n)). ∎ The price is that ln N grows
# linearly in ℓ, where noise would make it √ℓ; but the constants are small.
#
# **What does not hold.** The answers are exact functions of the data: nothing is private, and the
# bound says nothing about questions that are neither asked here nor determined by the answers.
# Whoever looks at the holdout in another way voids it. Holdfast does not certify it; compare
# `holdfast.theory.sizing`, which it beats when few guesses are wrong.


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


def description_rows(queries: int, refusals: int, half_width: float, failure: float) -> CheckSize:
    """The fewest rows with `transcript_error` + 1/(2r) ≤ half_width, over the number of values r.

    With ℓ = k every answer may be a correction: plain estimates, rounded.

    >>> description_rows(1_000, 1_000, 0.1, 0.05)
    CheckSize(rows=242301, points=44)
    >>> description_rows(1_000, 10, 0.1, 0.05)
    CheckSize(rows=5484, points=111)
    """
    half_width = real_number("half_width", half_width, 1e-3, 1)
    nats = _nats(failure)
    return _fewest(lambda points: log_questions(queries, refusals, points) + nats, half_width)


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
        self, rows: int, queries: int, refusals: int, points: int, *, tolerance: float | None = None
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
