from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid, grid
from holdfast.mechanisms import exponential
from holdfast.mechanisms.exponential import (
    GridStretches,
    RankCounts,
    exponential_median,
    flip_exponential,
)
from holdfast.mechanisms.looks import Counts
from holdfast.randomness import SeededEntropy
from holdfast.theory.coins import exponential_price
from tests.mechanisms.laws import (
    LARGEST_WORD,
    Constant,
    Exhausted,
    Script,
    alarm,
    neighbours,
    renyi,
)
from tests.reference.mechanisms import exponential_probabilities, score_intervals

ORDERS = (1.5, 2.0, 8.0, 40.0)
VALUES = st.one_of(
    st.sampled_from([-math.inf, -2.0, 0.0, 0.1, 0.15, 0.5, 0.95, 1.0, 3.0, math.inf, math.nan]),
    st.floats(-0.2, 1.2),
)
GRIDS = st.sampled_from(
    [
        grid(0, 1, step=0.1),
        grid(0, 1, step=0.25),
        grid([0.15, 0.5]),
        grid([0.3]),
        grid(0, 1, points=64),
        grid(-3, 3, scale="integer"),
    ]
)


def scores(values: object, points: Grid) -> list[int]:
    """max(#less, #greater) at every grid point, from the definition."""
    projected = points.ceiling(values).tolist()
    return [
        max(sum(x < g for x in projected), sum(x > g for x in projected))
        for g in range(points.size)
    ]


def law(values: object, points: Grid, epsilon: float) -> list[float]:
    """The probability of every grid point, by the code under test."""
    intervals = score_intervals(values, points)
    chances = exponential_probabilities(intervals, epsilon)
    sizes = intervals.last - intervals.first + 1
    return [float(x) for x in np.repeat(chances / sizes, sizes)]


# The law.


def check_scores(values: object, points: Grid) -> None:
    first, last, score = score_intervals(values, points)
    assert first[0] == 0
    assert last[-1] == points.size - 1
    assert np.array_equal(first[1:], last[:-1] + 1)
    assert np.all(score[1:] != score[:-1])
    assert first.size <= len(points.ceiling(values)) + 2
    assert np.repeat(score, last - first + 1).tolist() == scores(values, points)


def test_scores_and_probabilities_of_all_tiny_datasets() -> None:
    """Odd and even m, ties, NaN, values off the grid. With e^(−ε/2) = 2/3 all are fractions."""
    epsilon = 2 * math.log(1.5)
    values = [-1.0, 0.0, 0.3, 0.5, 1.0, 9.0, math.nan]
    for points in (grid(0, 1, step=0.25), grid([0.5]), grid([0.3, 0.5]), grid(0, 1, step=0.1)):
        for blocks in (1, 2, 3):
            for data in combinations_with_replacement(values, blocks):
                check_scores(data, points)
                weights = [Fraction(2, 3) ** score for score in scores(data, points)]
                total = sum(weights)
                exact = [float(weight / total) for weight in weights]
                assert law(data, points, epsilon) == pytest.approx(exact, rel=1e-12)


def test_probabilities_on_huge_grids_with_huge_scores() -> None:
    points = grid(0, 2**62 - 1, scale="integer")
    values = np.array([2**61, 2**61, 2**61 + 10])
    first, last, score = intervals = score_intervals(values, points)
    assert first.tolist() == [0, 2**61, 2**61 + 1, 2**61 + 11]
    assert last.tolist() == [2**61 - 1, 2**61, 2**61 + 10, 2**62 - 1]
    assert score.tolist() == [3, 1, 2, 3]
    chances = exponential_probabilities(intervals, 1000.0)
    assert chances.tolist() == pytest.approx([0, 1, 0, 0], abs=1e-200)
    chances = exponential_probabilities(intervals, 1e-9)
    assert chances[0] == pytest.approx(0.5)


# Its price (thm `EM-med`, bounded range): over all neighbours, and against the centre.


@cache
def tiny_law(data: tuple[int, ...], size: int, epsilon: float) -> dict[int, float]:
    return dict(enumerate(law(np.array(data), grid(0, size - 1, scale="integer"), epsilon)))


