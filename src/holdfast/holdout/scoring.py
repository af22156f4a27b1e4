"""Scoring: scores, gates and submissions of a holdout."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from holdfast.concurrency import Closing
from holdfast.engines.python.estimator import LocalEstimator
from holdfast.engines.python.metrics import (
    NAMES,
    NEEDS_LABEL,
    NEEDS_NUMBER,
    NEEDS_PROBABILITY,
    NEEDS_SCORE,
    Labels,
    Metric,
    checked_function,
    checked_predictions,
    checked_target,
    find_metric,
    has_term,
    is_exact,
    is_scorer,
    listed,
    mean_estimator,
    needs_of,
    score_estimator,
    term_estimator,
    unwrapped,
)
from holdfast.engines.source import Progress
from holdfast.errors import Exhausted, InvalidInput, real_number
from holdfast.grids import Grid, parse_grid
from holdfast.holdout.answering import OpenHoldout
from holdfast.holdout.leaderboard import Board, Standings
from holdfast.holdout.public import grid_between
from holdfast.holdout.spec import AnswerablePart, HoldoutSpec
from holdfast.holdout.submissions import (
    RowIds,
    is_keyed,
    read_ids,
    read_submission,
    refused,
    values_by_row,
    wanted_for,
)
from holdfast.holdout.tokens import Asker
from holdfast.ledger.ledger import Receipt
from holdfast.protocols.answers import (
    Answer,
    Result,
    Verdict,
    at_least,
    fewer_than,
    reading_words,
    rounded_down,
    rounded_up,
)
from holdfast.protocols.base import Verb
from holdfast.protocols.shapes import BoundedMean
from holdfast.theory.bars import verdict_bar

__all__ = [
    "Boards",
    "Gate",
    "GateWord",
    "Judged",
    "Scorer",
    "Scorers",
    "Scoring",
    "Side",
    "Submission",
    "judged",
    "read_scorers",
    "side_of",
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
#     }
#
# A function takes the targets and the predictions of one block and gives one number. It runs where
# estimators run, in the engines' workers. `predictions` says what it takes: label (the default),
# number, probability or score. A scorer of scikit-learn's says both by itself, and greater is
# better: it gives losses the other sign. An entry without a function gives a known metric a grid.


_KEYS = {"function", "greater_is_better", "grid", "predictions", "range"}
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


def _known(name: str, entry: Mapping[str, Any]) -> Metric:
    if set(entry) - {"function"} != {"grid"}:
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
# A score that is a mean over rows of a term between 0 and 1 is asked as that mean where every unit
# is a row and the plan can answer means: its error bar is then as narrow as the plan has planned
# means. Any other score is a value of a block, and is asked as such.


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
    """Whether it is a model; predictions were checked, and are what the metric takes."""
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
            checked=not self.model,
            labels=self.labels,
        )

    def term(self) -> LocalEstimator | None:
        """Its term, if it has one."""
        return term_estimator(*self._asked) if self.terms else None

    @property
    def _asked(self) -> tuple[Any, Metric, str, Sequence[str] | None, Labels | None]:
        return self.given, self.scorer.metric, self.target, self.features, self.labels


def judged(
    holdout: OpenHoldout,
    ids: RowIds | None,
    given: Any,
    scorer: Scorer,
    *,
    target: str | None,
    features: Sequence[str] | None = None,
    form: str | None = None,
) -> Judged:
    """A model or predictions, checked against what is public; nothing is asked."""
    spec = holdout.spec
    column = _target(spec, target)
    kind = spec.manifest.schema.kind(column)
    metric, terms = scorer.metric, spec.manifest.one_row_units and has_term(scorer.metric)
    labels = holdout.labels(column) if kind in _KINDS else None
    if callable(getattr(given, "predict", None)):
        _refuse_targets(metric, column, labels, getattr(given, "classes_", None))
        return Judged(given, scorer, column, features, True, terms, labels)
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
    return Judged(array, scorer, column, features, False, terms, labels)


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


def _target(spec: HoldoutSpec, target: str | None) -> str:
    column = target or spec.target
    if column is None:
        hint = "Name the column once, at creation: target='y', --target y; or score(…, target='y')."
        raise InvalidInput("target", None, "the column that the model predicts", hint)
    found = spec.manifest.schema.find(checked_target(column))
    if found is None:
        names = ", ".join(spec.manifest.schema.names[:20])
        raise InvalidInput("target", column, f"one of {names}")
    return found.name


def score_question(
    holdout: OpenHoldout, score: Judged, by: str | None, options: dict[str, Any]
) -> tuple[Verb, LocalEstimator, dict[str, Any]]:
    """The verb, the estimator and the words that ask for a score."""
    term = score.term() if _means(holdout, score, by) and not options.get("shape") else None
    if term is None:
        means, values = (_part(holdout, verb, None) is not None for verb in _VERBS)
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


def _means(holdout: OpenHoldout, score: Judged, by: str | None) -> bool:
    """Whether a part of the plan answers the score as a mean."""
    if not score.terms:
        return False
    part = _part(holdout, "mean", by)
    if part is None or (score.model and part.protocol != "mean"):
        return False
    return not getattr(part.part, "exact", False) or is_exact(score.scorer.metric)


def _part(holdout: OpenHoldout, verb: Verb, by: str | None) -> AnswerablePart | None:
    try:
        return holdout.spec.part_for(verb, by)
    except InvalidInput:
        return None


def public_grid(holdout: OpenHoldout, score: Judged, by: str | None) -> Grid | None:
    """The grid of a score that names none: from what is public, so that all have the same one.

    None where the score needs none, and where nothing public gives it ends.
    """
    if not needs_grid(holdout, score, by):
        return score.scorer.grid
    part = _part(holdout, "ask", by)
    assert part is not None  # else nothing is asked on a grid
    points = part.part.points
    return score.scorer.public_grid(points, holdout.spec.ranges.get(score.target))


def needs_grid(holdout: OpenHoldout, score: Judged, by: str | None) -> bool:
    """Whether a score is asked on a grid that neither its range nor the plan gives."""
    known = score.terms or score.scorer.metric.range is not None
    return not known and _part(holdout, "ask", by) is not None


def no_public_grid(score: Judged) -> InvalidInput:
    """The refusal of a submission by a metric without ends."""
    name, column = score.scorer.name, score.target
    hint = (
        f"{name} has no ends of its own. The custodian can declare the target's range at "
        f"creation (--range {column}=LOW:HIGH), or give a grid in the file of `holdfast serve "
        f'--metrics`: METRICS = {{"{name}": {{"grid": "LOW:HIGH:STEP"}}}}.'
    )
    return InvalidInput("metric", name, "one whose grid is known", hint)


# Gates: does a score reach a threshold? One verification on one side, and what it certifies.


Side = Literal["at least", "at most"]
GateWord = Literal["pass", "fail", "exhausted"]
_GATE = "gate"


@dataclass(frozen=True)
class Gate:
    """A verdict on a threshold, and what follows from it for the score on fresh data.

    `low` and `high` bound the score where it is a mean of terms between 0 and 1; else they are
    None. Exhausted, nothing is said: then the gate is not passed, and has not failed either.
    """

    verdict: Verdict
    metric: str
    claim: Side
    low: float | None
    high: float | None
    certifies: str

    @property
    def passed(self) -> bool:
        """Whether the threshold was confirmed."""
        return self.verdict.refused is False

    @property
    def exhausted(self) -> bool:
        """Whether nothing was drawn, for what is left does not pay for it."""
        return self.verdict.refused is None

    @property
    def word(self) -> GateWord:
        """Pass, fail or exhausted."""
        return "exhausted" if self.exhausted else "pass" if self.passed else "fail"

    def to_dict(self) -> dict[str, Any]:
        """The verdict's plain data, and the gate's; its `verdict` is pass, fail or exhausted."""
        return {
            **self.verdict.to_dict(),
            "type": "verdict",
            "verdict": self.word,
            "passed": self.passed,
            "metric": self.metric,
            "claim": self.claim,
            "low": self.low,
            "high": self.high,
            "certifies": self.certifies,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Gate:
        """What `to_dict` wrote."""
        names = [each.name for each in fields(Verdict)]
        verdict = Verdict(**{name: data[name] for name in names})
        more = (data[name] for name in ("metric", "claim", "low", "high", "certifies"))
        return cls(verdict, *more)

    def __str__(self) -> str:
        left, budget = self.verdict.refusals_left, self.verdict.budget_left
        paid = f"  price {self.verdict.price:.4g}"
        paid += "" if left == budget else f", {budget:.4g} left"  # where refusals are what is paid
        paid += "" if left is None else f"; {left:,} refusals left"
        lines = [
            f"{self.word}: {self.metric} {self.claim} {self.verdict.guess:.12g}?",
            f"  {self.certifies}",
            "  free: asked before" if self.verdict.cached else paid,
        ]
        return "\n".join([*lines, f"  receipt {self.verdict.receipt}"][: 3 + bool(self.receipt)])

    @property
    def receipt(self) -> str:
        """The verdict's receipt."""
        return self.verdict.receipt

    @property
    def reading(self) -> str | None:
        """What the score is about, as a code."""
        return self.verdict.reading


