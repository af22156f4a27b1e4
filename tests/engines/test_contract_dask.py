"""The engine contract on a Dask cluster: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engines.dask import DaskEngines
from holdfast.engines.source import Engines, Limits
from tests.engines.contract import Asked, EngineContract
from tests.engines.contract_stores import Stored
from tests.engines.questions import PYTHON, SQL
from tools.cluster import Cluster, dask_cluster

pytestmark = pytest.mark.cluster

SOON = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}  # dead workers, for a task's sake


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
        if asked.layout != "shards, id units":
            pytest.skip("in one layout only")
        self.expect_failure(asked, asked.engines, "kill Dask worker")