def centre_law(others: tuple[int, ...], size: int, epsilon: float) -> dict[int, float]:
    """Every count half a block more than without block i, on both sides."""
    weights = {
        g: math.exp(
            -epsilon / 2 * (max(sum(x < g for x in others), sum(x > g for x in others)) + 0.5)
        )
        for g in range(size)
    }
    return {g: weight / math.fsum(weights.values()) for g, weight in weights.items()}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_price_covers_all_neighbours_and_the_centre(epsilon: float) -> None:
    prices = {a: exponential_price(a, epsilon, shift=1) for a in ORDERS}
    centred = {a: exponential_price(a, epsilon) for a in ORDERS}
    assert prices[2.0] == pytest.approx(2 * epsilon**2 / 8)
    assert centred[2.0] == pytest.approx(2 * epsilon**2 / 32)
    for blocks, size in [(1, 8), (2, 6), (3, 4), (4, 4), (5, 3)]:
        for data in combinations_with_replacement(range(size), blocks):
            here = tiny_law(data, size, epsilon)
            for other in neighbours(data, size):
                there = tiny_law(tuple(sorted(other)), size, epsilon)
                for order in ORDERS:
                    assert renyi(order, here, there) <= prices[order] * (1 + 1e-9) + 1e-13
            for i in range(blocks):
                centre = centre_law(data[:i] + data[i + 1 :], size, epsilon)
                for order in ORDERS:
                    assert renyi(order, here, centre) <= centred[order] * (1 + 1e-9) + 1e-13
                    assert renyi(order, centre, here) <= centred[order] * (1 + 1e-9) + 1e-13


def test_a_doubled_epsilon_breaks_the_price() -> None:
    one, two = tiny_law((0, 0), 2, 2.0), tiny_law((0, 1), 2, 2.0)
    assert max(renyi(8.0, one, two), renyi(8.0, two, one)) > exponential_price(8.0, 1.0, shift=1)


# The draw: one trial has exactly the right law, whatever the cells.


def cells_of(values: list[float], points: Grid) -> tuple[GridStretches, Counts]:
    counts = Counts(np.array(values), points)
    return GridStretches(points.size, len(values), counts.at_most), counts


def check_trial(
    cells: GridStretches,
    values: list[float],
    points: Grid,
    epsilon: float,
    drawn: float | None = None,
) -> None:
    """U_j/W · 1/n_j · A(g) is e^(−ε·score/2) times a constant, to 60 digits, and A ≤ 1."""
    drawn = epsilon if drawn is None else drawn
    proposal = cells.proposal(drawn)
    total, wanted = sum(proposal.weights), scores(values, points)
    assert total <= 2**62
    assert all(type(weight) is int for weight in proposal.weights)
    assert min(proposal.weights) > 0
    assert proposal.cells[0][0] == 0
    assert proposal.cells[-1][1] == points.size - 1
    assert all(one[1] + 1 == two[0] for one, two in pairwise(proposal.cells))
    ratios = []
    with mpmath.workdps(80):
        half = mpmath.mpf(epsilon) / 2
        for number, (first, last, bound) in enumerate(proposal.cells):
            for g in range(first, last + 1):
                assert bound <= wanted[g]
                factor, exponent = proposal.acceptance(number, wanted[g], drawn)
                accept = _real(factor) * mpmath.exp(-_real(exponent))
                assert 0 < accept <= 1
                chance = mpmath.mpf(proposal.weights[number]) / total / (last - first + 1) * accept
                ratios.append(chance * mpmath.exp(half * wanted[g]))
        assert all(abs(ratio / ratios[0] - 1) < mpmath.mpf(10) ** -60 for ratio in ratios)


def _real(fraction: Fraction) -> mpmath.mpf:
    return mpmath.mpf(fraction.numerator) / fraction.denominator


EPSILONS = st.one_of(st.floats(1e-6, 40), st.sampled_from([1e-12, 1.0, 300.0, 1e6]))


@given(st.lists(VALUES, min_size=1, max_size=30), GRIDS, EPSILONS, st.data())
def test_every_trial_has_the_exact_law(
    values: list[float], points: Grid, epsilon: float, data: st.DataObject
) -> None:
    cells, _ = cells_of(values, points)
    check_trial(cells, values, points, epsilon)
    indices = st.integers(0, points.size - 1)
    for index in data.draw(st.lists(indices, max_size=6)):  # as rejected points would cut it
        assert cells.score(index) == scores(values, points)[index]
        check_trial(cells, values, points, epsilon)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_check_of_a_trial_catches_a_law_ten_per_cent_off(factor: float) -> None:
    values, points = [0.1, 0.2, 0.2, 0.7, 0.9], grid(0, 1, step=0.1)
    cells, _ = cells_of(values, points)
    with pytest.raises(AssertionError):
        check_trial(cells, values, points, 1.0, drawn=factor)


