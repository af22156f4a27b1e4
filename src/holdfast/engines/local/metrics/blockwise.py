"""The common metrics for many blocks at once: from (blocks, t) arrays to one value per block.

Each is scikit-learn's metric of the same name on every block. Where that is undefined, or raises,
the value is NaN: the block has failed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "absolute_error",
    "accuracy",
    "area_under_curve",
    "balanced_accuracy",
    "brier",
    "error_rate",
    "f1",
    "log_loss",
    "r_squared",
    "root_squared_error",
    "squared_error",
]

Array = NDArray[Any]
Values = NDArray[np.float64]


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
    """NaN where any of a block's numbers is missing or infinite; looked for only where it shows."""
    odd = np.flatnonzero(~np.isfinite(values))
    broken = [not all(np.isfinite(array[block]).all() for array in arrays) for block in odd]
    values = values.astype(np.float64)
    values[odd[np.array(broken, np.bool_)]] = np.nan
    return values


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
