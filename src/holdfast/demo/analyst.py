"""The analyst: hunts for the worst flights, from answer to answer. Who answers is an argument.

    1   every airline, airport, part of the day and weekday that has 1 % of the flights
    2   the five worst of these, split by each of the other three
    3   the planes of the worst pair, of the next one, …, until all questions are asked

The finding is the list of the ten worst cells. They are on it because their answers were extreme:
where answers are exact, partly because of chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from holdfast.lab.worlds.flights import Cell, Flights

__all__ = ["LISTED", "Hunt", "hunt"]

LISTED = 10
_WORST = 5
_LEAST_SHARE = 0.01
_LEAST_FLIGHTS = 30  # in the sample: the textbook's rule for a mean
_TRAITS = ("carrier", "origin", "part", "weekday")


@dataclass(frozen=True)
class Hunt:
    """What was asked, round by round, and what was answered."""

    rounds: tuple[tuple[Cell, ...], ...]
    answers: dict[Cell, float]

    @property
    def finding(self) -> tuple[Cell, ...]:
        """The worst cells of all, the worst first."""
        return tuple(self.worst(self.answers)[:LISTED])

    def worst(self, cells: Iterable[Cell]) -> list[Cell]:
        """Cells by their answers, the worst first; equal ones in the order they were asked."""
        return sorted(cells, key=lambda cell: -self.answers[cell])


def hunt(
    ask: Callable[[Cell], float],
    flights: Flights,
    sample: int,
    questions: int,
    progress: Callable[[int, int], None] | None = None,
) -> Hunt:
    """Ask so many questions about shares of late flights in a sample of this size."""
    answers: dict[Cell, float] = {}
    rounds: list[tuple[Cell, ...]] = []
    found = Hunt((), answers)

    def ask_all(cells: Iterable[Cell]) -> None:
        asked: list[Cell] = []
        for cell in cells:
            if len(answers) == questions:
                break
            if cell in answers:
                continue
            answers[cell] = ask(cell)
            asked.append(cell)
            if progress is not None:
                progress(len(answers), questions)
        rounds.append(tuple(asked))

    def split(cells: Iterable[Cell], columns: tuple[str, ...], least: float) -> Iterable[Cell]:
        return (part for cell in cells for part in flights.parts(cell, columns, least))

    one_percent = _LEAST_SHARE * flights.count
    ask_all(split([()], _TRAITS, one_percent))
    ask_all(split(found.worst(rounds[0])[:_WORST], _TRAITS, one_percent))
    enough = _LEAST_FLIGHTS * flights.count / sample
    ask_all(split(found.worst(rounds[1]), ("tailnum",), enough))
    return Hunt(tuple(rounds), answers)
