"""`holdfast lab`: experiments. `attack` breaks a naive median, and tries the planned one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.common import Json, whole_option
from holdfast.cli.lab_audit import audit_command
from holdfast.cli.lab_report import report_command
from holdfast.cli.lab_run import draw_command, list_command, run_command
from holdfast.errors import InvalidInput, whole_number

__all__ = ["lab_app"]

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
lab_app.command("report")(report_command)
lab_app.command("audit")(audit_command)


@lab_app.callback()
def _lab(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


@lab_app.command("attack")
def attack_command(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the picture; made if missing.")
    ] = Path("attack"),
    runs: Annotated[int, whole_option("How often to attack.")] = 100,
    seed: Annotated[
        int | None,
        whole_option("Repeatable, but without a certificate."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan, then attack a naive median and the planned looks with 10,000 adaptive questions.

    Prints three lines and draws one picture: the naive answer leaves the promised interval, the
    planned one does not.
    """
    from rich.console import Console
    from rich.progress import Progress

    from holdfast.lab.signs.demo import run_demo

    runs = whole_number("runs", runs, 1, 100_000)
    seed = None if seed is None else whole_number("seed", seed, 0, 2**64 - 1)
    if output.exists() and not output.is_dir():
        raise InvalidInput("output", str(output), "a folder")
    output.mkdir(parents=True, exist_ok=True)
    with Progress(console=Console(stderr=True, quiet=as_json), transient=True) as progress:
        task = progress.add_task("attacking", total=runs)
        lines: list[str] = []
        run_demo(
            output,
            seed,
            runs,
            as_json,
            echo=lines.append,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    for line in lines:
        typer.echo(line)
