"""Holdfast's own metrics of predictions: in this process they have the values of the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.engines.process import Worker
from holdfast.engines.python import metrics as module
from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.estimator import LocalEstimator
from holdfast.engines.python.metrics import (
    NAMES,
    NEEDS_LABEL,
    NEEDS_PROBABILITY,
    PredictionEngine,
    find_metric,
    score_estimator,
    term_estimator,
    term_range,
)
from holdfast.engines.source import Engines
from holdfast.errors import Damaged, InvalidInput
from holdfast.protocols.source import WEIGHT_SCALE
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import make_store
from tools.shards import sharded

BLOCKS, ROWS = 7, 318
TARGETS = ("whole", "gaps", "real", "infinite", "flag", "text")


def rows(count: int = ROWS) -> pd.DataFrame:
    """Targets of every kind, with what is missing or infinite among them."""
    rng = np.random.default_rng(3)
    whole, real = rng.integers(0, 2, count), rng.normal(size=count)
    missing = rng.random(count) < 0.02
    text = np.array(["ham", "spam", "eggs"], object)[rng.integers(0, 3, count)]
    return pd.DataFrame(
        {
            "whole": whole,
            "gaps": pd.array(whole, "Int64"),
            "real": real,
            "infinite": np.where(missing, np.inf, real),
            "flag": pd.array(rng.random(count) < 0.5, "boolean"),
            "text": text,
            "who": rng.integers(0, count // 4, count),
        }
    ).assign(**{name: lambda f, n=name: f[n].mask(missing) for name in ("gaps", "flag", "text")})


@pytest.fixture(scope="module", params=["rows", "units of several rows"])
def engines(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engines]:
    unit = "who" if request.param != "rows" else None
    store = make_store(tmp_path_factory.mktemp("own"), rows(), BLOCKS, unit=unit)
    found = Engines(store)
    yield found
    found.close()


def given(metric: str, target: str) -> Any:
    rng, needs = np.random.default_rng(4), find_metric(metric).needs
    if target == "text":
        return np.array(["ham", "spam", "no label"], object)[rng.integers(0, 3, ROWS)]
    if needs == NEEDS_LABEL:
        return rng.integers(0, 2, ROWS)
    return rng.random(ROWS) if needs == NEEDS_PROBABILITY else rng.normal(size=ROWS)


def scores(metric: str, target: str, store: BlockStore) -> list[LocalEstimator]:
    """What is asked of a metric: where it is the mean of a term, that, else the metric."""
    chosen, made = find_metric(metric), given(metric, target)
    bounds = term_range(chosen, (-3.0, 3.0), told=True)
    if bounds is not None and store.manifest.one_row_units:
        whole = score_estimator(made, chosen, target=target, checked=True)
        return [term_estimator(made, chosen, target, bounds=bounds, mean=True), whole]
    return [score_estimator(made, chosen, target=target, checked=True)]


@pytest.mark.parametrize("target", TARGETS)
def test_values_are_those_of_the_sandbox(
    target: str, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, failures too, however many blocks are read at once."""
    store, seen = engines.store, set()
    if not store.manifest.one_row_units and target in {"whole", "real", "flag"}:
        pytest.skip("nothing is missing or infinite: as with units of one row")
    for metric in NAMES:
        for estimator in scores(metric, target, store):
            if not estimator.own or estimator.identity in seen:
                continue
            there = engines.local.values(estimator, 2, BLOCKS)
            for most in (2**22, 100):
                monkeypatch.setattr(module, "_MOST_ROWS", most)
                here = PredictionEngine(store).values(estimator, 2, BLOCKS)
                assert here.tobytes() == there.tobytes(), (metric, target)
            seen.add(estimator.identity)
    assert len(seen) > 8


@pytest.mark.parametrize("metric", ["accuracy", "error_rate", "brier", "mae", "mse", "log_loss"])
@pytest.mark.parametrize("target", ["gaps", "text"])
def test_sums_and_terms_are_those_of_the_sandbox(
    metric: str, target: str, engines: Engines
) -> None:
    term = term_estimator(given(metric, target), find_metric(metric), target)
    if not engines.store.manifest.one_row_units:
        for each in (False, True):
            with pytest.raises(InvalidInput, match="units have several rows"):
                engines.sums(term, None, 0, BLOCKS, terms=each)
        return
    for bounds in ((0.0, 1.0), (-1.0, 0.5), (0.0, 7.0)):
        here = engines.sums(term, None, 0, BLOCKS, bounds)
        assert here.tolist() == engines.local.sums(term, None, 0, BLOCKS, bounds=bounds).tolist()
        terms = engines.sums(term, None, 0, BLOCKS, bounds, terms=True)
        there = engines.local.sums(term, None, 0, BLOCKS, bounds=bounds, terms=True)
        assert terms.tolist() == there.tolist()
        assert terms.reshape(BLOCKS, -1).sum(axis=1).tolist() == here.tolist()


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    """Six blocks of y = 0, …, 59."""
    return make_store(tmp_path_factory.mktemp("sixty"), pd.DataFrame({"y": np.arange(60.0)}), 6)


def test_a_block_that_raises_fails_alone(sixty: BlockStore) -> None:
    """None does. If one did, what is raised would tell of the rows."""

    def picky(target: Any, predicted: Any) -> Any:
        del predicted
        if (target == 7).any():
            raise ValueError("7 is among them")
        return target.mean(axis=1)

    for name, failure in (("r2", np.nan), ("mse", np.inf)):
        metric = replace(find_metric(name), batched=picky)
        estimator = score_estimator(np.zeros(60), metric, target="y", checked=True)
        assert estimator.own
        found = PredictionEngine(sixty).values(estimator, 0, 6)
        blocks = [sixty.table(k, k + 1).column("y").to_numpy() for k in range(6)]
        wanted = [failure if 7 in block else block.mean() for block in blocks]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("name", "failure"), [("accuracy", 0), ("error_rate", WEIGHT_SCALE)])
