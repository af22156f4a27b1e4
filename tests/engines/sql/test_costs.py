"""What a question costs at worst: every branch taken, whatever the rows are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.engines.sql.costs import AGGREGATE_WEIGHTS, WEIGHTS, seconds_at_worst
from holdfast.engines.sql.estimator import sql_condition, sql_estimator, sql_term
from holdfast.engines.sql.language import AGGREGATES, FUNCTIONS
from holdfast.store.table import Column, Schema

SCHEMA = Schema((Column("minutes", "number"), Column("name", "text"), Column("day", "date")))


def sines(count: int) -> str:
    """A sum of so many, in brackets: it may not be nested too deeply."""
    terms = [f"sin(power(minutes + {k}, 1.7))" for k in range(count)]
    return " + ".join(f"({' + '.join(terms[k : k + 10])})" for k in range(0, count, 10))


TERMS = sines(70)


def cost(text: str, where: str | None = None, *, rows: int = 60_000) -> float:
    """Seconds that an estimator takes at worst."""
    manifest: Any = SimpleNamespace(schema=SCHEMA, one_row_units=True, blocks=100)
    found = seconds_at_worst(sql_estimator(text, SCHEMA, where), None, manifest, rows)
    assert found is not None
    return found


def test_a_branch_costs_as_much_as_if_every_row_took_it() -> None:
    taken = cost(f"avg({TERMS})")
    assert cost(f"avg(CASE WHEN minutes > 3 THEN {TERMS} ELSE 0 END)") > taken
    assert cost("sum(minutes)", f"{TERMS} > 3") > taken
    assert cost(f"avg({TERMS}) FILTER (WHERE minutes > 3)") > taken
    assert cost(f"avg(coalesce(minutes, {TERMS}))") > taken
    assert cost(f"kurtosis({TERMS})") > 4 * taken  # the SQL repeats it
    assert cost(f"avg({TERMS})", rows=120_000) > 1.9 * taken
    assert taken > 2 * 60_000 * 70 * 60e-9  # what was measured for these, with room


def test_a_term_and_its_filter_cost_too() -> None:
    manifest: Any = SimpleNamespace(schema=SCHEMA, one_row_units=True, blocks=100)
    term, where = sql_term("minutes > 3", SCHEMA), sql_condition(f"{TERMS} > 3", SCHEMA)
    plain = seconds_at_worst(term, None, manifest, 10**6)
    heavy = seconds_at_worst(term, where, manifest, 10**6)
    manifest.one_row_units = False
    units = seconds_at_worst(term, None, manifest, 10**6)
    assert plain is not None
    assert heavy is not None
    assert units is not None
    assert heavy > 10 * plain
    assert units > plain
    slow = seconds_at_worst(term, None, manifest, 10**6, 3.0)
    assert slow == pytest.approx(3 * units, rel=0.01)
    assert seconds_at_worst(object(), None, manifest, 10**6) is None  # anybody's Python
    own = seconds_at_worst(SimpleNamespace(own=True), None, manifest, 10**6)
    assert own is not None
    assert own > 0.5


def test_weights_are_of_functions_that_there_are() -> None:
    assert set(WEIGHTS) <= set(FUNCTIONS)
    assert set(AGGREGATE_WEIGHTS) <= set(AGGREGATES)
