from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid, grid
from holdfast.mechanisms.exponential import exponential_median
from holdfast.mechanisms.looks import Counts, search, search_counts, search_many
from holdfast.randomness import SeededEntropy
from holdfast.theory.coins import Coin, logistic_coin, probit_coin, steepest_coin
from tests.mechanisms.laws import (
    LARGEST_WORD,
    Constant,
    Script,
    SearchCounts,
    answers,
    neighbours,
    renyi,
    search_law,
)
from tests.reference.mechanisms import (
    gaussian_search,
    score_intervals,
    weighted_count,
)

COINS = {
    "steepest": steepest_coin(order=8, price=0.05, floor=1e-3),
    "logistic": logistic_coin(slope=0.7, floor=1e-4),
    "probit": probit_coin(sigma=1.5, floor=1e-5),
}
ORDERS = (1.5, 8.0, 40.0)
CASES = [(1, 8), (2, 7), (3, 5), (4, 4), (5, 3), (6, 3)]  # blocks, points
coins = pytest.mark.parametrize("name", COINS)


def counts_of(data: tuple[int, ...], size: int) -> tuple[int, ...]:
    return tuple(sum(x <= index for x in data) for index in range(size - 1))


def looks(size: int) -> int:
    return math.ceil(math.log2(size))


neighbour_price = cache(lambda name, order: COINS[name].neighbour_price(order))
centred_price = cache(lambda name, order: COINS[name].price(order))


@cache
def transcript_law(name: str, counts: tuple[int, ...], twice_target: int) -> dict[object, float]:
    return {t: float(p) for t, (_, p) in search_law(counts, twice_target, COINS[name]).items()}


@cache
def answer_law(name: str, counts: tuple[int, ...], twice_target: int) -> dict[object, float]:
    law = answers(search_law(counts, twice_target, COINS[name]))
    return {answer: float(p) for answer, p in law.items()}


@cache
def divergence(
    name: str, order: float, one: tuple[tuple[int, ...], int], two: tuple[tuple[int, ...], int]
) -> float:
    """The larger of the transcript's and the answer's: it must be the transcript's."""
    transcripts = renyi(order, transcript_law(name, *one), transcript_law(name, *two))
    assert renyi(order, answer_law(name, *one), answer_law(name, *two)) <= transcripts + 1e-12
    return transcripts


@coins
def test_a_search_costs_at_most_its_looks(name: str) -> None:
    """Theory §3: between all neighbours, and against the centre of every block."""
    for blocks, size in CASES:
        for data in combinations_with_replacement(range(size), blocks):
            here = (counts_of(data, size), blocks)
            for other in neighbours(data, size):
                there = (counts_of(other, size), blocks)
                for order in ORDERS:
                    price = looks(size) * neighbour_price(name, order)
                    assert divergence(name, order, here, there) <= price * (1 + 1e-9)
            for i in range(blocks):
                # Without block i, and half a count more: what its law is compared with.
                centre = (counts_of(data[:i] + data[i + 1 :], size), blocks - 1)
                for order in ORDERS:
                    price = looks(size) * centred_price(name, order)
                    assert divergence(name, order, here, centre) <= price * (1 + 1e-9)
                    assert divergence(name, order, centre, here) <= price * (1 + 1e-9)
    # The bound is not idle: with one look some pair comes close to it.
    reached = max(divergence(name, 8.0, ((count,), 60), ((count + 1,), 60)) for count in range(60))
    assert reached >= 0.9 * neighbour_price(name, 8.0)


def accurate(name: str, mechanism: SearchCounts) -> bool:
    """Whether a quantile is missed by τ' with probability ≤ looks × h(τ'), for every dataset."""
    coin = COINS[name]
    for blocks, size in CASES:
        for multiset in combinations_with_replacement(range(size), blocks):
            counts = counts_of(multiset, size)
            for twice_target in (blocks, 1, 2 * blocks - 2):
                law = answers(search_law(counts, twice_target, coin, mechanism))
                if not _accurate(law, counts, blocks, twice_target, coin):
                    return False
    return True


