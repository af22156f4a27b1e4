"""What a protocol is: a question in, what it needs of budget and data step by step, an answer.

A protocol does no I/O. It is asked as a generator: it yields what it needs and is sent what was
found. Who drives it, a holdout with its ledger and engines or `MemoryHoldout`, decides how.

    Reserve   the worst case of what comes next, charged durably before it is sent on; where it
              does not fit, `Exhausted` is thrown into the generator
    Values    the estimator's value on every block, or on some of them
    Sums      for every block the sum of a term over its units, in whole parts
    Terms     the term of every unit, in whole parts
    Places    the estimator's value on every block that there can be, and which the blocks are
    PastTold  what was told before, under a lock that is held until the answer is recorded; and what
              is public of this one

What it returns, `Drawn`, is all that depends on the data: a few numbers, which the ledger keeps.
Everything else that an answer says follows from question, plan and those numbers (`answer`), and so
does what it cost (`charges`): a recorded answer is computed again whenever it is shown.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid, floats_up
from holdfast.protocols.answers import FAILURES, Answer, Result, search_promise
from holdfast.protocols.plans import Account, Charge, Part, SetPlan, Wanted
from holdfast.protocols.shapes import BoundedMean, KnownDeviation, KnownSd, Shape, shape_from_dict
from holdfast.protocols.source import UNIT, Bounds
from holdfast.randomness import Entropy

__all__ = [
    "BAR_MAX",
    "VERBS",
    "Drawn",
    "Lesson",
    "Paid",
    "PastTold",
    "Places",
    "Protocol",
    "Question",
    "Reserve",
    "Step",
    "Steps",
    "Sums",
    "Terms",
    "Values",
    "Verb",
    "block_floats",
    "checked_claim",
    "checked_grid",
    "checked_shape",
    "index_in",
    "one_per_block",
    "paid",
    "shown",
]

Verb = Literal[
    "ask", "best", "compare", "correct", "gate", "interval", "mean", "score", "scores", "verify"
]
VERBS: tuple[Verb, ...] = get_args(Verb)

BAR_MAX = 1e300  # beyond, a value has no error bar
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Question:
    """One question to one part of the plan, as the ledger keeps it; nothing of it is sealed."""

    verb: Verb
    part: str
    about: Mapping[str, Any]
    """The estimator, for people: its engine and text, its filter (`where`), codes of what it does
    (`failure`) and of what a score is about (`reading`)."""
    grid: Grid | None = None
    guess: float | None = None
    tolerance: float | None = None
    claim: str | None = None
    shape: Shape | None = None
    range: tuple[float, float] | None = None
    """Of a mean's term, which is cut to it; None: nothing can leave [0, 1]."""
    limits: Mapping[str, float] | None = None
    metric: str | None = None
    """Of a score: what it is called."""
    share: bool | None = None
    """True: every term is 0 or 1."""
    error: float | None = None
    """The standard error of the guess, if whoever guesses says so."""
    guesses: tuple[float | None, ...] | None = None
    """Those of a batch."""
    precise: bool | None = None
    threshold: float | None = None
    margin: float | None = None
    candidates: int | None = None
    """How many rules it is about, where there are several: two are compared."""
    classes: int | None = None
    """How many labels the target has, where that is public."""

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The question as plain data."""
        given = {
            "verb": self.verb,
            "part": self.part,
            "estimator": self.about,
            "grid": None if self.grid is None else self.grid.to_json(),
            "guess": self.guess,
            "tolerance": self.tolerance,
            "claim": self.claim,
            "shape": None if self.shape is None else self.shape.to_dict(),
            "range": None if self.range is None else list(self.range),
            "limits": self.limits,
            "metric": self.metric,
            "share": self.share,
            "error": self.error,
            "guesses": None if self.guesses is None else list(self.guesses),
            "precise": self.precise,
            "threshold": self.threshold,
            "margin": self.margin,
            "candidates": self.candidates,
            "classes": self.classes,
        }
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Question:
        """The question that `facts` are of."""
        values = dict(facts)
        values["about"] = values.pop("estimator")
        if "grid" in values:
            values["grid"] = Grid.from_json(values["grid"])
        if "shape" in values:
            values["shape"] = shape_from_dict(values["shape"])
        if "range" in values:
            low, high = values["range"]
            values["range"] = (low, high)
        if "guesses" in values:
            values["guesses"] = tuple(values["guesses"])
        return cls(**values)

    @property
    def points(self) -> Grid:
        """The grid, which whoever made the question has seen to."""
        assert self.grid is not None
        return self.grid

    @property
    def bounds(self) -> Bounds:
        """The range of a mean's term."""
        return self.range or UNIT

    @property
    def filtered(self) -> bool:
        """Whether only some rows are asked about."""
        return "where" in self.about

    @property
    def reading(self) -> str | None:
        """What a score is about, as a code; None for all other questions."""
        return self.about.get("reading")

    @property
    def paired(self) -> bool:
        """Whether it is about the difference of two rules."""
        return self.verb in ("compare", "gate") and self.candidates == 2

    @property
    def failures(self) -> str:
        """What a failure counts as, in words, whether or not anything has failed; empty: lowest."""
        if "failure" in self.about:
            return FAILURES[self.about["failure"]]
        if self.verb == "mean" or self.about["engine"] != "local":
            return ""
        return "a block on which it fails counts as the lowest value"


