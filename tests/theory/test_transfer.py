"""The transfer theorem by full enumeration: every dataset, transcript and analyst of tiny worlds.

Each step of the proof is checked on its own, for thousands of analysts, and is shown to have
power: some world comes within a few per cent of breaking it. Then the conclusion: whenever the
promise is certified at β, the best analyst there is breaks it with a probability below β.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Protocol

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from holdfast.errors import InvalidInput
from holdfast.theory.coins import (
    Coin,
    Profile,
    coin_profile,
    exponential_price,
    exponential_profile,
    probit_coin,
    steepest_coin,
)
from holdfast.theory.divergence import Curve, GaussianCurve, RenyiCurve
from holdfast.theory.sizing import Promise, Size, certified
from holdfast.theory.transfer import (
    decisive_mass,
    largest_sample_mass,
    least_population_mass,
    meeting_mass,
    paired_mass,
    transfers,
)
from tests.reference.transfer import (
    ApproximateCurve,
    coin_losses,
    mirror_transfers,
)
from tests.theory.worlds import (
    ANY,
    Facts,
    Population,
    Rules,
    Searches,
    Side,
    World,
    divergences,
    exponential,
    facts,
    looks,
    most_broken,
    tables,
)

Array = NDArray[np.float64]
ORDERS = (1.2, 2.0, 8.0, 100.0)
SLACK = 1 + 1e-9
BROKEN: dict[Side, tuple[str, ...]] = {
    "low": ("too low",),
    "high": ("too high",),
    "both": ("too low", "too high"),
}


@dataclass(frozen=True)
class Case:
    """A coin, a world that uses it, and how many looks its analysts get."""

    coin: Coin
    world: World
    queries: int
    tail: Fraction
    twice_target: int
    side: Side = ANY

    @property
    def looks(self) -> int:
        return self.queries * (self.world.size - 1).bit_length()

    @property
    def twice_reach(self) -> int:
        """Twice the count that the offending side should have on the sample."""
        other = 2 * self.world.blocks - self.twice_target
        return other if self.side == "high" else self.twice_target

    @cache  # noqa: B019 (a case is made once)
    def facts(self) -> Facts:
        return facts(self.world, self.queries, self.tail, self.side, most=5_000)

    def broken(self) -> float:
        """P[bad] of the best analyst there is."""
        population = Population(self.world.atoms, self.world.blocks)
        tails = (self.tail, self.tail)
        search = Searches(self.coin, 0.0, self.twice_target, *tails, self.world.size)
        rules = Rules(1.0, self.queries, 0)
        return most_broken(population, search.actions(population), rules, *BROKEN[self.side])


def coins() -> list[Coin]:
    """Steep and flat, smooth and jagged: what a proof by example must not depend on."""
    steepest = [steepest_coin(a, c, f) for a, c, f in COINS]
    return [*steepest, *(Coin("random", table) for table in tables(seed=7, count=12))]


COINS = [
    (15.0, 0.02, 1e-4),
    (15.0, 0.3, 1e-4),
    (4.0, 0.1, 1e-4),
    (4.0, 1.0, 1e-6),
    (1.5, 0.6, 1e-3),
    (100.0, 2.0, 1e-3),
]
SHAPES = [  # blocks, points, questions, atoms besides the last
    (1, 2, 1, 1),
    (1, 2, 3, 1),
    (2, 2, 2, 2),
    (2, 3, 2, 1),
    (3, 2, 2, 2),
    (3, 4, 2, 1),
    (4, 2, 2, 2),
    (5, 2, 2, 1),
    (6, 2, 1, 2),
    (6, 3, 1, 2),
]


def central_cases() -> Iterator[Case]:
    """Equal tails, target m/2: one class."""
    rng = random.Random(2)
    for coin, (blocks, size, queries, rare) in itertools.product(coins(), SHAPES):
        tail = Fraction(rng.choice(["1/1000", "1/100", "1/20", "1/10", "1/4", "2/5"]))
        atoms = (*([tail] * rare), 1 - rare * tail)
        yield Case(coin, World(atoms, blocks, size, looks(coin.yes)), queries, tail, blocks)


def one_sided_cases() -> Iterator[Case]:
    """Any whole or half target, one side, tails up to 0.9: where the mirror is needed."""
    rng = random.Random(3)
    for coin, (blocks, size, queries, rare) in itertools.product(coins(), SHAPES):
        tail = Fraction(rng.choice(["1/50", "1/5", "1/2", "7/10", "9/10"]))
        atoms = (*([tail / rare] * rare), 1 - tail)
        side: Side = rng.choice(("low", "high"))
        share = min(0.97, float(tail) + rng.choice((0.05, 0.2, 0.4)))
        twice = round(2 * blocks * (share if side == "low" else 1 - share))
        twice = min(2 * blocks - 1, max(1, twice))
        world = World(atoms, blocks, size, looks(coin.yes, twice))
        yield Case(coin, world, queries, tail, twice, side)


@cache
def cases() -> tuple[Case, ...]:
    return (*central_cases(), *one_sided_cases())


# The steps of the proof. Each says how near the worst analyst comes to breaking it: 1 is broken.


def divergence(order: float, p: Array, q: Array) -> Array:
    """D(p‖q) of coins, 0 where p ≤ q: only an increase is limited."""
    p, q = np.minimum(p, 1.0), np.minimum(q, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        one = order * np.log(p) + (1 - order) * np.log(q)
        two = order * np.log1p(-p) + (1 - order) * np.log1p(-q)
        value = np.logaddexp(one, two) / (order - 1)
    return np.where(p > q * (1 + 1e-13), value, 0.0)


def freshness(found: Facts, tail: Fraction) -> float:
    """Under law 2 block i is independent of the transcript: P₂[bad, ψ(S_i)] ≤ ρ·P₂[bad]."""
    return float(np.max(found.fresh / (float(tail) * found.bad_without + 1e-300)))


def stability(found: Facts, order: float, budget: float) -> float:
    """Data processing, four times, between the laws 1 and 2."""
    events = [
        (found.sample, found.fresh),
        (found.bad_without, found.bad),
        (found.bad, found.bad_without),
        (found.bad_without - found.fresh, found.bad - found.sample),
    ]
    return max(float(np.max(divergence(order, p, q))) for p, q in events) / budget


def profile_left(found: Facts, profile: Profile, twice_reach: int, blocks: int) -> float:
    """E[1(bad)·S[ψ]] ≥ ℓ(P[bad]): the sample really has the mass that the profile says."""
    return max(
        (profile.mass(float(bad), twice_reach, blocks) - 1e-15) / max(float(sample), 1e-300)
        for bad, sample in zip(found.bad, found.sample, strict=True)
        if bad > 0
    )


class Limit(Protocol):
    """What `largest_sample_mass` is."""

    def __call__(self, curve: Curve, tail: float, failure: float, *, centred: bool) -> float: ...


def transferred(
    found: Facts, curve: Curve, tail: Fraction, centred: bool, limit: Limit = largest_sample_mass
) -> float:
    """E[1(bad)·S[ψ]] ≤ F(ρ·F(P[bad])), or F(ρ·P[bad]) between neighbours."""
    return max(
        float(sample) / limit(curve, float(tail), float(bad), centred=centred)
        for bad, sample in zip(found.bad, found.sample, strict=True)
        if 0 < bad < 1
    )


def mirrored(found: Facts, curve: Curve, tail: Fraction, centred: bool) -> float:
    """(1 − ρ)·F⁻¹(P[bad]) ≤ F(E[1(bad)·S[1 − ψ]]), or (1 − ρ)·P[bad] between neighbours."""
    return max(
        least_population_mass(curve, float(1 - tail), float(bad), centred=centred)
        / max(curve.largest(min(1.0, max(0.0, float(bad - sample)))), 1e-300)
        for bad, sample in zip(found.bad, found.sample, strict=True)
        if 0 < bad < 1
    )


def extremes(found: Facts, count: int = 5) -> Facts:
    """The analysts most likely to break a step: extreme in a ratio that the steps bound."""
    possible = np.flatnonzero((found.bad > 0) & (found.bad < 1))
    some = found.only(possible)
    ratios = [
        some.bad,
        some.sample / some.bad,
        some.bad_without / some.bad,
        some.sample / (some.fresh + 1e-300),
    ]
    order = np.concatenate([np.argsort(ratio) for ratio in ratios])
    each = np.reshape(order, (4, -1))
    chosen = np.unique(np.concatenate([each[:, :count], each[:, -count:]], axis=1))
    return some.only(chosen)


def test_a_fresh_block_knows_nothing() -> None:
    assert sum(len(case.facts()) for case in cases()) > 100_000
    nearest = max(freshness(case.facts(), case.tail) for case in cases())
    assert 0.999 < nearest < SLACK


Price = Callable[[Coin, float], float]


def worst_stability(price: Price = Coin.price) -> float:
    return max(
        stability(case.facts(), order, case.looks * price(case.coin, order))
        for case in cases()
        for order in ORDERS
    )


def test_the_two_laws_are_as_close_as_the_looks_cost() -> None:
    nearest = worst_stability()
    assert 0.99 < nearest < SLACK


def worst_profile(
    build: Callable[[Coin, int], Profile] = coin_profile,
    reach: Callable[[Case], int] = lambda case: case.twice_reach,
) -> float:
    return max(
        profile_left(
            extremes(case.facts()), build(case.coin, case.looks), reach(case), case.world.blocks
        )
        for case in cases()
    )


def test_the_sample_has_the_mass_that_the_profile_says() -> None:
    nearest = worst_profile()
    assert 0.95 < nearest < SLACK


def worst_mass(
    step: Callable[[Facts, Curve, Fraction, bool], float], price: Price, centred: bool
) -> float:
    return max(
        step(
            extremes(case.facts()),
            RenyiCurve(order, case.looks * price(case.coin, order)),
            case.tail,
            centred,
        )
        for case in cases()[::4]
        for order in (2.0, 100.0)
    )


def worst_transfer(
    price: Price = Coin.price, *, centred: bool = True, limit: Limit = largest_sample_mass
) -> float:
    return worst_mass(partial(transferred, limit=limit), price, centred)


def worst_mirror(price: Price = Coin.price, *, centred: bool = True) -> float:
    return worst_mass(mirrored, price, centred)


@pytest.mark.parametrize("step", [worst_transfer, worst_mirror], ids=["direct", "mirror"])
def test_stability_limits_the_mass_on_the_sample(step: Callable[..., float]) -> None:
    """Centred and between neighbours. P[bad] may differ between M and Q: F(ρ·P[bad]) with the
    centred price is no bound."""
    assert 0.75 < step() < SLACK
    assert 0.75 < step(Coin.neighbour_price, centred=False) < SLACK
    assert step(Coin.price, centred=False) > 1.2


# Other curves: Gaussian, and numerically composed.


def decided(curve: Curve, tail: float, failure: float, *, centred: bool) -> float:
    """The sharpest of the bounds."""
    return decisive_mass(curve, tail, failure, centred=centred)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 2.5])
def test_gaussian_counts_keep_their_gaussian_curve(sigma: float) -> None:
    nearest = 0.0
    for floor, (blocks, size, queries, rare) in itertools.product((1e-2, 1e-9), SHAPES[:8]):
        coin, tail = probit_coin(sigma, floor), Fraction(1, 10)
        atoms = (*([tail] * rare), 1 - rare * tail)
        case = Case(coin, World(atoms, blocks, size, looks(coin.yes)), queries, tail, blocks)
        curve = GaussianCurve(math.sqrt(case.looks) / (2 * sigma))
        found = extremes(case.facts(), 6)
        for p, q in ((found.sample, found.fresh), (found.bad, found.bad_without)):
            for one, two in zip(p, q, strict=True):
                assert one <= curve.largest(float(two)) * SLACK
                assert two >= curve.smallest(float(one)) / SLACK
        nearest = max(nearest, transferred(found, curve, tail, True, decided))
    assert 0.2 < nearest < SLACK


def test_a_composed_curve_keeps_the_theorem_and_is_sharper() -> None:
    """F from numerically composed losses: no step is broken, and it beats the moments."""
    better = 0
    for case in cases()[:120:13]:
        composed = coin_losses(case.coin, step=4e-3).composed(case.looks).curve()
        found = extremes(case.facts(), 5)
        assert transferred(found, composed, case.tail, True, decided) < SLACK
        moments = [RenyiCurve(a, case.looks * case.coin.price(a)) for a in ORDERS]
        tail, beta = float(case.tail), 0.2
        best = min(largest_sample_mass(curve, tail, beta, centred=True) for curve in moments)
        better += largest_sample_mass(composed, tail, beta, centred=True) < best
    assert better >= 6


# The exponential mechanism.


def exponential_worlds() -> Iterator[tuple[float, World, int, Fraction]]:
    for epsilon, (blocks, size, queries, rare) in itertools.product((0.3, 1.0, 4.0), SHAPES):
        tail = Fraction(1, 10)
        atoms = (*([tail] * rare), 1 - rare * tail)
        yield epsilon, World(atoms, blocks, size, exponential(epsilon)), queries, tail


def worst_exponential(
    price: Callable[[float, float], float] = exponential_price,
    build: Callable[[float, int, int], Profile] = exponential_profile,
) -> tuple[float, float]:
    """How near the worst analyst comes to the price and to the profile of `EM-med`."""
    stable, accurate = 0.0, 0.0
    for epsilon, world, queries, tail in exponential_worlds():
        found = facts(world, queries, tail, most=20_000)
        for order in ORDERS:
            stable = max(stable, stability(found, order, queries * price(order, epsilon)))
        profile = build(epsilon, world.size, queries)
        left = profile_left(extremes(found), profile, world.blocks, world.blocks)
        accurate = max(accurate, left)
    return stable, accurate


def test_the_exponential_mechanism_keeps_its_price_and_its_profile() -> None:
    stable, accurate = worst_exponential()
    assert 0.8 < stable < SLACK
    assert 0.2 < accurate < SLACK


# Whole transcripts, law against law.


def worst_transcripts(
    price: Price = Coin.price, neighbour: Price = Coin.neighbour_price
) -> tuple[float, float, int]:
    """The largest divergence over all datasets, as a share of looks × price; how many pairs."""
    rng = random.Random(5)
    centre, neighbours, pairs = 0.0, 0.0, 0
    for case, order in itertools.product(cases(), (1.5, 8.0, 100.0)):
        found = divergences(case.world, case.queries, order, rng)
        centre = max(centre, found["centre"].max() / (case.looks * price(case.coin, order)))
        most = case.looks * neighbour(case.coin, order)
        neighbours = max(neighbours, found["neighbours"].max() / most)
        pairs += found["centre"].size + found["neighbours"].size
    return float(centre), float(neighbours), pairs


def test_transcripts_of_all_datasets_are_within_looks_times_price() -> None:
    centre, neighbours, pairs = worst_transcripts()
    assert pairs > 30_000
    assert 0.999 < centre < SLACK
    assert 0.999 < neighbours < SLACK


# The conclusion.


def least_certified(holds: Callable[[float], bool]) -> float | None:
    """The smallest β, to three digits, at which a promise is certified."""
    low, high = 0.0, 1 - 1e-9
    if not holds(high):
        return None
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
        if high - low < 1e-3 * high:
            break
    return high


Certified = Callable[[Promise, Curve, Profile, Size], bool]


def check_central(case: Case, order: float, test: Certified = certified) -> float:
    """P[bad] of the best analyst over the smallest certified β: 0 if there is none."""
    curve = RenyiCurve(order, case.looks * case.coin.price(order))
    profile = coin_profile(case.coin, case.looks)
    tail, blocks = float(case.tail), case.world.blocks

    def holds(beta: float) -> bool:
        promise = Promise(case.queries, case.world.size, tail, tail, 1 - beta)
        beta = promise.failure
        return test(promise, curve, profile, Size(blocks, blocks, beta, beta))

    beta = least_certified(holds)
    return 0.0 if beta is None else case.broken() / beta


def tightest_central(test: Certified = certified) -> tuple[float, int]:
    """The largest such share over worlds and orders, and how many promises were certified."""
    shares = []
    for case in central_cases():
        if len(case.world.questions) ** case.queries > 1000:
            continue
        shares += [check_central(case, order, test) for order in (2.0, 8.0, 30.0)]
        if max(shares) >= 1:  # broken: one is enough
            break
    return max(shares), sum(share > 0 for share in shares)


def test_no_analyst_breaks_a_certified_promise() -> None:
    share, certified_worlds = tightest_central()
    assert certified_worlds > 150
    assert 0.95 < share < 1


FLAT = [(15.0, 0.02, 1e-4), (4.0, 0.1, 1e-4), (15.0, 0.003, 1e-4), (40.0, 0.01, 1e-3)]


def far_cases() -> Iterator[Case]:
    """One side, the target well beyond the tail: promises that can be certified."""
    for parameters, blocks, queries in itertools.product(FLAT, (5, 12, 20), (1, 2)):
        coin = steepest_coin(*parameters)
        for numerator, gap in itertools.product((1, 10, 25, 40), (0.15, 0.3, 0.45)):
            tail = Fraction(numerator, 50)
            share = min(float(tail) + gap, (1 + float(tail)) / 2)
            side: Side = "low" if (numerator + blocks) % 2 else "high"
            reach = round(2 * blocks * share)
            target = reach if side == "low" else 2 * blocks - reach
            world = World((tail, 1 - tail), blocks, 2, looks(coin.yes, target))
            yield Case(coin, world, queries, tail, target, side)


Decisive = Callable[[Curve, float, float], float]


def tightest_sides(decisive: Decisive = decisive_mass) -> tuple[float, float, int]:
    """P[bad] of the best analyst over the smallest certified β, by the theorem, by the mirror."""
    direct, mirror, total = 0.0, 0.0, 0
    for case in far_cases():
        profile = coin_profile(case.coin, case.looks)
        tail, blocks = float(case.tail), case.world.blocks
        reached = case.broken()
        for order in (4.0, 30.0):
            curve = RenyiCurve(order, case.looks * case.coin.price(order))
            mass = partial(profile.mass, twice_target=case.twice_reach, blocks=blocks)
            beta = least_certified(partial(beats, decisive, curve, tail, mass))
            if beta is None:
                continue
            total += 1
            if transfers(curve, tail, beta, mass(beta), centred=True):
                direct = max(direct, reached / beta)
            else:
                mirror = max(mirror, reached / beta)
        if max(direct, mirror) >= 1:  # broken: one is enough
            break
    return direct, mirror, total


def beats(
    decisive: Decisive, curve: Curve, tail: float, mass: Callable[[float], float], beta: float
) -> bool:
    return decisive(curve, tail, beta) < mass(beta)


def test_no_analyst_breaks_one_side_of_a_certified_promise() -> None:
    direct, mirror, total = tightest_sides()
    assert total > 150
    assert 0.9 < direct < 1
    assert 0.35 < mirror < 1


def tightest_classes(test: Certified = certified) -> tuple[float, int]:
    """Unequal tails through `certified`: P[bad] of each side over its share of the smallest β."""
    low, high, checked, tightest = Fraction(1, 50), Fraction(1, 5), 0, 0.0
    for parameters, blocks, share in itertools.product(FLAT, (5, 8, 12), (0.3, 0.6)):
        coin = steepest_coin(*parameters)
        curve, profile = RenyiCurve(4.0, coin.price(4.0)), coin_profile(coin, 1)
        for target in range(blocks // 2, 2 * blocks - blocks // 3):
            sized = partial(shared_size, blocks, target, share)

            def holds(beta: float, curve: Curve = curve, profile: Profile = profile) -> bool:
                promise = Promise(1, 2, float(low), float(high), 1 - beta)
                return test(promise, curve, profile, sized(promise.failure))  # noqa: B023

            beta = least_certified(holds)
            if beta is not None:
                checked += 1
                population = Population((low, high, 1 - low - high), blocks)
                actions = Searches(coin, 0.0, target, low, high, 2).actions(population)
                first, second = (
                    most_broken(population, actions, Rules(1.0, 1, 0), side)
                    for side in ("too low", "too high")
                )
                found = (first / sized(beta).failure_low, second / sized(beta).failure_high)
                tightest = max(tightest, *found)
        if tightest >= 1:  # broken: one is enough
            break
    return tightest, checked


def test_two_classes_each_keep_within_their_share() -> None:
    tightest, checked = tightest_classes()
    assert checked > 25
    assert 0.5 < tightest < 1


def shared_size(blocks: int, twice_target: int, share: float, beta: float) -> Size:
    return Size(blocks, twice_target, beta * share, beta * (1 - share) * (1 - 1e-12))


# The formulas.


@given(st.floats(1.1, 100), st.floats(1e-4, 1), st.floats(0.001, 0.99), st.floats(1e-6, 0.5))
def test_the_decisive_mass_is_the_best_of_three(
    order: float, budget: float, tail: float, failure: float
) -> None:
    assert is_decisive(decisive_mass, order, budget, tail, failure)


def is_decisive(
    decisive: Decisive, order: float, budget: float, tail: float, failure: float
) -> bool:
    """A little more mass is proved by one of the theorems, a little less by none."""
    curve = RenyiCurve(order, budget)
    needed = decisive(curve, tail, failure)
    above, below = needed * (1 + 1e-9), needed * (1 - 1e-9)
    both = paired_mass(order, budget, tail, failure)

    def by_mirror(mass: float) -> bool:
        rest = max(0.0, failure - mass)
        return mirror_transfers(curve, 1 - tail, failure, rest, centred=True)

    enough = transfers(curve, tail, failure, above, centred=True) or both < above
    return (
        (enough or by_mirror(above))
        and not transfers(curve, tail, failure, below, centred=True)
        and not both < below
        and (tail < 0.4 or not by_mirror(below * (1 - 1e-6)))
    )


# Each theorem is needed: order, budget, tail and failure where it is the sharpest.
SHARPEST = {
    "direct": (2.0, 0.5, 0.001, 0.5),
    "mirror": (8.0, 0.02, 0.99, 0.5),
    "paired": (25.0, 0.1335, 0.25, 0.05),
}


@pytest.mark.parametrize("theorem", SHARPEST)
def test_each_of_the_three_is_sometimes_the_sharpest(theorem: str) -> None:
    order, budget, tail, failure = SHARPEST[theorem]
    curve = RenyiCurve(order, budget)
    least = least_population_mass(curve, 1 - tail, failure, centred=True)
    bounds = {
        "direct": largest_sample_mass(curve, tail, failure, centred=True),
        "mirror": failure - curve.smallest(least),
        "paired": paired_mass(order, budget, tail, failure),
    }
    assert min(bounds, key=bounds.__getitem__) == theorem
    assert decisive_mass(curve, tail, failure) == pytest.approx(bounds[theorem], rel=1e-9)
    assert is_decisive(decisive_mass, order, budget, tail, failure)


def test_both_directions_count_for_centred_stability_only() -> None:
    order, budget, tail, failure = SHARPEST["paired"]
    for curve in (RenyiCurve(order, budget), GaussianCurve(0.1)):
        alone = largest_sample_mass(curve, tail, failure, centred=False)
        assert decisive_mass(curve, tail, failure, centred=False) == alone
        either = largest_sample_mass(curve, tail, failure, centred=True)
        assert decisive_mass(curve, tail, failure) < 0.95 * either
    assert decisive_mass(GaussianCurve(0.1), tail, failure) == meeting_mass(
        GaussianCurve(0.1), tail, failure
    )


# Both directions for other curves than Rényi's.


Meeting = Callable[[Curve, float, float], float]


def gaussian_laws(
    meeting: Meeting, mu: float, tail: float, bad_without: float
) -> tuple[float, float]:
    """The bound over what N(μ, 1) reaches against N(0, 1): below 1 is broken, above not sharp.

    bad and ψ = 1: above some point, of probability ρ·y under Q. bad and ψ = 0: below another, of
    (1 − ρ)·y. No event grows more than the first, none shrinks more than the second. And by how
    much the better of the other two theorems is above it.
    """
    curve, y = GaussianCurve(mu), bad_without
    reached = float(ndtr(ndtri(tail * y) + mu))
    bad = reached + float(ndtr(ndtri((1 - tail) * y) - mu))
    either = largest_sample_mass(curve, tail, bad, centred=True)
    least = least_population_mass(curve, 1 - tail, bad, centred=True)
    return meeting(curve, tail, bad) / reached, min(either, bad - curve.smallest(least)) / reached


@given(st.floats(0.01, 2), st.floats(1e-6, 0.99), st.floats(1e-4, 0.9))
def test_gaussian_laws_reach_the_bound_of_both_directions(
    mu: float, tail: float, bad_without: float
) -> None:
    found, either = gaussian_laws(meeting_mass, mu, tail, bad_without)
    assert 1 - 1e-12 < found < 1 + 1e-6
    assert either > 1 - 1e-12


CURVES: list[Curve] = [
    GaussianCurve(0.1),
    GaussianCurve(1.0),
    ApproximateCurve(((0.0, 0.1), (0.3, 0.02), (1.0, 1e-4))),
    RenyiCurve(8.0, 0.1),
]


@pytest.mark.parametrize("curve", CURVES, ids=["gaussian", "far", "pairs", "renyi"])
def test_the_bound_of_both_directions_is_the_worst_of_all_references(curve: Curve) -> None:
    """max over y of min(F(ρ·y), β − F⁻¹((1 − ρ)·y)), tried one by one; concave in β."""
    for tail in (0.001, 0.25, 0.7):
        found = [meeting_mass(curve, tail, beta) for beta in (0.02, 0.05, 0.08)]
        for beta, most in zip((0.02, 0.05, 0.08), found, strict=True):
            tried = max(
                min(curve.largest(tail * y), beta - curve.smallest((1 - tail) * y))
                for y in np.geomspace(1e-4, 1, 600)
            )
            assert tried <= most <= max(tried * 1.02, min(beta, curve.largest(tail * 1e-4)))
        assert found[1] >= (found[0] + found[2]) / 2 * (1 - 1e-9)
        assert found == sorted(found)


@pytest.mark.parametrize(("tail", "failure"), [(0, 0.1), (1, 0.1), (0.1, 0), (0.1, 1), (0.1, 2)])
def test_tails_and_failures_are_inside(tail: float, failure: float) -> None:
    with pytest.raises(InvalidInput):
        largest_sample_mass(GaussianCurve(1.0), tail, failure, centred=True)
    with pytest.raises(InvalidInput):
        least_population_mass(GaussianCurve(1.0), tail, failure, centred=True)
