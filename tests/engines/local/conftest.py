"""Two small stores and an engine for each, shared by the tests of admission."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engines.python.engine import LocalEngine
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import BLOCKS, UNITS, make_store, mixed_rows


@pytest.fixture(scope="package")
def store(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    return make_store(tmp_path_factory.mktemp("sealed"), mixed_rows(BLOCKS * UNITS), BLOCKS)


@pytest.fixture(scope="package")
def open_store(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    folder = tmp_path_factory.mktemp("open")
    return make_store(folder, mixed_rows(2 * BLOCKS * UNITS), BLOCKS, open_fraction=0.5)


@pytest.fixture(scope="package")
def engine(store: BlockStore) -> Iterator[LocalEngine]:
    with LocalEngine(store, workers=1, block_time_limit=5, batch_time_limit=5) as engine:
        yield engine


@pytest.fixture(scope="package")
def open_engine(open_store: BlockStore) -> Iterator[LocalEngine]:
    with LocalEngine(open_store, workers=1, block_time_limit=5, batch_time_limit=5) as engine:
        yield engine
