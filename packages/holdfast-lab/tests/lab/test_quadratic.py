"""The strategy of Rogers et al.: it breaks naive reuse, and Holdfast's claims hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from holdfast.errors import InvalidInput
from holdfast.randomness import SeededEntropy
from holdfast_lab.attacks.analysts import Agreements, Quadratic
from holdfast_lab.attacks.conversation import Replies, Session, Terms, interview
from holdfast_lab.attacks.textbook import RESPONDERS
from holdfast_lab.experiments import quadratic as experiment
from holdfast_lab.experiments.base import Cell

SMALL = Quadratic(rows=2_000, queries=196)


def talk(analyst: Quadratic, responder: str) -> Session:
    terms = Terms(analyst.rows, analyst.queries, SeededEntropy(1))
    world = analyst.draw(np.random.default_rng(1))
    return interview(analyst, world, RESPONDERS[responder](terms))


def test_the_vote_drifts_as_theory_says_and_leaves_the_textbook_interval() -> None:
    # 183 signs, 2,000 rows: Φ(√(183/2000)) − 1/2 = 0.119; the interval is ± 0.047.
    session = talk(SMALL, "naive")
    assert session.asked == 196
    assert session.errors[-1] == pytest.approx(0.119, abs=0.03)
    assert session.reached[-1] > session.high[-1] or session.reached[-1] < session.low[-1]


def test_holdfast_claims_hold() -> None:
    session = talk(SMALL, "holdfast-mean")
    assert session.answered == session.asked == 196
    assert session.wrong_claims == 0
    assert np.all(session.high - session.low < 0.9)


def test_votes_are_the_squares_or_the_last() -> None:
    assert Quadratic(queries=20).votes == (4, 9, 16)
    assert Quadratic(queries=20, adaptive="last").votes == (20,)
    with pytest.raises(InvalidInput, match="'squares' or 'last'"):
        Quadratic(adaptive="first")  # type: ignore[arg-type]


def test_the_vote_is_the_weighted_one_of_all_answers() -> None:
    analyst = Quadratic(rows=500, queries=20)
    world = analyst.draw(np.random.default_rng(2))
    agree = world.holdout.agree(0, 17)
    conversation = analyst.converse(world)
    question, asked, answers = next(conversation), 0, np.empty(0)
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


def test_a_vote_without_weights_goes_to_one() -> None:
    analyst = Quadratic(rows=64, queries=4)
    world = analyst.draw(np.random.default_rng(3))
    conversation = analyst.converse(world)
    next(conversation)
    vote = conversation.send(Replies.unclaimed(np.array([0.5, 0.5, math.nan])))
    assert np.array_equal(vote.values(world.holdout)[0], world.holdout.last)


def test_packed_agreements_are_fair() -> None:
    rows = Quadratic(rows=1_001, queries=100).draw(np.random.default_rng(4)).holdout
    assert isinstance(rows, Agreements)
    table = rows.agree(10, 60)
    assert table.shape == (50, 1_001)
    # 50,050 fair bits: 5 standard deviations, false alarm below 1e-6
    assert abs(table.mean() - 0.5) < 5 * 0.5 / math.sqrt(table.size)


def test_the_experiment_measures_and_draws() -> None:
    import pandas as pd

    rows = []
    for number, name in enumerate(("naive", "holdfast-mean")):
        parameters = {"responder": name, "queries": 196, "rows": 2_000}
        cell = Cell(parameters, seed=1, number=number, repeat=0)
        rows += [{**parameters, "repeat": 0, **row} for row in experiment.measure(cell)]
    results = pd.DataFrame(rows)
    assert all(finding.holds for finding in experiment.findings(results))
    for some in (results, results[:1], results[:0]):
        assert set(experiment.draw(some)) == set(experiment.CAPTIONS)
        experiment.findings(some)
