"""Ask the server everything its OpenAPI allows and forbids, and look for what must never come back.

    python -m tools.fuzz --cases 20000

Requests come from schemathesis, half of them valid and half broken on purpose. Most then get a
holdout that exists, a token that holds and a question that can be answered, or one that tries to
escape: so answers flow, budgets are exhausted, jobs run, and entries climb. Faults are: a status of
500 or above; an error that is not the one JSON body, or has the wrong status; a response that does
not fit its OpenAPI; a sealed value, a path, a token or its hash in any response; and a ledger that
does not check afterwards. Exit status 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import httpx2
import numpy as np
import pandas as pd
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from holdfast.client.wire import contents_of
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.tokens import hashed
from holdfast.protocols.told import told_plan
from holdfast.server import routes
from holdfast.server.app import create_app
from holdfast.server.errors import STATUS
from holdfast.server.schemas import FailureShape
from holdfast.server.service import Rates
from holdfast.server.settings import Settings
from holdfast.verbs import SCORES
from tests.holdout import plans

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "engines" / "sql" / "golden.txt"
SECRET_TEXT = "SECRET-4711-xq"
SECRET_NUMBERS = (31337.424242, -271828.182845)
_TRACES = ("Traceback", "site-packages", "File \\", "s.parquet", "n.parquet", ".sqlite")
_A_ROUND = 1_000  # cases with one set of holdouts, so that budgets are full again and again
_TURNS = 3  # requests of one case of schemathesis, which takes longer to make than to answer
_CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
_ROWS = 400  # of the holdout whose answers are counted by what they tell
_SCORED = ("board", "told")  # holdouts that have ids
_QUESTIONS = ("ask", "interval", "mean", "verify", "correct", "price", "jobs")
_KEYS = {*FailureShape.model_fields, "request"}


def _golden() -> list[str]:
    """The questions of the golden list, accepted and refused."""
    lines = GOLDEN.read_text("utf-8").splitlines()
    kept = [line for line in lines if line and not line.startswith("#")]
    return [re.split(r" -> | !! ", line)[0].strip().removeprefix("where: ") for line in kept]


ESTIMATORS = ["avg(x)", "max(w)", "sum(x)", "count(x)", "corr(x, y)", "stddev(w)", "min(x) / 0"]
ESCAPES = [
    *_golden(),
    "ln(min(w))",
    "count(x) * 9223372036854775807",
    "exp(1e308 * max(w))",
    "avg(x) filter (where arm = 5)",
    "avg(cast(arm as double))",
    "error(arm)",
    "(select max(arm) from t)",
    "avg(x); attach 'x.db'",
    "read_csv('/etc/passwd')",
    "getenv('HOME')",
    "avg(ｘ)",  # letters that only look like those of a column
    "avg(x)\u202e",
    "avg(x\x00)",
    "(" * 300 + "avg(x)" + ")" * 300,
    "avg(x)" + " + avg(x)" * 900,
    "f(x LIMIT " * 24 + "1" + ")" * 24,  # texts that a parser may read again and again
    "f(x LIMIT " * 40 + "1" + ")" * 40,
    "decimal(" * 40 + "x" + ")" * 40,
    "avg(CASE WHEN x THEN " * 30 + "x" + " END)" * 30,
]
CONDITIONS = ["x > 5", "w > 30000", "arm = 'A'", "y = 1", "arm = 1", "1 / 0 > 0", "x", "arm < 'S'"]
GRIDS: list[Any] = [
    *("0:7:1", "0:1:1", "0:1e308:1e307", "7:0:1", "0:1:1e-300", "nan:1:1", "0,1,5", ""),
    *([0, 1], [1, 1], [0.5], [], {"low": 0, "high": 1, "points": 2}, {"low": None}, {"a": [{}]}),
]
BODIES = [b"", b"{", b"\xff\xfe", b"null", b"[" * 20_000, b'{"estimator":' + b"9" * 5_000 + b"}"]


def table(rows: int, number: int) -> pd.DataFrame:
    """A table like no other, with the columns of the golden list, and secrets in a few rows."""
    generator = np.random.default_rng(number)
    arm = generator.choice(["A", "B", "C"], rows).astype(object)
    w = generator.normal(0.0, 1.0, rows)
    for place, value in enumerate(SECRET_NUMBERS * 2):
        arm[place], w[place] = SECRET_TEXT, value
    moment = pd.Timestamp("2020-01-01")
    return pd.DataFrame(
        {
            "x": generator.normal(5.0, 1.0, rows),
            "y": generator.integers(0, 2, rows),
            "w": w,
            "arm": arm,
            "flag": generator.random(rows) < 0.5,
            "Arr Delay": generator.random(rows),
            "order": generator.random(rows),
            "born": [(moment + pd.Timedelta(days=int(d))).date() for d in range(rows)],
            "seen": [moment + pd.Timedelta(hours=int(h)) for h in range(rows)],
            "row": [f"r{(7 * k) % rows}" for k in range(rows)],
            "mark": np.arange(rows) + 10**6 * number,
        }
    )


@dataclass
class World:
    """Holdouts behind one server, and tokens of every sort for them."""

    folder: Path
    client: TestClient
    tokens: dict[str, list[str]]
    targets: dict[str, str]
    secrets: tuple[str, ...]
    predictions: dict[str, list[bytes]]
    jobs: list[tuple[str, str]] = field(default_factory=lambda: [("study", "0" * 24)])

    plans: ClassVar[dict[str, Callable[[], Any]]] = {
        "study": plans.mixed,
        "crowd": plans.crowd,
        "board": plans.board,
        "told": lambda: told_plan(_ROWS),
    }

    @property
    def names(self) -> list[str]:
        """The holdouts."""
        return list(self.tokens)


def _sealed(folder: Path, name: str, number: int) -> tuple[list[str], str, list[bytes]]:
    """A new holdout: its tokens, the id of one to be played with, and predictions for it."""
    plan = World.plans[name]()
    frame = table(_ROWS if name == "told" else plan.blocks, number)
    more: dict[str, Any] = {"ids": "row", "target": "y"} if name in _SCORED else {}
    kept = frame if more else frame.drop(columns="row")
    with Holdout.create(folder / name, kept, plan, **more) as holdout:
        roles = ("custodian", "analyst", "viewer")
        tokens = [holdout.access.grant(role, nats=1e3)[1] for role in roles]  # type: ignore[arg-type]
        share = None if name == "told" else 0.01
        tokens.append(holdout.access.grant("analyst", quota=share, nats=1.0)[1])
        ended, token = holdout.access.grant("custodian")
        holdout.access.revoke(ended.id)
        target = holdout.access.grant("viewer")[0].id
    rows, guesses = frame["row"], frame["y"].to_numpy()
    keyed = dict(zip(rows, guesses.tolist(), strict=True))
    csv = ["row,prediction", *(f"{row},{guess}" for row, guess in keyed.items())]
    turned = [f"{line[:-1]}{1 - int(line[-1])}" for line in csv[1:]]
    text = ["\n".join(csv), "\n".join([csv[0], *turned]), "\n".join(csv[:-3]), "\n".join(csv * 2)]
    odd = [json.dumps(keyed), json.dumps({**keyed, "r0": None}), '{"r0": "\\ud800"}', "row\n"]
    return [*tokens, token], target, [each.encode() for each in (*text, *odd)]


@contextmanager
def world(number: int) -> Iterator[World]:
    """Fresh holdouts, served in this process."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        folder = Path(place)
        state = {"HOLDFAST_STATE": str(folder / "state")}
        with patch.dict(os.environ, state), patch.object(routes, "comparison", _no_planner):
            made = {
                name: _sealed(folder, name, 10 * number + k) for k, name in enumerate(World.plans)
            }
            tokens = {name: each[0] for name, each in made.items()}
            app = create_app(
                Settings(
                    folders=tuple(folder / name for name in made), slot=0.001, rate=1e6, burst=10**6
                )
            )
            app.state.service._failures = Rates(1e6, 10**6)
            every = [token for each in tokens.values() for token in each]
            secrets = (
                *(SECRET_TEXT, str(folder), *_TRACES, *every, *map(hashed, every)),
                *(f"{abs(number):.2f}" for number in SECRET_NUMBERS),
            )
            targets = {name: each[1] for name, each in made.items()}
            with TestClient(app, base_url="http://127.0.0.1") as client:
                predictions = {name: made[name][2] for name in _SCORED}
                yield World(folder, client, tokens, targets, secrets, predictions)


