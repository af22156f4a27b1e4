"""Broken versions of the theory, each with the check of the real tests that must reject it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.theory import transfer
from holdfast.theory.coins import (
    Coin,
    Profile,
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
    LossDistribution,
    coin_losses,
    decisive_mass,
    largest_sample_mass,
    least_population_mass,
    meeting_mass,
    pair_losses,
    paired_mass,
    paired_tail,
)
from tests.theory import (
    test_coin,
    test_composition,
    test_paired,
    test_profile,
    test_refusals,
    test_renyi,
    test_sizing,
    test_transfer,
)
from tests.theory.test_transfer import SLACK, Case

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


def curve_is_right(largest: Callable[[float, float, float], float] = largest_probability) -> bool:
    cases = [(a, r, q) for a in (1.5, 8.0, 60.0) for r in (0.01, 0.5) for q in (1e-6, 0.01, 0.3)]
    return all(test_renyi.check_largest(largest, *case) for case in cases)


def inverse_is_right(
    smallest: Callable[[float, float, float], float] = smallest_probability,
) -> bool:
    cases = [(a, r, p) for a in (1.5, 8.0, 60.0) for r in (0.01, 0.5) for p in (1e-6, 0.01, 0.3)]
    return all(test_renyi.check_smallest(smallest, *case) for case in cases)


def divergence_is_right(function: Callable[[float, float, float], float] = divergence) -> bool:
    return test_renyi.worst_error(function) < 1e-12


COINS = [
    steepest_coin(8.0, 0.02, 1e-3),
    Coin("hand", np.array([0.5, 0.45, 0.2, 0.19])),
    Coin("last step", np.array([0.5, 0.49, 0.48, 0.01])),
    Coin("first step", np.array([0.5, 0.1, 0.09, 0.08])),
]


def price_is_right(price: Callable[[Coin, float], float] = Coin.price, halves: int = 1) -> bool:
    return all(
        test_coin.check_price(price, coin, order, halves) for coin in COINS for order in (1.5, 8.0)
    )


def whole_price_is_right(price: Callable[[Coin, float], float] = Coin.neighbour_price) -> bool:
    return price_is_right(price, halves=2)


def coin_is_steepest(build: Callable[[float, float, float], Coin] = steepest_coin) -> bool:
    cases = [(8.0, 0.02, 1e-3), (1.5, 0.1, 1e-6), (40.0, 0.01, 0.01)]
    return all(test_coin.check_steepest(build, *case) for case in cases)


def sum_is_right(mass: Callable[[Profile, float, int, int], float] = Profile.mass) -> bool:
    profile = coin_profile(steepest_coin(8.0, 0.05, 1e-3), 20)
    cases = [(beta, twice, 60) for beta in (0.01, 0.1, 0.5) for twice in (0, 1, 2, 37, 60, 90)]
    return all(test_profile.check_mass(mass, profile, *case) for case in cases)


def laws_are_close(price: Callable[[Coin, float], float] = Coin.price) -> bool:
    return test_transfer.worst_stability(price) < SLACK


def transcripts_are_close(price: Callable[[Coin, float], float] = Coin.neighbour_price) -> bool:
    return test_transfer.worst_transcripts(neighbour=price)[1] < SLACK


def sample_has_the_mass(build: Callable[[Coin, int], Profile] = coin_profile) -> bool:
    return test_transfer.worst_profile(build) < SLACK


def reach_is_right(reach: Callable[[Case], int] = lambda case: case.twice_reach) -> bool:
    return test_transfer.worst_profile(reach=reach) < SLACK


def mass_is_limited(limit: test_transfer.Limit = largest_sample_mass) -> bool:
    return test_transfer.worst_transfer(limit=limit) < SLACK


def mirror_is_limited(centred: bool = True) -> bool:
    return test_transfer.worst_mirror(centred=centred) < SLACK


def promises_are_kept(test: test_transfer.Certified = certified) -> bool:
    return test_transfer.tightest_central(test)[0] < 1


def classes_are_kept(test: test_transfer.Certified = certified) -> bool:
    return test_transfer.tightest_classes(test)[0] < 1


def sides_are_kept(decisive: test_transfer.Decisive = decisive_mass) -> bool:
    direct, mirror, _ = test_transfer.tightest_sides(decisive)
    return max(direct, mirror) < 1


def shares_are_respected(test: test_transfer.Certified = certified) -> bool:
    return test_sizing.respects_the_shares(test)


def laws_keep_the_bound(mass: test_paired.Mass = paired_mass) -> bool:
    return max(test_paired.nearest_laws(mass)) < SLACK


def analysts_keep_the_bound(mass: test_paired.Mass = paired_mass) -> bool:
    return test_paired.nearest_analyst(mass) < SLACK


def bound_is_sharp(mass: test_paired.Mass = paired_mass) -> bool:
    least, largest = test_paired.sharpness(mass)
    return least >= 0 and largest < test_paired.SEARCH


def bound_is_rounded_up(mass: test_paired.Mass = paired_mass) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        return test_paired.rounding(mass, test_paired.one_step(patch))[0] > 0


def conjugate_is_right(touch: Callable[[float, float], float] = transfer._conjugate) -> bool:
    return test_paired.formulas(touch=touch) < 2e-13


def tail_is_the_inverse(tail: test_paired.Tail = paired_tail) -> bool:
    return all(
        test_paired.inverts(tail, order, budget, share, 0.05)
        for order, budget in ((2.0, 0.05), (25.0, 0.1335))
        for share in (0.2, 0.4, 0.7)
    )


def mass_is_decisive(decisive: test_transfer.Decisive = decisive_mass) -> bool:
    return all(test_transfer.is_decisive(decisive, *at) for at in test_transfer.SHARPEST.values())


def directions_meet(meeting: test_transfer.Meeting = meeting_mass) -> bool:
    found = [
        test_transfer.gaussian_laws(meeting, mu, tail, y)[0]
        for mu in (0.1, 1.0)
        for tail in (0.001, 0.25, 0.7)
        for y in (0.01, 0.3)
    ]
    return min(found) > 1 - 1e-12 and max(found) < 1 + 1e-6


def exponential_price_holds(price: Callable[[float, float], float] = exponential_price) -> bool:
    return test_transfer.worst_exponential(price=price)[0] < SLACK


def exponential_profile_holds(
    build: Callable[[float, int, int], Profile] = exponential_profile,
) -> bool:
    return test_transfer.worst_exponential(build=build)[1] < SLACK


def refusals_pay(price: test_refusals.Price = refusal_price) -> bool:
    coin = test_refusals.COINS["logistic"]
    return test_refusals.worst_sequence(price, coin, 1.3, 2, 200) < SLACK


def deltas_are_not_below(build: test_composition.Losses = pair_losses) -> bool:
    return test_composition.lowest_margin(build, 0.01) >= -1e-16


def law_dominates(build: test_composition.Build = test_composition.build) -> bool:
    return all(
        test_composition.dominates(build, coin, centred)
        for coin in test_composition.COINS
        for centred in (True, False)
    )


# The mistakes.


def identity(order: float, budget: float, q: float) -> float:
    return q


def other_way_round(order: float, budget: float, q: float) -> float:
    """max{P : D(q‖P) ≤ R}: the arguments of the divergence swapped."""
    low, high = q, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(order, q, middle) <= budget else (low, middle)
    return high


def rounded_down(order: float, budget: float, q: float) -> float:
    return largest_probability(order, budget, q) * (1 - 2e-12)


def forward_as_inverse(order: float, budget: float, p: float) -> float:
    return largest_probability(order, budget, p)


def without_complement(order: float, p: float, q: float) -> float:
    one, two = order * math.log(p) + (1 - order) * math.log(q), math.log1p(-p)
    return float(np.logaddexp(one, two)) / (order - 1)


def cheaper_way(coin: Coin, order: float) -> float:
    steps = zip(coin.halfsteps[1:], coin.halfsteps, strict=False)
    return max(divergence(order, float(p), float(q)) for p, q in steps) * (1 + 1e-12)


def without_last_step(coin: Coin, order: float) -> float:
    return Coin("cut", coin.halfsteps[:-1]).price(order)


def half_price(coin: Coin, order: float) -> float:
    return coin.price(order) / 2


def half_steps_as_whole(coin: Coin, order: float) -> float:
    return coin.price(order)


def without_crossing(coin: Coin, order: float) -> float:
    """Whole steps below the target only: never from h₁ to 1 − h₁."""
    pairs = list(zip(coin.halfsteps, coin.halfsteps[2:], strict=False))
    both = [(p, q) for p, q in pairs] + [(q, p) for p, q in pairs]
    return max(divergence(order, float(p), float(q)) for p, q in both) * (1 + 1e-12)


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


def steepest_without_floor(order: float, price: float, floor: float) -> Coin:
    return steepest_coin(order, price, floor * 1e-3)


def steepest_in_whole_steps(order: float, price: float, floor: float) -> Coin:
    """Every other entry: the price of a half step spent on a whole one, and half the reach."""
    table = steepest_coin(order, price, floor).halfsteps
    return Coin("wrong", np.append(table[:-1:2], floor))


def wrong_parity(profile: Profile, failure: float, twice_target: int, blocks: int) -> float:
    """Whole counts for odd m too: its half-integers are rounded to the next whole distance."""
    return profile.mass(failure, twice_target + twice_target % 2, blocks)


def one_step_further(profile: Profile, failure: float, twice_target: int, blocks: int) -> float:
    """slips(e + 1/2) where slips(e) is meant."""
    return Profile(profile.slips[1:]).mass(failure, twice_target, blocks)


def one_more_count(profile: Profile, failure: float, twice_target: int, blocks: int) -> float:
    return profile.mass(failure, twice_target + 2, blocks)


def nothing_beyond_tau(profile: Profile, failure: float, twice_target: int, blocks: int) -> float:
    return Profile(np.append(profile.slips, 0.0)).mass(failure, twice_target, blocks)


def one_look(coin: Coin, looks: int) -> Profile:
    return coin_profile(coin, 1)


def no_floor(coin: Coin, looks: int) -> Profile:
    return Profile(np.append(looks * coin.halfsteps, 0.0))


def tau_off_by_a_half(coin: Coin, looks: int) -> Profile:
    return Profile(looks * coin.halfsteps[1:] if coin.halfsteps.size > 1 else coin.halfsteps)


def always_low(case: Case) -> int:
    """The target's own reach for the high side too: its complement forgotten."""
    return case.twice_target


