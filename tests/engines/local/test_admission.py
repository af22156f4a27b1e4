"""Admission: a function that could mix blocks, or rows where it counts, sees no sealed ones."""

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

from holdfast.engines.python.admission import (
    ASSUMPTION,
    ASSUMPTION_ORDER,
    ASSUMPTION_ROWS,
    ASSUMPTION_SHARED,
    drawn_blocks,
)
from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.estimator import local_estimator
from holdfast.engines.source import open_blocks
from holdfast.errors import InvalidInput
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import BLOCKS, UNITS, grouped_rows, make_store, mixed_rows

Function = Callable[..., Any]


def finite(values: Any) -> Any:
    if not np.isfinite(values).all():
        raise ValueError("NaN")
    return values


def counter(frame: Any) -> float:
    """A state where no copy of the function would find it: in a module of Python's own."""
    calendar: Any = importlib.import_module("calendar")
    calendar.mdays.append(1)
    return float(len(calendar.mdays))


def bootstrap(frame: Any) -> float:
    return float(np.random.default_rng(1).choice(frame.x.dropna(), 20).mean())


def draw(block: Any) -> Any:
    return np.random.default_rng().normal(size=len(block["x"]))


def half_of_a_batch(arrays: Any) -> Any:
    means = np.nanmean(arrays["x"], axis=1)
    means[: len(means) // 2] = 0.0
    return means


def standardised(arrays: Any) -> Any:
    values = np.nan_to_num(arrays["x"])
    return ((values - values.mean()) / values.std()).mean(axis=1)


def known_arms(frame: Any) -> float:
    return float({"control": 1, "drug": 2}[frame.arm.dropna().iloc[0]])


VECTORISED: dict[str, Function] = {
    "mean": lambda a: np.nanmean(a["x"], axis=1),
    "quantile": lambda a: np.nanquantile(a["x"], 0.9, axis=1),
    "product": lambda a: np.einsum("bt,bt->b", np.nan_to_num(a["x"]), np.nan_to_num(a["y"])),
    "matrix": lambda a: np.nan_to_num(a["x"]) @ np.ones(a["x"].shape[1]),
    "text": lambda a: (a["arm"] == "a").mean(axis=1),
    "raises on NULL": lambda a: np.linalg.norm(finite(a["x"]), axis=1),
}
MIXING: dict[str, Function] = {
    "running mean": lambda a: np.cumsum(np.nanmean(a["x"], axis=1)),
    "standardised": standardised,
    "ranked": lambda a: np.argsort(np.argsort(np.nanmean(a["x"], axis=1))).astype(float),
    "neighbours": lambda a: (
        np.nanmean(a["x"], axis=1) + 1e-6 * np.roll(np.nanmean(a["x"], axis=1), 1)
    ),
    "largest first": lambda a: np.sort(np.nanmean(a["x"], axis=1)),
    "half of a batch": half_of_a_batch,
}
BY_ROW: dict[str, Function] = {
    "compared": lambda f: f.x > 0,
    "fraction": lambda f: f.y / (1 + f.y.abs()),
    "constant": lambda f: np.ones(len(f)),
    "logistic": lambda f: 1 / (1 + np.exp(-f.x.to_numpy())),
    "raises on NULL": lambda f: finite(f.x.to_numpy()) > 0,
    "row by row": lambda f: [each > 1 for each in f.y],
}
BY_COMPANY: dict[str, Function] = {
    "first row": lambda f: np.full(len(f), float(f.x.iloc[0] < 0.7)),
    "largest": lambda f: f.x / f.x.max(),
    "mean": lambda f: f.x > f.x.mean(),
    "rank": lambda f: f.x.rank(pct=True),
    "neighbour": lambda f: f.x.diff() > 0,
    "place": lambda f: np.arange(len(f)) % 2,
    "number of rows": lambda f: np.full(len(f), 1 / len(f)),
    "large blocks only": lambda f: f.x > (f.x.median() if len(f) > 9 else 0.5),
    "not for one row": lambda f: (f.x > 0) if len(f) > 1 else None,
}
SYMMETRIC: dict[str, Function] = {
    "mean": lambda f: f.x.mean(),
    "centred": lambda f: (f.x - f.x.mean()).sum(),
    "quantile": lambda f: f.y.quantile(0.9),
    "groups": lambda f: f.groupby("arm").x.mean().max(),
    "sorted": lambda f: f.x.sort_values().iloc[0],
}
ORDERED: dict[str, Function] = {
    "first": lambda f: f.x.iloc[0],
    "last": lambda f: float(f.arm.iloc[-1] == "a"),
    "half": lambda f: f.x.iloc[: len(f) // 2].mean(),
    "trend": lambda f: (f.x.diff() > 0).mean(),
    "drawn": lambda f: np.random.default_rng(1).choice(f.y, 5).mean(),
}
ROWS, IN_ANY_ORDER, MANY = {"rows": True}, {"symmetric": True}, {"vectorised": True}

Admitted = tuple[Function, dict[str, Any], dict[str, Any], tuple[str, ...]]
# A function, how it is called and what is wanted of it; what is then taken for granted.
ADMITTED: dict[str, Admitted] = {
    **{f"many blocks: {n}": (f, MANY, {}, (ASSUMPTION,)) for n, f in VECTORISED.items()},
    **{f"{n}": (f, {}, ROWS, (ASSUMPTION_SHARED, ASSUMPTION_ROWS)) for n, f in BY_ROW.items()},
    **{
        f"any order: {n}": (f, {}, IN_ANY_ORDER, (ASSUMPTION_SHARED, ASSUMPTION_ORDER))
        for n, f in SYMMETRIC.items()
    },
    **{
        each: (lambda f: float(len(f["x"])), {"block": each}, {}, (ASSUMPTION_SHARED,))
        for each in ("polars", "arrow", "numpy")
    },
    "seeded": (bootstrap, {}, {}, (ASSUMPTION_SHARED,)),
    "first row, where order does not count": (ORDERED["first"], {}, {}, (ASSUMPTION_SHARED,)),
    "many terms": (lambda a: a["x"] > 0, MANY, ROWS, (ASSUMPTION, ASSUMPTION_ROWS)),
    "many, any order": (VECTORISED["mean"], MANY, IN_ANY_ORDER, (ASSUMPTION, ASSUMPTION_ORDER)),
}


def failed(why: str = "") -> str:
    return f"failed on every {{}} block: .*{why}.*Nothing was charged"


Refused = tuple[Function, dict[str, Any], dict[str, Any], str]
APART, ALONE = r"treats each block by itself.*axis=1", "term of a row depends on that row alone"
ORDER, RANDOM = "the order of a block's rows", r"the same value every time.*default_rng\(1\)"
NO_NUMBERS = "most of its terms are no numbers"
REFUSED: dict[str, Refused] = {
    **{f"blocks: {n}": (f, MANY, {}, APART) for n, f in MIXING.items()},
    **{f"rows: {n}": (f, {}, ROWS, ALONE) for n, f in BY_COMPANY.items()},
    **{f"order: {n}": (f, {}, IN_ANY_ORDER, ORDER) for n, f in ORDERED.items()},
    "a mean of all": (lambda a: a["x"] > np.nanmean(a["x"]), MANY, ROWS, APART),
    "a mean of the block": (
        lambda a: a["y"] > np.nanmean(a["y"], axis=1, keepdims=True),
        MANY,
        ROWS,
        ALONE,
    ),
    "the first of many": (lambda a: a["y"][:, 0], MANY, IN_ANY_ORDER, ORDER),
    "a state": (counter, {}, {}, "remembers nothing"),
    "random": (lambda f: draw(f)[0], {}, {}, RANDOM),
    "many at random": (draw, MANY, {}, RANDOM),
    "one number": (lambda f: np.float64(0.5), {}, ROWS, "one for each row"),
    "no terms": (lambda f: np.full(len(f), np.nan), {}, ROWS, NO_NUMBERS),
    "terms of text": (lambda f: ["a"] * len(f), {}, ROWS, NO_NUMBERS),
    "too many terms": (lambda f: np.zeros(len(f) + 1), {}, ROWS, "one for each row"),
    "few terms": (lambda f: np.where(np.arange(len(f)) % 3, np.nan, 1.0), {}, ROWS, NO_NUMBERS),
    "no such attribute": (lambda f: f.z.mean(), {}, {}, failed("no attribute 'z'")),
    "no such column": (lambda f: f["z"].mean(), {}, {}, failed("KeyError: 'z'")),
    "no such name": (lambda f: undefined(f), {}, {}, failed("NameError")),  # type: ignore[name-defined]  # noqa: F821
    "two arguments": (lambda f, g: 1.0, {}, {}, failed("missing 1 required positional argument")),
    "no such module": (
        lambda f: importlib.import_module("nowhere"),
        {},
        {},
        failed("ModuleNotFound"),
    ),
    "raises": (lambda f: 1 / 0, {}, {}, failed()),
    "raises for terms": (lambda f: 1 / 0, {}, ROWS, failed()),
    "None": (lambda f: None, {}, ROWS, failed()),
    "not a number": (lambda f: np.nan, {}, {}, failed()),
    "text": (lambda f: "0.5", {}, {}, failed()),
    "ends its process": (lambda f: os._exit(3), {}, ROWS, failed()),
}
# Also on blocks of the open part: what is done with them is the same.
ON_OPEN_BLOCKS = {
    *("compared", "raises on NULL", "blocks: ranked", "rows: place", "order: first"),
    *("one number", "raises for terms", "None", "ends its process"),
}


@pytest.mark.parametrize("name", ADMITTED)
def test_functions_that_keep_apart_what_counts_are_admitted(
    name: str, engine: LocalEngine, open_engine: LocalEngine
) -> None:
    function, how, wanted, assumptions = ADMITTED[name]
    admitted = engine.admit(local_estimator(function, **how), **wanted)
    assert admitted.assumptions == assumptions
    assert admitted.blocks >= (6 if how is MANY else 3)
    assert not admitted.is_open
    if name in ON_OPEN_BLOCKS:
        assert open_engine.admit(local_estimator(function, **how), **wanted).is_open


@pytest.mark.parametrize("name", REFUSED)
def test_what_mixes_fails_or_draws_is_refused_and_told(
    name: str, engine: LocalEngine, open_engine: LocalEngine
) -> None:
    function, how, wanted, said = REFUSED[name]
    engines = {"made-up": engine} | ({"open": open_engine} if name in ON_OPEN_BLOCKS else {})
    for where, each in engines.items():
        with pytest.raises(InvalidInput, match=said.format(where)):
            each.admit(local_estimator(function, **how), **wanted)


def test_on_open_blocks_every_failure_is_told(open_engine: LocalEngine) -> None:
    def fails(frame: Any) -> float:
        raise ValueError(f"{len(frame)} rows are too few")

    with pytest.raises(InvalidInput, match="open block: ValueError: 30 rows are too few"):
        open_engine.admit(local_estimator(fails))


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
    engine = LocalEngine(store, workers=1)
    drawn = drawn_blocks(store, engine._job((local_estimator(len),), sums=False))
    assert drawn is not None
    assert (drawn.is_open, drawn.blocks) == (True, 8)
    open_rows = store.open_table().to_pandas()
    taken = drawn.table.to_pandas()
    assert set(taken.x.dropna()) <= set(open_rows.x.dropna())
    for a, b in itertools.pairwise(drawn.rows):
        assert taken["__unit"][a:b].nunique() == store.units


def test_made_up_rows_keep_to_what_was_declared(store: BlockStore) -> None:
    store = BlockStore(store.folder, store.manifest)
    store.ranges, store.values = {"x": (2.0, 3.0)}, {"arm": ("control", "drug")}
    with LocalEngine(store, workers=1) as engine:
        table = engine.public_blocks(local_estimator(len), sums=False).table.to_pandas()
        assert table.x.dropna().between(2, 3).all()
        assert table.x.nunique() > 20
        assert set(table.arm.dropna()) == {"control", "drug"}
        assert table.y.min() < -1
        assert engine.admit(local_estimator(known_arms)).blocks == 4


def test_a_function_that_never_returns_is_refused(store: BlockStore) -> None:
    with (
        LocalEngine(store, workers=1, block_time_limit=0.3) as engine,
        pytest.raises(InvalidInput, match="took too long"),
    ):
        engine.admit(local_estimator(lambda frame: time.sleep(100)))


def test_made_up_blocks_follow_the_schema_and_show_no_data(
    store: BlockStore, tmp_path: Path
) -> None:
    other = make_store(tmp_path / "other", mixed_rows(BLOCKS * UNITS, seed=2), BLOCKS)
    tables = []
    for each in (store, other):
        blocks = LocalEngine(each, workers=1).public_blocks(local_estimator(len), sums=False)
        assert blocks.blocks == 8
        assert all(b - a == UNITS for a, b in itertools.pairwise(blocks.rows))
        tables.append(blocks.table)
    assert tables[0].equals(tables[1])
    kinds = {name: tables[0].schema.field(name).type for name in tables[0].column_names}
    assert (kinds["x"], kinds["flag"], kinds["arm"]) == (pa.float64(), pa.bool_(), pa.string())
    assert pa.types.is_temporal(kinds["day"])
    assert all(tables[0].column(name).null_count for name in store.schema.names)


def test_rows_that_are_blocks_are_tried_in_company(tmp_path: Path) -> None:
    """They come with the rows of other blocks: alone, every row is its block's mean."""
    store = make_store(tmp_path, mixed_rows(500), 400)
    with LocalEngine(store, workers=1) as engine:
        for name in ("mean", "neighbour", "place"):
            with pytest.raises(InvalidInput, match=ALONE):
                engine.admit(local_estimator(BY_COMPANY[name]), rows=True)
        engine.admit(local_estimator(BY_ROW["compared"]), rows=True)


def test_a_term_is_tried_on_many_open_rows(tmp_path: Path, engine: LocalEngine) -> None:
    """Made-up ones say nothing of a range."""
    assert not engine.admit(local_estimator(lambda f: f.x), rows=True, bounds=(0.0, 0.1)).is_open
    store = make_store(tmp_path, mixed_rows(2_000), 1_000, open_fraction=0.5)
    with LocalEngine(store, workers=1) as other:
        rare = local_estimator(lambda f: np.where(f.y > 10, -0.25, 0.5))
        with pytest.raises(InvalidInput, match=r"lambda gave -0\.25 on an open row"):
            other.admit(rare, rows=True)
        assert other.admit(rare, rows=True, bounds=(-0.25, 0.5)).is_open
        with pytest.raises(InvalidInput, match=r"got \(-0\.25, 0\.25\)"):
            other.admit(rare, rows=True, bounds=(-0.25, 0.25))


def test_units_of_several_rows_are_made_up_and_regrouped_row_by_row(tmp_path: Path) -> None:
    store = make_store(tmp_path, grouped_rows(BLOCKS * UNITS), BLOCKS, unit="who")
    with LocalEngine(store, workers=1) as engine:
        term = local_estimator(lambda f: f.x > 0)
        assert len(set(np.diff(engine.public_blocks(term, sums=True).rows))) > 1
        admitted = engine.admit(term, rows=True, symmetric=True)
        assert admitted.assumptions == (ASSUMPTION_SHARED, ASSUMPTION_ROWS, ASSUMPTION_ORDER)
        with pytest.raises(InvalidInput, match=ALONE):
            engine.admit(local_estimator(lambda f: f.x > f.x.shift(1)), rows=True)
