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

from holdfast.engines.python import engine as engine_module
from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.estimator import LocalEstimator, local_estimator, make_estimator
from holdfast.errors import Damaged, InvalidInput, Unavailable
from holdfast.protocols.source import WEIGHT_SCALE
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import grouped_rows, make_store, mixed_rows

BLOCKS, UNITS = 18, 40
lock = threading.Lock()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    folder = tmp_path_factory.mktemp("rows")
    return make_store(folder, mixed_rows(BLOCKS * UNITS + 7), BLOCKS)


@pytest.fixture(scope="module")
def frames(store: BlockStore) -> list[pd.DataFrame]:
    """The blocks, read another way."""
    rows = store.table(hidden=True).to_pandas()
    return [each.reset_index(drop=True) for _, each in rows.groupby("__block")]


@pytest.fixture(scope="module")
def engine(store: BlockStore) -> Iterator[LocalEngine]:
    with LocalEngine(store, workers=2, block_time_limit=5) as engine:
        yield engine


@pytest.fixture(scope="module")
def grouped_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    folder, rows = tmp_path_factory.mktemp("units"), grouped_rows(BLOCKS * UNITS + 7)
    store = make_store(folder, rows, BLOCKS, unit="who")
    with LocalEngine(store, workers=2, block_time_limit=5) as engine:
        yield engine


def correlation(frame: pd.DataFrame) -> float:
    return float(frame.x.corr(frame.y))


Function = Callable[[Any], Any]
# The function, how it is called, and what pandas says of a block if that is not the same function.
PER_BLOCK: dict[str, tuple[Function, dict[str, Any], Function | None]] = {
    "mean": (lambda f: f.x.mean(), {}, None),
    "quantile": (lambda f: f.y.quantile(0.9), {"columns": ["y"]}, None),
    "function of a module": (correlation, {}, None),
    "filter and text": (lambda f: f[f.arm == "a"].x.mean(), {}, None),
    "flags": (lambda f: f.flag.mean(), {}, lambda f: f.flag.astype("boolean").mean()),
    "days": (lambda f: (f.day.max() - f.day.min()).days, {}, None),
    "whole numbers are float64": (lambda f: f["count"].dtype == np.float64, {}, lambda f: 1),
    "rows are numbered from 0": (lambda f: f.index[-1], {}, lambda f: UNITS - 1),
    "polars": (lambda f: f["x"].mean(), {"block": "polars"}, None),
    "arrow": (lambda f: pc.sum(f["count"]).as_py(), {"block": "arrow"}, lambda f: f["count"].sum()),
    "numpy": (lambda f: np.nanmax(f["y"]), {"block": "numpy"}, lambda f: f.y.max()),
    "numpy has NaN for NULL": (
        lambda f: np.isnan(f["count"]).sum(),
        {"block": "numpy"},
        lambda f: f["count"].isna().sum(),
    ),
    "numpy has None for no text": (
        lambda f: sum(each is None for each in f["arm"]),
        {"block": "numpy"},
        lambda f: f.arm.isna().sum(),
    ),
    "numpy has floats for flags": (
        lambda f: np.nanmean(f["flag"]),
        {"block": "numpy"},
        lambda f: f.flag.astype("boolean").mean(),
    ),
    "partial": (functools.partial(lambda f, q: f.x.quantile(q), q=0.25), {}, None),
    "integer": (len, {}, lambda f: UNITS),
    "numpy scalar": (lambda f: np.float32(0.5), {}, None),
    "boolean": (lambda f: f.x.max() > 2, {}, None),
    "array without axes": (lambda f: np.array(2.5), {}, None),
    "vectorised": (
        lambda a: np.nanmean(a["x"], axis=1),
        {"vectorised": True, "columns": ["x"]},
        lambda f: f.x.mean(),
    ),
    "vectorised, two columns": (
        lambda a: np.nansum(a["x"] * a["y"], axis=1),
        {"vectorised": True},
        lambda f: (f.x * f.y).sum(),
    ),
    "vectorised, text": (
        lambda a: (a["arm"] == "a").mean(axis=1),
        {"vectorised": True},
        lambda f: (f.arm == "a").mean(),
    ),
}