def without_second_curve(curve: Curve, tail: float, failure: float, *, centred: bool) -> float:
    return largest_sample_mass(curve, tail, failure, centred=False)


def tail_after_the_curve(curve: Curve, tail: float, failure: float, *, centred: bool) -> float:
    """ρ·F(F(β)) instead of F(ρ·F(β)): tail and curve swapped."""
    return tail * curve.largest(curve.largest(failure))


def without_any_curve(curve: Curve, tail: float, failure: float, *, centred: bool) -> float:
    return tail * failure


def believes_the_sample(promise: Promise, curve: Curve, profile: Profile, size: Size) -> bool:
    """S[ψ] > ρ is taken for D[ψ] > ρ: every curve the identity."""
    beta = size.failure_low
    return promise.tail_low * beta < profile.mass(beta, size.twice_target, size.blocks)


def believes_each_answer(promise: Promise, curve: Curve, profile: Profile, size: Size) -> bool:
    """The union over looks forgotten."""
    single = Profile(profile.slips / promise.looks)
    return certified(promise, curve, single, size)


def swaps_the_tails(promise: Promise, curve: Curve, profile: Profile, size: Size) -> bool:
    swapped = Promise(
        promise.queries,
        promise.grid_size,
        promise.tail_high,
        promise.tail_low,
        promise.confidence,
    )
    return certified(swapped, curve, profile, size)


