"""The planner: from what is known of a study to the best complete plan (`hf.plan`)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.grids import ExplicitGrid, Grid
from holdfast.planning.plan import Alternative, Plan, compare, recommended, split_blocks, split_tail
from holdfast.protocols.shapes import Shape, shape_from
from holdfast.theory.divergence import ORDER_MAX, ORDER_MIN, RenyiCurve
from holdfast.theory.sizing import (
    BLOCKS_MAX,
    LENGTH_MAX,
    QUERIES_MAX,
    TAIL_MAX,
    TAIL_MIN,
    Promise,
    Sized,
    best_steepest,
    best_tail,
    largest_tail,
    steepest_at,
    table_length,
)

__all__ = [
    "ROWS_MAX",
    "Study",
    "best_tail_for_error",
    "best_tail_for_rows",
    "cache_folder",
    "grid_for",
    "measure_grid",
    "most_queries",
    "plan",
    "recall",
    "remember",
    "steepest",
    "tail_for_block_size",
    "tail_for_blocks",
]


# What a user gives the planner, checked one by one: the study.


ROWS_MAX = 10**15


@dataclass(frozen=True)
class Study:
    """The known quantities; None is what the planner has to find."""

    queries: int | None
    rows: int | None
    blocks: int | None
    block_size: int | None
    grid: int | None
    widest_cell: float | None
    tails: tuple[float, float] | None  # (tail_low, tail_high)
    target: float | None
    confidence: float
    error: float | None
    shape: Shape | None

    def rounding(self, grid: int) -> float | None:
        """Half the widest grid cell, where the grid or the range is known."""
        if self.widest_cell is not None:
            return self.widest_cell / 2
        span = self.shape.span if self.shape is not None else None
        return None if span is None else span / (2 * (grid - 1))

    def room(self, grid: int) -> float:
        """What the wanted error leaves for sampling once the grid has rounded."""
        assert self.error is not None
        rounding = self.rounding(grid) or 0.0
        if rounding >= self.error:
            raise Infeasible(
                "The grid is too coarse for the error",
                f"cells narrower than {2 * self.error:g}",
                f"{grid:,} points round by ±{rounding:.4g}",
                "Use a finer grid, a narrower range, or ask for a larger error.",
            )
        return self.error - rounding


def _whole(name: str, value: int | None, most: int) -> int | None:
    return None if value is None else whole_number(name, value, 1, most)


def measure_grid(grid: int | Grid | None) -> tuple[int | None, float | None]:
    """The number of points, and the widest cell where it is known."""
    if grid is None:
        return None, None
    if isinstance(grid, Grid):
        if grid.size < 2:
            hint = "A single possible answer needs no data."
            raise InvalidInput("grid", grid, "a grid of at least 2 points", hint)
        if isinstance(grid, ExplicitGrid):
            points = np.asarray(grid.points(np.arange(grid.size)), dtype=float)
            return grid.size, float(np.diff(points).max())
        # Cells of the other kinds grow or shrink steadily: the widest is at an end.
        first = float(grid.point(1)) - float(grid.low)
        last = float(grid.high) - float(grid.point(grid.size - 2))
        return grid.size, max(first, last)
    return whole_number("grid", grid, 2, 2**62, hint="It counts the possible answers."), None


def _tails(tail: float | None, tails: tuple[float, float] | None) -> tuple[float, float] | None:
    if tail is not None and tails is not None:
        raise InvalidInput("tail and tails", (tail, tails), "given one at a time")
    if tail is not None:
        hint = "tail=0.25 promises the interquartile interval."
        rho = real_number("tail", tail, 0, 0.5, open_low=True, open_high=True, hint=hint)
        return rho, rho
    if tails is None:
        return None
    try:
        a, b = tails
    except (TypeError, ValueError):
        raise InvalidInput("tails", tails, "a pair (a, b) with 0 < a < b < 1") from None
    low = real_number("tails", a, 0, 1, open_low=True, open_high=True)
    high = real_number("tails", b, 0, 1, open_low=True, open_high=True)
    if low >= high:
        raise InvalidInput("tails", tails, "a pair (a, b) with 0 < a < b < 1")
    return low, float(1 - Fraction(repr(high)))  # as written: 1 − 0.99 is 0.01


def _target(target: float | None) -> float | None:
    if target is None:
        return None
    return real_number("target", target, 0, 1, open_low=True, open_high=True)


# Optimal coins on disk: the parameters found for a promise or a plan, never the proof.
#
# Reading is safe against any content: a hit is rebuilt and certified like everything else, and is
# used only if it reproduces the number of blocks stored with it. Writing is atomic (a temporary
# file, then `os.replace`), and a cache that cannot be read or written is no cache, never an error.
#
# The folder is $HOLDFAST_CACHE, else $XDG_CACHE_HOME/holdfast, else ~/.cache/holdfast;
# HOLDFAST_CACHE=off turns it off.


_FORMAT = 3  # raise it whenever the search or the theorem behind it changes
_SIZE_MAX = 4096  # bytes; an entry has about 200


def recall(key: str, length: int) -> tuple[list[float], int] | None:
    """So many parameters and the number of blocks stored under a key, or None. Trust neither."""
    folder = cache_folder()
    known = None if folder is None else _numbers(folder / f"{_hash(key)}.json")
    if known is None or len(known) != length + 1 or not isinstance(known[-1], int):
        return None
    parameters = known[:-1]
    if not all(isinstance(v, float) and math.isfinite(v) for v in parameters):
        return None
    return parameters, known[-1]


def remember(key: str, parameters: Sequence[float], blocks: int) -> None:
    """Store the parameters that were found, for `recall`."""
    folder = cache_folder()
    if folder is not None:
        _write(folder / f"{_hash(key)}.json", [*map(float, parameters), blocks])


def steepest(promise: Promise, target: float | None = None) -> Sized:
    """`best_steepest`, remembered."""
    key = repr((_FORMAT, promise, target))
    known = recall(key, 3)
    if known is not None:
        sized = _rebuilt(promise, target, *known)
        if sized is not None:
            return sized
    sized = best_steepest(promise, target)
    remember(key, sized.parameters, sized.size.blocks)
    return sized


def _rebuilt(
    promise: Promise, target: float | None, parameters: Sequence[float], blocks: int
) -> Sized | None:
    """The remembered coin, built and certified again; None if that does not give its blocks."""
    order, budget, share = parameters
    sound = ORDER_MIN <= order <= ORDER_MAX and 1e-12 < budget < 1e3 and 0 < share < 1
    if not sound or table_length(promise, order, budget) > LENGTH_MAX:
        return None
    try:
        sized = steepest_at(promise, order, budget, share, target)
    except (InvalidInput, ArithmeticError):
        return None
    return sized if sized is not None and sized.size.blocks == blocks else None


def cache_folder() -> Path | None:
    """Where entries are kept, or None if the cache is off."""
    named = os.environ.get("HOLDFAST_CACHE", "")
    if named.lower() in ("off", "0", "no"):
        return None
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "holdfast"
    except RuntimeError:  # no home directory
        return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _numbers(path: Path) -> list[Any] | None:
    """The list in a file of modest size; None if there is no such thing."""
    try:
        if path.stat().st_size > _SIZE_MAX:
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, list) else None


def _write(path: Path, entry: list[float]) -> None:
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(entry, file)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


# Finding what the user left out: the grid, the tail, the number of questions.


_DEFAULT_GRID = 32
_FINE_GRID = 2**16  # splitting pays no looks: rounding may as well be negligible
_SPLIT_SIZES = (*range(1, 16), *range(17, 42, 4), 61, 101, 151)  # blocks a question, tried
_LUMPY = 200  # blocks below which rounding to whole blocks decides between tails


def grid_for(study: Study) -> int:
    """The grid's size: as given; else the one with the smallest error; else 32.

    A grid of 2ᴸ points costs L looks a question, and blocks grow like √L, so the sampling error
    grows like L^(1/4), while rounding halves with each look. Balancing the two needs one plan.
    """
    if study.grid is not None:
        return study.grid
    span = study.shape.span if study.shape is not None else None
    if span is None or study.shape is None:
        return _DEFAULT_GRID
    if study.error is not None:  # cells of a quarter of the error: rounding takes an eighth of it
        return _power_of_two(math.ceil(math.log2(4 * span / study.error + 1)))
    if study.rows is None or study.tails is not None or study.queries is None:
        return _DEFAULT_GRID
    tail = best_tail_for_rows(study, 2**8)
    promise = Promise(study.queries, 2**8, tail, tail, study.confidence)
    blocks, split = steepest(promise).size.blocks, split_blocks(promise)
    if split < blocks:
        return _FINE_GRID
    sampling = study.shape.error(max(1, study.rows // blocks), tail)

    def error(looks: int) -> float:
        return sampling * math.sqrt(math.sqrt(looks / 8)) + math.ldexp(span, -looks - 1)

    return _power_of_two(min(range(1, 31), key=error))


def _power_of_two(looks: int) -> int:
    return 1 << max(1, min(40, looks))


def best_tail_for_rows(study: Study, size: int) -> float:
    """The tail with the smallest error that the rows give, by the coin or by splitting."""
    assert study.rows is not None
    assert study.shape is not None
    rows, shape = study.rows, study.shape

    def score(blocks: float, tail: float) -> float:
        if blocks > rows:  # out of reach; smooth, so that the search finds its way back
            return 50.0 + math.log(min(blocks, BLOCKS_MAX) / rows)
        return math.log(shape.error(int(rows // blocks), tail))

    return _best(_any_tail(study, size), score)


def best_tail_for_error(study: Study, size: int) -> float:
    """The tail that reaches the wanted error with the fewest rows, by the coin or by splitting."""
    return _best(_any_tail(study, size), _rows_for_error(study, size))


def _rows_for_error(study: Study, size: int) -> Callable[[float, float], float]:
    """The log of the rows that the wanted error takes."""
    assert study.shape is not None
    shape, room = study.shape, study.room(size)
    return lambda blocks, tail: math.log(blocks) + math.log(shape.units(room, tail))


def _best(promise: Promise, score: Callable[[float, float], float]) -> float:
    tail = _tidy(best_tail(promise, score))
    blocks = steepest(_with_tail(promise, tail)).size.blocks
    options = [(score(blocks, tail), tail)]
    if blocks < _LUMPY:  # one block more or less matters: try each with the largest tail it carries
        near = range(max(2, blocks - 2), blocks + 3)
        tails = ((m, _coin_tail(promise, m)) for m in near)
        options += [(score(m, t), t) for m, t in tails if t >= TAIL_MIN]
    tails = ((one * promise.queries, _tidy(split_tail(promise, one))) for one in _SPLIT_SIZES)
    options += [(score(m, t), t) for m, t in tails if t >= TAIL_MIN]
    return min(options)[1]


def tail_for_blocks(study: Study, size: int, blocks: int) -> float:
    """The largest tail that these blocks can promise, by the coin or by splitting."""
    promise = _any_tail(study, size)
    split = split_tail(promise, blocks // promise.queries) if blocks >= promise.queries else 0.0
    tail = max(_coin_tail(promise, blocks), _tidy(split))
    if tail < TAIL_MIN:
        fewest = steepest(_with_tail(promise, TAIL_MIN)).size.blocks
        raise Infeasible(
            "Not enough blocks",
            f"{fewest:,} blocks even at tail {TAIL_MIN:g}",
            f"there are {blocks:,}",
            "Ask fewer questions, use smaller blocks, or bring more data.",
        )
    return tail


def tail_for_block_size(study: Study, size: int) -> float:
    """The smallest tail with which blocks of the given size reach the wanted error."""
    assert study.shape is not None
    assert study.block_size is not None
    shape, units, room = study.shape, study.block_size, study.room(size)
    if shape.error(units, TAIL_MAX) > room:
        raise Infeasible(
            "Not enough units a block",
            f"blocks of {shape.units(room, TAIL_MAX):,} units",
            f"block_size is {units:,}",
            "Use larger blocks, or ask for a larger error.",
        )
    low, high = math.log(TAIL_MIN), math.log(TAIL_MAX)
    for _ in range(60):
        middle = (low + high) / 2
        if shape.error(units, math.exp(middle)) <= room:
            high = middle
        else:
            low = middle
    return min(TAIL_MAX, math.exp(high))


def _coin_tail(promise: Promise, blocks: int) -> float:
    """The largest tail that the coin keeps with these blocks; 0 if there is none."""
    found = largest_tail(promise, blocks)
    tail = _tidy(found or 0.0)
    # The search works with thinned coins and real sizes: settle the last digits with full ones.
    while tail >= TAIL_MIN and steepest(_with_tail(promise, tail)).size.blocks > blocks:
        tail = _tidy(tail * (0.999 if blocks >= _LUMPY else 0.97))
    return tail


def most_queries(study: Study, size: int) -> int:
    """The most questions that the data carry, by the coin or by splitting, to half a percent.

    What is needed grows about like √k, so a guess squares what is left; a bracket keeps the
    guesses honest, and halves where they creep.
    """
    at_hand = study.blocks if study.blocks is not None else study.rows
    assert at_hand is not None
    low, high, guess = 0, QUERIES_MAX + 1, 1000
    for attempt in count():
        if high - low <= max(1, low // 200):
            break
        try:
            needed: float = _needed(replace(study, queries=guess), size)
        except Infeasible:  # more than can be computed is more than there is
            needed = max(4.0 * at_hand, 1e18)
        low, high = (guess, high) if needed <= at_hand else (low, guess)
        aim = guess * max(1e-3, at_hand / needed) ** 2
        if attempt > 3 and low > 0:
            aim = math.sqrt(low * min(high, 4 * low))
        guess = min(max(round(aim), low + 1), high - 1)
    if low == 0:
        raise Infeasible(
            "Not enough data",
            f"{_needed(replace(study, queries=1), size):,} of them for even one question",
            f"there are {at_hand:,} {'blocks' if study.blocks is not None else 'rows'}",
            "Accept a smaller tail, a larger error or lower confidence, or bring more data.",
        )
    return low


def _needed(study: Study, size: int) -> int:
    """Blocks, or rows where rows are given, that the study's questions need."""
    assert study.queries is not None
    tails = study.tails
    if tails is None and study.block_size is not None:
        tail = tail_for_block_size(study, size)
        tails = (tail, tail)
    elif tails is None:
        tail = _tidy(best_tail(_any_tail(study, size), _rows_for_error(study, size)))
        tails = (tail, tail)
    promise = Promise(study.queries, size, *tails, study.confidence)
    blocks = min(steepest(promise, study.target).size.blocks, split_blocks(promise))
    if study.blocks is not None:
        return blocks
    units = study.block_size or 1
    if study.error is not None and study.shape is not None:
        units = max(units, study.shape.units(study.room(size), min(tails)))
    return blocks * units


