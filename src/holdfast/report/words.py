"""A plan in plain words: what can be asked, how often, and what is then true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactVerdicts, ExactWeights
from holdfast.planning.joint import JointPlan
from holdfast.planning.kept import KeptPlan
from holdfast.planning.parts.base import Part
from holdfast.planning.parts.direct import DirectPart
from holdfast.planning.parts.searches import SearchPart
from holdfast.planning.parts.verdicts import VerdictPart
from holdfast.planning.parts.weights import WeightsPart
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.splits import SplitPlan
from holdfast.report.text import number, quantile

__all__ = ["Planned", "planned"]


class Planned(NamedTuple):
    """One thing that can be asked: its name, how it is limited, what is promised of it."""

    name: str
    limits: str
    promise: str


def planned(plan: KeptPlan, name: str) -> list[Planned]:
    """What a plan is for, part by part."""
    if isinstance(plan, JointPlan):
        return [_of_part(part) for part in plan.parts]
    limits, promise = _OF_PLANS[type(plan)](plan)
    return [Planned(name, limits, promise)]


def _of_part(part: Part) -> Planned:
    questions = f"{part.queries:,} questions"
    if isinstance(part, VerdictPart):
        limits = f"{part.queries:,} guesses, at most {part.refusals:,} refused"
        return Planned(part.name, limits, _verdicts(part))
    if isinstance(part, WeightsPart):
        limits = f"{questions}, at most {part.updates:,} surprises"
        return Planned(part.name, limits, _between(part.tail, part.tail))
    if isinstance(part, DirectPart):
        bar = f"The mean lies within the error bar, at most ± {number(part.half_width)} wide."
        return Planned(part.name, f"{questions} about means", bar)
    assert isinstance(part, SearchPart)
    limits = f"{questions} on a grid of {part.grid:,} points ({part.looks_per_query} looks each)"
    return Planned(part.name, limits, _search(part))


def _search(part: SearchPart) -> str:
    if part.mirrored:
        inside = _quantiles(part.tail_low, part.tail_low)
        return f"The interval encloses the estimator's median over fresh blocks, and lies {inside}."
    if part.protocol == "amplified":
        inside = _quantiles(part.subblock_tail, part.subblock_tail)
        return f"The answer lies {inside} of the estimator on one sub-block of {part.subblocks:,}."
    if part.protocol == "mean":
        inside = _quantiles(part.tail_low, part.tail_high)
        return f"The block mean lies {inside}; without a filter the mean lies in the error bar."
    return _between(part.tail_low, part.tail_high)


def _quantiles(low: float, high: float) -> str:
    top = quantile(1 - high) if high >= 1e-4 else f"1 − {quantile(high)}"
    return f"between the {quantile(low)} and {top} quantiles"


def _between(low: float, high: float) -> str:
    return f"The answer lies {_quantiles(low, high)} of its estimator on a fresh block."


def _verdicts(part: VerdictPart | ExactVerdicts) -> str:
    low, high = part.tail_low, part.tail_high
    if part.sides == 1:
        return (
            f"Pass: more than {quantile(low)} of fresh blocks are on the guess's side of it. Fail: "
            f"more than {quantile(1 - high)} are not. Of a score that is a mean of terms from 0 to "
            "1 either certifies a bound."
        )
    return (
        f"Compatible: more than {quantile(low)} of fresh blocks give the guess or less, and more "
        f"than {quantile(low)} give it or more; that confirms no guess. Not compatible: less than "
        f"{quantile(high)} give it or less, or less than {quantile(high)} give it or more."
    )


Words = tuple[str, str]


def _exact_verdicts(plan: ExactVerdicts) -> Words:
    limits = f"{plan.queries:,} guesses, at most {plan.refusals:,} refused; exact"
    return limits, _verdicts(plan)


def _exact_corrections(plan: ExactCorrections) -> Words:
    limits = f"{plan.queries:,} guesses, at most {plan.refusals:,} corrected; exact"
    return limits, f"Confirmed or corrected: {_lower(_between(plan.tail_low, plan.tail_low))}"


def _exact_estimates(plan: ExactEstimates) -> Words:
    limits = f"{plan.queries:,} questions on a grid of {plan.grid:,} points; exact"
    return limits, _between(plan.tail_low, plan.tail_high)


def _exact_weights(plan: ExactWeights) -> Words:
    limits = f"{plan.queries:,} questions, at most {plan.updates:,} surprises; exact"
    return limits, _between(plan.tail, plan.tail)


def _rounds(plan: RoundsPlan) -> Words:
    limits = f"{plan.queries:,} questions in {plan.sets:,} rounds; exact"
    return limits, _between(plan.guesses.tail_low, plan.guesses.tail_low)


def _split(plan: SplitPlan) -> Words:
    limits = f"{plan.queries:,} questions, fresh blocks for each; exact"
    return limits, _between(plan.tail_low, plan.tail_high)


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


_OF_PLANS: dict[type[Any], Callable[[Any], Words]] = {
    ExactCorrections: _exact_corrections,
    ExactEstimates: _exact_estimates,
    ExactVerdicts: _exact_verdicts,
    ExactWeights: _exact_weights,
    RoundsPlan: _rounds,
    SplitPlan: _split,
}
