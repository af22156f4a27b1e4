"""The best analyst against the product's own rules, in worlds so small that all is tried.

A world gives the chance that something told is ever false, over β: 1 is what is certified. How near
to it each world comes is tested too, and mistakes in the rules must take it beyond
(tests/mutants/protocols.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.grids import grid
from holdfast.protocols.answers import AT_SHARES, RULE
from holdfast.protocols.told import Expects
from tests.protocols.told_worlds import Asking, Unlike, asking, drive, start
from tests.theory.told_worlds import World, best

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
YES, NO = (1, 0), (0, 1)
ATOMS = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
GUESSES = (0.0, 0.25, 0.5, 0.75, 1.0)
Questions = Callable[[World], list[Asking]]


def two(p: Fraction | float, n: int) -> World:
    """Rows of two atoms."""
    p = Fraction(p)
    return World((p, 1 - p), (n,))


def ratio(
    world: World, questions: Questions, left: int, failure: float, *, mixes: bool = False
) -> float:
    """The best analyst's chance of something false, over what is certified."""
    chance = best(world, questions(world), left, start(failure, mixes=mixes))
    return float(chance / Fraction(failure))


# Questions, verb by verb.


def confirmations(world: World, guesses: Sequence[float] = GUESSES) -> list[Asking]:
    """Of a share: windows of one count and wider ones, anywhere."""
    words = [{"guess": g, "error": e} for g in guesses for e in (0.0, 0.15)]
    return [asking(world, "score", YES, metric="m", **each) for each in words]


def precise(world: World) -> list[Asking]:
    """Precise shares, and one without a guess."""
    words = [{"guess": g, "error": 0.2, "precise": True} for g in GUESSES]
    return [asking(world, "score", YES, metric="m", **each) for each in [*words, {}]]


def gates(world: World) -> list[Asking]:
    """At the truth and next to it, where a proof is nearest to be false."""
    p = float(world.masses[0])
    return [
        asking(world, "gate", YES, metric="m", threshold=v, claim=claim, guess=g, tolerance=near)
        for v in (p, math.nextafter(p, 1.0))
        for claim in ("at least", "at most")
        for g, near in ((None, None), (0.0, None), (1.0, 0.05))
    ]


def verdicts(world: World) -> list[Asking]:
    """Better by more than nothing: exact McNemar; by more than a margin: the bet."""
    words = [{"margin": 0.0, "guess": g} for g in (None, -1.0, 1.0)] + [{"margin": 0.2}]
    pairs = ((YES, NO), (NO, YES))
    return [asking(world, "compare", *p, metric="m", **w) for p in pairs for w in words]


def differences(world: World) -> list[Asking]:
    """Of two rules that win, tie and lose, with bars by bets."""
    known = Expects(sd=0.8)
    return [
        asking(world, "compare", (1, 0, 0), (0, 0, 1), metric="m", expects=known, **words)
        for g in (-1.0, 0.0, 1.0)
        for words in ({"guess": g, "error": 0.0}, {"guess": g, "error": 0.3, "precise": True})
    ]


def means(world: World) -> list[Asking]:
    """Of terms of three values: confirmed, precise and without a guess."""
    known = Expects(sd=0.35)
    words = [{"guess": g, "error": 0.0} for g in GUESSES]
    words += [{"guess": g, "error": 0.2, "precise": True} for g in (0.0, 0.5, 1.0)]
    terms = (0, HALF, 1)
    return [asking(world, "mean", terms, expects=known, **each) for each in [*words, {}]]


def filtered(world: World) -> list[Asking]:
    """A share under a filter that keeps every row: the letter rule with Clopper-Pearson's ends."""
    known = Expects(rows=float(sum(world.rows)))
    return [
        asking(world, "mean", YES, kept=(1, 1), expects=known, guess=g, error=e)
        for g in GUESSES
        for e in (0.0, 0.1)
    ]


def groups(world: World) -> list[Asking]:
    """A share of the rows that a filter keeps: of the first two atoms, perhaps of no row at all."""
    known = Expects(rows=4.0)
    return [
        asking(world, "mean", (0, 1, 1), kept=(1, 1, 0), expects=known, error=0.05, **words)
        for g in (0.0, 0.5, 1.0)
        for words in ({"guess": g}, {"guess": g, "precise": True})
    ]


