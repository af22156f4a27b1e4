"""Questions as they come over the wire: their words, checked, and what a verb does with them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.grids import Grid, grid, parse_grid
from holdfast.holdout.grants import Role
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.questions import Verb
from holdfast.holdout.scoring import GateWord
from holdfast.holdout.status import SetStatus
from holdfast.protocols.answers import Answer, Claim, Verdict, VerdictWord
from holdfast.protocols.guesses import Corrected

__all__ = [
    "WORDS",
    "AnswerShape",
    "AskWords",
    "AskedShape",
    "CorrectWords",
    "CorrectedShape",
    "GateShape",
    "GrantShape",
    "HoldoutShape",
    "IntervalWords",
    "JobShape",
    "JobWords",
    "MeanWords",
    "PriceShape",
    "StandingsShape",
    "StatusShape",
    "SubmissionShape",
    "TranscriptShape",
    "VerdictShape",
    "VerifyWords",
    "Words",
    "as_told",
    "asked",
    "shaped",
]

_LONGEST_TEXT = 10_000
_MOST_POINTS = 10_000
_SHORT = 500  # characters
_FEW_POINTS = 100  # or characters, of a grid

Text = Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT)]
Part = Annotated[str, Field(min_length=1, max_length=100)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Points = Annotated[
    str | list[Number] | dict[str, Any],
    Field(
        description="LOW:HIGH:STEP, a list of points, or a grid as Holdfast writes it",
        max_length=_MOST_POINTS,
    ),
]
Ends = Annotated[list[Number], Field(min_length=2, max_length=2)]


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid")

    where: Text | None = Field(None, description="An SQL condition on rows.")
    by: Part | None = Field(None, description="The part of the plan to ask.")
    anyway: bool = Field(False, description="Ask even where what is public calls it a slip.")

    @property
    def short(self) -> bool:
        """Whether it is read in a moment."""
        texts = (getattr(self, "estimator", None), getattr(self, "term", None), self.where)
        points = getattr(self, "grid", None)
        parts = list(points.values()) if isinstance(points, dict) else [points]
        few = all(len(part) <= _FEW_POINTS for part in parts if isinstance(part, list | str))
        return few and sum(len(text) for text in texts if text is not None) <= _SHORT

    def spoken(self) -> tuple[str, dict[str, Any]]:
        """What is asked about, estimator or term, and the keywords that the verb takes."""
        words = {name: getattr(self, name) for name in type(self).model_fields if name != "verb"}
        first: str = words.pop("term" if "term" in words else "estimator")
        if words.get("grid") is not None:
            words["grid"] = _grid(words["grid"])
        return first, {name: value for name, value in words.items() if value is not None}


class AskWords(_Words):
    """An estimator's value on fresh data."""

    estimator: Text = Field(description="An SQL aggregate, such as avg(x).")
    grid: Points | None = None


class IntervalWords(AskWords):
    """An interval that encloses the median of what the estimator gives on fresh blocks."""


class MeanWords(_Words):
    """The mean of a term of one row."""

    term: Text = Field(description="SQL that is true or false of a row, or a number.")
    range: Ends | None = Field(
        None,
        description="[low, high], what the term is cut to; needed if it may leave [0, 1].",
    )
    grid: Points | None = None


class VerifyWords(_Words):
    """Whether a guess is compatible with fresh data."""

    estimator: Text
    guess: Number
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    claim: Claim = "equals"


class CorrectWords(AskWords):
    """A guess that is compatible with fresh data, or an answer in its place."""

    guess: Number


class _AskJob(AskWords):
    verb: Literal["ask"]


class _IntervalJob(IntervalWords):
    verb: Literal["interval"]


class _MeanJob(MeanWords):
    verb: Literal["mean"]


class _VerifyJob(VerifyWords):
    verb: Literal["verify"]


class _CorrectJob(CorrectWords):
    verb: Literal["correct"]


Words = AskWords | IntervalWords | MeanWords | VerifyWords | CorrectWords
WORDS: dict[Verb, type[Words]] = {
    "ask": AskWords,
    "interval": IntervalWords,
    "mean": MeanWords,
    "verify": VerifyWords,
    "correct": CorrectWords,
}
JobWords = Annotated[
    _AskJob | _IntervalJob | _MeanJob | _VerifyJob | _CorrectJob, Field(discriminator="verb")
]


def _grid(points: str | list[float] | dict[str, Any]) -> Grid:
    if isinstance(points, str):
        return parse_grid(points)
    return grid(points) if isinstance(points, list) else Grid.from_json(points)


def as_told(result: Answer | Verdict | Corrected) -> dict[str, Any]:
    """A result as plain data, with its type."""
    kinds = {Answer: "answer", Verdict: "verdict", Corrected: "corrected"}
    return {"type": kinds[type(result)], **result.to_dict()}


def asked(
    holdout: Holdout,
    verb: Verb,
    words: Words,
    request: str | None,
    progress: Any = None,
) -> Answer | Verdict | Corrected:
    """Ask a holdout."""
    first, spoken = words.spoken()
    more = {} if progress is None else {"progress": progress}
    result: Answer | Verdict | Corrected = getattr(holdout, verb)(
        first, **spoken, request=request, **more
    )
    return result


