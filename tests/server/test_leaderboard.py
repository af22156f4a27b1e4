"""The leaderboard over HTTP: who may, what is wrong, and an attack without gain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter

from holdfast.engines.python.estimator import row_terms, unit_parts
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.server.schemas import StandingsShape, SubmissionShape
from tests.holdout.plans import board, scores
from tests.holdout.tables import Still, sources, table
from tests.server.conftest import Serve, Study, tokens_of
from tools.leaderboard_attack import TRUTH, attack, in_process, labels_of, make_board

ROWS = board().blocks
CSV = "row,prediction\n" + "".join(f"{k},1\n" for k in range(ROWS))
WHERE = "/api/holdouts/play"


def board_of(folder: Path) -> dict[str, str]:
    """A leaderboard whose every score is one half; a token of every role."""
    Holdout.create(
        folder, table(ROWS).assign(row=range(ROWS)), board(), ids="row", target="y"
    ).close()
    return tokens_of(folder)


@pytest.fixture
def play(tmp_path: Path, served: Serve) -> Iterator[Study]:
    """It is served, without an engine."""
    folder = tmp_path / "play.holdfast"
    tokens = board_of(folder)
    with sources():
        yield Study(served(folder), tokens, WHERE)
    check = check_holdout(folder)
    assert check.passed, str(check)


def entered(
    play: Study,
    role: str = "analyst",
    content: str | bytes = CSV,
    kind: str = "text/csv",
    key: str | None = None,
    **parameters: Any,
) -> Any:
    headers = {"Content-Type": kind} | ({} if key is None else {"Idempotency-Key": key})
    return play.post("enter", role, params=parameters, content=content, headers=headers)


def told(play: Study, role: str = "analyst", metric: str = "accuracy") -> Any:
    return play.get("leaderboard", role, params={"metric": metric}).json()


def test_replies_are_as_openapi_says_and_name_their_reading(play: Study) -> None:
    first, standings = entered(play, name="mine").json(), told(play)
    assert TypeAdapter(SubmissionShape).validate_python(first).type == "answer"
    shown = StandingsShape.model_validate(standings)
    assert [each.name for each in shown.entries] == ["mine"]
    recorded = play.get("transcript").json()["rows"][0]["answer"]
    for each in (first, standings, recorded):
        assert each["reading"] == "rule-on-fresh-rows"
        assert each["reading_words"].startswith("this rule, on fresh rows (assumes that it was")


def test_submissions_and_who_sees_them(play: Study) -> None:
    first = entered(play, name="mine", key="k1")
    assert first.status_code == 200
    answer = first.json()
    assert (answer["type"], answer["name"], answer["metric"]) == ("answer", "mine", "accuracy")
    assert answer["low"] <= 0.5 <= answer["high"]
    assert answer["certified"] is True

    again = entered(play, name="mine", key="k1").json()
    assert (again["receipt"], again["cached"]) == (answer["receipt"], True)
    conflict = entered(play, content=CSV.replace("0,1\n", "0,0\n", 1), name="mine", key="k1")
    assert (conflict.status_code, conflict.json()["error"]["kind"]) == (409, "conflict")

    data = json.dumps({str(k): 1 for k in range(ROWS)})
    same = entered(play, "custodian", data, "application/json", name="theirs").json()
    assert same["receipt"] == answer["receipt"]
    mine, seen = told(play), told(play, "viewer")
    names = [(each["name"], each["mine"]) for each in mine["entries"]]
    assert names == [("mine", True), ("theirs", False)]
    assert [each["mine"] for each in seen["entries"]] == [False, False]
    assert (mine["ties"], mine["greater_is_better"]) == (2, True)
    entry = set(mine["entries"][0])
    assert {"rank", "rank_low", "rank_high", "value", "low", "high", "at", "receipt"} <= entry
    assert "asker" not in entry


WRONG: list[tuple[str, dict[str, Any], int, str]] = [
    ("malformed", {"content": "what"}, 400, "bad_question"),
    ("partial", {"content": "row,prediction\n0,1\n"}, 400, "bad_question"),
    ("unknown", {"content": CSV + "99,1\n"}, 400, "bad_question"),
    ("no name", {"name": None}, 400, "bad_question"),
    ("bad name", {"name": "\n"}, 400, "bad_question"),
    ("odd metric", {"metric": "__import__('os')"}, 400, "bad_question"),
    ("a word of another verb", {"margin": 0}, 400, "bad_question"),
    ("a part of the plan", {"protocol": "mean"}, 400, "bad_question"),
    ("a guess, by looks", {"guess": 0.5}, 400, "bad_question"),
    ("type", {"kind": "text/plain"}, 415, "unsupported"),
    ("json", {"kind": "application/json", "content": "[" * 2000}, 400, "bad_question"),
    ("too large", {"content": "x" * 3000}, 413, "too_large"),
]


def test_what_is_wrong_costs_nothing(tmp_path: Path, served: Serve) -> None:
    folder = tmp_path / "play.holdfast"
    tokens = board_of(folder)
    with sources(), Holdout.open(folder) as holdout:
        here = Study(served(folder, submission_limit=2048), tokens, WHERE)
        rows = holdout.receipt.number
        for _, more, status, kind in WRONG:
            reply = entered(here, **{"name": "a", **more})
            assert (reply.status_code, reply.json()["error"]["kind"]) == (status, kind), more
        assert entered(here, "viewer", name="a").status_code == 403
        assert entered(here, "hf_none_x", name="a").status_code == 401
        assert holdout.receipt.number == rows


class Labels(Still):
    """The labels as blocks of one row, in this process: sums and terms are the engine's."""

    def __init__(self, blocks: int, labels: Any) -> None:
        super().__init__(blocks)
        self._arrays = {"label": labels[:, np.newaxis].astype(float)}
        self._arrays["__row"] = np.arange(blocks, dtype=float)[:, np.newaxis]

    def sums(self, function: Any, /, where: Any = None, bounds: Any = None) -> Any:
        return unit_parts(row_terms(function.batched(self._arrays), self.blocks)).astype(np.int64)

    terms = sums


def test_the_boosting_attack_by_several_tokens_gains_nothing(tmp_path: Path) -> None:
    """Everything is seeded, so that this cannot fail by chance; see tools.leaderboard_attack."""
    labels = labels_of(scores().blocks, 1)
    folder = tmp_path / "board.holdfast"
    tokens = make_board(folder, labels, scores(), 3, seed=1)
    with sources(lambda blocks: Labels(blocks, labels)), in_process(folder) as client:
        found = attack(client, tokens, labels, scores(), 60, 1)
    assert found.naive_error > 0.05
    assert found.false_bars == 0
    assert found.low <= TRUTH <= found.high
    assert found.entries == 60
    assert check_holdout(folder).passed


def test_frames_of_a_client_are_read(play: Study) -> None:
    frame = pd.DataFrame({"row": range(ROWS), "prediction": [0.5] * ROWS})
    data, kind = frame.to_parquet(index=False), "application/vnd.apache.parquet"
    reply = entered(play, content=data, kind=kind, name="probabilities", metric="brier")
    assert reply.status_code == 200
    assert told(play, "viewer", "brier")["greater_is_better"] is False
