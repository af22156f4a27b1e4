"""Questions: what is asked, in a form that can be compared, written down and shown.

Two questions are the same if they ask the same part of the plan the same thing: the same estimator
and filter, range, grid, guess and options. Then they have the same key, and the second is answered
from the ledger, free. An estimator without an identity (a callable that cannot be hashed) makes
every question new.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from holdfast.grids import Grid
from holdfast.ledger.ledger import canonical
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import failure_words

__all__ = ["SLOTS", "Question", "Verb"]

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
