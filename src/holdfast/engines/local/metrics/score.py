"""A score: a model, or predictions made before, with a metric, as a function of blocks.

A model predicts the rows of many blocks in one call, which is what makes it fast; that it treats
every row by itself is an assumption, checked like that of every vectorised estimator. Predictions
are given for all rows of the data that the holdout was created from, in their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.estimators import (
    LocalEstimator,
    checked_columns,
    make_estimator,
    refuse_hidden,
)
from holdfast.engines.local.metrics.labels import Labels, WrongLabels, missing_labels
from holdfast.engines.local.metrics.table import (
    NEEDS_LABEL,
    NEEDS_NUMBER,
    NEEDS_PROBABILITY,
    NEEDS_SCORE,
    Metric,
    find_metric,
)
from holdfast.engines.local.metrics.wrapped import scored
from holdfast.errors import InvalidInput
from holdfast.grids import floats_up
from holdfast.protocols.readings import RULE

__all__ = [
    "ROW",
    "ModelScore",
    "PredictionScore",
    "Score",
    "aligned",
    "checked_predictions",
    "checked_target",
    "indicator",
    "is_probability",
    "model_score",
    "score_estimator",
    "score_examples",
    "score_notes",
    "tried_model",
]

ROW = "__row"
_EXAMPLES = 1000  # predictions that made-up targets are taken from


def score_estimator(
    model: object,
    metric: object,
    *,
    target: str,
    features: Sequence[str] | None = None,
    checked: bool = False,
    labels: Labels | None = None,
) -> LocalEstimator:
    """The score of a model, or of predictions for all rows of the original data, as an estimator.

    A model has `predict` and, where the metric needs it, `predict_proba` or `decision_function`.
    Its features are those that it was fitted on, if it knows their names; else `features`; else
    all columns but the target. `checked`: predictions are known to be what metric and target take.
    `labels` are what is public of the target's.

    >>> scored = score_estimator(np.array([0, 1, 1]), "accuracy", target="y")
    >>> scored.range, scored.bounded_mean, scored.columns
    ((0.0, 1.0), True, ('y', '__row'))
    """
    chosen = metric if isinstance(metric, Metric) else find_metric(metric)
    score: Score
    rows, tried = None, None
    columns: tuple[str, ...] | None
    if callable(getattr(model, "predict", None)):
        score, columns, name = model_score(model, chosen, target, features)
        tried = tried_model(score, columns, name, labels)
    else:
        predictions = checked_predictions(model)
        score = PredictionScore(predictions, chosen, checked_target(target))
        columns, rows = (target, ROW), len(predictions)
        name = f"{chosen.name} of predictions for {target}"
    failure = _failure(chosen)
    return make_estimator(
        score,
        None if chosen.needs == "scorer" else score.batch,
        columns,
        "pandas",
        name,
        range=chosen.range,
        bounded_mean=chosen.bounded_mean,
        failure=failure,
        rows=rows,
        built_in=checked and chosen.function is None and not chosen.bounded_mean,
        failing="highest" if failure == math.inf else None,
        reading=RULE,
        notes=score_notes(score, labels),
        examples=score_examples(score, labels),
        tried=tried,
    )


def score_examples(score: Score, labels: Labels | None) -> dict[str, Sequence[object]]:
    """Targets for made-up rows: without them a metric of labels would be undefined there."""
    metric, own = score.metric, score.own_labels()
    compared = metric.labels or metric.binary  # else targets lie where predictions do
    declared = None if labels is None or not compared else labels.declared
    two = (0.0, 1.0) if metric.predicted in {NEEDS_PROBABILITY, NEEDS_SCORE} else ()
    values = declared or own or two
    return {score.target: values} if values else {}


def score_notes(score: Score, labels: Labels | None) -> tuple[str, ...]:
    """What is taken for granted of labels and targets, where nothing public decides."""
    metric, notes = score.metric, []
    if metric.function is not None and metric.needs == NEEDS_LABEL:
        notes.append(f"{metric.name} takes labels, as predict gives them")
    if labels is not None and metric.labels:
        named = score.predictions if isinstance(score, PredictionScore) else score.own_labels()
        notes += labels.unknown(np.asarray(named, object)) if len(named) else ()
    if labels is not None and metric.binary and not labels.known:
        notes.append("every target is 0 or 1, or one of the model's two classes")
    return tuple(notes)


def tried_model(
    score: ModelScore, columns: tuple[str, ...] | None, name: str, labels: Labels | None
) -> Callable[[], LocalEstimator] | None:
    """A model's predictions, to be tried on public blocks before its score is asked."""
    if score.metric.needs == "scorer" and score.metric.predicted != NEEDS_LABEL:
        return None  # scikit-learn chooses what it asks of a model: the score itself is tried
    tried = ModelTrial(score, labels if score.metric.labels else None)
    return partial(make_estimator, tried, tried.batch, columns, "pandas", name)


