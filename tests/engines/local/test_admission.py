"""Admission: a function that could mix blocks is refused before it sees sealed ones."""

from __future__ import annotations

import importlib
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from holdfast.engines.python.engine import (
    ASSUMPTION,
    ASSUMPTION_SHARED,
    LocalEngine,
    drawn_blocks,
    trial_blocks,
)
from holdfast.engines.python.estimator import local_estimator
from holdfast.errors import InvalidInput
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import BLOCKS, UNITS, grouped_rows, make_store, mixed_rows


def counter(frame: Any) -> float:
    """A state where no copy of the function would find it: in a module of Python's own."""
    calendar: Any = importlib.import_module("calendar")
    calendar.mdays.append(1)
    return float(len(calendar.mdays))


def ranked(arrays: Any) -> Any:
    return np.argsort(np.argsort(np.nanmean(arrays["x"], axis=1))).astype(float)


def half_of_a_batch(arrays: Any) -> Any:
    means = np.nanmean(arrays["x"], axis=1)
    means[: len(means) // 2] = 0.0
    return means


def standardised(arrays: Any) -> Any:
    values = np.nan_to_num(arrays["x"])
    return ((values - values.mean()) / values.std()).mean(axis=1)


GOOD_VECTORISED: dict[str, Callable[[Any], Any]] = {
    "mean": lambda a: np.nanmean(a["x"], axis=1),
    "quantile": lambda a: np.nanquantile(a["x"], 0.9, axis=1),
    "product": lambda a: np.einsum("bt,bt->b", np.nan_to_num(a["x"]), np.nan_to_num(a["y"])),
    "matrix": lambda a: np.nan_to_num(a["x"]) @ np.ones(a["x"].shape[1]),
    "text": lambda a: (a["arm"] == "a").mean(axis=1),
    "raises on NULL": lambda a: np.linalg.norm(_finite(a["x"]), axis=1),
}
MIXING: dict[str, Callable[[Any], Any]] = {
    "running mean": lambda a: np.cumsum(np.nanmean(a["x"], axis=1)),
    "standardised": standardised,
    "ranked": ranked,
    "neighbours": lambda a: (
        np.nanmean(a["x"], axis=1) + 1e-6 * np.roll(np.nanmean(a["x"], axis=1), 1)
    ),
    "largest first": lambda a: np.sort(np.nanmean(a["x"], axis=1)),
    "half of a batch": half_of_a_batch,
}


def _finite(values: Any) -> Any:
    if not np.isfinite(values).all():
        raise ValueError("NaN")
    return values


@pytest.mark.parametrize("name", GOOD_VECTORISED)
def test_functions_that_treat_each_block_by_itself_are_admitted(
    name: str, engine: LocalEngine
) -> None:
    admitted = engine.admit(local_estimator(GOOD_VECTORISED[name], vectorised=True))
    assert admitted.assumption == ASSUMPTION
    assert admitted.blocks >= 6
    assert not admitted.is_open


@pytest.mark.parametrize("function", MIXING.values(), ids=MIXING.keys())
def test_functions_that_mix_blocks_are_refused(
    function: Callable[[Any], Any], engine: LocalEngine, open_engine: LocalEngine
) -> None:
    for each in (engine, open_engine) if function is ranked else (engine,):
        with pytest.raises(InvalidInput, match=r"treats each block by itself.*axis=1"):
            each.admit(local_estimator(function, vectorised=True))


@pytest.mark.parametrize("block", ["pandas", "polars", "arrow", "numpy"])
def test_functions_of_one_block_are_admitted(block: str, engine: LocalEngine) -> None:
    admitted = engine.admit(local_estimator(lambda f: float(len(f["x"])), block=block))
    assert admitted.assumption == ASSUMPTION_SHARED
    assert admitted.blocks == 4


def test_a_function_with_a_state_is_refused(engine: LocalEngine) -> None:
    with pytest.raises(InvalidInput, match="remembers nothing"):
        engine.admit(local_estimator(counter))


def test_isolated_blocks_need_no_assumption(store: BlockStore) -> None:
    with LocalEngine(store, workers=1, isolated=True) as engine:
        assert engine.admit(local_estimator(lambda f: f.x.mean())).assumption is None


@pytest.mark.parametrize("vectorised", [False, True])
def test_a_random_function_is_refused_with_a_hint(vectorised: bool, engine: LocalEngine) -> None:
    def draw(block: Any) -> Any:
        drawn = np.random.default_rng().normal(size=len(block["x"]))
        return drawn if vectorised else drawn[0]

    with pytest.raises(InvalidInput, match=r"the same value every time.*default_rng\(1\)"):
        engine.admit(local_estimator(draw, vectorised=vectorised))


def test_a_seeded_function_is_admitted(engine: LocalEngine) -> None:
    def bootstrap(frame: Any) -> float:
        rng = np.random.default_rng(1)
        return float(rng.choice(frame.x.dropna(), 20).mean())

    assert engine.admit(local_estimator(bootstrap)).blocks == 4


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda f: f.z.mean(), "no attribute 'z'"),
        (lambda f: f["z"].mean(), "KeyError: 'z'"),
        (lambda f: undefined(f), "NameError"),  # type: ignore[name-defined]  # noqa: F821
        (lambda f, g: 1.0, "missing 1 required positional argument"),
        (lambda f: importlib.import_module("no_such_module"), "ModuleNotFoundError"),
    ],
    ids=range(5),
)
def test_a_mistake_is_told_and_costs_nothing(
    function: Callable[..., Any], said: str, engine: LocalEngine
) -> None:
    with pytest.raises(
        InvalidInput, match=r"failed on every made-up block.*Nothing was charged"
    ) as e:
        engine.admit(local_estimator(function))
    assert said in str(e.value)