def _any_tail(study: Study, size: int) -> Promise:
    assert study.queries is not None
    return Promise(study.queries, size, 0.25, 0.25, study.confidence)


def _with_tail(promise: Promise, tail: float) -> Promise:
    return replace(promise, tail_low=tail, tail_high=tail)


def _tidy(tail: float) -> float:
    """Three significant digits, rounded down: a smaller tail never needs more blocks."""
    if tail <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(tail)) - 2)
    return min(TAIL_MAX, float(f"{math.floor(tail / unit * (1 + 1e-12)) * unit:.3g}"))


_PAPER_TAIL = 0.25


def plan(
    *,
    queries: int | None = None,
    rows: int | None = None,
    blocks: int | None = None,
    block_size: int | None = None,
    grid: int | Grid | None = None,
    tail: float | None = None,
    tails: tuple[float, float] | None = None,
    target: float | None = None,
    confidence: float = 0.95,
    error: float | None = None,
    shape: str = "mean",
    low: float | None = None,
    high: float | None = None,
    sd: float | None = None,
) -> Plan:
    """The best complete plan for what is known; whatever is left out is found.

    queries     how many questions, chosen adaptively         (left out: as many as the data carry)
    rows        units at hand, or
    blocks      blocks at hand
    block_size  units a block                                 (left out: as many as the rows give)
    grid        possible answers: their number, or a Grid     (left out: 32, or the best number)
    tail        ρ < 1/2: answers lie in qi(ρ, 1 − ρ); or
    tails       (a, b): answers lie in qi(a, b)               (left out: best for the error, or 1/4)
    target      the quantile to aim at                        (left out: the cheapest one)
    confidence  for all answers at once
    error       the wanted half-width of an error bar, about the middle of the answer's grid cell
    shape       'mean' of terms in [low, high] (left out: the grid's range, or [0, 1]);
                'sd' with one unit's standard deviation; 'none'

    >>> made = plan(queries=100, grid=32, tail=0.25)
    >>> made.method, made.blocks, made.verify()
    ('steepest', 1413, True)
    """
    size, cell = measure_grid(grid)  # first: a shape may take its range from the grid
    between = shape_from(shape, low, high, sd, grid)
    if rows is not None and blocks is not None:
        both = f"rows={rows!r}, blocks={blocks!r}"
        raise InvalidInput("rows and blocks", both, "given one at a time", "Rows are in units.")
    study = Study(
        queries=_whole("queries", queries, QUERIES_MAX),
        rows=_whole("rows", rows, ROWS_MAX),
        blocks=_whole("blocks", blocks, ROWS_MAX),
        block_size=_whole("block_size", block_size, ROWS_MAX),
        grid=size,
        widest_cell=cell,
        tails=_tails(tail, tails),
        target=_target(target),
        confidence=real_number("confidence", confidence, 0, 1, open_low=True, open_high=True),
        error=None if error is None else real_number("error", error, 0, open_low=True),
        shape=between,
    )
    _refuse_contradictions(study)
    size = grid_for(study)
    asked = study.queries is not None
    if not asked:
        if study.tails is None and study.error is None:
            study = replace(study, tails=(_PAPER_TAIL, _PAPER_TAIL))
        study = replace(study, queries=most_queries(study, size))
    tail_low, tail_high, binding = _settle_tails(study, size)
    if not asked:
        binding = "data: these are the most questions that it carries"
    assert study.queries is not None
    promise = Promise(study.queries, size, tail_low, tail_high, study.confidence)
    sized = steepest(promise, study.target)
    return _assemble(study, promise, sized, compare(promise, sized, study.target), binding)


