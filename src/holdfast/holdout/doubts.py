"""Doubts: what says, before anything is drawn or charged, that a question is a slip.

Only what is public is looked at: the question, what was declared at creation, and the open part.

    a constant   that a text column is declared never to be, or never is in the open part
    a filter     that no declared range fits, or that leaves most open blocks without a value
    a grid       with fewer than two points where the value can lie; one that most open blocks'
                 values lie beyond, or are rounded up by far more than they differ
    a guess      beyond where the value can lie
    a range      that most open rows' terms lie beyond
    a metric     of blocks, where blocks are so few rows that it says little

Each is refused, free, unless it is asked with `anyway`. That some open blocks have no value is told
and not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.metrics import OVER_ROWS
from holdfast.engines.sql.estimator import (
    Comparison,
    SqlEstimator,
    SqlTerm,
    comparisons,
    sql_condition,
)
from holdfast.engines.sql.language import meant
from holdfast.errors import Doubtful
from holdfast.grids import Grid
from holdfast.holdout.public import ENOUGH, OpenPart
from holdfast.holdout.questions import Asked
from holdfast.holdout.spec import HoldoutSpec
from holdfast.protocols.answers import in_full
from holdfast.protocols.base import Question

__all__ = ["Doubt", "doubts_of", "empty_blocks", "refuse"]

_FAR = 3.0  # times what open blocks differ by
_FEW_BLOCKS = 20  # that a Python function is asked of
_FEW_UNITS = 30  # of a block, for a metric of a model
_LISTED = 6  # values of a column
_LONGEST = 40  # characters of one
_CAN_BE: dict[str, Callable[[float, float, float], bool]] = {
    "=": lambda low, high, number: low <= number <= high,
    "IS NOT DISTINCT FROM": lambda low, high, number: low <= number <= high,
    "<": lambda low, _, number: low < number,
    "<=": lambda low, _, number: low <= number,
    ">": lambda _, high, number: high > number,
    ">=": lambda _, high, number: high >= number,
}


@dataclass(frozen=True)
class Doubt:
    """What may be wrong, the argument that it is about, and whether the question is refused."""

    parameter: str
    message: str
    refused: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def refuse(doubts: Sequence[Doubt]) -> None:
    """Raise `Doubtful` if one of them is reason enough."""
    grave = [each for each in doubts if each.refused]
    if grave:
        raise Doubtful(grave[0].parameter, " ".join(each.message for each in grave))


def doubts_of(spec: HoldoutSpec, open_part: OpenPart, asked: Asked) -> tuple[Doubt, ...]:
    """Everything that speaks against a question."""
    found = (*_comparisons(spec, open_part, asked.question), *_beyond(asked), *_small(spec, asked))
    if not open_part.blocks:
        return found
    said = {each.parameter for each in found}  # once is enough: of the same, this is the effect
    seen = [*_on_open_blocks(open_part, asked), *_cut(spec, open_part, asked)]
    return (*found, *(each for each in seen if each.parameter not in said))


# Constants.


def _comparisons(spec: HoldoutSpec, open_part: OpenPart, question: Question) -> Iterator[Doubt]:
    if question.about["engine"] != "sql":
        return
    for parameter, name in (("question", "text"), ("where", "where")):
        if name in question.about:
            compared = comparisons(question.about[name], spec.manifest.schema)
            for each in dict.fromkeys(compared):
                doubt = _doubt_of(spec, open_part, each)
                if doubt is not None:
                    yield Doubt(parameter, doubt)


def _doubt_of(spec: HoldoutSpec, open_part: OpenPart, compared: Comparison) -> str | None:
    column, constant = compared.column, compared.constant
    if isinstance(constant, str):
        return _unknown_text(spec, open_part, column, constant)
    declared, test = spec.ranges.get(column), _CAN_BE.get(compared.operator)
    if declared is None or test is None or test(*declared, constant):
        return None
    return (
        f"{column} {compared.operator} {constant:.6g} can be true of no row: {column} is declared "
        f"to lie between {declared[0]:.6g} and {declared[1]:.6g}."
    )


def _unknown_text(spec: HoldoutSpec, open_part: OpenPart, column: str, constant: str) -> str | None:
    declared, seen = spec.texts(column), None
    if declared is None:
        seen = open_part.texts(column)
        if seen is None:
            return None
    known = declared if seen is None else seen[1]
    if known is None or constant in known:
        return None
    never = "it is declared never to be" if seen is None else f"none of {seen[0]:,} open rows has"
    return (
        f"{column} is compared with {_quoted(constant)}, which {never}: there is "
        f"{_listed(known)}.{meant(constant, known)}"
    )


def _listed(values: Sequence[str]) -> str:
    shown = [_quoted(each) for each in values[:_LISTED]]
    if len(values) > _LISTED:
        return f"{', '.join(shown)}, … ({len(values):,} in all)"
    return " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


# Grids and guesses.


def _beyond(asked: Asked) -> Iterator[Doubt]:
    """What cannot be where the value lies, by the question's form and by what is declared."""
    bounds, question = asked.estimand.range, asked.question
    if bounds is None:
        return
    ends = f"between {bounds[0]:.6g} and {bounds[1]:.6g}"
    lies = f"By its form and what is declared the value lies {ends}"
    if question.grid is not None:
        inside = _points_between(question.grid, *bounds)
        if inside < 2:
            how_many = "no point" if inside == 0 else "one point"
            yield Doubt(
                "grid", f"{lies}, and the grid ({question.grid.describe()}) has {how_many} there."
            )
    if question.guess is not None:
        near = question.tolerance or 0.0
        if not bounds[0] - near <= question.guess <= bounds[1] + near:
            yield Doubt("guess", f"{lies}, and the guess is {question.guess:.6g}.")


