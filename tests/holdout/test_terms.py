"""Terms of means: what may leave its range is refused, scaled or cut, and every answer says which.

Seeded holdouts draw the same coins: what is compared here cannot fail by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.client.client import Client
from holdfast.engines.source import Limits
from holdfast.errors import InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.protocols.shapes import BoundedMean, KnownSd
from holdfast.report.page import report_html
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli
from tests.client.conftest import Served
from tests.holdout import plans
from tests.holdout.tables import holds, refusing

LIMITS = Limits(workers=1)
PLANS = {"direct": (plans.direct, 4), "medians": (plans.medians, 100)}
# Of two models that are equally good, of a normal column, and of a column times ten.
LEAVING = ("b - a", "a - b", "x", "10 * a")


def models(rows: int, seed: int = 1) -> pd.DataFrame:
    """Whether two models are right, 0 or 1, each on four in five rows; `x` is normal."""
    generator = np.random.default_rng(seed)
    right = generator.permuted(np.arange(2 * rows).reshape(2, rows) % 5 > 0, axis=1)
    return pd.DataFrame(
        {
            "a": right[0].astype(float),
            "b": right[1].astype(float),
            "x": generator.normal(size=rows),
            "n": np.arange(rows) + 1e7 * seed,  # no two tables are alike
        }
    )


def made(path: Path, kind: str, *, rows: pd.DataFrame | None = None, **more: Any) -> Holdout:
    """A holdout of such rows; seeded, so that two of one kind draw the same."""
    plan, units = PLANS[kind]
    data = models(plan().blocks * units, seed=7 + len(kind)) if rows is None else rows
    options: dict[str, Any] = {"seed": 1, "new_budget": "another test", "limits": LIMITS}
    return Holdout.create(path, data, plan(), **(options | more))


@pytest.fixture(params=PLANS)
def holdout(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Holdout]:
    with made(tmp_path / "a.holdfast", request.param) as opened:
        yield opened
        assert check_holdout(opened.path).passed


# What may leave [0, 1].


def test_a_term_that_may_leave_0_to_1_is_refused_before_anything_is_drawn(
    holdout: Holdout,
) -> None:
    asks: tuple[Any, ...] = (holdout.mean, partial(holdout.price, "mean"))
    for term, ask in product(LEAVING, asks):
        with refusing(holdout, r"declare its range, as range=.*--range") as wrong:
            ask(term)
        assert wrong.value.parameter == "term"
        assert "(1 + b - a)/2" in str(wrong.value)


def test_a_range_that_follows_from_declared_ones_is_as_if_it_were_declared(
    tmp_path: Path,
) -> None:
    with made(tmp_path / "a", "direct", ranges={"a": (0, 1), "b": (0, 1)}) as holdout:
        for term, range_ in (("b - a", (-1, 1)), ("10 * a", (0, 10))):
            answer = holdout.mean(term)
            assert f"of the term cut to [{range_[0]}, {range_[1]}]" in answer.promise
            again = holdout.mean(term, range=range_)
            assert again.cached
            assert again.promise == answer.promise
        with pytest.raises(InvalidInput, match="Nothing public bounds it"):
            holdout.mean("a / b")
        for term in ("a", "(1 + b - a) / 2", "a * b"):
            assert "of the term cut to [0, 1]" in holdout.mean(term).promise


def test_what_cannot_leave_0_to_1_needs_no_range_and_is_not_said_to_be_cut(
    tmp_path: Path,
) -> None:
    with made(tmp_path / "a", "direct") as holdout:
        for term in (
            "a > b",
            "x IS NULL",
            "CASE WHEN a > 0 THEN 1 ELSE 0.5 END",
            "least(greatest(x, 0), 1)",
            "(1 + least(greatest(b - a, -1), 1)) / 2",
        ):
            answer = holdout.mean(term)
            assert answer.promise == (
                "the mean on fresh data lies between low and high; a failure counts as 0"
            )
            assert holdout.mean(term, range=(0, 1)).cached  # the same question
        assert check_holdout(holdout.path).passed


def test_a_range_is_two_numbers(holdout: Holdout) -> None:
    ranges: tuple[Any, ...] = ((1, 0), (1, 1), (0, math.inf), (math.nan, 1), (0, 1, 2), 5, "ab")
    for term, ends in product(("x", "a > 0", lambda frame: frame.x), ranges):
        with refusing(holdout, "range"):
            holdout.mean(term, range=ends)


# What has a range.


def test_two_equally_good_models_are_not_both_better(holdout: Holdout) -> None:
    for term in ("b - a", "a - b"):
        answer = holdout.mean(term, range=(-1, 1))
        assert holds(answer, 0)
        assert "of the term cut to [-1, 1]" in answer.promise
        assert "a failure counts as -1" in answer.promise


@pytest.mark.parametrize(
    ("kind", "term", "ends", "same"),
    [
        ("direct", "b - a", (-1, 1), "(1 + b - a) / 2"),
        ("medians", "10 * a", (0, 10), "a"),
        ("direct", "x", (-4, 4), "(least(greatest(x, -4), 4) + 4) / 8"),
        ("medians", "x", (-4, 4), "(least(greatest(x, -4), 4) + 4) / 8"),
        ("direct", "64 * b - 32", (-32, 32), "b"),
    ],
)
def test_an_answer_is_that_of_the_scaled_term_scaled_back(
    kind: str, term: str, ends: tuple[int, int], same: str, tmp_path: Path
) -> None:
    low, high = ends
    rows = models(PLANS[kind][0]().blocks * PLANS[kind][1], seed=3)
    with made(tmp_path / "a", kind, rows=rows) as holdout:
        answer = holdout.mean(term, range=ends)
    with made(tmp_path / "b", kind, rows=rows) as holdout:
        unit = holdout.mean(same, range=(0, 1))
    for name in ("value", "low", "high"):
        scaled = low + (high - low) * getattr(unit, name)
        assert getattr(answer, name) == pytest.approx(scaled, abs=1e-9 * (high - low)), name
    assert (answer.price, answer.at_grid_end) == (unit.price, unit.at_grid_end)


def test_python_and_sql_agree(tmp_path: Path) -> None:
    rows = models(plans.direct().blocks * 4, seed=5)
    asked: dict[str, Any] = {"sql": "b - a", "python": lambda frame: frame.b - frame.a}
    found = []
    for name, term in asked.items():
        with made(tmp_path / name, "direct", rows=rows) as holdout:
            answer = holdout.mean(term, range=(-1, 1))
            found.append((answer.value, answer.low, answer.high))
            assert "of the term cut to [-1, 1]" in answer.promise
    assert found[0] == found[1]


def test_what_leaves_a_declared_range_is_cut_and_nobody_sees_whether(tmp_path: Path) -> None:
    """The promise is the same whether or not a row leaves the range; the mean is of what is cut."""
    inside = models(plans.direct().blocks * 4, seed=6)
    outside = inside.assign(a=np.where(inside.a > 0, 7.0, -3.0))
    said = []
    for name, rows in {"inside": inside, "outside": outside}.items():
        with made(tmp_path / name, "direct", rows=rows, ranges={"a": (0, 1)}) as holdout:
            answers = holdout.mean("a", range=(0, 1)), holdout.mean("a")
            said.append([(each.value, each.low, each.high, each.promise) for each in answers])
            assert answers[1].cached  # the declared range of the column is that of the question
    assert said[0] == said[1]
    assert "of the term cut to [0, 1]" in said[0][0][3]


def test_what_is_no_number_counts_as_the_lowest(tmp_path: Path) -> None:
    rows = models(plans.direct().blocks * 4, seed=8)
    rows.loc[::2, "x"] = np.nan
    halves = rows.assign(x=np.where(np.arange(len(rows)) % 2 == 0, -4.0, rows.x))
    for term in ("x", lambda frame: frame.x):
        found = []
        for name, data in {"missing": rows, "lowest": halves}.items():
            place = tmp_path / f"{name} {isinstance(term, str)}"
            with made(place, "direct", rows=data) as holdout:
                answer = holdout.mean(term, range=(-4, 4))
                found.append((answer.value, answer.low, answer.high))
                assert "a failure counts as -4" in answer.promise
        assert found[0] == found[1]


def test_a_filtered_mean_says_what_it_is_cut_to(tmp_path: Path) -> None:
    with made(tmp_path / "a", "medians") as holdout:
        answer = holdout.mean("x", where="b > 0", range=(-2, 2))
        assert (answer.low, answer.high) == (None, None)
        assert "of the term cut to [-2, 2]" in answer.promise
        assert abs(answer.value) < 0.6
        on = holdout.mean("x", range=(-2, 2), grid=hf.grid(-2, 2, step=0.5))
        assert on.value in np.arange(-2, 2.5, 0.5)
        assert check_holdout(holdout.path).passed


def test_another_range_is_another_question(tmp_path: Path) -> None:
    with made(tmp_path / "a", "direct") as holdout:
        first = holdout.mean("x", range=(-3, 3))
        assert holdout.mean("x", range=[-3.0, np.float64(3)]).cached  # type: ignore[arg-type]
        assert holdout.price("mean", "x", range=(-3, 3)).cached
        other = holdout.mean("x", range=(-4, 3))
        assert not other.cached
        assert first.promise != other.promise
        asked = [row["question"].get("range") for row in holdout.transcript()]
        assert asked == [[-3.0, 3.0], [-4.0, 3.0]]


def test_a_range_with_too_few_floats_for_the_grid_costs_nothing(tmp_path: Path) -> None:
    with made(tmp_path / "a", "medians") as holdout, refusing(holdout):
        holdout.mean("x", range=(1, math.nextafter(1, 2)))


# Python.


def test_a_python_term_needs_a_range(holdout: Holdout) -> None:
    for term in (lambda frame: frame.a > 0, lambda frame: frame.b - frame.a):
        with refusing(holdout, "Nothing is known of what a Python function gives"):
            holdout.mean(term)
    answer = holdout.mean(lambda frame: frame.a > 0, range=(0, 1))
    assert "of the term cut to [0, 1]" in answer.promise


def test_a_python_term_that_leaves_its_range_on_open_rows_is_refused(tmp_path: Path) -> None:
    blocks = plans.direct().blocks
    more: dict[str, Any] = {"rows": models(8 * blocks), "open_fraction": 0.5, "block_units": 4}
    with made(tmp_path / "a", "direct", **more) as holdout:
        for term, found in (
            (lambda f: f.a * 10, "gave 10 on"),
            (lambda f: f.b - f.a, "gave -1 on"),
        ):
            with refusing(holdout, found) as wrong:
                holdout.mean(term, range=(0, 1))
            assert wrong.value.parameter == "range"
        assert holdout.mean(lambda f: f.b - f.a, range=(-1, 1)).low is not None


def test_a_python_filter_is_a_condition(tmp_path: Path) -> None:
    rows = models(200 * plans.medians().blocks)
    with (
        made(tmp_path / "a", "medians", rows=rows, open_fraction=0.5, block_units=100) as holdout,
        refusing(holdout, r"gave (-1|2) on an open row"),
    ):
        holdout.mean(lambda f: f.a, where=lambda f: 3 * f.a - 1, range=(0, 1))


def test_a_term_has_progress(tmp_path: Path) -> None:
    with made(tmp_path / "a", "direct") as holdout:
        seen: list[tuple[int, int]] = []
        holdout.mean(lambda frame: frame.a, range=(0, 1), progress=lambda *told: seen.append(told))
        blocks = plans.direct().blocks
        assert seen[-1] == (blocks, blocks)
        holdout.mean("a = 1", progress=lambda *told: seen.append(told))
        assert seen[-1] == (0, blocks)


# Shapes.


def test_a_claimed_range_that_an_open_block_leaves_is_refused(tmp_path: Path) -> None:
    plan = plans.mixed()
    data = models(8 * plan.blocks, seed=9)
    more: dict[str, Any] = {"open_fraction": 0.5, "block_units": 4, "limits": LIMITS}
    more["ranges"] = {"a": (0, 1)}
    with Holdout.create(tmp_path / "a", data, plan, **more) as holdout:
        points = hf.grid(0, 10, step=2)
        for asked in ("avg(10 * a)", lambda frame: 10 * frame.a.mean()):
            with refusing(holdout, r"may leave that|An open block gives"):
                holdout.ask(asked, grid=points, shape=BoundedMean(0, 1))
        answer = holdout.ask("avg(10 * a)", grid=points, shape=BoundedMean(0, 10))
        assert "assuming that the estimator is a mean of terms in [0, 10]" in answer.promise
        known = holdout.ask("max(x)", grid=points, shape=KnownSd(0.3), anyway=True)
        assert "assuming that the estimator is" in known.promise
        with refusing(holdout, "shape"):  # of all rows
            holdout.ask("avg(a)", where="x < 0", grid=points, shape=BoundedMean(0, 1))


# Through every door.


def test_the_same_over_http_and_by_the_client(tmp_path: Path) -> None:
    path = tmp_path / "a.holdfast"
    made(path, "direct").close()
    transport = Served(path)
    try:
        with Client("http://127.0.0.1/holdouts/a", transport=transport) as client:
            before = client.status()
            for ask in (client.mean, partial(client.price, "mean")):
                with pytest.raises(InvalidInput, match="declare its range"):
                    ask("b - a")
                for wrong in ((1, 0), 3):
                    with pytest.raises(InvalidInput, match="range"):
                        ask("x", range=wrong)
            assert client.status() == before
            answer = client.mean("b - a", range=(-1, 1))
            assert holds(answer, 0)
            assert "of the term cut to [-1, 1]" in answer.promise
            assert client.price("mean", "b - a", range=(-1, 1)).cached
            job = client.submit("mean", "x", range=(-3, 3))
            assert "of the term cut to [-3, 3]" in job.wait().promise
    finally:
        transport.end()
    assert check_holdout(path).passed


def test_the_same_on_the_command_line_and_in_the_report(tmp_path: Path, cli: Cli) -> None:
    path, module = tmp_path / "a.holdfast", tmp_path / "terms.py"
    made(path, "direct").close()
    module.write_text("def gain(frame):\n    return frame.b - frame.a\n")
    cli("mean", path, "b - a").refuses("declare its range")
    cli("mean", path, f"{module}:gain").refuses("Nothing is known of what a Python function")
    for wrong in ("1:0", "1", "a:b", "0:1:2"):
        cli("mean", path, "x", "--range", wrong).refuses("range")
    for term, ends, shown in (
        ("b - a", "-1:1", "[-1, 1]"),
        (f"{module}:gain", "-1:1", "[-1, 1]"),
        ("x", "-3:3", "[-3, 3]"),
    ):
        said = cli("mean", path, term, "--range", ends)
        assert said.status == 0
        assert f"of the term cut to {shown}" in " ".join(said.out.split())
    assert check_holdout(path).passed
    text = report_html(path)
    assert "means between −3 and 3" in text
    assert "cut to [−3, 3]" in text


@pytest.mark.parametrize("plan", [None, plans.direct], ids=["told", "by looks"])
def test_units_of_several_rows_count_once_and_every_line_says_so(tmp_path: Path, plan: Any) -> None:
    """Half of the units have one row, where nothing holds; half have nine, where all do."""
    units = 2_000 if plan is None else plan().blocks
    many = np.arange(units) % 2 == 1
    unit = np.repeat(np.arange(units), np.where(many, 9, 1))
    rows = pd.DataFrame({"who": unit, "t": many[unit].astype(float)})
    said = "each who counted once, with the mean of its rows"
    made = None if plan is None else plan()
    with Holdout.create(tmp_path / "h", rows, made, unit="who", ranges={"t": (0, 1)}) as holdout:
        told: Any = holdout.mean("t > 0.5", anyway=True)
        assert told.low <= 0.5 <= told.high < rows.t.mean()
        if plan is None:
            assert "the mean share of a who's rows with t > 0.5" in told.promise
        assert said in told.promise
        assert said in told._repr_html_()
        assert said in str(told)
        assert said in report_html(holdout)
        assert said in str(holdout.transcript()[0])
    with made_of_one_row(tmp_path) as other:
        assert "counted once" not in str(other.mean("t > 0.5"))


def made_of_one_row(folder: Path) -> Holdout:
    """Rows that are units."""
    rows = {"t": np.arange(1_000.0)}
    return Holdout.create(folder / "one", rows, new_budget="another test")
