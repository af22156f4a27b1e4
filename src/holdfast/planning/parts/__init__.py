"""Parts of a joint plan, one module per kind."""

from __future__ import annotations

from holdfast.planning.parts.base import LEAST_SHARE, Left, Part, VerdictPrices
from holdfast.planning.parts.direct import DirectPart
from holdfast.planning.parts.searches import SearchPart
from holdfast.planning.parts.verdicts import VerdictPart
from holdfast.planning.parts.weights import WeightsPart

__all__ = [
    "LEAST_SHARE",
    "PART_KINDS",
    "DirectPart",
    "Left",
    "Part",
    "SearchPart",
    "VerdictPart",
    "VerdictPrices",
    "WeightsPart",
]

PART_KINDS: dict[str, type[Part]] = {
    part.kind: part for part in (SearchPart, DirectPart, VerdictPart, WeightsPart)
}
