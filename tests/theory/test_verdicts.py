"""Coins that are paid by verdict: the price inequality in 50 digits, and whole transcripts.

The inequality is written out here from the lemma, for every half step of the coin on either side of
the target and in both directions. Then the lemma itself: the exact divergence, both ways, between
transcripts and their centred reference, for every adaptive analyst there is.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf, workdps

from holdfast.errors import InvalidInput
from holdfast.planning.parts import VerdictPart
from holdfast.theory.coins import (
    Coin,
    VerdictCoin,
    logistic_coin,
    reach_of,
    refusal_price,
    steepest_coin,
    steps_of,
    verdict_coin,
)
from tests.theory.worlds import tables

Real = Any  # mpmath has no types
Price = Callable[[VerdictCoin, float, float], float]
Build = Callable[[float, float, float, float, float], VerdictCoin]
Settings = tuple[float, float, float, float, float]  # order, price of No, of Yes, the two floors

COINS: dict[str, Settings] = {
    "dear No": (20.0, 0.2, 1e-3, 1e-6, 1e-6),
    "as planned": (37.0, 0.19, 3e-4, 1e-4, 1e-7),
    "low order": (1.5, 0.8, 0.1, 1e-2, 1e-3),
    "high order": (150.0, 3.0, 1e-2, 1e-4, 1e-4),
    "equal prices": (8.0, 0.3, 0.3, 1e-4, 1e-4),
    "dear Yes": (4.0, 2e-3, 0.2, 1e-3, 1e-5),
    "long steps": (3.0, 4.0, 0.5, 1e-8, 1e-8),
}
coins = pytest.mark.parametrize("name", COINS)


@cache
def coin_of(name: str) -> VerdictCoin:
    return verdict_coin(*COINS[name])


# The price inequality.


def chances(coin: VerdictCoin) -> list[Real]:
    """P[No] on half counts, from far below the target to far above it, without rounding."""
    below = [1 - mpf(float(h)) for h in reversed(coin.below.halfsteps[1:])]
    return [*below, mpf(1) / 2, *(mpf(float(h)) for h in coin.above.halfsteps[1:])]


def left_side(order: float, no: Real, yes: Real, g: Real, z: Real) -> Real:
    """e^(−A)·gᵃ z¹⁻ᵃ + e^(−B)·(1−g)ᵃ (1−z)¹⁻ᵃ, as it stands."""
    a = mpf(order)
    return mp.exp(-no) * g**a * z ** (1 - a) + mp.exp(-yes) * (1 - g) ** a * (1 - z) ** (1 - a)


def worst_pair(coin: VerdictCoin, order: float, no: Real, yes: Real) -> Real:
    """The largest left side over all neighbouring half steps, both directions."""
    steps = list(itertools.pairwise(chances(coin)))
    pairs = [*steps, *((z, g) for g, z in steps)]
    return max(left_side(order, no, yes, g, z) for g, z in pairs)


def covered_and_minimal(
    coin: VerdictCoin, order: float, yes: float, price: Price = refusal_price
) -> bool:
    """The measured price of a No covers every pair, and a millionth less does not."""
    with workdps(50):
        no = mpf(price(coin, order, yes))
        enough = worst_pair(coin, order, no, mpf(yes)) <= 1
        return bool(enough and worst_pair(coin, order, no * (1 - mpf("1e-6")), mpf(yes)) > 1)


@coins
def test_the_measured_price_covers_every_half_step_and_is_the_least(name: str) -> None:
    order, _, yes, _, _ = COINS[name]
    assert covered_and_minimal(coin_of(name), order, yes)


@coins
def test_the_measured_price_is_what_was_aimed_at(name: str) -> None:
    order, no, yes, _, _ = COINS[name]
    measured = refusal_price(coin_of(name), order, yes)
    assert no * 0.99 < measured <= no * (1 + 1e-9)


@coins
def test_what_a_part_charges_covers_every_half_step(name: str) -> None:
    """The prices in stability, as floats, times the exact a − 1: nothing is lost in rounding."""
    order, no, yes, false_yes, false_no = COINS[name]
    part = replace(PART, no_price=no, yes_price=yes, false_yes=false_yes, false_no=false_no)
    prices = part.prices(order)
    with workdps(50):
        s = mpf(order) - 1
        coin = part.coin(order)
        assert worst_pair(coin, order, s * mpf(prices.no), s * mpf(prices.yes)) <= 1
        less = 1 - mpf("1e-6")
        assert worst_pair(coin, order, s * mpf(prices.no) * less, s * mpf(prices.yes) * less) > 1


PART = VerdictPart(
    name="verify",
    protocol="verify",
    queries=5,
    refusals=2,
    sides=2,
    tail_low=0.05,
    tail_high=0.25,
    twice_target=20,
    failure_low=0.02,
    failure_high=0.02,
    no_price=0.1,
    yes_price=0.1,
    false_yes=1e-3,
    false_no=1e-3,
    looks=10,
)


@settings(max_examples=40)
@given(
    st.lists(st.floats(0.001, 0.6), min_size=1, max_size=6),
    st.lists(st.floats(0.001, 0.6), min_size=1, max_size=6),
    st.floats(1.05, 20),
    st.sampled_from([0.5, 2.0, 6.0]),
)
def test_any_two_sided_table_is_priced_exactly(
    below: list[float], above: list[float], order: float, yes: float
) -> None:
    """Not only steepest ones: both sides count, and neither more than it should."""
    coin = VerdictCoin(
        Coin("any", 0.5 * np.exp(-np.cumsum([0.0, *below]))),
        Coin("any", 0.5 * np.exp(-np.cumsum([0.0, *above]))),
    )
    with workdps(50):
        a = mpf(order)
        needed = mpf(0)
        for one, two in itertools.pairwise(chances(coin)):
            for g, z in ((one, two), (two, one)):
                left = 1 - mp.exp(-mpf(yes)) * (1 - g) ** a * (1 - z) ** (1 - a)
                if left <= 0:
                    return  # no price of a No is enough: `refusal_price` says so, tested elsewhere
                needed = max(needed, mp.log(g**a * z ** (1 - a) / left))
        found = refusal_price(coin, order, yes)
        assert needed <= found <= needed * (1 + mpf("1e-6")) + mpf("1e-12")


# The steepest coin.


def steepest_of_all(build: Build, order: float, no: float, yes: float, floor: float) -> bool:
    """No half step above the floor can be made a millionth longer, and none is too long."""
    coin = build(order, no, yes, floor, floor)
    with workdps(50):
        for side, upper in ((coin.below, False), (coin.above, True)):
            table = [mpf(float(h)) for h in side.halfsteps]
            if table[-1] != mpf(floor):
                return False
            for here, there in itertools.pairwise(table[:-1]):  # the last step ends at the floor
                longer = here * (there / here) ** (1 + mpf("1e-6"))
                for end, allowed in ((there, True), (longer, False)):
                    pair = (here, end) if upper else (1 - here, 1 - end)
                    both = (pair, pair[::-1])
                    most = max(left_side(order, mpf(no), mpf(yes), g, z) for g, z in both)
                    if (most <= 1 + mpf("1e-13")) != allowed:
                        return False
    return True


@coins
def test_no_half_step_can_be_longer(name: str) -> None:
    order, no, yes, floor, _ = COINS[name]
    assert steepest_of_all(verdict_coin, order, no, yes, floor)


@pytest.mark.parametrize(
    ("order", "price"), [(1.2, 0.3), (2.0, 0.05), (8.0, 2e-3), (40.0, 4e-4), (200.0, 0.01)]
)
def test_equal_prices_give_the_flat_coin(order: float, price: float) -> None:
    """A = B = (a − 1)·c is the steepest coin of price c, on both sides."""
    flat = steepest_coin(order, price, 1e-5)
    exponent = (order - 1) * price
    coin = verdict_coin(order, exponent, exponent, 1e-5, 1e-5)
    for side in (coin.below, coin.above):
        assert side.halfsteps.size == flat.halfsteps.size
        np.testing.assert_allclose(side.halfsteps, flat.halfsteps, rtol=1e-6)
        assert side.price(order) <= price * (1 + 1e-9)


@settings(max_examples=12)
@given(st.floats(1.2, 60), st.floats(0.01, 1), st.floats(0.01, 1), st.floats(1.01, 3))
def test_whoever_pays_more_may_be_steeper(order: float, no: float, yes: float, more: float) -> None:
    base = verdict_coin(order, no, yes, 1e-3, 1e-3)
    for dearer in (
        verdict_coin(order, no * more, yes, 1e-3, 1e-3),
        verdict_coin(order, no, yes * more, 1e-3, 1e-3),
    ):
        for one, two in ((base.below, dearer.below), (base.above, dearer.above)):
            length = min(one.halfsteps.size, two.halfsteps.size)
            assert two.halfsteps.size <= one.halfsteps.size
            assert np.all(two.halfsteps[:length] <= one.halfsteps[:length] * (1 + 1e-7))


def test_a_dear_no_is_rare_where_it_tells_more() -> None:
    """Below the target a false Yes is the rare verdict; above it, a false No."""
    coin = coin_of("dear No")
    assert coin.below.tau < coin.above.tau
    dear_yes = coin_of("dear Yes")
    assert dear_yes.below.tau > 0
    assert coin.side(0) is coin.below
    assert coin.side(-3) is coin.below
    assert coin.side(1) is coin.above
    flat = logistic_coin(1.0, 1e-3)
    assert VerdictCoin.symmetric(flat).side(5) is flat


@pytest.mark.parametrize(
    "wrong",
    [
        (1.0, 0.1, 0.1, 1e-3, 1e-3),
        (math.nan, 0.1, 0.1, 1e-3, 1e-3),
        (2.0, 0.0, 0.1, 1e-3, 1e-3),
        (2.0, 0.1, -1.0, 1e-3, 1e-3),
        (2.0, 0.1, 0.1, 0.5, 1e-3),
        (2.0, 0.1, 0.1, 1e-3, 0.0),
        (2.0, 301.0, 0.1, 1e-3, 1e-3),
    ],
)
def test_settings_outside_their_range_are_refused(wrong: Settings) -> None:
    with pytest.raises(InvalidInput):
        verdict_coin(*wrong)


# What the optimisers work with. Nothing certified rests on it; a poor estimate costs blocks.


@pytest.mark.parametrize("slips", [10.0, 1e3, 1e5])
@pytest.mark.parametrize("name", ["dear No", "as planned", "equal prices"])
def test_the_smooth_reach_is_near_the_real_one(name: str, slips: float) -> None:
    order, no, yes, _, _ = COINS[name]
    coin = verdict_coin(order, no, yes, 1e-13, 1e-13)
    for side, rare, common in ((coin.below, yes, no), (coin.above, no, yes)):
        real = float(np.minimum(1.0, slips * side.halfsteps[2::2]).sum())
        assert reach_of(order, rare, common, slips) == pytest.approx(real, rel=0.03, abs=1.0)


@pytest.mark.parametrize("name", ["dear No", "as planned", "equal prices", "dear Yes"])
def test_the_smooth_half_step_is_near_the_real_one(name: str) -> None:
    order, no, yes, _, _ = COINS[name]
    table = coin_of(name).above.halfsteps[:-1]
    odds = np.log(table) - np.log1p(-table)
    found = steps_of(order, no, yes, table[:-1])
    np.testing.assert_allclose(found, -np.diff(odds), rtol=0.02)


# Whole transcripts. A pair is the chance of No under M and under Q at one look; the analyst chooses
# the question, and with it the pair. One law's pairs come from counts, the other's from centres.


@dataclass(frozen=True)
class Look:
    """A coin with its prices, as exponents, and the pairs that it can meet."""

    coin: VerdictCoin
    no: float
    yes: float
    twice_target: int

    def no_chance(self, twice_offset: int) -> float:
        side = self.coin.side(twice_offset)
        return 1.0 - side.yes(twice_offset)

    def pairs(self, blocks: int, *, towards_centre: bool) -> list[tuple[float, float]]:
        """(under one law, under the other) for every count of the other blocks, either bit."""
        found = []
        for others, bit in itertools.product(range(blocks), (0, 1)):
            count = self.no_chance(2 * (others + bit) - self.twice_target)
            centre = self.no_chance(2 * others + 1 - self.twice_target)
            found.append((count, centre) if towards_centre else (centre, count))
        return found


def look_of(order: float, coin: VerdictCoin, yes: float, twice_target: int) -> Look:
    return Look(coin, refusal_price(coin, order, yes), yes, twice_target)


def factors(order: float, g: float, z: float) -> tuple[float, float]:
    """What a No and a Yes multiply E_Q[(dM/dQ)ᵃ] by."""
    no = math.exp(order * math.log(g) + (1 - order) * math.log(z))
    yes = math.exp(order * math.log1p(-g) + (1 - order) * math.log1p(-z))
    return no, yes


def worst_guesses(
    order: float, look: Look, blocks: int, guesses: int, refusals: int, sides: int
) -> float:
    """The best analyst's divergence over what is charged at most, the larger of both directions."""
    most = refusals * look.no + (sides * guesses - refusals) * look.yes
    most = max(most, sides * guesses * look.yes)  # a Yes may be the dearer verdict
    return max(
        _worst_moment(order, look.pairs(blocks, towards_centre=way), guesses, refusals, sides)
        / most
        for way in (True, False)
    )


