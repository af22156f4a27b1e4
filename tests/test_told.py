"""What is told is all that is told: every byte that others can see, over two tables that differ.

The clock and the entropy are fixed, and the questions are such that all that is drawn is the same
on both: each block's value falls into the same cell of its grid. So an analyst, a reader of the
report and a holder of a receipt must see the same bytes, whatever else is in the rows and however
many rows a unit has. What is public by declaration is alike: units, columns, open part and ids.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import stat
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import holdfast.cli.custody
from holdfast import randomness
from holdfast.cli.app import run
from holdfast.errors import HoldfastError
from holdfast.grids import grid
from holdfast.holdout import custody as access
from holdfast.holdout import tokens
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.ledger import ledger as table
from holdfast.report.page import report_html
from holdfast.server import auth, middleware
from holdfast.server.app import create_app
from holdfast.server.settings import Settings
from holdfast.store import user_state
from holdfast.store.inputs import open_input
from holdfast.store.user_state import state_folder
from tests.holdout.plans import board, mixed, simple

STUDY = "study.holdfast"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
GRID = grid(0, 10, step=1)
UNITS = 2_000


# Two tables.


def people(version: int, alike: set[int]) -> pd.DataFrame:
    """Rows of people, who are the units; those of `alike` are the same in every version."""
    rows = []
    for who in range(UNITS):
        drawn = 0 if who in alike else version
        chance = np.random.default_rng((who, drawn))
        for _ in range(1 if drawn == 0 else 1 + who % 3):
            x, z = 5.1 + 0.3 * drawn + 0.2 * chance.random(), "ab" * int(chance.integers(1, 9))
            rows.append({"id": f"p{who}", "who": who, "x": x, "z": z if drawn == 0 else None})
    return pd.DataFrame(rows)


def cases(version: int, alike: set[int]) -> pd.DataFrame:
    """Rows with public ids, which are the units."""
    frame = people(version, alike).drop_duplicates("who", ignore_index=True)
    return frame.assign(y=(frame["who"] % 4 == 0).astype(np.int64)).rename(columns={"id": "row"})


def labelled(version: int, alike: set[int]) -> pd.DataFrame:
    """The same, with other labels: as many of each among the rows that any rule treats alike."""
    frame = cases(version, alike)
    wrong = np.random.default_rng(5).random(UNITS) < 0.2
    y = frame["y"].to_numpy() ^ wrong
    for kind in range(8):
        places = np.flatnonzero((frame["who"] % 8 == kind) & ~frame["who"].isin(alike))
        y[places] = np.random.default_rng(version).permutation(y[places])
    return frame.assign(y=y)


def rules(frame: pd.DataFrame) -> dict[str, dict[str, int]]:
    """What three models predict: each the same for all people of one kind, of eight."""
    rows = [*frame.get("row", ["a"])]
    kinds = {"a": (0, 4), "b": (0,), "c": ()}
    return {
        name: {row: int(int(row[1:] or 0) % 8 in ones) for row in rows}
        for name, ones in kinds.items()
    }


TABLES: dict[str, tuple[Callable[[int, set[int]], pd.DataFrame], dict[str, Any]]] = {
    "units of several rows": (people, {"plan": mixed, "unit": "id"}),
    "rows with ids": (cases, {"plan": board, "ids": "row", "target": "y"}),
    "what is told": (labelled, {"plan": lambda: None, "ids": "row", "target": "y"}),
}


# One world: the same clock, the same entropy, the same names.


class Fixed(datetime):
    """A clock that stands."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return NOW.astimezone(tz)


