"""Binomial tails and sums of logarithms: never below the truth, and hardly above it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from holdfast.errors import Infeasible
from holdfast.theory.numerics import (
    binomial_tail,
    log_binomial_tail,
    log_up,
    smallest_whole,
)
from tests.theory import checker


def exact_tail(trials: int, probability: float, at_least: int) -> Fraction:
    p = Fraction(probability)
    terms = range(max(0, at_least), trials + 1)
    return sum((math.comb(trials, i) * p**i * (1 - p) ** (trials - i) for i in terms), Fraction(0))


SMALL = [
    (trials, p, c)
    for trials in (1, 2, 9, 40)
    for p in (0.01, 0.25, 0.4, 0.75)
    for c in range(trials + 2)
]
TINY = [  # from 1e-8 to below every float but the smallest
    (501, 0.25, 251),
    (999, 0.25, 330),
    (1001, 0.375, 620),
    (700, 0.0625, 140),
    (1200, 0.25, 1100),
]


@pytest.mark.parametrize("cases", [SMALL, TINY], ids=["all small ones", "tiny"])
def test_the_tail_is_the_sum_rounded_up(cases: list[tuple[int, float, int]]) -> None:
    for case in cases:
        exact, tail = exact_tail(*case), Fraction(binomial_tail(*case))
        assert exact <= tail <= exact * (1 + Fraction(1, 10**9)) + 2 * Fraction(math.ulp(0.0))


def exact_log_tail(n: int, p: float, c: int) -> mpf:
    """Term by term, in 50 digits."""
    with mp.workdps(50):
        return mp.log(checker.exact_tail(n, mpf(p), c))


@settings(max_examples=60)
@given(
    st.integers(1, 1_500),
    st.one_of(st.floats(1e-9, 0.95), st.sampled_from([5e-324, 1e-300, 0.5, 1 - 2.0**-53])),
    st.floats(0, 1),
    st.booleans(),
)
def test_the_log_tail_is_just_above_the_truth(n: int, p: float, where: float, far: bool) -> None:
    """Above the mean and below it."""
    c = math.ceil(n * (p + where * (1 - p)) if far else n * where)
    c = min(n, max(1, c))
    truth = exact_log_tail(n, p, c)
    ours = log_binomial_tail(n, p, c)
    assert truth <= ours <= truth + mpf(1e-11) * (1 - truth)


def test_log_tails_far_outside_the_floats_and_at_their_ends() -> None:
    """Near their end the incomplete beta function is too small by up to 63 %, and not used."""
    for case in (
        *((2_000, 0.25, 1_000), (5_000, 0.5, 4_999), (900, 0.01, 898), (700, 0.3, 700)),
        *((540, 0.25, 520), (988, 0.46832135867920216, 951), (700, 0.3, 520), (2_000, 0.5, 1_600)),
    ):
        truth = exact_log_tail(*case)
        assert truth <= log_binomial_tail(*case) <= truth + 1e-10 * (1 - truth)
    assert log_binomial_tail(10, 0.3, 0) == pytest.approx(0, abs=1e-9)
    assert log_binomial_tail(10, 0.3, 11) == log_binomial_tail(10, 0.0, 1) == -math.inf
    assert log_binomial_tail(10**4, 1.0, 10**4) >= 0


def test_the_log_tail_falls_through_the_mean_and_out_of_the_floats() -> None:
    """Where the other side's tail is taken, and where a float would be 0: no jump."""
    tails = [log_binomial_tail(10**6, 0.25, c) for c in range(248_000, 270_000, 25)]
    steps = -np.diff(tails)
    assert tails[0] == pytest.approx(0, abs=1e-5)
    assert tails[-1] < math.log(1e-320)
    assert np.all(steps > 0)
    assert np.max(np.abs(np.diff(steps))) < 1e-2


@pytest.mark.parametrize("n", [10**7, 10**9, 10**12])
def test_log_tails_of_many_rows_are_those_of_the_incomplete_beta_function(n: int) -> None:
    for p in (1e-3, 0.5, 0.9):
        sd = math.sqrt(n * p * (1 - p))
        for away in (-3.0, -0.1, 0.1, 3.0, 8.0):
            c = round(n * p + away * sd)
            truth = math.log(binomial_tail(n, p, c))
            ours = log_binomial_tail(n, p, c)
            # Of more rows than anybody has, sums near the mean are cut short, and rounded up.
            near = 1e-8 if n < 10**12 else 0.5 if away < 1 else 1e-2
            assert truth - 1e-7 <= ours <= truth + near


def test_logarithms_are_rounded_up() -> None:
    assert log_up(-3.0) > -3.0
    assert log_up(-math.inf) == -math.inf


def test_the_search_finds_the_first_and_says_when_there_is_none() -> None:
    for first in range(1, 70):
        assert smallest_whole(lambda n, first=first: n >= first, 100) == first  # type: ignore[misc]
    with pytest.raises(Infeasible):
        smallest_whole(lambda n: n > 100, 100)
