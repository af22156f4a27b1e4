"""Broken versions of the theory, each with the check of the real tests that must reject it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.theory import transfer
from holdfast.theory.bars import Bar, verdict_bar
from holdfast.theory.coins import (
    Coin,
    Profile,
    VerdictCoin,
    coin_profile,
    exponential_price,
    exponential_profile,
    refusal_price,
    steepest_coin,
)
from holdfast.theory.divergence import (
    Curve,
    RenyiCurve,
    divergence,
    largest_probability,
    smallest_probability,
)
from holdfast.theory.sizing import Promise, Size, certified
from holdfast.theory.transfer import (
    decisive_mass,
    largest_sample_mass,
    least_population_mass,
    meeting_mass,
    paired_mass,
    paired_tail,
)
from tests.reference.transfer import LossDistribution, coin_losses, pair_losses
from tests.theory import (
    test_bars,
    test_coins,
    test_composition,
    test_divergence,
    test_paired,
    test_sizing,
    test_transfer,
)
from tests.theory.test_paired import variant
from tests.theory.test_transfer import SLACK

__all__ = ["MUTANTS", "Mutant"]


@dataclass(frozen=True)
class Mutant:
    """One mistake. `check` is passed by the real code and must fail for the broken one."""

    name: str
    check: Callable[..., bool]
    broken: object  # what the check is given instead of the real thing

    def __str__(self) -> str:
        return self.name


# The checks, each a yes or no.


def below(limit: float, measure: Callable[..., float]) -> Callable[..., bool]:
    """Whether what is measured, of the real thing or of the broken one, stays below a limit."""
    return lambda *broken: measure(*broken) < limit


def everywhere(
    check: Callable[..., bool], real: object, cases: Iterable[Sequence[Any]]
) -> Callable[..., bool]:
    """Whether the real thing, or the broken one, passes a check in all of these cases."""
    given = [tuple(case) for case in cases]
    return lambda *broken: all(check(*(broken or (real,)), *case) for case in given)


OTHER: dict[test_bars.Claim, test_bars.Claim] = {"at least": "at most", "at most": "at least"}
POINTS = [(a, r, q) for a in (1.5, 8.0, 60.0) for r in (0.01, 0.5) for q in (1e-6, 0.01, 0.3)]


COINS = [
    steepest_coin(8.0, 0.02, 1e-3),
    Coin("hand", np.array([0.5, 0.45, 0.2, 0.19])),
    Coin("last step", np.array([0.5, 0.49, 0.48, 0.01])),
    Coin("first step", np.array([0.5, 0.1, 0.09, 0.08])),
]


def price_is_right(price: test_coins.Price = Coin.price, halves: int = 1) -> bool:
    return all(
        test_coins.check_price(price, coin, order, halves) for coin in COINS for order in (1.5, 8.0)
    )


def whole_price_is_right(price: test_coins.Price = Coin.neighbour_price) -> bool:
    return price_is_right(price, halves=2)


def sum_is_right(mass: Callable[[Profile, float, int, int], float] = Profile.mass) -> bool:
    profile = coin_profile(steepest_coin(8.0, 0.05, 1e-3), 20)
    cases = [(beta, twice, 60) for beta in (0.01, 0.1, 0.5) for twice in (0, 1, 2, 37, 60, 90)]
    return all(test_coins.check_mass(mass, profile, *case) for case in cases)


curve_is_right = everywhere(test_divergence.check_largest, largest_probability, POINTS)
inverse_is_right = everywhere(test_divergence.check_smallest, smallest_probability, POINTS)
coin_is_steepest = everywhere(
    test_coins.check_steepest,
    steepest_coin,
    [(8.0, 0.02, 1e-3), (1.5, 0.1, 1e-6), (40.0, 0.01, 0.01)],
)
tail_is_the_inverse = everywhere(
    test_paired.inverts,
    paired_tail,
    [(*at, share, 0.05) for at in ((2.0, 0.05), (25.0, 0.1335)) for share in (0.2, 0.4, 0.7)],
)
mass_is_decisive = everywhere(
    test_transfer.is_decisive, decisive_mass, test_transfer.SHARPEST.values()
)
law_dominates = everywhere(
    test_composition.dominates,
    test_composition.build,
    product(test_composition.COINS, (True, False)),
)
shares_are_respected = everywhere(test_sizing.respects_the_shares, certified, [()])


def deltas_are_not_below(build: test_composition.Losses = pair_losses) -> bool:
    return test_composition.lowest_margin(build, 0.01) >= -1e-16


divergence_is_right = below(1e-12, test_divergence.worst_error)
laws_are_close = below(SLACK, test_transfer.worst_stability)
transcripts_are_close = below(
    SLACK,
    lambda price=Coin.neighbour_price: test_transfer.worst_transcripts(neighbour=price)[1],
)
sample_has_the_mass = below(SLACK, test_transfer.worst_profile)
reach_is_right = below(
    SLACK,
    lambda reach=lambda case: case.twice_reach: test_transfer.worst_profile(reach=reach),
)
mass_is_limited = below(
    SLACK, lambda limit=largest_sample_mass: test_transfer.worst_transfer(limit=limit)
)
mirror_is_limited = below(SLACK, lambda centred=True: test_transfer.worst_mirror(centred=centred))
promises_are_kept = below(1, lambda *broken: test_transfer.tightest_central(*broken)[0])
classes_are_kept = below(1, lambda *broken: test_transfer.tightest_classes(*broken)[0])
sides_are_kept = below(1, lambda *broken: max(test_transfer.tightest_sides(*broken)[:2]))
laws_keep_the_bound = below(SLACK, lambda *broken: max(test_paired.nearest_laws(*broken)))
analysts_keep_the_bound = below(SLACK, test_paired.nearest_analyst)
conjugate_is_right = below(2e-13, lambda *broken: test_paired.formulas(transfer._slope, *broken))
profile_holds = below(
    SLACK, lambda build=exponential_profile: test_transfer.worst_exponential(build=build)[1]
)
price_holds = below(SLACK, lambda *broken: test_transfer.worst_exponential(*broken)[0])
refusals_pay = below(
    SLACK,
    lambda price=refusal_price: test_coins.free_yes(
        price, test_coins.FLAT["logistic"], 1.3, 2, 200
    ),
)


def bound_is_sharp(mass: test_paired.Mass = paired_mass) -> bool:
    least, largest = test_paired.sharpness(mass)
    return least >= 0 and largest < test_paired.SEARCH


def bound_is_rounded_up(mass: test_paired.Mass = paired_mass) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        return test_paired.rounding(mass, test_paired.one_step(patch))[0] > 0


def directions_meet(meeting: test_transfer.Meeting = meeting_mass) -> bool:
    found = [
        test_transfer.gaussian_laws(meeting, mu, tail, y)[0]
        for mu in (0.1, 1.0)
        for tail in (0.001, 0.25, 0.7)
        for y in (0.01, 0.3)
    ]
    return min(found) > 1 - 1e-12 and max(found) < 1 + 1e-6


def no_true_mean_is_excluded(bar: Callable[..., Bar] = verdict_bar) -> bool:
    """Exactly, on blocks of 30 flips: every mean under which a verdict may be said is allowed."""
    return all(
        test_bars.allows(bar, 30, k / 40, guess, claim, (0.05, 0.25))
        for claim in OTHER
        for guess in (0.2, 0.5, 0.85)
        for k in range(1, 40)
    )


# The mistakes that take more than a line.


def other_way_round(order: float, budget: float, q: float) -> float:
    """max{P : D(q‖P) ≤ R}: the arguments of the divergence swapped."""
    low, high = q, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(order, q, middle) <= budget else (low, middle)
    return high


def without_complement(order: float, p: float, q: float) -> float:
    one, two = order * math.log(p) + (1 - order) * math.log(q), math.log1p(-p)
    return float(np.logaddexp(one, two)) / (order - 1)


def largest_of(order: float, pairs: Iterable[tuple[float, float]]) -> float:
    return max(divergence(order, float(p), float(q)) for p, q in pairs) * (1 + 1e-12)


def without_crossing(coin: Coin, order: float) -> float:
    """Whole steps below the target only: never from h₁ to 1 − h₁."""
    pairs = list(zip(coin.halfsteps, coin.halfsteps[2:], strict=False))
    return largest_of(order, [*pairs, *((q, p) for p, q in pairs)])


def steepest_by_the_cheaper_way(order: float, price: float, floor: float) -> Coin:
    table = [0.5]
    while table[-1] > floor:
        low, high = 0.0, table[-1]
        for _ in range(100):
            middle = (low + high) / 2
            enough = divergence(order, middle, table[-1]) <= price
            low, high = (low, middle) if enough else (middle, high)
        table.append(max(high, floor))
    return Coin("wrong", np.array(table))


def steepest_in_whole_steps(order: float, price: float, floor: float) -> Coin:
    """Every other entry: the price of a half step spent on a whole one, and half the reach."""
    table = steepest_coin(order, price, floor).halfsteps
    return Coin("wrong", np.append(table[:-1:2], floor))


def one_side(promise: Promise, curve: Curve, profile: Profile, size: Size, *, low: bool) -> bool:
    """The condition of one side, and nothing about the other."""
    tail, beta = promise.tail_low, size.failure_low
    twice = size.twice_target
    if not low:
        tail, beta, twice = promise.tail_high, size.failure_high, 2 * size.blocks - twice
    return decisive_mass(curve, tail, beta) < profile.mass(beta, twice, size.blocks)


def undivided_failure(promise: Promise, curve: Curve, profile: Profile, size: Size) -> bool:
    """All of β for both sides, whatever the tails."""
    both = all(one_side(promise, curve, profile, size, low=low) for low in (True, False))
    return both and max(size.failure_low, size.failure_high) <= promise.failure


def believes_the_sample(promise: Promise, curve: Curve, profile: Profile, size: Size) -> bool:
    """S[ψ] > ρ is taken for D[ψ] > ρ: every curve the identity."""
    beta = size.failure_low
    return promise.tail_low * beta < profile.mass(beta, size.twice_target, size.blocks)


def swaps_the_tails(promise: Promise, curve: Curve, profile: Profile, size: Size) -> bool:
    swapped = replace(promise, tail_low=promise.tail_high, tail_high=promise.tail_low)
    return certified(swapped, curve, profile, size)


def mirror_the_wrong_way(curve: Curve, tail: float, failure: float) -> float:
    """F where F⁻¹ belongs: what stability allows is subtracted from the failure."""
    direct = largest_sample_mass(curve, tail, failure, centred=True)
    return min(direct, failure - curve.largest((1 - tail) * curve.largest(failure)))


def paired_with(name: str, instead: object) -> test_paired.Mass:
    """`paired_mass` with something that it uses replaced in its module."""

    def mass(*at: float) -> float:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transfer, name, instead)
            return paired_mass(*at)

    return mass


def scanned(function: Callable[[float], float], low: float, high: float) -> float:
    """The scan without the search after it."""
    return min(function(low + (high - low) * i / 12) for i in range(13))


def at_the_best_step(
    order: float, budget: float, tail: float, failure: float, *, nearly: float
) -> float:
    """`paired_mass` with the upper slope's logarithm multiplied by `nearly`, and no rounding."""
    rent, odds = math.expm1((order - 1) * budget) / failure, (1 - tail) / tail

    def share(log_step: float) -> float:
        below = math.exp(log_step) / order
        limit = odds * transfer._slope(order, below)
        top = transfer._root(transfer._conjugate, limit, order) * nearly
        low = transfer._conjugate(order, below)
        return (rent + low) / (transfer._slope(order, top) + low)

    return min(1.0, transfer._least(share, -12.0, 5.7)) * failure


