"""What is audited: a plan's promise for estimates, its coin and its blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.errors import InvalidInput
from holdfast.planning.plan import Plan
from holdfast.planning.solve import plan
from holdfast.theory.coins import Coin

__all__ = ["Subject", "planned", "subject_of"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A promise for k questions on r points, and the coin and the blocks that are to keep it.

    The budget of such a plan is `looks` looks. A question pays for the looks that it takes, so
    that an analyst may ask as many yes/no questions as there are looks: the promise covers them.
    """

    queries: int
    grid: int
    tail: float
    confidence: float
    blocks: int
    looks: int
    coin: Coin

    @property
    def failure(self) -> float:
        """β: the rate of failure that is promised at most."""
        return round(1 - self.confidence, 12)

    def on(self, blocks: int) -> Subject:
        """The same promise and the same coin on another number of blocks."""
        return replace(self, blocks=blocks)


def subject_of(made: Plan) -> Subject:
    """The looks of a plan, as they are to be audited."""
    if made.tail is None or made.twice_target != made.blocks:
        allowed = "a plan with equal tails that aims at the median"
        raise InvalidInput("plan", made.tails, allowed, "The attacks are on medians.")
    return Subject(
        queries=made.queries,
        grid=made.grid,
        tail=made.tail,
        confidence=made.confidence,
        blocks=made.blocks,
        looks=made.looks,
        coin=made.coin(),
    )


def planned(queries: int, grid: int, tail: float, confidence: float) -> Subject:
    """The plan for a promise, as it is to be audited.

    >>> planned(100, 32, 0.01, 0.95).blocks
    110
    """
    return subject_of(plan(queries=queries, grid=grid, tail=tail, confidence=confidence))
