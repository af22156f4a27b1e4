"""Sizes: the smallest that passes, by every method, confirmed by a second verifier."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.theory.bars import in_quantile_interval
from holdfast.theory.coins import Profile, exponential_price, gaussian_price
from holdfast.theory.divergence import Curve, GaussianCurve, RenyiCurve
from holdfast.theory.paper import adaptive_iqr
from holdfast.theory.sizing import (
    FULL,
    Builder,
    Promise,
    Size,
    Sized,
    best_exponential,
    best_gaussian,
    best_rank,
    best_steepest,
    certified,
    exponential_draft,
    floor_for,
    fresh_blocks,
    fresh_split,
    gaussian_draft,
    hoeffding_failure,
    median_failure,
    median_samples,
    smallest_blocks,
    split_failure,
    steepest_at,
    steepest_draft,
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
    for order, budget, fewest in ((8.0, 0.7, 210), (4.0, 0.1, 52)):
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


def test_impossible_promises_are_refused() -> None:
    wrong: dict[str, list[dict[str, Any]]] = {
        "queries": [{"queries": 0}, {"queries": 1.5}],
        "grid": [{"grid_size": 1}],
        "tail": [{"tail_low": 0.0}, {"tail_high": 1.0}],
        "tails": [{"tail_low": 0.5, "tail_high": 0.5}, {"tail_low": 0.7, "tail_high": 0.4}],
        "confidence": [{"confidence": 1.0}, {"confidence": 0.0}],
    }
    for parameter, changes in wrong.items():
        for change in changes:
            with pytest.raises(InvalidInput, match=parameter):
                replace(Promise(10, 8, 0.1, 0.1, 0.95), **change)
    for order, budget in ((1.0, 0.1), (2.0, 0.0), (2.0, -1.0), (1e5, 0.1)):
        with pytest.raises(InvalidInput):
            steepest_at(Promise(10, 8, 0.1, 0.1, 0.95), order, budget)


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


def test_a_slow_verifier_agrees_on_unequal_tails() -> None:
    verdicts = []
    for promise, _, target, found in unequal()[:4]:
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
    assert 6 < sum(verdicts) < len(verdicts) - 6


def test_the_verifier_is_not_easily_pleased() -> None:
    promise = Promise(30, 8, 0.1, 0.1, 0.95)
    # More budget than is best: then everything that costs more must fail, at this size.
    found = steepest_at(promise, 12.0, 0.6)
    assert found is not None
    assert found.coin is not None
    order, m, beta = found.parameters[0], found.size.blocks, promise.failure
    at: dict[str, Any] = {
        "order": order,
        "look_price": found.coin.price(order),
        "floor": found.coin.floor,
        "looks": promise.looks,
        "tails": (0.1, 0.1),
        "betas": (beta, beta),
        "blocks": m,
    }

    def says(**other: Any) -> bool:
        order, price, floor, looks, tails, betas, blocks = {**at, **other}.values()
        sides = (tails[0], tails[1], betas[0], betas[1])
        return checker.check(order, price, floor, looks, blocks, blocks, *sides, True)

    assert says()
    for other in (
        {"look_price": at["look_price"] * 1.01},
        {"floor": at["floor"] * 3e4},
        {"looks": promise.looks + promise.looks // 50},
        {"blocks": m - 2},
        {"tails": (0.101, 0.101)},
        {"tails": (0.1, 0.09)},  # not one class
        {"betas": (beta * 0.98, beta * 0.98)},
        {"betas": (beta, beta * 0.98)},
    ):
        assert not says(**other), other


# --- The methods: the figures, that each is certified, and that optima are optima --------------


BEST: dict[str, Callable[[Promise], Sized]] = {
    "steepest": best_steepest,
    "gaussian": best_gaussian,
    "exponential": best_exponential,
}
DRAFTS: dict[str, Callable[[Promise], Builder]] = {
    "steepest": steepest_draft,
    "gaussian": gaussian_draft,
    "exponential": exponential_draft,
}
methods = pytest.mark.parametrize("name", BEST)


def median_of(queries: int, tail: float, confidence: float = 0.95, grid_size: int = 32) -> Promise:
    return Promise(queries, grid_size, tail, tail, confidence)


@cache
def best(name: str, asked: Promise) -> Sized:
    return BEST[name](asked)


@methods
@pytest.mark.parametrize("asked", [median_of(20, 0.1), median_of(3, 0.3, 0.99, 1000)])
def test_what_a_method_returns_is_certified(name: str, asked: Promise) -> None:
    found = best(name, asked)
    assert certified(asked, found.curve, found.profile, found.size)
    blocks = found.size.blocks
    less = Size(blocks - 2, blocks - 2, asked.failure, asked.failure)
    assert not certified(asked, found.curve, found.profile, less)


@methods
def test_no_parameters_nearby_are_better(name: str) -> None:
    asked = median_of(50, 0.1)
    found = best(name, asked)
    build, at = DRAFTS[name](asked), list(found.parameters[:-1])
    if name == "steepest":
        at[0] -= 1  # drafts count the order from 1
    for i, factor in [(i, f) for i in range(len(at)) for f in (0.7, 0.9, 1.1, 1.4)]:
        moved = [x * factor if j == i else x for j, x in enumerate(at)]
        draft = build(moved, FULL)
        size = smallest_blocks(asked, draft.curve, draft.profile)
        assert size is None or size.blocks >= found.size.blocks * 0.995 - 1


@methods
def test_the_curve_is_what_all_uses_cost(name: str) -> None:
    """Looks times price, for every look that a median_of can need."""
    asked = median_of(20, 0.1)
    found = best(name, asked)
    first, looks = found.parameters[0], asked.looks
    if name == "gaussian":
        assert isinstance(found.curve, GaussianCurve)
        assert found.curve.mu >= math.sqrt(looks) * 0.5 / first
        assert found.coin is not None
        # Its verdicts cost less than the noisy counts that the curve is made for.
        assert found.coin.price(10) <= gaussian_price(10, first)
        return
    assert isinstance(found.curve, RenyiCurve)
    order, budget = found.curve.order, found.curve.budget
    if name == "exponential":
        assert budget >= asked.queries * exponential_price(order, found.parameters[1])
        return
    assert found.coin is not None
    assert found.coin.floor == floor_for(asked) == pytest.approx(1e-6 * asked.failure / looks)
    assert budget >= looks * found.coin.price(order)


@pytest.mark.parametrize(
    "asked",
    [median_of(1, 0.005, 0.5, 2), median_of(90, 0.02, 0.999, 40), median_of(7, 0.3, 0.9, 3)],
)
def test_the_search_is_as_good_as_a_fixed_choice(asked: Promise) -> None:
    """An optimum can only be better than a sensible guess; and it is always found."""
    found = best_steepest(asked)
    assert certified(asked, found.curve, found.profile, found.size)
    guess = steepest_at(asked, *parameters(asked))
    assert guess is None or found.size.blocks <= guess.size.blocks * 1.001 + 2


# Unequal tails and other targets.


def test_unequal_tails_and_other_targets() -> None:
    low, high = (best("steepest", median_of(20, tail)).size.blocks for tail in (0.05, 0.2))
    found = best_steepest(Promise(20, 32, 0.05, 0.2, 0.95))
    assert low < found.size.blocks < high
    # The side with the larger tail needs more room: its target is further away.
    assert found.size.twice_target < found.size.blocks
    asked = median_of(20, 0.05)
    found = best_steepest(asked, 0.7)
    assert found.size.blocks > low
    assert found.size.twice_target == 2 * round(0.7 * found.size.blocks)
    assert certified(asked, found.curve, found.profile, found.size)


def test_a_high_quantile_uses_the_mirror() -> None:
    asked = Promise(10, 8, 0.8, 0.05, 0.95)
    found = best_steepest(asked)
    assert certified(asked, found.curve, found.profile, found.size)
    assert 0.8 < found.size.twice_target / 2 / found.size.blocks < 0.95


def test_the_exponential_mechanism_is_for_medians() -> None:
    with pytest.raises(InvalidInput, match="tails"):
        best_exponential(Promise(10, 8, 0.1, 0.2, 0.95))


# --- Amplification by median, against exact enumeration ----------------------------------------


MEDIAN_TAILS = st.floats(0.001, 0.45)
MEDIAN_FAILURES = st.floats(1e-12, 0.5)


@pytest.mark.parametrize("samples", [1, 3, 5])
@pytest.mark.parametrize("tail", [Fraction(1, 100), Fraction(3, 8)])
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


@given(st.integers(1, 10**5), MEDIAN_TAILS)
def test_the_exact_bound_is_below_hoeffdings(samples: int, tail: float) -> None:
    assert median_failure(samples, tail) <= hoeffding_failure(samples, tail) + 1e-300


@given(MEDIAN_FAILURES, MEDIAN_TAILS)
def test_the_smallest_number_passes_and_the_one_before_fails(failure: float, tail: float) -> None:
    samples = median_samples(failure, tail)
    assert samples % 2 == 1
    assert median_failure(samples, tail) <= failure
    for fewer in {max(1, samples - 1), max(1, samples - 2)} - {samples}:
        assert median_failure(fewer, tail) > failure


@pytest.mark.parametrize(("failure", "tail"), [(0.0, 0.25), (1.0, 0.25), (0.1, 0.5), (0.1, 0.0)])
def test_medians_that_have_no_meaning_are_refused(failure: float, tail: float) -> None:
    with pytest.raises(InvalidInput):
        median_samples(failure, tail)


# --- Fresh splitting ---------------------------------------------------------------------------


SPLIT_QUERIES = st.integers(1, 10**6)
SPLIT_FAILURES = st.floats(1e-9, 0.5)
QUARTER = Fraction(1, 4)


@st.composite
def tails(draw: st.DrawFn) -> tuple[float, float]:
    low, high = draw(st.floats(0.001, 0.9)), draw(st.floats(0.001, 0.9))
    scale = min(1.0, 0.9 / (low + high))
    return low * scale, high * scale


def test_the_papers_constants_win_only_above_168_thousand_questions() -> None:
    # theory.md §9: r = 32, ρ = 1/4, β = 0.05. m₁ moves in steps: the sign settles from here on.
    assert adaptive_iqr(168_148, 32, 0.05) >= fresh_blocks(168_148, 0.05, 0.25)
    assert adaptive_iqr(168_149, 32, 0.05) < fresh_blocks(168_149, 0.05, 0.25)
    assert adaptive_iqr(200_000, 32, 0.05) < fresh_blocks(200_000, 0.05, 0.25)


@pytest.mark.parametrize("blocks", [1, 2, 5])
@pytest.mark.parametrize(("low", "high"), [(QUARTER, QUARTER), (QUARTER / 4, 3 * QUARTER)])
def test_the_bound_is_reached(blocks: int, low: Fraction, high: Fraction) -> None:
    law = {-1: low, 0: 1 - low - high, 1: high}
    assert not in_quantile_interval(-1, list(law), low, 1 - high, weights=list(law.values()))
    assert in_quantile_interval(0, list(law), low, 1 - high, weights=list(law.values()))
    for rank in range(1, blocks + 1):
        outside = sum(
            math.prod((law[y] for y in draw), start=Fraction(1))
            for draw in itertools.product(law, repeat=blocks)
            if sorted(draw)[rank - 1] != 0
        )
        bound = split_failure(blocks, rank, float(low), float(high))
        assert Fraction(bound) == pytest.approx(outside, rel=1e-9)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from([Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)]),
    st.sampled_from([Fraction(1, 20), Fraction(1, 4), Fraction(2, 5)]),
)
def test_no_law_exceeds_the_bound(
    weights: list[int], blocks: int, rank: int, low: Fraction, high: Fraction
) -> None:
    rank = min(rank, blocks)
    values = list(range(len(weights)))
    bad = [y for y in values if not in_quantile_interval(y, values, low, 1 - high, weights=weights)]
    outside = sum(
        (
            math.prod((Fraction(weights[y], sum(weights)) for y in draw), start=Fraction(1))
            for draw in itertools.product(values, repeat=blocks)
            if sorted(draw)[rank - 1] in bad
        ),
        Fraction(0),
    )
    assert outside <= Fraction(split_failure(blocks, rank, float(low), float(high)))


@given(st.integers(1, 60), tails())
def test_the_best_rank_fails_like_one_minus_a_total_variation(
    blocks: int, pair: tuple[float, float]
) -> None:
    """And no other rank fails less."""
    found = split_failure(blocks, best_rank(blocks, *pair), *pair)
    best = min(split_failure(blocks, rank, *pair) for rank in range(1, blocks + 1))
    assert found == pytest.approx(best, rel=1e-8)
    a, b = pair[0], 1 - pair[1]
    overlap = sum(
        math.comb(blocks, i) * min(a**i * (1 - a) ** (blocks - i), b**i * (1 - b) ** (blocks - i))
        for i in range(blocks + 1)
    )
    assert found == pytest.approx(min(1.0, overlap), rel=1e-7)


@given(SPLIT_QUERIES, SPLIT_FAILURES, tails())
def test_the_split_passes_and_one_block_less_fails(
    queries: int, failure: float, pair: tuple[float, float]
) -> None:
    blocks, rank = fresh_split(queries, failure, *pair)
    assert split_failure(blocks, rank, *pair) <= failure / queries
    if 1 < blocks < 300:
        every = [split_failure(blocks - 1, other, *pair) for other in range(1, blocks)]
        assert min(every) > failure / queries * (1 - 1e-8)


@given(SPLIT_QUERIES, SPLIT_FAILURES, st.floats(0.001, 0.49))
def test_equal_tails_are_the_median(queries: int, failure: float, tail: float) -> None:
    blocks, rank = fresh_split(queries, failure, tail, tail)
    assert queries * blocks == fresh_blocks(queries, failure, tail)
    assert blocks % 2 == 1
    assert rank == (blocks + 1) // 2


def test_tails_of_zero_ask_for_one_side_only() -> None:
    # Only P[Bin(m₁, 1/4) ≥ m₁] = 4^−m₁ can go wrong, and only P[Bin(m₁, 1/2) ≥ m₁] = 2^−m₁.
    assert fresh_split(1, 0.01, 0.0, 0.25) == (4, 1)
    assert fresh_split(1, 0.01, 0.5, 0.0) == (7, 7)
    assert fresh_split(1, 0.01, 0.0, 0.0) == (1, 1)


def test_splits_that_have_no_meaning_are_refused() -> None:
    for wrong in ((0, 0.1, 0.25, 0.25), (1, 0.0, 0.25, 0.25), (1, 0.1, 0.5, 0.5), (1, 0.1, 1, 0)):
        with pytest.raises(InvalidInput):
            fresh_split(*wrong)
