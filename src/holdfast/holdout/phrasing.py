"""Phrasing: from what people ask, verb by verb, to the part of the plan and the question for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.arguments import real_number
from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.holdout.clerk import Clerk
from holdfast.holdout.estimators import Asked
from holdfast.holdout.offers import is_one_sided
from holdfast.holdout.questions import Question, Verb
from holdfast.holdout.sets import Offer
from holdfast.planning.shapes import Shape

__all__ = ["VERBS", "Phrased", "phrased"]

VERBS: tuple[Verb, ...] = ("ask", "correct", "interval", "mean", "verify")
_CLAIMS = ("equals", "at least", "at most")


@dataclass(frozen=True)
class Phrased:
    """A question, and the part of the plan that it is for."""

    offer: Offer
    question: Question


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
    options: Mapping[str, Any] | None = None,
) -> Phrased:
    """The question that these words are. Whatever is wrong with them is said here, at no cost."""
    offer = clerk.offer(verb, by, one_sided=claim != "equals")
    if verb == "mean":
        asked = clerk.term(estimator, where, columns)
    else:
        asked = clerk.estimator(estimator, where, options or {})
    more: dict[str, Any] = {}
    if verb in ("verify", "correct"):
        more["guess"] = _number("guess", guess)
    if verb == "verify":
        more |= _nearness(clerk, offer, asked, tolerance, claim)
    return Phrased(offer, clerk.question(verb, offer, asked, grid=grid, shape=shape, **more))


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


def _number(name: str, value: object, low: float = -math.inf) -> float:
    """One spelling for one number: 7, 7.0 and NumPy's 7 are the same question, 0 and −0 too."""
    return real_number(name, value, low) + 0.0
