"""The hypothesis: its weights, medians and updates, exactly; its passes; the bound in action."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput
from holdfast.mechanisms import hypothesis as module
from holdfast.mechanisms.hypothesis import Histogram, Hypothesis, Side
from holdfast.theory.weights import (
    HELD_SLACK,
    HIGHEST_MASS,
    LOWEST_MASS,
    drop,
    learning_rate,
)

Ints = NDArray[np.int64]

HUGE = 2**60  # a grid whose points nobody counts


UNIT = mpf(math.log(2)) / 2**20


def whole_weights(h: Hypothesis) -> list[int]:
    """The weights that masses and medians are made of, for the penalties of now."""
    h.median(np.zeros(h.size, int), 1)
    return [int(w) for w in h._weights.tolist()]


def true_masses(penalties: list[int]) -> list[Any]:
    """h(z) to 40 digits, from whole penalties."""
    with mp.workdps(40):
        powers = [mpf(2) ** (mpf(min(penalties) - d) / 2**20) for d in penalties]
        total = mp.fsum(powers)
        return [p / total for p in powers]


# Weights.


def test_the_tables_are_powers_of_two_to_the_last_bit() -> None:
    with mp.workdps(60):
        for bits, table in ((10, module._COARSE), (20, module._FINE)):
            assert table.tolist() == [float(mpf(2) ** (-mpf(i) / 2**bits)) for i in range(1024)]
    assert [Fraction(x) for x in module._HALVES.tolist()] == [
        Fraction(1, 2**i) for i in range(1001)
    ]


def plain_weights(penalties: list[int]) -> list[int]:
    """The weights again, one at a time, with nothing but Python's own floats and whole numbers."""

    def power(d: int) -> float:
        part = d % 2**20
        coarse, fine = module._COARSE[part // 1024], module._FINE[part % 1024]
        return float(coarse) * float(fine) * 0.5 ** min(d // 2**20, 1000)

    powers = [power(d - min(penalties)) for d in penalties]
    rough = 2 ** (53 - (len(penalties) - 1).bit_length())
    total = sum(round(p * rough) for p in powers)
    scale = (2**53 - len(penalties) - 8) * rough / (total + len(penalties) // 2 + 1)
    return [round(p * scale) for p in powers]


@settings(max_examples=80)
@given(st.data())
def test_the_weights_are_the_same_by_any_arithmetic(data: st.DataObject) -> None:
    """Against one element at a time; their sum leaves all sums exact; their shares are those of h.

    The order of updates, and the penalty that all elements share, make no difference.
    """
    size = data.draw(st.integers(1, 60))
    spread = data.draw(st.sampled_from([10, 2**20, 2**24, 2**40]))
    penalties = data.draw(st.lists(st.integers(0, spread), min_size=size, max_size=size))
    h = Hypothesis(size)
    h._penalties += np.array(penalties) + data.draw(st.integers(0, 2**40))
    weights = whole_weights(h)
    assert weights == plain_weights(penalties)
    assert 2**52 < sum(weights) <= 2**53
    for weight, mass in zip(weights, true_masses(penalties), strict=True):
        assert abs(mpf(weight) / sum(weights) - mass) <= mpf(2) ** -53 * size + 1e-15


@settings(max_examples=80)
@given(st.data())
def test_updates_add_whole_units_rounded_up(data: st.DataObject) -> None:
    """Any masks, any number of updates, against whole numbers."""
    size = data.draw(st.integers(1, 8))
    mask = st.lists(st.booleans(), min_size=size, max_size=size)
    steps = data.draw(st.lists(st.tuples(mask, st.floats(1e-9, 1e6)), max_size=40))
    h, penalties = Hypothesis(size), [0] * size
    for hit, rate in steps:
        h.shrink(np.array(hit), rate)
        units = module._units(rate)
        assert rate * (1 - 1e-15) <= units * UNIT <= rate * (1 + 1e-15) + UNIT
        penalties = [d + units * inside for d, inside in zip(penalties, hit, strict=True)]
    assert (h._penalties - h._penalties[0]).tolist() == [d - penalties[0] for d in penalties]
    exact = [float(m) for m in true_masses(penalties)]
    np.testing.assert_allclose(h.masses, exact, rtol=1e-12, atol=1e-300)
    assert h.updates == len(steps)
    for hit, _ in steps[:3]:
        inside = sum(m for m, here in zip(exact, hit, strict=True) if here)
        assert h.mass(np.array(hit)) == pytest.approx(inside, abs=1e-14)


# Medians.


@settings(max_examples=80)
@given(st.data())
def test_the_median_is_the_first_point_with_half_of_the_weights(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    points = data.draw(st.sampled_from([1, 2, 5, 60, HUGE]))
    index = st.integers(0, points - 1)
    h = Hypothesis(size)
    for _ in range(data.draw(st.integers(0, 6))):
        mask = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
        h.shrink(np.array(mask), data.draw(st.floats(0.01, 3)))
    indices = np.array(data.draw(st.lists(index, min_size=size, max_size=size)))
    median, weights = h.median(indices, points), whole_weights(h)
    at_most = sum(w for w, i in zip(weights, indices.tolist(), strict=True) if i <= median.guess)
    at_least = sum(w for w, i in zip(weights, indices.tolist(), strict=True) if i >= median.guess)
    total = sum(weights)
    assert median.guess in indices
    assert 2 * at_most >= total
    assert 2 * (total - at_least) < total  # no smaller index has half
    assert median[1:] == (at_most / total, at_least / total)


def test_ties_are_broken_towards_the_lower_point() -> None:
    h = Hypothesis(4)
    assert h.median(np.array([3, 1, 2, 0]), 4) == (1, 0.5, 0.75)
    assert h.median(np.array([2, 2, 2, 2]), 4) == (2, 1.0, 1.0)
    assert h.median(np.array([0, 0, 3, 3]), 4) == (0, 0.5, 1.0)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 17, 300, 5000]), st.integers(1, 200))
@example(seed=13522, points=300, size=94)  # a tie, which floats broke in two ways
def test_a_histogram_is_a_bincount_and_a_huge_grid_changes_nothing(
    seed: int, points: int, size: int
) -> None:
    rng = np.random.default_rng(seed)
    h = Hypothesis(size)
    h.shrink(rng.random(size) < 0.5, 0.7)
    indices = rng.integers(0, points, size)
    dense, sparse = h.histogram(indices, points), h.histogram(indices, HUGE)
    expected = np.bincount(indices, h.masses, points)
    np.testing.assert_allclose(dense.masses, expected, rtol=1e-12)
    assert dense.points.tolist() == list(range(points))
    assert sparse.points.tolist() == np.unique(indices).tolist()
    sides: tuple[Side, Side] = ("at most", "at least")
    for side in sides:
        assert sparse.masses.tolist() == dense.masses[sparse.points].tolist()
        assert sparse.median() == dense.median()
        sparse.shrink(dense.median().guess, side, 1.3)


@settings(max_examples=60)
@given(st.data())
def test_the_median_is_the_same_in_any_order_of_elements_points_and_updates(
    data: st.DataObject,
) -> None:
    """With few different rates and many ties: nothing but the penalties counts."""
    size = data.draw(st.integers(2, 60))
    indices = np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))
    sides: list[Side] = ["at most", "at least"]
    step = st.tuples(st.integers(0, 9), st.sampled_from(sides), st.sampled_from([0.25, 0.7]))
    steps: list[tuple[int, Side, float]] = data.draw(st.lists(step, max_size=12))
    order = np.array(data.draw(st.permutations(range(size))))
    one, two = Hypothesis(size), Hypothesis(size)
    dense, sparse = one.histogram(indices, 10), two.histogram(indices[order], HUGE)
    for guess, where, rate in steps:
        dense.shrink(guess, where, rate)
        assert dense.median() == one.median(indices, HUGE)  # recounted; the other only at the end
    for guess, where, rate in data.draw(st.permutations(steps)):
        sparse.shrink(guess, where, rate)
    assert sparse.median() == dense.median()
    reflected = dense._hypothesis.histogram(9 - indices, 10)
    assert reflected.masses.tolist() == dense.masses[::-1].tolist()


