"""What an experiment is made of: cells that measure, and findings that its results support.

Each experiment is a config file, NAME.toml, beside a module of the same name that has

    measure(cell) -> rows         one cell's observations, tidy: one dict a row
    draw(results) -> figures      matplotlib figures by name, made from the results alone
    findings(results) -> list     what the results show, each beside what was expected

`results` is a pandas DataFrame: the rows of all cells, with the cell's parameters and repeat.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdfast.randomness import SeededEntropy
from holdfast_lab.figures import DataFrame
from holdfast_lab.statistics import fitted_slope, growth, per_decade

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


# Averages over sessions, in words, beside what others found.


_ERRORS = 3.0  # standard errors that still count as agreement: one in 370 is farther


class Average(NamedTuple):
    """A mean over sessions; `spread` is one session's standard deviation, NaN of a single one."""

    mean: float
    spread: float
    sessions: int

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.spread / math.sqrt(self.sessions)

    def __str__(self) -> str:
        if math.isnan(self.spread):
            return f"{self.mean:.4f} (one session)"
        return f"{self.mean:.4f} ± {self.error:.4f} ({self.sessions} sessions)"

    def agrees(self, published: float, sessions: int | None = None) -> bool | None:
        """Whether it is within three standard errors of a mean that others found.

        Theirs is a mean of so many sessions, of the same spread as ours, or exact. None of one
        session: it has no spread.
        """
        if math.isnan(self.spread):
            return None
        shares = 1 / self.sessions + (0.0 if sessions is None else 1 / sessions)
        return abs(self.mean - published) <= _ERRORS * self.spread * math.sqrt(shares)


def average(values: Any) -> Average | None:
    """The average of what is a number; None if nothing is.

    >>> print(average([0.42, 0.43, 0.44, float("nan")]))
    0.4300 ± 0.0058 (3 sessions)
    >>> average([0.42, 0.43, 0.44]).agrees(0.46), average([0.42, 0.43, 0.44]).agrees(0.46, 1)
    (False, True)
    """
    known = np.asarray(values, np.float64)
    known = known[~np.isnan(known)]
    if not known.size:
        return None
    spread = float(known.std(ddof=1)) if known.size > 1 else math.nan
    return Average(float(known.mean()), spread, known.size)


def growth_findings(rows: DataFrame, plan: str, tail: float | None = None) -> Iterator[Finding]:
    """How blocks grow with k: like √k where every question is searched for, else like log k."""
    times = growth(rows["queries"], rows["blocks"])
    if math.isnan(times):
        return
    ends = f"from k = {rows['queries'].min():,} to {rows['queries'].max():,}"
    ends += "" if tail is None else f", ρ = {tail:g}"
    if plan == "searches":
        slope = fitted_slope(rows["queries"], rows["blocks"])
        what, told = f"a search each: blocks {ends}", f"×{times:.1f}, exponent {slope:.3f}"
        yield Finding(what, told, "exponent 1/2", abs(slope - 0.5) <= 0.05)
        return
    added = per_decade(rows["queries"], rows["blocks"])
    told = f"×{times:.2f}; each tenfold k adds {min(added):,.0f} to {max(added):,.0f}"
    even = max(added) <= 1.5 * min(added)
    yield Finding(f"{plan}: blocks {ends}", told, "log k: about the same for each", even)


def rows_where(results: DataFrame, /, **where: Any) -> DataFrame:
    """The rows with these values of their columns.

    >>> import pandas
    >>> table = pandas.DataFrame({"responder": ["naive", "split"], "loss": [0.4, 0.5]})
    >>> rows_where(table, responder="split")["loss"].tolist()
    [0.5]
    """
    for column, value in where.items():
        results = results[results[column] == value]
    return results
