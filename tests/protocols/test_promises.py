"""Promises in words: no sentence says more than its numbers, no verdict more than its sentence."""

from __future__ import annotations

import itertools
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.grids import grid
from holdfast.protocols.answers import (
    LEAST_SHARE,
    Claim,
    Verdict,
    at_least,
    fewer_than,
    interval_promise,
    near_promise,
    rounded_down,
    rounded_up,
    search_promise,
    verdict_promise,
)
from tests.protocols.oracle import clauses, share_in

SHARES = st.floats(1e-15, 1, exclude_max=True)
VALUES = st.floats(-1e9, 1e9).map(lambda x: round(x, 6) + 0.0)
CLAIMS: tuple[Claim, ...] = ("equals", "at least", "at most")

# Shares.


@given(SHARES)
def test_a_share_is_never_said_to_be_more_than_it_is(share: float) -> None:
    said = share_in(at_least(share))
    assert 0 < said <= Fraction(repr(share))
    assert said >= Fraction(repr(share)) * Fraction(98, 100)
    assert Fraction(repr(share)) <= share_in(fewer_than(share))


@given(VALUES, st.integers(1, 15))
def test_numbers_are_rounded_towards_the_safe_side(value: float, digits: int) -> None:
    assert float(rounded_down(value, digits)) <= value <= float(rounded_up(value, digits))


# Sentences. They are read back, and counted on every law of a block with few values.


def share_of(law: dict[float, Fraction], how: str, limit: float) -> Fraction:
    holds = {"or less": le, "or more": ge, "more than": gt, "less than": lt}[how]
    return sum((mass for x, mass in law.items() if holds(x, limit)), start=Fraction(0))


LAWS = [
    dict(zip((-0.5, 0.25, 1.0, 2.5), masses, strict=True))
    for masses in itertools.product([Fraction(n, 8) for n in range(9)], repeat=4)
    if sum(masses) == 1
]
TAILS = (0.05, 0.125, 0.25, 0.4)
POINTS = grid([0, 1, 2])


@pytest.mark.parametrize(("low", "high"), [*itertools.product(TAILS, TAILS)])
def test_an_answer_s_sentence_is_what_its_tails_say(low: float, high: float) -> None:
    """Where D[φ̂ ≤ v] > tail_low and D[φ̂ ≥ v] > tail_high, and φ̂ is rounded up, it is true."""
    seen = 0
    for law, index in itertools.product(LAWS, range(3)):
        projected = {x: int(POINTS.ceiling(x)) for x in law}
        below = sum(m for x, m in law.items() if projected[x] <= index)
        above = sum(m for x, m in law.items() if projected[x] >= index)
        if not (below > Fraction(low) and above > Fraction(high)):
            continue
        said = clauses(search_promise(low, high, 9, POINTS.cell(index), has_bar=False))
        assert len(said) == (2 if index == 1 else 1)  # beyond an end nothing is said
        for share, how, limit in said:
            assert share_of(law, how, limit) >= share
            seen += 1
    assert seen > 100


def came(tail: float, value: float) -> str:
    """The promise of a value that is one of a block's, as it came."""
    return search_promise(tail, tail, 9, (value, value), has_bar=False, as_it_came=True)


@pytest.mark.parametrize("value", [-0.5, 0.25, 1.0, 2.5])
def test_a_block_s_own_value_is_not_rounded(value: float) -> None:
    for law, tail in itertools.product(LAWS, TAILS):
        sides = share_of(law, "or less", value), share_of(law, "or more", value)
        if min(sides) > Fraction(tail):
            for share, how, limit in clauses(came(tail, value)):
                assert limit == value
                assert share_of(law, how, limit) >= share


def test_an_interval_speaks_of_the_median_over_blocks() -> None:
    text = interval_promise(0.05, 11, 90, 470)
    assert clauses(text) == [(Fraction(1, 2), "or less", 470), (Fraction(1, 2), "or more", 90)]
    assert "fresh blocks of 11 units" in text
    assert "the median over blocks, not over units" in text
    assert clauses(interval_promise(0.05, 11, None, 470)) == [(Fraction(1, 2), "or less", 470)]
    assert clauses(interval_promise(0.05, 11, 90, None)) == [(Fraction(1, 2), "or more", 90)]


# Verdicts.


