"""Scores as questions: which estimator, which verb, which grid.

A score that is a mean over rows of a term between 0 and 1 is asked as that mean where every unit is
a row and the plan can answer means: its error bar is then as narrow as the plan has planned means.
Any other score is a value of a block, and is asked as such.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.engines.python.estimator import LocalEstimator
from holdfast.engines.python.metrics import (
    NEEDS_LABEL,
    Labels,
    Metric,
    checked_predictions,
    checked_target,
    has_term,
    is_exact,
    listed,
    mean_estimator,
    score_estimator,
    term_estimator,
)
from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.holdout.clerk import Clerk
from holdfast.holdout.questions import Verb
from holdfast.holdout.scorers import Scorer
from holdfast.holdout.spec import Charter, Offer
from holdfast.holdout.submissions import (
    RowIds,
    is_keyed,
    read_submission,
    refused,
    values_by_row,
    wanted_for,
)
from holdfast.planning.parts import DirectPart

__all__ = [
    "Judged",
    "is_score",
    "is_score_of",
    "judged",
    "needs_grid",
    "no_public_grid",
    "public_grid",
    "score_question",
]

_KINDS = ("boolean", "number", "text")
_VERBS: tuple[Verb, Verb] = ("mean", "ask")


@dataclass(frozen=True)
class Judged:
    """What is scored: a model, or predictions in the order of the rows; and by what."""

    given: Any
    scorer: Scorer
    target: str
    features: Sequence[str] | None
    model: bool
    checked: bool
    """Whether predictions are known to be what the metric takes."""
    terms: bool
    """Whether the score is the mean over units of a term between 0 and 1."""
    labels: Labels | None = None
    """What is public of the target's labels."""

    def estimator(self) -> LocalEstimator:
        """The score as an estimator of one block."""
        if self.terms:
            return mean_estimator(*self._asked)
        return score_estimator(
            self.given,
            self.scorer.metric,
            target=self.target,
            features=self.features,
            checked=self.checked,
            labels=self.labels,
        )

    def term(self) -> LocalEstimator | None:
        """Its term, if it has one."""
        return term_estimator(*self._asked) if self.terms else None

    @property
    def _asked(self) -> tuple[Any, Metric, str, Sequence[str] | None, Labels | None]:
        return self.given, self.scorer.metric, self.target, self.features, self.labels


def judged(
    clerk: Clerk,
    ids: RowIds | None,
    given: Any,
    scorer: Scorer,
    *,
    target: str | None,
    features: Sequence[str] | None = None,
    form: str | None = None,
) -> Judged:
    """A model or predictions, checked against what is public; nothing is asked."""
    charter = clerk.charter
    column = _target(charter, target)
    kind = charter.manifest.schema.kind(column)
    metric, terms = scorer.metric, charter.manifest.one_row_units and has_term(scorer.metric)
    labels = clerk.labels(column) if kind in _KINDS else None
    if callable(getattr(given, "predict", None)):
        _refuse_targets(metric, column, labels, getattr(given, "classes_", None))
        return Judged(given, scorer, column, features, True, False, terms, labels)
    wanted = wanted_for(metric, kind, column)
    _refuse_targets(metric, column, labels, None)
    if isinstance(given, str | Path | bytes | bytearray | memoryview) or is_keyed(given):
        if ids is None:
            hint = "Create the holdout with ids='COLUMN', or give one prediction for every row."
            raise InvalidInput("predictions", "ids", "in the order of the rows here", hint)
        array = read_submission(given, ids, wanted, form=form)
        _refuse_labels(metric, labels, array)
    else:
        array = checked_predictions(given)
        _refuse_labels(metric, labels, array)
        array = values_by_row(array, wanted)
    return Judged(array, scorer, column, features, False, True, terms, labels)


def _refuse_labels(metric: Metric, labels: Labels | None, array: np.ndarray[Any, Any]) -> None:
    """Refuse predictions that can be no labels, by what is public, where labels are compared."""
    if labels is None:
        return
    binary = {*labels.known} and not labels.beside((0.0, 1.0))
    takes = metric.function is not None and metric.needs == NEEDS_LABEL
    if not metric.labels and not (takes and (binary or labels.declared is not None)):
        return
    found = labels.contradiction(array)
    if found is not None:
        hint = ""
        if takes:
            hint = (
                f"{metric.name} gets labels, as predict gives them. One that takes probabilities "
                "is scikit-learn's make_scorer(function, response_method='predict_proba')."
            )
        raise refused(*found, hint)


