"""Nothing of a ledger is shown before its head is witnessed; clocks that go back.

Otherwise somebody could see an answer, put back the ledger from before it, and have the budget
again that it took.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from holdfast.errors import Damaged, Exhausted, InvalidInput
from holdfast.grids import grid
from holdfast.holdout import custody as access
from holdfast.holdout import tokens
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.ledger import ledger as ledger_table
from holdfast.ledger import witness
from holdfast.report.page import report_html
from holdfast.server.app import create_app
from holdfast.server.settings import Settings
from tests.holdout.plans import direct, mixed
from tests.holdout.tables import sealed, table

GRID = grid(0, 7, step=1)


@contextmanager
def read_only_state() -> Iterator[None]:
    """No receipt can be kept for a while."""

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(witness, "_write", refuse)
        yield


def put_back(path: Path, copy: Path) -> None:
    shutil.rmtree(path)
    shutil.copytree(copy, path)


@pytest.fixture
def unwitnessed(tmp_path: Path) -> Iterator[Holdout]:
    """A holdout with an answer that was recorded and shown to nobody, and its copy from before."""
    with sealed(tmp_path / "h", mixed()) as holdout:
        holdout.ask("avg(x)", grid=GRID)
        shutil.copytree(tmp_path / "h", tmp_path / "before")
        with read_only_state(), pytest.raises(OSError, match="Read-only"):
            holdout.ask("avg(x) + 1", grid=GRID)
        yield holdout


SHOWN: dict[str, Callable[[Holdout], Any]] = {
    "the answer": lambda holdout: holdout.ask("avg(x) + 1", grid=GRID),
    "by its key": lambda holdout: holdout.ask("avg(x) + 1", grid=GRID, request="again"),
    "the transcript": lambda holdout: holdout.transcript(),
    "the status": lambda holdout: holdout.status(),
    "the receipt": lambda holdout: holdout.receipt,
    "a price": lambda holdout: holdout.price("ask", "avg(x) + 2", grid=GRID),
    "what is left": lambda holdout: holdout.questions_left(),
    "the report": report_html,
    "the report of a folder": lambda holdout: report_html(holdout.path),
    "another process": lambda holdout: Holdout.open(holdout.path).close(),
}


@pytest.mark.parametrize("way", SHOWN)
def test_what_is_not_witnessed_is_not_shown(unwitnessed: Holdout, tmp_path: Path, way: str) -> None:
    with read_only_state(), pytest.raises(OSError, match="Read-only"):
        SHOWN[way](unwitnessed)
    SHOWN[way](unwitnessed)  # the folder can be written to again
    unwitnessed.close()
    put_back(tmp_path / "h", tmp_path / "before")
    with pytest.raises(Damaged, match="older copy"):
        Holdout.open(tmp_path / "h")


def test_a_board_is_not_shown_unwitnessed(tmp_path: Path) -> None:
    frame = table(direct().blocks).assign(row=np.arange(direct().blocks))
    predicted = dict(zip(frame["row"].tolist(), frame["y"].tolist(), strict=True))
    with Holdout.create(tmp_path / "h", frame, direct(), ids="row", target="y") as holdout:
        shutil.copytree(tmp_path / "h", tmp_path / "before")
        with read_only_state(), pytest.raises(OSError, match="Read-only"):
            holdout.enter(predicted, name="a")
        with read_only_state(), pytest.raises(OSError, match="Read-only"):
            holdout.leaderboard()
        holdout.leaderboard()
    put_back(tmp_path / "h", tmp_path / "before")
    with pytest.raises(Damaged, match="older copy"):
        Holdout.open(tmp_path / "h")


def test_nor_is_a_refusal_that_says_what_was_told(tmp_path: Path) -> None:
    with Holdout.create(tmp_path / "h", table(400)) as holdout:
        with read_only_state(), pytest.raises(OSError, match="Read-only"):
            holdout.mean("x > 5")
        with read_only_state(), pytest.raises(OSError, match="Read-only"):
            holdout.mean("x > 4", max_level=1)
        with pytest.raises(Exhausted, match="Your limit"):
            holdout.mean("x > 4", max_level=1)


def test_nor_over_http(tmp_path: Path) -> None:
    """As in the audit: 500, and 500 again, and 200 when the receipt can be kept."""
    sealed(tmp_path / "h", mixed()).close()
    app = create_app(Settings(folders=(tmp_path / "h",), slot=0.001, open_to_all=True))
    question = {"estimator": "avg(x)", "grid": "0:7:1"}
    address = "/api/holdouts/h"
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        with read_only_state():
            told = [client.post(f"{address}/ask", json=question) for _ in range(3)]
            told += [client.get(f"{address}/{each}") for each in ("transcript", "status")]
        assert [each.status_code for each in told] == [500] * 5
        assert all("value" not in each.text for each in told)
        answer = client.post(f"{address}/ask", json=question).json()
        assert answer["cached"]


def test_a_known_answer_is_written_down_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sealed(tmp_path / "h", mixed()) as holdout:
        holdout.ask("avg(x)", grid=GRID)
        written: list[object] = []
        monkeypatch.setattr(witness, "_write", lambda *given: written.append(given))
        for _ in range(5):
            assert holdout.ask("avg(x)", grid=GRID).cached
        assert written == []


# Clocks.


class Clock(datetime):
    """A clock that can be set."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + cls.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    for module in (access, tokens, ledger_table):
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(Clock, "ahead", timedelta())
    return Clock


def test_what_has_expired_stays_so_when_the_clock_goes_back(
    tmp_path: Path, clock: type[Clock]
) -> None:
    soon = datetime.now(UTC) + timedelta(hours=12)
    with sealed(tmp_path / "h", mixed()) as holdout:
        grant, token = holdout.access.grant("analyst", expires=soon)
        _, endless = holdout.access.grant("analyst")
        assert holdout.access.identify(token) == grant
        clock.ahead = timedelta(days=2)
        assert holdout.access.identify(token) is None
        holdout.ask("avg(x)", grid=GRID)
        clock.ahead = timedelta(0)
        assert holdout.access.identify(token) is None
        clock.ahead = -timedelta(days=400)
        holdout.ask("avg(x) + 1", grid=GRID)  # a row of then changes nothing
        assert holdout.access.identify(token) is None
        assert grant.id not in holdout.access.holding()
        assert holdout.access.identify(endless) is not None
        with pytest.raises(InvalidInput, match=r"in the future, after .*clock is late"):
            holdout.access.grant("viewer", expires=soon)
    with Holdout.open(tmp_path / "h") as again:
        assert again.access.identify(token) is None


def test_rows_that_go_back_in_time_are_noted(tmp_path: Path, clock: type[Clock]) -> None:
    with sealed(tmp_path / "h", mixed()) as holdout:
        holdout.ask("avg(x)", grid=GRID)
        clock.ahead = -timedelta(seconds=30)  # as another server's may be
        holdout.ask("avg(x) + 1", grid=GRID)
        assert "clock" not in check_holdout(tmp_path / "h").findings[0].detail
        clock.ahead = -timedelta(days=400)
        holdout.ask("avg(x) + 2", grid=GRID)
        dates = [row.at[:10] for row in holdout.journal.ledger.rows()]
    checked = check_holdout(tmp_path / "h")
    assert checked.passed
    chain = checked.findings[0]
    told = f"a clock was set back: row 6, of {dates[5]}, follows one of {dates[2]}, and 1 more"
    assert told in chain.detail
