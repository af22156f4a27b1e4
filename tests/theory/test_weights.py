"""Updates of multiplicative weights: by arithmetic, and against adversaries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.weights import (
    HELD_SLACK,
    HIGHEST_MASS,
    LOWEST_MASS,
    drop,
    largest_mass,
    learning_rate,
    least_entropy,
    most_updates,
    multiset_count,
)

MostUpdates = Callable[[int, float], int]

masses = st.floats(LOWEST_MASS, HIGHEST_MASS)
helds = st.floats(0.5, 1)


def fall(eta: mpf, mass: mpf, held: mpf) -> mpf:
    """−η·S[ψ] − ln W."""
    return -eta * mass - mp.log(1 - held * (1 - mp.exp(-eta)))


def binary_kl(s: mpf, p: mpf) -> mpf:
    return s * mp.log(s / p) + (1 - s) * mp.log((1 - s) / (1 - p))


# One update.


@given(masses, helds)
def test_the_rate_is_the_best_and_the_drop_is_kl(mass: float, held: float) -> None:
    with mp.workdps(50):
        s, p = mpf(mass), min(mpf(held), mpf(0.999)) - mpf(HELD_SLACK)
        eta = learning_rate(mass, held)
        best = mp.log(p / (1 - p)) - mp.log(s / (1 - s))
        assert abs(eta / best - 1) < 1e-12
        exact = binary_kl(s, p)
        assert abs(fall(best, s, p) / exact - 1) < mpf(10) ** -30  # the Legendre transform
        for other in (best * mpf("0.9"), best * mpf("1.1"), mpf(4) * (p - s)):
            assert fall(other, s, p) <= exact
        # The float is below what the float rate reaches, and only a little.
        assert drop(mass, held) <= fall(mpf(eta), s, p) <= drop(mass, held) * (1 + 1e-11)


@given(masses, helds, st.floats(0, 1), st.floats(0, 1))
def test_less_sample_mass_and_more_held_mass_only_help(
    mass: float, held: float, less: float, more: float
) -> None:
    with mp.workdps(50):
        eta = mpf(learning_rate(mass, held))
        low, high = mpf(mass) * less, held + (1 - mpf(held)) * more
        assert fall(eta, low, high) >= drop(mass, held)


@settings(max_examples=60)
@given(st.data())
def test_the_divergence_of_a_small_universe_falls_as_it_should(data: st.DataObject) -> None:
    """KL(S‖h) before and after, written out, for any h, S and ψ with h[ψ] ≥ held, S[ψ] ≤ mass."""
    size = data.draw(st.integers(2, 6))
    lists = st.lists(st.integers(0, 20), min_size=size, max_size=size)
    sample = data.draw(lists.filter(any))
    weights = data.draw(st.lists(st.integers(1, 50), min_size=size, max_size=size))
    psi = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    with mp.workdps(40):
        big_s = [mpf(x) / sum(sample) for x in sample]
        h = [mpf(x) / sum(weights) for x in weights]
        mass = mp.fsum(x for x, y in zip(big_s, psi, strict=True) if y)
        held = mp.fsum(x for x, y in zip(h, psi, strict=True) if y)
        if held < 0.5 or mass > HIGHEST_MASS:
            return
        mass = max(mass, mpf(LOWEST_MASS))
        eta = mpf(learning_rate(float(mass), float(held)))
        after = [x * mp.exp(-eta * y) for x, y in zip(h, psi, strict=True)]
        total = mp.fsum(after)

        def divergence(law: list[mpf]) -> mpf:
            return mp.fsum(x * mp.log(x / y) for x, y in zip(big_s, law, strict=True) if x)

        gained = divergence(h) - divergence([x / total for x in after])
        assert gained >= drop(float(mass), float(held)) * (1 - 1e-12)


# The number of updates: no adversary exceeds it.


def partitions(total: int, parts: int, top: int | None = None) -> Iterator[tuple[int, ...]]:
    """Every sample of `total` blocks on `parts` elements, up to their order."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(min(total, total if top is None else top), -1, -1):
        for rest in partitions(total - first, parts - 1, first):
            yield (first, *rest)


