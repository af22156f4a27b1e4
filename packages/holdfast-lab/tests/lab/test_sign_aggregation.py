"""Sign aggregation in conversation: it breaks the naive median, and Holdfast's claims hold."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.errors import InvalidInput
from holdfast.randomness import SeededEntropy
from holdfast_lab.attacks.analysts import SignAggregation
from holdfast_lab.attacks.conversation import Medians, Replies, Session, Terms, interview
from holdfast_lab.attacks.textbook import RESPONDERS, ExponentialMedian, GaussianMedian
from holdfast_lab.experiments import sign_aggregation as experiment
from holdfast_lab.experiments.base import Cell

SMALL = SignAggregation(rows=201, signs=1_600)


def terms(analyst: SignAggregation) -> Terms:
    return Terms(analyst.rows, analyst.queries, SeededEntropy(1), half_width=0.49)


def talk(analyst: SignAggregation, responder: str) -> Session:
    world = analyst.draw(np.random.default_rng(1))
    return interview(analyst, world, RESPONDERS[responder](terms(analyst)))


def test_it_breaks_the_naive_median() -> None:
    # The sum drifts by 2·√(1600/2π·201) = 2.25 standard deviations: rank 0.988 ± 0.004.
    session = talk(SMALL, "naive")
    assert session.asked == 1_601
    assert session.reached[-1] > 0.97


def test_holdfast_keeps_its_promise() -> None:
    session = talk(SMALL, "holdfast-estimate")
    assert session.answered == session.asked
    assert session.wrong_claims == 0
    assert session.low[0] > 0.01
    assert session.high[0] < 0.99
    assert session.reached[-1] < 0.97


def test_with_few_questions_nothing_can_be_seen() -> None:
    assert 0.4 < talk(SignAggregation(rows=201, signs=20), "naive").reached[-1] < 0.9


def test_the_sum_has_the_law_that_it_says() -> None:
    analyst = SignAggregation(rows=4_000, signs=400)
    world = analyst.draw(np.random.default_rng(2))
    conversation = analyst.converse(world)
    next(conversation)
    orientation = np.random.default_rng(3).integers(0, 2, 400).astype(np.float64)  # fixed before
    orientation[:3] = np.nan
    last = conversation.send(Replies.unclaimed(orientation))
    assert isinstance(last, Medians)
    assert last.points == 1_024
    values = last.values(world.holdout)[0]
    empirical = np.searchsorted(np.sort(values), np.arange(1_024), side="right") / values.size
    # Dvoretzky, Kiefer & Wolfowitz: the distance exceeds ε with at most 2·e^(−2nε²) < 1e-6
    assert np.abs(empirical - last.law[0]).max() < 0.0428
    assert 0.4 < last.ranks(np.array([512.0]))[0] < 0.6


class TestNoisyMedians:
    @pytest.mark.parametrize("kind", [GaussianMedian, ExponentialMedian])
    def test_they_answer_medians_and_claim_nothing(
        self, kind: type[GaussianMedian | ExponentialMedian]
    ) -> None:
        responder = kind(Terms(400, 5, SeededEntropy(1), half_width=0.45))
        values = np.random.default_rng(1).integers(0, 9, (5, 400))
        replies = responder.medians(values, 9)
        assert np.all(np.abs(replies.values - 4) <= 1)
        assert np.all(np.isinf(replies.high))
        assert 10 < responder.blocks < 400
        with pytest.raises(InvalidInput, match="medians for"):
            responder.means(values, None)


def test_the_experiment_measures_and_draws() -> None:
    import pandas as pd

    rows = []
    for number, name in enumerate(("naive", "holdfast-estimate", "split", "gaussian-median")):
        parameters = {"responder": name, "signs": 100, "rows": 201, "tail": 0.01}
        cell = Cell(parameters, seed=1, number=number, repeat=0)
        rows += [{**parameters, "repeat": 0, **row} for row in experiment.measure(cell)]
    results = pd.DataFrame(rows)
    assert results["outside"].tolist() == [False] * 4
    assert results["blocks"].isna().tolist() == [True, False, True, False]
    assert all(finding.holds in (True, None) for finding in experiment.findings(results))
    for some in (results, results[:1], results[:0]):
        assert set(experiment.draw(some)) == set(experiment.CAPTIONS)
        experiment.findings(some)