def _worst_moment(
    order: float, pairs: Sequence[tuple[float, float]], guesses: int, refusals: int, sides: int
) -> float:
    moves = sorted({factors(order, g, z) for g, z in pairs})

    @cache
    def value(guesses_left: int, refusals_left: int, side: int) -> float:
        if guesses_left == 0 or refusals_left == 0:
            return 1.0
        refused = value(guesses_left - 1, refusals_left - 1, 0)
        last = side == sides - 1
        confirmed = value(guesses_left - last, refusals_left, 0 if last else side + 1)
        return max(no * refused + yes * confirmed for no, yes in moves)

    return math.log(value(guesses, refusals, 0))


def transcript_coins() -> Iterator[tuple[float, VerdictCoin, float]]:
    """Steepest and jagged coins, with an order and a price of a Yes."""
    for order, no, yes in (
        (1.5, 0.8, 0.1),
        (4.0, 0.6, 0.02),
        (12.0, 1.0, 0.05),
        (4.0, 0.05, 0.3),
        (8.0, 0.3, 0.3),
    ):
        yield order, verdict_coin(order, no, yes, 1e-3, 1e-3), yes
    jagged = tables(seed=4, count=8)
    for one, two in zip(jagged[::2], jagged[1::2], strict=True):
        yield 1.7, VerdictCoin(Coin("below", one), Coin("above", two)), 3.0


