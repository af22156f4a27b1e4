"""A new protocol is one module (`toy.py`) and one registry line: everything else follows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

from holdfast.cli.app import run
from holdfast.errors import Exhausted
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.planning.joint import plans_for, read_mix
from holdfast.protocols.registry import PROTOCOLS
from holdfast.server.app import create_app
from holdfast.server.settings import Settings
from tests.protocols.toy import Highest, highest_plan
from tests.protocols.worlds import fresh, source, value

ROWS = pd.DataFrame({"x": (np.arange(400) * 7 % 400 + 0.5) / 400})


@pytest.fixture(autouse=True)
def _registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    PROTOCOLS.append(Highest)
    yield
    PROTOCOLS.remove(Highest)


def check_said(answer: dict[str, Any], left: float) -> None:
    said = f"at least 50 in 100 fresh blocks give {answer['value']:g} or less"
    found = [answer[name] for name in ("protocol", "price", "budget_left", "promise")]
    assert found[:3] == ["toy", 1.0, left]
    assert found[3].startswith(said)  # over HTTP with what it assumes of time


def test_in_memory() -> None:
    (plan,) = plans_for(read_mix("toy=5", None))
    assert plan == highest_plan(5)
    asked = fresh(plan, source(plan.blocks))
    check_said(asked.ask(value).to_dict(), 4.0)
    assert asked.buys()["toy"].questions == 4


def test_in_python(tmp_path: Path) -> None:
    with Holdout.create(tmp_path / "study", ROWS, highest_plan(5)) as holdout:
        answer = holdout.ask("avg(x)")
        check_said(answer.to_dict(), 4.0)
        assert answer.certified
        assert holdout.ask("avg(x)").cached
        for number in range(4):
            holdout.ask(f"avg(x) + {number + 1}")
        with pytest.raises(Exhausted):
            holdout.ask("avg(x) + 9")
        assert holdout.price("ask", "max(x)") is not None
        assert holdout.status().to_dict()
    with Holdout.open(tmp_path / "study") as again:
        assert again.ask("avg(x)").value == answer.value
    assert check_holdout(tmp_path / "study").passed


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    study = str(tmp_path / "study")
    create = ["create", study, "--data", str(tmp_path / "rows.csv"), "--protocols", "toy=5"]
    assert run(create) == 0
    capsys.readouterr()
    assert run(["ask", study, "avg(x)", "--json"]) == 0
    check_said(json.loads(capsys.readouterr().out), 4.0)
    assert run(["ask", study, "max(x)"]) == 0
    assert "fresh blocks give" in " ".join(capsys.readouterr().out.split())
    assert run(["status", study]) == 0
    assert run(["check", study]) == 0
    assert run(["report", study, "--output", str(tmp_path / "report.html")]) == 0


def test_over_http(tmp_path: Path) -> None:
    Holdout.create(tmp_path / "study", ROWS, highest_plan(5)).close()
    settings = Settings(folders=(tmp_path / "study",), slot=0.001, rate=1e6, burst=10**6)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        place = "/api/holdouts/study"
        reply = client.post(f"{place}/ask", json={"estimator": "avg(x)"})
        assert reply.status_code == 200
        check_said(reply.json(), 4.0)
        again = client.post(f"{place}/ask", json={"estimator": "avg(x)"})
        assert again.json()["cached"]
        status = client.get(f"{place}/status")
        assert status.status_code == 200
        assert client.get(f"{place}/transcript").json()
    assert check_holdout(tmp_path / "study").passed


def test_what_was_not_drawn_fails_the_check(tmp_path: Path) -> None:
    """`check` proves a new protocol too: its plan, its charges, and all that it says."""
    with Holdout.create(tmp_path / "study", ROWS, highest_plan(5)) as holdout:
        holdout.ask("avg(x)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Highest, "worst", lambda self, question: ())
        assert not check_holdout(tmp_path / "study").passed
