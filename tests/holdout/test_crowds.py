"""Many at once: exactly what is affordable is granted, and one question is drawn once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from tests.holdout import plans
from tests.holdout.crowd import requests, retries
from tests.holdout.tables import Still, sealed, sources
from tools.crash.writers import children

COIN = hf.grid(0, 1, points=2)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "a.holdfast"
    sealed(path, plans.crowd()).close()
    yield path
    assert check_holdout(path).passed


def kinds(path: Path) -> Counter[str]:
    with Holdout.open(path) as holdout:
        return Counter(row.kind for row in holdout.journal.ledger.rows())


def test_16_processes_are_granted_what_the_budget_affords(folder: Path) -> None:
    said = requests(folder, 16, 50)
    assert sum(each["granted"] for each in said) == 500
    assert sum(each["refused"] for each in said) == 800 - 500
    assert kinds(folder) == {"created": 1, "reserved": 500, "recorded": 500}
    with Holdout.open(folder) as holdout:
        (one,) = holdout.status().sets
        assert (one.parts[0].questions_left, one.unsettled) == (0, 0)


def test_1000_retries_of_a_key_draw_once(folder: Path) -> None:
    said = retries(folder, 8, 5, 125)  # 1,000 retries, 200 of every key
    assert sum(each["drawn"] for each in said) == 5
    for key in said[0]["told"]:
        assert len({json.dumps(each["told"][key]) for each in said}) == 1
    assert kinds(folder) == {"created": 1, "reserved": 5, "recorded": 5}


@pytest.mark.parametrize("plan", [plans.crowd, plans.split], ids=["looks", "exact"])
def test_threads_that_ask_the_same_get_one_answer(tmp_path: Path, plan: Any) -> None:
    gate = threading.Barrier(8)
    answers: list[Any] = []
    drawn: list[int] = []

    class Counted(Still):
        def values(self, estimator: Any, /) -> Any:
            drawn.append(1)
            return super().values(estimator)

    def ask(holdout: Holdout) -> None:
        gate.wait()
        answers.append(holdout.ask("avg(x)", grid=COIN))

    with sources(Counted), sealed(tmp_path / "a", plan()) as one, Holdout.open(one.path) as other:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, [one, other] * 4))
        assert len(drawn) == 1
        assert len(answers) == 8
        assert {answer.receipt for answer in answers} == {str(one.receipt)}
        assert sum(not answer.cached for answer in answers) == 1
        assert kinds(one.path) == {"created": 1, "reserved": 1, "recorded": 1}


def test_threads_and_forks_of_an_open_holdout_get_their_own_values(tmp_path: Path) -> None:
    """With the real engine: nobody is given the values of another's question."""

    def wrong(holdout: Holdout, who: int) -> int:
        count = 0
        for number in range(10 * who + 1, 10 * who + 11):
            points = hf.grid([0, 5 + number, 10_000])
            count += holdout.ask(f"avg(c) + {number}", grid=points).value != 5 + number
        return count

    with sealed(tmp_path / "a", plans.crowd(), units=2) as holdout:
        assert wrong(holdout, 0) == 0  # the engine's process is running when the others are forked
        said = children([lambda: bytes([wrong(holdout, 1)]), lambda: bytes([wrong(holdout, 2)])])
        assert said == [b"\0", b"\0"]
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(partial(wrong, holdout), (3, 4))) == [0, 0]
        assert holdout.status().answers == 50
        assert check_holdout(holdout.path).passed