@dataclass(frozen=True)
class Reserve:
    """The worst case of what comes next."""

    charge: Charge


@dataclass(frozen=True)
class Values:
    """The estimator's value on blocks `first`, …, `last` − 1, or on all."""

    first: int = 0
    last: int | None = None


@dataclass(frozen=True)
class Sums:
    """For every block the sum of the term over its units; `count`: of 1 in place of the term."""

    bounds: Bounds = UNIT
    count: bool = False


@dataclass(frozen=True)
class Terms:
    """The term of every unit, 0 where a filter leaves it out; `count`: of 1 in place of the term.

    `of` is the place of the rule among those that the question is about.
    """

    bounds: Bounds = UNIT
    count: bool = False
    of: int = 0


@dataclass(frozen=True)
class PastTold:
    """What was told of the set before, and what is public of the answer."""


@dataclass(frozen=True)
class Places:
    """The grid index on every block that there can be, and the place among them of every block."""

    grid: Grid


Step = Reserve | Values | Sums | Terms | Places | PastTold
Drawn = dict[str, Any]
Lesson = Mapping[str, Any]
Steps = Generator[Step, Any, Drawn | None]
"""What a question needs, step by step; it returns what was drawn, None if nothing was."""


@dataclass(frozen=True)
class Paid:
    """What an answer has cost, and what was left when it was drawn."""

    charges: tuple[Charge, ...] = ()
    left: float = 0.0
    refusals: int | None = None

    def price(self, part: str | None = None) -> float:
        """What was charged, to one part or in all."""
        price = Fraction(0)
        for each in self.charges:
            if part in (None, each.part):
                price += each.price
        return float(price)


def paid(account: Account, part: Part, charges: Sequence[Charge]) -> Paid:
    """The state of an account in which these charges are settled."""
    refusals = None if part.most_refusals is None else account.left_of(part).refusals
    return Paid(tuple(charges), account.left, refusals)


P = TypeVar("P", bound=Part)


