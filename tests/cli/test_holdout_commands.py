"""The commands of a holdout: what they print, what they exit with, what they cost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.app import app, run
from holdfast.holdout.holdout import Holdout
from tests.holdout import plans
from tests.holdout.tables import sealed, sources, table

ANSWER = {
    *("value", "low", "high", "tail", "confidence", "price", "budget_left"),
    *("cached", "at_grid_end", "receipt", "certified"),
}
VERDICT = (ANSWER - {"value", "low", "high", "at_grid_end"}) | {"verdict", "guess"}
GRID = ["--grid", "0:0.875:0.125"]


class Said:
    """What a command did."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def json(self) -> dict[str, Any]:
        assert self.err == ""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def error(self) -> dict[str, str]:
        assert self.out == ""
        found: dict[str, str] = json.loads(self.err)["error"]
        return found


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: object) -> Said:
        status = run([str(word) for word in words])
        captured = capsys.readouterr()
        return Said(status, captured.out, captured.err)

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A holdout whose blocks are stubs."""
    path = tmp_path / "a.holdfast"
    sealed(path, [plans.mixed(), plans.verdicts(), plans.corrections(), plans.exact()]).close()
    with sources():
        yield path


# Creation.


def written(path: Path, rows: int) -> Path:
    table(rows).to_csv(path, index=False)
    return path


def test_create_ask_and_look_back(tmp_path: Path, cli: Any) -> None:
    data = written(tmp_path / "data.csv", 400)
    path = tmp_path / "a.holdfast"
    made = cli(
        *("create", path, "--data", data, "--protocols", "exact=4,exact-verify=5,split=2"),
        *("--refusals", 1, "--grid", 8, "--open-fraction", 0.1, "--range", "x=0:10"),
        *("--target", "y", "--name", "flights", "--json"),
    )
    assert made.status == 0
    status = made.json
    assert (status["name"], status["open_units"], status["certified"]) == ("flights", 40, True)
    assert [each["name"] for each in status["sets"]] == ["exact", "exact-verify", "split"]
    assert status["confidence"] == pytest.approx(0.95, abs=1e-9)
    answer = cli("ask", path, "avg(x)", "--where", "x > 0", "--by", "exact", "--json").json
    assert 0 <= answer["value"] <= 10
    assert cli("status", path, "--json").json["answers"] == 1
    assert cli("check", path, "--json").json["passed"] is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--queries", 3, "--protocols", "nothing"], "protocols"),
        ([], "--queries"),
        (["--queries", 3, "--protocols", "exact", "--range", "x"], "--range"),
        (["--queries", 3, "--protocols", "exact", "--range", "nobody=0:1"], "ranges"),
        (["--queries", 3, "--protocols", "exact", "--categories", "g"], "--categories"),
        (["--queries", 3, "--protocols", "exact", "--categories", "x=a,b"], "categories"),
        (["--queries", 3, "--protocols", "exact", "--unit", "nobody"], "nobody"),
        (["--queries", 3, "--protocols", "exact", "--weight", "x"], "Every unit counts once"),
        (["--queries", 3, "--protocols", "exact", "--open-fraction", 2], "open_fraction"),
        (["--queries", 10**6, "--protocols", "exact"], "more data"),
    ],
)
def test_a_creation_that_is_refused(
    tmp_path: Path, cli: Any, words: list[Any], message: str
) -> None:
    data = written(tmp_path / "data.csv", 60)
    said = cli("create", tmp_path / "a", "--data", data, *words, "--json")
    assert said.status == 2
    assert message in said.error["message"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv"]


def test_a_slip_is_refused_and_asked_anyway(tmp_path: Path, cli: Any) -> None:
    data = written(tmp_path / "data.csv", 400)
    path = tmp_path / "a.holdfast"
    words = ("--protocols", "exact=4,exact-verify=5", "--refusals", 1, "--grid", 8)
    declared = ("--categories", "g=a, b,c", "--range", "x=0:10")
    assert cli("create", path, "--data", data, *words, *declared).status == 0
    before = cli("status", path, "--json").json
    slips: list[tuple[tuple[object, ...], str]] = [
        (("ask", path, "avg(x)", "--where", "g = 'A'"), "Did you mean 'a'?"),
        (("ask", path, "avg(x)", "--grid", "20:27:1"), "has no point there"),
        (("verify", path, "avg(x)", "--guess", 99), "the guess is 99"),
    ]
    for slip, reason in slips:
        said = cli(*slip, "--json")
        assert said.status == 2
        assert reason in said.error["message"]
        assert "--anyway" in said.error["message"]
    assert "a block has" in cli("ask", path, "count(*)", "--anyway", "--json").error["message"]
    assert cli("status", path, "--json").json == before
    for slip, _ in slips:
        assert cli(*slip, "--anyway").status == 0
    said = cli("ask", path, "avg(x)", "--where", "g = 'a'", "--grid", "0:7:1").out
    assert "rounded up to a grid with step 1" in " ".join(said.split())
    assert "counts as the lowest point, 0" in " ".join(said.split())
    assert cli("check", path, "--json").json["passed"] is True


def test_data_that_are_not_there(tmp_path: Path, cli: Any) -> None:
    words = ("create", tmp_path / "a", "--data", tmp_path / "none.csv", "--queries", 3)
    said = cli(*words, "--protocols", "exact", "--json")
    assert said.status == 2
    assert "No file has this name" in said.error["message"]


def test_the_same_data_need_a_reason(tmp_path: Path, cli: Any) -> None:
    data = written(tmp_path / "data.csv", 100)
    words = ("--data", data, "--queries", 2, "--protocols", "split")
    assert cli("create", tmp_path / "a", *words).status == 0
    refused = cli("create", tmp_path / "b", *words, "--json")
    assert refused.status == 2
    assert "--new-budget" in refused.error["message"]
    made = cli("create", tmp_path / "b", *words, "--new-budget", "a second study", "--json")
    assert made.json["new_budget"] == "a second study"
    assert "a second study" in cli("status", tmp_path / "b").out


# Questions.


def numbers(data: dict[str, Any], names: set[str]) -> None:
    """Numbers are numbers."""
    words = {"receipt", "verdict", "certified", "cached", "at_grid_end"}
    for name in names - words:
        assert data[name] is None or isinstance(data[name], int | float), name
        assert not isinstance(data[name], bool), name
    assert isinstance(data["certified"], bool)
    assert isinstance(data["cached"], bool)
    assert isinstance(data["receipt"], str)


def test_an_answers_keys(folder: Path, cli: Any) -> None:
    for words in (
        ["ask", folder, "avg(x)", *GRID],
        ["ask", folder, "avg(x)", *GRID, "--by", "exact"],
        ["interval", folder, "avg(x)", "--grid", "0,0.3,0.6,1"],
        ["mean", folder, "x > 3"],
    ):
        said = cli(*words, "--json")
        assert said.status == 0
        assert said.json.keys() >= ANSWER
        numbers(said.json, ANSWER)
        again = cli(*words, "--json").json
        assert again["cached"] is True
        assert again["receipt"] == said.json["receipt"]


def test_a_verdicts_keys_and_exit_status(folder: Path, cli: Any) -> None:
    for guess, by, verdict in [
        (0.5, "verify", "compatible"),
        (9, "verify", "not compatible"),
        (0.5, "exact-verify", "compatible"),
        (9, "exact-verify", "not compatible"),
    ]:
        said = cli("verify", folder, "avg(x)", "--guess", guess, "--by", by, "--json")
        assert said.status == 0  # No is an answer too
        assert said.json["verdict"] == verdict
        assert said.json.keys() >= VERDICT
        numbers(said.json, VERDICT - {"verdict"})
    one = cli("verify", folder, "avg(x)", "--guess", 9, "--claim", "at most", "--json")
    assert one.json["verdict"] == "compatible"


def test_a_correction(folder: Path, cli: Any) -> None:
    for by in ("verify", "exact-correct"):
        words = ["correct", folder, "avg(x)", "--guess", 9, *GRID, "--by", by]
        if by == "exact-correct":
            words[5:7] = ["--grid", "0,0.25,0.5,1"]
        said = cli(*words, "--json")
        assert said.status == 0
        assert said.json["verdict"]["verdict"] == "not compatible"
        assert said.json["value"] == said.json["correction"]["value"]
        assert "corrected" in cli(*words).out


def test_exhausted_is_status_3(folder: Path, cli: Any) -> None:
    for number in range(3):
        words = ("verify", folder, f"avg(x) + {number}", "--guess", 9, "--by", "exact-verify")
        assert cli(*words).status == 0
    said = cli("verify", folder, "avg(x)", "--guess", 0.5, "--by", "exact-verify", "--json")
    assert (said.status, said.json["verdict"]) == (3, "exhausted")
    for number in range(3):
        words = ("correct", folder, f"avg(x) + {number}", "--guess", 9, "--grid", "0,1")
        assert cli(*words, "--by", "exact-correct").status == 0
    last = ("correct", folder, "avg(x)", "--guess", 9, "--grid", "0,1", "--by", "exact-correct")
    assert cli(*last).status == 3
    for number in range(4):
        assert cli("ask", folder, f"avg(x) + {number}", *GRID, "--by", "exact").status == 0
    said = cli("ask", folder, "avg(c)", *GRID, "--by", "exact", "--json")
    assert (said.status, said.error["kind"]) == (3, "exhausted")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ask", "avg(nobody)", *GRID], "nobody"),
        (["ask", "avg(x)"], "grid"),
        (["ask", "avg(x)", "--grid", "1:0:1"], "grid"),
        (["ask", "avg(x)", "--grid", "a"], "grid"),
        (["ask", "avg(x)", *GRID, "--by", "nobody"], "nobody"),
        (["ask", "avg(x)", *GRID, "--where", "x"], "where"),
        (["ask", "avg(x)", *GRID, "--nothing"], "--nothing"),
        (["ask"], "ESTIMATOR"),
        (["verify", "avg(x)"], "--guess"),
        (["verify", "avg(x)", "--guess", "much"], "--guess"),
        (["verify", "avg(x)", "--guess", "nan"], "guess"),
        (["verify", "avg(x)", "--guess", "1", "--claim", "about"], "claim"),
        (["mean", "avg(x)"], "leave the aggregate out"),
    ],
)
def test_a_bad_question_is_status_2_and_costs_nothing(
    folder: Path, cli: Any, words: list[str], message: str
) -> None:
    before = cli("status", folder, "--json").json
    verb, *rest = words
    said = cli(verb, folder, *rest, "--json")
    assert said.status == 2
    assert message in said.error["message"]
    assert said.error["kind"] in ("bad_question", "usage")
    assert cli(verb, folder, *rest).err.startswith("holdfast: ")
    assert cli("status", folder, "--json").json == before


def test_a_folder_that_is_none(tmp_path: Path, cli: Any) -> None:
    for words in (["ask", tmp_path, "avg(x)"], ["status", tmp_path], ["check", tmp_path]):
        said = cli(*words, "--json")
        assert said.status == 2
        assert "folder of a holdout" in said.error["message"]


def test_a_request_key(folder: Path, cli: Any) -> None:
    first = cli("ask", folder, "avg(x)", *GRID, "--request", "job-1", "--json").json
    assert cli("ask", folder, "avg(x)", *GRID, "--request", "job-1", "--json").json["cached"]
    other = cli("ask", folder, "avg(c)", *GRID, "--request", "job-1", "--json")
    assert (other.status, other.error["kind"]) == (2, "bad_question")
    assert cli("status", folder, "--json").json["receipt"] == first["receipt"]


def test_a_function_in_a_file(folder: Path, tmp_path: Path, cli: Any, admitted: None) -> None:
    file = tmp_path / "mine.py"
    text = (
        "import numpy as np\nSHIFT = {}\n\ndef mean(frame):\n    return SHIFT + np.mean(frame.x)\n"
    )
    file.write_text(text.format(1))
    words = ("ask", folder, f"{file}:mean", *GRID, "--json")
    first = cli(*words)
    assert (first.status, first.json["cached"]) == (0, False)
    assert cli(*words).json["cached"] is True
    file.write_text("# the same, further down\n\n" + text.format(1))
    assert cli(*words).json["cached"] is True
    file.write_text(text.format(2))
    assert cli(*words).json["cached"] is False
    for name, message in [("nobody", "defines"), ("SHIFT", "defines")]:
        said = cli("ask", folder, f"{file}:{name}", *GRID, "--json")
        assert (said.status, message in said.error["message"]) == (2, True)
    missing = cli("ask", folder, f"{tmp_path / 'none.py'}:mean", *GRID, "--json")
    assert (missing.status, "exists" in missing.error["message"]) == (2, True)
    file.write_text("def mean(:")
    broken = cli(*words)
    assert (broken.status, "SyntaxError" in broken.error["message"]) == (2, True)


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.engines.python.engine import Admission, LocalEngine

    def admit(*_: object, **__: object) -> Admission:
        return Admission(False, 0, None)

    monkeypatch.setattr(LocalEngine, "admit", admit)


# What people see.


def test_people_see_value_promise_price_and_receipt(folder: Path, cli: Any) -> None:
    said = cli("ask", folder, "avg(x)", "--where", "g = '[red]'", *GRID)
    assert said.status == 0
    assert "avg(x) where g = '[red]'" in said.out  # no markup of its own
    for word in ("answer", "promise", "price", "receipt"):
        assert word in said.out
    status = cli("status", folder)
    for word in ("estimate", "exact-verify", "questions left", "receipt"):
        assert word in status.out
    verdict = cli("verify", folder, "avg(x)", "--guess", 9)
    assert "not compatible" in verdict.out
    assert "refusals" in verdict.out


# Gates.


def test_check_is_status_4_when_something_is_wrong(folder: Path, cli: Any) -> None:
    receipt = cli("ask", folder, "avg(x)", *GRID, "--json").json["receipt"]
    assert cli("check", folder, "--receipt", receipt).status == 0
    assert cli("check", folder, "--receipt", "nonsense", "--json").status == 2
    other = receipt[:-1] + ("0" if receipt[-1] != "0" else "1")
    said = cli("check", folder, "--receipt", other, "--json")
    assert said.status == 4
    assert said.json["passed"] is False
    (folder / "blocks.parquet").write_bytes(b"other")
    said = cli("check", folder)
    assert said.status == 4
    assert "FAILED" in said.out


def test_an_older_copy_is_status_4(folder: Path, tmp_path: Path, cli: Any) -> None:
    older = shutil.copytree(folder, tmp_path / "older")
    assert cli("ask", folder, "avg(x)", *GRID).status == 0
    for words in (["ask", older, "avg(c)", *GRID], ["status", older]):
        said = cli(*words, "--json")
        assert (said.status, said.error["kind"]) == (4, "damaged")
        assert "older copy" in said.error["message"]
    assert cli("check", older).status == 4


def test_a_disk_that_fails_is_status_1(
    folder: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "ledger.sqlite")

    monkeypatch.setattr("holdfast.holdout.door.Session.hold", full)
    said = cli("ask", folder, "avg(x)", *GRID, "--json")
    assert (said.status, said.error["kind"]) == (1, "system")
    assert "No space left" in said.error["message"]


# As a program.


def test_as_a_program(tmp_path: Path) -> None:
    path = tmp_path / "a.holdfast"
    sealed(path, plans.exact(), ranges={"x": (0, 10)}).close()

    def program(*words: object) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("holdfast")), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    answer = program("ask", path, "avg(x)", "--json")
    assert answer.returncode == 0, answer.stderr
    assert 0 <= json.loads(answer.stdout)["value"] <= 10
    bad = program("ask", path, "avg(nobody)", "--json")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "nobody" in json.loads(bad.stderr)["error"]["message"]
    assert "Traceback" not in bad.stderr
    assert program("check", path).returncode == 0
    with Holdout.open(path) as holdout:
        assert holdout.status().answers == 1


def test_completion_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    import typer.main

    options = [name for each in typer.main.get_command(app).params for name in each.opts]
    assert {"--install-completion", "--show-completion"} <= set(options)
    environment = {
        **os.environ,
        "_HOLDFAST_COMPLETE": "complete_bash",
        "COMP_WORDS": "holdfast ver",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_TESTING": "1",
    }
    code = "from holdfast.cli.app import app; app(args=[], prog_name='holdfast')"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    assert found.stdout.split() == ["verify"]


# Engines and ledgers by their addresses.


@pytest.mark.parametrize("engine", ["spark://host:1", "dask://", "dask://host", "duckdb"])
def test_an_engine_that_is_none_costs_nothing(
    folder: Path, cli: Any, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    before = (folder / "ledger.sqlite").read_bytes()
    words = ("ask", folder, "avg(x)", *GRID, "--json")
    for said in (cli(*words, "--engine", engine), _with(monkeypatch, cli, words, engine)):
        assert said.status == 2
        assert "dask://" in said.error["message"]
    assert (folder / "ledger.sqlite").read_bytes() == before


def _with(monkeypatch: pytest.MonkeyPatch, cli: Any, words: Any, engine: str) -> Any:
    monkeypatch.setenv("HOLDFAST_ENGINE", engine)
    return cli(*words)


def test_an_engine_that_is_away_costs_nothing(folder: Path, cli: Any) -> None:
    said = cli(
        "ask", folder, "avg(x)", *GRID, "--engine", "dask://127.0.0.1:9?patience=1", "--json"
    )
    assert said.status != 0
    assert "127.0.0.1:9" in said.err
    assert cli("status", folder, "--json").json["sets"][0]["spent"] == 0


@pytest.mark.parametrize(
    ("ledger", "said"),
    [("mysql://host/db", "postgresql://"), ("postgresql://me:secret@host/db", "password")],
)
def test_a_ledger_that_is_none_leaves_nothing(
    tmp_path: Path, cli: Any, ledger: str, said: str
) -> None:
    data = written(tmp_path / "t.csv", 500)
    place = tmp_path / "h"
    refused = cli("create", place, "--data", data, "--queries", 1, "--ledger", ledger, "--json")
    assert refused.status == 2
    assert said in refused.error["message"]
    assert "secret" not in refused.err
    assert not place.exists()


def test_a_location_needs_an_engine(tmp_path: Path, cli: Any) -> None:
    data, place = written(tmp_path / "t.csv", 500), tmp_path / "h"
    words = ("create", place, "--data", data, "--queries", 1, "--location", "s3://bucket/x")
    refused = cli(*words, "--json")
    assert refused.status == 2
    assert "engine" in refused.error["message"]
