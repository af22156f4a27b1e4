"""Exact answers, certified by counting: a union bound over all that can be asked.

Fix the analyst, coins included, and answer without any noise. Then the next question is a function
of the answers so far, its *history*, and after each history it is one fixed function of a block: a
count of blocks is binomial. The promise can fail only in a question that is asked, and for the
first time only after a history without a failure. So it fails with probability at most the sum,
over such histories, of the chance that one fixed question fails (description length: Dwork,
Feldman, Hardt, Pitassi, Reingold & Roth 2015; that only first failures count is our addition).

    k guesses, ℓ refusals     a: false No, b: false Yes, c: the correction after a No, of r values
                              C(k−1, ℓ) r^(ℓ−1)·max(a, c) + Σ_{j<ℓ} C(k−1, j) r^j·max(a, b + c)
    k answers on r points     r^(k−1)·q
    k answers by weights      Σ_{j≤ℓ} 2^j C(k−1+j, j)·b, ℓ the most updates (`theory.transcripts`)

Nothing else about the blocks may be seen by anybody. Everything here is a natural logarithm,
rounded up. Proofs, and why no count can be smaller: docs/explanation/theory/transcripts.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.theory.numerics import (
    ROUNDING,
    log_add,
    log_binomial_tail,
    log_co_ratio,
    log_products,
    log_ratio,
    log_sum,
    log_up,
    smallest_whole,
)
from holdfast.theory.sizing import QUERIES_MAX, Split, best_rank

__all__ = [
    "HELD_SLACK",
    "HIGHEST_MASS",
    "LOWEST_MASS",
    "REFUSALS_MAX",
    "Guessing",
    "answer_blocks",
    "best_least",
    "drop",
    "guess_blocks",
    "guess_counts",
    "largest_mass",
    "learning_rate",
    "least_entropy",
    "log_answer_count",
    "log_answer_failure",
    "log_guess_failure",
    "log_share",
    "log_weighing_count",
    "log_weighing_failure",
    "most_updates",
    "multiset_count",
    "weighing_blocks",
]

REFUSALS_MAX = 10**6
_LIMIT = 10**12
_MOST_BITS = 10**7  # of a count of histories: 50 million blocks, where other methods are better
_NEVER = -math.inf


class GuessCounts(NamedTuple):
    """ln C(k−1, ℓ) r^(ℓ−1) and ln Σ_{j<ℓ} C(k−1, j) r^j: histories before the last guess, at it."""

    early: float
    last: float


def guess_counts(queries: int, refusals: int, points: int = 1) -> GuessCounts:
    """How often a first failure can happen, with k guesses, ℓ refusals and r values after a No.

    >>> [round(math.exp(count)) for count in guess_counts(5, 2)]
    [6, 5]
    >>> [round(math.exp(count)) for count in guess_counts(5, 2, points=3)]
    [18, 13]
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    hint = "A guess is refused once; for more than a million, stable looks are far cheaper."
    refusals = whole_number("refusals", refusals, 1, min(queries, REFUSALS_MAX), hint=hint)
    return _guess_counts(queries, refusals, _points(points, refusals - 1))


@lru_cache(maxsize=64)
def _guess_counts(queries: int, refusals: int, points: int) -> GuessCounts:
    i = np.arange(min(refusals, queries - 1))
    logs = log_products((queries - 1 - i) / (i + 1.0) * points)
    early = float(logs[refusals]) - math.log(points) if refusals < queries else _NEVER
    return GuessCounts(log_up(early), log_sum(logs[:refusals]))


@dataclass(frozen=True)
class Guessing:
    """k guesses, ℓ refusals; with more than one point, a No is followed by one of r values.

    All at once: both tails ≥ tail_high ⇒ Yes; one of them ≤ tail_low ⇒ No; both tails of a
    correction > tail_low. With `sides` = 1 a guess is about one of its tails only.
    """

    queries: int
    refusals: int
    tail_low: float
    tail_high: float
    sides: int = 2
    points: int = 1

    def __post_init__(self) -> None:
        guess_counts(self.queries, self.refusals, self.points)
        whole_number("sides", self.sides, 1, 2)
        most = 1.0 if self.sides == 1 else 0.5
        real_number("tail_low", self.tail_low, 0, most, open_low=True, open_high=True)
        real_number("tail_high", self.tail_high, 0, most, open_low=True, open_high=True)
        if self.tail_low >= self.tail_high:
            hint = "Between them a verdict may go either way."
            received = (self.tail_low, self.tail_high)
            raise InvalidInput("tails", received, "tail_low below tail_high", hint)

    @property
    def counts(self) -> GuessCounts:
        """How often a first failure can happen."""
        return guess_counts(self.queries, self.refusals, self.points)

    def rank(self, blocks: int) -> int | None:
        """The middle one, for a correction; None without corrections."""
        return (blocks + 1) // 2 if self.points > 1 else None

    def chances(self, blocks: int, least: int, rank: int | None) -> tuple[float, float, float]:
        """ln of a, b and c: a false No, a false Yes, a correction outside."""
        beyond = math.nextafter(1 - self.tail_high, 1.0)
        no = math.log(self.sides) + log_binomial_tail(blocks, beyond, blocks - least + 1)
        yes = log_binomial_tail(blocks, self.tail_low, least)
        if rank is None:
            return no, yes, _NEVER
        return no, yes, _outside(blocks, rank, self.tail_low, self.tail_low)


