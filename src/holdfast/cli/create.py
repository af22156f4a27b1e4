"""`holdfast create`: seal a table under a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.place import Engine
from holdfast.cli.show import show_json, show_status
from holdfast.cli.values import Json, whole_option
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.holdout.sets import AnyPlan
    from holdfast.planning.kept import KeptPlan

__all__ = ["create_command"]


def create_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The new holdout's folder.")],
    data: Annotated[
        list[str], typer.Option("--data", help="CSV or Parquet; several times for several files.")
    ],
    queries: Annotated[int | None, whole_option("Questions to plan for.")] = None,
    protocols: Annotated[
        str,
        typer.Option(
            help="What will be asked, each perhaps with its own number: estimate,verify=100. Also "
            "mean, interval, correct, score, gate, simple, amplified, exact, exact-verify, "
            "exact-correct, rounds, split, weights."
        ),
    ] = "estimate",
    plan: Annotated[
        Path | None, typer.Option(help="A plan that `holdfast plan --json` wrote, instead.")
    ] = None,
    grid: Annotated[int, whole_option("Possible answers to a question.")] = 32,
    tail: Annotated[float | None, typer.Option(help="ρ: answers lie in qi(ρ, 1−ρ).")] = None,
    confidence: Annotated[float, typer.Option(help="For all answers at once.")] = 0.95,
    refusals: Annotated[int, whole_option("Guesses that may be refused.")] = 10,
    rounds: Annotated[int, whole_option("Rounds of questions (rounds).")] = 5,
    unit: Annotated[
        str | None, typer.Option(help="Column that tells units apart; else every row is one.")
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(help="Column that names rows, for predictions; public, and not sealed."),
    ] = None,
    open_fraction: Annotated[float, typer.Option(help="Share of the units that stays open.")] = 0.0,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="COLUMN=LOW:HIGH, what its values can be; repeatable."),
    ] = None,
    block_units: Annotated[
        int | None, whole_option("Units a block; else as many as the data allow.")
    ] = None,
    universe: Annotated[
        list[str] | None,
        typer.Option(
            "--values",
            help="COLUMN=LOW:HIGH:STEP or COLUMN=a,b,c, all that it can be (weights); repeatable.",
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column that models predict.")] = None,
    weight: Annotated[str | None, typer.Option(hidden=True)] = None,
    new_budget: Annotated[
        str | None,
        typer.Option(help="Why data that are known already get a new budget.", metavar="REASON"),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name in reports; else the folder's.")] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="Memory for creation, such as 1GB; the rest is on disk.")
    ] = None,
    engine: Engine = None,
    location: Annotated[
        str | None,
        typer.Option(help="URL for the sealed files, such as s3://BUCKET/FOLDER; with --engine."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="Where the ledger is kept, postgresql://HOST/DATABASE; else in DIR."),
    ] = None,
    seed: Annotated[int | None, whole_option("Repeatable, but without a certificate.")] = None,
    as_json: Json = False,
) -> None:
    """Seal a table: random blocks, a plan, a ledger.

    holdfast create flights.holdfast --data flights.parquet --queries 500
    """
    from holdfast.holdout import Holdout

    values = _universe(universe or [])
    size = _universe_size(values, block_units)
    with (
        _progress(quiet=as_json) as report,
        Holdout.create(
            folder,
            data,
            _plan_maker(plan, protocols, queries, grid, tail, confidence, refusals, rounds, size),
            unit=unit,
            ids=ids,
            open_fraction=open_fraction,
            block_units=block_units,
            universe=values or None,
            ranges=_ranges(ranges or []),
            target=target,
            weight=weight,
            new_budget=new_budget,
            name=name,
            memory_limit=memory_limit,
            seed=seed,
            progress=report,
            engine=engine,
            location=location,
            ledger=ledger,
        ) as holdout,
    ):
        status = holdout.status()
    if as_json:
        show_json(status.to_dict())
    else:
        show_status(status)


def _plan_maker(
    plan: Path | None,
    protocols: str,
    queries: int | None,
    grid: int,
    tail: float | None,
    confidence: float,
    refusals: int,
    rounds: int,
    universe: int | None,
) -> Callable[[int], AnyPlan | list[KeptPlan]]:
    from holdfast.planning.joint import JointPlan
    from holdfast.planning.menu import plans_for, read_order
    from holdfast.planning.plan import Plan
    from holdfast.planning.written import json_object

    if plan is not None:
        data = json_object(plan.read_text(encoding="utf-8"), "a plan")
        made = JointPlan.from_dict(data) if "parts" in data else Plan.from_dict(data)
        return lambda _units: made
    if queries is None and "=" not in protocols:
        hint = "Say how many questions you want to ask."
        raise InvalidInput("--queries", None, "a whole number", hint)
    order = read_order(
        protocols,
        queries,
        grid=grid,
        tail=tail,
        confidence=confidence,
        refusals=refusals,
        rounds=rounds,
        universe=universe,
    )
    return lambda units: plans_for(order, units)


def _ranges(texts: list[str]) -> dict[str, tuple[float, float]]:
    ranges = {}
    for text in texts:
        column, _, pair = text.rpartition("=")
        low, _, high = pair.partition(":")
        try:
            ranges[column] = (float(low), float(high))
        except ValueError:
            raise InvalidInput("--range", text, "COLUMN=LOW:HIGH") from None
    return ranges


def _universe(texts: list[str]) -> dict[str, list[object]]:
    from holdfast.grids import parse_grid

    found: dict[str, list[object]] = {}
    for text in texts:
        column, equals, values = text.partition("=")
        if not equals or not values:
            raise InvalidInput("--values", text, "COLUMN=LOW:HIGH:STEP or COLUMN=a,b,c")
        try:
            grid = parse_grid(values)
            found[column] = [float(grid.point(i)) for i in range(min(grid.size, 10**6))]
        except InvalidInput:
            found[column] = [value.strip() for value in values.split(",")]
    return found


def _universe_size(values: dict[str, list[object]], block_units: int | None) -> int | None:
    if not values or block_units is None:
        return None
    from holdfast.theory.updates import multiset_count

    cells = 1
    for each in values.values():
        cells *= len(each)
    return multiset_count(cells, block_units)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error that goes from stage to stage."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    silent = quiet or not console.is_terminal
    with Progress(console=console, transient=True, disable=silent) as progress:
        task = progress.add_task("creating", total=1.0)
        yield lambda stage, done: progress.update(task, description=stage, completed=done)
