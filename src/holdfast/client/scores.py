"""Scores, gates and entries on their way to a server: predictions by row id, made ready to travel.

These have the signatures of `Holdout`'s methods. A model stays where it is: its predictions travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.client.predictions import content_of
from holdfast.client.questions import Asked, key_of, stays_here
from holdfast.client.results import read_answer, read_gate, read_submission
from holdfast.errors import InvalidInput, real_number

if TYPE_CHECKING:
    from holdfast.engines.source import Progress
    from holdfast.holdout.gates import Gate
    from holdfast.holdout.scoring import Submission
    from holdfast.protocols.answers import Answer

__all__ = ["enter", "gate", "score"]


def score(
    model_or_predictions: object,
    *,
    metric: str | Callable[..., float] = "accuracy",
    target: str | None = None,
    features: Sequence[str] | None = None,
    by: str | None = None,
    request: str | None = None,
    progress: Progress | None = None,
    **asked: Any,
) -> Asked[Answer]:
    """The score of predictions by row id on fresh data.

    On a server every score is an entry of the leaderboard, and needs a name: score(…, name="…").
    """
    name = asked.pop("name", None)
    if name is None:
        hint = "On a server every score is an entry of the leaderboard: score(…, name='…')."
        raise InvalidInput("name", name, "the name of the entry", hint)
    stays_here(target=target, features=features, by=by, progress=progress, **asked)
    parameters = {"name": str(name), "metric": _metric(metric)}
    content = content_of(model_or_predictions)
    return Asked("submissions", {}, key_of(request), read_answer, parameters, content)


def gate(
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
) -> Asked[Gate]:
    """Whether a score reaches a threshold: one verification on one side.

    It is free if it does and the plan has gates of their own, and cheap if it is by looks.
    """
    from holdfast.holdout.gates import side_of

    stays_here(target=target, features=features, by=by, progress=progress)
    side, threshold = side_of(at_least, at_most)
    name = side.replace(" ", "_")
    parameters = {"metric": _metric(metric), name: repr(real_number(name, threshold))}
    content = content_of(model_or_predictions, form)
    return Asked("gate", {}, key_of(request), read_gate, parameters, content)


def enter(
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
) -> Asked[Submission]:
    """Score predictions keyed by row id, and enter them on the leaderboard under a name.

    With `improve` the best score so far, and a margin, is verified first: if the submission is
    confirmed to be no better, that is all that is asked, and it gets no score of its own.
    """
    stays_here(by=by, progress=progress)
    parameters = {"name": str(name), "metric": _metric(metric)}
    if improve:
        parameters |= {"improve": "true", "margin": repr(real_number("margin", margin))}
    content = content_of(predictions, form)
    return Asked("submissions", {}, key_of(request), read_submission, parameters, content)


def _metric(metric: object) -> str:
    if isinstance(metric, str):
        return metric
    hint = "A function of your own runs where the holdout is: `holdfast serve --metrics FILE.py`."
    raise InvalidInput("metric", metric, "the name of a metric", hint)
