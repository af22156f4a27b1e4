"""What only a cluster can show: processes that are killed, forks, long questions, far shards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.engines.dask import engine
from holdfast.engines.dask.engine import ClusterConnection, DaskEngines, QuestionTasks
from holdfast.engines.dask.worker import evaluate
from holdfast.engines.python.estimator import local_estimator
from holdfast.engines.source import Limits
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.errors import InvalidInput, Unavailable
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.store.remote import RemoteStore
from tests.engines.contract_stores import BAD, BLOCKS, Stored, stored
from tests.engines.local.loading import FAILURES, IsGone, Loaded, holds_blocks
from tests.engines.questions import PYTHON, QUESTIONS, SQL, Language
from tests.holdout import plans, told_history
from tests.holdout.tables import sealed
from tools.cluster import Cluster, dask_cluster

pytestmark = pytest.mark.cluster

POINTS = hf.grid(3, 7, points=2)


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with dask_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    """Two workers that are alive, whatever a test before has done to others."""
    alive = [each for each in running.workers if each.poll() is None]
    for _ in range(2 - len(alive)):
        running.start_worker()
    return running


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return stored(tmp_path_factory.mktemp("kills"), "shards, id units")


@pytest.fixture
def engines(cluster: Cluster, given: Stored) -> Iterator[DaskEngines]:
    engines = DaskEngines(given.store, Limits(), cluster.url)
    yield engines
    engines.close()


def slowly(frame: Any) -> float:
    time.sleep(0.2)
    return float(frame.y.sum())


def alive(cluster: Cluster) -> list[int]:
    return [number for number, each in enumerate(cluster.workers) if each.poll() is None]


class Once:
    """As progress: does something when the question is under way, once."""

    def __init__(self, what: Callable[[], None]) -> None:
        self._what: Callable[[], None] | None = what
        self._calls = 0

    def __call__(self, done: int, total: int) -> None:
        self._calls += 1
        if self._calls > 3 and self._what is not None:
            what, self._what = self._what, None
            what()

    @property
    def happened(self) -> bool:
        return self._what is None


@pytest.mark.parametrize("everybody", [False, True], ids=["one", "all, and one comes later"])
def test_workers_killed_in_a_question(
    cluster: Cluster, engines: DaskEngines, given: Stored, everybody: bool
) -> None:
    def kill_some() -> None:
        for number in alive(cluster) if everybody else alive(cluster)[:1]:
            cluster.kill(number)
        if everybody:
            cluster.start_worker(wait=False)

    kill = Once(kill_some)
    found = engines.values(local_estimator(slowly), 0, BLOCKS, kill)
    assert kill.happened
    assert found.tolist() == [float(frame.y.sum()) for frame in given.frames]


def test_an_answer_is_paid_once_though_a_worker_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "a.holdfast"
    sealed(path, plans.crowd()).close()

    def ask(frame: Any) -> float:
        time.sleep(0.01)
        return float(frame.x.mean())

    with Holdout.open(path, engine=cluster.url) as holdout:
        kill = Once(lambda: cluster.kill(alive(cluster)[0]))
        answer = holdout.ask(ask, grid=POINTS, request="one", progress=kill)
        assert kill.happened
        assert not answer.cached
        assert holdout.ask(ask, grid=POINTS, request="one").cached
        kinds = [row.kind for row in holdout.journal.ledger.rows()]
        assert kinds == ["created", "reserved", "recorded"]
        assert not holdout.status().sets[0].unsettled
    assert check_holdout(path).passed


class Fails:
    """A model that fails on a share of the rows: those whose x is above a number."""

    classes_ = np.array([0, 1])

    def __init__(self, above: float) -> None:
        self.above = above

    def predict(self, frame: Any) -> Any:
        if (frame["x"] > self.above).any():
            raise RuntimeError("this model has failed")
        return np.zeros(len(frame), int)


def test_a_model_that_fails_is_refused_or_counted_as_on_one_machine(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "a.holdfast"
    sealed(path, plans.direct(), target="y", seed=1).close()
    with Holdout.open(path, engine=cluster.url) as holdout:
        before = holdout.receipt
        with pytest.raises(InvalidInput, match=r"this model has failed.*Nothing was charged"):
            holdout.score(Fails(-np.inf), features=["x"])
        assert holdout.receipt == before
        there = holdout.score(Fails(2.5), metric="error_rate", features=["x"])  # x is about 5
        assert there.low is not None
        assert (there.high, there.reading) == (1, "rule-on-fresh-rows")
        assert there.low > 0.5
        assert "a row on which it fails, or without a target, counts as wrong" in there.promise
    assert check_holdout(path).passed


DRIVER = """
    import sys, time
    import holdfast as hf

    def ask(frame):
        time.sleep(0.02)
        return float(frame.x.mean())

    def tell(done, total):
        print(done, flush=True)

    with hf.Holdout.open(sys.argv[1], engine=sys.argv[2]) as holdout:
        answer = holdout.ask(ask, grid=hf.grid(3, 7, points=2), request="one", progress=tell)
        print(answer.cached, flush=True)
