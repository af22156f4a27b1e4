"""The sparse vector technique, done right: thm `sv-emp` of the paper (Dwork, Naor et al. 2009).

Questions are counts of blocks: one block moves each by at most 1. A question whose count is far
enough above its threshold gets Yes, one far enough below gets No, and after ℓ refusals (No) all
that follows gets "exhausted". One AboveThreshold (Dwork & Roth 2014, Algorithm 1) serves until it
refuses; then the next one starts, with fresh noise on the threshold:

    ρ ~ Lap(2/ε̃)  once per refusal,    ν ~ Lap(4/ε̃)  for every question,
    No  if  count + ν ≤ threshold + ρ,    Yes otherwise.

**What holds.** Each AboveThreshold is ε̃-private however many questions it answers with Yes, and
the ℓ of them together (ε, δ)-private, with ε̃ = ε/ℓ for δ = 0 and otherwise the larger of that and
the root of ½ ℓ ε̃² + ε̃ √(2ℓ ln(1/δ)) = ε (thm `composition`). That is Dwork & Roth's `Sparse`
(Algorithm 2), and Algorithm 2 of Lyu, Su & Li 2017. *Proof for one run up to its refusal.* Let the
counts be c_j on S and c'_j on S', |c_j − c'_j| ≤ 1. Fix ν_j for all questions that got Yes. If the
transcript happens on S with (ρ, ν_last), it happens on S' with (ρ − 1, ν_last − 2): each Yes stays
since c'_j + ν_j ≥ c_j − 1 + ν_j > threshold + ρ − 1, and No stays since c'_last + ν_last − 2 ≤
c_last + ν_last − 1 ≤ threshold + ρ − 1. The two shifts change the probability of the noise by at
most e^(ε̃/2) each, on the whole numbers as on the real ones. ∎ What is shown is the verdict alone,
never count + ν; noise is never used twice; and the run ends at its refusal. Lyu, Su & Li list
published versions that break one of these; the tests keep them as mutants.

**What does not.** Verdicts are about the sample, up to noise (`verdict_error`). Nothing here says
what they mean for the population, and no answer is certified. The paper's way from this theorem
to the population is thm `sv` with its constants, `holdfast.theory.paper.sv`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.randomness import Entropy
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.paper import interactive_composition, query_epsilon
from holdfast_lab.baselines.noise import (
    CELLS,
    Uncertified,
    as_mean,
    bounded_sum,
    discrete_laplace,
    laplace_reach,
)

Draw = Callable[[Fraction], int]
Word = Literal["yes", "no", "exhausted"]

_LARGEST_COUNT = 10**15


@dataclass(frozen=True, slots=True)
class SparseVerdict(Uncertified):
    """Yes, No or exhausted, and how many more refusals there are."""

    statement: ClassVar[str] = (
        "differential privacy, and a verdict about the sample up to noise; "
        "nothing about the population"
    )

    verdict: Word
    refusals_left: int


class Kept(NamedTuple):
    """Between questions: the noise on the threshold, and the refusals or corrections left.

    No noise means that the next question draws it: at the start and after each of these.
    """

    noise: int | None
    left: int


class SparseRule(NamedTuple):
    """The technique as a pure function of its noise: ℓ refusals at ε̃ each.

    The tests compute its law by trying all noise; `SparseVector` draws it.
    """

    refusals: int
    step: Fraction

    @property
    def threshold_scale(self) -> Fraction:
        """The scale of ρ, 2/ε̃."""
        return 2 / self.step

    @property
    def question_scale(self) -> Fraction:
        """The scale of ν, 4/ε̃."""
        return 4 / self.step

    def start(self) -> Kept:
        """Before the first question."""
        return Kept(None, self.refusals)

    def ask(self, state: Kept, question: tuple[int, int], draw: Draw) -> tuple[Word, Kept]:
        """The verdict on (count, threshold), and what is kept."""
        if state.left == 0:
            return "exhausted", state
        count, threshold = question
        noise = draw(self.threshold_scale) if state.noise is None else state.noise
        if count + draw(self.question_scale) > threshold + noise:
            return "yes", Kept(noise, state.left)
        return "no", Kept(None, state.left - 1)


def sparse_step(refusals: int, epsilon: float, delta: float = 0.0) -> Fraction:
    """The ε̃ of one refusal so that ℓ of them are (ε, δ)-private together; rounded down.

    >>> float(sparse_step(10, 1.0)), round(float(sparse_step(100, 1.0, 1e-6)), 6)
    (0.1, 0.018692)
    """
    refusals = whole_number("refusals", refusals, 1, 10**9)
    epsilon = real_number("epsilon", epsilon, 0, 1e6, open_low=True)
    delta = real_number("delta", delta, 0, 1, open_high=True)
    equal = Fraction(epsilon) / refusals
    return equal if delta == 0 else max(equal, Fraction(query_epsilon(refusals, epsilon, delta)))


class SparseVector:
    """Verdicts on counts of blocks: at most `refusals` times No, (ε, δ)-private in the blocks.

    >>> from holdfast.randomness import SeededEntropy
    >>> vector = SparseVector(refusals=1, epsilon=1.0, entropy=SeededEntropy(1))
    >>> [vector.ask(count, threshold=500).verdict for count in (560, 700, 400, 900)]
    ['yes', 'yes', 'no', 'exhausted']
    """

    def __init__(
        self, refusals: int, epsilon: float, entropy: Entropy, *, delta: float = 0.0
    ) -> None:
        self._rule = SparseRule(
            whole_number("refusals", refusals, 1, 10**9), sparse_step(refusals, epsilon, delta)
        )
        self._entropy = entropy
        self._state = self._rule.start()

    @property
    def refusals_left(self) -> int:
        """How often it can still say No."""
        return self._state.left

    def ask(self, count: int, threshold: int) -> SparseVerdict:
        """Is the count above the threshold? `count` blocks have the property that is asked for."""
        count = whole_number("count", count, 0, _LARGEST_COUNT)
        threshold = whole_number("threshold", threshold, -_LARGEST_COUNT, _LARGEST_COUNT)
        verdict, self._state = self._rule.ask(self._state, (count, threshold), self._draw)
        return SparseVerdict(verdict, self._state.left)

    def _draw(self, scale: Fraction) -> int:
        return discrete_laplace(scale, self._entropy)

    def __repr__(self) -> str:  # the noise is nobody's business
        return f"<SparseVector: {self.refusals_left} refusals left>"


def verdict_error(queries: int, refusals: int, epsilon: float, delta: float, failure: float) -> int:
    """Counts t so that, but for probability `failure`, all verdicts are right up to t.

    Right up to t: a count > threshold + t gets Yes and one ≤ threshold − t gets No, until
    exhausted. Every verdict is, if |ρ| ≤ x for each of the ℓ noises of the threshold and ν ≤ t − x
    (or ≥ −(t − x), whichever side could mislead) for each question; ℓ·P[|ρ| > x] ≤ β/2 and
    k·P[ν > t − x] ≤ β/2 by the exact tails of the noise.

    >>> verdict_error(1_000, 10, 1.0, 0.0, 0.05)
    516
    """
    step = sparse_step(refusals, epsilon, delta)
    queries = whole_number("queries", queries, 1, 10**12)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    rule = SparseRule(refusals, step)
    return laplace_reach(rule.threshold_scale, failure / (4 * refusals)) + laplace_reach(
        rule.question_scale, failure / (2 * queries)
    )


def sv_emp_blocks(
    queries: int, refusals: int, alpha: float, epsilon: float, delta: float, failure: float
) -> int:
    """Blocks with which thm `sv-emp` holds with this noise: m ≥ 2t/α, t = `verdict_error`.

    With m·u the paper's threshold, ask with ⌊m·u⌋ − t: a share > u is a count ≥ ⌊m·u⌋ + 1 and
    gets Yes, a share ≤ u − α is a count ≤ ⌊m·u⌋ − 2t, as mα ≥ 2t, and gets No. The paper has
    O(√(ℓ log(1/δ)) log(k/β)/(εα)); `holdfast.theory.paper.sparse_vector_blocks` has the textbook's
    own bound on the error, which asks for more.

    >>> sv_emp_blocks(2_000, 10, 0.2 / 3, 0.0476550899, 2.6041666e-05, 0.025)
    368431
    """
    alpha = real_number("alpha", alpha, 0, 1, open_low=True)
    error = verdict_error(queries, refusals, epsilon, delta, failure)
    return max(1, math.ceil(2 * error / alpha * (1 + ROUNDING)))


# Thresholdout, the reusable holdout of Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015.
#
# ("Generalization in adaptive data analysis and holdout reuse", NIPS 2015; "The reusable holdout",
# Science 349.) The analyst brings a mean computed on open data, the guess g; the holdout of n rows
# has the mean h. With a threshold T, a noise rate σ and a budget B:
#
#     start           T̂ = T + Lap(2σ)
#     each question   if B < 1: exhausted
#                     if |h − g| > T̂ + Lap(4σ): answer h + Lap(σ), B := B − 1, T̂ := T + fresh
#                     Lap(2σ)
#                     otherwise: answer g
#
# **What holds.** Up to and with each answer from the holdout it is 2/(σn)-private in the rows of
# the
# holdout: 1/(σn) for the comparisons, as in `holdfast_lab.baselines.sparse_vector`, 1/(σn) for the
# answer. So it is 2B/(σn)-private in all, and with δ as thm `composition` has it. The noise is
# that of whole numbers on exact sums; a shift of the noise by one row's 2^16 cells covers every
# change of |h − g|, whatever g is, so the proof is the same.
#
# **What does not.** Holdfast promises nothing about the population. The paper does, with an O(·);
# `thresholdout_settings` has the constants of its proof. When the budget is used up, further
# questions are refused, politely; nothing in the refusal depends on the data.


_MOST_ROWS = 2**40


@dataclass(frozen=True, slots=True)
class ThresholdoutAnswer(Uncertified):
    """The guess, or a noisy mean of the holdout, or None when the budget is used up."""

    statement: ClassVar[str] = (
        "differential privacy in the holdout's rows; nothing about the population"
    )

    value: float | None
    source: Literal["guess", "holdout", "exhausted"]
    budget_left: int


class ThresholdoutRule(NamedTuple):
    """The algorithm as a pure function of its noise; sums, T and σ in cells of the sum.

    `ask` gets (sum over the holdout, guess) and returns the noisy sum, None for "the guess is
    good enough", or "exhausted".
    """

    threshold: Fraction
    sigma: Fraction
    budget: int

    def start(self) -> Kept:
        """Before the first question."""
        return Kept(None, self.budget)

    def ask(
        self, state: Kept, question: tuple[int, Fraction], draw: Draw
    ) -> tuple[int | Literal["exhausted"] | None, Kept]:
        """The answer, and what is kept."""
        if state.left == 0:
            return "exhausted", state
        total, guess = question
        noise = draw(2 * self.sigma) if state.noise is None else state.noise
        if abs(total - guess) <= self.threshold + noise + draw(4 * self.sigma):
            return None, Kept(noise, state.left)
        answer = total + draw(self.sigma)
        return answer, Kept(None, state.left - 1)


class Thresholdout:
    """A holdout that confirms guesses from open data, and corrects at most B of them.

    >>> from holdfast.randomness import SeededEntropy
    >>> holdout = Thresholdout(1_000, threshold=0.04, sigma=0.005, budget=1,
    ...                        entropy=SeededEntropy(2))
    >>> half = [0.0] * 500 + [1.0] * 500
    >>> holdout.ask(half, guess=0.51)
    ThresholdoutAnswer(value=0.51, source='guess', budget_left=1)
    >>> holdout.ask(half, guess=0.9)
    ThresholdoutAnswer(value=0.498..., source='holdout', budget_left=0)
    >>> holdout.ask(half, guess=0.5)
    ThresholdoutAnswer(value=None, source='exhausted', budget_left=0)
    """

    def __init__(
        self, rows: int, threshold: float, sigma: float, budget: int, entropy: Entropy
    ) -> None:
        self._rows = whole_number("rows", rows, 1, _MOST_ROWS)
        cells = self._rows * CELLS
        self._sigma = real_number("sigma", sigma, 1e-9, 1e9)
        self._rule = ThresholdoutRule(
            Fraction(real_number("threshold", threshold, 0, 1)) * cells,
            Fraction(self._sigma) * cells,
            whole_number("budget", budget, 1, 10**9),
        )
        self._entropy = entropy
        self._state = self._rule.start()

    @property
    def budget_left(self) -> int:
        """How many answers from the holdout are left."""
        return self._state.left

    def epsilon(self, delta: float = 0.0) -> float:
        """The ε of the whole interaction at this δ, rounded up: 2B/(σn) for δ = 0.

        >>> from holdfast.randomness import SeededEntropy
        >>> entropy = SeededEntropy(1)
        >>> holdout = Thresholdout(10_000, 0.04, sigma=0.01, budget=100, entropy=entropy)
        >>> round(holdout.epsilon(), 6), round(holdout.epsilon(1e-6), 6)
        (2.0, 1.071304)
        """
        delta = real_number("delta", delta, 0, 1, open_high=True)
        one = 2 / (self._sigma * self._rows) * (1 + ROUNDING)
        equal = self._rule.budget * one
        if delta == 0:
            return equal
        return min(equal, interactive_composition(self._rule.budget, one, 0.0, delta)[0])

    def ask(self, values: object, guess: float) -> ThresholdoutAnswer:
        """Is the guess near the holdout's mean of one value per row, each in [0, 1]?"""
        guess = real_number("guess", guess, 0, 1)
        total = bounded_sum(values, self._rows)
        question = total, Fraction(guess) * self._rows * CELLS
        answer, self._state = self._rule.ask(self._state, question, self._draw)
        left = self._state.left
        if answer == "exhausted":
            return ThresholdoutAnswer(None, "exhausted", left)
        if answer is None:
            return ThresholdoutAnswer(guess, "guess", left)
        return ThresholdoutAnswer(as_mean(answer, self._rows), "holdout", left)

    def _draw(self, scale: Fraction) -> int:
        return discrete_laplace(scale, self._entropy)

    def __repr__(self) -> str:  # the noise is nobody's business
        return f"<Thresholdout: {self.budget_left} answers from the holdout left>"


