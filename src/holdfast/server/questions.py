"""Questions as they come over the wire: their words, checked, and what a verb does with them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.grids import Grid, grid, parse_grid
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.questions import Verb
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.correct import Corrected

__all__ = [
    "WORDS",
    "AskWords",
    "CorrectWords",
    "IntervalWords",
    "JobWords",
    "MeanWords",
    "VerifyWords",
    "Words",
    "as_told",
    "asked",
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
Claim = Literal["equals", "at least", "at most"]


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