def verdict(
    refused: bool | None,
    low: float,
    high: float,
    *,
    guess: float = 1.0,
    claim: Claim = "equals",
    tolerance: float | None = None,
    **more: Any,
) -> Verdict:
    return Verdict(
        protocol="verify",
        guess=guess,
        claim=claim,
        tolerance=tolerance,
        refused=refused,
        tail_low=low,
        tail_high=high,
        confidence=0.95,
        promise="",
        price=0.0,
        budget_left=1.0,
        refusals_left=None,
        certified=True,
        block_units=9,
        **more,
    )


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize(("low", "high"), [(0.05, 0.25), (0.125, 0.4), (0.01, 0.49)])
def test_what_a_verdict_says_is_certified(claim: Claim, low: float, high: float) -> None:
    """Where the tails are what a verdict certifies, its sentence is true of the law."""
    asked = {"equals": ("or less", "or more"), "at most": ("or less",), "at least": ("or more",)}
    seen = set()
    for law, guess in itertools.product(LAWS, (-0.5, 0.25, 1.0, 2.5, 3.0)):
        shares = [share_of(law, how, guess) for how in asked[claim]]
        for refused in (False, True):
            certified = min(shares) < Fraction(high) if refused else min(shares) > Fraction(low)
            if not certified:
                continue
            text = verdict_promise(refused, guess, claim, low, high, 9)
            said = clauses(text)
            assert {limit for _, _, limit in said} == {guess}
            assert {how for _, how, _ in said} == set(asked[claim])
            if refused:
                assert any(share_of(law, how, limit) < share for share, how, limit in said)
            else:
                assert all(share_of(law, how, limit) >= share for share, how, limit in said)
                assert f"no confirmation of {guess:g}" in text
            seen.add(verdict(refused, low, high, claim=claim).verdict)
    assert seen == {"compatible", "not compatible"}


@pytest.mark.parametrize("tail", TAILS)
def test_what_a_search_says_of_a_guess_is_certified(tail: float) -> None:
    both = 0
    for law, guess, tolerance in itertools.product(LAWS, (0.0, 0.5, 1.0), (0.0, 0.25, 1.5)):
        inside = share_of(law, "or less", guess + tolerance) > Fraction(tail) and share_of(
            law, "or more", guess - tolerance
        ) > Fraction(tail)
        beyond = share_of(law, "less than", guess - tolerance) > Fraction(tail) or share_of(
            law, "more than", guess + tolerance
        ) > Fraction(tail)
        if inside:
            said = clauses(near_promise(False, guess, tolerance, tail, tail, 9))
            assert all(share_of(law, how, limit) >= share for share, how, limit in said)
        if beyond:
            said = clauses(near_promise(True, guess, tolerance, tail, tail, 9))
            assert any(share_of(law, how, limit) >= share for share, how, limit in said)
        both += inside and beyond
    assert both > 100  # so that a refused guess may be compatible, and nobody can tell
    assert verdict(False, tail, tail, tolerance=0.5).verdict == "compatible"
    assert verdict(True, tail, tail, tolerance=0.5).verdict == "cannot tell"


@given(SHARES, SHARES, st.sampled_from(CLAIMS), st.booleans(), st.booleans())
def test_a_word_needs_a_share_that_says_something(
    low: float, high: float, claim: Claim, refused: bool, near: bool
) -> None:
    said = verdict(refused, low, high, claim=claim, tolerance=0.1 if near else None).verdict
    if said == "compatible":
        assert not refused
        assert (min(low, high) if near else low) >= LEAST_SHARE
    elif said == "not compatible":
        assert refused
        assert not near
        assert 1 - high >= LEAST_SHARE
    else:
        assert said == "cannot tell"
    assert verdict(None, low, high, claim=claim).verdict == "exhausted"


def test_a_small_share_says_that_it_says_nothing() -> None:
    for text in (
        search_promise(6.94e-11, 6.94e-11, 1_800, (230, 240), has_bar=False),
        came(1e-6, 0.5),
        verdict_promise(False, 0.8, "at least", 1e-6, 1 - 1e-6, 9),
        verdict_promise(True, 0.8, "at least", 1e-6, 1 - 1e-6, 9),
    ):
        assert "says nothing by itself" in text
    with_bar = search_promise(6.94e-11, 6.94e-11, 1_800, (230, 240), has_bar=True)
    assert with_bar.endswith("; the mean lies between low and high")
    assert "at least 1 in 14,500,000,000 fresh blocks of 1,800 units" in with_bar


def test_nothing_was_drawn() -> None:
    assert verdict_promise(None, 0.5, "equals", 0.05, 0.25, 9).startswith("nothing was drawn")
    assert near_promise(None, 0.5, 0.1, 0.05, 0.05, 9).startswith("nothing was drawn")


# The range that the open part gives.


def test_a_range_in_words() -> None:
    inside = verdict(False, 0.05, 0.25, range_low=24.00004, range_high=511.9999, open_blocks=163)
    assert inside.described()["range"] == (
        "guesses from 24 up to 512 are compatible, going by 163 open blocks"
    )
    few = verdict(False, 0.05, 0.25, open_blocks=12)
    assert few.described()["range"].endswith(
        "too few to say which guesses are compatible: 20 would do"
    )
    assert "range" not in verdict(False, 0.05, 0.25).described()
    one = verdict(False, 0.05, 0.25, claim="at least", range_high=3.5, open_blocks=40)
    assert one.described()["range"].startswith("guesses up to 3.5 are compatible")
