"""The profile: the sum it is, its rounding and shape, and the errors it counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.theory.coins import Coin, Profile, coin_profile, exponential_profile, steepest_coin

FAILURES = st.floats(1e-4, 0.9)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    steps = draw(st.lists(st.floats(0, 2), max_size=30))
    first = draw(st.floats(0.01, 50))
    return Profile(first * np.exp(-np.cumsum([0.0, *steps])))


def lattice(twice_target: int) -> list[int]:
    """Twice the e with 0 < e ≤ c*, a whole number of counts below c*."""
    return list(range(twice_target, 0, -2))


def exact_mass(profile: Profile, failure: float, twice_target: int, blocks: int) -> Fraction:
    """Σ (β − slips(e))₊ / m, in exact arithmetic."""
    slips = [Fraction(float(x)) for x in profile.slips]
    beta = Fraction(failure)
    each = [beta - slips[min(i, len(slips) - 1)] for i in lattice(twice_target)]
    return sum((max(x, Fraction(0)) for x in each), Fraction(0)) / blocks


def check_mass(
    mass: Callable[[Profile, float, int, int], float],
    profile: Profile,
    failure: float,
    twice_target: int,
    blocks: int,
) -> bool:
    """Whether the mass is the sum, rounded down."""
    exact = exact_mass(profile, failure, twice_target, blocks)
    found = Fraction(mass(profile, failure, twice_target, blocks))
    terms = len(lattice(twice_target))
    slack = Fraction(1, 10**11) * Fraction(failure) * terms / blocks
    return exact - slack <= found <= exact


@given(profiles(), FAILURES, st.integers(0, 200), st.integers(1, 100))
def test_the_mass_is_the_sum_rounded_down(
    profile: Profile, failure: float, twice_target: int, blocks: int
) -> None:
    assert check_mass(Profile.mass, profile, failure, min(twice_target, 2 * blocks), blocks)


@given(profiles(), FAILURES, FAILURES, st.floats(0, 1), st.integers(1, 100))
def test_the_mass_is_convex_in_the_failure_and_nothing_at_nothing(
    profile: Profile, one: float, two: float, weight: float, twice_target: int
) -> None:
    """What the transfer theorem asks of it."""
    middle = weight * one + (1 - weight) * two
    left, between, right = (profile.mass(x, twice_target, 100) for x in (one, middle, two))
    assert between <= (weight * left + (1 - weight) * right) * (1 + 1e-9) + 1e-11
    assert profile.mass(1e-300, twice_target, 100) <= 1e-300


@given(profiles(), FAILURES, st.integers(1, 300))
def test_the_mass_is_never_more_than_the_failure_times_the_target(
    profile: Profile, failure: float, twice_target: int
) -> None:
    blocks = twice_target  # the median
    most = len(lattice(twice_target)) / blocks
    assert 0 <= profile.mass(failure, twice_target, blocks) <= failure * most


def test_a_coin_that_never_errs_has_the_median() -> None:
    """Without slips the count is at least m/2: m/2 for even m, (m + 1)/2 for odd m."""
    never = Profile(np.array([0.5, 0.0]))
    assert never.mass(0.1, 10, 10) == pytest.approx(0.1 * 5 / 10)
    assert never.mass(0.1, 11, 11) == pytest.approx(0.1 * 6 / 11)


def test_the_lattices_by_hand() -> None:
    profile = Profile(np.array([0.5, 0.04, 0.03, 0.02, 0.01]))
    # Whole counts: e = 1, 2, 3 → entries 2, 4 and the flat end.
    assert profile.shortfall(0.1, 6) == pytest.approx(0.3 + 0.1 + 0.1)
    # Half-integers: e = 1/2, 3/2, 5/2 → entries 1, 3 and the flat end.
    assert profile.shortfall(0.1, 5) == pytest.approx(0.4 + 0.2 + 0.1)
    assert profile.shortfall(0.015, 6) == pytest.approx(1 + 2 / 3 + 2 / 3)
    assert profile.shortfall(0.1, 0) == 0


def test_looks_multiply_the_errors() -> None:
    coin = steepest_coin(8.0, 0.05, 1e-3)
    assert np.array_equal(coin_profile(coin, 40).slips, 40 * coin.halfsteps)


def error_law(offsets: list[int], coin: Coin, distance: int) -> float:
    """P[some look errs by at least distance/2 counts], the looks being at these offsets."""
    far = [coin.halfsteps[min(abs(x), coin.halfsteps.size - 1)] for x in offsets]
    misses = [h for x, h in zip(offsets, far, strict=True) if abs(x) >= distance]
    return float(1 - math.prod(1 - h for h in misses))


def test_slips_bound_the_chance_of_an_error_for_any_data() -> None:
    coin = steepest_coin(8.0, 0.3, 1e-3)
    profile = coin_profile(coin, 3)
    worst = 0.0
    for offsets in itertools.product(range(-8, 9, 2), repeat=3):
        for distance in range(2, 9):
            slips = profile.slips[min(distance, profile.slips.size - 1)]
            chance = error_law(list(offsets), coin, distance)
            assert chance <= slips
            worst = max(worst, chance / slips)
    assert worst > 0.99


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_the_exponential_profile_is_the_union_bound(epsilon: float) -> None:
    profile = exponential_profile(epsilon, grid_size=9, queries=5)
    for i in range(profile.slips.size):
        assert profile.slips[i] == pytest.approx(5 * 8 * math.exp(-epsilon * i / 4))
    assert profile.slips[-1] < 1e-8
    assert exponential_profile(epsilon, grid_size=1, queries=1).slips[0] == 1
