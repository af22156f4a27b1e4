"""Admission: a function is tried on public blocks before it is asked of sealed ones.

What fails on most of them is refused: on sealed blocks a failure is a value, and would be certified
like any other. A function of one block must give a block's value whatever came before it: it is
called for each block in a process of its own, twice, and for all of them in one process in two
orders. A vectorised function must treat each block by itself: it is called for all at once, in two
orders, for a few at a time, and for each alone. Where a bound takes rows or their order for
granted, rows are regrouped as well. What differs is refused, and the message may say everything,
for the blocks are public. That is a check, not a proof: the certificate names the assumption.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.attempts import Attempts, Tried
from holdfast.engines.local.jobs import Job
from holdfast.engines.local.metrics.labels import WrongLabels
from holdfast.engines.local.regrouping import compare_orders, compare_rows
from holdfast.engines.local.trials import TrialBlocks
from holdfast.errors import InvalidInput
from holdfast.protocols.promises import in_full

__all__ = [
    "ASSUMPTION",
    "ASSUMPTION_ORDER",
    "ASSUMPTION_ROWS",
    "ASSUMPTION_SHARED",
    "Admission",
    "FailsOnMost",
    "Wanted",
    "admit",
    "admit_predictions",
]

ASSUMPTION = (
    "a vectorised estimator treats each block by itself (checked on open or made-up blocks)"
)
ASSUMPTION_SHARED = (
    "a Python estimator keeps nothing from one block for the next "
    "(checked on open or made-up blocks)"
)
ASSUMPTION_ROWS = (
    "each row's term depends on that row alone (checked on open or made-up blocks), and on no row "
    "the function ends its process or exceeds its limits of time and memory"
)
ASSUMPTION_ORDER = (
    "the estimator does not depend on the order of a block's rows "
    "(checked on open or made-up blocks)"
)

_SINGLE_BLOCKS = 4  # enough to see a state, and each costs a process
_SHOWN = 300  # characters of what a function said
_CLOSE = 1e-9  # how far sums in another order may be apart
_SILENT = "it gave no number, ended its process, or took too long"
_OPEN_PART = (
    "If it needs values that only the data have, keep an open part at creation (open_fraction=0.1, "
    "--open-fraction 0.1): then it is tried there instead. "
)


class FailsOnMost(InvalidInput):
    """A function failed on most of the public blocks."""


@dataclass(frozen=True)
class Admission:
    """How a function was checked."""

    is_open: bool
    """Whether on open blocks; else on made-up ones."""
    blocks: int
    """How many of them gave values to compare."""
    assumption: str | None
    """Whether it treats blocks apart, if that is taken for granted: the first of all."""
    assumptions: tuple[str, ...] = ()
    """All that the promise takes for granted about the function."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of a function beside that it treats each block by itself."""

    isolated: bool = False
    """Whether every block will have a process of its own."""
    rows: bool = False
    """Whether each row's term must depend on that row alone."""
    symmetric: bool = False
    """Whether the order of a block's rows must not matter."""
    assumes: tuple[str, ...] = ()
    """What is taken for granted already."""


def admit(job: Job, blocks: TrialBlocks, attempts: Attempts, wanted: Wanted) -> Admission:
    """How the function was checked; `InvalidInput` if it is refused."""
    job = replace(job, units=blocks.units)
    compared = (_vectorised if job.vectorised else _single)(job, blocks, attempts)
    if job.sums:  # terms that are no numbers count as 0: here they show
        tried = attempts.attempt(replace(job, strict=True), blocks)
        _refuse_failing(tried, blocks, attempts.name)
    _refuse_uncontrolled(job, attempts)
    first = ASSUMPTION if job.vectorised else None if wanted.isolated else ASSUMPTION_SHARED
    checked = [] if first is None else [first]
    if wanted.rows:
        compare_rows(job, blocks, attempts)
        checked.append(ASSUMPTION_ROWS)
    if job.sums and blocks.is_open:  # made-up numbers are any: that they leave a range says nothing
        _refuse_outside(job, blocks, attempts)
    if wanted.symmetric:
        compare_orders(job, blocks, attempts)
        checked.append(ASSUMPTION_ORDER)
    return Admission(blocks.is_open, compared, first, (*checked, *wanted.assumes))


def admit_predictions(job: Job, blocks: TrialBlocks, attempts: Attempts) -> None:
    """Refuse a model that predicts nothing on most rows, or what can be no label.

    Its score counts both as wrong, row by row, and so never fails itself.
    """
    job = replace(job, units=blocks.units)
    tried = attempts.attempt(job, blocks, [(0, blocks.blocks)] if job.vectorised else None)
    _refuse_unloadable(tried, attempts.name)
    kind, _, message = tried.told.partition(": ")
    if kind == WrongLabels.__name__:
        hint = f"{message} Nothing was charged."
        raise InvalidInput("model", attempts.name, "a model that predicts labels", hint)
    _refuse_failing(tried, blocks, attempts.name)


