"""Exact answers by counting: the counts by brute force, the bounds against the best analyst."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.sizing import fresh_split, split_failure
from holdfast.theory.transcripts import (
    HELD_SLACK,
    HIGHEST_MASS,
    LOWEST_MASS,
    REFUSALS_MAX,
    Guessing,
    answer_blocks,
    best_least,
    drop,
    guess_blocks,
    guess_counts,
    largest_mass,
    learning_rate,
    least_entropy,
    log_answer_count,
    log_answer_failure,
    log_guess_failure,
    log_share,
    log_weighing_count,
    log_weighing_failure,
    most_updates,
    multiset_count,
    weighing_blocks,
)
from tests.theory.transcript_worlds import World, best_correction, best_estimate, best_verdict

# Counts, by trying all strategies.


@cache
def best_guesses(k: int, noes: int, points: int, a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    """The most that first failures can add up to: a guess is good, bad or neither.

    A good one fails by a No (a), a bad one by a Yes (b), the others cannot. A correction fails with
    c, and then at least one of its values is not harmless; or it cannot fail.
    """
    if k == 0 or noes == 0:
        return Fraction(0)

    def rest(noes: int) -> Fraction:
        return best_guesses(k - 1, noes, points, a, b, c)

    told = max(points * rest(noes - 1), c + (points - 1) * rest(noes - 1))
    return max(a + rest(noes), b + told, rest(noes) + told)


chances = st.fractions(0, 1, max_denominator=50)


@given(st.integers(1, 7), st.integers(1, 7), st.integers(2, 4), chances, chances, chances)
def test_guesses_are_counted_without_a_gap(
    k: int, noes: int, points: int, a: Fraction, b: Fraction, c: Fraction
) -> None:
    noes = min(k, noes)
    for r, wrong in ((1, Fraction(0)), (points, c)):
        early = math.comb(k - 1, noes) * r ** (noes - 1)
        last = sum(math.comb(k - 1, j) * r**j for j in range(noes))
        counted = early * max(a, wrong) + last * max(a, b + wrong)
        assert counted == best_guesses(k, noes, r, a, b, wrong)
        # All nodes of the tree, as the plain union bound counts them, are more.
        assert early + last <= sum(math.comb(k, j) * r ** (j - 1) for j in range(1, noes + 1))


@given(st.integers(1, 400), st.integers(1, 60), st.integers(1, 1_000))
def test_logarithms_of_counts_are_rounded_up(k: int, noes: int, r: int) -> None:
    noes = min(k, noes)
    early, last = guess_counts(k, noes, r)
    exact = math.comb(k - 1, noes) * r ** (noes - 1)
    assert (early == -math.inf) == (exact == 0)
    if exact:
        assert math.log(exact) <= early <= math.log(exact) + 1e-8
    exact = sum(math.comb(k - 1, j) * r**j for j in range(noes))
    assert math.log(exact) <= last <= math.log(exact) + 1e-8
    exact = sum(2**j * math.comb(k - 1 + j, j) for j in range(noes + 1))
    assert math.log(exact) <= log_weighing_count(k, noes) <= math.log(exact) + 1e-8
    exact = r ** (k - 1)
    assert math.log(exact) <= log_answer_count(k, r) <= math.log(exact) + 1e-8


def test_histories_of_weights_are_counted_one_by_one() -> None:
    """The last question comes after k − 1 Yeses, with Noes of two kinds in between."""
    for k, most in product(range(1, 4), range(5)):
        lists = [
            answers
            for length in range(k - 1, k + most)
            for answers in product("ylr", repeat=length)
            if answers.count("y") == k - 1 and length - answers.count("y") <= most
        ]
        assert round(math.exp(log_weighing_count(k, most))) == len(lists)


@pytest.mark.parametrize("sizes", [(2, 3), (2, 3, 4), (3, 7)])
def test_grids_of_different_sizes_pay_for_what_they_can_say(sizes: tuple[int, ...]) -> None:
    """Answers: question j is admitted while the product of the sizes before it is within N."""

    @cache
    def best(room: int) -> Fraction:
        if not room:
            return Fraction(0)
        return max(max(r * best(room // r), 1 + (r - 1) * best(room // r)) for r in sizes)

    for planned, k in ((2, 5), (3, 4), (4, 4)):
        assert best(planned ** (k - 1)) <= planned ** (k - 1)


@pytest.mark.parametrize("sizes", [(2, 3), (2, 3, 4, 9)])
def test_corrections_on_grids_of_different_sizes(sizes: tuple[int, ...]) -> None:
    """Corrections: after i of them the product of their sizes is at most r^i; the last is free."""
    a, b, c = Fraction(1, 7), Fraction(2, 5), Fraction(1, 11)

    def worst(planned: int, k: int, noes: int) -> Fraction:
        @cache
        def best(k: int, refused: int, told: int) -> Fraction:
            if k == 0 or refused == noes:
                return Fraction(0)
            found = Fraction(0)
            for r in sizes:
                if refused < noes - 1 and told * r > planned ** (refused + 1):
                    continue
                after = best(k - 1, refused + 1, told * r)
                correction = max(r * after, c + (r - 1) * after)
                rest = best(k - 1, refused, told)
                found = max(found, a + rest, b + correction, rest + correction)
            return found

        return best(k, 0, 1)

    for planned, k, noes in product((2, 3), (2, 3, 4, 5), (1, 2, 3)):
        noes = min(k, noes)
        assert worst(planned, k, noes) <= best_guesses(k, noes, planned, a, b, c)


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
    return math.exp(log_guess_failure(guessing, blocks, least, None))


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
    no, yes, _ = guessing.chances(blocks, least, None)
    return math.exp(max(no, yes))


def no_early_failures(guessing: Guessing, blocks: int, least: int) -> float:
    """A mistake: only the last guess counted."""
    no, yes, _ = guessing.chances(blocks, least, None)
    return math.exp(guessing.counts.last + max(no, yes))


def one_refusal_less(guessing: Guessing, blocks: int, least: int) -> float:
    """A mistake: Σ_{j<ℓ−1}."""
    no, yes, _ = guessing.chances(blocks, least, None)
    k, noes = guessing.queries, guessing.refusals
    last = sum(math.comb(k - 1, j) for j in range(noes - 1))
    return math.exp(no) * math.comb(k - 1, noes - 1) + last * math.exp(max(no, yes))


def only_false_noes(guessing: Guessing, blocks: int, least: int) -> float:
    """A mistake: a false Yes forgotten."""
    early, last = guessing.counts
    no = guessing.chances(blocks, least, None)[0]
    return math.exp(early + no) + math.exp(last + no)


@pytest.mark.parametrize(
    "mistake", [one_history, no_early_failures, one_refusal_less, only_false_noes]
)
def test_a_wrong_count_is_caught(mistake: Bound) -> None:
    assert max(verdict_ratios(mistake)) > 1


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_count_that_is_off_by_one_is_caught(shift: int) -> None:
    assert max(verdict_ratios(shift=shift)) > 1


CORRECTION_WORLDS = [
    # masses, blocks, least, rank, points, guesses, refusals
    (tenths(1, 1, 8), 9, 2, 4, 3, 1, 1),
    (tenths(1, 1, 8), 9, 2, 2, 3, 2, 1),
    (tenths(1, 1, 1, 7), 7, 1, 2, 3, 2, 1),
    (tenths(1, 4, 4, 1), 7, 2, 3, 2, 3, 2),
    (tenths(1, 1, 4, 4), 7, 2, 4, 3, 2, 2),
]


def corrections_hold(*, forgotten: bool = False) -> bool:
    """Whether the bound is above what the best analyst reaches, wrong corrections included."""
    for masses, blocks, least, rank, points, k, noes in CORRECTION_WORLDS:
        tails = Fraction(1, 10), Fraction(4, 10)
        reached = best_correction(World(masses, blocks), least, rank, points, k, noes, tails)
        guessing = Guessing(k, noes, 0.1, 0.4, points=points)
        counted = None if forgotten else rank
        if reached > math.exp(log_guess_failure(guessing, blocks, least, counted)):
            return False
    return True


def test_no_analyst_breaks_corrections_more_often_than_counted() -> None:
    assert corrections_hold()
    assert not corrections_hold(forgotten=True)  # wrong corrections not counted


def estimates_hold(count: Callable[[int, int], int]) -> bool:
    for masses, blocks, rank, points, k, (low, high) in (
        (tenths(1, 4, 4, 1), 5, 3, 2, 1, (1, 1)),
        (tenths(1, 4, 4, 1), 5, 3, 3, 2, (1, 1)),
        (tenths(1, 1, 3, 3, 1, 1), 3, 2, 2, 2, (1, 1)),
        (tenths(3, 4, 2, 1), 7, 5, 2, 3, (3, 1)),
    ):
        tails = Fraction(low, 10), Fraction(high, 10)
        reached = best_estimate(World(masses, blocks), rank, points, k, tails)
        one = split_failure(blocks, rank, float(tails[0]), float(tails[1]))
        if reached > count(k, points) * one:
            return False
    return True


def test_no_analyst_breaks_estimates_more_often_than_counted() -> None:
    assert estimates_hold(lambda k, points: points ** (k - 1))
    assert not estimates_hold(lambda k, points: 1)  # answers not counted


def test_a_log_failure_of_answers_is_the_count_times_the_failure_of_one() -> None:
    assert log_share(0.05) < math.log(0.05) < log_share(0.05) + 1e-10
    one = split_failure(41, 21, 0.25, 0.2)
    ours = math.exp(log_answer_failure(41, 21, 3, 7, 0.25, 0.2))
    assert ours == pytest.approx(49 * one, rel=1e-9)


# Sizes.


def test_the_figures() -> None:
    """The plain union bound needs 1,186, 178 and 225 blocks for the first three."""
    sizes = [
        guess_blocks(Guessing(k, noes, 0.05, 0.25), 0.05)[:2]
        for k, noes in ((1_000, 10), (1_000, 1), (10_000, 1), (1_000, 100))
    ]
    assert sizes == [(1_153, 145), (113, 11), (133, 12), (7_023, 898)]
    assert guess_blocks(Guessing(1_000, 10, 0.05, 0.25, points=32), 0.05) == (1_830, 232, 915)
    assert guess_blocks(Guessing(1_000, 10, 0.05, 0.25, sides=1), 0.05)[:2] == (1_145, 145)
    assert [answer_blocks(k, 32, 0.25, 0.25, 0.05).blocks for k in (20, 50, 100)] == [
        461,
        1_181,
        2_383,
    ]
    assert weighing_blocks(10**6, 100, 0.05, 0.05).blocks == 1_230


@given(
    st.integers(1, 2_000),
    st.integers(1, 20),
    st.sampled_from([(0.05, 0.25), (0.01, 0.1), (0.2, 0.4)]),
    st.sampled_from([1, 7]),
    st.integers(5, 400),
)
def test_the_best_count_is_the_best(
    k: int, noes: int, tails: tuple[float, float], points: int, blocks: int
) -> None:
    guessing = Guessing(k, min(k, noes), *tails, points=points)
    rank = guessing.rank(blocks)
    found = log_guess_failure(guessing, blocks, best_least(guessing, blocks), rank)
    assert found <= 1e-9 + min(
        log_guess_failure(guessing, blocks, c, rank) for c in range(1, blocks + 1)
    )


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from([(0.05, 0.25), (0.1, 0.3), (0.2, 0.45)]),
    st.sampled_from([1, 7]),
    st.floats(1e-4, 0.5),
)
def test_the_fewest_blocks_are_enough_and_no_fewer(
    k: int, noes: int, tails: tuple[float, float], points: int, failure: float
) -> None:
    guessing = Guessing(k, min(k, noes), *tails, points=points)
    size = guess_blocks(guessing, failure)
    share = math.log(failure)
    assert log_guess_failure(guessing, *size) <= share
    for fewer in range(max(1, size.blocks - 25), size.blocks):
        least = best_least(guessing, fewer)
        assert log_guess_failure(guessing, fewer, least, guessing.rank(fewer)) > share - 1e-9


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 60),
    st.integers(2, 200),
    st.sampled_from([(0.01, 0.01), (0.25, 0.25), (0.4, 0.1), (0.85, 0.05)]),
    st.floats(1e-6, 0.5),
)
def test_answers_meet_the_union_bound(
    k: int, points: int, tails: tuple[float, float], failure: float
) -> None:
    size = answer_blocks(k, points, *tails, failure)
    count = points ** (k - 1)
    assert count * split_failure(size.blocks, size.rank, *tails) <= failure * (1 + 1e-6)
    if size.blocks > 1:
        fewer = [
            log_answer_failure(size.blocks - 1, rank, k, points, *tails)
            for rank in range(1, size.blocks)
        ]
        assert min(fewer) > math.log(failure) - 1e-9


def test_one_question_is_the_fresh_split() -> None:
    assert answer_blocks(1, 32, 0.25, 0.2, 0.05) == fresh_split(1, 0.05, 0.25, 0.2)


def test_many_nats_are_no_obstacle() -> None:
    """In nats 34,657, far below the smallest float; Chernoff says about as much."""
    size = answer_blocks(10_000, 32, 0.25, 0.25, 0.05)
    divergence = math.log(4 / 3) / 2  # kl(1/2, 1/4)
    assert size.blocks == pytest.approx(9_999 * math.log(32) / divergence, rel=2e-3)


@settings(deadline=None, max_examples=12)
@given(
    st.integers(1, 10**6),
    st.integers(1, 10**9),
    st.sampled_from([0.001, 0.05, 0.25, 0.4]),
    st.floats(1e-6, 0.5),
)
def test_weights_are_certain_of_their_updates(
    k: int, universe: int, tail: float, failure: float
) -> None:
    blocks, least, updates = weighing_blocks(k, universe, tail, failure)
    mass = max((least - 1) / blocks, LOWEST_MASS)
    assert mass <= HIGHEST_MASS
    assert most_updates(universe, mass) <= updates
    assert log_weighing_failure(blocks, least, k, updates, tail) <= math.log(failure)


# What makes no sense.


def test_what_makes_no_sense_is_refused() -> None:
    wrong: dict[Callable[..., object], list[tuple[float, ...]]] = {
        guess_counts: [(0, 1), (3, 4), (10**8, REFUSALS_MAX + 1), (3, 1, 0), (True, 1)],
        Guessing: [
            *((10, 1, 0.25, 0.05), (10, 1, 0.05, 0.5), (10, 1, 0.0, 0.2), (10, 11, 0.05, 0.25)),
            *((10, 1, 0.05, 1.0, 1), (10, 1, 0.05, 0.25, 3)),
        ],
        answer_blocks: [
            *((0, 32, 0.25, 0.25, 0.05), (1, 0, 0.25, 0.25, 0.05), (1, 32, 0.6, 0.5, 0.05)),
            (1, 32, 0.25, 0.25, 1.0),
        ],
        weighing_blocks: [(1, 100, 0.495, 0.05), (1, 0, 0.25, 0.05)],
        log_weighing_count: [(1, -1)],
        log_share: [(math.nan,)],
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
    with pytest.raises(InvalidInput):
        guess_blocks(Guessing(10, 1, 0.05, 0.25), 0.0)


def test_too_much_to_count_is_refused_politely() -> None:
    with pytest.raises(Infeasible, match="bits"):
        answer_blocks(10**8, 32, 0.25, 0.25, 0.05)
    with pytest.raises(Infeasible, match="stable looks"):
        Guessing(10**7, 10**6, 0.05, 0.25, points=2**40)
    with pytest.raises(Infeasible, match="coarser points, smaller blocks"):
        multiset_count(10**9, 10**9)


# --- Updates of multiplicative weights: by arithmetic, and against adversaries -----------------


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
