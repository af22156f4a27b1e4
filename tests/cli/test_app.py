"""The program: its options on the page about it, its help, completion, other terminals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from holdfast.cli.app import app
from holdfast.holdout.holdout import Holdout
from holdfast.verbs import SCORES
from tests.cli.conftest import Cli
from tests.holdout import plans
from tests.holdout.tables import sealed

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its words."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name.strip(), command
        return
    for word, each in inner.items():
        yield from commands(each, f"{name} {word}")


def said_of(command: str) -> str:
    """What the page says of a command: before the first heading, and under its own.

    Questions have one heading together, models have another, and `status` takes an address as
    they do.
    """
    head, *parts = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    named = [part for part in parts if part.startswith(f"holdfast {command.split()[0]}")]
    if not named or command == "status":
        named += [part for part in parts if part.startswith("Questions")]
    if command in (*SCORES, "leaderboard"):
        named += [part for part in parts if part.startswith("Models")]
    return head + "".join(named)


def test_every_option_is_on_the_page() -> None:
    known = list(commands(typer.main.get_command(app)))
    assert len(known) > 12
    missing = [
        (name, option)
        for name, command in known
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--") and option != "--help" and not parameter.hidden
        if not re.search(rf"{option}\b", said_of(name))
    ]
    assert missing == []


def test_every_option_of_the_page_is_there() -> None:
    known = {
        option
        for _, command in commands(typer.main.get_command(app))
        for parameter in command.params
        for option in parameter.opts
    }
    named = {*re.findall(r"`(--[a-z-]+)", PAGE.read_text("utf-8"))}
    assert len(named) > 40
    assert named - known == {"--help"}


def test_every_command_shows_how_it_is_typed(cli: Cli) -> None:
    for name in ("mean", "status", "check", "backup", *SCORES):
        assert re.search(rf"^  holdfast {name} ", cli(name, "--help").out, re.MULTILINE), name
    mean = cli("mean", "--help").out.split("\n\n")
    assert sum(part.startswith("  holdfast mean") for part in mean) == 2
    assert "with a plan: where no condition" in mean[1]
    cli("scor").refuses("Did you mean 'score', 'scores'? Try --help.")


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").out.startswith("holdfast 0.")
    assert "--tail" in cli("plan", "--help").out
    asked, bare = cli("--help"), cli()
    assert asked.status == 0
    assert (bare.status, bare.out, bare.err) == (2, "", asked.out)
    assert bare.err.startswith("Usage:")


def program(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The installed program, in a process of its own."""
    command = [str(Path(sys.executable).with_name("holdfast")), *map(str, words)]
    known: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60}
    return subprocess.run(command, env={**os.environ, **environment}, check=False, **known)


def test_as_a_program(tmp_path: Path) -> None:
    path = tmp_path / "a.holdfast"
    sealed(path, plans.simple(), ranges={"x": (0, 10)}).close()
    answer = program("ask", path, "avg(x)", "--json")
    assert answer.returncode == 0, answer.stderr
    assert 0 <= json.loads(answer.stdout)["value"] <= 10
    bad = program("ask", path, "avg(nobody)", "--json")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "nobody" in json.loads(bad.stderr)["error"]["message"]
    assert program("check", path).returncode == 0
    with Holdout.open(path) as holdout:
        assert holdout.status().answers == 1


def test_completion_is_offered() -> None:
    options = [name for each in typer.main.get_command(app).params for name in each.opts]
    assert {"--install-completion", "--show-completion"} <= set(options)
    asked = {"_HOLDFAST_COMPLETE": "complete_bash", "_TYPER_COMPLETE_TESTING": "1"}
    typed = {"COMP_WORDS": "holdfast ver", "COMP_CWORD": "1"}
    assert program(**asked, **typed).stdout.split() == ["verify"]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("plan", "--queries", 100, "--grid", 32, "--tail", 0.25), 0),
        (("plan", "--help"), 0),
        (("plan", "--queries", 5, "--shape", "ρ"), 2),
    ],
    ids=["answer", "help", "error"],
)
def test_a_terminal_without_unicode(words: tuple[object, ...], status: int) -> None:
    done = program(*words, PYTHONIOENCODING="ascii")
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert done.stdout or done.stderr.startswith("holdfast: shape")
