"""Broken versions of the mechanisms, each with the check that must reject it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid, grid
from holdfast.mechanisms.looks import look, search, search_counts
from holdfast.randomness import Entropy, SeededEntropy, flip
from holdfast.theory.coins import Coin, logistic_coin
from tests.mechanisms.laws import Script, SearchCounts, alarm
from tests.mechanisms.test_search import accurate
from tests.mutants.theory import Mutant
from tests.reference.mechanisms import ScoreIntervals, exponential_probabilities, score_intervals
from tests.theory.finite import exponential_law

__all__ = ["MUTANTS"]

Look = Callable[[NDArray[np.int64], Coin, Entropy], NDArray[np.bool_]]
Search = Callable[[NDArray[np.float64], Grid, Coin, Entropy], int]
Law = Callable[[NDArray[np.float64], Grid, float], list[float]]

COIN = logistic_coin(slope=0.7, floor=1e-4)
POINTS = grid([0.0, 1.0])


# The checks.


def chance(says: Callable[[Entropy], bool]) -> Fraction:
    """P[True] to 64 bits: words below a threshold all fall one way, and it is found exactly."""
    first = says(Script([0, 0]))
    low, high = 0, 2**64  # word `low` says `first`, word `high` would not
    while high - low > 1:
        middle = (low + high) // 2
        same = says(Script([middle, 0])) == first
        low, high = (middle, high) if same else (low, middle)
    share = Fraction(high, 2**64)
    return share if first else 1 - share


def look_has_its_chance(looks: Look = look) -> bool:
    """At every offset, both sides and both lattices: the coin's P[Yes]."""
    return all(
        abs(
            chance(lambda entropy: bool(looks(np.array([offset]), COIN, entropy)[0]))  # noqa: B023
            - Fraction(COIN.yes(offset))
        )
        <= Fraction(2, 2**53)
        for offset in range(-40, 41)
    )


def search_has_its_chance(searches: Search = search) -> bool:
    """One look, two points: P[answer 0] is the coin's at 2·count − m, for odd and even m.

    Values lie on the grid point, between the points and above them, and some are NaN, which
    counts as the lowest.
    """
    for blocks in range(1, 8):
        for count in range(blocks + 1):
            low = [0.0, math.nan, -3.0, 0.0, -math.inf, math.nan, 0.0][:count]
            high = [1.0, 0.5, 7.0, math.inf, 1e-300, 1.0, 2.0][: blocks - count]
            values = np.array(low + high)
            found = chance(lambda entropy: searches(values, POINTS, COIN, entropy) == 0)  # noqa: B023
            if abs(found - Fraction(COIN.yes(2 * count - blocks))) > Fraction(2, 2**53):
                return False
    return True


def search_is_accurate(searches: SearchCounts = search_counts) -> bool:
    """Over all small datasets: a quantile is missed by τ with probability ≤ looks·h(τ)."""
    return accurate("logistic", searches)


def flips_are_independent(looks: Look = look) -> bool:
    """Four looks at a fair coin: all 16 outcomes equally often. False alarm ≤ 1e-6."""
    trials = 40_000
    yes = looks(np.zeros((trials, 4), np.int64), COIN, SeededEntropy(11))
    outcome = yes.astype(int) @ np.array([8, 4, 2, 1])
    return not alarm(np.bincount(outcome, minlength=16).tolist(), trials, [1 / 16] * 16)


def library_law(values: NDArray[np.float64], points: Grid, epsilon: float) -> list[float]:
    intervals = score_intervals(values, points)
    return spread(intervals, exponential_probabilities(intervals, epsilon))


def spread(intervals: ScoreIntervals, chances: NDArray[np.float64]) -> list[float]:
    sizes = intervals.last - intervals.first + 1
    return [float(x) for x in np.repeat(chances / sizes, sizes)]


def exponential_has_its_law(law: Law = library_law) -> bool:
    """Weights e^(−ε·max(#less, #greater)/2), from the definition, for small datasets."""
    points = grid(0, 4, step=1)
    for values in ([0.0], [1.0, 3.0], [2.0, 2.0, 4.0], [0.0, 1.0, 1.0, 4.0], [3.0] * 5):
        exact = exponential_law(values, range(5), 0.8)
        if not np.allclose(law(np.array(values), points, 0.8), exact, rtol=1e-12, atol=0):
            return False
    return True


# The mistakes.


