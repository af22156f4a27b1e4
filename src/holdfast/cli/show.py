"""How answers, verdicts and the state of a holdout look in a terminal."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from holdfast.errors import HoldfastWarning
from holdfast.protocols.promises import confidence_text

if TYPE_CHECKING:
    from holdfast.holdout.status import Status
    from holdfast.protocols.answers import Answer, Verdict
    from holdfast.protocols.correct import Corrected

__all__ = [
    "show_answer",
    "show_corrected",
    "show_json",
    "show_status",
    "show_verdict",
    "warnings_shown",
]

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

    from holdfast.planning.explain import ASSUMPTIONS

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
