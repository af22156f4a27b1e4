"""What a recorded answer says of the budget, as it is today."""

from __future__ import annotations

from dataclasses import replace

from holdfast.holdout.books import Books
from holdfast.holdout.records import Result
from holdfast.holdout.spec import Offer
from holdfast.holdout.usage import tally_use
from holdfast.planning.exact import ExactCorrections, ExactVerdicts
from holdfast.planning.joint import JointPlan
from holdfast.protocols.answers import Verdict
from holdfast.protocols.guesses import Corrected

__all__ = ["as_of_now"]


def as_of_now(result: Result, offer: Offer, books: Books) -> Result:
    """A recorded answer, with what is left of the budget and of the refusals by now."""
    if isinstance(result, Corrected):
        verdict = as_of_now(result.verdict, offer, books)
        assert isinstance(verdict, Verdict)
        later = result.correction
        later = None if later is None else replace(later, budget_left=verdict.budget_left)
        return Corrected(verdict, later)
    plan, name = offer.set.plan, offer.set.name
    if isinstance(plan, JointPlan):
        account = books.account(name)
        if not isinstance(result, Verdict) or offer.part is None or result.refusals_left is None:
            return replace(result, budget_left=account.left)
        refusals = account.left_of(offer.part).refusals
        return replace(result, budget_left=account.left, refusals_left=refusals)
    if not isinstance(plan, ExactVerdicts | ExactCorrections):
        return result
    tally = books.tally(name) or {}
    used, budget, _ = tally_use(offer.set, tally)
    left = int(budget - used) if tally.get("asked", 0) < plan.queries else 0
    if isinstance(result, Verdict):
        return replace(result, budget_left=float(left), refusals_left=left)
    return replace(result, budget_left=float(left))