# Shapes: what responses look like, for OpenAPI. Tests hold the routes to them.


Share = Annotated[float, Field(ge=0, le=1)]
Reading = Literal["rule-on-fresh-rows"]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Accounted(_Shape):
    protocol: str
    tail: float
    tail_low: float
    tail_high: float
    confidence: Share
    promise: str
    assumes: str
    price: Annotated[float, Field(ge=0)]
    budget_left: float
    certified: bool
    block_units: int
    cached: bool
    receipt: str
    reading: Reading | None
    reading_words: str | None


class _Answer(_Accounted):
    value: float | None
    low: float | None
    high: float | None
    at_grid_end: bool
    method: str


class AnswerShape(_Answer):
    """A value with its error bar."""

    type: Literal["answer"]


class _Guess(_Accounted):
    guess: float
    claim: Claim
    tolerance: float | None
    refused: bool | None
    refusals_left: int | None
    range_low: float | None
    range_high: float | None
    open_blocks: int


class _Verdict(_Guess):
    verdict: VerdictWord


class VerdictShape(_Verdict):
    """Whether a guess is compatible with fresh data."""

    type: Literal["verdict"]


class CorrectedShape(_Shape):
    """A guess that is compatible with fresh data, or an answer in its place."""

    type: Literal["corrected"]
    value: float | None
    tail: float
    price: Annotated[float, Field(ge=0)]
    verdict: _Verdict
    correction: _Answer | None


AskedShape = Annotated[AnswerShape | VerdictShape | CorrectedShape, Field(discriminator="type")]


class _Submitted(_Shape):
    name: str
    metric: str
    improved: bool | None
    bound: float | None


class _Scored(AnswerShape, _Submitted):
    """A score on the leaderboard."""


class _Unimproved(_Guess, _Submitted):
    """A submission that was confirmed to be no better than the best."""

    type: Literal["verdict"]
    verdict: GateWord


SubmissionShape = Annotated[_Scored | _Unimproved, Field(discriminator="type")]


class GateShape(_Guess):
    """Whether a score reaches a threshold, and what that certifies."""

    type: Literal["verdict"]
    verdict: GateWord
    passed: bool
    metric: str
    claim: Literal["at least", "at most"]
    low: float | None
    high: float | None
    certifies: str


class _Entry(_Shape):
    name: str
    value: float | None
    low: float | None
    high: float | None
    at: str
    receipt: str
    improved: bool | None
    submissions: int
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    mine: bool


class StandingsShape(_Shape):
    """The entries for one metric, the best first."""

    metric: str
    greater_is_better: bool
    entries: list[_Entry]
    ties: int
    certified: bool
    reading: Reading | None
    reading_words: str | None


class _Grid(_Shape):
    low: float
    high: float
    points: int


class _Doubt(_Shape):
    parameter: str
    message: str
    refused: bool


class PriceShape(_Shape):
    """What a question would cost."""

    verb: str
    part: str
    protocol: str
    price: Annotated[float, Field(ge=0)]
    currency: str
    budget: float
    budget_left: float
    affordable: bool
    cached: bool
    reason: str | None
    grid: _Grid | None
    assumes: list[str]
    doubts: list[_Doubt]


class _Failure(_Shape):
    kind: str
    message: str
    parameter: str | None = None
    allowed: str | None = None
    hint: str | None = None


class JobShape(_Shape):
    """How a job goes."""

    id: str
    verb: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: Share | None
    result: AskedShape | None
    error: _Failure | None


class _Quota(_Shape):
    share: Share
    used: dict[str, float]


class StatusShape(_Shape):
    """What is spent, and what is left."""

    name: str
    holdout: str
    certified: bool
    confidence: Share
    units: int
    blocks: int
    block_units: int
    open_units: int
    leftover_units: int
    answers: int
    sets: list[SetStatus]
    receipt: str
    new_budget: str | None
    earlier: int
    assumes: str
    role: Role
    quota: _Quota | None


class _Row(_Shape):
    number: int
    at: str
    question: dict[str, Any]
    answer: dict[str, Any]
    receipt: str
    mine: bool
    asker: str | None = None


class TranscriptShape(_Shape):
    """Questions and answers."""

    rows: list[_Row]
    next: int | None


class GrantShape(_Shape):
    """What a token allows."""

    id: str
    name: str
    role: Role
    created: str
    expires: str | None
    quota: Share | None
    revoked: str | None
    used: dict[str, float] = {}


class _Own(_Shape):
    id: str
    name: str
    expires: str | None
    quota: Share | None


class HoldoutShape(_Shape):
    """A holdout that the token may see."""

    name: str
    title: str
    role: Role
    token: _Own | None


def shaped(
    shape: Any, errors: dict[int | str, dict[str, Any]] | None = None, *, status: int = 200
) -> dict[int | str, dict[str, Any]]:
    """The responses of a route: this shape, and its errors."""
    return {status: {"model": shape}, **(errors or {})}
