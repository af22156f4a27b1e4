"""The local engine gives every block's value as if the block were alone in the world."""

from __future__ import annotations

import functools
import importlib
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pytest

from holdfast.engines.python import pool
from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.estimator import LocalEstimator, local_estimator, make_estimator
from holdfast.errors import Damaged, InvalidInput, Unavailable
from holdfast.protocols.source import WEIGHT_SCALE
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import grouped_rows, make_store, mixed_rows

BLOCKS, UNITS = 24, 40
lock = threading.Lock()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    folder = tmp_path_factory.mktemp("rows")
    return make_store(folder, mixed_rows(BLOCKS * UNITS + 7), BLOCKS)


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    folder = tmp_path_factory.mktemp("units")
    return make_store(folder, grouped_rows(BLOCKS * UNITS + 7), BLOCKS, unit="who")


@pytest.fixture(scope="module")
def engine(store: BlockStore) -> Iterator[LocalEngine]:
    with LocalEngine(store, workers=2, block_time_limit=5) as engine:
        yield engine


@pytest.fixture(scope="module")
def grouped_engine(grouped: BlockStore) -> Iterator[LocalEngine]:
    with LocalEngine(grouped, workers=2, block_time_limit=5) as engine:
        yield engine


def frames(store: BlockStore) -> list[pd.DataFrame]:
    """The blocks, read another way."""
    rows = store.table(hidden=True).to_pandas()
    return [each.reset_index(drop=True) for _, each in rows.groupby("__block")]


def expected(store: BlockStore, value: Callable[[pd.DataFrame], float]) -> list[float]:
    return [value(frame) for frame in frames(store)]


def correlation(frame: pd.DataFrame) -> float:
    return float(frame.x.corr(frame.y))


PER_BLOCK: dict[str, tuple[LocalEstimator, Callable[[pd.DataFrame], float]]] = {
    "mean": (local_estimator(lambda f: f.x.mean()), lambda f: f.x.mean()),
    "quantile": (
        local_estimator(lambda f: f.y.quantile(0.9), columns=["y"]),
        lambda f: f.y.quantile(0.9),
    ),
    "function of a module": (local_estimator(correlation), correlation),
    "filter and text": (
        local_estimator(lambda f: f[f.arm == "a"].x.mean()),
        lambda f: f[f.arm == "a"].x.mean(),
    ),
    "flags": (local_estimator(lambda f: f.flag.mean()), lambda f: f.flag.astype("boolean").mean()),
    "days": (
        local_estimator(lambda f: (f.day.max() - f.day.min()).days),
        lambda f: (f.day.max() - f.day.min()).days,
    ),
    "whole numbers are float64": (
        local_estimator(lambda f: float(f["count"].dtype == np.float64)),
        lambda f: 1.0,
    ),
    "rows are numbered from 0": (local_estimator(lambda f: f.index[-1]), lambda f: UNITS - 1),
    "polars": (local_estimator(lambda f: f["x"].mean(), block="polars"), lambda f: f.x.mean()),
    "arrow": (
        local_estimator(lambda f: pc.sum(f["count"]).as_py(), block="arrow"),
        lambda f: f["count"].sum(),
    ),
    "numpy": (local_estimator(lambda f: np.nanmax(f["y"]), block="numpy"), lambda f: f.y.max()),
    "numpy has NaN for NULL": (
        local_estimator(lambda f: np.isnan(f["count"]).sum(), block="numpy"),
        lambda f: f["count"].isna().sum(),
    ),
    "numpy has None for no text": (
        local_estimator(lambda f: sum(each is None for each in f["arm"]), block="numpy"),
        lambda f: f.arm.isna().sum(),
    ),
    "numpy has floats for flags": (
        local_estimator(lambda f: np.nanmean(f["flag"]), block="numpy"),
        lambda f: f.flag.astype("boolean").mean(),
    ),
    "partial": (
        local_estimator(functools.partial(lambda f, q: f.x.quantile(q), q=0.25)),
        lambda f: f.x.quantile(0.25),
    ),
    "integer": (local_estimator(len), lambda f: UNITS),
    "numpy scalar": (local_estimator(lambda f: np.float32(0.5)), lambda f: 0.5),
    "boolean": (local_estimator(lambda f: f.x.max() > 2), lambda f: float(f.x.max() > 2)),
    "array without axes": (local_estimator(lambda f: np.array(2.5)), lambda f: 2.5),
    "vectorised": (
        local_estimator(lambda a: np.nanmean(a["x"], axis=1), vectorised=True, columns=["x"]),
        lambda f: f.x.mean(),
    ),
    "vectorised, two columns": (
        local_estimator(lambda a: np.nansum(a["x"] * a["y"], axis=1), vectorised=True),
        lambda f: (f.x * f.y).sum(),
    ),
    "vectorised, text": (
        local_estimator(lambda a: (a["arm"] == "a").mean(axis=1), vectorised=True),
        lambda f: (f.arm == "a").mean(),
    ),
}


