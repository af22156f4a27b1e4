"""Results: what a server sends, as the objects that a holdout gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.client.errors import ServerFailed
from holdfast.client.replies import error_of
from holdfast.client.steps import Call
from holdfast.errors import HoldfastError
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.correct import Corrected

if TYPE_CHECKING:
    from holdfast.holdout.gates import Gate
    from holdfast.holdout.leaderboard import Standings
    from holdfast.holdout.pricing import Price
    from holdfast.holdout.scoring import Submission
    from holdfast.holdout.status import Status

__all__ = [
    "JobStatus",
    "read_answer",
    "read_corrected",
    "read_gate",
    "read_job",
    "read_page",
    "read_price",
    "read_result",
    "read_standings",
    "read_status",
    "read_submission",
    "read_verdict",
    "understood",
]

T = TypeVar("T")
Result = Answer | Verdict | Corrected

_VERSION = "Does it run another version of Holdfast than this one?"


@dataclass(frozen=True)
class JobStatus:
    """A job at one moment: its state, how much of it is done, and its answer when there is one."""

    id: str
    verb: str
    state: str  # queued, running, done, failed or cancelled
    progress: float | None
    result: Result | None
    error: HoldfastError | None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("done", "failed", "cancelled")


def read_result(data: Mapping[str, Any]) -> Result:
    """An answer, a verdict or a corrected guess."""
    if data["type"] == "answer":
        return _made(Answer, data)
    if data["type"] == "verdict":
        return _made(Verdict, data)
    later = data["correction"]
    return Corrected(
        _made(Verdict, data["verdict"]), None if later is None else _made(Answer, later)
    )


def read_answer(data: Mapping[str, Any]) -> Answer:
    """An answer, and nothing else."""
    return _only(Answer, data)


def read_verdict(data: Mapping[str, Any]) -> Verdict:
    """A verdict, and nothing else."""
    return _only(Verdict, data)


def read_corrected(data: Mapping[str, Any]) -> Corrected:
    """A corrected guess, and nothing else."""
    return _only(Corrected, data)


def _only(kind: type[T], data: Mapping[str, Any]) -> T:
    result = read_result(data)
    if not isinstance(result, kind):
        raise TypeError(f"{type(result).__name__} in place of {kind.__name__}")
    return result


def read_gate(data: Mapping[str, Any]) -> Gate:
    """A verdict on a threshold."""
    from holdfast.holdout.gates import Gate

    return _made(Gate, data, verdict=read_verdict(data))


def read_submission(data: Mapping[str, Any]) -> Submission:
    """A submission with its score, or with the verdict that it is no improvement."""
    from holdfast.holdout.scoring import Submission

    return _made(Submission, data, result=read_result(data))


def read_standings(data: Mapping[str, Any]) -> Standings:
    """A leaderboard."""
    from holdfast.holdout.leaderboard import Standings

    return Standings.from_dict(data)


def read_status(data: Mapping[str, Any], path: str) -> Status:
    """A holdout's status; its path is where this client finds it."""
    from holdfast.holdout.status import PartStatus, SetStatus, Status

    sets = tuple(
        _made(SetStatus, each, parts=tuple(_made(PartStatus, part) for part in each["parts"]))
        for each in data["sets"]
    )
    return _made(Status, data, sets=sets, path=path)


def read_price(data: Mapping[str, Any]) -> Price:
    """What a question would cost."""
    from holdfast.holdout.doubts import Doubt
    from holdfast.holdout.pricing import Price

    grid = data["grid"]
    points = None if grid is None else (grid["low"], grid["high"], grid["points"])
    doubts = tuple(_made(Doubt, each) for each in data["doubts"])
    return _made(Price, data, grid=points, assumes=tuple(data["assumes"]), doubts=doubts)


def read_page(data: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int | None]:
    """Rows of the transcript, and after which row there may be more."""
    return list(data["rows"]), data["next"]


def read_job(data: Mapping[str, Any], call: Call, url: str) -> JobStatus:
    """A job's state."""
    result, error = data["result"], data["error"]
    return JobStatus(
        data["id"],
        data["verb"],
        data["state"],
        data["progress"],
        None if result is None else read_result(result),
        None if error is None else error_of(error, call, url),
    )


def understood(read: Callable[[], T], url: str) -> T:
    """What was read, or an error that says that the server speaks another language."""
    try:
        return read()
    except (AttributeError, LookupError, TypeError, ValueError) as wrong:
        if isinstance(wrong, HoldfastError):
            raise
        reason = f"gave a reply that this client cannot read ({wrong!r})."
        raise ServerFailed(url, reason, _VERSION) from None


def _made(kind: type[T], data: Mapping[str, Any], **made: Any) -> T:
    """A dataclass from its dictionary. JSON has no infinity: a number that is null was not finite.

    What is left of a budget can only have been without a bound; of other numbers nothing is known.
    """
    values = {}
    for each in fields(kind):  # type: ignore[arg-type]
        value = made[each.name] if each.name in made else data[each.name]
        if value is None and each.type == "float":
            value = math.inf if each.name == "budget_left" else math.nan
        values[each.name] = value
    return kind(**values)