async def _no_planner(*_: object, **__: object) -> dict[str, Any]:
    """In the planner's place, which computes for seconds and never sees a holdout."""
    return {"methods": []}


_WORDS: dict[str, list[Any]] = {
    "guess_se": [0, 0.1, -1, 1e308],
    "precise": [True, False, None],
    "max_level": [0, 3.5, 1e9, -1],
    "estimator": [*ESTIMATORS * 15, *ESCAPES],
    "term": ["x > 5", "y", "y = 1", "w / 0", "arm = 'A'"],
    "where": [*CONDITIONS * 5, *ESCAPES],
    "grid": GRIDS,
    "range": [[0, 1], [-1, 1], [1, 0], [0], [0, 1e400], [5, 5.0], "0:1", None],
    "guess": [0, 5, -1e308, 1e308, 0.1, 10**400],
    "claim": ["equals", "at least", "most"],
    "tolerance": [0, 0.5, -1],
    "protocol": ["estimate", "verify", "mean", "nobody"],
}
_GOOD: dict[str, list[Any]] = {
    "estimator": ESTIMATORS,
    "term": ["x > 5", "y = 1", "least(greatest(x, 0), 1)"],
    "range": [None, None, [0, 1], [-10.5, 20]],
    "guess": [0, 1, 5, 7],
    "grid": ["0:7:1", "0:1:1", [0, 5]],
    "where": [None, None, *CONDITIONS[:4]],
}
_TURN: dict[str, list[Any]] = {
    "holdout": [*World.plans, *World.plans, None],
    "token": [0, 0, 1, 1, 1, 1, 1, 1, 2, 3, 4, None, "other", "keep"],
    "how": ["good", "good", "good", "mixed", "keep"],
    "verb": list(_QUESTIONS[:5]),
    "key": [None] * 8 + ["a", "b", "keep"],
    "body": [None] * 15 + list(range(len(BODIES))),
    "predictions": list(range(8)),
    "guess": [None, 0.5, 0.5, 0.5, 0.9, "nan", 7],
    "near": [True, False],
}


