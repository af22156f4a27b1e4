"""A verdict's bound on the mean, against exact binomial tails."""

from __future__ import annotations

from math import comb
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.theory.bars import verdict_bar

Side = Literal["at least", "at most"]


def tail(mean: float, units: int, guess: float, claim: Side) -> float:
    """D[φ ≥ v] or D[φ ≤ v] for the share of heads in so many flips."""
    chance = [comb(units, k) * mean**k * (1 - mean) ** (units - k) for k in range(units + 1)]
    within = [
        k / units >= guess if claim == "at least" else k / units <= guess for k in range(units + 1)
    ]
    return sum(p for p, inside in zip(chance, within, strict=True) if inside)


SIDES = st.sampled_from(["at least", "at most"])


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 40),
    st.floats(0.01, 0.99),
    st.floats(0.02, 0.98),
    SIDES,
    st.sampled_from([(0.05, 0.25), (1e-3, 0.9), (1e-6, 1 - 1e-6)]),
)
def test_no_mean_that_a_verdict_allows_is_excluded(
    units: int, mean: float, guess: float, claim: Side, tails: tuple[float, float]
) -> None:
    found = tail(mean, units, guess, claim)
    low_tail, high_tail = tails
    if found > low_tail * (1 + 1e-9):  # a Yes may be said
        low, high = verdict_bar(guess, claim, True, units, *tails)
        assert low is not None
        assert high is not None
        assert low <= mean <= high
    if found < high_tail * (1 - 1e-12):  # a No may be said
        low, high = verdict_bar(guess, claim, False, units, *tails)
        assert low is not None
        assert high is not None
        assert low <= mean <= high


@pytest.mark.parametrize("claim", ["at least", "at most"])
def test_larger_blocks_and_larger_tails_say_more(claim: Side) -> None:
    for confirmed in (True, False):
        widths = []
        for units, tails in (
            (100, (1e-6, 1 - 1e-6)),
            (1000, (1e-6, 1 - 1e-6)),
            (1000, (0.05, 0.25)),
        ):
            low, high = verdict_bar(0.5, claim, confirmed, units, *tails)
            assert low is not None
            assert high is not None
            widths.append(high - low)
        assert widths == sorted(widths, reverse=True)


def test_other_ranges_are_scaled() -> None:
    low, high = verdict_bar(0.7, "at least", True, 500, 0.01, 0.5)
    wide, top = verdict_bar(7.0, "at least", True, 500, 0.01, 0.5, 0.0, 10.0)
    assert low is not None
    assert wide == pytest.approx(10 * low)
    assert (high, top) == (1.0, 10.0)
