"""`holdfast plan --protocol …` as a person or a program uses it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.cli.app import run


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["plan", *arguments, "--json"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["plan", *arguments]) == 2
    return capsys.readouterr().err


MEAN = ["--protocol", "mean", "--queries", "1000", "--half-width", "0.1", "--confidence", "0.95"]
VERIFY = [
    *("--protocol", "verify", "--queries", "1000", "--refusals", "10"),
    *("--tail-low", "0.05", "--tail-high", "0.25", "--confidence", "0.95"),
]


def test_mean(capsys: pytest.CaptureFixture[str]) -> None:
    data = answer(capsys, *MEAN)
    assert data["rows"] <= 91_000
    assert data["half_width"] == 0.1
    assert {a["method"] for a in data["alternatives"]} >= {"paper", "direct search", "split"}
    assert all(isinstance(a["rows"], int) for a in data["alternatives"])


def test_verify(capsys: pytest.CaptureFixture[str]) -> None:
    data = answer(capsys, *VERIFY)
    assert data["blocks"] <= 4_650
    assert {"method": "paper", "blocks": 1_046_522} in data["alternatives"]


@pytest.mark.parametrize(
    ("protocol", "options", "keys"),
    [
        ("interval", ["--half-width", "0.1"], ["blocks", "width", "rows", "tail"]),
        ("interval", ["--tail", "0.02", "--rows", "1e6"], ["blocks", "width", "block_size"]),
        ("interval", [], ["blocks", "quantile_width"]),
        ("weights", ["--universe", "1000", "--tail", "0.05"], ["blocks", "updates", "tail"]),
        ("rounds", ["--rounds", "3"], ["blocks", "set_blocks", "tail", "rounds"]),
        ("correct", ["--refusals", "3"], ["blocks", "tail"]),
        ("split", [], ["blocks"]),
        ("amplified", [], ["blocks", "subblocks"]),
        ("simple", [], ["blocks", "tail"]),
        ("auto", ["--refusals", "3", "--universe", "50"], ["blocks", "candidates", "saving"]),
    ],
)
def test_every_protocol_has_numbers(
    capsys: pytest.CaptureFixture[str], protocol: str, options: list[str], keys: list[str]
) -> None:
    data = answer(capsys, "--protocol", protocol, "--queries", "50", *options)
    for key in keys:
        assert data[key] is not None
    assert data["blocks"] > 0
    assert run(["plan", "--protocol", protocol, "--queries", "50", *options]) == 0
    text = capsys.readouterr().out
    assert f"{data['blocks']:,}" in text
    assert "promise" in text


def test_what_a_protocol_is_not_told_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--refusals" in refusal(capsys, "--protocol", "verify", "--queries", "10")
    message = refusal(capsys, "--protocol", "split", "--queries", "10", "--universe", "5")
    assert "--universe must be left out for --protocol split" in message
    assert "one of estimate, auto" in refusal(capsys, "--protocol", "magic", "--queries", "10")
    assert "queries" in refusal(capsys, "--protocol", "split")
    assert "--protocol" in refusal(capsys, "--queries", "10", "--refusals", "2")
    assert "--rows" in refusal(
        capsys, "--protocol", "interval", "--queries", "10", "--tail", "0.1", "--rows", "5"
    )


def test_errors_are_json_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--protocol", "verify", "--queries", "10", "--json"]) == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["kind"] == "bad_question"
