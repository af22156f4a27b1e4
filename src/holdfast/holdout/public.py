"""What is public of a holdout, and what questions get from it: open part, labels, grids, ranges.

Anybody may see it, so nothing here costs anything or tells of the sealed rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.metrics import Labels, listed, plain
from holdfast.engines.source import Engines, Limits, open_blocks
from holdfast.engines.sql.costs import seconds_at_worst
from holdfast.engines.sql.estimator import SqlEstimator, SqlTerm
from holdfast.errors import HoldfastWarning, InvalidInput
from holdfast.grids import Grid, grid
from holdfast.protocols.answers import Result, Verdict
from holdfast.protocols.base import shown
from holdfast.protocols.source import Bounds
from holdfast.store.blocks import BlockStore
from holdfast.store.table import Schema

__all__ = [
    "ENOUGH",
    "OpenPart",
    "check_open_part",
    "checked_labels",
    "compatible_range",
    "finer_grid",
    "grid_between",
    "grid_from_values",
    "no_grid",
    "public_labels",
    "ranged",
]


# The open part as questions see it: values on blocks of the sealed size, and what texts there are.
#
# Anybody may see it, so nothing here costs anything or tells of the sealed rows.


_MOST_BLOCKS = 1_000  # more would say the same, and cost time
_MOST_UNITS = 200_000  # whose terms make a guess
_MOST_TEXTS = 10_000  # different ones: a column of more has no categories
_REMEMBERED = 512

K = TypeVar("K")
V = TypeVar("V")
Texts = tuple[int, tuple[str, ...]]


class OpenPart:
    """The open part of one holdout; there may be none, or less than a block of it."""

    def __init__(self, store: BlockStore, limits: Limits) -> None:
        self._store, self._limits = store, limits
        blocks = open_blocks(store)
        self._engines = None if blocks is None else Engines(blocks, limits)
        self.blocks = 0 if blocks is None else min(blocks.blocks, _MOST_BLOCKS)  # those asked
        self._values: dict[SqlEstimator, NDArray[np.float64]] = {}
        self._counts: dict[SqlTerm, NDArray[np.int64]] = {}
        self._texts: dict[str, Texts | None] = {}

    def close(self) -> None:
        """End the workers."""
        if self._engines is not None:
            self._engines.close()

    def values(self, estimator: Any, most: int = _MOST_BLOCKS) -> NDArray[np.float64] | None:
        """An estimator's value on each open block, NaN where it has none; None without a block.

        Of SQL on as many as there are; of anything else on so many at most, for it takes time.
        """
        sql = isinstance(estimator, SqlEstimator)
        if getattr(estimator, "sealed_only", False):
            return None
        engines = self._asked(estimator) if sql else self._engines
        if engines is None:
            return None
        if not sql:
            return engines.values(estimator, 0, min(self.blocks, most))
        find = partial(engines.values, estimator, 0, self.blocks)
        return _remembered(self._values, estimator, find)

    def kept(self, where: SqlTerm) -> NDArray[np.int64] | None:
        """How much of each open block a condition keeps, 0 where nothing; None without a block."""
        engines = self._asked(where)
        if engines is None:
            return None
        return _remembered(self._counts, where, partial(engines.sums, None, where, 0, self.blocks))

    def texts(self, column: str) -> Texts | None:
        """The number of open rows, and the texts of a column in them; None if there are too many.

        Also None without an open part. Missing values are left out.
        """
        if self._store.open_path is None:
            return None
        read = partial(self._store.open_texts, column, _MOST_TEXTS)
        return _remembered(self._texts, column, read)

    def means(self, term: SqlTerm, where: Any, bounds: Bounds) -> NDArray[np.float64] | None:
        """The mean of a term, cut to its bounds, on each open block; NaN where nothing is kept."""
        engines = self._asked(term, where)
        if engines is None:
            return None
        sums = engines.sums(term, where, 0, self.blocks, bounds)
        kept = engines.sums(None, where, 0, self.blocks)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(bounds[0] + (bounds[1] - bounds[0]) * (sums / kept))

    @property
    def rows(self) -> int:
        """The open units that fill blocks."""
        return 0 if self._engines is None else self.blocks * self._engines.store.units

    def terms(self, term: Any, where: Any, bounds: Bounds) -> NDArray[np.int64] | None:
        """The term of every open unit that a filter keeps, in parts; None without a block.

        Also None of predictions for sealed rows alone.
        """
        engines = self._asked(term, where)
        if engines is None or getattr(term, "sealed_only", False):
            return None
        stop = min(self.blocks, max(1, _MOST_UNITS // engines.store.units))
        found = engines.sums(term, where, 0, stop, bounds, terms=True)
        return found if where is None else found[engines.sums(None, where, 0, stop, terms=True) > 0]

    def share(self, condition: SqlTerm) -> float | None:
        """The share of what is on open blocks of which a condition is true; None without one."""
        engines = self._asked(condition)
        if engines is None:
            return None
        share = engines.sums(condition, None, 0, self.blocks).sum()
        return float(share / engines.sums(None, None, 0, self.blocks).sum())

    def _asked(self, *asked: Any) -> Engines | None:
        """The engines; None if there is no block, or what is asked could take too long."""
        if self._engines is None or any(map(self._takes_long, asked)):
            return None
        return self._engines

    def _takes_long(self, asked: Any) -> bool:
        assert self._engines is not None
        manifest = self._engines.store.manifest
        rows = manifest.rows
        if manifest.one_row_units:
            rows = min(rows, _MOST_BLOCKS * manifest.block_units)
        seconds = seconds_at_worst(asked, None, manifest, rows)
        return seconds is not None and seconds > self._limits.open_seconds


def _remembered(known: dict[K, V], key: K, find: Callable[[], V]) -> V:
    if key in known:
        return known[key]
    found = find()
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = found
    return found


# Labels of a target: declared at creation, or seen in the open part. Sealed rows say nothing.


_MOST = 1_000
_LONGEST = 200


def checked_labels(
    labels: Sequence[object] | None, target: str | None, schema: Schema
) -> tuple[object, ...] | None:
    """The labels in one spelling, if they can be all that a target has."""
    if labels is None:
        return None
    if target is None:
        hint = "Name the column that they are labels of: target='y', --target y."
        raise InvalidInput("labels", labels, "left out without a target", hint)
    kind = schema.kind(target)
    if kind not in ("number", "text"):
        hint = "The labels of truth values are known." if kind == "boolean" else ""
        raise InvalidInput("labels", labels, f"left out for a target of kind {kind}", hint)
    allowed = f"1 to {_MOST:,} different labels, each a {kind}, as {target} is"
    found = () if isinstance(labels, str) else tuple(_label(each, kind) for each in labels)
    if not 1 <= len(found) <= _MOST or None in found or len({*found}) < len(found):
        raise InvalidInput("labels", labels, allowed)
    return found


def _label(value: object, kind: str) -> object:
    """A label in one spelling; None for what is none."""
    if kind == "text":
        good = isinstance(value, str) and 0 < len(value) <= _LONGEST
        return str(value) if good else None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number + 0.0 if math.isfinite(number) else None


def public_labels(
    store: BlockStore, target: str, kind: str, declared: Sequence[object] | None
) -> Labels:
    """What is public of a target's labels."""
    if declared is not None:
        return Labels(kind, tuple(plain(each) for each in declared))
    seen, given, _ = _open_targets(store, target)
    return Labels(kind, None, seen, given)


