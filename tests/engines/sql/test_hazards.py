"""One test for each hazard of SQL on data that nobody may see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.engines.sql.worker import Setup, start
from holdfast.store.blocks import BlockStore
from tests.engines.sql.tables import SCHEMA
from tests.engines.sql.values import same


def test_an_overflow_tells_the_count(engine: SqlEngine, plain: BlockStore) -> None:
    """As integers this fails exactly if a block has two rows or more."""
    values = engine.values(sql_estimator("count(*) * 9223372036854775807", SCHEMA))
    assert values.tolist() == [plain.units * 2.0**63] * plain.blocks
    assert engine.fallbacks == 0


def test_the_text_is_never_run(plain: BlockStore, engine: SqlEngine) -> None:
    """What runs is written anew: a comment that hides an end of the text changes nothing."""
    estimator = sql_estimator("avg(x) -- ) FROM blocks; DROP TABLE blocks", SCHEMA)
    assert estimator.aggregate == 'avg("x")'
    assert same(engine.values(estimator), engine.values(sql_estimator("avg(x)", SCHEMA)))


LOCKED_OUT = """
SELECT * FROM read_csv('{folder}/other.csv')
SELECT * FROM read_text('{folder}/other.csv')
SELECT * FROM '{folder}/other.csv'
SELECT * FROM glob('{folder}/*')
COPY (SELECT 1) TO '{folder}/leak.csv'
ATTACH '{folder}/leak.db'
EXPORT DATABASE '{folder}/leak'
INSTALL httpfs
LOAD httpfs
SET threads = 4
SET enable_external_access = true
SET allowed_paths = ['{folder}']
SET lock_configuration = false
RESET memory_limit
SELECT * FROM frame
SELECT getenv('HOME')
"""
SETTINGS = {
    "enable_external_access": False,
    "lock_configuration": True,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "error_on_division_by_zero": False,
    "max_temp_directory_size": "0 bytes",
    "memory_limit": "256.0 MiB",
    "TimeZone": "UTC",
}


@pytest.fixture(scope="module")
def connection(plain: BlockStore) -> Iterator[Any]:
    """The connection that a worker has, in this process."""
    columns = tuple((each.name, each.kind) for each in plain.schema.columns)
    path = str(plain.place(plain.shards[0]))
    answer: Any = start(Setup((path,), columns, threads=1, memory_limit=2**28))
    connection = answer.__self__.open(path)
    yield connection
    connection.close()


@pytest.mark.parametrize("statement", LOCKED_OUT.strip().splitlines())
def test_duckdb_is_locked(connection: Any, tmp_path: Path, statement: str) -> None:
    frame = pa.table({"a": [1]})
    assert frame.num_rows == 1  # a variable that DuckDB would find, if it were let
    (tmp_path / "other.csv").write_text("a\n1\n")
    with pytest.raises(duckdb.Error):
        connection.execute(statement.format(folder=tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["other.csv"]


def test_settings_are_what_they_should_be(connection: Any) -> None:
    found = {
        name: connection.execute(f"SELECT current_setting('{name}')").fetchone()[0]
        for name in SETTINGS
    }
    assert found == SETTINGS


def test_dates_that_no_calendar_knows_are_null(hostile_engine: SqlEngine) -> None:
    """week(DATE '-5877641-06-25') is an error, and a text of some timestamps a fatal one."""
    schema = hostile_engine._store.schema
    known = hostile_engine.values(sql_estimator("count(born)", schema))
    years = hostile_engine.values(sql_estimator("min(year(born))", schema))
    weeks = hostile_engine.values(sql_estimator("max(week(born))", schema))
    assert known.min() == 0
    assert np.nanmin(years) >= 1
    assert np.nanmax(weeks) <= 53
    assert hostile_engine.fallbacks == 0


@pytest.mark.parametrize("question", ["skewness(x)", "kurtosis(x)", "kurtosis_pop(x)"])
def test_moments_out_of_range_are_no_error(hostile_engine: SqlEngine, question: str) -> None:
    """DuckDB's own say "SKEW is out of range!"."""
    hostile_engine.values(sql_estimator(question, hostile_engine._store.schema))
    assert hostile_engine.fallbacks == 0
