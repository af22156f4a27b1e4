"""What commands share: where a holdout is, words as values, and how results are shown."""

from __future__ import annotations

import json
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.errors import HoldfastWarning, InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.client.client import Client
    from holdfast.holdout.answering import Price
    from holdfast.holdout.holdout import Holdout
    from holdfast.holdout.state import SetStatus, Status

__all__ = [
    "Engine",
    "Folder",
    "Json",
    "Place",
    "Request",
    "Token",
    "Verbose",
    "asking",
    "is_url",
    "opened",
    "show_json",
    "show_price",
    "show_result",
    "show_status",
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


def _here(context: typer.Context, folder: Path) -> Path:
    """The folder; an address is refused, of which a path has lost a slash."""
    if is_url(str(folder).replace(":/", "://", 1)):
        name = context.command_path.partition(" ")[2]
        hint = (
            f"{name} reads the folder itself: run it on the server, or use the Custodian view of "
            "its page."
        )
        raise InvalidInput("DIR", "an address", "a folder on this machine", hint)
    return folder


Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The holdout's folder.", callback=_here)
]
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


Request = Annotated[
    str | None, typer.Option(help="A key of yours: asked again with it, nothing is told anew.")
]


def is_url(place: str) -> bool:
    """Whether a place is on a server, and no folder.

    >>> is_url("https://data.example.org/holdouts/flights"), is_url("flights.holdfast")
    (True, False)
    """
    return place.lower().startswith(("http://", "https://"))


def opened(
    place: str, token: str | None = None, engine: str | None = None, *, quiet: bool = False
) -> Holdout | Client:
    """The holdout in a folder, or a client for one on a server: both are asked alike.

    Who waits for a server that does not reply is told so, unless it is a program (`quiet`).
    """
    if is_url(place):  # whose custodian chooses the engine
        from holdfast.client.client import Client

        client = Client(place, token)

        def say(reason: str) -> None:
            typer.echo(f"No reply ({reason}), trying again …", err=True)
            client.on_lost = None  # once

        client.on_lost = None if quiet else say
        return client
    if token is not None:
        raise InvalidInput("token", "(not shown)", "left out for a folder")
    from holdfast.holdout.holdout import Holdout

    return Holdout.open(place, engine=engine)


@contextmanager
def asking(
    place: str,
    token: str | None,
    engine: str | None,
    as_json: bool,
    metrics: Path | None = None,
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The holdout, and a bar for evaluations that take long, where they take place here."""
    if metrics is not None and is_url(place):
        hint = "On a server they are its custodian's: holdfast serve --metrics FILE.py."
        raise InvalidInput("--metrics", str(metrics), "left out for a server", hint)
    silent = as_json or not sys.stderr.isatty()  # else it leaves an empty line in a log
    with (
        opened(place, token, engine, quiet=as_json) as holdout,
        nullcontext() if silent else _bar() as report,
    ):
        if metrics is not None:
            from holdfast.holdout.scoring import read_scorers

            holdout.scorers = read_scorers(metrics)  # type: ignore[union-attr]  # no URL
        yield holdout, {} if is_url(place) else {"progress": report}


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """What shows on a terminal how far an evaluation is; loaded where there is one."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("evaluating", total=None, visible=False)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=True)

        yield report


# Values as people type them.


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Say also what is assumed, and the receipt.")
]


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


EXHAUSTED = 3


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


def show_result(result: Any, title: str, as_json: bool, verbose: bool = False) -> None:
    """An answer, a verdict, a correction or what is told; `exhausted` ends the command."""
    if as_json:
        show_json(result.to_dict())
    elif result.kind == "told" and not verbose:
        typer.echo(str(result))
    else:
        for step in result.steps:
            _lines(title, step.described(), _style(step))
            title = "corrected"
    if getattr(result.steps[0], "verdict", None) == "exhausted":
        raise typer.Exit(EXHAUSTED)


def show_price(price: Price, as_json: bool) -> None:
    """What a question would cost; of what is told, for each likely answer."""
    if as_json:
        show_json(price.to_dict())
        return
    typer.echo(str(price))
    for doubt in price.doubts:
        typer.echo(f"Careful: {doubt.message}", err=True)


def _style(step: Any) -> str:
    word = getattr(step, "verdict", None)
    if word in (None, "compatible", "better", "pass"):
        return "bold green" if word is None else "bold"
    return "bold yellow"


def _lines(title: str, items: dict[str, str], style: str) -> None:
    """Labelled lines, folded but for the receipt: it is there to be copied."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(title, style="bold"), soft_wrap=True)
    indent = " " * (max(map(len, items)) + 2)
    room = max(10, console.width - len(indent))
    for label, text in items.items():
        folded = [text]
        if label != "receipt":
            folded = [
                part
                for line in text.splitlines()
                for part in textwrap.wrap(line, room, break_on_hyphens=False) or [""]
            ]
        said = f"\n{indent}".join(folded), style
        console.print(Text.assemble((label.ljust(len(indent)), "dim"), said), soft_wrap=True)
        style = ""


def show_status(status: Status) -> None:
    """What Python says of it, and bars of what is spent."""
    from rich.console import Console

    console = Console(highlight=False)
    for line in status.head():
        console.print(line, markup=False)
    looked = [each for each in status.sets if each.told is None]
    if looked:
        _show_budgets(console, looked)
    *rest, receipt = status.foot()
    for line in rest:
        folded = textwrap.wrap(line, max(20, console.width), subsequent_indent=" " * 10)
        console.print("\n".join(folded), markup=False, style="dim", soft_wrap=True)
    console.print(receipt, markup=False, style="dim", soft_wrap=True)


def _show_budgets(console: Console, sets: Sequence[SetStatus]) -> None:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("set", "spent", "", "part", "questions left", "refusals left"):
        table.add_column(heading, justify="right" if heading.endswith("left") else "left")
    notes: list[str] = []
    for each in sets:
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
