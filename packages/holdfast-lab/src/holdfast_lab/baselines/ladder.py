"""The Ladder, a leaderboard that moves only for real progress (Blum & Hardt 2015, ICML).

A submission is a list of losses in [0, 1], one per row of the holdout, R_S their mean. The answer
to the t-th submission is R_t, the score of the best so far. R_0 is infinite, and

    with a step η       if R_S < R_{t−1} − η:        R_t = R_S rounded to a multiple of η
    without             if R_S < R_{t−1} − s/√n:     R_t = R_S rounded to a multiple of 1/n

and R_t = R_{t−1} otherwise; s is the standard deviation over the rows of the difference of losses
between the submission and the leader (the last one that moved the board).

**What holds.** With a step, the *leaderboard* is right (their Theorem 3.1; the count here is
exact): but for probability β, for all t ≤ k at once,

    |R_t − min of R_D over the first t submissions| ≤ η + √(ln(2N/β)/(2n)),   N = C(k + V − 1, V),

R_D the mean in the population, V = ⌊1/η + 1/2⌋ + 1. *Proof.* A board that moves goes down by at
least one multiple of η, so the answers are a falling list of V values, and of k submissions chosen
after such answers there are at most Σ_{i<k} C(i + V − 1, V − 1) = N, all fixed in advance. By
Hoeffding and a union bound |R_S − R_D| ≤ ε for all that can ever be made. R_t ≤ R_S + η after every
submission, and R_t ≥ R_S − η/2 for the one that moved it last. ∎

**What does not.** A score says nothing of the submission that it answers, unless that is the best
so far: all others get the leader's score back. Without a step we know of no theorem. The board is
an exact function of the holdout, nothing is private, and whoever sees the holdout in another way
voids the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import real_number, whole_number
from holdfast.theory.numerics import ROUNDING
from holdfast_lab.baselines.noise import CELLS, ROUNDING_ERROR, Uncertified, clipped

_MOST_ROWS = 2**30  # sums of squares of differences stay below 2^63
_LEAST_STEP = 1e-4


@dataclass(frozen=True, slots=True)
class LadderScore(Uncertified):
    """The score of the best submission so far, and whether this one has just become it."""

    statement: ClassVar[str] = (
        "the best score so far, up to the leaderboard error of its step; nothing about any other "
        "submission, and not certified here"
    )

    value: float
    improved: bool


class Ladder:
    """A leaderboard over the rows of a holdout; without a step it is the parameter-free one.

    >>> board = Ladder(rows=100, step=0.05)
    >>> for errors in (48, 44, 42):
    ...     board.ask([1.0] * errors + [0.0] * (100 - errors))
    LadderScore(value=0.5, improved=True)
    LadderScore(value=0.45, improved=True)
    LadderScore(value=0.45, improved=False)

    The second had to be below 0.45, and was; the third would have to be below 0.40.
    """

    def __init__(self, rows: int, step: float | None = None) -> None:
        self._rows = whole_number("rows", rows, 2, _MOST_ROWS)
        self._step = None if step is None else Fraction(_checked_step(step))
        self._score: Fraction | None = None
        self._leader: NDArray[np.int64] | None = None

    @property
    def value(self) -> float | None:
        """The score of the best submission so far; None before the first."""
        return None if self._score is None else float(self._score)

    def ask(self, losses: object) -> LadderScore:
        """The score of the board after a submission: one loss per row, each in [0, 1]."""
        cells = np.rint(clipped(losses, 0.0, 1.0, self._rows) * CELLS).astype(np.int64)
        loss = Fraction(int(cells.sum()), self._rows * CELLS)
        improved = self._score is None or self._is_progress(self._score - loss, cells)
        if improved:
            unit = self._step or Fraction(1, self._rows)
            self._score = math.floor(loss / unit + Fraction(1, 2)) * unit
            self._leader = cells
        assert self._score is not None
        return LadderScore(float(self._score), improved)

    def _is_progress(self, gain: Fraction, cells: NDArray[np.int64]) -> bool:
        """Whether the loss is below the score by more than the step, or s/√n. Exact."""
        if self._step is not None:
            return gain > self._step
        assert self._leader is not None
        difference = cells - self._leader
        squares, total = int((difference**2).sum()), int(difference.sum())
        # s² = (Σd² − (Σd)²/n)/(n − 1) as in `numpy.std` with ddof=1, in cells
        variance = Fraction(self._rows * squares - total**2, self._rows * (self._rows - 1))
        return gain > 0 and gain**2 * self._rows * CELLS**2 > variance

    def __repr__(self) -> str:
        return f"<Ladder: best score {self.value}>"


def ladder_error(rows: int, queries: int, step: float, failure: float) -> float:
    """How far the board can be from the best submission's mean in the population; rounded up.

    η + √(ln(2N/β)/(2n)) for all k submissions at once, but for probability β. (Losses are rounded
    to 2^-16, which is included.)

    >>> round(ladder_error(4_000, 400, 0.05, 0.05), 4)
    0.1529
    """
    rows = whole_number("rows", rows, 2, _MOST_ROWS)
    queries = whole_number("queries", queries, 1, 10**9)
    step = _checked_step(step)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    values = math.floor(1 / Fraction(step) + Fraction(1, 2)) + 1
    # ln C(above, below), rounded up.
    above = queries + values - 1
    whole = math.lgamma(above + 1)
    exact = whole - math.lgamma(values + 1) - math.lgamma(above - values + 1)
    count = exact + 16 * math.ulp(whole + 1)
    drift = math.sqrt((count + math.log(2 / failure)) / (2 * rows))
    return (step + drift + ROUNDING_ERROR) * (1 + ROUNDING)


class LadderStep(NamedTuple):
    """A step, and the leaderboard error that it has."""

    step: float
    error: float


def ladder_step(rows: int, queries: int, failure: float) -> LadderStep:
    """The step with the smallest `ladder_error`. It shrinks like n^(−1/3), up to logarithms.

    >>> ladder_step(4_000, 400, 0.05)
    LadderStep(step=0.039..., error=0.150...)
    """
    from scipy.optimize import minimize_scalar

    def error(log_step: float) -> float:
        return ladder_error(rows, queries, math.exp(log_step), failure)

    found = minimize_scalar(error, bounds=(math.log(_LEAST_STEP), 0.0), method="bounded")
    step = math.exp(float(found.x))
    # The error jumps where V does: try the steps at which a multiple of η is just left out.
    whole = math.floor(1 / step + 0.5)
    tried = [step, *(1 / (v + 0.5) * (1 + 1e-12) for v in range(max(1, whole - 3), whole + 4))]
    return min(
        (LadderStep(s, ladder_error(rows, queries, s, failure)) for s in tried if s <= 1),
        key=lambda found: found.error,
    )


def _checked_step(step: float) -> float:
    return real_number("step", step, _LEAST_STEP, 1)
