"""Sums of terms: exact whole numbers of parts of 2⁻¹⁶, for units of one row and of several."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.engines.sql.estimator import sql_condition, sql_term
from holdfast.errors import InvalidInput
from holdfast.store.blocks import BlockStore
from holdfast.store.table import Column, Schema
from tests.engines.sql.tables import SCHEMA, write
from tests.engines.sql.values import by_pandas

SCALE = 2**16


def test_truth_values_are_counted(engine: SqlEngine, plain: BlockStore) -> None:
    sums = engine.sums(sql_term("x > 0", SCHEMA))
    assert sums.dtype == np.int64
    np.testing.assert_array_equal(sums, SCALE * by_pandas(plain, lambda d: (d.x > 0).sum()))


def test_numbers_are_clipped_and_null_is_zero(engine: SqlEngine, plain: BlockStore) -> None:
    sums = engine.sums(sql_term("x", SCHEMA))
    parts = by_pandas(
        plain, lambda d: np.floor(d.x.fillna(0).clip(0, 1) * SCALE + 0.5).astype(int).sum()
    )
    np.testing.assert_array_equal(sums, parts)


def test_a_condition_as_part_of_the_term_or_beside_it(engine: SqlEngine, plain: BlockStore) -> None:
    inside = engine.sums(sql_term("w", SCHEMA, where="flag"))
    beside = engine.sums(sql_term("w", SCHEMA), sql_condition("flag", SCHEMA))
    both = engine.sums(sql_term("w", SCHEMA, where="flag"), sql_term("x > 0", SCHEMA))
    expected = by_pandas(plain, lambda d: np.floor(d.w[d.flag] * SCALE + 0.5).sum())
    np.testing.assert_array_equal(inside, expected)
    np.testing.assert_array_equal(beside, expected)
    kept = by_pandas(plain, lambda d: np.floor(d.w[d.flag & (d.x > 0)] * SCALE + 0.5).sum())
    np.testing.assert_array_equal(both, kept)


def test_the_constant_counts_units(engine: SqlEngine, plain: BlockStore) -> None:
    assert engine.sums(None).tolist() == [SCALE * plain.units] * plain.blocks
    flags = SCALE * by_pandas(plain, lambda d: d.flag.sum())
    np.testing.assert_array_equal(engine.sums(sql_term(None, SCHEMA, "flag")), flags)
    np.testing.assert_array_equal(engine.sums(None, sql_term("flag", SCHEMA), 3, 9), flags[3:9])


def test_nan_and_infinity(tmp_path: Path) -> None:
    numbers = [np.nan, np.inf, -np.inf, None, 0.5, 2.0]
    schema = Schema((Column("x", "number"),))
    store = write(tmp_path, {"x": pa.array(numbers, pa.float64())}, schema, 2)
    engine = SqlEngine(store, threads=1)
    assert engine.sums(sql_term("x", schema)).tolist() == [SCALE, SCALE + SCALE // 2]
    engine.close()


def test_a_unit_of_several_rows_has_their_average(tmp_path: Path) -> None:
    units = np.array([0, 0, 0, 1, 2, 2, 3, 3])  # two blocks of two units
    x = pa.array([1.0, 0.0, None, 0.25, 5.0, -5.0, 1.0, 1.0])
    keep = pa.array([True, True, False, True, True, False, False, None])
    schema = Schema((Column("x", "number"), Column("keep", "boolean")))
    store = write(tmp_path, {"x": x, "keep": keep}, schema, 2, units=units)
    engine = SqlEngine(store, threads=1)
    third = np.floor(SCALE / 3 + 0.5)
    every = engine.sums(sql_term("x", schema))
    assert every.tolist() == [third + SCALE // 4, SCALE // 2 + SCALE]
    kept = engine.sums(sql_term("x", schema, where="keep"))
    assert kept.tolist() == [SCALE // 2 + SCALE // 4, SCALE]
    assert engine.sums(sql_term(None, schema, where="keep")).tolist() == [2 * SCALE, SCALE]
    engine.close()


def test_a_block_that_fails_has_the_sum_zero(plain: BlockStore) -> None:
    engine = SqlEngine(plain, threads=1)
    term = sql_term("x > 0", SCHEMA)
    good = engine.sums(term)
    bad = by_pandas(plain, lambda d: (d.x > 2.5).any()).astype(bool)
    sql = "CASE WHEN x > 2.5 THEN CAST(error('SECRET') AS BOOLEAN) ELSE x > 0 END"
    found = engine.sums(dataclasses.replace(term, sql=sql))
    np.testing.assert_array_equal(found, np.where(bad, 0, good))
    assert engine.fallbacks == 1
    engine.close()


def test_a_number_is_no_condition(engine: SqlEngine) -> None:
    with pytest.raises(InvalidInput, match="where must be a condition"):
        engine.sums(None, sql_term("x", SCHEMA))
