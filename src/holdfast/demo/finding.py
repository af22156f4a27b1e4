"""A finding: what a search selected, what is claimed of it, and what is true of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from holdfast.demo.flights import cell_words
from holdfast.lab.worlds.flights import Cell

__all__ = ["Finding", "percent"]


@dataclass(frozen=True)
class Finding:
    """A list of cells: the share of late flights on it, with an interval for the population's."""

    cells: tuple[Cell, ...]
    flights: int
    """Flights of the sample that are on the list; in a sealed one, as many as are expected."""
    value: float
    low: float
    high: float
    truth: float

    @property
    def contains(self) -> bool:
        """Whether the interval contains the population's value."""
        return self.low <= self.truth <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        cells = [cell_words(cell) for cell in self.cells]
        return {**asdict(self), "cells": cells, "contains": self.contains}


def percent(share: float, digits: int = 0) -> str:
    """A share as people read it.

    >>> percent(0.703, 1), percent(0.05)
    ('70.3 %', '5 %')
    """
    return f"{100 * share:.{digits}f} %"
