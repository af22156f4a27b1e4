"""Metrics by name: which prediction they need, the range of their values, how they are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.metrics import blockwise
from holdfast.engines.local.metrics.wrapped import (
    checked_function,
    is_scorer,
    response_method,
    unwrapped,
)
from holdfast.errors import InvalidInput

__all__ = [
    "NAMES",
    "NEEDS_LABEL",
    "NEEDS_NUMBER",
    "NEEDS_PROBABILITY",
    "NEEDS_SCORE",
    "UNIT",
    "Metric",
    "find_metric",
    "needs_of",
]

Range = tuple[float, float]

UNIT: Range = (0.0, 1.0)
NEEDS_LABEL = "label"  # what `predict` gives
NEEDS_NUMBER = "number"  # likewise, as numbers
NEEDS_PROBABILITY = "probability"  # of the second class
NEEDS_SCORE = "score"  # larger where the second class is more likely


@dataclass(frozen=True)
class Metric:
    """One metric."""

    name: str
    needs: str
    batched: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.float64]] | None = None
    """For many blocks at once; None for what scikit-learn computes."""
    sign: float = 1.0
    range: Range | None = None
    bounded_mean: bool = False
    """Whether it is the mean over rows of a term within the range."""
    function: Callable[..., object] | None = None
    """A metric of the user: function(target, predicted)."""
    greater_is_better: bool = True
    span: Range | None = None
    """Where its values usually lie, if it has no range: where a grid may end without being told."""
    binary: bool = False
    """Whether targets must be 0 and 1."""
    response: str = ""
    """Which prediction scikit-learn's metric takes: a label or a score."""

    @property
    def labels(self) -> bool:
        """Whether it compares predictions with targets as labels."""
        if self.function is not None:
            return False
        return self.needs == NEEDS_LABEL or self.name.startswith(_OF_LABELS)

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
_ACCURACY = Metric("accuracy", NEEDS_LABEL, blockwise.accuracy, 1.0, UNIT, True)
_ERROR = Metric("error_rate", NEEDS_LABEL, blockwise.error_rate, 1.0, UNIT, True, **_LOSS)
_BALANCED = Metric("balanced_accuracy", NEEDS_LABEL, blockwise.balanced_accuracy, 1.0, UNIT)
_F1 = Metric("f1", NEEDS_LABEL, blockwise.f1, 1.0, UNIT, binary=True)
_SQUARED = Metric("mse", NEEDS_NUMBER, blockwise.squared_error, **_LOSS)
_ROOT = Metric("rmse", NEEDS_NUMBER, blockwise.root_squared_error, **_LOSS)
_ABSOLUTE = Metric("mae", NEEDS_NUMBER, blockwise.absolute_error, **_LOSS)
_R_SQUARED = Metric("r2", NEEDS_NUMBER, blockwise.r_squared)
_BRIER = Metric("brier", NEEDS_PROBABILITY, blockwise.brier, 1.0, UNIT, True, binary=True, **_LOSS)
# A coin's log loss is 0.69; what lies beyond 2 is told as 2, the end of its grid.
_LOG_LOSS = Metric(
    "log_loss", NEEDS_PROBABILITY, blockwise.log_loss, span=(0.0, 2.0), binary=True, **_LOSS
)
_AREA = Metric("roc_auc", NEEDS_SCORE, blockwise.area_under_curve, 1.0, UNIT, binary=True)

_TABLE: dict[str, Metric] = {
    "accuracy": _ACCURACY,
    "balanced_accuracy": _BALANCED,
    "brier": _BRIER,
    "brier_score_loss": _BRIER,
    "error_rate": _ERROR,
    "f1": _F1,
    "log_loss": _LOG_LOSS,
    "mae": _ABSOLUTE,
    "mean_absolute_error": _ABSOLUTE,
    "mean_squared_error": _SQUARED,
    "mse": _SQUARED,
    "neg_brier_score": _BRIER.negative("neg_brier_score"),
    "neg_log_loss": _LOG_LOSS.negative("neg_log_loss"),
    "neg_mean_absolute_error": _ABSOLUTE.negative("neg_mean_absolute_error"),
    "neg_mean_squared_error": _SQUARED.negative("neg_mean_squared_error"),
    "neg_root_mean_squared_error": _ROOT.negative("neg_root_mean_squared_error"),
    "r2": _R_SQUARED,
    "rmse": _ROOT,
    "roc_auc": _AREA,
    "root_mean_squared_error": _ROOT,
    "zero_one_loss": _ERROR,
}
NAMES = tuple(_TABLE)
_RANGES: dict[str, Range] = {
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
    if callable(metric):
        name = str(getattr(metric, "__name__", type(metric).__name__))
        return Metric(name, NEEDS_LABEL, function=checked_function("metric", metric))
    raise InvalidInput("metric", metric, "a name, or a function of targets and predictions")


def needs_of(scorer: object) -> str:
    """Which predictions a scorer of scikit-learn's takes."""
    kinds = {"predict": NEEDS_LABEL, "predict_proba": NEEDS_PROBABILITY}
    return kinds.get(response_method(scorer), NEEDS_SCORE)


def _from_scikit_learn(name: str) -> Metric:
    try:
        from sklearn.metrics import get_scorer_names
    except ImportError:
        hint = "Others are scikit-learn's: pip install scikit-learn."
        raise InvalidInput("metric", name, f"one of {', '.join(_TABLE)}", hint) from None
    if name not in get_scorer_names():
        near = _nearest(name, [*_TABLE, *get_scorer_names()])
        hint = f"Did you mean {near}?" if near else "See sklearn.metrics.get_scorer_names()."
        allowed = f"a metric that scikit-learn names, or one of {', '.join(_TABLE)}"
        raise InvalidInput("metric", name, allowed, hint)
    family = name.removesuffix("_ovr").partition("_")[0]
    known = UNIT if name.startswith(_UNIT_FAMILIES) or family in _UNIT_FAMILIES else None
    limits = _RANGES.get(name, known)
    bounded = limits if limits is None or np.isfinite(limits).all() else None
    return Metric(name, "scorer", range=bounded, response=_response(name))


def _response(name: str) -> str:
    from sklearn.metrics import get_scorer

    return NEEDS_LABEL if response_method(get_scorer(name)) == "predict" else NEEDS_SCORE


def _nearest(name: str, names: list[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(name, names, 1)), "")
