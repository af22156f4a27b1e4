"""The demo: three lines, one picture, and the lines without the picture too."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from holdfast_lab.attacks.medians import HOLDFAST, NAIVE, demo_lines, run_demo


def test_three_lines_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_demo(tmp_path / "new", seed=1, runs=12)
    lines = capsys.readouterr().out.splitlines()
    assert result.plan.promise.looks == 10_000
    assert result.failures(NAIVE) == 12
    assert result.failures(HOLDFAST) == 0
    promise, naive, ours = demo_lines(result)
    assert lines[4:7] == [promise, naive, ours]
    assert "outside in 12 of 12 runs" in naive
    assert "outside in 0 of 12 runs" in ours
    assert "no certificate" in "".join(lines)
    assert f"{result.plan.blocks:,} blocks" in lines[0]
    assert max(map(len, lines[:7])) <= 100
    for suffix in (".svg", ".png"):
        picture = tmp_path / "new" / f"demo{suffix}"
        assert str(picture) in lines[-1]
        assert 5_000 < picture.stat().st_size < 200_000


def test_the_same_seed_draws_the_same_picture(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        run_demo(tmp_path / folder, seed=2, runs=3, questions=300, echo=lambda _: None)
    assert (tmp_path / "a/demo.svg").read_bytes() == (tmp_path / "b/demo.svg").read_bytes()


def test_json(tmp_path: Path) -> None:
    said: list[str] = []
    run_demo(tmp_path, seed=1, runs=3, json=True, questions=300, echo=said.append)
    (text,) = said
    shown = json.loads(text)
    assert shown["looks"] == 310
    assert shown["blocks"] == shown["blocks_planned"]
    assert shown["certified"] is False
    assert len(shown["responders"]["holdfast"]["ranks"]) == 3
    assert [Path(p).name for p in shown["pictures"]] == ["demo.svg", "demo.png"]


def test_without_matplotlib_the_lines_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    said: list[str] = []
    run_demo(tmp_path, seed=1, runs=2, questions=300, echo=said.append)
    assert sum(line.startswith(("Promise", "Naive", "Holdfast")) for line in said) == 3
    assert "pip install matplotlib" in said[-1]
    assert list(tmp_path.iterdir()) == []


def test_too_few_blocks_are_admitted(tmp_path: Path) -> None:
    said: list[str] = []
    run_demo(tmp_path, seed=1, runs=4, questions=300, blocks=3, echo=said.append)
    assert "but 3 are used" in said[0]
    assert (tmp_path / "demo.svg").exists()  # ranks beyond the scale are drawn at its edge
