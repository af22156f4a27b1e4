"""The commands that ask: what they print, what they exit with, what they cost; here and by URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.client.conftest import admitted as admitted
from tests.holdout import plans
from tests.holdout.tables import sealed

GRID = ("--grid", "0:0.875:0.125")
NUMBERS = {"tail", "confidence", "price", "budget_left"}
VALUES = NUMBERS | {"value", "low", "high"}


@pytest.mark.parametrize(
    ("words", "expected", "numbers"),
    [
        (("ask", "avg(x)", *GRID), {}, VALUES),
        (("ask", "avg(x)", *GRID, "--protocol", "estimate"), {}, VALUES),
        (("interval", "avg(x)", "--grid", "0,0.3,0.6,1"), {}, VALUES),
        (("mean", "x > 3"), {}, VALUES),
        (("verify", "avg(x)", "--guess", 0.5), {"verdict": "compatible"}, NUMBERS),
        (("verify", "avg(x)", "--guess", 9), {"verdict": "not compatible"}, NUMBERS),
        (
            ("verify", "avg(x)", "--guess", 9, "--claim", "at most"),
            {"verdict": "compatible", "guess": 9},
            NUMBERS,
        ),
        (
            ("verify", "avg(x)", "--guess", 9, "--protocol", "verify"),
            {"verdict": "not compatible"},
            NUMBERS,
        ),
    ],
)
def test_an_answers_keys(
    folder: Path, cli: Cli, words: tuple[Any, ...], expected: dict[str, Any], numbers: set[str]
) -> None:
    verb, *rest = words
    said = cli(verb, folder, *rest, "--json")
    data = said.json
    assert said.status == 0  # No is an answer too
    assert {name: data[name] for name in expected} == expected
    for name in numbers:
        assert data[name] is None or type(data[name]) in (int, float), name
    assert [type(data[name]) for name in ("certified", "cached", "receipt")] == [bool, bool, str]
    assert numbers is NUMBERS or type(data["at_grid_end"]) is bool
    again = cli(verb, folder, *rest, "--json").json
    assert (again["cached"], again["receipt"]) == (True, data["receipt"])


def test_a_correction(folder: Path, cli: Cli) -> None:
    words = ("correct", folder, "avg(x)", "--guess", 9, *GRID, "--protocol", "verify")
    said = cli(*words, "--json")
    assert said.status == 0
    assert said.json["verdict"]["verdict"] == "not compatible"
    assert said.json["value"] == said.json["correction"]["value"]
    assert "corrected" in cli(*words).out


def test_exhausted_is_status_3(folder: Path, cli: Cli) -> None:
    for number in range(3):
        assert cli("verify", folder, f"avg(x) + {number}", "--guess", 9).status == 0
    said = cli("verify", folder, "avg(x)", "--guess", 0.5, "--json")
    assert (said.status, said.json["verdict"]) == (3, "exhausted")
    assert cli("correct", folder, "avg(x)", "--guess", 9, *GRID).status == 3
    paid = [cli("ask", folder, f"avg(x) + {number}", *GRID).status for number in range(40)]
    assert paid == [0] * paid.count(0) + [3] * paid.count(3)
    assert paid[-1] == 3
    cli("ask", folder, "avg(c)", *GRID, "--json").refuses("", 3, "exhausted")


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("ask", "avg(nobody)", *GRID), "nobody"),
    (("ask", "avg(x)"), "grid"),
    (("ask", "avg(x)", "--grid", "1:0:1"), "grid"),
    (("ask", "avg(x)", "--grid", "a"), "grid"),
    (("ask", "avg(x)", *GRID, "--protocol", "nobody"), "nobody"),
    (("ask", "avg(x)", *GRID, "--where", "x"), "where"),
    (("ask", "avg(x)", *GRID, "--nothing"), "--nothing"),
    (("ask",), "ESTIMATOR"),
    (("verify", "avg(x)"), "--guess"),
    (("verify", "avg(x)", "--guess", "much"), "--guess"),
    (("verify", "avg(x)", "--guess", "nan"), "guess"),
    (("verify", "avg(x)", "--guess", "1", "--claim", "about"), "claim"),
    (("mean", "avg(x)"), "leave the aggregate out"),
    *(
        (("ask", "avg(x)", *GRID, "--engine", engine), "dask://")
        for engine in ("spark://host:1", "dask://", "dask://host", "duckdb")
    ),
]


def test_a_bad_question_is_status_2_and_costs_nothing(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / "ledger.sqlite").read_bytes()
    for (verb, *rest), message in WRONG:
        said = cli(verb, folder, *rest, "--json")
        said.refuses(message)
        assert said.error["kind"] in ("bad_question", "usage")
        assert cli(verb, folder, *rest).err.startswith("holdfast: ")
    monkeypatch.setenv("HOLDFAST_ENGINE", "spark://host:1")
    cli("ask", folder, "avg(x)", *GRID, "--json").refuses("dask://")
    assert (folder / "ledger.sqlite").read_bytes() == before


def test_an_engine_that_is_away_costs_nothing(folder: Path, cli: Cli) -> None:
    engine = ("--engine", "dask://127.0.0.1:9?patience=1")
    said = cli("ask", folder, "avg(x)", *GRID, *engine, "--json")
    assert said.status != 0
    assert "127.0.0.1:9" in said.err
    assert cli("status", folder, "--json").json["sets"][0]["spent"] == 0


def test_a_slip_is_refused_and_asked_anyway(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "a.holdfast"
    sealed(path, plans.mixed(), ranges={"x": (0, 10)}, categories={"g": ["a", "b", "c"]}).close()
    before = cli("status", path, "--json").json
    slips: list[tuple[tuple[object, ...], str]] = [
        (("ask", path, "avg(x)", "--where", "g = 'A'"), "Did you mean 'a'?"),
        (("ask", path, "avg(x)", "--grid", "20:27:1"), "has no point there"),
        (("verify", path, "avg(x)", "--guess", 99), "the guess is 99"),
    ]
    for slip, reason in slips:
        said = cli(*slip, "--json")
        said.refuses(reason)
        said.refuses("--anyway")
    cli("ask", path, "count(*)", "--anyway", "--json").refuses("a block has")
    assert cli("status", path, "--json").json == before
    for slip, _ in slips:
        assert cli(*slip, "--anyway").status == 0
    said = cli("ask", path, "avg(x)", "--where", "g = 'a'", "--grid", "0:7:1")
    told = " ".join(said.out.split())
    assert "rounded up to a grid with step 1" in told
    assert "counts as the lowest point, 0" in told
    assert cli("check", path, "--json").json["passed"] is True


def test_a_request_key(folder: Path, cli: Cli) -> None:
    words = (*GRID, "--request", "job-1", "--json")
    first = cli("ask", folder, "avg(x)", *words).json
    assert cli("ask", folder, "avg(x)", *words).json["cached"]
    cli("ask", folder, "avg(c)", *words).refuses("", kind="bad_question")
    assert cli("status", folder, "--json").json["receipt"] == first["receipt"]


@pytest.mark.usefixtures("admitted")
def test_a_function_in_a_file(folder: Path, tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "mine.py"
    text = (
        "import numpy as np\nSHIFT = {}\n\ndef mean(frame):\n    return SHIFT + np.mean(frame.x)\n"
    )
    words = ("ask", folder, f"{file}:mean", *GRID, "--json")
    for now, cached in (
        (text.format(1), False),
        (text.format(1), True),
        ("# the same, further down\n\n" + text.format(1), True),
        (text.format(2), False),
    ):
        file.write_text(now)
        assert cli(*words).json["cached"] is cached
    for what, message in (
        (f"{file}:nobody", "defines"),
        (f"{file}:SHIFT", "defines"),
        (f"{tmp_path / 'none.py'}:mean", "exists"),
    ):
        cli("ask", folder, what, *GRID, "--json").refuses(message)
    file.write_text("def mean(:")
    cli(*words).refuses("SyntaxError")


def test_people_see_value_promise_price_and_receipt(folder: Path, cli: Cli) -> None:
    said = cli("ask", folder, "avg(x)", "--where", "g = '[red]'", *GRID)
    asked = "avg(x) where g = '[red]'"  # no markup of its own
    status, verdict = cli("status", folder), cli("verify", folder, "avg(x)", "--guess", 9)
    for shown, words in (
        (said.out, (asked, "answer", "promise", "price", "receipt")),
        (status.out, ("estimate", "verify", "questions left", "receipt")),
        (verdict.out, ("not compatible", "refusals")),
    ):
        assert [word for word in words if word not in shown] == []


def test_a_disk_that_fails_is_status_1(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "ledger.sqlite")

    monkeypatch.setattr("holdfast.holdout.answering._Pending.reserve", full)
    cli("ask", folder, "avg(x)", *GRID, "--json").refuses("No space left", 1, "system")