def one_word_for_all(offset: NDArray[np.int64], coin: Coin, entropy: Entropy) -> NDArray[np.bool_]:
    """Every look of a row gets the same word."""

    class Repeated(Entropy):
        def words(self, count: int) -> NDArray[np.uint64]:
            rows = entropy.words(offset.shape[0])
            return np.repeat(rows, count // rows.size)

    return look(offset, coin, Repeated())


def stale_words(offset: NDArray[np.int64], coin: Coin, entropy: Entropy) -> NDArray[np.bool_]:
    """Every third look gets the word of the one before it."""

    class Stale(Entropy):
        def words(self, count: int) -> NDArray[np.uint64]:
            words = entropy.words(count)
            words[2::4] = words[1::4]
            return words

    return look(offset, coin, Stale())


def strictly_below(values: NDArray[np.float64], points: Grid, coin: Coin, entropy: Entropy) -> int:
    """#{φ < T} where #{φ ≤ T} is meant."""

    def count(index: int) -> int:
        return int(np.count_nonzero(~(values >= points.point(index))))

    return search_counts(count, points.size, values.size, coin, entropy)


def counts_above(values: NDArray[np.float64], points: Grid, coin: Coin, entropy: Entropy) -> int:
    """#{φ > T}: the wrong way round, as the indicator in the paper's `median2sq`."""

    def count(index: int) -> int:
        return int(np.count_nonzero(values > points.point(index)))

    return search_counts(count, points.size, values.size, coin, entropy)


def bisection(
    *, flipped: bool = False, shift: int = 0, top: int = 1, down: int = 0, up: int = 1
) -> SearchCounts:
    def searched(
        count_at: Callable[[int], int], size: int, twice_target: int, coin: Coin, entropy: Entropy
    ) -> int:
        low, high = 0, size - top
        while low < high:
            middle = (low + high) // 2
            yes = look(2 * count_at(middle) - twice_target + shift, coin, entropy)
            if yes is not flipped:
                high = middle - down
            else:
                low = middle + up
        return min(max(low, 0), size - 1)

    return searched


def least_of_both(values: NDArray[np.float64], points: Grid, epsilon: float) -> list[float]:
    """min(#less, #greater) for the score: no longer a median."""
    grid_points = [points.point(i) for i in range(points.size)]
    less = np.array([np.count_nonzero(values < v) for v in grid_points])
    greater = np.array([np.count_nonzero(values > v) for v in grid_points])
    weights = np.exp(-epsilon / 2 * np.minimum(less, greater))
    return [float(x) for x in weights / weights.sum()]


def points_forgotten(values: NDArray[np.float64], points: Grid, epsilon: float) -> list[float]:
    """Intervals weighted as if each had one point."""
    intervals = score_intervals(values, points)
    weights = np.exp(-epsilon / 2 * intervals.score)
    return spread(intervals, weights / weights.sum())


# By the check that must reject them.
_BROKEN: dict[Callable[..., bool], dict[str, object]] = {
    look_has_its_chance: {
        # The same side twice: far above the target a Yes is as rare as far below.
        "the upper side is not complemented": lambda offset, coin, entropy: flip(
            coin.error(np.abs(offset)), entropy
        ),
        "the verdict has the wrong sign": lambda offset, *rest: look(-offset, *rest),
        "the table is read by whole counts": lambda offset, *rest: look(offset // 2, *rest),
        "the table is read one half step too far": lambda offset, *rest: look(
            offset + np.sign(offset), *rest
        ),
    },
    flips_are_independent: {
        "one word serves many looks": one_word_for_all,
        "some words serve twice": stale_words,
    },
    search_has_its_chance: {
        "NaN counts as the highest point": lambda values, *rest: search(
            np.where(np.isnan(values), np.inf, values), *rest
        ),
        "values on the point are not counted": strictly_below,
        "odd m has the lattice of even m": lambda values, *rest: search(
            values, *rest, twice_target=values.size // 2 * 2
        ),
        "the count is the complement": counts_above,
    },
    search_is_accurate: {
        "the search goes the wrong way": bisection(flipped=True),
        "the search counts one too few": bisection(shift=-2),
        "the search counts one too many": bisection(shift=2),
        "the search skips a point going up": bisection(up=2),
        "the search skips a point going down": bisection(down=1),
        "the search never sees the last point": bisection(top=2),
    },
    exponential_has_its_law: {
        "the score is the least of both sides": least_of_both,
        "the weight has ε for ε/2": lambda values, points, epsilon: library_law(
            values, points, 2 * epsilon
        ),
        "an interval counts as one point": points_forgotten,
    },
}
MUTANTS = [
    Mutant(name, check, broken)
    for check, mistakes in _BROKEN.items()
    for name, broken in mistakes.items()
]
