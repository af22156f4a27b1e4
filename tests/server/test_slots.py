"""Tests for slots: what is seen of a question's time is which power of two, whatever happened.

The clock is the test's: an evaluation takes as long as the test says, and whoever waits moves the
clock on. So every moment is exact, and nothing here depends on the machine.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from holdfast.engines.sql.engine import SqlEngine
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.server.app import create_app
from holdfast.server.jobs import Job
from holdfast.server.scheduler import Ending, pace_of, slot_end
from holdfast.server.settings import Settings
from tests.server.conftest import FAST, auth, made, tokens_of

SLOT = 0.0625  # a power of two: sums of it are exact
CLOCKED = ("holdfast.server.scheduler", "holdfast.server.middleware", "holdfast.server.jobs")


class Clock:
    """A clock that stands still until someone waits or works."""

    def __init__(self) -> None:
        self.now = 1024.0
        self.waited: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        """As the event that a closing server sets, which is not set here."""
        self.waited()
        self.now += seconds
        return False


class Place:
    """A server whose evaluations take as long as `takes` says."""

    def __init__(self, path: Path, clock: Clock, patch: pytest.MonkeyPatch) -> None:
        self.clock, self.path = clock, path
        self.takes: float = 0.0
        self.fails = False
        self.progress: list[tuple[float, int]] = []
        self.facts: list[dict[str, Any]] = []
        fake = SimpleNamespace(monotonic=clock.monotonic, time=clock.time)
        for module in (*CLOCKED, "holdfast.holdout.sessions"):
            patch.setattr(f"{module}.time", fake)
        patch.setattr("holdfast.server.app.log_request", self.facts.append)
        original = SqlEngine.values

        def values(engine: SqlEngine, *words: Any, progress: Any = None, **more: Any) -> Any:
            for seconds, done in self.progress:
                clock.now += seconds
                progress(done, 10)
            clock.now += self.takes
            if self.fails:
                raise RuntimeError("it depends on the data")
            return original(engine, *words, **more)

        patch.setattr(SqlEngine, "values", values)
        self.tokens = tokens_of(path)
        app = create_app(Settings(folders=(path,), **{**FAST, "slot": SLOT}))  # type: ignore[arg-type]
        self.service = app.state.service
        closing: Any = clock
        self.service.doorman._pace = pace_of(SLOT, closing)
        self.client = TestClient(app, base_url="http://127.0.0.1")
        self._questions = iter(range(10**6))

    def ask(self, verb: str = "ask", **more: Any) -> Any:
        """A new question."""
        body = {"estimator": f"avg(x) + 0 * {next(self._questions)}", "grid": "0:7:7", **more}
        place, headers = f"/api/holdouts/{self.path.name}", auth(self.tokens["analyst"])
        return self.client.post(f"{place}/{verb}", json=body, headers=headers)

    def seconds(self) -> float:
        """How long the last request took, by the server's own log."""
        return float(self.facts[-1]["seconds"])

    def recorded(self) -> int:
        """Answers in the ledger."""
        with self.service.hosts.get(self.path.name).holdout.door.books() as books:
            return int(books.answers)


@pytest.fixture(scope="module")
def only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    path = made(tmp_path_factory.mktemp("slots") / "study")
    with pytest.MonkeyPatch.context() as patch:
        there = Place(path, Clock(), patch)
        with there.client:
            yield there
    assert check_holdout(path).passed


@pytest.fixture
def place(only: Place) -> Place:
    """The server, as quick as can be."""
    only.takes, only.fails, only.progress = 0.0, False, []
    only.clock.waited = lambda: None
    return only


def test_the_end_of_a_slot_is_the_least_power_of_two() -> None:
    for slot in (0.001, 0.05, SLOT, 1.0):
        for elapsed in [0.0, *(slot * k / 64 for k in range(1, 640))]:
            end = slot_end(elapsed, slot)
            assert math.log2(end / slot) == round(math.log2(end / slot))
            assert elapsed <= end
            assert end == slot or end / 2 < elapsed


SAME = {1: (0.0, 0.03, SLOT), 2: (0.0626, 0.1, 0.125), 4: (0.13, 0.2, 0.25), 16: (0.9, 1.0)}


def test_times_in_one_slot_look_the_same(place: Place) -> None:
    for place.fails in (False, True):
        for slots, times in SAME.items():
            seen = set()
            for place.takes in times:
                response = place.ask()
                seen.add((response.status_code, place.seconds()))
            assert seen == {(500 if place.fails else 200, slots * SLOT)}


