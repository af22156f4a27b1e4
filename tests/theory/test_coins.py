"""Coins, their prices and profiles: by brute force in 50 digits, and over whole transcripts.

What a verdict may cost is written out here from its lemma, for every half step of the coin on
either side of the target and in both directions. Then the lemma itself: the exact divergence, both
ways, between transcripts and their centred reference, for every adaptive analyst there is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import erfc, mp, mpf, quad, sqrt, workdps

from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.coins import (
    Coin,
    Profile,
    VerdictCoin,
    coin_profile,
    exponential_price,
    exponential_profile,
    gaussian_price,
    logistic_coin,
    probit_coin,
    reach_of,
    refusal_budget,
    refusal_price,
    steepest_coin,
    steps_of,
    verdict_coin,
)
from holdfast.theory.divergence import divergence
from tests.theory import checker
from tests.theory.checker import Real
from tests.theory.worlds import tables

ORDERS = st.floats(math.log(0.01), math.log(300)).map(lambda x: 1 + math.exp(x))
PRICES = st.floats(math.log(1e-4), math.log(0.2)).map(math.exp)
FLOORS = st.floats(math.log(1e-12), math.log(0.1)).map(math.exp)
STEPS = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 3)), max_size=8)
Price = Callable[[Coin, float], float]
Steepest = Callable[[float, float, float], Coin]


def falling(steps: list[float]) -> Coin:
    """Any coin at all: falling steps of any size, some of them flat."""
    return Coin("any", 0.5 * np.exp(-np.cumsum([0.0, *steps])))


def yes(coin: Coin, twice_offset: int) -> Real:
    """P[Yes] to 50 digits, from the definition."""
    error = mpf(coin.halfsteps[min(abs(twice_offset), len(coin.halfsteps) - 1)])
    return error if twice_offset <= 0 else 1 - error


def check_price(price: Price, coin: Coin, order: float, halves: int) -> bool:
    """Whether a price is the largest divergence, both ways and across the target, rounded up."""
    reach = len(coin.halfsteps) + 2
    with workdps(50):
        pairs = [(yes(coin, x), yes(coin, x + halves)) for x in range(-reach, reach + 1 - halves)]
        either = [checker.divergence(order, *pair) for pair in pairs]
        exact = float(max(either + [checker.divergence(order, q, p) for p, q in pairs]))
    return exact <= price(coin, order) <= exact * (1 + 1e-8) + 1e-27


@settings(max_examples=60)
@given(STEPS.map(falling), ORDERS)
def test_prices_are_those_of_brute_force(coin: Coin, order: float) -> None:
    assert check_price(Coin.price, coin, order, halves=1)
    assert check_price(Coin.neighbour_price, coin, order, halves=2)


def test_what_a_coin_says() -> None:
    table = np.array([0.5, 0.25, 0.125])
    coin = Coin("hand", table)
    table[1] = 0.4  # it has a copy
    assert [coin.yes(x) for x in range(-4, 5)] == [
        *(0.125, 0.125, 0.125, 0.25),
        *(0.5, 0.75, 0.875, 0.875, 0.875),
    ]
    assert coin.error(np.array([0, 1, 2, 3, 10**9])).tolist() == [0.5, 0.25, 0.125, 0.125, 0.125]
    assert (coin.floor, coin.tau) == (0.125, 1.0)
    assert not coin.halfsteps.flags.writeable


@pytest.mark.parametrize(
    "table",
    [[], [0.4], [0.5, 0.6], [0.5, 0.1, 0.2], [0.5, 0.0], [0.5, math.nan], [[0.5]], [0.5, -0.1]],
)
def test_tables_that_are_no_coins(table: list[float]) -> None:
    with pytest.raises(InvalidInput, match="halfsteps"):
        Coin("wrong", np.array(table))


# The steepest coin.


def check_steepest(build: Steepest, order: float, price: float, floor: float) -> bool:
    """Whether it costs what was asked, ends at its floor, and no entry could be 0.1 % lower."""
    coin = build(order, price, floor)
    table = coin.halfsteps.tolist()
    if coin.price(order) > price * (1 + 1e-9) or table[-1] != floor or table[0] != 0.5:
        return False
    for here, there in itertools.pairwise(table):
        if there > floor and checker.divergence(order, here, there * 0.999) <= price:
            return False
    # The flat part begins no later than the first value below the floor.
    return len(table) < 2 or table[-2] > floor


@settings(max_examples=30)
@given(ORDERS, PRICES.filter(lambda price: price > 1e-3), FLOORS)
def test_the_steepest_coin_is_as_steep_as_its_price_allows(
    order: float, price: float, floor: float
) -> None:
    assert check_steepest(steepest_coin, order, price, floor)
    if price > 0.01:
        fast = steepest_coin(order, price, floor).halfsteps
        slow = checker.steepest.__wrapped__(order, price, floor)
        assert len(fast) == len(slow)
        assert max(abs(float(mpf(x) / y) - 1) for x, y in zip(fast, slow, strict=True)) < 1e-10


def test_the_price_holds_for_large_steps_too() -> None:
    cases = itertools.product((1.01, 1.5, 3.0, 30.0, 1000.0), (1e-5, 0.01, 1.0, 5.0))
    # An order near 1 allows next values below 1e-300: the table just ends at its floor.
    for order, price in (*cases, (1.011, 0.0025)):
        price = min(price, 299 / (order - 1))
        floor = 1e-3 if price < 1e-4 else 1e-100
        coin = steepest_coin(order, price, floor)
        assert coin.price(order) <= price * (1 + 1e-9)
        assert coin.floor == floor


@settings(max_examples=60)
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
    assert Coin("other", np.array(table)).price(order) <= price * (1 + 1e-9)
    steep = steepest[np.minimum(np.arange(len(table)), steepest.size - 1)]
    assert np.all(steep <= np.array(table) * (1 + 1e-9))


def test_the_length_is_near_the_fisher_bound() -> None:
    """theory.md §10: from ½ to 0 is π/2 in the Fisher metric, a half step at most √(2·price/a)."""
    order, price = 10.0, 1e-6
    steps = 2 * steepest_coin(order, price, 1e-9).tau
    bound = math.pi / 2 / math.sqrt(2 * price / order)
    assert 0.99 * bound < steps < 1.02 * bound


def test_what_is_refused() -> None:
    coin = logistic_coin(0.3, 1e-3)
    wrong: dict[Callable[..., object], list[tuple[object, ...]]] = {
        steepest_coin: [
            *((1.0, 0.1, 0.1), (2.0, 0.0, 0.1), (2.0, -1.0, 0.1), (2.0, 0.1, 0.5), (2.0, 0.1, 0.0))
        ],
        probit_coin: [(1e9, 1e-9)],  # too flat for memory
        logistic_coin: [(1e-9, 1e-9)],
        verdict_coin: [
            *((1.0, 0.1, 0.1, 1e-3, 1e-3), (2.0, 0.0, 0.1, 1e-3, 1e-3), (2.0, 0.1, -1.0, 0.1, 0.1)),
            *((2.0, 0.1, 0.1, 0.5, 1e-3), (2.0, 0.1, 0.1, 1e-3, 0.0), (2.0, 301.0, 0.1, 0.1, 0.1)),
        ],
        refusal_price: [(coin, 1.0, 0.0), (coin, 2.0, -0.1), (coin, math.nan, 0.0)],
    }
    for price in (gaussian_price, exponential_price):
        wrong[price] = [(1.0, 1.0), (2.0, 0.0), (2.0, -1.0), (2.0, math.nan), (1e5, 1.0)]
    for make, cases in wrong.items():
        for arguments in cases:
            with pytest.raises(InvalidInput):
                make(*arguments)


# Coins from noise: the tables are the distribution functions.

NOISE: dict[str, tuple[Callable[[float, float], Coin], Callable[[mpf, float], mpf]]] = {
    "probit": (probit_coin, lambda x, sigma: erfc(x / sigma / sqrt(mpf(2))) / 2),
    "logistic": (logistic_coin, lambda x, slope: 1 / (1 + mp.exp(slope * x))),
}


@pytest.mark.parametrize("name", NOISE)
def test_noise_coins_are_their_distribution_functions(name: str) -> None:
    build, tail = NOISE[name]
    for parameter, floor in itertools.product((0.11, 0.7, 3.0, 25.0), (0.2, 1e-6, 1e-30)):
        table = build(parameter, floor).halfsteps
        exact = [max(tail(mpf(i) / 2, parameter), mpf(floor)) for i in range(len(table))]
        assert max(abs(float(mpf(x) / y) - 1) for x, y in zip(table, exact, strict=True)) < 1e-12
        assert table[-1] == floor
        assert len(table) < 3 or table[-2] > floor


@pytest.mark.parametrize("order", [1.05, 8.0, 40.0])
@pytest.mark.parametrize("noise", [0.5, 30.0])
def test_a_verdict_costs_no_more_than_its_noise(order: float, noise: float) -> None:
    """Coins made of noise are post-processings of it; the floor only helps."""
    for floor in (0.01, 1e-9):
        coin = probit_coin(noise, floor)
        assert coin.price(order) <= gaussian_price(order, noise)
        assert coin.neighbour_price(order) <= gaussian_price(order, noise, shift=1.0)


# Flat prices.


@pytest.mark.parametrize(
    ("order", "scale", "shift"),
    [(1.05, 0.7, 1.0), (1.5, 3.0, 0.5), (2.0, 50.0, 1.0), (8.0, 0.7, 0.5), (40.0, 3.0, 1.0)],
)
def test_the_gaussian_price_is_its_integral(order: float, scale: float, shift: float) -> None:
    """D_a of the density from its own shift, by quadrature."""
    with workdps(30):
        top = -mp.log(scale * mp.sqrt(2 * mp.pi))

        def log(x: mpf) -> mpf:
            return top - ((x / scale) ** 2) / 2

        points = [4 * i * scale - (order - 1) * shift for i in range(-4, 5)]
        moment = quad(lambda x: mp.exp(order * log(x) + (1 - order) * log(x - shift)), points)
        exact = mp.log(moment) / (order - 1)
        assert 0 <= gaussian_price(order, scale, shift) / float(exact) - 1 < 1e-9


def ranged(width: float, q: float) -> float:
    """p of two outcomes whose log ratios to q differ by `width`."""
    return q * math.exp(width) / (q * math.exp(width) + 1 - q)


@given(st.floats(1.01, 1e3), st.floats(1e-3, 10), st.floats(0.001, 0.999))
def test_bounded_range_costs_an_eighth(order: float, width: float, q: float) -> None:
    """Two outcomes whose log ratios differ by η: D ≤ a·η²/8 (Cesar & Rogers 2021)."""
    limit = exponential_price(order, width, shift=1.0)
    p = ranged(width, q)
    assert max(divergence(order, p, q), divergence(order, q, p)) <= limit * (1 + 1e-9)


def test_the_eighth_is_reached() -> None:
    best = max(divergence(2.0, ranged(0.01, q), q) for q in (0.49, 0.495, 0.5, 0.505))
    assert best > 0.999 * exponential_price(2.0, 0.01, shift=1.0)


# The profile.

FAILURES = st.floats(1e-4, 0.9)
PROFILES = st.builds(
    lambda first, steps: Profile(first * np.exp(-np.cumsum([0.0, *steps]))),
    st.floats(0.01, 50),
    st.lists(st.floats(0, 2), max_size=30),
)


def check_mass(
    mass: Callable[[Profile, float, int, int], float],
    profile: Profile,
    failure: float,
    twice_target: int,
    blocks: int,
) -> bool:
    """Whether the mass is Σ (β − slips(e))₊ / m, rounded down; e > 0, whole counts below c*."""
    slips = [Fraction(float(x)) for x in profile.slips]
    lattice = range(twice_target, 0, -2)
    each = [Fraction(failure) - slips[min(i, len(slips) - 1)] for i in lattice]
    exact = sum((max(x, Fraction(0)) for x in each), Fraction(0)) / blocks
    slack = Fraction(1, 10**11) * Fraction(failure) * len(lattice) / blocks
    return exact - slack <= Fraction(mass(profile, failure, twice_target, blocks)) <= exact


@given(PROFILES, FAILURES, st.integers(0, 200), st.integers(1, 100))
def test_the_mass_is_the_sum_rounded_down(
    profile: Profile, failure: float, twice_target: int, blocks: int
) -> None:
    assert check_mass(Profile.mass, profile, failure, min(twice_target, 2 * blocks), blocks)


@given(PROFILES, FAILURES, FAILURES, st.floats(0, 1), st.integers(1, 100))
def test_the_mass_is_convex_in_the_failure_and_nothing_at_nothing(
    profile: Profile, one: float, two: float, weight: float, twice_target: int
) -> None:
    """What the transfer theorem asks of it."""
    middle = weight * one + (1 - weight) * two
    left, between, right = (profile.mass(x, twice_target, 100) for x in (one, middle, two))
    assert between <= (weight * left + (1 - weight) * right) * (1 + 1e-9) + 1e-11
    assert profile.mass(1e-300, twice_target, 100) <= 1e-300


def test_slips_bound_the_chance_of_an_error_for_any_data() -> None:
    coin = steepest_coin(8.0, 0.3, 1e-3)
    profile, worst = coin_profile(coin, 3), 0.0
    for offsets in itertools.product(range(-8, 9, 2), repeat=3):
        for distance in range(2, 9):
            misses = [1 - float(coin.error(np.array([abs(x)]))[0]) for x in offsets]
            far = [miss for x, miss in zip(offsets, misses, strict=True) if abs(x) >= distance]
            slips = profile.slips[min(distance, profile.slips.size - 1)]
            assert 1 - math.prod(far) <= slips
            worst = max(worst, (1 - math.prod(far)) / slips)
    assert worst > 0.99


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_the_exponential_profile_is_the_union_bound(epsilon: float) -> None:
    slips = exponential_profile(epsilon, grid_size=9, queries=5).slips
    exact = [5 * 8 * math.exp(-epsilon * i / 4) for i in range(slips.size)]
    assert slips.tolist() == pytest.approx(exact)
    assert slips[-1] < 1e-8
    assert exponential_profile(epsilon, grid_size=1, queries=1).slips[0] == 1


# What a verdict costs.

Refusal = Callable[[VerdictCoin, float, float], float]
Build = Callable[[float, float, float, float, float], VerdictCoin]
Settings = tuple[float, float, float, float, float]  # order, price of No, of Yes, the two floors

SETTINGS: dict[str, Settings] = {
    "dear No": (20.0, 0.2, 1e-3, 1e-6, 1e-6),
    "as planned": (37.0, 0.19, 3e-4, 1e-4, 1e-7),
    "low order": (1.5, 0.8, 0.1, 1e-2, 1e-3),
    "high order": (150.0, 3.0, 1e-2, 1e-4, 1e-4),
    "equal prices": (8.0, 0.3, 0.3, 1e-4, 1e-4),
    "dear Yes": (4.0, 2e-3, 0.2, 1e-3, 1e-5),
    "long steps": (3.0, 4.0, 0.5, 1e-8, 1e-8),
}
FLAT = {
    "logistic": logistic_coin(0.3, 1e-3),
    "steep logistic": logistic_coin(1.0, 0.02),
    "probit": probit_coin(4.0, 0.05),
    "hand": Coin("hand", np.array([0.5, 0.4, 0.4, 0.25, 0.2])),
}


def half_steps(coin: VerdictCoin) -> list[tuple[Real, Real]]:
    """P[No] here and half a count further, both ways, from far below the target to far above."""
    below = [1 - mpf(float(h)) for h in reversed(coin.below.halfsteps[1:])]
    chances = [*below, mpf(1) / 2, *(mpf(float(h)) for h in coin.above.halfsteps[1:])]
    steps = [(g, z) for g, z in itertools.pairwise(chances) if g != z]
    return [*steps, *((z, g) for g, z in steps)]


def left_side(order: float, no: Real, yes: Real, g: Real, z: Real) -> Real:
    """e^(−A)·gᵃ z¹⁻ᵃ + e^(−B)·(1−g)ᵃ (1−z)¹⁻ᵃ, as it stands."""
    a = mpf(order)
    return mp.exp(-no) * g**a * z ** (1 - a) + mp.exp(-yes) * (1 - g) ** a * (1 - z) ** (1 - a)


def worst_pair(coin: VerdictCoin, order: float, no: Real, yes: Real) -> Real:
    """The largest left side over all neighbouring half steps, both directions."""
    return max(left_side(order, no, yes, g, z) for g, z in half_steps(coin))


def check_refusal(price: Refusal, coin: VerdictCoin, order: float, yes: float) -> bool:
    """Whether the price is the least A that covers every pair, rounded up; refused where none."""
    with workdps(50):
        a, exact = mpf(order), mpf(0)
        for g, z in half_steps(coin):
            left = 1 - mp.exp(-mpf(yes)) * (1 - g) ** a * (1 - z) ** (1 - a)
            exact = max(exact, mp.log(g**a * z ** (1 - a) / left) if left > 0 else mp.inf)
        try:
            found = price(coin, order, yes)
        except Infeasible:
            return bool(mp.isinf(exact))
        return bool(exact <= found <= exact * (1 + mpf("1e-6")) + mpf("1e-12"))


@pytest.mark.parametrize("name", SETTINGS)
def test_the_price_of_a_refusal_is_the_largest_that_any_pair_needs(name: str) -> None:
    order, no, yes, _, _ = SETTINGS[name]
    coin = verdict_coin(*SETTINGS[name])
    assert check_refusal(refusal_price, coin, order, yes)
    assert no * 0.99 < refusal_price(coin, order, yes) <= no * (1 + 1e-9)  # as was aimed at


SIDE = st.lists(st.floats(0.001, 0.6), min_size=1, max_size=6).map(falling)


@settings(max_examples=60)
@given(SIDE, SIDE, st.floats(1.01, 20), st.sampled_from([0.0, 1e-3, 0.05, 0.5, 2.0, 6.0]))
def test_any_two_sided_table_is_priced_exactly(
    below: Coin, above: Coin, order: float, yes: float
) -> None:
    """Not only steepest ones: both sides count, and neither more than it should."""
    assert check_refusal(refusal_price, VerdictCoin(below, above), order, yes)


def steepest_of_all(build: Build, order: float, no: float, yes: float, floor: float) -> bool:
    """No half step above the floor can be made a millionth longer, and none is too long."""
    coin = build(order, no, yes, floor, floor)
    with workdps(50):
        for side, upper in ((coin.below, False), (coin.above, True)):
            table = [mpf(float(h)) for h in side.halfsteps]
            if table[-1] != mpf(floor):
                return False
            for here, there in itertools.pairwise(table[:-1]):  # the last step ends at the floor
                longer = here * (there / here) ** (1 + mpf("1e-6"))
                for end, allowed in ((there, True), (longer, False)):
                    pair = (here, end) if upper else (1 - here, 1 - end)
                    both = (pair, pair[::-1])
                    most = max(left_side(order, mpf(no), mpf(yes), g, z) for g, z in both)
                    if (most <= 1 + mpf("1e-13")) != allowed:
                        return False
    return True


@pytest.mark.parametrize("name", SETTINGS)
def test_no_half_step_can_be_longer(name: str) -> None:
    order, no, yes, floor, _ = SETTINGS[name]
    assert steepest_of_all(verdict_coin, order, no, yes, floor)


@pytest.mark.parametrize(("order", "price"), [(1.2, 0.3), (8.0, 2e-3), (200.0, 0.01)])
def test_equal_prices_give_the_flat_coin(order: float, price: float) -> None:
    """A = B = (a − 1)·c is the steepest coin of price c, on both sides."""
    flat = steepest_coin(order, price, 1e-5)
    exponent = (order - 1) * price
    coin = verdict_coin(order, exponent, exponent, 1e-5, 1e-5)
    for side in (coin.below, coin.above):
        np.testing.assert_allclose(side.halfsteps, flat.halfsteps, rtol=1e-6)
        assert side.price(order) <= price * (1 + 1e-9)


def test_a_dear_no_is_rare_where_it_tells_more() -> None:
    """Below the target a false Yes is the rare verdict; above it, a false No."""
    coin = verdict_coin(*SETTINGS["dear No"])
    assert coin.below.tau < coin.above.tau
    assert [coin.side(x) for x in (-3, 0, 1)] == [coin.below, coin.below, coin.above]
    assert VerdictCoin.symmetric(FLAT["hand"]).side(5) is FLAT["hand"]


# What the optimisers work with. Nothing certified rests on it; a poor estimate costs blocks.


@pytest.mark.parametrize("name", ["dear No", "as planned", "equal prices"])
def test_the_smooth_reach_and_its_half_steps_are_near_the_real_ones(name: str) -> None:
    order, no, yes, _, _ = SETTINGS[name]
    coin = verdict_coin(order, no, yes, 1e-13, 1e-13)
    for slips in (10.0, 1e3, 1e5):
        for side, rare, common in ((coin.below, yes, no), (coin.above, no, yes)):
            real = float(np.minimum(1.0, slips * side.halfsteps[2::2]).sum())
            assert reach_of(order, rare, common, slips) == pytest.approx(real, rel=0.03, abs=1.0)
    table = verdict_coin(*SETTINGS[name]).above.halfsteps[:-1]
    odds = np.log(table) - np.log1p(-table)
    np.testing.assert_allclose(steps_of(order, no, yes, table[:-1]), -np.diff(odds), rtol=0.02)


# Whole transcripts. At every look the analyst chooses the pair of chances under M and under Q.


@dataclass(frozen=True)
class Look:
    """A coin with its prices, as exponents."""

    coin: VerdictCoin
    no: float
    yes: float

    def moves(self, order: float) -> list[tuple[float, float]]:
        """What a No and a Yes multiply E_Q[(dM/dQ)ᵃ] by, for every pair that can be met."""
        pairs = {(float(g), float(z)) for g, z in half_steps(self.coin)}
        return sorted(
            (
                math.exp(order * math.log(g) + (1 - order) * math.log(z)),
                math.exp(order * math.log1p(-g) + (1 - order) * math.log1p(-z)),
            )
            for g, z in pairs
        )


def worst_guesses(order: float, look: Look, guesses: int, refusals: int, sides: int) -> float:
    """The best analyst's divergence over what is charged at most."""
    moves = look.moves(order)

    @cache
    def value(guesses_left: int, refusals_left: int, side: int) -> float:
        if guesses_left == 0 or refusals_left == 0:
            return 1.0
        refused = value(guesses_left - 1, refusals_left - 1, 0)
        last = side == sides - 1
        confirmed = value(guesses_left - last, refusals_left, 0 if last else side + 1)
        return max(no * refused + yes * confirmed for no, yes in moves)

    looks = sides * guesses
    budget = refusal_budget(order, look.no, look.yes, refusals, looks - refusals)
    most = max(budget * (order - 1), looks * look.yes)  # a Yes may be the dearer verdict
    return math.log(value(guesses, refusals, 0)) / most


