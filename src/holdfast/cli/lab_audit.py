"""`holdfast lab audit`: how often a plan fails under attack, and how tight its certificate is."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from holdfast.cli.common import Json, whole_option
from holdfast.errors import whole_number

__all__ = ["audit_command"]


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

    from holdfast.lab.audit.protocols import audit_any
    from holdfast.lab.audit.run import workers_at_hand
    from holdfast.lab.audit.words import audit_lines

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

        result = audit_any(
            protocol,
            queries,
            tail,
            confidence,
            sessions,
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
