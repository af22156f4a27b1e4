"""Scores of models and of predictions, as estimators: metrics by name, in numpy for many blocks;
labels; a model or predictions with a metric as a function of blocks; the engine for predictions.

scikit-learn is loaded only where a metric that is not in the table asks for it.
"""

from __future__ import annotations

import difflib
import inspect
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.estimator import (
    LocalEstimator,
    block_value,
    block_values,
    checked_columns,
    column_array,
    failed_sum,
    make_estimator,
    refuse_hidden,
    row_numbers,
    row_terms,
    stored_columns,
    unit_parts,
)
from holdfast.engines.python.identity import version
from holdfast.engines.python.worker import too_large, unreadable
from holdfast.errors import InvalidInput, real_number
from holdfast.grids import floats_up
from holdfast.protocols.answers import RULE
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds

__all__ = [
    "NAMES",
    "NEEDS_LABEL",
    "NEEDS_NUMBER",
    "NEEDS_PROBABILITY",
    "NEEDS_SCORE",
    "OVER_ROWS",
    "Labels",
    "Metric",
    "PredictionEngine",
    "Predictions",
    "checked_function",
    "checked_predictions",
    "checked_target",
    "find_metric",
    "is_exact",
    "is_scorer",
    "listed",
    "needs_of",
    "plain",
    "row_metric",
    "score_estimator",
    "term_estimator",
    "term_range",
    "unwrapped",
]


Array = NDArray[Any]
Values = NDArray[np.float64]

# The common metrics for many blocks at once: from (blocks, t) arrays to one value per block. Each
# is scikit-learn's metric of the same name on every block. Where that is undefined, or raises, the
# value is NaN: the block has failed.


def _missing(array: Array) -> NDArray[np.bool_]:
    """Where a value is missing: NaN, NaT, None."""
    if array.dtype.kind in "biu":
        return np.zeros(array.shape, np.bool_)
    if array.dtype.kind in "fM":
        return np.asarray(array != array)
    return np.array([x is None or x != x for x in array.ravel()], np.bool_).reshape(array.shape)


def _undefined(values: Values, *arrays: Array) -> Values:
    """NaN where any of a block's rows lacks a target or a prediction."""
    broken = np.zeros(len(values), np.bool_)
    for array in arrays:
        broken |= _missing(array).reshape(len(values), -1).any(axis=1)
    return np.where(broken, np.nan, values)


def _finite(values: Values, *arrays: Array) -> Values:
    """NaN where any of a block's numbers is missing or infinite, and that shows in its value."""
    whole = np.ones(len(values), np.bool_)
    for array in arrays:
        whole &= np.isfinite(array).all(axis=1)
    return np.where(whole | np.isfinite(values), values, np.nan)


def accuracy(target: Array, predicted: Array) -> Values:
    """The share of rows whose prediction is the target.

    >>> accuracy(np.array([[0, 1], [1, 1]]), np.array([[0, 1], [0, 1]]))
    array([1. , 0.5])
    """
    return _undefined(np.mean(target == predicted, axis=1), target, predicted)


def error_rate(target: Array, predicted: Array) -> Values:
    """The share of rows whose prediction is not the target."""
    return _undefined(np.mean(target != predicted, axis=1), target, predicted)


def balanced_accuracy(target: Array, predicted: Array) -> Values:
    """The mean, over the labels that a block's targets have, of the share predicted right."""
    shares, labels = np.zeros(len(target)), np.zeros(len(target))
    known = target[~_missing(target)]
    for label in np.unique(known.astype(str) if known.dtype.hasobject else known):
        here = target == label
        count = np.count_nonzero(here, axis=1)
        right = np.count_nonzero(here & (predicted == label), axis=1)
        shares += np.where(count > 0, right / np.maximum(count, 1), 0.0)
        labels += count > 0
    return _undefined(shares / np.maximum(labels, 1), target, predicted)


def f1(target: Array, predicted: Array) -> Values:
    """2·TP / (2·TP + FP + FN) for targets and predictions 0 and 1; 0 where there is no 1 at all.

    Of a model's two classes the second is 1, as it is for probabilities.

    >>> f1(np.array([[0, 1, 1], [0, 0, 0]]), np.array([[1, 1, 0], [0, 0, 0]]))
    array([0.5, 0. ])
    """
    true, said = target == 1, predicted == 1
    right = np.count_nonzero(true & said, axis=1)
    both = np.count_nonzero(true, axis=1) + np.count_nonzero(said, axis=1)
    values = 2 * right / np.maximum(both, 1)
    return np.where(_binary(target) & _binary(predicted), values, np.nan)


def squared_error(target: Array, predicted: Array) -> Values:
    """The mean of (target − prediction)²."""
    return _finite(np.mean(np.square(target - predicted), axis=1), target, predicted)


def root_squared_error(target: Array, predicted: Array) -> Values:
    """The root of the mean of (target − prediction)²."""
    return np.sqrt(squared_error(target, predicted))


def absolute_error(target: Array, predicted: Array) -> Values:
    """The mean of |target − prediction|."""
    return _finite(np.mean(np.abs(target - predicted), axis=1), target, predicted)


def r_squared(target: Array, predicted: Array) -> Values:
    """1 − Σ(target − prediction)² / Σ(target − mean)²; a constant target gives 1 or 0."""
    if target.shape[1] < 2:
        return np.full(len(target), np.nan)
    residual = np.sum(np.square(target - predicted), axis=1)
    total = np.sum(np.square(target - target.mean(axis=1, keepdims=True)), axis=1)
    constant = np.where(residual == 0, 1.0, 0.0)
    values = np.where(total == 0, constant, 1 - residual / np.where(total == 0, 1.0, total))
    values = np.where(np.isfinite(residual), values, np.nan)
    return _finite(values, target, predicted)


def brier(target: Array, probability: Array) -> Values:
    """The mean of (target − probability)² for targets 0 and 1 and probabilities in [0, 1]."""
    values = squared_error(target, probability)
    return np.where(_binary(target) & _within(probability), values, np.nan)


