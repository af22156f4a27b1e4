"""`holdfast lab`: experiments. `attack` breaks a naive median, and tries the planned one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.common import Json, show_json, whole_option
from holdfast.concurrency import Closing
from holdfast.errors import InvalidInput, whole_number

if TYPE_CHECKING:
    from holdfast_lab.runner.experiment import Experiment
    from holdfast_lab.runner.results import Pictured
    from holdfast_lab.runner.run import Outcome


# `holdfast lab audit`: how often a plan fails under attack, and how tight its certificate is.


def audit_command(
    queries: Annotated[int, whole_option("Questions, chosen adaptively.")] = 100,
    tail: Annotated[float, typer.Option(help="ρ: every answer has tails above it.")] = 0.01,
    confidence: Annotated[float, typer.Option(help="For all answers at once.")] = 0.95,
    sessions: Annotated[int, whole_option("Sessions of each analyst.")] = 300,
    grid: Annotated[
        int | None, whole_option("Possible answers of a question (estimate); left out: 32.")
    ] = None,
    analyst: Annotated[
        str | None,
        typer.Option(help="aggregator, persistent, tuned or collector; left out: all of them."),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="estimate, interval, mean, verify, correct, rounds, weights, simple, amplified "
            "or split."
        ),
    ] = "estimate",
    seed: Annotated[int | None, whole_option("For the same sessions again.")] = None,
    workers: Annotated[
        int | None, whole_option("Processes; left out: one for each processor.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Attack a plan with every analyst: its rate of failure, and how tight its certificate is.

    Tightness is the certified number of blocks over the smallest on which the best attack does not
    break the same promise. Example:

    holdfast lab audit --queries 1000 --tail 0.25
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from holdfast_lab.audit import audit, audit_lines, workers_at_hand

    if workers is not None:
        workers = whole_number("workers", workers, 1, 1024)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} sessions"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("planning", total=None)

        def played(what: str, count: int) -> None:
            progress.update(task, description=what, advance=count)

        result = audit(
            queries,
            tail,
            confidence,
            sessions,
            protocol=protocol,
            grid=grid,
            analyst=analyst,
            seed=seed,
            workers=workers_at_hand() if workers is None else workers,
            progress=played,
        )
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2))
        return
    for line in audit_lines(result):
        typer.echo(line)


# `holdfast lab list`, `run`, `draw`: the experiments, and what they show.


RESULTS = Path("lab-results")
_WIDTH = 160  # where there is no terminal

Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME…", help="Experiments, or paths of .toml files.")
]
Every = Annotated[bool, typer.Option("--all", help="All of the package's experiments.")]
Output = Annotated[Path, typer.Option("--output", help="Folder of the results.")]


def list_command(output: Output = RESULTS, as_json: Json = False) -> None:
    """List the experiments, and which of them have results."""
    from holdfast_lab.runner.experiment import known_experiments

    known, wrong = known_experiments()
    listed = [_facts(experiment, output) for experiment in known]
    if as_json:
        broken = [{"name": name, "problem": str(problem)} for name, problem in wrong.items()]
        show_json({"experiments": listed, "broken": broken})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("group", "name", "quick", "full", "results", "title"):
        right = heading in ("quick", "full")
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading != "title")
    for each in listed:
        cells = [f"{each['cells'][mode]:,}" for mode in ("quick", "full")]
        results = [_state(mode, each["results"][mode]) for mode in ("quick", "full")]
        shown = ", ".join(filter(None, results)) or "–"
        table.add_row(each["group"], each["name"], *cells, shown, each["title"])
    Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH).print(table)
    for name, problem in wrong.items():
        typer.echo(f"{name}: {problem}", err=True)


def _facts(experiment: Experiment, output: Path) -> dict[str, Any]:
    from holdfast_lab.runner.results import Place, count_cells

    config = experiment.config
    facts: dict[str, Any] = {"name": config.name, "title": config.title, "group": config.group}
    facts["cells"] = {mode: count_cells(extent) for mode, extent in config.modes.items()}
    facts["results"] = {}
    for mode in config.modes:
        run = Place(output, config.name, mode).read_run()
        facts["results"][mode] = None if run is None else run["cells"]
    return facts


def _state(mode: str, cells: dict[str, int] | None) -> str:
    if cells is None:
        return ""
    whole = cells["done"] == cells["all"]
    return mode if whole else f"{mode} {cells['done']:,}/{cells['all']:,}"


def run_command(
    names: Names = None,
    every: Every = False,
    quick: Annotated[bool, typer.Option("--quick", help="Few and small cells: minutes.")] = False,
    output: Output = RESULTS,
    workers: Annotated[
        int | None, whole_option("Processes; 0 measures in this one. Else one for each core.")
    ] = None,
    seed: Annotated[int | None, whole_option("Instead of the config's seed.")] = None,
    as_json: Json = False,
) -> None:
    """Run experiments: measure, keep every finished cell, then draw figures and write findings.

    Run again to continue after a stop: what is measured is not measured again.
    """
    from holdfast_lab.runner.run import run_experiments

    chosen = chosen_experiments(names, every)
    seed = None if seed is None else whole_number("seed", seed, 0, 2**63 - 1)
    workers = (os.cpu_count() or 1) if workers is None else workers
    mode = "quick" if quick else "full"
    try:
        with CellBar(quiet=as_json) as watch:
            outcomes = run_experiments(
                chosen, mode=mode, output=output, workers=workers, seed=seed, watch=watch
            )
    except KeyboardInterrupt:
        typer.echo("What is finished is kept; the same command continues.", err=True)
        raise typer.Abort from None
    if as_json:
        show_json({"experiments": [outcome_facts(each) for each in outcomes]})
    else:
        for outcome in outcomes:
            place = outcome.place
            typer.echo(
                f"{outcome.experiment.name} ({place.mode}): {outcome.done:,} of "
                f"{outcome.cells:,} cells, {outcome.measured:,} measured now; {place.folder}"
            )
            _show_pictured(outcome.pictured)
            shown: set[str] = set()
            for failed in outcome.failed:
                parameters = ", ".join(f"{k}={v}" for k, v in failed.cell.parameters.items())
                typer.echo(f"Failed: {parameters}, repeat {failed.cell.repeat}", err=True)
                if failed.traceback not in shown:  # one cause may fail a thousand cells
                    typer.echo(failed.traceback, err=True)
                shown.add(failed.traceback)
    if not all(outcome.good for outcome in outcomes):
        raise typer.Exit(1)


def chosen_experiments(names: list[str] | None, every: bool) -> list[Experiment]:
    """The experiments that a command line names."""
    from holdfast_lab.runner.experiment import find_experiments, known_experiments

    if bool(names) == every:
        hint = "See `holdfast lab list`."
        raise InvalidInput("name", names or None, "names of experiments, or --all alone", hint)
    if names:
        return find_experiments(names)
    known, wrong = known_experiments()
    for problem in wrong.values():
        raise problem
    return known


def outcome_facts(outcome: Outcome) -> dict[str, Any]:
    """An outcome, for programs."""
    failed = [
        {
            "parameters": dict(each.cell.parameters),
            "repeat": each.cell.repeat,
            "traceback": each.traceback,
        }
        for each in outcome.failed
    ]
    return {
        "name": outcome.experiment.name,
        "mode": outcome.place.mode,
        "seed": outcome.seed,
        "folder": str(outcome.place.folder),
        "cells": outcome.cells,
        "done": outcome.done,
        "measured": outcome.measured,
        "failed": failed,
        "set_aside": None if outcome.set_aside is None else str(outcome.set_aside),
        **_pictured_facts(outcome.pictured),
    }


def _pictured_facts(pictured: Pictured) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "figures": list(pictured.figures),
        "findings": [asdict(each) for each in pictured.findings],
        "problems": list(pictured.problems),
    }


def _show_pictured(pictured: Pictured) -> None:
    words = {True: "holds", False: "DOES NOT HOLD", None: ""}
    for finding in pictured.findings:
        expected = f" (expected {finding.expected})" if finding.expected else ""
        holds = words[finding.holds]
        typer.echo(f"  {finding.what}: {finding.measured}{expected}{holds and f'; {holds}'}")
    if pictured.note:
        typer.echo(f"  {pictured.note}")
    for problem in pictured.problems:
        typer.echo(problem, err=True)


def draw_command(
    names: Names = None, every: Every = False, output: Output = RESULTS, as_json: Json = False
) -> None:
    """Draw figures and write findings again, from the results alone: nothing is measured."""
    from holdfast_lab.runner.experiment import known_experiments
    from holdfast_lab.runner.results import picture, places

    known = known_experiments()[0] if every and not names else chosen_experiments(names, every)
    if every and not output.is_dir():
        hint = "Make some first: holdfast lab run --all --quick"
        raise InvalidInput("output", str(output), "a folder of results", hint)
    made = []
    for experiment in known:
        found = places(output, experiment.name)
        if not found and not every:
            hint = f"Run it first: holdfast lab run {experiment.called}"
            raise InvalidInput("name", experiment.name, f"one with results in {output}", hint)
        made += [(place, picture(experiment, place)) for place in found]
    if as_json:
        facts = [{"folder": str(place.folder), **_pictured_facts(each)} for place, each in made]
        show_json({"drawn": facts})
    else:
        for place, each in made:
            typer.echo(f"{place.folder}: {', '.join(each.figures) or 'no figures'}")
            _show_pictured(each)
    if any(each.problems for _, each in made):
        raise typer.Exit(1)


# `holdfast lab report`: one self-contained page of what the experiments show.


def lab_report_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE.toml]…", help="Experiments of your own, beside the others."),
    ] = None,
    results: Annotated[Path, typer.Option("--results", help="Folder of the results.")] = RESULTS,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write.")
    ] = Path("lab.html"),
    as_json: Json = False,
) -> None:
    """Write one HTML file with every experiment's figures, findings, sources and commands."""
    from holdfast.report.html import count
    from holdfast_lab.page import read_chapters, write_lab_page
    from holdfast_lab.runner.experiment import find_experiments, known_experiments

    if not results.is_dir():
        hint = "Make some first: holdfast lab run --all --quick"
        raise InvalidInput("results", str(results), "a folder of results", hint)
    known, wrong = known_experiments()
    for name, problem in wrong.items():
        typer.echo(f"{name} is left out: {problem}", err=True)
    chosen = find_experiments([*(each.name for each in known), *(names or [])])
    chapters = read_chapters(chosen, results)
    write_lab_page(chapters, output)
    run = [chapter.name for chapter in chapters if chapter.told is not None]
    waiting = [chapter.name for chapter in chapters if chapter.told is None]
    if as_json:
        size = output.stat().st_size
        show_json({"output": str(output), "bytes": size, "shown": run, "not_run": waiting})
    else:
        typer.echo(f"{output}: {count(len(run), 'experiment')}, {len(waiting):,} not run")


