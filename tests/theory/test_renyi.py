"""Rényi divergence of two coins, and its inverse: against 80-digit arithmetic and by its shape."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from mpmath import mpf

from holdfast.errors import InvalidInput
from holdfast.theory.divergence import (
    ORDER_MAX,
    ORDER_MIN,
    divergence,
    largest_probability,
    smallest_probability,
)
from tests.theory import checker

ORDERS = st.one_of(
    st.sampled_from([ORDER_MIN, 1.5, 2.0, 10.0, 64.0, 1000.0, ORDER_MAX]),
    st.floats(math.log(0.01), math.log(ORDER_MAX - 1)).map(lambda x: 1 + math.exp(x)),
)
BUDGETS = st.floats(math.log(1e-9), math.log(30)).map(math.exp)
SMALL = st.floats(math.log(1e-15), math.log(0.5)).map(math.exp)
PROBABILITIES = st.one_of(SMALL, SMALL.map(lambda p: 1 - p))
BITS = list(itertools.product((0, 1), repeat=3))
Divergence = Callable[[float, float, float], float]
Largest = Callable[[float, float, float], float]


def relative_error(function: Divergence, order: float, p: float, q: float) -> float:
    """Of a divergence, against 80 digits; 100 when p and q are so near that 80 are too few."""
    distance = abs(p - q) / min(p, q, 1 - p, 1 - q)
    exact = checker.divergence(order, p, q, 80 if distance > 1e-10 else 100)
    return abs(float(mpf(function(order, p, q)) / exact - 1))


def worst_error(function: Divergence = divergence) -> float:
    """Over a fixed set of pairs that has every combination of near, far, tiny and almost 1."""
    orders = (1.01, 1.1, 1.5, 2.0, 3.7, 10.0, 64.0, 500.0, 1e4)
    ends = [10.0**-e for e in range(1, 16)] + [0.2, 0.3, 0.5]
    ends += [1 - p for p in ends[:13]]
    pairs = list(itertools.product(ends[::2], ends[1::2]))
    pairs += [(p, p * (1 + x)) for p in ends for x in (1e-14, 1e-9, -1e-5, 1e-3, -0.1, 0.4)]
    return max(
        relative_error(function, order, p, q)
        for order in orders
        for p, q in pairs
        if 0 < q < 1 and p != q
    )


def test_the_divergence_has_twelve_digits_everywhere() -> None:
    assert worst_error() < 1e-12


@given(ORDERS, PROBABILITIES, PROBABILITIES)
@example(1.01, 1e-15, 0.5)
@example(1e4, 0.5, 1e-15)
@example(1e4, 1 - 1e-15, 1e-15)
@example(52.7695017490182, 4.482938685185663e-13, 2.492071245135019e-13)
def test_any_divergence_has_twelve_digits(order: float, p: float, q: float) -> None:
    assume(p != q)
    assert relative_error(divergence, order, p, q) < 1e-12


@given(ORDERS, SMALL, st.floats(-14, -0.31).map(lambda e: 10**e), st.sampled_from([-1, 1]))
def test_divergences_of_near_equal_coins_have_twelve_digits(
    order: float, p: float, gap: float, side: int
) -> None:
    q = p * (1 + side * gap)
    assume(p != q)
    assert relative_error(divergence, order, p, q) < 1e-12
    assert relative_error(divergence, order, 1 - p, q) < 1e-12


def test_the_written_out_formula_is_not_good_enough() -> None:
    """Why the module does not use it: this is the mutant that the tests above must reject."""

    def naive(a: float, p: float, q: float) -> float:
        total = a * math.log(p) + (1 - a) * math.log(q)
        other = a * math.log1p(-p) + (1 - a) * math.log1p(-q)
        return math.log(math.exp(total) + math.exp(other)) / (a - 1)

    assert relative_error(naive, 10.0, 0.3, 0.3001) > 1e-12


@pytest.mark.parametrize("order", [1.01, 2.0, 50.0, 1e4])
def test_the_ends(order: float) -> None:
    assert divergence(order, 0, 0) == divergence(order, 1, 1) == divergence(order, 0.3, 0.3) == 0
    assert divergence(order, 0.3, 0) == divergence(order, 0.3, 1) == math.inf
    assert divergence(order, 1, 0) == divergence(order, 0, 1) == math.inf
    assert divergence(order, 1, 0.25) == pytest.approx(math.log(4), rel=1e-15)
    assert divergence(order, 0, 0.25) == pytest.approx(math.log(4 / 3), rel=1e-15)


@pytest.mark.parametrize("order", [1, 0.5, 1.1e4, math.nan, math.inf, "2", True])
def test_orders_outside_are_refused(order: float) -> None:
    for function in (divergence, largest_probability, smallest_probability):
        with pytest.raises(InvalidInput, match="order"):
            function(order, 0.1, 0.1)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_probabilities_outside_are_refused(wrong: float) -> None:
    for arguments in ((2, wrong, 0.5), (2, 0.5, wrong)):
        with pytest.raises(InvalidInput):
            divergence(*arguments)
    for function in (largest_probability, smallest_probability):
        with pytest.raises(InvalidInput):
            function(2, 0.1, wrong)
        with pytest.raises(InvalidInput):
            function(2, -0.1, 0.5)


@given(ORDERS, ORDERS, PROBABILITIES, PROBABILITIES)
def test_divergence_rises_with_the_order(a: float, b: float, p: float, q: float) -> None:
    low, high = sorted((a, b))
    assert divergence(low, p, q) <= divergence(high, p, q) * (1 + 1e-12)


@given(ORDERS, SMALL, SMALL)
def test_complements_diverge_alike(order: float, p: float, q: float) -> None:
    p, q = 1 - p, 1 - q  # so that both complements are floats
    assume(p != q)
    mirror = divergence(order, 1 - p, 1 - q)
    assert divergence(order, p, q) == pytest.approx(mirror, rel=1e-12)


@given(ORDERS, SMALL, st.floats(1e-6, 1, exclude_max=True))
def test_below_a_half_the_way_down_costs_more(order: float, p: float, share: float) -> None:
    """For z < p ≤ 1/2: D(p‖z) ≥ D(z‖p). The steepest coin rests on it."""
    z = p * share
    assume(0 < z < p)
    assert divergence(order, p, z) >= divergence(order, z, p) * (1 - 1e-12)


# The inverse.


def check_largest(function: Largest, order: float, budget: float, q: float) -> bool:
    """Whether F(q) is rounded up, and by less than 3e-12 of itself."""
    found = function(order, budget, q)
    below = mpf(found) * (1 - mpf(3) / 10**12)
    reached = found == 1.0 or bool(checker.divergence(order, found, q) >= budget)
    return reached and bool(below <= q or checker.divergence(order, below, q) <= budget)


def check_smallest(function: Largest, order: float, budget: float, p: float) -> bool:
    """Whether F⁻¹(p) is rounded down, and by less than 3e-12 of itself (more, near order 1)."""
    found = function(order, budget, p)
    slack = 3e-12 * max(1, 1 / (order - 1))
    above = (mpf(found) or mpf(10) ** -299) * (1 + mpf(slack))
    reached = found == 0.0 or bool(checker.divergence(order, p, found) >= budget)
    return reached and bool(above >= p or checker.divergence(order, p, above) <= budget)


@given(ORDERS, BUDGETS, PROBABILITIES)
@example(2.0, 1e-9, 1e-15)
@example(1e4, 30.0, 1e-15)
def test_the_largest_probability_is_rounded_up_and_tight(
    order: float, budget: float, q: float
) -> None:
    assert check_largest(largest_probability, order, budget, q)


@given(ORDERS, BUDGETS, PROBABILITIES)
@example(1.0118371175998166, 2.0092249525200925e-08, 1.95369530769589e-12)
@example(1.025178877952435, 24.66333334018112, 1.956045061449244e-14)
def test_the_smallest_probability_is_rounded_down_and_tight(
    order: float, budget: float, p: float
) -> None:
    assert check_smallest(smallest_probability, order, budget, p)


@given(ORDERS, BUDGETS, SMALL)
def test_they_are_inverse(order: float, budget: float, p: float) -> None:
    q = smallest_probability(order, budget, p)
    assume(q > 0)
    assert p * (1 - 1e-9) <= largest_probability(order, budget, q) <= p * (1 + 1e-9)
    # There and back goes down, by a little, and never up: rounding is outwards both times.
    assert smallest_probability(order, budget, largest_probability(order, budget, p)) <= p * (
        1 + 1e-11
    )


@pytest.mark.parametrize("order", [1.01, 2.0, 30.0, 1e4])
def test_ends_of_the_inverse(order: float) -> None:
    for function in (largest_probability, smallest_probability):
        assert function(order, 0.5, 0) == 0
        assert function(order, 0, 0.3) == 0.3
    assert largest_probability(order, 0.5, 1) == 1
    for budget in (5e-324, 1e-9, 0.5):
        assert 1e-300 <= largest_probability(order, budget, 1e-300) < 0.05
    assert largest_probability(order, 0.5, 0.7) == 1  # D(1‖0.7) = ln(1/0.7) < 0.5
    assert smallest_probability(order, 0.5, 1) == pytest.approx(math.exp(-0.5), rel=1e-9)


@given(ORDERS, BUDGETS, PROBABILITIES, PROBABILITIES, st.floats(0, 1))
def test_the_curve_is_concave_and_rises(
    order: float, budget: float, one: float, two: float, weight: float
) -> None:
    low, high = sorted((one, two))
    middle = min(high, max(low, weight * low + (1 - weight) * high))
    left, between, right = (largest_probability(order, budget, q) for q in (low, middle, high))
    assert left <= between * (1 + 2e-12)
    assert between <= right * (1 + 2e-12)
    assert left >= low
    if high > low:
        chord = (left * (high - middle) + right * (middle - low)) / (high - low)
        assert between >= chord * (1 - 1e-9)


@given(ORDERS, ORDERS, BUDGETS, BUDGETS, PROBABILITIES)
def test_the_curve_rises_with_the_budget_and_falls_with_the_order(
    a: float, b: float, r: float, s: float, q: float
) -> None:
    (a, b), (r, s) = sorted((a, b)), sorted((r, s))
    assert largest_probability(a, r, q) <= largest_probability(a, s, q) * (1 + 2e-12)
    assert largest_probability(b, r, q) <= largest_probability(a, r, q) * (1 + 1e-9)


def test_no_event_of_a_composed_law_beats_the_curve() -> None:
    """Data processing, exactly: all 2⁸ events of three flips, law against law."""
    rng = random.Random(1)
    closest = 0.0
    for _ in range(60):
        order = 1 + math.exp(rng.uniform(-2, 4))
        pairs = [(rng.uniform(0.05, 0.95), rng.uniform(0.05, 0.95)) for _ in range(3)]
        budget = sum(divergence(order, p, q) for p, q in pairs)
        laws = [
            [math.prod(x if b else 1 - x for x, b in zip(law, bits, strict=True)) for bits in BITS]
            for law in zip(*pairs, strict=True)
        ]
        for event in range(1, 255):
            inside = [i for i in range(8) if event >> i & 1]
            p, q = (math.fsum(law[i] for i in inside) for law in laws)
            limit = largest_probability(order, budget, min(q, 1.0))
            assert p <= limit * (1 + 1e-12)
            closest = max(closest, p / limit if limit < 1 else 0)
    assert closest > 0.95