"""


def test_a_driver_killed_in_a_question(cluster: Cluster, tmp_path: Path) -> None:
    path, script = tmp_path / "a.holdfast", tmp_path / "driver.py"
    sealed(path, plans.crowd()).close()
    script.write_text(textwrap.dedent(DRIVER))
    command = [sys.executable, str(script), str(path), cluster.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "0\n"
        driver.kill()
    with Holdout.open(path) as holdout:
        assert [row.kind for row in holdout.journal.ledger.rows()] == ["created", "reserved"]
        assert holdout.status().sets[0].unsettled == 1
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.splitlines()[-1] == "False"
    assert again.stderr == ""
    with Holdout.open(path) as holdout:
        kinds = [row.kind for row in holdout.journal.ledger.rows()]
        assert kinds == ["created", "reserved", "reserved", "recorded"]
        assert holdout.status().sets[0].unsettled == 1  # what was lost stays charged
    assert check_holdout(path).passed


def test_a_question_that_is_taken_back_ends_on_the_workers(cluster: Cluster, given: Stored) -> None:
    class Enough(Exception):
        pass

    def enough() -> None:
        raise Enough

    limits = Limits(seconds=100, block_seconds=100, memory=2**34)
    engines = DaskEngines(given.store, limits, cluster.url)
    endless = SQL.hostile("time", given.store)
    with pytest.raises(Enough):
        engines.values(endless, BAD, BAD + 1, Once(enough))

    def busy() -> bool:
        told = engines.connection.client.run(
            lambda dask_worker: len(dask_worker.state.all_running_tasks)
        )
        return any(told.values())

    began = time.monotonic()
    while busy() and time.monotonic() < began + 50:
        time.sleep(0.1)
    assert not busy()
    engines.close()


def test_a_fork_asks_by_itself(engines: DaskEngines, given: Stored) -> None:
    estimator = sql_estimator("sum(y)", given.store.schema)
    values = engines.values(estimator, 0, BLOCKS)
    child = os.fork()
    if child == 0:
        try:
            same = engines.values(estimator, 0, BLOCKS).tobytes() == values.tobytes()
            os._exit(0 if same else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert engines.values(estimator, 0, BLOCKS).tobytes() == values.tobytes()


def test_a_long_question_comes_in_parts(engines: DaskEngines, given: Stored) -> None:
    many = np.arange(2_000_000.0)  # 16 million bytes, in the function

    def last(frame: Any) -> float:
        return float(many[-1] + len(frame))

    found = engines.values(local_estimator(last), 0, 5)
    assert found.tolist() == [1_999_999.0 + len(frame) for frame in given.frames[:5]]


@pytest.mark.parametrize("language", [SQL, PYTHON], ids=["SQL", "Python"])
def test_shards_that_are_elsewhere(
    cluster: Cluster, given: Stored, tmp_path: Path, language: Language
) -> None:
    location = f"file://{given.store.folder}"
    manifest = replace(given.store.manifest, location=location)
    engines = DaskEngines(RemoteStore(tmp_path, manifest), Limits(), cluster.url)
    engines.verify("kills")
    question = QUESTIONS["median"]
    found = engines.values(language.estimator(question, given.store), 2, BLOCKS)
    by_pandas = [question.by_pandas(frame) for frame in given.frames[2:]]
    np.testing.assert_allclose(found, by_pandas, rtol=1e-12)
    engines.close()


def test_no_scheduler_and_no_worker_are_said(given: Stored) -> None:
    estimator = sql_estimator("sum(y)", given.store.schema)
    with dask_cluster(0) as cluster:
        engines = DaskEngines(given.store, Limits(), f"{cluster.url}?patience=1")
        with pytest.raises(TimeoutError, match="has had no worker for 1 seconds"):
            engines.values(estimator, 0, BLOCKS)
        with pytest.raises(TimeoutError, match="has had no worker for 1 seconds"):
            engines.verify("kills")
        patient = DaskEngines(given.store, Limits(), cluster.url)
        assert cluster.scheduler is not None
        stop = Once(lambda: os.kill(cluster.scheduler.pid, signal.SIGKILL))  # type: ignore[union-attr]
        with pytest.raises(ConnectionError, match="does not answer"):
            patient.values(estimator, 0, BLOCKS, stop)
        gone = f"{cluster.url}?patience=0.5"
        for each in (engines, patient):
            each.close()
    engines = DaskEngines(given.store, Limits(), gone)
    with pytest.raises(ConnectionError, match="There is no Dask scheduler"):
        engines.values(estimator, 0, BLOCKS)
    engines.close()


def test_another_version_is_refused(
    engines: DaskEngines, given: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(engine, "versions", lambda _: (("duckdb", "duckdb 1.0"),))
    with pytest.raises(Unavailable, match=r"duckdb 1\.0 on every worker, as here, but one on"):
        engines.values(sql_estimator("sum(y)", given.store.schema), 0, BLOCKS)


@pytest.fixture
def only_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], float]:
    """A function that imports, when it is called, a module that workers do not have."""
    (tmp_path / "module_of_the_driver.py").write_text("def total(y): return float(y.sum())")
    monkeypatch.syspath_prepend(str(tmp_path))

    def total(frame: Any) -> float:
        from module_of_the_driver import total  # type: ignore[import-not-found, unused-ignore]

        return float(total(frame.y))

    return total


def test_a_function_that_only_runs_here_is_refused(
    engines: DaskEngines, only_here: Callable[[Any], float]
) -> None:
    with pytest.raises(Unavailable, match="No module named 'module_of_the_driver'"):
        engines.admit(local_estimator(only_here))
    assert engines.admit(local_estimator(slowly))


def test_a_worker_that_comes_later_tries_a_function_too(
    cluster: Cluster,
    engines: DaskEngines,
    only_here: Callable[[Any], float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimator = local_estimator(only_here)
    with monkeypatch.context() as nobody:
        nobody.setattr(ClusterConnection, "ask_each_worker", lambda *_, **__: [])
        engines.admit(estimator)
    with pytest.raises(Unavailable, match="No module named 'module_of_the_driver'"):
        engines.values(estimator, 0, BLOCKS)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_function_that_can_no_longer_be_loaded_there_is_an_error(
    failure: str, engines: DaskEngines, given: Stored, tmp_path: Path
) -> None:
    gone = IsGone(tmp_path / "model")
    estimator = local_estimator(Loaded(gone, failure))
    engines.admit(estimator)
    by_pandas = [frame.x.mean() for frame in given.frames]
    np.testing.assert_allclose(engines.values(estimator, 0, BLOCKS), by_pandas, rtol=1e-12)
    gone.file.unlink()
    with pytest.raises(Unavailable, match=r"can no longer be loaded.*stays charged"):
        engines.values(estimator, 0, BLOCKS)
    holding = local_estimator(Loaded(holds_blocks, failure))
    assert np.isnan(engines.values(holding, 0, BLOCKS)).all()


def test_a_control_tells_workers_that_are_killed_by_others(given: Stored) -> None:
    with dask_cluster(1, nanny=True) as cluster:
        engines = DaskEngines(given.store, Limits(), cluster.url)
        asked = engines._question((None,), sums=False)
        tasks = QuestionTasks(engines.connection, asked, evaluate)
        tasks._control(1.0, lambda: None)
        killer = threading.Timer(2.0, cluster.kill, [0])
        killer.start()
        with pytest.raises(ConnectionError, match="loses its workers"):
            tasks._control(5.0, lambda: None)
        killer.join()
        engines.close()


def test_a_scheduler_that_was_stopped_is_not_waited_for(given: Stored) -> None:
    with dask_cluster(1) as cluster:
        engines = DaskEngines(given.store, Limits(), f"{cluster.url}?patience=2")
        assert engines.connection.threads() == 1
        assert cluster.scheduler is not None
        os.kill(cluster.scheduler.pid, signal.SIGSTOP)
        began = time.monotonic()
        try:
            with pytest.raises(ConnectionError, match="does not answer"):
                engines.values(local_estimator(slowly), 0, BLOCKS)
            with pytest.raises(ConnectionError, match="does not answer"):
                engines.admit(local_estimator(slowly))
        finally:
            os.kill(cluster.scheduler.pid, signal.SIGCONT)
        assert time.monotonic() < began + 60
        engines.close()


@pytest.mark.parametrize("language", told_history.LANGUAGES)
def test_what_is_told_on_a_cluster_is_told_here(
    cluster: Cluster, tmp_path: Path, language: str
) -> None:
    """Letter for letter, from shards that different workers hold."""
    with told_history.create(tmp_path / "here.holdfast") as here:
        expected = told_history.history(here, language)
    told_history.create(tmp_path / "there.holdfast").close()
    with Holdout.open(tmp_path / "there.holdfast", engine=cluster.url) as there:
        told_history.in_shards(there, tmp_path / "shards", cluster.url)
        assert told_history.history(there, language) == expected