def free_yes(price: Refusal, coin: Coin, order: float, refusals: int, looks: int) -> float:
    """A Yes costs nothing: the worst sequence as a share of what its refusals pay for."""
    both = VerdictCoin.symmetric(coin)
    return worst_guesses(order, Look(both, price(both, order, 0.0), 0.0), looks, refusals, 1)


@pytest.mark.parametrize("name", FLAT)
def test_refusals_pay_for_any_adaptive_sequence(name: str) -> None:
    """However many looks said Yes: ℓ refusals cost ℓ·A/(a − 1), and long sequences reach it."""
    for order in (1.05, 1.3):
        cases = ((1, 1), (1, 30), (2, 60), (3, 400))
        shares = [free_yes(refusal_price, FLAT[name], order, *case) for case in cases]
        assert max(shares) <= 1 + 1e-9
        assert shares[-1] > 0.9
    with pytest.raises(Infeasible, match="Yes"):
        refusal_price(steepest_coin(10, 0.01, 1e-6), 10)


def transcript_coins() -> Iterator[tuple[float, VerdictCoin, float]]:
    """Steepest and jagged coins, with an order and a price of a Yes."""
    for order, no, yes in (
        *((1.5, 0.8, 0.1), (4.0, 0.6, 0.02), (12.0, 1.0, 0.05)),
        *((4.0, 0.05, 0.3), (8.0, 0.3, 0.3)),
    ):
        yield order, verdict_coin(order, no, yes, 1e-3, 1e-3), yes
    jagged = tables(seed=4, count=8)
    for one, two in zip(jagged[::2], jagged[1::2], strict=True):
        yield 1.7, VerdictCoin(Coin("below", one), Coin("above", two)), 3.0


