"""Responders without noise: exact answers, verdicts and corrections, every history counted."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.lab.responders.holdfast.base import Asked, BlockResponder, Desk
from holdfast.lab.responders.holdfast.claims import (
    NOTHING,
    Told,
    of_answer,
    of_corrected,
    of_verdict,
)
from holdfast.lab.responders.holdfast.guesses import refusals_of
from holdfast.lab.responders.holdfast.rows import Rows
from holdfast.planning.exact import (
    ExactCorrections,
    ExactEstimates,
    ExactVerdicts,
    exact_corrections,
    exact_estimates,
    exact_verdicts,
)
from holdfast.protocols.exact import ExactCorrect, ExactEstimate, ExactVerify
from holdfast.randomness import Entropy

__all__ = ["HoldfastExact", "HoldfastExactCorrect", "HoldfastExactVerify"]


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