def known_arms(frame: Any) -> float:
    return float({"control": 1, "drug": 2}[frame.arm.dropna().iloc[0]])


def test_a_function_of_other_data_than_made_up_ones_needs_an_open_part(
    engine: LocalEngine, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=r"every made-up block: KeyError.*keep an open part"):
        engine.admit(local_estimator(known_arms))
    rows = mixed_rows(BLOCKS * UNITS + UNITS)
    rows["arm"] = np.where(rows["x"] > 0, "control", "drug")
    for share, blocks in ((0.02, 8), (0.2, 8)):  # less than one block, and several
        store = make_store(tmp_path / f"{share}", rows, BLOCKS, open_fraction=share)
        with LocalEngine(store, workers=1) as other:
            admitted = other.admit(local_estimator(known_arms))
            assert admitted.is_open
            assert 2 < admitted.blocks <= blocks


def test_units_are_drawn_from_an_open_part_that_fills_no_block(tmp_path: Path) -> None:
    store = make_store(
        tmp_path, grouped_rows(BLOCKS * UNITS), BLOCKS, unit="who", open_fraction=0.05
    )
    with LocalEngine(store, workers=1) as engine:
        job = engine.job((local_estimator(len),), sums=False)
        drawn = drawn_blocks(store, job)
    assert drawn is not None
    assert drawn.is_open
    assert drawn.blocks == 8
    open_rows = store.open_table().to_pandas()
    taken = drawn.table.to_pandas()
    assert set(taken.x.dropna()) <= set(open_rows.x.dropna())
    for a, b in itertools.pairwise(drawn.rows):
        assert taken["__unit"][a:b].nunique() == store.units


