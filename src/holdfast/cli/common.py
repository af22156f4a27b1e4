"""What commands share: where a holdout is, words as values, and how results are shown."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.errors import HoldfastWarning, InvalidInput
from holdfast.protocols.answers import confidence_text

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.holdout.holdout import Holdout
    from holdfast.holdout.state import Status
    from holdfast.protocols.answers import Answer, Corrected, Verdict

__all__ = [
    "Engine",
    "Folder",
    "Json",
    "Place",
    "Token",
    "is_url",
    "opened",
    "show_answer",
    "show_corrected",
    "show_json",
    "show_status",
    "show_verdict",
    "size",
    "warnings_shown",
    "whole",
    "whole_option",
]

Place = Annotated[
    str,
    typer.Argument(
        metavar="DIR-OR-URL", help="The holdout's folder, or http://HOST:PORT/holdouts/NAME."
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The holdout's folder.")]
Token = Annotated[
    str | None,
    typer.Option(help="For a URL. Better in the variable HOLDFAST_TOKEN: others see commands."),
]

Engine = Annotated[
    str | None,
    typer.Option(
        envvar="HOLDFAST_ENGINE",
        help="Where blocks are evaluated: dask://HOST:PORT, a Dask scheduler; else here.",
    ),
]


def is_url(place: str) -> bool:
    """Whether a place is on a server, and no folder.

    >>> is_url("https://data.example.org/holdouts/flights"), is_url("flights.holdfast")
    (True, False)
    """
    return place.lower().startswith(("http://", "https://"))


def opened(place: str, token: str | None = None, engine: str | None = None) -> Holdout | Client:
    """The holdout in a folder, or a client for one on a server: both are asked alike."""
    if is_url(place):  # whose custodian chooses the engine
        from holdfast.client.client import Client

        return Client(place, token)
    if token is not None:
        raise InvalidInput("token", "(not shown)", "left out for a folder")
    from holdfast.holdout.holdout import Holdout

    return Holdout.open(place, engine=engine)


# Values as people type them.


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def whole(text: str) -> int:
    """A whole number, with an exponent if that is shorter; its range is checked by whoever asks.

    >>> whole("1000"), whole("1e6"), whole("2.5e3")
    (1000, 1000000, 2500)
    """
    try:
        return int(text)  # first, and exactly: a float would round a large one
    except ValueError:
        pass
    try:
        number = float(text)
        if number.is_integer():
            return int(number)
    except ValueError:
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number.")  # typer adds which option


def whole_option(meaning: str) -> Any:
    """An option that takes a `whole` number."""
    return typer.Option(help=meaning, parser=whole, metavar="<int>")


_SIZE = re.compile(r"(\d{1,9})\s*(B|KB|MB|GB)?", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}


def size(option: str, text: str) -> int:
    """A number of bytes.

    >>> size("--body-limit", "64KB"), size("--body-limit", "10 mb")
    (65536, 10485760)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(option, text, "a size such as 64KB or 50MB")
    return int(found[1]) * _UNITS[(found[2] or "B").casefold()]


# How answers, verdicts and the state of a holdout look in a terminal.


_POOR = "bold yellow"


def show_json(data: object) -> None:
    """Numbers as numbers, for programs."""
    typer.echo(json.dumps(data, indent=2))


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Holdfast's own warnings, each a line on standard error; others as they are."""
    with warnings.catch_warnings(record=True, action="always", category=HoldfastWarning) as found:
        yield
    for each in found:
        if issubclass(each.category, HoldfastWarning):
            typer.echo(f"Warning: {each.message}", err=True)
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def show_answer(answer: Answer, question: str) -> None:
    """A value, its bar, its promise and its price."""
    _lines(question, answer.described(), "bold green")


def show_verdict(verdict: Verdict, question: str) -> None:
    """Compatible, not compatible, cannot tell or exhausted."""
    _lines(question, verdict.described(), "bold" if verdict.verdict == "compatible" else _POOR)


def show_corrected(corrected: Corrected, question: str) -> None:
    """The verdict, and what took the guess's place."""
    show_verdict(corrected.verdict, question)
    if corrected.correction is not None:
        show_answer(corrected.correction, "corrected")


def _lines(title: str, items: dict[str, str], style: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for index, (label, text) in enumerate(items.items()):
        table.add_row(label, Text(text, style="" if index else style))
    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    console.print(table)


def show_status(status: Status) -> None:
    """Bars of what is spent, and what the rest buys."""
    from rich.console import Console
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from holdfast.protocols.answers import ASSUMPTIONS

    console = Console(highlight=False)
    console.print(Text(status.name, style="bold"), Text(status.path, style="dim"))
    sure = "certified" if status.certified else "seeded: nothing is certified"
    console.print(
        f"{status.answers:,} questions answered; for all answers at once with confidence "
        f"{confidence_text(status.confidence)} ({sure})"
    )
    console.print(
        f"{status.blocks:,} blocks of {status.block_units:,} units; {status.open_units:,} units "
        f"are open, {status.leftover_units:,} left over"
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("set", "spent", "", "part", "questions left", "refusals left"):
        table.add_column(heading, justify="right" if heading.endswith("left") else "left")
    notes: list[str] = []
    for each in status.sets:
        bar = ProgressBar(total=1.0, completed=each.used, width=20)
        for index, part in enumerate(each.parts):
            refusals = "" if part.refusals_left is None else f"{part.refusals_left:,}"
            head = (each.name, f"{each.used:.1%}", bar) if index == 0 else ("", "", "")
            table.add_row(*head, part.name, f"{part.questions_left:,}", refusals)
            if part.still_possible and not part.questions_left:
                notes.append(f"still possible: {part.still_possible}")
        if each.unsettled:
            table.add_row("", "", "", f"{each.unsettled:,} unsettled, charged in full", "", "")
    console.print(table)
    for note in notes:
        console.print(note, markup=False)
    console.print(Text("questions left: were all the rest of the set spent on that part", "dim"))
    console.print(Text(f"assumes: {ASSUMPTIONS}", style="dim"))
    if status.budget_reason is not None:
        console.print(status.budget_reason, markup=False)
    console.print(Text(f"receipt  {status.receipt}", style="dim"), soft_wrap=True)