def log_loss(target: Array, probability: Array) -> Values:
    """−mean ln P[target] for targets 0 and 1; probabilities are kept off 0 and 1 by one rounding.

    As scikit-learn's with labels=[0, 1]: a block with targets of one kind has a value too.
    """
    if probability.dtype.kind != "f":
        probability = probability.astype(np.float64)
    tiny = np.finfo(probability.dtype).eps
    kept = np.clip(probability, tiny, 1 - tiny)
    values = -np.mean(np.where(target == 1, np.log(kept), np.log1p(-kept)), axis=1)
    return np.where(_binary(target) & _within(probability), values, np.nan)


def area_under_curve(target: Array, score: Array) -> Values:
    """P[score of a 1 > score of a 0] + P[they are equal]/2 over all pairs in a block; by ranks.

    >>> area_under_curve(np.array([[0.0, 1, 0, 1]]), np.array([[0.1, 0.4, 0.4, 0.8]]))
    array([0.875])
    """
    ones = np.count_nonzero(target == 1, axis=1)
    pairs = ones * (target.shape[1] - ones)
    ranks = np.where(target == 1, _ranks(score), 0.0).sum(axis=1)
    values = (ranks - ones * (ones + 1) / 2) / np.maximum(pairs, 1)
    defined = (pairs > 0) & _binary(target) & np.isfinite(score).all(axis=1)
    return np.where(defined, values, np.nan)


