"""scikit-learn's scorers as metrics: functions of targets and predictions, not of a model.

A scorer is called with a model, its features and the targets. Here predictions are given, so what
it wraps is called in its place, with its options and its sign.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidInput

__all__ = ["checked_function", "is_scorer", "response_method", "scored", "unwrapped"]

_FIELDS = ("_score_func", "_sign", "_kwargs")


@dataclass(frozen=True)
class Unwrapped:
    """What a scorer says of predictions that were made before."""

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
    return all(hasattr(given, name) for name in _FIELDS)


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
