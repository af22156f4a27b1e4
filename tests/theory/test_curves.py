"""Stability curves: each is concave, rises, is rounded up, and has the inverse it says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import erfc, findroot, mp, mpf, sqrt

from holdfast.errors import InvalidInput
from holdfast.theory.divergence import ApproximateCurve, Curve, GaussianCurve, RenyiCurve

SMALL = st.floats(math.log(1e-12), math.log(0.5)).map(math.exp)
PROBABILITIES = st.one_of(SMALL, SMALL.map(lambda p: 1 - p))
MUS = st.floats(1e-4, 4.0)


def normal(x: mpf) -> mpf:
    return erfc(-x / sqrt(mpf(2))) / 2


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    kind = draw(st.sampled_from(["renyi", "gaussian", "approximate"]))
    if kind == "renyi":
        return RenyiCurve(draw(st.floats(1.02, 200)), draw(st.floats(1e-6, 5)))
    if kind == "gaussian":
        return GaussianCurve(draw(MUS))
    pair = st.tuples(st.floats(0, 3), st.floats(0, 0.5))
    return ApproximateCurve(draw(st.lists(pair, min_size=1, max_size=6)))


def is_a_curve(curve: Curve, one: float, two: float, weight: float) -> bool:
    """F(q) ≥ q, rising and concave on two points and one between them."""
    low, high = sorted((one, two))
    middle = min(high, max(low, weight * low + (1 - weight) * high))
    left, between, right = (curve.largest(q) for q in (low, middle, high))
    rises = low <= left <= between * (1 + 3e-12) <= right * (1 + 6e-12) <= 1 + 6e-12
    if high <= low:
        return rises
    chord = (left * (high - middle) + right * (middle - low)) / (high - low)
    return rises and between >= chord * (1 - 1e-9)


@given(curves(), PROBABILITIES, PROBABILITIES, st.floats(0, 1))
def test_all_that_the_transfer_theorem_needs(
    curve: Curve, one: float, two: float, weight: float
) -> None:
    assert is_a_curve(curve, one, two, weight)


@given(curves(), PROBABILITIES)
def test_the_inverse_is_one_and_rounds_outwards(curve: Curve, p: float) -> None:
    q = curve.smallest(p)
    assert 0 <= q <= p
    # All that q is meant to be: below it F stays below p, at it (but for rounding) F reaches p.
    assert q == 0 or curve.largest(q * (1 - 1e-8)) <= p * (1 + 1e-11)
    assert curve.largest(min(1.0, q * (1 + 1e-8) + 1e-280)) >= p * (1 - 1e-11)


@pytest.mark.parametrize("curve", [RenyiCurve(5, 0.3), GaussianCurve(0.5)])
def test_what_cannot_happen_stays_impossible(curve: Curve) -> None:
    assert curve.largest(0) == curve.smallest(0) == 0
    assert curve.largest(1) == 1


# Gaussian.


@given(MUS, PROBABILITIES)
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


@given(MUS, st.floats(1.05, 100), SMALL)
def test_a_moment_bound_is_no_better_than_the_exact_curve(
    mu: float, order: float, q: float
) -> None:
    """A μ-GDP law is a·μ²/2-stable at every order a (Mironov 2017): its curve lies above."""
    moment = RenyiCurve(order, order * mu**2 / 2)
    assert GaussianCurve(mu).largest(q) <= moment.largest(q) * (1 + 1e-11)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0])
def test_a_profile_of_lines_is_the_same_curve_from_above(mu: float) -> None:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Dong, Roth & Su 2022, cor. 2.13)."""
    epsilons = np.linspace(0, 8 * mu, 400)
    lines = ApproximateCurve(
        [
            (float(e), float(normal(mu / 2 - e / mu) - mp.exp(e) * normal(-mu / 2 - e / mu)))
            for e in epsilons
        ]
    )
    exact = GaussianCurve(mu)
    for q in (1e-3, 0.0125, 0.05, 0.25):
        assert exact.largest(q) * (1 - 1e-10) <= lines.largest(q) <= exact.largest(q) * (1 + 1e-4)
        back = exact.smallest(q)
        assert back * (1 - 1e-4) <= lines.smallest(q) <= back * (1 + 1e-10)


# Lines.


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 0.5)), min_size=1), PROBABILITIES)
def test_the_lowest_line_counts(pairs: list[tuple[float, float]], q: float) -> None:
    lowest = min(min(math.exp(e) * q + d for e, d in pairs), 1.0)
    assert lowest <= ApproximateCurve(pairs).largest(q) <= lowest * (1 + 2e-12)


@pytest.mark.parametrize("pairs", [[], [(-0.1, 0.0)], [(0.1, 1.1)], [(math.nan, 0.1)]])
def test_what_is_no_profile(pairs: list[tuple[float, float]]) -> None:
    with pytest.raises(InvalidInput):
        ApproximateCurve(pairs)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_probabilities_outside_are_refused(wrong: float) -> None:
    for curve in (RenyiCurve(5, 0.3), GaussianCurve(0.5), ApproximateCurve([(0.1, 0.1)])):
        with pytest.raises(InvalidInput):
            curve.largest(wrong)
        with pytest.raises(InvalidInput):
            curve.smallest(wrong)