def log_guess_failure(guessing: Guessing, blocks: int, least: int, rank: int | None) -> float:
    """ln of C(k−1, ℓ) r^(ℓ−1)·max(a, c) + Σ_{j<ℓ} C(k−1, j) r^j·max(a, b + c), rounded up.

    Yes if each of the sides has `least` of the m blocks. a = sides·P[Bin(m, ρ_hi) < least] bounds a
    false No, b = P[Bin(m, ρ_lo) ≥ least] a false Yes. A No is followed by the value of the given
    rank, and c bounds the chance that one of its tails is ρ_lo or less; without a rank, c = 0.

    >>> math.exp(log_guess_failure(Guessing(1_000, 1, 0.05, 0.25), 113, 11, rank=None))
    0.04...
    """
    early, last = guessing.counts
    no, yes, wrong = guessing.chances(blocks, least, rank)
    return log_add(early + max(no, wrong), last + max(no, log_add(yes, wrong)))


def best_least(guessing: Guessing, blocks: int) -> int:
    """The count to ask for that fails least often.

    The bound falls up to where a reaches c; from there the weighted sum of a and b falls until
    their likelihoods cross, as in `best_rank`; where a reaches b + c it rises.

    >>> best_least(Guessing(1_000, 10, 0.05, 0.25), 1_153)
    145
    """
    low, high, rank = guessing.tail_low, guessing.tail_high, guessing.rank(blocks)
    early, last = guessing.counts

    def past_correction(least: int) -> bool:
        no, _, wrong = guessing.chances(blocks, least, rank)
        return no >= wrong

    def past_yes(least: int) -> bool:
        no, yes, wrong = guessing.chances(blocks, least, rank)
        return no >= log_add(yes, wrong)

    candidates = [smallest_whole(past, blocks + 1) for past in (past_correction, past_yes)]
    candidates += [least - 1 for least in candidates]
    if early > _NEVER:
        drift = math.log((1 - low) / (1 - high))
        crossing = last - early - math.log(guessing.sides) + blocks * drift
        candidates.append(math.ceil(crossing / (math.log(high / low) + drift)))
    inside = sorted({min(max(least, 1), blocks) for least in candidates})
    return min(inside, key=lambda least: log_guess_failure(guessing, blocks, least, rank))


class GuessBlocks(NamedTuple):
    """Blocks, the count that every side of a guess must reach, and the rank of a correction."""

    blocks: int
    least: int
    rank: int | None


