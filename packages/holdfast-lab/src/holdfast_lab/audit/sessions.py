"""Sessions of an analyst with both holdouts, and what came of them.

Every session has blocks of its own, the same for both holdouts. Its blocks and its coins come from
two streams of the seed, so that the same session on fewer blocks has the first of the same blocks:
rates at different sizes can be compared.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput
from holdfast.planning.plan import Plan
from holdfast.planning.solve import plan
from holdfast.randomness import SeededEntropy
from holdfast.theory.coins import Coin
from holdfast_lab.attacks.sign_sums import (
    Analyst,
    ExactMedian,
    FairBlocks,
    Heard,
    Looks,
    Responder,
    interview,
)
from holdfast_lab.runner.run import start_worker
from holdfast_lab.statistics import failure_rate_bound

__all__ = [
    "SHARES",
    "Batch",
    "Breaking",
    "Measured",
    "Pool",
    "Sessions",
    "Subject",
    "batches",
    "find_breaking",
    "gathered",
    "planned",
    "play",
    "processes",
    "subject_of",
]


# What is audited: a plan's promise for estimates, its coin and its blocks.


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


_MOST_SIGNS = 2**32  # of all blocks of a session: half a gigabyte


@dataclass(frozen=True, eq=False)
class Batch:
    """Some sessions in a row, to be played in one go."""

    subject: Subject
    analyst: Analyst
    seed: int
    first: int
    count: int


@dataclass(frozen=True, eq=False)
class Sessions:
    """What came of sessions: which failed, and how likely each was to fail when its end began."""

    failed: NDArray[np.bool_]
    chances: NDArray[np.float64]
    naive_failed: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """How many sessions were played."""
        return self.failed.size

    @property
    def failures(self) -> int:
        """In how many of them Holdfast broke the promise."""
        return int(np.count_nonzero(self.failed))

    @property
    def naive_failures(self) -> int:
        """In how many of them the naive holdout did."""
        return int(np.count_nonzero(self.naive_failed))

    @property
    def upper_bound(self) -> float:
        """The 95 % Clopper–Pearson upper bound of Holdfast's rate of failure."""
        return failure_rate_bound(self.failures, self.count)

    @property
    def rate(self) -> float:
        """The rate of failure: the mean of the exact chances, which vary less than failures do."""
        return float(self.chances.mean())

    @property
    def error(self) -> float:
        """The standard error of the rate."""
        if self.count < 2:
            return float("nan")
        return float(self.chances.std(ddof=1) / np.sqrt(self.count))


def batches(
    subject: Subject, analyst: Analyst, seed: int, cut: Iterable[tuple[int, int]]
) -> list[Batch]:
    """Batches of sessions, given the first session of each and how many they are."""
    signs = subject.blocks * analyst.features
    if signs > _MOST_SIGNS:
        raise Infeasible(
            "Size of a session",
            f"{subject.blocks:,} blocks of {analyst.features:,} signs",
            f"at most {_MOST_SIGNS:,} signs are drawn at once",
            "Audit a plan with fewer questions.",
        )
    return [Batch(subject, analyst, seed, first, count) for first, count in cut]


def gathered(played: Iterable[Sessions]) -> Sessions:
    """Batches as one."""
    parts = list(played)
    return Sessions(
        np.concatenate([part.failed for part in parts]),
        np.concatenate([part.chances for part in parts]),
        np.concatenate([part.naive_failed for part in parts]),
    )


def play(batch: Batch) -> Sessions:
    """Play the sessions of a batch, every look with the plan's coin."""
    subject, tail = batch.subject, batch.subject.tail
    ours: list[Heard] = []
    naive: list[Heard] = []
    for number in range(batch.first, batch.first + batch.count):
        blocks = FairBlocks(
            subject.blocks, batch.analyst.features, SeededEntropy((batch.seed, number, 0))
        )
        coins = SeededEntropy((batch.seed, number, 1))
        ours.append(_heard(batch, blocks, Looks(subject.coin, coins), tail))
        naive.append(_heard(batch, blocks, ExactMedian()))
    return Sessions(
        np.array([heard.outside(tail) for heard in ours], np.bool_),
        np.array([heard.chance for heard in ours]),
        np.array([heard.outside(tail) for heard in naive], np.bool_),
    )


def _heard(
    batch: Batch, blocks: FairBlocks, responder: Responder, tail: float | None = None
) -> Heard:
    heard = interview(batch.analyst, blocks, responder, tail)
    if heard.looks > batch.subject.looks:
        given = f"the plan has {batch.subject.looks:,}"
        remedy = "Let the analyst count all its looks."
        raise Infeasible("Looks", f"{heard.looks:,} looks", given, remedy)
    return heard


