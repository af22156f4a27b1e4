"""What Holdfast's responders have in common: plans that fit the rows, and one that is asked.

Every answer comes from the real protocol on a real plan; nothing is computed a second time here.
Medians are asked as they are, every row a block. A mean is asked as the median of the means of
blocks, and its claim is what Chernoff's bound makes of the answer's tails (`BoundedMean`). The
first question decides which of the two the plan is for, and on what grid: rows that have answered
the one are not fresh for the other.

`certified` says that the claims are the protocol's promise. With a seed its coins are foreseeable,
and so the answers of a seeded session carry no certificate; the promise is the same.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, Infeasible, InvalidInput
from holdfast.grids import Grid
from holdfast.grids import grid as make_grid
from holdfast.planning.joint import JointPlan
from holdfast.planning.shapes import BoundedMean
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.guesses import Corrected
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds
from holdfast.randomness import Entropy
from holdfast_lab.attacks.conversation import FloatArray, Replies, Responder, Terms
from holdfast_lab.protocol_attacks.base import KeptPlan

__all__ = [
    "NOTHING",
    "SPARE",
    "Asked",
    "BlockResponder",
    "Desk",
    "Rows",
    "Told",
    "as_replies",
    "confidence_of",
    "mean_claim",
    "of_answer",
    "of_corrected",
    "of_verdict",
    "points_for",
    "rank_claim",
    "tail_of",
    "units_for",
]


# What an answer claims of a mean or of a median, and nothing more than it certifies.


Told = tuple[float, float, float]
"""A value, and the two ends of what is claimed of it."""

NOTHING: Told = (math.nan, -math.inf, math.inf)
_MEAN = BoundedMean()


def rank_claim(tail_low: float, tail_high: float) -> tuple[float, float]:
    """The open interval of ranks (tail_low, 1 − tail_high) as the closed one inside of it."""
    return math.nextafter(tail_low, 1.0), math.nextafter(1 - tail_high, 0.0)


def mean_claim(
    first: float | None, last: float | None, units: int, tail_low: float, tail_high: float
) -> tuple[float, float]:
    """Bounds on a mean, where blocks reach `last` from below and `first` from above with tails.

    >>> [round(end, 3) for end in mean_claim(0.5, 0.5, units=100, tail_low=0.01, tail_high=0.01)]
    [0.352, 0.648]
    """
    low, high = _MEAN.bar((first, last), units, tail_low, tail_high)
    assert low is not None  # the range [0, 1] bounds what an edge does not
    assert high is not None
    return low, high


def of_answer(answer: Answer, *, mean: bool) -> Told:
    """The claim of an answer: its bar for a mean, its open interval of ranks for a median."""
    if not mean:
        return (answer.value, *rank_claim(answer.tail_low, answer.tail_high))
    low = -math.inf if answer.low is None else answer.low
    return answer.value, low, math.inf if answer.high is None else answer.high


def of_verdict(verdict: Verdict, units: int, *, mean: bool) -> Told:
    """Confirmed, a guess is a value whose tails are both above `tail_low`; else there is none."""
    if verdict.refused is not False:
        return NOTHING
    guess, tails = verdict.guess, (verdict.tail_low, verdict.tail_low)
    if mean:
        return (guess, *mean_claim(guess, guess, units, *tails))
    return (guess, *rank_claim(*tails))


def of_corrected(told: Corrected, units: int, *, mean: bool) -> Told:
    """The correction's claim, or that of the confirmed guess; nothing if exhausted."""
    if told.correction is not None:
        return of_answer(told.correction, mean=mean)
    return of_verdict(told.verdict, units, mean=mean)


def as_replies(told: list[Told]) -> Replies:
    """Replies in the order of their questions."""
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
        assert bounds == UNIT
        if where is not None:
            raise InvalidInput("where", where, "left out: a line has a value for every row")
        table = self._table(line)
        if table.dtype == np.bool_:
            parts = table.astype(np.int64) * WEIGHT_SCALE
        else:
            parts = np.floor(table * float(WEIGHT_SCALE) + 0.5).astype(np.int64)
        return parts[:, 0] if self.units == 1 else np.asarray(parts.sum(axis=1))

    def part(self, start: int, stop: int, /) -> Rows:
        return Rows(stop - start, self.units, self._first + start * self.units)

    def _table(self, line: NDArray[Any]) -> NDArray[Any]:
        end = self._first + self.blocks * self.units
        return line[self._first : end].reshape(self.blocks, self.units)


SPARE = 20  # looks beyond the planned questions: one of them may have a million points
_TAILS = (0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-6)
_REMEDY = "Ask fewer questions, accept a wider claim or a larger failure, or bring more rows."

Protocol = TypeVar("Protocol")


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


def confidence_of(failure: float) -> float:
    """1 − failure, as it is written.

    >>> confidence_of(0.05), confidence_of(0.001)
    (0.95, 0.999)
    """
    return float(1 - Fraction(repr(float(failure))))


@dataclass(frozen=True)
class Desk(Generic[Protocol]):
    """A protocol put together with its rows, for questions of one kind."""

    kind: Literal["means", "medians"]
    plan: Any
    protocol: Protocol
    grid: Grid
    units: int

    @property
    def mean(self) -> bool:
        """Whether questions are means."""
        return self.kind == "means"

    @property
    def shape(self) -> BoundedMean | None:
        """What is known of a block's value: of a mean, that its terms are in [0, 1]."""
        return BoundedMean() if self.mean else None


