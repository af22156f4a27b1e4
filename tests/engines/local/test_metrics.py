"""Scores of models and predictions are scikit-learn's, block by block."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holdfast.engines.python import metrics
from holdfast.engines.python.admission import ASSUMPTION, ASSUMPTION_ROWS
from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.estimator import ASSUMPTION_PREDICTIONS
from holdfast.engines.python.metrics import (
    NAMES,
    find_metric,
    is_exact,
    score_estimator,
    term_estimator,
    term_range,
)
from holdfast.errors import InvalidInput
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import make_store

BLOCKS, UNITS = 6, 50
ROWS = BLOCKS * UNITS + 11


def make_rows(seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, ROWS))
    city = rng.choice(["bern", "rome", "oslo"], ROWS)
    label = (a + 0.5 * b + rng.normal(size=ROWS) > 0).astype(int)
    return pd.DataFrame(
        {
            "a": a,
            "b": b,
            "city": city,
            "label": label,
            "price": 3 * a - b + rng.normal(size=ROWS),
            "name": np.where(label == 1, "yes", "no"),
            "yes": label == 1,
        }
    )


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return make_rows()


@pytest.fixture(scope="module")
def store(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    return make_store(tmp_path_factory.mktemp("scores"), rows, BLOCKS)


@pytest.fixture(scope="module")
def engine(store: BlockStore) -> Iterator[LocalEngine]:
    with LocalEngine(store, workers=1) as engine:
        yield engine


def by_block(store: BlockStore, score: Callable[[pd.DataFrame], float]) -> list[float]:
    table = store.table(hidden=True).to_pandas()
    return [score(each) for _, each in table.groupby("__block")]


# The functions for many blocks, against scikit-learn on each.


def on_each(function: Callable[..., Any], target: Any, predicted: Any) -> list[float]:
    values = []
    for one, other in zip(target, predicted, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values.append(float(function(one, other)))
            except ValueError:
                values.append(np.nan)
    return values


LABELS = {
    "accuracy": (metrics.accuracy, sk.accuracy_score),
    "error_rate": (metrics.error_rate, sk.zero_one_loss),
    "balanced_accuracy": (metrics.balanced_accuracy, sk.balanced_accuracy_score),
}
NUMBERS = {
    "mse": (metrics.squared_error, sk.mean_squared_error),
    "rmse": (metrics.root_squared_error, sk.root_mean_squared_error),
    "mae": (metrics.absolute_error, sk.mean_absolute_error),
    "r2": (metrics.r_squared, sk.r2_score),
}
PROBABILITIES = {
    "brier": (metrics.brier, sk.brier_score_loss),
    "log_loss": (metrics.log_loss, lambda y, p: sk.log_loss(y, p, labels=[0, 1])),
    "roc_auc": (metrics.area_under_curve, sk.roc_auc_score),
}
shapes = st.tuples(st.integers(1, 5), st.integers(2, 9), st.integers(0, 2**32 - 1))


@pytest.mark.parametrize("name", LABELS)
@settings(max_examples=50)
@given(shape=shapes, classes=st.integers(1, 4), text=st.booleans())
def test_metrics_of_labels(
    name: str, shape: tuple[int, int, int], classes: int, text: bool
) -> None:
    many, one = LABELS[name]
    rng = np.random.default_rng(shape[2])
    target, predicted = rng.integers(0, classes, (2, *shape[:2]))
    if text:
        words = np.array(["a", "b", "c", "d"], object)
        target, predicted = words[target], words[predicted]
    np.testing.assert_allclose(many(target, predicted), on_each(one, target, predicted), rtol=1e-12)


@pytest.mark.parametrize("name", NUMBERS)
@settings(max_examples=50)
@given(shape=shapes, constant=st.booleans(), whole=st.booleans())
def test_metrics_of_numbers(
    name: str, shape: tuple[int, int, int], constant: bool, whole: bool
) -> None:
    many, one = NUMBERS[name]
    rng = np.random.default_rng(shape[2])
    target, predicted = rng.normal(1, 3, (2, *shape[:2]))
    if whole:
        target, predicted = np.round(target), np.round(predicted)
    if constant:
        target[0] = 1.0
        predicted[0, 0] = 1.0
    wanted = on_each(one, target, predicted)
    np.testing.assert_allclose(many(target, predicted), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PROBABILITIES)
@settings(max_examples=50)
@given(shape=shapes, levels=st.sampled_from([0, 1, 2, 3]))
def test_metrics_of_probabilities(name: str, shape: tuple[int, int, int], levels: int) -> None:
    """With ties, with blocks of one class only, with probabilities 0 and 1."""
    many, one = PROBABILITIES[name]
    rng = np.random.default_rng(shape[2])
    target = rng.integers(0, 2, shape[:2]).astype(float)
    probability = rng.random(shape[:2])
    if levels:
        probability = np.round(probability * levels) / levels
    wanted = on_each(one, target, probability)
    np.testing.assert_allclose(many(target, probability), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [*LABELS, *NUMBERS, *PROBABILITIES])
def test_what_is_missing_or_infinite_fails_its_own_block_only(name: str) -> None:
    many, _ = {**LABELS, **NUMBERS, **PROBABILITIES}[name]
    rng = np.random.default_rng(1)
    target = rng.integers(0, 2, (5, 30)).astype(float)
    predicted = np.round(rng.random((5, 30)))
    plain = many(target, predicted)
    target[1, 3], predicted[3, 4] = np.nan, np.nan
    with np.errstate(all="ignore"):
        values = many(target, predicted)
    assert np.isnan(values).tolist() == [False, True, False, True, False]
    assert np.array_equal(values[[0, 2, 4]], plain[[0, 2, 4]])
    if name in NUMBERS:
        target[0, 0] = np.inf
        with np.errstate(all="ignore"):
            assert np.isnan(many(target, predicted)[0])


# Models, in the engine.


def models(rows: pd.DataFrame) -> dict[str, Any]:
    features = rows[["a", "b"]]
    text = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city"]), (StandardScaler(), ["a", "b"])
    )
    return {
        "logistic": LogisticRegression().fit(features, rows.label),
        "logistic, text labels": LogisticRegression().fit(features, rows.name),
        "logistic, booleans": LogisticRegression().fit(features, rows.yes),
        "arrays without names": LogisticRegression().fit(features.to_numpy(), rows.label),
        "pipeline with text": make_pipeline(text, LogisticRegression()).fit(
            rows[["a", "b", "city"]], rows.label
        ),
        "forest": RandomForestClassifier(n_estimators=5, random_state=1).fit(features, rows.label),
        "ridge": RidgeClassifier().fit(features, rows.label),
        "linear": LinearRegression().fit(features, rows.price),
    }


CASES = {  # by model and target
    ("logistic", "label"): "accuracy balanced_accuracy roc_auc neg_log_loss neg_brier_score f1"
    " matthews_corrcoef",
    ("logistic, text labels", "name"): "accuracy roc_auc balanced_accuracy",
    ("logistic, booleans", "yes"): "accuracy roc_auc",
    ("arrays without names", "label"): "accuracy",
    ("pipeline with text", "label"): "accuracy average_precision",
    ("forest", "label"): "roc_auc",
    ("ridge", "label"): "roc_auc",
    ("linear", "price"): "neg_mean_squared_error neg_mean_absolute_error"
    " neg_root_mean_squared_error r2 explained_variance",
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return models(make_rows(seed=7))


@pytest.mark.parametrize(
    ("name", "target", "metric"), [(*key, each) for key in CASES for each in CASES[key].split()]
)
def test_scores_of_models_are_those_of_scikit_learn(
    name: str,
    target: str,
    metric: str,
    fitted: dict[str, Any],
    engine: LocalEngine,
    store: BlockStore,
) -> None:
    model = fitted[name]
    features = ["a", "b", "city"] if "text" in name and target == "label" else ["a", "b"]
    plain = None if hasattr(model, "feature_names_in_") else features
    estimator = score_estimator(model, metric, target=target, features=plain)
    scorer = sk.get_scorer(metric)

    def score(block: pd.DataFrame) -> float:
        x = block[features] if plain is None else block[features].to_numpy()
        return float(scorer(model, x, block[target]))

    np.testing.assert_allclose(engine.values(estimator), by_block(store, score), rtol=1e-9)
    assert estimator.identity is not None


def test_of_two_classes_the_second_is_what_1_is(
    fitted: dict[str, Any], engine: LocalEngine
) -> None:
    numbers, text = fitted["logistic"], fitted["logistic, text labels"]
    for metric in ("f1", "precision", "recall", "jaccard", "average_precision", "roc_auc"):
        wanted = engine.values(score_estimator(numbers, metric, target="label"))
        assert np.isfinite(wanted).any()
        found = engine.values(score_estimator(text, metric, target="name"))
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_models_and_predictions_are_admitted_with_what_they_assume(
    fitted: dict[str, Any], engine: LocalEngine
) -> None:
    admitted = engine.admit(score_estimator(fitted["logistic"], "accuracy", target="label"))
    assert admitted.blocks >= 4
    assert admitted.assumptions == (ASSUMPTION, ASSUMPTION_ROWS)
    scored = score_estimator(np.zeros(ROWS), "accuracy", target="label")
    assert scored.assumes == (ASSUMPTION_PREDICTIONS,)
    stated = engine.admit(scored).assumptions
    assert stated == (ASSUMPTION, ASSUMPTION_ROWS, ASSUMPTION_PREDICTIONS)
    area = score_estimator(np.zeros(ROWS), "roc_auc", target="label")
    assert engine.admit(area).assumptions[1:] == (ASSUMPTION_PREDICTIONS,)


@pytest.mark.parametrize("metric", ["accuracy", "brier"])
def test_a_model_that_looks_at_other_rows_has_no_mean_of_rows(
    metric: str, engine: LocalEngine
) -> None:
    class First:
        classes_ = np.array([0.0, 1.0])

        def predict(self, frame: Any) -> Any:
            first = np.asarray(frame)[:, 0].reshape(-1, ROWS // BLOCKS)[:, 0]
            return np.repeat((first < 0.7).astype(float), ROWS // BLOCKS)

        def predict_proba(self, frame: Any) -> Any:
            shares = (frame["a"].rank(pct=True)).to_numpy()
            return np.stack([1 - shares, shares], axis=1)

    with pytest.raises(InvalidInput, match=r"depends on that row alone|treats each block"):
        engine.admit(score_estimator(First(), metric, target="label", features=["a"]))


def test_numbers_of_rows_are_neither_features_nor_targets(fitted: dict[str, Any]) -> None:
    model = LogisticRegression().fit(pd.DataFrame({"__row": [0.0, 1.0]}), [0, 1])
    assert score_estimator(fitted["logistic"], "accuracy", target="label").assumes == ()
    for asked, target, features in (
        (fitted["logistic"], "label", ["a", "__row"]),
        (model, "label", None),
        (np.zeros(3), "__row", None),
    ):
        with pytest.raises(InvalidInput, match="say nothing of fresh data"):
            score_estimator(asked, "accuracy", target=target, features=features)


def test_what_does_not_fit_the_data_is_refused_where_it_is_tried(
    fitted: dict[str, Any], engine: LocalEngine
) -> None:
    estimator = score_estimator(fitted["arrays without names"], "accuracy", target="label")
    with pytest.raises(InvalidInput, match="takes 2 features, and gets 6"):
        engine.admit(estimator)
    with pytest.raises(InvalidInput, match="need a target of 0 and 1"):
        engine.admit(score_estimator(np.zeros(ROWS), "roc_auc", target="name"))
    with pytest.raises(InvalidInput, match="311 predictions, one for each row"):
        engine.values(score_estimator(np.zeros(10), "accuracy", target="label"))


def test_a_model_and_a_metric_of_the_users_own(engine: LocalEngine, store: BlockStore) -> None:
    class Above:
        def predict(self, frame: Any) -> Any:
            return (frame["a"] > 0).astype(int)

    def misses(target: Any, predicted: Any) -> float:
        return float(np.mean(target != predicted))

    wanted = np.array(by_block(store, lambda f: float(((f.a > 0) == f.label).mean())))
    accuracy, own = (
        score_estimator(Above(), metric, target="label", features=["a"])
        for metric in ("accuracy", misses)
    )
    np.testing.assert_allclose(engine.values(accuracy), wanted)
    np.testing.assert_allclose(engine.values(own), 1 - wanted)
    assert own.range is None


def test_units_of_several_rows_are_scored_block_by_block(tmp_path: Path) -> None:
    rows = make_rows()
    rows["who"] = np.arange(ROWS) // 2
    store = make_store(tmp_path, rows, BLOCKS, unit="who")
    model = LogisticRegression().fit(rows[["a", "b"]], rows.label)
    with LocalEngine(store, workers=1) as engine:
        for metric in ("accuracy", "roc_auc", "f1"):
            values = engine.values(score_estimator(model, metric, target="label"))
            scorer = sk.get_scorer(metric)
            wanted = by_block(store, lambda f, s=scorer: s(model, f[["a", "b"]], f.label))  # type: ignore[misc]
            np.testing.assert_allclose(values, wanted, rtol=1e-9)


# Predictions for all rows of the original data.


PREDICTED: dict[str, tuple[str, Callable[..., Any]]] = {
    "accuracy": ("label name", sk.accuracy_score),
    "error_rate": ("label", sk.zero_one_loss),
    "brier": ("label", sk.brier_score_loss),
    "log_loss": ("label", sk.log_loss),
    "roc_auc": ("label yes", sk.roc_auc_score),
    "mse": ("price", sk.mean_squared_error),
    "mae": ("price", sk.mean_absolute_error),
    "rmse": ("price", sk.root_mean_squared_error),
    "f1": ("label", sk.f1_score),
    "neg_median_absolute_error": ("price", lambda y, p: -sk.median_absolute_error(y, p)),
}


@pytest.mark.parametrize(
    ("metric", "target"),
    [(name, each) for name in PREDICTED for each in PREDICTED[name][0].split()],
)
def test_scores_of_predictions(
    metric: str, target: str, rows: pd.DataFrame, engine: LocalEngine, store: BlockStore
) -> None:
    rng = np.random.default_rng(5)
    made: Any = rng.random(ROWS)
    if metric in {"accuracy", "error_rate", "f1"}:
        made = np.where(rng.random(ROWS) < 0.8, rows[target], rows[target].iloc[0])
    elif target == "price":
        made = pd.Series(rows.price + rng.normal(size=ROWS))
    values = engine.values(score_estimator(made, metric, target=target))
    predicted = np.asarray(made)
    wanted = by_block(store, lambda f: PREDICTED[metric][1](f[target], predicted[f["__row"]]))
    np.testing.assert_allclose(values, wanted, rtol=1e-9)


RANGES: dict[tuple[tuple[int, int] | None, bool], str] = {  # and whether a mean of such terms
    ((0, 1), True): "accuracy error_rate brier",
    ((-1, 0), True): "neg_brier_score",
    ((0, 1), False): "balanced_accuracy roc_auc f1 roc_auc_ovr precision_macro",
    ((-1, 1), False): "matthews_corrcoef",
    (None, False): "mse r2 explained_variance",
}


@pytest.mark.parametrize(("expected", "metrics"), RANGES.items())
def test_ranges(expected: tuple[tuple[int, int] | None, bool], metrics: str) -> None:
    for metric in metrics.split():
        estimator = score_estimator(np.zeros(3), metric, target="y")
        assert (estimator.range, estimator.bounded_mean) == expected, metric


def test_identity_tells_models_metrics_and_targets(fitted: dict[str, Any]) -> None:
    model, other = fitted["logistic"], fitted["ridge"]
    made = [
        score_estimator(model, "accuracy", target="label"),
        score_estimator(model, "balanced_accuracy", target="label"),
        score_estimator(model, "accuracy", target="price"),
        score_estimator(other, "accuracy", target="label"),
        score_estimator(np.zeros(3), "accuracy", target="label"),
        score_estimator(np.ones(3), "accuracy", target="label"),
    ]
    assert len({each.identity for each in made}) == len(made)
    again = score_estimator(models(make_rows(seed=7))["logistic"], "accuracy", target="label")
    assert again.identity == made[0].identity


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"metric": "acuracy"}, "Did you mean accuracy"),
        ({"metric": "acc"}, "Did you mean accuracy"),  # not jaccard, which is as near
        ({"metric": 3}, "a name, a function"),
        ({"target": 3}, "the name of a column"),
        ({"model": np.zeros((3, 2))}, "Give one column"),
        ({"model": []}, "Give one column"),
        ({"model": DummyClassifier(), "features": ["y", "x"]}, "other than the target"),
    ],
    ids=range(7),
)
def test_wrong_scores_are_refused(wrong: dict[str, Any], said: str) -> None:
    right: dict[str, Any] = {"model": np.zeros(3), "metric": "accuracy", "target": "y"}
    given_now = {**right, **wrong}
    with pytest.raises(InvalidInput, match=said):
        score_estimator(given_now.pop("model"), given_now.pop("metric"), **given_now)


def test_without_scikit_learn_the_common_metrics_work(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    assert find_metric("accuracy").batched is not None
    with pytest.raises(InvalidInput, match=r"pip install scikit-learn"):
        find_metric("f1_macro")


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        *(("accuracy", [1.0, 0.0, 0.0]), ("error_rate", [0.0, 1.0, 1.0])),
        *(("brier", [0.0, 1.0, 1.0]), ("mae", [0.0, 1.0, np.inf]), ("mse", [0.0, 1.0, np.inf])),
        ("log_loss", [0.0, np.inf, np.inf]),
    ],
)
def test_terms_of_rows_without_a_target_are_misses(metric: str, expected: list[float]) -> None:
    chosen = find_metric(metric)
    arrays = {"y": np.array([[1.0, 0.0, np.nan]]), "__row": np.array([[2.0, 0.0, 1.0]])}
    term = term_estimator([1, 0, 1], chosen, "y")
    assert term.batched is not None
    assert np.asarray(term.batched(arrays)).tolist() == [expected]
    if is_exact(chosen):  # labels may be text
        texts = {"y": np.array([["a", "b", None]], object), "__row": arrays["__row"]}
        text = term_estimator(np.array(["c", "c", "a"], object), chosen, "y")
        assert text.batched is not None
        assert np.asarray(text.batched(texts)).tolist() == [expected]
    mean = term_estimator([1, 0, 1], chosen, "y", mean=True)
    assert mean.batched is not None
    assert np.asarray(mean.batched(arrays)).tolist() == [np.mean(np.minimum(expected, 1.0))]
    assert (term.built_in, term.bounded_mean, term.rows) == (True, True, 3)
    assert term.identity != mean.identity
    assert is_exact(chosen) == (metric in {"accuracy", "error_rate"})


def test_which_metrics_are_means_over_rows() -> None:
    span = (-1.0, 3.0)
    always = {name for name in NAMES if term_range(find_metric(name), None, told=False)}
    assert always == {"accuracy", "brier", "brier_score_loss", "error_rate", "zero_one_loss"}
    errors = {name: term_range(find_metric(name), span, told=True) for name in NAMES}
    assert {errors[name] for name in always} == {(0.0, 1.0)}
    more = {name: ends for name, ends in errors.items() if ends and name not in always}
    assert more == {
        **dict.fromkeys(("mae", "mean_absolute_error"), (0.0, 4.0)),
        **dict.fromkeys(("mse", "mean_squared_error"), (0.0, 16.0)),
        "log_loss": (0.0, math.log(1000)),
    }
    assert term_range(find_metric("mae"), None, told=True) is None
    assert term_range(find_metric(lambda target, predicted: 0.5), span, told=True) is None


def test_every_name_of_scikit_learn_is_a_metric_and_which_are_losses() -> None:
    assert all(find_metric(name).name for name in sk.get_scorer_names())
    better = {name: find_metric(name).greater_is_better for name in NAMES}
    losses = {"brier", "brier_score_loss", "error_rate", "log_loss", "mae", "mse", "rmse"}
    losses |= {"mean_absolute_error", "mean_squared_error", "root_mean_squared_error"}
    assert {name for name, up in better.items() if not up} == losses | {"zero_one_loss"}
