"""The boosting attack on a leaderboard, by several tokens that work together.

    python -m tools.leaderboard_attack --submissions 1000 --tokens 5 --rows 20000 --seed 1

Labels are fair coins that nobody can predict: in truth every submission has an accuracy of 1/2. The
attackers submit random predictions, turn those that scored below 1/2 around, and submit the vote of
all of them (Blum & Hardt 2015, "The Ladder", section 4, who only drop the bad ones). A leaderboard
that shows exact accuracies on its own labels believes the vote. The same attack is run against the
leaderboard of a real server, in this process or, with --over-http, in one of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outcome", "attack", "in_process", "labels_of", "make_board"]

TRUTH = 0.5
NAME = "board"
_START_SECONDS = 60.0

Bits = NDArray[np.int64]
Scores = Callable[[int, Bits], float]


@dataclass(frozen=True)
class Outcome:
    """What both leaderboards say at the end, and what is true."""

    rows: int
    submissions: int
    tokens: int
    naive_best: float
    """The best accuracy that a leaderboard with exact scores shows."""
    reported_best: float
    """The best that Holdfast's shows, with its bar."""
    low: float
    high: float
    vote_on_rows: float
    """What the vote against Holdfast really scores on the sealed labels: what was given away."""
    false_bars: int
    """Entries whose bar does not contain the truth."""
    entries: int
    half_width: float
    """Promised for all submissions at once."""
    seconds: float

    @property
    def naive_error(self) -> float:
        """By how much the naive leaderboard is fooled."""
        return self.naive_best - TRUTH

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.submissions:,} submissions by {self.tokens} tokens, {self.rows:,} labels, "
                f"true accuracy {TRUTH:g} ({self.seconds:.0f} s)",
                f"  naive      best {self.naive_best:.4f}: off by {100 * self.naive_error:.1f} "
                "points",
                f"  holdfast   best {self.reported_best:.4f} in [{self.low:.4f}, {self.high:.4f}]; "
                f"{self.false_bars} of {self.entries} bars miss the truth; promised "
                f"±{self.half_width:.4f}",
                f"  given away vote of {self.vote_on_rows:.4f} on the labels themselves",
            ]
        )


def submitted(scores: Scores, rows: int, submissions: int, seed: int) -> Bits:
    """Run the attack on whatever gives scores; the vote, which is the last submission."""
    chance = np.random.default_rng(seed)
    votes = np.zeros(rows)
    for number in range(submissions - 1):
        predictions = chance.integers(0, 2, rows)
        score = scores(number, predictions)
        votes += np.sign(score - TRUTH) * (2 * predictions - 1)
    vote = (votes > 0).astype(np.int64)
    scores(submissions - 1, vote)
    return vote


def labels_of(rows: int, seed: int) -> Bits:
    """Fair coins."""
    return np.random.default_rng((seed, 7)).integers(0, 2, rows)


def make_board(
    folder: Path, labels: Bits, plan: Any, tokens: int, seed: int | None = None
) -> list[str]:
    """A holdout of the labels, and tokens for those who attack it."""
    import pandas as pd

    from holdfast.holdout.holdout import Holdout

    frame = pd.DataFrame({"id": np.arange(len(labels)), "label": labels})
    with Holdout.create(folder, frame, plan, ids="id", target="label", seed=seed) as holdout:
        grants = [holdout.access.grant("analyst", name=f"team-{k}") for k in range(tokens)]
    return [token for _, token in grants]


