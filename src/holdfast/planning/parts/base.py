"""Parts of a joint plan: what one protocol may do, with which coin, and what can go wrong.

A part is plain numbers. From them and the plan's order it rebuilds its coin, measures what a look
costs, and lists its failure classes (`holdfast.theory.transfer`). At run time two things are
enforced: the budget that all parts share, and each part's own number of looks and refusals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

from holdfast.theory.transfer import FailureClass

__all__ = ["LEAST_SHARE", "Left", "Part", "VerdictPrices"]

LEAST_SHARE = 0.01
"""The least share of fresh blocks that says anything of a guess: 1 in 100.

A convention, and the only one: nearly every guess has 1 fresh block in a million on either side of
it, so that certifying as little is no verdict. It decides words (`Verdict.verdict`), and what is
refused because no other word could come of it; no bound depends on it.
"""


@dataclass(frozen=True)
class Left:
    """What is left for one part, were all the rest of the budget spent on it."""

    questions: int
    looks: int
    refusals: int | None = None


@dataclass(frozen=True)
class VerdictPrices:
    """What one look costs in stability, by its verdict, rounded up."""

    no: float
    yes: float

    @property
    def worst(self) -> float:
        """The dearer of the two: what must be free before the coin is flipped."""
        return max(self.no, self.yes)


class Part(ABC):
    """One protocol's part in a plan."""

    kind: ClassVar[str]
    name: str
    protocol: str
    queries: int
    looks: int
    subblocks: int = 1
    """Sub-blocks whose exact median is one block's value; 1 where a block is not divided."""

    @abstractmethod
    def classes(self, order: float, blocks: int) -> tuple[FailureClass, ...]:
        """What can go wrong with looks, each with its share of β."""

    @abstractmethod
    def shares(self, blocks: int, /) -> tuple[float, ...]:
        """The shares of β that the part uses, those without a look included."""

    @abstractmethod
    def prices(self, order: float) -> VerdictPrices:
        """What a look costs at this order, measured on the coin as it is stored."""

    @abstractmethod
    def planned(self, order: float) -> float:
        """What the planned use of the part costs at most, in stability."""

    @abstractmethod
    def left(self, order: float, rest: Fraction, looks: int, refusals: int) -> Left:
        """What `rest` of the budget still buys, after so many looks and refusals of this part."""

    def still_possible(self, order: float, rest: Fraction, looks: int, refusals: int) -> str:
        """What `left` still buys, in words; empty if nothing can be asked."""
        left = self.left(order, rest, looks, refusals)
        return f"{self.name} ({left.questions:,})" if left.questions else ""

    @property
    def most_refusals(self) -> int | None:
        """How many looks may say No; None if that does not matter."""
        return None

    @abstractmethod
    def sound(self, order: float, budget: float, blocks: int) -> bool:
        """Whether what stands beside the classes fits; the classes are checked by the plan."""

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text."""
        return {"kind": self.kind, **asdict(cast(Any, self))}
