"""Tests for src/holdfast/server/jobs.py: progress, cancellation, whose they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.engines.source import Engines
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.server.errors import HttpError
from holdfast.server.jobs import Jobs, Tick
from holdfast.server.settings import Settings
from tests.server.conftest import Study, ended, until

BODY = {"verb": "ask", "estimator": "avg(x)", "grid": "0:7:1"}


def test_a_cancelled_question_stays_paid(
    study: Study, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def endless(*given: Any) -> Any:
        progress: Callable[[int, int], None] = given[-1]
        while True:  # as an evaluation that never ends, until its progress raises
            begun.set()
            progress(3, 10)
            time.sleep(0.01)

    with monkeypatch.context() as patch:
        patch.setattr(Engines, "values", endless)
        job = study.post("jobs", json=BODY).json()
        place = f"jobs/{job['id']}"
        assert begun.wait(120)
        until(lambda: study.get(place).json()["progress"] == 0.9)
        assert [each["id"] for each in study.get("jobs", "custodian").json()] == [job["id"]]
        assert study.send("DELETE", place).json()["state"] == "cancelled"
    status = study.get("status").json()
    assert status["answers"] == 0
    assert status["sets"][0]["unsettled"] == 1
    assert status["sets"][0]["spent"] > 0
    assert study.post("ask", json={**BODY, "verb": None}).status_code == 400  # `verb` is for jobs
    body = {name: value for name, value in BODY.items() if name != "verb"}
    assert study.post("ask", json=body).json()["price"] > 0
    assert study.get(place).json()["state"] == "cancelled"
    assert check_holdout(folder).passed


def test_a_job_that_cannot_be_paid_says_so(folder: Path, study: Study) -> None:
    with Holdout.open(folder) as holdout:
        _, small = holdout.access.grant("analyst", quota=1e-6)
    place = f"jobs/{study.post('jobs', small, json=BODY).json()['id']}"
    told = ended(lambda: study.get(place, small).json())
    assert (told["state"], told["error"]["kind"]) == ("failed", "exhausted")
    assert study.get(place).status_code == 404


def test_a_bad_question_is_no_job(study: Study) -> None:
    assert study.post("jobs", json={**BODY, "estimator": "avg(nothing)"}).status_code == 400
    assert study.get("jobs").json() == []
    malformed = study.post("jobs", json={**BODY, "protocol": 7}).json()["error"]
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


def test_a_cancelled_job_ends_even_if_it_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.jobs._MOST", 2)
    begun, go = threading.Event(), threading.Event()
    jobs = Jobs(Settings(folders=(tmp_path,), state=tmp_path / "state"), threading.Event())

    def work(tick: Tick) -> dict[str, Any]:
        begun.set()
        go.wait()
        for _ in range(1_000):
            tick(None)
            time.sleep(0.005)
        return {"value": 1}

    job = jobs.start("h", "ann", "ask", "q", "ann/1", work)
    begun.wait()
    jobs.cancel(job)
    for number in range(5):
        done = jobs.start("h", "eve", "ask", "q", f"eve/{number}", lambda _: {"value": 1})
        until(lambda done=done: jobs.get("h", done.id, "eve").state == "done")  # type: ignore[misc]
    with pytest.raises(HttpError, match="no such job"):
        jobs.get("h", job.id, "ann")
    go.set()
    assert jobs.end(3.0)
    assert [each.verb for each in jobs.all("h", "ann")] == []
    jobs.close()
