"""Tests for `holdfast gate`: its exit status is what continuous integration reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.client.client import Client
from holdfast.holdout.holdout import Holdout
from tests.cli.conftest import Cli
from tests.client.conftest import Served
from tests.holdout.plans import direct, gates
from tests.holdout.tables import sources, table

ROWS = gates().blocks


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A holdout whose six blocks score 0, 1/6, … 5/6, whatever the predictions are."""
    path = tmp_path / "gated.holdfast"
    frame = table(ROWS).assign(row=range(ROWS))
    Holdout.create(path, frame, gates(), ids="row", target="y").close()
    with sources():
        yield path


def written(path: Path, column: str, values: Iterable[int]) -> Path:
    path.write_text(f"row,{column}\n" + "".join(f"{k},{v}\n" for k, v in enumerate(values)))
    return path


@pytest.fixture
def gate(tmp_path: Path, cli: Cli) -> Cli:
    """gate(where, …) with the same predictions each time, unless others are named."""
    ones = written(tmp_path / "mine.csv", "prediction", [1] * ROWS)
    return lambda where, *words, given=ones: cli("gate", where, "--predictions", given, *words)


def test_a_pass_is_free_where_gates_have_blocks_of_their_own(
    tmp_path: Path, cli: Cli, gate: Cli
) -> None:
    labels = [k % 2 for k in range(300)]
    data = written(tmp_path / "labels.csv", "y", labels)
    right = written(tmp_path / "right.csv", "prediction", labels)
    wrong = written(tmp_path / "wrong.csv", "prediction", [1 - each for each in labels])
    path = tmp_path / "own.holdfast"
    made = ("--protocols", "gate=20", "--refusals", 2, "--ids", "row", "--target", "y")
    assert cli("create", path, "--data", data, *made).status == 0
    for given, threshold, status, price, left in (
        *((right, f"0.9{number}", 0, 0, 2) for number in range(5)),
        (wrong, "0.9", 4, 1, 1),
        (right, "0.99", 0, 0, 1),
        (wrong, "0.91", 4, 1, 0),
        (right, "0.999", 3, 0, 0),
    ):
        said = gate(path, "--at-least", threshold, "--json", given=given)
        told = [said.json[name] for name in ("price", "refusals_left", "certified")]
        assert (said.status, told) == (status, [price, left, True])


def test_pass_fail_exhausted(folder: Path, gate: Cli) -> None:
    said = gate(folder, "--at-least", 0, "--json")
    told = said.json
    assert (said.status, told["passed"], told["verdict"]) == (0, True, "pass")
    assert told["metric"] == "accuracy"
    for number in range(3):
        said = gate(folder, "--at-least", f"0.99{number}")
        assert said.status == 4
    assert "fail: accuracy at least 0.992?" in said.out
    assert "0 refusals left" in said.out
    said = gate(folder, "--at-least", 0.5, "--json")
    assert (said.status, said.json["verdict"]) == (3, "exhausted")
    said = gate(folder, "--at-least", 0)  # it was asked before
    assert said.status == 0
    assert "free: asked before" in said.out


HALF = ("--at-least", "0.5")
WRONG: list[tuple[tuple[str, ...], str]] = [
    ((), "one of them"),
    ((*HALF, "--at-most", "0.6"), "one of them"),
    ((*HALF, "--metric", "rmse", "--metrics", "none.py"), "exists"),
    (("--at-least", "nan"), "at_least"),
    (("--at-least", "85"), "at_least must be from 0 to 1, where every accuracy lies; got 85"),
    (("--at-most", "-0.1"), "at_most must be from 0 to 1"),
    ((*HALF, "--holdout", "other"), "--holdout must be left out here"),
    ((*HALF, "--token", "hf_secret"), "--token must be left out here; got '(given)'"),
]


def test_bad_input_is_said_and_costs_nothing(folder: Path, gate: Cli) -> None:
    for words, said in WRONG:
        gate(folder, *words).refuses(said)
    for where in (folder, "http://127.0.0.1:1/holdouts/gated"):
        gate(where, *HALF, given=folder.parent / "none.csv").refuses("file that exists")
    with Holdout.open(folder) as holdout:
        assert holdout.receipt.number == 1


def test_a_plan_without_guesses(tmp_path: Path, gate: Cli) -> None:
    path = tmp_path / "board.holdfast"
    frame = table(direct().blocks).assign(row=range(direct().blocks))
    Holdout.create(path, frame, direct(), ids="row", target="y").close()
    gate(path, *HALF).refuses("--protocols gate")


def test_damage_is_not_a_gate_that_failed(folder: Path, gate: Cli) -> None:
    (folder / "ids.parquet").write_bytes(b"nothing")
    gate(folder, *HALF).refuses("damaged", 1)


def test_a_gate_on_a_server(folder: Path, gate: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_TOKEN", raising=False)
    with Holdout.open(folder) as holdout:
        _, token = holdout.access.grant("analyst")
    transport = Served(folder)
    monkeypatch.setattr("holdfast.client.client.Client", partial(Client, transport=transport))
    try:
        url, words = "http://127.0.0.1:8000", ("--holdout", "gated", "--token", token)
        said = gate(url, "--at-least", 0, *words)
        assert said.status == 0
        assert "pass: accuracy at least 0?" in said.out
        assert gate(url, "--at-least", 0.99, *words).status == 4
        assert gate(url, "--at-least", 0.99).status != 0
    finally:
        transport.end()