@pytest.mark.parametrize("name", PER_BLOCK)
def test_values_are_those_of_each_block_alone(
    name: str, engine: LocalEngine, store: BlockStore
) -> None:
    estimator, value = PER_BLOCK[name]
    values = engine.values(estimator)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, expected(store, value), rtol=1e-12)


@pytest.mark.parametrize("name", ["mean", "vectorised"])
def test_some_blocks_are_a_part_of_all(name: str, engine: LocalEngine) -> None:
    estimator, _ = PER_BLOCK[name]
    everything = engine.values(estimator)
    assert np.array_equal(engine.values(estimator, 5, 17), everything[5:17])
    assert np.array_equal(engine.values(estimator, 23), everything[23:])


def test_values_do_not_depend_on_workers_or_processes(store: BlockStore) -> None:
    found = []
    for workers, isolated in ((1, False), (3, False), (2, True)):
        with LocalEngine(store, workers=workers, isolated=isolated) as engine:
            found.append([engine.values(PER_BLOCK[name][0]) for name in ("mean", "vectorised")])
    assert all(np.array_equal(each, found[0]) for each in found)


def test_units_of_several_rows(grouped_engine: LocalEngine, grouped: BlockStore) -> None:
    estimator = local_estimator(lambda f: f.x.sum() + len(f))
    values = expected(grouped, lambda f: f.x.sum() + len(f))
    np.testing.assert_allclose(grouped_engine.values(estimator), values, rtol=1e-12)


@pytest.mark.parametrize("name", ["__unit", "__row", "__ROW"])
def test_numbers_of_rows_and_units_are_no_columns(name: str, grouped_engine: LocalEngine) -> None:
    with pytest.raises(InvalidInput, match=r"columns of the data.*say nothing of fresh data"):
        local_estimator(lambda f: f[name].max(), columns=["x", name])
    hidden = make_estimator(lambda f: f[name].max(), None, ("x", name), "pandas", "hidden")
    with pytest.raises(InvalidInput, match="columns of the holdout"):
        grouped_engine.values(hidden)


def test_a_vectorised_function_needs_units_of_one_row(grouped_engine: LocalEngine) -> None:
    estimator = local_estimator(lambda a: a["x"].mean(axis=1), vectorised=True)
    with pytest.raises(InvalidInput, match="several rows"):
        grouped_engine.values(estimator)


def scaled(values: Any) -> Any:
    return np.floor(np.asarray(values, np.float64) * WEIGHT_SCALE + 0.5)


def test_sums_of_rows(engine: LocalEngine, store: BlockStore) -> None:
    above = local_estimator(lambda f: f.x > 0)
    sums = engine.sums(above)
    assert sums.dtype == np.int64
    assert np.array_equal(sums, WEIGHT_SCALE * np.array(expected(store, lambda f: (f.x > 0).sum())))
    some = local_estimator(lambda f: f.arm == "a")
    both = expected(store, lambda f: ((f.x > 0) & (f.arm == "a")).sum())
    assert np.array_equal(engine.sums(above, some), WEIGHT_SCALE * np.array(both))
    kept = expected(store, lambda f: (f.arm == "a").sum())
    assert np.array_equal(engine.sums(None, some), WEIGHT_SCALE * np.array(kept))
    assert np.array_equal(engine.sums(None, None), np.full(BLOCKS, UNITS * WEIGHT_SCALE))


