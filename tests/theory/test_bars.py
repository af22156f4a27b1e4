"""Error bars: their equations in high precision, and the theorem itself by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.theory.bars import (
    cantelli_bar,
    deviation_bar,
    mean_bar,
    mean_half_width,
    units_for_half_width,
)

TAILS = st.floats(1e-6, 0.9)


def kl(v: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        p, q = mpmath.mpf(v), mpmath.mpf(mu)
        zero = p * mpmath.log(p / q) if p else mpmath.mpf(0)
        one = (1 - p) * mpmath.log((1 - p) / (1 - q)) if p < 1 else mpmath.mpf(0)
        return zero + one


def inside(value: float, bar: tuple[float | None, float | None]) -> bool:
    low, high = bar
    return (low is None or low <= value) and (high is None or value <= high)


def binomial_law(units: int, p: Fraction) -> dict[Fraction, Fraction]:
    return {
        Fraction(i, units): math.comb(units, i) * p**i * (1 - p) ** (units - i)
        for i in range(units + 1)
    }


def cells(law: dict[Fraction, Fraction], grid: list[Fraction], tail: Fraction) -> list[int]:
    """The indices of the grid points that keep the promise, decided exactly."""
    kept = []
    for i, point in enumerate(grid):
        top = i == len(grid) - 1
        below = 1 if top else sum(p for y, p in law.items() if y <= point)
        above = 1 if i == 0 else sum(p for y, p in law.items() if y > grid[i - 1])
        if below > tail and above > tail:
            kept.append(i)
    return kept


def edges(grid: list[Fraction], i: int) -> tuple[float | None, float | None]:
    """The floats just outside the cell, so that exact grids can be used."""
    lower = math.nextafter(float(grid[i - 1]), -math.inf) if i else None
    upper = math.nextafter(float(grid[i]), math.inf) if i < len(grid) - 1 else None
    return lower, upper


@pytest.mark.parametrize("units", [1, 2, 7, 40])
@pytest.mark.parametrize("tail", [Fraction(1, 4), Fraction(1, 20), Fraction(1, 100)])
@pytest.mark.parametrize("steps", [3, 10])
def test_a_kept_promise_puts_the_mean_inside_the_bar(
    units: int, tail: Fraction, steps: int
) -> None:
    grid = [Fraction(i, steps) for i in range(steps + 1)]
    for j in range(51):
        mean = Fraction(j, 50)
        for i in cells(binomial_law(units, mean), grid, tail):
            bar = mean_bar(*edges(grid, i), units, float(tail), float(tail))
            assert inside(float(mean), bar), (units, tail, mean, i)


def test_terms_need_not_be_alike_nor_coins() -> None:
    # Independent terms in [0, 1] with different laws: their average has mean 0.425.
    terms: list[dict[Fraction, Fraction]] = [
        {Fraction(0): Fraction(1, 2), Fraction(1, 2): Fraction(1, 4), Fraction(1): Fraction(1, 4)},
        {Fraction(1, 5): Fraction(1)},
        {Fraction(0): Fraction(9, 10), Fraction(1): Fraction(1, 10)},
        {Fraction(0): Fraction(1, 20), Fraction(1): Fraction(19, 20)},
        {Fraction(1, 2): Fraction(1)},
    ]
    law: dict[Fraction, Fraction] = {}
    for outcome in itertools.product(*(term.items() for term in terms)):
        value = sum((y for y, _ in outcome), Fraction(0)) / len(terms)
        law[value] = law.get(value, Fraction(0)) + math.prod(
            (p for _, p in outcome), start=Fraction(1)
        )
    mean = sum(y * p for y, p in law.items())
    grid = [Fraction(i, 40) for i in range(41)]
    for tail in (Fraction(1, 3), Fraction(1, 4), Fraction(1, 50)):
        for i in cells(law, grid, tail):
            assert inside(float(mean), mean_bar(*edges(grid, i), 5, float(tail), float(tail)))


def test_bars_from_the_answer_itself_would_be_wrong() -> None:
    # theory.md §8: step 0.05, 400 units, tail 1/4, answer 0.05, true mean 0.02.
    grid = [Fraction(i, 20) for i in range(21)]
    assert 1 in cells(binomial_law(400, Fraction(1, 50)), grid, Fraction(1, 4))
    assert inside(0.02, mean_bar(0.0, 0.05, 400, 0.25, 0.25))
    assert not inside(0.02, mean_bar(0.05, 0.05, 400, 0.25, 0.25))


@pytest.mark.parametrize(
    "v", [0.0, 5e-324, 1e-300, 1e-18, 1e-9, 1e-3, 0.3, 0.5, 0.9, 1 - 1e-9, 1 - 2**-53, 1.0]
)
@pytest.mark.parametrize("units", [1, 3, 400, 10**6, 10**12])
@pytest.mark.parametrize("tail", [1e-300, 1e-6, 0.25, 0.9])
def test_the_mean_bar_solves_its_equation_outward(v: float, units: int, tail: float) -> None:
    budget = mpmath.log(1 / mpmath.mpf(tail)) / units
    low, high = mean_bar(v, v, units, tail, tail)
    assert low is not None
    assert high is not None
    assert 0 <= low <= v <= high <= 1
    assert high == 1 or kl(v, high) >= budget * (1 - mpmath.mpf(10) ** -30)
    assert low == 0 or kl(v, low) >= budget * (1 - mpmath.mpf(10) ** -30)
    # … and no further than it has to be: a little closer is inside the interval.
    if high - v > 4e-16:
        assert kl(v, v + (high - v) * (1 - 1e-9) - 2.3e-16) <= budget
    if v > 1e-250 and v - low > 4e-16 * v:
        assert kl(v, v - (v - low) * (1 - 1e-9) + 2.3e-16 * v) <= budget


def test_closed_forms_at_the_ends() -> None:
    low, high = mean_bar(1.0, 1.0, 400, 0.25, 0.25)
    assert high == 1.0
    assert low == pytest.approx(0.25 ** (1 / 400), rel=1e-12)
    assert mean_bar(0.0, 0.0, 400, 0.25, 0.25)[1] == pytest.approx(1 - 0.25 ** (1 / 400), rel=1e-11)


@given(st.floats(0, 1), st.integers(1, 10**6), TAILS, TAILS)
def test_mean_bars_mirror(v: float, units: int, one: float, two: float) -> None:
    v = round(v, 6)
    low, high = mean_bar(v, v, units, one, two)
    mirror_low, mirror_high = mean_bar(1 - v, 1 - v, units, two, one)
    assert low is not None
    assert high is not None
    assert mirror_low is not None
    assert mirror_high is not None
    assert math.isclose(low, 1 - mirror_high, abs_tol=1e-9)
    assert math.isclose(high, 1 - mirror_low, abs_tol=1e-9)


@given(st.floats(-50, 50), st.floats(0.01, 90), st.floats(0, 1), st.integers(1, 10**4), TAILS)
def test_other_ranges_are_scaled(
    low: float, span: float, v: float, units: int, tail: float
) -> None:
    high = low + span
    edge = low + span * v
    one = mean_bar(edge, edge, units, tail, tail, low, high)
    two = mean_bar(v, v, units, tail, tail)
    for scaled, plain in zip(one, two, strict=True):
        assert scaled is not None
        assert plain is not None
        assert low <= scaled <= high
        assert scaled == pytest.approx(low + span * plain, abs=1e-6 * span)


def test_an_edge_outside_the_range_says_nothing_more_than_the_range() -> None:
    assert mean_bar(-1.0, 2.0, 100, 0.25, 0.25) == (0.0, 1.0)
    assert mean_bar(-2.0, -1.0, 100, 0.25, 0.25) == mean_bar(0.0, 0.0, 100, 0.25, 0.25)


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 20)), min_size=1, max_size=6),
    st.sampled_from([Fraction(1, 100), Fraction(1, 4), Fraction(2, 5)]),
)
def test_a_kept_promise_puts_the_mean_inside_the_moment_bars(
    atoms: list[tuple[int, int]], tail: Fraction
) -> None:
    total = sum(w for _, w in atoms)
    law: dict[Fraction, Fraction] = {}
    for y, w in atoms:
        law[Fraction(y)] = law.get(Fraction(y), Fraction(0)) + Fraction(w, total)
    mean = sum((y * p for y, p in law.items()), Fraction(0))
    mad = float(sum((abs(y - mean) * p for y, p in law.items()), Fraction(0)))
    sd = math.sqrt(sum(((y - mean) ** 2 * p for y, p in law.items()), Fraction(0)))
    grid = [Fraction(i) for i in range(-21, 22, 3)]
    for i in cells(law, grid, tail):
        lower, upper = edges(grid, i)
        rho = float(tail)
        assert inside(float(mean), deviation_bar(lower, upper, math.nextafter(mad, 99), rho, rho))
        assert inside(float(mean), cantelli_bar(lower, upper, math.nextafter(sd, 99), rho, rho))


def test_the_moment_bars_cannot_be_improved() -> None:
    # v with probability a little above ρ, and one other value: both inequalities are nearly equal.
    for rho in (0.01, 0.25, 0.4):
        p = rho * 1.0001  # D[φ ≤ 0] = p > ρ, otherwise φ = 1
        mean, sd, mad = 1 - p, math.sqrt(p * (1 - p)), 2 * p * (1 - p)
        cantelli, deviation = (
            cantelli_bar(None, 0.0, sd, rho, rho),
            deviation_bar(None, 0.0, mad, rho, rho),
        )
        for bar in (cantelli, deviation):
            assert bar[1] is not None
            assert mean <= bar[1] <= mean * 1.001


def test_a_missing_edge_has_no_bound() -> None:
    for bar in (
        mean_bar(None, None, 10, 0.25, 0.25),
        cantelli_bar(None, None, 1.0, 0.25, 0.25),
        deviation_bar(None, None, 1.0, 0.25, 0.25),
    ):
        assert bar == (None, None)
    assert mean_bar(0.5, None, 10, 0.25, 0.25)[1] is None
    assert cantelli_bar(0.0, 0.0, 1e299, 1e-9, 1e-9) == (None, None)  # beyond what a float holds
    assert cantelli_bar(None, 0.5, 1.0, 0.25, 0.25)[0] is None


def test_each_tail_serves_its_own_side() -> None:
    for low, high in (
        (mean_bar(0.4, 0.4, 50, 0.25, 0.01), mean_bar(0.4, 0.4, 50, 0.01, 0.25)),
        (cantelli_bar(0.4, 0.4, 1, 0.25, 0.01), cantelli_bar(0.4, 0.4, 1, 0.01, 0.25)),
        (deviation_bar(0.4, 0.4, 1, 0.25, 0.01), deviation_bar(0.4, 0.4, 1, 0.01, 0.25)),
    ):
        assert low[0] is not None
        assert high[0] is not None
        assert low[1] is not None
        assert high[1] is not None
        assert low[0] < high[0]  # a small upper tail says little about how small the mean may be
        assert low[1] < high[1]


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: mean_bar(0.2, 0.1, 10, 0.25, 0.25), "edges"),
        (lambda: cantelli_bar(0.2, 0.1, 1.0, 0.25, 0.25), "edges"),
        (lambda: mean_bar(0.1, 0.2, 0, 0.25, 0.25), "units"),
        (lambda: mean_bar(0.1, 0.2, 10, 0.0, 0.25), "tail"),
        (lambda: mean_bar(0.1, 0.2, 10, 0.25, 1.0), "tail"),
        (lambda: mean_bar(0.1, math.nan, 10, 0.25, 0.25), "edge"),
        (lambda: mean_bar(0.1, 0.2, 10, 0.25, 0.25, 1.0, 1.0), "range"),
        (lambda: cantelli_bar(0.1, 0.2, -1.0, 0.25, 0.25), "sd"),
        (lambda: deviation_bar(0.1, 0.2, math.inf, 0.25, 0.25), "mad"),
        (lambda: mean_half_width(0, 0.25), "units"),
        (lambda: units_for_half_width(0.0, 0.25), "width"),
    ],
)
def test_what_has_no_meaning_is_refused(call: object, parameter: str) -> None:
    assert callable(call)
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.parameter == parameter


@given(st.integers(1, 10**7), TAILS, st.floats(0, 1))
def test_no_bar_reaches_further_than_the_half_width(units: int, tail: float, v: float) -> None:
    width = mean_half_width(units, tail)
    low, high = mean_bar(v, v, units, tail, tail)
    assert low is not None
    assert high is not None
    assert max(v - low, high - v) <= width * (1 + 1e-9) + 2.3e-16
    assert width <= math.sqrt(math.log(1 / tail) / (2 * units)) * (1 + 1e-9)


@pytest.mark.parametrize(("units", "tail"), [(1, 0.25), (3, 1e-6), (400, 0.25), (10**8, 0.01)])
def test_some_bar_reaches_the_half_width(units: int, tail: float) -> None:
    width = mean_half_width(units, tail)
    centre = 0.5 - 2 * width / 3
    spread = [max(0.0, min(1.0, centre + width * i / 200)) for i in range(-200, 201)]
    reach = 0.0
    for v in spread:
        high = mean_bar(v, v, units, tail, tail)[1]
        assert high is not None
        reach = max(reach, high - v)
    assert reach >= width * (1 - 1e-4)


@given(st.floats(1e-5, 0.95), TAILS)
def test_the_smallest_number_of_units_passes_and_one_less_fails(width: float, tail: float) -> None:
    units = units_for_half_width(width, tail)
    assert mean_half_width(units, tail) <= width
    assert units == 1 or mean_half_width(units - 1, tail) > width


@given(st.integers(1, 10**6), TAILS, TAILS)
def test_half_widths_shrink_with_units_and_with_the_tail(
    units: int, one: float, two: float
) -> None:
    small, large = sorted((one, two))
    assert mean_half_width(units, large) <= mean_half_width(units, small) * (1 + 1e-9)
    assert mean_half_width(units + 1, small) <= mean_half_width(units, small) * (1 + 1e-9)
