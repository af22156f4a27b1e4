"""Scoring: scores, gates and submissions of a holdout."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast

from holdfast.concurrency import Closing
from holdfast.engines.source import Progress
from holdfast.errors import Exhausted, InvalidInput, real_number
from holdfast.holdout.clerk import Clerk
from holdfast.holdout.grants import Asker
from holdfast.holdout.leaderboard import Board, Standings
from holdfast.holdout.offers import tells
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
from holdfast.holdout.spec import Offer
from holdfast.holdout.submissions import RowIds, read_ids
from holdfast.ledger.ledger import Receipt
from holdfast.protocols.answers import (
    Answer,
    Verdict,
    at_least,
    fewer_than,
    reading_words,
    rounded_down,
    rounded_up,
)
from holdfast.theory.bars import verdict_bar

__all__ = [
    "Boards",
    "Gate",
    "GateWord",
    "Scoring",
    "Side",
    "Submission",
    "gate_offer",
    "refuse_empty",
    "refuse_foregone",
    "rounded_down",
    "rounded_up",
    "side_of",
    "told",
]


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


def gate_offer(clerk: Clerk, by: str | None) -> Offer:
    """The part of the plan that verifies one side of a guess."""
    hint = (
        "A plan is made before the data are sealed, with a part for guesses: "
        "holdfast create … --protocols gate=200 --refusals 10, or "
        "exact_verdicts(200, refusals=10, tail_low=1e-6, tail_high=1 - 1e-6, sides=1)."
    )
    if by is None and any(offer.name == _GATE for offer in clerk.offers):
        by = _GATE  # made for this, where the plan has other guesses too
    try:
        offer = clerk.offer("verify", by)
    except InvalidInput:
        if by is not None:
            raise
        raise InvalidInput("plan", "no part for guesses", "one that can verify", hint) from None
    if offer.protocol not in ("verify", "exact-verify"):
        raise InvalidInput("plan", offer.protocol, "one with a part for guesses", hint)
    return offer


def refuse_foregone(scorer: Scorer, claim: Side, threshold: float) -> None:
    """Refuse a threshold outside the metric's range: what would come of it is known already."""
    ends = scorer.metric.range
    if ends is not None and not ends[0] <= threshold <= ends[1]:
        allowed = f"from {ends[0]:g} to {ends[1]:g}, where every {scorer.name} lies"
        raise InvalidInput(claim.replace(" ", "_"), threshold, allowed, "Nothing was charged.")


def refuse_empty(offer: Offer, score: Judged) -> None:
    """Refuse a score that is no mean where the plan's tails say nothing of any other."""
    if not score.terms and not tells(offer):
        hint = (
            "Nothing was charged. Gate accuracy, or seal data under gates that speak of blocks: "
            "holdfast create … --protocols gate=200 --tail 0.1."
        )
        allowed = "a mean of terms from 0 to 1: of anything else these gates certify nothing"
        raise InvalidInput("metric", score.scorer.name, allowed, hint)


def told(clerk: Clerk, score: Judged, claim: Side, verdict: Verdict) -> Gate:
    """The gate that a verdict is, with what it certifies in plain words."""
    name, units = score.scorer.name, clerk.charter.manifest.block_units
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
