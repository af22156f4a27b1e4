"""Questions as they come over the wire: their words, checked, and what a verb does with them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, create_model

from holdfast.holdout.holdout import Holdout
from holdfast.holdout.scoring import GateWord
from holdfast.holdout.state import SetStatus
from holdfast.holdout.tokens import Role
from holdfast.protocols.answers import Answer, Claim, Corrected, Verdict, VerdictWord
from holdfast.protocols.base import Verb
from holdfast.verbs import REQUIRED, VERBS, WORDS, VerbSchema

__all__ = [
    "JOBS",
    "QUESTIONS",
    "AnswerShape",
    "AskedShape",
    "CorrectedShape",
    "GateShape",
    "GrantShape",
    "HoldoutShape",
    "JobShape",
    "JobWords",
    "PriceShape",
    "StandingsShape",
    "StatusShape",
    "SubmissionShape",
    "TranscriptShape",
    "VerdictShape",
    "Words",
    "as_told",
    "asked",
    "shaped",
]

_LONGEST_TEXT = 10_000
_MOST_POINTS = 10_000

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


_TYPES: dict[str, Any] = {
    "text": Text,
    "part": Part,
    "claim": Claim,
    "number": Number,
    "distance": Annotated[float, Field(ge=0, allow_inf_nan=False)],
    "flag": bool,
    "grid": Points,
    "pair": Annotated[list[Number], Field(min_length=2, max_length=2)],
}


class Words(BaseModel):
    """The words of a question, as a verb has them (`holdfast.verbs`)."""

    model_config = ConfigDict(extra="forbid")

    def spoken(self) -> tuple[str, dict[str, Any]]:
        """What is asked about, estimator or term, and the keywords that the verb takes."""
        given = {
            name: WORDS[name].read(value)
            for name in type(self).model_fields
            if name in WORDS and (value := getattr(self, name)) is not None
        }
        return given.pop("term", None) or given.pop("estimator"), given


class JobWords(Words):
    """Likewise, with the verb among them."""

    verb: Verb


def _words_of(schema: VerbSchema, base: type[Words]) -> Any:
    fields: dict[str, Any] = {
        word.name: (
            _TYPES[word.kind] if word.default is not None else _TYPES[word.kind] | None,
            Field(... if word.default is REQUIRED else word.default, description=word.help),
        )
        for word in schema.travelling
    }
    if base is JobWords:
        fields["verb"] = (Literal[schema.name], ...)
    name = schema.name.capitalize() + base.__name__
    return create_model(name, __base__=base, __doc__=schema.help, **fields)


QUESTIONS: dict[str, Any] = {name: _words_of(each, Words) for name, each in VERBS.items()}
JOBS: Any = Annotated[
    Union[tuple(_words_of(each, JobWords) for each in VERBS.values())],  # noqa: UP007
    Field(discriminator="verb"),
]


def as_told(result: Answer | Verdict | Corrected) -> dict[str, Any]:
    """A result as plain data, with its type."""
    return {"type": result.kind, **result.to_dict()}


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
