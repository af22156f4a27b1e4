"""Many runs of one attack, on the naive median and on planned looks, over the same blocks.

plan_attack   the promise that covers every look of an analyst, and the coin that keeps it
run_attack    fresh blocks for every run; the most extreme population rank of its answers
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput, whole_number
from holdfast.lab.signs.analysts import Analyst, SignAggregator, interview
from holdfast.lab.signs.population import FairBlocks
from holdfast.lab.signs.responders import ExactMedian, Looks, Responder
from holdfast.lab.statistics import failure_rate_bound
from holdfast.randomness import Entropy, SeededEntropy, system_entropy
from holdfast.theory.coins import Coin
from holdfast.theory.sizing import Promise, best_steepest

__all__ = [
    "HOLDFAST",
    "NAIVE",
    "AttackPlan",
    "AttackResult",
    "plan_attack",
    "run_attack",
]

NAIVE, HOLDFAST = "naive", "holdfast"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class AttackPlan:
    """A promise for every look of an attack, the blocks it needs, and the coin that keeps it."""

    promise: Promise
    blocks: int
    coin: Coin
    order: float
    budget: float

    @property
    def tail(self) -> float:
        """ρ: the promised interval of ranks is (ρ, 1 − ρ)."""
        return self.promise.tail_low


@lru_cache(maxsize=32)
def plan_attack(looks: int, tail: float = 0.01, confidence: float = 0.95) -> AttackPlan:
    """The fewest blocks on which that many looks keep the promise (theory.md §4, centred).

    An attack of one-look questions and a search counts looks: k questions on two points and one
    on r points are covered by a promise for k + ⌈log₂ r⌉ questions on two points.

    >>> plan_attack(10_000).blocks
    464
    """
    promise = Promise(looks, 2, tail, tail, confidence)
    sized = best_steepest(promise)
    if sized.coin is None:  # best_steepest always has one; the type also serves other methods
        raise AssertionError("steepest looks without a coin")
    order, budget, *_ = sized.parameters
    return AttackPlan(promise, sized.size.blocks, sized.coin, order, budget)


@dataclass(frozen=True, eq=False)
class AttackResult:
    """One attack, many runs: for each responder the most extreme rank of each run."""

    plan: AttackPlan
    analyst: Analyst
    blocks: int
    seed: int | None
    ranks: Mapping[str, NDArray[np.float64]]

    @property
    def runs(self) -> int:
        """How many times the attack was run."""
        return min(ranks.size for ranks in self.ranks.values())

    @property
    def entropy(self) -> str:
        """Where the randomness came from, and what that means."""
        if self.seed is None:
            return "the operating system's entropy"
        return f"seeded ({self.seed}): no certificate"

    def outside(self, name: str) -> NDArray[np.bool_]:
        """Which runs had an answer that left the promised interval of ranks."""
        ranks, tail = self.ranks[name], self.plan.tail
        return (ranks <= tail) | (ranks >= 1 - tail)

    def failures(self, name: str) -> int:
        """How many did."""
        return int(np.count_nonzero(self.outside(name)))

    def failure_bound(self, name: str) -> float:
        """The 95 % Clopper–Pearson upper bound of the rate of failure."""
        return failure_rate_bound(self.failures(name), self.runs)

    def broken(self, name: str) -> bool:
        """Whether the rate of failure is above what is promised, with 95 % confidence."""
        kept = self.runs - self.failures(name)
        lower = 1 - failure_rate_bound(kept, self.runs)
        return lower > self.plan.promise.failure

    def most_extreme(self, name: str) -> float:
        """The rank farthest from 1/2."""
        ranks = self.ranks[name]
        return float(ranks[np.argmax(np.abs(ranks - 0.5))])

    def to_json(self) -> dict[str, object]:
        """Plain numbers: the plan, the runs and what came of them."""
        promise, plan = self.plan.promise, self.plan
        return {
            "looks": promise.looks,
            "tail": plan.tail,
            "confidence": promise.confidence,
            "order": plan.order,
            "budget": plan.budget,
            "blocks_planned": plan.blocks,
            "blocks": self.blocks,
            "runs": self.runs,
            "seed": self.seed,
            "certified": self.seed is None and self.blocks >= plan.blocks,
            "responders": {
                name: {
                    "failures": self.failures(name),
                    "failure_rate_bound": self.failure_bound(name),
                    "most_extreme_rank": self.most_extreme(name),
                    "ranks": ranks.tolist(),
                }
                for name, ranks in self.ranks.items()
            },
        }


def run_attack(
    analyst: Analyst | None = None,
    *,
    runs: int = 100,
    blocks: int | None = None,
    tail: float = 0.01,
    confidence: float = 0.95,
    seed: int | None = None,
    against: Sequence[str] = (NAIVE, HOLDFAST),
    progress: Progress | None = None,
) -> AttackResult:
    """Fresh blocks and a new conversation in every run; both responders hold the same blocks.

    The coin is the one planned for the analyst's looks; `blocks` defaults to what that plan needs,
    and fewer show where the promise breaks.
    """
    analyst = SignAggregator() if analyst is None else analyst
    runs = whole_number("runs", runs, 1, 10**6)
    plan = plan_attack(analyst.looks, tail, confidence)
    blocks = plan.blocks if blocks is None else whole_number("blocks", blocks, 1, 10**6)
    if unknown := set(against) - {NAIVE, HOLDFAST}:
        raise InvalidInput("against", min(unknown), f"{NAIVE!r} or {HOLDFAST!r}")
    ranks = {name: np.empty(runs) for name in against}
    for run in range(runs):
        entropy = system_entropy() if seed is None else SeededEntropy((seed, run))
        sample = FairBlocks(blocks, analyst.features, entropy)
        for name in against:
            heard = interview(analyst, sample, _responder(name, plan.coin, entropy))
            _within_plan(heard.looks, plan)
            ranks[name][run] = heard.rank
        if progress is not None:
            progress(run + 1, runs)
    return AttackResult(plan, analyst, blocks, seed, ranks)


def _responder(name: str, coin: Coin, entropy: Entropy) -> Responder:
    return ExactMedian() if name == NAIVE else Looks(coin, entropy)


def _within_plan(looks: int, plan: AttackPlan) -> None:
    if looks > plan.promise.looks:
        given = f"the plan has {plan.promise.looks:,}"
        raise Infeasible("Looks", f"{looks:,} looks", given, "Let the analyst count all its looks.")
