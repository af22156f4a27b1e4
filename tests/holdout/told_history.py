"""One history of told answers, to be asked on every engine and every ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import holdfast as hf
from holdfast.engines.source import Limits, open_engines
from holdfast.holdout.submissions import IDS_FILE
from holdfast.protocols.answers import Told
from tools.shards import sharded

__all__ = ["LANGUAGES", "create", "history", "in_shards"]

ROWS = 1_500
LANGUAGES = ("SQL", "Python")


def table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    x, late = rng.random(ROWS), rng.normal(30.0, 12.0, ROWS).round(1)
    frame = pd.DataFrame({"id": rng.permutation(ROWS) + 70, "x": x, "late": late})
    frame["y"] = (x + rng.normal(0, 0.3, ROWS) > 0.5).astype(int)
    frame["who"] = rng.choice(["a", "b", "c"], ROWS)
    return frame


def create(path: Path, **more: Any) -> hf.Holdout:
    """The same rows are sealed every time: it is seeded."""
    told: dict[str, Any] = {"ids": "id", "target": "y", "ranges": {"late": (-60, 120)}, "seed": 5}
    told |= {"new_budget": "the same history elsewhere", "limits": Limits(workers=1)}
    return hf.Holdout.create(path, table(), **(told | more))


def in_shards(holdout: hf.Holdout, folder: Path, engine: str | None = None) -> None:
    """Ask the same blocks in five files."""
    opened = holdout._open
    ids = (holdout.path / IDS_FILE).read_bytes()
    opened.store = sharded(opened.store, folder, [1, 30, 31, 70])
    (folder / IDS_FILE).write_bytes(ids)
    opened.store.ranges, opened.store.values = opened.spec.ranges, opened.spec.values
    opened._engines.close()
    opened._engines = open_engines(opened.store, Limits(workers=1), engine)


def cost(target: Any, predicted: Any) -> Any:
    return np.where(predicted < target, 5.0, 1.5) * (predicted != target)


def history(holdout: hf.Holdout, language: str) -> list[dict[str, Any]]:
    """What each answer told: its letter, what it cost and claims, and all sums."""
    frame, rng = table(), np.random.default_rng(3)

    def said(right: float) -> pd.DataFrame:
        wrong = rng.random(ROWS) > right
        given = pd.DataFrame({"id": frame.id, "prediction": np.where(wrong, 1 - frame.y, frame.y)})
        return given.sample(frac=1, random_state=4)

    one, two, three = said(0.9), said(0.88), said(0.6)
    chance = frame[["id"]].assign(prediction=(frame.x * 0.9 + 0.05).round(3))
    near = frame[["id"]].assign(prediction=(frame.late + rng.normal(0, 3, ROWS)).round(1))
    own = hf.row_metric(cost, range=(0, 5), greater_is_better=False)
    sql = language == "SQL"
    answers: list[Any] = [
        holdout.score(one),
        holdout.score(two, guess=0.88),
        holdout.score(three, guess=0.9),  # a surprise
        holdout.score(said(0.7), precise=True),
        holdout.score(chance, metric="brier"),
        holdout.score(chance, metric="log_loss"),
        holdout.score(near, metric="mae", target="late"),
        holdout.score(one, metric=own),
        holdout.compare(one, three, margin=0.0),
        holdout.compare(one, two),
        holdout.compare(one, two, metric=own, precise=True),
        holdout.gate(one, at_least=0.8),
        holdout.gate(two, better_than=three),
        holdout.best([three, one, two], metric=own),
        holdout.scores([said(0.75), said(0.77)], guesses=[0.75, None]),
        holdout.mean("x * 1" if sql else lambda f: f.x, range=(0, 1)),
        holdout.mean("late" if sql else lambda f: f.late, range=(-60, 120), precise=True),
        holdout.mean(
            "late / 60" if sql else lambda f: f.late / 60,
            where="who = 'a'" if sql else lambda f: f.who == "a",
            range=(-1, 2),
        ),
        holdout.ask("avg(late)" if sql else lambda f: f.late.mean(), grid=hf.grid(0, 60, step=0.5)),
    ]
    return [_numbers(each) for each in answers]


def _numbers(answer: Told) -> dict[str, Any]:
    names = ("letter", "told", "level", "low", "high", "value", "guess", "expected", "told_so_far")
    found = {name: getattr(answer, name) for name in names}
    return {**found, "batch": [_numbers(each) for each in answer.batch]}