Shrink = Callable[[Histogram, int, Side, float], None]
MISTAKES: dict[str, Shrink] = {
    "wrong side": lambda histogram, v, side, rate: histogram.shrink(
        v, "at least" if side == "at most" else "at most", rate
    ),
    "a point too few": lambda histogram, v, side, rate: histogram.shrink(
        max(0, v - 1) if side == "at most" else v + 1, side, rate
    ),
    "an eighth of the rate": lambda histogram, v, side, rate: histogram.shrink(v, side, rate / 8),
}


def shrinks_by_masks(
    indices: Ints, points: int, steps: list[tuple[int, Side, float]], shrink: Shrink
) -> bool:
    """On a histogram, against a mask for each update; exactly, at ties as well."""
    one, two = Hypothesis(indices.size), Hypothesis(indices.size)
    histogram = one.histogram(indices, points)
    for at, side, rate in steps:
        shrink(histogram, at, side, rate)
        two.shrink(indices <= at if side == "at most" else indices >= at, rate)
        if histogram.median() != two.median(indices, points):
            return False
    return whole_weights(one) == whole_weights(two) and one.updates == two.updates


@settings(max_examples=60)
@given(st.data())
def test_updates_of_one_question_are_those_of_the_masks(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 30))
    points = data.draw(st.sampled_from([1, 3, 10, HUGE]))
    place = st.integers(0, min(points, 12) - 1)
    indices = np.array(data.draw(st.lists(place, min_size=size, max_size=size)))
    sides: list[Side] = ["at most", "at least"]
    steps = st.lists(st.tuples(place, st.sampled_from(sides), st.floats(0.01, 4)), max_size=8)
    assert shrinks_by_masks(indices, points, data.draw(steps), Histogram.shrink)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_caught(mistake: str) -> None:
    indices = np.arange(20) % 7
    steps: list[tuple[int, Side, float]] = [(3, "at most", 0.7), (4, "at least", 1.3)]
    assert shrinks_by_masks(indices, 7, steps, Histogram.shrink)
    assert not shrinks_by_masks(indices, 7, steps, MISTAKES[mistake])


