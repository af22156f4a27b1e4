"""One test for each hazard of SQL on data that nobody may see."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.engines.sql.worker import Setup, start
from holdfast.errors import InvalidInput
from holdfast.store.blocks import BlockStore
from holdfast.store.table import Column, Schema
from tests.engines.sql.tables import SCHEMA, write
from tests.engines.sql.values import same


def locked(store: BlockStore) -> Any:
    """The connection that a worker has, in this process."""
    columns = tuple((each.name, each.kind) for each in store.schema.columns)
    path = str(store.place(store.shards[0]))
    answer: Any = start(Setup((path,), columns, threads=1, memory_limit=2**28))
    return answer.__self__.open(path)


def test_error_messages_carry_rows() -> None:
    """DuckDB says "Could not convert string 'SECRET-4711'": types are settled before."""
    with pytest.raises(
        InvalidInput, match=r"= takes \(same, same\) and was given \(text, number\)"
    ):
        sql_estimator("count(*) FILTER (WHERE arm = 5)", SCHEMA)


def test_an_overflow_tells_the_count(engine: SqlEngine, plain: BlockStore) -> None:
    """As integers this fails exactly if a block has two rows or more."""
    values = engine.values(sql_estimator("count(*) * 9223372036854775807", SCHEMA))
    assert values.tolist() == [plain.units * 2.0**63] * plain.blocks
    assert engine.fallbacks == 0


def test_a_failure_of_some_blocks_does_not_show(engine: SqlEngine) -> None:
    """Not in an exception, and not in the other blocks' values."""
    estimator = sql_estimator("avg(x)", SCHEMA)
    sql = "avg(CASE WHEN x > 2.5 THEN error('SECRET-4711') ELSE x END)"
    good, found = (
        engine.values(estimator),
        engine.values(dataclasses.replace(estimator, aggregate=sql)),
    )
    failed = np.isnan(found)
    assert 0 < np.count_nonzero(failed) < len(found)
    assert same(found[~failed], good[~failed])


@pytest.mark.parametrize("question", ["max(x, 100000)", "quantile_cont(x, [0.1, 0.9])"])
def test_an_argument_more_gives_a_list(question: str) -> None:
    with pytest.raises(InvalidInput):
        sql_estimator(question, SCHEMA)


def test_the_text_is_never_run(plain: BlockStore, engine: SqlEngine) -> None:
    """What runs is written anew: a comment that hides an end of the text changes nothing."""
    estimator = sql_estimator("avg(x) -- ) FROM blocks; DROP TABLE blocks", SCHEMA)
    assert estimator.aggregate == 'avg("x")'
    assert same(engine.values(estimator), engine.values(sql_estimator("avg(x)", SCHEMA)))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('{folder}/other.csv')",
        "SELECT * FROM read_text('{folder}/other.csv')",
        "SELECT * FROM '{folder}/other.csv'",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/leak.csv'",
        "ATTACH '{folder}/leak.db'",
        "EXPORT DATABASE '{folder}/leak'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 4",
        "SET enable_external_access = true",
        "SET allowed_paths = ['{folder}']",
        "SET lock_configuration = false",
        "RESET memory_limit",
        "SELECT * FROM frame",
        "SELECT getenv('HOME')",
    ],
)
def test_duckdb_is_locked(plain: BlockStore, tmp_path: Path, statement: str) -> None:
    import duckdb

    frame = pa.table({"a": [1]})
    assert frame.num_rows == 1  # a variable that DuckDB would find, if it were let
    (tmp_path / "other.csv").write_text("a\n1\n")
    connection = locked(plain)
    with pytest.raises(duckdb.Error):
        connection.execute(statement.format(folder=tmp_path))
    connection.close()
    assert [each.name for each in tmp_path.iterdir()] == ["other.csv"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("enable_external_access", False),
        ("lock_configuration", True),
        ("autoload_known_extensions", False),
        ("autoinstall_known_extensions", False),
        ("allow_community_extensions", False),
        ("python_enable_replacements", False),
        ("error_on_division_by_zero", False),
        ("max_temp_directory_size", "0 bytes"),
        ("memory_limit", "256.0 MiB"),
        ("TimeZone", "UTC"),
    ],
)
def test_settings_are_what_they_should_be(plain: BlockStore, setting: str, value: object) -> None:
    connection = locked(plain)
    (found,) = connection.execute(f"SELECT current_setting('{setting}')").fetchone()
    connection.close()
    assert found == value


def test_one_long_call_cannot_be_interrupted_but_killed(plain: BlockStore) -> None:
    """`interrupt` would not stop it: the process is killed, and another takes its place."""
    engine = SqlEngine(plain, threads=1, memory_limit=2**34, time_limit=1, block_time_limit=1)
    estimator = sql_estimator("avg(x)", SCHEMA)
    good = engine.values(estimator, 0, 1)
    assert engine._worker is not None
    first = engine._worker.pid
    slow = "len(list_filter(range(CAST(900000000 + 0 * y AS BIGINT)), lambda v: sin(v) > 2))"
    found = engine.values(dataclasses.replace(estimator, aggregate=f"sum({slow})"), 0, 1)
    assert np.isnan(found).all()
    assert same(engine.values(estimator, 0, 1), good)
    assert engine._worker.pid != first
    engine.close()


def test_memory_is_bounded_by_the_operating_system(plain: BlockStore) -> None:
    engine = SqlEngine(plain, threads=1, memory_limit=2**26)
    estimator = sql_estimator("avg(x)", SCHEMA)
    engine.values(estimator)
    large = "avg(length(repeat('a', 2000000000)))"
    found = engine.values(dataclasses.replace(estimator, aggregate=large), 0, 2)
    assert np.isnan(found).all()
    engine.close()


def test_a_filter_does_not_make_blocks_vanish(engine: SqlEngine, plain: BlockStore) -> None:
    never = engine.values(sql_estimator("avg(x)", SCHEMA, "x > 1e9"))
    count = engine.values(sql_estimator("count(*)", SCHEMA, "x > 1e9"))
    assert never.shape == (plain.blocks,)
    assert np.isnan(never).all()
    assert count.tolist() == [0.0] * plain.blocks


def test_sums_have_the_same_bits_on_many_threads(tmp_path: Path) -> None:
    """Blocks lie in one row group each, and groups are formed by number: see test_bits.py too."""
    generator, blocks = np.random.default_rng(6), 20_000
    schema = Schema((Column("x", "number"),))
    x = generator.lognormal(0, 5, blocks * 10)
    store = write(tmp_path, {"x": x}, schema, blocks, group_blocks=1_000)
    found = []
    for threads in (1, 8):
        engine = SqlEngine(store, threads=threads)
        found += [engine.values(sql_estimator("sum(x)", schema)) for _ in range(3)]
        engine.close()
    assert all(same(each, found[0]) for each in found)


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
