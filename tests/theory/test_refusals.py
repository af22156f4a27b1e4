"""Paying by verdict: the lemma by exact enumeration of stopped sequences, the price by search."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.coins import (
    Coin,
    logistic_coin,
    logistic_refusal_price,
    probit_coin,
    refusal_budget,
    refusal_price,
    steepest_coin,
)

Price = Callable[[Coin, float, float], float]
Pair = tuple[float, float]  # the chance of No under M, and under Q

COINS = {
    "logistic": logistic_coin(0.3, 1e-3),
    "steep logistic": logistic_coin(1.0, 0.02),
    "flat logistic": logistic_coin(0.05, 0.2),
    "probit": probit_coin(4.0, 0.05),
    "hand": Coin("hand", np.array([0.5, 0.4, 0.4, 0.25, 0.2])),
}
ORDERS = (1.05, 1.3, 2.0)
coins = pytest.mark.parametrize("name", COINS)


def noes(coin: Coin) -> list[Pair]:
    """Every pair that a look can meet: the count and its centre, either law first, both sides."""
    reach = coin.halfsteps.size + 1
    chance = [1 - coin.yes(x) for x in range(-reach, reach + 1)]
    steps = list(itertools.pairwise(chance))
    return [*steps, *((z, g) for g, z in steps)]


def brute_price(coin: Coin, order: float, yes_price: float) -> mpf:
    """The least A with e^(−A)·gᵃ z¹⁻ᵃ + e^(−B)·(1−g)ᵃ (1−z)¹⁻ᵃ ≤ 1, in 50 digits; ∞ if none."""
    with mp.workdps(50):
        a, most = mpf(order), mpf(0)
        table = [mpf(x) for x in coin.halfsteps]
        table = [1 - x for x in reversed(table[1:])] + table
        for one, two in itertools.pairwise(table):
            for g, z in ((one, two), (two, one)):
                yes = mp.exp(-mpf(yes_price)) * (1 - g) ** a * (1 - z) ** (1 - a)
                if g == z:
                    continue
                if yes >= 1:
                    return mp.inf
                most = max(most, mp.log(g**a * z ** (1 - a)) - mp.log(1 - yes))
        return most


def check_price(price: Price, coin: Coin, order: float, yes_price: float) -> bool:
    """Whether the price is the supremum, rounded up; refused where there is none."""
    exact = brute_price(coin, order, yes_price)
    try:
        found = price(coin, order, yes_price)
    except Infeasible:
        return bool(mp.isinf(exact))
    return bool(exact <= found <= exact * (1 + 1e-6) + 1e-12)


@coins
@pytest.mark.parametrize("order", [*ORDERS, 8.0, 40.0])
@pytest.mark.parametrize("yes_price", [0.0, 1e-4, 0.01, 0.3])
def test_the_price_is_the_largest_that_any_pair_needs(
    name: str, order: float, yes_price: float
) -> None:
    assert check_price(refusal_price, COINS[name], order, yes_price)


@settings(max_examples=80)
@given(
    st.lists(st.floats(0.001, 0.6), min_size=1, max_size=8),
    st.floats(1.01, 20),
    st.sampled_from([0.0, 1e-3, 0.05, 1.0]),
)
def test_the_price_is_that_for_any_coin(steps: list[float], order: float, yes_price: float) -> None:
    coin = Coin("any", 0.5 * np.exp(-np.cumsum([0.0, *steps])))
    assert check_price(refusal_price, coin, order, yes_price)


# The lemma.


@cache
def stopped(pairs: tuple[Pair, ...], order: float, noes_left: int, looks_left: int) -> float:
    """max over adaptive analysts of E_Q[(dM/dQ)ᵃ], the sequence stopping after ℓ refusals."""
    if noes_left == 0 or looks_left == 0:
        return 1.0
    after_no = stopped(pairs, order, noes_left - 1, looks_left - 1)
    after_yes = stopped(pairs, order, noes_left, looks_left - 1)
    return max(
        math.pow(g, order) * math.pow(z, 1 - order) * after_no
        + math.pow(1 - g, order) * math.pow(1 - z, 1 - order) * after_yes
        for g, z in pairs
    )


def worst_sequence(price: Price, coin: Coin, order: float, refusals: int, looks: int) -> float:
    """The stability of the worst stopped sequence, as a share of what its refusals pay for."""
    pairs = tuple(noes(coin))
    moment = stopped(pairs, order, refusals, looks)
    budget = refusal_budget(order, price(coin, order, 0.0), 0.0, refusals, looks)
    return math.log(moment) / (order - 1) / budget


@coins
@pytest.mark.parametrize("order", ORDERS)
def test_refusals_pay_for_any_adaptive_sequence(name: str, order: float) -> None:
    """However many looks said Yes: ℓ refusals cost ℓ·A/(a − 1), and long sequences reach it."""
    coin = COINS[name]
    try:
        refusal_price(coin, order)
    except Infeasible:
        pytest.skip("a Yes is not free with this coin")
    shares = [
        worst_sequence(refusal_price, coin, order, refusals, looks)
        for refusals, looks in ((1, 1), (1, 30), (2, 60), (3, 400))
    ]
    assert max(shares) <= 1 + 1e-9
    assert shares[-1] > 0.9


@coins
@pytest.mark.parametrize("order", [1.3, 8.0])
@pytest.mark.parametrize("yes_price", [0.002, 0.1])
def test_with_two_prices_every_verdict_pays_its_own(
    name: str, order: float, yes_price: float
) -> None:
    """E_Q[(dM/dQ)ᵃ·e^(−A·#No − B·#Yes)] ≤ 1 for every adaptive sequence, stopped or not."""
    coin = COINS[name]
    if mp.isinf(brute_price(coin, order, yes_price)):
        with pytest.raises(Infeasible):
            refusal_price(coin, order, yes_price)
        return
    a_no = refusal_price(coin, order, yes_price)
    value = 1.0
    for _ in range(50):  # the best analyst multiplies the same maximum again and again
        value = max(
            (
                math.exp(-a_no) * g**order * z ** (1 - order)
                + math.exp(-yes_price) * (1 - g) ** order * (1 - z) ** (1 - order)
            )
            * value
            for g, z in noes(coin)
        )
        assert value <= 1 + 1e-9


def transcripts(
    choose: Callable[[tuple[bool, ...]], Pair], refusals: int, looks: int
) -> Iterator[tuple[tuple[bool, ...], float, float]]:
    """Every transcript of a stopped sequence, with its probability under M and under Q."""

    def ask(
        past: tuple[bool, ...], m: float, q: float
    ) -> Iterator[tuple[tuple[bool, ...], float, float]]:
        if sum(past) == refusals or len(past) == looks:
            yield past, m, q
            return
        g, z = choose(past)
        yield from ask((*past, True), m * g, q * z)
        yield from ask((*past, False), m * (1 - g), q * (1 - z))

    return ask((), 1.0, 1.0)


def test_random_analysts_transcript_by_transcript() -> None:
    """The law of the whole transcript, written out, against the budget."""
    rng = random.Random(3)
    coin, order = COINS["logistic"], 1.6
    price, pairs = refusal_price(coin, order), noes(coin)
    for refusals, looks in itertools.product((1, 2, 3), (3, 6, 9)):
        for _ in range(12):
            answers: dict[tuple[bool, ...], Pair] = {}

            def choose(
                past: tuple[bool, ...], answers: dict[tuple[bool, ...], Pair] = answers
            ) -> Pair:
                return answers.setdefault(past, rng.choice(pairs))

            law = list(transcripts(choose, refusals, looks))
            assert math.fsum(m for _, m, _ in law) == pytest.approx(1)
            moment = math.fsum(m**order * q ** (1 - order) for _, m, q in law)
            budget = refusal_budget(order, price, 0.0, refusals, looks)
            assert math.log(moment) / (order - 1) <= budget * (1 + 1e-9)


def test_flat_price_looks_can_be_cheaper_or_dearer() -> None:
    """theory.md §6: many looks and few refusals make the verdict price worth it, and only then."""
    coin, order = logistic_coin(0.02, 1e-6), 5.0
    no = refusal_budget(order, refusal_price(coin, order), 0.0, 1, 10**6)
    look = coin.price(order)
    assert look < no < 1000 * look


# The logistic coin.


@pytest.mark.parametrize("slope", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("order", [1.05, 2.0, 6.0])
def test_the_closed_form_bounds_every_floored_table_and_is_approached(
    slope: float, order: float
) -> None:
    try:
        limit = logistic_refusal_price(slope, order)
    except Infeasible:
        assert (order - 1) * math.expm1(slope / 2) >= 1
        return
    prices = [refusal_price(logistic_coin(slope, floor), order) for floor in (0.3, 1e-2, 1e-9)]
    assert prices == sorted(prices)
    assert prices[-1] <= limit + 1e-13
    assert prices[-1] > limit * 0.999


def test_the_closed_form_is_the_supremum_of_the_continuous_coin() -> None:
    """A dense search over g for the coin without a floor: nothing exceeds the limit g → 0."""
    for slope, order in ((0.4, 1.5), (0.1, 4.0), (0.02, 20.0)):
        limit, shift = logistic_refusal_price(slope, order), slope / 2
        with mp.workdps(40):
            for exponent in np.linspace(-40, 40, 161):
                for step in (shift, -shift):
                    g, z = (1 / (1 + mp.exp(mpf(x))) for x in (exponent, exponent + step))
                    yes = (1 - g) ** order * (1 - z) ** (1 - order)
                    needed = mp.log(g**order * z ** (1 - order)) - mp.log(1 - yes)
                    assert needed <= limit * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("order", [1.5, 3.0])
def test_whole_counts_cost_more(order: float) -> None:
    half, whole = (logistic_refusal_price(0.2, order, shift) for shift in (0.5, 1.0))
    assert 3 * half < whole


@given(st.floats(1.01, 10), st.floats(0.001, 1), st.floats(0, 1), st.integers(0, 50))
def test_the_budget_is_the_sum(order: float, no: float, yes: float, count: int) -> None:
    exact = (count * no + 3 * yes) / (order - 1)
    assert exact <= refusal_budget(order, no, yes, count, 3) <= exact * (1 + 3e-12)


@given(st.floats(1.01, 5), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_dearer_yes_makes_a_no_cheaper(order: float, one: float, two: float) -> None:
    low, high = sorted((one, two))
    coin = COINS["logistic"]
    assume(not mp.isinf(brute_price(coin, order, low)))
    assert refusal_price(coin, order, high) <= refusal_price(coin, order, low) * (1 + 1e-9)


def test_what_is_refused() -> None:
    coin = COINS["logistic"]
    with pytest.raises(Infeasible, match="Yes"):
        logistic_refusal_price(2.0, 5.0)
    with pytest.raises(Infeasible, match="Yes"):
        refusal_price(steepest_coin(10, 0.01, 1e-6), 10)
    for order, yes_price in ((1.0, 0.0), (2.0, -0.1), (math.nan, 0.0)):
        with pytest.raises(InvalidInput):
            refusal_price(coin, order, yes_price)
