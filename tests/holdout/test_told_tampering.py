"""One thing is changed in a ledger of what is told, and chained well again: `check` finds it.

Every change is tried on the first row of each verb that has such a thing, unless it says which.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.holdout.check import check_holdout
from tests.holdout.forging import Entry, failed, forge
from tests.holdout.told_history import Body, ask_everything, create, ledger_rows, table

Change = Callable[[Body], None]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "a.holdfast"
    with create(path) as holdout:
        ask_everything(holdout, table())
    assert check_holdout(path).passed
    return path


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
    kept = (folder / "ledger.sqlite").read_bytes()
    for row, place in places.values():
        (folder / "ledger.sqlite").write_bytes(kept)
        forge(folder, lambda rows: change([*drawns(rows[row].body)][place]))  # noqa: B023
        assert "answers" in failed(check_holdout(folder)), (name, bodies[row - 1])


def rows_with(rows: list[Entry], **words: Any) -> list[Entry]:
    """Answers to questions that have these words."""
    questions = [(each, each.body.get("question", {})) for each in rows]
    return [e for e, q in questions if all(q.get(name) == value for name, value in words.items())]


def other_reading(rows: list[Entry]) -> None:
    about = rows_with(rows, verb="score")[1].body["question"]["estimator"]
    about["reading"] = "rule-on-fresh-rows"


def first_reading(rows: list[Entry]) -> None:
    rows[1].body["question"]["estimator"]["reading"] = "rule-on-fresh-rows"


def no_such_reading(rows: list[Entry]) -> None:
    rows_with(rows, verb="best")[0].body["question"]["estimator"]["reading"] = "mine"


def other_question_guess(rows: list[Entry]) -> None:
    rows_with(rows, guess=0.88)[0].body["question"]["guess"] = 0.87


def other_error(rows: list[Entry]) -> None:
    rows_with(rows, error=0.001)[0].body["question"]["error"] = 0.002


def other_margin(rows: list[Entry]) -> None:
    rows_with(rows, margin=0.1)[0].body["question"]["margin"] = 0.2


def other_threshold(rows: list[Entry]) -> None:
    rows_with(rows, threshold=0.8)[0].body["question"]["threshold"] = 0.85


def other_text(rows: list[Entry]) -> None:
    rows_with(rows, verb="mean")[0].body["question"]["estimator"]["text"] = "x * 2"


def one_candidate(rows: list[Entry]) -> None:
    del rows_with(rows, margin=0.3)[0].body["question"]["candidates"]


def more_candidates(rows: list[Entry]) -> None:
    rows_with(rows, verb="best")[0].body["question"]["candidates"] = 4


def not_precise(rows: list[Entry]) -> None:
    del rows_with(rows, verb="score", precise=True)[0].body["question"]["precise"]


def two_rows_swapped(rows: list[Entry]) -> None:
    rows[3], rows[4] = rows[4], rows[3]


def a_row_less(rows: list[Entry]) -> None:
    del rows[5]


def a_row_twice(rows: list[Entry]) -> None:
    rows.append(copy.deepcopy(rows[-1]))


def something_paid(rows: list[Entry]) -> None:
    rows[2].body["left"] = 0.5


def something_refused(rows: list[Entry]) -> None:
    rows[2].body["refusals"] = 3


def more_of_beta(rows: list[Entry]) -> None:
    rows[0].body["sets"][0]["plan"]["extends"] = False


def surer(rows: list[Entry]) -> None:
    rows[0].body["sets"][0]["plan"]["confidence"] = 0.99


def more_queries(rows: list[Entry]) -> None:
    rows[0].body["sets"][0]["plan"]["queries"] = 5_000


EDITS = (
    *(other_reading, first_reading, no_such_reading, other_question_guess, other_error),
    *(other_margin, other_threshold, other_text, one_candidate, more_candidates, not_precise),
    *(two_rows_swapped, a_row_less, a_row_twice, something_paid, something_refused),
    *(more_of_beta, surer, more_queries),
)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_rows_cannot_be_changed(folder: Path, edit: Callable[[list[Entry]], None]) -> None:
    forge(folder, edit)
    wrong = failed(check_holdout(folder))
    assert wrong
    assert "chain" not in wrong


def test_what_is_only_written_again_passes(folder: Path) -> None:
    forge(folder, lambda rows: None)
    assert failed(check_holdout(folder)) == {}