def winners(world: World) -> list[Asking]:
    """The best of three, then a gate, or a score, for each."""
    scores = [
        asking(world, "score", terms, metric="m", guess=g, error=0.0)
        for terms in ATOMS
        for g in (0.8, 1.0)
    ]
    beside = {"threshold": math.nextafter(1 / 3, 1.0), "claim": "at least", "guess": 1.0}
    gated = [asking(world, "gate", terms, metric="m", **beside) for terms in ATOMS]
    return [asking(world, "best", *ATOMS, metric="m"), *scores, *gated]


def batches(world: World) -> list[Asking]:
    """Two or three scores at once."""
    terms: tuple[tuple[int, ...], ...] = ATOMS
    guesses: list[tuple[float, ...]] = [(g,) * 3 for g in (0.3, 0.5, 0.8, 1.0)]
    if len(world.masses) == 2:
        terms, guesses = (YES, NO), [(g, 1 - g) for g in GUESSES]
    return [
        asking(world, "scores", *terms, metric="m", guesses=each, precise=p)
        for each in guesses
        for p in (None, True)
    ]


def blocks(world: World) -> list[Asking]:
    """Medians over blocks of one row, on a grid and against a guess."""
    values, points = (0, HALF, 1)[: len(world.masses)], grid(0, 1, step=0.25)
    known = [Expects(), Expects(guess=0.0, sd=0.25), Expects(guess=0.5, sd=0.25)]
    asked = [asking(world, "ask", values, grid=points, expects=each) for each in known]
    return asked + [
        asking(world, "verify", values, guess=g, claim=claim)
        for g in (0.0, 0.5)
        for claim in ("equals", "at least", "at most")
    ]


def unlike(world: World) -> list[Asking]:
    """Scores and gates of these very rows, which are not alike."""
    terms = (0, 1) * len(world.masses)
    truth = float(sum(world.masses)) / len(world.masses)
    words = [{"guess": g, "error": 0.0} for g in GUESSES]
    words += [{"guess": g, "error": 0.2, "precise": True} for g in (0.0, 1.0)]
    asked = [asking(world, "score", terms, metric="m", **each) for each in words]
    return asked + [
        asking(world, "gate", terms, metric="m", threshold=v, claim="at least", guess=1.0)
        for v in (truth, math.nextafter(truth, 2.0))
        if v <= 1
    ]


def rivals(world: World) -> list[Asking]:
    """Which of two binary rules is better on these rows: they differ on each, and one is right."""
    wins, other = (0, 1) * len(world.masses), (1, 0) * len(world.masses)
    return _rivals(world, wins, other)


def lacking(world: World) -> list[Asking]:
    """Likewise, but the last row has no label, or one for the second rule."""
    many = len(world.masses) - 1
    return _rivals(world, (0, 1) * many + (0, 0), (1, 0) * many + (0, 1))


def _rivals(world: World, wins: Sequence[int], other: Sequence[int]) -> list[Asking]:
    known = Expects(differ=len(world.masses))
    words = [{"margin": 0.0, "guess": g} for g in (None, -1.0, 1.0)]
    more: dict[str, Any] = {"metric": "m", "classes": 2, "expects": known}
    return [asking(world, "compare", wins, other, **more, **each) for each in words]


def everything(world: World) -> list[Asking]:
    """A few of each kind, asked in any order."""
    return [
        *confirmations(world, (0.0, 0.5, 1.0))[::2],
        *precise(world)[::3],
        *gates(world)[::5],
        *verdicts(world)[::4],
        *batches(world)[::4],
    ]


def readings(world: World) -> list[Asking]:
    """Of rows with a feature and a label: shares of labels on these rows, and of the feature.

    The atoms are (feature, label) = (0, 0), (0, 1), (1, 0), (1, 1).
    """
    none, label, *_, both = world.masses
    likely = label / (none + label)
    fixed = (likely, likely, Fraction(1), Fraction(1))
    assert world.masses[2] == 0
    del both
    return [
        asking(world, "score", (0, 1, 0, 1), given=fixed, metric="m", guess=1.0, error=0.0),
        asking(world, "mean", (0, 0, 1, 1), guess=1.0, error=0.0),
    ]


def two_readings(px: Fraction, py: Fraction) -> World:
    """One row: the feature is 1 with the first chance, and its label too; else with the second."""
    return World(((1 - px) * (1 - py), (1 - px) * py, Fraction(0), px), (1,))


# The worlds.

