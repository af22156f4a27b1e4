"""`holdfast lab list`, `run`, `draw`: the experiments, and what they show."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.common import Json, show_json, whole_option
from holdfast.errors import InvalidInput, whole_number

if TYPE_CHECKING:
    from holdfast.lab.runner.catalogue import Experiment
    from holdfast.lab.runner.pictures import Pictured
    from holdfast.lab.runner.run import Outcome

__all__ = ["RESULTS", "Names", "draw_command", "list_command", "run_command"]

RESULTS = Path("lab-results")
_WIDTH = 160  # where there is no terminal

Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME…", help="Experiments, or paths of .toml files.")
]
Every = Annotated[bool, typer.Option("--all", help="All of the package's experiments.")]
Output = Annotated[Path, typer.Option("--output", help="Folder of the results.")]


def list_command(output: Output = RESULTS, as_json: Json = False) -> None:
    """List the experiments, and which of them have results."""
    from holdfast.lab.runner.catalogue import known_experiments

    known, wrong = known_experiments()
    listed = [_facts(experiment, output) for experiment in known]
    if as_json:
        broken = [{"name": name, "problem": str(problem)} for name, problem in wrong.items()]
        show_json({"experiments": listed, "broken": broken})
        return
    _show_list(listed)
    for name, problem in wrong.items():
        typer.echo(f"{name}: {problem}", err=True)


def _facts(experiment: Experiment, output: Path) -> dict[str, Any]:
    from holdfast.lab.runner.cells import count_cells
    from holdfast.lab.runner.place import Place

    config = experiment.config
    facts: dict[str, Any] = {"name": config.name, "title": config.title, "group": config.group}
    facts["cells"] = {mode: count_cells(extent) for mode, extent in config.modes.items()}
    facts["results"] = {}
    for mode in config.modes:
        run = Place(output, config.name, mode).read_run()
        facts["results"][mode] = None if run is None else run["cells"]
    return facts


def _show_list(listed: list[dict[str, Any]]) -> None:
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
    from holdfast.cli.lab_watch import Screen
    from holdfast.lab.runner.run import run_experiments

    chosen = chosen_experiments(names, every)
    seed = None if seed is None else whole_number("seed", seed, 0, 2**63 - 1)
    workers = (os.cpu_count() or 1) if workers is None else workers
    mode = "quick" if quick else "full"
    try:
        with Screen(quiet=as_json) as watch:
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
            _show_outcome(outcome)
    if not all(outcome.good for outcome in outcomes):
        raise typer.Exit(1)


def chosen_experiments(names: list[str] | None, every: bool) -> list[Experiment]:
    """The experiments that a command line names."""
    from holdfast.lab.runner.catalogue import find_experiments, known_experiments

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


def _show_outcome(outcome: Outcome) -> None:
    place = outcome.place
    typer.echo(
        f"{outcome.experiment.name} ({place.mode}): {outcome.done:,} of {outcome.cells:,} cells, "
        f"{outcome.measured:,} measured now; {place.folder}"
    )
    _show_pictured(outcome.pictured)
    shown: set[str] = set()
    for failed in outcome.failed:
        parameters = ", ".join(f"{k}={v}" for k, v in failed.cell.parameters.items())
        typer.echo(f"Failed: {parameters}, repeat {failed.cell.repeat}", err=True)
        if failed.traceback not in shown:  # one cause may fail a thousand cells
            typer.echo(failed.traceback, err=True)
        shown.add(failed.traceback)


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
    names: Names = None,
    every: Every = False,
    output: Output = RESULTS,
    as_json: Json = False,
) -> None:
    """Draw figures and write findings again, from the results alone: nothing is measured."""
    from holdfast.lab.runner.catalogue import known_experiments
    from holdfast.lab.runner.pictures import picture
    from holdfast.lab.runner.place import places

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
