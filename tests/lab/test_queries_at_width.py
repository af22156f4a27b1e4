"""The experiment that compares promises: its search, its table, and its pictures of any results."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest

from holdfast.errors import InvalidInput
from holdfast.lab.experiments import queries_at_width
from holdfast.lab.experiments.base import Cell
from holdfast.lab.experiments.queries_at_width import (
    CAPTIONS,
    HOLDFAST,
    draw,
    findings,
    measure,
    most_planned,
)
from holdfast.planning import joint
from holdfast.planning.requests import DirectMeans


def cell(method: str, rows: int, failure: float = 0.05, half_width: float = 0.1) -> Cell:
    told = {"method": method, "rows": rows, "failure": failure, "half_width": half_width}
    return Cell(told, seed=1, number=0, repeat=0)


def results(*lines: tuple[str, int, float, float, int]) -> pd.DataFrame:
    names = ["method", "rows", "failure", "half_width", "queries"]
    made = pd.DataFrame(lines, columns=names)
    return made.assign(repeat=0, published=made["queries"].where(~made["method"].isin(HOLDFAST)))


# Measuring


@pytest.mark.parametrize("growth", [1.0, 2.0])
@pytest.mark.parametrize("guess", [1, 77, 10**6])
@pytest.mark.parametrize(
    "needed",
    [lambda k: 90 * math.sqrt(k), lambda k: 20 * k * math.log(k + 1), lambda k: k**2],
    ids=["root", "line", "square"],
)
def test_the_search_finds_what_fits(
    needed: Callable[[int], float], guess: float, growth: float
) -> None:
    for rows in (30, 1_000, 54_321):
        found = most_planned(needed, rows, guess, growth)
        assert found == 0 or needed(found) <= rows
        assert needed(found + max(1, found // 1_000)) > rows


def test_the_search_looks_at_few_plans() -> None:
    seen: list[int] = []

    def needed(queries: int) -> float:
        seen.append(queries)
        return 900 * math.pow(queries, 0.46) + 300

    most_planned(needed, 100_000, (100_000 * 0.01 / 9) ** 2, growth=2.0)
    assert len(seen) <= 8


def test_each_method_is_asked_its_own_theorem() -> None:
    expected = {"split": (40, 40), "rogers": (6, 6), "jung": (156, 153), "bassily": (0, 0)}
    for method, (queries, published) in expected.items():
        rows = 100_000 if method == "jung" else 10_000
        (row,) = measure(cell(method, rows))
        assert row == {"queries": queries, "published": float(published)}


def test_holdfasts_means_are_planned_by_the_direct_search(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Made:
        blocks: int

    def joint_plan(request: DirectMeans, confidence: float) -> Made:
        assert request.half_width == 0.05
        assert not request.exact  # values between 0 and 1, as in the published theorems
        assert confidence == 0.999
        return Made(math.ceil(100 * math.sqrt(request.queries)))

    monkeypatch.setattr(joint, "joint_plan", joint_plan)
    (row,) = measure(cell("holdfast-mean", 1_000, 0.001, 0.05))
    assert row["queries"] == 100
    assert math.isnan(row["published"])


def test_splitting_and_counting_are_planned_too() -> None:
    (split,) = measure(cell("holdfast-split", 1_000))
    (exact,) = measure(cell("holdfast-exact", 1_000))
    assert (split["queries"], exact["queries"]) == (3, 2)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InvalidInput, match="method"):
        list(measure(cell("magic", 10)))


# Showing


TABLE = [
    ("split", 100_000, 0.05, 0.1, 288),
    ("bassily", 100_000, 0.05, 0.1, 29),
    ("rogers", 100_000, 0.05, 0.1, 935),
    ("jung", 100_000, 0.05, 0.1, 153),
    ("holdfast-mean", 100_000, 0.05, 0.1, 9_350),
    ("split", 1_000, 0.05, 0.1, 4),
    ("holdfast-mean", 1_000, 0.05, 0.1, 1),
]


def test_the_findings_are_the_table_the_lead_and_where_there_is_none() -> None:
    found = findings(results(*TABLE))
    assert found[0].measured == "split 288, bassily 29, rogers 935, jung 153"
    assert found[0].holds
    assert (found[2].measured, found[2].holds) == ("10.0", True)
    assert "(rogers)" in found[2].what
    assert found[3].measured == (
        "up to 1,000 rows: 1 questions against 4 of the others; "
        "ahead from 100,000 rows on: 9,350 against 935; the lines cross near 5,644 rows"
    )


def test_a_figure_that_is_not_the_published_one_is_told() -> None:
    table = [(method, n, f, w, q + (method == "rogers")) for method, n, f, w, q in TABLE]
    assert findings(results(*table))[0].holds is False
    behind = [(m, n, f, w, 5 if m == "holdfast-mean" else q) for m, n, f, w, q in TABLE]
    assert findings(results(*behind))[2].holds is False


@pytest.mark.parametrize(
    "lines",
    [[], TABLE[:1], TABLE[4:5], TABLE[:5], [("holdfast-mean", 1_000, 0.001, 0.02, 0), TABLE[5]]],
    ids=["none", "one published", "one of Holdfast", "one size", "zeros"],
)
def test_partial_results_are_drawn_and_told(lines: Any) -> None:
    some = results(*lines)
    findings(some)
    assert len(draw(some)) == some["half_width"].nunique()


def test_pictures_have_a_line_for_each_method_and_a_caption() -> None:
    figures = draw(results(*TABLE, ("split", 100_000, 0.001, 0.1, 196)))
    (figure,) = figures.values()
    assert set(figures) <= set(CAPTIONS)
    assert [len(axes.lines) for axes in figure.axes] == [5, 1]
    assert {axes.get_xscale() for axes in figure.axes} == {"log"}


def test_the_config_names_methods_that_exist() -> None:
    from pathlib import Path
    from tomllib import loads

    path = Path(queries_at_width.__file__).with_suffix(".toml")
    said = loads(path.read_text("utf-8"))
    known = {"split", "bassily", "rogers", "jung", *HOLDFAST}
    assert set(said["parameters"]["method"]) == known
    assert {f"half-width-{width:g}" for width in said["parameters"]["half_width"]} == set(CAPTIONS)
