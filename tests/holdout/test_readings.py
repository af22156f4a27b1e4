"""Every line about a score of predictions names its reading: the rule, on fresh rows.

A rule that knew the sealed features is right on these rows and wrong on fresh ones, and no look at
the predictions can tell. So what is certified says what it assumes, wherever it is shown.
"""

from __future__ import annotations

import html
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.client.wire import read_result, read_standings, read_submission
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.leaderboard import Standings
from holdfast.holdout.records import answer_in
from holdfast.protocols.answers import READINGS, RULE, reading_words
from holdfast.report.page import report_html
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli
from tests.holdout.forging import GONE, Entry, failed, forge, put
from tests.holdout.plans import board
from tests.holdout.tables import table

WORDS = "this rule, on fresh rows (assumes that it was made without these rows' features)"
UNITS = 40
Known = tuple[Holdout, pd.DataFrame]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    """A holdout of labels that are told by x, and a submission."""
    rows = board().blocks * UNITS
    frame = table(rows).assign(row=range(rows), y=lambda f: (f.x > 5).astype(int))
    path = tmp_path_factory.mktemp("known") / "known.holdfast"
    with Holdout.create(path, frame, board(), ids="row", target="y", seed=1) as holdout:
        yield holdout, pd.DataFrame({"row": frame.row, "prediction": frame.y})


class Constant:
    """A model that needs no fitting."""

    classes_ = np.array([0, 1])

    def predict(self, frame: Any) -> Any:
        return np.zeros(len(frame), int)


def test_scores_entries_and_boards(known: Known) -> None:
    holdout, made = known
    score = holdout.score(made)
    entry, model = holdout.enter(made, name="knows"), holdout.score(Constant(), features=["x"])
    standings = holdout.leaderboard()
    for each in (score, entry, model, standings):
        assert each.reading == RULE
        assert each.to_dict()["reading"] == "rule-on-fresh-rows"
        assert each.to_dict()["reading_words"] == WORDS
        assert WORDS in str(each)
    assert html.escape(WORDS) in score._repr_html_()
    # As they were sent: what a client makes of them is the same.
    assert read_result({**score.to_dict(), "type": "answer"}) == score
    assert read_submission({**entry.to_dict(), "type": "answer"}) == entry
    assert read_standings(standings.to_dict()).reading == RULE
    assert holdout.score(made).reading == RULE  # as recorded
    assert check_holdout(holdout.path).passed


def test_what_is_no_score_has_no_reading(known: Known) -> None:
    holdout, _ = known
    answer = holdout.mean("x > 5")
    assert answer.reading is None
    assert answer.to_dict()["reading"] is answer.to_dict()["reading_words"] is None
    assert "reading" not in str(answer)
    assert Standings("accuracy", True, ()).to_dict()["reading"] is None
    assert reading_words(None) is None


def test_the_command_line_and_the_report(known: Known, tmp_path: Path, cli: Cli) -> None:
    holdout, made = known
    made.to_csv(tmp_path / "p.csv", index=False)
    words = ("score", holdout.path, tmp_path / "p.csv")
    assert WORDS in " ".join(cli(*words).out.split())
    told = cli(*words, "--json").json
    assert (told["reading"], told["reading_words"]) == (RULE, WORDS)
    page = report_html(holdout)
    scores = [each for each in holdout.transcript() if each["answer"].get("reading") == RULE]
    assert scores
    assert html.unescape(page).count(f"score of {WORDS}") == len(scores)


def test_the_ledger_keeps_a_code_and_check_compares_it(known: Known, tmp_path: Path) -> None:
    holdout, made = known
    holdout.score(made)
    rows = [row for row in holdout.journal.ledger.rows() if row.kind == "recorded"]
    row = next(each for each in rows if "of predictions" in str(each.body["question"]))
    assert row.body["question"]["estimator"]["reading"] == RULE
    receipt = str(holdout.journal.receipt(row))
    assert answer_in(holdout.spec, row, receipt, cached=False).to_dict()["reading"] == RULE
    for code in ("other", GONE):

        def edit(entries: list[Entry], code: object = code) -> None:
            for each in entries:
                if "reading" in each.body.get("question", {}).get("estimator", {}):
                    put(each.body, "question.estimator.reading", code)

        forge(Path(shutil.copytree(holdout.path, tmp_path / str(code))), edit)
        assert "answers" in failed(check_holdout(tmp_path / str(code)))
    assert {RULE} < set(READINGS)


def test_a_metric_of_blocks_has_its_reading_in_every_line(tmp_path: Path, cli: Cli) -> None:
    rows = table(2_000).assign(row=range(2_000), y=lambda f: (f.x > 5).astype(int))
    made = pd.DataFrame({"row": rows.row, "prediction": (rows.x > 4.9).astype(float)})
    made.to_csv(tmp_path / "p.csv", index=False)
    with Holdout.create(tmp_path / "h", rows, ids="row", target="y") as holdout:
        score = holdout.score(made, metric="roc_auc", anyway=True)
        entry = holdout.enter(made, name="knows", metric="roc_auc", anyway=True)
        assert score.reading == RULE
        for words in (str(score), str(entry)):
            assert "this rule, on fresh rows (if it was made without these rows' features)" in words
        assert "on fresh rows, the median of roc_auc" in score.promise
    told = cli("score", tmp_path / "h", tmp_path / "p.csv", "--metric", "roc_auc")
    assert "this rule, on fresh rows" in told.out
