"""Attempts: a function asked of public blocks, in a worker, as it would be of sealed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.jobs import Job
from holdfast.engines.local.pool import Pool
from holdfast.engines.local.runner import Item
from holdfast.engines.local.seats import CONTROLS
from holdfast.engines.local.trials import TrialBlocks
from holdfast.engines.local.worker import LOADED, Control, Trial
from holdfast.engines.processes import WorkerDied, WorkerTimeout
from holdfast.errors import InvalidInput

__all__ = ["Attempts", "Tried"]


@dataclass(frozen=True)
class Tried:
    """What came of an attempt."""

    values: NDArray[np.float64]
    """One for each block; NaN for failures."""
    told: str
    """Why the first failure happened."""
    changed: bool
    """Whether a block asked again gave another value."""
    loaded: bool
    """Whether the function could be loaded each time."""


@dataclass(frozen=True)
class Attempts:
    """Where a function is tried, and what messages call it."""

    pool: Pool
    name: str

    def of(self, job: Job) -> Callable[..., Tried]:
        """`attempt` for one job."""
        return partial(self.attempt, job)

    def controlled(self, job: Job) -> bool:
        """Whether the function can be loaded where there are no blocks, as controls ask."""
        for _ in range(CONTROLS):
            with suppress(WorkerDied, WorkerTimeout):
                if self.pool.call(Control(job), 3 * job.limits.load_seconds) == LOADED:
                    return True
        return False

    def attempt(
        self,
        job: Job,
        blocks: TrialBlocks,
        items: Sequence[Item] | None = None,
        *,
        isolated: bool = False,
    ) -> Tried:
        """Ask for the blocks in calls of these items; without them, of one block each."""
        chosen = None if items is None else tuple(items)
        trial = Trial(job, blocks.written(), blocks.rows, chosen, isolated)
        limits = job.limits
        seconds = 4 * blocks.blocks * (limits.block_seconds + limits.batch_seconds)
        try:
            reply = self.pool.call(trial, seconds + 4 * limits.load_seconds)
        except (WorkerDied, WorkerTimeout):
            hint = "It ended the process that evaluates it, or stopped it."
            raise InvalidInput("estimator", self.name, "a function that returns", hint) from None
        end = 2 + 8 * blocks.blocks
        values, told = np.frombuffer(reply[2:end], np.float64), reply[end:]
        return Tried(values, told.decode("utf-8", "replace"), bool(reply[1]), reply[:1] == LOADED)