def estimator_of(name: str) -> LocalEstimator:
    function, how, _ = PER_BLOCK[name]
    return local_estimator(function, **how)


@pytest.mark.parametrize("name", PER_BLOCK)
def test_values_are_those_of_each_block_alone(
    name: str, engine: LocalEngine, frames: list[pd.DataFrame]
) -> None:
    function, _, by_pandas = PER_BLOCK[name]
    values = engine.values(estimator_of(name))
    assert values.dtype == np.float64
    wanted = [(by_pandas or function)(frame) for frame in frames]
    np.testing.assert_allclose(values, np.array(wanted, np.float64), rtol=1e-12)


def test_values_do_not_depend_on_workers_processes_or_what_is_asked_at_once(
    store: BlockStore, engine: LocalEngine
) -> None:
    names = "mean", "vectorised"
    found = [engine.values(estimator_of(name)) for name in names]
    for name, values in zip(names, found, strict=True):
        assert np.array_equal(engine.values(estimator_of(name), 5, 14), values[5:14])
    with LocalEngine(store, workers=1) as other:
        again = [other.values(estimator_of(name)) for name in names]
        assert all(map(np.array_equal, again, found))


@pytest.mark.parametrize("name", ["__unit", "__row", "__ROW"])
def test_numbers_of_rows_and_units_are_no_columns(name: str, grouped_engine: LocalEngine) -> None:
    with pytest.raises(InvalidInput, match=r"columns of the data.*say nothing of fresh data"):
        local_estimator(lambda f: f[name].max(), columns=["x", name])
    hidden = make_estimator(lambda f: f[name].max(), None, ("x", name), "pandas", "hidden")
    with pytest.raises(InvalidInput, match="columns of the holdout"):
        grouped_engine.values(hidden)


def test_a_vectorised_function_needs_units_of_one_row_and_gives_a_value_for_each_block(
    engine: LocalEngine, grouped_engine: LocalEngine
) -> None:
    with pytest.raises(InvalidInput, match="several rows"):
        grouped_engine.values(local_estimator(lambda a: a["x"].mean(axis=1), vectorised=True))
    wrong = local_estimator(lambda a: np.zeros(3), vectorised=True)
    assert np.isnan(engine.values(wrong)).all()


def test_sums_by_vectorised_functions_are_the_same(engine: LocalEngine) -> None:
    one = local_estimator(lambda f: f.y / 3)
    many = local_estimator(lambda a: a["y"] / 3, vectorised=True, columns=["y"])
    some = local_estimator(lambda a: a["arm"] == "a", vectorised=True, columns=["arm"])
    for bounds in ((0.0, 1.0), (-0.5, 1.5)):
        assert np.array_equal(engine.sums(many, bounds=bounds), engine.sums(one, bounds=bounds))
    mixed = engine.sums(one, some)
    assert np.array_equal(engine.sums(many, some), mixed)
    assert 0 < mixed.sum() < engine.sums(one).sum()
    assert np.array_equal(engine.sums(None, None), np.full(BLOCKS, UNITS * WEIGHT_SCALE))
    assert np.array_equal(engine.sums(many, some, terms=True), engine.sums(one, some, terms=True))


def test_a_failure_counts_as_0_in_sums(engine: LocalEngine) -> None:
    good = local_estimator(lambda f: f.x > 0)
    wrong: list[Function] = [lambda f: [1.0] * (len(f) + 1), lambda f: np.ones((len(f), 2))]
    wrong += [lambda f: 1 / 0, lambda f: "text", lambda f: None, lambda f: f]
    for each in map(local_estimator, wrong):
        assert engine.sums(each, None, 0, 1).sum() == 0
        assert engine.sums(each, None, 0, 1, bounds=(-0.5, 1.5)).sum() == 0  # the lowest
        assert engine.sums(good, each, 0, 1).sum() == 0
        assert engine.sums(each, None, 0, 1, terms=True).tolist() == [0] * UNITS