def side_of(at_least: float | None, at_most: float | None) -> tuple[Side, float]:
    """The side and the threshold: one of the two must be given."""
    if at_least is not None and at_most is None:
        return "at least", real_number("at_least", at_least)
    if at_most is not None and at_least is None:
        return "at most", real_number("at_most", at_most)
    raise InvalidInput("at_least or at_most", (at_least, at_most), "given, and only one of them")


def gate_part(holdout: OpenHoldout, by: str | None) -> AnswerablePart:
    """The part of the plan that verifies one side of a guess."""
    hint = (
        "A plan is made before the data are sealed, with a part for guesses: "
        "holdfast create … --protocols gate=200 --refusals 10, or "
        "exact_verdicts(200, refusals=10, tail_low=1e-6, tail_high=1 - 1e-6, sides=1)."
    )
    if by is None and any(part.name == _GATE for _, part in holdout.spec.parts):
        by = _GATE  # made for this, where the plan has other guesses too
    try:
        part = holdout.spec.part_for("verify", by)
    except InvalidInput:
        if by is not None:
            raise
        raise InvalidInput("plan", "no part for guesses", "one that can verify", hint) from None
    if part.kind.by_tolerance:
        raise InvalidInput("plan", part.protocol, "one with a part for guesses", hint)
    return part