def test_verification_costs_at_most_what_is_charged_whoever_asks() -> None:
    """Over coins, sides and numbers of guesses."""
    worst = 0.0
    for order, coin, yes in transcript_coins():
        look = Look(coin, refusal_price(coin, order, yes), yes)
        for case in ((1, 1, 1), (5, 5, 1), (3, 1, 2), (4, 4, 2), (30, 2, 2)):
            worst = max(worst, worst_guesses(order, look, *case))
    assert 0.99 < worst <= 1 + 1e-9


# A filter: at every step any coin whose worst verdict still fits, chosen from all verdicts so far.


Charge = Callable[[Look, bool], float]  # what a verdict is charged: Yes or No


def charged(look: Look, yes: bool) -> float:
    return look.yes if yes else look.no


def worst_filter(order: float, menu: Sequence[Look], limit: float, charge: Charge) -> float:
    """The best analyst's divergence over a budget that admits or refuses each look.

    Dynamic programming over what has been charged: all strategies, all transcripts.
    """
    prices = [(charge(look, False), charge(look, True)) for look in menu]
    moves = [look.moves(order) for look in menu]

    @cache
    def value(used: tuple[tuple[int, int], ...]) -> float:
        spent = math.fsum(n * no + y * yes for (n, y), (no, yes) in zip(used, prices, strict=True))
        result = 1.0
        for i, (n, y) in enumerate(used):
            worst = max(menu[i].no, menu[i].yes)  # what must be free before the flip
            if spent + worst > limit + 1e-12 or sum(map(sum, used)) >= 14:
                continue
            after_no, after_yes = (
                value((*used[:i], pair, *used[i + 1 :])) for pair in ((n + 1, y), (n, y + 1))
            )
            result = max(result, *(no * after_no + yes * after_yes for no, yes in moves[i]))
        return result

    return math.log(value(((0, 0),) * len(menu))) / limit


