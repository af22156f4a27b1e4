"""Both directions at once: formulas in 50 digits, the worst laws there are, and whole tiny worlds.

`variant` is the same bound from its definition, coarse and in plain floats, with every ingredient
an argument: so that wrong versions can be made, and shown to be wrong (tests/mutants/theory.py).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf, workdps

from holdfast.errors import InvalidInput
from holdfast.theory import transfer
from holdfast.theory.transfer import conjugate, paired_mass, paired_tail
from tests.theory import checker
from tests.theory.checker import Real, phi, phi_slope
from tests.theory.test_transfer import SLACK, cases, extremes

Mass = Callable[[float, float, float, float], float]  # what `paired_mass` is
Tail = Callable[[float, float, float, float], float]  # what `paired_tail` is
At = tuple[float, float, float, float]  # order, budget, tail, failure

SEARCH = 1e-5  # by so much the search for the best slopes may miss them
ORDERS = st.floats(-2, 3).map(lambda x: 1 + 10**x)
BUDGETS = st.floats(-4, 1).map(lambda x: 10**x)
TAILS = st.one_of(st.floats(0.01, 0.99), st.floats(-9, -1).map(lambda x: 10**x))
FAILURES = st.floats(-6, -0.01).map(lambda x: 10**x)
SETTINGS: list[At] = [
    (order, budget, tail, failure)
    for order, budget in ((1.5, 0.1), (2.0, 0.5), (8.0, 0.02), (25.0, 0.1335), (300.0, 0.01))
    for tail in (1e-6, 0.01, 0.25, 0.7)
    for failure in (1e-4, 0.05, 0.4)
]


# The formulas.


def renyi(a: Real, p: list[Real], q: list[Real]) -> Real:
    """E_Q[(dP/dQ)ᵃ]."""
    return sum(x**a * y ** (1 - a) for x, y in zip(p, q, strict=True))


@given(st.floats(1.01, 1e4), st.floats(-14, 14), st.sampled_from([-1, 1]))
def test_the_conjugate_is_rounded_up_and_accurate(order: float, size: float, sign: int) -> None:
    slope = sign * math.exp(size) * order
    found = conjugate(order, slope)
    with workdps(50):
        exact = checker.conjugate(order, slope)
        if math.isinf(found):
            assert exact > mp.exp(500)
        else:
            assert 0 < (mpf(found) - exact) / abs(exact) < 2e-11


def formulas(
    slope: Callable[[float, float], float] = transfer._slope,
    touch: Callable[[float, float], float] = transfer._conjugate,
) -> float:
    """The largest relative error of φ′(eᵘ) and of φ*(φ′(eᵘ)), for u up to where they overflow."""
    worst_error = 0.0
    sizes = [s * 10.0**e for e in range(-9, 3) for s in (-1, 1, -3, 3)]
    with workdps(100):  # φ is tiny where φ′ is small
        for order, size in itertools.product((1.01, 2.0, 8.0, 300.0, 1e4), sizes):
            a, u = mpf(order), mpf(size / order)
            exact = mp.diff(lambda t, a=a: phi(a, mp.exp(t)), u) / mp.exp(u)
            conjugated = mp.exp(u) * exact - phi(a, mp.exp(u))
            pairs = ((slope, exact), (touch, conjugated))
            errors = [abs(mpf(f(order, size / order)) / value - 1) for f, value in pairs]
            worst_error = max(worst_error, *map(float, errors))
    return worst_error


def test_slopes_and_conjugates_keep_their_digits() -> None:
    assert formulas() < 2e-13


def test_the_conjugate_at_its_ends() -> None:
    assert conjugate(8, 0.0) == 0.0
    assert conjugate(8, 1e300) == math.inf  # rounded up as far as it goes
    assert -math.inf < conjugate(8, -1e300) < -1e20
    for slope in (1e-200, 1e-300, 5e-324):  # φ*(s) = s + O(s²), and never rounded down
        for order in (1.0001, 8.0, 1e4):
            assert slope <= conjugate(order, slope) <= max(slope * (1 + 1e-10), 1e-279)
            assert -slope <= conjugate(order, -slope) <= 0.0
    for order in (1.0, 0.5, 2e4, math.nan):
        with pytest.raises(InvalidInput, match="order"):
            conjugate(order, 1.0)


# The bound: no pair of laws exceeds it, and some reach it.


@settings(max_examples=200)
@given(ORDERS, *[st.floats(1e-4, 0.9999)] * 4)
def test_no_two_laws_exceed_the_bound(
    order: float, bad: float, bad_without: float, rare: float, often: float
) -> None:
    """P = (x, p − x, 1 − p), Q = (z, y − z, 1 − y), x = often·p, z = rare·y; R what they need."""
    with workdps(50):
        p, y, a = mpf(bad), mpf(bad_without), mpf(order)
        one = [p * mpf(often), p * (1 - mpf(often)), 1 - p]
        two = [y * mpf(rare), y * (1 - mpf(rare)), 1 - y]
        moments = [renyi(a, one, two), renyi(a, two, one)]
        budget = max(mpf(0), *(mp.log(moment) / (a - 1) for moment in moments))
        assert one[0] <= paired_mass(order, float(budget * (1 + mpf(10) ** -15)), rare, bad)


def extreme(order: float, budget: float, tail: float, failure: float) -> float:
    """The largest x that two such laws within the budget, z ≤ ρ·y, can have at p = β."""
    a, rent, p = order, math.expm1((order - 1) * budget), failure

    def fits(x: float, y: float) -> bool:
        one = np.array([x, p - x, 1 - p])
        two = np.array([tail * y, (1 - tail) * y, 1 - y])
        logs = np.minimum(600 / a, np.maximum(-600 / a, np.log(one / two)))  # cannot fit anyway
        forward = float((two * np.exp(a * logs)).sum()) - 1
        backward = float((one * np.exp(-a * logs)).sum()) - 1
        return max(forward, backward) <= rent

    def reached(shift: float) -> float:
        """At ln(y/(1 − y)) = ln(p/(1 − p)) + shift. x = ρ·p is the nearest to any y."""
        y = 1 / (1 + (1 - p) / p * math.exp(-shift))
        low, high = tail * p, p * (1 - 1e-12)
        if not fits(low, y):
            return 0.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle, y) else (low, middle)
        return low

    at, width = 0.0, 3.0
    for _ in range(5):
        at = max(np.linspace(at - width, at + width, 15), key=reached)
        width /= 5
    return reached(at)


@cache
def extreme_laws() -> tuple[tuple[At, float], ...]:
    telling = [at for at in SETTINGS if at[2] > 1e-3 and paired_mass(*at) < 0.95 * at[3]]
    return tuple((at, extreme(*at)) for at in telling)


def nearest_laws(mass: Mass = paired_mass) -> list[float]:
    """What the worst laws reach, as a share of the bound: 1 is broken."""
    return [reached / mass(*at) for at, reached in extreme_laws()]


def test_the_worst_laws_nearly_reach_the_bound() -> None:
    shares = nearest_laws()
    assert 0.9999 < max(shares) < SLACK
    assert np.median(shares) > 0.98


@cache
def analysts() -> tuple[tuple[At, float, float], ...]:
    """(order, budget, tail, P[bad]), the bound and E[1(bad)·S[ψ]], where the bound says much."""
    found = []
    for case, order in itertools.product(cases()[::3], (1.2, 8.0, 100.0)):
        some = extremes(case.facts(), 3)
        budget = case.looks * case.coin.price(order)
        for bad, sample in {*zip(some.bad.tolist(), some.sample.tolist(), strict=True)}:
            at = (order, budget, float(case.tail), bad)
            most = paired_mass(*at)
            if most < 0.95 * bad:
                found.append((at, most, sample))
    return tuple(found)


def nearest_analyst(mass: Mass = paired_mass) -> float:
    """E[1(bad)·S[ψ]] over the bound, at most: 1 is broken. Only those near the true bound."""
    return max(sample / mass(*at) for at, most, sample in analysts() if sample > 0.9 * most)


def test_no_analyst_of_a_tiny_world_exceeds_the_bound() -> None:
    assert len(analysts()) > 1_000
    assert 0.97 < nearest_analyst() < SLACK


# Rounding.


def one_step(patch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Has `paired_mass` use slopes of our choice."""

    def choose(log_step: float) -> None:
        patch.setattr(transfer, "_least", lambda function, low, high: function(log_step))

    return choose


