"""Exact verdicts by counting: the counts by brute force, the bounds against the best analyst."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.theory.transcripts import (
    REFUSALS_MAX,
    Guessing,
    best_least,
    guess_blocks,
    guess_counts,
    log_guess_failure,
    log_share,
)
from tests.theory.transcript_worlds import World, best_verdict

# Counts, by trying all strategies.


@cache
def best_guesses(k: int, noes: int, a: Fraction, b: Fraction) -> Fraction:
    """The most that first failures can add up to: a guess is good, bad or neither.

    A good one fails by a No (a), a bad one by a Yes (b), the others cannot.
    """
    if k == 0 or noes == 0:
        return Fraction(0)
    yes, no = (best_guesses(k - 1, left, a, b) for left in (noes, noes - 1))
    return max(a + yes, b + no, yes + no)


chances = st.fractions(0, 1, max_denominator=50)


@given(st.integers(1, 7), st.integers(1, 7), chances, chances)
def test_guesses_are_counted_without_a_gap(k: int, noes: int, a: Fraction, b: Fraction) -> None:
    noes = min(k, noes)
    early, last = math.comb(k - 1, noes), sum(math.comb(k - 1, j) for j in range(noes))
    assert early * a + last * max(a, b) == best_guesses(k, noes, a, b)
    # All nodes of the tree, as the plain union bound counts them, are more.
    assert early + last <= sum(math.comb(k, j) for j in range(1, noes + 1))


@given(st.integers(1, 400), st.integers(1, 60))
def test_logarithms_of_counts_are_rounded_up(k: int, noes: int) -> None:
    noes = min(k, noes)
    early, last = guess_counts(k, noes)
    exact = math.comb(k - 1, noes)
    assert (early == -math.inf) == (exact == 0)
    if exact:
        assert math.log(exact) <= early <= math.log(exact) + 1e-8
    exact = sum(math.comb(k - 1, j) for j in range(noes))
    assert math.log(exact) <= last <= math.log(exact) + 1e-8


# Bounds, against the best analyst on tiny worlds.


def tenths(*masses: int) -> tuple[Fraction, ...]:
    assert sum(masses) == 10
    return tuple(Fraction(mass, 10) for mass in masses)


VERDICT_WORLDS = [
    # masses, blocks, least, guesses, refusals, tails, sides
    (tenths(1, 4, 4, 1), 6, 3, 3, 1, (1, 9), 1),
    (tenths(1, 4, 4, 1), 6, 2, 3, 1, (1, 9), 1),
    (tenths(1, 1, 1, 7), 6, 4, 3, 1, (1, 9), 1),
    (tenths(1, 1, 1, 7), 6, 3, 4, 2, (1, 9), 1),
    (tenths(1, 4, 4, 1), 8, 4, 4, 2, (1, 9), 1),
    (tenths(1, 3, 3, 3), 8, 2, 3, 2, (1, 4), 2),
    (tenths(2, 2, 3, 3), 7, 4, 3, 3, (2, 8), 1),
]

Bound = Callable[[Guessing, int, int], float]


def bound_of(guessing: Guessing, blocks: int, least: int) -> float:
    return math.exp(log_guess_failure(guessing, blocks, least))


def verdict_ratios(bound: Bound = bound_of, shift: int = 0) -> Iterator[float]:
    """What the best analyst reaches with verdicts at least + shift, as a share of the bound."""
    for masses, blocks, least, k, noes, (low, high), sides in VERDICT_WORLDS:
        tails = Fraction(low, 10), Fraction(high, 10)
        reached = best_verdict(World(masses, blocks), least + shift, k, noes, tails, sides=sides)
        guessing = Guessing(k, noes, float(tails[0]), float(tails[1]), sides)
        yield float(reached) / bound(guessing, blocks, least)


def test_no_analyst_breaks_verdicts_more_often_than_counted() -> None:
    """The bound is nearly reached: by three disjoint sets of blocks, one refusal."""
    ratios = list(verdict_ratios())
    assert 0.999 < max(ratios) <= 1
    assert min(ratios) > 0.2


@pytest.mark.parametrize(
    ("k", "noes", "reached"),
    [(1, 1, 289), (3, 1, 3 * 289), (2, 2, 2 * 289), (3, 2, 4 * 289), (3, 3, 4 * 289)],
)
def test_the_bound_on_verdicts_is_attained(k: int, noes: int, reached: int) -> None:
    """Failures after different histories exclude each other here: to the last digit."""
    quarter, blocks, least = Fraction(1, 4), 7, 4
    one = sum(math.comb(7, j) * quarter**j * (1 - quarter) ** (7 - j) for j in range(least, 8))
    assert one == Fraction(289, 4096)  # a false Yes, and by symmetry a false No
    bound = (math.comb(k - 1, noes) + sum(math.comb(k - 1, j) for j in range(noes))) * one
    best = best_verdict(
        World((quarter,) * 4, blocks), least, k, noes, (quarter, 3 * quarter), sides=1
    )
    assert best == bound == Fraction(reached, 4096)
    ours = bound_of(Guessing(k, noes, 0.25, 0.75, 1), blocks, least)
    assert float(bound) <= ours <= float(bound) * (1 + 1e-8)


def one_history(guessing: Guessing, blocks: int, least: int) -> float:
    """A mistake: as if nothing depended on the answers."""
    no, yes = guessing.chances(blocks, least)
    return math.exp(max(no, yes))


def no_early_failures(guessing: Guessing, blocks: int, least: int) -> float:
    """A mistake: only the last guess counted."""
    no, yes = guessing.chances(blocks, least)
    return math.exp(guessing.counts.last + max(no, yes))


def one_refusal_less(guessing: Guessing, blocks: int, least: int) -> float:
    """A mistake: Σ_{j<ℓ−1}."""
    no, yes = guessing.chances(blocks, least)
    k, noes = guessing.queries, guessing.refusals
    last = sum(math.comb(k - 1, j) for j in range(noes - 1))
    return math.exp(no) * math.comb(k - 1, noes - 1) + last * math.exp(max(no, yes))


def only_false_noes(guessing: Guessing, blocks: int, least: int) -> float:
    """A mistake: a false Yes forgotten."""
    early, last = guessing.counts
    no, _ = guessing.chances(blocks, least)
    return math.exp(early + no) + math.exp(last + no)


@pytest.mark.parametrize(
    "mistake", [one_history, no_early_failures, one_refusal_less, only_false_noes]
)
def test_a_wrong_count_is_caught(mistake: Bound) -> None:
    assert max(verdict_ratios(mistake)) > 1


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_count_that_is_off_by_one_is_caught(shift: int) -> None:
    assert max(verdict_ratios(shift=shift)) > 1


# Sizes.


def test_the_figures() -> None:
    """The plain union bound needs 1,186, 178 and 225 blocks for the first three."""
    sizes = [
        guess_blocks(Guessing(k, noes, 0.05, 0.25), 0.05)
        for k, noes in ((1_000, 10), (1_000, 1), (10_000, 1), (1_000, 100))
    ]
    assert sizes == [(1_153, 145), (113, 11), (133, 12), (7_023, 898)]
    assert guess_blocks(Guessing(1_000, 10, 0.05, 0.25, sides=1), 0.05) == (1_145, 145)


@given(
    st.integers(1, 2_000),
    st.integers(1, 20),
    st.sampled_from([(0.05, 0.25), (0.01, 0.1), (0.2, 0.4)]),
    st.integers(5, 400),
)
def test_the_best_count_is_the_best(
    k: int, noes: int, tails: tuple[float, float], blocks: int
) -> None:
    guessing = Guessing(k, min(k, noes), *tails)
    found = log_guess_failure(guessing, blocks, best_least(guessing, blocks))
    others = (log_guess_failure(guessing, blocks, c) for c in range(1, blocks + 1))
    assert found <= 1e-9 + min(others)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from([(0.05, 0.25), (0.1, 0.3), (0.2, 0.45)]),
    st.floats(1e-4, 0.5),
)
def test_the_fewest_blocks_are_enough_and_no_fewer(
    k: int, noes: int, tails: tuple[float, float], failure: float
) -> None:
    guessing = Guessing(k, min(k, noes), *tails)
    size = guess_blocks(guessing, failure)
    share = math.log(failure)
    assert log_guess_failure(guessing, *size) <= share
    for fewer in range(max(1, size.blocks - 25), size.blocks):
        assert log_guess_failure(guessing, fewer, best_least(guessing, fewer)) > share - 1e-9


# What makes no sense.


def test_what_makes_no_sense_is_refused() -> None:
    wrong: dict[Callable[..., object], list[tuple[float, ...]]] = {
        guess_counts: [(0, 1), (3, 4), (10**8, REFUSALS_MAX + 1), (True, 1)],
        Guessing: [
            *((10, 1, 0.25, 0.05), (10, 1, 0.05, 0.5), (10, 1, 0.0, 0.2), (10, 11, 0.05, 0.25)),
            *((10, 1, 0.05, 1.0, 1), (10, 1, 0.05, 0.25, 3)),
        ],
        log_share: [(math.nan,)],
    }
    for function, cases in wrong.items():
        for arguments in cases:
            with pytest.raises(InvalidInput):
                function(*arguments)
    with pytest.raises(InvalidInput):
        guess_blocks(Guessing(10, 1, 0.05, 0.25), 0.0)
