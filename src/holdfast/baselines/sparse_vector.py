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

from holdfast.baselines.noise import discrete_laplace, laplace_reach
from holdfast.baselines.uncertified import Uncertified
from holdfast.errors import real_number, whole_number
from holdfast.randomness import Entropy
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.paper import query_epsilon

__all__ = [
    "SparseRule",
    "SparseState",
    "SparseVector",
    "SparseVerdict",
    "sparse_step",
    "sv_emp_blocks",
    "verdict_error",
]

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


class SparseState(NamedTuple):
    """What is kept between questions: the noise on the threshold and the refusals left.

    No noise means that the next question draws it: at the start and after a refusal.
    """

    noise: int | None
    refusals_left: int


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

    def start(self) -> SparseState:
        """Before the first question."""
        return SparseState(None, self.refusals)

    def ask(
        self, state: SparseState, question: tuple[int, int], draw: Draw
    ) -> tuple[Word, SparseState]:
        """The verdict on (count, threshold), and what is kept."""
        if state.refusals_left == 0:
            return "exhausted", state
        count, threshold = question
        noise = draw(self.threshold_scale) if state.noise is None else state.noise
        if count + draw(self.question_scale) > threshold + noise:
            return "yes", SparseState(noise, state.refusals_left)
        return "no", SparseState(None, state.refusals_left - 1)


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
    def rule(self) -> SparseRule:
        """Its scales; public."""
        return self._rule

    @property
    def refusals_left(self) -> int:
        """How often it can still say No."""
        return self._state.refusals_left

    def ask(self, count: int, threshold: int) -> SparseVerdict:
        """Is the count above the threshold? `count` blocks have the property that is asked for."""
        count = whole_number("count", count, 0, _LARGEST_COUNT)
        threshold = whole_number("threshold", threshold, -_LARGEST_COUNT, _LARGEST_COUNT)
        verdict, self._state = self._rule.ask(self._state, (count, threshold), self._draw)
        return SparseVerdict(verdict, self._state.refusals_left)

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
