"""Tests for the schedule: when an answer leaves follows from the question, not from the data.

The clock is the test's: an evaluation takes as long as the test says, and whoever waits moves the
clock on. So every moment is exact, and nothing here depends on the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

from holdfast.engines.source import Limits
from holdfast.engines.sql.engine import SqlEngine
from holdfast.errors import InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.server import schedule
from holdfast.server.app import create_app
from holdfast.server.jobs import StoredJob
from holdfast.server.schedule import Schedule, slot_end
from holdfast.server.settings import Settings
from tests.engines.sql.test_costs import sines
from tests.holdout.plans import crowd
from tests.server.conftest import FAST, Study, made, tokens_of

SLOT = 0.0625  # a power of two: sums of it are exact
EASY = {"estimator": "avg(x)", "grid": "0:7:7"}
CLOCKED = ("holdfast.server.schedule", "holdfast.server.middleware", "holdfast.server.jobs")


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
        self.facts: list[dict[str, Any]] = []
        fake = SimpleNamespace(monotonic=clock.monotonic, time=clock.time)
        for module in CLOCKED:
            patch.setattr(f"{module}.time", fake)
        patch.setattr("holdfast.server.middleware.log_request", self.facts.append)
        self.costs: float | None = 0.0
        patch.setattr(schedule, "seconds_at_worst", lambda *_: self.costs)
        patch.setattr(schedule, "_AROUND", 0.0)
        original = SqlEngine.values

        def values(engine: SqlEngine, *words: Any, progress: Any = None, **more: Any) -> Any:
            if progress is not None:
                progress(3, 10)
            clock.now += self.takes
            if self.fails:
                raise RuntimeError("it depends on the data")
            return original(engine, *words, **more)

        patch.setattr(SqlEngine, "values", values)
        app = create_app(Settings(folders=(path,), **{**FAST, "slot": SLOT}))  # type: ignore[arg-type]
        self.service = app.state.service
        self.service._closing.wait = clock.wait
        self.client = TestClient(app, base_url="http://127.0.0.1")
        self.study = Study(self.client, tokens_of(path))
        self._questions = iter(range(10**6))

    def ask(self, where: str = "ask", **more: Any) -> Any:
        """A new question."""
        body = {"estimator": f"avg(x) + 0 * {next(self._questions)}", "grid": "0:7:7", **more}
        return self.study.post(where, json=body)

    def job(self, estimator: str) -> str:
        """A job about it; its place, once it has ended."""
        begun = self.study.post("jobs", json={"verb": "ask", **EASY, "estimator": estimator}).json()
        for running in tuple(self.service.jobs._running):
            running.result(20)
        return f"jobs/{begun['id']}"

    def seconds(self) -> float:
        """How long the last request took, by the server's own log."""
        return float(self.facts[-1]["seconds"])

    def late(self) -> int:
        """Answers that missed their slots."""
        return int(self.service.counts._late.labels(self.path.name)._value.get())

    def rows(self) -> int:
        """Rows in the ledger."""
        return len(self.service.holdouts.get(self.path.name).holdout.journal.ledger.rows())

    def recorded(self) -> int:
        """Answers in the ledger."""
        with self.service.holdouts.get(self.path.name).holdout.journal.state() as state:
            return int(state.answers)


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
    only.takes, only.fails, only.costs = 0.0, False, 0.0
    only.clock.waited = lambda: None
    return only


def test_the_end_of_a_slot_is_the_least_power_of_two() -> None:
    for slot in (0.001, 0.05, SLOT, 1.0):
        for elapsed in [0.0, *(slot * k / 64 for k in range(1, 640))]:
            end = slot_end(elapsed, slot)
            assert math.log2(end / slot) == round(math.log2(end / slot))
            assert elapsed <= end
            assert end == slot or end / 2 < elapsed


def test_the_slot_follows_from_the_question_whatever_the_rows_take(place: Place) -> None:
    for place.fails in (False, True):
        for place.costs, slots in ((0.0, 1), (SLOT, 1), (0.07, 2), (0.2, 4), (0.9, 16)):
            seen = set()
            for share in (0.0, 0.3, 1.0):  # of what it would take on the worst rows
                place.takes = share * place.costs
                response = place.ask()
                seen.add((response.status_code, place.seconds()))
            assert seen == {(500 if place.fails else 200, slots * SLOT)}
            assert place.late() == 0


def test_an_answer_that_misses_its_slot_waits_for_the_next_and_is_counted(place: Place) -> None:
    before = place.late()
    for count, (place.takes, slots) in enumerate(((0.07, 2), (0.2, 4), (0.9, 16)), before + 1):
        place.ask()
        assert place.seconds() == slots * SLOT
        assert place.late() == count
    place.costs = None  # a custodian's own metric: nobody can say what it takes
    place.ask()
    assert place.late() == before + 3


