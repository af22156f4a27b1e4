"""Desks: each part of a plan, put together with its blocks, for one question.

A desk builds the protocol that the plan names, gives it a budget that the ledger keeps (or restores
its tally from the ledger), and asks it. It decides nothing: prices, promises and coins are the
protocol's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.holdout.questions import Question
from holdfast.holdout.records import Result
from holdfast.holdout.sessions import Learnt, Session
from holdfast.holdout.spec import Offer
from holdfast.holdout.universe import World, read_indices, written_indices
from holdfast.planning.exact import ExactCorrections, ExactEstimates, ExactVerdicts, ExactWeights
from holdfast.planning.parts import DirectPart, VerdictPart, WeightsPart
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.splits import SplitPlan
from holdfast.protocols.answers import Answer
from holdfast.protocols.budget import Budget
from holdfast.protocols.exact import ExactCorrect, ExactEstimate, ExactVerify
from holdfast.protocols.guesses import Correct, Verify
from holdfast.protocols.means import DirectMean, MedianMean
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.searches import Amplified, Estimate, Interval, Near, Simple
from holdfast.protocols.source import UNIT, Source
from holdfast.protocols.split import Split
from holdfast.protocols.weights import ExactWeighing, Weighing, Weights
from holdfast.randomness import Entropy

__all__ = ["draw"]

Drawn = tuple[Result, Learnt | None]


def draw(
    offer: Offer,
    question: Question,
    session: Session,
    source: Source,
    entropy: Entropy,
    world: World | None,
    learnt: Sequence[Learnt],
) -> Drawn:
    """Ask the question of its part. `learnt` is what weights have been taught so far."""
    if isinstance(offer.part, WeightsPart) or isinstance(offer.set.plan, ExactWeights):
        assert world is not None  # without one no such plan is sealed
        return _weigh(offer, question, session, entropy, world, learnt)
    if offer.part is None:
        return _tallied(offer, question, session, source), None
    return _by_looks(offer, question, session, source, entropy), None


def _by_looks(
    offer: Offer, question: Question, session: Session, source: Source, entropy: Entropy
) -> Result:
    part, budget = offer.part, session.budget()
    assert part is not None
    common = (budget, source, entropy)
    asked, grid = question.estimator, question.grid
    if question.verb == "mean":
        words: dict[str, Any] = {"where": question.where, "range": question.range or UNIT}
        words |= {"cut": question.range is not None, "failures": question.failures}
        if isinstance(part, DirectPart):
            return DirectMean(*common, name=part.name).ask(asked, **words)
        return MedianMean(*common, name=part.name).ask(asked, grid=grid, **words)
    if question.verb == "verify":
        return _verdict(offer, question, common)
    if question.verb == "interval":
        return Interval(*common, name=part.name).ask(asked, _needed(grid))
    if question.verb == "correct":
        verify = Verify(*common, name=part.name)
        estimate = Estimate(*common, name=_estimate_part(offer))
        guess = _needed(question.guess)
        return Correct(verify, estimate).ask(asked, guess, _needed(grid), shape=question.shape)
    kinds: dict[str, type[Estimate]] = {"simple": Simple, "amplified": Amplified}
    protocol = kinds.get(part.protocol, Estimate)
    return protocol(*common, name=part.name).ask(asked, _needed(grid), shape=question.shape)


def _verdict(offer: Offer, question: Question, common: tuple[Budget, Source, Entropy]) -> Result:
    part, guess = offer.part, _needed(question.guess)
    assert part is not None
    if isinstance(part, VerdictPart):
        claim: Any = question.claim or "equals"
        return Verify(*common, name=part.name).ask(question.estimator, guess, claim=claim)
    near = Near(*common, name=part.name)
    return near.ask(question.estimator, guess, tolerance=question.tolerance or 0.0)


def _estimate_part(offer: Offer) -> str:
    """The part that corrects what another refuses."""
    plan: Any = offer.set.plan
    return str(next(part.name for part in plan.parts if part.protocol == "estimate"))


_TALLIED: dict[type[Any], Callable[[Any, Source], Any]] = {
    ExactVerdicts: ExactVerify,
    ExactCorrections: ExactCorrect,
    ExactEstimates: ExactEstimate,
    SplitPlan: Split,
    RoundsPlan: EffectiveRounds.of,
}


def _tallied(offer: Offer, question: Question, session: Session, source: Source) -> Result:
    plan = offer.set.plan
    protocol = _TALLIED[type(plan)](plan, source)
    start = session.start()
    if start is not None:
        protocol.restore(start)
    protocol.keeper = session.tell
    result = _ask_tallied(protocol, question)
    session.finish(protocol.tally)
    return result


def _ask_tallied(protocol: object, question: Question) -> Result:
    asked, shape = question.estimator, question.shape
    if isinstance(protocol, ExactVerify):
        claim: Any = question.claim or "equals"
        return protocol.ask(asked, _needed(question.guess), claim=claim)
    if isinstance(protocol, ExactCorrect):
        return protocol.ask(asked, _needed(question.guess), _needed(question.grid), shape=shape)
    if isinstance(protocol, ExactEstimate):
        return protocol.ask(asked, _needed(question.grid), shape=shape)
    assert isinstance(protocol, Split | EffectiveRounds)
    return protocol.ask(asked, shape=shape)


def _weigh(
    offer: Offer,
    question: Question,
    session: Session,
    entropy: Entropy,
    world: World,
    learnt: Sequence[Learnt],
) -> Drawn:
    plan, first = offer.set.plan, offer.set.first
    session.touches()  # blocks become lists of cells before anything is paid
    source, universe = world.source(first, first + offer.set.blocks), world.universe
    weighing: Weights | ExactWeighing
    if isinstance(plan, ExactWeights):
        weighing = ExactWeighing(plan, source, universe)
        start = session.start()
        if start is not None:
            weighing.restore(start)
        weighing.keeper = session.tell
    else:
        weighing = Weights(session.budget(), source, universe, entropy, name=offer.name)
    for each in learnt:
        _repeat(weighing, each)
    grid = _needed(question.grid)
    indices = grid.ceiling(world.values(question.estimator))
    result: Answer = weighing.ask_indices(indices, grid)
    if isinstance(weighing, ExactWeighing):
        session.finish(weighing.tally)
    return result, _learnt(weighing, indices, grid)


def _learnt(weighing: Weighing, indices: NDArray[np.int64], grid: Grid) -> Learnt | None:
    """What a later object needs to learn the same."""
    if not weighing.steps:
        return None
    steps = [[guess, side, rate] for guess, side, rate in weighing.steps]
    return {"size": grid.size, "indices": written_indices(indices), "steps": steps}


def _repeat(weighing: Weighing, learnt: Learnt) -> None:
    """Learn again what a row of the ledger says was learnt."""
    indices = read_indices(learnt["indices"], weighing.universe.size)
    weighing.repeat(indices, learnt["size"], [tuple(step) for step in learnt["steps"]])


def _needed(value: Any) -> Any:
    assert value is not None  # whoever made the question has seen to it
    return value