def _turn(*numbers: int) -> dict[str, Any]:
    """How a case of schemathesis is brought near to what the server would answer."""
    generator = np.random.default_rng(numbers)

    def one(choices: list[Any]) -> Any:
        return choices[generator.integers(len(choices))]

    turn = {name: one(choices) for name, choices in _TURN.items()}
    turn["good"] = {name: one(choices) for name, choices in _GOOD.items()}
    said = [name for name in _WORDS if generator.random() < 0.4]
    turn["words"] = {name: one(_WORDS[name]) for name in said}
    return turn


_FIELDS = {
    "ask": ("estimator", "where", "grid"),
    "interval": ("estimator", "where", "grid"),
    "mean": ("term", "where", "range"),
    "verify": ("estimator", "where", "guess"),
    "correct": ("estimator", "where", "grid", "guess"),
}


def _body(last: str, turn: dict[str, Any], generated: Any) -> Any:
    """The body of a question."""
    how, good, words = turn["how"], turn["good"], turn["words"]
    if how == "keep":
        return generated
    verb = last if last in _FIELDS else turn["verb"]
    named = {} if last in _FIELDS else {"verb": verb}
    kept = {name: good[name] for name in _FIELDS[verb] if good[name] is not None}
    return {**named, **kept} if how == "good" else {**named, **kept, **words}


@dataclass
class Campaign:
    """What was sent, what came back, and what was wrong with it."""

    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    made: int = 0
    """Cases of schemathesis; each is sent a few times, turned."""
    answers: int = 0
    exhausted: int = 0
    seconds: float = 0.0

    @property
    def requests(self) -> int:
        """How many requests were sent."""
        return sum(sum(each.values()) for each in self.statuses.values())

    def send(self, place: World, case: Any, turn: dict[str, Any]) -> None:
        """Send one case, turned, and look at what comes back."""
        last = case.operation.path.rpartition("/")[2]
        headers = _turned(place, case, turn)
        method, content = case.operation.method.upper(), None
        sent = case.as_transport_kwargs(base_url="http://127.0.0.1", headers=headers)
        given = sent["headers"]
        headers = {name: value for name, value in given.items() if name != "Accept-Encoding"}
        if last in _QUESTIONS and method == "POST":
            content = json.dumps(_body(last, turn, sent.get("json"))).encode()
        elif last in SCORES and turn["near"]:
            content, headers["Content-Type"] = _predictions(place, last, turn)
        elif last in SCORES and turn["predictions"]:  # a process for each Parquet
            content, headers["Content-Type"] = str(case.body).encode(), "text/csv"
        elif "json" in sent:
            content = json.dumps(sent["json"]).encode()
        elif isinstance(sent.get("data"), str | bytes):
            data = sent["data"]
            content = data.encode("utf-8", "replace") if isinstance(data, str) else data
        if content is not None and turn["body"] is not None:
            content = BODIES[turn["body"]]
        if last in _QUESTIONS and turn["how"] != "keep":
            headers["Content-Type"] = "application/json"
        raw = [
            (name.encode("latin-1", "replace"), _latin(value)) for name, value in headers.items()
        ]
        try:
            response = place.client.request(
                method, sent["url"], params=sent.get("params"), content=content, headers=raw
            )
        except httpx2.InvalidURL:  # longer than the client sends
            return
        self._look(place, case, response)

    def _look(self, place: World, case: Any, response: Any) -> None:
        operation = f"{case.operation.method.upper()} {case.operation.path}"
        status = response.status_code
        self.statuses.setdefault(operation, Counter())[status] += 1
        shown = response.text + json.dumps(dict(response.headers))
        found = [secret for secret in place.secrets if secret in shown]
        if found:
            self._fault(operation, response, f"it tells {found[0]!r}")
        if status >= 500:
            self._fault(operation, response, "a status of 500 or above")
        if status >= 400:
            wrong = _wrong_error(response)
            if wrong:
                self._fault(operation, response, wrong)
            else:
                self.exhausted += response.json()["error"]["kind"] == "exhausted"
        try:
            case.validate_response(response, checks=_CHECKS)
        except FailureGroup as group:
            for each in group.exceptions:
                self._fault(operation, response, f"{type(each).__name__}: {each}")
        if status == 202:
            place.jobs.append((case.path_parameters["holdout"], response.json()["id"]))
        self.answers += status == 200 and '"receipt"' in response.text and "/jobs" not in operation

    def _fault(self, operation: str, response: Any, what: str) -> None:
        self.faults.append(f"{operation} {response.status_code}: {what}: {response.text[:300]}")


