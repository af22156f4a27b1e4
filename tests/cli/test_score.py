"""Models on the command line: what is said of them, exit statuses, and what is refused for free."""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.holdout.holdout import Holdout
from holdfast.ledger.ledger import Receipt
from tests.cli.conftest import RIGHT, ROWS, Cli, Said, write_predictions
from tests.holdout.tables import table

NUMBERS = ("told", "told_so_far", "level", "confidence")

READING = "these rows, fresh labels (a row without one counts as wrong)"


@pytest.fixture
def ask(told: Path, cli: Cli) -> Cli:
    """ask("score", "good", …): predictions by their names."""

    def call(verb: str, *words: object) -> Said:
        known = (told.parent / f"{word}.csv" if word in RIGHT else word for word in words)
        return cli(verb, told, *known)

    return call


def nats(told: Path, cli: Cli) -> float:
    (only,) = cli("status", told, "--json").json["sets"]
    return float(only["told"]["nats"])


# What is said.


def test_a_score_is_said_in_two_lines(ask: Cli) -> None:
    said = ask("score", "good", "--guess", 0.9)
    assert (said.status, said.err) == (0, "")
    first, second = said.out.splitlines()
    assert first.startswith("accuracy is between 0.")
    assert first.endswith(" (with 95 % confidence); your guess 0.9 is confirmed")
    assert second == f"{READING}; told 0.16 nats, 0.16 so far"
    off = ask("score", "better", "--guess", 0.7).out
    assert (
        "2 answers at once); a surprise: not within the interval announced around 0.7, your guess"
        in off
    )
    assert ask("score", "good", "--guess", 0.9).out.endswith("; asked before, free\n")
    precise = ask("score", "good", "--guess", 0.9, "--precise").out.splitlines()[0]
    assert precise.endswith("for all 3 answers at once)")  # nothing was expected of it


def test_numbers_are_numbers(ask: Cli, told: Path) -> None:
    for words in (
        ("score", "good", "--guess", 0.9, "--guess-se", 0.01),
        ("compare", "better", "good", "--guess", 0.05),
        ("compare", "better", "good", "--margin", 0),
        ("gate", "good", "--at-least", 0.8),
        ("best", "good", "better", "--precise"),
        ("scores", "good", "better"),
        ("mean", "y = 1"),
    ):
        data = ask(*words, "--json").json
        assert [name for name in NUMBERS if type(data[name]) is not float] == [], words
        ends = [each for each in (data, *data["batch"]) for each in (each["low"], each["high"])]
        assert {type(each) for each in ends} <= {float, type(None)}, words
        assert (data["certified"], data["cached"]) == (True, False), words
        assert data["reading"] == (None if words[0] == "mean" else "these-rows-fresh-labels")
    entered = ask("enter", "good", "--name", "Ann", "--json").json
    assert (entered["name"], entered["metric"]) == ("Ann", "accuracy")
    assert entered["low"] < 0.9 < entered["high"]
    json.loads(ask("status", "--json").out, parse_constant=pytest.fail)


def test_a_bar_holds_the_truth_of_these_rows(ask: Cli) -> None:
    for name, count in RIGHT.items():
        data = ask("score", name, "--precise", "--json").json
        assert data["low"] <= count / ROWS <= data["high"]


def test_what_a_comparison_says(ask: Cli) -> None:
    said = {
        "better is between 0.006 worse and 0.106 better than good in accuracy (with 95 %": (
            *("better", "good", "--guess", 0.05),  # the first: what was told widens bars
        ),
        "better is better than good in accuracy (with 95 %": ("better", "good", "--margin", 0),
        "good is worse than better in accuracy (with 95 %": ("good", "better", "--margin", 0),
        "better is not shown to be better or worse than good by 0.04 in accuracy": (
            *("better", "good", "--margin", 0.04),
        ),
        "better is better than poor by 0.": ("better", "poor", "--guess", 0.45),
        "poor is worse than better by 0.": ("poor", "better", "--guess", -0.45),
    }
    for expected, words in said.items():
        found = ask("compare", *words)
        assert found.status == 0  # whichever verdict
        assert found.out.startswith(expected.removesuffix(" (with 95 %"))
        assert f"\n{READING}; told " in found.out


