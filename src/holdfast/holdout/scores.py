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

from holdfast.engines.local import LocalEstimator, score_estimator
from holdfast.engines.local.metrics.rowwise import (
    has_term,
    is_exact,
    mean_estimator,
    model_term,
    term_estimator,
)
from holdfast.engines.local.metrics.score import checked_predictions, checked_target
from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.holdout.charter import Charter
from holdfast.holdout.clerk import Clerk
from holdfast.holdout.ids import RowIds
from holdfast.holdout.questions import Verb
from holdfast.holdout.scorers import Scorer
from holdfast.holdout.sets import Offer
from holdfast.holdout.submissions import read_submission, wanted_for
from holdfast.holdout.submissions.frames import is_keyed
from holdfast.planning.parts import DirectPart

__all__ = ["Judged", "is_score", "is_score_of", "judged", "public_grid", "score_question"]

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

    def estimator(self) -> LocalEstimator:
        """The score as an estimator of one block."""
        if self.terms and not self.model:
            return mean_estimator(self.given, self.scorer.metric, self.target)
        return score_estimator(
            self.given,
            self.scorer.metric,
            target=self.target,
            features=self.features,
            checked=self.checked,
        )

    def term(self) -> LocalEstimator | None:
        """Its term, if it has one."""
        if not self.terms:
            return None
        if self.model:
            return model_term(self.given, self.scorer.metric, self.target, self.features)
        return term_estimator(self.given, self.scorer.metric, self.target)


def judged(
    charter: Charter,
    ids: RowIds | None,
    given: Any,
    scorer: Scorer,
    *,
    target: str | None,
    features: Sequence[str] | None = None,
    form: str | None = None,
) -> Judged:
    """A model or predictions, checked against the target's kind and the ids; nothing is asked."""
    column = _target(charter, target)
    kind = charter.manifest.schema.kind(column)
    metric, terms = scorer.metric, charter.manifest.one_row_units and has_term(scorer.metric)
    if callable(getattr(given, "predict", None)):
        return Judged(given, scorer, column, features, True, False, terms)
    wanted = wanted_for(metric, kind, column) if kind in _KINDS else None
    if isinstance(given, str | Path | bytes | bytearray | memoryview) or is_keyed(given):
        if ids is None:
            hint = "Create the holdout with ids='COLUMN', or give one prediction for every row."
            raise InvalidInput("predictions", "ids", "in the order of the rows here", hint)
        wanted = wanted_for(metric, kind, column)
        array = read_submission(given, ids, wanted, form=form)
        return Judged(array, scorer, column, features, False, True, terms)
    array = np.array(checked_predictions(given))  # a copy: how it lies in memory is no question
    fits = wanted is not None and (_texts(array) if wanted.text else array.dtype.kind in "biuf")
    return Judged(array, scorer, column, features, False, fits, terms and fits)


def _texts(array: np.ndarray[Any, Any]) -> bool:
    """Whether it is text and nothing else: what is missing would equal no label, or all."""
    return array.dtype.kind == "U" or all(type(each) is str for each in array)


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
            hint = f"{score.scorer.name} is a value of a block: plan it with --protocols estimate."
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
    """The grid of a score that names none: from what is public, so that all have the same one."""
    offer = _offer(clerk, "ask", by)
    if score.terms or offer is None or score.scorer.metric.range is not None:
        return score.scorer.grid
    points = int(getattr(offer.part or offer.set.plan, "grid", 32))
    found = score.scorer.public_grid(points, clerk.charter.ranges.get(score.target))
    if found is None:
        name, column = score.scorer.name, score.target
        hint = (
            f"{name} has no ends of its own. The custodian can declare the target's range at "
            f"creation (--range {column}=LOW:HIGH), or give a grid in the file of `holdfast serve "
            f'--metrics`: METRICS = {{"{name}": {{"grid": "LOW:HIGH:STEP"}}}}.'
        )
        raise InvalidInput("metric", name, "one whose grid is known", hint)
    return found


def is_score(text: object) -> bool:
    """Whether the ledger's words for an estimator are those of a score of predictions."""
    return " of predictions for " in str(text)


def is_score_of(metric: str, text: object) -> bool:
    """Likewise, by this metric."""
    return re.match(rf"{re.escape(metric)} of predictions for ", str(text)) is not None
