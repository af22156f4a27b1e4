"""A search for the worst flights, subgroup by subgroup, on a sample of real ones.

The analyst keeps a list of cells, at first the one with all flights. Round by round it splits every
cell of the list by the next column of the schedule, asks of each part how often flights in it are
late, and keeps the worst parts, until they have a given share of the flights on the list before. In
the end it asks how often flights on the list are late.

Asked is the share of all flights that are in a cell *and* late, a mean over all rows. The schedule
is public, and so is a cell's share of the flights; the quotient is the rate. What cannot be a rate,
because it is above 1, tells nothing of the part: it inherits the rate of the cell it is from.

The population is all flights that left New York in 2013. Rows are drawn from it with replacement,
so that they are independent, as every promise about them needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import real_number, whole_number
from holdfast.lab.conversation import Conversation, FloatArray, Means
from holdfast.lab.worlds.flights import Cell, Flights, Rows, load_flights

__all__ = ["FlightSample", "Listed", "Subgroups"]

_BATCH = 100  # questions at once
_UNKNOWN = 0.5


@dataclass(frozen=True)
class Listed:
    """What a search has found: cells, their share of all flights, and how many of them are late."""

    cells: tuple[Cell, ...]
    share: float
    rate: float


@dataclass(eq=False)
class FlightSample:
    """Flights held back, as row numbers; `found` is what the last conversation has found."""

    flights: Flights
    holdout: Rows
    found: Listed | None = None

    @property
    def rows(self) -> int:
        """How many flights are held back."""
        return self.holdout.size


@dataclass(frozen=True)
class Subgroups:
    """Refines a list of subgroups, the worst first, with at most so many questions."""

    name: ClassVar[str] = "subgroups"

    rows: int = 30_000
    queries: int = 450
    keep: float = 0.7
    columns: tuple[str, ...] = ("part", "origin", "carrier", "month")
    least: float = 0.0002  # of all flights: smaller parts are not asked about

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, 10**7)
        whole_number("queries", self.queries, 2, 10**6)
        real_number("keep", self.keep, 0, 1, open_low=True)
        real_number("least", self.least, 0, 1)

    def draw(self, chance: np.random.Generator) -> FlightSample:
        flights = _population()
        return FlightSample(flights, flights.sample(self.rows, chance))

    def converse(self, world: FlightSample) -> Conversation:
        flights, left = world.flights, self.queries - 1
        found: dict[Cell, float] = {(): _UNKNOWN}
        for column in self.columns:
            parts = self._parts(flights, found, column, left)
            left -= len(parts.cells)
            answers: list[FloatArray] = []
            for first in range(0, len(parts.cells), _BATCH):
                replies = yield parts.question(flights, first, first + _BATCH)
                answers.append(replies.values)
            if answers:
                found = parts.worst(np.concatenate(answers), self.keep)
        world.found = _listed(flights, found)
        yield _last_question(flights, world.found)

    def _parts(self, flights: Flights, found: dict[Cell, float], column: str, most: int) -> _Parts:
        least = self.least * flights.count
        split = {cell: flights.parts(cell, (column,), least) for cell in found}
        cells = [(part, found[cell]) for cell, parts in split.items() for part in parts][:most]
        shares = [flights.rows(part).size / flights.count for part, _ in cells]
        before = [rate for _, rate in cells]
        return _Parts([part for part, _ in cells], np.array(shares), np.array(before))


@dataclass(frozen=True, eq=False)
class _Parts:
    """One round: the parts of the cells on the list, their shares, and the rates before."""

    cells: list[Cell]
    shares: FloatArray
    before: FloatArray

    def question(self, flights: Flights, first: int, end: int) -> Means:
        """Some of them: the share of all flights that are in a part, and late."""
        cells = self.cells[first:end]
        truths = np.array([_late_share(flights, flights.rows(cell)) for cell in cells])

        def values(rows: Rows) -> NDArray[np.bool_]:
            return np.stack([flights.contains(cell, rows) for cell in cells]) & flights.late[rows]

        return Means(values, truths, (self.before * self.shares)[first:end])

    def worst(self, answers: FloatArray, keep: float) -> dict[Cell, float]:
        """The worst parts, up to this share of them all, with their rates; equal ones in order."""
        rates = answers / self.shares
        rates = np.where(rates <= 1, rates, self.before)  # nor is a refusal
        order = np.argsort(-rates, kind="stable")
        needed = keep * self.shares.sum() * (1 - 1e-12)
        count = 1 + int(np.searchsorted(np.cumsum(self.shares[order]), needed))
        return {self.cells[i]: float(rates[i]) for i in order[:count].tolist()}


@cache
def _population() -> Flights:
    return load_flights()


def _late_share(flights: Flights, rows: Rows) -> float:
    return float(np.count_nonzero(flights.late[rows]) / flights.count)


def _listed(flights: Flights, found: dict[Cell, float]) -> Listed:
    rows = flights.listed(found)
    return Listed(tuple(found), rows.size / flights.count, float(flights.late[rows].mean()))


def _last_question(flights: Flights, listed: Listed) -> Means:
    on_list = np.zeros(flights.count, np.bool_)
    on_list[flights.listed(listed.cells)] = True
    wanted = on_list & flights.late
    truth = float(np.count_nonzero(wanted) / flights.count)
    return Means(lambda rows: wanted[rows][np.newaxis], np.array([truth]))