@cache
def bound_at(at: At, log_step: float) -> Real:
    """(K − ν·β)/λ at ν = φ′(e⁻ᵘ), the λ that makes the condition an equality."""
    with workdps(50):
        order, budget, tail, failure = map(mpf, at)
        below = phi_slope(order, mp.exp(-mpf(math.exp(log_step) / at[0])))
        limit = (1 - tail) / tail * -checker.conjugate(order, below)

        def touch(u: Real) -> Real:
            """φ*(φ′(eᵘ))."""
            y = mp.exp(u)
            return y * phi_slope(order, y) - phi(order, y)

        low, high = mpf(0), mpf(1)
        while touch(high) < limit:
            high *= 2
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if touch(middle) < limit else (low, middle)
        above = phi_slope(order, mp.exp(high))
        return (mp.exp((order - 1) * budget) - 1 - below * failure) / (above - below)


def rounding(mass: Mass, choose: Callable[[float], None]) -> tuple[float, float]:
    """The least and the largest relative error at given slopes; those that say something."""
    errors = []
    for at, log_step in itertools.product(SETTINGS[::4], (-8.0, -2.3, 0.4, 2.0)):
        choose(log_step)
        exact = bound_at(at, log_step)
        if exact < at[3]:
            errors.append(float(mpf(mass(*at)) / exact - 1))
    assert len(errors) > 15
    return min(errors), max(errors)