def _turned(place: World, case: Any, turn: dict[str, Any]) -> dict[str, str]:
    """The headers, after names in the address were made to exist."""
    name = turn["holdout"]
    parameters = case.path_parameters
    if name is not None and "holdout" in parameters:
        parameters["holdout"] = name
        if turn["near"] and "job" in parameters:
            name, parameters["job"] = place.jobs[-1 - turn["predictions"] % len(place.jobs)]
            parameters["holdout"] = name
        if turn["near"] and "token" in parameters:
            parameters["token"] = place.targets[name]
    verb = case.operation.path.rpartition("/")[2]
    if turn["near"] and verb in SCORES:
        parameters["holdout"] = name = _SCORED[turn["guess"] is not None]
        metric = {
            "metric": ("accuracy", "accuracy", "f1", "brier", "nothing")[turn["predictions"] % 5]
        }
        guess = {} if turn["guess"] is None or name == "board" else {"guess": turn["guess"]}
        guess = {} if verb in ("best", "scores") else guess
        more: dict[str, dict[str, Any]] = {"gate": {"at_least": 0.5}, "enter": {"name": "n"}}
        case.query = {**metric, **guess, **more.get(verb, {})}
    headers = {str(key): str(value) for key, value in (case.headers or {}).items()}
    owner = name or place.names[0]
    if turn["token"] == "other":
        owner, turn = place.names[place.names.index(owner) - 1], {**turn, "token": 0}
    if turn["token"] is None:
        headers.pop("Authorization", None)
    elif turn["token"] != "keep":
        headers["Authorization"] = f"Bearer {place.tokens[owner][turn['token']]}"
    if turn["key"] != "keep":
        headers.pop("Idempotency-Key", None)
        headers |= {} if turn["key"] is None else {"Idempotency-Key": turn["key"]}
    return headers


def _predictions(place: World, verb: str, turn: dict[str, Any]) -> tuple[bytes, str]:
    """Predictions for a holdout that takes some, and their type."""
    given = place.predictions[_SCORED[turn["guess"] is not None]]
    one, other = given[turn["predictions"]], given[(turn["predictions"] + 1) % len(given)]
    if verb in ("compare", "best", "scores"):
        sent = contents_of({"a": given[0], "b": given[1] if turn["predictions"] % 2 else other})
        return sent.data, sent.kind
    return one, "application/json" if one[:1] == b"{" else "text/csv"


def _latin(value: object) -> bytes:
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return re.sub(r"[\r\n\0]", " ", text).encode("latin-1", "replace")


def _wrong_error(response: Any) -> str | None:
    """What is wrong with the body of an error, if anything is."""
    try:
        told = response.json()
        error = told["error"]
    except (ValueError, KeyError, TypeError):
        return "not the one JSON body of errors"
    if set(told) != {"error"} or not set(error) <= _KEYS or not {"kind", "message"} <= set(error):
        return "not the keys of an error"
    if STATUS.get(error["kind"]) != response.status_code:
        return f"kind {error['kind']!r} has another status"
    return None


