"""Slips are refused, free, by what is public; what is meant is asked with `anyway`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.engines.python.metrics import score_estimator
from holdfast.errors import Doubtful, InvalidInput
from holdfast.grids import Grid, grid
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.protocols.answers import Answer
from tests.holdout import plans
from tests.holdout.registry import BLOCKS, ROWS, UNITS, made, registry
from tests.holdout.tables import broken, refusing, sources

AGES = grid(18, 102, step=12)
SHARES = grid(0, 1, step=0.125)
Asking = Callable[..., Any]


@pytest.fixture(scope="module")
def holdout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holdout]:
    """One for all tests that charge nothing: declared ranges, and an open part."""
    ranges = {"age": (18, 102), "days": (0, 2029)}
    with made(tmp_path_factory.mktemp("doubts") / "a", ranges=ranges) as found:
        yield found


def refused(holdout: Holdout, ask: Callable[..., Any]) -> Doubtful:
    """The reason; nothing was evaluated on a sealed block, written or charged."""
    with (
        sources(broken(AssertionError("sealed rows were looked at"))),
        refusing(holdout, error=Doubtful) as caught,
    ):
        ask()
    assert "Nothing was charged." in str(caught.value)
    assert "--anyway" in str(caught.value)
    doubtful: Doubtful = caught.value
    return doubtful


# A text that nobody has.


@pytest.mark.parametrize(
    "where", ["sex = 'Male'", "'Male' = sex", "sex IN ('male', 'Male')", "NOT sex <> 'Male'"]
)
def test_a_text_that_no_open_row_has(holdout: Holdout, where: str) -> None:
    error = refused(holdout, lambda: holdout.ask("avg(age)", where=where, grid=AGES))
    assert error.parameter == "where"
    assert f"none of {ROWS:,} open rows has: there is 'female' or 'male'" in str(error)
    assert "Did you mean 'male'?" in str(error)


def test_in_every_verb_and_every_place(holdout: Holdout) -> None:
    inside = "avg(age) FILTER (WHERE sex = 'Male') - avg(age)"
    steps = grid(-20, 20, step=5)
    for ask in (
        lambda: holdout.ask(inside, grid=steps),
        lambda: holdout.interval(inside, grid=steps),
        lambda: holdout.verify(inside, 0.0),
        lambda: holdout.correct(inside, 0.0, grid=steps),
        lambda: holdout.mean("sex = 'Male'"),
        lambda: holdout.mean("died = 1", where="sex = 'Male'"),
    ):
        assert "'male'" in str(refused(holdout, ask))


def test_declared_categories_need_no_open_part(tmp_path: Path) -> None:
    categories = {"SEX": ["male", "female", "unknown"]}
    with made(tmp_path / "a", open_part=False, categories=categories) as holdout:
        assert holdout.spec.categories == {"sex": ("male", "female", "unknown")}
        error = refused(holdout, lambda: holdout.ask("avg(age)", where="sex = 'Male'", grid=AGES))
        assert "it is declared never to be: there is 'male', 'female' or 'unknown'" in str(error)
        # Nothing was declared or is open of the other: it may well be there.
        holdout.ask("avg(age)", where="race = 'White' and sex <> 'unknown'", grid=AGES)
    with Holdout.open(tmp_path / "a") as again:
        assert again.spec.texts("sex") == ("male", "female", "unknown")
        refused(again, lambda: again.ask("avg(age)", where="sex = 'Male'", grid=AGES))


def test_what_is_declared_counts_before_what_is_open(tmp_path: Path) -> None:
    with made(tmp_path / "a", categories={"race": ["black", "rare", "white", "other"]}) as holdout:
        answer = holdout.ask("count_if(race = 'other')", grid=grid(0, 7, step=1))
        assert answer.value == 0


@pytest.mark.parametrize(
    ("categories", "word"),
    [({"age": ["a"]}, "sex, race"), ({"nobody": ["a"]}, "sex, race"), ({"sex": "ab"}, "a list")],
)
def test_categories_that_cannot_be(tmp_path: Path, categories: Any, word: str) -> None:
    with pytest.raises(InvalidInput, match=word) as caught:
        made(tmp_path / "a", open_part=False, categories=categories)
    assert caught.value.parameter == "categories"


def test_free_text_has_no_categories(tmp_path: Path) -> None:
    data = registry(24_000)
    data["name"] = [f"P{number}" for number in data.number]
    with Holdout.create(tmp_path / "a", data, plans.mixed(), open_fraction=0.5) as holdout:
        holdout.ask("count_if(name = 'P')", grid=grid(0, 7, step=1))


# A filter that leaves nothing.


def test_a_filter_beyond_the_declared_range(holdout: Holdout) -> None:
    for where in ("age > 150", "150 < age", "age = 12", "age <= 17", "age IN (17, 12)"):
        error = refused(holdout, lambda w=where: holdout.ask("avg(days)", where=w))
        assert "is declared to lie between 18 and 102" in str(error)
    refused(holdout, lambda: holdout.mean("age > 150"))


def test_a_filter_that_leaves_most_open_blocks_empty(holdout: Holdout) -> None:
    where = "race = 'rare' and sex = 'male'"
    for ask in (
        lambda: holdout.ask("avg(age)", where=where, grid=AGES),
        lambda: holdout.verify("avg(age)", 62, where=where),
        lambda: holdout.ask(f"avg(age) FILTER (WHERE {where})", grid=AGES),
        lambda: holdout.mean("died = 1", where=where),
    ):
        error = refused(holdout, ask)
        assert f"of the {BLOCKS} open blocks" in str(error)
        assert "counts as the lowest point" in str(error)
    # A count is 0 there, and that is its value.
    assert holdout.price("ask", "count(*)", where=where, grid=grid(0, 7, step=1)).doubts == ()


# A grid that cannot hold the answer.


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda h: h.mean("died = 1", grid=grid(0, 800, step=10)), "between 0 and 1"),
        (lambda h: h.ask("corr(age, days)", grid=grid(5, 12, step=1)), "has no point there"),
        (lambda h: h.ask("avg(age)", grid=grid(0, 10, step=1)), "between 18 and 102"),
        (lambda h: h.ask("avg(died)", grid=grid(0, 800, step=10)), "the grid's next point is 10"),
        (lambda h: h.ask("avg(died)", grid=grid(-8, 0, step=1)), "above 0, where the grid ends"),
        (lambda h: h.ask("avg(died)", grid=grid(2, 9, step=1)), "below 2, where the grid ends"),
        (lambda h: h.interval("median(days)", grid=grid(0, 70, step=10)), "above 70"),
        (lambda h: h.correct("avg(died)", 0.7, grid=grid(2, 9, step=1)), "below 2"),
    ],
)
def test_a_grid_that_cannot_hold_the_answer(holdout: Holdout, ask: Asking, word: str) -> None:
    error = refused(holdout, lambda: ask(holdout))
    assert error.parameter == "grid"
    assert word in str(error)


@pytest.mark.parametrize(
    ("ask", "low", "high"),
    [
        (lambda h: h.verify("avg(age)", 600), 18, 102),
        (lambda h: h.verify("avg(died = 1)", 68, claim="at least"), 0, 1),
        (lambda h: h.correct("corr(age, days)", -7, grid=grid(-1, 1, step=0.5)), -1, 1),
    ],
)
def test_a_guess_that_cannot_be_right(holdout: Holdout, ask: Asking, low: int, high: int) -> None:
    error = refused(holdout, lambda: ask(holdout))
    assert error.parameter == "guess"
    assert f"lies between {low} and {high}" in str(error)


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("avg(age)", grid(40, 80, step=5)),  # narrower than the range
        ("avg(age)", grid(0, 120, step=10)),  # wider
        ("avg(age)", grid([0, 50, 100])),  # coarse, and meant so
        ("avg(died)", SHARES),
        ("median(days)", grid(0, 1000, step=50)),
        ("count(*) FILTER (WHERE died = 1)", grid(0, 10, scale="integer")),
        ("max(age)", grid(10, 1000, points=9, scale="log")),
    ],
)
def test_grids_that_fit_are_not_in_doubt(holdout: Holdout, text: str, points: Grid) -> None:
    assert holdout.price("ask", text, grid=points).doubts == ()


def test_a_price_tells_all_doubts_and_refuses_nothing(holdout: Holdout) -> None:
    words: dict[str, Any] = {"where": "sex = 'Male'", "grid": grid(0, 10, step=1)}
    with sources(broken(AssertionError("sealed rows were looked at"))):
        price = holdout.price("ask", "avg(age)", **words)
    assert price == holdout.price("ask", "avg(age)", anyway=True, **words)
    assert price.affordable
    assert [(each.parameter, each.refused) for each in price.doubts] == [
        ("where", True),
        ("grid", True),
    ]
    assert price.to_dict()["doubts"][0] == price.doubts[0].to_dict()
    error = refused(holdout, lambda: holdout.ask("avg(age)", **words))
    assert all(each.message in str(error) for each in price.doubts)


def test_doubts_are_told_and_do_not_forbid(tmp_path: Path) -> None:
    with made(tmp_path / "a") as holdout:
        words: dict[str, Any] = {"where": "sex = 'Male'", "grid": AGES}
        answer = holdout.ask("avg(age)", anyway=True, **words)
        assert answer.value == 18
        assert f"; {BLOCKS} of the {BLOCKS} open blocks are such" in answer.promise
        again = holdout.ask("avg(age)", **words)  # recorded, and so free: nothing to refuse
        assert again.cached
        assert again.value == 18
        price = holdout.price("ask", "avg(age)", **words)
        assert price.cached
        assert price.doubts == ()
        holdout.verify("avg(age)", 600, anyway=True)
        holdout.mean("died = 1", grid=grid(0, 800, step=10), anyway=True)
    assert check_holdout(tmp_path / "a").passed


def test_without_anything_public_nothing_is_in_doubt(tmp_path: Path) -> None:
    with made(tmp_path / "a", open_part=False) as holdout:
        for text in ("avg(age)", "avg(died)"):
            words: dict[str, Any] = {"where": "sex = 'Male'", "grid": grid(500, 507, step=1)}
            assert holdout.price("ask", text, **words).doubts == ()


def test_a_score_has_a_grid_that_can_hold_it(tmp_path: Path) -> None:
    with made(tmp_path / "a", open_part=False, target="died") as holdout:
        right = np.ones(ROWS, np.int64)
        refused(holdout, lambda: holdout.score(right, grid=grid(5, 12, step=1)))
        assert holdout.score(right, grid=grid(5, 12, step=1), anyway=True).value == 5


def test_a_metric_of_small_blocks_says_little(tmp_path: Path) -> None:
    table = registry(1_000)
    with Holdout.create(tmp_path / "a", table, target="died", new_budget="a test") as holdout:
        right = np.resize([0, 1, 1], 1_000)
        price = holdout.price("score", right, metric="roc_auc")
        assert [(each.parameter, each.refused) for each in price.doubts] == [("metric", True)]
        assert price.told is not None
        ends = holdout.price("score", table.died.to_numpy(), metric="f1").told
        assert ends is not None
        assert "at least 1 " in "\n".join(ends.lines())  # all open blocks are at the grid's end
        error = refused(holdout, lambda: holdout.score(right, metric="roc_auc"))
        assert "roc_auc of 6 rows says little about the model" in str(error)
        assert "All rows at once are used by accuracy, brier" in str(error)
        with refusing(holdout, "left out for roc_auc.*takes no guess. These take one: accuracy"):
            holdout.score(right, metric="roc_auc", guess=0.5)
        assert holdout.price("score", right).doubts == ()
        assert holdout.score(right, metric="roc_auc", anyway=True).receipt


# What is known without asking.


@pytest.mark.parametrize("text", ["count(*)", "COUNT()", "count(1)", "count(*) * 2 - 3"])
def test_the_size_of_a_block_is_no_question(holdout: Holdout, text: str) -> None:
    for ask in (
        lambda: holdout.ask(text, grid=grid(0, 20, step=4)),
        lambda: holdout.verify(text, 10, anyway=True),
        lambda: holdout.price("interval", text, grid=grid(0, 20, step=4)),
    ):
        with refusing(holdout, f"a block has {UNITS} rows") as caught:
            ask()
        assert not isinstance(caught.value, Doubtful)


def test_a_count_that_depends_on_the_data_is_a_question(holdout: Holdout, tmp_path: Path) -> None:
    points = grid(0, 14, step=2)
    for text, where in (
        ("count(*)", "sex = 'male'"),
        ("count(*) FILTER (WHERE sex = 'male')", None),
        ("count(age)", None),  # some may be missing
        ("count(DISTINCT sex)", None),
    ):
        holdout.price("ask", text, where=where, grid=points)
    data = registry(ROWS)
    data["patient"] = data.number // 2
    with Holdout.create(tmp_path / "a", data, plans.estimates(), unit="patient") as units:
        units.price("ask", "count(*)", grid=points)


# What every answer says.


def promise(result: Any) -> str:
    return str(result.promise)


def test_a_filter_is_told_in_every_answer(tmp_path: Path) -> None:
    """Whether or not a block was empty: here none is."""
    lowest = "a block without such rows counts as the lowest point"
    lower = "a block without such rows counts as lower than all others"
    every = [plans.mixed(), plans.amplified()]
    with made(tmp_path / "a", open_part=False, plan=every) as holdout:
        words: dict[str, Any] = {"where": "age > 0"}
        ages: dict[str, Any] = {**words, "grid": AGES}
        for protocol in ("estimate", "amplified"):
            assert f"{lowest}, 18" in promise(holdout.ask("avg(age)", protocol=protocol, **ages))
        assert f"{lowest}, 18" in promise(holdout.interval("avg(age)", **ages))
        assert f"{lowest}, 0" in promise(holdout.mean("died = 1", **words))
        inside = "avg(age) FILTER (WHERE age > 0)"
        assert f"{lowest}, 18" in promise(holdout.ask(inside, grid=AGES))
        for protocol in ("verify", "estimate"):
            assert lower in promise(holdout.verify("avg(age)", 62, protocol=protocol, **words))
        corrected = holdout.correct("avg(age)", 30, **ages)
        assert lower in promise(corrected.verdict)
        assert f"{lowest}, 18" in promise(corrected.correction)
        # Where nothing filters, and where nothing is a value too, there is nothing to tell.
        for text, where in (("avg(age)", None), ("count(*)", "age > 0"), ("count(age)", "age > 0")):
            points = grid([0, 1, 2, 3, 4, 20, 50, 80])
            said = promise(holdout.ask(text, where=where, grid=points, protocol="amplified"))
            assert "without such rows" not in said
    assert check_holdout(tmp_path / "a").passed


def test_the_open_part_says_how_many_are_empty(tmp_path: Path) -> None:
    with made(tmp_path / "a") as holdout:
        rare: dict[str, Any] = {"where": "race = 'black'", "grid": AGES}  # one in ten has none
        price = holdout.price("ask", "avg(age)", **rare)
        (doubt,) = price.doubts
        assert not doubt.refused
        answer = holdout.ask("avg(age)", **rare)
        empty = int(doubt.message.split(" of the ")[0].split()[-1])
        assert 10 <= empty <= 80  # 0.8 to the 10th of 400 is 43, ± 6
        assert f"lowest point, 18; {empty} of the 400 open blocks are such" in promise(answer)
        mean = holdout.mean("died = 1", where="race = 'black'")
        assert f"lowest point, 0; {empty} of the 400 open blocks are such" in promise(mean)
        assert "open blocks" not in promise(holdout.ask("avg(age)", where="age > 0", grid=AGES))
    assert check_holdout(tmp_path / "a").passed


def test_answers_say_that_they_are_rounded_up(tmp_path: Path) -> None:
    every = [plans.mixed(), plans.split()]
    with made(tmp_path / "a", open_part=False, plan=every) as holdout:
        for points, words in (
            (grid(20, 90, step=10), "a grid with step 10"),
            (grid(20, 90, step=10, scale="integer"), "a grid with step 10"),
            (grid([20, 50, 90]), "the next of 3 points"),
            (grid(10, 100, points=8, scale="log"), "the next of 8 points"),
        ):
            answer = holdout.ask("avg(age)", grid=points)
            assert promise(answer).endswith(f"; rounded up to {words}")
        assert "; rounded up to a grid with step 0.142857" in promise(holdout.mean("died = 1"))
        corrected = holdout.correct("avg(age)", 30, grid=AGES)
        assert "rounded up to a grid with step 12" in promise(corrected.correction)
        for other in (
            holdout.interval("avg(age)", grid=AGES),  # its ends are moved outwards
            holdout.ask("avg(age)", protocol="split"),  # on no grid
            corrected.verdict,
        ):
            assert "rounded" not in promise(other)
    assert check_holdout(tmp_path / "a").passed


# Grids that nobody named.


def test_an_automatic_grid_is_the_finer_of_range_and_open_part(tmp_path: Path) -> None:
    def asked(path: Path, **more: Any) -> tuple[Grid, Answer]:
        with made(path, ranges={"days": (0, 2029)}, times=4, **more) as holdout:
            answer = holdout.ask("median(days)")
            row = holdout.transcript()[-1]
        return Grid.from_json(row["question"]["grid"]), answer

    wide, _ = asked(tmp_path / "closed", open_part=False)
    assert repr(wide) == "grid(0, 2029, points=8)"
    near, answer = asked(tmp_path / "open")
    assert near.size <= 8
    assert near.low == 0  # within what was declared
    assert near.high < 1000
    assert f"a grid with step {near.point(1) - near.point(0):g}" in promise(answer)
    assert not answer.at_grid_end


def test_a_model_is_not_judged_by_the_rows_it_may_have_learnt_from(tmp_path: Path) -> None:
    with made(tmp_path / "a", times=4, ranges={"age": (18, 102)}) as holdout:
        ages = holdout.price("ask", "avg(age)").grid
        assert ages is not None
        assert 18 < ages[0] < ages[1] < 102
        right = score_estimator(np.ones(8 * ROWS, np.int64), "accuracy", target="died")
        assert holdout.price("ask", right).grid == (0.0, 1.0, 8)
