"""Phrasing: from what people ask, verb by verb, to the part of the plan and the question for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidInput, real_number
from holdfast.grids import Grid
from holdfast.holdout.clerk import Clerk
from holdfast.holdout.estimators import Asked
from holdfast.holdout.offers import is_one_sided, tells
from holdfast.holdout.questions import Question, Verb
from holdfast.holdout.spec import Offer
from holdfast.planning.parts import DirectPart
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import at_least

__all__ = ["VERBS", "Phrased", "phrased"]

VERBS: tuple[Verb, ...] = ("ask", "correct", "interval", "mean", "verify")
_CLAIMS = ("equals", "at least", "at most")


@dataclass(frozen=True)
class Phrased:
    """A question, the part of the plan that it is for, and the estimator that it is about."""

    offer: Offer
    question: Question
    asked: Asked


def phrased(
    clerk: Clerk,
    verb: Verb,
    estimator: Any,
    *,
    where: Any = None,
    by: str | None = None,
    grid: Grid | None = None,
    shape: Shape | None = None,
    guess: float | None = None,
    tolerance: float | None = None,
    claim: str = "equals",
    columns: Sequence[str] | None = None,
    range: tuple[float, float] | None = None,  # noqa: A002 – as `Holdout.mean` has it
    options: Mapping[str, Any] | None = None,
    gate: bool = False,
) -> Phrased:
    """The question that these words are. Whatever is wrong with them is said here, at no cost.

    `gate`: the verdict is on a score, and certifies a bound on it.
    """
    offer = clerk.offer(verb, by, one_sided=claim != "equals")
    if verb == "mean":
        if where is not None and isinstance(offer.part, DirectPart):
            raise _unfiltered(where)
        asked = clerk.term(estimator, where, columns, range)
    else:
        asked = clerk.estimator(estimator, where, options or {})
    more: dict[str, Any] = {}
    if verb in ("verify", "correct"):
        more["guess"] = _number("guess", guess)
    if verb == "verify":
        more |= _nearness(clerk, offer, asked, tolerance, claim)
        if gate:
            more["gate"] = True
        else:
            _refuse_empty(offer)
    question = clerk.question(verb, offer, asked, grid=grid, shape=shape, **more)
    return Phrased(offer, question, asked)


def _nearness(
    clerk: Clerk, offer: Offer, asked: Asked, tolerance: float | None, claim: str
) -> dict[str, Any]:
    """What a guess claims: by the tails of a part made for guesses, or within a tolerance."""
    if claim not in _CLAIMS:
        raise InvalidInput("claim", claim, "'equals', 'at least' or 'at most'")
    if offer.protocol in ("verify", "exact-verify"):
        if tolerance is not None:
            hint = "This plan has a part for guesses, whose tails say what is near."
            raise InvalidInput("tolerance", tolerance, "left out here", hint)
        if claim == "equals" and is_one_sided(offer):
            hint = "This part of the plan covers one-sided guesses: 'at least' or 'at most'."
            raise InvalidInput("claim", claim, "one-sided", hint)
        return {"claim": claim}
    if claim != "equals":
        hint = "Only a plan with a part for guesses can be asked for one side."
        raise InvalidInput("claim", claim, "'equals' for this plan", hint)
    near = clerk.tolerance(offer, asked) if tolerance is None else tolerance
    return {"tolerance": _number("tolerance", near, 0)}


def _refuse_empty(offer: Offer) -> None:
    """Refuse a guess if no verdict on it could say anything, whatever the data are."""
    if tells(offer):
        return
    plan: Any = offer.part or offer.set.plan
    share = at_least(min(plan.tail_low, plan.tail_high)).removeprefix("at least ")
    hint = (
        f"A verdict by {offer.name} would speak of {share} fresh blocks, and every one would be "
        "'cannot tell'. Nothing was charged. Ask for the value instead, or seal data under a plan "
        "with a part for guesses (--protocols estimate,verify) or a larger tail (--tail 0.05)."
    )
    if offer.protocol in ("verify", "exact-verify"):
        hint = hint.replace("Ask for the value instead", "These guesses are for gates of scores")
    raise InvalidInput("question", "verify", "one whose verdict can say something", hint)


def _unfiltered(where: object) -> InvalidInput:
    """The error for a filter where means are those of all units."""
    shown = where if isinstance(where, str) else "a function"
    hint = (
        "This plan's means are over all units. Ask for the mean of the term and the filter "
        "together (both true), ask for the mean of the filter, and divide; or seal data under a "
        "plan for medians of block means (--protocols mean)."
    )
    return InvalidInput("where", shown, "left out with this plan", hint)


def _number(name: str, value: object, low: float = -math.inf) -> float:
    """One spelling for one number: 7, 7.0 and NumPy's 7 are the same question, 0 and −0 too."""
    return real_number(name, value, low) + 0.0