def test_what_could_take_too_long_is_refused_free(place: Place) -> None:
    place.costs = 31.0
    rows, place.takes = place.rows(), 0.0
    for where, more in (("ask", {}), ("price", {"verb": "ask"}), ("jobs", {"verb": "ask"})):
        refused = place.ask(where, **more)
        assert (refused.status_code, refused.json()["error"]["parameter"]) == (400, "question")
        assert "Nothing was charged" in refused.json()["error"]["message"]
    assert place.rows() == rows


def test_a_recorded_answer_is_free_however_long_it_could_take(place: Place) -> None:
    assert place.ask(estimator="avg(x) + 5").status_code == 200
    place.costs = 31.0
    assert place.ask(estimator="avg(x) + 5").json()["cached"]


def test_nobody_sees_when_anothers_evaluation_had_ended(place: Place) -> None:
    """A short question behind a long one begins when that one must have ended, not when it has."""
    served = place.service.holdouts.get("study")
    for took in (0.0, 0.5, 0.9):
        place.clock.now += 100
        served.schedule.enter(0.9)
        place.clock.now += took
        began = place.clock.now
        place.costs, place.takes = 0.001, 0.0
        place.ask()
        assert place.clock.now - began == slot_end(0.9 - took + 0.001, SLOT)


def test_short_questions_share_a_round_and_long_ones_do_not(place: Place) -> None:
    rounds, now = Schedule(), place.clock.now
    first, others = rounds.enter(0.01), [rounds.enter(0.01) for _ in range(17)]
    assert (first.start, first.end) == (now, now + 0.01)
    assert len({id(each) for each in others}) == 2  # sixteen, and one more
    assert others[0].start == first.end
    assert others[0].end == pytest.approx(now + 0.17)
    long, after = rounds.enter(0.5), rounds.enter(0.01)
    assert long.start == others[-1].end
    assert after.start == long.end
    assert rounds.behind == pytest.approx(after.end - now)


def test_whoever_would_wait_for_too_long_is_told_before_anything_is_charged(place: Place) -> None:
    served, rows = place.service.holdouts.get("study"), place.rows()
    place.clock.now += 1000
    for _ in range(3):
        served.schedule.enter(29.0)
    refused = place.ask()
    assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "busy")
    assert place.rows() == rows
    place.clock.now += 1000


def test_nothing_is_recorded_before_the_end_of_the_slot(place: Place) -> None:
    seen = []
    place.clock.waited = lambda: seen.append(place.recorded())
    before = place.recorded()
    for count, place.takes in enumerate((0.01, 0.06), before):
        place.ask()
        assert seen.pop() == count  # whoever watches the ledger sees the answer with the slot's end
        assert place.recorded() == count + 1
    assert seen == []


def test_steps_of_one_question_are_paid_at_the_ends_of_slots(place: Place) -> None:
    """A wrong guess is corrected: what that reserves must not tell how long the guess took."""
    seen: list[tuple[float, int]] = []
    journal, begun = place.service.holdouts.get("study").holdout.journal, place.clock.now
    place.clock.waited = lambda: seen.append((place.clock.now - begun, len(journal.ledger.rows())))
    place.takes = 0.01
    rows = len(journal.ledger.rows())
    told = place.ask("correct", guess=-50).json()
    assert told["verdict"]["verdict"] == "not compatible"
    assert [count - rows for _, count in seen] == [1, 2]
    assert place.seconds() == 2 * SLOT


def test_what_draws_nothing_does_not_wait(place: Place) -> None:
    waits: list[float] = []
    place.clock.waited = lambda: waits.append(place.clock.now)
    assert place.ask(**EASY).status_code == 200
    again, wrong = place.ask(**EASY), place.ask(estimator="avg(nothing)")
    assert (again.json()["cached"], wrong.status_code) == (True, 400)
    assert len(waits) == 1  # a recorded answer, an error of the question: neither has seen the data


def test_a_job_is_done_at_the_end_of_its_slot(place: Place) -> None:
    seen: list[list[str]] = []
    jobs = place.service.jobs
    place.clock.waited = lambda: seen.append([job.state for job in jobs.all("study", None)])
    for number, place.takes in enumerate((0.001, 0.05, 0.06)):
        told = place.study.get(place.job(f"avg(x + {number})")).json()
        assert told["state"] == "done"
        assert seen.pop()[0] == "running"
    assert seen == []