def _ranks(score: Array) -> Values:
    """The ranks 1, 2, … within each block; equal scores share the mean of theirs."""
    order = np.argsort(score, axis=1, kind="stable")
    ordered = np.take_along_axis(score, order, axis=1)
    place = np.broadcast_to(np.arange(score.shape[1], dtype=np.float64), score.shape)
    new = np.ones(score.shape, np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    end = np.ones(score.shape, np.bool_)
    end[:, :-1] = new[:, 1:]
    first = np.maximum.accumulate(np.where(new, place, 0.0), axis=1)
    last = np.where(end, place, np.inf)[:, ::-1]
    last = np.minimum.accumulate(last, axis=1)[:, ::-1]
    ranks = np.empty(score.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    return ranks


def _binary(target: Array) -> NDArray[np.bool_]:
    return np.asarray(((target == 0) | (target == 1)).all(axis=1))


def _within(probability: Array) -> NDArray[np.bool_]:
    return np.asarray(((probability >= 0) & (probability <= 1)).all(axis=1))


# A prediction that is no label counts as wrong, and so would a whole column of probabilities, of
# labels in capitals or of numbers for text: a score of 0, certified and charged. What can be told
# apart by what is public is refused first: by the labels that were declared; else by the target's
# kind and by the labels of the open part, which are some of them.

_NAMED = 3
_LONGEST = 40
_ENOUGH = 20  # open rows from which their labels are taken for a sample of all
_FRACTIONS = 20  # more different ones are no labels
_NEAR = 1_000  # whole numbers that lie so near each other are counted, not sorted

_ELSE = (
    ": for probabilities there are brier, log_loss and roc_auc, for a number such as a price mae, "
    "rmse and r2"
)

Contradiction = tuple[str, str]
"""What was found, and what is allowed."""


class WrongLabels(ValueError):
    """A model predicts on public rows what can be no label."""


@dataclass(frozen=True)
class Labels:
    """What is public of a target's values.

    >>> Labels("text", ("ham", "spam")).contradiction(np.array(["ham", "Spam"]))
    ("1 prediction that is no label ('Spam')", "one of the labels 'ham', 'spam'")
    >>> Labels("number", seen=(0.0, 1.0), rows=50).contradiction(np.array([0.25, 1.0]))[0]
    '1 fraction (0.25)'
    """

    kind: str
    """The target's kind: boolean, number or text."""
    declared: tuple[object, ...] | None = None
    """All labels there are, if the custodian has said so."""
    seen: tuple[object, ...] = ()
    """Those of the open part."""
    rows: int = 0
    """How many open rows have one."""

    @cached_property
    def known(self) -> tuple[object, ...]:
        """Labels that are public, all or some."""
        return self.seen if self.declared is None else self.declared

    @cached_property
    def _all(self) -> frozenset[object]:
        return frozenset(plain(each) for each in self.known)

    def contradiction(
        self, predicted: NDArray[Any], own: Sequence[object] = (), *, model: bool = False
    ) -> Contradiction | None:
        """What says that predictions are no labels; None if nothing public does.

        `own` are the classes that a model names. Of a `model` a few rows are seen, not all.
        """
        missing = missing_labels(predicted)
        if missing.any() and not model:
            return _count(int(missing.sum()), "missing prediction"), "a label for every row"
        found = _distinct(predicted[~missing])
        text = [each for each in found if type(each) is str]
        known = f" ({listed(self.known)})" if self.known else ""
        if self.kind == "text" and len(text) < len(found):
            return f"numbers ({listed([*found])})", f"text, as the target is{known}"
        if self.kind != "text" and text:
            return f"text ({listed(text)})", f"numbers, as the target is{known}"
        other = [each for each in found if each not in self._all]
        if self.declared is None:
            return self._unlike(found, other, own, model=model)
        if not other:
            return None
        several = sum(found[each] for each in other)
        count = _count(several, "prediction that is", "predictions that are")
        allowed = f"one of the labels {listed(self.declared, 10)}"
        return f"{count} no label ({listed(other)})", allowed

    def _unlike(
        self, found: dict[object, int], other: list[object], own: Sequence[object], *, model: bool
    ) -> Contradiction | None:
        """What the open part's labels say against predictions, or what no label can be."""
        enough = self.rows >= _ENOUGH
        spelled = {str(each).strip().casefold(): each for each in self.seen if type(each) is str}
        for each in other:
            near = spelled.get(str(each).strip().casefold()) if type(each) is str else None
            if near is not None:
                return listed([each]), f"spelled as the open part spells it: {listed([near])}"
        fractions = [each for each in other if _is_fraction(each)]
        named = listed(fractions)
        if fractions and enough and not any(map(_is_fraction, self._all)):
            said = _count(sum(found[each] for each in fractions), "fraction")
            return f"{said} ({named})", f"whole numbers, as all labels of the open part are{_ELSE}"
        theirs = {plain(each) for each in own}
        foreign = [each for each in fractions if each not in theirs]
        share = sum(found[each] for each in foreign) / max(1, sum(found.values()))
        if share > 0.5 if model else len(foreign) > _FRACTIONS:
            said = f"{_count(len(foreign), 'different fraction')} ({named})"
            return said, f"labels{_ELSE}"
        if enough and 0 < len(other) == len(found) and not (model and len(found) < 2):
            said = f"predictions that are no label of the open part ({listed([*found])})"
            return said, f"labels such as the open part has: {listed(self.seen, 10)}"
        return None

    def unknown(self, predicted: NDArray[Any]) -> tuple[str, ...]:
        """What has to be taken for granted of predictions that nothing public contradicts."""
        if self.declared is not None:
            return ()
        found = _distinct(predicted[~missing_labels(predicted)])
        other = [each for each in found if each not in self._all]
        if not other:
            return ()
        fractions = [each for each in other if _is_fraction(each)]
        shown = listed(fractions or other)
        if self.rows:
            return (f"{shown}, which no row of the open part has, can be labels",)
        return (f"predictions such as {shown} are spelled as the labels are: none are public",)

    def beside(self, allowed: Iterable[object]) -> list[object]:
        """Public labels that are none of these."""
        among = {plain(each) for each in allowed}
        return [each for each in self.known if plain(each) not in among]


def plain(value: object) -> object:
    """One spelling of a label: text, or a float; true and false are 1 and 0.

    >>> plain(True), plain(np.int64(3)), plain(np.str_("a"))
    (1.0, 3.0, 'a')
    """
    if isinstance(value, str):
        return str(value)
    return float(value)  # type: ignore[arg-type]


def listed(values: Sequence[object], most: int = _NAMED) -> str:
    """At most so many values, short, and without what a terminal would obey.

    >>> listed([0.0, 1.0, 2.5, 3.0]), listed(["a"])
    ('0, 1, 2.5, …', "'a'")
    """
    shown = []
    for value in values[:most]:
        if isinstance(value, str):
            text = value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…"
            shown.append(f"'{text}'" if text.isprintable() else ascii(text))
        else:
            shown.append(f"{float(value):.12g}")  # type: ignore[arg-type]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def missing_labels(predicted: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a prediction is none: missing, infinite, or no value at all."""
    if predicted.dtype.kind in "biuU":
        return np.zeros(predicted.shape, np.bool_)
    if predicted.dtype.kind == "f":
        return np.asarray(~np.isfinite(predicted))
    if _all_text(predicted):
        return np.zeros(predicted.shape, np.bool_)

    def is_none(value: Any) -> bool:
        try:
            return not (isinstance(value, str) or np.isfinite(float(value)))
        except (TypeError, ValueError, OverflowError):
            return True

    return np.array([is_none(each) for each in predicted], np.bool_)


def _all_text(predicted: NDArray[Any]) -> bool:
    return set(map(type, predicted.tolist())) <= {str}


def _distinct(predicted: NDArray[Any]) -> dict[object, int]:
    """The different predictions, in one spelling, and how many there are of each."""
    if predicted.dtype == np.int64 and len(predicted):
        low, high = int(predicted.min()), int(predicted.max())
        if high - low < _NEAR:  # nothing is sorted
            seen = np.bincount(predicted - low)
            places = np.flatnonzero(seen)
            return {float(low + each): int(seen[each]) for each in places.tolist()}
    if predicted.dtype.kind in "biuf":
        values, counts = np.unique(predicted.astype(np.float64), return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))
    given = predicted.tolist()
    return Counter(given if _all_text(predicted) else map(plain, given))


def _is_fraction(value: object) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _count(count: int, one: str, several: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


@dataclass(frozen=True)
class Unwrapped:
    """What a scorer of scikit-learn's says of predictions that were made before.

    It is called with a model, its features and the targets. Here predictions are given, so what it
    wraps is called in its place, with its options and its sign.
    """

    scorer: Any

    @property
    def __name__(self) -> str:
        """The function's name; as scikit-learn has it, a loss with the other sign is `neg_…`."""
        name = getattr(self.scorer._score_func, "__name__", "scorer")
        return str(name) if self.scorer._sign > 0 else f"neg_{name}"

    def __call__(self, target: Any, predicted: Any) -> object:
        return scored(self.scorer, target, predicted)


def unwrapped(what: str, scorer: Any) -> Unwrapped:
    """A scorer as a function of targets and predictions.

    Probabilities and scores are of the second class here. A scorer with a `pos_label` would choose
    another column of a model's, of which nothing is left in predictions.
    """
    if response_method(scorer) != "predict" and "pos_label" in scorer._kwargs:
        hint = "Probabilities and scores are those of the second class: leave pos_label out."
        raise InvalidInput(what, f"pos_label={scorer._kwargs['pos_label']!r}", "left out", hint)
    return Unwrapped(scorer)


def is_scorer(given: object) -> bool:
    """Whether it is one of scikit-learn's, as `make_scorer` and `get_scorer` give them."""
    return all(hasattr(given, name) for name in ("_score_func", "_sign", "_kwargs"))


def scored(scorer: Any, target: Any, predicted: Any) -> Any:
    """The scorer's value: a loss comes with the sign that makes greater better."""
    return scorer._sign * scorer._score_func(target, predicted, **scorer._kwargs)


def response_method(scorer: object) -> str:
    """What of a model it wants, the first choice: predict, predict_proba or decision_function."""
    method = getattr(scorer, "_response_method", "predict")
    return str(method if isinstance(method, str) else method[0])


def checked_function(what: str, given: object) -> Any:
    """A function that can be called with targets and predictions."""
    allowed = "a function of targets and predictions, or a scorer of scikit-learn's"
    if not callable(given):
        raise InvalidInput(what, given, allowed)
    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError):  # some of what is compiled tells nothing of itself
        return given
    try:
        signature.bind(None, None)
    except TypeError:
        raise InvalidInput(what, f"{signature}", allowed, "It is called with these two.") from None
    return given


NEEDS_LABEL = "label"  # what `predict` gives
NEEDS_NUMBER = "number"  # likewise, as numbers
NEEDS_PROBABILITY = "probability"  # of the second class
NEEDS_SCORE = "score"  # larger where the second class is more likely
ROW_NEEDS = (NEEDS_LABEL, NEEDS_NUMBER, NEEDS_PROBABILITY)  # what the term of a row may take


@dataclass(frozen=True)
class Metric:
    """One metric."""

    name: str
    needs: str
    batched: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.float64]] | None = None
    """For many blocks at once; None for what scikit-learn computes."""
    sign: float = 1.0
    range: Bounds | None = None
    bounded_mean: bool = False
    """Whether it is the mean over rows of a term within the range."""
    function: Callable[..., object] | None = None
    """A metric of the user: function(target, predicted)."""
    term: Callable[..., object] | None = None
    """That of a row, of the user: term(targets, predictions), one number for each row."""
    greater_is_better: bool = True
    span: Bounds | None = None
    """Where its values usually lie, if it has no range: where a grid may end without being told."""
    binary: bool = False
    """Whether targets must be 0 and 1."""
    response: str = ""
    """Which prediction scikit-learn's metric takes: a label or a score."""

    @property
    def labels(self) -> bool:
        """Whether it compares predictions with targets as labels."""
        if self.is_users:
            return False
        return self.needs == NEEDS_LABEL or self.name.startswith(_OF_LABELS)

    @property
    def is_users(self) -> bool:
        """Whether a function of the user computes it."""
        return self.function is not None or self.term is not None

    @property
    def predicted(self) -> str:
        """What one prediction is: a label, a number, a probability or a score."""
        return self.response or self.needs

    def negative(self, name: str) -> Metric:
        """The same with the other sign, as scikit-learn's searches want it."""
        turned = None if self.range is None else (0.0 - self.range[1], 0.0 - self.range[0])
        span = None if self.span is None else (0.0 - self.span[1], 0.0 - self.span[0])
        better = not self.greater_is_better
        return replace(
            self, name=name, sign=-1.0, range=turned, span=span, greater_is_better=better
        )