def refuse_foregone(scorer: Scorer, claim: Side, threshold: float) -> None:
    """Refuse a threshold outside the metric's range: what would come of it is known already."""
    ends = scorer.metric.range
    if ends is not None and not ends[0] <= threshold <= ends[1]:
        allowed = f"from {ends[0]:g} to {ends[1]:g}, where every {scorer.name} lies"
        raise InvalidInput(claim.replace(" ", "_"), threshold, allowed, "Nothing was charged.")


def refuse_empty(part: AnswerablePart, score: Judged) -> None:
    """Refuse a score that is no mean where the plan's tails say nothing of any other."""
    if not score.terms and not part.part.tells:
        hint = (
            "Nothing was charged. Gate accuracy, or seal data under gates that speak of blocks: "
            "holdfast create … --protocols gate=200 --tail 0.1."
        )
        allowed = "a mean of terms from 0 to 1: of anything else these gates certify nothing"
        raise InvalidInput("metric", score.scorer.name, allowed, hint)


def told(holdout: OpenHoldout, score: Judged, claim: Side, verdict: Verdict) -> Gate:
    """The gate that a verdict is, with what it certifies in plain words."""
    name, units = score.scorer.name, holdout.spec.manifest.block_units
    if verdict.refused is None:
        words = "what is left does not pay for it: nothing was drawn, and nothing is said"
        return Gate(verdict, name, claim, None, None, words)
    low = high = None
    if score.terms:
        low, high = verdict_bar(
            *(verdict.guess, claim, not verdict.refused, units),
            *(verdict.tail_low, verdict.tail_high),
        )
        if score.model:  # a failure counts as the worst value: it can hide a better score
            low, high = (low, 1.0) if score.scorer.greater_is_better else (0.0, high)
    sure = "certified" if verdict.certified else "NOT certified (the holdout is seeded)"
    words = _bar(name, low, high) or _quantile(name, claim, verdict, units)
    words += f", for {reading_words(verdict.reading)}"
    return Gate(verdict, name, claim, low, high, f"{sure}: {words}")


def _bar(name: str, low: float | None, high: float | None) -> str:
    if low is not None and low > 0:
        return f"the {name} on fresh data is at least {rounded_down(low)}"
    if high is not None and high < 1:
        return f"the {name} on fresh data is at most {rounded_up(high)}"
    small = f"no bound on the {name} beside its range"
    return "" if low is None else small


def _quantile(name: str, claim: Side, verdict: Verdict, units: int) -> str:
    share = fewer_than(verdict.tail_high) if verdict.refused else at_least(verdict.tail_low)
    blocks = f"fresh blocks of {units:,} units"
    return f"{share} {blocks} have a {name} of {claim} {verdict.guess:.12g}"


_LONGEST_NAME = 100
_IMPROVE = " improve"  # a key of a request over HTTP has no spaces