def _accurate(
    law: dict[int, Fraction], counts: tuple[int, ...], blocks: int, twice_target: int, coin: Coin
) -> bool:
    full = [0, *counts, blocks]  # full[v] = #{φ < T[v]}, full[v + 1] = #{φ ≤ T[v]}
    size = len(counts) + 1
    for twice_tau in range(1, 2 * blocks + 1):
        missed = sum(
            p
            for v, p in law.items()
            if (v < size - 1 and 2 * full[v + 1] <= twice_target - twice_tau)
            or (v > 0 and 2 * full[v] >= twice_target + twice_tau)
        )
        error = Fraction(coin.halfsteps[min(twice_tau, coin.halfsteps.size - 1)])
        if missed > looks(size) * error:
            return False
    return True


@coins
def test_a_quantile_is_missed_as_rarely_as_promised(name: str) -> None:
    assert accurate(name, search_counts)


@settings(max_examples=40)
@given(size=st.integers(1, 2**62), words=st.lists(st.integers(0, LARGEST_WORD), min_size=62))
def test_no_path_takes_more_looks_than_the_grid_says(size: int, words: list[int]) -> None:
    asked: list[int] = []

    def count_at(index: int) -> int:
        asked.append(index)
        return 5

    answer = search_counts(count_at, size, 10, COINS["logistic"], Script(words))
    most = (size - 1).bit_length()
    assert most - 1 <= len(asked) <= most
    assert 0 <= answer < size
    assert all(0 <= index < size - 1 for index in asked)
    assert len(set(asked)) == len(asked)


# Counts are exact for every type of values and every grid.

GRIDS = st.sampled_from(
    [
        grid(0, 1, step=0.1),
        grid(-3, 3, step=0.25),
        grid(0.01, 100, points=9, scale="log"),
        grid(-5, 5, scale="integer"),
        grid(2**60, 2**60 + 8, scale="integer"),
        grid([-(2**62), 0, 2**53 + 1, 2**62]),
        grid([-1e300, -0.5, 0.1, 1 / 3, 1e300]),
        grid([7]),
    ]
)
EDGES = [0.1, 0.3, 1 / 3, 1e300, -1e300, 2.0**53, 2.0**60, math.inf, -math.inf, math.nan, -0.0]
FLOATS = st.one_of(st.floats(-6, 6), st.sampled_from(EDGES), st.floats(width=32))
INTEGERS = st.one_of(st.integers(-6, 6), st.integers(2**60 - 3, 2**60 + 9), st.just(2**53 + 1))


@st.composite
def columns(draw: st.DrawFn) -> object:
    """One value per block, of one of the types that estimators return."""
    kind = draw(st.sampled_from(["f8", "f4", "f2", "i8", "i1", "u8", "bool", "list", "O", "mask"]))
    if kind in {"f8", "f4", "f2"}:
        with np.errstate(over="ignore"):
            return np.array(draw(st.lists(FLOATS, min_size=1, max_size=12)), kind)
    if kind in {"i8", "i1", "u8"}:
        whole = INTEGERS if kind == "i8" else st.integers(-6 if kind == "i1" else 0, 100)
        whole = st.one_of(whole, st.just(2**64 - 1)) if kind == "u8" else whole
        return np.array(draw(st.lists(whole, min_size=1, max_size=12)), kind)
    if kind == "bool":
        return np.array(draw(st.lists(st.booleans(), min_size=1, max_size=12)))
    if kind == "mask":
        values = draw(st.lists(FLOATS, min_size=1, max_size=12))
        hidden = draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
        return np.ma.MaskedArray(values, hidden)
    mixed = st.one_of(FLOATS, INTEGERS, st.none(), st.just("text"), st.fractions(-6, 6))
    items = draw(st.lists(mixed, min_size=1, max_size=12))
    return items if kind == "list" else np.array(items, object)


@settings(max_examples=150)
@given(GRIDS, columns(), st.integers(0, LARGEST_WORD), st.data())
def test_a_search_of_values_is_one_of_their_projections(
    points: Grid, values: object, word: int, data: st.DataObject
) -> None:
    projected, counts = points.ceiling(values), Counts(values, points)
    for index in range(points.size):
        assert counts.at_most(index) == np.count_nonzero(projected <= index)
    target = data.draw(st.one_of(st.none(), st.integers(0, 2 * projected.size)))
    coin = COINS["probit"]
    twice = projected.size if target is None else target
    expected = search_counts(counts.at_most, points.size, twice, coin, Constant(word))
    assert search(values, points, coin, Constant(word), twice_target=target) == expected