def checks_the_low_side(promise: Promise, curve: Curve, profile: Profile, size: Size) -> bool:
    beta = size.failure_low
    return decisive_mass(curve, promise.tail_low, beta) < profile.mass(
        beta, size.twice_target, size.blocks
    )


def mirror_the_wrong_way(curve: Curve, tail: float, failure: float) -> float:
    """F where F⁻¹ belongs: what stability allows is subtracted from the failure."""
    direct = largest_sample_mass(curve, tail, failure, centred=True)
    return min(direct, failure - curve.largest((1 - tail) * curve.largest(failure)))


def rent_without_the_one(order: float, budget: float, tail: float, failure: float) -> float:
    """K = e^((a−1)R)."""

    def checked(a: float, budget: float, inside: float, failure: float) -> tuple[float, ...]:
        return a, math.exp((a - 1) * budget) / failure, inside, failure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transfer, "_checked", checked)
        return paired_mass(order, budget, tail, failure)


def rent_of_first_order(order: float, budget: float, tail: float, failure: float) -> float:
    """K = (a−1)·R."""
    return test_paired.variant(order, budget, tail, failure, rent=lambda exponent: exponent)


def rent_not_shared(order: float, budget: float, tail: float, failure: float) -> float:
    """(K − ν)·β/λ where (K − ν·β)/λ is meant."""
    return test_paired.variant(
        order, budget, tail, failure, rent=lambda exponent: failure * math.expm1(exponent)
    )