_LOSS: dict[str, Any] = {"greater_is_better": False}
_ACCURACY = Metric("accuracy", NEEDS_LABEL, accuracy, 1.0, UNIT, True)
_ERROR = Metric("error_rate", NEEDS_LABEL, error_rate, 1.0, UNIT, True, **_LOSS)
_BALANCED = Metric("balanced_accuracy", NEEDS_LABEL, balanced_accuracy, 1.0, UNIT)
_F1 = Metric("f1", NEEDS_LABEL, f1, 1.0, UNIT, binary=True)
_SQUARED = Metric("mse", NEEDS_NUMBER, squared_error, **_LOSS)
_ROOT = Metric("rmse", NEEDS_NUMBER, root_squared_error, **_LOSS)
_ABSOLUTE = Metric("mae", NEEDS_NUMBER, absolute_error, **_LOSS)
_R_SQUARED = Metric("r2", NEEDS_NUMBER, r_squared)
_BRIER = Metric("brier", NEEDS_PROBABILITY, brier, 1.0, UNIT, True, binary=True, **_LOSS)
# A coin's log loss is 0.69; what lies beyond 2 is told as 2, the end of its grid.
_LOG_LOSS = Metric("log_loss", NEEDS_PROBABILITY, log_loss, span=(0.0, 2.0), binary=True, **_LOSS)
_AREA = Metric("roc_auc", NEEDS_SCORE, area_under_curve, 1.0, UNIT, binary=True)

_NEGATIVE = {
    "brier_score": _BRIER,
    "log_loss": _LOG_LOSS,
    "mean_absolute_error": _ABSOLUTE,
    "mean_squared_error": _SQUARED,
    "root_mean_squared_error": _ROOT,
}
_TABLE = {
    "brier_score_loss": _BRIER,
    "mean_absolute_error": _ABSOLUTE,
    "mean_squared_error": _SQUARED,
    "root_mean_squared_error": _ROOT,
    "zero_one_loss": _ERROR,
    **{each.name: each for each in (_ACCURACY, _ERROR, _BALANCED, _F1, _SQUARED, _ROOT, _ABSOLUTE)},
    **{each.name: each for each in (_R_SQUARED, _BRIER, _LOG_LOSS, _AREA)},
    **{f"neg_{name}": each.negative(f"neg_{name}") for name, each in _NEGATIVE.items()},
}
NAMES = tuple(sorted(_TABLE))
_RANGES: dict[str, Bounds] = {
    "adjusted_mutual_info_score": (-1.0, 1.0),
    "adjusted_rand_score": (-0.5, 1.0),
    "average_precision": UNIT,
    "completeness_score": UNIT,
    "d2_brier_score": (-np.inf, 1.0),
    "fowlkes_mallows_score": UNIT,
    "homogeneity_score": UNIT,
    "matthews_corrcoef": (-1.0, 1.0),
    "mutual_info_score": (0.0, np.inf),
    "normalized_mutual_info_score": UNIT,
    "rand_score": UNIT,
    "top_k_accuracy": UNIT,
    "v_measure_score": UNIT,
}
_OF_LABELS = ("f1", "jaccard", "matthews", "precision", "recall")  # of scikit-learn's
_UNIT_FAMILIES = ("f1", "jaccard", "precision", "recall", "roc_auc")


def find_metric(metric: object) -> Metric:
    """A metric by its name, or as one a function(target, predicted) or a scorer of scikit-learn's.

    >>> find_metric("accuracy").range, find_metric("neg_brier_score").range
    ((0.0, 1.0), (-1.0, 0.0))
    """
    if isinstance(metric, str):
        found = _TABLE.get(metric)
        return _from_scikit_learn(metric) if found is None else found
    if is_scorer(metric):
        function = unwrapped("metric", metric)
        return Metric(function.__name__, needs_of(metric), function=function)
    if isinstance(metric, Metric):
        return metric
    if callable(metric):
        name = str(getattr(metric, "__name__", type(metric).__name__))
        return Metric(name, NEEDS_LABEL, function=checked_function("metric", metric))
    allowed = "a name, a function of targets and predictions, or what row_metric makes"
    raise InvalidInput("metric", metric, allowed)


