"""Coins: their prices by brute force, and that the steepest one is the steepest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import erfc, mp, mpf, sqrt
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.theory.coins import Coin, laplace_coin, logistic_coin, probit_coin, steepest_coin
from holdfast.theory.divergence import divergence
from tests.theory import checker

ORDERS = st.floats(math.log(0.01), math.log(300)).map(lambda x: 1 + math.exp(x))
PRICES = st.floats(math.log(1e-4), math.log(0.2)).map(math.exp)
FLOORS = st.floats(math.log(1e-12), math.log(0.1)).map(math.exp)
Price = Callable[[Coin, float], float]
Steepest = Callable[[float, float, float], Coin]


@st.composite
def tables(draw: st.DrawFn) -> Coin:
    """Any coin at all: falling steps of any size, some of them flat."""
    steps = draw(st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 3)), max_size=8))
    return Coin("any", 0.5 * np.exp(-np.cumsum([0.0, *steps])))


def yes(coin: Coin, twice_offset: int) -> mpf:
    """P[Yes] to 50 digits, from the definition."""
    error = mpf(coin.halfsteps[min(abs(twice_offset), len(coin.halfsteps) - 1)])
    return error if twice_offset <= 0 else 1 - error


def brute_price(coin: Coin, order: float, halves: int) -> float:
    """The largest divergence, both ways, of coins so many half counts apart, across the target."""
    reach = len(coin.halfsteps) + 2
    with mp.workdps(50):
        pairs = [(yes(coin, x), yes(coin, x + halves)) for x in range(-reach, reach + 1 - halves)]
        either = [checker.divergence(order, *pair) for pair in pairs]
        either += [checker.divergence(order, q, p) for p, q in pairs]
        return float(max(either))


def check_price(price: Price, coin: Coin, order: float, halves: int) -> bool:
    """Whether a price is what brute force finds, rounded up."""
    found, exact = price(coin, order), brute_price(coin, order, halves)
    return exact <= found <= exact * (1 + 1e-8) + 1e-27


@settings(max_examples=60)
@given(tables(), ORDERS)
def test_prices_are_those_of_brute_force(coin: Coin, order: float) -> None:
    assert check_price(Coin.price, coin, order, halves=1)
    assert check_price(Coin.neighbour_price, coin, order, halves=2)


@given(tables(), ORDERS)
def test_the_way_between_neighbours_leads_over_the_centre(coin: Coin, order: float) -> None:
    """A whole step costs at least a half step, and a centred look never more than a whole one."""
    assert coin.price(order) <= coin.neighbour_price(order) * (1 + 1e-11)


@pytest.mark.parametrize("order", [2.0, 10.0, 40.0])
def test_a_small_half_step_costs_a_quarter_of_a_whole_one(order: float) -> None:
    for coin in (
        steepest_coin(order, 1e-5, 0.1),
        probit_coin(100.0, 0.1),
        logistic_coin(0.01, 0.1),
    ):
        assert coin.price(order) / coin.neighbour_price(order) == pytest.approx(0.25, rel=0.05)


# The table and its two lattices.


def test_what_a_coin_says() -> None:
    coin = Coin("hand", np.array([0.5, 0.25, 0.125]))
    assert [coin.yes(x) for x in range(-4, 5)] == [
        *(0.125, 0.125, 0.125, 0.25),
        *(0.5, 0.75, 0.875, 0.875, 0.875),
    ]
    assert coin.error(np.array([0, 1, 2, 3, 10**9])).tolist() == [0.5, 0.25, 0.125, 0.125, 0.125]
    assert (coin.floor, coin.tau) == (0.125, 1.0)
    assert not coin.halfsteps.flags.writeable


@given(tables(), st.integers(-20, -1))
def test_both_sides_are_alike(coin: Coin, twice_offset: int) -> None:
    assert coin.yes(-twice_offset) == 1 - coin.yes(twice_offset)
    assert coin.yes(twice_offset) == coin.error(np.array([-twice_offset]))[0]


def test_a_table_is_copied() -> None:
    table = np.array([0.5, 0.1])
    coin = Coin("hand", table)
    table[1] = 0.4
    assert coin.floor == 0.1


@pytest.mark.parametrize(
    "table",
    [[], [0.4], [0.5, 0.6], [0.5, 0.1, 0.2], [0.5, 0.0], [0.5, math.nan], [[0.5]], [0.5, -0.1]],
)
def test_tables_that_are_no_coins(table: list[float]) -> None:
    with pytest.raises(InvalidInput, match="halfsteps"):
        Coin("wrong", np.array(table))


@pytest.mark.parametrize("blocks", [7, 8])
def test_each_lattice_uses_its_own_half_of_the_table(blocks: int) -> None:
    """m odd: counts are odd half steps from m/2, the centres even ones; m even: the reverse."""
    offsets = {2 * count - blocks for count in range(blocks + 1)}
    centres = {2 * count + 1 - blocks for count in range(blocks)}
    assert {x % 2 for x in offsets} == {blocks % 2}
    assert {x % 2 for x in centres} == {1 - blocks % 2}
    coin = steepest_coin(8.0, 0.01, 1e-4)
    for count in range(blocks):
        # Both coins that a block can choose between are one half step from the centre.
        centre = coin.yes(2 * count + 1 - blocks)
        for chosen in (coin.yes(2 * count - blocks), coin.yes(2 * count + 2 - blocks)):
            for p, q in ((chosen, centre), (centre, chosen)):
                assert checker.divergence(8.0, p, q) <= 0.01 * (1 + 1e-9)


# The steepest coin.


def check_steepest(build: Steepest, order: float, price: float, floor: float) -> bool:
    """Whether it costs what was asked, ends at its floor, and no entry could be 0.1 % lower."""
    coin = build(order, price, floor)
    table = coin.halfsteps.tolist()
    if coin.price(order) > price * (1 + 1e-9) or table[-1] != floor or table[0] != 0.5:
        return False
    for here, there in itertools.pairwise(table):
        lower = there * 0.999
        if there > floor and checker.divergence(order, here, lower) <= price:
            return False
    # The flat part begins no later than the first value below the floor.
    return len(table) < 2 or table[-2] > floor


@settings(max_examples=40)
@given(ORDERS, PRICES, FLOORS)
def test_the_steepest_coin_is_as_steep_as_its_price_allows(
    order: float, price: float, floor: float
) -> None:
    assert check_steepest(steepest_coin, order, price, floor)


@settings(max_examples=15)
@given(ORDERS, PRICES.filter(lambda price: price > 1e-3), FLOORS)
def test_the_steepest_coin_is_the_one_of_the_slow_checker(
    order: float, price: float, floor: float
) -> None:
    fast = steepest_coin(order, price, floor).halfsteps
    slow = checker.steepest.__wrapped__(order, price, floor)
    assert len(fast) == len(slow)
    assert max(abs(float(mpf(x) / y) - 1) for x, y in zip(fast, slow, strict=True)) < 1e-10


def test_the_price_holds_for_large_steps_too() -> None:
    for order, price in itertools.product((1.01, 1.5, 3.0, 30.0, 1000.0), (1e-6, 0.01, 1.0, 5.0)):
        price = min(price, 299 / (order - 1))
        floor = 1e-3 if price < 1e-5 else 1e-100
        coin = steepest_coin(order, price, floor)
        assert coin.price(order) <= price * (1 + 1e-9)
        assert coin.floor == floor


@settings(max_examples=150)
@given(
    ORDERS,
    st.floats(math.log(1e-3), math.log(0.2)).map(math.exp),
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
)
def test_no_coin_of_that_price_is_lower_anywhere(
    order: float, price: float, eagerness: list[float]
) -> None:
    """Any admissible coin: each half step goes some part of the way that its price allows."""
    steepest = steepest_coin(order, price, 1e-60).halfsteps
    value, table = 0.5, [0.5]
    for share in eagerness:
        low, high = 0.0, value  # the least next value, by bisection
        for _ in range(60):
            middle = (low + high) / 2
            affordable = middle > 0 and divergence(order, value, middle) <= price
            low, high = (low, middle) if affordable else (middle, high)
        value = share * high + (1 - share) * value
        table.append(value)
    other = Coin("other", np.array(table))
    assert other.price(order) <= price * (1 + 1e-9)
    distance = np.arange(len(table))
    steep = steepest[np.minimum(distance, steepest.size - 1)]
    assert np.all(steep <= np.array(table) * (1 + 1e-9))


@settings(max_examples=60)
@given(ORDERS, PRICES, st.floats(1.0, 4.0), FLOORS)
def test_a_higher_price_buys_a_steeper_coin(
    order: float, price: float, more: float, floor: float
) -> None:
    cheap, dear = steepest_coin(order, price, floor), steepest_coin(order, price * more, floor)
    assert dear.tau <= cheap.tau
    distance = np.arange(cheap.halfsteps.size)
    assert np.all(dear.error(distance) <= cheap.error(distance) * (1 + 1e-10))


def test_the_length_is_near_the_fisher_bound() -> None:
    """theory.md §10: from ½ to 0 is π/2 in the Fisher metric, a half step at most √(2·price/a)."""
    order, price = 10.0, 1e-6
    steps = 2 * steepest_coin(order, price, 1e-9).tau
    bound = math.pi / 2 / math.sqrt(2 * price / order)
    assert 0.99 * bound < steps < 1.02 * bound


def test_a_step_may_reach_below_every_float() -> None:
    """An order near 1 allows next values below 1e-300: the table just ends at its floor."""
    coin = steepest_coin(1.011, 0.0025, 1e-60)
    assert coin.floor == 1e-60
    assert coin.price(1.011) <= 0.0025 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("order", "price", "floor"),
    [(1.0, 0.1, 0.1), (2.0, 0.0, 0.1), (2.0, -1.0, 0.1), (2.0, 0.1, 0.5), (2.0, 0.1, 0.0)],
)
def test_impossible_coins_are_refused(order: float, price: float, floor: float) -> None:
    with pytest.raises(InvalidInput):
        steepest_coin(order, price, floor)


def test_a_coin_too_flat_for_memory_is_refused() -> None:
    with pytest.raises(InvalidInput, match="half steps"):
        probit_coin(1e9, 1e-9)
    with pytest.raises(InvalidInput, match="half steps"):
        logistic_coin(1e-9, 1e-9)


# Coins from noise: the tables are the distribution functions.


def normal(x: mpf, sigma: float) -> mpf:
    return erfc(x / sigma / sqrt(mpf(2))) / 2


def logistic(x: mpf, slope: float) -> mpf:
    return 1 / (1 + mp.exp(slope * x))


def laplace(x: mpf, scale: float) -> mpf:
    return mp.exp(-x / mpf(scale)) / 2


@pytest.mark.parametrize(
    ("build", "tail"),
    [(probit_coin, normal), (logistic_coin, logistic), (laplace_coin, laplace)],
    ids=["probit", "logistic", "laplace"],
)
@pytest.mark.parametrize("parameter", [0.11, 0.7, 3.0, 25.0])
@pytest.mark.parametrize("floor", [0.2, 1e-6, 1e-30])
def test_noise_coins_are_their_distribution_functions(
    build: Callable[[float, float], Coin],
    tail: Callable[[mpf, float], mpf],
    parameter: float,
    floor: float,
) -> None:
    table = build(parameter, floor).halfsteps
    exact = [max(tail(mpf(i) / 2, parameter), mpf(floor)) for i in range(len(table))]
    assert max(abs(float(mpf(x) / y) - 1) for x, y in zip(table, exact, strict=True)) < 1e-12
    assert table[-1] == floor
    assert len(table) < 3 or table[-2] > floor


def gaussian_step(order: float, sigma: float, shift: float) -> float:
    return order * shift**2 / (2 * sigma**2)


@pytest.mark.parametrize("sigma", [1.0, 5.0, 40.0])
@pytest.mark.parametrize("order", [1.5, 8.0, 60.0])
def test_a_verdict_costs_less_than_the_noisy_count_behind_it(sigma: float, order: float) -> None:
    """Post-processing, and a floor on top, only help."""
    for floor in (1e-2, 1e-9):
        coin = probit_coin(sigma, floor)
        assert coin.price(order) <= gaussian_step(order, sigma, 0.5)
        assert coin.neighbour_price(order) <= gaussian_step(order, sigma, 1.0)


@given(tables(), ORDERS, st.floats(0, 1))
def test_raising_the_floor_never_raises_the_price(coin: Coin, order: float, level: float) -> None:
    floor = 0.5 * coin.floor**level * 0.5 ** (1 - level) * 2
    raised: NDArray[np.float64] = np.maximum(coin.halfsteps, min(floor, 0.5))
    floored = Coin("floored", raised)
    assert floored.price(order) <= coin.price(order) * (1 + 1e-11)
    assert floored.neighbour_price(order) <= coin.neighbour_price(order) * (1 + 1e-11)