def attack(
    client: Any, tokens: list[str], labels: Bits, plan: Any, submissions: int, seed: int
) -> Outcome:
    """The attack on a server that `client` reaches, and on exact scores of the same labels."""
    start, rows = time.monotonic(), len(labels)
    exact: list[float] = []

    def naive(_: int, predictions: Bits) -> float:
        exact.append(float(np.mean(predictions == labels)))
        return exact[-1]

    submitted(naive, rows, submissions, seed)
    vote = submitted(lambda n, p: _score(client, tokens, n, p), rows, submissions, seed)
    told = _get(client, tokens[0], "leaderboard", {"metric": "accuracy"})
    entries = told["entries"]
    best = entries[0]
    return Outcome(
        rows=rows,
        submissions=submissions,
        tokens=len(tokens),
        naive_best=max(exact),
        reported_best=best["value"],
        low=best["low"],
        high=best["high"],
        vote_on_rows=float(np.mean(vote == labels)),
        false_bars=sum(not each["low"] <= TRUTH <= each["high"] for each in entries),
        entries=len(entries),
        half_width=plan.part("mean").half_width,
        seconds=time.monotonic() - start,
    )


def _score(client: Any, tokens: list[str], number: int, predictions: Bits) -> float:
    lines = "\n".join(f"{row},{value}" for row, value in enumerate(predictions))
    reply = client.post(
        f"/api/holdouts/{NAME}/enter",
        params={"metric": "accuracy", "name": f"submission {number}"},
        content=f"id,prediction\n{lines}\n".encode(),
        headers={
            "Authorization": f"Bearer {tokens[number % len(tokens)]}",
            "Content-Type": "text/csv",
        },
    )
    reply.raise_for_status()
    return float(reply.json()["value"])


def _get(client: Any, token: str, what: str, parameters: dict[str, str]) -> Any:
    reply = client.get(
        f"/api/holdouts/{NAME}/{what}",
        params=parameters,
        headers={"Authorization": f"Bearer {token}"},
    )
    reply.raise_for_status()
    return reply.json()


@contextmanager
def in_process(folder: Path) -> Iterator[Any]:
    """A client of an app in this process."""
    from fastapi.testclient import TestClient

    from holdfast.server.app import create_app
    from holdfast.server.settings import Settings

    settings = Settings(folders=(folder,), rate=1e6, burst=10**6, slot=0.001)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        yield client


@contextmanager
def over_http(folder: Path) -> Iterator[Any]:
    """A client of a server in a process of its own."""
    import httpx2

    program = str(Path(sys.executable).with_name("holdfast"))
    command = [program, "serve", str(folder), "--port", "0", "--json"]
    command += ["--rate", "1e6", "--burst", "1000000", "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = json.loads(server.stdout.readline())["url"]
            with httpx2.Client(base_url=url, timeout=_START_SECONDS) as client:
                yield client
        finally:
            server.terminate()


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, value in (("submissions", 1000), ("tokens", 5), ("rows", 20_000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--half-width", type=float, help="else the smallest that the rows allow")
    parser.add_argument("--over-http", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    from holdfast.planning.joint import joint_plan
    from holdfast.protocols.means import DirectMeans, score_plan

    plan = score_plan(given.submissions, given.rows)
    if given.half_width is not None:
        plan = joint_plan(DirectMeans(given.submissions, given.half_width), blocks=given.rows)
    labels = labels_of(given.rows, given.seed)
    with tempfile.TemporaryDirectory() as place:
        os.environ["HOLDFAST_STATE"] = f"{place}/state"  # of this run alone
        folder = Path(place) / f"{NAME}.holdfast"
        tokens = make_board(folder, labels, plan, given.tokens)
        with (over_http if given.over_http else in_process)(folder) as client:
            outcome = attack(client, tokens, labels, plan, given.submissions, given.seed)
    larger = 10 * given.rows
    wide = score_plan(given.submissions, larger).part("mean")
    promised = float(getattr(wide, "half_width", 0.0))
    if given.json:
        more = {"naive_error": outcome.naive_error, "rows_10": larger, "half_width_10": promised}
        print(json.dumps({**asdict(outcome), **more}, indent=2))
        return
    print(outcome)
    print(f"  at 10 times the labels, {larger:,}, the promise is ±{promised:.4f}")


if __name__ == "__main__":
    main()