def test_a_loss_that_is_smaller_is_better(ask: Cli, told: Path) -> None:
    ends = np.arange(ROWS) % 2
    near, far = (
        write_predictions(told.parent / f"{name}.csv", np.where(ends == 1, sure, 1 - sure))
        for name, sure in (("near", 0.9), ("far", 0.6))
    )
    words = ("--metric", "brier")
    better = ask("compare", near, far, *words, "--margin", 0, "--json").json
    assert (better["verdict"], better["high"]) == ("better", 0.0)
    assert ask("compare", far, near, *words, "--margin", 0, "--json").json["verdict"] == "worse"
    text = ask("compare", near, far, *words).out
    assert text.startswith("near is better than far by 0.1")
    assert "in Brier score" in text
    passed = ask("gate", near, *words, "--better-than", far, "--margin", 0.05)
    assert passed.status == 0
    assert "is better than the incumbent by at least 0.05 in Brier score" in passed.out
    assert ask("gate", near, *words, "--at-most", 0.1).out.startswith(
        "pass: Brier score is at most 0.1 (with 95 % confidence"
    )


def test_the_best_and_its_score(ask: Cli) -> None:
    said = ask("best", "good", "better", "poor")
    first, second, third = said.out.splitlines()
    winner = "better has the best accuracy of 3 on the sealed rows"
    assert first == f"{winner}; that alone says nothing of fresh data"
    assert second == f"{READING}; told 1.1 nats, 1.1 so far"
    assert third.startswith("its score: holdfast score ")
    assert third.endswith("/better.csv --precise")
    with_bar = ask("best", "good", "better", "--precise")
    name, bar, _ = with_bar.out.splitlines()
    assert name == "better has the best accuracy of 2 on the sealed rows"
    assert bar.startswith("its accuracy is between 0.")
    data = ask("best", "good", "better", "--precise", "--json").json
    assert data["names"][data["winner"]] == "better"
    (only,) = data["batch"]
    assert only["low"] < RIGHT["better"] / ROWS < only["high"]
    assert data["cached"] is only["cached"] is True


def test_a_batch_has_a_line_for_each(ask: Cli) -> None:
    first, *each, last = ask("scores", "good", "better", "poor").out.splitlines()
    assert first == "3 scores by accuracy (with 95 % confidence):"
    assert [line.split()[0] for line in each] == ["good", "better", "poor"]
    assert all(" is between 0." in line for line in each)
    assert last.startswith(f"{READING}; told ")


def test_what_is_assumed_is_said_when_asked_for(ask: Cli) -> None:
    words = ("score", "good", "--guess", 0.9)
    short, long = ask(*words).out, " ".join(ask(*words, "--verbose").out.split())
    assert "independent draws" not in short
    assert "receipt" not in short
    for expected in ("against everybody", "assumes", "independent draws", "receipt"):
        assert expected in long
    lines = ask(*words, "--verbose").out.splitlines()
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines[:-1])
    Receipt.parse(lines[-1].removeprefix("receipt  "))  # on one line, to be copied


def test_the_status_is_what_python_says(told: Path, cli: Cli) -> None:
    with Holdout.open(told) as holdout:
        expected = str(holdout.status()).splitlines()
    said = cli("status", told).out.splitlines()
    assert expected[1] == f"  {ROWS} units are sealed, 0 open, 0 left over"
    assert said[: len(expected) - 2] == expected[:-2]
    assert said[-1] == expected[-1]
    assert " ".join(" ".join(said).split()) == " ".join(" ".join(expected).split())


def test_other_verbs_without_a_plan(ask: Cli) -> None:
    mean = ask("mean", "x < 0.5").out
    assert mean.startswith("the share of rows with x < 0.5 is between 0.")
    assert "\non fresh rows; told " in mean
    cut = ask("mean", "x", "--range", "0:1").out
    assert cut.startswith("the mean of x cut to [0, 1] is between 0.")
    asked = ask("ask", "avg(x)", "--grid", "0:1:0.02").out
    assert asked.startswith("the median of avg(x) over fresh blocks of 6 units is between 0.")
    assert ask("verify", "avg(x)", "--guess", 0.5, "--tolerance", 0.1).out.startswith(
        "compatible: the median of avg(x) over fresh blocks of 6 units is not shown to differ from "
        "0.5 by more than 0.1\ntold "
    )
    assert ask("verify", "avg(x)", "--guess", 0.1).out.startswith(
        "not compatible: the median of avg(x) over fresh blocks of 6 units is above 0.1 (with 95 %"
    )
    ask("mean", "x", "--protocol", "nobody").refuses("nobody")


