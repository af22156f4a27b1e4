"""What a row may say was drawn: for every protocol, every fact that its question decides.

An answer is computed from its question and what was drawn, so that no row can say another promise,
bar or price. What is left to a forger are the facts themselves, one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.protocols.shapes import BoundedMean, KnownSd
from tests.holdout import plans
from tests.holdout.forging import GONE, Entry, failed, forged, put
from tests.holdout.tables import Still, sealed, sources
from tests.holdout.test_rules import ASKS
from tests.holdout.told_history import ledger_rows

POINTS = hf.grid(0, 1, points=8)
SHAPE = KnownSd(0.1)
ToldOf = tuple[str, Path]
_numbers = itertools.count()


def weighing(path: Path) -> Holdout:
    """A holdout of blocks that are one coin each, nine in ten heads."""
    plan, blocks = plans.weights(), plans.weights().blocks
    number = np.arange(blocks) + 0.5 + 10**6 * next(_numbers)  # no two tables are alike
    data = {"y": np.arange(blocks) % 10 > 0, "i": number}
    return Holdout.create(path, data, plan, universe={"y": [False, True]}, block_units=1)


def blocks_of(plan: Callable[[], Any]) -> Callable[[Path], Holdout]:
    return lambda path: sealed(path, plan())


Made = Callable[[Path], Holdout]
Ask = Callable[[Holdout], Any]

KINDS: dict[str, tuple[Made, Ask]] = {
    **{name: (blocks_of(make), ask) for name, (make, ask) in ASKS.items() if name != "correct"},
    "interval": (
        blocks_of(plans.mixed),
        lambda h: h.interval("avg(x)", grid=hf.grid(-1, 2, points=13)),
    ),
    "bar": (blocks_of(plans.mixed), lambda h: h.ask("avg(x)", grid=POINTS, shape=SHAPE)),
    "refused": (blocks_of(plans.mixed), lambda h: h.verify("avg(x)", 9)),
    "kept": (blocks_of(plans.mixed), lambda h: h.correct("avg(x)", 0.5, grid=POINTS)),
    "corrected": (blocks_of(plans.mixed), lambda h: h.correct("avg(x)", 9, grid=POINTS)),
    "mean on a grid": (blocks_of(plans.medians), lambda h: h.mean("y = 1", grid=POINTS)),
    "filtered mean": (blocks_of(plans.medians), lambda h: h.mean("y = 1", where="x > 0")),
    "direct mean in a range": (blocks_of(plans.direct), lambda h: h.mean("x", range=(-3, 7))),
    "median mean in a range": (blocks_of(plans.medians), lambda h: h.mean("x", range=(-3, 7))),
    "filtered mean in a range": (
        blocks_of(plans.medians),
        lambda h: h.mean("x", where="x > 0", range=(-3, 7)),
    ),
    "weights": (weighing, lambda h: h.ask("avg(y)", grid=POINTS)),
    "rounds": (blocks_of(plans.rounds), lambda h: h.ask("avg(x)", shape=SHAPE)),
}


@pytest.fixture(scope="module", params=KINDS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ToldOf:
    """A holdout with one answer; its row holds codes and numbers, and no sentence of the answer."""
    make, ask = KINDS[request.param]
    still = nullcontext() if request.param == "weights" else sources()
    with make(tmp_path_factory.mktemp("told") / "a") as holdout, still:
        ask(holdout)
        (shown,) = [each["answer"] for each in holdout.transcript()]
        body = holdout.journal.ledger.rows()[-1].body
    assert [text for text in _texts(shown) if " " in text]
    facts = {name: value for name, value in body.items() if name != "question"}
    assert {text for text in _texts(facts) if " " in text} <= {"at most", "at least"}
    return request.param, holdout.path


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody has seen a receipt."""
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))