def test_sums_of_fractions_are_rounded_row_by_row(engine: LocalEngine, store: BlockStore) -> None:
    clipped = local_estimator(lambda f: f.y / 3)
    wanted = expected(store, lambda f: scaled((f.y / 3).clip(0, 1).fillna(0)).sum())
    assert np.array_equal(engine.sums(clipped), wanted)


def test_sums_by_vectorised_functions_are_the_same(engine: LocalEngine) -> None:
    one = local_estimator(lambda f: f.y / 3)
    many = local_estimator(lambda a: a["y"] / 3, vectorised=True, columns=["y"])
    some = local_estimator(lambda a: a["arm"] == "a", vectorised=True, columns=["arm"])
    assert np.array_equal(engine.sums(many), engine.sums(one))
    mixed = engine.sums(one, some)
    assert np.array_equal(engine.sums(many, some), mixed)
    assert 0 < mixed.sum() < engine.sums(one).sum()


def test_a_unit_of_several_rows_has_their_average(
    grouped_engine: LocalEngine, grouped: BlockStore
) -> None:
    def average(frame: pd.DataFrame, low: float = -np.inf) -> float:
        kept = frame[frame.x > low]
        return float(scaled((kept.x > 0).astype(float).groupby(kept["__unit"]).mean()).sum())

    above = local_estimator(lambda f: f.x > 0)
    low = local_estimator(lambda f: f.x > -1)
    assert np.array_equal(grouped_engine.sums(above), expected(grouped, average))
    filtered = expected(grouped, lambda frame: average(frame, -1.0))
    assert np.array_equal(grouped_engine.sums(above, low), filtered)
    kept = expected(grouped, lambda f: f[f.x > -1]["__unit"].nunique())
    assert np.array_equal(grouped_engine.sums(None, low), WEIGHT_SCALE * np.array(kept))


@pytest.mark.parametrize(
    "function",
    [
        lambda f: 1 / 0,
        lambda f: [1.0] * (len(f) + 1),
        lambda f: "text",
        lambda f: None,
        lambda f: f,
        lambda f: np.ones((len(f), 2)),
    ],
    ids=range(6),
)
def test_a_failure_counts_as_0_in_sums(function: Any, engine: LocalEngine) -> None:
    good = local_estimator(lambda f: f.x > 0)
    assert engine.sums(local_estimator(function)).sum() == 0
    assert engine.sums(good, local_estimator(function)).sum() == 0


