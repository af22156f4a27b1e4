"""`holdfast demo`: models of late flights, tuned on one test set, naively and on a holdout.

All flights of a year are known, so what is claimed of a model can be compared with the truth. The
same person works twice on the same sealed flights: thirty models, each tuned by the last score, and
then patches, "flights of this airline in this hour and month: the other way round", kept where they
help. Once the sealed flights answer themselves, once a holdout does. Then the holdout is asked what
else it can be asked: a comparison, gates, a precise score, and a stable median by looks.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.grids import grid
from holdfast.holdout.holdout import Holdout
from holdfast.protocols.answers import Told
from holdfast.randomness import system_entropy
from holdfast.report.page import write_report
from holdfast_lab.attacks.targets import plan
from holdfast_lab.figures import INK, LOOKS, Axes, Figure, new_figure, save_figure
from holdfast_lab.flights import SCHEDULE, Rows, load_flights
from holdfast_lab.models import Bits, Model, Split, Workshop, tune

if TYPE_CHECKING:
    from rich.console import Console

NAME, DELAYS = "flights", "delays"
MODELS, PATCHES, TABLE = 30, 400, 20_000
THRESHOLD = 0.765
_UNSURE = 1.0  # log odds: a patch turns around what is less sure than that
_TEXTBOOK = 1.959964  # standard errors to each side of a 95 % interval
_AGAIN = "a seeded demo draws the same flights every time"
_LABEL = 10


# What is found out, and what is true.


@dataclass(frozen=True)
class Score:
    """A model's score after so many questions, with its bar, and the truth."""

    questions: int
    value: float
    low: float
    high: float
    truth: float

    @property
    def contains(self) -> bool:
        """Whether the bar has the truth in it."""
        return self.low <= self.truth <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {**asdict(self), "contains": self.contains}


@dataclass
class Work:
    """One person's way: the score of the model at hand after every question."""

    path: list[Score] = field(default_factory=list)
    tuned: int = 0
    """The place of the score of the best of all models."""
    kept: int = 0
    """How many patches."""

    @property
    def models(self) -> Score:
        """The best of the tuned models."""
        return self.path[self.tuned]

    @property
    def last(self) -> Score:
        """The model with its patches."""
        return self.path[-1]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        found = {"tuned": self.models.to_dict(), "patched": self.last.to_dict()}
        return {"questions": self.last.questions, "kept": self.kept, **found}


@dataclass
class DemoResult:
    """Filled as the demo goes along."""

    population: int
    sealed: int
    open: int
    certified: bool
    naive: Work = field(default_factory=Work)
    holdfast: Work = field(default_factory=Work)
    verdicts: dict[str, int] = field(default_factory=dict)
    precise: Score | None = None
    comparison: Score | None = None
    gates: dict[str, str] = field(default_factory=dict)
    median: dict[str, float] = field(default_factory=dict)
    answers: int = 0
    told: float = 0.0
    receipt: str = ""
    report: Path | None = None
    pictures: list[Path] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        named = ("population", "sealed", "open", "certified", "verdicts", "gates", "median")
        data = {name: getattr(self, name) for name in (*named, "answers", "told", "receipt")}
        for name in ("naive", "holdfast", "precise", "comparison"):
            data[name] = getattr(self, name).to_dict()
        data |= {"report": str(self.report), "pictures": [str(path) for path in self.pictures]}
        return data | {"seconds": round(self.seconds, 1)}


# The flights: who trains, who is tested, who says what is true.


class Test(Split):
    """A table of flights for one test, with its schedule."""

    def frame(self) -> Any:
        """What is sealed."""
        schedule = dict(zip(SCHEDULE, self.flights.schedule[:, self.table], strict=True))
        return self.sealed(self.table, number=self.table, **schedule)

    def patches(self, model: Model, rows: Rows, count: int) -> list[Bits]:
        """Flights of one airline, hour and month of which the model is not sure.

        Those come first that are the most of the given rows, whose schedule is known to all.
        """
        known = dict(zip(SCHEDULE, self.flights.schedule.astype(np.int64), strict=True))
        cell = (known["carrier"] * 32 + known["hour"]) * 16 + known["month"]
        unsure = np.abs(model.odds) < _UNSURE
        cells, counts = np.unique(cell[rows][unsure[rows]], return_counts=True)
        most = cells[np.argsort(-counts, kind="stable")[:count]]
        return [(cell == each) & unsure for each in most]


# The two who work on it.