def _single(job: Job, blocks: TrialBlocks, attempts: Attempts) -> int:
    attempt, name = attempts.of(job), attempts.name
    few = blocks.ordered(range(min(_SINGLE_BLOCKS, blocks.blocks)))
    alone = attempt(few, isolated=True)
    _refuse_unloadable(alone, name)
    _refuse_failing(alone, few, name)
    given = int(np.count_nonzero(~np.isnan(alone.values)))
    again = attempt(few, isolated=True)
    if not _identical(alone.values, again.values):
        _refuse_random(name)
    together = attempt(few)
    backward = attempt(few.ordered(range(few.blocks)[::-1]))
    same = _identical(alone.values, together.values)
    same = same and _identical(alone.values, backward.values[::-1])
    if not same or together.changed or backward.changed:
        hint = (
            "A block gave another value after other blocks than before them. Keep no counters, "
            "caches or other state outside of the function."
        )
        raise InvalidInput("estimator", name, "a function that remembers nothing", hint)
    return given


def _vectorised(job: Job, blocks: TrialBlocks, attempts: Attempts) -> int:
    attempt, name = attempts.of(job), attempts.name
    count = blocks.blocks
    alone = attempt(blocks)
    _refuse_unloadable(alone, name)
    _refuse_failing(alone, blocks, name)
    whole = attempt(blocks, [(0, count)])
    if not _identical(whole.values, attempt(blocks, [(0, count)]).values):
        _refuse_random(name)
    backward = blocks.ordered(range(count)[::-1])
    other = [*range(1, count), 0]
    pairs = [(first, min(count, first + 2)) for first in range(0, count, 2)]
    ways = {
        "when all blocks came at once": whole.values,
        "when the blocks came in another order": attempt(backward, [(0, count)]).values[::-1],
        "beside other blocks": np.roll(attempt(blocks.ordered(other), pairs).values, 1),
    }
    for how, values in ways.items():
        if not _close(alone.values, values):
            hint = (
                f"A block's value {how} was not its value alone. Reduce over the rows of a block "
                "only (axis=1), or leave vectorised out."
            )
            allowed = "a function that treats each block by itself"
            raise InvalidInput("estimator", name, allowed, hint)
    return int(np.count_nonzero(~np.isnan(alone.values)))


def _identical(one: NDArray[np.float64], two: NDArray[np.float64]) -> bool:
    return np.array_equal(one, two, equal_nan=True)


def _close(one: NDArray[np.float64], two: NDArray[np.float64]) -> bool:
    return np.allclose(one, two, rtol=_CLOSE, atol=_CLOSE * 1e-6, equal_nan=True)


def _refuse_unloadable(tried: Tried, name: str) -> None:
    """So that later, when loading fails, it is known to have been possible: see seats."""
    if not tried.loaded:
        why = tried.told[:_SHOWN] or "it ended the process, or took too long"
        hint = f"It cannot be loaded in another process: {why}. Nothing was charged."
        raise InvalidInput("estimator", name, "a function that can be loaded elsewhere", hint)


def _refuse_uncontrolled(job: Job, attempts: Attempts) -> None:
    """So that a control that fails later has not failed because of what it is: see seats."""
    if not attempts.controlled(job):
        allowed = "a function that can be loaded where there are no blocks, too"
        raise InvalidInput("estimator", attempts.name, allowed, "Nothing was charged.")


def _refuse_failing(tried: Tried, blocks: TrialBlocks, name: str) -> None:
    """A function that fails on more than half of the blocks."""
    failed, count = int(np.count_nonzero(np.isnan(tried.values))), len(tried.values)
    if 2 * failed <= count:
        return
    where, keep = ("open", "") if blocks.is_open else ("made-up", _OPEN_PART)
    on = f"every {where} block" if failed == count else f"{failed} of {count} {where} blocks"
    why = tried.told[:_SHOWN].rstrip(".") or _SILENT
    hint = f"It failed on {on}: {why}. {keep}Nothing was charged."
    raise FailsOnMost("estimator", name, "a function that works", hint)


def _refuse_outside(job: Job, blocks: TrialBlocks, attempts: Attempts) -> None:
    """A term that leaves its range on open rows would be cut on sealed ones."""
    found = attempts.attempt(replace(job, outside=True), blocks).values
    known = found[~np.isnan(found)]
    if len(known):
        low, high = (in_full(end) for end in job.bounds)
        hint = (
            f"{attempts.name} gave {in_full(known[0])} on an open row. Declare a wider range, or "
            f"cut it yourself: np.clip(…, {low}, {high}). Nothing was charged."
        )
        allowed = "a range that holds the term on every row of the open part"
        raise InvalidInput("range", job.bounds, allowed, hint)


def _refuse_random(name: str) -> NoReturn:
    hint = (
        "The same blocks gave different values when they were asked twice. Seed what it draws "
        "inside it, as in np.random.default_rng(1)."
    )
    allowed = "a function that gives a block the same value every time"
    raise InvalidInput("estimator", name, allowed, hint)
