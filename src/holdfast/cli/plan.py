"""`holdfast plan`: sample sizes, and what every method would need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.protocol_plan import plan_protocol
from holdfast.cli.values import Json, whole, whole_option
from holdfast.errors import InvalidInput
from holdfast.grids import Grid, parse_grid

if TYPE_CHECKING:
    from holdfast.planning.plan import Plan

__all__ = ["plan_command"]


def plan_command(
    queries: Annotated[int | None, whole_option("Questions, chosen adaptively.")] = None,
    rows: Annotated[int | None, whole_option("Units at hand: solves for the best error.")] = None,
    blocks: Annotated[int | None, whole_option("Blocks at hand.")] = None,
    block_size: Annotated[int | None, whole_option("Units a block.")] = None,
    grid: Annotated[
        str | None,
        typer.Option(help="Possible answers: their number, LOW:HIGH:STEP, or a list 1,2,5,10."),
    ] = None,
    tail: Annotated[float | None, typer.Option(help="ρ: answers lie in qi(ρ, 1−ρ).")] = None,
    tails: Annotated[str | None, typer.Option(help="A,B: answers lie in qi(A, B).")] = None,
    target: Annotated[float | None, typer.Option(help="Quantile to aim at.")] = None,
    confidence: Annotated[float, typer.Option(help="For all answers at once.")] = 0.95,
    error: Annotated[float | None, typer.Option(help="Wanted half-width.")] = None,
    shape: Annotated[str, typer.Option(help="mean, sd or none.")] = "mean",
    low: Annotated[
        float | None, typer.Option(help="Least term of a mean; else the grid's, or 0.")
    ] = None,
    high: Annotated[
        float | None, typer.Option(help="Largest term of a mean; else the grid's, or 1.")
    ] = None,
    sd: Annotated[float | None, typer.Option(help="Standard deviation on one unit.")] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="estimate, interval, mean, verify, correct, rounds, weights, split, exact, "
            "amplified, simple, or auto for the cheapest."
        ),
    ] = "estimate",
    refusals: Annotated[
        int | None, whole_option("Guesses that may be refused (verify, correct, auto).")
    ] = None,
    rounds: Annotated[int | None, whole_option("Rounds of questions (rounds).")] = None,
    universe: Annotated[
        int | None, whole_option("Different blocks that there can be (weights, auto).")
    ] = None,
    tail_low: Annotated[
        float | None, typer.Option(help="A guess with a tail of at most this is refused.")
    ] = None,
    tail_high: Annotated[
        float | None, typer.Option(help="A guess with tails of at least this is confirmed.")
    ] = None,
    sides: Annotated[int | None, whole_option("Looks a guess, 1 or 2 (verify).")] = None,
    half_width: Annotated[
        float | None, typer.Option(help="Wanted half-width of a bar (mean, interval).")
    ] = None,
    looks: Annotated[
        bool, typer.Option("--looks", help="By looks only: blocks that other protocols may share.")
    ] = False,
    as_json: Json = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw blocks against questions to this file (svg, png or pdf)."),
    ] = None,
) -> None:
    """Find the best plan for what is known, and compare it with every alternative.

    Whatever is left out is found. Examples:

    holdfast plan --queries 1000 --grid 32 --tail 0.25

    holdfast plan --queries 500 --rows 300000

    holdfast plan --protocol verify --queries 1000 --refusals 10

    holdfast plan --protocol auto --queries 1000000 --universe 1000
    """
    of_protocols = {
        "refusals": refusals,
        "rounds": rounds,
        "universe": universe,
        "tail_low": tail_low,
        "tail_high": tail_high,
        "sides": sides,
        "half_width": half_width,
        "looks": looks or None,
    }
    of_estimates = {
        "rows": rows,
        "blocks": blocks,
        "block_size": block_size,
        "grid": _size(grid) if protocol != "estimate" else grid,
        "tail": tail,
        "tails": tails,
        "target": target,
        "error": error,
        "shape": shape if shape != "mean" else None,
        "low": low,
        "high": high,
        "sd": sd,
        "plot": plot,
    }
    if protocol != "estimate":
        plan_protocol(protocol, queries, confidence, {**of_estimates, **of_protocols}, as_json)
        return
    for name, value in of_protocols.items():
        if value is not None:
            flag = "--" + name.replace("_", "-")
            raise InvalidInput(flag, value, "left out for estimates", "Name another --protocol.")
    if plot is not None:
        from holdfast.planning.figure import check_plot_file

        check_plot_file(plot)
    from holdfast.planning.explain import explain
    from holdfast.planning.solve import plan

    made = plan(
        queries=queries,
        rows=rows,
        blocks=blocks,
        block_size=block_size,
        grid=_grid(grid),
        tail=tail,
        tails=_tails(tails),
        target=target,
        confidence=confidence,
        error=error,
        shape=shape,
        low=low,
        high=high,
        sd=sd,
    )
    if as_json:
        typer.echo(made.to_json())
    else:
        typer.echo(explain(made, others=False))
        _print_table(made)
    if plot is not None:
        _draw(made, plot, quiet=as_json)


def _grid(text: str | None) -> int | Grid | None:
    if text is None:
        return None
    if ":" in text or "," in text:
        return parse_grid(text)
    try:
        return whole(text)
    except typer.BadParameter:
        allowed = "a whole number, LOW:HIGH:STEP, or a list such as 1,2,5,10"
        raise InvalidInput("grid", text, allowed) from None


def _size(text: str | None) -> int | None:
    parsed = _grid(text)
    return parsed.size if isinstance(parsed, Grid) else parsed


def _tails(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput("tails", text, "two numbers A,B with 0 < A < B < 1") from None
    return low, high


def _print_table(made: Plan) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="The same promise by every method", title_justify="left", box=None)
    table.add_column("method", overflow="fold")
    table.add_column("blocks", justify="right", no_wrap=True)  # a number cut short is another one
    table.add_column("× steepest", justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for alternative in made.alternatives:
        blocks = alternative.blocks
        counted = f"{blocks:,}" if blocks is not None else "–"
        ratio = f"{blocks / made.blocks:.2f}" if blocks is not None else ""
        note = "recommended" if alternative.method == made.method else alternative.note
        table.add_row(alternative.method, counted, ratio, note)
    console = Console()
    console.print()
    console.print(table)


def _draw(made: Plan, path: Path, *, quiet: bool) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from holdfast.planning.figure import PLOT_QUERIES, comparison, draw_comparison

    queries = sorted({*PLOT_QUERIES, made.queries})
    console = Console(stderr=True, quiet=quiet)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("sizing", total=len(queries))
        table = comparison(made.promise, queries, lambda _: progress.advance(task))
    draw_comparison(path, made.promise, table)
    console.print(f"Drawn: {path}", highlight=False)