def test_entering_and_the_board(ask: Cli) -> None:
    assert ask("leaderboard").out == "No entry yet for accuracy.\n"
    said = ask("enter", "good", "--name", "Ann", "--guess", 0.9)
    assert said.out.startswith("Ann is on the leaderboard for accuracy\naccuracy is between 0.")
    assert ask("enter", "poor", "--name", "Bob", "--guess", 0.5).status == 0
    board = ask("leaderboard", "--json").json
    assert [each["name"] for each in board["entries"]] == ["Ann", "Bob"]
    assert [each["rank_low"] for each in board["entries"]] == [1, 2]
    text = ask("leaderboard").out
    assert text.index("Ann") < text.index("Bob") < text.index("these rows, fresh labels")


def test_neighbours_on_the_board(ask: Cli, told: Path) -> None:
    for name, file, guess in (("Ann", "good", 0.9), ("Bob", "better", 0.95), ("Cid", "poor", 0.5)):
        assert ask("enter", file, "--name", name, "--guess", guess).status == 0
    before = ask("leaderboard", "--json").json
    priced = ask("leaderboard", "--price").out
    assert "Bob and Ann: " in priced
    assert priced.splitlines()[-1].startswith("nothing was asked: all of them tell about ")
    assert ask("leaderboard", "--json").json == before
    said = ask("leaderboard", "--neighbours", "--top", "3").out
    assert "\nthe bars separate 2 classes: places 1–2, 3\nBob is better than Ann by 0." in said
    assert "\nAnn is better than Cid by 0." in said
    pairs = ask("leaderboard", "--neighbours", "--json").json["neighbours"]
    assert [(each["names"], each["apart"]) for each in pairs] == [
        (["Bob", "Ann"], True),
        (["Ann", "Cid"], True),
    ]
    assert all(each["result"]["cached"] for each in pairs)
    for kept in (told / "predictions").iterdir():
        kept.unlink()
    lost = ask("leaderboard", "--neighbours").out
    assert "Bob and Ann were not compared: the predictions of 'Bob' were not kept" in lost
    ask("leaderboard", "--neighbours", "--top", "1").refuses("top")
    ask("leaderboard", "--neighbours", "--metric", "f1").refuses("a mean over rows")
    ask("score", "good", "--metric", "f1").refuses("says little about the model")
    assert ask("score", "good", "--metric", "f1", "--anyway").status == 0


def test_the_other_reading_names_what_it_assumes(told: Path, cli: Cli) -> None:
    path, data = told.parent / "rule.holdfast", told.parent / "data.csv"
    labels = np.arange(ROWS) % 2
    table(ROWS).assign(row=np.arange(ROWS), y=labels).to_csv(data, index=False)
    words = ("--target", "y", "--ids", "row", "--reading", "rule", "--open-fraction", 0)
    assert cli("create", path, "--data", data, *words).status == 0
    reading = "\nthis rule, on fresh rows (if it was made without these rows' features); told "
    for asked in (("score", "--guess", 0.9), ("gate", "--at-least", 0.8)):
        verb, *options = asked
        assert reading in cli(verb, path, told.parent / "good.csv", *options).out


