"""Proposals for protocols with guesses: verify, correct, rounds."""

from __future__ import annotations

from holdfast.errors import Infeasible, InvalidInput
from holdfast.planning.alternatives import Alternative
from holdfast.planning.exact import ExactVerdicts, exact_corrections, exact_verdicts
from holdfast.planning.joint_search import joint_plan
from holdfast.planning.parts.base import LEAST_SHARE
from holdfast.planning.parts.verdicts import VerdictPart
from holdfast.planning.proposals.base import Proposal, blocks_of, cheaper, inside
from holdfast.planning.requests.guesses import Guesses
from holdfast.planning.requests.searches import Estimates
from holdfast.planning.rounds import rounds_plan
from holdfast.theory.paper import sv

__all__ = ["propose_correct", "propose_rounds", "propose_verify"]


def propose_verify(
    queries: int,
    refusals: int,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
    *,
    sides: int = 2,
    looks: bool = False,
) -> Proposal:
    """Guesses confirmed or refused: by looks at two prices or a flat one, or exactly.

    The cheapest is taken; with `looks`, one that can share its blocks with other protocols.
    """
    _refuse_empty(tail_low, tail_high if sides == 1 else None)
    request = Guesses(queries, refusals, tail_low, tail_high, sides)
    made = joint_plan(request, confidence=confidence)
    part = made.part("verify")
    assert isinstance(part, VerdictPart)
    prices, flat = part.prices(made.order), part.no_price == part.yes_price
    predicted = {
        "queries": queries,
        "refusals": refusals,
        "tail_low": tail_low,
        "tail_high": tail_high,
        "no_price": prices.no,
        "yes_price": prices.yes,
    }
    searches = blocks_of(Estimates(queries, 32, tail_low, tail_low), confidence=confidence)
    others = (
        Alternative("paper", _paper_verification(request, confidence)),
        Alternative("estimate", searches, "a search for every question, tails at tail_low"),
    )
    promise = (
        f"tails of at least {tail_high:g} are confirmed, one of at most {tail_low:g} is refused, "
        f"for all {queries:,} guesses at once with probability at least {confidence:g}; exhausted "
        f"after {refusals:,} refusals"
    )
    method = "flat price" if flat else "two prices"
    proposal = Proposal("verify", method, made.blocks, promise, made, predicted, others)
    if looks:
        return proposal
    told = {name: predicted[name] for name in ("queries", "refusals", "tail_low", "tail_high")}
    exact = exact_verdicts(queries, refusals, tail_low, tail_high, confidence, sides=sides)
    return cheaper(proposal, Proposal("verify", "exact", exact.blocks, promise, exact, told))


def propose_correct(
    queries: int,
    refusals: int,
    grid: int = 32,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
    *,
    looks: bool = False,
) -> Proposal:
    """Guesses from open data, confirmed or corrected: by looks on one budget, or exactly."""
    _refuse_empty(tail_low, None)
    guesses = Guesses(queries, refusals, tail_low, tail_high)
    corrections = Estimates(refusals, grid, tail_low, tail_low)
    made = joint_plan(guesses, corrections, confidence=confidence)
    predicted = {"queries": queries, "refusals": refusals, "tail": tail_low, "grid": grid}
    promise = inside(queries, tail_low, confidence)
    searches = blocks_of(Estimates(queries, grid, tail_low, tail_low), confidence=confidence)
    others = (
        Alternative("paper", _paper_verification(guesses, confidence), "verification alone"),
        Alternative("estimate", searches),
    )
    proposal = Proposal("correct", "one budget", made.blocks, promise, made, predicted, others)
    if looks:
        return proposal
    exact = exact_corrections(queries, refusals, grid, tail_low, tail_high, confidence)
    return cheaper(proposal, Proposal("correct", "exact", exact.blocks, promise, exact, predicted))


def propose_rounds(
    queries: int,
    rounds: int,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
    *,
    looks: bool = False,
) -> Proposal:
    """Estimation sets used exactly until verification fails."""
    made = rounds_plan(queries, rounds, tail_low, tail_high, confidence, looks=looks)
    predicted = {
        "queries": queries,
        "rounds": made.sets,
        "tail": tail_low,
        "tail_high": tail_high,
        "set_blocks": made.set_blocks,
        "verification_blocks": made.verification.blocks,
    }
    guesses = Guesses(queries, rounds, tail_low, tail_high)
    searches = blocks_of(Estimates(queries, 32, tail_low, tail_low), confidence=confidence)
    others = (
        Alternative("paper", _paper_verification(guesses, confidence), "verification alone"),
        Alternative("estimate", searches),
    )
    promise = inside(queries, tail_low, confidence)
    method = "exact" if isinstance(made.verification, ExactVerdicts) else "two prices"
    return Proposal("rounds", method, made.blocks, promise, made, predicted, others)


def _refuse_empty(tail_low: float, tail_high: float | None) -> None:
    """Refuse guesses of which a verdict would say "cannot tell", and nothing else.

    Those about both sides are planned to stand, and would say so if they do; those about one side
    may be planned to be refused (`tail_high`).
    """
    refusable = tail_high is not None and 1 - tail_high >= LEAST_SHARE
    if tail_low < LEAST_SHARE and not refusable:
        hint = (
            "A guess that stands would speak of fewer than 1 in 100 fresh blocks: 'cannot tell'. "
            "For thresholds of scores plan gates: holdfast create … --protocols gate."
        )
        raise InvalidInput("tail", tail_low, f"at least {LEAST_SHARE:g} for guesses", hint)


def _paper_verification(request: Guesses, confidence: float) -> int | None:
    """Thm `sv` with its printed constants: ρ = tail_high, α = tail_high − tail_low."""
    alpha = request.tail_high - request.tail_low
    try:
        size = sv(request.queries, request.refusals, request.tail_high, alpha, 1 - confidence)
    except (InvalidInput, Infeasible):
        return None
    return size.blocks