def check_open_part(store: BlockStore, target: str, labels: Sequence[object] | None) -> None:
    """Warn of targets that are missing in the open part; refuse labels that leave one of it out.

    No sealed row is looked at.
    """
    seen, given, rows = _open_targets(store, target)
    if labels is not None:
        others = [each for each in seen if each not in labels]
        if others:
            hint = f"The open part has {listed(others)} too. Nothing was sealed."
            raise InvalidInput("labels", list(labels), f"all labels that {target} has", hint)
    if given < rows:
        told = (
            f"{rows - given:,} of the {rows:,} open rows have no {target}, and so perhaps as many "
            "of the sealed ones: such a row counts as wrong in every score. Leave them out before "
            "you seal."
        )
        warnings.warn(told, HoldfastWarning, stacklevel=5)


def _open_targets(store: BlockStore, target: str) -> tuple[tuple[object, ...], int, int]:
    """The labels of the open part, how many of its rows have one, and how many rows it has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if store.open_path is None:
        return (), 0, 0
    column = store.open_table([target]).column(0)
    floating = pa.types.is_floating(column.type)
    given = column.filter(pc.is_finite(column) if floating else column.is_valid())
    kept = pa.types.is_temporal(column.type)  # no labels: only how many are missing is asked
    seen = () if kept else tuple(plain(each) for each in given.unique().to_pylist())
    return seen, len(given), len(column)


# Grids for questions that name none: from bounds that do not depend on the sealed data.
#
# Two sources. A value may have bounds that hold for all data, or for all data within the ranges
# that the custodian declared: a correlation, a rate, the mean of a bounded column. Or the open
# part, which anybody may see, shows where the estimator lies. The finer grid is taken: that of the
# open part, within the bounds, wherever at least five open blocks have values that are not all the
# same. Either is a hint and never a risk to the promise: values beyond an end are projected onto
# it, and an answer at the end of its grid says so.


ENOUGH = 5  # open blocks with a value, where bounds are known too
_BEYOND = 3.0  # spreads beyond the open blocks' extremes
_NICE = (Fraction(1), Fraction(2), Fraction(5, 2), Fraction(5))
_POWERS = 20


def grid_between(low: float, high: float, points: int) -> Grid:
    """Equal steps between known bounds.

    >>> grid_between(-1, 1, 33)
    grid(-1, 1, step=0.0625)
    """
    if not low < high:
        return grid([low])
    try:
        return grid(low, high, points=max(2, points))
    except InvalidInput:  # the bounds are closer than so many floats
        return grid([low, high])


def finer_grid(low: float, high: float, values: NDArray[np.float64] | None, points: int) -> Grid:
    """A grid between known bounds: around what open blocks say, if they say enough and it is finer.

    >>> finer_grid(0, 2029, np.array([180.0, 205, 233, 260, 290]), 51)
    grid(50, 420, step=10)
    >>> finer_grid(0, 2029, np.array([180.0, 290]), 51)
    grid(0, 2029, step=40.58)
    """
    wide = grid_between(low, high, points)
    known = _numbers(values)
    if known.size < ENOUGH or known.min() == known.max():
        return wide
    if known.min() >= high or known.max() <= low:  # the bounds were declared, and are wrong
        return wide
    near = grid_from_values(known, points, (low, high))
    if near is None or near.size < 2 or wide.size < 2:
        return wide
    steps = [float(each.point(1) - each.point(0)) for each in (near, wide)]
    return near if steps[0] < steps[1] else wide


def grid_from_values(
    values: NDArray[np.float64], points: int, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Grid | None:
    """A grid around what open blocks say, in round steps; None if they say nothing.

    >>> grid_from_values(np.array([9.0, 10.0, 11.5]), 32)
    grid(6, 14.5, step=0.5)
    """
    known = _numbers(values)
    if known.size == 0:
        return None
    low, high = float(known.min()), float(known.max())
    beyond = _BEYOND * _spread(known, low, high)
    return _round_grid(max(bounds[0], low - beyond), min(bounds[1], high + beyond), points)


def _numbers(values: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Those that a grid can be laid around."""
    if values is None:
        return np.empty(0)
    return values[np.isfinite(values) & (np.abs(values) < 1e15)]


