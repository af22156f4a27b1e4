"""Questions as they come over the wire: their words, checked, and what a verb does with them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, create_model

from holdfast.holdout.state import PartStatus, ToldStatus
from holdfast.holdout.tokens import Role
from holdfast.protocols.answers import Claim, VerdictWord
from holdfast.protocols.base import Verb
from holdfast.verbs import REQUIRED, SCORES, VERBS, WORDS, VerbSchema

__all__ = [
    "JOBS",
    "QUESTIONS",
    "SHAPES",
    "AnswerShape",
    "AskedShape",
    "CorrectedShape",
    "FailureShape",
    "GrantShape",
    "HoldoutShape",
    "JobShape",
    "JobWords",
    "PriceShape",
    "StandingsShape",
    "StatusShape",
    "SubmissionShape",
    "ToldShape",
    "TranscriptShape",
    "VerdictShape",
    "Words",
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
    "metric": Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,100}$")],
    "name": Annotated[str, Field(min_length=1, max_length=100)],
    "numbers": Annotated[str, Field(max_length=_LONGEST_TEXT)],
}


class Words(BaseModel):
    """The words of a question, as a verb has them (`holdfast.verbs`)."""

    model_config = ConfigDict(extra="forbid")

    def spoken(self) -> dict[str, Any]:
        """The arguments that the verb takes."""
        return {
            name: WORDS[name].read(value)
            for name in type(self).model_fields
            if name in WORDS and (value := getattr(self, name)) is not None
        }


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
        if word.kind in _TYPES  # predictions are the body
    }
    if base is JobWords:
        fields["verb"] = (Literal[schema.name], ...)
    name = schema.name.capitalize() + base.__name__
    return create_model(name, __base__=base, __doc__=schema.help, **fields)


QUESTIONS: dict[str, Any] = {
    name: _words_of(each, Words) for name, each in {**VERBS, **SCORES}.items()
}
JOBS: Any = Annotated[
    Union[tuple(_words_of(each, JobWords) for each in VERBS.values())],  # noqa: UP007
    Field(discriminator="verb"),
]


# Shapes: what responses look like, for OpenAPI. Tests hold the routes to them.


Share = Annotated[float, Field(ge=0, le=1)]
Reading = Literal["these-rows-fresh-labels", "rule-on-fresh-rows", "rule-at-these-class-shares"]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _AccountedShape(_Shape):
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


class _Answer(_AccountedShape):
    value: float | None
    low: float | None
    high: float | None
    at_grid_end: bool
    method: str


class AnswerShape(_Answer):
    """A value with its error bar."""

    type: Literal["answer"]


class _Guess(_AccountedShape):
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


class _ToldAnswer(_Shape):
    verb: Verb
    about: str
    value: float | None
    low: float | None
    high: float | None
    guess: float | None
    expected: bool | None
    verdict: str | None
    told: Annotated[float, Field(ge=0)]
    told_so_far: Annotated[float, Field(ge=0)]
    level: Annotated[float, Field(ge=0)]
    answers: int
    confidence: Share
    certified: bool
    reading: Reading | None
    reading_words: str | None
    letter: list[int]
    facts: dict[str, Any]
    leaning: float | None
    winner: int | None
    names: list[str]
    promise: str
    batch: list[_ToldAnswer]
    assumes: list[str]
    cached: bool
    receipt: str


class ToldShape(_ToldAnswer):
    """What was told: a bar, a verdict or a winner, and in `batch` those of several."""

    type: Literal["told"]


AskedShape = Annotated[
    AnswerShape | VerdictShape | CorrectedShape | ToldShape, Field(discriminator="type")
]


class _Submitted(_Shape):
    name: str
    metric: str


class _Scored(AnswerShape, _Submitted):
    """A score on the leaderboard."""


class _ToldScored(ToldShape, _Submitted):
    """Likewise, by what is told."""


SubmissionShape = Annotated[_Scored | _ToldScored, Field(discriminator="type")]

SHAPES: dict[str, Any] = {
    "Answer": Annotated[AnswerShape | ToldShape, Field(discriminator="type")],
    "Answer | Told": Annotated[AnswerShape | ToldShape, Field(discriminator="type")],
    "Verdict": Annotated[VerdictShape | ToldShape, Field(discriminator="type")],
    "Corrected": CorrectedShape,
    "Told": ToldShape,
    "Submission": SubmissionShape,
}
"""By what a verb returns in Python."""


class _Entry(_Shape):
    name: str
    value: float | None
    low: float | None
    high: float | None
    at: str
    receipt: str
    submissions: int
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    mine: bool


class _Grid(_Shape):
    low: float
    high: float
    points: int


class _Doubt(_Shape):
    parameter: str
    message: str
    refused: bool


class _Offer(_Shape):
    letter: list[int]
    verdict: str | None
    expected: bool | None
    nats: Annotated[float, Field(ge=0)]
    low: float | None
    high: float | None
    level: float
    half_width: float
    candidate: int | None = None


class _ToldPrice(_Shape):
    told_so_far: float
    level: float
    half_width: float
    answers: list[_Offer]


class PriceShape(_Shape):
    """What a question would cost."""

    verb: str
    part: str
    protocol: str
    price: Annotated[float, Field(ge=0)]
    currency: str
    budget: float | None
    budget_left: float | None
    affordable: bool
    cached: bool
    reason: str | None
    grid: _Grid | None
    assumes: list[str]
    doubts: list[_Doubt]
    told: _ToldPrice | None


class _Neighbours(_Shape):
    names: list[str]
    same: bool
    apart: bool
    result: ToldShape | None
    price: PriceShape | None
    reason: str | None
    said: str


class StandingsShape(_Shape):
    """The entries for one metric, the best first."""

    metric: str
    greater_is_better: bool
    entries: list[_Entry]
    ties: int
    certified: bool
    reading: Reading | None
    reading_words: str | None
    neighbours: list[_Neighbours] | None = None


class FailureShape(_Shape):
    """What an error says, and the facts that it is made of where they are known."""

    kind: str
    message: str
    parameter: str | None = None
    allowed: str | None = None
    hint: str | None = None
    what: str | None = None
    constraint: str | None = None
    needed: str | None = None
    left: str | None = None
    given: str | None = None
    remedy: str | None = None


class JobShape(_Shape):
    """How a job goes."""

    id: str
    verb: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: Share | None
    result: AskedShape | None
    error: FailureShape | None


class _Quota(_Shape):
    share: Share | None
    used: dict[str, float]
    nats: float | None
    told: float


class _Set(_Shape):
    name: str
    blocks: int
    currency: str
    budget: float | None
    spent: float
    unsettled: int
    parts: list[PartStatus]
    told: ToldStatus | None


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
    sets: list[_Set]
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
    nats: float | None
    used: dict[str, float] = {}
    told: float = 0.0


class _Own(_Shape):
    id: str
    name: str
    expires: str | None
    quota: Share | None
    nats: float | None


class HoldoutShape(_Shape):
    """A holdout that the token may see."""

    name: str
    title: str
    role: Role
    token: _Own | None
    models: bool


def shaped(
    shape: Any, errors: dict[int | str, dict[str, Any]] | None = None, *, status: int = 200
) -> dict[int | str, dict[str, Any]]:
    """The responses of a route: this shape, and its errors."""
    return {status: {"model": shape}, **(errors or {})}