def test_nothing_is_recorded_before_the_end_of_the_slot(place: Place) -> None:
    seen = []
    place.clock.waited = lambda: seen.append(place.recorded())
    before = place.recorded()
    for count, place.takes in enumerate((0.01, 0.09), before):
        place.ask()
        assert seen.pop() == count  # whoever watches the ledger sees the answer with the slot's end
        assert place.recorded() == count + 1
    assert seen == []


def test_steps_of_one_question_are_paid_at_the_ends_of_slots(place: Place) -> None:
    """A wrong guess is corrected: what that reserves must not tell how long the guess took."""
    seen: list[tuple[float, int]] = []
    door, begun = place.service.hosts.get("study").holdout.door, place.clock.now
    place.clock.waited = lambda: seen.append((place.clock.now - begun, len(door.ledger.rows())))
    place.takes = 0.01
    rows = len(door.ledger.rows())
    told = place.ask("correct", guess=-50).json()
    assert told["verdict"]["verdict"] == "not compatible"
    assert [count - rows for _, count in seen] == [1, 2]
    assert place.seconds() == 2 * SLOT


def test_what_draws_nothing_does_not_wait(place: Place) -> None:
    waits: list[float] = []
    place.clock.waited = lambda: waits.append(place.clock.now)
    body = {"estimator": "avg(x)", "grid": "0:7:7"}
    assert place.ask(**body).status_code == 200
    again, wrong = place.ask(**body), place.ask(estimator="avg(nothing)")
    assert (again.json()["cached"], wrong.status_code) == (True, 400)
    assert len(waits) == 1  # a recorded answer, an error of the question: neither has seen the data


def test_a_job_is_done_at_the_end_of_its_slot(place: Place) -> None:
    headers, seen = auth(place.tokens["analyst"]), []
    jobs = f"/api/holdouts/{place.path.name}/jobs"
    place.clock.waited = lambda: seen.append(
        [job.state for job in place.service.jobs.all("study", None)]
    )
    for number, place.takes in enumerate((0.001, 0.05, 0.1)):
        body = {"verb": "ask", "estimator": f"avg(x + {number})", "grid": "0:7:7"}
        job = place.client.post(jobs, json=body, headers=headers).json()["id"]
        for running in tuple(place.service.jobs._running):
            running.result(20)
        told = place.client.get(f"{jobs}/{job}", headers=headers).json()
        assert told["state"] == "done"
        assert seen.pop()[0] == "running"
    assert seen == []


def test_progress_is_told_at_the_ends_of_slots(place: Place) -> None:
    """Whatever moment a block was done at, within a slot nothing changes."""
    told: list[tuple[float, float | None]] = []
    jobs = place.service.jobs
    write, start = jobs._write, place.clock.now

    def watched(job: Job) -> None:
        write(job)
        if job.state == "running":
            for moment in (place.clock.now, start + 1.5 * SLOT, start + 2 * SLOT, start + 4 * SLOT):
                if moment >= place.clock.now:
                    place.clock.now, kept = moment, place.clock.now
                    told.append(((moment - start) / SLOT, job.to_dict()["progress"]))
                    place.clock.now = kept

    jobs._write = watched
    place.progress = [(0.01, 2), (0.03, 5), (SLOT, 7)]
    headers = auth(place.tokens["analyst"])
    body = {"verb": "ask", "estimator": "avg(x) + 99", "grid": "0:7:7"}
    place.client.post("/api/holdouts/study/jobs", json=body, headers=headers)
    for running in tuple(jobs._running):
        running.result(20)
    assert {share for moment, share in told if moment < 1} == {0.0}
    assert {share for moment, share in told if moment < 2} <= {0.0, 0.2, 0.5}
    assert {share for moment, share in told if moment >= 2} & {0.7, 1.0}


def test_a_holdout_in_this_process_is_not_paced(tmp_path: Path) -> None:
    made(tmp_path / "h")
    with Holdout.open(tmp_path / "h") as holdout:
        assert holdout._pace is None


def test_the_end_lets_everyone_go() -> None:
    ending = Ending()
    ending.wait(0.0)
    assert not ending.is_set()
    waiting = [threading.Thread(target=ending.wait, args=(600.0,)) for _ in range(8)]
    for each in waiting:
        each.start()
    ending.set()
    ending.set()
    for each in waiting:
        each.join(120)
    assert not any(each.is_alive() for each in waiting)
    ending.wait(600.0)  # nobody waits after the end
    assert ending.is_set()
