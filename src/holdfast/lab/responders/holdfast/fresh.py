"""Responders that use rows up: fresh blocks for every question, or for every round."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.lab.conversation import Terms
from holdfast.lab.responders.holdfast.base import Asked, BlockResponder, Desk
from holdfast.lab.responders.holdfast.claims import Told, of_answer
from holdfast.lab.responders.holdfast.rows import Rows
from holdfast.planning.menu import Order
from holdfast.planning.rounds import RoundsPlan, rounds_plan
from holdfast.planning.splits import SplitPlan, split_plan
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.split import Split
from holdfast.randomness import Entropy

__all__ = ["HoldfastRounds", "HoldfastSplit"]


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