def test_terms_come_with_the_rows_of_many_blocks(tmp_path: Path) -> None:
    """One call for each row would be five thousand: half a minute, where one takes milliseconds.

    A term that fails on a row fails on its block alone.
    """
    store = make_store(tmp_path, mixed_rows(5_000), 5_000)
    x = store.table(columns=["x"]).column(0).to_pylist()
    bad = {x[70], x[71], x[4_321]}

    def fussy(frame: Any) -> Any:
        if bad & set(frame.x):
            raise ValueError("bad")
        return np.full(len(frame), 0.5 if len(frame) > 1 else 0.25)

    with LocalEngine(store, workers=2) as engine:
        company = local_estimator(lambda f: np.full(len(f), len(f) >= 500))
        assert np.array_equal(engine.sums(company), np.full(5_000, WEIGHT_SCALE))
        both = engine.sums(company, local_estimator(lambda f: f.arm == "a"))
        arms = store.table(columns=["arm"]).column(0).to_pylist()
        assert both.tolist() == [WEIGHT_SCALE * (arm == "a") for arm in arms]
        sums = engine.sums(local_estimator(fussy)) / WEIGHT_SCALE
        terms = engine.sums(local_estimator(fussy), terms=True)
        assert (terms / WEIGHT_SCALE).tolist() == sums.tolist()
    assert np.flatnonzero(sums == 0).tolist() == [70, 71, 4_321]
    assert np.count_nonzero(sums == 0.25) < 50  # few were asked alone to find them


def test_a_vectorised_function_may_write_into_its_arrays(engine: LocalEngine) -> None:
    def vandal(arrays: dict[str, Any]) -> Any:
        arrays["x"][:] = np.nan_to_num(arrays["x"])
        arrays["x"][:, 0] = 0
        return arrays["x"].sum(axis=1)

    plain = local_estimator(lambda a: np.nansum(a["x"][:, 1:], axis=1), vectorised=True)
    before = engine.values(plain)
    np.testing.assert_allclose(engine.values(local_estimator(vandal, vectorised=True)), before)
    assert np.array_equal(engine.values(plain), before)


def test_closing_an_engine_ends_the_question_that_it_is_asked(store: BlockStore) -> None:
    engine = LocalEngine(store, workers=1, block_time_limit=100)
    engine.values(estimator_of("mean"))
    timer = threading.Timer(0.5, engine.close)
    timer.start()
    with pytest.raises(Unavailable, match="closed meanwhile"):
        engine.values(local_estimator(lambda f: time.sleep(100)))
    timer.join()


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


def test_an_estimator_says_without_data_which_it_is_and_how_it_is_called() -> None:
    estimator = local_estimator(correlation, columns=["x", "y"])
    assert estimator.identity is not None
    name, first = f"{__name__}.correlation of x, y", estimator.identity[:12]
    assert estimator.describe() == f"{name} (pandas, {first})"
    ways: list[dict[str, Any]] = [{}, {"block": "numpy"}, {"block": "polars"}, {"vectorised": True}]
    ways += [{"columns": list(names)} for names in ("x", "xy", "yx")]
    found = {local_estimator(correlation, **way).identity for way in ways}
    assert len(found) == len(ways)


def test_blocks_that_are_not_there_are_no_failures(tmp_path: Path) -> None:
    store = make_store(tmp_path, mixed_rows(100), 4)
    file = store.place(store.shards[0])
    good = file.read_bytes()
    with LocalEngine(store, workers=1) as engine:
        for content, said in ((bytes(len(good)), "files that can be read"), (good[:-1], "bytes")):
            file.write_bytes(content)
            with pytest.raises(Damaged, match=said):
                engine.values(local_estimator(len))
        file.unlink()
        with pytest.raises(Damaged, match="expected a readable file"):
            engine.values(local_estimator(len))


def test_a_worker_that_cannot_start_is_no_failure(
    store: BlockStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "_WORKER", "tests.engines.local.no_such_module")
    with LocalEngine(store, workers=1) as engine, pytest.raises(Unavailable, match="starts"):
        engine.values(local_estimator(len))
