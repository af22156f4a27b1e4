"""Questions: what is asked, in a form that can be compared, written down and shown.

Two questions are the same if they ask the same part of the plan the same thing: the same estimator
and filter, range, grid, guess and options. Then they have the same key, and the second is answered
from the ledger, free. An estimator without an identity (a callable that cannot be hashed) makes
every question new.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from holdfast.engines.sql.estimator import can_lack_value
from holdfast.grids import Grid, IntegerGrid, LinearGrid
from holdfast.ledger.ledger import canonical
from holdfast.planning.joint import JointPlan
from holdfast.planning.kept import KeptPlan
from holdfast.planning.parts import SearchPart
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import failure_words, in_full
from holdfast.protocols.means import range_grid
from holdfast.protocols.source import UNIT
from holdfast.store.table import Schema

__all__ = [
    "SLOTS",
    "Question",
    "Verb",
    "can_be_empty",
    "empty_note",
    "notes",
    "open_note",
    "without_open_note",
]

SLOTS = "the slot of time that an answer came in told nothing of the data"
Verb = Literal["ask", "correct", "interval", "mean", "verify"]


@dataclass(frozen=True)
class Question:
    """One question to one part of the plan."""

    verb: Verb
    part: str
    estimator: Any
    identity: str | None
    about: dict[str, Any]  # what people and the ledger read; nothing of it depends on the data
    where: Any = None
    grid: Grid | None = None
    guess: float | None = None
    tolerance: float | None = None
    claim: str | None = None
    gate: bool | None = None  # True: the verdict is on a score, pass or fail
    shape: Shape | None = None
    range: tuple[float, float] | None = None  # of a mean's term; None: nothing can leave [0, 1]
    limits: dict[str, float] | None = None
    assumptions: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """The question as the ledger keeps it."""
        return dict(self._told)

    def assuming(self, what: str) -> Question:
        """The same question, whose answer's promise assumes one thing more."""
        return replace(self, assumptions=(*self.assumptions, what))

    @property
    def reading(self) -> str | None:
        """What a score is about, as a code; None for all other questions."""
        return self.about.get("reading")

    @property
    def failures(self) -> str:
        """What a failure counts as, in words."""
        return failure_words(self.verb, self.about)

    @cached_property
    def _told(self) -> dict[str, Any]:
        given = {
            "verb": self.verb,
            "part": self.part,
            "estimator": self.about,
            "grid": None if self.grid is None else self.grid.to_json(),
            "guess": self.guess,
            "tolerance": self.tolerance,
            "claim": self.claim,
            "gate": self.gate,
            "shape": None if self.shape is None else self.shape.to_dict(),
            "range": None if self.range is None else list(self.range),
            "limits": self.limits,
        }
        return {name: value for name, value in given.items() if value is not None}

    @cached_property
    def key(self) -> str | None:
        """What identifies the question; None if it cannot be told from others."""
        if self.identity is None:
            return None
        text = canonical({**self.to_dict(), "estimator": self.identity})
        return hashlib.sha256(text.encode()).hexdigest()


# Notes: what every answer's promise adds about its grid and its filter, whatever happened.
#
# They follow from the question and the plan alone, so that `check` expects the same words.


_OPEN = r"; [\d,]+ of the [\d,]+ open blocks (?:is|are) such"
_EMPTY = re.compile(rf"; (a block without such rows [^;]*)({_OPEN})?")


def notes(question: Mapping[str, Any], plan: KeptPlan, schema: Schema, *, value: bool) -> str:
    """What is added to the promise of a value, or of a verdict on the way to one."""
    grid, said = _grid(question, plan), ""
    if value and grid is not None and grid.size > 1 and question["verb"] != "interval":
        said = f"; rounded up to {_steps(grid)}"
    if not can_be_empty(question, schema):
        return said
    if grid is None or not value:
        return f"{said}; a block without such rows counts as lower than all others"
    return f"{said}; a block without such rows counts as the lowest point, {in_full(grid.low)}"


def can_be_empty(question: Mapping[str, Any], schema: Schema) -> bool:
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


def _grid(question: Mapping[str, Any], plan: KeptPlan) -> Grid | None:
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
