"""What is attacked: every protocol of Holdfast as a responder, the real plan and the real protocol.

All that the lab takes from Holdfast's planning and protocols goes through this module, so that a
change of theirs is met in one place. Every answer comes from the real protocol; nothing is computed
a second time here. Medians are asked as they are, every row a block. A mean is asked as the median
of the means of blocks, and its claim is what Chernoff's bound makes of the answer's tails
(`BoundedMean`). The first question decides which of the two the plan is for, and on what grid: rows
that have answered the one are not fresh for the other.

`Responder.on(holdout)` asks a holdout that is there. Those that experiments name, in `HOLDFAST`,
are `Responder(terms)` as well: it makes a plan at the first question, for `Terms.queries` questions
of its kind; if the rows do not carry it, `Infeasible` says what would. A new protocol is one class:
a plan, the verb that it is asked by, and what its answer claims.

`certified` says that the claims are the protocol's promise. With a seed its coins are foreseeable,
and so the answers of a seeded session carry no certificate; the promise is the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, Infeasible, InvalidInput
from holdfast.grids import Grid, IntegerGrid
from holdfast.grids import grid as make_grid
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.joint import joint_plan
from holdfast.planning.plan import Plan, split_blocks
from holdfast.planning.solve import plan, steepest
from holdfast.protocols.answers import Answer, Claim, Verdict
from holdfast.protocols.guesses import Guesses
from holdfast.protocols.means import DirectMeans, DirectPart, MedianMeans
from holdfast.protocols.memory import MemoryHoldout
from holdfast.protocols.plans import JointPlan, Part, ProtocolMix, Request, SetPlan
from holdfast.protocols.rounds import RoundsPlan
from holdfast.protocols.searches import AmplifiedEstimates, Estimates, Intervals, SimpleEstimates
from holdfast.protocols.shapes import BoundedMean
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds
from holdfast.protocols.split import SplitPlan, split_plan
from holdfast.protocols.weights import WeightedEstimates
from holdfast.randomness import Entropy
from holdfast.theory.means import best_direct, narrowest_direct
from holdfast_lab.attacks.conversation import (
    FloatArray,
    MeanResponder,
    Replies,
    Responder,
    Terms,
    known_guesses,
    looks_of,
)

# Holdfast's own, for the rest of the lab.
__all__ = [
    "AmplifiedEstimates",
    "Answer",
    "DirectMeans",
    "Estimates",
    "Guesses",
    "Intervals",
    "JointPlan",
    "MedianMeans",
    "MemoryHoldout",
    "Plan",
    "Request",
    "RoundsPlan",
    "SimpleEstimates",
    "SplitPlan",
    "Verdict",
    "WeightedEstimates",
    "best_direct",
    "joint_plan",
    "plan",
    "split_blocks",
    "split_plan",
    "steepest",
]

# Plans that are kept in plans.json: some take many seconds to find.
#
# A kept plan proves itself again when it is read, like any plan. One that is missing, or that this
# version no longer proves, is made anew. `write_plans` makes all of them again. Every run has a
# holdout of its own, which asks its plan for a proof: here it is remembered.


PLANS = Path(__file__).with_name("plans.json")

Wanted = tuple[tuple[Request, ...], float]


@dataclass(frozen=True)
class KeptPlan(JointPlan):
    """A joint plan that remembers whether its numbers prove themselves; they never change."""

    @classmethod
    def of(cls, plan: JointPlan) -> KeptPlan:
        """The same plan."""
        return cls(**{field.name: getattr(plan, field.name) for field in fields(JointPlan)})

    def verify(self) -> bool:
        return _proved(self)


@lru_cache(maxsize=64)
def _proved(plan: KeptPlan) -> bool:
    return JointPlan.verify(plan)


@lru_cache(maxsize=64)
def kept_plan(*requests: Request, confidence: float) -> KeptPlan:
    """The plan for these requests, from the file if it is there and proves itself."""
    try:
        data = json.loads(PLANS.read_text("utf-8"))[repr((requests, confidence))]
        plan = JointPlan.from_dict(cast(Mapping[str, object], data))
    except (OSError, ValueError, KeyError, TypeError, InvalidInput):
        plan = joint_plan(*requests, confidence=confidence)
    return KeptPlan.of(plan)


def write_plans(wanted: Iterable[Wanted], path: Path = PLANS) -> None:
    """Make the plans for these requests and confidences again, and keep them."""
    made = {repr(each): joint_plan(*each[0], confidence=each[1]).to_dict() for each in wanted}
    path.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


# What an answer claims of a mean or of a median, and nothing more than it certifies.


Told = tuple[float, float, float]
"""A value, and the two ends of what is claimed of it."""

NOTHING: Told = (math.nan, -math.inf, math.inf)
_MEAN = BoundedMean()


def _rank_claim(tail_low: float, tail_high: float) -> tuple[float, float]:
    """The open interval of ranks (tail_low, 1 − tail_high) as the closed one inside of it."""
    return math.nextafter(tail_low, 1.0), math.nextafter(1 - tail_high, 0.0)


def _mean_claim(
    first: float | None, last: float | None, units: int, tail_low: float, tail_high: float
) -> tuple[float, float]:
    """Bounds on a mean, where blocks reach `last` from below and `first` from above with tails.

    >>> [round(end, 3) for end in _mean_claim(0.5, 0.5, units=100, tail_low=0.01, tail_high=0.01)]
    [0.352, 0.648]
    """
    low, high = _MEAN.bar((first, last), units, tail_low, tail_high)
    assert low is not None  # the range [0, 1] bounds what an edge does not
    assert high is not None
    return low, high


def _of_answer(answer: Answer, *, mean: bool) -> Told:
    """The claim of an answer: its bar for a mean, its open interval of ranks for a median."""
    if not mean:
        return (answer.value, *_rank_claim(answer.tail_low, answer.tail_high))
    low = -math.inf if answer.low is None else answer.low
    return answer.value, low, math.inf if answer.high is None else answer.high


def _answered(tell: Callable[..., Told], *asked: Iterable[Any]) -> Replies:
    """Replies in the order of their questions; nothing where a budget is exhausted."""
    told = []
    for each in zip(*asked, strict=True):
        try:
            told.append(tell(*each))
        except Exhausted:
            told.append(NOTHING)
    return Replies(*np.array(told, np.float64).reshape(-1, 3).T.copy())


# The rows as a source of blocks: a question is the line of its values, one for each row.


class Rows:
    """The rows as a source of blocks. A question is its line of values, one for each row.

    A block's value is the mean over its rows: with one row a block, the row's own value.

    >>> source = Rows(blocks=2, units=2)
    >>> line = np.array([0.0, 1.0, 1.0, 1.0, 0.5])
    >>> source.values(line), source.part(1, 2).sums(line)
    (array([0.5, 1. ]), array([131072]))
    """

    def __init__(self, blocks: int, units: int = 1, first: int = 0) -> None:
        self.blocks, self.units, self._first = blocks, units, first

    def values(self, line: NDArray[Any], /) -> NDArray[Any]:
        table = self._table(line)
        if self.units == 1:
            return table[:, 0]
        return np.asarray(table.mean(axis=1, dtype=np.float64))

    def sums(
        self, line: NDArray[Any], /, where: object = None, bounds: Bounds = UNIT
    ) -> NDArray[np.int64]:
        terms = self.terms(line, where, bounds)
        if self.units == 1:
            return terms
        return np.asarray(terms.reshape(self.blocks, self.units).sum(axis=1))

    def terms(
        self, line: NDArray[Any], /, where: object = None, bounds: Bounds = UNIT
    ) -> NDArray[np.int64]:
        assert bounds == UNIT
        if where is not None:
            raise InvalidInput("where", where, "left out: a line has a value for every row")
        row = self._table(line).reshape(-1)
        if row.dtype == np.bool_:
            return row.astype(np.int64) * WEIGHT_SCALE
        return np.floor(row * float(WEIGHT_SCALE) + 0.5).astype(np.int64)

    def part(self, start: int, stop: int, /) -> Rows:
        return Rows(stop - start, self.units, self._first + start * self.units)

    def _table(self, line: NDArray[Any]) -> NDArray[Any]:
        end = self._first + self.blocks * self.units
        return line[self._first : end].reshape(self.blocks, self.units)


class GivenBlocks(Rows):
    """So many blocks of so many units. An estimator is the list of its values on them.

    A function for `sums` is the list of the blocks' sums, whole numbers. It has no terms: only a
    simulation can ask like that, which has drawn the values from their law, and spares itself rows.

    >>> source = GivenBlocks(blocks=3, units=10)
    >>> source.values([0.5, 0.25, 1.0]), source.sums(np.array([5, 0, 10])).tolist()
    ([0.5, 0.25, 1.0], [327680, 0, 655360])
    """

    def values(self, line: Any, /) -> Any:
        return line

    def sums(self, line: Any, /, where: object = None, bounds: Bounds = UNIT) -> NDArray[np.int64]:
        assert where is None
        assert bounds == UNIT
        return np.asarray(line, np.int64) * WEIGHT_SCALE

    def terms(self, line: Any, /, where: object = None, bounds: Bounds = UNIT) -> NDArray[np.int64]:
        raise NotImplementedError


SPARE = 20  # looks beyond the planned questions: one of them may have a million points
_TAILS = (0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-6)
_REMEDY = "Ask fewer questions, accept a wider claim or a larger failure, or bring more rows."


@dataclass(frozen=True)
class Asked:
    """What a plan is wanted for: all that it may depend on."""

    queries: int
    points: int
    tail: float
    failure: float

    @property
    def confidence(self) -> float:
        """1 − failure, as it is written."""
        return confidence_of(self.failure)

    @property
    def wide_tail(self) -> float:
        """Half-way to 1/2: guesses with both tails above it are confirmed."""
        return (1 + 2 * self.tail) / 4

    @property
    def refusals(self) -> int:
        """The refusals that are planned for, as `holdfast plan` does."""
        return min(ProtocolMix.refusals, self.queries)

    @property
    def questions(self) -> int:
        """Questions of the planned grid whose looks are those planned, and the spare ones."""
        return self.queries + math.ceil(SPARE / looks_of(self.points))


def confidence_of(failure: float) -> float:
    """1 − failure, as it is written.

    >>> confidence_of(0.05), confidence_of(0.001)
    (0.95, 0.999)
    """
    return float(1 - Fraction(repr(float(failure))))


class HoldoutResponder(Responder):
    """Asks a holdout in memory, which there is from the first question on."""

    certified = True

    _opened: MemoryHoldout | None = None
    mean = False  # whether questions are means

    @classmethod
    def on(cls, holdout: MemoryHoldout) -> Self:
        """Of a holdout that is there; several may share it."""
        made = cls.__new__(cls)
        made._opened = holdout
        return made

    @property
    def holdout(self) -> MemoryHoldout:
        """The plan, the blocks, and what has been charged."""
        assert self._opened is not None
        return self._opened

    def spent(self) -> object:
        return self.holdout.spent, self.holdout.buys()


class BlockResponder(HoldoutResponder):
    """Answers by blocks. Exhausted, it refuses: every further value is NaN.

    Means are planned for `mean_tail`: the claim's width hardly depends on it, over many powers of
    ten. Medians are promised a rank within `Terms.half_width` of 1/2; without one, the largest of
    `tails` is taken for which the rows are enough.
    """

    mean_tail: ClassVar[float] = 0.01
    tails: ClassVar[tuple[float, ...]] = _TAILS

    grid: Grid  # of means

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    @property
    def units(self) -> int:
        """Rows a block."""
        return self.holdout.source.units

    @classmethod
    def requests(cls, asked: Asked) -> tuple[Request, ...]:
        """What is planned for."""
        return ()

    def tell(self, line: NDArray[Any], guess: float, grid: Grid) -> Told:
        """The protocol's answer, and what it certifies; `Exhausted` is for the caller."""
        return _of_answer(self.holdout.ask(line, grid, shape=self.shape), mean=self.mean)

    @property
    def shape(self) -> BoundedMean | None:
        """What is known of a block's value: of a mean, that its terms are in [0, 1]."""
        return BoundedMean() if self.mean else None

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        if self._opened is None:
            terms, points = self._terms, _points_for(self._terms.rows)
            asked = Asked(terms.queries, points, self.mean_tail, terms.failure)
            plan = _kept(type(self), asked, None)
            self.fewest = blocks = plan.blocks
            self.grid = make_grid(0, 1, points=points)
            rows = Rows(blocks, _units_for(terms, asked, blocks))
            self._opened, self.mean = MemoryHoldout(plan, rows, terms.entropy), True
        self._check(mean=True)
        return self._ask(values, known_guesses(guesses, len(values)), self.grid)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        return self.guessed(values, points, (points - 1) // 2)

    def guessed(self, values: NDArray[Any], points: int, guess: float) -> Replies:
        """Medians of which this is guessed."""
        if self._opened is None:
            self._begin_medians(points)
        self._check(mean=False)
        return self._ask(values, np.full(len(values), float(guess)), IntegerGrid(0, points - 1))

    def _ask(self, values: NDArray[Any], guesses: FloatArray, grid: Grid) -> Replies:
        return _answered(lambda line, guess: self.tell(line, guess, grid), values, guesses.tolist())

    def _confirmed(self, verdict: Verdict) -> Told:
        """Confirmed, a guess is a value whose tails are both above `tail_low`; else it is none."""
        if verdict.refused is not False:
            return NOTHING
        guess, tails = verdict.guess, (verdict.tail_low, verdict.tail_low)
        if self.mean:
            return (guess, *_mean_claim(guess, guess, self.units, *tails))
        return (guess, *_rank_claim(*tails))

    def _begin_medians(self, points: int) -> None:
        terms = self._terms
        tails = self.tails if terms.half_width is None else (tail_of(terms.half_width),)
        fewest: list[int] = []

        def fits(tail: float) -> bool:
            asked = Asked(terms.queries, points, tail, terms.failure)
            fewest.append(_kept(type(self), asked, None).blocks)
            return fewest[-1] <= terms.rows

        low, high = 0, len(tails)  # the tails fall: the first that fits is wanted
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(tails[middle]) else (middle + 1, high)
        if low == len(tails):
            _enough(min(fewest), terms.rows)
        asked = Asked(terms.queries, points, tails[low], terms.failure)
        self.fewest = _kept(type(self), asked, None).blocks
        plan = _kept(type(self), asked, terms.rows)
        self._opened = MemoryHoldout(plan, Rows(plan.blocks), terms.entropy)

    def _check(self, *, mean: bool) -> None:
        if self.mean != mean:
            kinds = {True: "means", False: "medians"}
            hint = "Its rows have answered the one already. Use a new responder, with new rows."
            allowed = f"about {kinds[self.mean]}, as the first"
            raise InvalidInput("question", kinds[mean], allowed, hint)


def _made(kind: Any, asked: Asked, blocks: int | None) -> KeptPlan:
    plan = joint_plan(*kind.requests(asked), confidence=asked.confidence, blocks=blocks)
    return KeptPlan.of(plan)


# A plan, made once; every new holdout asks it for its proof, which is remembered too.
_kept: Callable[..., KeptPlan] = lru_cache(maxsize=256)(_made)


def _points_for(rows: int) -> int:
    """Points of the grid for means: cells no wider than 1/√rows, about a block's own noise."""
    return int(max(16, 2 ** math.ceil(math.log2(math.sqrt(rows)))))


def tail_of(half_width: float) -> float:
    """The tail of ranks this far from 1/2, as decimals: 0.01 for 0.49."""
    tail = float(Fraction(1, 2) - Fraction(repr(float(half_width))))
    if not 0 < tail < 0.5:
        raise InvalidInput("half_width", half_width, "between 0 and 1/2 for ranks")
    return tail


def _enough(blocks: int, rows: int) -> None:
    if rows < blocks:
        raise Infeasible("Not enough rows", f"{blocks:,} rows", f"there are {rows:,}", _REMEDY)


def _units_for(terms: Terms, asked: Asked, blocks: int) -> int:
    """Rows a block, if they are enough: for one, and for claims as narrow as wanted about 1/2."""
    _enough(blocks, terms.rows)
    units, shape, cell = terms.rows // blocks, BoundedMean(), 0.5 / (asked.points - 1)
    found = shape.error(units, asked.tail) + cell
    if terms.half_width is not None and found > terms.half_width:
        room = terms.half_width - cell
        rows = f"{blocks * shape.units(room, asked.tail):,} rows" if room > 0 else "a finer grid"
        given = f"{terms.rows:,} give a half-width of {found:.3g}"
        raise Infeasible("Not enough rows", rows, given, _REMEDY)
    return units


# Searches with looks: estimates (simple, amplified, of fresh blocks) and intervals.


class HoldfastEstimate(BlockResponder):
    """A search for every question: the median, or the median of the means of blocks."""

    name = "holdfast-estimate"
    mean_tail = 1e-10

    @classmethod
    def requests(cls, asked: Asked) -> tuple[Request, ...]:
        return (Estimates(asked.questions, asked.points, asked.tail, asked.tail),)


class HoldfastInterval(BlockResponder):
    """Two searches a question, which enclose the median on fresh data."""

    name = "holdfast-interval"

    def intervals(self, values: NDArray[Any], points: int) -> Replies:
        def ends(line: NDArray[Any]) -> Told:
            answer = self.holdout.interval(line, IntegerGrid(0, points - 1))
            # An end that is no bound is an end of the grid.
            first = 0 if answer.low is None else int(answer.low) + 1
            return answer.value, first, points - 1 if answer.high is None else int(answer.high)

        return _answered(ends, values)


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


@lru_cache(maxsize=64)
def rows_for_means(queries: int, half_width: float) -> float:
    """The rows with which bars for so many means are this narrow, at confidence 0.95."""
    return float(best_direct(queries, half_width, 0.95, exact=False).blocks)


class HoldfastMean(HoldoutResponder, MeanResponder):
    """The protocol `mean` with the narrowest bars that the rows allow.

    Medians are searched for by means, as `MeanResponder` does; the plan then covers all of those.
    """

    name = "holdfast-mean"

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        return self.means_on(values)

    def means_on(self, values: NDArray[Any], **how: Any) -> Replies:
        """Means, on a grid of another fineness."""
        if self._opened is None:
            self._opened = self._planned(self._terms.queries)
        ask = self.holdout.mean
        return _answered(lambda line: _of_answer(ask(line, **how), mean=True), values)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        if self._opened is None:
            self._opened = self._planned(self._terms.queries * looks_of(points) + SPARE)
        return super().medians(values, points)

    def _planned(self, queries: int) -> MemoryHoldout:
        terms = self._terms
        plan = narrowest_means(queries, terms.rows, terms.failure)
        part = plan.part("mean")
        assert isinstance(part, DirectPart)
        if terms.half_width is not None and part.half_width > terms.half_width:
            confidence = confidence_of(terms.failure)
            rows = best_direct(queries, terms.half_width, confidence, exact=False).blocks
            given = f"{terms.rows:,} give a half-width of {part.half_width:.3g}"
            raise Infeasible("Not enough rows", f"{rows:,} rows", given, _REMEDY)
        return MemoryHoldout(plan, Rows(terms.rows), terms.entropy)


class HoldfastMedianMean(HoldfastMean):
    """The protocol `mean` the other way: the stable median of the means of few large blocks."""

    name = "holdfast-median-mean"

    def _planned(self, queries: int) -> MemoryHoldout:
        terms = self._terms
        points, tail = _points_for(terms.rows), HoldfastEstimate.mean_tail
        asked = Asked(queries, points, tail, terms.failure)
        plan = _median_plan(asked)
        rows = Rows(plan.blocks, _units_for(terms, asked, plan.blocks))
        return MemoryHoldout(plan, rows, terms.entropy)


@lru_cache(maxsize=64)
def _median_plan(asked: Asked) -> KeptPlan:
    request = MedianMeans(asked.queries, asked.points, asked.tail)
    return KeptPlan.of(joint_plan(request, confidence=asked.confidence))


# Guesses: verify, and verify and correct.


class HoldfastVerify(BlockResponder):
    """A guess is confirmed, and then it is the value; or refused, and then there is none.

    A refusal counts, and after the last one all is refused. Without a guess, the middle is guessed.
    """

    name = "holdfast-verify"

    @property
    def part(self) -> Any:
        """What guesses are asked of."""
        parts: tuple[Part, ...] = self.holdout.plan.parts
        return next(each for each in parts if each.most_refusals)

    @property
    def refusals_left(self) -> int:
        """How many more guesses may be refused; every verdict says so."""
        return self.holdout.account.left_of(self.part).refusals or 0

    def tell(self, line: NDArray[Any], guess: float, grid: Grid) -> Told:
        return self._confirmed(self.holdout.verify(line, guess))

    def verdicts(self, values: NDArray[Any]) -> Replies:
        """Is the indicator of an event 1? Confirmed, its mass is above the lower tail."""
        part = self.part
        claim: Claim = "equals" if part.sides == 2 else "at least"

        def said(line: NDArray[Any]) -> Told:
            refused = self.holdout.verify(line, 1, claim=claim).refused
            if refused is None:
                return NOTHING
            if refused:
                return 0.0, 0.0, math.nextafter(part.tail_high, 0.0)
            return 1.0, math.nextafter(part.tail_low, 1.0), 1.0

        return _answered(said, values)


class HoldfastCorrect(HoldfastVerify):
    """A guess is confirmed, or corrected by a search: both share one budget on the same blocks."""

    name = "holdfast-correct"
    tails: ClassVar[tuple[float, ...]] = (0.05, 0.01)  # finding a plan takes seconds

    @classmethod
    def requests(cls, asked: Asked) -> tuple[Request, ...]:
        guesses = Guesses(asked.queries, asked.refusals, asked.tail, asked.wide_tail)
        return guesses, Estimates(asked.refusals, asked.points, asked.tail, asked.tail)

    def tell(self, line: NDArray[Any], guess: float, grid: Grid) -> Told:
        told = self.holdout.correct(line, guess, grid, shape=self.shape)
        if told.correction is not None:
            return _of_answer(told.correction, mean=self.mean)
        return self._confirmed(told.verdict)


# Multiplicative weights: very many medians of rows out of a finite universe.
#
# The hypothesis is about all rows that there can be, and so a question must be known on all of
# them, not on the sample alone. A responder cannot find that in a table of arbitrary rows. So its
# table has two parts: the first columns are the elements of the universe, which are public, and the
# others are the rows. `Labelled` is a world of that form.


class Labelled:
    """Rows that are numbers of elements of a universe: its elements first, then the rows."""

    def __init__(self, labels: NDArray[np.int64], universe: int) -> None:
        self.labels, self.universe = labels, universe
        self.holdout = np.concatenate([np.arange(universe), labels])


class _Placed(Rows):
    """The rows as a source whose only question is which element a row is."""

    def __init__(self, labels: NDArray[np.int64]) -> None:
        super().__init__(labels.size)
        self._labels = labels

    def values(self, _: object, /) -> NDArray[Any]:
        return self._labels


class HoldfastWeights(HoldoutResponder):
    """Answers from a hypothesis about the universe, as long as the rows confirm it by looks."""

    name = "holdfast-weights"

    @staticmethod
    def placed(plan: SetPlan, world: Labelled, entropy: Entropy) -> MemoryHoldout:
        """The rows of the world, each at its place in the universe."""
        rows, universe = _Placed(world.labels[: plan.blocks]), _universe(world.universe)
        return MemoryHoldout(plan, rows, entropy, universe=universe)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        ask, grid = self.holdout.ask, IntegerGrid(0, points - 1)
        elements = values[:, : self.holdout.plan.universes[0]]
        return _answered(lambda line: _of_answer(ask(line, grid), mean=False), elements)


@lru_cache(maxsize=4)
def _universe(size: int) -> Universe:
    return Universe.points(np.arange(size))


class HoldfastRounds(BlockResponder):
    """Estimation sets that answer exactly, each until an answer of it is refused."""

    name = "holdfast-rounds"

    @property
    def rounds_left(self) -> int:
        """How many sets are not used up."""
        return int(self.holdout.left)


HOLDFAST: dict[str, Callable[[Terms], Responder]] = {
    each.name: each
    for each in (HoldfastMean, HoldfastMedianMean, HoldfastEstimate, HoldfastCorrect)
}