def _refuse_targets(metric: Metric, column: str, labels: Labels | None, classes: Any) -> None:
    """Refuse a metric of two classes where the target is known to have others."""
    if labels is None or not metric.binary:
        return
    own = (0.0, 1.0) if classes is None else np.asarray(classes).ravel().tolist()
    others = labels.beside(own)
    if others:
        known = "declared" if labels.declared is not None else "in the open part"
        hint = f"{column} has {listed(others)} ({known}). Nothing was charged."
        allowed = f"one for such labels: {metric.name} takes {listed(own)} alone"
        raise InvalidInput("metric", metric.name, allowed, hint)


def _target(charter: Charter, target: str | None) -> str:
    column = target or charter.target
    if column is None:
        hint = "Name the column once, at creation: target='y', --target y; or score(…, target='y')."
        raise InvalidInput("target", None, "the column that the model predicts", hint)
    found = charter.manifest.schema.find(checked_target(column))
    if found is None:
        names = ", ".join(charter.manifest.schema.names[:20])
        raise InvalidInput("target", column, f"one of {names}")
    return found.name


def score_question(
    clerk: Clerk, score: Judged, by: str | None, options: dict[str, Any]
) -> tuple[Verb, LocalEstimator, dict[str, Any]]:
    """The verb, the estimator and the words that ask for a score."""
    term = score.term() if _means(clerk, score, by) and not options.get("shape") else None
    if term is None:
        means, values = (_offer(clerk, verb, None) is not None for verb in _VERBS)
        if by is None and means and not values:
            hint = (
                f"{score.scorer.name} is no mean over rows, but a value of a block: plan it with "
                "--protocols estimate."
            )
            allowed = "a mean over rows, as accuracy is, for this plan"
            raise InvalidInput("metric", score.scorer.name, allowed, hint)
        words = {name: options.pop(name, None) for name in ("grid", "where", "shape")}
        return "ask", score.estimator(), {**words, "by": by, "options": options}
    grid = options.pop("grid", None)
    options.pop("shape", None)
    for name, value in options.items():
        raise InvalidInput(name, value, "left out for a score that is a mean")
    return "mean", term, {"grid": grid, "by": by}


def _means(clerk: Clerk, score: Judged, by: str | None) -> bool:
    """Whether a part of the plan answers the score as a mean."""
    if not score.terms:
        return False
    offer = _offer(clerk, "mean", by)
    if offer is None or (score.model and offer.protocol != "mean"):
        return False
    exact = isinstance(offer.part, DirectPart) and offer.part.exact
    return not exact or is_exact(score.scorer.metric)


def _offer(clerk: Clerk, verb: Verb, by: str | None) -> Offer | None:
    try:
        return clerk.offer(verb, by)
    except InvalidInput:
        return None


def public_grid(clerk: Clerk, score: Judged, by: str | None) -> Grid | None:
    """The grid of a score that names none: from what is public, so that all have the same one.

    None where the score needs none, and where nothing public gives it ends.
    """
    if not needs_grid(clerk, score, by):
        return score.scorer.grid
    offer = _offer(clerk, "ask", by)
    assert offer is not None  # else nothing is asked on a grid
    points = int(getattr(offer.part or offer.set.plan, "grid", 32))
    return score.scorer.public_grid(points, clerk.charter.ranges.get(score.target))


def needs_grid(clerk: Clerk, score: Judged, by: str | None) -> bool:
    """Whether a score is asked on a grid that neither its range nor the plan gives."""
    known = score.terms or score.scorer.metric.range is not None
    return not known and _offer(clerk, "ask", by) is not None


def no_public_grid(score: Judged) -> InvalidInput:
    """The refusal of a submission by a metric without ends."""
    name, column = score.scorer.name, score.target
    hint = (
        f"{name} has no ends of its own. The custodian can declare the target's range at "
        f"creation (--range {column}=LOW:HIGH), or give a grid in the file of `holdfast serve "
        f'--metrics`: METRICS = {{"{name}": {{"grid": "LOW:HIGH:STEP"}}}}.'
    )
    return InvalidInput("metric", name, "one whose grid is known", hint)


def is_score(text: object) -> bool:
    """Whether the ledger's words for an estimator are those of a score of predictions."""
    return " of predictions for " in str(text)


def is_score_of(metric: str, text: object) -> bool:
    """Likewise, by this metric."""
    return re.match(rf"{re.escape(metric)} of predictions for ", str(text)) is not None