def worst_verification(price: Price = refusal_price, share: float = 1.0) -> float:
    """Over coins, targets, sides and numbers of guesses: 1 would be all that is charged."""
    worst = 0.0
    for order, coin, yes in transcript_coins():
        for blocks, twice_target in ((1, 1), (2, 2), (3, 3), (6, 4)):
            look = Look(coin, share * price(coin, order, yes), share * yes, twice_target)
            for guesses, refusals, sides in (
                (1, 1, 1),
                (5, 5, 1),
                (3, 1, 2),
                (4, 4, 2),
                (30, 2, 2),
            ):
                found = worst_guesses(order, look, blocks, guesses, refusals, sides)
                worst = max(worst, found)
    return worst


def test_verification_costs_at_most_what_is_charged_whoever_asks() -> None:
    assert 0.99 < worst_verification() <= 1 + 1e-9


def test_a_twentieth_less_would_not_cover_it() -> None:
    assert worst_verification(share=0.95) > 1


def test_random_analysts_verdict_by_verdict() -> None:
    """The two laws of the whole transcript, written out: they add up, and are close enough."""
    rng = random.Random(6)
    order, yes, blocks, guesses, refusals = 4.0, 0.02, 4, 4, 2
    look = look_of(order, verdict_coin(order, 0.6, yes, 1e-3, 1e-3), yes, 3)
    limit = (refusals * look.no + (2 * guesses - refusals) * look.yes) / (order - 1)
    nearest = 0.0
    for _ in range(40):
        plan: dict[tuple[bool, ...], tuple[float, float]] = {}
        pairs = look.pairs(blocks, towards_centre=True)

        def ask(
            past: tuple[bool, ...],
            m: float,
            q: float,
            plan: dict[tuple[bool, ...], tuple[float, float]] = plan,
            pairs: list[tuple[float, float]] = pairs,
        ) -> Iterator[tuple[float, float]]:
            """past: the verdict of every look, False for a No, which ends its guess."""
            done, open_yes, noes = 0, 0, 0
            for verdict in past:
                noes += not verdict
                open_yes = open_yes + 1 if verdict else 2
                done, open_yes = (done + 1, 0) if open_yes == 2 else (done, open_yes)
            if done == guesses or noes == refusals:
                yield m, q
                return
            g, z = plan.setdefault(past, rng.choice(pairs))
            yield from ask((*past, False), m * g, q * z)
            yield from ask((*past, True), m * (1 - g), q * (1 - z))

        law = list(ask((), 1.0, 1.0))
        assert len(law) > 30
        assert math.fsum(m for m, _ in law) == pytest.approx(1)
        assert math.fsum(q for _, q in law) == pytest.approx(1)
        for one, two in ((0, 1), (1, 0)):
            moment = math.fsum(pair[one] ** order * pair[two] ** (1 - order) for pair in law)
            nearest = max(nearest, math.log(moment) / (order - 1) / limit)
    assert 0.2 < nearest <= 1 + 1e-9