# Rounding.


def test_large_sums_are_as_exact_as_stated() -> None:
    """A million weights of very different size, summed by numpy and as whole numbers."""
    size = 1_000_000
    h = Hypothesis(size)
    h.shrink(np.arange(size) % 17 < 5, 0.37)
    h.shrink(np.arange(size) % 7 < 3, 9.1)
    indices = (np.arange(size) % 1000 == 0).astype(np.int64)
    median = h.median(indices, 2)
    weights = h._weights.astype(np.int64)
    inside, total = int(np.sum(weights[indices == 0])), int(np.sum(weights))
    assert 2**52 < total <= 2**53
    assert median == (0, inside / total, 1.0)
    masses = h.masses
    exact = math.fsum(masses[indices == 0].tolist()) / math.fsum(masses.tolist())
    assert abs(median.at_most - exact) < size * 2.0**-53


def keeps_the_bound(units: Callable[[float], int]) -> bool:
    """Both cases of the proof, where h holds 7.5e-9 less than its weights, with a rounded rate."""
    kept = True
    with mp.workdps(40):
        unit = mp.log(2) / 2**20
        for mass in np.geomspace(LOWEST_MASS, HIGHEST_MASS, 300).tolist():
            for held in (0.5, 0.6, 0.8, 0.95, 0.999):
                rate = units(learning_rate(mass, held)) * unit
                growth = -mp.log(1 - (held - mpf(7.5e-9)) * (1 - mp.exp(-rate)))
                kept &= growth - rate * mass >= drop(mass, held)
                kept &= growth >= mp.log((1 - mpf(mass)) / (1 - (held - mpf(HELD_SLACK))))
    return bool(kept)


