"""Sizes: the smallest that passes, monotone in what is asked, confirmed by a second verifier."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.theory.coins import Profile
from holdfast.theory.divergence import Curve, GaussianCurve, RenyiCurve
from holdfast.theory.sizing import (
    Promise,
    Size,
    Sized,
    certified,
    minimise,
    smallest_blocks,
    steepest_at,
)
from holdfast.theory.transfer import decisive_mass
from tests.theory import checker

NEVER = Profile(np.array([0.5, 0.0]))  # a coin that errs only at its target
QUERIES = st.integers(2, 60)
GRIDS = st.integers(2, 40)
TAILS = st.floats(0.002, 0.3)
CONFIDENCES = st.floats(0.5, 0.999)


@st.composite
def promises(draw: st.DrawFn) -> Promise:
    tail = draw(TAILS)
    return Promise(draw(QUERIES), draw(GRIDS), tail, tail, draw(CONFIDENCES))


def parameters(promise: Promise) -> tuple[float, float]:
    """An order and a budget that are good enough for any of them."""
    width = 1 - promise.tail_low - promise.tail_high
    return 5 + 28 * (1 - width) / width, 0.5 * width**3


def sized(promise: Promise, share: float = 0.5, target: float | None = None) -> Sized | None:
    return steepest_at(promise, *parameters(promise), share, target)


def passes(found: Sized, promise: Promise, blocks: int) -> bool:
    beta = promise.failure
    return certified(promise, found.curve, found.profile, Size(blocks, blocks, beta, beta))


@settings(max_examples=40)
@given(promises())
def test_the_size_passes_and_nothing_smaller_does(promise: Promise) -> None:
    found = sized(promise)
    assume(found is not None)
    assert found is not None
    blocks = found.size.blocks
    assert found.size == Size(blocks, blocks, promise.failure, promise.failure)
    assert passes(found, promise, blocks)
    smaller = {1, 2, blocks // 2, *range(max(1, blocks - 9), blocks)} - {0, blocks}
    assert not any(passes(found, promise, m) for m in smaller)
    # More blocks of the same parity keep passing; so does the other parity, a little later.
    assert all(passes(found, promise, blocks + more) for more in (2, 4, 50, 1000))
    assert passes(found, promise, blocks + 101)


def test_nothing_smaller_at_all() -> None:
    for queries, tail in itertools.product((1, 5), (0.02, 0.1)):
        promise = Promise(queries, 4, tail, tail, 0.9)
        found = sized(promise)
        assert found is not None
        assert [m for m in range(1, found.size.blocks + 1) if passes(found, promise, m)] == [
            found.size.blocks
        ]


# Unequal tails.


@cache
def unequal() -> tuple[tuple[Promise, float, float | None, Sized], ...]:
    rng = random.Random(4)
    found: list[tuple[Promise, float, float | None, Sized]] = []
    while len(found) < 25:
        low, high = rng.choice((0.01, 0.05, 0.1, 0.2)), rng.choice((0.01, 0.05, 0.15, 0.3))
        promise = Promise(rng.choice((1, 5, 20)), rng.choice((2, 32)), low, high, 0.9)
        share, target = rng.choice((0.3, 0.5, 0.7)), rng.choice((None, None, 0.35, 0.6))
        size = sized(promise, share, target)
        if size is not None:
            found.append((promise, share, target, size))
    return tuple(found)


def test_unequal_tails_pass_and_share_the_failure() -> None:
    for promise, share, target, found in unequal():
        size = found.size
        assert certified(promise, found.curve, found.profile, size)
        if promise.symmetric and target is None:
            continue
        assert size.failure_low + size.failure_high <= promise.failure
        assert size.failure_low == pytest.approx(share * promise.failure)
        assert size.twice_target % 2 == 0
        if target is not None:
            assert size.twice_target == 2 * round(target * size.blocks)


def test_unequal_tails_are_sized_within_rounding_of_the_real_optimum() -> None:
    """Real-valued m, without whole targets: (reach_low + reach_high) / (1 − f_low − f_high)."""
    for promise, _, target, found in unequal():
        size = found.size
        if promise.symmetric or target is not None:
            continue
        sides = [(promise.tail_low, size.failure_low), (promise.tail_high, size.failure_high)]
        drift = sum(decisive_mass(found.curve, tail, beta) / beta for tail, beta in sides)
        reach = sum(found.profile.shortfall(beta, 2 * size.blocks) for _, beta in sides)
        least = reach / (1 - drift)
        assert least - 1 <= size.blocks <= least + 3 / (1 - drift) + 1


def test_mirrored_tails_need_mirrored_targets() -> None:
    one = sized(Promise(20, 8, 0.05, 0.2, 0.9), share=0.25)
    two = sized(Promise(20, 8, 0.2, 0.05, 0.9), share=0.75)
    assert one is not None
    assert two is not None
    assert abs(one.size.blocks - two.size.blocks) <= 4
    shares = (one.size.twice_target / 2 / one.size.blocks, two.size.twice_target / 2)
    assert shares[0] + shares[1] / two.size.blocks == pytest.approx(1, abs=0.03)


# Monotone.


def blocks_or_never(promise: Promise, order: float, budget: float) -> float:
    found = steepest_at(promise, order, budget)
    return math.inf if found is None else found.size.blocks


@settings(max_examples=40)
@given(promises(), st.sampled_from(["queries", "grid_size", "confidence", "tail"]), st.data())
def test_asking_for_more_never_takes_fewer_blocks(
    promise: Promise, field: str, data: st.DataObject
) -> None:
    if field == "tail":
        tail = data.draw(st.floats(promise.tail_low, 0.45))
        more = replace(promise, tail_low=tail, tail_high=tail)
    elif field == "confidence":
        more = replace(promise, confidence=data.draw(st.floats(promise.confidence, 0.9999)))
    else:
        now = getattr(promise, field)
        more = replace(promise, **{field: data.draw(st.integers(now, 3 * now + 2))})
    at = parameters(promise)
    assert blocks_or_never(promise, *at) <= blocks_or_never(more, *at) + 1  # parity may swap


# What is refused.


def test_a_hopeless_promise_has_no_size() -> None:
    """More drift than the median can absorb, whatever the number of blocks."""
    assert steepest_at(Promise(1, 2, 0.4, 0.4, 0.95), 2.0, 1.0) is None
    assert steepest_at(Promise(1, 2, 0.4, 0.3, 0.95), 2.0, 1.0) is None
    assert steepest_at(Promise(1, 2, 0.3, 0.1, 0.95), 8.0, 0.1, target=0.31) is None


def test_a_target_outside_the_tails_is_refused() -> None:
    for promise, target in (
        (Promise(1, 2, 0.3, 0.1, 0.95), 0.2),
        (Promise(1, 2, 0.1, 0.3, 0.95), 0.8),
    ):
        with pytest.raises(InvalidInput, match="between the tails"):
            steepest_at(promise, 8.0, 0.1, target=target)


def test_no_smaller_size_of_unequal_tails_passes() -> None:
    """Rounding the target makes success come and go: the first success is what counts."""
    promise = Promise(3, 2, 0.1, 0.05, 0.95)
    for order, budget, fewest in ((3.0, 0.1, 519), (8.0, 0.7, 210), (4.0, 0.1, 52)):
        found = steepest_at(promise, order, budget)
        assert found is not None
        size, profile = found.size, found.profile
        assert size.blocks == fewest
        low, high = size.failure_low, size.failure_high
        needs = [
            decisive_mass(found.curve, promise.tail_low, low),
            decisive_mass(found.curve, promise.tail_high, high),
        ]
        passing = [
            m
            for m in range(1, fewest + 4)
            if any(
                needs[0] < profile.mass(low, 2 * count, m)
                and needs[1] < profile.mass(high, 2 * (m - count), m)
                for count in range(m // 3, m + 1)
            )
        ]
        assert passing[0] == fewest
        assert fewest + 1 not in passing


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"queries": 0}, "queries"),
        ({"queries": 1.5}, "queries"),
        ({"grid_size": 1}, "grid"),
        ({"tail_low": 0.0}, "tail"),
        ({"tail_high": 1.0}, "tail"),
        ({"tail_low": 0.5, "tail_high": 0.5}, "tails"),
        ({"tail_low": 0.7, "tail_high": 0.4}, "tails"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 0.0}, "confidence"),
    ],
)
def test_impossible_promises_are_refused(change: dict[str, float], parameter: str) -> None:
    with pytest.raises(InvalidInput, match=parameter):
        replace(Promise(10, 8, 0.1, 0.1, 0.95), **change)  # type: ignore[arg-type]


def test_what_a_promise_says() -> None:
    promise = Promise(1000, 33, 0.25, 0.25, 0.95)
    assert (promise.looks_per_query, promise.looks, promise.symmetric) == (6, 6000, True)
    assert promise.failure == pytest.approx(0.05, rel=1e-12)
    assert Promise(7, 2, 0.25, 0.2, 0.95).looks == 7
    assert Promise(7, 2**62, 0.25, 0.2, 0.95).looks == 7 * 62


Certified = Callable[[Promise, Curve, Profile, Size], bool]


def respects_the_shares(test: Certified) -> bool:
    """Whether β is one whole only for equal tails about m/2, and shared in every other case."""
    free = (GaussianCurve(1e-3), NEVER)
    equal, unequal = Promise(1, 2, 0.2, 0.2, 0.9), Promise(1, 2, 0.2, 0.1, 0.9)
    beta = equal.failure
    return (
        test(equal, *free, Size(100, 100, beta, beta))
        and not test(unequal, *free, Size(100, 100, beta, beta))
        and test(unequal, *free, Size(100, 100, beta / 2, beta / 2))
        and not test(equal, *free, Size(100, 102, beta, beta))
        and test(equal, *free, Size(100, 102, beta / 2, beta / 2))
        and not test(equal, *free, Size(100, 100, beta, beta / 2))
        and not test(equal, *free, Size(100, 100, beta * 1.01, beta * 1.01))
        and not test(unequal, *free, Size(100, 202, beta / 2, beta / 2))
        and not test(unequal, *free, Size(100, -2, beta / 2, beta / 2))
    )


def test_two_sides_share_the_failure_unless_they_are_one_class() -> None:
    assert respects_the_shares(certified)
    size = smallest_blocks(Promise(1, 2, 0.2, 0.1, 0.9), GaussianCurve(1e-3), NEVER)
    assert size is not None
    assert size.failure_low + size.failure_high <= Promise(1, 2, 0.2, 0.1, 0.9).failure


# A second verifier.


def confirmed(promise: Promise, found: Sized, size: Size) -> bool:
    """By 50-digit arithmetic that shares no code with the library."""
    assert found.coin is not None
    order = found.parameters[0]
    return checker.check(
        order,
        found.coin.price(order),
        found.coin.floor,
        promise.looks,
        size.blocks,
        size.twice_target,
        promise.tail_low,
        promise.tail_high,
        size.failure_low,
        size.failure_high,
        promise.symmetric and size.twice_target == size.blocks,
    )


@pytest.mark.parametrize(
    ("queries", "grid_size", "tail", "confidence"),
    [(100, 32, 0.25, 0.95), (30, 2, 0.05, 0.99), (1, 1000, 0.01, 0.5), (7, 5, 0.4, 0.9)],
)
def test_a_slow_verifier_agrees(
    queries: int, grid_size: int, tail: float, confidence: float
) -> None:
    promise = Promise(queries, grid_size, tail, tail, confidence)
    found = sized(promise)
    assert found is not None
    blocks = found.size.blocks
    assert confirmed(promise, found, found.size)
    less = replace(found.size, blocks=blocks - 2, twice_target=blocks - 2)
    assert not confirmed(promise, found, less)


def test_a_slow_verifier_agrees_on_unequal_tails() -> None:
    verdicts = []
    for promise, _, target, found in unequal()[:12]:
        size = found.size
        if promise.symmetric and target is None:
            continue
        for fewer in (-4, 0, 2, size.blocks // 4):
            blocks = size.blocks - fewer
            for nearby in (-2, 0, 2):
                twice = round(size.twice_target / 2 * blocks / size.blocks) * 2 + nearby
                other = replace(size, blocks=blocks, twice_target=min(twice, 2 * blocks))
                verdicts.append(certified(promise, found.curve, found.profile, other))
                assert confirmed(promise, found, other) == verdicts[-1]
    assert 20 < sum(verdicts) < len(verdicts) - 20


def test_the_verifier_is_not_easily_pleased() -> None:
    promise = Promise(30, 8, 0.1, 0.1, 0.95)
    # More budget than is best: then everything that costs more must fail, at this size.
    found = steepest_at(promise, 12.0, 0.6)
    assert found is not None
    assert found.coin is not None
    order, m, beta = found.parameters[0], found.size.blocks, promise.failure
    price, floor, looks = found.coin.price(order), found.coin.floor, promise.looks

    def says(
        price: float = price,
        floor: float = floor,
        looks: int = looks,
        blocks: int = m,
        tails: tuple[float, float] = (0.1, 0.1),
        betas: tuple[float, float] = (beta, beta),
    ) -> bool:
        return checker.check(order, price, floor, looks, blocks, blocks, *tails, *betas, True)

    assert says()
    assert not says(price=price * 1.01)
    assert not says(floor=floor * 3e4)
    assert not says(looks=looks + looks // 50)
    assert not says(blocks=m - 2)
    assert not says(tails=(0.101, 0.101))
    assert not says(tails=(0.1, 0.09))  # not one class
    assert not says(betas=(beta * 0.98, beta * 0.98))
    assert not says(betas=(beta, beta * 0.98))


def test_the_minimiser_finds_a_minimum() -> None:
    found = minimise(lambda x: (x[0] - 1) ** 2 + 3 * (x[1] + 2) ** 2, (0.0, 0.0))
    assert found == pytest.approx((1.0, -2.0), abs=0.01)


def test_a_curve_without_any_loss_needs_only_the_coins_reach() -> None:
    promise = Promise(1, 2, 0.25, 0.25, 0.9)
    size = smallest_blocks(promise, RenyiCurve(2, 0.0), NEVER)
    # E ≥ β/2·(m + 1)/m > β/4 already for one block.
    assert size == Size(1, 1, promise.failure, promise.failure)
