"""Admission: a function is tried on public blocks before it is asked of sealed ones.

What fails on most of them is refused: on sealed blocks a failure is a value, and would be certified
like any other. A function of one block must give a block's value whatever came before it: it is
called for each block in a process of its own, twice, and for all of them in one process in two
orders. A vectorised function must treat each block by itself: it is called for all at once, in two
orders, for a few at a time, and for each alone. Where a bound takes rows or their order for
granted, rows are regrouped as well. What differs is refused, and the message may say everything,
for the blocks are public. That is a check, not a proof: the certificate names the assumption.

The blocks are those of the open part, or made up from the schema. Made-up blocks show no data, and
try what data can do: numbers around 0 and far from it, heavy tails, few different values, one value
only, NULLs; texts, dates and truth values likewise. Where a range or all values of a column were
declared, they keep to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.process import WorkerDied, WorkerTimeout
from holdfast.engines.python.estimator import FunctionJob
from holdfast.engines.python.metrics import WrongLabels
from holdfast.engines.python.worker import LOADED, Control, Item, Trial
from holdfast.errors import InvalidInput
from holdfast.protocols.answers import in_full
from holdfast.protocols.source import WEIGHT_SCALE

__all__ = ["Admission", "Attempts", "FailsOnMost", "TrialBlocks", "drawn_blocks", "trial_blocks"]

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
CONTROLS = 2  # workers that may fail to load a function before it is the machine's fault

Examples = Mapping[str, Sequence[object]]
"""Values that made-up rows have in some columns."""

_BLOCKS = 8
_FEWEST_OPEN = 3  # blocks; with fewer, nothing could be compared
_TERM_UNITS = 128  # in a block, at least, for terms: they see the rows of many blocks at once
_OPEN_UNITS = 32  # so that a function that fails on some open rows is not taken for one on most
_MOST_CELLS = 2_000_000
_SEED = 20_181  # any number: the blocks are the same for everybody


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

    def parts(self) -> list[NDArray[np.int64]]:
        """The numbers of each block's rows."""
        return [np.arange(a, b) for a, b in itertools.pairwise(self.rows)]

    def ordered(self, order: Sequence[int]) -> TrialBlocks:
        """The same blocks, some of them, in another order."""
        parts = self.parts()
        return self.regrouped([parts[k] for k in order], self.units)

    def regrouped(self, parts: Sequence[NDArray[np.int64]], units: int) -> TrialBlocks:
        """Blocks made of rows by their numbers, each of which may come in several blocks."""
        table = self.table.take(np.concatenate(parts))
        return TrialBlocks(table, _cuts(parts), units, self.is_open)

    def written(self) -> bytes:
        """The table as bytes."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        return bytes(sink.getvalue())


def _cuts(parts: Sequence[NDArray[np.int64]]) -> tuple[int, ...]:
    return (0, *(int(each) for each in np.cumsum([len(part) for part in parts])))


def trial_blocks(
    store: Any, job: FunctionJob, examples: Examples | None = None, *, made_up: bool = False
) -> TrialBlocks:
    """Blocks of the open part if it has enough of them, else, or if wished, made-up ones.

    For terms, blocks that are small are put together.
    """
    found = None
    if store.open_path is not None and not made_up:
        found = _open_blocks(store, job)
    return _made_up(store, job, examples or {}) if found is None else found


def drawn_blocks(store: Any, job: FunctionJob) -> TrialBlocks | None:
    """Blocks of units drawn from the open part, with replacement; None if there is none.

    For an open part that fills too few blocks to compare: a function that knows the data's own
    values can be tried on them all the same.
    """
    if store.open_path is None:
        return None
    table, columns = _first_rows(store, job), _columns(job)
    place = np.stack([np.asarray(table.column(name).to_numpy()) for name in ("__block", "__unit")])
    first = np.flatnonzero(np.any(np.diff(place, prepend=-1) != 0, axis=0))
    ends = np.append(first, table.num_rows)
    units = _trial_units(store, job, len(columns))
    picked = np.random.default_rng(_SEED).integers(0, len(first), (_BLOCKS, units))
    parts = [np.concatenate([np.arange(ends[k], ends[k + 1]) for k in each]) for each in picked]
    per_unit = np.diff(ends)[picked.ravel()]
    data = {name: table.column(name).take(np.concatenate(parts)) for name in columns}
    data["__unit"] = np.repeat(np.arange(picked.size), per_unit)  # drawn twice, it is two units
    return TrialBlocks(_table(data), _cuts(parts), units, True)


def _table(data: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(data)


def _columns(job: FunctionJob) -> list[str]:
    return [*dict.fromkeys(itertools.chain(*job.needs.values(), ["__unit"]))]


def _together(store: Any, job: FunctionJob) -> int:
    """How many of the store's blocks are one here."""
    return max(1, -(-_TERM_UNITS // store.units)) if job.sums else 1


def _open_count(store: Any, job: FunctionJob) -> int:
    """How many of the store's blocks are read of the open part at most."""
    return max(_BLOCKS * _together(store, job), _OPEN_UNITS // int(store.units))


def _first_rows(store: Any, job: FunctionJob) -> Any:
    """The first blocks of the open part: the rest need not be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches = []
    with pq.ParquetFile(store.open_path) as file:
        for batch in file.iter_batches(columns=["__block", *_columns(job)]):
            batches.append(batch)
            if batch.column("__block")[-1].as_py() > _open_count(store, job):
                break
    return pa.Table.from_batches(batches)


def _open_blocks(store: Any, job: FunctionJob) -> TrialBlocks | None:
    table = _first_rows(store, job)
    number = np.asarray(table.column("__block").to_numpy(), np.int64)
    unit = np.asarray(table.column("__unit").to_numpy(), np.int64)
    rows = (*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), len(number))
    complete = [
        k
        for k, (a, b) in enumerate(itertools.pairwise(rows))
        if len(np.unique(unit[a:b])) == store.units
    ][: _open_count(store, job)]
    each = min(_together(store, job), len(complete) // _FEWEST_OPEN)
    if each == 0:
        return None
    most = each * (len(complete) // each)
    everything = TrialBlocks(table.select(_columns(job)), rows, store.units, True)
    found = everything.ordered(complete[:most])
    return replace(found, rows=found.rows[::each], units=each * store.units)


def _trial_units(store: Any, job: FunctionJob, columns: int) -> int:
    """How many units a trial's block has: as many as the store's, if they are not too many."""
    wanted = store.units * _together(store, job)
    return int(min(wanted, max(2, _MOST_CELLS // (_BLOCKS * columns))))


def _made_up(store: Any, job: FunctionJob, examples: Examples) -> TrialBlocks:
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
            known = examples.get(name, range(store.manifest.rows))
            data[name] = np.resize(np.asarray(known, np.int64), starts[-1])
        else:
            values = examples.get(name) or store.values.get(name)
            kind, ends = store.schema.kind(name), store.ranges.get(name)
            data[name] = _made_up_column(kind, rows, generator, values, ends)
    return TrialBlocks(_table(data), tuple(int(each) for each in rows), units, False)


def _made_up_column(
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
    plain: dict[str, Any] = {"number": float, "boolean": bool, "text": str}
    try:
        known = [plain[kind](each) for each in values or ()]
    except (LookupError, OverflowError, TypeError, ValueError):  # they are of another kind
        known = []
    if not known and kind == "text":
        known = ["a", "b", "c", "d", "e"]
    if known:
        picked = [known[k] for k in generator.integers(0, len(known), size)]
        return pa.array(picked, mask=missing)
    if kind == "number":
        return pa.array(_made_up_numbers(rows, generator, ends), mask=missing)
    if kind == "boolean":
        return pa.array(generator.random(size) < 0.5, mask=missing)
    days = 18_000 + generator.integers(0, 1000, size)  # since 1970
    if kind == "date":
        return pa.array(days.astype("datetime64[D]"), mask=missing)
    moments = days * 86_400_000_000 + generator.integers(0, 86_400_000_000, size)
    return pa.array(moments.astype("datetime64[us]"), mask=missing)


# Where numbers of each kind lie between two ends: all over, near the low end, at both ends, …
_SPREADS = (
    *((0.5, 0.25), (-24.5, 0.025), (0.5, 0.25), (0.0, 1.0)),
    *((0.5, 0.1), (0.0, 0.02), (0.5, 0.25), (0.0, 0.1)),
)


def _made_up_numbers(
    rows: NDArray[np.int64], generator: np.random.Generator, ends: tuple[float, float] | None
) -> NDArray[np.float64]:
    """One kind of numbers in every block."""
    values = np.empty(int(rows[-1]))
    for block, (start, stop) in enumerate(itertools.pairwise(rows)):
        size = int(stop - start)
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
        found, (middle, scale) = kinds[block], _SPREADS[block]
        if ends is not None:
            low, high = ends
            found = low + (high - low) * np.clip(middle + scale * found, 0.0, 1.0)
            found = np.clip(found, low, high)
        values[start:stop] = found
    return values


_SINGLE_BLOCKS = 4  # enough to see a state, and each costs a process
_SHOWN = 300  # characters of what a function said
_CLOSE = 1e-9  # how far sums in another order may be apart
_TERM_CLOSE = 2.0**-15  # of terms in [0, 1]: roundings to 2⁻¹⁶, and models in single precision
_VALUE_CLOSE = 1e-6  # relative: sums in another order, and fits that stop early
_REGROUPING_SEED = 20_182  # any number: the groups are the same for everybody
_ORDERS = 6  # a function of one row that is true for half of them stays unseen in 2⁻⁶ of blocks
_DEALS = 3
_MOST_ORDERED_CELLS = 1_000_000  # of all orders together, above two
_SAMPLED = 8  # rows of each block
_OPEN_PART = (
    "If it needs values that only the data have, keep an open part at creation (open_fraction=0.1, "
    "--open-fraction 0.1): then it is tried there instead. "
)

_Parts = Sequence[NDArray[np.int64]]  # numbers of rows, group by group


class FailsOnMost(InvalidInput):
    """A function failed on most of the public blocks."""


@dataclass(frozen=True)
class Admission:
    """How a function was checked."""

    is_open: bool
    """Whether on open blocks; else on made-up ones."""
    blocks: int
    """How many of them gave values to compare."""
    assumptions: tuple[str, ...] = ()
    """All that the promise takes for granted about the function."""


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


class Attempts:
    """One function on public blocks, in a worker, as it would be asked of sealed ones.

    `call` sends a message to a worker that has held no sealed block; `name` is what messages say.
    """

    def __init__(
        self,
        call: Callable[[object, float], bytes],
        name: str,
        job: FunctionJob,
        blocks: TrialBlocks,
    ) -> None:
        self._call, self._name = call, name
        self._job, self._blocks = replace(job, units=blocks.units), blocks

    def attempt(
        self,
        blocks: TrialBlocks | None = None,
        items: Sequence[Item] | None = None,
        *,
        isolated: bool = False,
        **changes: Any,
    ) -> Tried:
        """Ask for the blocks in calls of these items, without them one each; the job may change."""
        blocks = self._blocks if blocks is None else blocks
        job = replace(self._job, **changes)
        chosen = None if items is None else tuple(items)
        trial = Trial(job, blocks.written(), blocks.rows, chosen, isolated)
        seconds = 4 * (job.load_seconds + blocks.blocks * (job.block_seconds + job.batch_seconds))
        try:
            reply = self._call(trial, seconds)
        except (WorkerDied, WorkerTimeout):
            hint = "It ended the process that evaluates it, or stopped it."
            raise InvalidInput("estimator", self._name, "a function that returns", hint) from None
        end = 2 + 8 * blocks.blocks
        values, told = np.frombuffer(reply[2:end], np.float64), reply[end:]
        return Tried(values, told.decode("utf-8", "replace"), bool(reply[1]), reply[:1] == LOADED)

    def at_once(self) -> Tried:
        """As sealed blocks are asked: all in one call, if the function takes many."""
        return self.attempt(items=[(0, self._blocks.blocks)] if self._job.vectorised else None)

    def admit(self, *, rows: bool, symmetric: bool) -> Admission:
        """How the function was checked; `InvalidInput` if it is refused.

        With `rows` each row's term must depend on that row alone; with `symmetric` the order of a
        block's rows must not matter.
        """
        job = self._job
        assumed = [ASSUMPTION if job.vectorised else ASSUMPTION_SHARED]
        compared = self._compare_batches() if job.vectorised else self._compare_single()
        if job.sums:  # terms that are no numbers count as 0: here they show
            self._refuse_failing(self.attempt(strict=True))
        self._refuse_uncontrolled()
        if rows:
            self._compare_rows()
            assumed.append(ASSUMPTION_ROWS)
        if job.sums and self._blocks.is_open:  # that made-up numbers leave a range says nothing
            self._refuse_outside()
        if symmetric:
            self._compare_orders()
            assumed.append(ASSUMPTION_ORDER)
        return Admission(self._blocks.is_open, compared, tuple(assumed))

    def admit_predictions(self) -> None:
        """Refuse a model that predicts nothing on most rows, or what can be no label.

        Its score counts both as wrong, row by row, and so never fails itself.
        """
        tried = self.at_once()
        self._refuse_unloadable(tried)
        kind, _, message = tried.told.partition(": ")
        if kind == WrongLabels.__name__:
            hint = f"{message} Nothing was charged."
            raise InvalidInput("model", self._name, "a model that predicts labels", hint)
        self._refuse_failing(tried, model=True)

    def _compare_single(self) -> int:
        few = self._blocks.ordered(range(min(_SINGLE_BLOCKS, self._blocks.blocks)))
        alone = self.attempt(few, isolated=True)
        self._refuse_unloadable(alone)
        self._refuse_failing(alone)
        if not _identical(alone.values, self.attempt(few, isolated=True).values):
            self._refuse_random()
        together = self.attempt(few)
        backward = self.attempt(few.ordered(range(few.blocks)[::-1]))
        same = _identical(alone.values, together.values)
        same = same and _identical(alone.values, backward.values[::-1])
        if not same or together.changed or backward.changed:
            hint = (
                "A block gave another value after other blocks than before them. Keep no counters, "
                "caches or other state outside of the function."
            )
            self._refuse("a function that remembers nothing", hint)
        return int(np.count_nonzero(~np.isnan(alone.values)))

    def _compare_batches(self) -> int:
        blocks, count = self._blocks, self._blocks.blocks
        alone = self.attempt()
        self._refuse_unloadable(alone)
        self._refuse_failing(alone)
        whole = self.attempt(items=[(0, count)])
        if not _identical(whole.values, self.attempt(items=[(0, count)]).values):
            self._refuse_random()
        backward = blocks.ordered(range(count)[::-1])
        other = blocks.ordered([*range(1, count), 0])
        pairs = [(first, min(count, first + 2)) for first in range(0, count, 2)]
        ways = {
            "when all blocks came at once": whole.values,
            "when the blocks came in another order": (
                self.attempt(backward, [(0, count)]).values[::-1]
            ),
            "beside other blocks": np.roll(self.attempt(other, pairs).values, 1),
        }
        for how, values in ways.items():
            close = {"rtol": _CLOSE, "atol": _CLOSE * 1e-6}
            if not np.allclose(alone.values, values, **close, equal_nan=True):
                hint = (
                    f"A block's value {how} was not its value alone. Reduce over the rows of a "
                    "block only (axis=1), or leave vectorised out."
                )
                self._refuse("a function that treats each block by itself", hint)
        return int(np.count_nonzero(~np.isnan(alone.values)))

    def _compare_orders(self) -> None:
        """Refuse a function that depends on the order of a block's rows."""
        parts = self._blocks.parts()
        orders = self._orders(parts, np.random.default_rng(_REGROUPING_SEED))
        every = [part for order in (parts, *orders) for part in order]
        values = self.attempt(self._blocks.regrouped(every, self._blocks.units)).values
        first, *others = values.reshape(-1, len(parts))
        for other in others:
            if not np.allclose(first, other, rtol=_VALUE_CLOSE, atol=1e-9, equal_nan=True):
                hint = (
                    "A block gave another value when its rows were permuted. Use no first, last or "
                    "neighbouring row; sort by the values of columns first."
                )
                self._refuse("a function that does not depend on the order of a block's rows", hint)

    def _orders(
        self, parts: _Parts, generator: np.random.Generator
    ) -> list[list[NDArray[np.int64]]]:
        """The blocks with their rows reversed, and permuted at random."""
        cells = self._blocks.table.num_rows * self._blocks.table.num_columns
        orders = max(2, min(_ORDERS, _MOST_ORDERED_CELLS // cells))
        permuted = [[generator.permutation(part) for part in parts] for _ in range(orders - 1)]
        return [[part[::-1] for part in parts], *permuted]

    def _compare_rows(self) -> None:
        """Refuse a function whose sums are not those of its rows' terms.

        The error bar of a mean counts rows as independent terms, so a row's term may depend on that
        row alone. Then a block's sum is the sum of its rows' terms however rows are grouped:
        in every order, in other blocks, few, and alone. Open blocks that failed: so must each of
        their rows, or one row fails for the others.
        """
        parts = self._blocks.parts()
        whole = self._sums(parts, self._blocks.units)
        failed = np.isnan(whole)
        if self._blocks.is_open and failed.any():
            sample = [part[:_SAMPLED] for part, bad in zip(parts, failed, strict=True) if bad]
            if not np.isnan(self._sums(list(np.concatenate(sample).reshape(-1, 1)), 1)).all():
                self._refuse_company(
                    "It failed on a block of the open part, and not on each row of it."
                )
        given = [part for part, bad in zip(parts, failed, strict=True) if not bad]
        if given:
            self._compare_given(given, whole[~failed])

    def _compare_given(self, given: _Parts, whole: NDArray[np.float64]) -> None:
        """Blocks that gave sums, however their rows are grouped."""
        generator, count = np.random.default_rng(_REGROUPING_SEED), len(given)
        rows = max(len(part) for part in given)
        orders = self._orders(given, generator)
        cuts = np.cumsum([len(part) for part in given])[:-1]
        every_row = np.concatenate(given)
        deals = [np.split(generator.permutation(every_row), cuts) for _ in range(_DEALS)]
        few = min(_SAMPLED, *(len(part) for part in given))
        sample = np.stack([generator.choice(part, few, replace=False) for part in given])
        incoming = np.roll(sample, 1, axis=0)
        exchanged = [
            np.concatenate([np.setdiff1d(part, old), new])
            for part, old, new in zip(given, sample, incoming, strict=True)
        ]
        every = [part for way in (*orders, *deals, exchanged) for part in way]
        sums = self._sums(every, self._blocks.units).reshape(-1, count)
        self._compare(sums[: len(orders)], whole, rows, "in another order")
        dealt = sums[len(orders) : -1].sum(axis=1)
        self._compare(dealt, whole.sum(), rows * count, "when they were dealt into other blocks")
        single = self._sums(list(sample.reshape(-1, 1)), 1)
        small = generator.permutation(sample.size)[: sample.size // few * few].reshape(-1, few)
        together = self._sums(list(sample.ravel()[small]), few)
        self._compare(single[small].sum(axis=1), together, few, "one at a time than a few at once")
        change = single.reshape(count, few).sum(axis=1)
        change = np.roll(change, 1) - change
        self._compare(sums[-1], whole + change, rows, "one at a time than in a block")

    def _sums(self, parts: _Parts, units: int) -> NDArray[np.float64]:
        """Of each group of rows, evaluated by itself; NaN for failures."""
        blocks = self._blocks.regrouped(parts, units)
        values = self.attempt(blocks, grouped=False, units=units).values
        sizes = np.diff(blocks.rows)
        return np.asarray(values / WEIGHT_SCALE if self._job.sums else values * sizes, np.float64)

    def _compare(self, one: object, two: object, rows: int, how: str) -> None:
        """Refuse sums over that many rows that differ, or of which one has failed."""
        apart = np.abs(np.asarray(one, np.float64) - np.asarray(two, np.float64))
        if not (apart <= _TERM_CLOSE * rows).all():
            self._refuse_company(f"The same rows gave another sum {how}, or failed.")

    def _refuse_company(self, seen: str) -> NoReturn:
        hint = (
            f"{seen} Make each row's term from the columns of that row: compare with numbers known "
            "before, not with a mean, a rank or another row of the block."
        )
        self._refuse("a function whose term of a row depends on that row alone", hint)

    def _refuse_unloadable(self, tried: Tried) -> None:
        """So that later, when loading fails, it is known to have been possible: `WorkerSlot`."""
        if not tried.loaded:
            why = tried.told[:_SHOWN] or "it ended the process, or took too long"
            hint = f"It cannot be loaded in another process: {why}. Nothing was charged."
            self._refuse("a function that can be loaded elsewhere", hint)

    def _refuse_uncontrolled(self) -> None:
        """So that a control that fails later has not failed because of what it is: `WorkerSlot`."""
        for _ in range(CONTROLS):
            with suppress(WorkerDied, WorkerTimeout):
                if self._call(Control(self._job), 3 * self._job.load_seconds) == LOADED:
                    return
        allowed = "a function that can be loaded where there are no blocks, too"
        self._refuse(allowed, "Nothing was charged.")

    def _refuse_failing(self, tried: Tried, *, model: bool = False) -> None:
        """A function that fails on more than half of the blocks, or a model on so many rows."""
        failed, count = int(np.count_nonzero(np.isnan(tried.values))), len(tried.values)
        if 2 * failed <= count:
            return
        where, keep = ("open", "") if self._blocks.is_open else ("made-up", _OPEN_PART)
        on = f"every {where} block" if failed == count else f"{failed} of {count} {where} blocks"
        why = tried.told[:_SHOWN].rstrip(".")
        why = why or "it gave no number, ended its process, or took too long"
        hint = f"It failed on {on}: {why}. {keep}Nothing was charged."
        if model:
            hint = f"The model failed on most {where} rows, or on all: {why}. {keep}"
            hint += "Nothing was charged."
            raise FailsOnMost("model", self._name, "a fitted model that works", hint)
        raise FailsOnMost("estimator", self._name, "a function that works", hint)

    def _refuse_outside(self) -> None:
        """A term that leaves its range on open rows would be cut on sealed ones."""
        found = self.attempt(outside=True).values
        known = found[~np.isnan(found)]
        if len(known):
            low, high = (in_full(end) for end in self._job.bounds)
            hint = (
                f"{self._name} gave {in_full(known[0])} on an open row. Declare a wider range, or "
                f"cut it yourself: np.clip(…, {low}, {high}). Nothing was charged."
            )
            allowed = "a range that holds the term on every row of the open part"
            raise InvalidInput("range", self._job.bounds, allowed, hint)

    def _refuse_random(self) -> NoReturn:
        hint = (
            "The same blocks gave different values when they were asked twice. Seed what it draws "
            "inside it, as in np.random.default_rng(1)."
        )
        self._refuse("a function that gives a block the same value every time", hint)

    def _refuse(self, allowed: str, hint: str) -> NoReturn:
        raise InvalidInput("estimator", self._name, allowed, hint)


def _identical(one: NDArray[np.float64], two: NDArray[np.float64]) -> bool:
    return np.array_equal(one, two, equal_nan=True)
