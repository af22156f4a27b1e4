"""The planner: from what is known of a study to the best complete plan (`hf.plan`)."""

from __future__ import annotations

from dataclasses import replace

from holdfast.errors import Infeasible, InvalidInput
from holdfast.grids import Grid
from holdfast.planning.alternatives import Alternative, compare, recommended
from holdfast.planning.cache import steepest
from holdfast.planning.plan import Plan
from holdfast.planning.search import (
    best_tail_for_error,
    best_tail_for_rows,
    grid_for,
    most_queries,
    tail_for_block_size,
    tail_for_blocks,
)
from holdfast.planning.shapes import shape_from
from holdfast.planning.study import Study, measure_grid, study_from
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.sizing import Promise, Sized

__all__ = ["plan"]

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
    study = study_from(
        queries=queries,
        rows=rows,
        blocks=blocks,
        block_size=block_size,
        grid=size,
        widest_cell=cell,
        tail=tail,
        tails=tails,
        target=target,
        confidence=confidence,
        error=error,
        shape=shape_from(shape, low, high, sd, grid),
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
        "Ask fewer questions, bring more data, or give a tail: it is promised without an error.",
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
