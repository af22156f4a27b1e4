"""What an experiment is made of: cells that measure, and findings that its results support.

Each experiment is a config file, NAME.toml, beside a module of the same name that has

    measure(cell) -> rows         one cell's observations, tidy: one dict a row
    draw(results) -> figures      matplotlib figures by name, made from the results alone
    findings(results) -> list     what the results show, each beside what was expected

`results` is a pandas DataFrame: the rows of all cells, with the cell's parameters and repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.randomness import SeededEntropy

__all__ = ["Cell", "Finding", "Row"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One combination of parameters, one repeat: the smallest piece of work that is kept.

    Randomness comes from the experiment's seed, the cell's own number and the repeat, so that the
    same cell gives the same rows in whatever order, process or run it is measured.
    """

    parameters: Mapping[str, Any]
    seed: int
    number: int
    repeat: int

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def entropy(self, stream: int = 0) -> SeededEntropy:
        """Coins and noise; streams are independent."""
        return SeededEntropy((self.seed, self.number, self.repeat, stream))

    def chance(self, stream: int = 1) -> np.random.Generator:
        """The world and the analyst."""
        return np.random.Generator(
            np.random.Philox(np.random.SeedSequence((self.seed, self.number, self.repeat, stream)))
        )

    def shared_chance(self, stream: int = 1) -> np.random.Generator:
        """The same in all cells of a repeat: responders can be compared on the same world."""
        return np.random.Generator(
            np.random.Philox(np.random.SeedSequence((self.seed, 2**32, self.repeat, stream)))
        )


@dataclass(frozen=True)
class Finding:
    """One thing the results show: in words, as a number, and beside what was expected.

    `holds` is None where nothing was expected.
    """

    what: str
    measured: str
    expected: str = ""
    holds: bool | None = None