def row_metric(
    term: Callable[..., object],
    *,
    range: Bounds,  # noqa: A002 – as `Holdout.mean` has it
    greater_is_better: bool,
    predictions: str = NEEDS_LABEL,
    name: str | None = None,
) -> Metric:
    """A metric of one's own that is the mean over rows of a term in a declared range.

    `term(targets, predictions)` gets two arrays of one length, floats or text, and gives one number
    for each row, from that row alone. `predictions` says what it takes: label, number or
    probability (of the second class, with targets 0 and 1). On a sealed row what leaves the range
    is cut to it, and what is no number is the worst of the range; every answer says both.

    >>> def cost(target, predicted):
    ...     return np.where(predicted < target, 5.0, 1.0) * (predicted != target)
    >>> row_metric(cost, range=(0, 5), greater_is_better=False).name
    'cost'
    """
    try:
        low, high = (real_number("range", each) for each in range)
    except (TypeError, ValueError):
        raise InvalidInput("range", range, "a pair (low, high)") from None
    if not low < high:
        raise InvalidInput("range", range, "a pair (low, high) with low < high")
    if not isinstance(greater_is_better, bool):
        raise InvalidInput("greater_is_better", greater_is_better, "True or False")
    if predictions not in ROW_NEEDS:
        raise InvalidInput("predictions", predictions, f"one of {', '.join(ROW_NEEDS)}")
    called = getattr(term, "__name__", "") if name is None else name
    if not isinstance(called, str) or not called.isidentifier() or called in NAMES:
        hint = "Say how it is to be called: name='cost'."
        allowed = "a name of letters, digits and underscores, and none of Holdfast's own metrics"
        raise InvalidInput("name", called, allowed, hint)
    return Metric(
        called,
        predictions,
        range=(low, high),
        term=checked_function("term", term),
        greater_is_better=greater_is_better,
    )


def needs_of(scorer: object) -> str:
    """Which predictions a scorer of scikit-learn's takes."""
    kinds = {"predict": NEEDS_LABEL, "predict_proba": NEEDS_PROBABILITY}
    return kinds.get(response_method(scorer), NEEDS_SCORE)