THREE = (THIRD, THIRD, THIRD)
EIGHTH, BETWEEN = Fraction(1, 8), Fraction(1, 50)
Tried = tuple[World, Questions, int, float]  # with so many questions at this β


def shares(world: World) -> list[Asking]:
    """She learns of all atoms, bit by bit, and asks where she knows that it is extreme."""
    return [
        asking(world, "score", terms, metric="m", guess=g, error=0.0)
        for terms in ATOMS
        for g in (0.0, 0.3, 0.8, 1.0)
    ]


WORLDS: dict[str, tuple[float, list[Tried]]] = {
    "confirmed shares": (
        0.97,
        [
            (two(Fraction(11, 12), 4), confirmations, 2, 0.3),
            (two(Fraction(1, 6), 5), confirmations, 1, 0.2),
            (two(HALF, 5), confirmations, 2, 0.2),
        ],
    ),
    "precise shares": (
        0.87,
        [(two(0.75, 4), precise, 2, 0.3), (two(Fraction(5, 6), 6), precise, 1, 0.3)],
    ),
    "gates": (0.83, [(two(Fraction(3, 4), 6), gates, 1, 0.2), (two(THIRD, 5), gates, 2, 0.2)]),
    "verdicts": (0.78, [(two(HALF, 4), verdicts, 2, 0.4), (two(HALF, 6), verdicts, 1, 0.15)]),
    "differences": (0.01, [(World(THREE, (5,)), differences, 1, 0.4)]),
    "means of three values": (0.16, [(World(THREE, (5,)), means, 1, 0.4)]),
    # Rows that are 0 or 1, and might have been between.
    "four rows by bets": (
        0.43,
        [(World((Fraction(2, 5), Fraction(0), Fraction(3, 5)), (4,)), means, 1, 0.3)],
    ),
    "groups": (0.3, [(World((1 - 2 * EIGHTH, EIGHTH, EIGHTH), (6,)), groups, 1, 0.4)]),
    "winners": (0.85, [(World(THREE, (5,)), winners, 2, 0.25)]),
    "batches": (
        0.97,
        [(two(0.75, 7), batches, 1, 0.25), (World(THREE, (7,)), batches, 1, 0.2)],
    ),
    "three shares, one after the other": (0.5, [(World(THREE, (5,)), shares, 3, 0.35)]),
    "blocks": (
        0.7,
        [
            (World((HALF, HALF), (5,)), blocks, 2, 0.3),
            (World((HALF, HALF), (6,)), blocks, 1, 0.15),
            (World(((1 - BETWEEN) / 2, BETWEEN, (1 - BETWEEN) / 2), (6,)), blocks, 1, 0.35),
        ],
    ),
    "rows unlike": (
        0.6,
        [
            (Unlike(law, (4,)), unlike, 1, failure)
            for law in ((HALF,) * 4, (1 - EIGHTH, *[Fraction(1)] * 3), (EIGHTH,) * 4)
            for failure in (0.1, 0.2)
        ],
    ),
    "rivals on rows unlike": (
        0.7,
        [
            (Unlike(law, (len(law),)), rivals, 1, failure)
            for law in ((HALF,) * 5, (Fraction(0), Fraction(1), HALF, HALF, HALF), (HALF,) * 4)
            for failure in (0.04, 0.25)
        ],
    ),
    "rivals where labels lack": (
        0.6,
        [
            (Unlike((*law, last), (len(law) + 1,)), lacking, 1, failure)
            for law in ((HALF,) * 5, (HALF + EIGHTH,) * 4)
            for last in (Fraction(0), HALF, Fraction(1))
            for failure in (0.1, 0.25)
        ],
    ),
    "all kinds": (0.9, [(two(Fraction(11, 12), 4), everything, 2, 0.3)]),
    # She may begin with either reading: the first has .95 of β.
    "both readings": (
        0.8,
        [
            (two_readings(Fraction(i, 40), Fraction(j, 40)), readings, 2, 0.3)
            for i in range(8, 12)
            for j in range(9, 13)
        ],
    ),
}


def worst(name: str) -> float:
    mixes = name == "both readings"
    return max(ratio(*each, mixes=mixes) for each in WORLDS[name][1])


@pytest.mark.parametrize("name", WORLDS)
def test_the_best_analyst_stays_within_what_is_certified(name: str) -> None:
    assert WORLDS[name][0] <= worst(name) <= 1 + 1e-9