def test_the_bound_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    least, largest = rounding(paired_mass, one_step(monkeypatch))
    assert least > 0
    assert largest < 1e-9


def sharpness(mass: Mass = paired_mass) -> tuple[float, float]:
    """Against the best slopes that 50 digits find: the least and the largest relative error."""
    errors = []
    for at in SETTINGS[::5]:
        exact = checker.paired(*at)
        errors.append(float(mpf(mass(*at)) / min(mpf(at[3]), exact) - 1))
    return min(errors), max(errors)


def test_the_search_finds_the_best_slopes() -> None:
    least, largest = sharpness()
    assert least >= 0
    assert largest < SEARCH


EXTREMES: list[At] = list(
    itertools.product(
        (1 + 1e-15, 1.0001, 1.01, 2.0, 1e4),
        (0.0, 5e-324, 1e-16, 0.1, 30.0, 1e5, 1e300),
        (5e-324, 1e-100, 1e-12, 0.5, 1 - 1e-12, math.nextafter(1, 0)),
        (5e-324, 1e-12, 0.05, math.nextafter(1, 0)),
    )
)


def test_extreme_arguments_give_true_bounds() -> None:
    """P = Q is possible, so no bound is below ρ·β; and none need be above β. Some in 50 digits."""
    for order, budget, tail, failure in EXTREMES:
        mass = paired_mass(order, budget, tail, failure)
        assert tail * failure <= mass <= failure
        assert 0 <= paired_tail(order, budget, tail, failure) < 1
    for at in random.Random(3).sample([x for x in EXTREMES if x[0] > 1.001], 12):
        if (at[0] - 1) * at[1] < 1e4:
            exact = checker.paired(*at)
            with workdps(50):
                assert mpf(paired_mass(*at)) >= min(mpf(at[3]), exact) * (1 - SEARCH)
        else:
            assert paired_mass(*at) == at[3]
    for tail, failure in itertools.product((0.01, 0.25, 0.9), (1e-6, 0.05, 0.9)):
        assert paired_mass(8.0, 0.0, tail, failure) == pytest.approx(tail * failure, rel=1e-3)


