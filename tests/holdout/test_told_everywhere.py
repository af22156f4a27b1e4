"""The same history is told on every engine and in every ledger: letters, nats and bars.

What is told may not depend on where it is computed: the terms of rows are whole parts, whose sums
over shards and workers are exact.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from holdfast.holdout.check import check_holdout
from tests.holdout.told_history import create, history, in_shards


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("expected")
    with create(folder / "a.holdfast") as holdout:
        found = history(holdout, "SQL")
        assert holdout.status().answers == len(found) - 1  # one was asked before
    assert check_holdout(folder / "a.holdfast").passed
    return found


def test_the_history_has_every_kind_of_answer(expected: list[dict[str, Any]]) -> None:
    assert {each["expected"] for each in expected} == {True, False, None}
    told = [each["told_so_far"] for each in expected if not each["cached"]]
    assert len(told) == len(expected) - 1
    assert all(before < after for before, after in pairwise(told))


def test_in_five_files_it_is_the_same(expected: list[dict[str, Any]], tmp_path: Path) -> None:
    with create(tmp_path / "a.holdfast") as holdout:
        in_shards(holdout, tmp_path / "shards")
        assert history(holdout, "SQL") == expected


def test_in_python_it_is_the_same(expected: list[dict[str, Any]], tmp_path: Path) -> None:
    with create(tmp_path / "a.holdfast") as holdout:
        assert history(holdout, "Python") == expected
