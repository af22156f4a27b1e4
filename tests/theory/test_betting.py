"""Means of bounded terms by bets: exact expectations, 50 digits, and deliberate mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from holdfast.errors import InvalidInput
from holdfast.theory import betting
from holdfast.theory.betting import (
    Bets,
    Tally,
    kl_high,
    kl_low,
    log_mean_above,
    log_mean_below,
    log_wealth,
    mean_high,
    mean_low,
    predicted_half_width,
    predicted_stake,
)
from holdfast.theory.told import share_high, share_low

quick = settings(max_examples=40, deadline=None)
parts = st.lists(st.integers(0, 20), min_size=1, max_size=60)
levels = st.floats(3, 400)


@pytest.fixture(autouse=True, scope="module")
def fifty_digits() -> Iterator[None]:
    with mp.workdps(50):
        yield


def exact_log_wealth(terms: Tally, mean: float, bets: Bets) -> mpf:
    total = mpf(0)
    for stake, log in zip(bets.stakes.tolist(), bets.logs.tolist(), strict=True):
        part = mp.exp(mpf(log))
        for k, count in zip(terms.parts.tolist(), terms.counts.tolist(), strict=True):
            part *= (1 + mpf(stake) * (mpf(k) / terms.whole - mpf(mean)) / mpf(mean)) ** count
        total += part
    return mp.log(total)


@quick
@given(
    parts, st.floats(1e-6, 1), st.one_of(st.none(), st.floats(1e-9, 0.95)), st.integers(1, 9_999)
)
@example([0] * 50 + [1], 1e-6, 0.95, 9_999)
def test_the_wealth_is_rounded_down_and_sharp(
    values: list[int], mean: float, stake: float | None, times: int
) -> None:
    tally = Tally.of(values, 20)
    terms = Tally(tally.parts, tally.counts * times, 20)
    for side in (terms, terms.mirrored()):
        bets = Bets.spread(side.rows, stake)
        truth, ours = exact_log_wealth(side, mean, bets), log_wealth(side, mean, bets)
        assert truth - 1e-9 - 1e-9 * side.rows - mpf(1e-10) * abs(truth) <= ours <= truth


@given(st.integers(1, 10**12), st.one_of(st.none(), st.floats(1e-9, 0.95)))
def test_weights_add_up_to_at_most_one(n: int, stake: float | None) -> None:
    bets = Bets.spread(n, stake)
    total = sum(mp.exp(mpf(log)) for log in bets.logs.tolist())
    assert 1 - 1e-9 < total <= 1
    assert bets.stakes.min() > 0
    assert bets.stakes.max() <= 0.95


Law = tuple[tuple[Fraction, Fraction], ...]  # value in parts of 2, probability


def bernoulli(p: Fraction) -> Law:
    return ((Fraction(0), 1 - p), (Fraction(2), p))


def worst_expectation(wealth: Callable[[Tally, float], float]) -> float:
    """The largest E W over independent terms, not alike, whose mean of means is the hypothesis."""
    laws = [bernoulli(Fraction(i, 4)) for i in range(5)]
    third = Fraction(1, 3)
    laws.append(tuple((Fraction(k), third) for k in range(3)))
    worst = 0.0
    for chosen in product(laws, repeat=3):
        means = [sum((x * p for x, p in law), Fraction(0)) / 2 for law in chosen]
        mean = sum(means, Fraction(0)) / 3
        if 0 < mean < 1:
            total = 0.0
            for outcome in product(*chosen):
                chance = math.prod(float(p) for _, p in outcome)
                if chance:
                    terms = Tally.of([int(x) for x, _ in outcome], 2)
                    total += chance * math.exp(wealth(terms, float(mean)))
            worst = max(worst, total)
    return worst


def test_the_expected_wealth_is_at_most_one_for_terms_that_are_not_alike() -> None:
    for bets in (Bets.spread(3), Bets.spread(3, 0.4)):
        assert 0.999 < worst_expectation(partial(log_wealth, bets=bets)) <= 1 + 1e-12


def best_stake_afterwards(terms: Tally, mean: float) -> float:
    wealths = betting._log_wealths(terms, mean, Bets.spread(3).stakes)
    return float(wealths.max())


def no_weights(terms: Tally, mean: float) -> float:
    bets = Bets.spread(3)
    return log_wealth(terms, mean, Bets(bets.stakes, np.zeros(bets.stakes.size)))


def nothing_for_zeros(terms: Tally, mean: float) -> float:
    held = terms.parts > 0
    if not held.any():
        return 0.0
    some = Tally(terms.parts[held], terms.counts[held], terms.whole)
    return log_wealth(some, mean, Bets.spread(3))


def a_lower_mean(terms: Tally, mean: float) -> float:
    return log_wealth(terms, 0.9 * mean, Bets.spread(3))


@pytest.mark.parametrize(
    "wealth", [best_stake_afterwards, no_weights, nothing_for_zeros, a_lower_mean]
)
def test_wealth_that_is_no_bet_is_caught(wealth: Callable[[Tally, float], float]) -> None:
    assert worst_expectation(wealth) > 1.02


def ends_are_right(values: list[int], nats: float, stake: float | None) -> bool:
    """In 50 digits the wealth at an end is enough, and a little further in it is not."""
    terms = Tally.of(values, 20)
    bets = Bets.spread(terms.rows, stake)
    low, high = mean_low(terms, nats, bets), mean_high(terms, nats, bets)
    good = 0 <= low <= terms.mean + 1e-15 and terms.mean - 1e-15 <= high <= 1
    for side, end in ((terms, low), (terms.mirrored(), math.nextafter(1 - high, 0.0))):
        if end > 0:
            good &= bool(exact_log_wealth(side, end, bets) >= nats)
            inside = end + 2e-6 * (side.mean - end)
            good &= bool(exact_log_wealth(side, inside, bets) < nats + 1e-3)
    return good


@quick
@given(parts, levels, st.one_of(st.none(), st.floats(1e-3, 0.95)))
@example([0] * 400 + [1], 400.0, None)
@example([20] * 500, 400.0, 0.95)
@example([10] * 500, 3.0, None)
@example([0], 3.0, None)
def test_ends_at_3_to_400_nats(values: list[int], nats: float, stake: float | None) -> None:
    assert ends_are_right(values, nats, stake)


def test_an_end_with_less_wealth_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [3, 9, 20] * 20
    assert ends_are_right(values, 5.0, 0.3)
    original = betting._join
    for shift in (0.01, -0.01):
        monkeypatch.setattr(betting, "_join", lambda w, logs, s=shift: original(w, logs) + s)
        assert not ends_are_right(values, 5.0, 0.3)


def test_wealth_falls_in_the_mean() -> None:
    terms, bets = Tally.of([0, 3, 3, 9, 20], 20), Bets.spread(5)
    wealths = [log_wealth(terms, mean, bets) for mean in np.linspace(0.01, 1, 60)]
    assert all(a > b for a, b in pairwise(wealths))
    assert log_wealth(terms, 0.0, bets) == math.inf
    assert log_wealth(Tally.of([0, 0], 20), 0.0, bets) == pytest.approx(0, abs=1e-9)


@given(st.integers(1, 500), st.data())
def test_pairs_are_terms(n: int, data: st.DataObject) -> None:
    wins = data.draw(st.integers(0, n))
    losses = data.draw(st.integers(0, n - wins))
    bets = Bets.spread(n, 0.2)
    listed = Tally.of([2] * wins + [0] * losses + [1] * (n - wins - losses), 2)
    paired = Tally.paired(n, wins, losses)
    for value in (0.45, 0.5, 0.52):
        above = log_mean_above(paired, value, bets)
        assert above == pytest.approx(log_mean_above(listed, value, bets), abs=1e-9)
        assert log_mean_below(paired, value, bets) == pytest.approx(
            log_mean_above(Tally.paired(n, losses, wins), 1 - value, bets), abs=1e-9
        )
    assert mean_low(paired, 3.0, bets) == pytest.approx(mean_low(listed, 3.0, bets), abs=1e-9)


def miss_rate(low: Callable[[int, int], float], p: float, n: int) -> float:
    """P[lower end > p] for 0/1 terms, all counts."""
    ends = [low(n, c) for c in range(n + 1)]
    return sum(math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1) if ends[c] > p)


def test_coverage_of_bets_and_chernoff_by_enumeration() -> None:
    n = 40
    for nats in (1.0, 3.0):
        bets = Bets.spread(n, predicted_stake(0.5, 0.5, n, nats))

        def low(n: int, c: int, nats: float = nats, bets: Bets = bets) -> float:
            return mean_low(Tally.of([1] * c + [0] * (n - c), 1), nats, bets)

        for p in (0.05, 0.3, 0.5, 0.8, 0.95):
            assert miss_rate(low, p, n) <= math.exp(-nats)
            assert miss_rate(partial(kl_low, nats=nats), p, n) <= math.exp(-nats)
        short = [miss_rate(partial(share_low, nats=nats - 1), p, n) for p in (0.3, 0.5)]
        assert max(short) > math.exp(-nats)


@quick
@given(st.integers(1, 10**6), st.floats(0, 1), levels)
@example(10**6, 0.5, 3.0)
@example(100, 1.0, 400.0)
def test_chernoff_in_50_digits(n: int, share: float, nats: float) -> None:
    total = share * n
    for end, x in ((kl_low(n, total, nats), total), (1 - kl_high(n, total, nats), n - total)):
        mean, edge = mpf(x) / n, mpf(end)
        if edge > 1e-12 and mean > 0:
            rest = (1 - mean) * mp.log((1 - mean) / (1 - edge)) if mean < 1 else mpf(0)
            spent = n * (mean * mp.log(mean / edge) + rest)
            assert nats - 1e-9 * nats <= spent <= nats * (1 + 1e-4) + 1e-6


@pytest.mark.parametrize("nats", [3.0, 8.0, 30.0, 120.0])
def test_bets_are_between_chernoff_and_clopper_pearson_for_shares(nats: float) -> None:
    """0/1 terms: the exact interval inside, and with the right stake nearly Chernoff's."""
    n, c = 2_000, 1_500
    terms = Tally.of([1] * c + [0] * (n - c), 1)
    stakes = [predicted_stake(p, math.sqrt(0.1875), n, nats) for p in (0.75, 0.25)]
    low, high = (
        end(terms, nats, Bets.spread(n, s))
        for end, s in zip((mean_low, mean_high), stakes, strict=True)
    )
    assert low < share_low(n, c, nats) < share_high(n, c, nats) < high
    assert kl_high(n, c, nats) - kl_low(n, c, nats) > 0.94 * (high - low)