class Protocol(ABC, Generic[P]):
    """One part of a plan, ready to be asked one kind of question."""

    verb: ClassVar[Verb]
    of: ClassVar[tuple[str, ...]]
    """The protocols of the parts that it can be asked of, the first choice first."""
    part_type: ClassVar[type[Part]]
    says: ClassVar[str]
    """What its answers call it."""
    method: ClassVar[str] = "search"
    one_at_a_time: ClassVar[bool] = False
    """Whether answers depend on the order in which questions of the part are answered."""
    random: ClassVar[bool] = True
    """Whether it flips coins."""
    on_grid: ClassVar[bool] = True
    """Whether its answers are points of the question's grid."""
    by_tolerance: ClassVar[bool] = False
    """Whether a guess is near by a tolerance of its own, and not by the part's tails."""
    mixes: ClassVar[Mapping[str, Wanted]] = {}
    """What `--protocols` calls it, and what that makes."""
    told: ClassVar[bool] = False
    """Whether answers are exact, at the level of all that was told before: nothing is reserved."""
    optional_grid: ClassVar[bool] = False
    """Whether a question may leave its grid out: the plan then gives it one."""

    def __init__(
        self, plan: SetPlan, part: P, units: int, confidence: float, *, certified: bool
    ) -> None:
        self.plan, self.part, self.units = plan, part, units
        self.confidence, self.certified = confidence, certified

    @classmethod
    def serves(cls, plan: SetPlan, part: Part) -> bool:
        """Whether it can be asked of this part of a plan."""
        del plan
        return part.protocol in cls.of and isinstance(part, cls.part_type)

    def admit(self, question: Question) -> None:
        """Refuse, free, what this part cannot be asked."""
        del question

    def grid(self, question: Question) -> Grid | None:
        """The grid that is answered on; None if there is none."""
        return question.grid

    def given_back(self, question: Question) -> tuple[Charge, ...]:
        """What is charged where a question is exhausted on its way, for what it had reserved."""
        raise ValueError(f"{question.verb} is not exhausted on its way")

    @abstractmethod
    def worst(self, question: Question) -> tuple[Charge, ...]:
        """What a question reserves, in order; the first ones, where it may go on and on."""

    @abstractmethod
    def ask(self, question: Question, entropy: Entropy, lessons: Sequence[Lesson]) -> Steps:
        """Draw the answer. `lessons` are what was drawn of this part before, where it learns."""

    def charges(self, question: Question, drawn: Drawn) -> tuple[Charge, ...]:
        """What the draw did cost, for every reservation in order."""
        del drawn
        return self.worst(question)

    @abstractmethod
    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Result:
        """All that is said. What cannot have been drawn is a ValueError or a LookupError."""

    def refuse_everything(self, question: Question, expects: Any, past: Any) -> None:
        """Raise `Exhausted`, before anything is read, if what is told could say nothing."""
        del question, expects, past

    def check(self, question: Question, drawn: Drawn, lessons: Sequence[Lesson]) -> None:
        """Refuse, as a ValueError, what cannot have been drawn after these lessons."""
        del question, drawn, lessons

    def _answer(
        self,
        question: Question,
        value: float,
        ends: tuple[float | None, float | None],
        tails: tuple[float, float],
        promise: str,
        paid: Paid,
        *,
        at_grid_end: bool = False,
    ) -> Answer:
        return Answer(
            protocol=self.says,
            value=value,
            low=ends[0],
            high=ends[1],
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.confidence,
            promise=promise,
            price=paid.price(self.part.name),
            budget_left=paid.left,
            at_grid_end=at_grid_end,
            certified=self.certified,
            block_units=self.units,
            method=self.method,
            reading=question.about.get("reading"),
        )

    def _on_grid(
        self,
        question: Question,
        drawn: Drawn | None,
        tails: tuple[float, float],
        paid: Paid,
        shape: Shape | None,
    ) -> Answer:
        """The point of the grid that was drawn, with the bar that a shape gives it."""
        assert drawn is not None
        grid = question.points
        index = index_in(grid, drawn["index"])
        cell, value = grid.cell(index), grid.point(index)
        ends: tuple[float | None, float | None] = (None, None)
        if shape is not None:
            ends = shape.bar(cell, self.units, *tails)
        promise = search_promise(*tails, self.units, cell, has_bar=ends != (None, None))
        at_end = index in (0, grid.size - 1)
        return self._answer(question, value, ends, tails, promise, paid, at_grid_end=at_end)


def index_in(grid: Grid, index: object) -> int:
    """An index of the grid as it was drawn, or a ValueError."""
    if type(index) is not int or not 0 <= index < grid.size:
        raise ValueError(f"no point of a grid of {grid.size:,}: {index!r}")
    return index


def block_floats(values: object, blocks: int) -> NDArray[np.float64]:
    """One finite float per block: a failure is the lowest of all, and infinities are the ends.

    So every value can be a guess, and comparing it with the others needs no exceptions. Promises
    are about the estimator as a float: an integer above 2⁵³ is first rounded up to one.
    """
    with np.errstate(all="ignore"):
        floats = one_per_block(floats_up(values), blocks)
        return np.clip(np.where(np.isnan(floats), -_LARGEST, floats), -_LARGEST, _LARGEST)


def shown(value: float) -> float:
    """A value as people read it: the ends stand for failures and infinities."""
    return math.copysign(math.inf, value) if abs(value) == _LARGEST else value


A = TypeVar("A", bound=NDArray[Any])


def one_per_block(values: A, blocks: int) -> A:
    """Refuse a source's mistake: no estimator can change the number of values."""
    if values.shape != (blocks,):
        raise InvalidInput("values", values.shape, f"one for each of {blocks:,} blocks")
    return values


def checked_claim(claim: object) -> str:
    """What is claimed of a guess, or an error that says what may be."""
    if claim not in ("equals", "at least", "at most"):
        raise InvalidInput("claim", claim, "'equals', 'at least' or 'at most'")
    return str(claim)


def checked_grid(grid: object) -> Grid:
    """A grid, or an error that says how to make one."""
    if not isinstance(grid, Grid):
        hint = "Make one with holdfast.grid(low, high, step=…)."
        raise InvalidInput("grid", grid, "a grid of possible answers", hint)
    return grid


def checked_shape(shape: object) -> None:
    """A known shape or none, before anything is charged."""
    if shape is not None and not isinstance(shape, BoundedMean | KnownSd | KnownDeviation):
        allowed = "BoundedMean, KnownSd, KnownDeviation (holdfast.protocols.shapes), or left out"
        raise InvalidInput("shape", shape, allowed)