def _points_between(grid: Grid, low: float, high: float) -> int:
    """How many points lie in [low, high]."""
    first, last = int(grid.ceiling(low)), int(grid.ceiling(high))
    first += grid.point(first) < low  # the whole grid is below
    last -= grid.point(last) > high
    return last - first + 1


# Metrics of blocks.


def _small(spec: HoldoutSpec, asked: Asked) -> Iterator[Doubt]:
    """A score over blocks that nobody has chosen to be so small: a plan's are as large as wanted.

    The median of a metric that is a mean over rows is near that mean, and of any size.
    """
    question, units = asked.question, spec.manifest.block_units
    scored = asked.protocol.told and "reading" in question.about and question.verb == "ask"
    if not scored or asked.estimand.estimator.bounded_mean or units >= _FEW_UNITS:
        return
    metric = str(question.about["text"]).partition(" of ")[0]
    single = spec.manifest.one_row_units
    rows = f"{units:,} {'row' if single else 'unit'}{'' if units == 1 else 's'}"
    instead = f" All rows at once are used by {OVER_ROWS}." if single else ""
    yield Doubt(
        "metric",
        f"The sealed rows make blocks of {units:,}, and {metric} is told as the median over such "
        f"blocks: {metric} of {rows} says little about the model.{instead}",
    )


# The open part.


def empty_blocks(open_part: OpenPart, asked: Asked) -> tuple[int, int] | None:
    """How many open blocks have no value, and how many there are; None without a block."""
    estimand = asked.estimand
    if isinstance(estimand.estimator, SqlEstimator):
        values = open_part.values(estimand.estimator)
        return None if values is None else (int(np.count_nonzero(np.isnan(values))), values.size)
    if not isinstance(estimand.where, SqlTerm):
        return None
    kept = open_part.kept(estimand.where)
    return None if kept is None else (int(np.count_nonzero(kept == 0)), kept.size)


def _on_open_blocks(open_part: OpenPart, asked: Asked) -> Iterator[Doubt]:
    question = asked.question
    empty, blocks = empty_blocks(open_part, asked) or (0, 0)
    if asked.protocol.told and question.verb == "mean":  # over rows: blocks play no part in it
        if 0 < blocks == empty:
            yield Doubt("where", "No open row fits the filter.")
    elif empty:
        why = ", where no row fits the filter" if "where" in question.about else ""
        many = 2 * empty > blocks
        bias = "the answer would be about those" if many else "answers are lower for it"
        yield Doubt(
            "where" if why else "question",
            f"It has no value on {empty:,} of the {blocks:,} open blocks{why}: a block without one "
            f"counts as the lowest point, and {bias}.",
            refused=many,
        )
    values = _open_values(open_part, asked)
    if question.grid is not None and values is not None:
        known = values[~np.isnan(values)]
        found = _ends_before(question.grid, known)
        if found is None and question.verb != "interval":  # whose ends are the cell's own
            found = _too_coarse(question.grid, known)
        if found is not None:
            yield Doubt("grid", found)


def _open_values(open_part: OpenPart, asked: Asked) -> NDArray[np.float64] | None:
    """What open blocks give; of Python, unless it is a model that may have been fitted to them."""
    question, estimand = asked.question, asked.estimand
    if question.grid is None:
        return None
    if isinstance(estimand.estimator, SqlTerm):
        return open_part.means(estimand.estimator, estimand.where, question.bounds)
    if "reading" in question.about or question.verb == "mean":
        return None
    return open_part.values(estimand.estimator, _FEW_BLOCKS)


def _cut(spec: HoldoutSpec, open_part: OpenPart, asked: Asked) -> Iterator[Doubt]:
    """A declared range of a term that most open rows leave: most of the answer would be the cut."""
    term, bounds = asked.estimand.estimator, asked.question.range
    if bounds is None or not isinstance(term, SqlTerm) or term.boolean:
        return
    low, high = (in_full(end) for end in bounds)
    schema = spec.manifest.schema
    outside = sql_condition(f"({term.text}) < {low} OR ({term.text}) > {high}", schema)
    share = open_part.share(outside)
    if share:
        yield Doubt(
            "range",
            f"{share:.3g} of the open part lies beyond [{low}, {high}], and is cut to it.",
            refused=share > 0.5,
        )


def _ends_before(grid: Grid, values: NDArray[np.float64]) -> str | None:
    """Where most values lie, if it is beyond the grid."""
    low, high = float(grid.low), float(grid.high)
    for count, side in (
        (np.count_nonzero(values > high), f"above {high:.6g}"),
        (np.count_nonzero(values < low), f"below {low:.6g}"),
    ):
        if 2 * count > values.size:
            return (
                f"On {count:,} of {values.size:,} open blocks with a value it lies {side}, where "
                f"the grid ends: half of them have {np.median(values):.6g} or more."
            )
    return None


def _too_coarse(grid: Grid, values: NDArray[np.float64]) -> str | None:
    """Where all values lie, if one point stands for all of them and is near none."""
    if values.size < ENOUGH:
        return None
    least, most = float(values.min()), float(values.max())
    point = float(grid.point(int(grid.ceiling(most))))
    if int(grid.ceiling(least)) < int(grid.ceiling(most)) or point - most <= _FAR * (most - least):
        return None
    return (
        f"On all {values.size:,} open blocks with a value it lies between {least:.6g} and "
        f"{most:.6g}, and the grid's next point is {point:.6g}: the answer would be that."
    )
