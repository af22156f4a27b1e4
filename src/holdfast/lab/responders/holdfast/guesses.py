"""Responders that confirm guesses with looks: verify, and verify and correct."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.lab.responders.holdfast.base import Asked, BlockResponder, Desk
from holdfast.lab.responders.holdfast.claims import Told, of_corrected, of_verdict
from holdfast.lab.responders.holdfast.rows import Rows
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.menu import Order
from holdfast.planning.requests import Estimates, Guesses
from holdfast.protocols.budget import Budget
from holdfast.protocols.guesses import Correct, Verify
from holdfast.protocols.searches import Estimate
from holdfast.randomness import Entropy

__all__ = ["HoldfastCorrect", "HoldfastVerify", "refusals_of"]


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