def odds_as_a_tail(order: float, budget: float, share: float, failure: float) -> float:
    """ρ/(1 − ρ) where ρ is meant."""
    tail = paired_tail(order, budget, share, failure)
    return tail / (1 - tail)


def both_directions_only(curve: Curve, tail: float, failure: float) -> float:
    assert isinstance(curve, RenyiCurve)
    return paired_mass(curve.order, curve.budget, tail, failure)


def weakest_theorem(curve: Curve, tail: float, failure: float) -> float:
    """The maximum of the bounds."""
    direct = largest_sample_mass(curve, tail, failure, centred=True)
    return max(direct, both_directions_only(curve, tail, failure))


def either_direction(curve: Curve, tail: float, failure: float) -> float:
    """Both directions together forgotten."""
    least = least_population_mass(curve, 1 - tail, failure, centred=True)
    direct = largest_sample_mass(curve, tail, failure, centred=True)
    return min(direct, failure - curve.smallest(least))


def meets(
    curve: Curve, tail: float, failure: float, *, met: Callable[[Curve, float, float], float]
) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if met(curve, tail, middle) > failure else (middle, high)
    return min(failure, curve.largest(tail * high))


def refusals_of_the_safe_side(coin: VerdictCoin, order: float, yes_price: float) -> float:
    """Only looks far below the target, where a No is no news."""
    worst = 0.0
    for p, q in pairwise(coin.below.halfsteps):
        for error, other in ((float(p), float(q)), (float(q), float(p))):
            no = order * math.log1p(-error) + (1 - order) * math.log1p(-other)
            yes = order * math.log(error) + (1 - order) * math.log(other)
            worst = max(worst, no - math.log(-math.expm1(yes - yes_price)))
    return worst


