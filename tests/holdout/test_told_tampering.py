"""One history with every verb: it is told alike everywhere, and no row of it can be changed.

What is told may not depend on where it is computed: the terms of rows are whole parts, whose sums
over shards and workers are exact. One thing is changed in its ledger, and chained well again:
`check` finds it. Every change is tried on the first row of each verb that has such a thing, unless
it says which.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from holdfast.holdout.check import check_holdout
from tests.holdout.forging import GONE, Entry, failed, forge, forged, put
from tests.holdout.told_history import Body, create, history, in_shards, ledger_rows

Change = Callable[[Body], None]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Body]]:
    """The holdout, and what was told."""
    path = tmp_path_factory.mktemp("original") / "a.holdfast"
    with create(path) as holdout:
        found = history(holdout, "SQL")
        assert holdout.status().answers == len(found) - 1  # one was asked before
    assert check_holdout(path).passed
    return path, found


@pytest.fixture(scope="module")
def original(asked: tuple[Path, list[Body]]) -> Path:
    return asked[0]


def test_in_five_files_and_in_python_it_is_the_same(
    asked: tuple[Path, list[Body]], tmp_path: Path
) -> None:
    _, expected = asked
    assert {each["expected"] for each in expected} == {True, False, None}
    told = [each["told_so_far"] for each in expected if not each["cached"]]
    assert all(before < after for before, after in pairwise(told))
    with create(tmp_path / "shards.holdfast") as holdout:
        in_shards(holdout, tmp_path / "shards")
        assert history(holdout, "SQL") == expected
    with create(tmp_path / "python.holdfast") as holdout:
        assert history(holdout, "Python") == expected


@pytest.fixture
def folder(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to forge, of which nobody has seen a receipt."""
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    return Path(shutil.copytree(original, tmp_path / "a.holdfast"))


def drawns(body: Body) -> Iterator[Body]:
    """What was drawn: of a batch of each, and of all."""
    yield body["drawn"]
    yield from body["drawn"].get("batch", ())


def more(name: str) -> Change:
    return lambda drawn: drawn.update({name: drawn[name] + 1e-4})


def another_letter(drawn: Body) -> None:
    drawn["letter"][-1] += 1 if drawn["letter"] != [2] else -1


def other_surprise(drawn: Body) -> None:
    drawn["surprise"] = not drawn["surprise"]


def expected(name: str) -> Change:
    return lambda drawn: drawn["expects"].update({name: drawn["expects"][name] + 0.01})


def has_letter(body: Body, drawn: Body) -> bool:
    """One that claims or costs something else: a winner claims nothing, and all cost the same."""
    return bool(drawn["letter"]) and body["question"]["verb"] != "best"


def from_the_open_part(body: Body, drawn: Body) -> bool:
    """Whether the guess follows from the open part's score; else that decides nothing here."""
    given = body["question"].get("guesses", [None])[0] or body["question"].get("guess")
    return "open" in drawn.get("expects", {}) and given is None


def having(name: str) -> Callable[[Body, Body], bool]:
    return lambda body, drawn: name in drawn


