"""The population, the analyst, and what naive reuse makes of its search."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast_lab.demo.search import LISTED, Naive, cell_sql, hunt, list_sql, textbook_interval
from holdfast_lab.demo.story import naive_findings
from holdfast_lab.flights import Cell, Flights, load_flights

SAMPLE = 300_000


@pytest.fixture(scope="module")
def flights() -> Flights:
    return load_flights()


def truth(flights: Flights, cell: Cell) -> float:
    return float(flights.late[flights.rows(cell)].mean())


def test_the_population_is_all_flights(flights: Flights) -> None:
    assert flights.count == 336_776
    assert np.isnan(flights.delay).sum() == 9_430  # cancelled or diverted: late, without a delay
    assert flights.late[np.isnan(flights.delay)].all()
    assert flights.late[flights.delay == 15].all()
    assert not flights.late[flights.delay == 14].any()
    parts = set(flights.frame["part"])
    assert parts == {"morning", "midday", "afternoon", "evening"}


def test_a_cell_has_the_rows_that_pandas_finds(flights: Flights) -> None:
    cell: Cell = (("carrier", "EV"), ("part", "evening"))
    frame = flights.frame
    expected = np.flatnonzero((frame["carrier"] == "EV") & (frame["part"] == "evening"))
    assert np.array_equal(flights.rows(cell), expected)
    both = flights.listed([cell, (("carrier", "EV"),)])
    assert np.array_equal(both, np.flatnonzero(frame["carrier"] == "EV"))
    assert list_sql([cell]) == f"({cell_sql(cell)})"


def test_parts_are_a_cell_cut_by_the_schedule(flights: Flights) -> None:
    parts = flights.parts((("carrier", "EV"),), ("carrier", "origin", "part"), 1)
    assert len(parts) == 3 + 4  # not by the column that is fixed
    sizes = [flights.rows(part).size for part in parts]
    assert sum(sizes[:3]) == sum(sizes[3:]) == flights.rows((("carrier", "EV"),)).size
    assert sizes[:3] == sorted(sizes[:3], reverse=True)
    assert flights.parts((("carrier", "EV"),), ("origin",), sizes[0]) == parts[:1]


def test_the_analyst_follows_the_answers(flights: Flights) -> None:
    found = hunt(lambda cell: truth(flights, cell), flights, SAMPLE, 300)
    assert len(found.answers) == sum(map(len, found.rounds)) == 300
    assert len(found.finding) == LISTED
    bar = found.answers[found.finding[-1]]
    assert all(found.answers[cell] <= bar for cell in found.answers if cell not in found.finding)
    assert {column for cell in found.rounds[2] for column, _ in cell} >= {"tailnum"}
    other = hunt(lambda cell: -truth(flights, cell), flights, SAMPLE, 300)
    assert other.rounds[0] == found.rounds[0]  # before any answer they ask the same
    assert set(other.rounds[1]) != set(found.rounds[1])
    assert set(other.rounds[2]).isdisjoint(found.rounds[2])


def test_exact_answers_are_exact(flights: Flights) -> None:
    sample = flights.sample(5_000, np.random.default_rng(1))
    naive = Naive(flights, sample)
    frame = flights.table(sample)
    kept = frame[frame["origin"] == "JFK"]
    expected = ((kept["arr_delay"] >= 15) | kept["arr_delay"].isna()).mean()
    assert naive.share((("origin", "JFK"),)) == pytest.approx(expected, abs=1e-12)


def test_the_textbook_interval() -> None:
    low, high = textbook_interval(10, 5)  # t with 9 degrees of freedom: 2.262157
    half = 2.262157 * np.sqrt(0.25 * 10 / 9) / np.sqrt(10)
    assert (low, high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)


def test_the_textbook_interval_of_a_list_fixed_beforehand_is_right(flights: Flights) -> None:
    """Without a search it contains the truth: what fails is its use after one.

    40 samples, each contained with probability 0.95: 27 or fewer have probability below 1e-6.
    """
    rows = flights.rows((("carrier", "EV"), ("part", "evening")))
    actual = float(flights.late[rows].mean())
    chance, contained = np.random.default_rng(2), 0
    for _ in range(40):
        times = np.bincount(flights.sample(SAMPLE // 10, chance), minlength=flights.count)[rows]
        low, high = textbook_interval(int(times.sum()), int(times[flights.late[rows]].sum()))
        contained += low <= actual <= high
    assert contained > 27


def test_after_the_search_it_misses(flights: Flights) -> None:
    """Seeded: the same twenty samples every time. In 200 others it missed 200 times."""
    found = naive_findings(flights, np.random.default_rng(3), runs=20, questions=300, sample=SAMPLE)
    assert sum(not finding.contains for finding in found) >= 19
    assert all(finding.value > finding.truth for finding in found)
