"""What every attack has: a promise, a plan that keeps it, and one run against either responder.

Responders hold the same blocks. *Holdfast* is the protocol itself, on its own budget. *Naive*
answers exactly and has no budget: its answers would keep the promise for questions fixed in
advance, and it goes on answering whatever is asked. Holdfast with looks that never err
(`Trial.unerring`) is a third, which shows what the coins are good for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

from holdfast.errors import Exhausted
from holdfast.lab.protocol_attacks.plans import Wanted, kept_plan
from holdfast.lab.protocol_attacks.sample import Trial
from holdfast.planning.joint import JointPlan
from holdfast.planning.requests import Request
from holdfast.protocols.budget import Budget
from holdfast.theory.numerics import binomial_tail, smallest_whole

__all__ = [
    "Attack",
    "JointAttack",
    "Notes",
    "Run",
    "Side",
    "critical_count",
    "outside",
    "refused",
]

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
