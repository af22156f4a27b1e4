"""Trials: a function must give on every worker what it gives here, on the same public blocks.

A worker may lack a module that the function imports when it is called, or a file that it reads.
Then every block would be a failure there, and none here. So what it gives here travels with the
question, and a worker compares before it evaluates. The blocks are public: all may be told.
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from holdfast.engines.local.attempts import Attempts
from holdfast.engines.local.engine import LocalEngine
from holdfast.engines.local.estimators import LocalEstimator
from holdfast.engines.local.trials import TrialBlocks, trial_blocks
from holdfast.errors import InvalidInput, Unavailable
from holdfast.protocols.source import UNIT, Bounds

if TYPE_CHECKING:
    from holdfast.engines.store.reader import BlockStore

__all__ = [
    "TRIAL_BLOCKS",
    "Outcome",
    "Trial",
    "check_trial",
    "make_trial",
    "public_blocks",
    "try_out",
]

TRIAL_BLOCKS = 4  # at most: each worker has to evaluate them
_MOST_BYTES = 2**23  # of the blocks together, which go to every worker
_SHOWN = 200  # characters of what a function said


@dataclass(frozen=True)
class Outcome:
    """What a function gave on the blocks of a trial."""

    values: bytes
    failure: str
    """The kind of the first failure: blocks may fail for another reason here than there."""
    told: str = field(compare=False)
    """All that was said of it."""


@dataclass(frozen=True)
class Trial:
    """Public blocks, and what a function gave on them where it was asked."""

    table: bytes
    rows: tuple[int, ...]
    units: int
    is_open: bool
    expected: Outcome
    key: str
    """By which a worker knows it again."""

    def blocks(self) -> TrialBlocks:
        """The blocks, to be asked."""
        import pyarrow as pa

        table = pa.ipc.open_stream(self.table).read_all()
        return TrialBlocks(table, self.rows, self.units, self.is_open)


def public_blocks(
    engine: LocalEngine, store: BlockStore, function: LocalEstimator, *, sums: bool
) -> TrialBlocks:
    """A few blocks of the open part; made-up ones if there is none, or if they are too large."""
    import pyarrow as pa

    job = engine.job(_asked(function, sums), sums=sums, explain=True)
    found = trial_blocks(store, job, examples=function.examples)
    if found.is_open and found.table.nbytes > _MOST_BYTES * found.blocks:
        found = trial_blocks(store, job, pa.table({}), function.examples)
    most = int(_MOST_BYTES * found.blocks // max(1, found.table.nbytes))
    return found.ordered(range(max(1, min(found.blocks, TRIAL_BLOCKS, most))))


def try_out(
    engine: LocalEngine,
    function: LocalEstimator,
    blocks: TrialBlocks,
    *,
    sums: bool,
    bounds: Bounds = UNIT,
) -> Outcome:
    """What the function gives on these blocks, in the process that evaluates sealed ones too."""
    job = engine.job(_asked(function, sums), sums=sums, explain=True, bounds=bounds)
    job = replace(job, units=blocks.units)
    calls = [(0, blocks.blocks)] if job.vectorised else None
    tried = Attempts(engine.pool, function.name).attempt(job, blocks, calls)
    values = np.where(np.isnan(tried.values), np.nan, tried.values)  # one NaN, not many
    return Outcome(values.tobytes(), tried.told.partition(":")[0], tried.told)


def make_trial(blocks: TrialBlocks, expected: Outcome, about: bytes) -> Trial:
    """A trial as it travels; `about` is all else that the outcome can depend on."""
    table = blocks.written()
    parts = (about, table, expected.values, expected.failure.encode("utf-8"))
    key = hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in parts)).hexdigest()
    return Trial(table, blocks.rows, blocks.units, blocks.is_open, expected, key)


def check_trial(
    engine: LocalEngine,
    function: LocalEstimator,
    trial: Trial,
    *,
    sums: bool,
    bounds: Bounds = UNIT,
) -> None:
    """Refuse a worker on which the function gives something else."""
    try:
        found = try_out(engine, function, trial.blocks(), sums=sums, bounds=bounds)
    except InvalidInput:  # it ended its process
        found = Outcome(b"", "", "it ended the process that evaluates it")
    if found == trial.expected:
        return
    said = f"failed: {found.told[:_SHOWN]}" if found.told else "gave other values"
    given = f"on {platform.node()} {function.name} {said} (on public blocks)"
    remedy = (
        "Install the same packages there as here, and the modules and files that the function "
        "uses. Machines of different kinds can differ in the last bits."
    )
    needed = "a function that gives on every worker what it gives here"
    raise Unavailable("Evaluating on the cluster", needed, given, remedy)


def _asked(function: LocalEstimator, sums: bool) -> tuple[LocalEstimator | None, ...]:
    return (function, None) if sums else (function,)
