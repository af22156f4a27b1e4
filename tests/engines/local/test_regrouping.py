"""Rows in other company: what depends on them or on their order is refused where it counts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.engines.python.engine import (
    ASSUMPTION,
    ASSUMPTION_ORDER,
    ASSUMPTION_ROWS,
    ASSUMPTION_SHARED,
    LocalEngine,
)
from holdfast.engines.python.estimator import local_estimator
from holdfast.engines.source import open_blocks
from holdfast.errors import InvalidInput
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import BLOCKS, UNITS, grouped_rows, make_store, mixed_rows


def _finite(values: Any) -> Any:
    if not np.isfinite(values).all():
        raise ValueError("NaN")
    return values


BY_ROW: dict[str, Callable[[Any], Any]] = {
    "compared": lambda f: f.x > 0,
    "fraction": lambda f: f.y / (1 + f.y.abs()),
    "text": lambda f: f.arm == "a",
    "constant": lambda f: np.ones(len(f)),
    "logistic": lambda f: 1 / (1 + np.exp(-f.x.to_numpy())),
    "raises on NULL": lambda f: _finite(f.x.to_numpy()) > 0,
    "row by row": lambda f: [each > 1 for each in f.y],
}
BY_COMPANY: dict[str, Callable[[Any], Any]] = {
    "first row": lambda f: np.full(len(f), float(f.x.iloc[0] < 0.7)),
    "largest": lambda f: f.x / f.x.max(),
    "mean": lambda f: f.x > f.x.mean(),
    "median": lambda f: f.x > f.x.median(),
    "rank": lambda f: f.x.rank(pct=True),
    "neighbour": lambda f: f.x.diff() > 0,
    "place": lambda f: np.arange(len(f)) % 2,
    "number of rows": lambda f: np.full(len(f), 1 / len(f)),
    "large blocks only": lambda f: f.x > (f.x.median() if len(f) > 9 else 0.5),
    "not for one row": lambda f: (f.x > 0) if len(f) > 1 else None,
}


# Also on blocks of the open part: how rows are regrouped there is the same.
ON_OPEN_BLOCKS = {"compared", "raises on NULL", "largest", "place", "not for one row", "first"}


@pytest.mark.parametrize("name", BY_ROW)
def test_terms_of_one_row_each_are_admitted(
    name: str, engine: LocalEngine, open_engine: LocalEngine
) -> None:
    admitted = engine.admit(local_estimator(BY_ROW[name]), rows=True)
    assert admitted.assumptions == (ASSUMPTION_SHARED, ASSUMPTION_ROWS)
    assert admitted.assumption == ASSUMPTION_SHARED
    if name in ON_OPEN_BLOCKS:
        assert open_engine.admit(local_estimator(BY_ROW[name]), rows=True).is_open


@pytest.mark.parametrize("name", BY_COMPANY)
def test_terms_that_depend_on_other_rows_are_refused(
    name: str, engine: LocalEngine, open_engine: LocalEngine
) -> None:
    said = "term of a row depends on that row alone|gave 1 terms for 30 rows"
    for each in (engine, open_engine) if name in ON_OPEN_BLOCKS else (engine,):
        with pytest.raises(InvalidInput, match=said):
            each.admit(local_estimator(BY_COMPANY[name]), rows=True)


def test_vectorised_terms_are_regrouped_too(engine: LocalEngine) -> None:
    good = local_estimator(lambda a: a["x"] > 0, vectorised=True)
    assert engine.admit(good, rows=True).assumptions == (ASSUMPTION, ASSUMPTION_ROWS)

    def centred(a: Any) -> Any:
        return a["y"] > np.nanmean(a["y"], axis=1, keepdims=True)

    with pytest.raises(InvalidInput, match="depends on that row alone"):
        engine.admit(local_estimator(centred, vectorised=True), rows=True)


def test_a_row_that_fails_for_all_of_its_open_block_is_refused(
    open_engine: LocalEngine, open_store: BlockStore
) -> None:
    known = open_blocks(open_store)
    assert known is not None
    last = float(np.nanmax(known.table(known.blocks - 1, known.blocks)["x"].to_numpy()))

    def ends(frame: Any) -> Any:
        if (frame.x == last).any():
            os._exit(3)
        return frame.x > 0

    with pytest.raises(InvalidInput, match="failed on a block of the open part, and not on each"):
        open_engine.admit(local_estimator(ends), rows=True)


def test_rows_that_are_blocks_are_tried_in_company(tmp_path: Path) -> None:
    """They come with the rows of other blocks: alone, every row is its block's mean."""
    store = make_store(tmp_path, mixed_rows(500), 400)
    with LocalEngine(store, workers=1) as engine:
        for name in ("largest", "mean", "median", "rank", "neighbour", "place"):
            with pytest.raises(InvalidInput, match="term of a row depends on that row alone"):
                engine.admit(local_estimator(BY_COMPANY[name]), rows=True)
        engine.admit(local_estimator(BY_ROW["compared"]), rows=True)