@pytest.fixture(scope="module")
def single_rows(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    """Blocks of one row: as many as rows."""
    return make_store(tmp_path_factory.mktemp("single"), mixed_rows(5_000), 5_000)


def test_terms_come_with_the_rows_of_many_blocks(single_rows: BlockStore) -> None:
    """One call for each row would be five thousand: half a minute, where one takes milliseconds."""
    with LocalEngine(single_rows, workers=2) as engine:
        company = local_estimator(lambda f: np.full(len(f), len(f) >= 500))
        assert np.array_equal(engine.sums(company), np.full(5_000, WEIGHT_SCALE))
        kept = local_estimator(lambda f: f.arm == "a")
        both = engine.sums(company, kept)
        assert both.tolist() == [WEIGHT_SCALE * (f.arm[0] == "a") for f in frames(single_rows)]


def test_a_term_that_fails_on_a_row_fails_on_its_block_alone(single_rows: BlockStore) -> None:
    x = single_rows.table(columns=["x"]).column(0).to_pylist()
    bad = {x[70], x[71], x[4_321]}

    def fussy(frame: Any) -> Any:
        if bad & set(frame.x):
            raise ValueError("bad")
        return np.full(len(frame), 0.5 if len(frame) > 1 else 0.25)

    with LocalEngine(single_rows, workers=1) as engine:
        sums = engine.sums(local_estimator(fussy)) / WEIGHT_SCALE
    assert np.flatnonzero(sums == 0).tolist() == [70, 71, 4_321]
    assert np.count_nonzero(sums == 0.25) < 50  # few were asked alone to find them


def test_terms_are_cut_to_their_bounds_and_scaled(engine: LocalEngine, store: BlockStore) -> None:
    def terms(frame: Any) -> Any:
        return (frame.x.fillna(-0.5).clip(-0.5, 1.5) + 0.5) / 2

    wanted = expected(store, lambda f: scaled(terms(f)).sum())
    assert np.array_equal(engine.sums(local_estimator(lambda f: f.x), bounds=(-0.5, 1.5)), wanted)
    many = local_estimator(lambda a: a["x"], columns=["x"], vectorised=True)
    assert np.array_equal(engine.sums(many, bounds=(-0.5, 1.5)), wanted)
    fails = local_estimator(lambda f: 1 / 0)
    assert engine.sums(fails, bounds=(-0.5, 1.5)).sum() == 0  # the lowest


def test_a_batch_that_fails_is_asked_block_by_block(engine: LocalEngine, store: BlockStore) -> None:
    def fussy(arrays: dict[str, Any]) -> Any:
        means = np.nanmean(arrays["x"], axis=1)
        if (means > 0.1).any():
            raise ValueError("too large")
        return means

    means = np.array(expected(store, lambda f: f.x.mean()))
    values = engine.values(local_estimator(fussy, vectorised=True))
    assert 0 < np.isnan(values).sum() < BLOCKS
    assert np.array_equal(np.isnan(values), means > 0.1)
    np.testing.assert_allclose(values[means <= 0.1], means[means <= 0.1], rtol=1e-12)


def test_a_vectorised_function_of_the_wrong_shape_fails_everywhere(engine: LocalEngine) -> None:
    estimator = local_estimator(lambda a: np.zeros(3), vectorised=True)
    assert np.isnan(engine.values(estimator)).all()


def test_a_vectorised_function_may_write_into_its_arrays(engine: LocalEngine) -> None:
    def vandal(arrays: dict[str, Any]) -> Any:
        arrays["x"][:] = np.nan_to_num(arrays["x"])
        arrays["x"][:, 0] = 0
        return arrays["x"].sum(axis=1)

    plain = local_estimator(lambda a: np.nansum(a["x"][:, 1:], axis=1), vectorised=True)
    before = engine.values(plain)
    np.testing.assert_allclose(engine.values(local_estimator(vandal, vectorised=True)), before)
    assert np.array_equal(engine.values(plain), before)


def test_progress_ends_with_all_blocks(engine: LocalEngine) -> None:
    seen: list[tuple[int, int]] = []
    engine.values(PER_BLOCK["mean"][0], progress=lambda done, total: seen.append((done, total)))
    assert [total for _, total in seen] == [BLOCKS] * len(seen)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len(seen) > 2
    assert seen[-1][0] == BLOCKS


def test_an_exception_of_the_progress_leaves_an_engine_that_works(engine: LocalEngine) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    estimator = PER_BLOCK["mean"][0]
    before = engine.values(estimator)
    with pytest.raises(KeyboardInterrupt):
        engine.values(estimator, progress=stop)
    assert np.array_equal(engine.values(estimator), before)


def test_closing_an_engine_ends_the_question_that_it_is_asked(store: BlockStore) -> None:
    engine = LocalEngine(store, workers=1, block_time_limit=100)
    engine.values(PER_BLOCK["mean"][0])
    timer = threading.Timer(0.5, engine.close)
    timer.start()
    with pytest.raises(Unavailable, match="closed meanwhile"):
        engine.values(local_estimator(lambda f: time.sleep(100)))
    timer.join()


def test_a_closed_engine_starts_again(store: BlockStore) -> None:
    engine = LocalEngine(store, workers=1)
    values = engine.values(PER_BLOCK["mean"][0])
    engine.close()
    assert np.array_equal(engine.values(PER_BLOCK["mean"][0]), values)
    engine.close()
    engine.close()


def test_two_threads_may_ask_at_once(engine: LocalEngine) -> None:
    alone = {name: engine.values(PER_BLOCK[name][0]) for name in ("mean", "quantile")}
    found: dict[str, Any] = {}

    def ask(name: str) -> None:
        found[name] = engine.values(PER_BLOCK[name][0])

    threads = [threading.Thread(target=ask, args=(name,)) for name in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[name], alone[name]) for name in alone)


