"""Every responder on cases that can be done by hand, and with every analyst."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.planning.requests import Estimates, Guesses, Intervals, Request
from holdfast.randomness import SeededEntropy
from holdfast.theory.sizing import split_failure
from holdfast_lab.attacks import analysts, blocks
from holdfast_lab.attacks.analysts import ANALYSTS
from holdfast_lab.attacks.conversation import MeanResponder, Replies, Responder, Terms, interview
from holdfast_lab.attacks.textbook import (
    RESPONDERS,
    Ladder,
    Naive,
    SparseVector,
    Split,
    Thresholdout,
    Watched,
    binomial_limits,
    check_width,
    median_tail,
)
from holdfast_lab.flights import Flights, flights_of
from holdfast_lab.protocol_attacks.base import PLANS, kept_plan

NOTHING = float("nan")


def terms(rows: int, queries: int, seed: int = 1, **more: Any) -> Terms:
    return Terms(rows, queries, SeededEntropy(seed), **more)


def bits(counts: list[int], rows: int) -> Any:
    """A line for each count: so many ones, then zeros."""
    return np.arange(rows) < np.array(counts)[:, np.newaxis]


# Medians by means


class Exact(MeanResponder):
    name = "exact"

    def means(self, values: Any, guesses: Any) -> Replies:
        return Replies.unclaimed(values.mean(axis=1))


@given(st.integers(2, 9), st.integers(1, 12), st.data())
def test_exact_means_find_exact_medians(points: int, rows: int, data: st.DataObject) -> None:
    """The least value that at least half of the rows do not exceed: the lower median."""
    line = st.lists(st.integers(0, points - 1), min_size=rows, max_size=rows)
    values = np.array(data.draw(st.lists(line, min_size=1, max_size=4)))
    expected = Naive(terms(rows, 1)).medians(values, points)
    np.testing.assert_array_equal(Exact().medians(values, points).values, expected.values)


def test_a_refused_mean_leaves_no_median() -> None:
    class Forgetful(Exact):
        def means(self, values: Any, guesses: Any) -> Replies:
            told = values.mean(axis=1)
            told[0] = NOTHING
            return Replies.unclaimed(told)

    values = np.array([[3, 3, 3], [0, 0, 0], [1, 2, 3]])
    np.testing.assert_array_equal(Forgetful().medians(values, 4).values, [NOTHING, 0, 2])


# Fresh rows


def test_split_uses_every_row_once() -> None:
    """Three rows for each of three questions; then refused, and so is more in the same batch."""
    line = np.arange(10) / 10
    split = Split(terms(10, 3))
    first = split.means(line[np.newaxis], None)
    rest = split.means(np.stack([line] * 4), None)
    np.testing.assert_allclose(first.values, [0.1])
    np.testing.assert_allclose(rest.values, [0.4, 0.7, NOTHING, NOTHING])
    assert np.isinf(rest.low[2:]).all()
    half_width = math.sqrt(math.log(2 * 3 / 0.05) / (2 * 3))
    np.testing.assert_allclose(first.high - first.values, half_width)


def test_split_without_enough_rows_answers_nothing() -> None:
    split = Split(terms(5, 6))
    assert np.isnan(split.means(bits([3, 2], 5), None).values).all()
    assert np.isnan(split.medians(bits([3, 2], 5).astype(int), 2).values).all()


def test_split_claims_exactly() -> None:
    """Binomial limits for bits, and for a median the tail at which exactly β/k is spent."""
    split = Split(terms(100, 2, failure=0.1))
    replies = split.means(bits([40], 100), None)
    assert replies.values.tolist() == [0.8]
    low, high = binomial_limits(np.array([40]), 50, 0.05)
    assert (replies.low, replies.high) == (low, high)
    median = split.medians(np.tile(np.arange(100) % 3, (1, 1)), 3)
    tail = median_tail(50, 0.05)
    assert (median.low.tolist(), median.high.tolist()) == ([tail], [1 - tail])
    assert split_failure(50, 25, tail, tail) <= 0.05 < split_failure(50, 25, tail + 1e-6, tail)


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.floats(0.01, 0.5))
def test_binomial_limits_cover(rows: int, share: float, failure: float) -> None:
    """The probability that the limits miss, summed over all counts."""
    counts = np.arange(rows + 1)
    low, high = binomial_limits(counts, rows, failure)
    chances = [math.comb(rows, c) * share**c * (1 - share) ** (rows - c) for c in counts.tolist()]
    missed = (share < low) | (share > high)
    assert np.array(chances)[missed].sum() <= failure * (1 + 1e-9)


# Noise


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_noise_has_its_scale(name: str) -> None:
    """Mean and standard deviation of 20,000 noises, each within 5.5 standard errors.

    Together the two are missed with probability below 1e-7; a scale 5 % off is always caught.
    """
    gaussian = RESPONDERS["gaussian"](terms(1_000, 20_000))
    sigma = gaussian._sigma  # type: ignore[attr-defined]
    replies = RESPONDERS[name](terms(1_000, 20_000)).means(np.zeros((20_000, 1)), None)
    assert abs(replies.values.mean()) < 5.5 * sigma / math.sqrt(20_000)
    error = 0.005 if name == "gaussian" else math.sqrt(5 / 80_000)
    assert abs(replies.values.std() / sigma - 1) < 5.5 * error < 0.05
    assert np.isfinite(replies.high).all() == (name == "gaussian")


def test_noise_differs_from_seed_to_seed() -> None:
    values = bits([50], 100)
    said = {
        RESPONDERS[name](terms(100, 5, seed)).means(values, None).values[0]
        for name in ("gaussian", "laplace")
        for seed in (1, 2)
    }
    assert len(said) == 4


# Thresholdout


def test_thresholdout_confirms_or_corrects() -> None:
    """T = 4/√n = 0.04, τ = 0.01: guesses 0 and 30 τ away, with ten τ to spare on either side."""
    rows = 10_000
    values = bits([5_000, 5_000, 2_000], rows)
    holdout = Thresholdout(terms(rows, 3))
    said = holdout.means(values, np.array([0.5, 0.8, NOTHING])).values
    assert said[0] == 0.5
    assert abs(said[1] - 0.5) < 0.1
    assert said[1] not in (0.5, 0.8)
    assert abs(said[2] - 0.2) < 0.1  # without a guess it is 1/2


def test_thresholdout_on_another_scale() -> None:
    """On a scale of 8 units T is 4/(8√n) = 0.005 of [0, 1]: 0.03 away is far."""
    values = bits([5_000], 10_000)
    near = Thresholdout(terms(10_000, 1)).means(values, np.array([0.515]))
    far = Thresholdout(terms(10_000, 1), span=8.0).means(values, np.array([0.53]))
    assert near.values[0] == 0.515
    assert abs(far.values[0] - 0.5) < 0.0125


# The Ladder, guess and check, sparse vector


def test_the_ladder_goes_down_only() -> None:
    board = Ladder(terms(100, 9), step=0.05)
    said = board.means(bits([48, 44, 90, 42, 30], 100), None).values
    np.testing.assert_allclose(said, [0.5, 0.45, 0.45, 0.45, 0.3])
    free = Ladder(terms(100, 9)).means(bits([50, 49, 40], 100), None).values
    # One row of a hundred is a step of exactly s/√n: not more. Ten are.
    np.testing.assert_allclose(free, [0.5, 0.5, 0.4])


def test_guess_and_check_corrects_and_falls_silent() -> None:
    holdout = RESPONDERS["guess-and-check"](terms(10_000, 100, half_width=0.05))
    replies = holdout.means(bits([4_000, 4_000], 10_000), np.array([0.41, 0.7]))
    assert replies.values[0] == 0.41
    assert abs(replies.values[1] - 0.4) < 0.05
    np.testing.assert_allclose(replies.high - replies.low, 0.1)
    narrow = RESPONDERS["guess-and-check"](terms(100, 2, half_width=0.01))
    assert np.isnan(narrow.means(bits([50, 50], 100), np.array([0.9, 0.5])).values).all()


def test_the_default_width_of_guess_and_check_can_be_kept() -> None:
    """With exactly 20 corrections before it the last question is still corrected."""
    rows, queries = 20_000, 21
    holdout = RESPONDERS["guess-and-check"](terms(rows, queries))
    said = holdout.means(bits([10_000] * queries, rows), np.zeros(queries)).values
    np.testing.assert_allclose(said, 0.5, atol=check_width(rows, queries, 0.05))


def test_sparse_vector_gives_verdicts() -> None:
    """1,000,000 rows: the noise, of scale 80 rows at most, hides nothing here."""
    rows = 10**6
    values = np.zeros((4, rows), np.bool_)
    values[:, : rows // 2] = True
    vector = SparseVector(terms(rows, 2, half_width=0.01))
    said = vector.means(values, np.array([0.505, 0.4, 0.52, 0.5])).values
    np.testing.assert_array_equal(said, [0.505, NOTHING, NOTHING, NOTHING])  # two times No
    values[0, : rows // 2 - 10_000] = False
    halves = SparseVector(terms(rows, 9)).means(np.stack([values[0], ~values[0]]), None)
    assert halves.values.tolist() == [0.25, 0.75]


def test_sparse_vector_finds_medians() -> None:
    """By the verdict on "at least half", as long as it may say No."""
    values = np.tile(np.repeat(np.arange(4), [10_000, 20_000, 40_000, 30_000]), (2, 1))
    vector = SparseVector(terms(100_000, 3))
    assert vector.medians(values, 4).values.tolist() == [2, 2]
    assert np.isnan(vector.medians(values, 4).values).any()


# Watching


def test_watched_passes_on_and_keeps() -> None:
    watched = Watched(Split(terms(4, 2)))
    replies = watched.means(bits([1, 4], 4), np.array([0.3, 0.4]))
    watched.means(bits([2], 4), None)
    assert replies.values.tolist() == [0.5, 1.0]
    assert watched.sample.tolist() == [0.25, 1.0, 0.5]
    np.testing.assert_array_equal(watched.guesses, [0.3, 0.4, NOTHING])
    assert np.isnan(watched.medians(np.array([[0, 1, 1, 1]]), 2).values).all()


# Everybody with everybody

ROWS, QUERIES = 700, 4
TINY: dict[str, dict[str, Any]] = {
    "freedman": {"variables": 3},
    "variable-selection": {"variables": 3, "sizes": (2,)},
    "boosting": {"submissions": 3},
    "quadratic": {"queries": 4},
    "sign-aggregation": {"signs": 3},
    "subgroups": {"queries": 4},
}
NEEDS_A_UNIVERSE = ("holdfast-weights", "holdfast-exact-weights")


@pytest.fixture(scope="module")
def few_flights() -> Flights:
    """A hundred flights, so that a population is read in no time."""
    number = np.arange(100)
    frame = pd.DataFrame(
        {
            "carrier": np.where(number % 3 == 0, "UA", "AA"),
            "origin": np.where(number % 2 == 0, "JFK", "LGA"),
            "dest": "BOS",
            "tailnum": "N1",
            "dep_delay": 0.0,
            "arr_delay": np.where(number % 4 == 0, 60.0, 0.0),
            "year": 2013,
            "month": 1 + number % 12,
            "day": 1,
            "hour": 5 + number % 18,
        }
    )
    return flights_of(frame)


# Plans of the attacks, for more questions than are asked here: to find their like takes seconds.
CORRECTIONS = Guesses(60, 8, 0.01, 0.4), Estimates(8, 32, 0.01, 0.01)
FOUND: dict[str, tuple[Request, ...]] = {
    "holdfast-verify": CORRECTIONS,
    "holdfast-correct": CORRECTIONS,
    "holdfast-interval": (Intervals(26, 3, 0.05),),
}


@pytest.fixture
def quick_plans(monkeypatch: pytest.MonkeyPatch, few_flights: Flights) -> None:
    """Plans that are found at once, and a population that is read at once."""
    kept = blocks._kept

    def found(kind: Any, asked: blocks.Asked, blocks: int | None) -> Any:
        if kind.name in FOUND:
            return kept_plan(*FOUND[kind.name], confidence=0.95)
        return kept(kind, asked, blocks)

    monkeypatch.setattr(blocks, "_kept", found)
    monkeypatch.setattr(analysts, "_population", lambda: few_flights)


def test_all_analysts_are_here() -> None:
    assert sorted(TINY) == sorted(ANALYSTS)
    assert all(name == each.name for name, each in ANALYSTS.items())
    assert all(getattr(each, "name", name) == name for name, each in RESPONDERS.items())
    plans = PLANS.read_text("utf-8")
    assert all(repr((requests, 0.95)) in plans for requests in FOUND.values())


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.parametrize("responder", RESPONDERS)
@pytest.mark.parametrize("analyst", TINY)
def test_every_analyst_talks_to_every_responder(analyst: str, responder: str) -> None:
    """To the end, with a finite error for every answer and a claim around it."""
    asking = ANALYSTS[analyst](rows=ROWS, **TINY[analyst])
    assert asking.queries == QUERIES
    half_width = 0.49 if analyst == "sign-aggregation" else None  # ranks, not means
    told = terms(ROWS, QUERIES, failure=0.5, half_width=half_width)
    if responder in NEEDS_A_UNIVERSE:
        with pytest.raises(InvalidInput, match="universe"):
            RESPONDERS[responder](told)
        return
    answering: Responder = RESPONDERS[responder](told)
    session = interview(asking, asking.draw(np.random.default_rng(1)), answering)
    assert 2 <= session.asked <= QUERIES
    answered = ~np.isnan(session.values)
    assert np.isfinite(session.errors[answered]).all()
    assert ((session.reached[answered] >= 0) & (session.reached[answered] <= 1)).all()
    assert (session.low <= session.high).all()
    assert session.worst_error <= (1 if session.answered == 0 else 2)