class BlockResponder(Responder, Generic[Protocol]):
    """Answers by blocks. Exhausted, it refuses: every further value is NaN.

    Means are planned for `mean_tail`: the claim's width hardly depends on it, over many powers of
    ten. Medians are promised a rank within `Terms.half_width` of 1/2; without one, the largest of
    `tails` is taken for which the rows are enough.
    """

    certified: ClassVar[bool] = True
    mean_tail: ClassVar[float]
    tails: ClassVar[tuple[float, ...]] = _TAILS

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.desk: Desk[Protocol] | None = None  # from the first question on
        self.fewest: int | None = None  # blocks with which the same could be promised

    @classmethod
    @abstractmethod
    def planned(cls, asked: Asked, blocks: int | None = None) -> Any:
        """The certified plan with the fewest blocks; with so many, if the protocol can use more."""

    @classmethod
    def blocks_of(cls, plan: Any) -> int:
        """How many blocks the plan needs."""
        return int(plan.blocks)

    @abstractmethod
    def open(self, plan: Any, source: Rows, entropy: Entropy) -> Protocol:
        """The protocol, ready to be asked."""

    @abstractmethod
    def tell(self, desk: Desk[Protocol], line: NDArray[Any], guess: float, grid: Grid) -> Told:
        """The protocol's answer, and what it certifies; `Exhausted` is for the caller."""

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        if self.desk is None:
            self.desk = self._open_means()
        self._check("means")
        return self._ask(values, _known(guesses, len(values), 0.5), self.desk.grid)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        if self.desk is None:
            self.desk = self._open_medians(points)
        self._check("medians")
        guesses = np.full(len(values), float((points - 1) // 2))
        return self._ask(values, guesses, _whole_grid(points))

    def _ask(self, values: NDArray[Any], guesses: FloatArray, grid: Grid) -> Replies:
        assert self.desk is not None
        told: list[Told] = []
        for line, guess in zip(values, guesses.tolist(), strict=True):
            try:
                told.append(self.tell(self.desk, line, guess, grid))
            except Exhausted:
                told.append(NOTHING)
        return as_replies(told)

    def _open_means(self) -> Desk[Protocol]:
        terms, points = self._terms, points_for(self._terms.rows)
        asked = Asked(terms.queries, points, self.mean_tail_of(terms), terms.failure)
        plan = _kept(type(self), asked, None)
        self.fewest = blocks = self.blocks_of(plan)
        units = units_for(terms, asked, blocks)
        grid = make_grid(0, 1, points=points)
        protocol = self.open(plan, Rows(blocks, units), terms.entropy)
        return Desk("means", plan, protocol, grid, units)

    @classmethod
    def mean_tail_of(cls, terms: Terms) -> float:
        """The tail that means are planned for."""
        del terms
        return cls.mean_tail

    def _open_medians(self, points: int) -> Desk[Protocol]:
        plan = self._medians_plan(points)
        protocol = self.open(plan, Rows(self.blocks_of(plan)), self._terms.entropy)
        return Desk("medians", plan, protocol, _whole_grid(points), 1)

    def _medians_plan(self, points: int) -> Any:
        terms = self._terms
        if terms.half_width is not None:
            tails: tuple[float, ...] = (tail_of(terms.half_width),)
        else:
            tails = self.tails
        fewest: list[int] = []

        def fits(tail: float) -> bool:
            asked = Asked(terms.queries, points, tail, terms.failure)
            fewest.append(self.blocks_of(_kept(type(self), asked, None)))
            return fewest[-1] <= terms.rows

        low, high = 0, len(tails)  # the tails fall: the first that fits is wanted
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(tails[middle]) else (middle + 1, high)
        if low == len(tails):
            _enough(min(fewest), terms.rows)
        asked = Asked(terms.queries, points, tails[low], terms.failure)
        self.fewest = self.blocks_of(_kept(type(self), asked, None))
        return _kept(type(self), asked, terms.rows)

    def _check(self, kind: str) -> None:
        assert self.desk is not None
        if self.desk.kind != kind:
            hint = "Its rows have answered the one already. Use a new responder, with new rows."
            raise InvalidInput("question", kind, f"about {self.desk.kind}, as the first", hint)


@lru_cache(maxsize=256)
def _kept(responder: type[BlockResponder[Any]], asked: Asked, blocks: int | None) -> Any:
    """A plan, made once; every new budget asks it for its proof, which is remembered too."""
    plan = responder.planned(asked, blocks)
    return KeptPlan.of(plan) if isinstance(plan, JointPlan) else plan


def points_for(rows: int) -> int:
    """Points of the grid for means: cells no wider than 1/√rows, about a block's own noise."""
    return int(max(16, 2 ** math.ceil(math.log2(math.sqrt(rows)))))


@lru_cache(maxsize=64)
def _whole_grid(points: int) -> Grid:
    return make_grid(0, points - 1, scale="integer")


def _known(guesses: FloatArray | None, count: int, otherwise: float) -> FloatArray:
    if guesses is None:
        return np.full(count, otherwise)
    return np.where(np.isnan(guesses), otherwise, guesses)


def tail_of(half_width: float) -> float:
    """The tail of ranks this far from 1/2, as decimals: 0.01 for 0.49."""
    tail = float(Fraction(1, 2) - Fraction(repr(float(half_width))))
    if not 0 < tail < 0.5:
        raise InvalidInput("half_width", half_width, "between 0 and 1/2 for ranks")
    return tail


def _enough(blocks: int, rows: int) -> None:
    if rows < blocks:
        raise Infeasible("Not enough rows", f"{blocks:,} rows", f"there are {rows:,}", _REMEDY)


def units_for(terms: Terms, asked: Asked, blocks: int) -> int:
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
