"""The demo on a screen: labelled lines, two tables, and a bar for what takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING

from holdfast.demo.analyst import Hunt
from holdfast.demo.finding import Finding, percent
from holdfast.demo.flights import cell_words
from holdfast.demo.frequency import Runs
from holdfast.demo.result import DemoResult
from holdfast.lab.worlds.flights import Cell

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Screen", "show_comparison", "show_rounds", "show_runs"]

_LABEL = 10
_SHOWN = 3
_ROUNDS = ("airline, airport, …", "pairs of the worst", "planes of the worst")


class Screen:
    """Two consoles: what is said goes to one, bars to the other."""

    def __init__(self, console: Console, bars: Console) -> None:
        self._console, self._bars = console, bars

    def say(self, label: str, text: str, *, good: bool | None = None) -> None:
        """One labelled line, folded if it is long; green or red if it is a result."""
        from rich.text import Text

        style = "" if good is None else "green" if good else "bold red"
        room = max(20, self._console.width - _LABEL)
        for index, line in enumerate(wrap(text, room, break_on_hyphens=False)):
            head = Text(f"{'' if index else label:<{_LABEL}}", style="bold")
            self._console.print(head + Text(line, style=style), soft_wrap=True)

    def put(self, table: Table) -> None:
        """A table between empty lines."""
        self._console.print()
        self._console.print(table)
        self._console.print()

    @contextmanager
    def bar(self, text: str) -> Iterator[Callable[[int, int], None]]:
        """A bar while something takes long."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._bars, transient=True) as progress:
            task = progress.add_task(text, total=None)

            def report(done: int, total: int) -> None:
                progress.update(task, completed=done, total=total)

            yield report


def show_rounds(screen: Screen, result: DemoResult) -> None:
    """How the search went, round by round."""
    table = _table("Search", ("asked", "right"), ("worst, exact answers", "left"))
    table.add_column("worst, Holdfast's answers")
    rounds = zip(_ROUNDS, result.naive_hunt.rounds, result.hunt.rounds, strict=True)
    for name, exact, sealed in rounds:
        table.add_row(
            name, str(len(sealed)), _worst(result.naive_hunt, exact), _worst(result.hunt, sealed)
        )
    screen.put(table)


def show_comparison(screen: Screen, result: DemoResult) -> None:
    """The last table: the two findings, and the truth."""
    table = _table(f"After {result.questions} questions", ("finding: a list of ten cells", "left"))
    for heading in ("answer", "95 % interval", "truth"):
        table.add_column(heading, justify="right")
    table.add_column("contains it")
    table.add_row("naive reuse, textbook", _list(result.naive), *_numbers(result.naive))
    sure = "Holdfast" if result.certified else "Holdfast (seeded)"
    table.add_row(sure, _list(result.holdfast), *_numbers(result.holdfast))
    table.add_row("", "all flights", *_numbers(result.everything))
    screen.put(table)
    screen.say(
        "",
        "Each interval is about the share of late flights among the population's flights on that "
        "list. The textbook's holds for one list that was fixed before anybody saw the data, "
        f"Holdfast's for all {result.status.get('answers', 0)} answers at once, chosen as they "
        "were.",
    )
    runs = len(result.naive_runs)
    screen.say(
        "Chance?",
        f"naive reuse of {runs} other samples, the same search: the textbook's interval missed the "
        f"population's value in {result.naive_missed} of {runs}",
    )


def show_runs(screen: Screen, runs: Runs) -> None:
    """How often either interval contains the population's value."""
    count = len(runs.runs)
    table = _table(f"{count} fresh samples, {runs.questions} questions each", ("answer", "right"))
    for heading in ("95 % interval", "truth", "contains it"):
        table.add_column(heading, justify="right")
    naive, sealed = [r.naive for r in runs.runs], [r.holdfast for r in runs.runs]
    table.add_row("naive reuse, textbook", *_averages(naive))
    table.add_row("Holdfast", *_averages(sealed))
    screen.put(table)
    kept = sum(run.checked.kept for run in runs.runs)
    answers = sum(run.checked.answers for run in runs.runs)
    screen.say("Promise", f"{kept:,} of {answers:,} answers keep it", good=kept == answers)
    screen.say("", "answers, ends and truths are averages over the samples")


def _table(first: str, *columns: tuple[str, str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(first)
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left")
    return table


def _worst(found: Hunt, cells: tuple[Cell, ...]) -> str:
    if not cells:
        return "–"
    worst = found.worst(cells)[0]
    none = sum(found.answers[cell] == 0 for cell in cells)
    shown = f"{cell_words(worst)} {percent(found.answers[worst], 1)}"
    return f"{shown}; {none} at 0 %" if none else shown


def _list(finding: Finding) -> str:
    names = ", ".join(cell_words(cell) for cell in finding.cells[:_SHOWN])
    return f"{names}, …: {finding.flights:,} flights"


def _numbers(finding: Finding) -> tuple[str, str, str, str]:
    contains = "[green]yes[/]" if finding.contains else "[bold red]no[/]"
    interval = _interval(finding.low, finding.high)
    return percent(finding.value, 1), interval, percent(finding.truth, 1), contains


def _interval(low: float, high: float) -> str:
    return f"{100 * low:.1f} – {percent(high, 1)}"


def _averages(findings: list[Finding]) -> tuple[str, str, str, str]:
    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    contained = sum(finding.contains for finding in findings)
    return (
        percent(mean([finding.value for finding in findings]), 1),
        _interval(mean([f.low for f in findings]), mean([f.high for f in findings])),
        percent(mean([finding.truth for finding in findings]), 1),
        f"{contained} of {len(findings)}",
    )
