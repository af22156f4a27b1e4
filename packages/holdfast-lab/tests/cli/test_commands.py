"""The lab's commands enter the `holdfast` command by entry point, and are missed by nobody."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest
import typer

import holdfast
from holdfast.cli.app import add_commands, app, run

OURS = {"demo", "lab"}


def names(group: typer.Typer) -> set[str | None]:
    commands = {each.name for each in group.registered_commands}
    return commands | {each.name for each in group.registered_groups}


def test_the_help_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    first = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert first >= OURS


def test_they_come_from_this_package_alone() -> None:
    found = entry_points(group="holdfast.commands")
    assert {each.name for each in found} == OURS
    assert all(each.value.startswith("holdfast_lab.") for each in found)
    assert names(app) >= OURS


def test_without_the_package_there_are_none_and_nobody_says_a_word(tmp_path: Path) -> None:
    """Holdfast as a wheel installs it, beside everything but the lab."""
    (tmp_path / "holdfast").symlink_to(Path(holdfast.__file__).parent)
    code = (
        "import importlib.metadata as m; found = m.entry_points; "
        "m.entry_points = lambda **by: [e for e in found(**by) if 'lab' not in e.value]; "
        "import sys; sys.path.insert(0, sys.argv.pop(1)); sys.modules['holdfast_lab'] = None; "
        "from holdfast.cli import main; main()"
    )
    for words, status in ((["--help"], 0), (["plan", "--queries", "10", "--json"], 0)):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), *words], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (status, "")
        assert not any(f" {name} " in done.stdout for name in OURS)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), "lab", "list"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "No such command 'lab'" in done.stderr


def test_what_cannot_be_imported_is_left_out_with_a_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    group = typer.Typer()
    broken = EntryPoint("broken", "holdfast_lab.no_such_module:app", "holdfast.commands")
    good = EntryPoint("lab", "holdfast_lab.cli:lab_app", "holdfast.commands")
    add_commands(group, [broken, good])
    assert names(group) == {"lab"}
    assert "the command broken is left out" in capsys.readouterr().err
