"""Sessions of an analyst with both holdouts, and what came of them.

Every session has blocks of its own, the same for both holdouts. Its blocks and its coins come from
two streams of the seed, so that the same session on fewer blocks has the first of the same blocks:
rates at different sizes can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Infeasible
from holdfast.lab.audit.subject import Subject
from holdfast.lab.signs.analysts import Analyst, Heard, interview
from holdfast.lab.signs.population import FairBlocks
from holdfast.lab.signs.responders import ExactMedian, Looks, Responder
from holdfast.lab.statistics import failure_rate_bound
from holdfast.randomness import SeededEntropy

__all__ = ["Batch", "Sessions", "batches", "gathered", "play"]

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