def test_arguments_outside_are_refused() -> None:
    good = {"order": 8.0, "budget": 0.1, "tail": 0.25, "failure": 0.05}
    outside = {"order": (1.0, 1.1e4), "budget": (-1e-9, math.nan)}
    for parameter, values in {**outside, "tail": (0.0, 1.0), "failure": (0.0, 1.0)}.items():
        for wrong in values:
            with pytest.raises(InvalidInput, match=parameter):
                paired_mass(**{**good, parameter: wrong})


# Its shape.


@given(ORDERS, BUDGETS, TAILS, FAILURES, st.floats(1, 3))
def test_more_tail_failure_or_budget_allows_more(
    order: float, budget: float, tail: float, failure: float, more: float
) -> None:
    base = paired_mass(order, budget, tail, failure)
    grown = [
        paired_mass(order, budget * more, tail, failure),
        paired_mass(order, budget, min(0.9999, tail * more), failure),
        paired_mass(order, budget, tail, min(0.9999, failure * more)),
    ]
    assert min(grown) >= base * (1 - SEARCH)


@given(ORDERS, BUDGETS, TAILS, FAILURES, FAILURES, st.floats(0.01, 0.99))
def test_the_bound_is_concave_in_the_failure(
    order: float, budget: float, tail: float, one: float, two: float, weight: float
) -> None:
    """A minimum of straight lines: what the end of the proof needs, together with ℓ(0) ≤ 0."""
    middle = weight * one + (1 - weight) * two
    ends = [paired_mass(order, budget, tail, failure) for failure in (one, two)]
    least = weight * ends[0] + (1 - weight) * ends[1]
    assert paired_mass(order, budget, tail, middle) >= least * (1 - SEARCH)


def inverts(tail_for: Tail, order: float, budget: float, share: float, failure: float) -> bool:
    """Whether the tail is the largest with paired_mass < share·failure, as near as is searched."""
    tail = tail_for(order, budget, share, failure)

    def mass(at: float) -> float:
        return paired_mass(order, budget, at, failure) / (share * failure)

    if tail < 1e-12:  # no plan has such a tail
        return mass(1e-12) > 1 - SEARCH
    return abs(mass(tail) - 1) < 2 * SEARCH and mass(min(0.9999, 1.1 * tail)) > 1


@given(ORDERS, BUDGETS, st.floats(0.001, 0.999), FAILURES)
@example(order=10.30572040929699, budget=9.646616199111993, share=0.375, failure=0.01)
def test_the_tail_is_the_inverse(order: float, budget: float, share: float, failure: float) -> None:
    assert inverts(paired_tail, order, budget, share, failure)


# The same from the definition.


def variant(
    order: float,
    budget: float,
    tail: float,
    failure: float,
    *,
    weights: tuple[float, float] = (0.5, 0.5),
    rent: Callable[[float], float] = math.expm1,
    swapped: bool = False,
) -> float:
    """The bound over 300 slopes. φ is weights[0] of the one way and weights[1] of the other."""
    a, (one, two) = order, weights
    if (a - 1) * budget > 300:
        return failure
    steps = np.exp(np.linspace(-9, 5, 300)) / a

    def slope(u: np.ndarray) -> np.ndarray:
        return one * a * np.expm1((a - 1) * u) - two * (a - 1) * np.expm1(-a * u)

    def touch(u: np.ndarray) -> np.ndarray:
        return one * (a - 1) * np.expm1(a * u) - two * a * np.expm1((1 - a) * u)

    odds = tail / (1 - tail) if swapped else (1 - tail) / tail
    limit = -odds * touch(-steps)
    low, high = np.zeros(300), np.full(300, 300 / a)
    for _ in range(50):
        middle = (low + high) / 2
        fits = touch(middle) <= limit
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    below, above = slope(-steps), slope(low)
    shares = (rent((a - 1) * budget) / failure - below) / (above - below)
    return min(1.0, float(shares.min())) * failure


def test_the_definition_in_plain_floats_is_the_same() -> None:
    for at in SETTINGS:
        assert variant(*at) == pytest.approx(paired_mass(*at), rel=3e-3)
        assert variant(*at) > paired_mass(*at) * (1 - SEARCH)
