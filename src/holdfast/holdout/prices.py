"""What every row should have cost, computed again from the question and the plan alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from holdfast.grids import Grid
from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactVerdicts, ExactWeights
from holdfast.planning.joint import JointPlan
from holdfast.planning.kept import KeptPlan
from holdfast.planning.parts import DirectPart, Part, SearchPart, VerdictPart
from holdfast.planning.rounds import RoundsPlan
from holdfast.protocols.budget import Charge

__all__ = [
    "charged_parts",
    "final_charge",
    "final_tally",
    "tally_fits",
    "worst_charge",
    "worst_tally",
]

Question = Mapping[str, Any]
Tally = dict[str, int]


def worst_charge(plan: JointPlan, question: Question, part_name: str) -> Charge:
    """The worst case of a question for a part: what must have been reserved."""
    part = plan.part(part_name)
    prices = part.prices(plan.order)
    no, yes = Fraction(prices.no), Fraction(prices.yes)
    if isinstance(part, SearchPart):
        looks = _search_looks(part, question)
        return Charge(part.name, looks * no, looks)
    if isinstance(part, DirectPart):
        return Charge(part.name, no, 1)
    sides = _sides(part, question)
    return Charge(part.name, (sides - 1) * yes + max(no, yes), sides, 1)


def _search_looks(part: SearchPart, question: Question) -> int:
    if question["verb"] == "verify":
        return 2  # a guess and its tolerance are a grid of three points
    grid = question.get("grid")
    points = part.grid if grid is None else Grid.from_json(grid).size
    return (points - 1).bit_length() * (2 if part.mirrored else 1)


def _sides(part: Part, question: Question) -> int:
    one_sided = question.get("claim", "equals") != "equals"
    return 1 if isinstance(part, VerdictPart) and one_sided else 2


def charged_parts(plan: JointPlan, question: Question) -> list[str]:
    """The parts that the question is charged to, in the order of its reservations."""
    own = str(question["part"])
    if question["verb"] != "correct":
        return [own]
    # A correction is paid for before the guess is drawn.
    return [next(part.name for part in plan.parts if part.protocol == "estimate"), own]


def final_charge(plan: JointPlan, worst: Charge, looks: int, noes: int) -> Charge:
    """What looks of which some said No cost, where so much was reserved."""
    part = plan.part(worst.part)
    prices = part.prices(plan.order)
    price = (looks - noes) * Fraction(prices.yes) + noes * Fraction(prices.no)
    return Charge(part.name, price, looks, noes)


def worst_tally(plan: KeptPlan, before: Tally | None, question: Question) -> Tally:
    """The tally that must have been written before an answer."""
    tally = dict(before) if before is not None else _start(plan)
    if isinstance(plan, ExactEstimates):
        return {"room": tally["room"] // Grid.from_json(question["grid"]).size}
    tally["asked"] += 1
    if isinstance(plan, ExactVerdicts | ExactCorrections | RoundsPlan):
        tally["refused"] += 1
    if isinstance(plan, ExactCorrections):
        tally["told"] *= Grid.from_json(question["grid"]).size
    if isinstance(plan, RoundsPlan):
        tally["thrown"] += 1
    return tally


def tally_fits(plan: KeptPlan, before: Tally | None, question: Question) -> bool:
    """Whether the plan could still pay for the question."""
    tally = before if before is not None else _start(plan)
    if isinstance(plan, ExactEstimates):
        return tally["room"] > 0
    if isinstance(plan, RoundsPlan):
        guesses = plan.guesses
        fits = tally["refused"] < guesses.refusals and tally["thrown"] < plan.sets
        return fits and tally["asked"] < guesses.queries
    assert not isinstance(plan, JointPlan)
    if tally["asked"] >= plan.queries:
        return False
    if isinstance(plan, ExactWeights):
        return tally["refused"] <= plan.updates
    if isinstance(plan, ExactVerdicts | ExactCorrections) and tally["refused"] >= plan.refusals:
        return False
    if not isinstance(plan, ExactCorrections) or tally["refused"] == plan.refusals - 1:
        return True  # after the last correction nothing can be asked: its grid may have any size
    said = tally["told"] * Grid.from_json(question["grid"]).size
    return bool(said <= plan.grid ** (tally["refused"] + 1))


def final_tally(
    plan: KeptPlan, before: Tally | None, question: Question, body: Mapping[str, Any]
) -> Tally:
    """The tally that the answer in a row leaves: its worst case, or that with a refusal back."""
    worst, answer = worst_tally(plan, before, question), body["answer"]
    if isinstance(plan, ExactWeights):  # every refused guess has taught the hypothesis something
        steps = body["learnt"]["steps"] if "learnt" in body else ()
        return {**worst, "refused": worst["refused"] + len(steps)}
    if not isinstance(plan, ExactVerdicts | ExactCorrections | RoundsPlan):
        return worst
    if isinstance(plan, RoundsPlan):
        refused = answer["price"] > 0  # in refusals: an answer of the next set has cost one
    else:
        verdict = answer["verdict"] if isinstance(plan, ExactCorrections) else answer
        refused = verdict["refused"] is not False
    start = dict(before) if before is not None else _start(plan)
    return worst if refused else {**start, "asked": worst["asked"]}


def _start(plan: KeptPlan) -> Tally:
    if isinstance(plan, ExactEstimates):
        return {"room": plan.grid ** (plan.queries - 1)}
    tally = {"asked": 0}
    if isinstance(plan, ExactVerdicts | ExactCorrections | ExactWeights | RoundsPlan):
        tally["refused"] = 0
    if isinstance(plan, ExactCorrections):
        tally["told"] = 1
    if isinstance(plan, RoundsPlan):
        tally["thrown"] = 0
    return tally