def work_naively(
    test: Test, workshop: Workshop, sealed: Rows, models: int, patches: int, seed: int
) -> Work:
    """Exact scores of the sealed flights; what is higher is kept."""
    work = Work()

    def score(late: Bits) -> float:
        value, done = test.right(late, sealed), len(work.path) + 1
        half = _TEXTBOOK * (value * (1 - value) / sealed.size) ** 0.5
        truth = test.right(late)
        work.path.append(Score(done, value, value - half, value + half, truth))
        return value

    made = tune(workshop, lambda m: score(m.late), models, np.random.default_rng(seed))
    work.tuned = int(np.argmax([each.value for each in work.path]))
    model, best = made[work.tuned], work.models
    late = model.late
    for patch in test.patches(model, sealed, patches):
        if score(late ^ patch) > best.value:
            late, best, work.kept = late ^ patch, work.path[-1], work.kept + 1
        work.path[-1] = _as_of(best, len(work.path))
    return work


def work_on_holdout(
    test: Test,
    workshop: Workshop,
    holdout: Holdout,
    sealed: Rows,
    result: DemoResult,
    models: int,
    patches: int,
    seed: int,
    progress: Callable[[int, int], None],
) -> tuple[Bits, Bits]:
    """Scores that are told; a patch is kept if it is shown to be better. The last and the first."""
    work = result.holdfast

    def score(model: Model) -> float:
        answer = cast(Told, holdout.score(test.predictions(model.late)))
        work.path.append(scored(answer, test.right(model.late)))
        progress(answer.answers, models + patches)
        return cast(float, answer.value)

    made = tune(workshop, score, models, np.random.default_rng(seed))
    work.tuned = int(np.argmax([each.value for each in work.path]))
    model, best = made[work.tuned], work.models
    late = model.late
    for patch in test.patches(model, sealed, patches):
        pair = test.predictions(late ^ patch), test.predictions(late)
        answer = holdout.compare(*pair, margin=0, names=("patched", "as it is"))
        verdict = str(answer.verdict)
        result.verdicts[verdict] = result.verdicts.get(verdict, 0) + 1
        if verdict == "better":
            late, work.kept = late ^ patch, work.kept + 1
            told = cast(Told, holdout.score(test.predictions(late)))
            best = scored(told, test.right(late))
        work.path.append(_as_of(best, len(work.path) + 1))
        progress(answer.answers, models + patches)
    return late, made[0].late


def scored(answer: Told, truth: float) -> Score:
    """What was told, beside the truth."""
    value, low, high = (cast(float, each) for each in (answer.value, answer.low, answer.high))
    return Score(answer.answers, value, low, high, truth)


def _as_of(score: Score, questions: int) -> Score:
    return Score(questions, score.value, score.low, score.high, score.truth)


# From beginning to end.


def run_demo(
    output: Path,
    screen: Screen,
    *,
    models: int = MODELS,
    patches: int = PATCHES,
    table: int = TABLE,
    seed: int | None = None,
) -> DemoResult:
    """Run the demo; leave the holdouts, a report and the pictures in the folder `output`."""
    began = time.monotonic()
    flights = load_flights()
    words = system_entropy().words(1) if seed is None else [seed]
    chosen = int(words[0])
    test = Test.draw(flights, table, np.random.default_rng(chosen))
    folder, other = (_place(output, name) for name in (NAME, DELAYS))
    with closing(_sealed(folder, test, seed)) as holdout:
        opened = holdout.open_table(["number"])["number"].to_numpy()
        sealed = np.setdiff1d(test.table, opened)
        result = DemoResult(flights.count, sealed.size, opened.size, seed is None)
        _introduce(screen, result, test, seed)
        workshop = Workshop(flights, test.train)
        with screen.bar("thirty models, and patches: the sealed flights themselves"):
            result.naive = work_naively(test, workshop, sealed, models, patches, chosen)
        with screen.bar("thirty models, and patches: the holdout") as report:
            late, first = work_on_holdout(
                test, workshop, holdout, sealed, result, models, patches, chosen, report
            )
        _ask_more(test, holdout, result, late, first)
        result.report = output / "report.html"
        write_report(holdout, result.report)
        result.receipt = str(holdout.receipt)
    with screen.bar("a stable median, by looks"):
        result.median = _stable_median(other, test, seed)
    _show(screen, result, models)
    result.pictures = draw_pictures(result, models, output)
    where = " and ".join(str(path) for path in result.pictures)
    screen.say("Picture", where or "none: matplotlib is missing (pip install matplotlib)")
    screen.say("Report", str(result.report))
    screen.say("Try", f"holdfast status {folder} · holdfast check {folder}")
    result.seconds = time.monotonic() - began
    screen.say("Time", f"{result.seconds:.0f} seconds")
    return result


def _sealed(folder: Path, test: Test, seed: int | None) -> Holdout:
    words: dict[str, Any] = {"ids": "flight", "target": "late", "labels": [0, 1], "reading": "rule"}
    again = None if seed is None else _AGAIN
    return Holdout.create(folder, test.frame(), name=NAME, seed=seed, new_budget=again, **words)