def _from_scikit_learn(name: str) -> Metric:
    try:
        from sklearn.metrics import get_scorer, get_scorer_names
    except ImportError:
        hint = "Others are scikit-learn's: pip install scikit-learn."
        raise InvalidInput("metric", name, f"one of {', '.join(NAMES)}", hint) from None
    if name not in get_scorer_names():
        known = [*NAMES, *get_scorer_names()]
        begun = [each for each in known if name and each.startswith(name.lower())]
        near = begun or difflib.get_close_matches(name, known, 1)
        hint = f"Did you mean {near[0]}?" if near else "See sklearn.metrics.get_scorer_names()."
        allowed = f"a metric that scikit-learn names, or one of {', '.join(NAMES)}"
        raise InvalidInput("metric", name, allowed, hint)
    family = name.removesuffix("_ovr").partition("_")[0]
    unit = UNIT if name.startswith(_UNIT_FAMILIES) or family in _UNIT_FAMILIES else None
    limits = _RANGES.get(name, unit)
    bounded = limits if limits is None or np.isfinite(limits).all() else None
    label = response_method(get_scorer(name)) == "predict"
    response = NEEDS_LABEL if label else NEEDS_SCORE
    return Metric(name, "scorer", range=bounded, response=response)


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

    A model predicts the rows of many blocks in one call, which is what makes it fast; that it
    treats every row by itself is an assumption, checked like that of every vectorised estimator.

    >>> scored = score_estimator(np.array([0, 1, 1]), "accuracy", target="y")
    >>> scored.range, scored.bounded_mean, scored.columns
    ((0.0, 1.0), True, ('y', '__row'))
    """
    chosen = find_metric(metric)
    score, fields = _scored(model, chosen, target, features, labels)
    failure = math.nan if chosen.greater_is_better else math.inf  # the worst, or it were the best
    built_in = checked and chosen.function is None and not chosen.bounded_mean
    own = built_in and chosen.needs != "scorer"
    if isinstance(score, PredictionScore):
        fields["known_by"] = score.known_by("score", own=own)
    return make_estimator(
        score,
        None if chosen.needs == "scorer" else score.batch,
        block="pandas",
        range=chosen.range,
        bounded_mean=chosen.bounded_mean,
        failure=failure,
        built_in=built_in,
        own=own,
        failing="highest" if failure == math.inf else None,
        **fields,
    )


def term_estimator(
    model: object,
    metric: Metric,
    target: str,
    features: Any = None,
    labels: Labels | None = None,
    bounds: Bounds = UNIT,
    *,
    mean: bool = False,
) -> LocalEstimator:
    """The term of a row, where the metric is the mean of one within bounds, to ask for its mean.

    With `mean`, the mean of it over a block, to be asked for, or guessed, as any estimator.

    Where every unit is a row, such a score has a much narrower error bar as a mean than as an
    estimator of any kind. A row that has no target, or on which a model or a function of the user
    fails, counts as the worst: 0 for accuracy, 1 for a loss. So a score of these never fails on a
    block, but for the end of its process.

    >>> term = term_estimator([0, 1, 1], find_metric("accuracy"), "y")
    >>> term.describe().partition(" (")[0], term.rows, term.built_in
    ('accuracy of predictions for y of y, __row', 3, True)
    """
    score, fields = _scored(model, metric, target, features, labels)
    terms: RowTerms
    if isinstance(score, PredictionScore):
        terms = PredictionTerms(metric, target, bounds, score.predictions.values)
        own = metric.term is None
        fields |= {"built_in": own, "own": own}
        fields["known_by"] = score.known_by("mean" if mean else "term", own=own, bounds=bounds)
    else:
        assert isinstance(score, ModelScore)
        terms = ModelTerms(metric, target, bounds, score)
    low, high = bounds if mean else UNIT  # of a term it is a share of the range
    return make_estimator(
        None,
        terms.mean if mean else terms.terms,
        block="numpy",
        range=None if metric.term is not None and not mean else bounds,  # it may leave them
        bounded_mean=True,
        failure=low if metric.greater_is_better else high,
        failing=_FAILING.get(metric.name, "worst"),
        **fields,
    )


def _scored(
    model: object,
    metric: Metric,
    target: str,
    features: Sequence[str] | None,
    labels: Labels | None,
) -> tuple[Score, dict[str, Any]]:
    """The score of a model or of predictions, and what its estimators have in common."""
    fields: dict[str, Any]
    if isinstance(model, Predictions) or not callable(getattr(model, "predict", None)):
        given = model if isinstance(model, Predictions) else Predictions(checked_predictions(model))
        score: Score = PredictionScore(given, metric, checked_target(target))
        fields = {"columns": (target, ROW), "rows": len(given.values)}
        fields["name"] = f"{metric.name} of predictions for {target}"
        fields["sealed_only"] = not given.complete
        named = given.of_sealed
    else:
        checked_target(target)
        names = _feature_names(model, checked_columns(features))
        if names is not None and target in names:
            raise InvalidInput("features", target, "columns other than the target")
        columns = None if names is None else (*names, target)
        score = found = ModelScore(model, metric, target, names)
        fields = {
            "columns": columns,
            "name": f"{metric.name} of {type(model).__name__} for {target}",
        }
        if metric.needs != "scorer" or metric.predicted == NEEDS_LABEL:
            # Else scikit-learn chooses what it asks of a model: the score itself is tried.
            trial = ModelTrial(found, labels if metric.labels else None)
            fields["tried"] = partial(make_estimator, trial, trial.batch, block="pandas", **fields)
        named = np.asarray(score.own_labels(), object)
    notes = []  # what is taken for granted of labels and targets, where nothing public decides
    if metric.is_users and metric.needs == NEEDS_LABEL:
        notes.append(f"{metric.name} takes labels, as predict gives them")
    if labels is not None and metric.labels and len(named):
        notes += labels.unknown(named)
    if labels is not None and metric.binary and not labels.known:
        notes.append("every target is 0 or 1, or one of the model's two classes")
    # Targets for made-up rows: without them a metric of labels would be undefined there.
    compared = metric.labels or metric.binary  # else targets lie where predictions do
    declared = None if labels is None or not compared else labels.declared
    two = (0.0, 1.0) if metric.predicted in {NEEDS_PROBABILITY, NEEDS_SCORE} else ()
    values = declared or score.own_labels() or two
    examples: dict[str, Any] = {target: values} if values else {}
    if isinstance(score, PredictionScore) and fields["sealed_only"]:
        examples[ROW] = score.predictions.sealed
    return score, {**fields, "reading": RULE, "notes": tuple(notes), "examples": examples}


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
        elif self.metric.binary and classes is not None and len(classes) == 2:
            target, predicted = indicator(target, classes), indicator(predicted, classes)
        elif self.metric.needs == NEEDS_NUMBER:
            target, predicted = target.astype(np.float64), predicted.astype(np.float64)
        return self.metric.sign * self.metric.batched(target, predicted)

    def _own(self, target: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
        """A metric of the user, block by block; the rest of a batch does not fail with one."""
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
        scorer: Any = get_scorer(self.metric.name)
        takes = inspect.signature(scorer._score_func).parameters
        one = scorer._kwargs.get("average", "binary") == "binary"
        if one and len(classes) == 2 and "pos_label" in takes:
            scorer._kwargs = {**scorer._kwargs, "pos_label": classes[1]}  # 1 need not be a class
        return float(scorer(self.model, rows, aligned(target, classes)[0]))


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


@dataclass(frozen=True)
class Predictions:
    """Predictions for all rows of the original data, in their order."""

    values: NDArray[Any]
    sealed: NDArray[np.int64] | None = None
    """The numbers of the rows that are not open; None for all."""
    complete: bool = True
    """Whether open rows have predictions too; else what stands there is none."""

    @cached_property
    def of_sealed(self) -> NDArray[Any]:
        """Those that a score depends on."""
        return np.array(self.values) if self.sealed is None else self.values[self.sealed]


class PredictionScore(Score):
    """The score of predictions."""

    def __init__(self, predictions: Predictions, metric: Metric, target: str) -> None:
        super().__init__(metric, target)
        self.predictions = predictions
        self.scorer: Any = None
        if metric.needs == "scorer":  # named here, it is loaded once a worker, not once a fork
            from sklearn.metrics import get_scorer

            self.scorer = get_scorer(metric.name)

    def known_by(self, what: str, *, own: bool, bounds: Bounds = UNIT) -> tuple[object, ...]:
        """All that the score depends on: nothing that is said of open rows."""
        by = self.metric.name if own else (self.metric, self.scorer)
        code = version("holdfast")
        return what, code, by, bounds, self.target, self.predictions.of_sealed

    def predict(
        self, arrays: dict[str, NDArray[Any]], shape: tuple[int, ...]
    ) -> tuple[NDArray[Any], Any]:
        return self.predictions.values[arrays[ROW].astype(np.int64)].reshape(shape), None

    def own_labels(self) -> Sequence[object]:
        alike = self.metric.predicted in {NEEDS_LABEL, NEEDS_NUMBER}
        return tuple(self.predictions.of_sealed[:_EXAMPLES].tolist()) if alike else ()

    def _scored(self, frame: Any) -> float:
        predicted = self.predictions.values[_values(frame[ROW]).astype(np.int64)]
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
    if "numpy.ma" in sys.modules and np.ma.is_masked(values):
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


Terms = NDArray[np.float64] | NDArray[np.bool_]

# The term of a row, where a metric is the mean of one between 0 and 1.


def _right(target: Array, predicted: Array) -> NDArray[np.bool_]:
    if predicted.dtype.kind == "O":  # something that is no label, such as pandas' NA, is wrong
        missing = missing_labels(predicted.ravel()).reshape(predicted.shape)
        plain = predicted.copy()
        plain[missing] = None
        return np.asarray(target == plain, np.bool_) & ~missing
    return np.asarray(target == predicted)  # a missing target is no prediction


def _wrong(target: Array, predicted: Array) -> NDArray[np.bool_]:
    return ~_right(target, predicted)


def _squared(target: Array, probability: Array) -> Terms:
    """For targets 0 and 1 and a probability between them; for any other it is 1."""
    probability = floats_up(probability)
    inside = ((target == 0) | (target == 1)) & is_probability(probability)
    chosen = np.where(inside, probability, 0.0)
    return np.where(inside, np.square(np.where(inside, target, 0.0) - chosen), 1.0)


def _absolute(target: Array, predicted: Array) -> Terms:
    return _or_worst(np.abs(target - predicted))


def _squares(target: Array, predicted: Array) -> Terms:
    return _or_worst(np.square(target - predicted))


def _log_losses(target: Array, probability: Array) -> Terms:
    """−ln P[target] of each row; for what is no such target or probability the worst."""
    inside = ((target == 0) | (target == 1)) & is_probability(probability)
    chosen = np.where(target == 1, probability, 1.0 - probability)
    with np.errstate(divide="ignore"):
        return np.where(inside, -np.log(np.where(inside, chosen, 1.0)), np.inf)


def _or_worst(errors: Array) -> Terms:
    """The errors; infinite where there is none, for want of a target."""
    return np.where(np.isnan(errors), np.inf, errors)


_TERMS: dict[str, Callable[[Array, Array], Terms]] = {
    "accuracy": _right,
    "brier": _squared,
    "error_rate": _wrong,
    "log_loss": _log_losses,
    "mae": _absolute,
    "mse": _squares,
}
_OF_UNIT = ("accuracy", "brier", "error_rate")  # whose terms lie between 0 and 1
_POWERS = {"mae": 1, "mse": 2}  # of errors: on a target of a declared range they are bounded
OVER_ROWS = (
    "accuracy, brier, error_rate and log_loss, and mae and mse on a target of declared range"
)
"""The metrics that are means over rows, for people."""
_MOST_LOSS = math.log(1000.0)  # of one row: where its target had a probability of 1 in 1,000
_FAILING = {"accuracy": "wrong", "error_rate": "wrong", "brier": "one"}


def term_range(metric: Metric, span: Bounds | None, *, told: bool) -> Bounds | None:
    """The range of a row's term, if the metric is the mean over rows of one; else None.

    `span` is where the target was declared to lie, `told` whether answers are told over rows: then
    errors on such a target are means too, and so is the log loss, cut where the target had a
    probability of 1 in 1,000.

    >>> term_range(find_metric("mse"), (0, 10), told=True)
    (0.0, 100.0)
    """
    if metric.term is not None:
        return metric.range
    if metric.function is None and metric.name in _OF_UNIT:
        return UNIT
    if not told or metric.function is not None:
        return None
    if metric.name in _POWERS and span is not None:
        return 0.0, float((span[1] - span[0]) ** _POWERS[metric.name])
    return (0.0, _MOST_LOSS) if metric.name == "log_loss" else None


def is_exact(metric: Metric) -> bool:
    """Whether the term of a row is 0 or 1."""
    return metric.name in _OF_UNIT and metric.function is None and metric.needs == NEEDS_LABEL


class RowTerms:
    """The terms of rows, which lie within bounds."""

    def __init__(self, metric: Metric, target: str, bounds: Bounds) -> None:
        self.metric, self.target, self.bounds = metric, target, bounds

    def terms(self, arrays: dict[str, Array]) -> Terms:
        """The term of every row: a (blocks, t) array."""
        raise NotImplementedError

    def mean(self, arrays: dict[str, Array]) -> Values:
        """The mean of every block; what leaves the bounds is cut, what is no number the worst."""
        low, high = self.bounds
        found = np.asarray(self.terms(arrays), np.float64)
        worst = low if self.metric.greater_is_better else high
        return np.asarray(np.clip(np.where(np.isnan(found), worst, found), low, high).mean(axis=1))

    def term(self, target: Array, predicted: Array) -> Terms:
        """The terms of rows. A function of the user gets types that depend on the schema alone."""
        if self.metric.term is None:
            return _TERMS[self.metric.name](target, predicted)
        kind = np.float64 if target.dtype.kind == "f" else object
        given = np.array(predicted, kind).ravel()
        return row_numbers(self.metric.term(np.array(target).ravel(), given), target.size)


class PredictionTerms(RowTerms):
    """The terms of predictions for all rows of the original data, in their order."""

    def __init__(self, metric: Metric, target: str, bounds: Bounds, predictions: Array) -> None:
        super().__init__(metric, target, bounds)
        self.predictions = predictions

    def terms(self, arrays: dict[str, Array]) -> Terms:
        target = arrays[self.target]
        rows = arrays[ROW].astype(np.int64, copy=False)
        predicted = self.predictions[rows].reshape(target.shape)
        return self.term(target, predicted).reshape(target.shape)


class ModelTerms(RowTerms):
    """The terms of a model; a row that it fails on is the worst, and takes no other along."""

    def __init__(self, metric: Metric, target: str, bounds: Bounds, score: ModelScore) -> None:
        super().__init__(metric, target, bounds)
        self.score = score

    def terms(self, arrays: dict[str, Array]) -> Terms:
        score, target = self.score, arrays[self.target]
        if self.metric.needs == NEEDS_PROBABILITY:
            target = indicator(target, score.classes)
        worst = self.bounds[0 if self.metric.greater_is_better else 1]
        flat, found = target.ravel(), np.full(target.size, worst)
        for part, predicted in score.by_rows(score.rows(arrays)):
            if not isinstance(predicted, BaseException):
                found[part] = self.term(flat[part], predicted)
        return found.reshape(target.shape)


_N = TypeVar("_N", np.float64, np.int64)
_MOST_ROWS = 2**22  # that are read at once, and of a store that is kept
_MOST_CELLS = 2**24  # that are kept: a few columns of the largest


class PredictionEngine:
    """Scores of predictions by Holdfast's own metrics: in this process, many blocks at once.

    Nothing of a user's runs here: a metric is NumPy's arithmetic on two columns, the target and the
    number of each row, and on predictions that were checked before. So nothing is pickled, confined
    or timed. The values are those that the same estimator has in `LocalEngine`: a block that cannot
    be evaluated has failed, and no other with it.

    Of a small store in one file here, each column is read once. Threads may share an engine, and
    processes that are forked: two that read a column at once have two copies, of which one stays.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        manifest = store.manifest
        small = manifest.block_rows <= _MOST_ROWS and len(store.shards) == 1
        self._keeps = small and manifest.location is None
        self._kept: dict[str, Array] = {}

    def values(
        self,
        estimator: LocalEstimator,
        start: int,
        stop: int,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> Values:
        """The score of each of the blocks start, …, stop − 1; a failure is NaN, or its own."""
        score = estimator.batched
        assert score is not None

        def evaluated(arrays: dict[str, Array], blocks: int) -> Values:
            return block_values(score(arrays), blocks)

        found = self._evaluate(estimator, start, stop, evaluated, progress, np.full(1, np.nan))
        return np.where(np.isnan(found), estimator.failure, found)

    def sums(
        self,
        function: LocalEstimator,
        where: None,
        start: int,
        stop: int,
        *,
        bounds: Bounds = UNIT,
        progress: Callable[[int, int], None] | None = None,
        terms: bool = False,
    ) -> NDArray[np.int64]:
        """The sum of the terms of each block, or the terms: see `LocalEngine.sums`."""
        batched, units = function.batched, self._store.units
        assert where is None
        assert batched is not None

        def evaluated(arrays: dict[str, Array], blocks: int) -> NDArray[np.int64]:
            found = batched(arrays)
            if isinstance(found, np.ndarray) and found.dtype == np.bool_ and bounds == UNIT:
                parts = found.reshape(blocks, units) * np.int64(WEIGHT_SCALE)  # the same, at once
            else:
                numbers = row_terms(found, blocks * units, bounds)
                parts = unit_parts(numbers).reshape(blocks, units).astype(np.int64)
            return parts if terms else np.asarray(parts.sum(axis=1))

        width = units if terms else 1
        failure = np.full(width, failed_sum(function, units // width), np.int64)
        return self._evaluate(function, start, stop, evaluated, progress, failure)

    def _evaluate(
        self,
        estimator: LocalEstimator,
        start: int,
        stop: int,
        evaluated: Callable[[dict[str, Array], int], NDArray[_N]],
        progress: Callable[[int, int], None] | None,
        failure: NDArray[_N],
    ) -> NDArray[_N]:
        """The numbers of one block after another: as many of each as one that has failed has."""
        store, columns = self._store, stored_columns(estimator, self._store)
        for shard in store.overlapping(start, stop):
            store.check_there(shard)
        found = np.empty((stop - start, len(failure)), failure.dtype)
        size = max(1, int(_MOST_ROWS * store.blocks / store.manifest.block_rows))
        for first in range(start, stop, size):
            last = min(stop, first + size)
            try:
                arrays = self._arrays(columns, first, last)
                # All together as (blocks, rows) arrays, or each alone where blocks differ in rows.
                even = store.manifest.one_row_units
                each = last - first if even else 1
                cuts = [0, each * store.units] if even else store.cuts(first, last).tolist()
            except MemoryError:
                raise too_large("there is not enough of it") from None
            except Exception:
                raise unreadable() from None
            for number, (low, high) in enumerate(pairwise(cuts)):
                part = {name: array[low:high].reshape(each, -1) for name, array in arrays.items()}
                place = first - start + number * each
                found[place : place + each] = _each_block(evaluated, part, each, failure)
            if progress is not None:
                progress(last - start, stop - start)
        return found.reshape(-1)

    def _arrays(self, columns: Sequence[str], first: int, last: int) -> dict[str, Array]:
        """The columns of these blocks: cut from those that are kept, or read."""
        if not self._keeps:
            return self._read(columns, first, last)
        known = self._kept
        missing = [name for name in columns if name not in known]
        if missing:
            read = self._read(missing, 0, self._store.blocks)
            for array in read.values():
                array.flags.writeable = False  # the next question has it too
            rows = self._store.manifest.block_rows
            if (len(known) + len(read)) * rows > _MOST_CELLS:
                known = {name: known[name] for name in columns if name in known}
            self._kept = known = {**known, **read}
        # Whatever other threads keep meanwhile, `known` stays as it is.
        begin, end = self._store.cuts(0, last)[[first, last]].tolist()
        return {name: known[name][begin:end] for name in columns}

    def _read(self, columns: Sequence[str], first: int, last: int) -> dict[str, Array]:
        data = [name for name in columns if not name.startswith("__")]
        table = self._store.table(first, last, data, hidden=True)
        arrays = {name: column_array(table.column(name)) for name in columns}
        if ROW in arrays:
            arrays[ROW] = arrays[ROW].astype(np.int64)
        return arrays


def _each_block(
    evaluated: Callable[[dict[str, Array], int], NDArray[_N]],
    arrays: dict[str, Array],
    blocks: int,
    failure: NDArray[_N],
) -> NDArray[_N]:
    """The numbers of each block. What raises is a failure of the block that it is raised for."""
    try:
        with np.errstate(all="ignore"):  # a warning too may depend on the data
            return evaluated(arrays, blocks).reshape(blocks, -1)
    except MemoryError:
        raise too_large("there is not enough of it") from None
    except Exception:
        if blocks == 1:
            return failure[np.newaxis]
    alone = ({name: array[k : k + 1] for name, array in arrays.items()} for k in range(blocks))
    return np.concatenate([_each_block(evaluated, each, 1, failure) for each in alone])