def _refuse_contradictions(study: Study) -> None:
    if study.error is not None and study.shape is None:
        hint = "An error needs a shape: 'mean', or 'sd' with a standard deviation."
        raise InvalidInput("error", study.error, "left out for shape 'none'", hint)
    if study.queries is None and study.rows is None and study.blocks is None:
        hint = "Say how many questions you want to ask, or what data you have."
        raise InvalidInput("queries", None, "given, unless rows or blocks are", hint)
    sized = study.block_size is not None or study.error is not None
    if study.queries is None and study.rows is not None and not sized:
        allowed = "given, or else block_size or error together with rows"
        hint = "Rows alone could be few large blocks or many small ones."
        raise InvalidInput("queries", None, allowed, hint)
    if study.blocks is not None and study.error is not None and study.block_size is None:
        hint = "Blocks without a size say nothing of the error: give rows or block_size."
        raise InvalidInput("error", study.error, "given with rows or block_size", hint)
    if study.tails is None and study.target not in (None, 0.5):
        raise InvalidInput("target", study.target, "given together with tails=(a, b)")


def _settle_tails(study: Study, size: int) -> tuple[float, float, str]:
    """The two tails, and what decided them."""
    if study.tails is not None:
        return (*study.tails, "the promise: these are the fewest blocks that keep it")
    if study.error is not None and study.block_size is not None:
        rho = tail_for_block_size(study, size)
        return rho, rho, "error: the tail is the one that reaches it with blocks of this size"
    blocks = _blocks_at_hand(study)
    if blocks is not None:
        rho = tail_for_blocks(study, size, blocks)
        return rho, rho, f"blocks: {blocks:,} are at hand, and the tail is the largest they carry"
    if study.error is not None:
        rho = best_tail_for_error(study, size)
        return rho, rho, "error: the tail is the one that reaches it with the fewest rows"
    if study.rows is not None and study.shape is not None:
        rho = best_tail_for_rows(study, size)
        return rho, rho, "rows: the tail is the one with the smallest error"
    return _PAPER_TAIL, _PAPER_TAIL, "the promise, at the interquartile tail of the paper"


