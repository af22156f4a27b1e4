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
from holdfast.planning.parts.base import LEAST_SHARE
from holdfast.protocols.promises import bar_text, confidence_text, in_full, rounded_down, rounded_up
from holdfast.protocols.readings import reading_words

__all__ = ["Answer", "Claim", "Verdict", "VerdictWord"]

Claim = Literal["equals", "at least", "at most"]
VerdictWord = Literal["compatible", "not compatible", "cannot tell", "exhausted"]


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
    block_units: int
    cached: bool
    receipt: str
    reading: str | None

    def _accounts(self) -> dict[str, str]:
        """What is promised and what it cost, for people."""
        sure = "for all answers at once" if self.certified else "NOT certified"
        price = "free: asked before" if self.cached else f"{self.price:.4g}"
        words = reading_words(self.reading)
        items = {} if words is None else {"reading": words}
        items |= {
            "promise": f"{self.promise}; confidence {confidence_text(self.confidence)}, {sure}",
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
        data["reading_words"] = reading_words(self.reading)
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in data.items()
        }


@dataclass(frozen=True)
class Answer(_Accounted):
    """A value, with D[φ ≤ value] > tail_low and D[φ ≥ value] > tail_high for all answers at once.

    `low` and `high` bound what `promise` says, and are None where nothing is certified. Values are
    projected upwards onto the grid; the bounds allow for it. A value is about the estimator on a
    block of `block_units` units, and nothing else.
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
    block_units: int
    method: str = "search"
    cached: bool = False
    receipt: str = ""
    reading: str | None = None
    """What a score is about, as a code: see `readings`. None where there is no choice."""

    def described(self) -> dict[str, str]:
        value = f"{self.value:.12g}"
        if self.low is not None or self.high is not None:
            value += f"   {bar_text(self.low, self.high)}"
        if self.protocol != "mean" or self.low is None:  # a bar of a mean is not about blocks
            value += f"   on blocks of {self.block_units:,} unit{'s'[: self.block_units != 1]}"
        if self.at_grid_end and (self.low is None or self.high is None):
            value += "   at the end of its grid: the value may lie beyond"
        return {"answer": value, **self._accounts()}

    def _repr_html_(self) -> str:
        return html_table(self.protocol, self.described())


@dataclass(frozen=True)
class Verdict(_Accounted):
    """What became of a guess, in one word, `verdict`.

    `refused` is what was drawn: False, the guess stands; True, it does not, which is what is
    counted as a refusal; None, nothing was drawn. `tolerance` is that of a guess that a search has
    checked, and None where the plan has a part for guesses.

    `range_low` and `range_high` enclose the guesses that would be compatible, were fresh blocks
    like the `open_blocks` blocks of the open part. They are None where there is no such end, or
    where the open blocks are too few to say. Nothing of the sealed blocks is in them.
    """

    protocol: str
    guess: float
    claim: Claim
    tolerance: float | None
    refused: bool | None
    tail_low: float
    tail_high: float
    confidence: float
    promise: str
    price: float
    budget_left: float
    refusals_left: int | None
    certified: bool
    block_units: int
    range_low: float | None = None
    range_high: float | None = None
    open_blocks: int = 0
    cached: bool = False
    receipt: str = ""
    reading: str | None = None

    @property
    def verdict(self) -> VerdictWord:
        """The word: what is certified of the guess, and `cannot tell` where that is nothing.

        A share of fresh blocks below `LEAST_SHARE` says nothing. And where a search has refused a
        guess, it is certified that some fresh blocks lie beyond it, as they do beyond a right one.
        """
        if self.refused is None:
            return "exhausted"
        if not self.refused:
            near = self.tail if self.tolerance is not None else self.tail_low
            return "compatible" if near >= LEAST_SHARE else "cannot tell"
        known = self.tolerance is None and 1 - self.tail_high >= LEAST_SHARE
        return "not compatible" if known else "cannot tell"

    def to_dict(self) -> dict[str, object]:
        return {"verdict": self.verdict, **super().to_dict()}

    def described(self) -> dict[str, str]:
        claim = "" if self.claim == "equals" else f"{self.claim} "
        near = f" ± {self.tolerance:.12g}" if self.tolerance else ""
        items = {"verdict": f"{self.verdict}   (guess: {claim}{in_full(self.guess)}{near})"}
        if self.open_blocks:
            items["range"] = self._range()
        items |= self._accounts()
        left = self.refusals_left
        return items if left is None else {**items, "refusals": f"{left:,} left"}

    def _range(self) -> str:
        low, high, blocks = self.range_low, self.range_high, f"{self.open_blocks:,} open blocks"
        ends = [] if low is None else [f"from {rounded_down(low, 6)}"]
        ends += [] if high is None else [f"up to {rounded_up(high, 6)}"]
        if not ends:
            needed = math.ceil(1 / self.tail)
            return f"{blocks} are too few to say which guesses are compatible: {needed:,} would do"
        return f"guesses {' '.join(ends)} are compatible, going by {blocks}"

    def _repr_html_(self) -> str:
        return html_table(self.protocol, self.described())
