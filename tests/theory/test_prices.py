"""Flat prices: against integrals in 30 digits, and against the exact laws of small mechanisms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf, quad

from holdfast.errors import InvalidInput
from holdfast.theory.coins import (
    exponential_price,
    gaussian_price,
    laplace_coin,
    laplace_price,
    probit_coin,
)
from holdfast.theory.divergence import divergence
from tests.theory.finite import exponential_law, neighbours

ORDERS = (1.05, 1.5, 2.0, 8.0, 40.0)


def integral(order: float, log: Callable[[mpf], mpf], shift: float, points: list[float]) -> mpf:
    """D_a of a density, given by its logarithm, from its own shift, by quadrature."""
    with mp.workdps(30):
        moment = quad(lambda x: mp.exp(order * log(x) + (1 - order) * log(x - shift)), points)
        return mp.log(moment) / (order - 1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("scale", [0.7, 3.0, 50.0])
@pytest.mark.parametrize("shift", [0.5, 1.0])
def test_gaussian_and_laplace_prices_are_their_integrals(
    order: float, scale: float, shift: float
) -> None:
    with mp.workdps(30):
        gaussian_top, laplace_top = -mp.log(scale * mp.sqrt(2 * mp.pi)), -mp.log(2 * scale)

    def gaussian(x: mpf) -> mpf:
        return gaussian_top - ((x / scale) ** 2) / 2

    def laplace(x: mpf) -> mpf:
        return laplace_top - abs(x) / scale

    centre = -(order - 1) * shift  # where the integrand is largest
    wide = [centre + 4 * i * scale for i in range(-4, 5)]
    exact = integral(order, gaussian, shift, wide)
    assert 0 <= gaussian_price(order, scale, shift) / float(exact) - 1 < 1e-9
    wide = [-60 * scale, -10 * scale, 0, shift, shift + 10 * scale, shift + 60 * scale]
    exact = integral(order, laplace, shift, wide)
    assert 0 <= laplace_price(order, scale, shift) / float(exact) - 1 < 1e-9


@given(st.floats(1.01, 1e3), st.floats(1e-3, 1e4))
def test_the_laplace_price_is_rounded_up_without_cancellation(order: float, scale: float) -> None:
    with mp.workdps(60):
        a, x = mpf(order), mpf(0.5) / mpf(scale)
        exact = mp.log((a * mp.exp((a - 1) * x) + (a - 1) * mp.exp(-a * x)) / (2 * a - 1)) / (a - 1)
        found = laplace_price(order, scale)
        assert exact <= found <= float(x) * (1 + 1e-11)
        assert float(x * a) > 600 or found <= exact * (1 + 1e-11)


@given(st.sampled_from([gaussian_price, laplace_price]), st.floats(1.1, 50), st.floats(0.5, 100))
def test_half_a_count_costs_at_most_a_whole_one(
    price: Callable[..., float], order: float, noise: float
) -> None:
    assert price(order, noise) <= price(order, noise, shift=1.0)
    assert price(order, noise) == price(order, noise, shift=0.5)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("noise", [0.5, 2.0, 30.0])
def test_a_verdict_costs_no_more_than_its_noise(order: float, noise: float) -> None:
    """Coins made of noise are post-processings of it; the floor only helps."""
    for floor in (0.01, 1e-9):
        assert probit_coin(noise, floor).price(order) <= gaussian_price(order, noise)
        assert laplace_coin(noise, floor).price(order) <= laplace_price(order, noise)
        whole = laplace_price(order, noise, shift=1.0)
        assert laplace_coin(noise, floor).neighbour_price(order) <= whole


# Bounded range.


@settings(max_examples=300)
@given(st.floats(1.01, 1e3), st.floats(1e-3, 10), st.floats(0.001, 0.999))
def test_bounded_range_costs_an_eighth(order: float, width: float, weight: float) -> None:
    """Two outcomes whose log ratios differ by η: D ≤ a·η²/8 (Cesar & Rogers 2021)."""
    q = weight
    p = q * math.exp(width) / (q * math.exp(width) + 1 - q)
    limit = exponential_price(order, width, shift=1.0)
    assert divergence(order, p, q) <= limit * (1 + 1e-9)
    assert divergence(order, q, p) <= limit * (1 + 1e-9)


def test_the_eighth_is_reached() -> None:
    order, width = 2.0, 0.01
    best = max(
        divergence(order, q * math.exp(width) / (q * math.exp(width) + 1 - q), q)
        for q in (0.49, 0.495, 0.5, 0.505)
    )
    assert best > 0.999 * exponential_price(order, width, shift=1.0)


def law_divergence(order: float, one: Sequence[float], two: Sequence[float]) -> float:
    terms = [p**order * q ** (1 - order) for p, q in zip(one, two, strict=True)]
    return math.log(math.fsum(terms)) / (order - 1)


def worst_exponential(price: Callable[..., float] = exponential_price) -> float:
    """The largest divergence over all neighbouring small datasets, as a share of the price."""
    worst = 0.0
    for m, epsilon in itertools.product((1, 2, 3, 4), (0.2, 1.0, 3.0)):
        for one, two in neighbours(range(4), m):
            laws = [exponential_law(data, range(4), epsilon) for data in (one, two)]
            for order in (1.5, 8.0):
                found = law_divergence(order, *laws)
                worst = max(worst, found / price(order, epsilon, shift=1.0))
    return worst


def test_the_exponential_mechanism_keeps_its_price_between_all_neighbours() -> None:
    """The centred price is checked in the transfer tests; this is the neighbouring one."""
    assert 0.5 < worst_exponential() < 1


@pytest.mark.parametrize("price", [gaussian_price, laplace_price, exponential_price])
def test_what_is_refused(price: Callable[..., float]) -> None:
    for order, parameter in ((1.0, 1.0), (2.0, 0.0), (2.0, -1.0), (2.0, math.nan), (1e5, 1.0)):
        with pytest.raises(InvalidInput):
            price(order, parameter)