CHANGES: dict[str, tuple[Callable[[Body, Body], bool], Change]] = {
    "another letter": (has_letter, another_letter),
    "no letter": (has_letter, lambda drawn: drawn.update(letter=[])),
    "a letter that there is not": (has_letter, lambda drawn: drawn.update(letter=[10**6] * 2)),
    **{
        f"{name} a little more": (having(name), more(name))
        for name in ("nats", "level", "low", "high", "value", "so_far", "leaning")
    },
    "no answers": (having("answers"), lambda drawn: drawn.update(answers=0)),
    "a leaning of nothing": (
        lambda body, drawn: "answers" in drawn and "leaning" not in drawn,
        lambda drawn: drawn.update(leaning=0.1),
    ),
    "another surprise": (having("surprise"), other_surprise),
    "another guess": (
        lambda b, d: (
            "guess" in d.get("expects", {}) and b["question"]["verb"] not in ("ask", "verify")
        ),
        expected("guess"),
    ),
    "another open score": (from_the_open_part, expected("open")),
    "a guess from nowhere": (from_the_open_part, lambda drawn: drawn["expects"].pop("open")),
    "a word more": (having("nats"), lambda drawn: drawn.update(more=1)),
    "an expectation more": (having("expects"), lambda drawn: drawn["expects"].update(more=1.0)),
    **{
        f"no {name}": (having(name), lambda drawn, name=name: drawn.pop(name))  # type: ignore[misc]
        for name in ("letter", "nats", "level", "low", "value", "surprise", "so_far", "expects")
    },
    "an entry of a batch less": (having("batch"), lambda drawn: drawn["batch"].pop()),
    "entries of a batch in another order": (  # without guesses they are letters like any others
        lambda body, drawn: "batch" in drawn and "guesses" in body["question"],
        lambda drawn: drawn["batch"].reverse(),
    ),
    "one entry of a batch twice": (
        having("batch"),
        lambda drawn: drawn["batch"].append(copy.deepcopy(drawn["batch"][0])),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_drawn_cannot_be_changed(original: Path, folder: Path, name: str) -> None:
    applies, change = CHANGES[name]
    bodies = ledger_rows(original)[1:]
    places = {
        (body["question"]["verb"], place > 0): (row, place)
        for row, body in reversed([*enumerate(bodies, 1)])
        for place, drawn in enumerate(drawns(body))
        if applies(body, drawn)
    }
    assert places
    for row, place in places.values():
        found = forged(folder, lambda rows: change([*drawns(rows[row].body)][place]))  # noqa: B023
        assert "answers" in found, (name, bodies[row - 1])


def rows_with(rows: list[Entry], **words: Any) -> list[Entry]:
    """Answers to questions that have these words."""
    questions = [(each, each.body.get("question", {})) for each in rows]
    return [e for e, q in questions if all(q.get(name) == value for name, value in words.items())]


def first(words: Body, place: str, value: object, nth: int = 0) -> Callable[[list[Entry]], object]:
    """Another value in the row of the first question that has these words."""
    return lambda rows: put(rows_with(rows, **words)[nth].body, f"question.{place}", value)


def a_row(number: int, place: str, value: object) -> Callable[[list[Entry]], object]:
    return lambda rows: put(rows[number].body, place, value)


def two_rows_swapped(rows: list[Entry]) -> None:
    rows[3], rows[4] = rows[4], rows[3]


FRESH = "rule-on-fresh-rows"
EDITS: dict[str, Callable[[list[Entry]], object]] = {
    "another reading": first({"verb": "score"}, "estimator.reading", FRESH, 1),
    "another first reading": a_row(1, "question.estimator.reading", FRESH),
    "no such reading": first({"verb": "best"}, "estimator.reading", "mine"),
    "another guess": first({"guess": 0.88}, "guess", 0.87),
    "another error": first({"error": 0.001}, "error", 0.002),
    "another margin": first({"margin": 0.1}, "margin", 0.2),
    "another threshold": first({"threshold": 0.8}, "threshold", 0.85),
    "another text": first({"verb": "mean"}, "estimator.text", "x * 2"),
    "one candidate": first({"margin": 0.3}, "candidates", GONE),
    "more candidates": first({"verb": "best"}, "candidates", 4),
    "not precise": first({"verb": "score", "precise": True}, "precise", GONE),
    "two rows swapped": two_rows_swapped,
    "a row less": lambda rows: rows.pop(5),
    "a row twice": lambda rows: rows.append(copy.deepcopy(rows[-1])),
    "something paid": a_row(2, "left", 0.5),
    "something refused": a_row(2, "refusals", 3),
    "more of beta": a_row(0, "sets.0.plan.extends", False),
    "surer": a_row(0, "sets.0.plan.confidence", 0.99),
    "more queries": a_row(0, "sets.0.plan.queries", 5_000),
}


@pytest.mark.parametrize("name", EDITS)
def test_rows_cannot_be_changed(folder: Path, name: str) -> None:
    forge(folder, EDITS[name])
    wrong = failed(check_holdout(folder))
    assert wrong
    assert "chain" not in wrong


def test_what_is_only_written_again_passes(folder: Path) -> None:
    forge(folder, lambda rows: None)
    assert failed(check_holdout(folder)) == {}
