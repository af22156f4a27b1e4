"""The boosting attack on leaderboards: the published losses, and the experiment's own parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.errors import InvalidInput
from holdfast.randomness import SeededEntropy
from holdfast_lab.attacks.analysts import Boosting, Keep, Leaderboard
from holdfast_lab.attacks.conversation import Means, Replies, Terms, interview
from holdfast_lab.attacks.textbook import RESPONDERS, Watched
from holdfast_lab.experiments import leaderboard
from holdfast_lab.experiments.base import Cell, average


def vote_losses(responder: str, keep: Keep, sessions: int) -> list[float]:
    """The loss of the vote on the rows of the leaderboard."""
    analyst, losses = Boosting(keep=keep), []
    for seed in range(sessions):
        watched = Watched(
            RESPONDERS[responder](Terms(analyst.rows, analyst.queries, SeededEntropy(seed)))
        )
        interview(analyst, analyst.draw(np.random.default_rng(seed)), watched)
        losses.append(float(watched.sample[-1]))
    return losses


@pytest.mark.parametrize(
    ("responder", "keep", "sessions", "published"),
    [("naive", "half", 40, 0.42745), ("ladder", "lower", 6, 0.48425)],
)
def test_published_losses(responder: str, keep: Keep, sessions: int, published: float) -> None:
    """Theirs is a mean of 5 sessions; one session's standard deviation is 0.0062 (of 200).

    Five standard errors of the difference: a false alarm has probability 6e-7. The two published
    losses are 0.057 apart, so that neither passes for the other.
    """
    found = np.mean(vote_losses(responder, keep, sessions))
    assert abs(found - published) < 5 * 0.0062 * np.sqrt(1 / sessions + 1 / 5) < 0.02


def told(analyst: Boosting, world: Leaderboard, scores: list[float]) -> Any:
    """What the analyst submits last, on hearing these scores; and the loss that it expects."""
    talk = analyst.converse(world)
    next(talk)
    vote = talk.send(Replies.unclaimed(np.array(scores)))
    assert isinstance(vote, Means)
    assert vote.guesses is not None
    return vote.values(np.zeros(world.rows, np.bool_))[0].tolist(), vote.guesses[0]


def test_what_is_kept() -> None:
    """Predictions of four rows by hand: a tie votes 1, and a refusal is not kept."""
    lines = ["0011", "0101", "1111", "0000"]
    predictions = np.array([[c == "1" for c in line] for line in lines])
    world = Leaderboard(np.zeros(4, np.bool_), predictions)
    half, lower = Boosting(4, 4), Boosting(4, 4, "lower")
    assert told(half, world, [0.5, 0.5, 0.75, 0.75])[0] == [False, True, True, True]
    assert told(half, world, [0.25, float("nan"), 0.75, 0.25])[0] == [False, False, True, True]
    # The best so far: the first counts only below 1/2, then whatever lowered it.
    assert told(lower, world, [0.5, 0.5, 0.4, 0.4])[0] == [True] * 4
    assert told(lower, world, [0.4, 0.4, 0.4, 0.3])[0] == [False, False, True, True]
    assert told(half, world, [0.75, 0.75, 0.75, 0.75]) == ([True] * 4, 0.5)


def test_promised_loss() -> None:
    """One vote promises its own edge under the normal law, many more."""
    world = Boosting(100, 40).draw(np.random.default_rng(1))
    one, many = Boosting(100, 40), Boosting(100, 40)
    few = told(one, world, [0.4] + [0.6] * 39)[1]
    assert few > told(many, world, [0.4] * 40)[1] > 0
    assert few == pytest.approx(0.4207, abs=1e-4)  # Φ(−0.2)


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"submissions": 0}, {"keep": "all"}])
def test_wrong_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Boosting(**wrong)


# The experiment


def cell(responder: str, repeat: int = 0) -> Cell:
    return Cell({"responder": responder, "rows": 200, "submissions": 20}, 1, 7, repeat)


def test_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaderboard, "_rows_needed", lambda queries: 1_000.0 * queries)
    monkeypatch.setitem(RESPONDERS, "holdfast-mean", RESPONDERS["split"])  # no plan to be found
    found = {name: list(leaderboard.measure(cell(name))) for name in ("naive", "ladder", "split")}
    assert all(len(rows) == 1 for rows in found.values())
    naive = found["naive"][0]
    assert naive["reported"] == naive["loss"]
    assert naive["low"] < naive["reported"] < naive["high"]
    assert found["ladder"][0]["reported"] <= found["ladder"][0]["loss"] + 1 / 200
    again = next(iter(leaderboard.measure(cell("naive"))))
    assert again == pytest.approx(naive, nan_ok=True)
    ours = next(iter(leaderboard.measure(cell("holdfast-mean"))))
    assert ours["rows_needed"] == 21_000
    assert ours["low"] <= 0.5 <= ours["high"]


def results(**losses: float) -> pd.DataFrame:
    """Two sessions each, 0.002 apart, at 400 submissions."""
    rows = [
        {
            "responder": name.replace("_", "-"),
            "rows": 4_000,
            "submissions": 400,
            "repeat": repeat,
            "loss": loss + 0.002 * repeat,
            "reported": loss,
            "low": max(0.0, loss - 0.2),
            "high": min(1.0, loss + 0.2),
            "false_claims": int(name == "naive"),
            "rows_needed": 77_000.0 if name == "holdfast_mean" else float("nan"),
        }
        for name, loss in losses.items()
        for repeat in (0, 1)
    ]
    return pd.DataFrame(rows)


def held(table: pd.DataFrame) -> list[bool | None]:
    return [each.holds if each.holds is None else bool(each.holds) for each in findings(table)]


def findings(table: pd.DataFrame) -> list[Any]:
    return leaderboard.findings(table)


def test_findings_can_fail() -> None:
    right = results(naive=0.427, ladder=0.484, holdfast_mean=0.47)
    assert held(right) == [True, True, True, True, True, True, None]
    assert "Ladder 0.48" in findings(right)[2].measured.split(", ")[0]  # gave least away
    wrong = results(naive=0.46, ladder=0.45, holdfast_mean=0.25)
    assert held(wrong) == [False, False, False, True, True, False, None]
    assert findings(right)[-1].measured == "77,000"


def test_partial_results_are_drawn() -> None:
    assert findings(results(split=0.5)) == []
    assert findings(results(naive=0.43).assign(submissions=100)) == []
    for table in (results(naive=0.43), results(split=0.5, holdfast_mean=0.47)):
        assert list(leaderboard.draw(table)) == list(leaderboard.CAPTIONS)


def test_averages() -> None:
    assert average([float("nan")]) is None
    one = average([0.4])
    assert one is not None
    assert (str(one), one.agrees(0.4)) == ("0.4000 (one session)", None)