# A filter: at every step any coin whose worst verdict still fits, chosen from all verdicts so far.


Charge = Callable[[Look, bool], float]  # what a verdict is charged: Yes or No


def charged(look: Look, yes: bool) -> float:
    return look.yes if yes else look.no


def worst_filter(
    order: float, menu: Sequence[Look], limit: float, blocks: int, charge: Charge = charged
) -> float:
    """The best analyst's divergence, either way, over a budget that admits or refuses each look.

    Dynamic programming over what has been charged: all strategies, all transcripts.
    """
    prices = [(charge(look, False), charge(look, True)) for look in menu]

    def best(towards_centre: bool) -> float:
        moves = [
            sorted({factors(order, g, z) for g, z in look.pairs(blocks, towards_centre=way)})
            for look, way in ((look, towards_centre) for look in menu)
        ]

        @cache
        def value(used: tuple[tuple[int, int], ...]) -> float:
            spent = math.fsum(
                n * no + y * yes for (n, y), (no, yes) in zip(used, prices, strict=True)
            )
            result = 1.0
            for i, (no_price, yes_price) in enumerate(prices):
                worst = max(menu[i].no, menu[i].yes)  # what must be free before the flip
                if spent + worst > limit + 1e-12 or sum(map(sum, used)) >= 14:
                    continue
                n, y = used[i]
                after_no, after_yes = (
                    value((*used[:i], pair, *used[i + 1 :])) for pair in ((n + 1, y), (n, y + 1))
                )
                assert no_price >= 0
                assert yes_price >= 0
                result = max(result, *(no * after_no + yes * after_yes for no, yes in moves[i]))
            return result

        return math.log(value(((0, 0),) * len(menu))) / limit

    return max(best(True), best(False))


