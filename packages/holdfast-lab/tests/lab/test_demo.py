"""The demo and the story of thirty models, in small; the models, and the flights they are about."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from holdfast.errors import InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast_lab.demo import DemoResult, Screen, run_demo
from holdfast_lab.flights import SCHEDULE, Flights, load_flights
from holdfast_lab.models import Settings, Workshop, boosted, log_odds, tune
from holdfast_lab.told.flights import page, story, summary_of

Shown = tuple[DemoResult, str, Path]
MODELS, PATCHES = 3, 12


@pytest.fixture(scope="module")
def flights() -> Flights:
    return load_flights()


def test_the_population_is_all_flights(flights: Flights) -> None:
    assert flights.count == 336_776
    assert np.isnan(flights.delay).sum() == 9_430  # cancelled or diverted: late, without a delay
    assert flights.late[np.isnan(flights.delay)].all()
    assert flights.late[flights.delay == 15].all()
    assert not flights.late[flights.delay == 14].any()
    assert flights.schedule.shape == (len(SCHEDULE), flights.count)
    known = dict(zip(SCHEDULE, flights.schedule, strict=True))
    assert [np.unique(known[name]).size for name in ("month", "day", "weekday")] == [12, 31, 7]
    assert [np.unique(known[name]).size for name in ("carrier", "dest", "origin")] == [16, 105, 3]


def test_a_tree_finds_what_there_is() -> None:
    """One column decides, but for noise: the first question is about it, at the right value."""
    chance = np.random.default_rng(1)
    columns = chance.integers(0, 20, (3, 4_000)).astype(np.uint8)
    late = (columns[1] > 11) ^ (chance.random(4_000) < 0.1)
    trees = boosted(columns, late, Settings(columns=3, trees=10, depth=1, rate=0.3))
    assert {tree.questions for tree in trees} == {((1, 11),)}
    predicted = log_odds(trees, columns) > 0
    assert np.array_equal(predicted, columns[1] > 11)


def test_a_deep_tree_is_told_by_its_leaves() -> None:
    chance = np.random.default_rng(2)
    columns = chance.integers(0, 9, (2, 500)).astype(np.uint8)
    late = (columns[0] > 4) ^ (columns[1] > 4)  # no column alone says anything
    (tree,) = boosted(columns, late, Settings(columns=2, trees=1, depth=5, rate=1.0))
    bits = [columns[column] > value for column, value in tree.questions]
    places = sum(bit.astype(int) << (4 - level) for level, bit in enumerate(bits))
    assert np.array_equal(tree.leaves(columns), places)
    assert np.mean((tree.values[tree.leaves(columns)] > 0) == late) > 0.9


def test_tuning_follows_the_scores(flights: Flights) -> None:
    """All models differ, and each is a change of the best before it."""
    workshop = Workshop(flights, np.arange(2_000))
    given: list[float] = []

    def score(_model: object) -> float:
        given.append(-abs(len(given) - 2.0))  # the third is the best
        return given[-1]

    made = tune(workshop, score, 6, np.random.default_rng(1))
    assert len({each.late.tobytes() for each in made}) == len(given) == 6
    again = tune(workshop, lambda _: 0.0, 6, np.random.default_rng(1))
    assert made[0] is again[0]  # the same settings are fitted once
    assert [each.settings for each in made] != [each.settings for each in again]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("demo") / "new"
    return (*show(folder), folder)


def show(folder: Path) -> tuple[DemoResult, str]:
    said = io.StringIO()
    screen = Screen(Console(file=said, width=100, highlight=False), Console(quiet=True))
    words = {"models": MODELS, "patches": PATCHES, "table": 3_000, "seed": 3}
    return run_demo(folder, screen, **words), said.getvalue()


def test_what_is_shown(shown: Shown) -> None:
    _, text, folder = shown
    lines = text.splitlines()
    assert len(lines) < 45
    assert max(map(len, lines)) <= 100
    labels = (
        "Flights",
        "Test set",
        "Work",
        "Naive",
        "Patches",
        "Compare",
        "Gate",
        "Median",
        "Told",
    )
    for label in (*labels, "Picture", "Report", "Try", "Time"):
        assert sum(line.startswith(f"{label:<10}") for line in lines) == 1, label
    assert "seed 3: nothing is certified" in " ".join(text.split())
    assert "naive: best of 3 models" in text
    assert "Holdfast: with 0 patches shown to help" in text
    assert str(folder / "demo.png") in "".join(text.split())


def test_what_came_of_it(shown: Shown) -> None:
    result, _, folder = shown
    assert (result.sealed, result.open, result.certified) == (1_800, 1_200, False)
    for work in (result.naive, result.holdfast):
        assert [each.questions for each in work.path] == list(range(1, MODELS + PATCHES + 1))
    assert result.naive.last.value >= result.naive.models.value
    assert result.holdfast.kept == 0
    assert result.verdicts == {"not shown": PATCHES}
    assert all(each.contains for each in result.holdfast.path)
    assert result.precise is not None
    assert result.precise.contains
    narrow, wide = result.precise, result.holdfast.last
    assert narrow.high - narrow.low < wide.high - wide.low
    assert result.answers == MODELS + PATCHES + 4
    assert 30 <= result.median["value"] <= 90
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["holdfast"]["questions"] == MODELS + PATCHES
    assert plain["naive"]["patched"]["contains"] == result.naive.last.contains
    assert plain["report"] == str(folder / "report.html")


def test_what_is_left(shown: Shown) -> None:
    result, _, folder = shown
    assert (folder / "report.html").stat().st_size > 10_000
    for suffix in (".svg", ".png"):
        assert 10_000 < (folder / f"demo{suffix}").stat().st_size < 500_000
    path = folder / "flights.holdfast"
    assert check_holdout(path, result.receipt).passed
    with Holdout.open(path) as holdout:
        assert holdout.status().answers == result.answers


def test_a_seed_tells_the_same_story_again(shown: Shown) -> None:
    """The earlier demo's holdouts make place."""
    before, text, folder = shown
    after, again = show(folder)
    assert after.holdfast == before.holdfast
    assert after.naive == before.naive
    assert text.splitlines()[:-1] == again.splitlines()[:-1]  # but for the time


def test_nobody_elses_folder_is_removed(tmp_path: Path) -> None:
    own = tmp_path / "flights.holdfast"
    own.mkdir()
    (own / "thesis.txt").write_text("all of it")
    with pytest.raises(InvalidInput, match="was not left by an earlier demo"):
        show(tmp_path)
    assert (own / "thesis.txt").exists()


def test_three_people_tune_on_the_same_flights(flights: Flights) -> None:
    three = story(flights, sealed=1_000, seed=1, models=4)
    told, naive, looks = three
    assert [each.who for each in three] == ["told", "naive", "looks"]
    assert told.missed == told.wrong == looks.missed == 0
    assert naive.half_width < told.half_width < looks.half_width
    assert told.difference is not None
    low, high = told.difference
    assert low < told.truth < high
    summary = summary_of([(1_000, three)], 4)
    assert "**1,000 sealed rows.** Told: 0 bars miss" in summary
    assert summary in page([], summary, 4, "a command")
