"""Seeded histories of what is told, with every verb, for every engine and every ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import holdfast as hf
from holdfast.engines.source import Limits, open_engines
from holdfast.holdout.submissions import IDS_FILE
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.protocols.answers import Told
from tools.shards import sharded

__all__ = [
    "LANGUAGES",
    "Body",
    "ask_everything",
    "ask_without_guesses",
    "create",
    "history",
    "in_shards",
    "ledger_rows",
    "said",
    "table",
]

ROWS = 1_200
GRID = hf.grid(0, 1, step=0.01)
Body = dict[str, Any]
LANGUAGES = ("SQL", "Python")
PYTHON: dict[str, Any] = {
    "x * 1": lambda frame: frame.x,
    "late": lambda frame: frame.late,
    "late / 60": lambda frame: frame.late / 60,
    "who = 'a'": lambda frame: frame.who == "a",
    "avg(x)": lambda frame: frame.x.mean(),
}


def table(rows: int = ROWS, seed: int = 21) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": np.arange(rows), "x": chance.random(rows).round(3)})
    frame["late"] = chance.normal(30.0, 12.0, rows).round(1)
    frame["y"] = chance.integers(0, 2, rows)
    frame["who"] = chance.choice(["a", "b", "c"], rows)
    return frame


def create(path: Path, **more: Any) -> hf.Holdout:
    """The same rows are sealed every time, as many as are open: it is seeded."""
    words: Body = {"ids": "id", "target": "y", "ranges": {"late": (-60, 120)}, "seed": 8}
    words |= {"open_fraction": 0.5, "new_budget": "a test", "limits": Limits(workers=1)}
    return hf.Holdout.create(path, more.pop("frame", table()), **(words | more))


def said(frame: pd.DataFrame, right: float, seed: int = 0, better: Any = ()) -> pd.DataFrame:
    """Predictions that are right on so many rows, and on those whose ids are `better`."""
    luck = np.random.default_rng(seed).random(len(frame))
    good = (luck < right) | frame.id.isin(list(better))
    return frame[["id"]].assign(prediction=np.where(good, frame.y, 1 - frame.y))


class Model:
    """A rule on features: its reading is the other one."""

    classes_ = np.array([0, 1])

    def predict(self, given: pd.DataFrame) -> Any:
        return (given.x > 0.5).astype(int)


def cost(target: Any, predicted: Any) -> Any:
    return np.where(predicted < target, 5.0, 1.5) * (predicted != target)


def ask_everything(holdout: hf.Holdout, frame: pd.DataFrame, language: str = "SQL") -> list[Any]:
    """Every verb: guesses that hold and that do not, on both sides; three readings."""
    own = hf.row_metric(cost, range=(0, 5), greater_is_better=False)
    texts: dict[str, Any] = {text: text for text in PYTHON} if language == "SQL" else PYTHON
    one, two, low = said(frame, 0.9), said(frame, 0.88, 1), said(frame, 0.6, 2)
    chance = frame[["id"]].assign(prediction=(frame.x * 0.9 + 0.05).round(3))
    near = frame[["id"]].assign(prediction=frame.late + 4)
    opened = holdout.open_table(["x", "late"]).to_pandas()
    known = frame.merge(opened, on=["x", "late"]).id
    fitted = [said(frame, 0.6 - k / 20, 9, known[: 250 + 80 * k]) for k in range(4)]
    return [
        holdout.score(one),
        holdout.score(two, guess=0.88),
        holdout.score(said(frame, 0.87, 3), guess=0.8, guess_se=0.001),  # a surprise above
        holdout.score(one),  # told before
        holdout.gate(one, at_least=0.8),
        holdout.gate(one, at_least=0.9, tolerance=0.01),
        holdout.gate(two, metric="error_rate", at_most=0.05),
        holdout.gate(one, better_than=low),
        holdout.verify(texts["avg(x)"], guess=0.5, tolerance=0.02),
        holdout.verify(texts["avg(x)"], guess=0.9, claim="at least"),
        holdout.mean(texts["x * 1"], range=(0, 1)),
        holdout.mean(texts["late"], range=(-60, 120), precise=True),
        holdout.mean(texts["late / 60"], where=texts["who = 'a'"], range=(-1, 2)),
        holdout.mean("x > 0.25", guess=0.8),
        holdout.mean("x > 0.5", where="who = 'b'"),
        holdout.mean("x > 0.5", where="who = 'b'", guess=0.4, precise=True),
        holdout.score(Model(), features=["x"], guess=0.5),
        holdout.score(near, metric="mae", target="late"),
        holdout.score(chance, metric="brier", guess=0.3),
        holdout.score(chance, metric="log_loss"),
        holdout.score(one, metric=own),
        holdout.compare(one, low, margin=0),
        holdout.compare(low, one, margin=0.1),
        holdout.compare(one, two, margin=0.3),
        holdout.compare(one, low, guess=0.3),
        holdout.compare(one, chance, metric="brier", precise=True),
        holdout.compare(one, two, metric=own, precise=True),
        holdout.best([low, one, two]),
        holdout.best([low, one, two], metric=own),
        holdout.scores([said(frame, 0.75, 4), said(frame, 0.77, 5)], guesses=[0.75, None]),
        holdout.scores([said(frame, 0.7, 6), said(frame, 0.72, 7)], precise=True),
        holdout.ask(texts["avg(x)"], grid=GRID),
        holdout.interval(texts["avg(x)"], grid=GRID, guess=0.5),
        holdout.score(said(frame, 0.8, 8), guess=0.95),  # a surprise below
        *(holdout.score(each) for each in fitted),  # too good on open rows
        holdout.score(said(frame, 0.9, 10), guess=0.9, precise=True),
    ]


def ask_without_guesses(holdout: hf.Holdout, frame: pd.DataFrame) -> list[Any]:
    """Where nothing is open and nobody guesses."""
    one, low = said(frame, 0.9), said(frame, 0.6, 2)
    return [
        holdout.mean("x > 0.25"),
        holdout.score(one),
        holdout.mean("x * 1", range=(0, 1)),
        holdout.mean("x > 0.25", where="who = 'a'"),
        holdout.gate(one, at_least=0.8),
        holdout.gate(low, at_least=0.7),
        holdout.gate(said(frame, 0.65, 3), at_least=0.8),  # the last verdict is expected
        holdout.compare(one, low),
        holdout.compare(one, low, margin=0.05),
        holdout.scores([said(frame, 0.7, 4), said(frame, 0.75, 5)]),
        holdout.ask("avg(x)", grid=GRID),
    ]


def ledger_rows(path: Path) -> list[Body]:
    """What the ledger keeps: the first row, and every answer."""
    with SqliteLedger.open(path / "ledger.sqlite") as ledger:
        return [row.body for row in ledger.rows()]


def history(holdout: hf.Holdout, language: str) -> list[Body]:
    """What each answer told: its letter, what it cost and claims, and all sums."""
    return [_numbers(each) for each in ask_everything(holdout, table(), language)]


def _numbers(answer: Told) -> Body:
    names = ("letter", "told", "level", "low", "high", "value", "guess", "expected", "told_so_far")
    found = {name: getattr(answer, name) for name in (*names, "cached")}
    return {**found, "batch": [_numbers(each) for each in answer.batch]}


def in_shards(holdout: hf.Holdout, folder: Path, engine: str | None = None) -> None:
    """Ask the same blocks in five files."""
    opened = holdout._open
    ids = (holdout.path / IDS_FILE).read_bytes()
    opened.store = sharded(opened.store, folder, [1, 30, 31, 70])
    (folder / IDS_FILE).write_bytes(ids)
    opened.store.ranges, opened.store.values = opened.spec.ranges, opened.spec.values
    opened._engines.close()
    opened._engines = open_engines(opened.store, Limits(workers=1), engine)
