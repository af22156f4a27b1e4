"""Rows of public blocks in other company: in another order, in other blocks, few, and alone.

The error bar of a mean counts rows as independent terms, so a row's term may depend on that row
alone. Then a block's sum is the sum of its rows' terms however rows are grouped; whatever is not
additive in this way is refused. Exact weights take only the order of a block's rows for granted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.attempts import Attempts
from holdfast.engines.local.jobs import Job
from holdfast.engines.local.trials import TrialBlocks
from holdfast.errors import InvalidInput
from holdfast.protocols.source import WEIGHT_SCALE

__all__ = ["compare_orders", "compare_rows"]

_Parts = Sequence[NDArray[np.int64]]  # numbers of rows, group by group

_SEED = 20_182  # any number: the groups are the same for everybody
_ORDERS = 6  # a function of one row that is true for half of them stays unseen in 2⁻⁶ of blocks
_DEALS = 3
_MOST_CELLS = 1_000_000  # of all orders together, above two
_SAMPLED = 8  # rows of each block
_TERM_CLOSE = 2.0**-15  # of terms in [0, 1]: roundings to 2⁻¹⁶, and models in single precision
_VALUE_CLOSE = 1e-6  # relative: sums in another order, and fits that stop early


def compare_orders(job: Job, blocks: TrialBlocks, attempts: Attempts) -> int:
    """How many blocks gave values; refuse a function that depends on the order of their rows."""
    parts, generator = blocks.parts(), np.random.default_rng(_SEED)
    orders = _orders(blocks, parts, generator)
    every = [part for order in (parts, *orders) for part in order]
    values = attempts.attempt(job, blocks.regrouped(every, blocks.units)).values
    first, *others = values.reshape(-1, len(parts))
    for other in others:
        if not np.allclose(first, other, rtol=_VALUE_CLOSE, atol=1e-9, equal_nan=True):
            hint = (
                "A block gave another value when its rows were permuted. Use no first, last or "
                "neighbouring row; sort by the values of columns first."
            )
            allowed = "a function that does not depend on the order of a block's rows"
            raise InvalidInput("estimator", attempts.name, allowed, hint)
    return int(np.count_nonzero(~np.isnan(first)))


def compare_rows(job: Job, blocks: TrialBlocks, attempts: Attempts) -> int:
    """How many blocks gave sums; refuse a function whose sums are not those of its rows' terms."""
    asked = _Sums(replace(job, grouped=False), blocks, attempts)
    parts = blocks.parts()
    whole = asked.sums(parts, blocks.units)
    failed = np.isnan(whole)
    if blocks.is_open and failed.any():
        _compare_failures(asked, [part for part, bad in zip(parts, failed, strict=True) if bad])
    given = [part for part, bad in zip(parts, failed, strict=True) if not bad]
    if given:
        _compare_given(asked, given, whole[~failed])
    return len(given)


class _Sums:
    """The sums of a function's terms over groups of rows."""

    def __init__(self, job: Job, blocks: TrialBlocks, attempts: Attempts) -> None:
        self.job, self.blocks, self.attempts = job, blocks, attempts

    def sums(self, parts: _Parts, units: int) -> NDArray[np.float64]:
        """Of each group, evaluated by itself; NaN for failures."""
        blocks, job = self.blocks.regrouped(parts, units), replace(self.job, units=units)
        values = self.attempts.attempt(job, blocks).values
        sizes = np.diff(blocks.rows)
        return np.asarray(values / WEIGHT_SCALE if job.sums else values * sizes, np.float64)

    def compare(self, one: object, two: object, rows: int, how: str) -> None:
        """Refuse sums over that many rows that differ, or of which one has failed."""
        apart = np.abs(np.asarray(one, np.float64) - np.asarray(two, np.float64))
        if not (apart <= _TERM_CLOSE * rows).all():
            self.refuse(f"The same rows gave another sum {how}, or failed.")

    def refuse(self, seen: str) -> NoReturn:
        hint = (
            f"{seen} Make each row's term from the columns of that row: compare with numbers known "
            "before, not with a mean, a rank or another row of the block."
        )
        allowed = "a function whose term of a row depends on that row alone"
        raise InvalidInput("estimator", self.attempts.name, allowed, hint)


def _compare_given(asked: _Sums, given: _Parts, whole: NDArray[np.float64]) -> None:
    """Blocks that gave sums: so must their rows in every order, in other blocks, and alone."""
    generator, count = np.random.default_rng(_SEED), len(given)
    rows = max(len(part) for part in given)
    orders = _orders(asked.blocks, given, generator)
    deals = [_dealt(given, generator) for _ in range(_DEALS)]
    few = min(_SAMPLED, *(len(part) for part in given))
    sample = np.stack([generator.choice(part, few, replace=False) for part in given])
    incoming = np.roll(sample, 1, axis=0)
    exchanged = [
        np.concatenate([np.setdiff1d(part, old), new])
        for part, old, new in zip(given, sample, incoming, strict=True)
    ]
    every = [part for way in (*orders, *deals, exchanged) for part in way]
    sums = asked.sums(every, asked.blocks.units).reshape(-1, count)
    asked.compare(sums[: len(orders)], whole, rows, "in another order")
    dealt = sums[len(orders) : -1].sum(axis=1)
    asked.compare(dealt, whole.sum(), rows * count, "when they were dealt into other blocks")
    single = asked.sums(list(sample.reshape(-1, 1)), 1)
    small = generator.permutation(sample.size)[: sample.size // few * few].reshape(-1, few)
    together = asked.sums(list(sample.ravel()[small]), few)
    asked.compare(single[small].sum(axis=1), together, few, "one at a time than a few at once")
    change = single.reshape(count, few).sum(axis=1)
    change = np.roll(change, 1) - change
    asked.compare(sums[-1], whole + change, rows, "one at a time than in a block")


def _compare_failures(asked: _Sums, failed: _Parts) -> None:
    """Open blocks that failed: so must each of their rows, or one row fails for the others."""
    sample = np.concatenate([part[:_SAMPLED] for part in failed]).reshape(-1, 1)
    if not np.isnan(asked.sums(list(sample), 1)).all():
        asked.refuse("It failed on a block of the open part, and not on each row of it.")


def _orders(
    blocks: TrialBlocks, parts: _Parts, generator: np.random.Generator
) -> list[list[NDArray[np.int64]]]:
    """The blocks with their rows reversed, and permuted at random."""
    cells = blocks.table.num_rows * blocks.table.num_columns
    orders = max(2, min(_ORDERS, _MOST_CELLS // cells))
    permuted = [[generator.permutation(part) for part in parts] for _ in range(orders - 1)]
    return [[part[::-1] for part in parts], *permuted]


def _dealt(parts: _Parts, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """The same rows in blocks of the same sizes."""
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return np.split(generator.permutation(np.concatenate(parts)), cuts)
