"""The hypothesis: its masses, medians and updates, exactly; its passes; and the bound in action."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput
from holdfast.mechanisms.hypothesis import Histogram, Hypothesis, Side
from holdfast.theory.updates import drop, learning_rate, most_updates

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Shrink = Callable[[Histogram, int, Side, float], None]

HUGE = 2**60  # a grid whose points nobody counts


def exact_masses(h: Hypothesis) -> list[Fraction]:
    """h(z) as rational numbers, from the stored weights."""
    weights = [Fraction(x) for x in h.masses.tolist()]
    return [x / sum(weights) for x in weights]


# Masses, medians, updates.


@settings(max_examples=80)
@given(st.data())
def test_updates_are_those_of_whole_numbers(data: st.DataObject) -> None:
    """Weights b^(−k) by integers, against logarithms: any masks, any number of updates."""
    size = data.draw(st.integers(1, 8))
    base = data.draw(st.integers(2, 5))
    masks = data.draw(st.lists(st.lists(st.booleans(), min_size=size, max_size=size), max_size=40))
    h, counts = Hypothesis(size), [0] * size
    for mask in masks:
        h.shrink(np.array(mask), math.log(base))
        counts = [k + hit for k, hit in zip(counts, mask, strict=True)]
    weights = [Fraction(1, base**k) for k in counts]
    exact = [float(x / sum(weights)) for x in weights]
    np.testing.assert_allclose(h.masses, exact, rtol=1e-12)
    assert h.updates == len(masks)
    for mask in masks[:3]:
        inside = sum(w for w, hit in zip(weights, mask, strict=True) if hit)
        assert h.mass(np.array(mask)) == pytest.approx(float(inside / sum(weights)), rel=1e-12)


@settings(max_examples=80)
@given(st.data())
def test_the_median_is_the_first_point_with_half_of_the_mass(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    points = data.draw(st.sampled_from([1, 2, 5, 60, HUGE]))
    index = st.integers(0, points - 1)
    h = Hypothesis(size)
    for _ in range(data.draw(st.integers(0, 6))):
        mask = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
        h.shrink(np.array(mask), data.draw(st.floats(0.01, 3)))
    indices = np.array(data.draw(st.lists(index, min_size=size, max_size=size)))
    median, masses = h.median(indices, points), exact_masses(h)
    at_most = sum(m for m, i in zip(masses, indices.tolist(), strict=True) if i <= median.guess)
    at_least = sum(m for m, i in zip(masses, indices.tolist(), strict=True) if i >= median.guess)
    half, slack = Fraction(1, 2), Fraction(1, 10**12)
    assert median.guess in indices
    assert at_most >= half - slack
    assert at_least >= half - slack
    assert 1 - at_least < half + slack  # no smaller index has half
    assert median.at_most == pytest.approx(float(at_most), abs=1e-12)
    assert median.at_least == pytest.approx(float(at_least), abs=1e-12)


def test_ties_are_broken_towards_the_lower_point() -> None:
    h = Hypothesis(4)
    assert h.median(np.array([3, 1, 2, 0]), 4) == (1, 0.5, 0.75)
    assert h.median(np.array([2, 2, 2, 2]), 4) == (2, 1.0, 1.0)
    assert h.median(np.array([0, 0, 3, 3]), 4) == (0, 0.5, 1.0)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 17, 300, 5000]), st.integers(1, 200))
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
    np.testing.assert_allclose(sparse.masses, expected[sparse.points], rtol=1e-12)
    for side in ("at most", "at least"):
        v = dense.median().guess
        assert sparse.median().guess == v
        for histogram in (dense, sparse):
            histogram.shrink(v, "at most" if side == "at most" else "at least", 1.3)
    np.testing.assert_allclose(sparse.masses, dense.masses[sparse.points], rtol=1e-12)


@settings(max_examples=60)
@given(st.data())
def test_updates_of_one_question_are_those_of_the_masks(data: st.DataObject) -> None:
    """On a histogram and by one rewriting of the weights, against a mask for each."""
    size = data.draw(st.integers(1, 30))
    points = data.draw(st.sampled_from([1, 3, 10, HUGE]))
    top = min(points, 12) - 1
    indices = np.array(data.draw(st.lists(st.integers(0, top), min_size=size, max_size=size)))
    one, two = Hypothesis(size), Hypothesis(size)
    histogram = one.histogram(indices, points)
    for _ in range(data.draw(st.integers(0, 8))):
        at = data.draw(st.integers(0, top))
        side: Side = data.draw(st.sampled_from(["at most", "at least"]))
        rate = data.draw(st.floats(0.01, 4))
        histogram.shrink(at, side, rate)
        two.shrink(indices <= at if side == "at most" else indices >= at, rate)
        assert histogram.median() == pytest.approx(two.median(indices, points), rel=1e-9)
    histogram.commit()
    np.testing.assert_allclose(one.masses, two.masses, rtol=1e-9)
    assert one.updates == two.updates
    # A committed histogram goes on as a new one would.
    histogram.shrink(0, "at most", 0.5)
    histogram.commit()
    two.shrink(indices <= 0, 0.5)
    np.testing.assert_allclose(one.masses, two.masses, rtol=1e-9)


# Rounding.


def test_large_sums_are_as_exact_as_stated() -> None:
    """Five million weights of very different size at one grid point: off by less than 1e-9."""
    size = 5_000_000
    h = Hypothesis(size)
    h.shrink(np.arange(size) % 17 < 5, 0.37)
    h.shrink(np.arange(size) % 7 < 3, 9.1)
    indices = (np.arange(size) % 1000 == 0).astype(np.int64)
    median = h.median(indices, 2)
    masses = h.masses
    exact = math.fsum(masses[indices == 0].tolist()) / math.fsum(masses.tolist())
    assert median.guess == 0
    assert abs(median.at_most - exact) < 1e-9


def test_the_median_of_a_grid_as_large_as_the_universe() -> None:
    size = 300_000
    h = Hypothesis(size)
    rng = np.random.default_rng(5)
    h.shrink(rng.random(size) < 0.5, 2.0)
    indices = rng.permutation(size)
    masses = h.masses
    sums = list(accumulate(masses[np.argsort(indices)].tolist()))
    median = h.median(indices, size)
    assert sums[median.guess] >= 0.5 - 1e-9
    assert sums[median.guess - 1] < 0.5 + 1e-9
    assert median.at_most == pytest.approx(sums[median.guess], abs=1e-9)
    assert median.at_least == pytest.approx(1 - sums[median.guess - 1], abs=1e-9)


def healthy(h: Hypothesis) -> bool:
    masses = h.masses
    return bool(np.all(np.isfinite(masses)) and abs(math.fsum(masses.tolist()) - 1) < 1e-9)


def test_thousands_of_updates_leave_no_nan() -> None:
    rng = np.random.default_rng(3)
    h = Hypothesis(50)
    with np.errstate(all="raise"):
        for _ in range(4000):
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
        histogram.commit()
        assert healthy(h)
        assert h.median(indices, 3).guess == 2
        assert h.mass(indices == 2) == pytest.approx(1 / (1 + 2 * math.exp(5000 - taken)))


def test_the_whole_universe_shrunk_is_no_change() -> None:
    h = Hypothesis(5)
    for rate in (1.0, 700.0, 1e6):
        h.shrink(np.full(5, True), rate)
        assert h.masses.tolist() == pytest.approx([0.2] * 5)


# Passes.


class Counted(np.ndarray[Any, Any]):
    """An array that counts the numpy calls that go through all of it."""

    calls: list[str] = []  # noqa: RUF012 - of the class on purpose, cleared by the test

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        Counted.calls.append(ufunc.__name__)
        out = tuple(np.asarray(x) for x in kwargs.pop("out", ()))
        plain = [np.asarray(x) if isinstance(x, Counted) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **({"out": out} if out else {}), **kwargs)

    def __array_function__(self, func: Any, _: Any, args: Any, kwargs: Any) -> Any:
        Counted.calls.append(func.__name__)
        plain = {k: np.asarray(v) if isinstance(v, Counted) else v for k, v in kwargs.items()}
        return func(*(np.asarray(x) if isinstance(x, Counted) else x for x in args), **plain)


def watched(size: int) -> Hypothesis:
    h = Hypothesis(size)
    h._weights, h._logarithms = h._weights.view(Counted), h._logarithms.view(Counted)
    Counted.calls.clear()
    return h


def test_the_passes_are_counted_honestly() -> None:
    """Every numpy call on the weights is one; a question takes 1, with any refusals 4."""
    h = watched(1000)
    indices = np.arange(1000) % 32
    h.median(indices, 32)
    assert Counted.calls == ["bincount"]
    assert h.passes == 1
    histogram = h.histogram(indices, 32)
    for _ in range(10):
        histogram.shrink(histogram.median().guess, "at most", 0.3)
    histogram.commit()
    histogram.commit()
    assert Counted.calls[1:] == ["bincount", "take", "subtract", "exp"]
    assert h.passes == len(Counted.calls) == 5
    h.shrink(indices < 3, 1.0)
    assert h.passes == len(Counted.calls) == 9
    h.mass(indices < 3)
    assert h.passes == len(Counted.calls) == 10
    h.histogram(indices, HUGE).median()
    assert h.passes == len(Counted.calls) == 11


def test_a_recount_is_counted_too() -> None:
    h = watched(10)
    h.shrink(np.full(10, True), 2000.0)
    assert "max" in Counted.calls
    assert h.passes == len(Counted.calls)


def test_a_question_without_refusals_changes_nothing() -> None:
    h = Hypothesis(10)
    h.histogram(np.arange(10), 10).commit()
    assert h.passes == 1
    assert h.updates == 0


# The bound in action.


def divergence(sample: Floats, h: Hypothesis) -> float:
    """KL(S‖h), from the stored logarithms."""
    logs = np.asarray(h._logarithms)
    logs = logs - math.log(math.fsum(np.exp(logs - logs.max()).tolist())) - logs.max()
    inside = sample > 0
    terms = sample[inside] * (np.log(sample[inside]) - logs[inside])
    return math.fsum(terms.tolist())


def play(
    seed: int, size: int, blocks: int, mass: float, points: int, shrink: Shrink, own_rate: bool
) -> tuple[int, list[tuple[float, float]]]:
    """Random questions, refused wherever the sample allows it: updates, and (drop, bound) of each.

    A question orders the universe at random, now and then with a view to the sample.
    """
    rng = np.random.default_rng(seed)
    data = rng.integers(0, max(1, size // 8), blocks)
    sample = np.bincount(data, minlength=size) / blocks
    h, falls = Hypothesis(size), []
    for _ in range(400):
        order = (
            rng.permutation(size) if rng.random() < 0.6 else np.argsort(sample + rng.random(size))
        )
        indices = (np.argsort(order) * points) // size
        histogram = h.histogram(indices, points)
        for _ in range(3):
            v, at_most, at_least = histogram.median()
            for side, held, psi in (
                ("at most", at_most, indices <= v),
                ("at least", at_least, indices >= v),
            ):
                if sample[psi].sum() <= mass:
                    before = divergence(sample, h)
                    rate = learning_rate(mass, held if own_rate else 0.5)
                    shrink(histogram, v, "at most" if side == "at most" else "at least", rate)
                    histogram.commit()
                    bound = drop(mass, held if own_rate else 0.5)
                    falls.append((before - divergence(sample, h), bound))
                    break
            else:
                break
    return h.updates, falls


def real_shrink(histogram: Histogram, v: int, side: Side, rate: float) -> None:
    histogram.shrink(v, side, rate)


def wrong_side(histogram: Histogram, v: int, side: Side, rate: float) -> None:
    histogram.shrink(v, "at least" if side == "at most" else "at most", rate)


def wrong_point(histogram: Histogram, v: int, side: Side, rate: float) -> None:
    """One grid point too few."""
    histogram.shrink(max(0, v - 1) if side == "at most" else v + 1, side, rate)


def an_eighth_of_the_rate(histogram: Histogram, v: int, side: Side, rate: float) -> None:
    histogram.shrink(v, side, rate / 8)


def falls_enough(shrink: Shrink = real_shrink) -> bool:
    """Each update lowers KL(S‖h) by its bound, and there are no more than can be."""
    for seed, (mass, points, own_rate) in enumerate(
        [(0.4, 16, True), (0.4, 16, False), (0.25, 64, True), (0.1, 8, False), (0.33, 5, True)]
    ):
        updates, falls = play(seed, 64, 50, mass, points, shrink, own_rate)
        if updates == 0 or updates > most_updates(64, mass):
            return False
        if any(fall < bound - 1e-10 for fall, bound in falls):
            return False
    return True


def test_every_update_lowers_the_divergence_by_its_bound() -> None:
    assert falls_enough()


@pytest.mark.parametrize("mistake", [wrong_side, wrong_point, an_eighth_of_the_rate])
def test_mistakes_are_caught(mistake: Shrink) -> None:
    assert not falls_enough(mistake)


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
    with pytest.raises(Infeasible):
        Hypothesis(10, memory_limit=319)
    with pytest.raises(InvalidInput):
        Hypothesis(0)


def test_a_histogram_from_before_an_update_is_refused() -> None:
    h = Hypothesis(4)
    old, new = h.histogram(np.arange(4), 4), h.histogram(np.arange(4), 4)
    new.shrink(1, "at most", 1.0)
    new.commit()
    for use in (old.median, old.commit, lambda: old.shrink(1, "at most", 1.0)):
        with pytest.raises(InvalidInput, match="Make a new one"):
            use()
    assert new.median().guess == 2