@settings(max_examples=150)
@given(GRIDS, st.data(), st.integers(0, LARGEST_WORD))
def test_many_searches_are_single_searches(points: Grid, data: st.DataObject, word: int) -> None:
    questions, blocks = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    number = data.draw(st.sampled_from([FLOATS, INTEGERS]))
    rows = [data.draw(st.lists(number, min_size=blocks, max_size=blocks)) for _ in range(questions)]
    targets = [data.draw(st.integers(0, 2 * blocks)) for _ in rows]
    table, coin = np.array(rows), COINS["logistic"]
    together = search_many(table, points, coin, Constant(word), twice_target=np.array(targets))
    assert together.tolist() == [
        search(row, points, coin, Constant(word), twice_target=target)
        for row, target in zip(table, targets, strict=True)
    ]
    default = search_many(table, points, coin, Constant(word))
    assert default.tolist() == [search(row, points, coin, Constant(word)) for row in table]


@given(values=st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=30), seed=st.integers(0, 99))
def test_one_question_at_a_time_or_in_a_table_draws_the_same(
    values: list[float], seed: int
) -> None:
    points, coin = grid(0, 1, step=0.02), COINS["probit"]
    table = np.array([values])
    one = search(table[0], points, coin, SeededEntropy(seed))
    assert search_many(table, points, coin, SeededEntropy(seed)).tolist() == [one]


def test_rows_of_a_table_have_coins_of_their_own() -> None:
    """Equal rows, a fair coin: all 32 answers appear, each 1/32 (4 sigma; a repeatable seed)."""
    coin = Coin("fair", np.array([0.5]))
    found = search_many(np.zeros((32_000, 2)), grid(1, 32, step=1), coin, SeededEntropy(3))
    frequencies = np.bincount(found, minlength=32)
    assert np.all(np.abs(frequencies - 1000) < 4 * math.sqrt(1000))


def test_nan_counts_as_the_lowest_point() -> None:
    points, surely = grid(0, 1, step=0.25), Constant(LARGEST_WORD)
    assert search(np.array([math.nan, math.nan, 1.0]), points, COINS["probit"], surely) == 0
    assert search(np.array([math.nan, 1.0, 1.0]), points, COINS["probit"], surely) == 4


class Hostile(float):
    """A number that tells, when it is read, what it has seen."""

    def __float__(self) -> float:
        raise RuntimeError("SECRET-4711")

    def __array__(self, *_: object) -> NDArray[np.float64]:
        raise RuntimeError("SECRET-4711")


PAIR = np.full(2, 0.9)
FAILURES: list[object] = [PAIR, [0.9], (), None, "0.9", Hostile(0.9), np.ma.masked, object()]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_any_number_of_failures_is_answered_as_nan_is(failure: object) -> None:
    """A refusal, or an exception passed on, would tell that all blocks fail, or that one does."""
    points, coin = grid(0, 1, step=0.1), COINS["probit"]
    for failures in range(6):
        values = [failure] * failures + [0.5] * (5 - failures)
        column = np.empty(5, dtype=object)
        for i, value in enumerate(values):
            column[i] = value
        same = [math.nan] * failures + [0.5] * (5 - failures)
        for given_as in (values, tuple(values), column):
            assert score_intervals(given_as, points)[2].tolist() == (
                score_intervals(same, points)[2].tolist()
            )
            for seed in range(2):
                assert search(given_as, points, coin, SeededEntropy(seed)) == search(
                    same, points, coin, SeededEntropy(seed)
                )
                assert exponential_median(given_as, points, 1.0, SeededEntropy(seed)) == (
                    exponential_median(same, points, 1.0, SeededEntropy(seed))
                )
            assert weighted_count(given_as) == weighted_count(same)
        many = search_many([values, same], points, coin, SeededEntropy(1))
        assert many.tolist() == search_many([same] * 2, points, coin, SeededEntropy(1)).tolist()


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, object])
def test_masked_blocks_are_failures(kind: type) -> None:
    points = grid(0, 1, step=0.1)
    values: Any = np.ma.MaskedArray(np.ones(5, kind), mask=[True, True, False, True, False])
    assert [Counts(values, points).at_most(i) for i in (0, 9, 10)] == [3, 3, 5]
    assert weighted_count(values) == 2
    assert score_intervals(values, points).score.tolist() == [2, 3]
    table: Any = values[np.newaxis].repeat(2, axis=0)
    coin = COINS["probit"]
    nan = np.array([[math.nan, math.nan, 1, math.nan, 1]] * 2)
    found = search_many(table, points, coin, SeededEntropy(1))
    assert found.tolist() == search_many(nan, points, coin, SeededEntropy(1)).tolist()