def _blocks_at_hand(study: Study) -> int | None:
    if study.blocks is not None:
        return study.blocks
    if study.rows is None or study.block_size is None:
        return None
    if study.rows < study.block_size:
        raise _too_few("rows", f"{study.block_size:,} rows a block", f"there are {study.rows:,}")
    return study.rows // study.block_size


def _assemble(
    study: Study,
    promise: Promise,
    sized: Sized,
    alternatives: tuple[Alternative, ...],
    binding: str,
) -> Plan:
    chosen = recommended(alternatives)
    assert chosen.blocks is not None
    assert sized.coin is not None
    assert isinstance(sized.curve, RenyiCurve)
    order, budget, _ = sized.parameters
    block_size, rows, binding = _fit(study, promise, chosen.blocks, binding)
    rounding = study.rounding(promise.grid_size)
    error = None
    if block_size is not None and study.shape is not None:
        tail = min(promise.tail_low, promise.tail_high)
        error = study.shape.error(block_size, tail) + (rounding or 0.0)
        if study.error is not None and binding.startswith("error") and error < 0.99 * study.error:
            binding = "rows: they are more than the wanted error needs"
        _refuse_everything(study, promise.queries, error)
    return Plan(
        method=chosen.method,
        queries=promise.queries,
        grid=promise.grid_size,
        tail_low=promise.tail_low,
        tail_high=promise.tail_high,
        confidence=promise.confidence,
        blocks=sized.size.blocks,
        twice_target=sized.size.twice_target,
        failure_low=sized.size.failure_low,
        failure_high=sized.size.failure_high,
        looks=promise.looks,
        order=order,
        look_price=budget / promise.looks,
        budget=sized.curve.budget,
        floor=sized.coin.floor,
        tau=sized.coin.tau,
        alternatives=tuple(replace(entry, settings=()) for entry in alternatives),
        settings=chosen.settings,
        binding=binding,
        shape=study.shape if error is not None else None,
        block_size=block_size,
        rows=rows,
        leftover=None if rows is None or block_size is None else rows - block_size * chosen.blocks,
        error=error,
        rounding=rounding if error is not None else None,
    )


