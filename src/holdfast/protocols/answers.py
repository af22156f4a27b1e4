"""What comes out of a protocol: a value or a verdict, what is promised of it, and what it cost."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal

__all__ = ["Answer", "Verdict", "VerdictWord"]

VerdictWord = Literal["yes", "no", "exhausted"]


class _Accounted:
    """The part that answers and verdicts have in common."""

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text; a number that is not finite is None."""
        data = asdict(self)  # type: ignore[call-overload]
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in data.items()
        }


@dataclass(frozen=True)
class Answer(_Accounted):
    """A value, with D[φ ≤ value] > tail_low and D[φ ≥ value] > tail_high for all answers at once.

    `low` and `high` bound what `promise` says, and are None where nothing is certified. Values are
    projected upwards onto the grid; the bounds allow for it.
    """

    protocol: str
    value: float
    low: float | None
    high: float | None
    tail_low: float
    tail_high: float
    confidence: float
    promise: str
    price: float
    budget_left: float
    at_grid_end: bool
    certified: bool
    method: str = "search"

    @property
    def tail(self) -> float:
        """The smaller of the two tails."""
        return min(self.tail_low, self.tail_high)


@dataclass(frozen=True)
class Verdict(_Accounted):
    """Whether a guess was confirmed; `exhausted` says nothing about it, and was not drawn."""

    protocol: str
    verdict: VerdictWord
    guess: float
    tail_low: float
    tail_high: float
    confidence: float
    promise: str
    price: float
    budget_left: float
    refusals_left: int
    certified: bool
