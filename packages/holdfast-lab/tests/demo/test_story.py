"""The whole demo, on a smaller sample and with fewer questions."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from holdfast.errors import InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast_lab.demo import story
from holdfast_lab.demo.sealed import fresh_blocks
from holdfast_lab.demo.show import DemoResult, Screen
from holdfast_lab.demo.story import run_demo

Told = tuple[DemoResult, str, Path]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("demo") / "new"
    result, text = tell(folder)
    return result, text, folder


def tell(folder: Path) -> tuple[DemoResult, str]:
    said = io.StringIO()
    screen = Screen(Console(file=said, width=100, highlight=False), Console(quiet=True))
    with pytest.MonkeyPatch.context() as patch:  # 2,000 fresh blocks are as good, and slower
        patch.setattr(story, "fresh_blocks", partial(fresh_blocks, blocks=400))
        result = run_demo(folder, screen, questions=30, seed=3, sample=20_000)
    return result, said.getvalue()


def test_what_is_shown(told: Told) -> None:
    result, text, folder = told
    lines = text.splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= 100
    for label in ("Flights", "Sample", "Plan", "Holdout", "Search", "Delays", "Again", "Refused"):
        assert sum(line.startswith(label) for line in lines) == 1, label
    assert "seed 3: not certified" in text
    flowing = " ".join(text.split())  # a long path may have broken the line
    assert f"{result.blocks} blocks of {result.block_units} flights" in flowing
    assert "naive reuse, textbook" in text
    assert "Holdfast (seeded)" in text
    assert str(folder / "demo.png") in text


def test_what_came_of_it(told: Told) -> None:
    result, _, folder = told
    assert result.questions == len(result.hunt.answers) == 30
    assert len(result.naive.cells) == len(result.holdfast.cells) == 10
    assert result.blocks * result.block_units + result.leftover == result.sample == 20_000
    assert result.checked is not None
    assert result.checked.kept == result.checked.answers == 30 + 2 + 2 * 3 + 2
    assert result.checked.contained == result.checked.bars == 2
    assert result.holdfast.contains
    assert result.holdfast.low < result.holdfast.value < result.holdfast.high
    assert result.cached
    assert "max takes (number)" in result.refused
    assert set(result.verdicts.values()) <= {"compatible", "cannot tell"}
    assert not result.certified
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["promise"]["answers"] == plain["status"]["answers"] == 40
    assert plain["naive_runs"] == 20
    assert plain["report"] == str(folder / "report.html")


def test_what_is_left(told: Told) -> None:
    result, _, folder = told
    assert (folder / "report.html").stat().st_size > 10_000
    for suffix in (".svg", ".png"):
        assert 20_000 < (folder / f"demo{suffix}").stat().st_size < 500_000
    path = folder / "flights.holdfast"
    assert check_holdout(path, result.receipt).passed
    with Holdout.open(path) as holdout:
        assert holdout.status().answers == 40


def test_a_seed_tells_the_same_story_again(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """The earlier demo's holdout makes place; the same sample needs no other reason."""
    monkeypatch.setattr(story, "_FRESH_SAMPLES", 1)
    before, _, folder = told
    after, _ = tell(folder)
    assert after.hunt.answers == before.hunt.answers
    assert (after.naive, after.holdfast) == (before.naive, before.holdfast)


def test_nobody_elses_folder_is_removed(tmp_path: Path) -> None:
    own = tmp_path / "flights.holdfast"
    own.mkdir()
    (own / "thesis.txt").write_text("all of it")
    with pytest.raises(InvalidInput, match="was not left by an earlier demo"):
        tell(tmp_path)
    assert (own / "thesis.txt").exists()
