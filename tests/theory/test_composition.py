"""Composed losses: never below exact sums, and as good as the accountant of another library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from numpy.typing import NDArray

from holdfast.theory.coins import Coin, logistic_coin, probit_coin, steepest_coin
from tests.reference.transfer import LossDistribution, coin_losses, pair_losses

EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.5)
PAIRS = [(0.5, 0.4), (0.3, 0.31), (0.9, 0.1), (0.01, 0.02), (0.02, 0.01), (0.5, 0.49)]
COINS = [
    steepest_coin(8.0, 0.02, 1e-4),
    logistic_coin(0.7, 1e-3),
    probit_coin(3.0, 1e-6),
    Coin("hand", np.array([0.5, 0.4, 0.4, 0.2])),
    Coin("short", np.array([0.5, 0.3])),
]
coins = pytest.mark.parametrize("coin", COINS, ids=lambda coin: coin.name)


def bernoulli(p: float) -> NDArray[np.float64]:
    return np.array([p, 1 - p])


def exact_delta(p: float, q: float, count: int, epsilon: float) -> Fraction:
    """δ(ε) of `count` flips: Σ (P − e^ε·Q)₊ over the binomial, in exact arithmetic."""
    one, two, scale = Fraction(p), Fraction(q), Fraction(math.exp(epsilon))
    total = Fraction(0)
    for heads in range(count + 1):
        ways = math.comb(count, heads)
        high = ways * one**heads * (1 - one) ** (count - heads)
        low = ways * two**heads * (1 - two) ** (count - heads)
        total += max(Fraction(0), high - scale * low)
    return total


Losses = Callable[[NDArray[np.float64], NDArray[np.float64], float], LossDistribution]


def lowest_margin(build: Losses, step: float) -> float:
    """The least δ − exact δ over pairs, numbers of flips and ε: negative is wrong."""
    least = math.inf
    for (p, q), count in itertools.product(PAIRS, (1, 2, 7, 20)):
        composed = build(bernoulli(p), bernoulli(q), step).composed(count)
        for epsilon in EPSILONS:
            exact = exact_delta(p, q, count, epsilon)
            least = min(least, float(Fraction(composed.delta(epsilon)) - exact))
    return least


def test_delta_is_never_below_the_exact_sum() -> None:
    assert min(lowest_margin(pair_losses, step) for step in (0.1, 1e-2)) >= -1e-16


@pytest.mark.parametrize(("p", "q", "count"), [(0.5, 0.45, 200), (0.2, 0.3, 10), (0.9, 0.6, 1)])
def test_another_library_finds_the_same(p: float, q: float, count: int) -> None:
    """dp_accounting, the same grid of losses, rounded up there too."""
    step = 1e-3
    theirs = privacy_loss_distribution.from_two_probability_mass_functions(
        log_probability_mass_function_lower={0: math.log(q), 1: math.log(1 - q)},
        log_probability_mass_function_upper={0: math.log(p), 1: math.log(1 - p)},
        value_discretization_interval=step,
        symmetric=True,
    ).self_compose(count)
    ours = pair_losses(bernoulli(p), bernoulli(q), step).composed(count)
    for epsilon in EPSILONS:
        # Theirs spreads a loss over two cells, which loses less; ours must be the larger one.
        other = theirs.get_delta_for_epsilon(epsilon)
        assert ours.delta(epsilon) >= other * (1 - 1e-6) - 1e-12
        assert ours.delta(epsilon) <= other + count * step


def gaussian_delta(mu: float, epsilon: float) -> float:
    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("sigma", "count"), [(20.0, 100), (20.0, 1000)])
def test_many_probit_looks_are_gaussian(sigma: float, count: int) -> None:
    """√N/(2σ)-GDP, which the coin's lattice just about reaches; checked by another library too."""
    losses = coin_losses(probit_coin(sigma, 1e-9), 2e-5 * 60 / sigma).composed(count)
    mu = math.sqrt(count) / (2 * sigma)
    theirs = privacy_loss_distribution.from_gaussian_mechanism(1 / mu)
    for epsilon in (0.0, 0.3, 1.0):
        exact = gaussian_delta(mu, epsilon)
        assert theirs.get_delta_for_epsilon(epsilon) == pytest.approx(exact, rel=1e-2)
        assert losses.delta(epsilon) == pytest.approx(exact, rel=1e-2)


# A law that dominates a whole coin.


