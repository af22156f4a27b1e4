"""`holdfast plan` as a person or a program uses it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.common import whole
from tests.cli.conftest import Cli

ASK = ("plan", "--queries", 100, "--grid", 32, "--tail", 0.25, "--confidence", 0.95)


def test_json(cli: Cli) -> None:
    data = cli(*ASK, "--json").json
    assert (data["method"], data["tail"], data["confidence"]) == ("steepest", 0.25, 0.95)
    assert data["blocks"] <= 2_260
    assert data["looks"] == 500
    assert min(data[key] for key in ("order", "budget", "floor", "tau")) > 0
    blocks = {entry["method"]: entry["blocks"] for entry in data["alternatives"]}
    known = {"paper": 228_705, "split": 4_300, "steepest": data["blocks"]}
    assert {name: blocks[name] for name in known} == known
    rows = cli("plan", "--queries", 50, "--grid", 32, "--rows", 50_000, "--json").json
    assert rows["block_size"] >= 1
    assert 0 < rows["error"] < 0.5
    points = cli("plan", "--queries", 5, "--grid", "0:1:0.1", "--tail", 0.1, "--json").json
    assert points["grid"] == 11


def test_what_will_i_get(cli: Cli) -> None:
    asked = ("plan", "--rows", 10_000, "--queries", 20)
    text = cli(*asked).out
    lines = text.splitlines()
    assert lines[0] == "Without a plan:"
    assert lines[1].startswith("6,000 of 10,000 units are sealed; 4,000 stay open")
    assert text.index("3 surprises") < text.index("By looks, for any estimator of a block:")
    assert "Plan for 20 questions" in text
    data = cli(*asked, "--json").json
    assert data["blocks"] > 0
    (part,) = data["told"]["parts"]
    assert [each["questions"] for each in part["bars"]] == [0, 20, 100, 1_000]
    assert part["bars"][0]["half_widths"][0] < data["error"]
    asked = ("plan", "--rows", 10, "--queries", 20)
    few = cli(*asked)
    assert few.status == 0
    assert "bring more data" in few.out.replace("\n", " ")
    assert cli(*asked, "--json").json.keys() == {"infeasible", "told"}
    assert "--queries" in cli("plan", "--rows", 10).out  # it is needed for looks
    cli("plan", "--rows", 1).refuses("rows must be a whole number from 2")


@pytest.mark.parametrize("columns", [80, 40, 30])
def test_a_table_shows_whole_numbers(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    said = cli(*ASK)
    assert said.status == 0
    assert columns < 80 or ("recommended" in said.out and "asymptotic only" in said.out)
    table = said.out.partition("The same promise")[2]
    for number in ("228,705", "4,300", "1.00", "× steepest"):
        assert number in table


FIVE = ("--queries", "5")
WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--queries", "0"), "queries must be a whole number from 1"),
    (("--queries", "x"), "'--queries': 'x' is not a whole number."),
    (("--queries", "2.5"), "'--queries': '2.5' is not a whole number."),
    (("--rows", "1e-3"), "'--rows': '1e-3' is not a whole number."),
    (("--blocks", "inf"), "'--blocks': 'inf' is not a whole number."),
    (("--block-size", "nan"), "'--block-size': 'nan' is not a whole number."),
    (("--queries", "1e9"), "queries must be a whole number from 1 to 100,000,000"),
    (("--nonsense",), "--nonsense"),
    ((*FIVE, "--tail", "0.5"), "tail must be a number in (0, 0.5)"),
    ((*FIVE, "--confidence", "2"), "confidence must be"),
    ((*FIVE, "--tails", "0.1"), "tails must be two numbers"),
    ((*FIVE, "--grid", "3,2,1"), "grid"),
    ((*FIVE, "--grid", "nan"), "grid must be a whole number, LOW:HIGH:STEP"),
    ((*FIVE, "--grid", "2.5"), "grid must be a whole number, LOW:HIGH:STEP"),
    ((*FIVE, "--grid", "1e0"), "grid must be a whole number from 2"),
    ((*FIVE, "--plot", "picture.gif"), "svg, png, pdf"),
    ((*FIVE, "--plot", "nowhere/at/all.svg"), "existing folder"),
    ((*FIVE, "--plot", "folder.svg"), "plot must be a file, not a folder"),
    (("--queries", "9", "--tail", "0.2", "--rows", "10"), "Not enough rows"),
    (("--protocol", "verify", *FIVE), "--refusals"),
    (
        ("--protocol", "split", *FIVE, "--universe", "5"),
        "--universe must be left out for --protocol split",
    ),
    (("--protocol", "magic", *FIVE), "one of estimate, auto"),
    (("--protocol", "split"), "queries"),
    ((*FIVE, "--refusals", "2"), "--protocol"),
    (("--protocol", "interval", *FIVE, "--tail", "0.1", "--rows", "5"), "--rows"),
]


def test_bad_questions_exit_with_2(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.svg").mkdir()
    for words, message in WRONG:
        for more in ((), ("--json",)):
            cli("plan", *words, *more).refuses(message)


def test_whole_numbers_may_have_an_exponent(cli: Cli) -> None:
    plain, powers = (
        cli("plan", "--queries", queries, "--grid", grid, "--rows", rows, "--json").json
        for queries, grid, rows in (("10", "100", "10000"), ("1e1", "1e2", "1.0e4"))
    )
    assert plain == powers
    assert plain["grid"] == 100
    assert whole(str(2**62 + 1)) == 2**62 + 1  # exactly


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_plot(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(sys.modules["holdfast.planning.compare"], "PLOT_QUERIES", (1, 10))
    target = tmp_path / f"figure.{suffix}"
    said = cli("plan", "--queries", 5, "--tail", 0.1, "--plot", target)
    assert said.status == 0
    assert target.stat().st_size > 5_000
    assert "Drawn" in said.err


# Other protocols.


def test_what_a_mean_and_a_guess_need(cli: Cli) -> None:
    mean = ("--protocol", "mean", "--half-width", 0.1)
    data = cli("plan", *mean, "--queries", 1000, "--json").json
    assert data["rows"] <= 91_000
    assert data["half_width"] == 0.1
    rows = {each["method"]: each["rows"] for each in data["alternatives"]}
    assert rows.keys() >= {"paper", "direct search", "split"}
    assert {type(each) for each in rows.values()} == {int}
    tails = ("--refusals", 10, "--tail-low", 0.05, "--tail-high", 0.25)
    data = cli("plan", "--protocol", "verify", "--queries", 1000, *tails, "--json").json
    assert data["blocks"] <= 4_650
    assert {"method": "paper", "blocks": 1_046_522} in data["alternatives"]


@pytest.mark.parametrize(
    ("protocol", "options", "keys"),
    [
        ("interval", ("--half-width", 0.1), ("width", "rows", "tail")),
        ("interval", ("--tail", 0.02, "--rows", "1e6"), ("width", "block_size")),
        ("interval", (), ("quantile_width",)),
        ("weights", ("--universe", 1000, "--tail", 0.05), ("updates", "tail")),
        ("rounds", ("--rounds", 3), ("set_blocks", "tail", "rounds")),
        ("correct", ("--refusals", 3), ("tail",)),
        ("split", (), ()),
        ("amplified", (), ("subblocks",)),
        ("simple", (), ("tail",)),
        ("auto", ("--refusals", 3, "--universe", 50), ("candidates", "saving")),
    ],
)
def test_every_protocol_has_numbers(
    cli: Cli, protocol: str, options: tuple[Any, ...], keys: tuple[str, ...]
) -> None:
    words = ("plan", "--protocol", protocol, "--queries", 50, *options)
    data = cli(*words, "--json").json
    assert [key for key in keys if data[key] is None] == []
    assert data["blocks"] > 0
    text = cli(*words).out
    assert f"{data['blocks']:,}" in text
    assert "promise" in text
