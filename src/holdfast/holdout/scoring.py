"""Scoring: scores, gates and submissions of a holdout."""

from __future__ import annotations

import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.concurrency import Closing
from holdfast.engines.python.estimator import LocalEstimator
from holdfast.engines.python.metrics import (
    NAMES,
    NEEDS_LABEL,
    NEEDS_NUMBER,
    NEEDS_PROBABILITY,
    NEEDS_SCORE,
    OVER_ROWS,
    Labels,
    Metric,
    Predictions,
    checked_function,
    checked_predictions,
    checked_target,
    find_metric,
    is_exact,
    is_scorer,
    listed,
    needs_of,
    plain,
    row_metric,
    score_estimator,
    term_estimator,
    term_range,
    unwrapped,
)
from holdfast.engines.source import Progress
from holdfast.errors import Exhausted, HoldfastWarning, InvalidInput, real_number, whole_number
from holdfast.grids import Grid, parse_grid
from holdfast.holdout.answering import OpenHoldout, Price, refuse_told
from holdfast.holdout.leaderboard import (
    MOST_KEPT,
    TOP,
    Entry,
    Neighbours,
    Standings,
    Submissions,
    is_told,
)
from holdfast.holdout.public import grid_between
from holdfast.holdout.questions import Asked, question_key
from holdfast.holdout.spec import HoldoutSpec
from holdfast.holdout.submissions import (
    KEPT_FOLDER,
    Kept,
    RowIds,
    is_keyed,
    read_ids,
    read_submission,
    refused,
    values_by_row,
    wanted_for,
)
from holdfast.holdout.tokens import Asker
from holdfast.ledger.ledger import Receipt, Row
from holdfast.protocols.answers import (
    ROWS,
    Answer,
    Result,
    Told,
)
from holdfast.protocols.base import Verb
from holdfast.protocols.plans import Part
from holdfast.protocols.shapes import BoundedMean
from holdfast.protocols.source import UNIT, Bounds
from holdfast.store.blocks import BlockStore
from holdfast.store.table import ROW, plain_array

__all__ = [
    "ScoreRequest",
    "Scorer",
    "Scorers",
    "Scoring",
    "SharedScoring",
    "Side",
    "Submission",
    "candidate_names",
    "kept_score",
    "named_candidates",
    "read_scorers",
    "score_request",
    "sealed_rows",
    "side_of",
    "unscored",
]


# Scorers: the metrics that scores are asked by, by name, and those that the custodian adds.
#
# A file of the custodian has one name, METRICS:
#
#     METRICS = {
#         "cost": {"function": cost, "greater_is_better": False, "grid": "0:10:0.1"},
#         "kappa": {"function": cohen_kappa_score, "greater_is_better": True, "range": (-1, 1)},
#         "fbeta": {"function": make_scorer(fbeta_score, beta=2), "range": (0, 1)},
#         "rmse": {"grid": "0:50:0.5"},
#         "late": {"term": late, "greater_is_better": False, "range": (0, 5)},
#     }
#
# A function takes the targets and the predictions of one block and gives one number. It runs where
# estimators run, in the engines' workers. `predictions` says what it takes: label (the default),
# number, probability or score. A scorer of scikit-learn's says both by itself, and greater is
# better: it gives losses the other sign. A term gives one number for each row, within the range:
# its mean is told over rows. An entry without either gives a known metric a grid.


_KEYS = {"function", "greater_is_better", "grid", "predictions", "range", "term"}
_TAKES = (NEEDS_LABEL, NEEDS_NUMBER, NEEDS_PROBABILITY, NEEDS_SCORE)
# Of targets and predictions that lie `span` apart at most: what the metric is at most.
_ERRORS = {"mae": 1, "rmse": 1, "mse": 2}


@dataclass(frozen=True)
class Scorer:
    """A metric, and the grid that its scores are answered on, if it has one of its own."""

    metric: Metric
    grid: Grid | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.metric.name

    @property
    def greater_is_better(self) -> bool:
        """Its direction."""
        return self.metric.greater_is_better

    def public_grid(self, points: int, span: tuple[float, float] | None) -> Grid | None:
        """The grid for a target whose values were declared to lie within `span`; None if none is.

        A metric with a range needs none: the range is its grid.
        """
        if self.grid is not None or self.metric.range is not None:
            return self.grid
        if self.metric.span is not None:
            return grid_between(*self.metric.span, points)
        power = _ERRORS.get(self.name)
        if power is None or span is None:
            return None
        return grid_between(0.0, (span[1] - span[0]) ** power, points)


class Scorers:
    """Metrics by name: those added first, then Holdfast's, then scikit-learn's."""

    def __init__(self, added: Mapping[str, Scorer] | None = None) -> None:
        self._added = dict(added or {})

    @property
    def names(self) -> tuple[str, ...]:
        """Those added, and Holdfast's own; scikit-learn's are known by their names there."""
        own = {find_metric(name).name for name in NAMES if not name.startswith("neg_")}
        return tuple(sorted({*self._added, *own}))

    def find(self, metric: object) -> Scorer:
        """A metric by its name, or a function of targets and predictions."""
        if isinstance(metric, str) and metric in self._added:
            return self._added[metric]
        try:
            found = find_metric(metric)
        except InvalidInput as wrong:
            if not self._added:
                raise
            allowed = f"{wrong.allowed}; here also {', '.join(self._added)}"
            raise InvalidInput(wrong.parameter, metric, allowed, wrong.hint) from None
        known = self._added.get(found.name) if isinstance(metric, str) else None
        return known or Scorer(found)


