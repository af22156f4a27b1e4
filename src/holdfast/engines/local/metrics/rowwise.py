"""Scores that are a mean over rows of a term between 0 and 1, as that term.

Where every unit is a row, such a score has a much narrower error bar as a mean than as an estimator
of any kind. A row that has no target, or on which a model fails, counts as the worst: 0 for
accuracy, 1 for a loss. So a score of these never fails on a block, but for the end of its process.

    accuracy     1 where the prediction is the target
    error_rate   1 where it is not
    brier        (target − probability)², for targets 0 and 1 and a probability between them; for
                 any other it is 1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.estimators import LocalEstimator, make_estimator
from holdfast.engines.local.metrics.labels import Labels, missing_labels
from holdfast.engines.local.metrics.score import (
    ROW,
    ModelScore,
    PredictionScore,
    Score,
    checked_predictions,
    checked_target,
    indicator,
    is_probability,
    model_score,
    score_examples,
    score_notes,
    tried_model,
)
from holdfast.engines.local.metrics.table import NEEDS_LABEL, UNIT, Metric
from holdfast.grids import floats_up
from holdfast.protocols.readings import RULE

__all__ = ["has_term", "is_exact", "mean_estimator", "term_estimator"]

Array = NDArray[Any]
Terms = NDArray[np.float64]


def _right(target: Array, predicted: Array) -> Terms:
    if predicted.dtype.kind == "O":  # something that is no label, such as pandas' NA, is wrong
        missing = missing_labels(predicted.ravel()).reshape(predicted.shape)
        plain = predicted.copy()
        plain[missing] = None
        return np.where(missing, 0.0, np.asarray(target == plain, np.float64))
    return np.asarray(target == predicted, np.float64)  # a missing target is no prediction


def _wrong(target: Array, predicted: Array) -> Terms:
    return 1.0 - _right(target, predicted)


def _squared(target: Array, probability: Array) -> Terms:
    probability = floats_up(probability)
    inside = ((target == 0) | (target == 1)) & is_probability(probability)
    chosen = np.where(inside, probability, 0.0)
    return np.where(inside, np.square(np.where(inside, target, 0.0) - chosen), 1.0)


_TERMS: dict[str, Callable[[Array, Array], Terms]] = {
    "accuracy": _right,
    "brier": _squared,
    "error_rate": _wrong,
}


def has_term(metric: Metric) -> bool:
    """Whether the metric is the mean over rows of a term between 0 and 1."""
    return metric.name in _TERMS and metric.function is None


def is_exact(metric: Metric) -> bool:
    """Whether that term is 0 or 1."""
    return has_term(metric) and metric.needs == NEEDS_LABEL


def _worst(metric: Metric) -> float:
    return 0.0 if metric.greater_is_better else 1.0


class PredictionTerms:
    """The terms of predictions for all rows of the original data, in their order."""

    def __init__(self, predictions: Array, metric: str, target: str) -> None:
        self.predictions, self.metric, self.target = predictions, metric, target

    def terms(self, arrays: dict[str, Array]) -> Terms:
        """The term of every row: a (blocks, t) array."""
        target = arrays[self.target]
        predicted = self.predictions[arrays[ROW].astype(np.int64)].reshape(target.shape)
        return _TERMS[self.metric](target, predicted)

    def mean(self, arrays: dict[str, Array]) -> Terms:
        """The mean of every block."""
        return np.asarray(self.terms(arrays).mean(axis=1))


class ModelTerms:
    """The terms of a model; a row that it fails on is the worst, and takes no other along."""

    def __init__(self, score: ModelScore) -> None:
        self.score = score

    def terms(self, arrays: dict[str, Array]) -> Terms:
        """The term of every row: a (blocks, t) array."""
        score, target = self.score, arrays[self.score.target]
        if score.metric.needs != NEEDS_LABEL:
            target = indicator(target, score.classes)
        flat, found = target.ravel(), np.full(target.size, _worst(score.metric))
        for part, predicted in score.by_rows(score.rows(arrays)):
            if not isinstance(predicted, BaseException):
                found[part] = _TERMS[score.metric.name](flat[part], predicted)
        return found.reshape(target.shape)

    def mean(self, arrays: dict[str, Array]) -> Terms:
        """The mean of every block."""
        return np.asarray(self.terms(arrays).mean(axis=1))


def term_estimator(
    model: object,
    metric: Metric,
    target: str,
    features: Any = None,
    labels: Labels | None = None,
) -> LocalEstimator:
    """The term of a model or of predictions, to be asked for its mean.

    >>> from holdfast.engines.local.metrics.table import find_metric
    >>> term = term_estimator([0, 1, 1], find_metric("accuracy"), "y")
    >>> term.describe().partition(" (")[0], term.rows, term.built_in
    ('accuracy of predictions for y of y, __row', 3, True)
    """
    return _made(model, metric, target, features, labels, mean=False)


def mean_estimator(
    model: object,
    metric: Metric,
    target: str,
    features: Any = None,
    labels: Labels | None = None,
) -> LocalEstimator:
    """The mean of the same term over a block, to be asked for, or guessed, as any estimator."""
    return _made(model, metric, target, features, labels, mean=True)


def _made(
    model: object, metric: Metric, target: str, features: Any, labels: Labels | None, *, mean: bool
) -> LocalEstimator:
    score: Score
    terms: ModelTerms | PredictionTerms
    if callable(getattr(model, "predict", None)):
        found, columns, name = model_score(model, metric, target, features)
        score, terms = found, ModelTerms(found)
        more: dict[str, Any] = {"tried": tried_model(found, columns, name, labels)}
    else:
        predictions = checked_predictions(model)
        score = PredictionScore(predictions, metric, checked_target(target))
        terms = PredictionTerms(predictions, metric.name, target)
        columns, name = (target, ROW), f"{metric.name} of predictions for {target}"
        more = {"rows": len(predictions), "built_in": True}
    return make_estimator(
        None,
        terms.mean if mean else terms.terms,
        columns,
        "numpy",
        name,
        range=UNIT,
        bounded_mean=True,
        failure=_worst(metric),
        failing="wrong" if metric.needs == NEEDS_LABEL else "one",
        reading=RULE,
        notes=score_notes(score, labels),
        examples=score_examples(score, labels),
        **more,
    )
