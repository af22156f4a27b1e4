"""Ask two servers whose holdouts differ in one unit the same questions, and compare all they tell.

    python -m tools.neighbours --questions 1000

All rows are alike but one, which only one of the two holdouts has: an outlier with a secret name.
The coins of the plans are then as good as certain, for both, so that even what is answered must be
the same; a pair whose recorded bits differ would show as a difference too. Compared are status,
headers, the whole body, the error to the letter, what is left afterwards, the counts of `/metrics`
and the facts that go into the log. Left out: receipts, ids, times. Exit status 1 if any differ.

The holdouts of one pair tell their answers: nothing of theirs is open, and guesses are such that
one unit changes no letter.

With `--timed N` also N questions by the real clock, in real slots: which slot each one ended in, by
the server's own clock, on both sides. On a machine that does nothing else 99 % of the pairs are the
same; where they differ, load and not the data must decide which side takes longer: exit status 1 if
a sign test says otherwise, with a false alarm once in a million runs. And N questions to two tables
that differ in most rows, of which one has twenty times as many that take the long branch of a CASE.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from fastapi.testclient import TestClient

from holdfast.client.wire import content_of, contents_of
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.protocols.told import ToldPlan
from holdfast.server.app import create_app
from holdfast.server.schedule import Pacing, slot_end
from holdfast.server.settings import Settings
from tests.holdout import plans
from tools.neighbours_page import written

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "engines" / "sql" / "golden.txt"
SECRET = "SECRET-4711"
_LEFT_OUT = ("receipt", "request", "id", "at", "holdout")
_TIMES = ("x-request-id", "content-length")  # receipts are as long as their row's number
_COUNTED = ("holdfast_requests_total", "holdfast_answers_total", "holdfast_budget", "holdfast_rec")

# Every estimator is 1 on an ordinary block; `{k}` makes each question another one.
ESTIMATORS = [
    "avg(x) + 0 * {k}",
    "min(x) + 0 * {k}",
    "max(x) + 0 * {k}",
    "ln(min(x)) + 1 + 0 * {k}",
    "sqrt(min(x)) + 0 * {k}",
    "1 / min(x) + 0 * {k}",
    "sum(x * 1e308) / 1e308 + 0 * {k}",
    "exp(1e308 * (1 - avg(x))) + 0 * {k}",
    "avg(1 / (x + 1e308)) + 1 + 0 * {k}",
    "count(x) * 9223372036854775807 / 9223372036854775807 + 0 * {k}",
    "min(case when name = 'SECRET-4711' then 0.0 / 0 else 1 end) + 0 * {k}",
    "count(*) filter (where x > 0) + 0 * {k}",
    "median(x) + 0 * {k}",
    "greatest(max(x), 1) + 0 * {k}",
]
CONDITIONS = [
    None,
    "x < 0",
    "name = 'SECRET-4711'",
    "starts_with(name, 'SEC')",
    "1 / (x - 1) > 0",
    "ln(x) > -1",
    "x * 1e308 < -1",
    "name is not null",
]
TERMS = ["x > 0", "1 / x", "name = 'name'", "least(greatest(x, 0), 1)", "sqrt(x)", "ln(x) + 1"]
UNBOUNDED = ("1 / x", "sqrt(x)", "ln(x) + 1")  # they need a range
CLAIMS = ["equals", "at least", "at most"]
ROWS = 600  # of a holdout that tells
SEALED = {"ids": "id", "target": "y", "labels": [0, 1], "open_fraction": 0}
# Addresses with candidates' names and how often they are wrong; some must be refused.
SCORED: list[tuple[str, dict[str, int], dict[str, Any]]] = [
    ("score", {"": 60}, {"guess": 0.9}),
    ("score", {"": 120}, {"guess": 0.2, "metric": "error_rate", "precise": True}),
    ("compare", {"b": 60, "a": 120}, {"guess": 0.1}),
    ("compare", {"b": 60, "a": 120}, {"margin": 0, "metric": "brier"}),
    ("gate", {"": 60}, {"at_least": 0.7}),
    ("gate", {"predictions": 120, "better_than": 60}, {}),
    ("best", {"a": 120, "b": 60}, {}),
    ("scores", {"a": 120, "b": 60}, {"guesses": "0.8,0.9"}),
    ("enter", {"": 60}, {"name": "{k}", "guess": 0.9}),
    ("price/score", {"": 60}, {"guess": 0.9}),
    ("price/best", {"a": 120, "b": 60}, {"precise": True}),
    ("neighbours", {}, {"top": 2}),
    ("price/neighbours", {}, {"top": 3}),
    ("score", {"": 60}, {"metric": "nothing"}),
    ("score", {"": 60}, {"guess": 7}),
    ("gate", {"": 60}, {}),
    ("compare", {"a": 60}, {}),
    ("neighbours", {}, {"top": 1}),
    ("enter", {"": -1}, {"name": "{k}"}),
]


def _refused() -> list[str]:
    lines = GOLDEN.read_text("utf-8").splitlines()
    return [line.split(" !! ")[0].strip() for line in lines if " !! " in line and line[0] != "#"]


REFUSED = [
    *_refused(),
    "avg(nobody)",
    "avg(cast(name as double))",
    "count(*) filter (where name = 5)",
    "error(name)",
    "avg(__unit)",
]


def _questions() -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Verb, body, and whether it is asked as a job: no two alike, good and bad in turn."""
    grids: list[Any] = ["-1:1:2", [-1, 1], {"low": -1, "high": 1, "points": 2}]
    bad = itertools.cycle(REFUSED)
    for k in itertools.count():
        estimator = ESTIMATORS[k % len(ESTIMATORS)].format(k=k)
        where = CONDITIONS[(k // 3) % len(CONDITIONS)]
        # Two points, some of them where no value can lie, are meant here.
        more: dict[str, Any] = (
            {"anyway": True} if where is None else {"anyway": True, "where": where}
        )
        asked = {"estimator": estimator, "grid": grids[k % 3], **more}
        guess = {"estimator": estimator, "guess": 1 if k % 4 else -5, **more}
        yield "ask", asked, k % 10 == 0
        yield "ask", {**asked, "estimator": next(bad)}, False
        if k % 2:
            yield "verify", {**guess, "claim": CLAIMS[k % 3]}, False
            yield "interval", asked, False
        else:
            yield "correct", {**guess, "grid": "-1:1:2"}, False
            term = TERMS[k % len(TERMS)]
            ends = {"range": [-1, 1]} if term in UNBOUNDED else {}
            text = f"{term} and {k} >= 0" if " > " in term else term
            yield "mean", {"term": text, **ends, **more}, False
        if k % 5 == 0:
            yield "price", {"verb": "ask", **asked}, False
            yield "ask", {**asked, "where": next(bad).removeprefix("where: ")}, False
            yield "verify", {"estimator": next(bad), "guess": 1}, False


def _told_questions() -> Iterator[tuple[str, dict[str, Any], bool]]:
    """The same with guesses, in turn with predictions and with what is refused of them."""
    for k, (verb, body, job) in enumerate(_questions()):
        place, given, words = SCORED[k % len(SCORED)]
        words = {name: str(value).format(k=k) for name, value in words.items()}
        yield place, {"given": {name: [k, wrong] for name, wrong in given.items()}, **words}, False
        guess = {"guess": 1} if verb in ("ask", "interval", "mean") else {}
        yield verb, {**body, **guess}, job


def _predicted(k: int, wrong: int) -> dict[int, int]:
    """1 for all rows but so many; less than none: without a row."""
    return {i: int((7 * i + k) % ROWS >= wrong) for i in range(ROWS + min(0, wrong))}


def table(rows: int, number: int, *, secret: bool) -> pd.DataFrame:
    """Rows that are all alike, but for a mark that makes tables different, and one perhaps."""
    x = np.ones(rows)
    name = np.full(rows, "name", dtype=object)
    if secret:
        x[0], name[0] = -1e308, SECRET
    return pd.DataFrame({"x": x, "name": name, "mark": np.arange(rows) + 10**6 * number})


def skewed(rows: int, number: int, *, secret: bool) -> pd.DataFrame:
    """Rows of which few or most are above any threshold."""
    random = np.random.default_rng(number)
    few = np.where(random.random(rows) < 0.03, 50.0, 0.0)
    return pd.DataFrame({"x": random.exponential(10, rows) if secret else few})


def labelled(rows: int, number: int, *, secret: bool) -> pd.DataFrame:
    """The same with ids, and labels of which one differs."""
    ids = np.arange(rows)
    return table(rows, number, secret=secret).assign(id=ids, y=1 - (secret & (ids == 0)))


class Side:
    """One of two servers."""

    def __init__(self, folder: Path, data: pd.DataFrame, plan: Any, slot: float, stack: ExitStack):
        self.path = folder / "h"
        more: Any = SEALED if isinstance(plan, ToldPlan) else {}
        Holdout.create(self.path, data, plan, **more).close()
        with Holdout.open(self.path) as holdout:
            _, self.token = holdout.access.grant("custodian", nats=None)
        app = create_app(Settings(folders=(self.path,), slot=slot, rate=1e6, burst=10**6))
        self.client = stack.enter_context(TestClient(app, base_url="http://127.0.0.1"))
        self.grant = self.token.split("_")[1]
        self._headers = {"Authorization": f"Bearer {self.token}"}
        self._place = "/api/holdouts/h"

    def see(self, verb: str, body: dict[str, Any], *, job: bool) -> dict[str, Any]:
        """All that is told of a question."""
        if job:
            return self._job({"verb": verb, **body})
        if "given" in body:
            return self._scored(verb, **body)
        return self._told(
            self.client.post(f"{self._place}/{verb}", json=body, headers=self._headers)
        )

    def _scored(self, place: str, given: dict[str, list[int]], **words: str) -> dict[str, Any]:
        made = {name: _predicted(*each) for name, each in given.items()}
        sent = content_of(made[""]) if "" in made else contents_of(made) if made else None
        kind = {} if sent is None else {"Content-Type": sent.kind}
        told = self.client.post(
            f"{self._place}/{place}",
            params=words,
            content=None if sent is None else sent.data,
            headers={**self._headers, **kind},
        )
        return self._told(told)

    def _job(self, body: dict[str, Any]) -> dict[str, Any]:
        begun = self.client.post(f"{self._place}/jobs", json=body, headers=self._headers)
        if begun.status_code != 202:
            return self._told(begun)
        place = f"{self._place}/jobs/{begun.json()['id']}"
        for _ in range(5_000):
            told = self.client.get(place, headers=self._headers)
            if told.json()["state"] not in ("queued", "running"):
                return self._told(told)
            time.sleep(0.002)
        raise TimeoutError("a job did not end within ten seconds")

    def left(self) -> dict[str, Any]:
        """What is left, and the counts."""
        told = {
            name: self._told(self.client.get(f"{self._place}/{name}", headers=self._headers))
            for name in ("status", "left", "columns", "leaderboard")
        }
        lines = self.client.get("/metrics", headers=self._headers).text.splitlines()
        kept = [line for line in lines if line.startswith(_COUNTED) and "/jobs/" not in line]
        return {**told, "counts": kept}

    def _told(self, response: Any) -> dict[str, Any]:
        headers = {k: v for k, v in response.headers.items() if k not in _TIMES}
        return {"status": response.status_code, "headers": headers, "body": _plain(response.json())}


def _plain(told: Any) -> Any:
    """What was told, but for what differs between any two holdouts."""
    if isinstance(told, dict):
        return {key: _plain(value) for key, value in told.items() if key not in _LEFT_OUT}
    return [_plain(each) for each in told] if isinstance(told, list) else told


@dataclass
class Compared:
    """What was asked of pairs, and where they differed."""

    questions: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    differences: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def differ(self, question: object, told: list[Any]) -> None:
        """Keep a difference."""
        self.differences[json.dumps(question)] = json.dumps(told)[:2000]


@contextmanager
def pair(
    plan: Any, slot: float = 0.001, data: Any = None, rows: int | None = None
) -> Iterator[tuple[Side, Side]]:
    """Two servers of neighbours."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="neighbours-")))
        stack.enter_context(patch.dict(os.environ, {"HOLDFAST_STATE": str(folder / "state")}))
        sides, told = [], isinstance(plan, ToldPlan)
        data, rows = data or (labelled if told else table), ROWS if told else rows
        for secret in (False, True):
            (folder / str(secret)).mkdir()
            number = 2 * time.monotonic_ns() % 10**9 + secret
            made = data(rows or plan.blocks, number, secret=secret)
            sides.append(Side(folder / str(secret), made, plan, slot, stack))
        yield sides[0], sides[1]


def compare(questions: int, plan: Any, compared: Compared) -> None:
    """Ask a new pair so many questions."""
    start = time.monotonic()
    log: list[dict[str, Any]] = []
    with patch("holdfast.server.middleware.log_request", log.append), pair(plan) as sides:
        asked = _told_questions() if isinstance(plan, ToldPlan) else _questions()
        for verb, body, job in itertools.islice(asked, questions):
            told = [side.see(verb, body, job=job) for side in sides]
            compared.questions += 1
            kind = told[0]["body"].get("error") or {}
            compared.statuses[f"{verb} {told[0]['status']} {kind.get('kind', '')}".strip()] += 1
            if told[0] != told[1]:
                compared.differ([verb, body], told)
        left = [side.left() for side in sides]
        if left[0] != left[1]:
            compared.differ("what is left", left)
        logged = [_logged(log, side.grant) for side in sides]
        if logged[0] != logged[1]:
            compared.differ("the log", logged)
        checked = [check_holdout(side.path).passed for side in sides]
        if not all(checked):
            compared.differ("the check", checked)
    compared.seconds += time.monotonic() - start


def _logged(log: list[dict[str, Any]], grant: str) -> list[dict[str, Any]]:
    """What the log says of one side; how often a job was looked at is up to the client."""
    hidden = ("seconds", "request", "token")
    return [
        {name: value for name, value in facts.items() if name not in hidden}
        for facts in log
        if facts.get("token") == grant and "{job}" not in facts["route"]
    ]


def timed(questions: int, slot: float, kind: str = "plain") -> list[tuple[int, int]]:
    """Which slot each of so many questions ended in, on both sides; either goes first in turn.

    What is told has two slots: the rows are read in the first, the letter is found in the second.
    """
    ends: list[int] = []
    wait = Pacing.wait

    def watched(pacing: Pacing) -> None:
        assert pacing.planned is not None
        start, end = pacing.planned
        now = time.monotonic()
        seen = end - start if now <= end else slot_end(now - start, slot)
        ends.append(round(math.log2(seen / slot)))
        wait(pacing)

    found: list[tuple[int, int]] = []
    more: dict[str, Any] = {"data": skewed, "rows": 60_000} if kind == "skewed" else {}
    plan = plans.told() if kind == "told" else plans.crowd()
    with patch.object(Pacing, "wait", watched), pair(plan, slot, **more) as sides:
        for k in range(-2, questions):  # the first ones start the engines
            verb, body = KINDS[kind](k)
            both = []
            for side in sides if k % 2 else sides[::-1]:
                ends.clear()
                assert side.see(verb, body, job=False)["status"] == 200
                both.append([*ends])
            pairs = zip(*(both if k % 2 else both[::-1]), strict=True)
            found += pairs if k >= 0 else ()
    return found


def _plainly(k: int) -> tuple[str, dict[str, Any]]:
    text = ESTIMATORS[k % len(ESTIMATORS)].format(k=k)
    body = {"estimator": text, "grid": "-1:1:2", "anyway": True}
    where = CONDITIONS[(k // 3) % len(CONDITIONS)]
    return "ask", body if where is None else {**body, "where": where}


def _telling(k: int) -> tuple[str, dict[str, Any]]:
    """A mean, or a score."""
    if k % 2:
        return "score", {"given": {"": [k, 60]}, "guess": "0.9"}
    return "mean", {"term": f"x > 0 and {k} >= {k}", "guess": 1}


def _branching(k: int) -> tuple[str, dict[str, Any]]:
    """A CASE whose first branch takes long, for the rows that take it."""
    long = " + ".join(f"sin(power(x + {k}.{i}1, 1.7))" for i in range(10 + 30 * (k % 2)))
    text = f"avg(CASE WHEN x > {(15, 7, 3)[k % 3]} THEN {long} ELSE 0 END)"
    return "ask", {"estimator": text, "grid": "-1:1:2", "anyway": True}


KINDS = {"plain": _plainly, "skewed": _branching, "told": _telling}


def by_chance(pairs: list[tuple[int, int]]) -> float:
    """How often a fair coin is as uneven as the sides of the pairs that differ (two-sided)."""
    more, less = (sum(sign * (a - b) > 0 for a, b in pairs) for sign in (1, -1))
    tail: int = sum(math.comb(more + less, k) for k in range(max(more, less), more + less + 1))
    return min(1.0, tail / 2.0 ** (more + less - 1))


PLANS: dict[str, Callable[[], Any]] = {
    "crowd": plans.crowd,
    "mixed": plans.mixed,
    "told": plans.told,
}


def shares(questions: int) -> dict[str, int]:
    """How many questions each pair gets; the first is asked for more than it can pay."""
    mixed = min(questions, max(60, 2 * questions // 5))
    told = (questions - mixed) // 2
    return {"mixed": mixed, "crowd": questions - mixed - told, "told": told}


def campaign(questions: int) -> Compared:
    """Ask so many questions of pairs; what differed counts if it differs on other pairs too.

    A coin that lands on its unlikely side, once in ten million looks, does not do so twice.
    """
    compared, again = Compared(), Compared()
    for name, share in shares(questions).items():
        compare(share, PLANS[name](), compared)
    if compared.differences:
        for name, share in shares(questions).items():
            compare(share, PLANS[name](), again)
    for question in set(compared.differences) - set(again.differences):
        del compared.differences[question]
    return compared


def main(words: list[str]) -> int:
    """Compare, tell, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.neighbours", description=__doc__)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--timed", type=int, default=0, help="at most 490")
    parser.add_argument("--slot", type=float, nargs="+", default=[0.05])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--output", type=Path, default=None, help="the page to write")
    wanted = parser.parse_args(words)
    start = time.monotonic()
    compared = campaign(wanted.questions)
    told: dict[str, Any] = {"questions": compared.questions, "differences": compared.differences}
    told["timed"] = [
        {
            "slot": slot,
            "kind": kind,
            "questions": wanted.timed,
            "pairs": len(pairs),
            "same_slot": sum(one == other for one, other in pairs),
            "by_chance": by_chance(pairs),
            "slots": dict(sorted(Counter(each for both in pairs for each in both).items())),
        }
        for slot in (wanted.slot if wanted.timed else ())
        for kind in KINDS
        for pairs in [timed(wanted.timed, slot, kind)]
    ]
    if wanted.output is not None:
        wanted.output.write_text(written(told, compared.statuses, words, start), "utf-8")
    if wanted.json:
        print(json.dumps({**told, "statuses": compared.statuses, "seconds": compared.seconds}))
    else:
        print(f"{compared.questions:,} questions, {len(compared.differences)} differences")
        for kind, count in sorted(compared.statuses.items()):
            print(f"{count:7,}  {kind}")
        for facts in told["timed"]:
            print(f"{facts['same_slot']} of {facts['pairs']} pairs ended in the same slot; {facts}")
        for question, seen in itertools.islice(compared.differences.items(), 20):
            print(question, seen)
    uneven = any(facts["by_chance"] < 1e-6 for facts in told["timed"])
    return 1 if compared.differences or uneven else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