def test_noisy_counts_are_coins() -> None:
    values, points = np.linspace(0.1, 0.6, 301), grid(0, 1, step=0.01)
    values.flags.writeable = False
    for seed in range(20):
        probit = search(values, points, probit_coin(4.0, 1e-30), SeededEntropy(seed))
        assert gaussian_search(values, points, 4.0, SeededEntropy(seed)) == probit


def test_wrong_arguments() -> None:
    points, coin, entropy = grid(0, 1, step=0.1), COINS["probit"], SeededEntropy(1)
    shapes: list[object] = [[], (), 0.5, np.zeros((2, 2)), np.full((2, 2), None)]
    for values in shapes:
        with pytest.raises(InvalidInput, match="one value per block"):
            search(values, points, coin, entropy)
    for target in (-1, 7, 0.5, True):
        with pytest.raises(InvalidInput, match="twice_target"):
            search([0.1, 0.2, 0.3], points, coin, entropy, twice_target=target)  # type: ignore[arg-type]
    tables: list[object] = [[], [0.1], [[0.1], [0.1, 0.2]], [[], []], np.zeros((2, 0))]
    for table in (*tables, np.zeros((1, 1, 1))):
        with pytest.raises(InvalidInput, match="questions × blocks"):
            search_many(table, points, coin, entropy)
    for targets in (np.array([1]), np.array([1, 7]), np.array([0.5, 1.0])):
        with pytest.raises(InvalidInput, match="twice_target"):
            search_many(np.zeros((2, 3)), points, coin, entropy, twice_target=targets)
    with pytest.raises(InvalidInput, match="size"):
        search_counts(lambda _: 0, 0, 0, coin, entropy)


# Weights.

TINY = [0.0, 2.0**-18, 2.0**-17, 2.0**-16, 0.25, 0.3, 0.5, 1 - 2.0**-17, 1 - 2.0**-18, 1.0]
ODD = [math.nan, -1.0, 2.0, math.inf, -math.inf, 5e-324]


def exact_weight(weight: float) -> Fraction:
    return Fraction(0) if math.isnan(weight) else Fraction(min(max(weight, 0.0), 1.0))


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_one_weight_moves_the_count_by_at_most_one(blocks: int) -> None:
    weights = [*TINY, *ODD]
    counts = {w: weighted_count(w) for w in product(weights, repeat=blocks)}
    for some, count in counts.items():
        exact = sum((exact_weight(w) for w in some), Fraction(0))
        rounding = Fraction(blocks, 2**17)
        assert -1 - rounding < count - exact <= rounding
        for i in range(blocks):
            for new in weights:
                assert abs(count - counts[(*some[:i], new, *some[i + 1 :])]) <= 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.randoms())
def test_the_order_of_weights_does_not_matter(weights: list[float], random: object) -> None:
    shuffled = list(weights)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert weighted_count(shuffled) == weighted_count(weights)


def test_indicators_are_counted_exactly() -> None:
    assert weighted_count(np.array([True, False, True])) == 2
    assert weighted_count(np.ones(10**6)) == 10**6
    assert weighted_count([1, 0, 1, None, "text"]) == 2
    with pytest.raises(InvalidInput, match="one weight per block"):
        weighted_count(np.ones((2, 2)))