def losses_rounded_to_nearest(
    p: NDArray[np.float64], q: NDArray[np.float64], step: float
) -> LossDistribution:
    cells = np.rint(np.log(p / q) / step).astype(int)
    first = int(cells.min())
    return LossDistribution(step, first, np.bincount(cells - first, p).astype(float), 0.0)


def losses_one_way(coin: Coin, step: float, centred: bool) -> LossDistribution:
    """Steps down only: the same pairs in the other direction forgotten."""
    p, q = coin.halfsteps[:-1], coin.halfsteps[1:]
    top = math.ceil(float(np.max(np.log(p / q))) / step)
    grid = np.exp(np.arange(-top, top + 1) * step)
    heights = np.array([max(0.0, float(np.max(p - x * q))) for x in grid])
    slopes = np.diff(heights) / np.diff(grid)
    jumps = np.diff(np.concatenate([[slopes[0]], slopes, [0.0]]))
    return LossDistribution(step, -top, np.maximum(jumps, 0.0) * grid, 0.0)


# φ of one direction with the half of K that belongs to both; and the sum of both, not their mean.
half_a_rent = partial(variant, weights=(1.0, 0.0), rent=lambda x: math.expm1(x) / 2)
one_rent_for_both = partial(variant, weights=(1.0, 1.0))
tail_swapped = partial(variant, swapped=True)  # (1 − ρ)·φ*(ν+λ) + ρ·φ*(ν) ≤ 0

