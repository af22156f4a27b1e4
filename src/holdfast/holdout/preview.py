"""What a holdout is going to be: how large its blocks are, what is left over, what bars to expect.

All of it follows from the plan and the number of units: it is known before anything is sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.holdout.sets import BlockSet
from holdfast.planning.exact import ExactVerdicts, ExactWeights
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts.direct import DirectPart
from holdfast.planning.parts.searches import SearchPart
from holdfast.planning.parts.verdicts import VerdictPart
from holdfast.planning.parts.weights import WeightsPart
from holdfast.planning.rounds import RoundsPlan
from holdfast.protocols.promises import rounded_up
from holdfast.store.sealing import Split
from holdfast.theory.bars import mean_half_width, verdict_bar

__all__ = ["PartPreview", "Preview", "preview_of"]


@dataclass(frozen=True)
class PartPreview:
    """What one part of the plan will be worth."""

    name: str
    questions: int
    half_width: float | None
    """Of the widest bar around a share of units; None where there is none, or it says nothing."""
    words: str


@dataclass(frozen=True)
class Preview:
    """A holdout before it is sealed."""

    units: int
    blocks: int
    block_units: int
    open_units: int
    leftover_units: int
    parts: tuple[PartPreview, ...]

    @property
    def mostly_left_over(self) -> bool:
        """Whether more of the units outside of the open part are thrown away than are used."""
        return self.leftover_units > self.blocks * self.block_units

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        return asdict(self)

    def __str__(self) -> str:
        units = "unit" if self.block_units == 1 else "units"
        lines = [
            f"{self.blocks:,} blocks of {self.block_units:,} {units}: of {self.units:,} units "
            f"{self.open_units:,} stay open and {self.leftover_units:,} are left over, never used"
        ]
        for part in self.parts:
            asked = "1 question" if part.questions == 1 else f"{part.questions:,} questions"
            lines.append(f"  {part.name:<15}{asked:<18}{part.words}")
        return "\n".join(lines)


def preview_of(sets: Iterable[BlockSet], units: int, split: Split) -> Preview:
    """What units, cut like this, will be under these plans.

    >>> from holdfast.store.sealing import split_units
    >>> from holdfast.holdout.sets import sets_for
    >>> from holdfast.planning.exact import exact_estimates
    >>> sets = sets_for(exact_estimates(20, tail_low=0.1, tail_high=0.1))
    >>> print(preview_of(sets, 10_000, split_units(10_000, sets[0].blocks)))
    129 blocks of 77 units: of 10,000 units 0 stay open and 67 are left over, never used
      exact          20 questions      a share of units within ±0.14 or less
    """
    parts = tuple(part for each in sets for part in _parts(each, split.block_units))
    sizes = split.blocks, split.block_units, split.open_units, split.leftover_units
    return Preview(units, *sizes, parts)


def _parts(each: BlockSet, units: int) -> Iterator[PartPreview]:
    plan = each.plan
    parts: Sequence[Any] = plan.parts if isinstance(plan, JointPlan) else (plan,)
    for part in parts:
        name = part.name if isinstance(plan, JointPlan) else each.name
        half_width = None
        if isinstance(part, DirectPart):
            half_width = part.bars(plan.order, plan.budget, plan.blocks).half_width  # type: ignore[union-attr]
            words = _within(half_width)
        elif isinstance(part, VerdictPart | ExactVerdicts):
            words = _verdict(part, units)
        elif isinstance(part, SearchPart) and part.mirrored:
            words = "between two values that enclose the median of all blocks' values"
        else:
            half_width = min(0.5, mean_half_width(units, _tail(part)) + _half_cell(part))
            words = _within(half_width)
        yield PartPreview(name, part.queries, half_width, words)


def _within(half_width: float) -> str:
    if half_width >= 0.5:
        return "a share of units anywhere from 0 to 1: such a bar says nothing"
    return f"a share of units within ±{rounded_up(half_width, 2)} or less"


def _verdict(part: VerdictPart | ExactVerdicts, units: int) -> str:
    if part.sides == 1:
        low, _ = verdict_bar(0.5, "at least", True, units, part.tail_low, part.tail_high)
        gap = rounded_up(0.5 - (low or 0.0), 2)
        return f"a share of units that passes at v is at least v − {gap}"
    most = f"{100 * part.tail_low:.3g} in 100 blocks"
    return f"a guess with fewer than {most} on one of its sides is found out"


def _tail(part: Any) -> float:
    """The smaller tail of what is answered about one block."""
    guessing = part.guesses if isinstance(part, RoundsPlan) else part
    if isinstance(part, SearchPart) and part.subblocks > 1:
        return part.subblock_tail
    if isinstance(part, WeightsPart | ExactWeights):
        return part.tail
    return float(min(guessing.tail_low, guessing.tail_high))


def _half_cell(part: Any) -> float:
    """Half a step of the grid from 0 to 1 that a share is answered on."""
    grid = getattr(part, "grid", None)
    return 0.0 if grid is None else 0.5 / (grid - 1)
