"""Unit-level privacy, on tiny holdouts whose every transcript is enumerated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.rdp import RdpAccountant

from holdfast.errors import InvalidInput
from holdfast.theory.coins import (
    Coin,
    VerdictCoin,
    logistic_coin,
    probit_coin,
    steepest_coin,
    verdict_coin,
)
from holdfast.theory.privacy import (
    ORDERS,
    Allowance,
    largest_total,
    look_divergence,
    private_epsilon,
    question_divergence,
    unit_privacy,
    verdict_divergences,
)
from tests.reference.transfer import pair_losses

Data = tuple[int, ...]
Law = dict[tuple[object, ...], float]
GRID = 4
CLIFF = Coin("cliff", np.array([0.5, 0.49, 0.1]))
COINS = {
    "steepest": steepest_coin(order=4, price=0.05, floor=1e-3),
    "logistic": logistic_coin(slope=0.7, floor=1e-3),
    "probit": probit_coin(sigma=1.5, floor=1e-3),
    "cliff": CLIFF,
}
VERDICTS = {
    "dear No": verdict_coin(4, no_price=0.8, yes_price=0.05, false_yes=1e-3, false_no=1e-3),
    "two tables": VerdictCoin(COINS["probit"], CLIFF),
}


def searched(size: int, left: Callable[[int], float]) -> Law:
    """The law of a binary search's answer with its verdicts; left(i) the chance to go left at i."""
    states: dict[tuple[int, int, tuple[object, ...]], float] = {(0, size - 1, ()): 1.0}
    done: Law = {}
    while states:
        (low, high, path), chance = states.popitem()
        if low == high:
            done[(low, *path)] = chance
            continue
        middle = (low + high) // 2
        states[low, middle, (*path, "left")] = chance * left(middle)
        states[middle + 1, high, (*path, "right")] = chance * (1 - left(middle))
    return done


def yes_chance(coin: VerdictCoin, twice_offset: int) -> float:
    return coin.side(twice_offset).yes(twice_offset)


def one_search(data: Data, coin: VerdictCoin, twice_target: int) -> Law:
    def left(point: int) -> float:
        return yes_chance(coin, 2 * sum(value <= point for value in data) - twice_target)

    return searched(GRID, left)


def transcripts(data: Data, coin: VerdictCoin, twice_target: int) -> Law:
    """The law of two searches over four points; what the second asks depends on the first."""
    law: Law = {}
    for first, chance in one_search(data, coin, twice_target).items():
        turned = tuple((value + int(str(first[0]))) % GRID for value in data)
        for second, other in one_search(turned, coin, twice_target).items():
            law[(*first, *second)] = chance * other
    return law


def neighbours(blocks: int) -> Iterator[tuple[Data, Data]]:
    """Every dataset with every other that differs in one block, both ways."""
    for data in itertools.product(range(GRID), repeat=blocks):
        for place, value in itertools.product(range(blocks), range(GRID)):
            other = (*data[:place], value, *data[place + 1 :])
            if other != data:
                yield data, other


def moment(p: Law, q: Law, order: float) -> float:
    return math.fsum(p[key] ** order * q[key] ** (1 - order) for key in q)


def search_laws(coin: VerdictCoin, twice_target: int) -> dict[Data, Law]:
    every = itertools.product(range(GRID), repeat=3)
    return {data: transcripts(data, coin, twice_target) for data in every}


def worst_search(laws: dict[Data, Law], order: float) -> float:
    """The largest divergence between the transcripts of two neighbours."""
    worst = max(moment(laws[one], laws[two], order) for one, two in neighbours(3))
    return math.log(worst) / (order - 1)


@pytest.mark.parametrize("twice_target", [2, 3], ids=["whole target", "half target"])
@pytest.mark.parametrize("name", [*COINS, *VERDICTS])
def test_searches_tell_no_more_than_their_looks(name: str, twice_target: int) -> None:
    """The step across the target included."""
    coin = VERDICTS[name] if name in VERDICTS else VerdictCoin.symmetric(COINS[name])
    laws = search_laws(coin, twice_target)
    for order in (1.5, 4.0, 12.0):
        assert worst_search(laws, order) <= 4 * look_divergence(coin, order)


def test_the_price_of_a_plan_would_be_too_little() -> None:
    """The mutant that takes half steps is caught: neighbours are a whole step apart."""
    coin = COINS["logistic"]
    worst = worst_search(search_laws(VerdictCoin.symmetric(coin), 3), 4.0)
    assert 1.5 * 4 * coin.price(4.0) < worst <= 4 * coin.neighbour_price(4.0)


@pytest.mark.parametrize("name", COINS)
def test_equal_sides_give_the_whole_step_price_of_the_coin(name: str) -> None:
    for order in (1.2, 3.0, 30.0):
        price = COINS[name].neighbour_price(order)
        assert look_divergence(COINS[name], order) == pytest.approx(price, rel=1e-11)
        assert look_divergence(COINS[name], order) >= price * (1 - 1e-13)


def test_a_two_sided_coin_is_no_better_than_its_worse_side() -> None:
    coin = VERDICTS["two tables"]
    sides = [look_divergence(VerdictCoin.symmetric(side), 3.0) for side in (coin.below, coin.above)]
    assert look_divergence(coin, 3.0) >= min(sides)
    one_step = math.log(1 - CLIFF.halfsteps[1]) - math.log(COINS["probit"].halfsteps[1])
    assert look_divergence(coin, 3.0) > 0
    assert look_divergence(coin, ORDERS[-1]) >= one_step * (1 - 1e-3)  # across, at order ∞


