"""`holdfast create`: seal a table under a plan."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.place import Engine
from holdfast.cli.show import show_json, show_status, warnings_shown
from holdfast.cli.values import Json, whole_option
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.holdout.creation import PlanMaker
    from holdfast.holdout.preview import Preview
    from holdfast.planning.menu import Order

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
    categories: Annotated[
        list[str] | None,
        typer.Option("--categories", help="COLUMN=a,b,c, all that its texts can be; repeatable."),
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
    labels: Annotated[
        str | None,
        typer.Option(help="All labels that it has, a,b,c: public, and others are refused."),
    ] = None,
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
    yes: Annotated[
        bool, typer.Option("--yes", help="Seal without asking, whatever the plan costs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Seal a table: random blocks, a plan, a ledger.

    Before anything is sealed, it prints how large the blocks are, what is left over and how wide
    the bars can be; on a terminal it asks, where a plan wastes more than half of the data.

    holdfast create flights.holdfast --data flights.parquet --queries 500
    """
    from holdfast.holdout.holdout import Holdout

    values = _universe(universe or [])
    order = None
    if plan is None:
        size = _universe_size(values, block_units)
        order = _order(protocols, queries, grid, tail, confidence, refusals, rounds, size)
    review = _Review(order, block_units, ask=not yes, as_json=as_json)
    with (
        warnings_shown(),
        _progress(quiet=as_json, review=review) as report,
        Holdout.create(
            folder,
            data,
            _plan_maker(plan, order),
            unit=unit,
            ids=ids,
            open_fraction=open_fraction,
            block_units=block_units,
            universe=values or None,
            ranges=_ranges(ranges or []),
            categories=_categories(categories or []),
            target=target,
            labels=None if labels is None else [each.strip() for each in labels.split(",")],
            weight=weight,
            new_budget=new_budget,
            name=name,
            memory_limit=memory_limit,
            seed=seed,
            progress=report,
            review=review,
            engine=engine,
            location=location,
            ledger=ledger,
        ) as holdout,
    ):
        status = holdout.status()
    if as_json:
        show_json({**status.to_dict(), "preview": review.to_dict()})
    else:
        show_status(status)


def _plan_maker(plan: Path | None, order: Order | None) -> PlanMaker:
    from holdfast.planning.kept import written_plan
    from holdfast.planning.menu import plans_for

    if order is not None:
        return lambda units: plans_for(order, units)
    assert plan is not None
    made = written_plan(plan.read_text(encoding="utf-8"))
    return lambda _units: made


def _order(
    protocols: str,
    queries: int | None,
    grid: int,
    tail: float | None,
    confidence: float,
    refusals: int,
    rounds: int,
    universe: int | None,
) -> Order:
    from holdfast.planning.menu import read_order

    if queries is None and "=" not in protocols:
        hint = "Say how many questions you want to ask."
        raise InvalidInput("--queries", None, "a whole number", hint)
    return read_order(
        protocols,
        queries,
        grid=grid,
        tail=tail,
        confidence=confidence,
        refusals=refusals,
        rounds=rounds,
        universe=universe,
    )


class _Review:
    """Shows what is going to be sealed, and asks where that wastes more than half of the data.

    Only on a terminal: a program is told, and never asked.
    """

    def __init__(
        self, order: Order | None, block_units: int | None, *, ask: bool, as_json: bool
    ) -> None:
        self.order, self.block_units = order, block_units
        self.as_json = as_json
        self.ask = ask and not as_json and sys.stdin.isatty() and sys.stderr.isatty()
        self.pause: Callable[[], None] = lambda: None
        self.seen: dict[str, Any] = {}

    def __call__(self, preview: Preview) -> None:
        doubts = [*self._doubts(preview)]
        self.seen = {**preview.to_dict(), "careful": doubts}
        if self.as_json:
            return
        self.pause()
        typer.echo(str(preview))
        for doubt in doubts:
            typer.echo(f"Careful: {doubt}", err=True)
        if doubts and self.ask and not typer.confirm("Seal the data like this?", err=True):
            typer.echo("Nothing was sealed.", err=True)
            raise typer.Abort

    def to_dict(self) -> dict[str, Any]:
        """What was seen, for programs."""
        return self.seen

    def _doubts(self, preview: Preview) -> Iterator[str]:
        if preview.mostly_left_over:
            size = (preview.units - preview.open_units) // preview.blocks
            advice = f"; without --block-units blocks would have {size:,} units"
            yield (
                f"only {preview.blocks * preview.block_units:,} of {preview.units:,} units are "
                f"sealed, and {preview.leftover_units:,} are never used"
                + (advice if self.block_units is not None else "")
            )
        empty = [part.name for part in preview.parts if (part.half_width or 0) >= 0.5]
        if empty:
            yield f"the bars of {', '.join(empty)} would say nothing: larger blocks are needed"
        if self.order is None or self.block_units is not None or len(self.order.queries) < 2:
            return
        alone = _alone(self.order, preview.units - preview.open_units)
        halved = {name: size for name, size in alone.items() if size > 2 * preview.block_units}
        if halved:
            listed = ", ".join(f"{name} {size:,}" for name, size in halved.items())
            dearest = min(alone, key=alone.__getitem__)
            yield (
                f"blocks have {preview.block_units:,} units, and larger ones give narrower bars: "
                f"asked alone, there would be {listed}. {dearest} needs the most blocks: "
                "ask for fewer kinds of questions, or seal some of the rows for them"
            )


def _alone(order: Order, units: int) -> dict[str, int]:
    """How many units a block would have, were each protocol the only one."""
    from holdfast.holdout.sets import sets_for
    from holdfast.planning.menu import plans_for

    plans = {
        name: plans_for(replace(order, queries={name: count}), units)
        for name, count in order.queries.items()
    }
    return {
        name: units // sum(each.blocks for each in sets_for(made)) for name, made in plans.items()
    }


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


def _categories(texts: list[str]) -> dict[str, list[str]]:
    found = {}
    for text in texts:
        column, equals, values = text.partition("=")
        if not equals or not values:
            raise InvalidInput("--categories", text, "COLUMN=a,b,c")
        found[column] = [value.strip() for value in values.split(",")]
    return found


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
    from holdfast.theory.transcripts import multiset_count

    cells = 1
    for each in values.values():
        cells *= len(each)
    return multiset_count(cells, block_units)


@contextmanager
def _progress(*, quiet: bool, review: _Review) -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error that goes from stage to stage, and is put away for a question."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    silent = quiet or not console.is_terminal
    with Progress(console=console, transient=True, disable=silent) as progress:
        task = progress.add_task("creating", total=1.0)
        review.pause = progress.stop

        def report(stage: str, done: float) -> None:
            progress.start()
            progress.update(task, description=stage, completed=done)

        yield report
