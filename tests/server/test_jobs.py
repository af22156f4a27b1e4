"""Tests for src/holdfast/server/jobs.py: progress, cancellation, whose they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from holdfast.engines.source import Engines
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.server.errors import HttpError
from holdfast.server.jobs import Jobs, Tick
from holdfast.server.settings import Settings
from tests.server.conftest import auth

BODY = {"verb": "ask", "estimator": "avg(x)", "grid": "0:7:1"}
PLACE = "/api/holdouts/study/jobs"


def until(ready: Callable[[], bool]) -> None:
    """Wait for something that must happen."""
    for _ in range(12_000):
        if ready():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen within two minutes")


def test_a_cancelled_question_stays_paid(
    client: TestClient, tokens: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    original = Engines.values

    def endless(*given: Any) -> Any:
        progress: Callable[[int, int], None] = given[-1]
        while True:  # as an evaluation that never ends, until its progress raises
            begun.set()
            progress(3, 10)
            time.sleep(0.01)

    monkeypatch.setattr(Engines, "values", endless)
    headers = auth(tokens["analyst"])
    job = client.post(PLACE, json=BODY, headers=headers).json()
    assert begun.wait(120)
    until(lambda: client.get(f"{PLACE}/{job['id']}", headers=headers).json()["progress"] == 0.9)
    other = auth(tokens["custodian"])
    assert [each["id"] for each in client.get(PLACE, headers=other).json()] == [job["id"]]
    ended = client.delete(f"{PLACE}/{job['id']}", headers=headers).json()
    assert ended["state"] == "cancelled"
    monkeypatch.setattr(Engines, "values", original)
    status = client.get("/api/holdouts/study/status", headers=headers).json()
    assert status["answers"] == 0
    assert status["sets"][0]["unsettled"] == 1
    assert status["sets"][0]["spent"] > 0
    answer = client.post("/api/holdouts/study/ask", json={**BODY} | {"verb": None}, headers=headers)
    assert answer.status_code == 400  # `verb` is for jobs
    body = {name: value for name, value in BODY.items() if name != "verb"}
    assert client.post("/api/holdouts/study/ask", json=body, headers=headers).json()["price"] > 0
    assert client.get(f"{PLACE}/{job['id']}", headers=headers).json()["state"] == "cancelled"
    assert check_holdout(folder).passed


def test_a_job_that_cannot_be_paid_says_so(
    folder: Path, tokens: dict[str, str], served: Callable[..., TestClient]
) -> None:
    with Holdout.open(folder) as holdout:
        _, small = holdout.access.grant("analyst", quota=1e-6)
    client = served(folder)
    job = client.post(PLACE, json=BODY, headers=auth(small)).json()
    place = f"{PLACE}/{job['id']}"
    until(lambda: client.get(place, headers=auth(small)).json()["state"] == "failed")
    assert client.get(place, headers=auth(small)).json()["error"]["kind"] == "exhausted"
    assert client.get(place, headers=auth(tokens["analyst"])).status_code == 404


def test_a_bad_question_is_no_job(client: TestClient, tokens: dict[str, str]) -> None:
    headers = auth(tokens["analyst"])
    wrong = client.post(PLACE, json={**BODY, "estimator": "avg(nothing)"}, headers=headers)
    assert wrong.status_code == 400
    assert client.get(PLACE, headers=headers).json() == []
    malformed = client.post(PLACE, json={**BODY, "protocol": 7}, headers=headers).json()["error"]
    assert malformed["parameter"] == "protocol"


def test_jobs_of_one_asker_are_limited_and_old_ones_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.jobs._MOST", 6)
    monkeypatch.setattr("holdfast.server.jobs._MOST_OF_ONE", 2)
    closing = threading.Event()
    jobs = Jobs(Settings(folders=(tmp_path,), state=tmp_path / "state"), closing)

    def work(tick: Tick) -> dict[str, Any]:
        while True:
            tick(None)
            time.sleep(0.005)

    first = jobs.start("h", "ann", "ask", "q", "ann/1", work)
    assert jobs.start("h", "ann", "ask", "q", "ann/1", work).id == first.id
    jobs.start("h", "ann", "ask", "q", "ann/2", work)
    with pytest.raises(HttpError, match="unfinished"):
        jobs.start("h", "ann", "ask", "q", "ann/3", work)
    jobs.start("h", "bob", "ask", "q", "bob/1", work)
    for job in jobs.all("h", None):
        jobs.cancel(job)
    for number in range(10):
        done = jobs.start("h", "eve", "ask", "q", f"eve/{number}", lambda _: {"value": 1})
        until(lambda done=done: jobs.get("h", done.id, "eve").state == "done")  # type: ignore[misc]
    assert len(jobs.all("h", None)) == 6
    assert jobs.end(5.0)
    jobs.close()