class ThresholdoutSettings(NamedTuple):
    """T and σ as the paper sets them, and the rows that its proof asks for."""

    rows: int
    threshold: float
    sigma: float


def thresholdout_settings(
    queries: int, budget: int, half_width: float, failure: float
) -> ThresholdoutSettings:
    """T = 3τ/4, σ = τ/(96 ln(4k/β)) as in the paper, and rows n with the constants of its proof.

    The promise of the paper: but for probability β, every answer is within τ of the mean of the
    population, until B guesses were off by more than τ/2. *Proof.* Let L = ln(4k/β) and B ≤ k. But
    for 3k·e^(−2L) ≤ β/2 all noises on the threshold are ≤ τ/24, all on comparisons ≤ τ/12, all on
    answers ≤ τ/8. Dwork et al. 2014 at τ/8 and β/2 (see `rows_by_dwork`), with ε = 2B/(σn) ≤ τ/32
    and δ = 0: all |h − D[φ]| ≤ τ/8. So a guess that is returned is within 3τ/4 + τ/8 + τ/8 = τ, a
    corrected one within τ/4, and one is corrected only if it is off by more than
    3τ/4 − τ/8 − τ/8 = τ/2. ∎ Hence n ≥ 64B/(στ) = 6144·B·ln(4k/β)/τ², and n ≥ 3072 ln(8/β)/τ².

    >>> thresholdout_settings(1_000, 10, 0.1, 0.05).rows
    69364421
    """
    queries = whole_number("queries", queries, 1, 10**9)
    budget = whole_number("budget", budget, 1, 10**9)
    if budget > queries:
        raise InvalidInput("budget", budget, f"at most the number of questions, {queries}")
    half_width = real_number("half_width", half_width, 0, 1, open_low=True)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    sigma = half_width / (96 * math.log(4 * queries / failure))
    private = 64 * budget / (sigma * half_width)
    least = 48 * 64 * math.log(8 / failure) / half_width**2
    rows = math.ceil(max(private, least) * (1 + ROUNDING))
    return ThresholdoutSettings(rows, 3 * half_width / 4, sigma)
