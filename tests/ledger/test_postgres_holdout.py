"""Holdouts whose ledger is in Postgres: the same questions and answers, and the page about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.holdout.check import check_holdout
from holdfast.ledger.postgres import PostgresLedger
from holdfast.report.page import report_html
from tests.engines.dask.test_pages import run_page
from tests.golden.test_golden import PLANS, compare, golden
from tests.holdout import told_history
from tests.ledger.contract import start
from tests.ledger.postgres_tests import cut, together

pytestmark = pytest.mark.cluster

GRID = hf.grid(0, 1, points=21)


@pytest.fixture
def holdout(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[hf.Holdout]:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    table = pd.DataFrame({"x": np.random.default_rng(5).random(4_000)})
    plan = hf.plan(queries=20, grid=21, tail=0.25)
    with hf.Holdout.create(tmp_path / "a.holdfast", table, plan, ledger=database) as holdout:
        yield holdout


def ledger_of(holdout: hf.Holdout) -> PostgresLedger:
    ledger = holdout.journal.ledger
    assert isinstance(ledger, PostgresLedger)
    return ledger


def kinds(holdout: hf.Holdout) -> list[str]:
    return [row.kind for row in ledger_of(holdout).rows()]


def test_it_is_asked_opened_checked_and_reported_like_any_other(holdout: hf.Holdout) -> None:
    answer = holdout.ask("avg(x)", grid=GRID)
    with hf.Holdout.open(holdout.path) as again:
        assert again.ask("avg(x)", grid=GRID).receipt == answer.receipt
    assert check_holdout(holdout.path, str(answer.receipt)).passed
    assert "avg(x)" in report_html(holdout.path)
    assert not (holdout.path / "ledger.sqlite").exists()


def test_a_backup_says_that_the_ledger_is_not_in_it(
    holdout: hf.Holdout, database: str, tmp_path: Path
) -> None:
    receipt = holdout.ask("avg(x)", grid=GRID).receipt
    made = holdout.backup(tmp_path / "b.holdfast")
    assert made.receipt == str(receipt)
    assert sorted(made.files) == ["blocks.parquet", "contents.json", "ledger.json"]
    (said,) = made.left_out
    assert "the ledger, in postgres" in said
    assert "pg_dump" in said
    assert check_holdout(tmp_path / "b.holdfast", made.receipt).passed


def test_lost_in_the_middle_of_a_draw_the_price_stays_and_a_retry_is_answered(
    holdout: hf.Holdout,
) -> None:
    def lose(*_: Any) -> None:
        if "reserved" in kinds(holdout):  # and not on the open blocks before
            cut(ledger_of(holdout))

    with pytest.raises(ConnectionResetError, match="same key"):
        holdout.ask("avg(x)", grid=GRID, request="k", progress=lose)
    assert kinds(holdout) == ["created", "reserved"]
    answer = holdout.ask("avg(x)", grid=GRID, request="k")
    assert not answer.cached
    assert kinds(holdout) == ["created", "reserved", "reserved", "recorded"]
    assert holdout.ask("avg(x)", grid=GRID, request="k").value == answer.value
    assert check_holdout(holdout.path).passed


def test_processes_that_ask_the_same_at_once_get_one_answer(holdout: hf.Holdout) -> None:
    program = """
import holdfast as hf
with hf.Holdout.open(sys.argv[1]) as holdout:
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(6):
        answer = holdout.ask(f"avg(x) + 0 * {i}", grid=hf.grid(0, 1, points=21))
        print(answer.receipt, flush=True)
"""
    told = together(*(start(program, str(holdout.path)) for _ in range(3)))
    assert len(set(told)) == 1
    assert kinds(holdout).count("recorded") == 6
    assert kinds(holdout).count("reserved") == 6


def test_a_database_that_cannot_be_reached_ends_the_creation_before_the_data_are_read(
    tmp_path: Path,
) -> None:
    plan = hf.plan(queries=20, grid=21, tail=0.25)
    nowhere = "postgresql://127.0.0.1:1/none"
    with pytest.raises(ConnectionRefusedError):
        hf.Holdout.create(tmp_path / "a", tmp_path / "no-such.parquet", plan, ledger=nowhere)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", PLANS)
def test_a_holdout_tells_the_same_in_either_ledger(
    kind: str, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(kind, golden(tmp_path / "world", kind, capsys, ledger=database))


def test_examples_do_what_the_page_says(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, _, place = database.removeprefix("postgresql://").partition("@")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGUSER", user)
    assert run_page("postgres.md", "db.example/holdouts", place)[0] == 6


def test_neighbours_on_a_board_are_compared(database: str, tmp_path: Path) -> None:
    frame = told_history.table()
    with told_history.create(tmp_path / "a.holdfast", ledger=database) as holdout:
        for name, share in (("a", 0.95), ("b", 0.8)):
            holdout.enter(told_history.said(frame, share), name)
        (pair,) = holdout.leaderboard(neighbours=True).neighbours or ()
        assert pair.told is not None
        with hf.Holdout.open(holdout.path) as other:
            other.enter(told_history.said(frame, 0.85), "c")
            assert len(other.leaderboard(price=True).neighbours or ()) == 2
        assert len([*(holdout.path / "predictions").iterdir()]) == 3
        assert holdout.backup(tmp_path / "copy").left_out
    assert "4 answers found again" in check_holdout(tmp_path / "a.holdfast").findings[-1].detail