def guesses(data: Data, coin: VerdictCoin, most_noes: int, most_yeses: int) -> Law:
    """Looks at counts that depend on all verdicts so far, until one kind of verdict runs out."""
    states: dict[tuple[object, ...], float] = {(): 1.0}
    done: Law = {}
    while states:
        path, chance = states.popitem()
        if path.count("n") == most_noes or path.count("y") == most_yeses:
            done[path] = chance
            continue
        point = (path.count("n") + 2 * path.count("y") + len(path)) % GRID
        count = sum((value + point) % GRID <= 1 for value in data)
        yes = yes_chance(coin, 2 * count - len(data))
        states[(*path, "y")] = chance * yes
        states[(*path, "n")] = chance * (1 - yes)
    return done


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_tell_no_more_than_they_are_charged(name: str) -> None:
    coin, noes, yeses = VERDICTS[name], 2, 6
    every = itertools.product(range(GRID), repeat=3)
    laws = {data: guesses(data, coin, noes, yeses) for data in every}
    for order in (1.5, 4.0, 12.0):
        no, yes = verdict_divergences(coin, order, noes, yeses)
        assert worst_search(laws, order) <= noes * no + yeses * yes
        assert noes * no + yeses * yes <= (noes + yeses) * look_divergence(coin, order) * (1 + 1e-9)


@pytest.mark.parametrize("order", [1.5, 2.0])
def test_the_two_charges_cover_every_whole_step(order: float) -> None:
    coin = VERDICTS["dear No"]
    no, yes = (charge * (order - 1) for charge in verdict_divergences(coin, order, 1, 500))
    assert yes < no
    for twice in range(-60, 61):
        ends = yes_chance(coin, twice), yes_chance(coin, twice + 2)
        for p, q in (ends, ends[::-1]):
            refused = math.exp(-no) * (1 - p) ** order * (1 - q) ** (1 - order)
            assert refused + math.exp(-yes) * p**order * q ** (1 - order) <= 1 + 1e-9


def worst_direct(coin: Coin, order: float, shift: int) -> float:
    """Thresholds as near as they may be; every count and the next, both ways."""
    apart = 2 * (coin.halfsteps.size - 1)
    targets = tuple(shift + apart * j for j in range(1, 4))
    laws = [
        searched(4, lambda i, twice=2 * count: 1 - coin.yes(twice - targets[i]))  # type: ignore[misc]
        for count in range(2 * apart + 4)
    ]
    pairs = [*itertools.pairwise(laws), *itertools.pairwise(laws[::-1])]
    return max(math.log(moment(one, two, order)) / (order - 1) for one, two in pairs)


@pytest.mark.parametrize("name", COINS)
def test_a_direct_search_tells_no_more_than_one_question(name: str) -> None:
    """It may tell more than one look: half a step out of one reach and half into the next."""
    for order, shift in itertools.product((1.5, 4.0, 12.0), (0, 1)):
        assert worst_direct(COINS[name], order, shift) <= question_divergence(COINS[name], order)
    assert worst_direct(CLIFF, 2.0, 1) > 1.2 * look_divergence(CLIFF, 2.0)


@pytest.mark.parametrize("count", [1, 40])
def test_it_holds_for_the_exact_losses_of_every_step_and_is_near_the_worst(count: int) -> None:
    """Numerically composed losses of one step, taken again and again, are exact but for `step`."""
    coin, delta, step = steepest_coin(order=10, price=1e-3, floor=1e-6), 1e-6, 1e-4
    found = unit_privacy(lambda order: count * look_divergence(coin, order), delta)
    table = [1 - coin.halfsteps[1], *coin.halfsteps.tolist()]
    deltas = []
    for p, q in [*zip(table, table[2:], strict=False)][::8]:
        losses = pair_losses(np.array([p, 1 - p]), np.array([q, 1 - q]), step).composed(count)
        assert losses.delta(found.epsilon + step * count) <= delta
        deltas.append(losses.delta(0.5 * found.epsilon))
    assert max(deltas) > delta


@pytest.mark.parametrize("sigma", [0.5, 2.0, 10.0])
def test_the_conversion_is_that_of_another_library(sigma: float) -> None:
    accountant = RdpAccountant(ORDERS).compose(GaussianDpEvent(sigma))
    theirs = accountant.get_epsilon(1e-6)
    ours = unit_privacy(lambda order: order / (2 * sigma**2), 1e-6).epsilon
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_the_conversion_is_attained_by_no_smaller_epsilon() -> None:
    """For two laws on two points: δ(ε) is at most the δ that the bound was given."""
    p, q, order, delta = 0.6, 0.3, 5.0, 1e-3
    divergence = math.log(p**5 * q**-4 + (1 - p) ** 5 * (1 - q) ** -4) / 4
    epsilon = private_epsilon(divergence, order, delta)
    assert max(0.0, p - math.exp(epsilon) * q) <= delta
    assert private_epsilon(0.0, order, 0.9) == 0.0


def test_a_budget_bounds_what_all_parts_can_tell_together() -> None:
    allowances = [Allowance(5, 2.0, 1.0), Allowance(4, 1.0, 3.0)]
    best = max(
        one + 3.0 * two
        for one, two in itertools.product(range(6), range(5))
        if 2.0 * one + 1.0 * two <= 8
    )
    assert best <= largest_total(allowances, 8.0) <= best + 1e-9
    assert largest_total(allowances, 100.0) == pytest.approx(17.0)
    assert largest_total([], 1.0) == 0.0


@pytest.mark.parametrize(("order", "delta"), [(1.0, 0.1), (2.0, 0.0), (2.0, 1.0)])
def test_senseless_arguments_are_refused(order: float, delta: float) -> None:
    with pytest.raises(InvalidInput):
        private_epsilon(0.1, order, delta)
