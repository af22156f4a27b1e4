"""Stores and engines that the SQL tests share; only read, and no question of theirs fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.store.blocks import BlockStore
from tests.engines.sql.tables import hostile_store, plain_store


@pytest.fixture(scope="package")
def plain(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    return plain_store(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    return hostile_store(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="package")
def engine(plain: BlockStore) -> Iterator[SqlEngine]:
    engine = SqlEngine(plain, threads=4)
    yield engine
    engine.close()


@pytest.fixture(scope="package")
def hostile_engine(hostile: BlockStore) -> Iterator[SqlEngine]:
    engine = SqlEngine(hostile, threads=1)
    yield engine
    engine.close()