# Before asking.


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("score", "good", "--guess", 0.9), " (as expected) "),
        (("score", "good", "--guess", 0.9, "--precise"), " to "),
        (("compare", "better", "good", "--margin", 0), "not shown (as expected) "),
        (("gate", "good", "--at-least", 0.8), "unclear (as expected) "),
        (("best", "good", "better"), "any "),
        (("scores", "good", "better", "--guesses", "0.9,0.95"), "1. 0."),
        (("enter", "good", "--name", "Ann"), " to "),
        (("mean", "x < 0.5", "--guess", 0.5), " (as expected) "),
        (("ask", "avg(x)", "--grid", "0:1:0.1"), " to "),
        (("verify", "avg(x)", "--guess", 0.5), "compatible (as expected) "),
    ],
)
def test_a_price_tells_nothing(
    ask: Cli, told: Path, cli: Cli, words: tuple[Any, ...], first: str
) -> None:
    said = ask(*words, "--price")
    head, line, *_, last = said.out.splitlines()
    assert (said.status, head.split("  ")[0]) == (0, "you would be told")
    assert first in line
    assert line.split()[-1].startswith("±0.")
    assert last.startswith("told so far 0 nats; now an expected share near 0.9 is within ±0.")
    offers = ask(*words, "--price", "--json").json["told"]["answers"]
    assert offers
    assert sum(np.exp(-each["nats"]) for each in offers if not each.get("candidate")) <= 1
    assert nats(told, cli) == 0
    found = ask(*words, "--json")
    paid = found.json["told"]  # what was shown is what is paid, whichever answer came
    shown = {each["nats"] for each in offers}
    assert found.json["letter"] == [] or paid in shown or paid > min(shown)
    assert ask(*words, "--price").out.startswith("asked before, free")


def test_the_status_says_what_was_told(ask: Cli, told: Path) -> None:
    assert ask("score", "good", "--guess", 0.9).status == 0
    assert ask("score", "poor", "--guess", 0.9).status == 0
    text = ask("status").out
    assert "2 answers on 600 sealed units, 1 surprise among them: told " in text
    assert "questions more   no surprise    1 surprise   3 surprises" in text
    assert "blocks" not in text.partition("receipt")[0]
    (only,) = ask("status", "--json").json["sets"]
    assert (only["budget"], only["parts"], only["currency"]) == (None, [], "nats")
    known = {name: only["told"][name] for name in ("rows", "answers", "surprises")}
    assert known == {"rows": 600, "answers": 2, "surprises": 1}
    assert only["told"]["nats"] == only["spent"] > 5


# Exit statuses.


STATUS = {"pass": 0, "fail": 4, "unclear": 5}
RIVAL = ("--better-than", "good")
GATES: dict[str, tuple[object, ...]] = {
    "pass: accuracy is at least 0.8 (with 95 %": ("good", "--at-least", 0.8),
    "pass: accuracy is at least 0.81 (with": ("good", "--at-least", 0.91, "--tolerance", 0.1),
    "fail: accuracy is below 0.8 (with 95 %": ("poor", "--at-least", 0.8),
    "unclear: accuracy is neither shown to be at least 0.9 nor to be below 0.9;": (
        *("good", "--at-least", 0.9),
    ),
    "pass: accuracy is at most 0.1 (with": ("none", "--at-most", 0.1),
    "fail: accuracy is above 0.1 (with": ("good", "--at-most", 0.1),
    "pass: this one is better than the incumbent in accuracy (with": ("better", *RIVAL),
    "fail: this one is worse than the incumbent in accuracy (with": (
        *("good", "--better-than", "better"),
    ),
    "unclear: this one is not shown to be better or worse than the incumbent by 0.05": (
        *("better", *RIVAL, "--margin", 0.05),
    ),
    "fail: this one is not better than the incumbent by 0.05 or more in accuracy (with": (
        *("poor", *RIVAL, "--margin", 0.05),
    ),
}


def test_a_gates_status(ask: Cli) -> None:
    for said, words in GATES.items():
        verdict = said.partition(":")[0]
        text = ask("gate", *words)
        assert (text.status, text.err) == (STATUS[verdict], ""), said
        assert text.out.startswith(said)
        assert f"\n{READING}; told " in text.out
        again = ask("gate", *words, "--json")
        assert (again.status, again.json["verdict"]) == (STATUS[verdict], verdict)
        assert again.json["cached"]


def test_nothing_more_may_be_told_is_status_3(ask: Cli, told: Path, cli: Cli) -> None:
    asks: list[tuple[object, ...]] = [
        ("score", "good"),
        ("compare", "better", "good"),
        ("gate", "good", "--at-least", 0.8),
        ("best", "good", "better"),
        ("scores", "good", "better"),
        ("enter", "poor", "--name", "Ann"),
    ]
    for words in asks:
        before = nats(told, cli)
        ask(*words, "--max-level", 1, "--json").refuses("Your limit", 3, "exhausted")
        assert nats(told, cli) == before
        assert ask(*words, "--max-level", 99).status == 0