def _refuse_everything(study: Study, queries: int, error: float) -> None:
    """Refuse a plan whose bars would say nothing, unless it is for given tails.

    With ± half of the range or more even the bars of the lowest and the highest answer overlap.
    """
    span = study.shape.span if study.shape is not None else None
    if span is None or study.tails is not None or error < span / 2:
        return
    data = [f"{queries:,} question(s)"]
    data += [f"{study.rows:,} row(s)"] if study.rows is not None else []
    data += [f"{study.blocks:,} block(s)"] if study.blocks is not None else []
    raise Infeasible(
        "The bars would say nothing",
        f"an error below ±{span / 2:g}, half of the mean's range",
        f"with {' and '.join(data)} it would be ±{error:.4g}",
        "Ask fewer questions, bring more data, or give a tail: it is promised without an error. "
        "Scores, comparisons, shares and means need no plan: Holdout.create without one says which "
        "bars to expect.",
    )


def _fit(
    study: Study, promise: Promise, blocks: int, binding: str
) -> tuple[int | None, int | None, str]:
    """Units a block, rows, and the binding constraint, once the number of blocks is known."""
    if study.blocks is not None and blocks > study.blocks:
        raise _too_few("blocks", f"{blocks:,} blocks", f"there are {study.blocks:,}")
    wanted = _units_for_error(study, promise)
    block_size = study.block_size
    if block_size is not None and wanted is not None and wanted > block_size:
        needed = f"blocks of {wanted:,} units"
        raise _too_few("units a block", needed, f"block_size is {block_size:,}")
    if study.rows is None:
        units = block_size if block_size is not None else wanted
        return units, None if units is None else units * blocks, binding
    most = study.rows // blocks
    least = max(1, block_size or 1, wanted or 1)
    if most < least:
        needed = f"{least * blocks:,} rows ({blocks:,} blocks of {least:,})"
        raise _too_few("rows", needed, f"there are {study.rows:,}")
    if block_size is None and not binding.startswith(("rows", "error", "data")):
        binding = "rows: blocks are as large as the rows allow"
    return block_size or most, study.rows, binding


def _units_for_error(study: Study, promise: Promise) -> int | None:
    if study.error is None or study.shape is None:
        return None
    tail = min(promise.tail_low, promise.tail_high)
    return study.shape.units(study.room(promise.grid_size), tail)


def _too_few(what: str, needed: str, given: str) -> Infeasible:
    remedy = "Ask fewer questions, accept a smaller tail or lower confidence, or bring more data."
    return Infeasible(f"Not enough {what}", needed, given, remedy)