def run(cases: int, number: int) -> Campaign:
    """A campaign of at least so many cases."""
    campaign, start, turn = Campaign(), time.monotonic(), 0
    while campaign.made < cases and turn < 10 + 4 * cases // _A_ROUND:
        with world(number + turn) as place:
            _round(campaign, place, min(_A_ROUND, cases - campaign.made), number + turn)
        turn += 1
    campaign.seconds = time.monotonic() - start
    return campaign


def run_all(cases: int, number: int, jobs: int) -> Campaign:
    """The same in several processes, each with its own holdouts."""
    if jobs == 1:
        return run(cases, number)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        parts = [pool.submit(run, -(-cases // jobs), number + 1000 * k) for k in range(jobs)]
        found = [part.result() for part in parts]
    whole = Campaign()
    for each in found:
        for name, statuses in each.statuses.items():
            whole.statuses.setdefault(name, Counter()).update(statuses)
        whole.faults += each.faults
        whole.made += each.made
        whole.answers += each.answers
        whole.exhausted += each.exhausted
        whole.seconds = max(whole.seconds, each.seconds)
    return whole


def _round(campaign: Campaign, place: World, cases: int, number: int) -> None:
    app: Any = place.client.app
    schema = schemathesis.openapi.from_dict(app.openapi())
    found: list[Any] = [each.ok() for each in schema.get_all_operations()]  # type: ignore[union-attr]
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    weights = [3 if _asks(each.path) else 1 for each in found]  # most of what can go wrong
    each = max(1, -(-cases // (2 * sum(weights))))
    for index, (operation, weight) in enumerate(zip(found, weights, strict=True)):
        for mode in modes:
            _ask(campaign, place, operation, mode, weight * each, 1000 * number + index)
    for name in place.names:
        if not check_holdout(place.folder / name).passed:
            campaign.faults.append(f"the ledger of {name} does not check")


def _asks(path: str) -> bool:
    return path.endswith(("/ask", "/interval", "/mean", "/verify", "/correct", *SCORES))


def _ask(
    campaign: Campaign, place: World, operation: Any, mode: Any, cases: int, number: int
) -> None:
    @seed(number)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        derandomize=False,
    )
    @given(operation.as_strategy(generation_mode=mode), st.integers(0, 2**32))
    def sent(case: Any, turn: int) -> None:
        campaign.made += 1
        names, query = dict(case.path_parameters or {}), case.query
        for _ in range(_TURNS):
            case.path_parameters, case.query = dict(names), query
            campaign.send(place, case, _turn(number, campaign.requests, turn))

    with suppress(Unsatisfiable):  # nothing can be broken where there is nothing to say
        sent()


def page(campaign: Campaign, words: list[str]) -> str:
    """The results as a page of the documentation."""
    seen = sorted({status for each in campaign.statuses.values() for status in each})
    rows = [
        f"| `{name}` | {sum(found.values()):,} | "
        + " | ".join(f"{found[status]:,}" if found[status] else "" for status in seen)
        + " |"
        for name, found in campaign.statuses.items()
    ]
    head = " | ".join(map(str, seen))
    ends = "---:|" * (len(seen) + 1)
    found = "No fault was found." if not campaign.faults else "\n".join(campaign.faults[:50])
    about = __doc__.split("\n\n", 2)[2]
    return f"""# Fuzzing the server

Made by the command below on {datetime.now(UTC).date().isoformat()} (Python
{sys.version.split()[0]}, schemathesis {version("schemathesis")}, Hypothesis
{version("hypothesis")}), in {campaign.seconds / 60:.0f} minutes.

```{{.console .skip}}
$ python -m tools.fuzz {" ".join(words)}
```

{campaign.made:,} cases of schemathesis, each sent {_TURNS} times with different tokens,
holdouts, keys and questions: {campaign.requests:,} requests;
{campaign.answers:,} responses told of answers, and {campaign.exhausted:,} that a budget or a quota
was exhausted. {found}

{about.strip()}

The planner's computing, which never sees a holdout, was left out: its address was asked like all
others. In the holdouts one text and two numbers were planted that no request contains.

| address | requests | {head} |
|---|{ends}
{chr(10).join(rows)}
"""


def main(words: list[str]) -> int:
    """Run, tell, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--output", type=Path, help="write a page of the documentation here")
    wanted = parser.parse_args(words)
    campaign = run_all(wanted.cases, wanted.seed, wanted.jobs)
    if wanted.output:
        wanted.output.write_text(page(campaign, words), "utf-8")
    if wanted.json:
        told = {
            "cases": campaign.made,
            "requests": campaign.requests,
            "faults": campaign.faults,
            "answers": campaign.answers,
        }
        print(json.dumps({**told, "statuses": campaign.statuses}))
    else:
        print(page(campaign, words))
    return 1 if campaign.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
