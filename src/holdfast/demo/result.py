"""What came of a demo: for the screen, the picture, and as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.demo.analyst import Hunt
from holdfast.demo.finding import Finding
from holdfast.demo.fresh import Checked

__all__ = ["DemoResult"]


@dataclass
class DemoResult:
    """Filled as the demo goes along."""

    population: int
    sample: int
    questions: int
    blocks: int
    block_units: int
    leftover: int
    certified: bool
    naive_hunt: Hunt
    hunt: Hunt
    naive: Finding
    holdfast: Finding
    everything: Finding
    naive_runs: list[Finding] = field(default_factory=list)
    delays: dict[str, dict[str, float]] = field(default_factory=dict)
    cached: bool = False
    refused: str = ""
    verdicts: dict[str, str] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    receipt: str = ""
    checked: Checked | None = None
    report: Path | None = None
    pictures: list[Path] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def naive_missed(self) -> int:
        """In how many fresh samples the textbook's interval missed the population's value."""
        return sum(not finding.contains for finding in self.naive_runs)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        assert self.checked is not None
        return {
            "population": self.population,
            "sample": self.sample,
            "questions": self.questions,
            "blocks": self.blocks,
            "block_units": self.block_units,
            "leftover": self.leftover,
            "certified": self.certified,
            "naive": self.naive.to_dict(),
            "holdfast": self.holdfast.to_dict(),
            "all_flights": self.everything.to_dict(),
            "naive_runs": len(self.naive_runs),
            "naive_missed": self.naive_missed,
            "promise": self.checked.to_dict(),
            "delays": self.delays,
            "cached": self.cached,
            "refused": self.refused,
            "verdicts": self.verdicts,
            "status": self.status,
            "receipt": self.receipt,
            "report": str(self.report),
            "pictures": [str(path) for path in self.pictures],
            "seconds": round(self.seconds, 1),
        }
