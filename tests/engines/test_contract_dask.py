"""The engine contract on a Dask cluster: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from holdfast.engines.dask.engine import DaskEngines
from holdfast.engines.source import Engines, Limits
from tests.engines.contract import MEAN, Asked, EngineContract
from tests.engines.contract_stores import BAD, BLOCKS, Stored, stored
from tests.engines.questions import PYTHON, SQL
from tests.engines.unscoped import UNSCOPED
from tools.cluster import Cluster, dask_cluster

pytestmark = pytest.mark.cluster

SOON = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}  # dead workers, for a task's sake
UNSCOPED_WORKERS = {
    "DASK_DISTRIBUTED__WORKER__PRELOAD": f"['{UNSCOPED}']",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}
MOST_SECONDS = 150.0  # until blocks that end workers have failed; a worker starts in a few
SCOPES = 6  # the version of Landlock from which on signals can be forbidden


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with dask_cluster(2, nanny=True, environment=SOON) as cluster:
        yield cluster


class DaskContract(EngineContract):
    @classmethod
    def open(cls, given: Stored, limits: Limits, request: pytest.FixtureRequest) -> Engines:
        cluster: Cluster = request.getfixturevalue("cluster")
        return DaskEngines(given.store, limits, cluster.url)


class TestSqlOnDask(DaskContract):
    language = SQL


class TestPythonOnDask(DaskContract):
    language = PYTHON

    def test_who_ends_dask_workers_fails_alone(self, asked: Asked) -> None:
        """As where the kernel lets them: see `unscoped`."""
        if asked.layout != "shards, id units":
            pytest.skip("in one layout only")
        with dask_cluster(2, nanny=True, environment=SOON | UNSCOPED_WORKERS) as cluster:
            ended = workers_ended(asked.given, cluster)
        assert ended >= 4  # two for the sake of a task, and two more for that of its bad block


def test_who_may_not_end_dask_workers_fails_alone(cluster: Cluster, tmp_path: Path) -> None:
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < SCOPES:
        pytest.skip("this kernel cannot forbid it")
    assert workers_ended(stored(tmp_path, "shards, id units"), cluster) == 0


def workers_ended(given: Stored, cluster: Cluster) -> int:
    """How many workers a block has ended, which alone has failed by that, and in time."""
    seen: set[int] = set()

    def look(*_: int) -> None:
        seen.update(cluster.pid(number) for number in range(len(cluster.workers)))

    look()
    began = len(seen)
    engines = DaskEngines(given.store, Limits(workers=1), cluster.url)
    here = Engines(given.whole, Limits(workers=1))
    try:
        start = time.monotonic()
        values = engines.values(PYTHON.hostile("kill Dask worker", given.store), 0, BLOCKS, look)
        assert time.monotonic() < start + MOST_SECONDS
        expected = here.values(PYTHON.estimator(MEAN, given.store), 0, BLOCKS)
    finally:
        engines.close()
        here.close()
    expected[BAD] = np.nan
    np.testing.assert_array_equal(values, expected)
    look()
    return len(seen) - began
