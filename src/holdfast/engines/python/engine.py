"""The local engine: Python functions on the blocks of a store, each block by itself."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.concurrency import Closing
from holdfast.engines.process import WorkerDied, WorkerTimeout
from holdfast.engines.python.estimator import (
    Job,
    Limits,
    LocalEstimator,
    Part,
    checked_estimator,
    failed_share,
    failed_sum,
    packages,
    stored_columns,
    surroundings,
)
from holdfast.engines.python.metrics import WrongLabels
from holdfast.engines.python.pool import CONTROLS, Pool, Progress
from holdfast.engines.python.worker import LOADED, Control, Item, Setup, Trial, batch_blocks
from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.protocols.answers import in_full
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds

__all__ = [
    "ASSUMPTION",
    "ASSUMPTION_ORDER",
    "ASSUMPTION_ROWS",
    "ASSUMPTION_SHARED",
    "Admission",
    "Attempts",
    "FailsOnMost",
    "LocalEngine",
    "TrialBlocks",
    "Tried",
    "Wanted",
    "admit",
    "admit_predictions",
    "compare_orders",
    "compare_rows",
    "drawn_blocks",
    "trial_blocks",
]


# Public blocks on which a function is tried: of the open part, or made up from the schema.
#
# Made-up blocks show no data, and try what data can do: numbers around 0 and far from it, heavy
# tails, few different values, one value only, NULLs; texts, dates and truth values likewise.
# Where a
# range or all values of a column were declared, they keep to it.


Examples = Mapping[str, Sequence[object]]

_TEXTS = ("a", "b", "c", "d", "e")
_BLOCKS = 8
_FEWEST_OPEN = 3  # blocks; with fewer, nothing could be compared
_TERM_UNITS = 128  # in a block, at least, for terms: they see the rows of many blocks at once
_OPEN_UNITS = 32  # so that a function that fails on some open rows is not taken for one on most
_MOST_CELLS = 2_000_000
_SEED = 20_181  # any number: the blocks are the same for everybody
_EPOCH_DAYS = 18_000
_PLACE = ("__block", "__unit")


@dataclass(frozen=True)
class TrialBlocks:
    """Rows of a few whole blocks, and where each begins."""

    table: Any
    rows: tuple[int, ...]
    units: int
    is_open: bool

    @property
    def blocks(self) -> int:
        """How many there are."""
        return len(self.rows) - 1

    def ordered(self, order: Sequence[int]) -> TrialBlocks:
        """The same blocks, some of them, in another order."""
        import pyarrow as pa

        pieces = [self.table.slice(self.rows[k], self.rows[k + 1] - self.rows[k]) for k in order]
        sizes = [piece.num_rows for piece in pieces]
        rows = (0, *(int(each) for each in np.cumsum(sizes)))
        return TrialBlocks(pa.concat_tables(pieces), rows, self.units, self.is_open)

    def parts(self) -> list[NDArray[np.int64]]:
        """The numbers of each block's rows."""
        return [np.arange(a, b) for a, b in itertools.pairwise(self.rows)]

    def regrouped(self, parts: Sequence[NDArray[np.int64]], units: int) -> TrialBlocks:
        """Blocks made of rows by their numbers, each of which may come in several blocks."""
        rows = (0, *(int(each) for each in np.cumsum([len(part) for part in parts])))
        return TrialBlocks(self.table.take(np.concatenate(parts)), rows, units, self.is_open)

    def written(self) -> bytes:
        """The table as bytes."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        return bytes(sink.getvalue())


def trial_blocks(
    store: Any, job: Job, open_table: Any = None, examples: Examples | None = None
) -> TrialBlocks:
    """Blocks of the open part if it has enough of them, else made-up ones.

    `open_table` has the hidden columns too; without it the store's own open part is read. For
    terms, blocks that are small are put together. `examples` are values that made-up rows have in
    some columns.
    """
    if open_table is None and store.open_path is not None:
        open_table = _first_rows(store, _columns(job), _open_count(store, job))
    found = None if open_table is None else _open_blocks(store, job, open_table)
    return _made_up(store, job, examples or {}) if found is None else found


def drawn_blocks(store: Any, job: Job) -> TrialBlocks | None:
    """Blocks of units drawn from the open part, with replacement; None if there is none.

    For an open part that fills too few blocks to compare: a function that knows the data's own
    values can be tried on them all the same.
    """
    if store.open_path is None:
        return None
    table = _first_rows(store, _columns(job), _open_count(store, job))
    numbers = np.stack([np.asarray(table.column(name).to_numpy()) for name in _PLACE])
    first = np.flatnonzero(np.any(np.diff(numbers, prepend=-1) != 0, axis=0))
    ends = np.append(first, table.num_rows)
    columns, units = _columns(job), _trial_units(store, job, len(_columns(job)))
    generator = np.random.default_rng(_SEED)
    picked = generator.integers(0, len(first), (_BLOCKS, units))
    parts = [np.concatenate([np.arange(ends[k], ends[k + 1]) for k in each]) for each in picked]
    per_unit = np.diff(ends)[picked.ravel()]
    rows = (0, *(int(each) for each in np.cumsum([len(part) for part in parts])))
    data = {name: table.column(name).take(np.concatenate(parts)) for name in columns}
    data["__unit"] = np.repeat(np.arange(picked.size), per_unit)  # drawn twice, it is two units
    return TrialBlocks(_table(data), rows, units, True)


def _table(data: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(data)


def _together(store: Any, job: Job) -> int:
    """How many of the store's blocks are one here."""
    return max(1, -(-_TERM_UNITS // store.units)) if job.sums else 1


def _first_rows(store: Any, columns: list[str], wanted: int) -> Any:
    """The first blocks of the open part: the rest need not be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches, blocks = [], 0
    with pq.ParquetFile(store.open_path) as file:
        for batch in file.iter_batches(columns=["__block", *columns]):
            batches.append(batch)
            blocks = batch.column("__block")[-1].as_py()
            if blocks > wanted:
                break
    return pa.Table.from_batches(batches)


def _open_count(store: Any, job: Job) -> int:
    """How many of the store's blocks are read of the open part at most."""
    return max(_BLOCKS * _together(store, job), _OPEN_UNITS // int(store.units))


def _open_blocks(store: Any, job: Job, table: Any) -> TrialBlocks | None:
    columns = _columns(job)
    if not {*columns, "__block"} <= set(table.column_names):
        return None
    number = np.asarray(table.column("__block").to_numpy(), np.int64)
    unit = np.asarray(table.column("__unit").to_numpy(), np.int64)
    first = np.flatnonzero(np.diff(number, prepend=-1))
    rows = [*first.tolist(), len(number)]
    complete = [
        k
        for k, (a, b) in enumerate(itertools.pairwise(rows))
        if len(np.unique(unit[a:b])) == store.units
    ][: _open_count(store, job)]
    each = min(_together(store, job), len(complete) // _FEWEST_OPEN)
    if each == 0:
        return None
    most = each * (len(complete) // each)
    everything = TrialBlocks(table.select(columns), tuple(rows), store.units, True)
    found = everything.ordered(complete[:most])
    return replace(found, rows=found.rows[::each], units=each * store.units)


def _columns(job: Job) -> list[str]:
    names: dict[str, None] = {}
    for columns in job.needs.values():
        names.update(dict.fromkeys(columns))
    return list(names | {"__unit": None})


def _trial_units(store: Any, job: Job, columns: int) -> int:
    """How many units a trial's block has: as many as the store's, if they are not too many."""
    wanted = store.units * _together(store, job)
    return int(min(wanted, max(2, _MOST_CELLS // (_BLOCKS * columns))))


def _made_up(store: Any, job: Job, examples: Examples) -> TrialBlocks:
    columns = _columns(job)
    units = _trial_units(store, job, len(columns))
    generator = np.random.default_rng(_SEED)
    per_unit = np.ones(_BLOCKS * units, np.int64)
    if not store.manifest.one_row_units:
        per_unit = generator.integers(1, 4, _BLOCKS * units)
    starts = np.concatenate([[0], np.cumsum(per_unit)])
    rows = starts[::units]
    data: dict[str, Any] = {}
    for name in columns:
        if name == "__unit":
            data[name] = np.repeat(np.arange(_BLOCKS * units), per_unit)
        elif name == "__row":
            data[name] = np.arange(starts[-1]) % store.manifest.rows
        else:
            values = examples.get(name) or store.values.get(name)
            data[name] = _trials_column(
                store.schema.kind(name), rows, generator, values, store.ranges.get(name)
            )
    return TrialBlocks(_table(data), tuple(int(each) for each in rows), units, False)


def _trials_column(
    kind: str,
    rows: NDArray[np.int64],
    generator: np.random.Generator,
    values: Sequence[object] | None,
    ends: tuple[float, float] | None,
) -> Any:
    import pyarrow as pa

    size = int(rows[-1])
    missing = np.zeros(size, np.bool_)
    for block, share in ((2, 0.1), (6, 0.9)):
        span = slice(int(rows[block]), int(rows[block + 1]))
        missing[span] = generator.random(span.stop - span.start) < share
    known = _known(kind, values)
    if known:
        picked = [known[k] for k in generator.integers(0, len(known), size)]
        return pa.array(picked, mask=missing)
    if kind == "number":
        return pa.array(_numbers(rows, generator, ends), mask=missing)
    if kind == "boolean":
        return pa.array(generator.random(size) < 0.5, mask=missing)
    if kind == "text":
        texts = [_TEXTS[k] for k in generator.integers(0, len(_TEXTS), size)]
        return pa.array(texts, pa.string(), mask=missing)
    days = _EPOCH_DAYS + generator.integers(0, 1000, size)
    if kind == "date":
        return pa.array(days.astype("datetime64[D]"), mask=missing)
    moments = days * 86_400_000_000 + generator.integers(0, 86_400_000_000, size)
    return pa.array(moments.astype("datetime64[us]"), mask=missing)


_PLAIN: dict[str, Any] = {"number": float, "boolean": bool, "text": str}


def _known(kind: str, values: Sequence[object] | None) -> list[Any]:
    """Values that a column of this kind can have; none, if they are of another."""
    try:
        return [_PLAIN[kind](each) for each in values or ()]
    except (LookupError, OverflowError, TypeError, ValueError):
        return []


def _numbers(
    rows: NDArray[np.int64], generator: np.random.Generator, ends: tuple[float, float] | None
) -> NDArray[np.float64]:
    """One kind of numbers in every block."""
    values = np.empty(int(rows[-1]))
    for block in range(len(rows) - 1):
        size = int(rows[block + 1] - rows[block])
        kinds: Sequence[NDArray[np.float64]] = (
            generator.normal(size=size),
            generator.normal(1000.0, 10.0, size),
            generator.normal(size=size),
            generator.integers(0, 2, size).astype(np.float64),
            generator.standard_cauchy(size),
            generator.lognormal(2.0, 1.0, size),
            generator.normal(size=size),
            np.full(size, float(generator.integers(1, 9))),
        )
        if ends is not None:
            kinds = [_within(each, k, ends) for k, each in enumerate(kinds)]
        values[rows[block] : rows[block + 1]] = kinds[block % len(kinds)]
    return values


_SPREADS = ((0.5, 0.25), (-24.5, 0.025), (0.5, 0.25), (0, 1), (0.5, 0.1), (0, 0.02), (0.5, 0.25))


def _within(
    values: NDArray[np.float64], kind: int, ends: tuple[float, float]
) -> NDArray[np.float64]:
    """The same kind of numbers between two ends: all over, near the middle, at both ends, …"""
    low, high = ends
    middle, scale = _SPREADS[kind] if kind < len(_SPREADS) else (0.0, 0.1)
    shares = np.clip(middle + scale * values, 0.0, 1.0)
    return np.clip(low + (high - low) * shares, low, high)


# Attempts: a function asked of public blocks, in a worker, as it would be of sealed ones.


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


# Rows of public blocks in other company: in another order, in other blocks, few, and alone.
#
# The error bar of a mean counts rows as independent terms, so a row's term may depend on that row
# alone. Then a block's sum is the sum of its rows' terms however rows are grouped; whatever is not
# additive in this way is refused. Exact weights take only the order of a block's rows for granted.


_Parts = Sequence[NDArray[np.int64]]  # numbers of rows, group by group

_REGROUPING_SEED = 20_182  # any number: the groups are the same for everybody
_ORDERS = 6  # a function of one row that is true for half of them stays unseen in 2⁻⁶ of blocks
_DEALS = 3
_REGROUPING_MOST_CELLS = 1_000_000  # of all orders together, above two
_SAMPLED = 8  # rows of each block
_TERM_CLOSE = 2.0**-15  # of terms in [0, 1]: roundings to 2⁻¹⁶, and models in single precision
_VALUE_CLOSE = 1e-6  # relative: sums in another order, and fits that stop early


def compare_orders(job: Job, blocks: TrialBlocks, attempts: Attempts) -> int:
    """How many blocks gave values; refuse a function that depends on the order of their rows."""
    parts, generator = blocks.parts(), np.random.default_rng(_REGROUPING_SEED)
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
    generator, count = np.random.default_rng(_REGROUPING_SEED), len(given)
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
    orders = max(2, min(_ORDERS, _REGROUPING_MOST_CELLS // cells))
    permuted = [[generator.permutation(part) for part in parts] for _ in range(orders - 1)]
    return [[part[::-1] for part in parts], *permuted]


def _dealt(parts: _Parts, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """The same rows in blocks of the same sizes."""
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return np.split(generator.permutation(np.concatenate(parts)), cuts)


# Admission: a function is tried on public blocks before it is asked of sealed ones.
#
# What fails on most of them is refused: on sealed blocks a failure is a value, and would be
# certified
# like any other. A function of one block must give a block's value whatever came before it: it is
# called for each block in a process of its own, twice, and for all of them in one process in two
# orders. A vectorised function must treat each block by itself: it is called for all at once, in
# two
# orders, for a few at a time, and for each alone. Where a bound takes rows or their order for
# granted, rows are regrouped as well. What differs is refused, and the message may say everything,
# for the blocks are public. That is a check, not a proof: the certificate names the assumption.


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


_MOST_WORKERS = 4
_MOST_BLOCKS = 512  # in one process: what is found wrong at its end is done again
_MOST_ROWS = 2**18  # in one range of blocks
_MOST_BATCHES = 1024  # in one range of blocks
_RANGES = 4  # for each worker, so that progress shows
_FEWEST_BLOCKS = 8  # in one range: a process costs more than most blocks


class LocalEngine(Closing):
    """Evaluates Python functions on blocks, in worker processes that outlive a question.

    A function that raises, returns no number, runs for longer than `block_time_limit` seconds on a
    block, takes more than `memory_limit` bytes or ends its process has failed on that block, and
    on no other. No exception of it is ever seen, no warning, and nothing that it prints.

    With `isolated=True` every block has a process of its own; otherwise blocks share one as long as
    none of them is seen to leave anything behind.
    """

    def __init__(
        self,
        store: Any,
        *,
        workers: int | None = None,
        memory_limit: int = 2 * 2**30,
        block_time_limit: float = 10.0,
        batch_time_limit: float = 60.0,
        load_time_limit: float = 60.0,
        cache: int = 2 * 2**30,
        isolated: bool = False,
    ) -> None:
        count = min(_MOST_WORKERS, os.cpu_count() or 1) if workers is None else workers
        count = whole_number("workers", count, 1, 1024)
        self._store, self._isolated = store, isolated
        self._limits = Limits(
            block_seconds=real_number("block_time_limit", block_time_limit, 0, open_low=True),
            batch_seconds=real_number("batch_time_limit", batch_time_limit, 0, open_low=True),
            load_seconds=real_number("load_time_limit", load_time_limit, 0, open_low=True),
            memory=whole_number("memory_limit", memory_limit, 2**20, 2**62),
        )
        self._pool = Pool(Setup(store, whole_number("cache", cache, 0, 2**62) // count), count)
        self._last: tuple[Any, Job] | None = None

    @property
    def pool(self) -> Pool:
        """The workers, for whoever tries a function without a question."""
        return self._pool

    def close(self) -> None:
        """End the workers; a later question starts new ones."""
        self._pool.close()

    def values(
        self,
        estimator: LocalEstimator,
        start: int = 0,
        stop: int | None = None,
        *,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """The estimator's value on the blocks start, …, stop − 1, in that order.

        NaN for failures, or what the estimator says that they are.

        `progress(done, total)` is called as blocks come back. The time is at most about
        2 · blocks · `block_time_limit` / workers, whatever the function does.
        """
        values = self._ask(self.job((estimator,), sums=False), start, stop, progress)
        failure = estimator.failure
        return values if math.isnan(failure) else np.where(np.isnan(values), failure, values)

    def sums(
        self,
        function: LocalEstimator | None,
        where: LocalEstimator | None = None,
        start: int = 0,
        stop: int | None = None,
        *,
        bounds: Bounds = UNIT,
        progress: Progress | None = None,
    ) -> NDArray[np.int64]:
        """For every block the sum over its units of ⌊2¹⁶·function + 1/2⌋; see protocols.source.

        A function gives one number for each row, which is cut to the bounds and scaled from them to
        [0, 1], a filter true or false for each. The term of a unit of several rows is the average
        over those kept. None stands for 1.
        """
        job = self.job((function, where), sums=True, bounds=bounds)
        values = self._ask(job, start, stop, progress)
        failed = failed_sum(function, self._store.units)
        return np.where(np.isnan(values), failed, values).astype(np.int64)

    def admit(
        self,
        estimator: LocalEstimator,
        open_table: Any = None,
        *,
        rows: bool = False,
        symmetric: bool = False,
        bounds: Bounds = UNIT,
    ) -> Admission:
        """Refuse a function that mixes blocks, keeps a state or draws at random; see admission.

        With `rows=True`, a function for `sums`: each row's term must depend on that row alone, as
        for a bounded mean, and lie within the bounds on open rows. With `symmetric=True` the order
        of a block's rows must not matter.
        """
        functions = (estimator, None) if rows else (estimator,)
        job = self.job(functions, sums=rows, explain=True, bounds=bounds)
        if estimator.built_in:  # nothing of the user's runs: there is nothing to try
            return Admission(False, 0, None, estimator.assumes)
        try:
            blocks = trial_blocks(self._store, job, open_table, estimator.examples)
            return self._admitted(estimator, job, blocks, rows, symmetric)
        except FailsOnMost:  # on made-up blocks, perhaps, of which the data have nothing
            drawn = None if blocks.is_open else drawn_blocks(self._store, job)
            if drawn is None:
                raise
        return self._admitted(estimator, job, drawn, rows, symmetric)

    def _admitted(
        self,
        estimator: LocalEstimator,
        job: Job,
        blocks: TrialBlocks,
        rows: bool,
        symmetric: bool,
    ) -> Admission:
        attempts = Attempts(self._pool, estimator.name)
        if estimator.tried is not None:
            tried = self.job((estimator.tried(),), sums=False, explain=True)
            admit_predictions(tried, blocks, attempts)
        return admit(
            job,
            blocks,
            attempts,
            Wanted(self._isolated, rows or estimator.bounded_mean, symmetric, estimator.assumes),
        )

    def job(
        self,
        functions: tuple[LocalEstimator | None, ...],
        *,
        sums: bool,
        explain: bool = False,
        bounds: Bounds = UNIT,
    ) -> Job:
        """The question as a worker takes it; the same object for the same question again."""
        key = (functions, sums, explain, bounds, surroundings())
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        checked = [
            None if each is None else checked_estimator(each, self._store) for each in functions
        ]
        called = [None if each is None else self._part(each) for each in checked]
        payloads = tuple(None if each is None else each.payload for each in checked)
        path, folder = surroundings()
        job = Job(
            payloads=payloads,
            parts=tuple(called),
            sums=sums,
            units=self._store.units,
            grouped=sums and not self._store.manifest.one_row_units,
            limits=self._limits,
            path=path,
            folder=folder,
            packages=packages(payloads),
            explain=explain,
            bounds=bounds,
            failure=failed_share(checked[0]) if sums else 0.0,
        )
        self._last = key, job
        return job

    def _part(self, estimator: LocalEstimator) -> Part:
        rectangular = self._store.manifest.one_row_units
        vectorised = estimator.batched is not None and rectangular
        kind = "numpy" if vectorised else estimator.block
        return Part(kind, stored_columns(estimator, self._store.schema), vectorised)

    def _ask(
        self, job: Job, start: int, stop: int | None, progress: Progress | None
    ) -> NDArray[np.float64]:
        blocks = self._store.blocks
        stop = whole_number("stop", blocks if stop is None else stop, 1, blocks)
        start = whole_number("start", start, 0, stop - 1)
        for shard in self._store.overlapping(start, stop):
            self._store.check_there(shard)  # without it every value would be a failure
        size = self._range_blocks(job, stop - start)
        ranges = [(first, min(stop, first + size)) for first in range(start, stop, size)]
        return self._pool.ask(job, ranges, isolated=self._isolated, progress=progress)

    def _range_blocks(self, job: Job, blocks: int) -> int:
        """How many blocks go to a worker at once."""
        if job.batched:
            batch = batch_blocks(job.units, sums=job.sums)
            shares = self._pool.workers * (_RANGES if job.sums else 1)
            share = -(-blocks // (shares * batch)) * batch
            return min(share, _MOST_BATCHES * batch)  # whole batches, however many workers
        rows = self._store.manifest.block_rows / self._store.blocks
        share = max(_FEWEST_BLOCKS, -(-blocks // (self._pool.workers * _RANGES)))
        return max(1, min(share, _MOST_BLOCKS, int(_MOST_ROWS / rows)))
