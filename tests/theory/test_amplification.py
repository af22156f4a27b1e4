"""Amplification by median, against exact enumeration and exact binomial sums."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.bars import in_quantile_interval
from holdfast.theory.numerics import binomial_tail, smallest_whole
from holdfast.theory.sizing import (
    hoeffding_failure,
    hoeffding_samples,
    median_failure,
    median_samples,
)

TAILS = st.floats(0.001, 0.45)
FAILURES = st.floats(1e-12, 0.5)


def exact_tail(trials: int, probability: float, at_least: int) -> Fraction:
    p = Fraction(probability)
    return sum(
        (
            math.comb(trials, i) * p**i * (1 - p) ** (trials - i)
            for i in range(max(0, at_least), trials + 1)
        ),
        Fraction(0),
    )


@pytest.mark.parametrize("probability", [0.01, 0.25, 0.4, 0.75])
@pytest.mark.parametrize("trials", [1, 2, 9, 40])
def test_the_tail_is_the_sum_rounded_up(trials: int, probability: float) -> None:
    for at_least in range(trials + 2):
        exact = exact_tail(trials, probability, at_least)
        tail = Fraction(binomial_tail(trials, probability, at_least))
        assert exact <= tail <= exact * (1 + Fraction(1, 10**9)) + Fraction(math.ulp(0.0))


@pytest.mark.parametrize(
    ("trials", "probability", "at_least"),
    [
        (501, 0.25, 251),  # 1e-33
        (999, 0.25, 330),  # 1e-8
        (1001, 0.375, 620),  # 1e-55
        (700, 0.0625, 140),  # 1e-35
        (1200, 0.25, 1100),  # below every float but the smallest
    ],
)
def test_tiny_tails_are_right_too(trials: int, probability: float, at_least: int) -> None:
    exact = exact_tail(trials, probability, at_least)
    tail = Fraction(binomial_tail(trials, probability, at_least))
    assert exact <= tail <= exact * (1 + Fraction(1, 10**9)) + 2 * Fraction(math.ulp(0.0))


def test_the_search_finds_the_first_and_says_when_there_is_none() -> None:
    for first in range(1, 70):
        assert smallest_whole(lambda n, first=first: n >= first, 100) == first  # type: ignore[misc]
    with pytest.raises(Infeasible):
        smallest_whole(lambda n: n > 100, 100)


@pytest.mark.parametrize("samples", [1, 3, 5])
@pytest.mark.parametrize("tail", [Fraction(1, 100), Fraction(1, 4), Fraction(3, 8)])
def test_for_odd_numbers_the_worst_law_reaches_the_bound(samples: int, tail: Fraction) -> None:
    law = {-1: tail, 0: 1 - 2 * tail, 1: tail}
    outside = sum(
        math.prod((law[y] for y in draw), start=Fraction(1))
        for draw in itertools.product(law, repeat=samples)
        if sorted(draw)[samples // 2] != 0
    )
    assert Fraction(median_failure(samples, float(tail))) == pytest.approx(outside, rel=1e-9)
    assert not in_quantile_interval(1, list(law), tail, 1 - tail, weights=list(law.values()))


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 4),
    st.sampled_from([Fraction(1, 10), Fraction(1, 4), Fraction(2, 5)]),
    st.sampled_from(["low", "high", "middle"]),
)
def test_no_law_and_no_convention_for_even_numbers_exceeds_it(
    weights: list[int], samples: int, tail: Fraction, convention: str
) -> None:
    values = list(range(len(weights)))
    outside = Fraction(0)
    for draw in itertools.product(values, repeat=samples):
        ranked = sorted(draw)
        low, high = ranked[(samples - 1) // 2], ranked[samples // 2]
        choices: dict[str, int | Fraction] = {"low": low, "high": high}
        median = choices.get(convention, Fraction(low + high, 2))
        if not in_quantile_interval(median, values, tail, 1 - tail, weights=weights):
            outside += math.prod(
                (Fraction(weights[y], sum(weights)) for y in draw), start=Fraction(1)
            )
    assert outside <= Fraction(median_failure(samples, float(tail)))


@given(st.integers(1, 10**5), TAILS)
def test_the_exact_bound_is_below_hoeffdings(samples: int, tail: float) -> None:
    assert median_failure(samples, tail) <= hoeffding_failure(samples, tail) + 1e-300


def test_the_exponent_is_one_eighth_at_a_quarter_and_a_32nd_at_three_eighths() -> None:
    for samples in (40, 80, 160):
        assert hoeffding_failure(samples, 0.25) == pytest.approx(2 * math.exp(-samples / 8))
        assert hoeffding_failure(samples, 0.375) == pytest.approx(
            min(1, 2 * math.exp(-samples / 32))
        )


@given(FAILURES, TAILS)
def test_the_smallest_number_passes_and_the_one_before_fails(failure: float, tail: float) -> None:
    samples = median_samples(failure, tail)
    assert samples % 2 == 1
    assert median_failure(samples, tail) <= failure
    for fewer in {max(1, samples - 1), max(1, samples - 2)} - {samples}:
        assert median_failure(fewer, tail) > failure
    rough = hoeffding_samples(failure, tail)
    assert hoeffding_failure(rough, tail) <= failure * (1 + 1e-9)
    assert rough == 1 or hoeffding_failure(rough - 1, tail) > failure
    assert samples <= rough + 1


@given(FAILURES, FAILURES, TAILS, TAILS)
def test_more_confidence_or_a_larger_tail_takes_more(
    one: float, two: float, tail: float, other: float
) -> None:
    strict, loose = sorted((one, two))
    near, far = sorted((tail, other), reverse=True)
    assert median_samples(strict, near) >= median_samples(loose, near)
    assert median_samples(strict, near) >= median_samples(strict, far)


@pytest.mark.parametrize(("failure", "tail"), [(0.0, 0.25), (1.0, 0.25), (0.1, 0.5), (0.1, 0.0)])
def test_what_has_no_meaning_is_refused(failure: float, tail: float) -> None:
    with pytest.raises(InvalidInput):
        median_samples(failure, tail)
    with pytest.raises(InvalidInput):
        hoeffding_samples(failure, tail)
