"""Direct search for means: each step by enumeration of tiny worlds, then figures and formulas.

A world has two atoms and a few blocks. Every dataset, every verdict and every analyst of up to two
questions is written out; the best analyst never reaches the β that the bars promise.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf, workdps
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.coins import Coin, steepest_coin
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.means import (
    DirectBars,
    DirectMeanSize,
    best_direct,
    direct_bars,
    level_tail,
    narrowest_direct,
    search_profile,
    separated,
)
from tests.theory import checker
from tests.theory.worlds import Action, Outcome, Population, Rules, most_broken, search_law

Array = NDArray[np.float64]
SLACK = 1 + 1e-9
COINS = [
    (3.0, 2e-3, 5e-4),
    (15.0, 0.02, 1e-4),
    (4.0, 0.1, 1e-4),
    (40.0, 0.01, 1e-3),
    (4.0, 1.0, 1e-6),
    (2.0, 0.5, 1e-3),
    (8.0, 0.5, 1e-4),
]


def cell_law(coin: Coin, targets: tuple[int, ...], twice_count: int) -> Array:
    """The law of the answer at one count, or at the centre between two of them."""
    return np.array(search_law(len(targets) + 1, lambda i: 1 - coin.yes(twice_count - targets[i])))


def evenly(blocks: int, coin: Coin, distance: float = 1.0) -> tuple[int, ...]:
    """As many thresholds as fit, 2τ apart (or closer, for a search that is charged too little)."""
    apart = max(1, math.floor((coin.halfsteps.size - 1) * distance))
    count = max(1, blocks // apart)
    return tuple(blocks + apart * j for j in range(1 - count, count, 2))


def cells(
    world: Population, coin: Coin, targets: tuple[int, ...], question: tuple[float, ...]
) -> Array:
    """The law of the answer, (cells, datasets), for ψ with these values on the atoms."""
    sums = [math.floor(total) for total in world.datasets @ np.array(question)]
    laws = {total: cell_law(coin, targets, 2 * total) for total in set(sums)}
    return np.array([laws[total] for total in sums]).T


def most_missed(
    world: Population,
    coin: Coin,
    targets: tuple[int, ...],
    values: tuple[float, ...],
    queries: int,
    bars: DirectBars,
) -> float:
    """P[some bar misses its mean] for the best analyst, who may ask for any ψ.

    A bar is open: a mean at its end is missed, unless the end is that of the range.
    """
    actions = []
    for question in itertools.product(values, repeat=len(world.atoms)):
        mean = sum(p * Fraction(v) for p, v in zip(world.atoms, question, strict=True))
        outcomes = []
        for chance, low, high in zip(
            cells(world, coin, targets, question), bars.low, bars.high, strict=True
        ):
            missed = (low > 0 and mean <= Fraction(low)) or (high < 1 and mean >= Fraction(high))
            outcomes.append(Outcome(chance, 0.0, False, frozenset({"missed"} if missed else ())))
        actions.append(Action("mean", 0.0, tuple(outcomes)))
    return most_broken(world, actions, Rules(1.0, queries, 0), "missed")


# Step 1: a question costs one look.


def search_cost(coin: Coin, targets: tuple[int, ...], blocks: int, order: float) -> float:
    """The largest divergence of a whole search from its centre, either way, over all counts."""
    worst = 0.0
    for twice in range(2 * blocks):
        p, q = cell_law(coin, targets, twice), cell_law(coin, targets, twice + 1)
        for one, two in ((p, q), (q, p)):
            moment = float(np.sum(one * (one / two) ** (order - 1)))
            worst = max(worst, math.log(moment) / (order - 1))
    return worst


def search_costs(distance: float) -> list[float]:
    """As shares of the price of one look."""
    shares = []
    for parameters, order in itertools.product(COINS, (1.5, 4.0, 15.0)):
        coin = steepest_coin(*parameters)
        apart = coin.halfsteps.size - 1
        for blocks in (3 * apart, 5 * apart + 1):
            targets = evenly(blocks, coin, distance)
            assert separated(coin, targets) is (distance == 1)
            shares.append(search_cost(coin, targets, blocks, order) / coin.price(order))
    return shares


def test_a_question_with_separated_thresholds_costs_one_look() -> None:
    shares = search_costs(1.0)
    assert min(shares) > 0.999
    assert max(shares) < SLACK


def test_closer_thresholds_cost_more_than_one_look() -> None:
    assert max(search_costs(0.7)) > 1.5


# Step 2: how often a search errs by how much.


Slips = Callable[[Coin, int, int], Array]


def profile_slips(coin: Coin, queries: int, looks: int) -> Array:
    return search_profile(coin, queries, looks).slips


@cache
def shortfalls() -> list[tuple[Coin, int, list[float]]]:
    """A coin, looks of a search, and P[an answer is short by j or more] for every count; j from 1.

    An answer's shortfall is ⌈c₋⌉ − C or C − ⌊c₊⌋, whatever the kinds of its two thresholds are.
    """
    found = []
    for parameters in COINS:
        coin = steepest_coin(*parameters)
        apart = coin.halfsteps.size - 1
        blocks = 4 * (apart + 1)
        targets = tuple(itertools.accumulate([apart, 2 * apart + 1, 2 * apart, 2 * apart + 1]))
        assert separated(coin, targets)
        assert len({t % 2 for t in targets}) == 2
        ups, downs = [-(-t // 2) for t in targets], [t // 2 for t in targets]
        for count in range(blocks + 1):
            law = cell_law(coin, targets, 2 * count)
            short = [
                max(ups[j - 1] - count if j else 0, count - downs[j] if j < len(targets) else 0)
                for j in range(len(targets) + 1)
            ]
            chances = [
                sum(p for p, s in zip(law, short, strict=True) if s >= j)
                for j in range(1, max(short) + 1)
            ]
            found.append((coin, len(targets).bit_length(), chances))
    return found


def shortfall_excess(half: bool = True, build: Slips = profile_slips) -> float:
    """The chances over the slips at j − 1/2, or at j; mixed thresholds."""
    worst, slips_of = 0.0, cache(build)
    for coin, looks, chances in shortfalls():
        slips = slips_of(coin, 1, looks)
        for j, chance in enumerate(chances, 1):
            worst = max(worst, chance / slips[min(2 * j - half, slips.size - 1)])
    return worst


def test_a_search_slips_as_rarely_as_its_profile_says() -> None:
    """Thresholds of both parities slip like half-integers."""
    assert 0.99 < shortfall_excess() < SLACK
    assert shortfall_excess(half=False) > 1.05  # as if all were whole
    far = shortfall_excess(build=lambda coin, queries, _: queries * coin.halfsteps)
    assert far > 1.5  # the far looks count too


def test_bars_of_mixed_thresholds_allow_for_half_integers() -> None:
    coin = steepest_coin(4.0, 0.1, 1e-2)
    apart, order, beta, slope = coin.halfsteps.size - 1, 4.0, 0.3, 40.0
    m, mixed = 5 * apart, (4 * apart, 6 * apart + 1)
    curve, profile = RenyiCurve(order, coin.price(order)), search_profile(coin, 1, 2)
    rent = math.expm1((order - 1) * curve.budget) / beta

    def low_end(twice_target: int) -> float:
        short = profile.shortfall(beta, twice_target) / m
        return level_tail(order, slope, rent + slope * short, -(-mixed[0] // 2) / m)

    bars = direct_bars(curve, profile, m, mixed, beta, slope=slope)
    assert bars.low[1] == pytest.approx(low_end(2 * m - 1), rel=1e-9)
    assert bars.low[1] < 0.999 * low_end(2 * m)


# Step 3: the change of measure, E₁[1(bad)·(ν + λ·ψ)] ≤ K.


@cache
def left_sides() -> list[tuple[float, float]]:
    """(a − 1)·R and the left side, for random worlds, slopes and intercepts."""
    rng, found = random.Random(3), []
    for _ in range(800):
        parameters = rng.choice([(3.0, 2e-2, 5e-3), (15.0, 0.02, 1e-2), (4.0, 0.1, 1e-2)])
        coin, order = steepest_coin(*parameters), rng.choice([1.5, 3.0, parameters[0], 15.0])
        blocks = rng.choice([1, 2, 3])
        up, down = rng.uniform(0.01, 2) / order, -rng.uniform(0.01, 2) / order
        factor = order * (order - 1) / (2 * order - 1)
        whole, none = (
            factor * (math.exp((order - 1) * x) - math.exp(-order * x)) for x in (up, down)
        )
        tail = level_tail(order, whole - none, none, 0.0)
        target = rng.choice(range(1, 2 * blocks))
        world = Population((Fraction(tail), 1 - Fraction(tail)), blocks)
        no, yes = cells(world, coin, (target,), (1.0, 0.0))
        share = world.datasets[:, 0] / blocks  # S[ψ]
        total = float((world.weights * yes * (none + (whole - none) * share)).sum())
        if tail >= 0.5:  # then 1 − ψ is as rare: No is bad as well
            other = world.weights * no * (whole + (none - whole) * share)
            total += max(0.0, float(other.sum()))
        found.append(((order - 1) * coin.price(order), total))
    return found


def fenchel(budget_share: float) -> float:
    """The largest left side, as a share of K."""
    return max(total / math.expm1(rent * budget_share) for rent, total in left_sides())


def test_the_change_of_measure_holds_and_is_nearly_sharp() -> None:
    assert 0.75 < fenchel(1.0) < SLACK
    assert fenchel(0.5) > 1  # half the budget would not be enough


# The conclusion.

Bars = Callable[[RenyiCurve, Coin, int, int, tuple[int, ...], float, float, bool], DirectBars]


def honest(
    curve: RenyiCurve,
    coin: Coin,
    queries: int,
    blocks: int,
    targets: tuple[int, ...],
    beta: float,
    share: float,
    exact: bool,
) -> DirectBars:
    slope = math.expm1((curve.order - 1) * curve.budget) / beta / share
    profile = search_profile(coin, queries, len(targets).bit_length())
    return direct_bars(curve, profile, blocks, targets, beta, exact=exact, slope=slope)


def unshifted(*given: Any) -> DirectBars:
    """A mutant: the cell itself as the bar (tail = θ)."""
    _, _, _, blocks, targets, *_ = given
    low = tuple(t / 2 / blocks for t in targets)
    return DirectBars(1.0, (0.0, *low), (*low, 1.0))


def unslipped(curve: RenyiCurve, coin: Coin, *given: Any) -> DirectBars:
    """A mutant: as if no look ever erred."""
    return honest(curve, Coin("never", np.array([0.5, 1e-30])), *given)


def attacks(bars_of: Bars, values: tuple[float, ...]) -> Iterator[float]:
    """P[some bar misses] of the best analyst, over β."""
    exact = set(values) == {0.0, 1.0}
    for parameters, blocks, queries in itertools.product(COINS, (3, 5, 8), (1, 2)):
        coin = steepest_coin(*parameters)
        targets = evenly(blocks, coin)
        for order, beta, share in itertools.product((1.5, 4.0, 15.0), (0.9, 0.3), (0.02, 0.2)):
            curve = RenyiCurve(order, queries * coin.price(order))
            bars = bars_of(curve, coin, queries, blocks, targets, beta, share, exact)
            for end in {low for low in bars.low if low > 0}:
                tail = Fraction(end)
                world = Population((tail, 1 - tail), blocks)
                yield most_missed(world, coin, targets, values, queries, bars) / beta


@pytest.mark.parametrize(
    ("values", "fewest", "nearest"), [((0.0, 1.0), 150, 0.55), ((0.0, 0.5, 1.0), 60, 0.1)]
)
def test_no_analyst_breaks_the_bars(values: tuple[float, ...], fewest: int, nearest: float) -> None:
    """Counts, and weights between 0 and 1."""
    shares = list(attacks(honest, values))
    assert len(shares) > fewest
    assert nearest < max(shares) < 1


@pytest.mark.parametrize("mutant", [unshifted, unslipped])
def test_bars_that_leave_something_out_are_broken(mutant: Bars) -> None:
    assert any(share > 1.05 for share in attacks(mutant, (0.0, 1.0)))


def test_quantised_counts_cost_one_count_above_and_next_to_nothing_below() -> None:
    """⌊Σ w⌋ is below Σ w by less than a count and m·2⁻¹⁷, and above it by m·2⁻¹⁷ at the most."""
    coin = steepest_coin(10.0, 0.01, 1e-6)
    curve, profile = RenyiCurve(10.0, coin.price(10.0)), search_profile(coin, 1, 2)
    m, targets = 400, (300, 500)
    shifted = tuple(t + 2 for t in targets)
    real = direct_bars(curve, profile, m, targets, 0.1, exact=False, slope=300.0)
    low = direct_bars(curve, profile, m, targets, 0.1, slope=300.0).low
    high = direct_bars(curve, profile, m, shifted, 0.1, slope=300.0).high
    for mine, other in zip(real.low[1:], low[1:], strict=True):
        assert 0.5 * 2**-17 < other - mine < 1.5 * 2**-17
    for mine, other in zip(real.high[:-1], high[:-1], strict=True):
        assert 0.5 * 2**-17 < mine - other < 1.5 * 2**-17


def test_a_plan_is_confirmed_by_slow_arithmetic() -> None:
    """From the stored coin on, nothing but the theorem as it is written."""
    plan = best_direct(20, 0.15, 0.9)
    assert plan.slope is not None
    with workdps(40):
        a, m, beta, lam = mpf(plan.order), plan.blocks, mpf("0.1"), mpf(plan.slope)
        table = [mpf(float(h)) for h in plan.coin.halfsteps]
        price = max(
            max(checker.divergence(a, p, q, 40), checker.divergence(a, q, p, 40))
            for p, q in itertools.pairwise(table)
            if p != q
        )
        gain = mp.expm1((a - 1) * plan.queries * price)
        first = 1 if plan.twice_targets[0] % 2 else 2
        short = mpf(0)
        for twice in range(first, 2 * m + 1, 2):
            error = table[min(twice, len(table) - 1)] + (plan.looks - 1) * table[-1]
            short += min(mpf(1), plan.queries * error / beta)
        toll = gain / beta + lam * short / m
        for j, target in enumerate(plan.twice_targets):
            up = mpf(target + target % 2) / 2 / m
            down = mpf(m) / m - mpf(target - target % 2) / 2 / m
            for level, tail in ((up, plan.bars.low[j + 1]), (down, 1 - plan.bars.high[j])):
                nu = toll - lam * level
                if nu >= 0:
                    assert tail <= 0
                    continue
                none, whole = (
                    checker.conjugate(plan.order, nu),
                    checker.conjugate(plan.order, nu + lam),
                )
                most = -none / (whole - none)
                assert tail <= most
                assert float(most) == pytest.approx(tail, abs=1e-8)


# Figures.


def test_rows_for_half_width_one_tenth() -> None:
    """A third of what theory.md §9 asks for, and next to nothing more for real-valued ψ."""
    plan = best_direct(100, 0.1, 0.95)
    assert plan.verify()
    assert plan.bars.half_width <= 0.1
    assert plan.blocks <= 10_300 < 0.42 * 29_204
    real = best_direct(100, 0.1, 0.95, exact=False)
    assert real.verify()
    assert plan.blocks * 0.999 <= real.blocks <= plan.blocks * 1.003


@cache
def thousand() -> DirectMeanSize:
    return best_direct(1_000, 0.1, 0.95)


def test_the_bars_narrow_with_the_mean() -> None:
    bars = thousand().bars
    widths = [high - low for low, high in zip(bars.low, bars.high, strict=True)]
    half = len(widths) // 2
    assert widths[:half] == sorted(widths[:half])
    assert widths[half + 1 :] == sorted(widths[half + 1 :], reverse=True)
    assert widths[1] < 0.72 * widths[half]
    assert bars.low == tuple(sorted(bars.low))
    assert bars.high == tuple(sorted(bars.high))
    assert bars.low[0] == 0
    assert bars.high[-1] == 1


def test_a_plan_that_claims_too_much_is_not_verified() -> None:
    plan = thousand()
    assert plan.verify()
    assert plan.budget == pytest.approx(1000 * plan.price, rel=1e-9)
    closer = tuple(t - j for j, t in enumerate(plan.twice_targets))
    for claim in (
        {"half_width": plan.half_width * 0.9999},
        {"queries": 1_010},
        {"blocks": plan.blocks - 200},
        {"confidence": 0.951},
        {"price": plan.price * 1.02},
        {"slope": float(plan.slope or 0) * 2},
        {"twice_targets": closer, "half_width": 0.2},
    ):
        assert not replace(plan, **claim).verify()


def test_the_narrowest_bars_agree_with_the_fewest_blocks() -> None:
    plan = narrowest_direct(1_000, thousand().blocks, 0.95)
    assert plan.verify()
    assert plan.half_width == pytest.approx(0.1, rel=0.01)
    assert narrowest_direct(1_000, 10 * thousand().blocks, 0.95).half_width < 0.04
    assert narrowest_direct(10, 20, 0.95).half_width == 0.5  # too few blocks: nothing is promised


def test_what_is_refused() -> None:
    for wrong in (
        (0, 0.1, 0.95),
        (10, 0.0, 0.95),
        (10, 0.5, 0.95),
        (10, 0.1, 1.0),
        (1.5, 0.1, 0.9),
    ):
        with pytest.raises(InvalidInput):
            best_direct(*wrong)
    with pytest.raises(Infeasible, match="wider bars"):
        best_direct(10**8, 1e-6, 0.95)
    profile = search_profile(steepest_coin(4.0, 1.0, 1e-3), 1, 1)
    for targets in ((), (4, 4), (6, 4), (-1, 4), (4, 21)):
        with pytest.raises(InvalidInput, match="targets"):
            direct_bars(RenyiCurve(4.0, 0.1), profile, 10, targets, 0.1)