def read_scorers(path: Path) -> Scorers:
    """The metrics of a custodian's file, which is run, as the custodian, once."""
    import runpy

    if not path.is_file():
        raise InvalidInput("metrics", str(path), "a Python file that exists")
    try:
        found = runpy.run_path(str(path)).get("METRICS")
    except Exception as wrong:
        hint = f"It fails when it is run: {wrong!r}"
        raise InvalidInput("metrics", str(path), "a Python file that runs", hint) from wrong
    if not isinstance(found, dict) or not found:
        raise InvalidInput("metrics", str(path), "a file with METRICS = {name: {…}, …}")
    return Scorers({name: _scorer(name, entry) for name, entry in found.items()})


def _scorer(name: object, entry: object) -> Scorer:
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidInput("METRICS", name, "names of letters, digits and underscores")
    if not isinstance(entry, dict) or not set(entry) <= _KEYS:
        raise InvalidInput(f"METRICS[{name!r}]", entry, f"a dictionary with {sorted(_KEYS)}")
    points = None if entry.get("grid") is None else _grid(entry["grid"])
    if entry.get("term") is not None:
        return Scorer(_row_metric(name, entry))
    if entry.get("function") is None:
        return Scorer(_known(name, entry), points)
    given = entry["function"]
    scorer = is_scorer(given)
    takes = entry.get("predictions", needs_of(given) if scorer else NEEDS_LABEL)
    better = entry.get("greater_is_better", True if scorer else None)
    directions = (True,) if scorer else (True, False)  # a scorer gives losses the other sign
    metric = Metric(
        name,
        _one_of(f"predictions of {name}", takes, _TAKES),
        function=(unwrapped if scorer else checked_function)(f"function of {name}", given),
        greater_is_better=_one_of(f"greater_is_better of {name}", better, directions),
        range=None if entry.get("range") is None else _range(name, entry["range"]),
    )
    if points is None and metric.range is None:
        hint = "Values beyond an end are told as the end."
        raise InvalidInput(f"METRICS[{name!r}]", sorted(entry), "one with a grid or a range", hint)
    return Scorer(metric, points)


def _row_metric(name: str, entry: Mapping[str, Any]) -> Metric:
    words = {key: value for key, value in entry.items() if value is not None}
    needed = {"term", "range", "greater_is_better"}
    if not needed <= set(words) <= {*needed, "predictions"}:
        allowed = "a term, its range and greater_is_better; and what predictions it takes"
        raise InvalidInput(f"METRICS[{name!r}]", sorted(entry), allowed)
    return row_metric(words.pop("term"), name=name, **words)


def _known(name: str, entry: Mapping[str, Any]) -> Metric:
    if set(entry) - {"function", "term"} != {"grid"}:
        allowed = "a grid alone, for a metric that is known; else a function too"
        raise InvalidInput(f"METRICS[{name!r}]", sorted(entry), allowed)
    return replace(find_metric(name), name=name) if name in NAMES else find_metric(name)


def _grid(given: object) -> Grid:
    return given if isinstance(given, Grid) else parse_grid(str(given))