def pairs_of(coin: Coin, halves: int) -> list[tuple[float, float]]:
    reach = coin.halfsteps.size + 2
    chances = [coin.yes(x) for x in range(-reach, reach + 1)]
    forward = list(zip(chances, chances[halves:], strict=False))
    both = [*forward, *((q, p) for p, q in forward)]
    return both + [(1 - p, 1 - q) for p, q in both]


def hockey_stick(p: float, q: float, epsilon: float) -> float:
    """Σ (P − e^ε·Q)₊ over both verdicts, for ε of either sign."""
    scale = math.exp(epsilon)
    return max(0.0, p - scale * q) + max(0.0, (1 - p) - scale * (1 - q))


Build = Callable[[Coin, float, bool], LossDistribution]


def build(coin: Coin, step: float, centred: bool) -> LossDistribution:
    return coin_losses(coin, step, centred=centred)


def dominates(build: Build, coin: Coin, centred: bool) -> bool:
    """Whether the law's curve is above that of every pair that a look can meet."""
    law = build(coin, 0.01, centred)
    pairs = set(pairs_of(coin, 1 if centred else 2))
    return all(
        law.delta(epsilon) >= hockey_stick(p, q, epsilon) - 1e-15
        for epsilon in np.linspace(0, 4, 81)
        for p, q in pairs
    )


@coins
@pytest.mark.parametrize("centred", [True, False])
def test_a_coins_law_dominates_each_of_its_pairs(coin: Coin, centred: bool) -> None:
    assert dominates(build, coin, centred)
    law = coin_losses(coin, 0.01, centred=centred)
    assert law.masses.sum() + law.infinite == pytest.approx(1, abs=1e-9)


@coins
def test_a_coins_law_is_no_more_than_that(coin: Coin) -> None:
    """On the grid of losses the curve is the largest of theirs, not more."""
    step = 2e-3
    law, pairs = coin_losses(coin, step), set(pairs_of(coin, 1))
    for cell in range(0, 200, 13):
        largest = max(hockey_stick(p, q, cell * step) for p, q in pairs)
        assert law.delta(cell * step) == pytest.approx(largest, rel=1e-6, abs=1e-9)


def worst_adaptive(coin: Coin, epsilon: float) -> float:
    """δ(ε) of the best adaptive choice of pairs, two looks deep: exact, by enumeration."""
    pairs = sorted(set(pairs_of(coin, 1)))
    best = 0.0
    for p, q in pairs:
        total = 0.0
        for one, two in ((p, q), (1 - p, 1 - q)):
            # After this verdict, choose the pair whose stick is longest from here.
            offset = epsilon - math.log(one / two)
            total += one * max(hockey_stick(a, b, offset) for a, b in pairs)
        best = max(best, total)
    return best


@coins
def test_adaptive_looks_are_dominated_too(coin: Coin) -> None:
    """Zhu, Dong & Wang 2022, thm 10, on the smallest adaptive case."""
    composed = coin_losses(coin, 2e-3).composed(2)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        assert composed.delta(epsilon) >= worst_adaptive(coin, epsilon) - 1e-12


# Mechanics.


def test_what_q_cannot_do_is_an_infinite_loss() -> None:
    law = pair_losses(np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.6, 0.2, 0.0, 0.2]), 0.01)
    assert law.infinite == pytest.approx(0.2)
    assert law.delta(50.0) == pytest.approx(0.2)
    assert law.composed(2).delta(50.0) == pytest.approx(1 - 0.8**2, abs=0.05)
    assert law.composed(2).delta(50.0) >= 1 - 0.8**2


@pytest.mark.parametrize("cells", [100, 4_000])
def test_a_convolution_is_charged_for_more_than_it_errs(cells: int) -> None:
    """Flat masses have small Euclidean norms: a charge of both norms' product is too small."""
    flat = np.full(cells, 1 / cells)
    rough = np.random.default_rng(1).random(cells)
    rough /= rough.sum()
    one, other = (LossDistribution(1e-3, 0, masses, 0.0) for masses in (flat, rough))
    made = one._plus(other)
    exact = np.convolve(flat.astype(np.longdouble), rough.astype(np.longdouble))
    found = np.zeros(exact.size)
    found[made.first : made.first + made.masses.size] = made.masses
    assert float(np.abs(found - exact)[1:-1].sum()) * 20 < made.infinite < 1e-11
