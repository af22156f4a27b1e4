"""Rényi divergence of two coins, its inverse, and stability curves: 80 digits, and their shape."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from mpmath import erfc, findroot, mp, mpf, sqrt

from holdfast.errors import InvalidInput
from holdfast.theory.divergence import (
    ORDER_MAX,
    ORDER_MIN,
    Curve,
    GaussianCurve,
    RenyiCurve,
    divergence,
    largest_probability,
    smallest_probability,
)
from tests.reference.transfer import ApproximateCurve
from tests.theory import checker

ORDERS = st.one_of(
    st.sampled_from([ORDER_MIN, 1.5, 2.0, 10.0, 64.0, 1000.0, ORDER_MAX]),
    st.floats(math.log(0.01), math.log(ORDER_MAX - 1)).map(lambda x: 1 + math.exp(x)),
)
BUDGETS = st.floats(math.log(1e-9), math.log(30)).map(math.exp)
SMALL = st.floats(math.log(1e-15), math.log(0.5)).map(math.exp)
PROBABILITIES = st.one_of(SMALL, SMALL.map(lambda p: 1 - p))
NEAR = st.floats(-14, -0.31).map(lambda e: 10**e)
MUS = st.floats(1e-4, 4.0)
Divergence = Callable[[float, float, float], float]
Inverse = Callable[[float, float, float], float]


def relative_error(function: Divergence, order: float, p: float, q: float) -> float:
    """Of a divergence, against 80 digits; 100 when p and q are so near that 80 are too few."""
    distance = abs(p - q) / min(p, q, 1 - p, 1 - q)
    exact = checker.divergence(order, p, q, 80 if distance > 1e-10 else 100)
    return abs(float(mpf(function(order, p, q)) / exact - 1))


def worst_error(function: Divergence = divergence) -> float:
    """Over a fixed set of pairs that has every combination of near, far, tiny and almost 1."""
    ends = [10.0**-e for e in range(1, 16)] + [0.2, 0.3, 0.5]
    ends += [1 - p for p in ends[:13]]
    pairs = list(itertools.product(ends[::4], ends[1::4]))
    pairs += [(p, p * (1 + x)) for p in ends[::2] for x in (1e-14, 1e-9, -1e-5, 1e-3, -0.1, 0.4)]
    return max(
        relative_error(function, order, p, q)
        for order in (1.01, 1.5, 3.7, 64.0, 1e4)
        for p, q in pairs
        if 0 < q < 1 and p != q
    )


@given(
    ORDERS,
    st.one_of(
        st.tuples(PROBABILITIES, PROBABILITIES),
        st.tuples(SMALL, NEAR, st.sampled_from([-1, 1])).map(
            lambda x: (x[0], x[0] * (1 + x[2] * x[1]))
        ),
    ),
)
@example(1.01, (1e-15, 0.5))
@example(1e4, (0.5, 1e-15))
@example(1e4, (1 - 1e-15, 1e-15))
@example(52.7695017490182, (4.482938685185663e-13, 2.492071245135019e-13))
def test_any_divergence_has_twelve_digits(order: float, pair: tuple[float, float]) -> None:
    assume(pair[0] != pair[1])
    assert relative_error(divergence, order, *pair) < 1e-12


@pytest.mark.parametrize("order", [1.01, 2.0, 50.0, 1e4])
def test_the_ends(order: float) -> None:
    assert divergence(order, 0, 0) == divergence(order, 1, 1) == divergence(order, 0.3, 0.3) == 0
    assert divergence(order, 0.3, 0) == divergence(order, 0.3, 1) == math.inf
    assert divergence(order, 1, 0) == divergence(order, 0, 1) == math.inf
    assert divergence(order, 1, 0.25) == pytest.approx(math.log(4), rel=1e-15)
    assert divergence(order, 0, 0.25) == pytest.approx(math.log(4 / 3), rel=1e-15)
    for function in (largest_probability, smallest_probability):
        assert function(order, 0.5, 0) == 0
        assert function(order, 0, 0.3) == 0.3
    assert largest_probability(order, 0.5, 1) == 1
    for budget in (5e-324, 1e-9, 0.5):
        assert 1e-300 <= largest_probability(order, budget, 1e-300) < 0.05
    assert largest_probability(order, 0.5, 0.7) == 1  # D(1‖0.7) = ln(1/0.7) < 0.5
    assert smallest_probability(order, 0.5, 1) == pytest.approx(math.exp(-0.5), rel=1e-9)


def test_what_is_refused() -> None:
    for order in (1, 0.5, 1.1e4, math.nan, math.inf, "2", True):
        for function in (divergence, largest_probability, smallest_probability):
            with pytest.raises(InvalidInput, match="order"):
                function(order, 0.1, 0.1)  # type: ignore[arg-type]
    curves = (RenyiCurve(5, 0.3), GaussianCurve(0.5))
    for wrong in (-0.1, 1.1, math.nan):
        calls = [lambda p: divergence(2, p, 0.5), lambda q: divergence(2, 0.5, q)]
        calls += [lambda p, f=f: f(2, 0.1, p) for f in (largest_probability, smallest_probability)]  # type: ignore[misc]
        for call in (*calls, *(f for curve in curves for f in (curve.largest, curve.smallest))):
            with pytest.raises(InvalidInput):
                call(wrong)
    for function in (largest_probability, smallest_probability):
        with pytest.raises(InvalidInput):
            function(2, -0.1, 0.5)


@given(ORDERS, SMALL, st.floats(1e-6, 1, exclude_max=True))
def test_below_a_half_the_way_down_costs_more(order: float, p: float, share: float) -> None:
    """For z < p ≤ 1/2: D(p‖z) ≥ D(z‖p). The steepest coin rests on it."""
    z = p * share
    assume(0 < z < p)
    assert divergence(order, p, z) >= divergence(order, z, p) * (1 - 1e-12)


# The inverse.


def check_largest(function: Inverse, order: float, budget: float, q: float) -> bool:
    """Whether F(q) is rounded up, and by less than 3e-12 of itself."""
    found = function(order, budget, q)
    below = mpf(found) * (1 - mpf(3) / 10**12)
    reached = found == 1.0 or bool(checker.divergence(order, found, q) >= budget)
    return reached and bool(below <= q or checker.divergence(order, below, q) <= budget)


def check_smallest(function: Inverse, order: float, budget: float, p: float) -> bool:
    """Whether F⁻¹(p) is rounded down, and by less than 3e-12 of itself (more, near order 1)."""
    found = function(order, budget, p)
    slack = 3e-12 * max(1, 1 / (order - 1))
    above = (mpf(found) or mpf(10) ** -299) * (1 + mpf(slack))
    reached = found == 0.0 or bool(checker.divergence(order, p, found) >= budget)
    return reached and bool(above >= p or checker.divergence(order, p, above) <= budget)


@given(ORDERS, BUDGETS, PROBABILITIES)
@example(2.0, 1e-9, 1e-15)
@example(1e4, 30.0, 1e-15)
@example(1.0118371175998166, 2.0092249525200925e-08, 1.95369530769589e-12)
@example(1.025178877952435, 24.66333334018112, 1.956045061449244e-14)
def test_both_inverses_are_rounded_outwards_and_tight(
    order: float, budget: float, p: float
) -> None:
    assert check_largest(largest_probability, order, budget, p)
    assert check_smallest(smallest_probability, order, budget, p)


def test_no_event_of_a_composed_law_beats_the_curve() -> None:
    """Data processing, exactly: all 2⁸ events of three flips, law against law."""
    rng, closest = random.Random(1), 0.0
    bits = list(itertools.product((0, 1), repeat=3))
    for _ in range(30):
        order = 1 + math.exp(rng.uniform(-2, 4))
        pairs = [(rng.uniform(0.05, 0.95), rng.uniform(0.05, 0.95)) for _ in range(3)]
        budget = sum(divergence(order, p, q) for p, q in pairs)
        laws = [
            [math.prod(x if b else 1 - x for x, b in zip(law, each, strict=True)) for each in bits]
            for law in zip(*pairs, strict=True)
        ]
        for event in range(1, 255):
            inside = [i for i in range(8) if event >> i & 1]
            p, q = (math.fsum(law[i] for i in inside) for law in laws)
            limit = largest_probability(order, budget, min(q, 1.0))
            assert p <= limit * (1 + 1e-12)
            closest = max(closest, p / limit if limit < 1 else 0)
    assert closest > 0.95


# Curves.


def normal(x: mpf) -> mpf:
    return erfc(-x / sqrt(mpf(2))) / 2


LINES = st.lists(st.tuples(st.floats(0, 3), st.floats(0, 0.5)), min_size=1, max_size=6)
CURVES: st.SearchStrategy[Curve] = st.one_of(
    st.builds(RenyiCurve, st.floats(1.02, 200), st.floats(1e-6, 5)),
    st.builds(GaussianCurve, MUS),
    st.builds(ApproximateCurve, LINES),
)


@given(CURVES, PROBABILITIES, PROBABILITIES, st.floats(0, 1))
def test_all_that_the_transfer_theorem_needs(
    curve: Curve, one: float, two: float, weight: float
) -> None:
    """F(q) ≥ q, rising and concave; its inverse rounds outwards."""
    low, high = sorted((one, two))
    middle = min(high, max(low, weight * low + (1 - weight) * high))
    left, between, right = (curve.largest(q) for q in (low, middle, high))
    assert low <= left <= between * (1 + 3e-12) <= right * (1 + 6e-12) <= 1 + 6e-12
    if high > low:
        chord = (left * (high - middle) + right * (middle - low)) / (high - low)
        assert between >= chord * (1 - 1e-9)
    q = curve.smallest(one)
    assert 0 <= q <= one
    # All that q is meant to be: below it F stays below p, at it (but for rounding) F reaches p.
    assert q == 0 or curve.largest(q * (1 - 1e-8)) <= one * (1 + 1e-11)
    assert curve.largest(min(1.0, q * (1 + 1e-8) + 1e-280)) >= one * (1 - 1e-11)


@given(MUS, PROBABILITIES.filter(lambda p: 1e-12 < p < 1 - 1e-12))
@example(4.0, 1e-12)
@example(1e-4, 1 - 1e-12)
def test_the_gaussian_curve_has_its_digits(mu: float, q: float) -> None:
    with mp.workdps(40):
        guess = -math.sqrt(-2 * math.log(min(q, 1 - q))) * (1 if q < 0.5 else -1)
        if 0.1 < q < 0.9:
            guess = (q - 0.5) * 2.5
        point = findroot(
            lambda x: mp.log(normal(x) / q) if q < 0.5 else mp.log(normal(-x) / (1 - mpf(q))), guess
        )
        up, down = normal(point + mu), normal(point - mu)
        assert up <= GaussianCurve(mu).largest(q) <= min(mpf(1), up * (1 + mpf(3e-12)))
        assert down * (1 - mpf(3e-12)) <= GaussianCurve(mu).smallest(q) <= down
    for curve in (RenyiCurve(5, 0.3), GaussianCurve(mu)):
        assert curve.largest(0) == curve.smallest(0) == 0
        assert curve.largest(1) == 1


@given(LINES, PROBABILITIES)
def test_the_lowest_line_counts(pairs: list[tuple[float, float]], q: float) -> None:
    lowest = min(min(math.exp(e) * q + d for e, d in pairs), 1.0)
    assert lowest <= ApproximateCurve(pairs).largest(q) <= lowest * (1 + 2e-12)
