"""The demo on a screen: labelled lines, two tables, and a bar for what takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from holdfast_lab.demo.sealed import Checked
from holdfast_lab.demo.search import Finding, Hunt, cell_words, percent
from holdfast_lab.figures import save_figure
from holdfast_lab.flights import Cell, Flights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table


# What came of a demo: for the screen, the picture, and as plain data.


@dataclass(frozen=True)
class Run:
    """One sample: what either search found in it."""

    naive: Finding
    holdfast: Finding
    checked: Checked


@dataclass(frozen=True)
class Runs:
    """Many samples."""

    questions: int
    runs: tuple[Run, ...]

    @property
    def missed(self) -> int:
        """How often the textbook's interval did not contain the population's value."""
        return sum(not run.naive.contains for run in self.runs)

    @property
    def contained(self) -> int:
        """How often Holdfast's bar did."""
        return sum(run.holdfast.contains for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        return {
            "questions": self.questions,
            "runs": len(self.runs),
            "naive_missed": self.missed,
            "holdfast_contained": self.contained,
            "answers": sum(run.checked.answers for run in self.runs),
            "answers_kept": sum(run.checked.kept for run in self.runs),
            "each": [
                {
                    "naive": run.naive.to_dict(),
                    "holdfast": run.holdfast.to_dict(),
                    "promise": run.checked.to_dict(),
                }
                for run in self.runs
            ],
        }


@dataclass
class DemoResult:
    """Filled as the demo goes along."""

    population: int
    sample: int
    questions: int
    blocks: int
    block_units: int
    leftover: int
    certified: bool
    naive_hunt: Hunt
    hunt: Hunt
    naive: Finding
    holdfast: Finding
    everything: Finding
    naive_runs: list[Finding] = field(default_factory=list)
    delays: dict[str, dict[str, float]] = field(default_factory=dict)
    cached: bool = False
    refused: str = ""
    verdicts: dict[str, str] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    receipt: str = ""
    checked: Checked | None = None
    report: Path | None = None
    pictures: list[Path] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def naive_missed(self) -> int:
        """In how many fresh samples the textbook's interval missed the population's value."""
        return sum(not finding.contains for finding in self.naive_runs)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        assert self.checked is not None
        return {
            "population": self.population,
            "sample": self.sample,
            "questions": self.questions,
            "blocks": self.blocks,
            "block_units": self.block_units,
            "leftover": self.leftover,
            "certified": self.certified,
            "naive": self.naive.to_dict(),
            "holdfast": self.holdfast.to_dict(),
            "all_flights": self.everything.to_dict(),
            "naive_runs": len(self.naive_runs),
            "naive_missed": self.naive_missed,
            "promise": self.checked.to_dict(),
            "delays": self.delays,
            "cached": self.cached,
            "refused": self.refused,
            "verdicts": self.verdicts,
            "status": self.status,
            "receipt": self.receipt,
            "report": str(self.report),
            "pictures": [str(path) for path in self.pictures],
            "seconds": round(self.seconds, 1),
        }


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


# The demo's picture: every answer of both searches against the truth, and the two findings.
#
# Needs matplotlib (the extra `plot`), which is imported when the picture is drawn.


# Okabe & Ito's palette, as in the lab's pictures.
_NAIVE, _HOLDFAST, _TRUTH = "#D55E00", "#0072B2", "#222222"
_FAINT = "#767676"


def draw_pictures(result: DemoResult, flights: Flights, folder: Path) -> list[Path]:
    """Write demo.svg and demo.png; nothing where matplotlib is missing."""
    try:
        return save_figure(draw_demo(result, flights), folder, "demo")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        return []


def draw_demo(result: DemoResult, flights: Flights) -> Figure:
    """Left: answers against truths, cell by cell. Right: the two findings with their intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.25])
    left.axline((0, 0), slope=1, color=_FAINT, linewidth=1, zorder=1)
    _scatter(left, result.naive_hunt, flights, _NAIVE, "^", "exact answers")
    _scatter(left, result.hunt, flights, _HOLDFAST, "o", "Holdfast's answers")
    left.set_xlim(0, 1)
    left.set_ylim(-0.02, 1)
    left.set_xlabel("truth: late flights among the cell's, in the population")
    left.set_ylabel("answer")
    left.set_title("Every question of the two searches", fontsize=11, color=_FAINT)
    left.text(0.97, 0.03, "planes: no answer to chase", ha="right", color=_HOLDFAST, fontsize=9)
    left.annotate(
        "answer = truth",
        (0.88, 0.88),
        xytext=(-8, 2),
        textcoords="offset points",
        ha="right",
        color=_FAINT,
        fontsize=9,
    )
    left.legend(frameon=False, loc="upper left")
    _percent(left.xaxis, left.yaxis)
    _bare(left)
    rows = (
        (2.0, _NAIVE, "^", "Naive reuse", "textbook 95 % interval", result.naive),
        (1.0, _HOLDFAST, "o", "Holdfast", "95 % for all answers at once", result.holdfast),
        (0.0, _HOLDFAST, "o", "Holdfast", "all flights", result.everything),
    )
    for height, colour, marker, name, about, finding in rows:
        _picture_interval(right, height, colour, marker, finding)
        right.text(0.0, height + 0.2, name, color=colour, fontweight="bold", fontsize=11)
        right.text(0.215, height + 0.2, about, color=_FAINT, fontsize=9.5)
    right.scatter([], [], marker="D", s=30, color=_TRUTH, label="truth in the population")
    right.legend(frameon=False, loc="lower right")
    right.set_xlim(0, 1)
    right.set_ylim(-0.6, 2.5)
    right.set_yticks([])
    right.set_xlabel("late flights among those on the list")
    right.set_title("What each search found: a list of ten cells", fontsize=11, color=_FAINT)
    _percent(right.xaxis)
    _bare(right)
    right.spines["left"].set_visible(False)
    figure.suptitle(
        f"The worst flights from New York, after {result.questions} questions",
        fontsize=14,
        fontweight="bold",
        color=_TRUTH,
    )
    return figure


def _scatter(
    axes: Axes, found: Hunt, flights: Flights, colour: str, marker: str, label: str
) -> None:
    listed = set(found.finding)
    for chosen in (False, True):
        cells = [cell for cell in found.answers if (cell in listed) == chosen]
        axes.scatter(
            [float(flights.late[flights.rows(cell)].mean()) for cell in cells],
            [found.answers[cell] for cell in cells],
            s=46 if chosen else 16,
            marker=marker,
            facecolor=colour if chosen else "none",
            edgecolor=colour,
            linewidth=0.8,
            alpha=0.95 if chosen else 0.55,
            label=f"{label}: its list" if chosen else label,
            zorder=3 if chosen else 2,
            clip_on=False,
        )


def _picture_interval(
    axes: Axes, height: float, colour: str, marker: str, finding: Finding
) -> None:
    axes.plot(
        [finding.low, finding.high],
        [height, height],
        color=colour,
        linewidth=7,
        alpha=0.3,
        solid_capstyle="butt",
    )
    axes.scatter([finding.value], [height], marker=marker, s=120, color=colour, zorder=3)
    axes.scatter([finding.truth], [height], marker="D", s=30, color=_TRUTH, zorder=4)
    verdict = "contains the truth" if finding.contains else "misses the truth"
    axes.text(
        max(finding.high, finding.truth) + 0.02,
        height,
        f"{verdict}\n{finding.flights:,} flights",
        va="center",
        fontsize=9,
        color=colour,
    )


def _percent(*scales: object) -> None:
    from matplotlib.ticker import PercentFormatter

    for scale in scales:
        scale.set_major_formatter(PercentFormatter(1, decimals=0))  # type: ignore[attr-defined]


def _bare(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