@dataclass(frozen=True)
class Submission:
    """A submission's score; or, if it was first checked and is no improvement, that verdict."""

    name: str
    metric: str
    result: Answer | Verdict
    improved: bool | None = None
    bound: float | None = None
    """Where it is no improvement: what the score is certified not to pass, if that can be said."""

    @property
    def reading(self) -> str | None:
        """What the score is about, as a code."""
        return self.result.reading

    def __str__(self) -> str:
        verdict = "" if self.improved is not False else ", which is no improvement"
        return f"{self.name}, by {self.metric}{verdict}\n{self.result}"

    def to_dict(self) -> dict[str, Any]:
        """The answer's or verdict's plain data, and the submission's.

        A verdict is that of a gate: it has passed "no better than the best, and a margin".
        """
        verdict = {"type": "verdict", "verdict": "pass"}
        return {
            **self.result.to_dict(),
            **({"type": "answer"} if self.result.kind == "answer" else verdict),
            "name": self.name,
            "metric": self.metric,
            "improved": self.improved,
            "bound": self.bound,
        }


class Boards:
    """What all views of one holdout share: its ids, and what its ledger says of submissions."""

    def __init__(self, holdout: OpenHoldout) -> None:
        self._open = holdout
        self._ids: RowIds | None = None
        self._lock = threading.Lock()
        self.board = Board(holdout.spec, holdout.journal)

    def ids(self) -> RowIds | None:
        """The public ids of rows, read once; None if there are none."""
        about = self._open.spec.ids
        with self._lock:
            if self._ids is None and about is not None:
                self._ids = read_ids(self._open.store.folder, about)
            return self._ids