@pytest.mark.parametrize(
    "function",
    [lambda f: 1 / 0, lambda f: None, lambda f: np.nan, lambda f: "0.5", lambda f: os._exit(3)],
    ids=["raises", "no number", "not a number", "text", "ends the process"],
)
def test_what_fails_on_most_public_blocks_is_refused(
    function: Callable[[Any], Any], engine: LocalEngine, open_engine: LocalEngine
) -> None:
    for each, where, rows in ((engine, "made-up", False), (open_engine, "open", True)):
        with pytest.raises(InvalidInput, match=f"failed on every {where} block.*Nothing was ch"):
            each.admit(local_estimator(function), rows=rows)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda f: np.full(len(f), np.nan), "most of its terms are no numbers"),
        (lambda f: ["a"] * len(f), "most of its terms are no numbers"),
        (lambda f: np.zeros(len(f) + 1), "one for each row"),
        (lambda f: np.where(np.arange(len(f)) % 3, np.nan, 1.0), "most of its terms"),
    ],
    ids=range(4),
)
def test_terms_that_are_no_numbers_are_failures(
    function: Callable[[Any], Any], said: str, engine: LocalEngine
) -> None:
    with pytest.raises(InvalidInput, match=said):
        engine.admit(local_estimator(function), rows=True)


def test_made_up_rows_keep_to_what_was_declared(store: BlockStore) -> None:
    store = BlockStore(store.folder, store.manifest)
    store.ranges, store.values = {"x": (2.0, 3.0)}, {"arm": ("control", "drug")}
    engine = LocalEngine(store, workers=1)
    with engine:
        job = engine.job((local_estimator(len),), sums=False)
        table = trial_blocks(store, job).table.to_pandas()
        assert table.x.dropna().between(2, 3).all()
        assert table.x.nunique() > 20
        assert set(table.arm.dropna()) == {"control", "drug"}
        assert table.y.min() < -1
        assert engine.admit(local_estimator(known_arms)).blocks == 4


def test_on_open_blocks_every_failure_is_told(open_engine: LocalEngine) -> None:
    assert open_engine.admit(local_estimator(lambda f: f.x.mean())).is_open

    def fails(frame: Any) -> float:
        raise ValueError(f"{len(frame)} rows are too few")

    with pytest.raises(InvalidInput, match="open block: ValueError: 30 rows are too few"):
        open_engine.admit(local_estimator(fails))


def test_a_function_that_never_returns_is_refused(store: BlockStore) -> None:
    with (
        LocalEngine(store, workers=1, block_time_limit=0.3) as engine,
        pytest.raises(InvalidInput, match="took too long"),
    ):
        engine.admit(local_estimator(lambda frame: time.sleep(100)))


def test_terms_for_sums_are_admitted_likewise(engine: LocalEngine) -> None:
    good = local_estimator(lambda a: a["x"] > 0, vectorised=True)
    assert engine.admit(good, rows=True).blocks == 8
    mixing = local_estimator(lambda a: a["x"] > np.nanmean(a["x"]), vectorised=True)
    with pytest.raises(InvalidInput, match="treats each block by itself"):
        engine.admit(mixing, rows=True)


def test_made_up_blocks_follow_the_schema_and_show_no_data(
    store: BlockStore, tmp_path: Path
) -> None:
    other = make_store(tmp_path / "other", mixed_rows(BLOCKS * UNITS, seed=2), BLOCKS)
    tables = []
    for each in (store, other):
        engine = LocalEngine(each, workers=1)
        job = engine.job((local_estimator(len),), sums=False)
        blocks = trial_blocks(each, job)
        assert blocks.blocks == 8
        assert all(b - a == UNITS for a, b in itertools.pairwise(blocks.rows))
        tables.append(blocks.table)
    assert tables[0].equals(tables[1])
    kinds = {name: tables[0].schema.field(name).type for name in tables[0].column_names}
    assert kinds["x"] == pa.float64()
    assert kinds["flag"] == pa.bool_()
    assert kinds["arm"] == pa.string()
    assert pa.types.is_temporal(kinds["day"])
    assert all(tables[0].column(name).null_count for name in store.schema.names)


def test_made_up_units_have_several_rows_where_the_data_do(tmp_path: Path) -> None:
    store = make_store(tmp_path, grouped_rows(BLOCKS * UNITS), BLOCKS, unit="who")
    with LocalEngine(store, workers=1) as engine:
        job = engine.job((local_estimator(len), None), sums=True)
        blocks = trial_blocks(store, job)
        assert len(set(np.diff(blocks.rows))) > 1
        assert engine.admit(local_estimator(lambda f: f.x > 0), rows=True).blocks == 4