def test_widths_follow_the_variance() -> None:
    """Within a twentieth of sd·√(2L/n) with a predicted stake, for small and large variance."""
    n, nats = 10_000, 5.0
    for d in (0.01, 0.05, 0.3):
        terms, sd = Tally.paired(n, int(d * n / 2), int(d * n / 2)), math.sqrt(d)
        bets = Bets.spread(n, predicted_stake(0.5, sd / 2, n, nats))
        half = mean_high(terms, nats, bets) - mean_low(terms, nats, bets)
        assert half == pytest.approx(sd * math.sqrt(2 * nats / n), rel=0.05)
        assert half == pytest.approx(predicted_half_width(sd, n, nats), rel=0.03)
    skewed = Tally.of([1] * 9_900 + [0] * 100, 1)
    bets = Bets.spread(n, predicted_stake(0.99, 0.0995, n, nats, 0.0099 * 0.98))
    below = 0.99 - mean_low(skewed, nats, bets)
    assert predicted_half_width(0.0995, n, nats, 0.0099 * 0.98) == pytest.approx(below, rel=0.03)


@pytest.mark.parametrize("mean", [0.02, 0.5, 0.9])
def test_widths_of_terms_that_hardly_vary_are_those_of_the_largest_stake(mean: float) -> None:
    """sd·√(2L/n) would say much less of one of them: no factor is below 1 − s."""
    n, nats, gap = 3_000, 8.0, 0.005
    terms = Tally.of(np.repeat([round(1e4 * (mean + k)) for k in (-gap, gap)], n // 2), 10_000)
    for end, m in ((mean_low, mean), (mean_high, 1 - mean)):
        found = end(terms, nats, Bets.spread(n, predicted_stake(m, gap, n, nats)))
        half = predicted_half_width(gap, n, nats, mean=m)
        assert abs(found - mean) == pytest.approx(half, rel=0.1)
    widest = predicted_half_width(gap, n, nats, mean=max(mean, 1 - mean))
    assert widest > 3 * gap * math.sqrt(2 * nats / n)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Tally.of([], 5),
        lambda: Tally.of([6], 5),
        lambda: Tally.of([-1], 5),
        lambda: Tally.paired(5, 3, 3),
        lambda: Bets.spread(5, 1.0),
        lambda: mean_low(Tally.of([1], 1), -1.0, Bets.spread(1)),
    ],
)
def test_nonsense_is_refused(refused: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput):
        refused()