@given(st.lists(VALUES, min_size=1, max_size=30), GRIDS, EPSILONS)
def test_the_cells_of_the_fast_path_have_the_exact_law(
    values: list[float], points: Grid, epsilon: float
) -> None:
    found = RankCounts(np.array(values), points, reach=12 / epsilon)
    cells = GridStretches(points.size, found.blocks, found.at_most)
    exponential._cut(cells, found, 2 / epsilon)
    check_trial(cells, values, points, epsilon)


@given(st.lists(VALUES, min_size=1, max_size=30), GRIDS, st.floats(1e-3, 40), st.data())
def test_scripted_draws_go_where_the_table_says(
    values: list[float], points: Grid, epsilon: float, data: st.DataObject
) -> None:
    cells, _ = cells_of(values, points)
    for index in data.draw(st.lists(st.integers(0, points.size - 1), max_size=3)):
        cells.score(index)
    proposal = cells.proposal(epsilon)
    number = data.draw(st.integers(0, len(proposal.cells) - 1))
    place = data.draw(st.integers(0, proposal.weights[number] - 1))
    first, last, _ = proposal.cells[number]
    offset = data.draw(st.integers(0, last - first))
    word = sum(proposal.weights[:number]) + place  # uniform_index gives a small word back
    index = first + offset
    assert cells.draw(epsilon, Script([word, offset] + [0] * 30)) == index
    # Rejected, the point is cut out, and the next trial draws from the new table.
    cells, _ = cells_of(values, points)
    factor, exponent = cells.proposal(epsilon).acceptance(0, scores(values, points)[index], epsilon)
    if factor * Fraction(math.exp(-exponent)) < 1 - Fraction(1, 10**9):
        found = cells.draw(epsilon, Script([0, index, LARGEST_WORD] + [0] * 30))
        assert found == 0
        cut = {(a, b) for a, b, _ in cells.proposal(epsilon).cells}
        assert {(index, index), (0, 0)} <= cut


# Coins of probability f·e^(−x).


@example(Fraction(1, 39912414986764278411), Fraction(700), 0, 0, 0)  # no float holds the product
@given(
    st.fractions(0, 1).filter(lambda f: f > 0),
    st.one_of(st.just(Fraction(0)), st.fractions(0, 60), st.fractions(600, 3000)),
    st.sampled_from([-(2**40), -2, -1, 0, 1, 2, 2**40]),
    st.integers(0, LARGEST_WORD),
    st.integers(0, LARGEST_WORD),
)
def test_the_exponential_coin_compares_real_numbers(
    factor: Fraction, exponent: Fraction, near: int, second: int, third: int
) -> None:
    with mpmath.workdps(2000):
        chance = _real(factor) * mpmath.exp(-_real(exponent))
        word = min(max(int(mpmath.floor(chance * 2**64)) + near, 0), LARGEST_WORD)
        uniform = _real(Fraction((word << 128) + (second << 64) + third, 2**192))
        expected = bool(uniform < chance)
    words = [word, second, third] + [0] * 90  # the smallest chance has about 70 words of zeros
    assert flip_exponential(factor, exponent, Script(words)) is expected


def test_the_exponential_coin_at_its_ends() -> None:
    sure = Fraction(1), Fraction(0)
    assert flip_exponential(*sure, Constant(LARGEST_WORD))
    assert flip_exponential(*sure, Constant(0))
    assert not flip_exponential(Fraction(1), Fraction(10**6), Script([1]))
    # A chance of e^(−10^4) begins with 225 words of zeros; thirty of them leave it open.
    with pytest.raises(Exhausted):
        flip_exponential(Fraction(1), Fraction(10**4), Script([0] * 30))


# Counts near the median, sorted or not.