def longest_game(sample: tuple[int, ...], inverse: int) -> int:
    """The most updates of any adversary, by exhaustion, in whole numbers.

    With s = 1/(b + 1) the rate is ln b, so that a weight is b^(−number of its updates), exactly.
    """
    size, blocks, base = len(sample), sum(sample), inverse - 1
    choices = [
        psi
        for psi in itertools.product((0, 1), repeat=size)
        if sum(x * y for x, y in zip(sample, psi, strict=True)) * inverse <= blocks
    ]

    @cache
    def longest(counts: tuple[int, ...]) -> int:
        top = max(counts)
        weights = [base ** (top - x) for x in counts]
        best = 0
        for psi in choices:
            if 2 * sum(x * y for x, y in zip(weights, psi, strict=True)) >= sum(weights):
                after = [x + y for x, y in zip(counts, psi, strict=True)]
                least = min(after)
                # Elements with as many blocks in the sample are alike: sort among them.
                pairs = sorted((-s, x - least) for s, x in zip(sample, after, strict=True))
                best = max(best, 1 + longest(tuple(x for _, x in pairs)))
        return best

    return longest((0,) * size)


@pytest.mark.parametrize(
    ("size", "blocks", "inverse"),
    [(4, 6, 3), (5, 6, 3), (6, 3, 3), (6, 4, 4), (6, 5, 5), (7, 4, 4)],
)
def test_no_adversary_of_a_small_universe_exceeds_the_bound(
    size: int, blocks: int, inverse: int
) -> None:
    bound = most_updates(size, 1 / inverse)
    games = {s: longest_game(s, inverse) for s in partitions(blocks, size)}
    assert max(games.values()) <= bound
    assert max(games.values()) >= bound / 3  # the bound is about something


def adversary(size: int, support: int, inside: float, mass: float) -> int:
    """How often a greedy adversary is refused: S uniform on `support` elements, `inside` in each ψ.

    The elements of S in ψ take turns (if `inside` is no whole number, it is the average); the
    others are added, heaviest first, until ψ holds half.
    """
    eta = learning_rate(mass)
    logs = np.full(size, -math.log(size))
    for step in itertools.count():
        h = np.exp(logs - logs.max())
        h /= h.sum()
        chosen = np.arange(math.floor(step * inside), math.floor((step + 1) * inside)) % support
        order = support + np.argsort(-h[support:], kind="stable")
        so_far = np.cumsum(h[order]) + h[chosen].sum()
        count = int(np.searchsorted(so_far, 0.5)) + 1
        if count > order.size:
            return step
        psi = np.concatenate([chosen, order[:count]])
        logs[psi] -= eta
    raise AssertionError


def bound_holds(bound: MostUpdates = most_updates) -> bool:
    """Adversaries with S uniform on a few elements, and with a point mass, stay within it."""
    size = 10_000
    games = ((3, 1, 1 / 3), (4, 1, 0.25), (5, 2, 0.4), (10, 1, 0.1), (1, 0, 0.01))
    return all(adversary(size, *game) <= bound(size, game[-1]) for game in games)


@pytest.mark.parametrize(
    ("support", "inside", "share"),
    [(3, 1, 0.98), (4, 1, 0.98), (5, 1, 0.95), (10, 1, 0.95), (5, 2, 0.9), (7, 3, 0.85)],
)
def test_an_adversary_comes_near_the_bound(support: int, inside: int, share: float) -> None:
    """Within two updates where 1/s is a whole number: there S has just the least entropy."""
    size, mass = 20_000, inside / support
    reached, bound = adversary(size, support, inside, mass), most_updates(size, mass)
    assert share * bound <= reached <= bound