# Below the certified size: how often an analyst breaks the promise there, and where it stops.
#
# The coin stays that of the plan; only the blocks become fewer. So this is about the certificate: a
# plan made for fewer blocks would have another, flatter coin.


SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.2, 0.1)
_FINE = 400  # parts of a size that are told apart
_SIGMAS = 1.96
_GROWTH = 1.25
_MOST_GROWTH = 50

Measure = Callable[[int], Sessions]


@dataclass
class Measured:
    """Sessions of one analyst at sizes, each played when it is first asked for."""

    measure: Measure
    sizes: dict[int, Sessions] = field(default_factory=dict)

    def at(self, blocks: int) -> Sessions:
        """The sessions at this size."""
        if blocks not in self.sizes:
            self.sizes[blocks] = self.measure(blocks)
        return self.sizes[blocks]

    def breaks(self, blocks: int, failure: float) -> bool:
        """Whether the rate of failure at this size is more than is promised."""
        return self.at(blocks).rate > failure


@dataclass(frozen=True)
class Breaking:
    """Where an analyst stops breaking the promise.

    `blocks` is the smallest size at which it does not, `surely_broken` the largest at which the
    rate of failure is above β by 1.96 standard errors or more, and `surely_kept` the smallest at
    which it is below by as much; None where no size that was tried is so.
    """

    blocks: int
    surely_broken: int | None
    surely_kept: int | None


def find_breaking(measured: Measured, certified: int, failure: float) -> Breaking | None:
    """The smallest size at which the promise is kept; None if it is at a tenth of the blocks."""
    bracket = _bracket(measured, certified, failure)
    if bracket is None:
        return None
    low, high = bracket  # broken, kept
    while high - low > max(1, high // _FINE):
        middle = (low + high) // 2
        low, high = (middle, high) if measured.breaks(middle, failure) else (low, middle)
    margins = {blocks: _SIGMAS * played.error for blocks, played in measured.sizes.items()}
    rates = {blocks: played.rate for blocks, played in measured.sizes.items()}
    broken = [blocks for blocks in rates if rates[blocks] - margins[blocks] > failure]
    kept = [blocks for blocks in rates if rates[blocks] + margins[blocks] <= failure]
    return Breaking(high, max(broken, default=None), min(kept, default=None))


def _bracket(measured: Measured, certified: int, failure: float) -> tuple[int, int] | None:
    """Two sizes: the promise is broken on the smaller, and kept on the larger one."""
    low = None
    for share in sorted(SHARES):
        blocks = max(1, round(share * certified))
        if not measured.breaks(blocks, failure):
            return None if low is None else (low, blocks)
        low = blocks
    for _ in range(_MOST_GROWTH):  # the certificate itself is broken
        assert low is not None
        blocks = int(low * _GROWTH) + 1
        if not measured.breaks(blocks, failure):
            return low, blocks
        low = blocks
    return None


# Batches of work in several processes: results come in the order of the batches.


Given = TypeVar("Given")
Made = TypeVar("Made")

_BATCHES = 8  # for each worker, so that none waits long for the others


class Pool:
    """Runs a function over batches."""

    def __init__(self, workers: int, executor: ProcessPoolExecutor | None) -> None:
        self.workers, self._executor = workers, executor

    def run(self, function: Callable[[Given], Made], batches: Sequence[Given]) -> Iterator[Made]:
        """What the function makes of each batch, in their order."""
        if self._executor is None:
            return map(function, batches)
        return self._executor.map(function, batches)

    def cut(self, count: int) -> list[tuple[int, int]]:
        """Numbers 0 … count − 1 in batches: the first of each, and how many they are.

        >>> Pool(2, None).cut(20)
        [(0, 2), (2, 2), (4, 2), (6, 2), (8, 2), (10, 2), (12, 2), (14, 2), (16, 2), (18, 2)]
        """
        size = max(1, -(-count // (_BATCHES * self.workers)))
        return [(first, min(size, count - first)) for first in range(0, count, size)]


@contextmanager
def processes(workers: int) -> Iterator[Pool]:
    """A pool of so many processes; with one worker, of this process."""
    if workers == 1:
        yield Pool(1, None)
        return
    # Spawned, not forked: the parent may have threads, and locks that a copy would hold for ever.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, context, initializer=start_worker)
    try:
        yield Pool(workers, executor)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