def test_a_term_is_tried_on_many_open_rows(tmp_path: Path) -> None:
    store = make_store(tmp_path, mixed_rows(2_000), 1_000, open_fraction=0.5)
    with LocalEngine(store, workers=1) as engine:
        rare = local_estimator(lambda f: np.where(f.y > 10, -0.25, 0.5))
        with pytest.raises(InvalidInput, match=r"lambda gave -0\.25 on an open row"):
            engine.admit(rare, rows=True)
        assert engine.admit(rare, rows=True, bounds=(-0.25, 0.5)).is_open
        with pytest.raises(InvalidInput, match=r"got \(-0\.25, 0\.25\)"):
            engine.admit(rare, rows=True, bounds=(-0.25, 0.25))


def test_made_up_rows_say_nothing_of_a_range(engine: LocalEngine) -> None:
    assert not engine.admit(local_estimator(lambda f: f.x), rows=True, bounds=(0.0, 0.1)).is_open


def test_one_number_is_no_term(engine: LocalEngine, open_engine: LocalEngine) -> None:
    for each in (engine, open_engine):
        with pytest.raises(InvalidInput, match="one for each row"):
            each.admit(local_estimator(lambda f: np.float64(0.5)), rows=True)


def test_terms_in_units_of_several_rows_are_regrouped_row_by_row(tmp_path: Path) -> None:
    store = make_store(tmp_path, grouped_rows(BLOCKS * UNITS), BLOCKS, unit="who")
    with LocalEngine(store, workers=1) as engine:
        admitted = engine.admit(local_estimator(lambda f: f.x > 0), rows=True, symmetric=True)
        assert admitted.assumptions == (ASSUMPTION_SHARED, ASSUMPTION_ROWS, ASSUMPTION_ORDER)
        with pytest.raises(InvalidInput, match="depends on that row alone"):
            engine.admit(local_estimator(lambda f: f.x > f.x.shift(1)), rows=True)


SYMMETRIC: dict[str, Callable[[Any], Any]] = {
    "mean": lambda f: f.x.mean(),
    "centred": lambda f: (f.x - f.x.mean()).sum(),
    "quantile": lambda f: f.y.quantile(0.9),
    "spread": lambda f: np.nanstd(f.x) / (1 + np.nanmax(np.abs(f.x))),
    "groups": lambda f: f.groupby("arm").x.mean().max(),
    "sorted": lambda f: f.x.sort_values().iloc[0],
}
ORDERED: dict[str, Callable[[Any], Any]] = {
    "first": lambda f: f.x.iloc[0],
    "first above": lambda f: float(f.x.iloc[0] > 0),
    "last": lambda f: float(f.arm.iloc[-1] == "a"),
    "half": lambda f: f.x.iloc[: len(f) // 2].mean(),
    "trend": lambda f: (f.x.diff() > 0).mean(),
    "drawn": lambda f: np.random.default_rng(1).choice(f.y, 5).mean(),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_functions_of_unordered_rows_are_admitted(name: str, engine: LocalEngine) -> None:
    estimator = local_estimator(SYMMETRIC[name])
    admitted = engine.admit(estimator, symmetric=True)
    assert admitted.assumptions == (ASSUMPTION_SHARED, ASSUMPTION_ORDER)


@pytest.mark.parametrize("name", ORDERED)
def test_functions_of_the_order_of_rows_are_refused_where_it_counts(
    name: str, engine: LocalEngine, open_engine: LocalEngine
) -> None:
    for each in (engine, open_engine) if name in ON_OPEN_BLOCKS else (engine,):
        with pytest.raises(InvalidInput, match="does not depend on the order of a block's rows"):
            each.admit(local_estimator(ORDERED[name]), symmetric=True)
    assert engine.admit(local_estimator(ORDERED[name])).blocks == 4


def test_vectorised_functions_of_the_order_of_rows_are_refused(engine: LocalEngine) -> None:
    first = local_estimator(lambda a: a["y"][:, 0], vectorised=True)
    with pytest.raises(InvalidInput, match="the order of a block's rows"):
        engine.admit(first, symmetric=True)
    mean = local_estimator(lambda a: np.nanmean(a["y"], axis=1), vectorised=True)
    assert engine.admit(mean, symmetric=True).assumptions == (ASSUMPTION, ASSUMPTION_ORDER)
    assert engine.admit(mean).assumptions == (ASSUMPTION,)