@pytest.mark.parametrize("mass", [1e-4, 0.1, 0.25])
def test_a_point_mass_is_found_by_halving(mass: float) -> None:
    """S[ψ] = 0 each time, at the rate for another s: the second branch of the bound."""
    size = 2**14
    spike = math.log(size) / math.log(2 * (1 - mass))
    reached = adversary(size, 1, 0, mass)
    assert spike - 2 <= reached <= spike
    assert reached <= most_updates(size, mass)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda n, s: int(0.9 * most_updates(n, s)),
        lambda n, s: int(math.log(n) / (4 * (0.5 - s) ** 2)),
        lambda n, s: int((math.log(n) - 2 * math.log(1 / s)) / drop(s)),
        lambda n, s: int(math.log(n) / drop(s, held=0.6)),
        lambda n, s: int(math.log2(n)),
    ],
    ids=["a tenth too few", "4 gap²", "entropy twice", "held 0.6", "log2"],
)
def test_a_smaller_bound_is_exceeded(mistake: MostUpdates) -> None:
    assert bound_holds()
    assert not bound_holds(mistake)


@pytest.mark.parametrize("support", [1, 2])
def test_the_average_counts_when_the_rate_is_fixed(support: int) -> None:
    """Refusals with S[ψ] above and below s = 1/4: their number goes by the average, and by x."""
    size, mass = 20_000, 0.25
    reached = adversary(size, support, mass * support, mass)
    bound = most_updates(size, mass, largest=1 / support)
    assert 0.9 * bound <= reached <= bound
    assert reached > most_updates(size, mass)  # where none may be above 1/4


# Shapes, and the functions beside it.


@given(st.integers(2, 10**9), st.integers(0, 10**6))
def test_the_largest_mass_is_the_inverse(size: int, wanted: int) -> None:
    if most_updates(size, LOWEST_MASS) > wanted:
        with pytest.raises(Infeasible, match="smaller universe"):
            largest_mass(size, wanted)
        return
    mass = largest_mass(size, wanted)
    assert most_updates(size, mass) <= wanted
    if mass < HIGHEST_MASS:
        assert most_updates(size, min(HIGHEST_MASS, mass + 1e-12)) > wanted


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda x: sum(x) > 1e-3))
def test_no_law_has_less_entropy(law: list[float]) -> None:
    p = [x / math.fsum(law) for x in law]
    entropy = -math.fsum(x * math.log(x) for x in p if x > 0)
    assert least_entropy(min(1.0, max(p))) <= entropy + 1e-12


@given(st.floats(1e-4, 1))
def test_the_least_entropy_is_reached(largest: float) -> None:
    with mp.workdps(40):
        whole = int(mp.floor(1 / mpf(largest)))
        rest = 1 - whole * mpf(largest)
        p = [mpf(largest)] * whole + ([rest] if rest > 0 else [])
        exact = -mp.fsum(x * mp.log(x) for x in p)
        assert exact - 1e-10 <= least_entropy(largest) <= exact
        assert least_entropy(largest) >= mp.log(1 / mpf(largest)) - 1e-10


def test_multisets_are_counted() -> None:
    for points, size in itertools.product((1, 2, 3, 7, 30), (1, 2, 5, 12)):
        assert multiset_count(points, size) == math.comb(points + size - 1, size)
    assert most_updates(1, 0.4) == 0


# What makes no sense.


def test_what_makes_no_sense_is_refused() -> None:
    wrong: dict[Callable[..., object], list[tuple[float, ...]]] = {
        drop: [(0.5,), (0.0,), (math.nan,)],
        learning_rate: [(0.25, 0.4)],
        most_updates: [(0, 0.25), (10, 0.25, 0.2)],
        largest_mass: [(10, -1)],
        least_entropy: [(0.0,)],
        multiset_count: [(0, 1), (2, 1.5)],
    }
    for function, cases in wrong.items():
        for arguments in cases:
            with pytest.raises(InvalidInput):
                function(*arguments)
    with pytest.raises(Infeasible, match="coarser points, smaller blocks"):
        multiset_count(10**9, 10**9)