def test_the_terms_of_a_block_that_raises_are_the_worst(
    name: str, failure: int, sixty: BlockStore
) -> None:
    term = term_estimator(np.full(60, 30.0), find_metric(name), "y")
    assert term.batched is not None
    right, engine = term.batched, PredictionEngine(sixty)

    def picky(arrays: dict[str, Any]) -> Any:
        if (arrays["y"] == 7).any():
            raise ValueError("7 is among them")
        return right(arrays)

    wanted = engine.sums(term, None, 0, 6, terms=True).reshape(6, 10).copy()
    wanted[[7 in sixty.table(k, k + 1).column("y").to_pylist() for k in range(6)]] = failure
    failing = replace(term, batched=picky)
    assert engine.sums(failing, None, 0, 6, terms=True).tolist() == wanted.ravel().tolist()
    assert engine.sums(failing, None, 0, 6).tolist() == wanted.sum(axis=1).tolist()


class Counted(BlockStore):
    """A store that knows which of its columns were read."""

    read: ClassVar[list[list[str]]] = []

    def table(self, *blocks: Any, **more: Any) -> Any:
        self.read.append(list(blocks[2]))
        return super().table(*blocks, **more)


def test_columns_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are kept: a store in one file here, of few rows."""
    frame = pd.DataFrame({"y": np.arange(60) % 3, "z": np.arange(60) % 2})
    whole = make_store(tmp_path / "whole", frame, 6)
    store = Counted(whole.folder, whole.manifest)
    monkeypatch.setattr(Counted, "read", [])
    accuracy, engines = find_metric("accuracy"), Engines(store)
    asked = [term_estimator(np.full(60, k), accuracy, target) for k in (0, 1) for target in "yz"]

    def terms(engines: Engines, start: int = 0, stop: int = 6) -> list[list[int]]:
        return [engines.sums(each, None, start, stop, terms=True).tolist() for each in asked]

    first = terms(engines, 2, 5)
    assert store.read == [["y"], ["z"]]
    every = terms(engines)
    assert [each[20:50] for each in every] == first
    assert store.read == [["y"], ["z"]]
    for array in engines.own._kept.values():
        assert not array.flags.writeable

    with ThreadPoolExecutor(4) as pool:
        assert all(found == every for found in pool.map(terms, [Engines(store)] * 8))
    engines.close()
    store.read.clear()
    assert terms(engines) == every
    assert store.read == [["y"], ["z"]]

    monkeypatch.setattr(module, "_MOST_CELLS", 150)  # two columns
    store.read.clear()
    assert terms(Engines(store)) == every
    assert store.read == [["y"], ["z"], ["y"], ["z"]]
    store.read.clear()
    monkeypatch.setattr(module, "_MOST_ROWS", 59)
    assert terms(Engines(store)) == every
    assert len(store.read) == 8  # in two parts each time

    monkeypatch.undo()
    shards = sharded(whole, tmp_path / "shards", [2, 3])
    engines = Engines(shards)
    assert terms(engines) == every
    assert not engines.own._kept


def test_blocks_that_cannot_be_read_are_damage(tmp_path: Path) -> None:
    store = make_store(tmp_path, pd.DataFrame({"y": np.arange(60.0)}), 6)
    engine = PredictionEngine(store)
    estimator = score_estimator(np.zeros(60), "mse", target="y", checked=True)
    file = store.place(store.shards[0])
    kept = file.read_bytes()
    file.write_bytes(kept[:-1])
    with pytest.raises(Damaged, match="as many bytes"):
        engine.values(estimator, 0, 6)
    file.write_bytes(bytes(len(kept)))
    with pytest.raises(Damaged, match="The sealed blocks"):
        engine.values(estimator, 0, 6)


def test_only_own_code_runs_here(sixty: BlockStore) -> None:
    """A metric of the user's or of scikit-learn's, and predictions that nobody has checked."""
    given = {"target": "y", "checked": True}
    assert score_estimator(np.zeros(3), "mse", **given).own  # type: ignore[arg-type]
    assert not score_estimator(np.zeros(3), "mse", target="y").own
    assert not score_estimator(np.zeros(3), "f1_macro", **given).own  # type: ignore[arg-type]
    assert not score_estimator(np.zeros(3), max, **given).own  # type: ignore[arg-type]
    term = term_estimator(np.zeros(60), find_metric("accuracy"), "y")
    kept = hf.local_estimator(lambda frame: frame.y > 30)
    with LocalEngine(sixty, workers=1) as local:
        wanted = local.sums(term, kept)
    engines = Engines(sixty)
    assert engines.sums(term, kept, 0, 6).tolist() == wanted.tolist()
    engines.close()


class Model:
    """Says 0."""

    def predict(self, frame: Any) -> Any:
        return np.zeros(len(frame))


def test_a_score_of_predictions_starts_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    frame = pd.DataFrame({"id": np.arange(4000), "y": np.arange(4000) % 2, "x": 0.5})
    plan = hf.plan(queries=3, grid=4, tail=0.05)
    with hf.Holdout.create(tmp_path / "h", frame, plan, target="y", ids="id", seed=1) as holdout:
        monkeypatch.setattr(Worker, "__init__", started)
        keyed = frame.assign(prediction=frame["y"])[["id", "prediction"]]
        for metric in ("accuracy", "brier", "roc_auc"):
            assert holdout.score(keyed, metric=metric).value is not None
        with pytest.raises(AssertionError, match="a process was started"):
            holdout.score(Model(), features=["x"])
