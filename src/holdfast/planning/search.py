"""Finding what the user left out: the grid, the tail, the number of questions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from holdfast.errors import Infeasible
from holdfast.planning.alternatives import split_blocks, split_tail
from holdfast.planning.cache import steepest
from holdfast.planning.study import Study
from holdfast.theory.sizing import (
    BLOCKS_MAX,
    QUERIES_MAX,
    TAIL_MAX,
    TAIL_MIN,
    Promise,
    best_tail,
    largest_tail,
)

__all__ = [
    "best_tail_for_error",
    "best_tail_for_rows",
    "grid_for",
    "most_queries",
    "tail_for_block_size",
    "tail_for_blocks",
]

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