@contextmanager
def world(folder: Path) -> Iterator[None]:
    """A state folder of its own, and the same moment and random words each time."""
    folder.mkdir()
    words = np.random.Philox(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HOLDFAST_STATE", str(folder / "state"))
        patch.setenv("COLUMNS", "100")
        patch.setattr(randomness, "_from_system", words.random_raw)
        patch.setattr(middleware, "uuid4", lambda: UUID(int=1 << 64))
        for module in (table, user_state, access, tokens, auth, holdfast.cli.custody):
            patch.setattr(module, "datetime", Fixed, raising=False)
        _no_words_left()
        yield
    _no_words_left()


def _no_words_left() -> None:
    """The next word comes from wherever words come from now."""
    randomness.system_entropy()._reserve = randomness._Reserve((0, 0))


class Seen:
    """Everything that somebody saw, by what they did."""

    def __init__(self, folder: Path) -> None:
        self.bytes: dict[str, str] = {}
        self._here = str(folder)

    def add(self, what: str, text: object) -> None:
        assert what not in self.bytes
        self.bytes[what] = str(text).replace(self._here, "HERE")

    def attempt(self, what: str, work: Callable[[], Any]) -> Any:
        """What a call returns in every form that it has, or its error."""
        try:
            result = work()
        except HoldfastError as error:
            self.add(what, f"{type(error).__name__} {error} {vars(error)}")
            return None
        html = getattr(result, "_repr_html_", lambda: "")()
        plain = getattr(result, "to_dict", lambda: "")()
        self.add(what, "\n".join([str(result), repr(result), html, json.dumps(plain)]))
        return result


# One history, through every door.


def python(seen: Seen, holdout: Holdout, rows: int, models: dict[str, dict[str, int]]) -> None:
    """What is asked in Python, answered or not."""

    def many(columns: dict[str, Any]) -> Any:
        return columns["x"].mean(axis=1)

    asked: dict[str, Callable[[], Any]] = {
        "ask": lambda: holdout.ask("avg(x)", grid=GRID),
        "ask again": lambda: holdout.ask("avg(x)", grid=GRID),
        "ask without a grid": lambda: holdout.ask("max(round(x / 10))"),
        "ask Python": lambda: holdout.ask(lambda block: float(block.x.max()), grid=GRID),
        "ask a vectorised function": lambda: holdout.ask(many, grid=GRID, vectorised=True),
        "interval": lambda: holdout.interval("avg(x)", grid=GRID),
        "verify": lambda: holdout.verify("avg(x)", 6, tolerance=1),
        "verify a wrong guess": lambda: holdout.verify("avg(x)", 2, tolerance=1),
        "verify one side": lambda: holdout.verify("avg(x)", 2, claim="at least"),
        "correct": lambda: holdout.correct("avg(x)", 6, grid=GRID),
        "mean": lambda: holdout.mean("x > 1"),
        "no column": lambda: holdout.ask("avg(nobody)", grid=GRID),
        "no SQL": lambda: holdout.ask("avg(x", grid=GRID),
        "a text": lambda: holdout.ask("avg(z)", grid=GRID),
        "predictions by place": lambda: holdout.score(np.zeros(rows), target="who", grid=GRID),
        "too few of them": lambda: holdout.score(np.zeros(3), target="who", grid=GRID),
        "price": lambda: holdout.price("ask", "avg(x) + 1", grid=GRID),
        "price of Python": lambda: holdout.price("ask", lambda block: 1.0, grid=GRID),
    }
    a, b, c = models.values()
    asked |= {
        "score": lambda: holdout.score(a),
        "score again": lambda: holdout.score(a),
        "score as guessed": lambda: holdout.score(b, guess=0.7),
        "a surprise": lambda: holdout.score(c, guess=0.4),
        "score precisely": lambda: holdout.score(a, metric="error_rate", precise=True),
        "compare": lambda: holdout.compare(b, a),
        "verdict": lambda: holdout.compare(c, a, margin=0),
        "gate": lambda: holdout.gate(a, at_least=0.7),
        "gate of two": lambda: holdout.gate(a, better_than=c),
        "best": lambda: holdout.best([c, a, b], precise=True),
        "scores": lambda: holdout.scores([b, a], metric="brier"),
        "enter": lambda: holdout.enter(a, name="first"),
        "enter another": lambda: holdout.enter(b, name="next"),
        "a part of them": lambda: holdout.score(dict([*a.items()][: len(a) // 2])),
        "a filter": lambda: holdout.mean("y", range=(0, 1), where="x > 1"),
        "price of a score": lambda: holdout.price("score", c, metric="error_rate"),
        "price of a gate": lambda: holdout.price("gate", c, at_most=0.5),
        "leaderboard": holdout.leaderboard,
        "price of neighbours": lambda: holdout.leaderboard(price=True),
        "neighbours": lambda: holdout.leaderboard(neighbours=True),
    }
    for what, work in asked.items():
        seen.attempt(f"Python: {what}", work)
    seen.attempt("Python: status", holdout.status)
    seen.add("Python: transcript", json.dumps(holdout.transcript()))
    seen.add("Python: receipt", holdout.receipt)
    seen.add("Python: open part", holdout.open_table().to_pydict())
    seen.add("Python: holdout", f"{holdout!r} {holdout.spec!r}")
    seen.add("report", report_html(holdout))


def terminal(
    seen: Seen, capture: pytest.CaptureFixture[str], models: dict[str, dict[str, int]]
) -> None:
    """What commands print."""
    commands = [
        ["status", STUDY],
        ["check", STUDY],
        ["ask", STUDY, "avg(x) + 1", "--grid", "0:10:1"],
        ["ask", STUDY, "avg(nobody)", "--grid", "0:10:1"],
        ["mean", STUDY, "x > 2"],
        ["verify", STUDY, "max(x)", "--guess", "6", "--tolerance", "1"],
        ["token", "list", STUDY],
        ["score", STUDY, "b.json", "--metric", "error_rate"],
        ["compare", STUDY, "c.json", "b.json"],
        ["gate", STUDY, "b.json", "--at-least", "0.9"],
        ["best", STUDY, "a.json", "c.json"],
        ["scores", STUDY, "a.json", "b.json", "--metric", "error_rate"],
        ["enter", STUDY, "b.json", "--name", "second"],
        ["leaderboard", STUDY],
        ["leaderboard", STUDY, "--price"],
        ["leaderboard", STUDY, "--neighbours"],
    ]
    for name, predicted in models.items():
        Path(f"{name}.json").write_text(json.dumps(predicted), "utf-8")
    for words, more in itertools.product(commands, ([], ["--json"])):
        status = run([*words, *more])
        told = capture.readouterr()
        seen.add(" ".join(["holdfast", *words, *more]), f"{status}\n{told.out}\n{told.err}")
    assert run(["report", STUDY, "--output", "report.html"]) == 0
    seen.add("holdfast report", capture.readouterr())
    seen.add("its file", Path("report.html").read_text("utf-8"))


class Browser:
    """Somebody with tokens, and all that a server answers."""

    def __init__(self, client: TestClient, seen: Seen, tokens: dict[str, str]) -> None:
        self._client, self._seen, self._tokens = client, seen, tokens
        self._numbers = itertools.count(1)

    def send(self, role: str, method: str, path: str, **more: Any) -> Any:
        """One request."""
        token = {"Authorization": f"Bearer {self._tokens[role]}", **more.pop("headers", {})}
        got = self._client.request(method, path, headers=token, **more)
        head, body = dict(got.headers), got.text
        if path == "/metrics":
            del head["content-length"]
            body = _untimed(body)
            if role == "custodian":  # that an answer was late is up to the machine, and theirs
                body = re.sub(r"(?m)^holdfast_late_answers\S* .*\n", "", body)
        told = "\n".join([str(got.status_code), *(f"{n}: {v}" for n, v in head.items()), "", body])
        self._seen.add(f"HTTP {next(self._numbers)}: {role} {method} {path}", told)
        return got

    def look(self, job: str) -> None:
        """Everything that can be read, with every role."""
        for path, methods in self._client.get("/api/openapi.json").json()["paths"].items():
            if "get" in methods:
                for role in self._tokens:
                    named = path.replace("{holdout}", "study").replace("{job}", job)
                    self.send(role, "GET", named)


def server(seen: Seen, tokens: dict[str, str], frame: pd.DataFrame) -> None:
    """What comes over HTTP: every verb, every address that can be read."""
    questions: dict[str, dict[str, Any]] = {
        "ask": {"estimator": "avg(x) + 2", "grid": "0:10:1"},
        "interval": {"estimator": "max(x)", "grid": "0:10:1"},
        "mean": {"term": "x > 3"},
        "verify": {"estimator": "min(x)", "guess": 6, "tolerance": 1},
        "correct": {"estimator": "avg(x)", "guess": 6, "grid": "0:10:1"},
        "price": {"verb": "ask", "estimator": "avg(x) + 3", "grid": "0:10:1"},
    }
    predicted: dict[str, Any] = {
        str(row): int(row[1:]) % 4 == 0 for row in frame.get("row", [])
    } or {"a": 1}
    place = "/api/holdouts/study"
    app = create_app(Settings(folders=(Path(STUDY),), slot=0.001, rate=1e6, burst=10**6))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        browser = Browser(client, seen, tokens)
        for verb, body in questions.items():
            for words in (body, {**body, "estimator": "avg(nobody)", "term": "nobody"}):
                browser.send("analyst", "POST", f"{place}/{verb}", json=words)
        for what in ("enter?name=ann", "gate?at_least=0.5", "score?guess=0.6", "price/score"):
            for given in (predicted, {"nobody": 1}):
                browser.send("analyst", "POST", f"{place}/{what}", json=given)
        several = {
            name: (f"{name}.json", json.dumps(each), "application/json")
            for name, each in rules(frame).items()
        }
        for what in ("compare?margin=0.5", "compare", "best?metric=error_rate", "scores"):
            count = 2 if "compare" in what else 3
            files = dict([*several.items()][:count])
            mixed_type = {"Content-Type": "multipart/mixed; boundary=next"}
            browser.send("analyst", "POST", f"{place}/{what}", files=files, headers=mixed_type)
        for what in ("price/neighbours", "neighbours?top=2", "neighbours", "neighbours?metric=f1"):
            browser.send("analyst", "POST", f"{place}/{what}")
        browser.send("custodian", "POST", f"{place}/check", json={})
        job = _finished_job(app, browser, place)
        browser.look(job)


def _finished_job(app: FastAPI, browser: Browser, place: str) -> str:
    """The first of two questions that the plan can answer, in the background; and its id."""
    jobs = [
        {"verb": "ask", "estimator": "avg(x) + 4", "grid": "0:10:1"},
        {"verb": "mean", "term": "x > 4"},
    ]
    for number, each in enumerate(jobs):
        key = {"Idempotency-Key": str(number)}
        started = browser.send("analyst", "POST", f"{place}/jobs", json=each, headers=key)
        if started.status_code == 202:
            break
    job = str(started.json()["id"])
    while app.state.service.jobs.get("study", job, None).state in ("queued", "running"):
        time.sleep(0.01)
    return job


def _untimed(text: str) -> str:
    """Counts without how long anything took, which no clock of these tests decides."""
    return re.sub(r"(?m)^(\S*_(seconds|created)\S*) .*$", r"\1", text)


def everything_seen(
    folder: Path, kind: str, version: int, alike: set[int], capture: pytest.CaptureFixture[str]
) -> Seen:
    """All bytes of one history over one table."""
    make, given = TABLES[kind]
    options = {"open_fraction": 0.05, "ranges": {"x": (0, 10)}, **given}
    frame, seen = make(version, alike), Seen(folder)
    with world(folder):
        plan = options.pop("plan")()
        with Holdout.create(STUDY, frame, plan, **options) as holdout:
            seen.attempt("created", holdout.status)
            tokens = {
                role: holdout.access.grant(role, name=role, nats=100)[1]
                for role in ("viewer", "analyst", "custodian")
            }
            python(seen, holdout, UNITS, rules(frame))
        terminal(seen, capture, rules(frame))
        server(seen, tokens, frame)
        checked = check_holdout(Path(STUDY))
        assert checked.passed
        seen.add("check", f"{checked} {checked.to_dict()}")
        with Holdout.open(STUDY) as again:
            rows = again.journal.ledger.rows()
        seen.add("rows of the ledger", "\n".join(str(row.record()) for row in rows))
        for file in sorted(Path(STUDY).iterdir()):  # whoever may read these may read the rows
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0 or file.name.startswith("ledger")
        assert stat.S_IMODE(Path(STUDY).stat().st_mode) == 0o700
    return seen


@pytest.mark.parametrize("kind", TABLES)
def test_all_that_is_seen_is_a_function_of_the_history(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, given = TABLES[kind]
    options = {name: value for name, value in given.items() if name != "plan"}
    with (
        world(tmp_path / "zero"),
        Holdout.create(STUDY, make(0, set()), given["plan"](), open_fraction=0.05, **options) as it,
    ):
        alike = set(it.open_table()["who"].to_pylist())
    assert 0 < len(alike) < UNITS / 10
    one, two = (
        everything_seen(tmp_path / str(version), kind, version, alike, capsys) for version in (0, 1)
    )
    assert one.bytes.keys() == two.bytes.keys()
    assert len(one.bytes) > 80
    answered = [what for what, text in one.bytes.items() if re.search('"certified": ?true', text)]
    assert len(answered) > (50 if kind == "what is told" else 10)
    differing = {
        what: [
            pair
            for pair in zip(*map(str.splitlines, (text, other)), strict=False)
            if len({*pair}) > 1
        ]
        for what, text in one.bytes.items()
        if text != (other := two.bytes[what])
    }
    assert differing == {}
    sizes = [(tmp_path / each / STUDY / "blocks.parquet").stat().st_size for each in "01"]
    assert sizes[0] != sizes[1]


# A histogram by trying.


def hashed_table(values: Sequence[float]) -> str:
    """The documented hash of a table of one column of numbers "x", before it is keyed."""
    low = high = 0
    for value in values:
        bits = struct.unpack("<q", struct.pack("<d", value))[0]
        digest = hashlib.md5(str(bits).encode()).digest()
        low += int.from_bytes(digest[:8], "little")
        high += int.from_bytes(digest[8:], "little")
    plain = json.dumps([1, len(values), low, high, ["x"]], separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def test_no_histogram_is_found_by_hashing_candidates(tmp_path: Path) -> None:
    """Whoever tries every histogram finds none in the report, in receipts, or in the ledger.

    Nor in the state folder, for whoever has the list in it and not the secret.
    """
    data = [0.0, 1, 1, 2, 5, 5, 5, 6, 7]
    with open_input({"x": data}) as table:
        assert hashed_table(data) == table.fingerprint()  # this is how one would try
    with Holdout.create(tmp_path / "h", {"x": data}, simple()) as holdout:
        holdout.ask("avg(x)", grid=grid(0, 7, step=1))
        seen = f"{report_html(holdout)} {holdout.status()} {holdout.spec!r} {holdout.receipt}"
        seen += "".join(str(row.record()) for row in holdout.journal.ledger.rows())
    kept = [file for file in state_folder().rglob("*") if file.is_file()]
    seen += "".join(file.read_bytes().decode("latin-1") for file in kept)
    words = set(re.findall("[0-9a-f]{16,}", seen))
    tried = list(itertools.combinations_with_replacement([float(x) for x in range(8)], len(data)))
    assert len(tried) == 11_440
    assert [each for each in tried if hashed_table(each) in words] == []
    for file in (tmp_path / "h").glob("*.parquet"):
        assert hashlib.sha256(file.read_bytes()).hexdigest() not in words
