"""The demo's questions about flights, in SQL; the flights themselves are the lab's.

The delay of a cancelled or diverted flight is NULL in SQL. Averages and quantiles of delays leave
those out, as SQL does.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.lab.worlds.flights import MINUTES, Cell, Flights, Rows, load_flights

__all__ = ["LATE", "Cell", "Flights", "Rows", "cell_sql", "cell_words", "list_sql", "load_flights"]

LATE = f"arr_delay >= {MINUTES} OR arr_delay IS NULL"


def cell_sql(cell: Cell) -> str:
    """The cell as a condition.

    >>> cell_sql((("carrier", "EV"), ("part", "evening")))
    "carrier = 'EV' AND part = 'evening'"
    """
    return " AND ".join(f"{column} = '{value}'" for column, value in cell)


def list_sql(cells: Iterable[Cell]) -> str:
    """Some of the cells, as a condition."""
    return " OR ".join(f"({cell_sql(cell)})" for cell in cells)


def cell_words(cell: Cell) -> str:
    """The cell for people.

    >>> cell_words((("carrier", "EV"), ("part", "evening"), ("tailnum", "N14543")))
    'EV evening N14543'
    """
    return " ".join(value for _, value in cell) or "all flights"