# By the check that must reject them.
_BROKEN: dict[Callable[..., bool], dict[str, object]] = {
    curve_is_right: {
        "F is the identity": lambda order, budget, q: q,
        "F swaps the arguments of the divergence": other_way_round,
        "F is rounded down": lambda *at: largest_probability(*at) * (1 - 2e-12),
    },
    inverse_is_right: {"the inverse goes forward": largest_probability},
    divergence_is_right: {"the divergence forgets the complement": without_complement},
    price_is_right: {
        "only the cheaper direction is priced": lambda coin, order: largest_of(
            order, zip(coin.halfsteps[1:], coin.halfsteps, strict=False)
        ),
        "the step to the floor is not priced": lambda coin, order: Coin(
            "cut", coin.halfsteps[:-1]
        ).price(order),
        "the price is halved": lambda coin, order: coin.price(order) / 2,
    },
    laws_are_close: {
        "the price is halved, seen in the laws": lambda coin, order: coin.price(order) / 2
    },
    whole_price_is_right: {
        "neighbours pay the centred price": Coin.price,
        "the step across the target is free": without_crossing,
    },
    transcripts_are_close: {"neighbours pay the centred price, seen in transcripts": Coin.price},
    coin_is_steepest: {
        "the coin is steep in the cheaper direction": steepest_by_the_cheaper_way,
        "the coin has another floor": lambda a, price, floor: steepest_coin(a, price, floor / 1000),
        "the coin spends a half step's price on a whole one": steepest_in_whole_steps,
    },
    sum_is_right: {
        "the profile of odd m is on whole counts": lambda profile, beta, twice, blocks: (
            profile.mass(beta, twice + twice % 2, blocks)
        ),
        "the profile is half a count late": lambda profile, *at: Profile(profile.slips[1:]).mass(
            *at
        ),
        "the profile has a count too many": lambda profile, beta, twice, blocks: profile.mass(
            beta, twice + 2, blocks
        ),
        "the profile ends at τ": lambda profile, *at: Profile(np.append(profile.slips, 0.0)).mass(
            *at
        ),
    },
    sample_has_the_mass: {
        "the union over looks is forgotten": lambda coin, looks: coin_profile(coin, 1),
        "the floor is forgotten": lambda coin, looks: Profile(
            np.append(looks * coin.halfsteps, 0.0)
        ),
        "τ is off by a half": lambda coin, looks: Profile(
            looks * coin.halfsteps[1:] if coin.halfsteps.size > 1 else coin.halfsteps
        ),
    },
    reach_is_right: {"the high side is not the complement": lambda case: case.twice_target},
    mass_is_limited: {
        "the second F is forgotten": lambda curve, tail, beta, *, centred: largest_sample_mass(
            curve, tail, beta, centred=False
        ),
        "the tail is multiplied after F": lambda curve, tail, beta, *, centred: (
            tail * curve.largest(curve.largest(beta))
        ),
        "both F are forgotten": lambda curve, tail, beta, *, centred: tail * beta,
    },
    mirror_is_limited: {"the mirror forgets the inverse curve": False},
    promises_are_kept: {
        "the sample is believed": believes_the_sample,
        "every answer is believed": lambda promise, curve, profile, size: certified(
            promise, curve, Profile(profile.slips / promise.looks), size
        ),
    },
    classes_are_kept: {
        "the tails are swapped": swaps_the_tails,
        "the high side is not checked": partial(one_side, low=True),
    },
    sides_are_kept: {"the mirror goes the wrong way": mirror_the_wrong_way},
    laws_keep_the_bound: {
        "K is forgotten": partial(variant, rent=lambda _: 0.0),
        "K is of first order": partial(variant, rent=lambda exponent: exponent),
        "K is not divided by β": lambda *at: variant(
            *at, rent=lambda exponent: at[-1] * math.expm1(exponent)
        ),
        "one direction has half of K": half_a_rent,
        "two directions have one K": one_rent_for_both,
        "ρ and 1 − ρ are swapped": tail_swapped,
    },
    analysts_keep_the_bound: {
        "two directions have one K, seen by analysts": one_rent_for_both,
        "ρ and 1 − ρ are swapped, seen by analysts": tail_swapped,
    },
    conjugate_is_right: {"φ′ is taken for φ*": transfer._slope},
    bound_is_rounded_up: {
        "slopes are not rounded": partial(at_the_best_step, nearly=1.0),
        "the condition nearly holds": partial(at_the_best_step, nearly=1 + 1e-11),
    },
    bound_is_sharp: {
        "K has no −1": paired_with(
            "_checked", lambda a, r, inside, beta: (a, math.exp((a - 1) * r) / beta, inside, beta)
        ),
        "slopes are only scanned": paired_with("_least", scanned),
    },
    tail_is_the_inverse: {"odds are taken for a tail": odds_as_a_tail},
    mass_is_decisive: {
        "the weakest theorem decides": weakest_theorem,
        "both directions together are forgotten": either_direction,
        "both directions together decide alone": both_directions_only,
    },
    directions_meet: {
        "the other direction is F again": partial(
            meets,
            met=lambda curve, tail, y: curve.largest(tail * y) + curve.largest((1 - tail) * y),
        ),
        "the other direction has all of bad": partial(
            meets, met=lambda curve, tail, y: curve.largest(tail * y) + curve.smallest(y)
        ),
    },
    shares_are_respected: {"β is not shared": undivided_failure},
    price_holds: {"the exponential mechanism is too cheap": lambda *at: exponential_price(*at) / 4},
    profile_holds: {
        "the exponential profile has ε for ε/2": lambda epsilon, *rest: exponential_profile(
            2 * epsilon, *rest
        ),
    },
    refusals_pay: {"a No on the safe side sets the price": refusals_of_the_safe_side},
    deltas_are_not_below: {"losses are rounded to the nearest cell": losses_rounded_to_nearest},
    law_dominates: {
        "losses of one direction only": losses_one_way,
        "losses of half steps between neighbours": lambda coin, step, centred: coin_losses(
            coin, step, centred=True
        ),
    },
    no_true_mean_is_excluded: {
        "a verdict's tails are swapped": lambda v, claim, yes, units, low, high: verdict_bar(
            v, claim, yes, units, high, low
        ),
        "a verdict bounds the other side": lambda v, claim, *rest: verdict_bar(
            v, OTHER[claim], *rest
        ),
        "a No bounds like a Yes": lambda v, claim, yes, *rest: verdict_bar(v, claim, True, *rest),
        "a verdict's blocks count four times": lambda v, claim, yes, units, *rest: verdict_bar(
            v, claim, yes, 4 * units, *rest
        ),
        "a verdict bounds the mean by its guess": lambda v, claim, yes, *_: (
            (v, 1.0) if (claim == "at least") == yes else (0.0, v)
        ),
    },
}
MUTANTS = [
    Mutant(name, check, broken)
    for check, mistakes in _BROKEN.items()
    for name, broken in mistakes.items()
]
