"""Commands on a server's address: asked and answered like a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from holdfast.client.client import Client
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.records import SLOTS
from tests.cli.conftest import RIGHT, ROWS, Cli
from tests.client.conftest import Served
from tests.holdout import plans
from tests.holdout.tables import sealed, sources, table

GRID = ("--grid", "0:0.875:0.125")
URL = "http://127.0.0.1:8000/holdouts/a"
COMMANDS: dict[str, tuple[str, ...]] = {
    "ask": ("ask", "avg(x)", *GRID, "--protocol", "estimate"),
    "ask with words": ("ask", "avg(x)", *GRID, "--where", "g = 'a'", "--request", "k"),
    "mean": ("mean", "y = 1", "--protocol", "estimate"),
    "interval": ("interval", "avg(x)", "--grid", "0:0.75:0.25"),
    "verify": ("verify", "avg(x)", "--guess", "0.5", "--protocol", "verify"),
    "correct": ("correct", "avg(x)", "--guess", "9", *GRID),
    "exhausted": ("correct", "avg(x)", "--guess", "8", *GRID, "--protocol", "verify"),
}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Two holdouts that draw the same; the first is served at the URL."""
    monkeypatch.delenv("HOLDFAST_TOKEN", raising=False)
    paths = tmp_path / "a.holdfast", tmp_path / "b.holdfast"
    for path in paths:
        sealed(path, plans.mixed(), seed=3, name="a").close()
    with sources():
        transport = Served(paths[0])
        monkeypatch.setattr("holdfast.client.client.Client", partial(Client, transport=transport))
        yield paths
        transport.end()


def shown(text: str) -> Any:
    """JSON without receipts, which name the holdout, and what only remote answers assume."""
    data = json.loads(text)
    for part in (data, data.get("verdict"), data.get("correction")):
        if isinstance(part, dict) and "promise" in part:
            part["promise"] = part["promise"].removesuffix(f"; assuming that {SLOTS}")
            del part["receipt"]
    return data


def test_a_url_is_asked_like_a_folder(
    folders: tuple[Path, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for name, (verb, *words) in COMMANDS.items():
        there, here = (cli(verb, place, *words, "--json") for place in (URL, folders[1]))
        assert (there.status, there.err) == (here.status, here.err), name
        assert shown(there.out) == shown(here.out), name
    verb, *words = COMMANDS["ask"]
    there, here = (cli(verb, place, *words) for place in (URL, folders[1]))
    assert there.status == here.status == 0
    assert there.out.splitlines()[:2] == here.out.splitlines()[:2]  # question and value
    status, kept = (cli("status", place, "--json").json for place in (URL, folders[1]))
    assert (status["path"], status["sets"]) == (URL, kept["sets"])
    assert cli("status", URL).out.startswith("a: 7 questions answered")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("ask", URL, "avg(nobody)", *GRID), 2, "no column 'nobody'"),
        (("ask", URL, "estimators.py:f", *GRID), 2, "a file that exists"),
        (("status", "http://127.0.0.1:8000/holdouts/b"), 1, "holdfast token create"),
        (("status", "http://example.org/holdouts/b", "--token", "hf_s3cr3t"), 2, "https://"),
        (("status", "a.holdfast", "--token", "hf_s3cr3t"), 2, "left out for a folder"),
        (("status", "http://127.0.0.1:8000/a"), 2, "which ends in /holdouts/NAME; got 'http"),
        (("check", URL), 2, "check reads the folder itself: run it on the server"),
        (("token", "list", URL), 2, "token list reads the folder itself"),
    ],
    ids=["question", "file", "holdout", "open network", "folder", "path", "check", "token"],
)
def test_what_is_wrong_is_said_as_for_a_folder(
    folders: tuple[Path, Path], cli: Cli, words: tuple[str, ...], status: int, message: str
) -> None:
    said = cli(*words, "--json")
    said.refuses(message, status)
    assert "s3cr3t" not in said.err