class Scoring(Closing):
    """The part of a holdout that scores models and predictions."""

    _open: OpenHoldout
    _asker: Asker | None
    _boards: Boards
    scorers: Scorers

    @abstractmethod
    def _answer(
        self,
        verb: Verb,
        estimator: Any,
        words: dict[str, Any],
        request: str | None,
        progress: Progress | None,
        anyway: bool = False,
    ) -> Result: ...

    def score(
        self,
        model_or_predictions: object,
        *,
        metric: str | Callable[..., float] = "accuracy",
        target: str | None = None,
        features: Sequence[str] | None = None,
        by: str | None = None,
        request: str | None = None,
        progress: Progress | None = None,
        **asked: Any,
    ) -> Answer:
        """A model's score on fresh data, or that of predictions; `asked` as for `ask`.

        Predictions are given for every row in the order of the data; or, where the holdout was
        created with ids, keyed by id: a dictionary, a table, or a file of CSV, JSON or Parquet.
        """
        scorer = self.scorers.find(metric)
        score = self._judged(model_or_predictions, scorer, target=target, features=features)
        if asked.get("grid") is None:
            asked["grid"] = public_grid(self._open, score, by)
        return self._scored(score, by, request, progress, asked)

    def gate(
        self,
        model_or_predictions: object,
        *,
        metric: str | Callable[..., float] = "accuracy",
        at_least: float | None = None,
        at_most: float | None = None,
        target: str | None = None,
        features: Sequence[str] | None = None,
        form: str | None = None,
        by: str | None = None,
        request: str | None = None,
        progress: Progress | None = None,
    ) -> Gate:
        """Whether a score reaches a threshold: one verification on one side.

        It is free if it does and the plan has gates of their own, and cheap if it is by looks.
        """
        claim, threshold = side_of(at_least, at_most)
        part, scorer = gate_part(self._open, by), self.scorers.find(metric)
        refuse_foregone(scorer, claim, threshold)
        score = self._judged(
            model_or_predictions, scorer, target=target, features=features, form=form
        )
        refuse_empty(part, score)
        verdict = self._verified(score, claim, threshold, part.name, request, progress)
        return told(self._open, score, claim, verdict)

    def enter(
        self,
        predictions: object,
        *,
        name: str,
        metric: str = "accuracy",
        improve: bool = False,
        margin: float = 0.0,
        form: str | None = None,
        by: str | None = None,
        request: str | None = None,
        progress: Progress | None = None,
    ) -> Submission:
        """Score predictions keyed by row id, and enter them on the leaderboard under a name.

        With `improve` the best score so far, and a margin, is verified first: if the submission is
        confirmed to be no better, that is all that is asked, and it gets no score of its own.
        """
        title, margin = _name(name), real_number("margin", margin, 0)
        scorer = self.scorers.find(metric)
        score = self._judged(predictions, scorer, target=None, form=form)
        if score.model:
            raise InvalidInput("predictions", type(predictions).__name__, "predictions by row id")
        points = public_grid(self._open, score, by)  # not the submitter's: it decides the score
        if points is None and needs_grid(self._open, score, by):
            raise no_public_grid(score)
        self._boards.board.check_room(title, scorer.name, self._asked_by)
        improved = None
        if improve:
            gate = self._improvement(score, margin, request, progress)
            improved = None if gate is None else not gate.passed
            if gate is not None and gate.passed:
                bound = gate.high if scorer.greater_is_better else gate.low
                self._note(title, scorer, gate.verdict, improved=False)
                return Submission(title, scorer.name, gate.verdict, False, bound)
        answer = self._scored(score, by, request, progress, {"grid": points})
        self._note(title, scorer, answer, improved)
        return Submission(title, scorer.name, answer, improved)

    def leaderboard(self, metric: str = "accuracy") -> Standings:
        """The best submission of every name, with the ranks that their error bars allow."""
        scorer = self.scorers.find(metric)
        return self._boards.board.standings(scorer.name, scorer.greater_is_better)

    # How they are asked.

    def _judged(
        self,
        given: Any,
        scorer: Scorer,
        *,
        target: str | None,
        features: Sequence[str] | None = None,
        form: str | None = None,
    ) -> Judged:
        holdout, ids = self._open, self._boards.ids()
        return judged(holdout, ids, given, scorer, target=target, features=features, form=form)

    def _scored(
        self,
        score: Judged,
        by: str | None,
        request: str | None,
        progress: Progress | None,
        options: dict[str, Any],
    ) -> Answer:
        anyway = options.pop("anyway", False)
        verb, estimator, words = score_question(self._open, score, by, options)
        return cast(Answer, self._answer(verb, estimator, words, request, progress, anyway))

    def _verified(
        self,
        score: Judged,
        claim: Side,
        guess: float,
        by: str,
        request: str | None,
        progress: Progress | None,
    ) -> Verdict:
        words = {"guess": guess, "claim": claim, "by": by, "gate": True}
        asked = score.estimator()  # a foregone threshold is refused before; a best score may be one
        return cast(Verdict, self._answer("verify", asked, words, request, progress, anyway=True))

    def _improvement(
        self, score: Judged, margin: float, request: str | None, progress: Progress | None
    ) -> Gate | None:
        """The verdict on "no better than the best, and a margin"; None if there is no best yet."""
        part, scorer = gate_part(self._open, None), score.scorer
        best = self._boards.board.standings(scorer.name, scorer.greater_is_better).best
        if best is None or best.value is None:
            return None
        claim: Side = "at most" if scorer.greater_is_better else "at least"
        guess = best.value + (margin if scorer.greater_is_better else -margin)
        key = None if request is None else request + _IMPROVE
        if self._scored_before(request, key):
            return None
        guess = self._asked_before(key, guess)
        verdict = self._verified(score, claim, guess, part.name, key, progress)
        if verdict.refused is None:
            remedy = "Submit without the check for an improvement."
            raise Exhausted("The part for guesses", "what a refusal costs", "less", remedy)
        return told(self._open, score, claim, verdict)

    def _scored_before(self, request: str | None, key: str | None) -> bool:
        """Whether this request was scored when there was no best yet, and comes again."""
        ledger = self._open.journal.ledger
        return bool(request and key and ledger.requested(request) and not ledger.requested(key))

    def _asked_before(self, request: str | None, guess: float) -> float:
        """The guess that this request was about: another may have become the best since."""
        if request is None:
            return guess
        with self._open.journal.ledger.begin() as transaction:
            rows = transaction.requested(request)
        return float(rows[0].body["question"].get("guess", guess)) if rows else guess

    def _note(
        self, name: str, scorer: Scorer, result: Answer | Verdict, improved: bool | None
    ) -> None:
        recorded = Receipt.parse(result.receipt).number
        self._boards.board.note(
            name, scorer.name, scorer.greater_is_better, self._asked_by, recorded, improved
        )

    @property
    def _asked_by(self) -> str | None:
        return None if self._asker is None else self._asker.id


def _name(name: object) -> str:
    text = name.strip() if isinstance(name, str) else ""
    if not 1 <= len(text) <= _LONGEST_NAME or not text.isprintable():
        raise InvalidInput("name", name, f"1 to {_LONGEST_NAME} printable characters")
    return text
