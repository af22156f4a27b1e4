"""`holdfast report`, as a function."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from holdfast.cli.custody import report_command
from holdfast.errors import InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.planning.solve import plan


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("command") / "small.holdfast"
    data = {"x": np.random.default_rng(9).uniform(size=2000)}
    Holdout.create(path, data, plan(queries=5, grid=8, tail=0.25)).close()
    return path


def test_it_writes_a_page_and_replaces_none(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.html"
    report_command(folder, output)
    said = capsys.readouterr().out
    assert str(output) in said
    first = output.read_bytes()
    assert first.startswith(b"<!DOCTYPE html>")
    output.write_text("something else")
    with pytest.raises(InvalidInput, match="--force"):
        report_command(folder, output)
    assert output.read_text() == "something else"
    report_command(folder, output, force=True)
    assert output.read_bytes() == first


def test_its_json_has_numbers(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.html"
    report_command(folder, output, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["output"] == str(output)
    assert (said["questions"], said["bytes"]) == (0, output.stat().st_size)
    with Holdout.open(folder) as holdout:
        assert said["receipt"] == str(holdout.receipt)