def test_functions_see_what_they_referred_to_when_they_were_made(engine: LocalEngine) -> None:
    limits = [1.0]
    estimator = local_estimator(lambda f: limits[0])
    limits[0] = 2.0
    assert set(engine.values(estimator)) == {1.0}
    assert local_estimator(lambda f: limits[0]).identity != estimator.identity


def test_a_module_of_the_users_own(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its functions travel with their code; the modules that they import are imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_tools.py").write_text("def double(x): return 2 * x\n", "utf-8")
    source = """
        import own_tools
        CALLS = []
        def f(frame):
            CALLS.append(1)
            return own_tools.double(len(CALLS))
    """
    (tmp_path / "own_functions.py").write_text(textwrap.dedent(source), "utf-8")
    module = importlib.import_module("own_functions")
    try:
        assert set(engine.values(local_estimator(module.f))) == {2.0}
    finally:
        for name in ("own_functions", "own_tools"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("columns", "said"),
    [(["z"], "x, y, count"), (["X"], "Did you mean 'x'"), (["__block"], "columns of the holdout")],
)
def test_columns_must_exist(columns: list[str], said: str, engine: LocalEngine) -> None:
    with pytest.raises(InvalidInput, match=said):
        engine.values(local_estimator(len, columns=columns))


@pytest.mark.parametrize(
    "wrong",
    [
        {"function": "avg(x)"},
        {"function": len, "block": "table"},
        {"function": len, "columns": []},
        {"function": len, "columns": ["x", "X"]},
        {"function": len, "columns": [1]},
        {"function": lambda f: lock},
    ],
    ids=range(6),
)
def test_wrong_estimators_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        local_estimator(**wrong)


def test_an_estimator_describes_itself_without_data() -> None:
    estimator = local_estimator(correlation, columns=["x", "y"])
    assert estimator.identity is not None
    shown = (
        f"tests.engines.local.test_engine.correlation of x, y (pandas, {estimator.identity[:12]})"
    )
    assert estimator.describe() == shown


def test_identity_tells_how_a_function_is_called() -> None:
    ways: list[dict[str, Any]] = [
        {},
        {"block": "numpy"},
        {"block": "polars"},
        {"vectorised": True},
        {"columns": ["x"]},
        {"columns": ["x", "y"]},
        {"columns": ["y", "x"]},
    ]
    found = {local_estimator(correlation, **way).identity for way in ways}
    assert len(found) == len(ways)


def test_blocks_that_are_not_there_are_no_failures(tmp_path: Path) -> None:
    store = make_store(tmp_path, mixed_rows(100), 4)
    with LocalEngine(store, workers=1) as engine:
        store.place(store.shards[0]).write_bytes(store.place(store.shards[0]).read_bytes()[:-1])
        with pytest.raises(Damaged, match="bytes"):
            engine.values(local_estimator(len))
        store.place(store.shards[0]).unlink()
        with pytest.raises(Damaged, match="expected a readable file"):
            engine.values(local_estimator(len))


def test_blocks_that_cannot_be_read_are_no_failures(tmp_path: Path) -> None:
    store = make_store(tmp_path, mixed_rows(100), 4)
    file = store.place(store.shards[0])
    file.write_bytes(bytes(file.stat().st_size))  # as long as it was
    with (
        LocalEngine(store, workers=1) as engine,
        pytest.raises(Damaged, match="files that can be read"),
    ):
        engine.values(local_estimator(len))


def test_a_worker_that_cannot_start_is_no_failure(
    store: BlockStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_WORKER", "tests.engines.local.no_such_module")
    with LocalEngine(store, workers=1) as engine, pytest.raises(Unavailable, match="starts"):
        engine.values(local_estimator(len))
