from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.baselines.checks import gaussian_has_its_law, laplace_has_its_law
from tests.baselines.laws import laplace_law

from holdfast.errors import InvalidInput
from holdfast.randomness import Entropy, SeededEntropy
from holdfast_lab.baselines import noise
from holdfast_lab.baselines.noise import (
    discrete_gaussian,
    discrete_laplace,
    laplace_reach,
    laplace_tail,
)
from tests.mechanisms.laws import Script, alarm

REACH = 8  # values from here on are counted together
DRAWS = 12_000


def test_the_law_of_the_discrete_laplace_is_exact() -> None:
    assert laplace_has_its_law()


def test_the_law_of_the_discrete_gaussian_is_exact() -> None:
    assert gaussian_has_its_law()


def binned(weight: Callable[[int], float]) -> list[float]:
    """P[X = 0], P[|X| = 1], …, P[|X| = 7], P[|X| ≥ 8], and P[X < 0]."""
    total = math.fsum(weight(x) for x in range(-500, 501))
    inside = [weight(0) / total, *(2 * weight(x) / total for x in range(1, REACH))]
    return [*inside, 1 - math.fsum(inside), (1 - inside[0]) / 2]


def seen(draw: Callable[[Entropy], int]) -> list[int]:
    entropy = SeededEntropy(8)
    found = [0] * (REACH + 2)
    for _ in range(DRAWS):
        value = draw(entropy)
        found[min(abs(value), REACH)] += 1
        found[-1] += value < 0
    return found


@pytest.mark.parametrize(
    ("draw", "weight"),
    [
        (
            lambda entropy: discrete_laplace(Fraction(5, 2), entropy),
            lambda x, wrong: math.exp(-abs(x) / (2.5 * wrong)),
        ),
        (
            lambda entropy: discrete_gaussian(Fraction(9), entropy),
            lambda x, wrong: math.exp(-x * x / (2 * 9 * wrong**2)),
        ),
    ],
    ids=["laplace", "gaussian"],
)
def test_draws_follow_the_law(
    draw: Callable[[Entropy], int], weight: Callable[[int, float], float]
) -> None:
    """With an entropy. False alarm ≤ 1e-6; a scale that is 10 % off is seen."""
    found = seen(draw)
    assert not alarm(found, DRAWS, binned(lambda x: weight(x, 1.0)))
    assert alarm(found, DRAWS, binned(lambda x: weight(x, 1.1)))
    assert alarm(found, DRAWS, binned(lambda x: weight(x, 0.9)))


@given(st.integers(1, 60), st.integers(1, 10), st.integers(1, 60))
def test_the_tail_is_the_sum_of_the_law(numerator: int, denominator: int, start: int) -> None:
    scale = Fraction(numerator, denominator)
    ratio = math.exp(-1 / scale)
    exact = math.exp(-start / scale) / (1 + ratio)
    assert exact <= laplace_tail(scale, start) <= exact * (1 + 1e-11)
    assert math.fsum(p for x, p in laplace_law(scale, 1e-15) if x >= start) == pytest.approx(
        exact, rel=1e-9, abs=1e-14
    )


@given(st.fractions(Fraction(1, 10), 1000), st.floats(1e-12, 0.9))
def test_the_reach_is_the_smallest(scale: Fraction, failure: float) -> None:
    reach = laplace_reach(scale, failure)
    assert laplace_tail(scale, reach + 1) <= failure
    assert reach == 0 or laplace_tail(scale, reach) > failure


@pytest.mark.parametrize("size", [2**62 + 1, 3 * 2**70, 2**128, 2**64 + 13])
def test_uniform_numbers_beyond_one_word(size: int) -> None:
    entropy = SeededEntropy(3)
    drawn = [noise._uniform(size, entropy) for _ in range(400)]
    assert all(0 <= x < size for x in drawn)
    # Eighths of the range; false alarm ≤ 1e-6.
    counts = [0] * 8
    for x in drawn:
        counts[8 * x // size] += 1
    assert not alarm(counts, 400, [1 / 8] * 8)


def test_uniform_numbers_reject_what_is_too_large() -> None:
    size = 2**65 + 1  # 66 bits: of two words the low 66 bits count
    script = Script([3, 5, 2**64 - 4, 7])
    assert noise._uniform(size, script) == 7  # 3·2^64 + 5 is rejected, 0·2^64 + 7 is kept


def test_the_largest_scales_can_be_drawn() -> None:
    scale = Fraction(0.1) * 2**70  # a fraction with a numerator beyond every word
    drawn = [abs(discrete_laplace(scale, SeededEntropy(seed))) / scale for seed in range(40)]
    assert 0.3 < float(sum(drawn, Fraction(0))) / 40 < 2.5  # the mean of |X|/b is 1 ± 0.16


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1)])
def test_noise_needs_a_positive_parameter(
    draw: Callable[[Fraction, Entropy], int], value: Fraction
) -> None:
    with pytest.raises(InvalidInput):
        draw(value, SeededEntropy(1))


def test_the_tail_starts_at_one() -> None:
    with pytest.raises(InvalidInput):
        laplace_tail(Fraction(1), 0)
