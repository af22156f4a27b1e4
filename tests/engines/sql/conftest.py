"""Stores and engines that the SQL tests share; every process ends with its module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.store.blocks import BlockStore
from tests.engines.sql.tables import hostile_store, plain_store


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    return plain_store(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    return hostile_store(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def engine(plain: BlockStore) -> Iterator[SqlEngine]:
    engine = SqlEngine(plain, threads=2)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def hostile_engine(hostile: BlockStore) -> Iterator[SqlEngine]:
    engine = SqlEngine(hostile, threads=1)
    yield engine
    engine.close()
