"""What runs in a process forked from a worker: load the function, ask it of one item after another.

An item is one block, or many blocks at once for a vectorised function and for terms, each of which
depends on one row alone. Whatever the function raises is a failure of the item. The process says on
the board how far it has come; if it dies, the worker knows where. It never returns: it ends without
cleaning up, for nothing here is its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.board import Board, Status
from holdfast.engines.local.confinement import CHANNEL, confine
from holdfast.engines.local.frames import Chunk, select
from holdfast.engines.local.jobs import Job, Part
from holdfast.engines.local.terms import (
    block_sum,
    block_value,
    block_values,
    even_sums,
    farthest_outside,
    row_numbers,
)
from holdfast.engines.local.traces import Traces, left_processes, same_randomness
from holdfast.protocols.source import UNIT, unit_terms

__all__ = ["READY", "ROWS", "Chunks", "Item", "run"]

Item = tuple[int, int]
Chunks = Mapping[str, Chunk]
READY = b"."
ROWS = "rows"  # beside the kinds: where every block begins and, if need be, the rows' units

_FRESH = 2**18  # bytes of pickle: larger ones are loaded once a process, not once a block


def run(job: Job, chunks: Chunks, items: Sequence[Item], board: Board, signalled: int) -> NoReturn:
    """Evaluate items in their order, say so if nothing is left behind, and end the process."""
    try:
        channel = os.dup2(signalled, CHANNEL)
        confine(job.limits.memory)
        sys.path[:] = job.path
        os.chdir(job.folder)
        Runner(job, chunks, board).run(items)
        if not left_processes():
            os.write(channel, READY)
    finally:
        os._exit(0)


class Runner:
    """One process's work."""

    def __init__(self, job: Job, chunks: Chunks, board: Board) -> None:
        self._job, self._chunks, self._board = job, chunks, board
        self._process = os.getpid()
        self._functions: tuple[Any, ...] = ()
        self._small = sum(len(payload or b"") for payload in job.payloads) <= _FRESH

    def run(self, items: Sequence[Item]) -> None:
        """Load, evaluate, look for traces, ask the first item again."""
        board, job = self._board, self._job
        board.deadline = time.monotonic() + job.limits.load_seconds
        try:
            self._functions = _load(job)
        except BaseException as error:
            self._explain(error)
            board.status = Status.UNLOADABLE
            return
        board.status = Status.LOADED
        # That batches keep nothing is assumed: single blocks alone are watched.
        watched = len(items) > 1 and items[0][1] - items[0][0] == 1
        traces = Traces(job.packages) if watched else None
        for number, item in enumerate(items):
            stopped = self._one(number, item)
            if stopped is not None:
                board.status = stopped
                return
            if traces is not None and number + 1 < len(items) and traces.found():
                board.status = Status.LEFT
                return
        first = self._first(items) if watched else None
        same = first is None or self._same(items[first])
        board.status = Status.FINISHED if same else Status.CHANGED

    def _one(self, number: int, item: Item) -> Status | None:
        """Evaluate an item; a status if that must be done again, in a process of its own.

        That the function cannot be loaded anew is laid to no item's charge: the items before may
        have seen to it, or the machine.
        """
        board, (start, stop) = self._board, item
        board.status = Status.STARTED
        board.deadline = time.monotonic() + self._job.limits.load_seconds
        error = self._renew()
        if error is not None:
            self._explain(error)
            return Status.LEFT if number else Status.UNLOADABLE
        board.status = Status.LOADED
        limit = self._limit(item)
        began = time.monotonic()
        board.deadline = began + limit
        values, error = self._evaluate(item)
        late = time.monotonic() - began > limit
        if isinstance(error, MemoryError) and number:
            return Status.LEFT  # the items before may have taken it
        board.failed[number] = failed = values is None or late
        board.values[start:stop] = np.nan if failed else values
        board.deadline = time.monotonic() + limit  # for what comes between two items
        board.done = number + 1
        if error is not None:
            self._explain(error)
        return None

    def _limit(self, item: Item) -> float:
        limits = self._job.limits
        return limits.block_seconds if item[1] - item[0] == 1 else limits.batch_seconds

    def _first(self, items: Sequence[Item]) -> int | None:
        """A block that gave a value, to be asked again; none if there is nothing to compare."""
        given = np.flatnonzero(~self._board.failed[: len(items)])
        return int(given[0]) if len(given) else None

    def _same(self, item: Item) -> bool:
        """Whether an item has, at the end, the values that it had at the beginning."""
        self._board.deadline = time.monotonic() + self._limit(item)
        again = None if self._renew() is not None else self._evaluate(item)[0]
        before = self._board.values[item[0] : item[1]]
        return again is not None and np.array_equal(again, before, equal_nan=True)

    def _renew(self) -> BaseException | None:
        """The same randomness as for every item, and the function anew; why, if it cannot be."""
        error: BaseException | None = None
        try:
            with _silently():
                same_randomness()
                if self._small:
                    self._functions = _load(self._job)
        except BaseException as raised:
            error = raised
        self._end_copies()
        return error

    def _evaluate(self, item: Item) -> tuple[NDArray[np.float64] | None, BaseException | None]:
        """The values of an item's blocks, or None and why."""
        values: NDArray[np.float64] | None = None
        error: BaseException | None = None
        try:
            with _silently():
                values = self._sums(item) if self._job.sums else self._values(item)
        except BaseException as raised:
            error = raised
        self._end_copies()
        return values, error

    def _end_copies(self) -> None:
        """End the process if the function has forked, and this is the copy."""
        if os.getpid() != self._process:
            os._exit(0)

    def _call(self, place: int, part: Part, item: Item) -> object:
        rows = self._chunks[part.kind].rows
        return self._called(place, part, int(rows[item[0]]), int(rows[item[1]]), self._job.units)

    def _called(self, place: int, part: Part, first: int, last: int, units: int) -> object:
        """What the function gives for rows, of so many units a block."""
        chunk = self._chunks[part.kind]
        if part.vectorised:
            arrays = chunk.rectangle(first, last, units)
            return self._functions[place]({name: arrays[name] for name in part.columns})
        block = chunk.between(first, last)
        if part.columns != self._job.needs[part.kind]:
            block = select(block, part.kind, part.columns)
        return self._functions[place](block)

    def _values(self, item: Item) -> NDArray[np.float64] | None:
        (part,) = self._job.parts
        assert part is not None
        result = self._call(0, part, item)
        if part.vectorised:
            values = block_values(result, item[1] - item[0])
            if values is None:
                raise TypeError(f"the result must have shape ({item[1] - item[0]},)")
            return values
        return np.array([block_value(result)])

    def _sums(self, item: Item) -> NDArray[np.float64]:
        start, stop = item
        rows = self._chunks[ROWS].rows
        count = int(rows[stop] - rows[start])
        terms, kept = (
            None if part is None else self._terms(place, part, item, count)
            for place, part in enumerate(self._job.parts)
        )
        cuts, bounds = rows[start : stop + 1] - rows[start], self._job.bounds
        if self._job.outside:
            assert terms is not None
            return np.array([farthest_outside(terms[a:b], bounds) for a, b in pairwise(cuts)])
        if terms is None:
            terms = np.ones(count)
        else:
            failed = bounds[0] + self._job.failure * (bounds[1] - bounds[0])
            terms = unit_terms(np.where(np.isnan(terms), failed, terms), bounds)
        kept = None if kept is None else unit_terms(kept, UNIT)
        unit = self._units(item)
        if kept is None and unit is None and np.ptp(np.diff(cuts)) == 0:
            return even_sums(terms, stop - start)
        sums = [
            block_sum(
                terms[a:b],
                None if kept is None else kept[a:b],
                None if unit is None else unit[a:b],
            )
            for a, b in pairwise(cuts)
        ]
        return np.array(sums, np.float64)

    def _terms(self, place: int, part: Part, item: Item, rows: int) -> NDArray[np.float64]:
        """One number for each row, NaN for a row on which the function fails.

        Where a call of one block fails, or gives too many numbers or too few, each of its rows is
        asked for alone: a row takes no other along. Where it is strict, another number of them is a
        failure, and so is that most are none.
        """
        error: BaseException = TypeError("most of its terms are no numbers")
        strict, result = self._job.strict, None
        try:
            result = self._call(place, part, item)
            numbers = row_numbers(result, rows)
        except MemoryError:
            raise
        except BaseException as raised:
            if item[1] - item[0] > 1 or (strict and result is not None):
                raise
            self._explain(raised)
            numbers, error = self._row_by_row(place, part, item, rows), raised
        if strict and 2 * np.count_nonzero(np.isnan(numbers)) > rows:
            raise error
        return numbers

    def _row_by_row(self, place: int, part: Part, item: Item, rows: int) -> NDArray[np.float64]:
        numbers = np.full(rows, np.nan)
        if rows == 1:  # it has failed already
            return numbers
        first = int(self._chunks[part.kind].rows[item[0]])
        for row in range(rows):
            self._end_copies()
            with contextlib.suppress(Exception, SystemExit, KeyboardInterrupt, GeneratorExit):
                result = self._called(place, part, first + row, first + row + 1, 1)
                numbers[row] = row_numbers(result, 1)[0]
        return numbers

    def _units(self, item: Item) -> NDArray[np.int64] | None:
        if not self._job.grouped:
            return None
        chunk = self._chunks[ROWS]
        numbers = chunk.data["__unit"][chunk.rows[item[0]] : chunk.rows[item[1]]]
        return np.asarray(numbers, np.int64)

    def _explain(self, error: BaseException) -> None:
        if self._job.explain and not self._board.text:
            self._board.text = f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _silently() -> Iterator[None]:
    """A warning too may depend on the data."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _load(job: Job) -> tuple[Any, ...]:
    """The functions, new: what an earlier copy of them has changed in itself is gone."""
    import cloudpickle
    from cloudpickle import cloudpickle as inner

    # Classes that travel by value are remembered by cloudpickle: forget those of earlier copies.
    remembered = getattr(inner, "_DYNAMIC_CLASS_TRACKER_BY_ID", None)
    if remembered is not None:
        remembered.clear()
    return tuple(
        None if part is None else cloudpickle.loads(payload)[int(part.vectorised)]
        for payload, part in zip(job.payloads, job.parts, strict=True)
    )
