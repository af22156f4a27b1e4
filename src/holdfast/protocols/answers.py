"""What comes out of a protocol: a value or a verdict, what is promised of it, and what it cost.

A holdout adds whether it had been asked before (`cached`), and the ledger's receipt.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal

from holdfast.notebook import html_table
from holdfast.planning.explain import ASSUMPTIONS

__all__ = ["Answer", "Verdict", "VerdictWord"]

VerdictWord = Literal["yes", "no", "exhausted"]


class _Accounted(ABC):
    """The part that answers and verdicts have in common."""

    tail_low: float
    tail_high: float

    @property
    def tail(self) -> float:
        """The smaller of the two tails."""
        return min(self.tail_low, self.tail_high)

    confidence: float
    promise: str
    price: float
    budget_left: float
    certified: bool
    cached: bool
    receipt: str

    def _accounts(self) -> dict[str, str]:
        """What is promised and what it cost, for people."""
        sure = "for all answers at once" if self.certified else "NOT certified"
        price = "free: asked before" if self.cached else f"{self.price:.4g}"
        items = {
            "promise": f"{self.promise}; confidence {self.confidence:g}, {sure}",
            "assumes": ASSUMPTIONS,
            "price": f"{price}; {self.budget_left:.4g} left",
        }
        return {**items, "receipt": self.receipt} if self.receipt else items

    @abstractmethod
    def described(self) -> dict[str, str]:
        """What it says, in labelled lines, for people."""

    def __str__(self) -> str:
        return "\n".join(f"{label:<9}{text}" for label, text in self.described().items())

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text; a number that is not finite is None."""
        # Not `asdict`, which copies deeply: all fields are plain.
        data = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        data |= {"tail": self.tail, "assumes": ASSUMPTIONS}
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
    cached: bool = False
    receipt: str = ""

    def described(self) -> dict[str, str]:
        value = f"{self.value:.12g}"
        if self.low is not None or self.high is not None:
            low = "−∞" if self.low is None else f"{self.low:.6g}"
            high = "∞" if self.high is None else f"{self.high:.6g}"
            value += f"   [{low}, {high}]"
        if self.at_grid_end:
            value += "   at the end of its grid: the value may lie beyond"
        return {"answer": value, **self._accounts()}

    def _repr_html_(self) -> str:
        return html_table(self.protocol, self.described())


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
    refusals_left: int | None
    certified: bool
    cached: bool = False
    receipt: str = ""

    def described(self) -> dict[str, str]:
        items = {"verdict": f"{self.verdict}   (guess {self.guess:.12g})", **self._accounts()}
        left = self.refusals_left
        return items if left is None else {**items, "refusals": f"{left:,} left"}

    def _repr_html_(self) -> str:
        return html_table(self.protocol, self.described())