def _ask_more(test: Test, holdout: Holdout, result: DemoResult, late: Bits, first: Bits) -> None:
    """What else can be asked: a comparison, gates, a precise score."""
    truths = [test.right(each) for each in (late, first)]
    now, before = test.predictions(late), test.predictions(first)
    names = ("the tuned model", "the first one")
    result.comparison = scored(holdout.compare(now, before, names=names), truths[0] - truths[1])
    for name, given in zip(names, (now, before), strict=True):
        result.gates[name] = str(holdout.gate(given, at_least=THRESHOLD).verdict)
    answer = cast(Told, holdout.score(now, precise=True))
    result.precise = scored(answer, truths[0])
    result.answers, result.told = answer.answers, answer.told_so_far


def high_delay(block: dict[str, NDArray[np.float64]]) -> float:
    """The 90 % quantile of a block's known delays."""
    known = block["arr_delay"][~np.isnan(block["arr_delay"])]
    return float(np.quantile(known, 0.9)) if known.size else np.nan


def _stable_median(folder: Path, test: Test, seed: int | None) -> dict[str, float]:
    """A Python function of a block of flights, by looks: that needs a plan, and rows of its own."""
    made = plan(queries=100, grid=41, tail=0.02)
    rows = test.others[: test.table.size]
    again = None if seed is None else _AGAIN
    table = test.flights.table(rows)[["arr_delay"]]
    created = Holdout.create(folder, table, made, name=DELAYS, seed=seed, new_budget=again)
    with closing(created) as holdout:
        words: dict[str, Any] = {"columns": ["arr_delay"], "block": "numpy"}
        answer = holdout.ask(high_delay, grid=grid(0, 200, step=5), **words)
        truth = float(np.quantile(test.flights.delay[~np.isnan(test.flights.delay)], 0.9))
        contents = holdout.spec.manifest
    found = {"value": float(answer.value), "truth": truth, "tail": answer.tail}
    return found | {"blocks": contents.blocks, "block_flights": contents.block_units}


def _place(output: Path, name: str) -> Path:
    """Where a holdout goes. One that an earlier demo left there is removed, no other."""
    if output.exists() and not output.is_dir():
        raise InvalidInput("output", str(output), "a folder")
    output.mkdir(parents=True, exist_ok=True)
    folder = output / f"{name}.holdfast"
    if folder.exists():
        try:
            with closing(Holdout.open(folder)) as earlier:
                of_the_demo = earlier.spec.name == name
        except HoldfastError:
            of_the_demo = False
        if not of_the_demo:
            hint = "What is there was not left by an earlier demo."
            raise InvalidInput("output", str(output), f"a folder without {folder.name}", hint)
        shutil.rmtree(folder)
    return folder


# On a screen.


class Screen:
    """Two consoles: what is said goes to one, bars to the other."""

    def __init__(self, console: Console, bars: Console) -> None:
        self._console, self._bars = console, bars

    def say(self, label: str, text: str) -> None:
        """One labelled line, folded if it is long."""
        from rich.text import Text

        room = max(20, self._console.width - _LABEL)
        for index, line in enumerate(wrap(text, room, break_on_hyphens=False)):
            head = Text(f"{'' if index else label:<{_LABEL}}", style="bold")
            self._console.print(head + Text(line), soft_wrap=True)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table between empty lines: names on the left, numbers on the right."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place, name in enumerate(head):
            table.add_column(name, justify="left" if place == 0 else "right")
        for row in rows:
            table.add_row(*row)
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


def _introduce(screen: Screen, result: DemoResult, test: Test, seed: int | None) -> None:
    late = float(test.flights.late.mean())
    source = "" if seed is None else f" (seed {seed}: nothing is certified)"
    screen.say(
        "Flights",
        f"{result.population:,} left New York in 2013. Late is 15 minutes or more after schedule, "
        f"or never: {100 * late:.1f}\u00a0%. Models predict which, from the schedule",
    )
    screen.say(
        "Test set",
        f"{test.table.size:,} flights drawn at random: Holdfast seals {result.sealed:,} and leaves "
        f"{result.open:,} open{source}. {test.train.size:,} others train models, and the remaining "
        f"{test.others.size:,} say what is true. In real life nobody has these",
    )