def at_the_best_step(
    order: float, budget: float, tail: float, failure: float, *, nearly: float
) -> float:
    """`paired_mass` with the upper slope's logarithm multiplied by `nearly`, and no rounding."""
    rent, odds = math.expm1((order - 1) * budget) / failure, (1 - tail) / tail

    def share(log_step: float) -> float:
        below = math.exp(log_step) / order
        top = (
            transfer._root(transfer._conjugate, odds * transfer._slope(order, below), order)
            * nearly
        )
        low = transfer._conjugate(order, below)
        return (rent + low) / (transfer._slope(order, top) + low)

    return min(1.0, transfer._least(share, -12.0, 5.7)) * failure


def slopes_to_nearest(order: float, budget: float, tail: float, failure: float) -> float:
    return at_the_best_step(order, budget, tail, failure, nearly=1.0)


def condition_nearly_holds(order: float, budget: float, tail: float, failure: float) -> float:
    return at_the_best_step(order, budget, tail, failure, nearly=1 + 1e-11)


def coarse_slopes(order: float, budget: float, tail: float, failure: float) -> float:
    """The scan without the search after it."""

    def scanned(function: Callable[[float], float], low: float, high: float) -> float:
        return min(function(low + (high - low) * i / 12) for i in range(13))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transfer, "_least", scanned)
        return paired_mass(order, budget, tail, failure)


def odds_as_a_tail(order: float, budget: float, share: float, failure: float) -> float:
    """ρ/(1 − ρ) where ρ is meant."""
    tail = paired_tail(order, budget, share, failure)
    return tail / (1 - tail)


def weakest_theorem(curve: Curve, tail: float, failure: float) -> float:
    """The maximum of the bounds."""
    assert isinstance(curve, RenyiCurve)
    return max(
        largest_sample_mass(curve, tail, failure, centred=True),
        paired_mass(curve.order, curve.budget, tail, failure),
    )


def either_direction(curve: Curve, tail: float, failure: float) -> float:
    """Both directions together forgotten."""
    least = least_population_mass(curve, 1 - tail, failure, centred=True)
    return min(
        largest_sample_mass(curve, tail, failure, centred=True), failure - curve.smallest(least)
    )


def both_directions_only(curve: Curve, tail: float, failure: float) -> float:
    assert isinstance(curve, RenyiCurve)
    return paired_mass(curve.order, curve.budget, tail, failure)


