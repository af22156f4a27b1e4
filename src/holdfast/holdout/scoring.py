"""Scoring: scores, gates and submissions of a holdout."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from holdfast.concurrency import Closing
from holdfast.engines.source import Progress
from holdfast.errors import Exhausted, InvalidInput, real_number
from holdfast.holdout.clerk import Clerk
from holdfast.holdout.gates import (
    Gate,
    Side,
    gate_offer,
    refuse_empty,
    refuse_foregone,
    side_of,
    told,
)
from holdfast.holdout.grants import Asker
from holdfast.holdout.ids import RowIds, read_ids
from holdfast.holdout.leaderboard import Board, Standings
from holdfast.holdout.questions import Verb
from holdfast.holdout.records import Result
from holdfast.holdout.scorers import Scorer, Scorers
from holdfast.holdout.scores import (
    Judged,
    judged,
    needs_grid,
    no_public_grid,
    public_grid,
    score_question,
)
from holdfast.ledger.ledger import Receipt
from holdfast.protocols.answers import Answer, Verdict

__all__ = ["Boards", "Scoring", "Submission"]

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
            **({"type": "answer"} if isinstance(self.result, Answer) else verdict),
            "name": self.name,
            "metric": self.metric,
            "improved": self.improved,
            "bound": self.bound,
        }


class Boards:
    """What all views of one holdout share: its ids, and what its ledger says of submissions."""

    def __init__(self, clerk: Clerk) -> None:
        self._clerk = clerk
        self._ids: RowIds | None = None
        self._lock = threading.Lock()
        self.board = Board(clerk.door)

    def ids(self) -> RowIds | None:
        """The public ids of rows, read once; None if there are none."""
        about = self._clerk.charter.ids
        with self._lock:
            if self._ids is None and about is not None:
                self._ids = read_ids(self._clerk.store.folder, about)
            return self._ids


class Scoring(Closing):
    """The part of a holdout that scores models and predictions."""

    _clerk: Clerk
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
            asked["grid"] = public_grid(self._clerk, score, by)
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
        offer, scorer = gate_offer(self._clerk, by), self.scorers.find(metric)
        refuse_foregone(scorer, claim, threshold)
        score = self._judged(
            model_or_predictions, scorer, target=target, features=features, form=form
        )
        refuse_empty(offer, score)
        verdict = self._verified(score, claim, threshold, offer.name, request, progress)
        return told(self._clerk, score, claim, verdict)

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
        points = public_grid(self._clerk, score, by)  # not the submitter's: it decides the score
        if points is None and needs_grid(self._clerk, score, by):
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
        clerk, ids = self._clerk, self._boards.ids()
        return judged(clerk, ids, given, scorer, target=target, features=features, form=form)

    def _scored(
        self,
        score: Judged,
        by: str | None,
        request: str | None,
        progress: Progress | None,
        options: dict[str, Any],
    ) -> Answer:
        anyway = options.pop("anyway", False)
        verb, estimator, words = score_question(self._clerk, score, by, options)
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
        offer, scorer = gate_offer(self._clerk, None), score.scorer
        best = self._boards.board.standings(scorer.name, scorer.greater_is_better).best
        if best is None or best.value is None:
            return None
        claim: Side = "at most" if scorer.greater_is_better else "at least"
        guess = best.value + (margin if scorer.greater_is_better else -margin)
        key = None if request is None else request + _IMPROVE
        if self._scored_before(request, key):
            return None
        guess = self._asked_before(key, guess)
        verdict = self._verified(score, claim, guess, offer.name, key, progress)
        if verdict.refused is None:
            remedy = "Submit without the check for an improvement."
            raise Exhausted("The part for guesses", "what a refusal costs", "less", remedy)
        return told(self._clerk, score, claim, verdict)

    def _scored_before(self, request: str | None, key: str | None) -> bool:
        """Whether this request was scored when there was no best yet, and comes again."""
        ledger = self._clerk.door.ledger
        return bool(request and key and ledger.requested(request) and not ledger.requested(key))

    def _asked_before(self, request: str | None, guess: float) -> float:
        """The guess that this request was about: another may have become the best since."""
        if request is None:
            return guess
        with self._clerk.door.ledger.begin() as transaction:
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