def test_damage_is_status_6(ask: Cli, told: Path) -> None:
    copy = shutil.copytree(told, told.parent / "copy.holdfast")
    (copy / "ids.parquet").write_bytes(b"nothing")
    shutil.rmtree(told)
    copy.rename(told)
    ask("gate", "good", "--at-least", 0.8, "--json").refuses("damaged", 6, "damaged")


# Bad input: status 2, a sentence, and nothing is told.


def rows(*lines: str) -> str:
    return "\n".join(["row,prediction", *lines, ""])


ALL = [f"{row},{row % 2}" for row in range(ROWS)]
HALF, LATER = ALL[: ROWS // 2], range(ROWS // 2, ROWS)  # one row alone may be open
FILES = {
    "probabilities": rows(*(f"{row},0.{row % 9}" for row in range(ROWS))),
    "undeclared": rows(*HALF, *(f"{row},7" for row in LATER)),
    "nan": rows(*HALF, *(f"{row},nan" for row in LATER)),
    "empty": rows(*HALF, *(f"{row}," for row in LATER)),
    "twice": rows(*ALL, "5,1"),
    "missing": rows(*HALF),
    "unknown": rows(*ALL, "9999,1"),
    "no column": "row,guess\n0,1\n",
    "nothing": "",
}


def test_predictions_that_are_refused(ask: Cli, told: Path, cli: Cli) -> None:
    bad = told.parent / "bad.csv"
    asks: tuple[tuple[object, ...], ...] = (
        ("score", bad),
        ("compare", bad, "good"),
        ("compare", "good", bad),
        ("gate", bad, "--at-least", 0.5),
        ("gate", "good", "--better-than", bad),
        ("best", "good", bad),
        ("scores", bad, "good"),
        ("enter", bad, "--name", "x"),
    )
    for (name, text), words in product(FILES.items(), asks):
        bad.write_text(text)
        said = ask(*words)
        said.refuses("")
        assert said.err.startswith("holdfast: "), (name, words)
    assert nats(told, cli) == 0
    assert cli("status", told, "--json").json["answers"] == 0


WRONG: list[tuple[tuple[object, ...], str]] = [
    (("score", "good", "--guess", "nan"), "guess"),
    (("score", "good", "--guess", 1.5), "guess"),
    (("score", "good", "--guess", "much"), "--guess"),
    (("score", "good", "--guess", 0.5, "--guess-se", -1), "must be a number in [0, inf]"),
    (("score", "good", "--metric", "acuracy"), "Did you mean"),
    (("score", "good", "--metric", "acc"), "Did you mean accuracy?"),
    (("score", "good", "--metrics", "none.py"), "exists"),
    (("score", "good", "--token", "hf_secret"), "token"),
    (("score",), "PREDICTIONS"),
    (("score", "absent.csv"), "a file that exists"),
    (("compare", "good", "good"), "different"),
    (("compare", "good"), "OTHERS"),
    (("compare", "better", "good", "--margin", -1), "margin"),
    (("compare", "better", "good", "--guess", 3), "guess"),
    (("gate", "good"), "one of them"),
    (("gate", "good", "--at-least", 0.5, "--at-most", 0.6), "one of them"),
    (("gate", "good", "--at-least", "nan"), "at_least"),
    (("gate", "good", "--at-least", 85), "from 0 to 1"),
    (("gate", "good", "--at-most", -0.1), "from 0 to 1"),
    (("gate", "good", "--at-least", 0.5, "--tolerance", -1), "tolerance"),
    (("gate", "good", "--better-than", "good"), "different"),
    (("gate", "good", "--predictions", "good"), "--predictions"),
    (("best",), "PREDICTIONS"),
    (("best", "good"), "from 2 to 1,000"),
    (("best", "good", "good"), "different"),
    (("scores", "good"), "from 2 to 1,000"),
    (("scores", "good", "good"), "different"),
    (("enter", "good"), "--name"),
    (("enter", "good", "--name", " "), "name"),
    (("mean", "x > 0", "--guess", 2), "guess"),
]


def test_words_that_are_refused(ask: Cli, told: Path, cli: Cli) -> None:
    for (words, message), more in product(WRONG, ((), ("--json",))):
        said = ask(*words, *more)
        said.refuses(message)
        assert "secret" not in said.err
    assert nats(told, cli) == 0
