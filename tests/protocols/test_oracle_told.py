"""What is told, against a second opinion that shares nothing with the product (oracle_told.py)."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from holdfast.holdout.check import check_holdout
from tests.holdout.told_history import (
    Body,
    ask_everything,
    ask_without_guesses,
    create,
    ledger_rows,
    table,
)
from tests.protocols.oracle_told import Oracle, differing, disagreements, remade

Kept = tuple[list[Any], list[Body]]


def made(path: Path, ask: Any, **words: Any) -> Kept:
    with create(path, **words) as holdout:
        answers = ask(holdout, table())
    assert check_holdout(path).passed
    return answers, ledger_rows(path)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return made(tmp_path_factory.mktemp("told") / "a.holdfast", ask_everything)


@pytest.fixture(scope="module")
def unguessed(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    words = {"open_fraction": 0, "confidence": 0.9, "queries": 400, "reading": "rule"}
    return made(tmp_path_factory.mktemp("told") / "b.holdfast", ask_without_guesses, **words)


def test_every_row_of_every_verb_agrees(everything: Kept) -> None:
    answers, (first, *rest) = everything
    verbs = {body["question"]["verb"] for body in rest}
    assert verbs == {
        *("score", "gate", "mean", "compare", "best", "scores", "ask", "interval", "verify")
    }
    assert [each.cached for each in answers].count(True) == 1
    assert len(rest) == len(answers) - 1
    assert disagreements(first, rest) == []


def test_without_guesses_every_row_agrees(unguessed: Kept) -> None:
    answers, (first, *rest) = unguessed
    assert len(rest) == len(answers)
    assert disagreements(first, rest) == []
    assert not any("guess" in body["drawn"].get("expects", {}) for body in rest)


def test_the_history_has_all_that_it_should(everything: Kept) -> None:
    """Surprises on both sides, all readings, both orders of a batch, a leaning: none is idle."""
    _, (_, *rest) = everything
    sides = {
        body["drawn"]["letter"][0] > 0
        for body in rest
        if body["question"]["verb"] == "score" and body["drawn"].get("surprise")
    }
    assert sides == {True, False}
    oracle = Oracle(everything[1][0])
    for body in rest:
        oracle.read(body["question"], body["drawn"])
    assert len(oracle.readings) == 3
    assert any("leaning" in body["drawn"] for body in rest)
    assert {body["drawn"]["letter"][0] for body in rest if "margin" in body["question"]} == {
        0,
        1,
        2,
    }
    batches = [body["drawn"] for body in rest if "batch" in body["drawn"]]
    gains = [one["batch"][0]["level"] - one["level"] for one in batches]
    assert [gain > 0.1 for gain in gains] == [False, True]  # in order, and together


@pytest.mark.parametrize("name", ["level", "nats", "low", "high", "value", "so_far"])
def test_a_millionth_more_is_a_disagreement(everything: Kept, name: str) -> None:
    """The comparison can fail: of every row that has such a number."""
    _, (first, *rest) = everything
    pairs = list(zip(rest, remade(first, rest), strict=True))
    found = [(body["drawn"], made) for body, made in pairs if name in body["drawn"]]
    assert found
    for drawn, made in found:
        assert len(list(differing({**drawn, name: drawn[name] + 1e-6}, made))) == 1


def test_a_share_of_beta_is_a_disagreement(everything: Kept) -> None:
    _, (first, *rest) = everything
    for more in ({"extends": False}, {"confidence": 0.951}, {"queries": 10_000}):
        other = copy.deepcopy(first)
        other["sets"][0]["plan"] |= more
        assert disagreements(other, rest[:4])