def _range(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = given
    except (TypeError, ValueError):
        raise InvalidInput(f"range of {name}", given, "a pair (low, high)") from None
    whole = BoundedMean(low, high)  # says what is wrong with the pair
    return float(whole.low), float(whole.high)


def _one_of(what: str, given: Any, allowed: tuple[Any, ...]) -> Any:
    if given not in allowed:
        raise InvalidInput(what, given, f"one of {', '.join(map(str, allowed))}")
    return given


# Scores as questions: which estimator, which verb, which grid.
#
# A score that is a mean over rows of a term in a range is asked as that mean where every unit is a
# row and the plan can answer means: its error bar is then as narrow as the plan has planned means.
# Any other score is a value of a block, and is asked as such.


_KINDS = ("boolean", "number", "text")
_VERBS: tuple[Verb, Verb] = ("mean", "ask")
_FOR_SEVERAL = {  # what there is in place of a metric of two classes
    "f1": "f1_macro",
    "jaccard": "jaccard_macro",
    "precision": "precision_macro",
    "recall": "recall_macro",
    "roc_auc": "accuracy, or roc_auc_ovr of a model",
}


@dataclass(frozen=True)
class ScoreRequest:
    """What is scored: a model, or predictions in the order of the rows; and by what."""

    given: Any
    scorer: Scorer
    target: str
    features: Sequence[str] | None
    model: bool
    """Whether it is a model; predictions were checked, and are what the metric takes."""
    bounds: Bounds | None
    """The range of a unit's term, if the score is the mean over units of one."""
    labels: Labels | None = None
    """What is public of the target's labels."""

    @property
    def terms(self) -> bool:
        """Whether the score is the mean over units of a term in a range."""
        return self.bounds is not None

    @property
    def range(self) -> Bounds | None:
        """What terms are cut to, where they could leave it; None where they lie in [0, 1]."""
        return None if self.bounds == UNIT and self.scorer.metric.term is None else self.bounds

    def estimator(self) -> LocalEstimator:
        """The score as an estimator of one block."""
        if self.terms:
            return term_estimator(*self._asked, mean=True)
        return score_estimator(
            self.given,
            self.scorer.metric,
            target=self.target,
            features=self.features,
            checked=not self.model,
            labels=self.labels,
        )

    def term(self) -> LocalEstimator | None:
        """Its term, if it has one."""
        return term_estimator(*self._asked) if self.terms else None

    @property
    def _asked(self) -> tuple[Any, Metric, str, Sequence[str] | None, Labels | None, Bounds]:
        bounds = self.bounds or UNIT
        return self.given, self.scorer.metric, self.target, self.features, self.labels, bounds


def score_request(
    holdout: OpenHoldout,
    shared: SharedScoring,
    given: Any,
    scorer: Scorer,
    *,
    target: str | None,
    features: Sequence[str] | None = None,
    form: str | None = None,
) -> ScoreRequest:
    """A model or predictions, checked against what is public; nothing is asked."""
    found = replace(_to_score(holdout, scorer, target), features=features)
    metric, column, bounds, labels = scorer.metric, found.target, found.bounds, found.labels
    kind, span = holdout.spec.manifest.schema.kind(column), holdout.spec.ranges.get(column)
    keyed = isinstance(given, str | Path | bytes | bytearray | memoryview) or is_keyed(given)
    if isinstance(given, type):
        hint = f"Pass an instance that was fitted: {given.__name__}().fit(…)."
        raise InvalidInput("model", f"the class {given.__name__}", "a fitted model", hint)
    if not keyed and callable(getattr(given, "predict", None)):
        _refuse_targets(metric, column, labels, getattr(given, "classes_", None))
        return replace(found, given=given, model=True)
    within = span if bounds is not None and metric.term is None else None
    wanted = wanted_for(metric, kind, column, within)
    if wanted.label and labels is not None:
        wanted = replace(wanted, known=labels.known)
    _refuse_targets(metric, column, labels, None)
    if keyed:
        ids = shared.ids()
        if ids is None:
            raise _unmatched(given)
        submitted = read_submission(given, ids, wanted, form=form)
        _refuse_labels(metric, labels, submitted.values)
        predictions = submitted.by_row()
    else:
        array = checked_predictions(given)
        _refuse_labels(metric, labels, array)
        predictions = Predictions(values_by_row(array, wanted), shared.sealed_rows(len(array)))
    return replace(found, given=predictions)


def _unmatched(given: object) -> InvalidInput:
    """The refusal of predictions by id, or in a file, where rows have no ids."""
    what, instead = type(given).__name__, "an array"
    if isinstance(given, str | Path):
        if not Path(given).is_file():
            return refused(str(given), "in a file that exists")
        what = f"the file {given}"
    elif getattr(given, "ndim", 2) == 1:
        what, instead = "a Series, which is matched by its index", "series.to_numpy()"
    hint = f"Create the holdout with ids='COLUMN', or pass {instead}, in the order of the table."
    return refused(what, "an array where the holdout has no row ids, as here", hint)


def _to_score(holdout: OpenHoldout, scorer: Scorer, target: str | None) -> ScoreRequest:
    """What is to be scored, but for what is given, with what is public of labels."""
    found = unscored(holdout.spec, scorer, target)
    known = holdout.spec.manifest.schema.kind(found.target) in _KINDS
    return replace(found, labels=holdout.labels(found.target) if known else None)


def unscored(spec: HoldoutSpec, scorer: Scorer, target: str | None = None) -> ScoreRequest:
    """What a score by this metric is about, before anything is given to be scored."""
    column = _target(spec, target)
    number = spec.manifest.schema.kind(column) == "number"
    span, bounds = spec.ranges.get(column) if number else None, None
    if spec.manifest.one_row_units:
        told = _part(spec, "score", None) is not None
        bounds = term_range(scorer.metric, span, told=told)
    return ScoreRequest(None, scorer, column, None, False, bounds)


def kept_score(row: Row, about: ScoreRequest, kept: Kept, store: BlockStore) -> ScoreRequest | str:
    """The predictions whose score is in a row of the ledger; or why they cannot be had."""
    key = str(row.question)
    try:
        found = kept.read(key)
    except (OSError, ValueError):
        return "are damaged: enter them again, which is free"
    if found is None:
        return "were not kept: enter them again, which is free"
    score = replace(about, given=replace(found, sealed=sealed_rows(store, len(found.values))))
    term = score.term()
    if term is None or question_key(row.body["question"], str(term.identity)) != key:
        return "are damaged, or were kept by another version of Holdfast or NumPy: enter them again"
    return score


def sealed_rows(store: BlockStore, rows: int) -> NDArray[np.int64] | None:
    """The rows of the data that are not open, of so many, as everybody may know; None: all."""
    if store.open_path is None or rows != store.manifest.rows:
        return None
    seen = np.ones(rows, np.bool_)
    seen[plain_array(store.open_table([], hidden=True).column(ROW))] = False
    return np.flatnonzero(seen)


def _refuse_labels(metric: Metric, labels: Labels | None, array: np.ndarray[Any, Any]) -> None:
    """Refuse predictions that can be no labels, by what is public, where labels are compared."""
    if labels is None:
        return
    binary = {*labels.known} and not labels.beside((0.0, 1.0))
    takes = metric.is_users and metric.needs == NEEDS_LABEL
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
    if labels is None or metric.is_users or not (metric.binary or metric.name in _FOR_SEVERAL):
        return
    own = (0.0, 1.0) if classes is None else np.asarray(classes).ravel().tolist()
    several = labels.known if len(labels.known) > 2 else own
    if len(several) > 2:
        shown = listed(sorted(several, key=cast(Any, plain)))
        instead = _FOR_SEVERAL.get(metric.name, "accuracy")
        hint = f"{column} has {len(several):,} ({shown}): take {instead}. Nothing was charged."
        raise InvalidInput("metric", metric.name, "one for more than two classes", hint)
    others = labels.beside(own) if metric.binary else []
    if others:
        known = "declared" if labels.declared is not None else "in the open part"
        hint = f"{column} has {listed(others)} ({known}). Nothing was charged."
        allowed = f"one for such labels: {metric.name} takes {listed(own)} alone"
        raise InvalidInput("metric", metric.name, allowed, hint)


def _target(spec: HoldoutSpec, target: str | None) -> str:
    column = target or spec.target
    if column is None:
        hint = "Name the column once, at creation: target='y', --target y; or score(…, target='y')."
        raise InvalidInput("target", None, "the column that the model predicts", hint)
    found = spec.manifest.schema.find(checked_target(column))
    if found is None:
        names = dict.fromkeys((*filter(None, (spec.target,)), *spec.manifest.schema.names))
        shown = [*names][:_SHOWN] + ["…"] * (len(names) > _SHOWN)
        raise InvalidInput("target", column, f"one of {', '.join(shown)}")
    return found.name


def score_question(
    holdout: OpenHoldout, score: ScoreRequest, protocol: str | None, options: dict[str, Any]
) -> tuple[Verb, LocalEstimator, dict[str, Any]]:
    """The verb, the estimator and the words that ask for a score."""
    term = score.term() if _means(holdout, score, protocol) and not options.get("shape") else None
    if term is None:
        means, values = (_part(holdout.spec, verb, None) is not None for verb in _VERBS)
        if protocol is None and means and not values:
            hint = (
                f"{score.scorer.name} is no mean over rows, but a value of a block: plan it with "
                "--protocols estimate."
            )
            allowed = "a mean over rows, as accuracy is, for this plan"
            raise InvalidInput("metric", score.scorer.name, allowed, hint)
        words = {name: options.pop(name, None) for name in ("grid", "where", "shape")}
        return "ask", score.estimator(), {**words, "protocol": protocol, "options": options}
    grid = options.pop("grid", None)
    options.pop("shape", None)
    for name, value in options.items():
        raise InvalidInput(name, value, "left out for a score that is a mean")
    return "mean", term, {"grid": grid, "protocol": protocol, "range": score.range}


def _means(holdout: OpenHoldout, score: ScoreRequest, protocol: str | None) -> bool:
    """Whether a part of the plan answers the score as a mean."""
    if not score.terms:
        return False
    part = _part(holdout.spec, "mean", protocol)
    if part is None or (score.model and part.protocol != "mean"):
        return False
    return not getattr(part, "exact", False) or is_exact(score.scorer.metric)


def _part(spec: HoldoutSpec, verb: Verb, protocol: str | None) -> Part | None:
    try:
        part: Part = spec.part_for(verb, protocol)[1].part
    except InvalidInput:
        return None
    return part


def public_grid(holdout: OpenHoldout, score: ScoreRequest, protocol: str | None) -> Grid | None:
    """The grid of a score that names none: from what is public, so that all have the same one.

    None where the score needs none, and where nothing public gives it ends.
    """
    if not needs_grid(holdout, score, protocol):
        return score.scorer.grid
    part = _part(holdout.spec, "ask", protocol)
    assert part is not None  # else nothing is asked on a grid
    return score.scorer.public_grid(part.points, holdout.spec.ranges.get(score.target))


def needs_grid(holdout: OpenHoldout, score: ScoreRequest, protocol: str | None) -> bool:
    """Whether a score is asked on a grid that neither its range nor the plan gives."""
    known = score.terms or score.scorer.metric.range is not None
    return not known and _part(holdout.spec, "ask", protocol) is not None


def no_public_grid(score: ScoreRequest) -> InvalidInput:
    """The refusal of a submission by a metric without ends."""
    name, column = score.scorer.name, score.target
    hint = (
        f"{name} has no ends of its own. The custodian can declare the target's range at "
        f"creation (--range {column}=LOW:HIGH), or give a grid in the file of `holdfast serve "
        f'--metrics`: METRICS = {{"{name}": {{"grid": "LOW:HIGH:STEP"}}}}.'
    )
    return InvalidInput("metric", name, "one whose grid is known", hint)


Side = Literal["at least", "at most"]
Chosen = str | Metric | Callable[..., float]
"""A metric: its name, what `row_metric` makes, or a function of targets and predictions."""
_LONGEST_NAME = 100
_SHOWN = 12  # columns
_MOST_CANDIDATES = 1_000


def side_of(
    at_least: float | None, at_most: float | None, better_than: object, margin: float
) -> tuple[Side, float]:
    """The side and the threshold of a gate: one of three must be given."""
    words = {"at_least": at_least, "at_most": at_most, "better_than": better_than}
    given = [name for name, value in words.items() if value is not None]
    if len(given) != 1:
        found, allowed = " and ".join(given) or "none of them", "given, and only one of them"
        raise InvalidInput("at_least, at_most or better_than", found, allowed)
    if better_than is not None:
        return "at least", real_number("margin", margin, 0)
    if margin:
        raise InvalidInput("margin", margin, "left out without better_than")
    if at_least is not None:
        return "at least", real_number("at_least", at_least)
    return "at most", real_number("at_most", at_most)


def refuse_foregone(
    score: ScoreRequest,
    name: str,
    threshold: float,
    tolerance: float = 0.0,
    *,
    paired: bool = False,
) -> None:
    """Refuse a threshold that every score passes, or none: what would come of it is known.

    `paired`: of the difference of two scores.
    """
    ends = score.scorer.metric.range if score.bounds is None else score.bounds
    near, what = real_number("tolerance", tolerance, 0), f"every {score.scorer.name}"
    if ends is None:
        return
    low, high = ends
    if paired:
        (low, high), what = (low - high, high - low), "every difference"
    if not low <= threshold <= high or (paired and threshold == high):
        allowed = f"from {low:g} to {high:g}, where {what} lies"
        raise InvalidInput(name, threshold, allowed, "Nothing was told.")
    downwards = name == "at_most"
    proved = threshold + near if downwards else threshold - near
    if proved >= high if downwards else proved <= low:
        allowed = "one that can be missed" + (f" with a tolerance of {near:g}" if near else "")
        claim = "at most" if downwards else "at least"
        hint = f"It is known that {what} is {claim} {proved:g}. Nothing was told."
        raise InvalidInput(name, threshold, allowed, hint)


@dataclass(frozen=True)
class Submission:
    """A submission's score."""

    name: str
    metric: str
    result: Answer | Told

    @property
    def reading(self) -> str | None:
        """What the score is about, as a code."""
        return self.result.reading

    def __str__(self) -> str:
        return f"{self.name}, by {self.metric}\n{self.result}"

    def to_dict(self) -> dict[str, Any]:
        """The answer's plain data, and the submission's."""
        return {**self.result.to_dict(), "name": self.name, "metric": self.metric}


class SharedScoring:
    """What all views of one holdout share: its ids, and what its ledger says of submissions."""

    def __init__(self, holdout: OpenHoldout) -> None:
        self._open = holdout
        self._ids: RowIds | None = None
        self._sealed: NDArray[np.int64] | None = None
        self._lock = threading.RLock()
        self.submissions = Submissions(holdout.spec, holdout.journal)
        self.kept = Kept(holdout.store.folder)

    def ids(self) -> RowIds | None:
        """The public ids of rows, read once; None if there are none."""
        about = self._open.spec.ids
        with self._lock:
            if self._ids is None and about is not None:
                sealed = self.sealed_rows(about.rows)
                self._ids = read_ids(self._open.store.folder, about, sealed)
            return self._ids

    def sealed_rows(self, rows: int) -> NDArray[np.int64] | None:
        """The rows of the data that are not open, of so many, as everybody may know; None: all."""
        store = self._open.store
        if rows != store.manifest.rows:
            return None
        with self._lock:
            if self._sealed is None:
                self._sealed = sealed_rows(store, rows)
            return self._sealed

    def keep(self, row: Row, predictions: Predictions) -> None:
        """Keep those whose score is in the row, if they are among the best now; drop all others.

        One at a time: whoever comes later has read the notes of whoever was before.
        """
        with self._open.journal.ledger.lock(KEPT_FOLDER):
            wanted = self.submissions.kept()
            if row.question in wanted and not self._is_kept(row.question, predictions):
                self.kept.keep(row.question, predictions)
            self.kept.drop_others(wanted)

    def _is_kept(self, key: str, predictions: Predictions) -> bool:
        """Whether a file has them; those of open rows too make comparisons cheaper."""
        try:
            found = self.kept.read(key)
        except (OSError, ValueError):
            return False
        if found is None or len(found.values) != len(predictions.values):
            return False
        if predictions.complete and not found.complete:
            return False
        there = replace(found, sealed=predictions.sealed).of_sealed
        return np.array_equal(there, predictions.of_sealed)

    def open_table(self, columns: Sequence[str] | None) -> Any:
        """The open part, with the ids of its rows if they are wanted."""
        store, ids = self._open.store, self.ids()
        name = None if ids is None or ids.sealed is None else ids.about.column
        if ids is None or name is None or (columns is not None and name not in columns):
            return store.open_table(columns)
        others = None if columns is None else [each for each in columns if each != name]
        rows = store.open_table([], hidden=True).column(ROW)
        return store.open_table(others).add_column(0, name, ids.values.take(rows))


class Scoring(Closing):
    """The part of a holdout that scores models and predictions."""

    _open: OpenHoldout
    _asker: Asker | None
    _shared: SharedScoring
    scorers: Scorers

    def score(
        self,
        model_or_predictions: object,
        *,
        metric: Chosen = "accuracy",
        guess: float | None = None,
        guess_se: float | None = None,
        precise: bool = False,
        target: str | None = None,
        features: Sequence[str] | None = None,
        form: str | None = None,
        max_level: float | None = None,
        protocol: str | None = None,
        anyway: bool = False,
        request: str | None = None,
        progress: Progress | None = None,
        **asked: Any,
    ) -> Answer | Told:
        """A model's score, or that of predictions, with its bar.

        Predictions are given for every row in the order of the data; or, where the holdout was
        created with ids, keyed by id: a dictionary, a table, or a file of CSV, JSON or Parquet.

        A `guess` that is confirmed costs almost nothing; without one it is the score on the open
        part. `precise` tells more, for a narrower bar. `asked` as for `ask`, where answers are by
        looks.
        """
        scorer = self.scorers.find(metric)
        given: dict[str, Any] = {"target": target, "features": features, "form": form}
        score = self._score_request(model_or_predictions, scorer, **given)
        words = {"guess": guess, "guess_se": guess_se, "precise": precise, "max_level": max_level}
        if self._is_told(score, protocol):
            return self._told("score", [score], (), words, request, progress)
        _refuse_guess(self._open.spec, score, protocol, words)
        if asked.get("grid") is None:
            asked["grid"] = public_grid(self._open, score, protocol)
        return self._scored(score, protocol, request, progress, anyway, asked)

    def compare(
        self,
        model_or_predictions: object,
        against: object,
        *,
        metric: Chosen = "accuracy",
        margin: float | None = None,
        guess: float | None = None,
        guess_se: float | None = None,
        precise: bool = False,
        names: Sequence[str] = ("B", "A"),
        target: str | None = None,
        features: Sequence[str] | None = None,
        form: str | None = None,
        max_level: float | None = None,
        request: str | None = None,
        progress: Progress | None = None,
    ) -> Told:
        """Whether one model, or its predictions, is better than another, on the same rows.

        Without a `margin` the difference has a bar. With one (0 too) there is a verdict: better by
        more than the margin, worse by more than the margin, or not shown.
        """
        scorer = self.scorers.find(metric)
        given: dict[str, Any] = {"target": target, "features": features, "form": form}
        names = candidate_names(2, names)
        pair = [
            self._score_request(each, scorer, **given) for each in (model_or_predictions, against)
        ]
        if margin is not None:
            refuse_foregone(pair[0], "margin", real_number("margin", margin, 0), paired=True)
        words = {"margin": margin, "guess": guess, "guess_se": guess_se, "precise": precise}
        words["max_level"] = max_level
        return self._told("compare", pair, names, words, request, progress)

    def gate(
        self,
        model_or_predictions: object,
        *,
        metric: Chosen = "accuracy",
        at_least: float | None = None,
        at_most: float | None = None,
        better_than: object = None,
        margin: float = 0.0,
        tolerance: float = 0.0,
        guess: float | None = None,
        guess_se: float | None = None,
        target: str | None = None,
        features: Sequence[str] | None = None,
        form: str | None = None,
        max_level: float | None = None,
        request: str | None = None,
        progress: Progress | None = None,
    ) -> Told:
        """Whether a score is proved to reach a threshold (pass), proved to miss it (fail), or not.

        `at_least` v: a pass proves v − tolerance or more, a fail less than v; `at_most` likewise.
        `better_than` an incumbent: a pass proves that it is better by the margin, less the
        tolerance, a fail that it is not better by the margin.
        """
        scorer = self.scorers.find(metric)
        claim, threshold = side_of(at_least, at_most, better_than, margin)
        given: dict[str, Any] = {"target": target, "features": features, "form": form}
        scores = [self._score_request(model_or_predictions, scorer, **given)]
        names: tuple[str, ...] = ()
        if better_than is not None:
            scores.append(self._score_request(better_than, scorer, **given))
            names = ("this one", "the incumbent")
            refuse_foregone(scores[0], "margin", threshold, tolerance, paired=True)
            if not scorer.greater_is_better:
                claim, threshold = "at most", -threshold
        else:
            refuse_foregone(scores[0], claim.replace(" ", "_"), threshold, tolerance)
        words: dict[str, Any] = {"claim": claim, "threshold": threshold, "tolerance": tolerance}
        words |= {"guess": guess, "guess_se": guess_se, "max_level": max_level}
        return self._told("gate", scores, names, words, request, progress)

    def best(
        self,
        candidates: Sequence[object] | Mapping[str, object],
        *,
        metric: Chosen = "accuracy",
        names: Sequence[str] | None = None,
        precise: bool = False,
        target: str | None = None,
        features: Sequence[str] | None = None,
        form: str | None = None,
        max_level: float | None = None,
        request: str | None = None,
        progress: Progress | None = None,
    ) -> Told:
        """The candidate with the best score on the sealed rows; with `precise` its bar too.

        Candidates are a list, or a dictionary from their names.
        """
        scores, titles = self._candidates(candidates, names, metric, target, features, form)
        words = {"max_level": max_level}
        found = self._told("best", scores, titles, words, request, progress)
        if not precise:
            return found
        place = found.letter[0]
        key = None if request is None else f"{request} score"
        words = {"precise": True, "max_level": max_level}
        try:
            bar = self._told("score", [scores[place]], (), words, key, progress)
        except Exhausted as refused:
            winner = titles[place] if titles else f"candidate {place + 1}"
            told = f"The winner is {winner}: ask for it without its bar, free."
            raise Exhausted("The winner's bar", refused.needed, refused.left, told) from None
        return replace(found, batch=(bar,))

    def scores(
        self,
        candidates: Sequence[object] | Mapping[str, object],
        *,
        metric: Chosen = "accuracy",
        guesses: Sequence[float | None] | None = None,
        names: Sequence[str] | None = None,
        precise: bool = False,
        target: str | None = None,
        features: Sequence[str] | None = None,
        form: str | None = None,
        max_level: float | None = None,
        request: str | None = None,
        progress: Progress | None = None,
    ) -> Told:
        """The scores of several, all fixed before any of them is answered: `batch` has them."""
        scores, titles = self._candidates(candidates, names, metric, target, features, form)
        known = None
        if guesses is not None:
            many = len(guesses) if hasattr(guesses, "__len__") else "no list"
            if many != len(scores):
                raise InvalidInput("guesses", many, f"one for each of {len(scores)} candidates")
            ends = scores[0].bounds or UNIT
            known = tuple(
                None if each is None else real_number("guess", each, *ends) for each in guesses
            )
        words = {"guesses": known, "precise": precise, "max_level": max_level}
        return self._told("scores", scores, titles, words, request, progress)

    def enter(
        self,
        predictions: object,
        name: str,
        *,
        metric: Chosen = "accuracy",
        guess: float | None = None,
        guess_se: float | None = None,
        precise: bool = False,
        form: str | None = None,
        max_level: float | None = None,
        protocol: str | None = None,
        anyway: bool = False,
        request: str | None = None,
        progress: Progress | None = None,
    ) -> Submission:
        """Score predictions keyed by row id, and enter them on the leaderboard under a name."""
        title, scorer = _name(name), self.scorers.find(metric)
        score = self._score_request(predictions, scorer, target=None, form=form)
        if score.model:
            raise InvalidInput("predictions", type(predictions).__name__, "predictions by row id")
        self._shared.submissions.check_room(title, scorer.name, self._asked_by)
        answer: Answer | Told
        words = {"guess": guess, "guess_se": guess_se, "precise": precise, "max_level": max_level}
        if self._is_told(score, protocol):
            answer = self._told("score", [score], (), words, request, progress)
        else:
            _refuse_guess(self._open.spec, score, protocol, words)
            points = public_grid(
                self._open, score, protocol
            )  # not the submitter's: it decides the score
            if points is None and needs_grid(self._open, score, protocol):
                raise no_public_grid(score)
            answer = self._scored(score, protocol, request, progress, anyway, {"grid": points})
        recorded = Receipt.parse(answer.receipt).number
        better = scorer.greater_is_better
        self._shared.submissions.note(title, scorer.name, better, self._asked_by, recorded)
        row = self._open.journal.ledger.row(recorded)
        if row is not None and row.question is not None and is_told(row):
            self._keep(title, row, score.given)
        return Submission(title, scorer.name, answer)

    def _keep(self, name: str, row: Row, predictions: Predictions) -> None:
        """Keep an entry's predictions; where there is no room it is an entry all the same."""
        try:
            self._shared.keep(row, predictions)
        except OSError as error:
            why = f"The predictions of {name!r} were not kept ({error.strerror})."
            hint = "Before they can be compared with others, enter them again, which is free."
            warnings.warn(f"{why} {hint}", HoldfastWarning, stacklevel=3)

    def leaderboard(
        self,
        metric: str = "accuracy",
        *,
        neighbours: bool = False,
        top: int = TOP,
        max_level: float | None = None,
        price: bool = False,
    ) -> Standings:
        """The best submission of every name, with the ranks that their error bars allow.

        `neighbours` compares each of the first `top` entries with the next one on the same rows, as
        `compare` does: asked again it is free. `price` asks nothing, and says what that would tell.
        """
        scorer, top = self.scorers.find(metric), whole_number("top", top, 2, MOST_KEPT)
        standings = self._shared.submissions.standings(scorer.name, scorer.greater_is_better)
        if not neighbours and not price:
            return standings
        about = _to_score(self._open, scorer, None)
        self._open.spec.part_for("compare")
        _refuse_blocks("compare", [about])
        scored = [each for each in standings.entries if each.value is not None][:top]
        kept = ((each, self._kept(each, about)) for each in scored)
        words = {"max_level": max_level}
        found = [
            self._neighbours(place, pair, words, price=price)
            for place, pair in enumerate(pairwise(kept), 1)
        ]
        return replace(standings, neighbours=tuple(found))

    def _neighbours(
        self,
        place: int,
        pair: Sequence[tuple[Entry, ScoreRequest | str]],
        words: dict[str, Any],
        *,
        price: bool,
    ) -> Neighbours:
        """Two entries, compared as anybody would compare them; or what that would tell."""
        one, other = (entry.name for entry, _ in pair)
        names = (f"{one} ({place})", f"{other} ({place + 1})") if one == other else (one, other)
        if len({entry.receipt for entry, _ in pair}) == 1:
            return Neighbours(names, same=True)
        scores = []
        for name, (_, score) in zip(names, pair, strict=True):
            if isinstance(score, str):
                return Neighbours(names, reason=f"the predictions of {name!r} {score}")
            scores.append(score)
        if len({getattr(each.term(), "identity", None) for each in scores}) == 1:
            return Neighbours(names, same=True)
        asked = self._told_asked("compare", scores, names, dict(words))
        if price:
            return Neighbours(names, price=self._priced(asked))
        try:
            return Neighbours(names, told=cast(Told, self._asked(asked, None, None, True)))
        except Exhausted as refused:
            return Neighbours(names, reason=str(refused))

    def _kept(self, entry: Entry, about: ScoreRequest) -> ScoreRequest | str:
        """The predictions of an entry; or why they cannot be had."""
        row = self._open.journal.ledger.row(Receipt.parse(entry.receipt).number)
        assert row is not None  # it is on the board
        if not is_told(row):
            return "were not kept: they were scored by looks"
        return kept_score(row, about, self._shared.kept, self._open.store)

    # How they are asked.

    def _score_request(
        self,
        given: Any,
        scorer: Scorer,
        *,
        target: str | None,
        features: Sequence[str] | None = None,
        form: str | None = None,
    ) -> ScoreRequest:
        words: dict[str, Any] = {"target": target, "features": features, "form": form}
        return score_request(self._open, self._shared, given, scorer, **words)

    def _scored(
        self,
        score: ScoreRequest,
        protocol: str | None,
        request: str | None,
        progress: Progress | None,
        anyway: bool,
        options: dict[str, Any],
    ) -> Answer:
        verb, estimator, words = score_question(self._open, score, protocol, options)
        asked = self._open.asked(verb, estimator, **words)
        return cast(Answer, self._asked(asked, request, progress, anyway))

    def _is_told(self, score: ScoreRequest, protocol: str | None) -> bool:
        """Whether a score is answered by what is told: a mean over rows, and rows for it."""
        part = _part(self._open.spec, "score", protocol)
        return score.terms and part is not None

    def _candidates(
        self,
        candidates: Sequence[object] | Mapping[str, object],
        names: Sequence[str] | None,
        metric: Chosen,
        target: str | None,
        features: Sequence[str] | None,
        form: str | None,
    ) -> tuple[list[ScoreRequest], tuple[str, ...]]:
        """Several rules, each other than the others."""
        listed, titles = named_candidates(candidates, names)
        scorer = self.scorers.find(metric)
        given: dict[str, Any] = {"target": target, "features": features, "form": form}
        return [self._score_request(each, scorer, **given) for each in listed], titles

    def _told(
        self,
        verb: Verb,
        scores: Sequence[ScoreRequest],
        names: Sequence[str],
        words: dict[str, Any],
        request: str | None,
        progress: Progress | None,
    ) -> Told:
        """Ask about rules on single rows."""
        asked = self._told_asked(verb, scores, names, words)
        return cast(Told, self._asked(asked, request, progress, True))

    def _told_asked(
        self,
        verb: Verb,
        scores: Sequence[ScoreRequest],
        names: Sequence[str],
        words: dict[str, Any],
    ) -> Asked:
        """The question about rules on single rows that these words are."""
        scorer, spec = scores[0].scorer, self._open.spec
        _refuse_blocks(verb, scores)
        first, *others = [each.term() for each in scores]
        identities = [getattr(each, "identity", None) for each in (first, *others)]
        if None not in identities and len({*identities}) < len(identities):
            same = "model" if scores[0].model else "predictions"
            hint = "There is nothing to compare."
            raise InvalidInput("candidates", f"the same {same} twice", "different", hint)
        labels = scores[0].labels
        declared = None if labels is None else labels.declared
        classes = None if verb not in ("compare", "gate") or not others else declared
        words |= {"metric": scorer.name, "share": is_exact(scorer.metric), "names": names}
        words["classes"] = None if classes is None else len(classes)
        if not any(each.model for each in scores):
            words["reading"] = spec.reading
            pair = len(scores) == 2 and verb in ("compare", "gate")
            if pair and spec.reading == ROWS and is_exact(scorer.metric):
                one, other = (each.given.of_sealed for each in scores)
                words["differ"] = int(np.count_nonzero(one != other))
        words |= {"greater": scorer.greater_is_better, "target": scores[0].target}
        words["range"] = scores[0].range
        return self._open.asked(verb, first, others=others, **words)

    @abstractmethod
    def _asked(
        self, asked: Any, request: str | None, progress: Progress | None, anyway: bool
    ) -> Result: ...

    @abstractmethod
    def _priced(self, asked: Asked, bar: float = 0.0) -> Price: ...

    @property
    def _asked_by(self) -> str | None:
        return None if self._asker is None else self._asker.id


def _refuse_guess(
    spec: HoldoutSpec, score: ScoreRequest, protocol: str | None, words: Mapping[str, Any]
) -> None:
    """Refuse what only scores have that are means over rows."""
    part = _part(spec, "ask", protocol)
    if part is None or part.protocol != "told":
        refuse_told(words)
        return
    for name, value in words.items():
        if value is not None and value is not False:
            metric = score.scorer.name
            hint = f"It is told as a median over blocks, which takes no {name}."
            if spec.manifest.one_row_units:
                hint += f" These take one: {OVER_ROWS}."
            raise InvalidInput(name, value, f"left out for {metric}", hint)


def _refuse_blocks(verb: Verb, scores: Sequence[ScoreRequest]) -> None:
    """Refuse a metric that is no mean over rows."""
    if not all(each.terms for each in scores):
        hint = (
            "Accuracy, error rate, Brier score, log loss, errors on a target of a declared "
            "range, and what row_metric makes are means over rows, where a row is a unit."
        )
        allowed = f"a mean over rows for {verb}(…)"
        raise InvalidInput("metric", scores[0].scorer.name, allowed, hint)


def named_candidates(
    candidates: object, names: Sequence[str] | None
) -> tuple[list[object], tuple[str, ...]]:
    """Several candidates, and what they are called: a list, or a dictionary by their names."""
    if isinstance(candidates, Mapping):
        if names is not None:
            hint = "A dictionary of candidates has their names."
            raise InvalidInput("names", list(names), "left out", hint)
        names, candidates = [*candidates], [*candidates.values()]
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Sequence):
        allowed = "a list of two or more, or a dictionary by their names"
        raise InvalidInput("candidates", type(candidates).__name__, allowed)
    if not 2 <= len(candidates) <= _MOST_CANDIDATES:
        allowed = f"from 2 to {_MOST_CANDIDATES:,}; score(…) is for one"
        raise InvalidInput("candidates", len(candidates), allowed)
    return [*candidates], candidate_names(len(candidates), names)


def candidate_names(count: int, names: Sequence[str] | None) -> tuple[str, ...]:
    """What so many candidates are called.

    >>> candidate_names(2, None)
    ('candidate 1', 'candidate 2')
    """
    if names is None:
        return tuple(f"candidate {k + 1}" for k in range(count))
    titles = tuple(_name(each) for each in names)
    if len(titles) != count or len({*titles}) != count:
        raise InvalidInput("names", list(titles), "one for each candidate, all different")
    return titles


def _name(name: object) -> str:
    text = name.strip() if isinstance(name, str) else ""
    if not 1 <= len(text) <= _LONGEST_NAME or not text.isprintable():
        raise InvalidInput("name", name, f"1 to {_LONGEST_NAME} printable characters")
    return text
