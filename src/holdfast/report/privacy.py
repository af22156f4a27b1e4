"""The unit-level privacy that a budget implies: what is spent of it, and all of it.

Only sets that answer by looks have any (docs/explanation/theory/unit-privacy.md). Sets are
disjoint, so each has a figure of its own: a unit is in one of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from holdfast.planning.joint import JointPlan
from holdfast.planning.parts.base import Part
from holdfast.planning.parts.direct import DirectPart
from holdfast.planning.parts.searches import SearchPart
from holdfast.planning.parts.verdicts import VerdictPart
from holdfast.planning.parts.weights import WeightsPart
from holdfast.report.story import Story, Use
from holdfast.theory.privacy import (
    Allowance,
    UnitPrivacy,
    largest_total,
    look_divergence,
    question_divergence,
    unit_privacy,
    verdict_divergences,
)

__all__ = ["SetPrivacy", "delta_for", "set_privacy"]


@dataclass(frozen=True)
class SetPrivacy:
    """One set's figures; None where exact answers leave no privacy, or nothing was said yet."""

    name: str
    exact: bool
    said: bool
    spent: UnitPrivacy | None
    whole: UnitPrivacy | None


def delta_for(units: int) -> float:
    """The δ of the figures: the largest power of ten that is at most a tenth of 1/units.

    >>> delta_for(336_776), delta_for(1)
    (1e-07, 0.1)
    """
    return float(f"1e-{math.ceil(math.log10(units)) + 1}")


def set_privacy(story: Story) -> list[SetPrivacy]:
    """The figures of every set."""
    delta = delta_for(story.charter.manifest.units)
    return [_figures(story, each.name, each.plan, delta) for each in story.charter.sets]


def _figures(story: Story, name: str, plan: object, delta: float) -> SetPrivacy:
    spending = story.spending[name]
    said = len(spending.points) > 1
    if not isinstance(plan, JointPlan):
        return SetPrivacy(name, True, said, None, None)
    joint = plan

    def spent(order: float) -> float:
        used = ((joint.part(part), use) for part, use in spending.uses.items())
        return math.fsum(_told(joint, part, use, order) for part, use in used)

    def whole(order: float) -> float:
        allowances = [each for part in joint.parts for each in _allowances(joint, part, order)]
        return largest_total(allowances, joint.budget)

    figures = unit_privacy(spent, delta) if said else None
    return SetPrivacy(name, False, said, figures, unit_privacy(whole, delta))


def _told(plan: JointPlan, part: Part, use: Use, order: float) -> float:
    """What this use of a part tells of one unit."""
    no, yes = _divergences(plan, part, use.noes, use.looks - use.noes, order)
    return use.noes * no + (use.looks - use.noes) * yes


def _allowances(plan: JointPlan, part: Part, order: float) -> list[Allowance]:
    """How often each verdict of a part can be drawn, at its price in the plan's own currency."""
    most = part.most_refusals
    prices = part.prices(plan.order)
    if most is None:
        _, told = _divergences(plan, part, 0, part.looks, order)
        return [Allowance(part.looks, prices.worst, told)]
    no, yes = _divergences(plan, part, most, part.looks - most, order)
    return [Allowance(most, prices.no, no), Allowance(part.looks, prices.yes, yes)]


def _divergences(
    plan: JointPlan, part: Part, noes: int, yeses: int, order: float
) -> tuple[float, float]:
    """What a No and a Yes of this part tell, at this order; the coin is that of the plan's."""
    if isinstance(part, VerdictPart | WeightsPart):
        return verdict_divergences(part.coin(plan.order), order, noes, yeses)
    if isinstance(part, DirectPart):
        told = question_divergence(part.coin(plan.order), order)
    else:
        assert isinstance(part, SearchPart)
        told = look_divergence(part.coin(plan.order), order)
    return told, told