def letters_pay(world: World, questions: Questions, failure: float) -> float:
    """The letter rule, letter by letter: the largest P[a]/(β·q(a)) of one whose claim is false."""
    state, worst = start(failure), 0.0
    for one in questions(world):
        told: dict[tuple[int, ...], tuple[int, float]] = {}
        for rows, truths, samples in one.groups:
            drawn = drive(one.protocol, one.question, rows, state.past, one.expects)
            if one.false(drawn, truths):
                letter = tuple(drawn["letter"])
                told[letter] = (told.get(letter, (0, 0.0))[0] | samples, drawn["nats"])
        for samples, nats in told.values():
            chance = world.chance(samples) / world.whole
            worst = max(worst, chance / (failure * math.exp(-nats)))
    return worst


def letters_of_all() -> float:
    """Of everything that is told by the letter rule, in a few laws."""
    laws = [(two(Fraction(1, 12), 4), 0.3), (two(HALF, 8), 0.4), (two(THIRD, 5), 0.2)]
    kinds = (filtered, gates, verdicts)
    shares = max(letters_pay(w, kind, b) for w, b in laws for kind in kinds)
    world = World((Fraction(25, 60), Fraction(0), Fraction(35, 60)), (3,))
    bets = letters_pay(world, lambda w: means(w)[: len(GUESSES)], 0.45)
    return max(shares, bets)


def test_every_letter_pays_for_itself() -> None:
    assert 0.8 < letters_of_all() <= 1 + 1e-9


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 23), st.sampled_from((0.05, 0.1, 0.2, 0.3, 0.4)), st.integers(2, 5))
def test_no_law_on_a_grid_breaks_a_promise(p: int, failure: float, n: int) -> None:
    world = two(Fraction(p, 24), n)
    for questions in (confirmations, precise, gates, verdicts, batches, blocks):
        assert ratio(world, questions, 1, failure) <= 1 + 1e-9
    for questions in (filtered, gates, verdicts):
        assert letters_pay(world, questions, failure) <= 1 + 1e-9


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 10), st.integers(1, 10), st.sampled_from((0.1, 0.2, 0.4)), st.integers(1, 4))
def test_no_law_of_three_values_breaks_a_promise(a: int, b: int, failure: float, n: int) -> None:
    rest = Fraction(1, 2)
    whole = a + b + rest * 4
    world = World((a / whole, rest * 4 / whole, b / whole), (n,))
    for questions in (means, differences, groups):
        assert ratio(world, questions, 1, failure) <= 1 + 1e-9


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 8), min_size=2, max_size=5), st.sampled_from((0.05, 0.2, 0.4)))
def test_no_rows_unlike_break_a_promise(chances: list[int], failure: float) -> None:
    world = Unlike(tuple(Fraction(c, 8) for c in chances), (len(chances),))
    assert ratio(world, unlike, 1, failure) <= 1 + 1e-9


# A split by class: the open part has told how many sealed rows each class has.


def stratified(reading: str, classes: int = 5, n: int = 6, failure: float = 0.05) -> float:
    """One question after a split by class, of the share of the classes that are most frequent.

    Read at these class shares the claim is about the counts that there are: never false. Read as of
    fresh rows, it is about the population's.
    """
    world = World((Fraction(1, classes),) * classes, (n,))
    past, false = start(failure).past, Fraction(0)
    asked = {
        chosen: asking(world, "score", chosen, metric="m", guess=1.0, error=0.0, reading=reading)
        for chosen in product((0, 1), repeat=classes)
        if 0 < sum(chosen) < classes
    }
    for i, (counts,) in enumerate(world.samples):
        ranked, failed = sorted(range(classes), key=lambda c: -counts[c]), False
        for size in range(1, classes):
            one = asked[tuple(int(c in ranked[:size]) for c in range(classes))]
            truths = one.truths
            if reading == AT_SHARES:
                truths = (Fraction(sum(counts[c] for c in ranked[:size]), n),)
            rows = next(rows for rows, _, samples in one.groups if samples >> i & 1)
            drawn = drive(one.protocol, one.question, rows, past, one.expects)
            failed = failed or one.false(drawn, truths)
        false += Fraction(world.weights[i], world.whole) * failed
    return float(false) / failure


HOW = AT_SHARES  # what claims after a split by class are about


def strata() -> float:
    return stratified(HOW)


def test_a_split_by_class_may_only_speak_of_its_own_shares() -> None:
    assert strata() == 0
    assert stratified(RULE) > 6
