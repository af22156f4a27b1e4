"""What every attack has: a promise, a plan that keeps it, and one run against either responder.

Responders hold the same blocks. *Holdfast* is the protocol itself, on its own budget. *Naive*
answers exactly and has no budget: its answers would keep the promise for questions fixed in
advance, and it goes on answering whatever is asked. Holdfast with looks that never err
(`Trial.unerring`) is a third, which shows what the coins are good for.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, cast, final

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.requests import Request
from holdfast.protocols.budget import Budget
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds
from holdfast.randomness import Entropy, SeededEntropy, system_entropy
from holdfast.theory.numerics import binomial_tail, smallest_whole

__all__ = [
    "LEVELS",
    "PLANS",
    "Attack",
    "JointAttack",
    "KeptPlan",
    "Notes",
    "Run",
    "Sample",
    "Side",
    "Trial",
    "Unerring",
    "Wanted",
    "critical_count",
    "draw_labels",
    "draw_levels",
    "kept_plan",
    "outside",
    "refused",
    "write_plans",
]


# The plans of the attacks, kept in plans.json: some take many seconds to find.
#
# A kept plan proves itself again when it is read, like any plan. One that is missing, or that this
# version no longer proves, is made anew. `write_plans` makes all of them again. Every run has a
# budget of its own, and every budget asks its plan for a proof: here it is remembered.


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


# Blocks for the attacks: labels and levels, drawn uniformly, so that every mass is known exactly.
#
# A block's *label* is a whole number below a power of two. Its *levels* are numbers below 2¹⁶, one
# for each of many features, all independent. An estimator is a function of the whole array that
# acts on each block by itself, so that a question costs one numpy pass.


LEVELS = 2**16

Estimator = Callable[[NDArray[Any]], NDArray[Any]]


class Sample:
    """A source over an array whose last axis runs over blocks, and over the units of each.

    >>> source = Sample(np.array([3, 1, 2, 0]), units=2)
    >>> source.blocks, source.part(1, 2).values(lambda labels: labels > 1).tolist()
    (2, [True, False])
    >>> source.sums(lambda labels: labels > 1).tolist()
    [65536, 65536]
    """

    def __init__(self, data: NDArray[Any], units: int = 1) -> None:
        self.data, self.units = data, units
        self.blocks: int = data.shape[-1] // units

    def values(self, estimator: Estimator, /) -> NDArray[Any]:
        return estimator(self.data)

    def sums(
        self, function: Estimator, /, where: Estimator | None = None, bounds: Bounds = UNIT
    ) -> NDArray[np.int64]:
        assert bounds == UNIT
        parts = np.floor(function(self.data) * WEIGHT_SCALE + 0.5).astype(np.int64)
        if where is not None:
            parts = parts * where(self.data)
        return np.asarray(parts.reshape(self.blocks, self.units).sum(axis=1))

    def part(self, start: int, stop: int, /) -> Sample:
        return Sample(self.data[..., start * self.units : stop * self.units], self.units)


@final
class Unerring(Entropy):
    """No entropy at all: the highest word, again and again, with which no look ever errs.

    >>> from holdfast.mechanisms.looks import look
    >>> from holdfast.theory.coins import logistic_coin
    >>> look(np.arange(-2, 3), logistic_coin(slope=0.1, floor=1e-3), Unerring())
    array([False, False, False,  True,  True])
    """

    __slots__ = ()

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, 2**64 - 1, np.uint64)


@dataclass(frozen=True)
class Trial:
    """One run: where its blocks, the coins and the analyst's own choices come from.

    The blocks are the same for all responders, whatever any of them draws.
    """

    seed: int | None
    number: int
    unerring: bool = False

    @property
    def blocks(self) -> Entropy:
        """For the blocks."""
        return self._stream(0)

    @property
    def coins(self) -> Entropy:
        """For the looks."""
        return Unerring() if self.unerring else self._stream(1)

    @property
    def choices(self) -> Entropy:
        """For the analyst."""
        return self._stream(2)

    def _stream(self, part: int) -> Entropy:
        if self.seed is None:
            return system_entropy()
        return SeededEntropy((self.seed, self.number, part))


def draw_labels(count: int, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Independent labels, uniform on 0 … size − 1, size a power of two."""
    return (entropy.words(count) & np.uint64(size - 1)).astype(np.int64)


