"""`holdfast lab report`: one self-contained page of what the experiments show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.common import Json, show_json
from holdfast.cli.lab_run import RESULTS
from holdfast.errors import InvalidInput

__all__ = ["report_command"]


def report_command(
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
    from holdfast.lab.runner.catalogue import find_experiments, known_experiments
    from holdfast.report.html import count
    from holdfast.report.lab_page.chapters import read_chapters
    from holdfast.report.lab_page.page import write_lab_page

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