def menus() -> Iterator[tuple[float, list[Look], float]]:
    """An order, flat looks and verdict looks to choose from, and a limit, all as exponents."""
    for order, flat_price in ((2.0, 0.1), (6.0, 0.03)):
        s = order - 1
        flat = VerdictCoin.symmetric(steepest_coin(order, flat_price, 1e-3))
        measured = flat.below.price(order) * s
        plain = Look(flat, measured, measured, 4)
        for no, yes in ((0.5, 0.05), (0.9, 0.1), (0.1, 0.35)):
            coin = verdict_coin(order, no, yes, 1e-3, 1e-3)
            verdict = look_of(order, coin, yes, 3)
            yield order, [plain, verdict], 1.25
        hand = VerdictCoin(
            Coin("below", np.array([0.5, 0.45, 0.4])), Coin("above", np.array([0.5, 0.48, 0.4]))
        )
        steep = look_of(order, hand, 0.8, 3)
        yield order, [plain, steep], steep.no + 1.0


def worst_menu(charge: Charge = charged) -> float:
    return max(
        worst_filter(order, menu, limit, blocks=4, charge=charge) for order, menu, limit in menus()
    )


def test_a_mixture_that_the_budget_admits_is_within_the_budget() -> None:
    assert 0.9 < worst_menu() <= 1 + 1e-9


@pytest.mark.parametrize(
    "wrong",
    [
        lambda look, yes: look.yes if yes else 0.0,  # a No is free
        lambda look, yes: 0.0 if yes else look.no,  # a Yes is free
        lambda look, yes: look.no if yes else look.yes,  # exchanged
        lambda look, yes: 0.8 * charged(look, yes),
    ],
    ids=["free No", "free Yes", "exchanged", "a fifth off"],
)
def test_an_account_that_is_kept_wrongly_is_not(wrong: Charge) -> None:
    assert worst_menu(wrong) > 1