@pytest.fixture
def small_sample() -> Iterator[None]:
    """A sample of eight, so that small data take the path of large data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exponential, "_SAMPLE", 8)
        patch.setattr(exponential, "_DEVIATIONS", 0.1)
        patch.setattr(exponential, "_LONGEST", 0.9)
        yield


@pytest.mark.usefixtures("small_sample")
def test_stretches_are_used_and_missed() -> None:
    points = grid(0, 1, points=64)
    some = RankCounts(np.linspace(0, 1, 201), points, reach=20)
    assert some.free(100)
    assert not some.free(0)
    assert not RankCounts(np.linspace(0, 1, 201), points, reach=1000).free(100)
    assert RankCounts(np.zeros(201), points, reach=20).tied


COLUMNS = st.one_of(
    st.lists(VALUES, min_size=1, max_size=80).map(np.array),
    st.lists(st.integers(-5, 5), min_size=1, max_size=80).map(np.array),
    st.lists(VALUES, min_size=1, max_size=80).map(lambda x: np.array(x, np.float32)),
    st.lists(st.one_of(VALUES, st.none()), min_size=1, max_size=80),
)


def check_ranks(values: object, points: Grid, reach: float) -> None:
    plain, quick = Counts(values, points), RankCounts(values, points, reach)
    for index in range(points.size):
        assert quick.at_most(index) == plain.at_most(index)
    every = range(plain.blocks)
    near = quick.near(every)
    exact = np.sort(points.ceiling(values))
    assert all(near[rank] == exact[rank] for rank in every if quick.free(rank))
    for index in range(points.size):
        assert all(0 <= found < points.size for found in quick.beside(index))


RANKED = (COLUMNS, GRIDS, st.one_of(st.floats(0, 50), st.just(math.inf)))


@given(*RANKED)
def test_ranks_count_as_counts_do(values: object, points: Grid, reach: float) -> None:
    check_ranks(values, points, reach)


@pytest.mark.hypothesis
@pytest.mark.usefixtures("small_sample")
def test_ranks_count_as_counts_do_with_a_small_sample() -> None:
    given(*RANKED)(check_ranks)()


# Frequencies: false alarm at most 1e-6 (see `alarm`), and power against ε 10 % off.

SKEWED = np.concatenate([np.linspace(0.05, 0.62, 120), np.full(30, 0.4), [np.nan] * 7, [5.0] * 44])


def frequencies(
    values: NDArray[np.float64], points: Grid, epsilon: float, trials: int
) -> list[int]:
    entropy = SeededEntropy(11)
    found = [exponential_median(values, points, epsilon, entropy) for _ in range(trials)]
    return [found.count(index) for index in range(points.size)]


POINTS = grid(0, 1, points=12)
EPSILON = 0.08


def test_frequencies() -> None:
    seen = frequencies(SKEWED, POINTS, EPSILON, 3000)
    assert not alarm(seen, 3000, law(SKEWED, POINTS, EPSILON))
    assert alarm(seen, 3000, law(SKEWED, POINTS, 1.2 * EPSILON))
    assert alarm(seen, 3000, law(SKEWED, POINTS, EPSILON / 1.2))


@pytest.mark.parametrize("epsilon", [0.02, 3e-4])
def test_frequencies_of_large_data(epsilon: float) -> None:
    """70,000 values, with a stretch and without one; the grid's points in twelve groups."""
    values = np.random.default_rng(5).normal(0.5, 0.1, 70_000)
    points = grid(0, 1, points=10_001)
    exact = np.cumsum(law(values, points, epsilon))
    edges = np.searchsorted(exact, np.arange(1, 12) / 12)
    groups = np.diff(np.concatenate(([0.0], exact[edges], [1.0])))
    entropy = SeededEntropy(3)
    found = [exponential_median(values, points, epsilon, entropy) for _ in range(1000)]
    seen = np.bincount(np.searchsorted(edges, found), minlength=12)
    assert not alarm(seen.tolist(), 1000, groups.tolist())


# And the rest.


@given(st.lists(VALUES, min_size=1, max_size=41), GRIDS, st.integers(0, 99))
def test_a_huge_epsilon_gives_a_median(values: list[float], points: Grid, seed: int) -> None:
    answer = exponential_median(np.array(values), points, 1e6, SeededEntropy(seed))
    found = scores(values, points)
    assert found[answer] == min(found)


def test_the_largest_grid() -> None:
    points = grid(0, 2**62 - 1, scale="integer")
    values = 2**61 + np.arange(1001) * 1000
    for seed in range(20):
        answer = exponential_median(values, points, 1.0, SeededEntropy(seed))
        assert abs(answer - (2**61 + 500_000)) < 100_000


def test_wrong_arguments() -> None:
    points, entropy = grid(0, 1, step=0.1), SeededEntropy(1)
    for epsilon in (0, -1.0, math.nan, math.inf, "1", 1e7):
        with pytest.raises(InvalidInput, match="epsilon"):
            exponential_median([0.5], points, epsilon, entropy)  # type: ignore[arg-type]
    shapes: list[object] = [[], 0.5, np.zeros((2, 2))]
    for values in shapes:
        with pytest.raises(InvalidInput, match="one value per block"):
            exponential_median(values, points, 1.0, entropy)
        with pytest.raises(InvalidInput, match="one value per block"):
            score_intervals(values, points)