lab_app = typer.Typer(
    name="lab",
    help="Experiments: attacks, comparisons, growth; and one page of what they show.",
    invoke_without_command=True,  # then `_lab` shows the help
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
lab_app.command("list")(list_command)
lab_app.command("run")(run_command)
lab_app.command("draw")(draw_command)
lab_app.command("report")(lab_report_command)
lab_app.command("audit")(audit_command)


@lab_app.callback()
def _lab(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


# How a run of experiments shows in a terminal: one bar, on standard error.


class CellBar(Closing):
    """A bar of cells with the time that is left. Silent where nobody looks."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cells,"),
            TimeRemainingColumn(compact=True),
            TextColumn("left  {task.description}", markup=False),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def close(self) -> None:
        self._progress.stop()

    def begin(self, cells: int) -> None:
        """So many cells are to be measured."""
        self._progress.update(self._task, total=cells)

    def advance(self, experiment: str) -> None:
        """One of them is done."""
        self._progress.update(self._task, advance=1, description=experiment)

    def note(self, text: str) -> None:
        """A line above the bar."""
        self._console.print(text, markup=False, soft_wrap=True)


# `holdfast demo`: models of late flights, tuned on one test set, naively and on a holdout.


_DEMO_WIDTH = 100  # where there is no terminal


def demo_command(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for holdouts, report and picture; made if missing."
        ),
    ] = Path("demo"),
    seed: Annotated[int | None, whole_option("Repeatable, but without a certificate.")] = None,
    as_json: Json = False,
) -> None:
    """Tune models of late flights on one test set: naive reuse, Holdfast, and the truth.

    Leaves two holdouts, a report and a picture in the folder.
    """
    seed = None if seed is None else whole_number("seed", seed, 0, 2**64 - 1)
    if output.exists() and not output.is_dir():
        raise InvalidInput("output", str(output), "a folder")
    from rich.console import Console

    from holdfast_lab.demo import Screen, run_demo

    width = None if sys.stdout.isatty() else _DEMO_WIDTH
    console = Console(highlight=False, quiet=as_json, width=width)
    result = run_demo(output, Screen(console, Console(stderr=True, quiet=as_json)), seed=seed)
    if as_json:
        show_json(result.to_dict())
