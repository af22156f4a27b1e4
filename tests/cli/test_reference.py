"""The page about the command line names every option of every command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from holdfast.cli.app import app

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

    Questions have one heading together, and `status` takes an address as they do.
    """
    head, *parts = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    named = [part for part in parts if part.startswith(f"holdfast {command.split()[0]}")]
    if not named or command == "status":
        named += [part for part in parts if part.startswith("Questions")]
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