def _spread(known: NDArray[np.float64], low: float, high: float) -> float:
    """Three quarters of what lies between the quartiles, or something, where that is nothing."""
    lower, upper = np.quantile(known, [0.25, 0.75])
    candidates = (0.75 * float(upper - lower), (high - low) / 2, abs(high) / 10, 1e-6)
    return next(each for each in candidates if each > 0)


def _round_grid(low: float, high: float, points: int) -> Grid:
    """At most so many points, in a step of 1, 2, 2.5 or 5 times a power of ten."""
    ends = Fraction(low), Fraction(high)
    least = (ends[1] - ends[0]) / max(1, points - 2)
    power = math.floor(math.log10(least.numerator) - math.log10(least.denominator))
    if points > 2:  # of two points, no round ones need lie on either side of 0
        for step in (f * Fraction(10) ** (power + n) for n in range(_POWERS) for f in _NICE):
            first, last = math.floor(ends[0] / step), math.ceil(ends[1] / step)
            if last - first < points:
                with suppress(InvalidInput):  # closer than floats are: try a wider one
                    return grid(first * step, last * step, step=step)
    return grid([low, high])


def no_grid() -> InvalidInput:
    """The error for a question without a grid, where nothing is known of its values."""
    hint = (
        "Nothing that does not depend on the sealed data bounds this estimator: declare ranges of "
        "its columns at creation, keep an open part, or name the grid."
    )
    return InvalidInput("grid", None, "a grid of possible answers, LOW:HIGH:STEP", hint)


# Ranges: which guesses would be compatible, were fresh blocks like those of the open part.
#
# A verdict says of one guess that fresh blocks lie on either side of it. What other guesses would
# have been told the same is seen on the open part, which anybody may look at: with n open blocks,
# no guess outside their quantiles at the tail, rounded outwards. It is no part of the answer,
# costs nothing, and is computed anew each time: nothing of the sealed blocks is in it.


Ends = tuple[float | None, float | None]


def ranged(result: Result, values: NDArray[np.float64] | None, worst: float = -math.inf) -> Result:
    """A verdict with its range, where the estimator has these values on the open blocks."""

    def with_range(step: Any) -> Any:
        if step.kind != "verdict" or values is None:
            return step
        low, high = compatible_range(step, values, worst)
        return replace(step, range_low=low, range_high=high, open_blocks=values.size)

    return result.each(with_range)


def compatible_range(
    verdict: Verdict, values: NDArray[np.float64], worst: float = -math.inf
) -> Ends:
    """The ends of the guesses that so many open blocks do not speak against; None: no such end.

    A guess stands only if more than a share of blocks lies on its side. Of n values the ⌊n·share⌋
    lowest ones are no more than that share, so that no lower guess is compatible; and so from
    above. Fewer than 1/share values say nothing. A guess that stands is always inside. A block
    without a value counts as `worst`.
    """
    ordered = np.sort(np.where(np.isnan(values), worst, values))
    near = verdict.tolerance is not None
    shares = (verdict.tail_low, verdict.tail_high if near else verdict.tail_low)
    low, high = (int(values.size * Fraction(repr(share))) for share in shares)
    margin = verdict.tolerance or 0.0
    first = float(ordered[low - 1]) - margin if low and verdict.claim != "at least" else -math.inf
    last = float(ordered[-high]) + margin if high and verdict.claim != "at most" else math.inf
    if verdict.verdict == "compatible":
        first, last = min(first, verdict.guess), max(last, verdict.guess)
    return _end(first), _end(last)


def _end(value: float) -> float | None:
    return value if math.isfinite(shown(value)) else None
