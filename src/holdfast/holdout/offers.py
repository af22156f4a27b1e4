"""Which part of the plan answers which kind of question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.holdout.questions import Verb
from holdfast.holdout.spec import BlockSet, Offer
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts import LEAST_SHARE, SearchPart

__all__ = ["able_offers", "choose_offer", "is_one_sided", "offers_of", "tells"]

# The protocols that can answer, the first choice first. An estimate serves where a plan has no part
# made for means or guesses: its promise covers them, at its own price.
_SERVES: dict[Verb, tuple[str, ...]] = {
    "ask": (
        *("estimate", "exact", "simple", "amplified"),
        *("weights", "exact-weights", "rounds", "split"),
    ),
    "interval": ("interval",),
    "mean": ("mean", "estimate", "simple"),
    "verify": ("verify", "exact-verify", "estimate", "simple"),
    "correct": ("verify", "exact-correct"),
}


def offers_of(sets: Iterable[BlockSet]) -> tuple[Offer, ...]:
    """Everything that can be asked."""
    found: list[Offer] = []
    for each in sets:
        if isinstance(each.plan, JointPlan):
            found += [Offer(each, part) for part in each.plan.parts]
        else:
            found.append(Offer(each, None))
    return tuple(found)


def able_offers(offers: tuple[Offer, ...], verb: Verb) -> list[Offer]:
    """Those that can answer a verb."""
    return [offer for offer in offers if offer.protocol in _SERVES[verb] and _fit(offer, verb)]


def is_one_sided(offer: Offer) -> bool:
    """Whether it verifies one side of a guess, and no equality."""
    return getattr(offer.part or offer.set.plan, "sides", 2) == 1


def tells(offer: Offer) -> bool:
    """Whether a verdict of it can say more than "cannot tell" (`Verdict.verdict`)."""
    plan: Any = offer.part or offer.set.plan
    low, high = plan.tail_low, plan.tail_high
    if isinstance(plan, SearchPart):
        return bool(min(low, high) >= LEAST_SHARE)
    return bool(low >= LEAST_SHARE or 1 - high >= LEAST_SHARE)


def choose_offer(
    offers: tuple[Offer, ...], verb: Verb, by: str | None, *, one_sided: bool = True
) -> Offer:
    """The part named, or the best one for the verb: without `one_sided`, one for equalities."""
    able = able_offers(offers, verb)
    if by is None and not one_sided:
        able = [offer for offer in able if not is_one_sided(offer)] or able
    if by is not None:
        for offer in able:
            if offer.name == by:
                return offer
        names = ", ".join(offer.name for offer in able) or "none in this plan"
        raise InvalidInput("by", by, f"the name of a part that can {verb}: {names}")
    for protocol in _SERVES[verb]:
        for offer in able:
            if offer.protocol == protocol:
                return offer
    planned = ", ".join(offer.name for offer in offers)
    hint = f"This holdout was planned for {planned}. A plan is made before the data are sealed."
    raise InvalidInput("question", verb, f"one that the plan covers ({_SERVES[verb][0]})", hint)


def _fit(offer: Offer, verb: Verb) -> bool:
    """A correction by looks needs a part that verifies and one that estimates."""
    if verb != "correct" or not isinstance(offer.set.plan, JointPlan):
        return True
    return any(part.protocol == "estimate" for part in offer.set.plan.parts)
