"""The SQL engine: the values of pandas, and failures of blocks alone."""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from holdfast.engines.process import Worker
from holdfast.engines.sql import engine as engine_module
from holdfast.engines.sql.engine import SqlEngine, _divided, _Failed
from holdfast.engines.sql.estimator import (
    sql_condition,
    sql_estimator,
    sql_term,
    value_of,
)
from holdfast.engines.sql.worker import LENGTH, UNREADABLE, Number, Query
from holdfast.errors import Damaged, InvalidInput, Unavailable
from holdfast.store.blocks import BlockStore
from holdfast.store.table import Column, Schema
from tests.engines.sql.tables import SCHEMA, by_pandas, same, write
from tools.shards import sharded


def weighted(d: pd.DataFrame) -> object:
    both = d.dropna(subset=["x"])
    return (both.x * both.w).sum() / d.w.sum()


# What pandas says of a question, or of one with a condition after "where"; of most blocks the
# condition x > 2 leaves nothing.
PANDAS: dict[str, Callable[[pd.DataFrame], object]] = {
    "avg(x)": lambda d: d.x.mean(),
    "avg(x) where x > 2": lambda d: d.x[d.x > 2].mean(),
    "count(*) where x > 2": lambda d: (d.x > 2).sum(),
    "avg(x) FILTER (WHERE flag) where arm <> 'B'": lambda d: d.x[d.flag & (d.arm != "B")].mean(),
    "sum(x * w) / sum(w)": weighted,
    "count(*)": len,
    "count(x)": lambda d: d.x.count(),
    "count(DISTINCT n)": lambda d: d.n.nunique(),
    "count_if(x > 0) / count(*)": lambda d: (d.x > 0).mean(),
    "avg(flag)": lambda d: d.flag.mean(),
    "median(x)": lambda d: d.x.median(),
    "quantile_cont(y, 0.9)": lambda d: d.y.quantile(0.9),
    "stddev(x)": lambda d: d.x.std(),
    "var_pop(y)": lambda d: d.y.var(ddof=0),
    "skewness(x)": lambda d: d.x.skew(),
    "kurtosis(x)": lambda d: d.x.kurt(),
    "corr(x, y)": lambda d: d.x.corr(d.y),
    "covar_samp(w, y)": lambda d: d.w.cov(d.y),
    "regr_slope(y, w)": lambda d: d.w.cov(d.y) / d.w.var(),
    "max(x) - min(x)": lambda d: d.x.max() - d.x.min(),
    "mad(y)": lambda d: (d.y - d.y.median()).abs().median(),
    "exp(avg(ln(w)))": lambda d: np.exp(np.log(d.w).mean()),
    "avg(x) FILTER (WHERE arm = 'A')": lambda d: d.x[d.arm == "A"].mean(),
    "avg(coalesce(x, 0))": lambda d: d.x.fillna(0).mean(),
    "avg(CASE WHEN x > 0 THEN 1 WHEN x < -1 THEN -1 ELSE 0 END)": lambda d: np.select(
        [d.x > 0, d.x < -1], [1, -1], 0
    ).mean(),
    "avg(year(born))": lambda d: pd.to_datetime(d.born).dt.year.mean(),
    "max(hour(seen))": lambda d: d.seen.dt.hour.max(),
    "avg(date_diff('day', born, DATE '2020-01-01'))": lambda d: (
        pd.Timestamp("2020-01-01") - pd.to_datetime(d.born)
    ).dt.days.mean(),
    "max(born) - min(born)": lambda d: (d.born.max() - d.born.min()).days,
    "count_if(arm LIKE 'C%')": lambda d: d.arm.str.startswith("C").sum(),
    'avg("Arr Delay" > 15)': lambda d: (d["Arr Delay"] > 15).mean(),
}


@pytest.mark.parametrize("question", PANDAS)
def test_values_are_those_of_pandas(engine: SqlEngine, plain: BlockStore, question: str) -> None:
    text, _, where = question.partition(" where ")
    values = engine.values(sql_estimator(text, SCHEMA, where or None))
    expected = by_pandas(plain, PANDAS[question])
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def own(plain: BlockStore) -> Iterator[SqlEngine]:
    """An engine whose process may be ended, and that must be as good as before."""
    engine = SqlEngine(plain, threads=1, memory_limit=2**34)
    yield engine
    engine.close()