def lies(facts: dict[str, Any]) -> Iterator[tuple[str, str, object]]:
    """Everything that a recorded row cannot say instead: what, its place, and the value."""
    wrong: dict[str, list[Any]] = {
        "index": [-1, 10**6, 0.5, True, None, "1"],
        "first": [-1, 13, None],
        "last": [-1, 13, None],
        "cell": [-1, 10**6, None],
        "yes": [-1, 3, None, "two"],
        "refused": [None, 1, "no"] if "yes" not in facts["drawn"] else [],
        "value": ["nan", None, "many"],
        "steps": [[[0, "at most", 0.1]], [[1, "no side", 0.1]]],
        "size": [3],
    }
    for name in facts["drawn"]:
        for value in (*wrong.get(name, []), GONE):
            what = f"no {name}" if value is GONE else f"{name}={value}"
            yield what, f"drawn.{name}", value
    for value in (-1.0, 1e9, None, "much"):
        yield f"left={value}", "left", value
    yield "refusals", "refusals", 100
    for charge in range(len(facts["charges"])):
        for name, value in (("price", "1/7"), ("looks", 99), ("noes", 2), ("part", "other")):
            yield f"{name} {charge}", f"charges.{charge}.{name}", value
    yield "no charges", "charges", []


def test_every_fact_that_a_question_decides(told: ToldOf, forgotten: None) -> None:
    kind, path = told
    assert failed(check_holdout(path)) == {}
    for what, place, value in lies(ledger_rows(path)[-1]):
        found = forged(path, lambda entries: put(entries[-1].body, place, value))  # noqa: B023
        assert found or (kind, what[:8]) == ("near", "refused="), what  # read as yes or no
    assert failed(check_holdout(path)) == {}


def questions(place: str, value: object) -> Callable[[list[Entry]], object]:
    """Another word of the question in every row about it."""

    def edit(entries: list[Entry]) -> None:
        for each in entries[1:]:
            put(each.body, f"question.{place}", value)

    return edit


def test_a_question_of_another_kind(told: ToldOf, forgotten: None) -> None:
    _, path = told
    for verb in {*("ask", "mean", "interval", "verify", "correct", "other")} - {
        ledger_rows(path)[-1]["question"]["verb"]
    }:
        assert forged(path, questions("verb", verb)), verb


@pytest.mark.parametrize("told", [each for each in KINDS if "range" in each], indirect=True)
def test_a_term_that_can_leave_its_range_is_cut(told: ToldOf, forgotten: None) -> None:
    assert "answers" in forged(told[1], questions("range", GONE))  # as if nothing could


def test_a_term_whose_text_is_too_long_to_be_read_again(tmp_path: Path) -> None:
    """Its one text has the brackets that a question may leave out."""
    with sealed(tmp_path / "a", plans.direct()) as holdout, sources():
        holdout.mean(" OR ".join([f"g='{'a' * 54}'"] * 160))
        (row,) = holdout.transcript()
        with pytest.raises(hf.InvalidInput):
            holdout.price("mean", row["question"]["estimator"]["text"])
        assert failed(check_holdout(holdout.path)) == {}


def test_bars_of_every_point(tmp_path: Path) -> None:
    """Wherever the blocks lie, also beyond the grid, what was told is what may be told."""
    with sealed(tmp_path / "a", plans.mixed(), ranges={"x": (-4, 1)}) as holdout:
        for number, middle in enumerate((-5.0, 0.0, 0.3, 1.0, 5.0)):
            with sources(partial(Still, values=partial(np.full, fill_value=middle))):
                shape = BoundedMean(-4, 5) if number % 2 else SHAPE
                holdout.ask(f"avg(x) + {number}", grid=POINTS, shape=shape)
                if number < 2:
                    holdout.interval(f"avg(x) + {number}", grid=hf.grid(0, 1, points=4))
        assert failed(check_holdout(holdout.path)) == {}
        shown = [each["answer"] for each in holdout.transcript()]
        assert len(shown) == 7


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
