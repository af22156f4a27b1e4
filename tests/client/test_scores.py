"""Predictions sent to a server: scores, gates and entries as the holdout itself makes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.client.client import AsyncClient, Client
from holdfast.client.wire import content_of, enter, gate, score
from holdfast.errors import InvalidInput
from holdfast.holdout.grants import Asker
from holdfast.holdout.holdout import Holdout
from tests.client.conftest import Serve
from tests.holdout import plans
from tests.holdout.tables import table

URL = "http://127.0.0.1"
ROWS = table(400, seed=424_242)
BY_ID = dict(zip(ROWS["number"].tolist(), ROWS["y"].tolist(), strict=True))
FRAME = pd.DataFrame({"number": ROWS["number"], "prediction": ROWS["y"]})


def labels(path: Path) -> Path:
    """A seeded holdout of labels; two of them draw the same."""
    more: dict[str, Any] = {"seed": 7, "ids": "number", "target": "y", "new_budget": "a test"}
    Holdout.create(path, ROWS, plans.mixed(), **more).close()
    return path


FORMS: dict[str, Callable[[Path], object]] = {
    "map": lambda folder: BY_ID,
    "series": lambda folder: ROWS.set_index("number")["y"],
    "pandas": lambda folder: FRAME,
    "arrow": lambda folder: pa.Table.from_pandas(FRAME, preserve_index=False),
    "csv": lambda folder: FRAME.to_csv(index=False).encode(),
    "json": lambda folder: json.dumps(FRAME.to_dict("records")).encode(),
    "file": lambda folder: _written(folder / "p.parquet"),
}


def _written(path: Path) -> Path:
    FRAME.to_parquet(path)
    return path


@pytest.mark.usefixtures("admitted")
def test_scores_are_those_of_the_holdout(tmp_path: Path, serve: Serve) -> None:
    transport = serve(labels(tmp_path / "a.holdfast"), labels(tmp_path / "b.holdfast"))

    def every(place: Any) -> list[Any]:
        if isinstance(place, Holdout):  # a client's score is the result of an entry
            scored = place.enter(BY_ID, name="one", metric="f1").result
        else:
            scored = place.score(BY_ID, name="one", metric="f1")
        return [
            scored,
            place.gate(BY_ID, at_least=0.5),
            place.gate(BY_ID, metric="log_loss", at_most=0.001),
            place.enter(BY_ID, name="two"),
            place.enter(BY_ID, name="three", metric="f1", improve=True, margin=0.5),
        ]

    async def awaited() -> list[Any]:
        async with AsyncClient(URL, holdout="b", transport=transport) as client:
            return [await client.gate(BY_ID, at_least=0.5), await client.leaderboard()]

    with (
        Client(URL, holdout="a", transport=transport) as client,
        Holdout.open(labels(tmp_path / "c.holdfast")) as holdout,
    ):
        paced = holdout.on_behalf(Asker("anyone"), lambda _: None)  # as a server asks it
        ours, theirs = every(client), every(paced)
        board, kept = client.leaderboard(), holdout.leaderboard()
        for name in ("series", "pandas", "csv", "json"):  # the same predictions: all free
            assert client.gate(FORMS[name](tmp_path), at_least=0.5).verdict.cached, name
    for own, their in zip(ours, theirs, strict=True):
        assert type(own) is type(their)
        assert str(bare(own)) == str(bare(their))
    assert [each.name for each in board.entries] == [each.name for each in kept.entries] == ["two"]
    assert [each.value for each in board.entries] == [each.value for each in kept.entries]
    passed, empty = asyncio.run(awaited())
    assert passed.passed == ours[1].passed
    assert empty.entries == ()


def bare(result: Any) -> Any:
    """A result without its receipt, which names the holdout."""
    for name in ("verdict", "result"):
        if hasattr(result, name):
            inner = replace(getattr(result, name), receipt="")
            return replace(result, **{name: inner})
    return replace(result, receipt="")


def test_content_has_its_type(tmp_path: Path) -> None:
    kinds = {name: content_of(form(tmp_path)).kind for name, form in FORMS.items()}
    assert kinds["map"] == kinds["series"] == kinds["json"] == "application/json"
    assert kinds["csv"] == "text/csv"
    assert kinds["pandas"] == kinds["arrow"] == kinds["file"] == "application/vnd.apache.parquet"
    assert content_of(b"{", "csv").kind == "text/csv"
    assert json.loads(content_of({1: 0.5, 2: 1}).data) == {"1": 0.5, "2": 1.0}


class Model:
    def predict(self, rows: object) -> object:
        return rows


@pytest.mark.parametrize(
    ("make", "parameter", "words"),
    [
        (lambda: gate(Model(), at_least=1), "predictions", "predict there, and send"),
        (lambda: gate([1, 0, 1], at_least=1), "predictions", "predictions by row id"),
        (lambda: gate(np.zeros(3), at_least=1), "predictions", "predictions by row id"),
        (lambda: gate("nowhere.csv", at_least=1), "predictions", "in a file that exists"),
        (lambda: gate({"a": float("nan")}, at_least=1), "predictions", "finite numbers"),
        (lambda: gate({"a": None}, at_least=1), "predictions", "Missing ones"),
        (lambda: gate({1: 0, "1": 1}, at_least=1), "predictions", "one for every id"),
        (lambda: gate(FRAME.assign(more=1), at_least=1), "predictions", "two columns"),
        (lambda: gate(BY_ID, at_least=1, form="xls"), "form", "csv, json, parquet"),
        (lambda: gate(BY_ID, at_least=1, metric=max), "metric", "--metrics FILE.py"),
        (lambda: gate(BY_ID, at_least=1, target="y"), "target", "left out here"),
        (lambda: gate(BY_ID, at_least=float("inf")), "at_least", "a finite number"),
        (lambda: gate(BY_ID), "at_least or at_most", "one of them"),
        (lambda: score(BY_ID), "name", "every score is an entry of the leaderboard"),
        (lambda: enter(BY_ID, name="a", by="estimate"), "by", "A server chooses the part"),
        (lambda: score(BY_ID, name="a", grid=hf.grid(0, 1, points=4)), "grid", "left out here"),
    ],
)  # fmt: skip
def test_what_does_not_travel(make: Callable[[], object], parameter: str, words: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        make()
    assert wrong.value.parameter == parameter
    assert words in str(wrong.value)