def _show(screen: Screen, result: DemoResult, models: int) -> None:
    naive, ours, asked = result.naive, result.holdfast, len(result.holdfast.path)
    screen.say(
        "Work",
        f"{models} boosted models, each tuned by the last score; then {asked - models} patches "
        "(flights of one airline, hour and month: predict the other way round?), kept where they "
        "help. Once the sealed flights answer themselves, once the holdout does",
    )
    head = (f"After {asked} questions", "accuracy", "95 % interval", "truth", "contains it")
    rows = [
        (f"naive: best of {models} models", naive.models),
        (f"naive: with {naive.kept} patches that helped", naive.last),
        (f"Holdfast: best of {models} models", ours.models),
        (f"Holdfast: with {ours.kept} patches shown to help", ours.last),
        ("Holdfast: the same, asked precisely", result.precise),
    ]
    screen.table(head, [(name, *_cells(cast(Score, score))) for name, score in rows])
    gain, true = naive.last.value - naive.models.value, naive.last.truth - naive.models.truth
    screen.say(
        "Naive",
        f"says that its patches gained {gain:+.3f}; in truth it is {true:+.3f}. They were kept for "
        "being right on these very flights",
    )
    words = ", ".join(f"{count} times {word}" for word, count in sorted(result.verdicts.items()))
    screen.say("Patches", f"is it better with this patch? The holdout says: {words}")
    difference = cast(Score, result.comparison)
    screen.say(
        "Compare",
        f"the tuned model against the first one: better by {difference.low:.3f} to "
        f"{difference.high:.3f} (in truth {difference.truth:.3f})",
    )
    gates = "; ".join(f"{name}: {verdict}" for name, verdict in result.gates.items())
    screen.say("Gate", f"accuracy at least {THRESHOLD:g}? {gates}")
    median = result.median
    screen.say(
        "Median",
        "any function of a block of flights has a stable median, by looks: the 90 % quantile of "
        f"the delay on {median['block_flights']:.0f} flights is about {median['value']:g} minutes "
        f"(of all flights {median['truth']:g})",
    )
    screen.say(
        "Told",
        f"{result.answers} answers gave away {result.told:.1f} nats in all: what was expected "
        "costs next to nothing. All bars hold at once, whatever made people ask the next question",
    )


def _cells(score: Score) -> tuple[str, str, str, str]:
    contains = "[green]yes[/]" if score.contains else "[bold red]no[/]"
    bar = f"{score.low:.3f} – {score.high:.3f}"
    return f"{score.value:.3f}", bar, f"{score.truth:.3f}", contains


# The picture: what is said of the model at hand, and what is true of it, question by question.


def draw_pictures(result: DemoResult, models: int, folder: Path) -> list[Path]:
    """Write demo.svg and demo.png; nothing where matplotlib is missing."""
    try:
        return save_figure(draw_demo(result, models), folder, "demo")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        return []


def draw_demo(result: DemoResult, models: int) -> Figure:
    """Left naive reuse, right the holdout, on the same sealed flights."""
    figure, (left, right) = new_figure(2, width=11.0, height=4.8)
    precise = cast(Score, result.precise)
    _draw_work(left, result.naive, "naive", "what the sealed flights say, ± 2 standard errors")
    _draw_work(right, result.holdfast, "holdfast", "what the holdout tells, for all at once")
    end = len(result.holdfast.path)
    look = LOOKS["holdfast"]
    right.vlines(end, precise.low, precise.high, color=look.colour, linewidth=5, zorder=4)
    right.annotate(
        "asked precisely",
        (end, precise.low),
        xytext=(-6, -14),
        textcoords="offset points",
        ha="right",
        color=look.colour,
        fontsize=9,
    )
    ends = [(s.low, s.high, s.truth) for work in (result.naive, result.holdfast) for s in work.path]
    room = min(map(min, ends)) - 0.005, max(map(max, ends)) + 0.012
    for axes, name in ((left, "Naive reuse"), (right, "Holdfast")):
        axes.set_ylim(*room)
        axes.axvline(models, color=INK, linewidth=0.6, linestyle=":")
        axes.set_xlabel(f"questions: {models} models, then patches")
        axes.set_title(name, fontsize=12, fontweight="bold", loc="left", color=INK)
        axes.legend(frameon=False, loc="lower right", fontsize=9)
    left.set_ylabel("accuracy of the model at hand")
    return figure


def _draw_work(axes: Axes, work: Work, name: str, label: str) -> None:
    best, shown = work.path[0], []
    for score in work.path:
        best = score if score.value >= best.value else best
        shown.append(best)
    across = np.arange(1, len(shown) + 1)
    low, high, value, truth = (
        np.array([getattr(each, end) for each in shown])
        for end in ("low", "high", "value", "truth")
    )
    look = LOOKS[name]
    axes.fill_between(across, low, high, color=look.colour, alpha=0.22, linewidth=0, label=label)
    if name == "naive":
        axes.plot(across, value, color=look.colour, linewidth=1.6)
    axes.plot(across, truth, color=INK, linewidth=1.6, label="truth, on all other flights")
