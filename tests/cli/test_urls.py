"""Commands on a server's address: asked and answered like a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.client import Client
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.records import SLOTS
from tests.cli.conftest import Cli
from tests.client.conftest import Served
from tests.holdout import plans
from tests.holdout.tables import sealed, sources

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
    assert cli("status", URL).out.startswith(f"a {URL}")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("ask", URL, "avg(nobody)", *GRID), 2, "no column 'nobody'"),
        (("ask", URL, "estimators.py:f", *GRID), 2, "a file that exists"),
        (("status", "http://127.0.0.1:8000/holdouts/b"), 1, "holdfast token create"),
        (("status", "http://example.org/holdouts/b", "--token", "hf_s3cr3t"), 2, "https://"),
        (("status", "a.holdfast", "--token", "hf_s3cr3t"), 2, "left out for a folder"),
    ],
    ids=["question", "file", "holdout", "open network", "folder"],
)
def test_what_is_wrong_is_said_as_for_a_folder(
    folders: tuple[Path, Path], cli: Cli, words: tuple[str, ...], status: int, message: str
) -> None:
    said = cli(*words, "--json")
    said.refuses(message, status)
    assert "s3cr3t" not in said.err


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