def _failure(metric: Metric) -> float:
    """A loss that fails is the worst one, or it would be the best."""
    return math.nan if metric.greater_is_better else math.inf


def model_score(
    model: object, metric: Metric, target: str, features: Sequence[str] | None
) -> tuple[ModelScore, tuple[str, ...] | None, str]:
    """A model's score, the columns that it takes, and what it is called."""
    checked_target(target)
    names = _feature_names(model, checked_columns(features))
    if names is not None and target in names:
        raise InvalidInput("features", target, "columns other than the target")
    columns = None if names is None else (*names, target)
    called = f"{metric.name} of {type(model).__name__} for {target}"
    return ModelScore(model, metric, target, names), columns, called


def checked_target(target: object) -> str:
    """The name of a column of the data."""
    if not isinstance(target, str):
        raise InvalidInput("target", target, "the name of a column")
    refuse_hidden("target", target)
    return target


class Score:
    """Values of a metric, for one block as a frame or for many as arrays."""

    def __init__(self, metric: Metric, target: str) -> None:
        self.metric, self.target = metric, target

    def __call__(self, frame: Any) -> float:
        if self.metric.needs == "scorer":
            return self._scored(frame)
        arrays = {name: _values(frame[name])[np.newaxis] for name in frame.columns}
        return float(self.batch(arrays)[0])

    def batch(self, arrays: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        """The metric of every block."""
        target = arrays[self.target]
        predicted, classes = self.predict(arrays, target.shape)
        if self.metric.function is not None:
            return self._own(target, predicted)
        assert self.metric.batched is not None
        if self.metric.needs in {NEEDS_PROBABILITY, NEEDS_SCORE}:
            target = indicator(target, classes)
        elif self.metric.needs == NEEDS_NUMBER:
            target, predicted = target.astype(np.float64), predicted.astype(np.float64)
        return self.metric.sign * self.metric.batched(target, predicted)

    def _own(self, target: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
        """A metric of the user, block by block; the rest of a batch does not fail with one."""
        from holdfast.engines.local.terms import block_value

        function, values = self.metric.function, np.full(len(target), np.nan)
        assert function is not None
        wrong: Exception | None = None
        for block in range(len(target)):
            try:
                values[block] = block_value(function(*aligned(target[block], predicted[block])))
            except Exception as raised:
                wrong = wrong or raised
        if wrong is not None and np.isnan(values).all():
            raise wrong  # on public blocks it is told
        return values

    def predict(
        self, arrays: dict[str, NDArray[Any]], shape: tuple[int, ...]
    ) -> tuple[NDArray[Any], Any]:
        """Predictions for every row, and the classes that a model knows."""
        raise NotImplementedError

    def own_labels(self) -> Sequence[object]:
        """Labels, or numbers, that a model or predictions name by themselves; some of them."""
        raise NotImplementedError

    def _scored(self, frame: Any) -> float:
        """One block's score by scikit-learn."""
        raise NotImplementedError


class ModelScore(Score):
    """The score of a model that predicts each row from its features."""

    def __init__(
        self, model: Any, metric: Metric, target: str, features: tuple[str, ...] | None
    ) -> None:
        super().__init__(metric, target)
        self.model, self.features = model, features

    def predict(
        self, arrays: dict[str, NDArray[Any]], shape: tuple[int, ...]
    ) -> tuple[NDArray[Any], Any]:
        return self._response(self.rows(arrays)).reshape(shape), self.classes

    @property
    def classes(self) -> Any:
        """The classes that the model knows, if it says so."""
        return getattr(self.model, "classes_", None)

    def own_labels(self) -> Sequence[object]:
        classes = np.asarray([] if self.classes is None else self.classes)
        return tuple(classes.tolist()) if classes.ndim == 1 else ()

    def rows(self, arrays: dict[str, NDArray[Any]]) -> Any:
        """The features of all rows, as the model takes them."""
        names = [name for name in arrays if name != self.target]
        names = names if self.features is None else list(self.features)
        return self._rows({name: arrays[name].ravel() for name in names})

    def by_rows(self, rows: Any) -> Iterator[tuple[slice, NDArray[Any] | BaseException]]:
        """Predictions for all rows at once; where that fails, for as many at once as it does not.

        So a row on which the model fails takes no other along.
        """
        waiting = [slice(0, len(rows))]
        while waiting:
            part = waiting.pop()
            size = part.stop - part.start
            try:
                some = rows.iloc[part] if hasattr(rows, "iloc") else rows[part]
                found = self._response(some)
                if found.shape != (size,):
                    raise TypeError(f"it gives {found.shape} predictions for {size:,} rows")
                yield part, found
            except BaseException as error:
                if size == 1:
                    yield part, error
                    continue
                middle = part.start + size // 2
                waiting += [slice(middle, part.stop), slice(part.start, middle)]

    def _rows(self, columns: dict[str, NDArray[Any]]) -> Any:
        """The features as the model was given them when it was fitted: with names or without."""
        import pandas as pd

        expected = getattr(self.model, "n_features_in_", len(columns))
        if expected != len(columns):
            raise TypeError(f"the model takes {expected} features, and gets {len(columns)}")
        text = {name for name, array in columns.items() if array.dtype.kind == "O"}
        frame = pd.DataFrame(
            {
                name: pd.Series(array, dtype="str" if name in text else array.dtype)
                for name, array in columns.items()
            }
        )
        unnamed = hasattr(self.model, "n_features_in_") and not hasattr(
            self.model, "feature_names_in_"
        )
        return frame.to_numpy() if unnamed and not text else frame

    def _response(self, rows: Any) -> NDArray[Any]:
        if self.metric.predicted in {NEEDS_LABEL, NEEDS_NUMBER}:
            return np.asarray(self.model.predict(rows))
        if self.metric.needs == NEEDS_SCORE and hasattr(self.model, "decision_function"):
            return np.asarray(self.model.decision_function(rows))
        probability = np.asarray(self.model.predict_proba(rows))
        if probability.ndim != 2 or probability.shape[1] != 2:
            raise TypeError(f"{self.metric.name} needs a model with two classes")
        return probability[:, 1]

    def _scored(self, frame: Any) -> float:
        from sklearn.metrics import get_scorer

        columns = {name: _values(frame[name]) for name in frame.columns}
        target = columns.pop(self.target)
        names = list(columns) if self.features is None else list(self.features)
        rows = self._rows({name: columns[name] for name in names})
        classes = np.asarray(getattr(self.model, "classes_", target[:1]))
        return float(get_scorer(self.metric.name)(self.model, rows, aligned(target, classes)[0]))


class ModelTrial:
    """What a model predicts on public rows: it must be something, and labels where they are asked.

    Where it fails, or predicts nothing, on most rows it raises what was raised there.
    """

    def __init__(self, score: ModelScore, labels: Labels | None) -> None:
        self.score, self.labels = score, labels

    def __call__(self, frame: Any) -> float:
        arrays = {name: _values(frame[name])[np.newaxis] for name in frame.columns}
        return float(self.batch(arrays)[0])

    def batch(self, arrays: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        """0 for every block."""
        rows = self.score.rows(arrays)
        found = [each for _, each in self.score.by_rows(rows)]
        errors = [each for each in found if isinstance(each, BaseException)]
        given = [each for each in found if not isinstance(each, BaseException)]
        if 2 * len(errors) > len(rows):
            raise errors[0]
        if self.score.metric.predicted == NEEDS_PROBABILITY:
            outside = sum(np.count_nonzero(~is_probability(each)) for each in given)
            if 2 * outside > len(rows):
                raise ValueError("it gives no probability between 0 and 1 on most rows")
        if self.labels is not None:
            predicted = np.concatenate([np.asarray(each, object) for each in given])
            self._check(self.labels, predicted)
        return np.zeros(len(arrays[self.score.target]))

    def _check(self, labels: Labels, predicted: NDArray[Any]) -> None:
        if 2 * np.count_nonzero(missing_labels(predicted)) > len(predicted):
            raise ValueError("it predicts nothing (None or NaN) on most rows")
        found = labels.contradiction(predicted, self.score.own_labels(), model=True)
        if found is not None:
            raise WrongLabels(f"It predicts {found[0]}; allowed are {found[1]}.")


class PredictionScore(Score):
    """The score of predictions for all rows of the original data, in their order."""

    def __init__(self, predictions: NDArray[Any], metric: Metric, target: str) -> None:
        super().__init__(metric, target)
        self.predictions = predictions
        self.scorer: Any = None
        if metric.needs == "scorer":  # named here, it is loaded once a worker, not once a fork
            from sklearn.metrics import get_scorer

            self.scorer = get_scorer(metric.name)

    def predict(
        self, arrays: dict[str, NDArray[Any]], shape: tuple[int, ...]
    ) -> tuple[NDArray[Any], Any]:
        return self.predictions[arrays[ROW].astype(np.int64)].reshape(shape), None

    def own_labels(self) -> Sequence[object]:
        alike = self.metric.predicted in {NEEDS_LABEL, NEEDS_NUMBER}
        return tuple(self.predictions[:_EXAMPLES].tolist()) if alike else ()

    def _scored(self, frame: Any) -> float:
        predicted = self.predictions[_values(frame[ROW]).astype(np.int64)]
        target, predicted = aligned(_values(frame[self.target]), predicted)
        return float(scored(self.scorer, target, predicted))


def _values(column: Any) -> NDArray[Any]:
    """A pandas column as the array that a vectorised function gets."""
    if column.dtype == "boolean":
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    array = np.asarray(column.to_numpy())
    if array.dtype.kind in "fM":
        return array
    text = array.astype(object)
    text[column.isna().to_numpy()] = None
    return text


def aligned(target: NDArray[Any], predicted: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The target in the predictions' type, where that loses nothing: whole numbers, booleans."""
    if target.dtype.kind == "f" and predicted.dtype.kind in "biu":
        whole = target.astype(predicted.dtype)
        return (whole if np.array_equal(whole, target) else target), predicted
    return target, predicted


def is_probability(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a prediction is a number between 0 and 1."""
    numbers = floats_up(values)
    return np.asarray((numbers >= 0) & (numbers <= 1))


def indicator(target: NDArray[Any], classes: Any) -> NDArray[np.float64]:
    """1 for the second class, 0 for the first, NaN for anything else."""
    if classes is None:
        if target.dtype.kind not in "biuf":
            raise TypeError("predictions of a probability need a target of 0 and 1")
        return target.astype(np.float64)
    first, second = classes
    return np.where(target == second, 1.0, np.where(target == first, 0.0, np.nan))


def _feature_names(model: object, features: tuple[str, ...] | None) -> tuple[str, ...] | None:
    fitted = getattr(model, "feature_names_in_", None)
    if features is not None or fitted is None:
        return features
    names = tuple(str(name) for name in fitted)
    for name in names:
        refuse_hidden("features", name)
    return names


def checked_predictions(values: object) -> NDArray[Any]:
    """One prediction for every row, as an array."""
    allowed = "a fitted model with predict, or one prediction for every row of the data"
    hint = "Give one column: labels, numbers, or the probability of the second class."
    if np.ma.is_masked(values):
        raise InvalidInput("model", "masked values", allowed, "A masked prediction is none.")
    try:
        array = np.asarray(values)
        if array.dtype.kind in "UT":  # as text: NumPy's own drops what it ends in
            array = np.asarray(values, object)
    except Exception:
        raise InvalidInput("model", type(values).__name__, allowed) from None
    if array.ndim != 1 or not len(array):
        given = f"{type(values).__name__} of shape {array.shape}"
        raise InvalidInput("model", given, allowed, hint)
    if array.dtype.kind not in "biufO":
        raise InvalidInput("model", f"predictions of type {array.dtype}", allowed, hint)
    return array