def meets(curve: Curve, tail: float, failure: float, met: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if met(middle) > failure else (middle, high)
    return min(failure, curve.largest(tail * high))


def meets_forward_twice(curve: Curve, tail: float, failure: float) -> float:
    """F where F⁻¹ belongs."""
    return meets(
        curve, tail, failure, lambda y: curve.largest(tail * y) + curve.largest((1 - tail) * y)
    )


def meets_without_the_rest(curve: Curve, tail: float, failure: float) -> float:
    """The tail's own complement forgotten: F(ρ·y) + F⁻¹(y)."""
    return meets(curve, tail, failure, lambda y: curve.largest(tail * y) + curve.smallest(y))


def undivided_failure(promise: Promise, curve: Curve, profile: Profile, size: Size) -> bool:
    """All of β for both sides, whatever the tails."""
    reach = (size.twice_target, 2 * size.blocks - size.twice_target)
    return (
        all(
            decisive_mass(curve, tail, beta) < profile.mass(beta, twice, size.blocks)
            for tail, beta, twice in (
                (promise.tail_low, size.failure_low, reach[0]),
                (promise.tail_high, size.failure_high, reach[1]),
            )
        )
        and max(size.failure_low, size.failure_high) <= promise.failure
    )


def exponential_without_range(order: float, epsilon: float) -> float:
    """a·ε²/128: the range of the centred score halved twice."""
    return exponential_price(order, epsilon) / 4


def exponential_twice_as_sharp(epsilon: float, grid_size: int, queries: int) -> Profile:
    """e^(−ε·x) where e^(−ε·x/2) is meant."""
    return exponential_profile(2 * epsilon, grid_size, queries)


def refusals_of_the_safe_side(coin: Coin, order: float, yes_price: float) -> float:
    """Only looks far below the target, where a No is no news."""
    worst = 0.0
    for p, q in zip(coin.halfsteps, coin.halfsteps[1:], strict=False):
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
    h = coin.halfsteps
    p, q = h[:-1], h[1:]
    top = math.ceil(float(np.max(np.log(p / q))) / step)
    grid = np.exp(np.arange(-top, top + 1) * step)
    heights = np.array([max(0.0, float(np.max(p - x * q))) for x in grid])
    slopes = np.diff(heights) / np.diff(grid)
    jumps = np.diff(np.concatenate([[slopes[0]], slopes, [0.0]]))
    return LossDistribution(step, -top, np.maximum(jumps, 0.0) * grid, 0.0)


def losses_of_half_steps(coin: Coin, step: float, centred: bool) -> LossDistribution:
    return coin_losses(coin, step, centred=True)


MUTANTS = [
    Mutant("F is the identity", curve_is_right, identity),
    Mutant("F swaps the arguments of the divergence", curve_is_right, other_way_round),
    Mutant("F is rounded down", curve_is_right, rounded_down),
    Mutant("the inverse goes forward", inverse_is_right, forward_as_inverse),
    Mutant("the divergence forgets the complement", divergence_is_right, without_complement),
    Mutant("only the cheaper direction is priced", price_is_right, cheaper_way),
    Mutant("the step to the floor is not priced", price_is_right, without_last_step),
    Mutant("the price is halved", price_is_right, half_price),
    Mutant("the price is halved, seen in the laws", laws_are_close, half_price),
    Mutant("neighbours pay the centred price", whole_price_is_right, half_steps_as_whole),
    Mutant("the step across the target is free", whole_price_is_right, without_crossing),
    Mutant(
        "neighbours pay the centred price, seen in transcripts",
        transcripts_are_close,
        half_steps_as_whole,
    ),
    Mutant(
        "the coin is steep in the cheaper direction", coin_is_steepest, steepest_by_the_cheaper_way
    ),
    Mutant("the coin has another floor", coin_is_steepest, steepest_without_floor),
    Mutant(
        "the coin spends a half step's price on a whole one",
        coin_is_steepest,
        steepest_in_whole_steps,
    ),
    Mutant("the profile of odd m is on whole counts", sum_is_right, wrong_parity),
    Mutant("the profile is half a count late", sum_is_right, one_step_further),
    Mutant("the profile has a count too many", sum_is_right, one_more_count),
    Mutant("the profile ends at τ", sum_is_right, nothing_beyond_tau),
    Mutant("the union over looks is forgotten", sample_has_the_mass, one_look),
    Mutant("the floor is forgotten", sample_has_the_mass, no_floor),
    Mutant("τ is off by a half", sample_has_the_mass, tau_off_by_a_half),
    Mutant("the high side is not the complement", reach_is_right, always_low),
    Mutant("the second F is forgotten", mass_is_limited, without_second_curve),
    Mutant("the tail is multiplied after F", mass_is_limited, tail_after_the_curve),
    Mutant("both F are forgotten", mass_is_limited, without_any_curve),
    Mutant("the mirror forgets the inverse curve", mirror_is_limited, False),
    Mutant("the sample is believed", promises_are_kept, believes_the_sample),
    Mutant("every answer is believed", promises_are_kept, believes_each_answer),
    Mutant("the tails are swapped", classes_are_kept, swaps_the_tails),
    Mutant("the high side is not checked", classes_are_kept, checks_the_low_side),
    Mutant("the mirror goes the wrong way", sides_are_kept, mirror_the_wrong_way),
    Mutant("K is forgotten", laws_keep_the_bound, test_paired.rent_forgotten),
    Mutant("K has no −1", bound_is_sharp, rent_without_the_one),
    Mutant("K is of first order", laws_keep_the_bound, rent_of_first_order),
    Mutant("K is not divided by β", laws_keep_the_bound, rent_not_shared),
    Mutant(
        "one direction has half of K", laws_keep_the_bound, test_paired.one_way_at_half_the_rent
    ),
    Mutant("two directions have one K", laws_keep_the_bound, test_paired.both_ways_at_one_rent),
    Mutant(
        "two directions have one K, seen by analysts",
        analysts_keep_the_bound,
        test_paired.both_ways_at_one_rent,
    ),
    Mutant("ρ and 1 − ρ are swapped", laws_keep_the_bound, test_paired.tail_swapped),
    Mutant(
        "ρ and 1 − ρ are swapped, seen by analysts",
        analysts_keep_the_bound,
        test_paired.tail_swapped,
    ),
    Mutant("φ′ is taken for φ*", conjugate_is_right, transfer._slope),
    Mutant("slopes are not rounded", bound_is_rounded_up, slopes_to_nearest),
    Mutant("the condition nearly holds", bound_is_rounded_up, condition_nearly_holds),
    Mutant("slopes are only scanned", bound_is_sharp, coarse_slopes),
    Mutant("odds are taken for a tail", tail_is_the_inverse, odds_as_a_tail),
    Mutant("the weakest theorem decides", mass_is_decisive, weakest_theorem),
    Mutant("both directions together are forgotten", mass_is_decisive, either_direction),
    Mutant("both directions together decide alone", mass_is_decisive, both_directions_only),
    Mutant("the other direction is F again", directions_meet, meets_forward_twice),
    Mutant("the other direction has all of bad", directions_meet, meets_without_the_rest),
    Mutant("β is not shared", shares_are_respected, undivided_failure),
    Mutant(
        "the exponential mechanism is too cheap", exponential_price_holds, exponential_without_range
    ),
    Mutant(
        "the exponential profile has ε for ε/2",
        exponential_profile_holds,
        exponential_twice_as_sharp,
    ),
    Mutant("a No on the safe side sets the price", refusals_pay, refusals_of_the_safe_side),
    Mutant(
        "losses are rounded to the nearest cell", deltas_are_not_below, losses_rounded_to_nearest
    ),
    Mutant("losses of one direction only", law_dominates, losses_one_way),
    Mutant("losses of half steps between neighbours", law_dominates, losses_of_half_steps),
]