def test_the_slack_covers_all_rounding() -> None:
    assert keeps_the_bound(module._units)
    assert not keeps_the_bound(lambda rate: module._units(rate) - 1)  # rounded down
    assert not keeps_the_bound(lambda rate: module._units(rate) + 200)


def healthy(h: Hypothesis) -> bool:
    masses = h.masses
    return bool(np.all(np.isfinite(masses)) and abs(math.fsum(masses.tolist()) - 1) < 1e-9)


def test_thousands_of_updates_leave_no_nan() -> None:
    rng = np.random.default_rng(3)
    h = Hypothesis(50)
    with np.errstate(all="raise"):
        for _ in range(1000):
            h.shrink(rng.random(50) < 0.6, float(rng.choice([1e-3, 1.0, 40.0, 900.0])))
    assert healthy(h)


@pytest.mark.parametrize("rate", [0.5, 30.0, 800.0, 1e5])
def test_what_had_vanished_can_come_back(rate: float) -> None:
    """Weights far below every float, and all mass taken off elsewhere, in one question."""
    h = Hypothesis(3)
    indices = np.array([0, 1, 2])
    with np.errstate(all="raise"):
        h.shrink(indices == 2, 5000.0)
        histogram = h.histogram(indices, 3)
        taken = 0.0
        while taken < 5000 + 2 * rate:
            histogram.shrink(1, "at most", rate)
            taken += rate
        assert histogram.median().guess == 2
        assert healthy(h)
        assert h.median(indices, 3).guess == 2
        ahead = float(h._penalties[0] - h._penalties[2]) / 2**20
        assert ahead > 0
        assert h.mass(indices == 2) == pytest.approx(1 / (1 + 2 * 0.5**ahead))


def test_a_question_without_refusals_changes_nothing_and_takes_one_pass() -> None:
    """k questions with U refusals take k + 5U passes, and a few to begin with."""
    h = Hypothesis(10)
    before, passes = whole_weights(h), h.passes
    h.histogram(np.arange(10), 10).median()
    assert (h.updates, h.passes) == (0, passes + 1)
    assert whole_weights(h) == before
    passes, histogram = h.passes, h.histogram(np.arange(10), 10)
    for _ in range(3):
        histogram.shrink(histogram.median().guess, "at most", 0.3)
    histogram.median()
    assert h.passes == passes + 1 + 5 * 3


# What is refused.


def test_wrong_arguments() -> None:
    h = Hypothesis(4)
    indices = np.array([0, 1, 2, 3])
    for wrong in (np.zeros(3, int), np.zeros(4), np.zeros((2, 2), int), np.zeros(4, bool)):
        with pytest.raises(InvalidInput, match="4 grid indices"):
            h.histogram(wrong, 4)
    for points in (3, HUGE):
        for outside in (-1, points):
            with pytest.raises(InvalidInput, match=f"from 0 to {points - 1:,}"):
                h.histogram(np.array([0, 1, 2, outside]), points)
    with pytest.raises(InvalidInput, match="booleans"):
        h.shrink(indices, 1.0)
    histogram = h.histogram(indices, 4)
    for rate in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="rate"):
            histogram.shrink(1, "at most", rate)
    with pytest.raises(InvalidInput, match="'at most' or 'at least'"):
        histogram.shrink(1, "below", 1.0)  # type: ignore[arg-type]
    assert h.updates == 0
    with pytest.raises(Infeasible, match="coarser points"):
        Hypothesis(10**9)
    with pytest.raises(InvalidInput):
        Hypothesis(0)


def test_a_histogram_from_before_an_update_is_counted_again() -> None:
    h = Hypothesis(4)
    old, new = h.histogram(np.arange(4), 4), h.histogram(np.arange(4), 4)
    assert old.median().guess == new.median().guess == 1
    new.shrink(1, "at most", 1.0)
    assert old.median() == new.median() == h.median(np.arange(4), 4)
    assert old.median().guess == 2
