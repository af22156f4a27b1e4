"""Every algorithm of the paper on a sealed holdout: by command, over HTTP, proved by `check`.

What there is, and what it is called, is the second table of docs/explanation/paper-map.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from holdfast.holdout.holdout import Holdout
from holdfast.protocols.base import Question
from holdfast.server.app import create_app
from holdfast.server.settings import Settings
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli
from tests.holdout.tables import table
from tests.theory.test_paper import PAGE, ROWS

ASKED = [
    (found[1], found[2], found[3])
    for line in PAGE.read_text("utf-8").splitlines()
    if (found := re.fullmatch(r"\|.*\| `(protocols\.[\w.]+)` \| `(\w+)` \| `(\w+)` \|", line))
]
# What each needs beside its number of questions.
OPTIONS: dict[str, tuple[object, ...]] = {
    "estimate": ("--tail", 0.1, "--grid", 4),
    "simple": ("--grid", 4),
    "amplified": ("--tail", 0.1, "--grid", 4),
    "mean": ("--tail", 0.1, "--grid", 4),
    "verify": ("--refusals", 2),
    "correct": ("--tail", 0.05, "--refusals", 2, "--grid", 4),
    "rounds": ("--rounds", 2),
    "weights": ("--tail", 0.05, "--values", "y=0,1", "--block-units", 1),
}
WORDS: dict[str, dict[str, Any]] = {
    "ask": {"grid": "0,0.5,1"},
    "mean": {},
    "verify": {"guess": 0.5},
    "correct": {"guess": 0.5, "grid": "0,0.5,1"},
}


def test_the_map_says_of_every_protocol_how_it_is_asked() -> None:
    named = re.findall(r"`(protocols\.[\w.]+)`", " ".join(row[2] for row in ROWS))
    assert {name for name, _, _ in ASKED} == set(named)
    assert len(ASKED) == len(set(named))


@pytest.mark.parametrize(("name", "mix", "verb"), ASKED, ids=[mix for _, mix, _ in ASKED])
def test_it_is_asked_by_command_and_over_http_and_proved(
    tmp_path: Path, cli: Cli, name: str, mix: str, verb: str
) -> None:
    data, folder = tmp_path / "data.csv", tmp_path / "study"
    table(4_000).to_csv(data, index=False)
    wanted = ("--protocols", f"{mix}=4", *OPTIONS.get(mix, ()))
    made = cli("create", folder, "--data", data, *wanted, "--json")
    assert made.status == 0, made.err
    assert made.json["certified"]
    words = WORDS[verb]
    options = [part for key, value in words.items() for part in (f"--{key}", value)]
    told = cli(verb, folder, "y = 1" if verb == "mean" else "avg(y)", *options, "--json")
    assert told.status == 0, told.err

    settings = Settings(folders=(folder,), slot=0.001, rate=1e6, burst=10**6)
    asked = {"term": "y = 0"} if verb == "mean" else {"estimator": "avg(1 - y)"}
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        reply = client.post(f"/api/holdouts/study/{verb}", json={**asked, **words})
    assert reply.status_code == 200, reply.text

    with Holdout.open(folder) as holdout:
        rows = [row for row in holdout.journal.ledger.rows() if row.kind == "recorded"]
        asked_of = [
            holdout.spec.protocol_of(row.body["set"], Question.from_facts(row.body["question"]))
            for row in rows
        ]
    for answered in (told.json, reply.json()):
        assert (answered["verdict"] if verb == "correct" else answered)["certified"]
    kinds = {f"{type(each).__module__}.{type(each).__name__}" for each in asked_of}
    assert (len(rows), kinds) == (2, {f"holdfast.{name}"})
    checked = cli("check", folder, "--json").json
    assert checked["passed"], checked
