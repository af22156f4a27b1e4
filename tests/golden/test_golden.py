"""Golden holdouts: one history for every protocol, and every byte of what it tells.

The clock stands, entropy and names are fixed, so that the ledger's rows with their hashes, answers,
`check`, `status --json` and what HTTP says are the same each time, in either ledger. A change of
the code that is meant to change nothing changes none of them; one that is meant to, writes them:

    HOLDFAST_GOLDEN=write pytest tests/golden
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

import holdfast as hf
from holdfast.cli.app import run
from holdfast.errors import HoldfastError
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.server.app import create_app
from holdfast.server.settings import Settings
from tests.holdout import plans
from tests.test_told import STUDY, world

FOLDER = Path(__file__).parent
POINTS = hf.grid(0, 1, points=8)
SHARES = hf.grid([0.25, 0.5, 0.75, 1])
Facts = dict[str, Any]


def rows(count: int) -> pd.DataFrame:
    """Numbers that no generator of random ones decides."""
    number = np.arange(count)
    x = (number * 7919 % 1009) / 1009
    return pd.DataFrame(
        {
            "x": x,
            "y": (number % 4 > 0).astype(np.int64),
            "g": np.where(number % 3, "b", "a"),
            "id": number,
        }
    )


def weighted(plan: Any) -> tuple[pd.DataFrame, Facts]:
    frame = pd.DataFrame({"y": (np.arange(plan.blocks) % 4 > 0).astype(np.int64)})
    return frame, {"universe": {"y": [0, 1]}, "block_units": 1}


PLANS: dict[str, Callable[[], Any]] = {
    "estimate-interval-verify": plans.mixed,
    "estimate": plans.estimates,
    "simple": plans.simple,
    "amplified": plans.amplified,
    "direct-mean": plans.direct,
    "median-mean": plans.medians,
    "rounds": plans.rounds,
    "split": plans.split,
    "gate": plans.gates,
    "leaderboard": plans.board,
    "score": plans.scores,
    "weights": plans.weights,
    "told": plans.told,
}


def blocks_of(plan: Any) -> int:
    if plan.past() is not None:
        return 600
    parts = getattr(plan, "parts", ())
    return int(plan.blocks * max((getattr(part, "subblocks", 1) for part in parts), default=1))


def told(work: Callable[[], Any]) -> Any:
    """What a call says: plain data, or its error."""
    try:
        result = work()
    except HoldfastError as error:
        return f"{type(error).__name__}: {error}"
    return result.to_dict() if hasattr(result, "to_dict") else result


def history(holdout: Holdout, frame: pd.DataFrame) -> Facts:
    """The same questions to every plan; those that it cannot answer are refused."""
    column = "x" if "x" in frame else "y"
    asked: dict[str, Callable[[], Any]] = {
        "price": lambda: holdout.price("ask", f"avg({column})", grid=POINTS),
        "ask": lambda: holdout.ask(f"avg({column})", grid=POINTS),
        "ask again": lambda: holdout.ask(f"avg({column})", grid=POINTS),
        "ask where": lambda: holdout.ask("avg(x)", where="g = 'b'", grid=POINTS),
        "ask Python": lambda: holdout.ask(lambda block: float(block.y.mean()), grid=SHARES),
        "interval": lambda: holdout.interval(f"avg({column})", grid=hf.grid(0, 1, points=4)),
        "verify": lambda: holdout.verify(f"avg({column})", 0.5, tolerance=0.25),
        "verify one side": lambda: holdout.verify(
            f"max({column})", 2.5, claim="at least", anyway=True
        ),
        "correct": lambda: holdout.correct("avg(y)", 0.5, grid=POINTS),
        "mean": lambda: holdout.mean("y"),
        "mean in a range": lambda: holdout.mean("x - y", range=(-1, 1)),
        "unknown column": lambda: holdout.ask("avg(nobody)", grid=POINTS),
    }
    if "id" in frame:
        right = frame.assign(prediction=frame["y"])[["id", "prediction"]]
        asked |= {
            "score": lambda: holdout.score(right),
            "enter": lambda: holdout.enter(right.assign(prediction=1), name="ones"),
            "gate": lambda: holdout.gate(right, at_least=0.5),
            "score precisely": lambda: holdout.score(right.assign(prediction=1), precise=True),
            "score off the guess": lambda: holdout.score(right.assign(prediction=0), guess=0.5),
            "compare": lambda: holdout.compare(right, right.assign(prediction=1), guess=0.2),
            "compare with a margin": lambda: holdout.compare(
                right, right.assign(prediction=1), margin=0
            ),
            "best": lambda: holdout.best([right, right.assign(prediction=1)]),
            "scores": lambda: holdout.scores([right, right.assign(prediction=1)], guesses=[1, 0.7]),
            "leaderboard": holdout.leaderboard,
        }
    found = {what: told(work) for what, work in asked.items()}
    return found | {"status": told(holdout.status), "transcript": holdout.transcript()}


def served(folder: Path) -> Facts:
    """What HTTP says of it."""
    settings = Settings(folders=(folder,), slot=0.001, rate=1e6, burst=10**6)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        place = "/api/holdouts/study"
        found = {path: client.get(place + path) for path in ("/status", "/transcript", "/columns")}
        asked = {"estimator": "avg(y) + 1", "grid": "0:2:0.5"}
        found["/ask"] = client.post(f"{place}/ask", json=asked)
        found["/ask again"] = client.post(f"{place}/ask", json=asked)
        found["/ask wrongly"] = client.post(f"{place}/ask", json={"estimator": "avg(nobody)"})
        found["/price"] = client.post(f"{place}/price", json={"verb": "ask", **asked})
        return {path: [reply.status_code, reply.json()] for path, reply in found.items()}


def golden(folder: Path, kind: str, capture: pytest.CaptureFixture[str], **more: Any) -> Facts:
    """Everything that one holdout tells."""
    plan = PLANS[kind]()
    if "weights" in kind:
        frame, given = weighted(plan)
    else:
        frame, given = rows(blocks_of(plan)), {"target": "y", "ids": "id", "ranges": {"x": (0, 1)}}
    with world(folder):
        with Holdout.create(STUDY, frame, plan, **given, **more) as holdout:
            found: Facts = {"python": history(holdout, frame)}
        found["http"] = served(Path(STUDY))
        assert run(["status", STUDY, "--json"]) == 0
        found["status --json"] = json.loads(capture.readouterr().out)
        with Holdout.open(STUDY) as again:
            found["ledger"] = [row.record() for row in again.journal.ledger.rows()]
        found["check"] = check_holdout(Path(STUDY)).to_dict()
    text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True, default=str)
    return dict(json.loads(text.replace(str(folder), "HERE")))


@pytest.mark.parametrize("kind", PLANS)
def test_a_holdout_tells_what_it_always_told(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = golden(tmp_path / "world", kind, capsys)
    compare(kind, found)


def compare(kind: str, found: Facts) -> None:
    """Against the file, or into it."""
    file = FOLDER / f"{kind}.json"
    if os.environ.get("HOLDFAST_GOLDEN") == "write":
        file.write_text(
            json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8"
        )
    known = json.loads(file.read_text("utf-8"))
    assert found["check"]["passed"]
    for door, what in itertools.chain.from_iterable(
        ((door, each) for each in known[door]) for door in ("python", "http")
    ):
        assert found[door][what] == known[door][what], (door, what)
    assert found == known