def guess_blocks(guessing: Guessing, failure: float) -> GuessBlocks:
    """The fewest blocks that keep the promise but for `failure`, up to the steps of the count.

    >>> guess_blocks(Guessing(1_000, 10, 0.05, 0.25), 0.05)
    GuessBlocks(blocks=1153, least=145, rank=None)
    >>> guess_blocks(Guessing(1_000, 10, 0.05, 0.25, points=32), 0.05)
    GuessBlocks(blocks=1830, least=232, rank=915)
    """
    share = log_share(failure)

    def at(blocks: int) -> GuessBlocks:
        return GuessBlocks(blocks, best_least(guessing, blocks), guessing.rank(blocks))

    def enough(blocks: int) -> bool:
        return log_guess_failure(guessing, *at(blocks)) <= share

    blocks, fewer = 0, smallest_whole(enough, _LIMIT)
    # Where a and b are balanced, fewer blocks may suit a whole count better: go some steps back.
    while fewer != blocks:
        blocks = fewer
        back = min(4 * blocks // at(blocks).least, 200)
        fewer = next(m for m in range(max(1, blocks - back), blocks + 1) if enough(m))
    return at(blocks)


def log_answer_count(queries: int, points: int) -> float:
    """(k−1)·ln r, rounded up: the histories before the last of k answers on r points.

    >>> round(log_answer_count(20, 32), 3)
    65.849
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    return log_up((queries - 1) * math.log(_points(points, queries - 1)))


def log_answer_failure(
    blocks: int, rank: int, queries: int, points: int, tail_low: float, tail_high: float
) -> float:
    """ln of r^(k−1)·(P[Bin(m, ρ_lo) ≥ s] + P[Bin(m, ρ_hi) ≥ m − s + 1]), s the rank; rounded up.

    >>> math.exp(log_answer_failure(461, 231, 20, 32, 0.25, 0.25))
    0.04...
    """
    return log_up(log_answer_count(queries, points) + _outside(blocks, rank, tail_low, tail_high))


def answer_blocks(
    queries: int, points: int, tail_low: float, tail_high: float, failure: float
) -> Split:
    """The fewest blocks for k exact quantiles on grids of r points, and their rank.

    >>> [answer_blocks(k, 32, 0.25, 0.25, 0.05).blocks for k in (10, 50, 100, 1_000)]
    [223, 1181, 2383, 24059]
    """
    share = log_share(failure)

    def enough(blocks: int) -> bool:
        rank = best_rank(blocks, tail_low, tail_high)
        return log_answer_failure(blocks, rank, queries, points, tail_low, tail_high) <= share

    blocks = smallest_whole(enough, _LIMIT)
    return Split(blocks, best_rank(blocks, tail_low, tail_high))


def log_share(failure: float) -> float:
    """ln β, rounded down."""
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    logarithm = math.log(failure)
    return logarithm - ROUNDING * (1 - logarithm)


def _outside(blocks: int, rank: int, tail_low: float, tail_high: float) -> float:
    """ln of the chance that a fixed quantile leaves its tails, as in `split_failure`."""
    low = log_binomial_tail(blocks, tail_low, rank)
    return log_add(low, log_binomial_tail(blocks, tail_high, blocks - rank + 1))


def _points(points: int, answers: int) -> int:
    """r, if r^answers is a count that a computer can hold."""
    points = whole_number("points", points, 1, 2**62)
    bits = answers * (points - 1).bit_length()
    if bits > _MOST_BITS:
        remedy = "Ask fewer questions, or allow fewer refusals; stable looks are cheaper here."
        needed, given = f"{bits:,} bits", f"the limit is {_MOST_BITS:,}"
        raise Infeasible("A count of all that can be asked", needed, given, remedy)
    return points


# How often multiplicative weights can be refused: at most ln|Z|/kl(s, 1/2) times, and fewer.
#
# A hypothesis h over a finite universe Z starts uniform. A refused guess names an indicator ψ with
# h[ψ] ≥ 1/2 although the sample has S[ψ] ≤ s < 1/2; the update shrinks h where ψ = 1,
#
#     h'(z) = h(z)·e^(−ηψ(z)) / W,    W = 1 − h[ψ]·(1 − e^(−η)),
#
# and KL(S‖h) falls by −η·S[ψ] − ln W. For h[ψ] ≥ p and S[ψ] ≤ s the best rate is
# η = ln(p/(1−p)) − ln(s/(1−s)), and the fall is at least kl(s, p), the divergence of two coins. KL
# starts at ln|Z| − H(S) and stays ≥ 0. Theorem `adaptive-general-mwu` of the paper and theory §7
# use Hoeffding's lemma instead, 2·(1/2 − s)² ≤ kl(s, 1/2), and drop the entropy H(S).
#
# The weights of h are whole numbers: the functions here take 1e-8 off every h[ψ], which covers all
# rounding of `holdfast.mechanisms.hypothesis`. Proofs: docs/explanation/theory/weights.md.


HELD_SLACK = 1e-8  # by which whole weights may overstate h[ψ]; it also pays for rounding the rate
LOWEST_MASS, HIGHEST_MASS = 1e-6, 0.495  # where that slack is proved to be enough
_MOST_HELD = 0.999  # more mass only helps, and the rate stays finite
_MOST_MULTISETS = 10**30


def learning_rate(mass: float, held: float = 0.5) -> float:
    """η = ln(p/(1−p)) − ln(s/(1−s)): the best rate for S[ψ] ≤ mass = s and h[ψ] ≥ held = p.

    At p = 1/2 that is ln((1−s)/s), a little more than the 4·(1/2 − s) of Hoeffding's lemma. The
    mass that h holds is public, so each update may use its own.

    >>> round(learning_rate(0.25), 6), round(learning_rate(0.25, held=0.8), 6)
    (1.098612, 2.484907)
    """
    s, p = _mass(mass), _held(held)
    return -log_ratio(s, p) + log_co_ratio(s, p)


def drop(mass: float, held: float = 0.5) -> float:
    """kl(s, p) = s·ln(s/p) + (1−s)·ln((1−s)/(1−p)): by how much an update lowers KL(S‖h).

    At least; with the rate above, for S[ψ] ≤ mass = s and h[ψ] ≥ held = p. Rounded down.

    >>> round(drop(0.25), 5), 2 * 0.25**2, round(drop(0.25, held=0.8), 5)
    (0.13081, 0.125, 0.70053)
    """
    s, p = _mass(mass), _held(held)
    return (s * log_ratio(s, p) + (1 - s) * log_co_ratio(s, p)) * (1 - ROUNDING)


def least_entropy(largest: float) -> float:
    """The smallest entropy of a law none of whose probabilities exceeds `largest`; rounded down.

    ⌊1/x⌋ points of probability x and one with the rest, since entropy is concave. It is ln n at
    x = 1/n, and never below ln(1/x).

    >>> round(least_entropy(0.25), 4), round(math.log(4), 4), round(least_entropy(0.3), 4)
    (1.3863, 1.3863, 1.3138)
    """
    x = real_number("largest", largest, 0, 1, open_low=True)
    whole = math.floor(1 / x)
    rest = max(0.0, 1 - whole * x)
    total = -whole * x * math.log(x) - (rest * math.log(rest) if rest > 0 else 0.0)
    # The float 1 − ⌊1/x⌋·x is off by an ulp of 1, and r·ln(1/r) is steep at 0.
    return max(0.0, total * (1 - ROUNDING) - 1e-14)


def most_updates(universe_size: int, mass: float, largest: float | None = None) -> int:
    """The largest number of refused guesses, whatever the data and the questions are.

    `mass` = s bounds every S[ψ] of a refused guess. With one fixed rate it need only bound their
    average, if `largest` = x bounds each. Then the number is at most

        max( (ln|Z| − least_entropy(x)) / kl(s, p),   ln|Z| / ln((1−s)/(1−p)) ),   p = 1/2 − 1e-8:

    if every S(z) ≤ x the sample has that entropy; if some S(z) > x, then no ψ contained z, and
    h(z) ≤ 1 grew by (1−s)/(1−p) each time. Rounded up before the floor.

    >>> most_updates(10**5, 0.25), math.floor(math.log(10**5) / (2 * 0.25**2))
    (77, 92)
    >>> most_updates(10**5, 0.25, largest=1.0), most_updates(10**5, 0.4), most_updates(10**5, 0.05)
    (88, 519, 17)
    """
    size = whole_number("universe_size", universe_size, 1, _MOST_MULTISETS)
    s = _mass(mass)
    x = s if largest is None else real_number("largest", largest, s, 1)
    logarithm = math.log(size)
    spread = (logarithm - least_entropy(x)) / drop(s)
    spike = logarithm / log_co_ratio(s, _held(0.5))
    return math.floor(max(0.0, spread, spike) * (1 + 10 * ROUNDING))


def largest_mass(universe_size: int, updates: int) -> float:
    """The largest mass s with `most_updates(universe_size, s)` ≤ updates; rounded down.

    >>> s = largest_mass(10**5, 77)
    >>> round(s, 4), most_updates(10**5, s), most_updates(10**5, s + 1e-9)
    (0.2509, 77, 78)
    """
    size = whole_number("universe_size", universe_size, 1, _MOST_MULTISETS)
    return _largest_mass(size, whole_number("updates", updates, 0, 10**18))


@lru_cache(maxsize=1024)  # searches for plans ask the same again and again
def _largest_mass(universe_size: int, wanted: int) -> float:
    low, high = LOWEST_MASS, HIGHEST_MASS
    if most_updates(universe_size, low) > wanted:
        raise Infeasible(
            f"{wanted:,} updates for a universe of {universe_size:,} elements",
            f"at least {most_updates(universe_size, low):,}",
            "a refused guess can lower the divergence by no more than ln 2",
            "Allow more updates, or take a smaller universe.",
        )
    if most_updates(universe_size, high) <= wanted:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        if most_updates(universe_size, middle) <= wanted:
            low = middle
        else:
            high = middle
    return low


def multiset_count(points: int, block_size: int) -> int:
    """C(n + t − 1, t): the multisets of t units out of n possible ones, the |Z| of symmetric φ.

    >>> multiset_count(10, 5), multiset_count(2, 1000), 10**5  # against 10⁵ tuples
    (2002, 1001, 100000)
    """
    n = whole_number("points", points, 1, 10**12)
    t = whole_number("block_size", block_size, 1, 10**12)
    total, fewer = 1, min(t, n - 1)
    for i in range(1, fewer + 1):
        total = total * (max(t, n - 1) + i) // i  # C(max + i, i), at least twice the one before
        if total > _MOST_MULTISETS:
            raise Infeasible(
                f"All multisets of {t:,} units out of {n:,} points",
                f"more than {_MOST_MULTISETS:.0e} elements",
                "no machine holds a weight for each",
                "Take coarser points, smaller blocks, or a search for each question.",
            )
    return total


def _mass(mass: float) -> float:
    hint = "It bounds the share of blocks that a refused guess may have on its side."
    return real_number("mass", mass, LOWEST_MASS, HIGHEST_MASS, hint=hint)


def _held(held: float) -> float:
    """p: the mass that h certainly holds, and no more than is useful."""
    return min(real_number("held", held, 0.5, 1), _MOST_HELD) - HELD_SLACK


# Multiplicative weights without noise: the histories of guesses that are corrected (theory §7).
#
# A public hypothesis guesses every answer; a guess is confirmed if both its sides have `least` of
# the m blocks, and otherwise the side that has fewer is told, the hypothesis updated and the same
# question guessed again. A refused guess has at most (least − 1)/m of the sample on its side,
# exactly, so there are never more than ℓ = `most_updates` refusals, and the promise fails only in
# a false Yes. The k − 1 earlier questions ended with a Yes, and up to ℓ Noes of two kinds came
# before:
#
#     P[some answer outside qi(ρ, 1 − ρ)] ≤ Σ_{j≤ℓ} 2^j C(k−1+j, j)·P[Bin(m, ρ) ≥ least].
#
# Proof: docs/explanation/theory/transcripts.md. All numbers are logarithms, rounded up.


def log_weighing_count(queries: int, updates: int) -> float:
    """ln Σ_{j≤ℓ} 2^j C(k−1+j, j), rounded up: a No tells its side, and its question comes again.

    >>> round(math.exp(log_weighing_count(1, 3))), round(math.exp(log_weighing_count(3, 1)))
    (15, 7)
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    i = np.arange(whole_number("updates", updates, 0, REFUSALS_MAX))
    return log_sum(log_products(2 * (queries + i) / (i + 1.0)))


def log_weighing_failure(blocks: int, least: int, queries: int, updates: int, tail: float) -> float:
    """ln of Σ_{j≤ℓ} 2^j C(k−1+j, j)·P[Bin(m, ρ) ≥ least], rounded up: no other failure counts.

    >>> math.exp(log_weighing_failure(1_230, 285, 10**6, 19, 0.05))
    0.02...
    """
    return log_up(log_weighing_count(queries, updates) + log_binomial_tail(blocks, tail, least))


class WeighingBlocks(NamedTuple):
    """Blocks, the count that both sides of a guess must reach, and the most updates."""

    blocks: int
    least: int
    updates: int


def weighing_blocks(queries: int, universe: int, tail: float, failure: float) -> WeighingBlocks:
    """Blocks for k answers of weights over |Z| elements in qi(ρ, 1 − ρ); near the fewest.

    A refused guess has at most least − 1 of m blocks on its side, a mass that bounds the updates
    (`most_updates`). For each number of updates the largest mass is known, so blocks and count are
    tied together; the best number is found on ever finer grids.

    >>> weighing_blocks(10**6, 100, 0.05, 0.05)
    WeighingBlocks(blocks=1230, least=285, updates=19)
    """
    tail = real_number("tail", tail, 0, 0.49, open_low=True)
    share = log_share(failure)

    def at(updates: int) -> WeighingBlocks:
        mass = largest_mass(universe, updates)
        limit = share - log_weighing_count(queries, updates)

        def blocks(least: int) -> int:
            return max(1, math.ceil((least - 1) / mass))

        def enough(least: int) -> bool:
            return log_up(log_binomial_tail(blocks(least), tail, least)) <= limit

        least = smallest_whole(enough, _LIMIT)
        least = next(c for c in range(max(1, least - 8), least + 1) if enough(c))
        return WeighingBlocks(blocks(least), least, updates)

    low = most_updates(universe, max(LOWEST_MASS, tail + 0.02 * (HIGHEST_MASS - tail)))
    high = min(most_updates(universe, HIGHEST_MASS), REFUSALS_MAX)
    while high - low > 16:
        tried = sorted({round(x) for x in np.geomspace(low + 1, high + 1, 17) - 1})
        best = min(range(len(tried)), key=lambda i: at(tried[i]))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
    return min(at(updates) for updates in range(low, high + 1))
