"""Means of bounded terms, certified by bets: intervals that follow the variance, at any level.

For terms f_i ∈ [0, 1] and the hypothesis "E f ≤ μ" put 1 on the table and bet, with stakes s fixed
beforehand and weights w_s of sum ≤ 1:

    W(μ) = Σ_s w_s Π_i (1 + s·(f_i − μ)/μ),   s ∈ [0, 1).

E W ≤ 1 if E f ≤ μ, for independent terms that need not be alike: E Π = Π (1 − s + s·μ_i/μ), and the
mean of the factors is ≤ 1 (AM–GM). So P[W ≥ e^L] ≤ e^(−L) (Markov), and −ln W is the logarithm of a
p-value. W falls in μ, so bisection finds the lower end; the upper one is that of 1 − f.
(Waudby-Smith & Ramdas 2024; a fixed mixture in place of predictable bets: only counts matter.)
A difference g ∈ [−1, 1] of two models is (g + 1)/2, and terms that are equal are counted once.

With the best stake the half-width is near sd·√(2L/n). A stake that public numbers predict has most
of the weight. Log-wealth is rounded down, ends outwards. Proofs: docs/explanation/theory/told.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.theory.numerics import ROUNDING

__all__ = [
    "Bets",
    "Tally",
    "kl_high",
    "kl_low",
    "log_mean_above",
    "log_mean_below",
    "log_wealth",
    "mean_high",
    "mean_low",
    "predicted_half_width",
    "predicted_stake",
]

_ON_PREDICTED = 0.8  # of the weight
_LARGEST = 0.95  # of all stakes: a factor is never below 1 − s
_ROWS_MAX = 10**12
_NATS_MAX = 1e6
_UNIT = 2.0**-52
_LEAST = 1e-290  # of a mean: f/μ stays within the floats
_AT_ONCE = 2**14  # logarithms: so many stay in the processor's cache
_SHARP = 1e-6  # to which an end is found, of its distance from the mean

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tally:
    """n terms in [0, 1], in whole parts: the distinct f = parts/whole, and how often each occurs.

    >>> terms = Tally.of([0, 3, 3, 4], whole=4)
    >>> terms.parts.tolist(), terms.counts.tolist(), terms.mean
    ([0, 3, 4], [1, 2, 1], 0.625)
    """

    parts: Whole
    counts: Whole
    whole: int

    def __post_init__(self) -> None:
        whole_number("whole", self.whole, 1, 2**31)
        inside = self.parts.size and self.parts.min() >= 0 and self.parts.max() <= self.whole
        if not inside or self.counts.shape != self.parts.shape or self.counts.min() < 0:
            allowed = f"whole parts from 0 to {self.whole:,}, each with its count"
            raise InvalidInput("terms", self.parts[:4].tolist(), allowed)

    @classmethod
    def of(cls, parts: Whole | list[int], whole: int) -> Tally:
        """From the parts of each term. Counting is exact, and fast for many rows."""
        parts = np.asarray(parts, dtype=np.int64)
        if parts.size and parts.min() >= 0 and parts.max() <= 16 * parts.size:
            counts = np.bincount(parts)
            found = np.flatnonzero(counts)
            return cls(found, counts[found], whole)
        return cls(*np.unique(parts, return_counts=True), whole)

    @classmethod
    def paired(cls, rows: int, wins: int, losses: int) -> Tally:
        """(g + 1)/2 for differences g of 0/1 terms: wins +1, losses −1, the others 0.

        >>> Tally.paired(10, 3, 1).mean
        0.6
        """
        n = whole_number("rows", rows, 1, _ROWS_MAX)
        wins = whole_number("wins", wins, 0, n)
        losses = whole_number("losses", losses, 0, n - wins)
        return cls(np.arange(3), np.array([losses, n - wins - losses, wins]), 2)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        return float(self.values @ self.counts) / self.rows

    @property
    def values(self) -> Floats:
        return self.parts / self.whole

    def mirrored(self) -> Tally:
        """1 − f, exactly."""
        return Tally(self.whole - self.parts, self.counts, self.whole)


@dataclass(frozen=True, eq=False)
class Bets:
    """Stakes and the logarithms of their weights: public, fixed before the terms are read.

    >>> bets = Bets.spread(10_000)
    >>> len(bets.stakes), float(np.exp(bets.logs).sum()) <= 1
    (14, True)
    """

    stakes: Floats
    logs: Floats

    @classmethod
    def spread(cls, rows: int, predicted: float | None = None) -> Bets:
        """Stakes 2^(−j/2), j = 1 … ⌈log₂ n⌉, evenly; a predicted stake has .8 of the weight."""
        n = whole_number("rows", rows, 1, _ROWS_MAX)
        stakes = np.exp2(-np.arange(1, max(2, math.ceil(math.log2(n)) + 1)) / 2)
        logs = np.full(stakes.size, -math.log(stakes.size) - ROUNDING)
        if predicted is None:
            return cls(stakes, logs)
        stake = real_number("predicted", predicted, 0, _LARGEST, open_low=True)
        logs = np.append(logs + math.log(1 - _ON_PREDICTED), math.log(_ON_PREDICTED)) - ROUNDING
        return cls(np.append(stakes, stake), logs)


def predicted_half_width(
    sd: float, rows: int, nats: float, third: float = 0.0, mean: float = 0.5
) -> float:
    """About how far a lower end will be from the mean: L/(n·λ) + λ·sd²/2 + 2·third·L/(3·sd²·n).

    λ = √(2L/n)/sd, so that the first two are sd·√(2L/n); at most .95/mean, where the stake is the
    largest there is. L has ln 1/.8 more, for the weight of the stake; `third` is the third central
    moment of the terms, counted towards this end. For an upper end take 1 − mean. No claim depends
    on it: it sets what is announced.

    >>> round(predicted_half_width(0.2236, 10_000, 4.5), 4)
    0.0069
    """
    n = whole_number("rows", rows, 1, _ROWS_MAX)
    paid = real_number("nats", nats, 0, _NATS_MAX) - math.log(_ON_PREDICTED)
    sd = max(1e-9, real_number("sd", sd, 0))
    most = _LARGEST / max(1e-9, real_number("mean", mean, 0, 1))
    bet = min(most, math.sqrt(2 * paid / n) / sd)
    reach = paid / (n * bet) + bet * sd * sd / 2
    return max(0.0, reach + 2 * third * paid / (3 * sd * sd * n))


def predicted_stake(mean: float, sd: float, rows: int, nats: float, third: float = 0.0) -> float:
    """The stake for a lower end at level L, if mean and sd are as public numbers predict.

    At μ = mean − D, D the predicted half-width, E ln(1 + λ(f − μ)) is largest near the λ with
    D − λ·(sd² + D²) − λ²·(third − 3·D·sd²) = 0; the stake is λ·μ. For an upper end take 1 − mean.

    >>> round(predicted_stake(0.5, 0.1118, 10_000, 5.0), 3)
    0.144
    """
    mean, sd = real_number("mean", mean, 0, 1), max(1e-9, real_number("sd", sd, 0, 0.5))
    reach = predicted_half_width(sd, rows, nats, third, mean)
    square, cube = sd * sd + reach * reach, third - 3 * reach * sd * sd
    root = math.sqrt(max(0.0, square * square + 4 * reach * cube))
    return min(_LARGEST, max(1e-9, max(0.0, mean - reach) * 2 * reach / (square + root)))


def log_wealth(terms: Tally, mean: float, bets: Bets) -> float:
    """ln W(μ), rounded down.

    >>> bets = Bets.spread(10_000, predicted_stake(0.5, 0.1118, 10_000, 5.0))
    >>> round(log_wealth(Tally.paired(10_000, 290, 210), 0.5, bets), 3)
    6.179
    """
    mean = real_number("mean", mean, 0, 1)
    return _join(_log_wealths(terms, mean, bets.stakes), bets.logs)


def _log_wealths(terms: Tally, mean: float, stakes: Floats) -> Floats:
    """ln Π (1 + s(f − μ)/μ) for each stake, rounded down.

    Each logarithm is off by at most 16·(1 + s/(1 − s)) + 4·|itself| units of 2^−53, since the last
    bits of f, μ and s move the factor by so much of itself; a sum of v terms by v units of the sum
    of their sizes.
    """
    if mean == 0:  # the hypothesis "E f ≤ 0" is refuted by any term above 0
        gain = np.inf if terms.mean > 0 else 0.0
        return np.full(stakes.size, gain)
    values, mean = terms.values, max(mean, _LEAST)  # wealth falls in μ: a larger one is safe
    odds, counts = (values - mean) / mean, terms.counts.astype(np.float64)
    sums, sizes = np.empty(stakes.size), np.empty(stakes.size)
    step = max(1, _AT_ONCE // values.size)
    for first in range(0, stakes.size, step):
        some = slice(first, first + step)
        logs = np.log1p(stakes[some, None] * odds)
        sums[some] = np.einsum("ij,j->i", logs, counts)  # in this thread, unlike logs @ counts
        sizes[some] = np.einsum("ij,j->i", np.abs(logs), counts)
    slack = _UNIT * ((values.size + 8) * sizes + 400.0 * terms.rows)
    result: Floats = sums - slack
    return result


def _join(wealths: Floats, logs: Floats) -> float:
    """ln Σ w·e^x, rounded down."""
    total = wealths + logs
    largest = float(total.max())
    if not math.isfinite(largest):
        return largest
    with np.errstate(under="ignore"):
        return largest + math.log(float(np.exp(total - largest).sum())) - 1e-12 * (1 + abs(largest))


def log_mean_above(terms: Tally, value: float, bets: Bets) -> float:
    """ln of the p-value of "E f < value", min(0, −ln W(value)); rounded up.

    For a difference with a margin m, value is (1 + m)/2. Stakes are those of lower ends.

    >>> round(log_mean_above(Tally.paired(10_000, 300, 200), 0.5, Bets.spread(10_000)), 3)
    -7.947
    """
    return min(0.0, -log_wealth(terms, min(1.0, math.nextafter(value, 2.0)), bets))


def log_mean_below(terms: Tally, value: float, bets: Bets) -> float:
    """ln of the p-value of "E f > value", the mirror; rounded up."""
    return log_mean_above(terms.mirrored(), math.nextafter(1 - value, 2.0), bets)


def mean_low(terms: Tally, nats: float, bets: Bets) -> float:
    """The largest μ that is found with ln W(μ) ≥ L, rounded down: E f ≥ μ at this level.

    W falls in μ, and W ≤ 1 at the mean. False position (Illinois: an end that stays counts half)
    keeps an end on either side and returns the one where the wealth was computed to be enough.
    Near the end stakes that add little are left out: wealth only gets less.

    >>> terms = Tally.paired(10_000, 290, 210)
    >>> bets = Bets.spread(10_000, predicted_stake(0.504, 0.1118, 10_000, 5.0))
    >>> round(2 * mean_low(terms, 5.0, bets) - 1, 4), round(2 * mean_high(terms, 5.0, bets) - 1, 4)
    (0.0008, 0.0153)
    """
    nats = real_number("nats", nats, 0, _NATS_MAX)
    centre, n = terms.mean, terms.rows
    if centre <= 0:
        return 0.0
    sd = math.sqrt(float((terms.values - centre) ** 2 @ terms.counts) / n)
    reach = sd * math.sqrt(2 * nats / n) + nats / n
    trial = centre - reach if reach < centre else centre * math.exp(-1 - min(nats, 600.0))
    stakes, logs = bets.stakes, bets.logs
    low, high, above, below, side = 0.0, centre, math.inf, -nats, 0
    for _ in range(200):
        wealths = _log_wealths(terms, trial, stakes)
        gain = _join(wealths, logs) - nats
        if stakes is bets.stakes and high - low < 0.2 * (centre - low):
            kept = wealths + logs > (wealths + logs).max() - 8
            stakes, logs = stakes[kept], logs[kept]
        if gain >= 0:
            low, above, below, side = trial, gain, below / (2 if side > 0 else 1), 1
        else:
            high, below, above, side = trial, gain, above / (2 if side < 0 else 1), -1
        if high - low <= _SHARP * (centre - low):
            break
        if math.isfinite(above):
            trial = low + (high - low) * above / (above - below)
        else:
            trial = max(high / 2, high - (centre - high) / 4)
        # Nearly there: a step beyond the zero, so that the other end moves too.
        near = _SHARP / 3 * (centre - low)
        trial = min(max(trial, low + near), high - near)
    return low


def mean_high(terms: Tally, nats: float, bets: Bets) -> float:
    """1 − `mean_low` of 1 − f, rounded up: E f ≤ it at this level. Stakes are those of 1 − f."""
    return min(1.0, math.nextafter(1 - mean_low(terms.mirrored(), nats, bets), 2.0))


# Chernoff's bound, always: independent terms in [0, 1], alike or not. The bets' check.


def kl_low(rows: int, total: float, nats: float) -> float:
    """The largest μ ≤ total/n with n·kl(total/n, μ) ≥ L, rounded down (Hoeffding 1963, (2.1)).

    kl(x, μ) = x·ln(x/μ) + (1 − x)·ln((1 − x)/(1 − μ)).

    >>> kl_low(10_000, 9_000, 3.81), kl_low(100, 0, 3.0), kl_low(100, 100, 3.0)
    (0.8915..., 0.0, 0.9704...)
    """
    n = whole_number("rows", rows, 1, _ROWS_MAX)
    x = real_number("total", total, 0, n) / n
    wanted = real_number("nats", nats, 0, _NATS_MAX) / n * (1 + 1e-9) + 1e-14
    if x == 0:
        return 0.0
    low, high = 0.0, x
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _kl(x, middle) >= wanted else (low, middle)
        if high - low <= 1e-13 * high:
            break
    return low


def _kl(x: float, y: float) -> float:
    if y == 0:
        return math.inf
    rest = (1 - x) * math.log((1 - x) / (1 - y)) if x < 1 else 0.0
    return x * math.log(x / y) + rest


def kl_high(rows: int, total: float, nats: float) -> float:
    """The mirror of `kl_low`, rounded up.

    >>> round(kl_high(100, 0, 3.0), 5)
    0.02955
    """
    return min(1.0, math.nextafter(1 - kl_low(rows, rows - total, nats), 2.0))
