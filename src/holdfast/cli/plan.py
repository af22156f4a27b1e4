"""`holdfast plan`: sample sizes, and what every method would need."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.common import Json, show_json, whole, whole_option
from holdfast.errors import Infeasible, InvalidInput
from holdfast.grids import Grid, parse_grid

if TYPE_CHECKING:
    from holdfast.planning.compare import Recommendation
    from holdfast.planning.plan import Plan
    from holdfast.planning.proposals import Proposal

__all__ = [
    "PROTOCOLS",
    "plan_command",
    "plan_protocol",
]


# `holdfast plan --protocol …`: sizes of every protocol, and which one is cheapest.


# What each protocol is told, beside --queries and --confidence; the first names must be given.
PROTOCOLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "auto": ((), ("refusals", "universe", "grid", "tail", "tail_high")),
    "interval": ((), ("grid", "tail", "rows", "half_width", "block_size", "shape", "sd")),
    "mean": ((), ("half_width",)),
    "verify": (("refusals",), ("tail_low", "tail_high", "sides")),
    "correct": (("refusals",), ("grid", "tail_low", "tail_high")),
    "rounds": (("rounds",), ("tail_low", "tail_high")),
    "weights": (("universe",), ("grid", "tail")),
    "split": ((), ("tail",)),
    "amplified": ((), ("grid", "tail")),
    "simple": ((), ("grid", "tail")),
}


def plan_protocol(
    protocol: str, queries: int | None, confidence: float, given: Mapping[str, Any], as_json: bool
) -> None:
    """Print the plan of one protocol, or of the cheapest."""
    if protocol not in PROTOCOLS:
        known = ", ".join(["estimate", *PROTOCOLS])
        raise InvalidInput("protocol", protocol, f"one of {known}")
    if queries is None:
        hint = "Say how many questions you want to ask."
        raise InvalidInput("queries", None, f"given with --protocol {protocol}", hint)
    needed, optional = PROTOCOLS[protocol]
    told = {name: value for name, value in given.items() if value is not None}
    for name in needed:
        if name not in told:
            raise InvalidInput(_flag(name), None, f"given with --protocol {protocol}")
    for name, value in told.items():
        if name not in (*needed, *optional):
            raise InvalidInput(_flag(name), value, f"left out for --protocol {protocol}")
    if protocol == "auto":
        _show_recommendation(_recommended(queries, confidence, told), as_json)
        return
    made = _PROPOSERS[protocol](queries, confidence, told)
    if as_json:
        typer.echo(made.to_json())
    else:
        _show(made)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _recommended(queries: int, confidence: float, told: dict[str, Any]) -> Recommendation:
    from holdfast.planning.compare import recommend

    return recommend(queries, confidence=confidence, **told)


def _interval(queries: int, confidence: float, told: dict[str, Any]) -> Proposal:
    from holdfast.planning.proposals import narrowest_interval, propose_interval, smallest_interval
    from holdfast.protocols.shapes import shape_from

    shape = shape_from(told.pop("shape", "mean"), None, None, told.pop("sd", None), None)
    if shape is None and ("half_width" in told or ("rows" in told and "tail" not in told)):
        hint = "Without a shape nothing is known of widths: give --tail."
        raise InvalidInput("--shape", "none", "'mean' or 'sd' where a width is wanted", hint)
    if "half_width" in told and "tail" not in told and "rows" not in told:
        return smallest_interval(queries, confidence=confidence, shape=shape, **told)
    if "half_width" in told:
        raise InvalidInput("--half-width", told["half_width"], "given without --tail and --rows")
    if "rows" in told and "tail" not in told:
        return narrowest_interval(queries, confidence=confidence, shape=shape, **told)
    rows = told.pop("rows", None)
    made = propose_interval(queries, confidence=confidence, shape=shape, **told)
    if rows is None:
        return made
    if rows < made.blocks:
        raise InvalidInput("--rows", rows, f"at least {made.blocks:,}, one for every block")
    told["block_size"] = rows // made.blocks
    return propose_interval(queries, confidence=confidence, shape=shape, **told)


def _proposer(name: str) -> Callable[[int, float, dict[str, Any]], Proposal]:
    def propose(queries: int, confidence: float, told: dict[str, Any]) -> Proposal:
        from holdfast.planning import proposals

        made: Proposal = getattr(proposals, name)(queries, confidence=confidence, **told)
        return made

    return propose


_PROPOSERS: dict[str, Callable[[int, float, dict[str, Any]], Proposal]] = {
    "interval": _interval,
    **{
        name: _proposer(f"propose_{name}") for name in PROTOCOLS if name not in ("auto", "interval")
    },
}


def _show(made: Proposal) -> None:
    typer.echo(f"Plan for {made.protocol}: {made.blocks:,} blocks ({made.method})")
    typer.echo(_item("promise", made.promise))
    for key, value in made.predicted.items():
        typer.echo(_item(key.replace("_", " "), _number(value)))
    for other in made.alternatives:
        counted = "–" if other.blocks is None else f"{other.blocks:,} {made.counted_in}"
        typer.echo(_item(f"by {other.method}", f"{counted}  {other.note}".rstrip()))


def _show_recommendation(advice: Recommendation, as_json: bool) -> None:
    import json

    if as_json:
        typer.echo(json.dumps(advice.to_dict(), indent=2))
        return
    best = advice.best
    by = "" if advice.saving is None else f", {advice.saving:.2f} times fewer blocks than the next"
    typer.echo(f"Cheapest: {best.protocol}{by}")
    typer.echo(_item("promise", best.promise))
    for proposal in advice.proposals:
        typer.echo(_item(proposal.protocol, f"{proposal.blocks:,} blocks"))
    for name, reason in advice.refused:
        typer.echo(_item(name, reason))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _item(label: str, text: str) -> str:
    indent = " " * 27
    return textwrap.fill(text, width=98, initial_indent=f"  {label:<25}", subsequent_indent=indent)


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
            help="estimate, interval, mean, verify, correct, rounds, weights, split, amplified, "
            "simple, or auto for the cheapest."
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
    as_json: Json = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw blocks against questions to this file (svg, png or pdf)."),
    ] = None,
) -> None:
    """What will I get? With rows alone, without a plan and with one; else the best plan.

    Whatever is left out is found, and compared with every alternative. Examples:

    holdfast plan --rows 10000 --queries 100

    holdfast plan --queries 1000 --grid 32 --tail 0.25

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
        from holdfast.planning.compare import check_plot_file

        check_plot_file(plot)
    by_looks = {name for name, value in of_estimates.items() if value is not None}
    if rows is not None and by_looks == {"rows"}:
        _show_both(rows, queries, confidence, as_json)
        return
    made = _solved(
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
        _show_plan(made)
    if plot is not None:
        _draw(made, plot, quiet=as_json)


def _solved(**given: Any) -> Plan:
    from holdfast.planning.solve import plan

    return plan(**given)


def _show_plan(made: Plan) -> None:
    from holdfast.planning.plan import explain

    typer.echo(explain(made, others=False))
    _print_table(made)


def _show_both(rows: int, queries: int | None, confidence: float, as_json: bool) -> None:
    """What so many rows give: without a plan, and then by looks."""
    from holdfast.holdout.creation import preview_without_plan

    preview = preview_without_plan(rows, queries, confidence)
    made, reason = None, "say how many questions there will be, by --queries."
    if queries is not None:
        try:
            made = _solved(rows=rows, queries=queries, confidence=confidence)
        except Infeasible as wrong:
            reason = str(wrong)
    if as_json:
        looks = {"infeasible": reason} if made is None else made.to_dict()
        show_json({**looks, "told": preview.to_dict()})
        return
    typer.echo(f"Without a plan:\n{preview}\n")
    if made is None:
        typer.echo(f"By looks, for any estimator of a block: {reason}")
    else:
        typer.echo("By looks, for any estimator of a block:")
        _show_plan(made)


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

    from holdfast.planning.compare import PLOT_QUERIES, comparison, draw_comparison

    queries = sorted({*PLOT_QUERIES, made.queries})
    console = Console(stderr=True, quiet=quiet)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("sizing", total=len(queries))
        table = comparison(made.promise, queries, lambda _: progress.advance(task))
    draw_comparison(path, made.promise, table)
    console.print(f"Drawn: {path}", highlight=False)