def test_progress_is_that_of_the_time_which_is_planned(place: Place) -> None:
    """How many blocks are done by then depends on the data, and is not told."""
    told: list[tuple[float, float | None]] = []
    jobs = place.service.jobs
    write, start = jobs._write, place.clock.now

    def watched(job: StoredJob) -> None:
        write(job)
        if job.planned is not None and job.state == "running":
            for share in (0.0, 0.25, 0.5, 0.95, 3.0):
                place.clock.now = start + share * SLOT
                told.append((share, job.to_dict()["progress"]))
            place.clock.now = start

    jobs._write = watched
    try:
        place.job("avg(x) + 99")
    finally:
        jobs._write = write
    assert told == [(0.0, 0.0), (0.25, 0.2), (0.5, 0.5), (0.95, 0.9), (3.0, 0.9)]


def test_a_holdout_in_this_process_is_not_paced(tmp_path: Path) -> None:
    made(tmp_path / "h")
    with Holdout.open(tmp_path / "h") as holdout:
        assert holdout._pace is None


# The tables of the audit.


def table(spread: bool) -> pd.DataFrame:
    """Minutes of very different shares above any threshold, in tables of one shape."""
    rng, rows = np.random.default_rng(7), crowd().blocks
    minutes = rng.exponential(10, rows) if spread else np.where(rng.random(rows) < 0.03, 50.0, 0.0)
    return pd.DataFrame({"minutes": minutes})


def test_a_share_of_rows_cannot_be_read_off_the_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASE evaluates a branch for the rows that take it: the slot is for all rows in either table.

    The tables of the audit: minutes > 3 holds for three of four rows in one, for 3 % in the other.
    """
    planned: dict[str, list[float]] = {}
    begin = schedule.Pacing.begin

    def watched(pacing: schedule.Pacing) -> None:
        begin(pacing)
        assert pacing.planned is not None
        assert pacing._cost is not None
        start, end = pacing.planned
        name = pacing._holdout.path.name
        planned.setdefault(name, []).append(round(math.log2((end - start) / SLOT)))

    monkeypatch.setattr(schedule.Pacing, "begin", watched)
    folders = [tmp_path / "ta", tmp_path / "tb"]
    for path, spread in zip(folders, (True, False), strict=True):
        Holdout.create(path, table(spread), crowd()).close()
    settings = Settings(folders=tuple(folders), **{**FAST, "slot": SLOT})  # type: ignore[arg-type]
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        for threshold in (15, 7, 3):
            for count in (1, 10, 70):
                text = f"avg(CASE WHEN minutes > {threshold} THEN {sines(count)} ELSE 0 END)"
                for path in folders:
                    body = {"estimator": text, "grid": "-90:90:30", "anyway": True}
                    told = client.post(f"/api/holdouts/{path.name}/ask", json=body)
                    assert told.status_code == 200, told.text
    assert planned["ta"] == planned["tb"]
    assert len(planned["ta"]) == 9


def test_what_could_take_too_long_on_the_open_part_is_not_asked_of_it(tmp_path: Path) -> None:
    path = tmp_path / "h"
    rows = pd.DataFrame({"x": np.arange(3 * crowd().blocks) % 7})
    Holdout.create(path, rows, crowd(), open_fraction=0.3, block_units=2).close()
    with Holdout.open(path) as holdout:
        assert holdout.price("ask", "avg(x)").grid is not None
    with (
        Holdout.open(path, limits=Limits(open_seconds=1e-6)) as holdout,
        pytest.raises(InvalidInput, match="grid"),
    ):
        holdout.price("ask", "avg(x)")


@pytest.mark.parametrize(("open_fraction", "planned"), [(0.0, 16), (0.25, 4)])
def test_how_many_rows_units_have_is_not_planned_for(
    open_fraction: float, planned: int, tmp_path: Path
) -> None:
    """Prices are free: what a question takes at most must not tell how many rows are sealed."""
    units, opened = np.arange(400), set[float]()
    for place, rows in enumerate((2, 1, 40)):
        # The units that the first one opens, which all others open too, have two rows each.
        many = [2 if unit in opened else rows for unit in units]
        rows_of = np.repeat(units, many)
        with Holdout.create(
            tmp_path / f"{place}.holdfast",
            {"id": rows_of, "x": rows_of.astype(float)},
            crowd(),
            unit="id",
            open_fraction=open_fraction,
            seed=3,
            new_budget="the same units",
        ) as holdout:
            found = holdout.open_table().column("x").to_pylist() if open_fraction else []
            sealed = holdout.spec.manifest.blocks * holdout.spec.manifest.block_units
            assert not opened or set(found) == opened
            assert holdout.planned_rows == planned * sealed
        opened = set(found)
