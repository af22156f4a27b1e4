"""The cache: faster, never different, and harmless whatever is in it."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from holdfast.planning import solve
from holdfast.theory.sizing import Promise, Sized, best_steepest

PROMISE = Promise(10, 8, 0.1, 0.1, 0.9)

searched = functools.cache(best_steepest)  # in memory: the tests are about what is on disk


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "coins"))
    return tmp_path / "coins"


def count_searches(monkeypatch: pytest.MonkeyPatch) -> list[Promise]:
    asked: list[Promise] = []

    def counted(promise: Promise, target: float | None = None) -> Sized:
        asked.append(promise)
        return searched(promise, target)

    monkeypatch.setattr(solve, "best_steepest", counted)
    return asked


def test_second_time_needs_no_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count_searches(monkeypatch)
    first = solve.steepest(PROMISE)
    again = solve.steepest(PROMISE)
    assert len(asked) == 1
    assert again.size == first.size
    assert again.parameters == first.parameters
    assert [path.suffix for path in folder.iterdir()] == [".json"]  # no temporary file is left


# No JSON; sound parameters of other blocks; numbers out of range; other shapes; too much.
SPOILED = """
not json; []; [1, 2, 3, 4]; [2.0, 0.1, 0.5, 1]; [1e9, 0.1, 0.5, 10]; [2.0, -1.0, 0.5, 10]
[NaN, 0.1, 0.5, 10]; [10000.0, 999.0, 0.5, 1413]; [20.0, 1e-11, 0.5, 1413]
[2.0, 5e-324, 0.5, 5]; [1.0001, 0.1, 0.5, 5]; {"order": 2}
"""
CONTENTS = ["", "[" * 3000, "7" * 10_000, *SPOILED.strip().replace("\n", "; ").split("; ")]


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
def test_spoiled_entries_are_ignored_and_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    asked = count_searches(monkeypatch)
    true = solve.steepest(PROMISE)
    (entry,) = folder.iterdir()
    entry.write_text(content)
    assert solve.steepest(PROMISE).size == true.size
    assert len(asked) == 2
    assert json.loads(entry.read_text())[3] == true.size.blocks


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "file" / "below"))
    assert solve.steepest(PROMISE).size.blocks > 0


def test_off_and_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_CACHE", "off")
    assert solve.cache_folder() is None
    assert solve.steepest(PROMISE).size.blocks > 0
    monkeypatch.delenv("HOLDFAST_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert solve.cache_folder() == tmp_path / "holdfast"