def draw_levels(features: int, count: int, entropy: Entropy) -> NDArray[np.uint16]:
    """A table of independent levels, one row for each feature."""
    words = entropy.words(-(-features * count // 4))
    return words.view(np.uint16)[: features * count].reshape(features, count)


Side = Literal["naive", "holdfast"]

_MOST = 10_000  # questions: a budget that is not exhausted by then never is


@dataclass(frozen=True)
class Run:
    """What came of one attack.

    `polite` says that the budget was exhausted in the end, and that nothing was answered, drawn or
    charged after that; it is true of a responder that has no budget.
    """

    broken: bool
    answered: int
    polite: bool = True


@dataclass
class Notes:
    """What an analyst writes down: how many answers there were, and whether one broke a promise."""

    broken: bool = False
    answered: int = 0

    def add(self, broken: bool) -> None:
        """One more answer."""
        self.broken |= bool(broken)
        self.answered += 1

    def until_exhausted(self, ask: Callable[[], bool]) -> bool:
        """Ask again and again, `ask` saying whether a promise broke; whether it ever ends."""
        for _ in range(_MOST):
            try:
                self.add(ask())
            except Exhausted:
                return True
        return False

    def run(self, *, polite: bool = True) -> Run:
        """The notes as a result."""
        return Run(self.broken, self.answered, polite)


class Attack(ABC):
    """One attack on one protocol."""

    name: ClassVar[str]
    promise: ClassVar[str]

    @property
    def kept(self) -> tuple[Wanted, ...]:
        """The joint plans that it needs, as requests and confidence."""
        return ()

    @property
    @abstractmethod
    def questions(self) -> int:
        """k: how many questions the plan covers."""

    @property
    @abstractmethod
    def blocks(self) -> int:
        """How many blocks it asks for."""

    @property
    @abstractmethod
    def failure(self) -> float:
        """β."""

    @property
    @abstractmethod
    def story(self) -> str:
        """The attack in a paragraph."""

    @abstractmethod
    def run(self, side: Side, trial: Trial) -> Run:
        """One run against one responder."""


@dataclass(frozen=True)
class JointAttack(Attack):
    """An attack on a joint plan."""

    queries: int
    confidence: float = field(default=0.95, kw_only=True)

    @property
    @abstractmethod
    def requests(self) -> tuple[Request, ...]:
        """What is planned for."""

    @property
    def kept(self) -> tuple[Wanted, ...]:
        return ((self.requests, self.confidence),)

    @cached_property
    def plan(self) -> JointPlan:
        """The plan that covers it."""
        return kept_plan(*self.requests, confidence=self.confidence)

    @property
    def questions(self) -> int:
        return self.queries

    @property
    def blocks(self) -> int:
        return self.plan.blocks

    @property
    def failure(self) -> float:
        return self.plan.failure


def outside(tails: tuple[float, float], tail: float) -> bool:
    """Whether an answer v breaks D[φ ≤ v] > tail and D[φ ≥ v] > tail."""
    return min(tails) <= tail


def critical_count(trials: int, mass: float, failure: float) -> int:
    """The smallest count that an event of this mass reaches with at most this probability.

    What a textbook compares a count with, for a question fixed in advance.

    >>> critical_count(1000, 0.1, 0.0005)
    133
    """
    return smallest_whole(lambda c: binomial_tail(trials, mass, c) <= failure, trials + 1)


def refused(budget: Budget, ask: Callable[[], object]) -> bool:
    """Whether a question is refused, again and again, and nothing is charged."""
    before = budget.spent, budget.buys()
    for _ in range(2):
        try:
            ask()
        except Exhausted:
            continue
        return False
    return (budget.spent, budget.buys()) == before