def test_a_machine_that_stalls_is_no_failure_of_a_block(
    plain: BlockStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engines.sql.engine._CONTROL_SECONDS", 0.5)
    engine = SqlEngine(plain, threads=1, time_limit=0.5, block_time_limit=0.5)
    estimator = sql_estimator("avg(x)", SCHEMA)
    good, ready = engine.values(estimator), engine._ready

    def stalled() -> Worker:
        worker = ready()
        os.kill(worker.pid, signal.SIGSTOP)  # as one that waits for a disk
        return worker

    with monkeypatch.context() as patched:
        patched.setattr(engine, "_ready", stalled)
        with pytest.raises(Unavailable, match=r"rows can be counted within 0\.5 seconds"):
            engine.values(estimator)
    assert same(engine.values(estimator), good)
    engine.close()


def test_no_limit_makes_an_error_of_blocks_that_are_late(plain: BlockStore) -> None:
    """Who asks chooses the limits; an error would tell them whether some data are slow."""
    engine = SqlEngine(plain, threads=1, time_limit=1e-6, block_time_limit=1e-6)
    found = engine.values(sql_estimator("avg(x)", SCHEMA), 0, 2)
    assert np.isnan(found).all()
    engine.close()


def test_a_process_that_is_ended_twice_and_no_more(
    own: SqlEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for want of memory: of all blocks, and of the first one alone, but not again."""
    engine, estimator = own, sql_estimator("avg(x)", SCHEMA)
    good, ready = engine.values(estimator), engine._ready
    assert engine._worker is not None
    os.kill(engine._worker.pid, signal.SIGKILL)  # between questions, as at first
    assert same(engine.values(estimator), good)
    before, left = engine.fallbacks, [True, True]

    def ended() -> Worker:
        worker = ready()
        if left:
            left.pop()
            os.kill(worker.pid, signal.SIGKILL)
        return worker

    monkeypatch.setattr(engine, "_ready", ended)
    assert same(engine.values(estimator), good)
    assert not left
    assert engine.fallbacks == before + 1


def test_progress_that_raises_ends_an_evaluation(plain: BlockStore, own: SqlEngine) -> None:
    class Enough(Exception):
        pass

    calls: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        calls.append((done, total))
        if len(calls) > 2:
            raise Enough

    engine, before, estimator = own, own.fallbacks, sql_estimator("avg(x)", SCHEMA)
    good = engine.values(estimator, progress=lambda *_: None)
    sql = "sum(len(list_filter(range(900000000), lambda v: sin(v) > 2)))"
    endless = dataclasses.replace(estimator, aggregate=sql)
    with pytest.raises(Enough):
        engine.values(endless, progress=progress)
    assert calls == [(0, plain.blocks)] * 3
    assert engine.fallbacks == before  # it was not tried again block by block
    assert same(engine.values(estimator), good)


def test_that_the_engine_cannot_start_is_said(
    plain: BlockStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SqlEngine(BlockStore(tmp_path, plain.manifest), threads=1)
    with pytest.raises(Unavailable, match="Starting the SQL engine failed"):
        engine.values(sql_estimator("avg(x)", SCHEMA))

    def full(*_: object, **__: object) -> NoReturn:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("holdfast.engines.sql.engine.Worker", full)
    with pytest.raises(Unavailable, match=r"3 have failed.*stays charged"):
        SqlEngine(plain, threads=1).values(sql_estimator("avg(x)", SCHEMA))


def test_names_and_texts_are_taken_as_they_are(tmp_path: Path) -> None:
    names = ['a "b"', "{0}", "it's", "{where}", "x\\", "%s"]
    schema = Schema(tuple(Column(name, "number") for name in names))
    folder = tmp_path / "it's {odd}"
    folder.mkdir()
    store = write(folder, {name: np.arange(6.0) + k for k, name in enumerate(names)}, schema, 2)
    engine = SqlEngine(store, threads=1)
    for k, name in enumerate(names):
        quoted = '"' + name.replace('"', '""') + '"'
        estimator = sql_estimator(
            f"avg({quoted})", schema, f"{quoted} IS NOT NULL AND '{{}}' = '{{}}'"
        )
        assert engine.values(estimator).tolist() == [1.0 + k, 4.0 + k]
    assert engine.fallbacks == 0
    engine.close()


def test_threads_ask_together_and_failures_stay_their_own(tmp_path: Path) -> None:
    """Numbers alone, and few: such questions go to the process in one message."""
    rows = 400
    schema = Schema((Column("x", "number"),))
    store = write(tmp_path, {"x": np.arange(rows, dtype=np.float64)}, schema, blocks=40)
    good = [sql_estimator(f"avg(x) + {i}", schema) for i in range(12)]
    wrong = dataclasses.replace(good[0], aggregate="no_such_function(x)")
    engine = SqlEngine(store)
    alone = [engine.values(each) for each in good]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(engine.values, [*good, wrong, *good]))
    assert all(same(each, found[i]) for i, each in enumerate(alone))
    assert all(same(each, found[13 + i]) for i, each in enumerate(alone))
    assert np.isnan(found[12]).all()
    assert engine.fallbacks == 1
    engine.close()


def test_a_reply_that_is_not_as_announced_is_no_reply() -> None:
    queries = [Query(Number(""), "", 0, 2, whole=True)] * 2
    two = np.array([1.0, 2.0]).tobytes()
    sound = LENGTH.pack(16) + LENGTH.pack(0) + two
    found = _divided(sound, queries)
    assert found is not None
    assert isinstance(found[0], np.ndarray)
    assert (found[0].tolist(), found[1]) == ([1.0, 2.0], _Failed.ERROR)
    unreadable = _divided(LENGTH.pack(UNREADABLE) + LENGTH.pack(16) + two, queries)
    assert unreadable is not None
    assert isinstance(unreadable[0], Damaged)
    assert isinstance(unreadable[1], np.ndarray)
    for reply in (b"", two, sound[:-1], sound + b"x", LENGTH.pack(8) * 2 + two, sound[:8] + two):
        assert _divided(reply, queries) is None


def test_an_estimator_travels_as_the_sql_that_it_is() -> None:
    """Its tree holds functions that cannot be sent; no worker needs them."""
    for text in ("stddev_samp(x)", "count(DISTINCT arm)", "corr(x, exp(x))"):
        estimator = sql_estimator(text, SCHEMA, "y > 0")
        sent = pickle.loads(pickle.dumps(estimator))
        assert sent == estimator
        assert value_of(sent) == value_of(estimator)
        assert sent.distinct == estimator.distinct == ("DISTINCT" in text)
        assert pickle.loads(pickle.dumps(sent)).distinct == sent.distinct


def test_a_shard_that_vanishes_on_the_way_is_no_failure(tmp_path: Path) -> None:
    columns = {"n": np.arange(5_000.0), "t": ["text"] * 5_000}  # texts are not kept in memory
    schema = Schema((Column("n", "number"), Column("t", "text")))
    whole = write(tmp_path, columns, schema, 2_500)
    store = sharded(whole, tmp_path / "many", [1_200])
    file = store.place(store.shards[0])

    def vanish(done: int, _: int) -> None:
        if done >= 1_024 and file.exists():  # before the second query of the first file
            file.unlink()

    engine = SqlEngine(store, threads=1)
    with pytest.raises(Damaged, match="00000"):
        engine.values(sql_estimator("count(DISTINCT n)", store.schema), progress=vanish)
    engine.close()


# Sums of terms: exact whole numbers of parts of 2⁻¹⁶, for units of one row and of several.


SCALE = 2**16


def test_the_constant_counts_units(engine: SqlEngine, plain: BlockStore) -> None:
    assert engine.sums(None).tolist() == [SCALE * plain.units] * plain.blocks
    flags = SCALE * by_pandas(plain, lambda d: d.flag.sum())
    np.testing.assert_array_equal(engine.sums(None, sql_term("flag", SCHEMA), 3, 9), flags[3:9])


def test_nan_and_infinity(tmp_path: Path) -> None:
    numbers = [np.nan, np.inf, -np.inf, None, 0.5, 2.0]
    schema = Schema((Column("x", "number"),))
    store = write(tmp_path, {"x": pa.array(numbers, pa.float64())}, schema, 2)
    engine = SqlEngine(store, threads=1)
    assert engine.sums(sql_term("x", schema)).tolist() == [SCALE, SCALE + SCALE // 2]
    terms = engine.sums(sql_term("x", schema), terms=True)
    assert terms.tolist() == [0, SCALE, 0, 0, SCALE // 2, SCALE]
    engine.close()


def test_blocks_that_fail_have_the_sum_zero_whatever_the_condition(
    plain: BlockStore, own: SqlEngine
) -> None:
    before, term = own.fallbacks, sql_term("x > 0", SCHEMA)
    good, bad = own.sums(term), by_pandas(plain, lambda d: (d.x > 2.5).any()).astype(bool)
    assert 1 < np.count_nonzero(bad) < plain.blocks
    sql = "CASE WHEN x > 2.5 THEN CAST(error('SECRET') AS BOOLEAN) ELSE x > 0 END"
    failing = dataclasses.replace(term, sql=sql)
    np.testing.assert_array_equal(own.sums(failing), np.where(bad, 0, good))
    assert own.fallbacks == before + 1
    left_out = sql_condition("x < 0", SCHEMA)
    sums, terms = own.sums(failing, left_out), own.sums(failing, left_out, terms=True)
    np.testing.assert_array_equal(sums[bad], 0)  # it fails all the same
    np.testing.assert_array_equal(terms.reshape(plain.blocks, -1).sum(axis=1), sums)


def test_terms_are_asked_of_so_many_units_at_once(
    plain: BlockStore, engine: SqlEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = sql_term("w", SCHEMA), sql_condition("x > 0", SCHEMA), 3, 20
    every = engine.sums(*asked, terms=True)
    w, x = (plain.table(3, 20).column(name).to_pandas() for name in ("w", "x"))
    np.testing.assert_array_equal(every, np.where(x > 0, np.floor(w * SCALE + 0.5), 0))
    with pytest.raises(InvalidInput, match="where must be a condition"):
        engine.sums(None, sql_term("x", SCHEMA))
    for most in (1, 2 * plain.units, 5 * plain.units + 1):
        monkeypatch.setattr(engine_module, "_TERMS_BATCH", most)
        assert engine.sums(*asked, terms=True).tolist() == every.tolist()
