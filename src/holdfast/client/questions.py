"""Questions on their way to a server: checked as a holdout checks them, and made ready to travel.

These have the signatures of `Holdout`'s methods. What runs here, a function, a progress bar, cannot
travel, and is refused with a word on what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdfast.client.predictions import Content
from holdfast.client.results import read_answer, read_corrected, read_verdict
from holdfast.client.retries import new_key
from holdfast.errors import InvalidInput, real_number
from holdfast.grids import Grid

if TYPE_CHECKING:
    from holdfast.engines.source import Progress
    from holdfast.holdout.estimators import Estimator
    from holdfast.planning.shapes import Shape
    from holdfast.protocols.answers import Answer, Claim, Verdict
    from holdfast.protocols.correct import Corrected

__all__ = [
    "VERBS",
    "Asked",
    "ask",
    "correct",
    "interval",
    "key_of",
    "mean",
    "question",
    "stays_here",
    "verify",
]

R = TypeVar("R")

_HOW = "Only SQL text travels to a server; this says how to run a Python function."
_WHY = {
    "by": "A server chooses the part of its plan that answers.",
    "features": "A model stays where it is; its predictions travel to a server.",
    "progress": "Submit the question as a job: client.submit(…).wait(progress=…).",
    "shape": "Only SQL text travels to a server, which finds its shape by itself.",
    "target": "On a server it is the custodian who has named the target.",
}
_KEY = re.compile(r"[!-~]{1,128}")


@dataclass(frozen=True)
class Asked(Generic[R]):
    """A question as it travels, its key, and how its answer is read.

    What is asked of predictions has parameters and content in place of a body.
    """

    verb: str
    body: dict[str, Any]
    key: str
    read: Callable[[Any], R]
    parameters: Mapping[str, str] = field(default_factory=dict)
    content: Content | None = None


def ask(
    estimator: Estimator,
    *,
    grid: Grid | None = None,
    where: str | None = None,
    shape: Shape | None = None,
    by: str | None = None,
    anyway: bool = False,
    request: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Asked[Answer]:
    """The estimator's value on fresh data, from an SQL aggregate of one block."""
    stays_here(shape=shape, progress=progress, **options)
    body = {
        "estimator": _text("estimator", estimator),
        **_common(where, by, anyway),
        **_points(grid),
    }
    return Asked("ask", body, key_of(request), read_answer)


def verify(
    estimator: Estimator,
    guess: float,
    *,
    tolerance: float | None = None,
    claim: Claim = "equals",
    where: str | None = None,
    by: str | None = None,
    anyway: bool = False,
    request: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Asked[Verdict]:
    """Whether a guess is compatible with fresh data, not compatible, or nobody can tell."""
    stays_here(progress=progress, **options)
    body = {"estimator": _text("estimator", estimator), "guess": real_number("guess", guess)}
    if tolerance is not None:
        body["tolerance"] = real_number("tolerance", tolerance, 0)
    if claim != "equals":
        body["claim"] = _text("claim", claim)
    return Asked("verify", {**body, **_common(where, by, anyway)}, key_of(request), read_verdict)


def correct(
    estimator: Estimator,
    guess: float,
    *,
    grid: Grid | None = None,
    where: str | None = None,
    shape: Shape | None = None,
    by: str | None = None,
    anyway: bool = False,
    request: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Asked[Corrected]:
    """Whether a guess is compatible with fresh data; if not, an answer in its place."""
    stays_here(shape=shape, progress=progress, **options)
    body: dict[str, Any] = {"estimator": _text("estimator", estimator)}
    body["guess"] = real_number("guess", guess)
    body |= {**_common(where, by, anyway), **_points(grid)}
    return Asked("correct", body, key_of(request), read_corrected)


def mean(
    term: Estimator,
    *,
    where: object = None,
    range: tuple[float, float] | None = None,  # noqa: A002 – what everybody calls it
    grid: Grid | None = None,
    columns: Sequence[str] | None = None,
    by: str | None = None,
    anyway: bool = False,
    request: str | None = None,
    progress: Progress | None = None,
) -> Asked[Answer]:
    """The mean of a term (true is 1), with its error bar where none filters.

    The term lies in [0, 1] by its form and the declared ranges of its columns, or else in `range`,
    a pair (low, high). What leaves a declared range on a sealed row is cut to it, and the promise
    says so.
    """
    stays_here(columns=columns, progress=progress)
    body: dict[str, Any] = {
        "term": _text("term", term),
        **_common(where, by, anyway),
        **_points(grid),
    }
    if range is not None:
        body["range"] = _pair(range)
    return Asked("mean", body, key_of(request), read_answer)


def interval(
    estimator: Estimator,
    *,
    grid: Grid | None = None,
    where: str | None = None,
    by: str | None = None,
    anyway: bool = False,
    request: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Asked[Answer]:
    """An interval that encloses the median of what the estimator gives on fresh blocks."""
    stays_here(progress=progress, **options)
    body = {
        "estimator": _text("estimator", estimator),
        **_common(where, by, anyway),
        **_points(grid),
    }
    return Asked("interval", body, key_of(request), read_answer)


VERBS: dict[str, Callable[..., Asked[Any]]] = {
    "ask": ask,
    "correct": correct,
    "interval": interval,
    "mean": mean,
    "verify": verify,
}


def question(verb: str, *words: Any, **more: Any) -> Asked[Any]:
    """The question that a verb and its arguments are."""
    if verb not in VERBS:
        raise InvalidInput("verb", verb, f"one of {', '.join(VERBS)}")
    return VERBS[verb](*words, **more)


def key_of(request: object) -> str:
    """The key that was given, or a new one."""
    if request is None:
        return new_key()
    if not isinstance(request, str) or not _KEY.fullmatch(request):
        raise InvalidInput("request", request, "1 to 128 ASCII characters without spaces")
    return request


def _common(where: object, by: object, anyway: bool) -> dict[str, Any]:
    given = {"where": where, "by": by}
    words = {name: _text(name, value) for name, value in given.items() if value is not None}
    return {**words, "anyway": True} if anyway else words


def _points(grid: object) -> dict[str, Any]:
    if grid is None:
        return {}
    if not isinstance(grid, Grid):
        raise InvalidInput("grid", grid, "a grid", "Make one: holdfast.grid(0, 1, step=0.05).")
    return {"grid": grid.to_json()}


def _pair(given: Any) -> list[float]:
    try:
        low, high = given
    except (TypeError, ValueError):
        raise InvalidInput("range", given, "two numbers, (low, high) with low < high") from None
    return [real_number("range", low), real_number("range", high)]


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    hint = "Only SQL text travels to a server; a Python function runs where the holdout is."
    raise InvalidInput(name, value, "SQL text" if name != "by" else "text", hint)


def stays_here(**given: object) -> None:
    """Refuse what says how to evaluate, and cannot travel."""
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(name, value, "left out here", _WHY.get(name, _HOW))