def test_who_waits_for_a_server_is_told_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("Connection refused", request=request)

    away = partial(Client, transport=httpx2.MockTransport(lost), retries=2)
    monkeypatch.setattr("holdfast.client.client.Client", away)
    first, second = cli("status", URL).err.splitlines()
    assert first == "No reply (ConnectError: Connection refused), trying again …"
    assert second.startswith(f"holdfast: No reply from {URL}, which was asked 3 times: ")
    cli("status", URL, "--json").refuses("which was asked 3 times", 1, "error")


def test_a_token_by_option_and_by_variable(
    folders: tuple[Path, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Holdout.open(folders[0]) as holdout:
        _, token = holdout.access.grant("viewer")
    assert cli("status", URL, "--json").status == 1
    assert cli("status", URL, "--token", token, "--json").status == 0
    monkeypatch.setenv("HOLDFAST_TOKEN", token)
    assert cli("status", URL, "--json").status == 0
    refused = cli("ask", URL, "avg(x)", *GRID, "--json")
    refused.refuses("analyst", 1)
    assert token not in refused.err


# Models.


@pytest.fixture
def served(told: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """A holdout without a plan, at a URL, and the same in a folder."""
    monkeypatch.delenv("HOLDFAST_TOKEN", raising=False)
    copy = told.parent / "copy.holdfast"
    rows = table(ROWS).assign(row=np.arange(ROWS), y=np.arange(ROWS) % 2, x=np.arange(ROWS) / ROWS)
    Holdout.create(copy, rows, ids="row", target="y", open_fraction=0, labels=[0, 1]).close()
    transport = Served(told)
    monkeypatch.setattr("holdfast.client.client.Client", partial(Client, transport=transport))
    yield "http://127.0.0.1:8000/holdouts/told", copy
    transport.end()


MODELS: list[tuple[object, ...]] = [
    ("score", "good", "--guess", 0.9),
    ("score", "poor", "--precise"),
    ("compare", "better", "good", "--guess", 0.05),
    ("compare", "better", "good", "--margin", 0),
    ("gate", "good", "--at-least", 0.8),
    ("gate", "poor", "--at-least", 0.8),
    ("gate", "good", "--better-than", "better"),
    ("best", "good", "better", "poor", "--precise"),
    ("scores", "good", "better", "--guesses", "0.9,"),
    ("enter", "good", "--name", "Ann"),
    ("leaderboard",),
    ("enter", "better", "--name", "Bob", "--guess", 0.95),
    ("leaderboard", "--price"),
    ("leaderboard", "--neighbours"),
    ("mean", "x < 0.5", "--guess", 0.5),
    ("score", "none", "--price"),
    ("score", "good", "--guess", "nan"),
    ("best", "good", "good"),
]


def test_models_are_asked_about_as_in_a_folder(served: tuple[str, Path], cli: Cli) -> None:
    for verb, *words in MODELS:
        known = [served[1].parent / f"{word}.csv" if word in RIGHT else word for word in words]
        there, here = (cli(verb, place, *known) for place in served)
        assert there == here, (verb, *words)
    there, here = (cli("status", place, "--json").json["sets"] for place in served)
    assert there == here


def test_a_quota_that_is_used_up_is_status_3(
    served: tuple[str, Path], told: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Holdout.open(told) as holdout:
        _, token = holdout.access.grant("analyst", nats=0.1)
    monkeypatch.setenv("HOLDFAST_TOKEN", token)
    files = [told.parent / f"{name}.csv" for name in RIGHT]
    assert cli("score", served[0], files[0], "--guess", 0.9).status == 0
    cli("score", served[0], files[1], "--json").refuses("Your quota", 3, "exhausted")
    assert cli("score", served[0], files[0], "--guess", 0.9).status == 0  # asked before
    metrics = ("--metrics", told.parent / "mine.py")
    cli("score", served[0], files[0], *metrics).refuses("holdfast serve --metrics")