def menus() -> Iterator[tuple[float, list[Look], float]]:
    """An order, flat looks and verdict looks to choose from, and a limit, all as exponents."""
    for order, flat_price in ((2.0, 0.1), (6.0, 0.03)):
        flat = VerdictCoin.symmetric(steepest_coin(order, flat_price, 1e-3))
        measured = flat.below.price(order) * (order - 1)
        plain = Look(flat, measured, measured)
        for no, yes in ((0.5, 0.05), (0.9, 0.1), (0.1, 0.35)):
            coin = verdict_coin(order, no, yes, 1e-3, 1e-3)
            yield order, [plain, Look(coin, refusal_price(coin, order, yes), yes)], 1.25
        hand = VerdictCoin(
            Coin("below", np.array([0.5, 0.45, 0.4])), Coin("above", np.array([0.5, 0.48, 0.4]))
        )
        steep = Look(hand, refusal_price(hand, order, 0.8), 0.8)
        yield order, [plain, steep], steep.no + 1.0


def worst_menu(charge: Charge = charged) -> float:
    return max(worst_filter(order, menu, limit, charge) for order, menu, limit in menus())


def test_a_mixture_that_the_budget_admits_is_within_the_budget() -> None:
    assert 0.9 < worst_menu() <= 1 + 1e-9
