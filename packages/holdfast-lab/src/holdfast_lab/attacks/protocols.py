"""Responders that search with looks: estimate, simple, amplified, interval, near."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, Infeasible, InvalidInput
from holdfast.grids import Grid, grid
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.exact import (
    ExactCorrections,
    ExactEstimates,
    ExactVerdicts,
    ExactWeights,
    exact_corrections,
    exact_estimates,
    exact_verdicts,
    exact_weights,
)
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.menu import Order
from holdfast.planning.parts import DirectPart, SearchPart
from holdfast.planning.requests import (
    AmplifiedEstimates,
    Estimates,
    Guesses,
    Intervals,
    MedianMeans,
    Request,
    SimpleEstimates,
    WeightedEstimates,
)
from holdfast.planning.rounds import RoundsPlan, rounds_plan
from holdfast.planning.shapes import BoundedMean
from holdfast.planning.splits import SplitPlan, split_plan
from holdfast.protocols.budget import Budget
from holdfast.protocols.exact import ExactCorrect, ExactEstimate, ExactVerify
from holdfast.protocols.guesses import Correct, Verify
from holdfast.protocols.means import DirectMean, MedianMean
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.searches import Amplified, Estimate, Interval, Near, Simple
from holdfast.protocols.split import Split
from holdfast.protocols.weights import ExactWeighing, Weights
from holdfast.randomness import Entropy
from holdfast.theory.means import best_direct, narrowest_direct
from holdfast_lab.attacks.blocks import (
    NOTHING,
    SPARE,
    Asked,
    BlockResponder,
    Desk,
    Rows,
    Told,
    as_replies,
    confidence_of,
    mean_claim,
    of_answer,
    of_corrected,
    of_verdict,
    points_for,
    rank_claim,
    tail_of,
    units_for,
)
from holdfast_lab.attacks.conversation import (
    FloatArray,
    MeanResponder,
    Replies,
    Responder,
    Terms,
    looks_of,
)
from holdfast_lab.protocol_attacks.base import KeptPlan

__all__ = [
    "HoldfastAmplified",
    "HoldfastCorrect",
    "HoldfastEstimate",
    "HoldfastExact",
    "HoldfastExactCorrect",
    "HoldfastExactVerify",
    "HoldfastExactWeights",
    "HoldfastInterval",
    "HoldfastMean",
    "HoldfastMedianMean",
    "HoldfastNear",
    "HoldfastRounds",
    "HoldfastSimple",
    "HoldfastSplit",
    "HoldfastVerify",
    "HoldfastWeights",
    "Labelled",
    "narrowest_means",
    "refusals_of",
]


def _questions(asked: Asked) -> int:
    """Questions of the planned grid whose looks are those planned, and the spare ones."""
    return asked.queries + math.ceil(SPARE / looks_of(asked.points))


class HoldfastEstimate(BlockResponder[Estimate]):
    """A search for every question: the median, or the median of the means of blocks."""

    name: ClassVar[str] = "holdfast-estimate"
    mean_tail: ClassVar[float] = 1e-10
    protocol: ClassVar[type[Estimate]] = Estimate

    @classmethod
    def request(cls, asked: Asked) -> Request:
        """What is planned for."""
        return Estimates(_questions(asked), asked.points, asked.tail, asked.tail)

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        return joint_plan(cls.request(asked), confidence=asked.confidence, blocks=blocks)

    def open(self, plan: JointPlan, source: Rows, entropy: Entropy) -> Estimate:
        return self.protocol(Budget(plan), source, entropy)

    def tell(self, desk: Desk[Estimate], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del guess
        return of_answer(desk.protocol.ask(line, grid, shape=desk.shape), mean=desk.mean)


class HoldfastSimple(HoldfastEstimate):
    """The same with a tiny tail, for a few dozen blocks."""

    name: ClassVar[str] = "holdfast-simple"
    mean_tail: ClassVar[float] = SimpleEstimates.tail
    tails: ClassVar[tuple[float, ...]] = (1e-3, 1e-4, 1e-6)
    protocol: ClassVar[type[Estimate]] = Simple

    @classmethod
    def request(cls, asked: Asked) -> Request:
        return SimpleEstimates(_questions(asked), asked.points, asked.tail)


class HoldfastAmplified(HoldfastEstimate):
    """A search over exact medians of a few sub-blocks: what is promised is of a sub-block."""

    name: ClassVar[str] = "holdfast-amplified"
    mean_tail: ClassVar[float] = 1e-4
    protocol: ClassVar[type[Estimate]] = Amplified

    @classmethod
    def request(cls, asked: Asked) -> Request:
        # Few sub-blocks for a small tail, more where a tail near 1/2 has to be made small.
        subblocks = 3 if asked.tail < 0.03 else 5 if asked.tail < 0.15 else 15
        return AmplifiedEstimates(_questions(asked), asked.points, asked.tail, subblocks)

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        request = cls.request(asked)
        assert isinstance(request, AmplifiedEstimates)
        whole = None if blocks is None else blocks // request.subblocks
        return joint_plan(request, confidence=asked.confidence, blocks=whole)

    @classmethod
    def blocks_of(cls, plan: JointPlan) -> int:
        part = plan.part("amplified")
        assert isinstance(part, SearchPart)
        return plan.blocks * part.subblocks


class HoldfastInterval(BlockResponder[Interval]):
    """Two searches a question, which enclose the median on fresh data.

    A mean's claim: D[φ ≤ high] and D[φ ≥ low] are both above 1/2, and Chernoff's bound does the
    rest. A median's answer is the middle of the interval, whose ends have both their tails.
    """

    name: ClassVar[str] = "holdfast-interval"
    mean_tail: ClassVar[float] = 0.01

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        request = Intervals(_questions(asked), asked.points, asked.tail)
        return joint_plan(request, confidence=asked.confidence, blocks=blocks)

    def open(self, plan: JointPlan, source: Rows, entropy: Entropy) -> Interval:
        return Interval(Budget(plan), source, entropy)

    def tell(self, desk: Desk[Interval], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del guess
        answer = desk.protocol.ask(line, grid)
        if desk.mean:
            return (answer.value, *mean_claim(answer.low, answer.high, desk.units, 0.5, 0.5))
        middle = math.floor(answer.value)  # between the ends, and on the grid
        return (middle, *rank_claim(answer.tail_low, answer.tail_high))


class HoldfastNear(BlockResponder[Near]):
    """Guesses confirmed within a tolerance, by a plan for estimates; refused, there is no value.

    Of a mean the tolerance is what a quarter of all blocks may be off; of a median it is 0.
    """

    name: ClassVar[str] = "holdfast-near"
    mean_tail: ClassVar[float] = 0.01

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        # A guess takes two looks, whatever the grid: a search of three points.
        request = Estimates(asked.queries, 3, asked.tail, asked.tail)
        return joint_plan(request, confidence=asked.confidence, blocks=blocks)

    def open(self, plan: JointPlan, source: Rows, entropy: Entropy) -> Near:
        return Near(Budget(plan), source, entropy, name="estimate")

    def tell(self, desk: Desk[Near], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del grid
        shape = desk.shape
        tolerance = 0.0 if shape is None else _tolerance(desk.units)
        verdict = desk.protocol.ask(line, guess, tolerance=tolerance)
        if verdict.refused is not False:
            return NOTHING
        tails = verdict.tail_low, verdict.tail_high
        if shape is None:
            return (guess, *rank_claim(*tails))
        first, last = (math.nextafter(guess + s * tolerance, s * math.inf) for s in (-1, 1))
        return (guess, *mean_claim(first, last, desk.units, *tails))


@lru_cache(maxsize=64)
def _tolerance(units: int) -> float:
    return BoundedMean().error(units, 0.25)


# Means: the direct search over the sum of all rows, and the median of the means of blocks.


@lru_cache(maxsize=64)
def narrowest_means(queries: int, rows: int, failure: float) -> KeptPlan:
    """The plan whose bars are the narrowest that so many rows allow; it proves itself.

    >>> plan = narrowest_means(queries=20, rows=1_000, failure=0.05)
    >>> plan.blocks, round(plan.part("mean").half_width, 2)
    (1000, 0.22)
    """
    confidence = confidence_of(failure)
    found = narrowest_direct(queries, rows, confidence, exact=False)
    part = DirectPart(
        name="mean",
        protocol="mean",
        queries=queries,
        half_width=0.5,
        apart=found.coin.halfsteps.size - 1,
        slope=found.slope or 0.0,
        # The shares are added up without rounding, and 0.05 is stored as a little more than 1/20.
        failure=math.nextafter(failure, 0.0),
        look_price=found.price,
        floor=found.floor,
        exact=False,
        looks=queries,
    )
    budget = part.planned(found.order) * (1 + 1e-12)
    width = part.bars(found.order, budget, rows).half_width
    plan = JointPlan(rows, found.order, budget, confidence, (replace(part, half_width=width),))
    if not plan.verify():
        remedy = "Ask fewer questions, or bring more rows."
        raise Infeasible("Means", "a plan that proves itself", f"{rows:,} rows", remedy)
    return KeptPlan.of(plan)


class HoldfastMean(MeanResponder):
    """The protocol `mean` with the narrowest bars that the rows allow.

    Medians are searched for by means, as `MeanResponder` does; the plan then covers all of those.
    """

    name: ClassVar[str] = "holdfast-mean"
    certified: ClassVar[bool] = True

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.protocol: DirectMean | MedianMean | None = None  # from the first question on

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        if self.protocol is None:
            self.protocol = self._open(self._terms.queries)
        return as_replies([self._told(self.protocol, line) for line in values])

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        if self.protocol is None:
            self.protocol = self._open(self._terms.queries * looks_of(points) + SPARE)
        return super().medians(values, points)

    def _told(self, protocol: DirectMean | MedianMean, line: NDArray[Any]) -> Told:
        try:
            return of_answer(protocol.ask(line), mean=True)
        except Exhausted:
            return NOTHING

    def _open(self, queries: int) -> DirectMean | MedianMean:
        terms = self._terms
        plan = narrowest_means(queries, terms.rows, terms.failure)
        part = plan.part("mean")
        assert isinstance(part, DirectPart)
        if terms.half_width is not None and part.half_width > terms.half_width:
            raise _too_wide(queries, terms, part.half_width)
        return DirectMean(Budget(plan), Rows(terms.rows), terms.entropy)


class HoldfastMedianMean(HoldfastMean):
    """The protocol `mean` the other way: the stable median of the means of few large blocks."""

    name: ClassVar[str] = "holdfast-median-mean"

    def _open(self, queries: int) -> MedianMean:
        terms = self._terms
        points, tail = points_for(terms.rows), HoldfastEstimate.mean_tail
        asked = Asked(queries, points, tail, terms.failure)
        plan = _median_plan(asked)
        units = units_for(terms, asked, plan.blocks)
        return MedianMean(Budget(plan), Rows(plan.blocks, units), terms.entropy)


@lru_cache(maxsize=64)
def _median_plan(asked: Asked) -> KeptPlan:
    request = MedianMeans(asked.queries, asked.points, asked.tail)
    return KeptPlan.of(joint_plan(request, confidence=asked.confidence))


def _too_wide(queries: int, terms: Terms, found: float) -> Infeasible:
    assert terms.half_width is not None
    confidence = confidence_of(terms.failure)
    rows = best_direct(queries, terms.half_width, confidence, exact=False).blocks
    given = f"{terms.rows:,} give a half-width of {found:.3g}"
    remedy = "Ask fewer questions, accept a wider claim, or bring more rows."
    return Infeasible("Not enough rows", f"{rows:,} rows", given, remedy)


# Responders that confirm guesses with looks: verify, and verify and correct.


def refusals_of(queries: int) -> int:
    """The refusals that are planned for, as `holdfast plan` does."""
    return min(Order.refusals, queries)


class HoldfastVerify(BlockResponder[Verify]):
    """A guess is confirmed, and then it is the value; or refused, and then there is none.

    A refusal counts, and after the last one all is refused. Without a guess, the middle is guessed.
    """

    name: ClassVar[str] = "holdfast-verify"
    mean_tail: ClassVar[float] = 0.01
    tails: ClassVar[tuple[float, ...]] = (0.05, 0.01)  # finding a plan takes seconds

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        refusals = refusals_of(asked.queries)
        request = Guesses(asked.queries, refusals, asked.tail, asked.wide_tail)
        return joint_plan(request, confidence=asked.confidence, blocks=blocks)

    def open(self, plan: JointPlan, source: Rows, entropy: Entropy) -> Verify:
        return Verify(Budget(plan), source, entropy)

    def tell(self, desk: Desk[Verify], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del grid
        return of_verdict(desk.protocol.ask(line, guess), desk.units, mean=desk.mean)


class HoldfastCorrect(BlockResponder[Correct]):
    """A guess is confirmed, or corrected by a search: both share one budget on the same blocks."""

    name: ClassVar[str] = "holdfast-correct"
    mean_tail: ClassVar[float] = 0.01
    tails: ClassVar[tuple[float, ...]] = HoldfastVerify.tails

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> JointPlan:
        refusals = refusals_of(asked.queries)
        guesses = Guesses(asked.queries, refusals, asked.tail, asked.wide_tail)
        estimates = Estimates(refusals, asked.points, asked.tail, asked.tail)
        return joint_plan(guesses, estimates, confidence=asked.confidence, blocks=blocks)

    def open(self, plan: JointPlan, source: Rows, entropy: Entropy) -> Correct:
        budget = Budget(plan)
        return Correct(Verify(budget, source, entropy), Estimate(budget, source, entropy))

    def tell(self, desk: Desk[Correct], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        told = desk.protocol.ask(line, guess, grid, shape=desk.shape)
        return of_corrected(told, desk.units, mean=desk.mean)


# Responders without noise: exact answers, verdicts and corrections, every history counted.


class HoldfastExact(BlockResponder[ExactEstimate]):
    """The value of the planned rank on a grid. Rows beyond the plan's blocks are not used."""

    name: ClassVar[str] = "holdfast-exact"
    mean_tail: ClassVar[float] = 1e-12

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> ExactEstimates:
        del blocks
        tails = asked.tail, asked.tail
        return exact_estimates(asked.queries, asked.points, *tails, asked.confidence)

    def open(self, plan: ExactEstimates, source: Rows, entropy: Entropy) -> ExactEstimate:
        del entropy  # nothing is drawn
        return ExactEstimate(plan, source)

    def tell(self, desk: Desk[ExactEstimate], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del guess
        return of_answer(desk.protocol.ask(line, grid, shape=desk.shape), mean=desk.mean)


class HoldfastExactVerify(BlockResponder[ExactVerify]):
    """Guesses, confirmed or refused by exact counts."""

    name: ClassVar[str] = "holdfast-exact-verify"
    mean_tail: ClassVar[float] = 0.01

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> ExactVerdicts:
        del blocks
        tails = asked.tail, asked.wide_tail
        return exact_verdicts(asked.queries, refusals_of(asked.queries), *tails, asked.confidence)

    def open(self, plan: ExactVerdicts, source: Rows, entropy: Entropy) -> ExactVerify:
        del entropy
        return ExactVerify(plan, source)

    def tell(self, desk: Desk[ExactVerify], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del grid
        return of_verdict(desk.protocol.ask(line, guess), desk.units, mean=desk.mean)


class HoldfastExactCorrect(BlockResponder[ExactCorrect]):
    """Guesses, confirmed by exact counts or corrected by the value of the planned rank.

    A question on a larger grid than the plan has room for is refused, and not counted.
    """

    name: ClassVar[str] = "holdfast-exact-correct"
    mean_tail: ClassVar[float] = 0.01

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> ExactCorrections:
        del blocks
        refusals, tails = refusals_of(asked.queries), (asked.tail, asked.wide_tail)
        return exact_corrections(asked.queries, refusals, asked.points, *tails, asked.confidence)

    def open(self, plan: ExactCorrections, source: Rows, entropy: Entropy) -> ExactCorrect:
        del entropy
        return ExactCorrect(plan, source)

    def tell(self, desk: Desk[ExactCorrect], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        most = desk.protocol.largest_grid
        if most is not None and grid.size > most:
            return NOTHING
        told = desk.protocol.ask(line, guess, grid, shape=desk.shape)
        return of_corrected(told, desk.units, mean=desk.mean)


# Multiplicative weights: very many medians of rows out of a finite universe.
#
# The hypothesis is about all rows that there can be, and so a question must be known on all of
# them, not on the sample alone. A responder cannot find that in a table of arbitrary rows. So its
# table has two parts: the first columns are the elements of the universe, which are public, and the
# others are the rows. `Labelled` is a world of that form; any analyst whose questions are functions
# of a row can ask it. Without a universe, and for means (which need a universe of blocks), it
# refuses.


_TAIL = 0.05


class Labelled:
    """Rows that are numbers of elements of a universe: its elements first, then the rows."""

    def __init__(self, labels: NDArray[np.int64], universe: int) -> None:
        self.labels, self.universe = labels, universe
        self.holdout = np.concatenate([np.arange(universe), labels])

    @property
    def rows(self) -> int:
        """How many rows there are, without the universe's elements."""
        return int(self.labels.size)


class _Placed(Rows):
    """The rows as a source whose only question is which element a row is."""

    def __init__(self, labels: NDArray[np.int64]) -> None:
        super().__init__(labels.size)
        self._labels = labels

    def values(self, _: object, /) -> NDArray[Any]:
        return self._labels


class _WeightsResponder(Responder):
    """Answers from a hypothesis about the universe, as long as the rows confirm it."""

    certified: ClassVar[bool] = True

    def __init__(self, terms: Terms, world: Labelled | None = None) -> None:
        if world is None:
            hint = f"Rows out of a finite universe: {type(self).__name__}(terms, Labelled(…))."
            raise InvalidInput("universe", None, f"known for {self.name}", hint)
        self._universe = world.universe
        self.protocol = self._open(terms, world)

    @abstractmethod
    def _open(self, terms: Terms, world: Labelled) -> Weights | ExactWeighing:
        """The protocol on a plan that fits the rows."""

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        hint = "Ask for medians, or ask another responder."
        raise InvalidInput("question", "means", f"medians for {self.name}", hint)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        scale = grid(0, points - 1, scale="integer")
        return as_replies([self._told(line[: self._universe], scale) for line in values])

    def _told(self, elements: NDArray[Any], scale: Grid) -> Told:
        try:
            answer = self.protocol.ask_indices(elements.astype(np.int64), scale)
        except Exhausted:
            return NOTHING
        return of_answer(answer, mean=False)


class HoldfastWeights(_WeightsResponder):
    """The hypothesis is checked by looks."""

    name: ClassVar[str] = "holdfast-weights"

    def _open(self, terms: Terms, world: Labelled) -> Weights:
        plan = _looked(terms.queries, world.universe, _tail(terms), terms.failure, world.rows)
        universe = Universe.points(np.arange(world.universe))
        return Weights(Budget(plan), _Placed(world.labels), universe, terms.entropy)


class HoldfastExactWeights(_WeightsResponder):
    """The hypothesis is checked by exact counts. Rows beyond the plan's are not used."""

    name: ClassVar[str] = "holdfast-exact-weights"

    def _open(self, terms: Terms, world: Labelled) -> ExactWeighing:
        plan = _counted(terms.queries, world.universe, _tail(terms), terms.failure)
        if plan.blocks > world.rows:
            remedy = "Ask fewer questions, accept a wider claim, or bring more rows."
            given = f"there are {world.rows:,}"
            raise Infeasible("Not enough rows", f"{plan.blocks:,} rows", given, remedy)
        universe = Universe.points(np.arange(world.universe))
        return ExactWeighing(plan, _Placed(world.labels[: plan.blocks]), universe)


def _tail(terms: Terms) -> float:
    return _TAIL if terms.half_width is None else tail_of(terms.half_width)


@lru_cache(maxsize=16)
def _looked(queries: int, universe: int, tail: float, failure: float, rows: int) -> KeptPlan:
    request = WeightedEstimates(queries, universe, tail)
    return KeptPlan.of(joint_plan(request, confidence=confidence_of(failure), blocks=rows))


@lru_cache(maxsize=16)
def _counted(queries: int, universe: int, tail: float, failure: float) -> ExactWeights:
    return exact_weights(queries, universe, tail, confidence_of(failure))


# Responders that use rows up: fresh blocks for every question, or for every round.


class HoldfastSplit(BlockResponder[Split]):
    """Fresh blocks for every question, and the rank of their values that keeps the tails.

    A mean is asked of one block: at tails of β/2k its own mean is the answer.
    """

    name: ClassVar[str] = "holdfast-split"

    @classmethod
    def mean_tail_of(cls, terms: Terms) -> float:
        return terms.failure / (2 * terms.queries) * (1 - 1e-9)

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> SplitPlan:
        del blocks
        return split_plan(asked.queries, asked.tail, asked.tail, asked.confidence)

    def open(self, plan: SplitPlan, source: Rows, entropy: Entropy) -> Split:
        del entropy  # nothing is drawn
        return Split(plan, source)

    def tell(self, desk: Desk[Split], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        del guess, grid  # values are answers as they are
        return of_answer(desk.protocol.ask(line, shape=desk.shape), mean=desk.mean)


class HoldfastRounds(BlockResponder[EffectiveRounds]):
    """Estimation sets that answer exactly, each until an answer of it is refused."""

    name: ClassVar[str] = "holdfast-rounds"
    mean_tail: ClassVar[float] = 0.01

    @classmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> RoundsPlan:
        del blocks
        rounds, tails = min(Order.rounds, asked.queries), (asked.tail, asked.wide_tail)
        return rounds_plan(asked.queries, rounds, *tails, asked.confidence, exact=True)

    def open(self, plan: RoundsPlan, source: Rows, entropy: Entropy) -> EffectiveRounds:
        return EffectiveRounds.of(plan, source, entropy)

    def tell(
        self, desk: Desk[EffectiveRounds], line: NDArray[Any], guess: float, grid: Grid
    ) -> Told:
        del guess, grid
        return of_answer(desk.protocol.ask(line, shape=desk.shape), mean=desk.mean)


# Every protocol of Holdfast as a responder: the real plan and the real protocol, on rows.
#
# base      plans that fit the rows
# rows      rows as a source of blocks
# claims    what an answer claims of a mean or a median
# mean      mean, by the direct search and by the median of block means
# searches  estimate, simple, amplified, interval, near
# guesses   verify, correct
# exact     exact answers, verdicts and corrections
# fresh     split, rounds
# weights   multiplicative weights, by looks and exact, for rows out of a finite universe
#
# A plan is made at the first question, for `Terms.queries` questions of its kind. If the rows do
# not carry it, `Infeasible` says what would. `HOLDFAST` has them all by name.
#
# Their class says `certified`: claims are the protocol's promise. An answer drawn from a seed says
# that it is not, for its coins could be foreseen: a promise, but no certificate.


HOLDFAST: dict[str, Callable[[Terms], Responder]] = {
    each.name: each
    for each in (
        HoldfastMean,
        HoldfastMedianMean,
        HoldfastEstimate,
        HoldfastInterval,
        HoldfastVerify,
        HoldfastCorrect,
        HoldfastNear,
        HoldfastSimple,
        HoldfastAmplified,
        HoldfastExact,
        HoldfastExactVerify,
        HoldfastExactCorrect,
        HoldfastRounds,
        HoldfastSplit,
        HoldfastWeights,
        HoldfastExactWeights,
    )
}
