"""Error bars and quantile intervals: their equations in high precision, the rest by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.theory.bars import (
    Bar,
    cantelli_bar,
    deviation_bar,
    in_quantile_interval,
    is_interior_point,
    mean_bar,
    mean_half_width,
    median_levels,
    units_for_half_width,
    verdict_bar,
)

TAILS = st.floats(1e-6, 0.9)


def kl(v: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        p, q = mpmath.mpf(v), mpmath.mpf(mu)
        zero = p * mpmath.log(p / q) if p else mpmath.mpf(0)
        one = (1 - p) * mpmath.log((1 - p) / (1 - q)) if p < 1 else mpmath.mpf(0)
        return zero + one


def inside(value: float, bar: Bar) -> bool:
    low, high = bar
    return (low is None or low <= value) and (high is None or value <= high)


def ends(bar: Bar) -> tuple[float, float]:
    """Of a bar that has both."""
    assert None not in bar
    return bar[0] or 0.0, bar[1] or 0.0


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
def test_a_kept_promise_puts_the_mean_inside_the_bar(units: int) -> None:
    for steps, tail in itertools.product((3, 10), (Fraction(1, 4), Fraction(1, 100))):
        grid = [Fraction(i, steps) for i in range(steps + 1)]
        for mean in (Fraction(j, 25) for j in range(26)):
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


@pytest.mark.parametrize("units", [1, 3, 400, 10**6, 10**12])
def test_the_mean_bar_solves_its_equation_outward(units: int) -> None:
    values = [0.0, 5e-324, 1e-300, 1e-18, 1e-9, 1e-3, 0.3, 0.5, 0.9, 1 - 1e-9, 1 - 2**-53, 1.0]
    for v, tail in itertools.product(values, (1e-300, 1e-6, 0.25, 0.9)):
        budget = mpmath.log(1 / mpmath.mpf(tail)) / units
        low, high = ends(mean_bar(v, v, units, tail, tail))
        assert 0 <= low <= v <= high <= 1
        assert high == 1 or kl(v, high) >= budget * (1 - mpmath.mpf(10) ** -30)
        assert low == 0 or kl(v, low) >= budget * (1 - mpmath.mpf(10) ** -30)
        # … and no further than it has to be: a little closer is inside the interval.
        if high - v > 4e-16:
            assert kl(v, v + (high - v) * (1 - 1e-9) - 2.3e-16) <= budget
        if v > 1e-250 and v - low > 4e-16 * v:
            assert kl(v, v - (v - low) * (1 - 1e-9) + 2.3e-16 * v) <= budget


@given(st.floats(-50, 50), st.floats(0.01, 90), st.floats(0, 1), st.integers(1, 10**4), TAILS)
def test_other_ranges_are_scaled(
    low: float, span: float, v: float, units: int, tail: float
) -> None:
    high = low + span
    edge = low + span * v
    one = mean_bar(edge, edge, units, tail, tail, low, high)
    two = mean_bar(v, v, units, tail, tail)
    for scaled, plain in zip(ends(one), ends(two), strict=True):
        assert low <= scaled <= high
        assert scaled == pytest.approx(low + span * plain, abs=1e-6 * span)


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
        for bar in (cantelli_bar(None, 0.0, sd, rho, rho), deviation_bar(None, 0.0, mad, rho, rho)):
            assert mean <= (bar[1] or math.inf) <= mean * 1.001


def test_a_missing_edge_has_no_bound() -> None:
    for bar in (
        mean_bar(None, None, 10, 0.25, 0.25),
        cantelli_bar(None, None, 1.0, 0.25, 0.25),
        deviation_bar(None, None, 1.0, 0.25, 0.25),
    ):
        assert bar == (None, None)
    assert mean_bar(0.5, None, 10, 0.25, 0.25)[1] is None
    assert mean_bar(-1.0, 2.0, 100, 0.25, 0.25) == (0.0, 1.0)  # edges outside the range
    assert mean_bar(-2.0, -1.0, 100, 0.25, 0.25) == mean_bar(0.0, 0.0, 100, 0.25, 0.25)
    assert cantelli_bar(0.0, 0.0, 1e299, 1e-9, 1e-9) == (None, None)  # beyond what a float holds
    assert cantelli_bar(None, 0.5, 1.0, 0.25, 0.25)[0] is None


@pytest.mark.parametrize(("build", "size"), [(mean_bar, 50), (cantelli_bar, 1), (deviation_bar, 1)])
def test_each_tail_serves_its_own_side(build: Callable[..., Bar], size: int) -> None:
    """A small upper tail says little about how small the mean may be."""
    one, two = ends(build(0.4, 0.4, size, 0.25, 0.01)), ends(build(0.4, 0.4, size, 0.01, 0.25))
    assert one[0] < two[0]
    assert one[1] < two[1]


def test_what_has_no_meaning_is_refused() -> None:
    quarters = (0.25, 0.25)
    for build, arguments, parameter in (
        (mean_bar, (0.2, 0.1, 10, *quarters), "edges"),
        (cantelli_bar, (0.2, 0.1, 1.0, *quarters), "edges"),
        (mean_bar, (0.1, 0.2, 0, *quarters), "units"),
        (mean_bar, (0.1, 0.2, 10, 0.0, 0.25), "tail"),
        (mean_bar, (0.1, 0.2, 10, 0.25, 1.0), "tail"),
        (mean_bar, (0.1, math.nan, 10, *quarters), "edge"),
        (mean_bar, (0.1, 0.2, 10, *quarters, 1.0, 1.0), "range"),
        (cantelli_bar, (0.1, 0.2, -1.0, *quarters), "sd"),
        (deviation_bar, (0.1, 0.2, math.inf, *quarters), "mad"),
        (mean_half_width, (0, 0.25), "units"),
        (units_for_half_width, (0.0, 0.25), "width"),
        (in_quantile_interval, (0, [math.nan], 0, 1), "values"),
        (in_quantile_interval, (math.nan, [0], 0, 1), "v"),
        (in_quantile_interval, (0, [], 0, 1), "values"),
        (in_quantile_interval, (0, [0], 0.5, 0.5), "levels"),
        (in_quantile_interval, (0, [0], -0.1, 0.5), "levels"),
        (in_quantile_interval, (0, [0], 0.5, 1.1), "levels"),
        (in_quantile_interval, (0, [0], 0.0, math.inf), "b"),
        (median_levels, (0,), "alpha"),
        (median_levels, (Fraction(9, 8),), "alpha"),
    ):
        with pytest.raises(InvalidInput) as caught:
            build(*arguments)
        assert caught.value.parameter == parameter
    for weights in ([1, 2], [0], np.array([0.5])):
        with pytest.raises(InvalidInput, match="weights"):
            in_quantile_interval(0, [0], 0, 1, weights=weights)
    with pytest.raises(InvalidInput, match="weights"):
        in_quantile_interval(0, [0, 1], 0, 1, weights=[2, -1])


@given(st.integers(1, 10**7), TAILS, st.floats(0, 1))
def test_no_bar_reaches_further_than_the_half_width(units: int, tail: float, v: float) -> None:
    width = mean_half_width(units, tail)
    low, high = ends(mean_bar(v, v, units, tail, tail))
    assert max(v - low, high - v) <= width * (1 + 1e-9) + 2.3e-16
    assert width <= math.sqrt(math.log(1 / tail) / (2 * units)) * (1 + 1e-9)


@pytest.mark.parametrize(("units", "tail"), [(1, 0.25), (3, 1e-6), (400, 0.25), (10**8, 0.01)])
def test_some_bar_reaches_the_half_width(units: int, tail: float) -> None:
    width = mean_half_width(units, tail)
    centre = 0.5 - 2 * width / 3
    spread = [max(0.0, min(1.0, centre + width * i / 200)) for i in range(-200, 201)]
    reach = max(ends(mean_bar(v, v, units, tail, tail))[1] - v for v in spread)
    assert reach >= width * (1 - 1e-4)


@given(st.floats(1e-5, 0.95), TAILS)
def test_the_smallest_number_of_units_passes_and_one_less_fails(width: float, tail: float) -> None:
    units = units_for_half_width(width, tail)
    assert mean_half_width(units, tail) <= width
    assert units == 1 or mean_half_width(units - 1, tail) > width


# What a verdict says of the mean.


Claim = Literal["at least", "at most"]


def tail_of(mean: float, units: int, guess: float, claim: Claim) -> float:
    """D[φ ≥ v] or D[φ ≤ v] for the share of heads in so many flips."""
    shares = [k / units for k in range(units + 1)]
    within = [share >= guess if claim == "at least" else share <= guess for share in shares]
    chances = (math.comb(units, k) * mean**k * (1 - mean) ** (units - k) for k in range(units + 1))
    return sum(chance for chance, counted in zip(chances, within, strict=True) if counted)


def allows(
    bar: Callable[..., Bar],
    units: int,
    mean: float,
    guess: float,
    claim: Claim,
    tails: tuple[float, float],
) -> bool:
    """Whether the bar of every verdict that may be said under this mean has the mean inside."""
    found = tail_of(mean, units, guess, claim)
    said = {True: found > tails[0] * (1 + 1e-9), False: found < tails[1] * (1 - 1e-12)}
    return all(
        inside(mean, bar(guess, claim, confirmed, units, *tails))
        for confirmed, may in said.items()
        if may
    )


@settings(max_examples=200)
@given(
    st.integers(1, 40),
    st.floats(0.01, 0.99),
    st.floats(0.02, 0.98),
    st.sampled_from(["at least", "at most"]),
    st.sampled_from([(0.05, 0.25), (1e-3, 0.9), (1e-6, 1 - 1e-6)]),
)
def test_no_mean_that_a_verdict_allows_is_excluded(
    units: int, mean: float, guess: float, claim: Claim, tails: tuple[float, float]
) -> None:
    assert allows(verdict_bar, units, mean, guess, claim, tails)


def test_the_bars_of_verdicts_are_scaled_to_other_ranges() -> None:
    low, _ = verdict_bar(0.7, "at least", True, 500, 0.01, 0.5)
    wide, top = verdict_bar(7.0, "at least", True, 500, 0.01, 0.5, 0.0, 10.0)
    assert wide == pytest.approx(10 * (low or 0.0))
    assert top == 10.0


# Quantile intervals, by brute force over small multisets.

LEVELS = sorted({Fraction(i, n) for n in range(1, 5) for i in range(n + 1)})
PAIRS = [(a, b) for a in LEVELS for b in LEVELS if a < b]
MULTISETS = [
    values
    for size in range(1, 5)
    for values in itertools.combinations_with_replacement(range(4), size)
]
HALVES = [Fraction(i, 2) for i in range(-1, 8)]


def by_definition(v: Fraction | float, values: tuple[int, ...], a: Fraction, b: Fraction) -> bool:
    at_most = Fraction(sum(y <= v for y in values), len(values))
    below = Fraction(sum(y < v for y in values), len(values))
    return at_most > a and below < b


def test_membership_is_the_definition() -> None:
    """A weight is a number of repetitions."""
    for values in MULTISETS:
        distinct = sorted(set(values), reverse=True)
        counts = [values.count(v) for v in distinct]
        for a, b in PAIRS:
            for v in HALVES:
                expected = by_definition(v, values, a, b)
                assert in_quantile_interval(v, values, a, b) is expected
                weighted = in_quantile_interval(v, distinct, a, b, weights=counts)
                assert weighted is expected


def test_projection_upwards_turns_the_promise_into_the_cell() -> None:
    # What bars.py rests on: v = T[i] is in qi(a, b) of the projected values just when
    # D[φ ≤ T[i]] > a (or i is the top) and D[φ > T[i−1]] > 1 − b (or i is the bottom).
    grid = (Fraction(1, 2), Fraction(1), Fraction(5, 2))
    for values in MULTISETS:
        projected = [next((p for p in grid if p >= y), grid[-1]) for y in values]
        for (a, b), i in itertools.product(PAIRS, range(3)):
            share = Fraction(1, len(values))
            below = i == 2 or sum(y <= grid[i] for y in values) * share > a
            above = i == 0 or sum(y > grid[i - 1] for y in values) * share > 1 - b
            assert in_quantile_interval(grid[i], projected, a, b) is (below and above)


def test_comparisons_are_exact_across_types() -> None:
    assert in_quantile_interval(3, list(range(1, 11)), 0.3, 1)  # the float is a little below 3/10
    assert not in_quantile_interval(3, list(range(1, 11)), Fraction(3, 10), 1)
    third = np.array([0.1], dtype=np.float32)  # 0.1000000015
    assert not in_quantile_interval(0.1, third, 0, 1)
    assert in_quantile_interval(float(third[0]), third, 0, 1)
    big = np.array([2**53 + 1])
    assert not in_quantile_interval(float(2**53), big, 0, 1)
    assert in_quantile_interval(2**53 + 1, big, 0, 1)
    assert in_quantile_interval(np.int64(2**53 + 1), big, 0, 1)
    assert not in_quantile_interval(2**53 + 1, [float(2**53)], 0, 1)
    assert in_quantile_interval(1, np.array([True, False]), 0, 1)
    assert in_quantile_interval(np.float64(0.5), [Fraction(1, 2)], 0, 1)
    assert in_quantile_interval(np.inf, [-np.inf, 0.0, np.inf], 0.5, 1)
    assert in_quantile_interval(1, [0, 1, 2], 0, 1, weights=np.array([0, 1, 0]))
    assert not in_quantile_interval(2, [0, 1, 2], 0, 1, weights=np.array([0, 1, 0]))


def test_an_interior_point_is_a_1_approximate_median() -> None:
    for values in MULTISETS:
        for v in HALVES:
            assert is_interior_point(v, values) is (min(values) <= v <= max(values))
