"""Notes: what every answer's promise adds about its grid and its filter, whatever happened.

They follow from the question and the plan alone, so that `check` expects the same words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.engines.sql.estimator import can_lack_value
from holdfast.grids import Grid, IntegerGrid, LinearGrid
from holdfast.planning.joint import JointPlan
from holdfast.planning.kept import KeptPlan
from holdfast.planning.parts import SearchPart
from holdfast.protocols.answers import in_full
from holdfast.protocols.means import range_grid
from holdfast.protocols.source import UNIT
from holdfast.store.table import Schema

__all__ = ["can_be_empty", "empty_note", "notes", "open_note", "without_open_note"]

Question = Mapping[str, Any]
_OPEN = r"; [\d,]+ of the [\d,]+ open blocks (?:is|are) such"
_EMPTY = re.compile(rf"; (a block without such rows [^;]*)({_OPEN})?")


def notes(question: Question, plan: KeptPlan, schema: Schema, *, value: bool) -> str:
    """What is added to the promise of a value, or of a verdict on the way to one."""
    grid, said = _grid(question, plan), ""
    if value and grid is not None and grid.size > 1 and question["verb"] != "interval":
        said = f"; rounded up to {_steps(grid)}"
    if not can_be_empty(question, schema):
        return said
    if grid is None or not value:
        return f"{said}; a block without such rows counts as lower than all others"
    return f"{said}; a block without such rows counts as the lowest point, {in_full(grid.low)}"


def can_be_empty(question: Question, schema: Schema) -> bool:
    """Whether its filter can leave a block without rows, and so without a value."""
    about = question["estimator"]
    filtered = "where" in about
    if about["engine"] != "sql" or question["verb"] == "mean":
        return filtered
    return can_lack_value(about["text"], schema, filtered)


def open_note(empty: int, blocks: int) -> str:
    """What the open part says of it, where it says that it happens."""
    if empty == 0:
        return ""
    return f"; {empty:,} of the {blocks:,} open blocks {'is' if empty == 1 else 'are'} such"


def empty_note(promise: str) -> str | None:
    """What a promise says of blocks that a filter leaves empty.

    >>> empty_note("…; a block without such rows counts as the lowest point, 0; assuming that …")
    'a block without such rows counts as the lowest point, 0'
    """
    found = _EMPTY.search(promise)
    return None if found is None else found[1] + (found[2] or "")


def without_open_note(promise: str) -> str:
    """A promise without what the open part has said."""
    return _EMPTY.sub(r"; \1", promise, count=1)


def _grid(question: Question, plan: KeptPlan) -> Grid | None:
    if "grid" in question:
        return Grid.from_json(question["grid"])
    part = plan.part(question["part"]) if isinstance(plan, JointPlan) else None
    if question["verb"] != "mean" or not isinstance(part, SearchPart):
        return None
    low, high = question.get("range", UNIT)
    return range_grid(part, (low, high))


def _steps(grid: Grid) -> str:
    if isinstance(grid, LinearGrid | IntegerGrid):
        return f"a grid with step {grid.step:.6g}"
    return f"the next of {grid.size:,} points"
