"""The check of the promise: it passes what is right, and it can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holdfast.engines.python.estimator import local_estimator
from holdfast.engines.source import Engines, open_store
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.grids import grid
from holdfast.protocols.answers import Answer, Verdict
from holdfast_lab.demo.sealed import (
    Record,
    Sealed,
    check_records,
    delays_of,
    demo_plan,
    fresh_blocks,
    joint_of,
    ninetieth,
    share_of,
)
from holdfast_lab.demo.search import Naive
from holdfast_lab.flights import Cell, Flights, Rows, load_flights

UNITS = 400
CELL: Cell = (("carrier", "EV"), ("part", "evening"))
SHARES = grid(0, 1, step="0.02")


@pytest.fixture(scope="module")
def flights() -> Flights:
    return load_flights()


@pytest.fixture(scope="module")
def fresh(flights: Flights) -> Rows:
    return fresh_blocks(flights, UNITS, np.random.default_rng(1), blocks=400)


@pytest.fixture(scope="module")
def cells(flights: Flights) -> list[Cell]:
    columns = ("carrier", "origin", "part", "weekday")
    one = flights.parts((), columns, 0.03 * flights.count)
    two = [part for cell in one for part in flights.parts(cell, columns, 0.03 * flights.count)]
    return list(dict.fromkeys([*one, *two]))


def answer(value: float, **more: float) -> Answer:
    facts = {"price": 0.0, "budget_left": 1.0, "tail_low": 0.01, "tail_high": 0.01, **more}
    return Answer(
        "mean",
        value,
        facts.get("low"),
        facts.get("high"),
        facts["tail_low"],
        facts["tail_high"],
        0.95,
        "",
        facts["price"],
        facts["budget_left"],
        at_grid_end=False,
        certified=False,
        block_units=100,
    )


def record(flights: Flights, cell: Cell, value: float) -> Record:
    return Record("", answer(value), share_of(flights, flights.rows(cell)), grid=SHARES)


def test_true_values_keep_the_promise(flights: Flights, fresh: Rows, cells: list[Cell]) -> None:
    truths = [float(flights.late[flights.rows(cell)].mean()) for cell in cells]
    on_grid = [float(SHARES.project([truth])[0]) for truth in truths]
    records = [record(flights, *each) for each in zip(cells, on_grid, strict=True)]
    checked = check_records(records, fresh)
    assert checked.answers == checked.kept == len(cells) > 60
    assert checked.least > 0.2


def test_mutant_that_answers_with_one_block_is_caught(
    flights: Flights, fresh: Rows, cells: list[Cell]
) -> None:
    """Its ranks are uniform: 2 % of them lie outside, and 1 of these is enough to be caught."""
    blocks = fresh_blocks(flights, UNITS, np.random.default_rng(4), blocks=10)
    records = [
        record(flights, cell, float(value))
        for cell in cells
        for value in SHARES.project(np.nan_to_num(share_of(flights, flights.rows(cell))(blocks)))
    ]
    checked = check_records(records, fresh)
    assert len(records) > 600
    assert 0.9 * checked.answers < checked.kept < checked.answers - 3
    assert checked.least <= 0.01


def test_mutant_that_exaggerates_is_caught(
    flights: Flights, fresh: Rows, cells: list[Cell]
) -> None:
    truths = [float(flights.late[flights.rows(cell)].mean()) for cell in cells]
    records = [record(flights, c, 2 * truth) for c, truth in zip(cells, truths, strict=True)]
    assert check_records(records, fresh).kept < 0.5 * len(cells)


def test_mutant_whose_bar_is_the_textbooks_is_caught(flights: Flights, fresh: Rows) -> None:
    """Exact answers of a search, shown as if they were Holdfast's: the bar misses."""
    naive = Naive(flights, flights.sample(300_000, np.random.default_rng(5)))
    finding = naive.finding(naive.search(300))
    rows = flights.listed(finding.cells)
    said = answer(finding.value, low=finding.low, high=finding.high)
    exact = Record("", said, share_of(flights, rows), grid=SHARES, truth=finding.truth)
    honest = replace(exact, result=replace(said, low=finding.truth - 0.1))
    assert check_records([exact], fresh).contained == 0
    assert check_records([honest, exact], fresh).contained == 1


def test_verdicts_are_checked_too(flights: Flights, fresh: Rows) -> None:
    rows = flights.rows(CELL)
    truth = float(flights.late[rows].mean())

    def kept(refused: bool, guess: float, tolerance: float, rows: Rows) -> int:
        verdict = Verdict(
            protocol="verify",
            guess=guess,
            claim="equals",
            tolerance=tolerance,
            refused=refused,
            tail_low=0.01,
            tail_high=0.01,
            confidence=0.95,
            promise="",
            price=0.0,
            budget_left=1.0,
            refusals_left=None,
            certified=False,
            block_units=100,
        )
        phi = share_of(flights, rows)
        return check_records([Record("", verdict, phi, tolerance=tolerance)], fresh).kept

    assert kept(False, truth, 0.02, rows) == 1
    assert kept(False, truth + 0.6, 0.02, rows) == 0
    assert kept(True, truth + 0.6, 0.02, rows) == 1
    everything = np.arange(flights.count)
    assert np.ptp(joint_of(flights, everything)(fresh)) < 0.2
    assert kept(True, 0.27, 0.3, everything) == 0  # for all fresh blocks lie within


def test_fresh_values_are_what_the_engines_compute(flights: Flights, tmp_path: Path) -> None:
    """On the holdout's own blocks the NumPy values equal those that SQL and Python give."""
    sample = flights.sample(20_000, np.random.default_rng(6))
    sealed = Sealed.create(tmp_path / "f.holdfast", flights, sample, demo_plan(50), seed=1)
    with sealed.holdout as holdout:
        store = open_store(holdout.path, holdout.spec.manifest)
        numbers = store.table(0, store.blocks, hidden=True)["__row"].to_numpy()
        blocks = sample[numbers].reshape(store.blocks, store.units)
        engines = Engines(store)
        where, rows = "carrier = 'EV' AND part = 'evening'", flights.rows(CELL)
        late = "avg(CASE WHEN arr_delay >= 15 OR arr_delay IS NULL THEN 1 ELSE 0 END)"
        try:
            for text, phi in (
                (late, share_of(flights, rows)),
                ("avg(arr_delay)", delays_of(flights, rows, np.mean)),
                ("median(arr_delay)", delays_of(flights, rows, np.median)),
            ):
                estimator = sql_estimator(text, store.schema, where)
                found = engines.values(estimator, 0, store.blocks)
                np.testing.assert_allclose(found, phi(blocks), atol=1e-9)
            columns = ["arr_delay", "carrier", "part"]
            python = local_estimator(ninetieth(CELL), columns=columns, block="numpy")
            phi = delays_of(flights, rows, lambda known: float(np.quantile(known, 0.9)))
            found = engines.values(python, 0, store.blocks)
            np.testing.assert_allclose(found, phi(blocks), atol=1e-9)
        finally:
            engines.close()
