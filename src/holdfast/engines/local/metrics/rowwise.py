"""Scores that are a mean over rows of a term between 0 and 1, as that term.

Where every unit is a row, such a score has a much narrower error bar as a mean than as an estimator
of any kind. A row without a target counts as a miss, so that predictions never fail on a block.

    accuracy     1 where the prediction is the target
    error_rate   1 where it is not
    brier        (target − probability)²
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.estimators import LocalEstimator, make_estimator
from holdfast.engines.local.metrics.score import ROW, ModelScore, checked_predictions, model_score
from holdfast.engines.local.metrics.table import NEEDS_LABEL, UNIT, Metric

__all__ = ["has_term", "is_exact", "mean_estimator", "model_term", "term_estimator"]

Array = NDArray[Any]
Terms = NDArray[np.float64]


def _right(target: Array, predicted: Array) -> Terms:
    return np.asarray(target == predicted, np.float64)  # a missing target is no prediction


def _wrong(target: Array, predicted: Array) -> Terms:
    return 1.0 - _right(target, predicted)


def _squared(target: Array, probability: Array) -> Terms:
    squared = np.square(target.astype(np.float64) - probability)
    return np.where(np.isnan(squared), 1.0, np.minimum(squared, 1.0))


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


def term_estimator(predictions: object, metric: Metric, target: str) -> LocalEstimator:
    """The term of predictions, to be asked for its mean.

    >>> from holdfast.engines.local.metrics.table import find_metric
    >>> term = term_estimator([0, 1, 1], find_metric("accuracy"), "y")
    >>> term.describe().partition(" (")[0], term.rows, term.built_in
    ('accuracy of predictions for y of y, __row', 3, True)
    """
    terms = PredictionTerms(checked_predictions(predictions), metric.name, target)
    return _made(terms.terms, terms)


def mean_estimator(predictions: object, metric: Metric, target: str) -> LocalEstimator:
    """The mean of the same term over a block, to be asked for, or guessed, as any estimator."""
    terms = PredictionTerms(checked_predictions(predictions), metric.name, target)
    return _made(terms.mean, terms)


def _made(function: Callable[[dict[str, Array]], Terms], terms: PredictionTerms) -> LocalEstimator:
    return make_estimator(
        None,
        function,
        (terms.target, ROW),
        "numpy",
        f"{terms.metric} of predictions for {terms.target}",
        range=UNIT,
        bounded_mean=True,
        rows=len(terms.predictions),
        built_in=True,
    )


class ModelTerms:
    """The terms of a model's accuracy; a row that it fails on is a miss."""

    def __init__(self, score: ModelScore) -> None:
        self.score = score

    def terms(self, arrays: dict[str, Array]) -> Terms:
        """The term of every row: a (blocks, t) array."""
        target = arrays[self.score.target]
        predicted, _ = self.score.predict(arrays, target.shape)
        return _right(target, predicted)


def model_term(
    model: object, metric: Metric, target: str, features: Any = None
) -> LocalEstimator | None:
    """The term of a model's accuracy; None for other metrics, in which a failure would be good."""
    if metric.name != "accuracy" or metric.function is not None:
        return None
    score, columns, name = model_score(model, metric, target, features)
    return make_estimator(None, ModelTerms(score).terms, columns, "numpy", name, range=UNIT)
