"""Commands of a custodian: create, status, check, backup, report, token, serve."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.common import (
    Engine,
    Folder,
    Json,
    Place,
    Token,
    opened,
    show_json,
    show_status,
    size,
    warnings_shown,
    whole_option,
)
from holdfast.errors import HoldfastError, InvalidInput, real_number
from holdfast.protocols.answers import rounded_up

if TYPE_CHECKING:
    from holdfast.holdout.creation import PlanMaker, Preview
    from holdfast.protocols.plans import ProtocolMix

__all__ = [
    "DAMAGED",
    "backup_command",
    "check_command",
    "create_command",
    "report_command",
    "serve_command",
    "status_command",
    "token_app",
]


def create_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The new holdout's folder.")],
    data: Annotated[
        list[str], typer.Option("--data", help="CSV or Parquet; several times for several files.")
    ],
    queries: Annotated[
        int | None, whole_option("About how many questions you will ask, if you know.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="For all answers at once.")] = 0.95,
    reading: Annotated[
        str,
        typer.Option(
            help="What scores of predictions are about: rows (these rows, fresh labels) or rule "
            "(this rule, on fresh rows)."
        ),
    ] = "rows",
    split: Annotated[
        str,
        typer.Option(
            help="How the table was split off from what people see: simple (at random), or "
            "stratified by the target."
        ),
    ] = "simple",
    protocols: Annotated[
        str | None,
        typer.Option(
            help="A plan for other questions, each perhaps with its own number: "
            "estimate,verify=100. Also mean, interval, correct, score, gate, simple, amplified, "
            "rounds, split, weights."
        ),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="A plan that `holdfast plan --json` wrote, instead.")
    ] = None,
    grid: Annotated[
        int | None, whole_option("With a plan: possible answers to a question, 32 if left out.")
    ] = None,
    tail: Annotated[
        float | None, typer.Option(help="With a plan, ρ: answers lie in qi(ρ, 1−ρ).")
    ] = None,
    refusals: Annotated[
        int | None, whole_option("With a plan: guesses that may be refused, 10 if left out.")
    ] = None,
    rounds: Annotated[
        int | None, whole_option("With a plan: rounds of questions, 5 if left out (rounds).")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Column that tells units apart; else every row is one.")
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(help="Column that names rows, for predictions; public, and not sealed."),
    ] = None,
    open_fraction: Annotated[
        float | None,
        typer.Option(help="Share of the units that stays open: 0.4 if left out, 0 with a plan."),
    ] = None,
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
    """Seal a table, so that it can be asked again and again, and say what bars to expect.

    No plan is needed: some rows stay open, to look at and to guess from, all others are sealed.
    With --protocols, --plan, --grid or --tail a plan is made first, for any estimator of a block;
    on a terminal it asks, where a plan wastes more than half of the data, or a target has no ids.

    holdfast create test.holdfast --data test.csv --target label --ids id

    holdfast create flights.holdfast --data flights.parquet --protocols estimate=500
    """
    from holdfast.holdout.holdout import Holdout

    values = _universe(universe or [])
    mix = maker = None
    given = any(each is not None for each in (protocols, grid, tail))
    if plan is None and given:
        wanted = {"grid": grid, "tail": tail, "refusals": refusals, "rounds": rounds}
        size = _universe_size(values, block_units)
        mix = _mix(protocols or "estimate", queries, confidence, size, wanted)
    if plan is not None or mix is not None:
        maker, queries = _plan_maker(plan, mix), None
    else:
        of_plans = {"--refusals": refusals, "--rounds": rounds, "--block-units": block_units}
        _refuse_without_plan({**of_plans, "--values": universe})
    unnamed = None if target is None or ids is not None else _GIVEN[unit is not None]
    review = _Review(mix, block_units, unnamed, ask=not yes, as_json=as_json)
    with (
        warnings_shown(),
        _progress(quiet=as_json, review=review) as report,
        Holdout.create(
            folder,
            data,
            maker,
            unit=unit,
            ids=ids,
            open_fraction=open_fraction,
            queries=queries,
            confidence=confidence,
            reading=reading,
            split=split,
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
    elif maker is not None:
        show_status(status)
    else:
        _show_sealed(folder, target, unnamed)
    if target is not None and labels is None and not status.open_units and not as_json:
        typer.echo(
            f"Nothing public says which labels {target} has: if it is a label, --labels names "
            "them, and predictions that are none are refused, free.",
            err=True,
        )


def _show_sealed(folder: Path, target: str | None, unnamed: tuple[str, str] | None) -> None:
    """What to do next."""
    if unnamed is not None:
        call = f"holdfast.Holdout.open({str(folder)!r}).{unnamed[1]}"
        typer.echo(f"Sealed. Next, in Python: {call}.")
    elif target is not None:
        typer.echo(f"Sealed. Next: holdfast score {folder} predictions.csv")
    else:
        typer.echo(f'Sealed. Next: holdfast mean {folder} "COLUMN > 3"')


def _refuse_without_plan(options: dict[str, object]) -> None:
    for option, value in options.items():
        if value is not None:
            hint = "It is for questions that are planned: name them by --protocols."
            raise InvalidInput(option, value, "left out without a plan", hint)


def _plan_maker(plan: Path | None, mix: ProtocolMix | None) -> PlanMaker:
    from holdfast.planning.joint import plans_for, written_plan

    if plan is None:
        assert mix is not None
        return partial(plans_for, mix)
    made = written_plan(plan.read_text(encoding="utf-8"))
    return lambda _units: made


def _mix(
    protocols: str,
    queries: int | None,
    confidence: float,
    universe: int | None,
    wanted: dict[str, Any],
) -> ProtocolMix:
    from holdfast.planning.joint import read_mix

    if queries is None and "=" not in protocols:
        hint = "Say how many questions you want to ask."
        raise InvalidInput("--queries", None, "a whole number", hint)
    more = {name: value for name, value in wanted.items() if value is not None}
    return read_mix(protocols, queries, confidence=confidence, universe=universe, **more)


_WIDE = 0.1  # half a bar of what is told
_IN_ORDER = "score(predictions), one prediction for each row of the table"
_GIVEN = (  # what Python scores without ids: with --unit how many rows there are is sealed
    ("an array in the order of the table", _IN_ORDER),
    ("a model, and no predictions", "score(model)"),
)


class _Review:
    """Shows what is going to be sealed, and asks where that wastes more than half of the data.

    It asks too where a target has no ids, which cannot be named later. Only on a terminal: a
    program is told, and never asked.
    """

    def __init__(
        self,
        mix: ProtocolMix | None,
        block_units: int | None,
        unnamed: tuple[str, str] | None,
        *,
        ask: bool,
        as_json: bool,
    ) -> None:
        self.mix, self.block_units, self.unnamed = mix, block_units, unnamed
        self.as_json = as_json
        self.ask = ask and not as_json and sys.stdin.isatty() and sys.stderr.isatty()
        self.pause: Callable[[], None] = lambda: None
        self.seen: dict[str, Any] = {}

    def __call__(self, preview: Preview) -> None:
        doubts = [*self._doubts(preview)]
        careful = [*doubts, *_wide(preview)]
        self.seen = {**preview.to_dict(), "careful": careful}
        if self.as_json:
            return
        self.pause()
        typer.echo(str(preview))
        for each in careful:
            typer.echo(f"Careful: {each}", err=True)
        if doubts and self.ask and not typer.confirm("Seal the data like this?", err=True):
            typer.echo("Nothing was sealed.", err=True)
            raise typer.Abort

    def to_dict(self) -> dict[str, Any]:
        """What was seen, for programs."""
        return self.seen

    def _doubts(self, preview: Preview) -> Iterator[str]:
        if self.unnamed is not None:
            yield (
                "without --ids no command, server or leaderboard can score predictions by id; only "
                f"Python can, with {self.unnamed[0]}. Name a column by --ids now."
            )
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
        if self.mix is None or self.block_units is not None or len(self.mix.queries) < 2:
            return
        alone = _alone(self.mix, preview.units - preview.open_units)
        halved = {name: size for name, size in alone.items() if size > 2 * preview.block_units}
        if halved:
            listed = ", ".join(f"{name} {size:,}" for name, size in halved.items())
            dearest = min(alone, key=alone.__getitem__)
            yield (
                f"blocks have {preview.block_units:,} units, and larger ones give narrower bars: "
                f"asked alone, there would be {listed}. {dearest} needs the most blocks: "
                "ask for fewer kinds of questions, or seal some of the rows for them"
            )


def _wide(preview: Preview) -> Iterator[str]:
    """Whether even the first bar says little, and what would help."""
    first = max((part.bars[0]["half_widths"][0] for part in preview.parts if part.bars), default=0)
    if first > _WIDE:
        open_too = ", or leave fewer open" if 2 * preview.open_units > preview.units else ""
        yield (
            f"even the first bar will be about ±{rounded_up(first, 2)}, too wide to tell most "
            f"models apart: seal more rows{open_too}"
        )


def _alone(mix: ProtocolMix, units: int) -> dict[str, int]:
    """How many units a block would have, were each protocol the only one."""
    from holdfast.holdout.spec import sets_for
    from holdfast.planning.joint import plans_for

    plans = {
        name: plans_for(replace(mix, queries={name: count}), units)
        for name, count in mix.queries.items()
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
    from holdfast.theory.weights import multiset_count

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


# `holdfast status`, `check` and `backup`: what is left, whether it adds up, and a copy of it.


DAMAGED = 6


def status_command(place: Place, token: Token = None, as_json: Json = False) -> None:
    """Show what is spent, what is left, and what it still buys.

    holdfast status test.holdfast
    """
    with opened(place, token, quiet=as_json) as holdout:
        status = holdout.status()
    if as_json:
        show_json(status.to_dict())
    else:
        show_status(status)


def check_command(
    folder: Folder,
    receipt: Annotated[
        str | None, typer.Option(help="A receipt that you kept: the ledger must continue it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Verify chain, plan, prices, budget, answers and files; exit status 6 if anything is wrong.

    holdfast check test.holdfast
    """
    from holdfast.holdout.check import check_holdout

    checked = check_holdout(folder, receipt)
    if as_json:
        show_json(checked.to_dict())
    else:
        typer.echo(str(checked))
    if not checked.passed:
        raise typer.Exit(DAMAGED)


def backup_command(
    folder: Folder,
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="A folder that does not exist yet.")],
    as_json: Json = False,
) -> None:
    """Copy a holdout, also while it is in use, into a folder that its owner alone can read.

    holdfast backup test.holdfast test-copy.holdfast
    """
    from holdfast.holdout.holdout import Holdout

    with Holdout.open(folder) as holdout:
        made = holdout.backup(copy)
    if as_json:
        show_json(made.to_dict())
    else:
        typer.echo(str(made))


# `holdfast report`: one self-contained page about a holdout.


def report_command(
    folder: Folder,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The HTML file to write; else DIR's name.html."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Write one HTML file with promise, budget, every question and answer, and the receipt.

    holdfast report test.holdfast -o test.html
    """
    from holdfast.report.page import holdout_story, page_html, write_text

    if output is None:
        output = Path(f"{folder.resolve().name.removesuffix('.holdfast')}.html")
    if output.exists() and not force:
        hint = "Choose another name, or say --force to replace it."
        raise InvalidInput("output", str(output), "a file that does not exist yet", hint)
    story = holdout_story(folder)
    write_text(output, page_html(story))
    if as_json:
        questions, size = len(story.asked), output.stat().st_size
        facts = {"output": str(output), "bytes": size, "questions": questions}
        show_json({**facts, "receipt": str(story.head)})
    else:
        asked = f"{len(story.asked):,} question{'s'[: len(story.asked) != 1]}"
        typer.echo(f"{output}: {asked}, as of receipt {story.head}")


# `holdfast token`: who may ask, and how much of the budget is theirs.


token_app = typer.Typer(
    name="token", help="Tokens and quotas of those who ask through a server.", no_args_is_help=True
)
Quota = Annotated[
    float | None,
    typer.Option(help="Share of the budget of looks, such as 0.2; else no limit of its own."),
]
Nats = Annotated[
    float | None, typer.Option(help="It asks until it was told so many nats; inf for no limit.")
]
_SPAN = re.compile(r"(\d{1,6})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@token_app.command("create")
def create_token_command(
    folder: Folder,
    role: Annotated[str, typer.Option(help="custodian, analyst or viewer.")],
    name: Annotated[str | None, typer.Option(help="Whose it is.")] = None,
    expires: Annotated[
        str | None, typer.Option(help="When it ends: 12h, 30d, 8w, or a date 2027-01-31.")
    ] = None,
    quota: Quota = None,
    nats: Nats = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A new file for the token, which its owner alone can read; else it is printed.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token. It is told once: the ledger keeps only its hash.

    holdfast token create flights.holdfast --role analyst --name Ann --expires 30d -o ann.token
    """
    from holdfast.holdout.holdout import Holdout

    moment = None if expires is None else _moment(expires)
    with Holdout.open(folder) as holdout, _new_file(output) as file:
        grant, token = holdout.access.grant(
            role,  # type: ignore[arg-type]  # checked there
            name=name,
            expires=moment,
            quota=quota,
            **({} if nats is None else {"nats": _limit(nats)}),
        )
        told_here = holdout.spec.has_told
        if file is not None:
            os.write(file, f"{token}\n".encode("ascii"))
            os.fsync(file)
    told = {"token": token} if output is None else {"output": str(output)}
    if as_json:
        show_json({**told, **grant.to_dict()})
        return
    if output is None:
        typer.echo(token)
    ends = "without an end" if grant.expires is None else f"until {grant.expires}"
    share = "" if grant.quota is None else f", for {grant.quota:.0%} of the budget"
    most = "" if grant.nats is None or not told_here else f"; {_until_told(grant.nats)}"
    about = f"{grant.role} {grant.name} (id {grant.id}), {ends}{share}{most}"
    kept = "Keep it: it is not shown again." if output is None else f"The token is in {output}."
    typer.echo(f"{about}. {kept}", err=True)


@token_app.command("list")
def list_command(folder: Folder, as_json: Json = False) -> None:
    """Show all tokens by their ids, and what each has used."""
    from holdfast.holdout.holdout import Holdout

    with Holdout.open(folder) as holdout:
        grants = holdout.access.grants()
        used = {grant.id: holdout.access.used(grant.id) for grant in grants}
        told = {grant.id: holdout.access.told(grant.id) for grant in grants}
        holding = holdout.access.holding()
    if as_json:
        of = [{"used": used[grant.id], "told": told[grant.id]} for grant in grants]
        show_json([{**grant.to_dict(), **each} for grant, each in zip(grants, of, strict=True)])
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("id", "name", "role", "state", "quota", "used", "nats", "told"):
        table.add_column(heading)
    for grant in grants:
        state = "revoked" if grant.revoked else ("holds" if grant.id in holding else "expired")
        quota = "" if grant.quota is None else f"{grant.quota:.1%}"
        most = max(used[grant.id].values(), default=0.0)
        nats = "" if grant.nats is None else f"{grant.nats:g}"
        row = (grant.id, grant.name, grant.role, state, quota, f"{most:.1%}", nats)
        table.add_row(*row, f"{told[grant.id]:.3g}")
    Console(highlight=False).print(table if grants else "No token was ever made for this holdout.")


@token_app.command("revoke")
def revoke_command(
    folder: Folder,
    token: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as listed.")],
    as_json: Json = False,
) -> None:
    """End a token, at once and for good."""
    from holdfast.holdout.holdout import Holdout

    with Holdout.open(folder) as holdout:
        grant = holdout.access.revoke(_identity(token))
    if as_json:
        show_json(grant.to_dict())
    else:
        typer.echo(f"{grant.name} (id {grant.id}) may not ask any more.")


@token_app.command("quota")
def quota_command(
    folder: Folder,
    token: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as listed.")],
    quota: Annotated[float | None, typer.Argument(help="Share of the budget.")] = None,
    nats: Nats = None,
    as_json: Json = False,
) -> None:
    """Give a token another share of the budget, or let it be told other nats.

    Without either it has no limit of its own on the budget.
    """
    from holdfast.holdout.holdout import Holdout

    with Holdout.open(folder) as holdout:
        most = None if nats is None else _limit(nats)
        if nats is None or quota is not None:
            grant = holdout.access.set_quota(_identity(token), quota)
        if nats is not None:
            grant = holdout.access.set_nats(_identity(token), most)
        spec = holdout.spec
    if as_json:
        show_json(grant.to_dict())
    else:
        share = "no limit of its own" if grant.quota is None else f"{grant.quota:.1%} of the budget"
        free = "it may be told any number of nats"
        told = free if grant.nats is None else _until_told(grant.nats)
        limits = [f"it has {share}"] * spec.has_budget + [told] * spec.has_told
        typer.echo(f"{grant.name} (id {grant.id}): {'; '.join(limits)}.")


def _until_told(nats: float) -> str:
    return f"it asks until it was told {nats:g} nats, and its last answer may go beyond"


def _limit(nats: float) -> float | None:
    return None if nats == math.inf else real_number("nats", nats, 0, open_low=True)


@contextmanager
def _new_file(path: Path | None) -> Iterator[int | None]:
    """A file that nobody else can read, before there is a token; an error removes it."""
    if path is None:
        yield None
        return
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise InvalidInput("--output", str(path), "a file that does not exist yet") from None
    try:
        yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


def _identity(token: str) -> str:
    """The id, also of a token that was given whole."""
    return token.split("_")[1] if token.startswith("hf_") and token.count("_") > 1 else token


def _moment(text: str) -> datetime:
    span = _SPAN.fullmatch(text)
    if span is not None:
        return datetime.now(UTC) + int(span[1]) * _UNITS[span[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        allowed = "a time such as 12h, 30d or 8w, or a date such as 2027-01-31"
        raise InvalidInput("--expires", text, allowed) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# `holdfast serve`: answer analysts over HTTP.


_PACKAGES = "fastapi httptools prometheus-client uvicorn uvloop"


def serve_command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="The folders of the holdouts.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, whole_option("Port to listen on; 0 takes a free one.")] = 8000,
    workers: Annotated[int, whole_option("Processes that answer.")] = 1,
    slot: Annotated[
        float, typer.Option(help="Seconds: answers leave after 1, 2, 4, 8, … of them.")
    ] = 0.05,
    question_seconds: Annotated[
        float, typer.Option(help="Refuse questions that could take longer on the worst rows.")
    ] = 30.0,
    rate: Annotated[float, typer.Option(help="Requests a second for each token.")] = 50.0,
    burst: Annotated[int, whole_option("… and how many at once.")] = 100,
    body_limit: Annotated[str, typer.Option(help="Size of a question, such as 64KB.")] = "64KB",
    submission_limit: Annotated[
        str, typer.Option(help="Size of a submission, such as 50MB.")
    ] = "50MB",
    metrics: Annotated[
        Path | None, typer.Option(help="A Python file with metrics of your own.")
    ] = None,
    engine: Engine = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate, for https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key.")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address as one line of JSON.")
    ] = False,
) -> None:
    """Answer analysts over HTTP: they ask, and never see a row.

    holdfast serve flights.holdfast --port 8000
    """
    try:
        from holdfast.server.run import serve
        from holdfast.server.settings import Settings
    except ImportError as missing:
        message = f"The server needs {missing.name}: pip install {_PACKAGES}."
        raise HoldfastError(message) from None

    settings = Settings(
        folders=tuple(folder.resolve() for folder in folders),
        host=host,
        port=port,
        workers=workers,
        slot=slot,
        question_seconds=question_seconds,
        rate=rate,
        burst=burst,
        body_limit=size("--body-limit", body_limit),
        submission_limit=size("--submission-limit", submission_limit),
        metrics=None if metrics is None else metrics.resolve(),
        engine=engine,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )

    def ready(told: dict[str, Any]) -> None:
        if as_json:
            typer.echo(json.dumps(told))
            return
        typer.echo(f"Holdfast serves {', '.join(told['holdouts'])} at {told['url']}")
        if not settings.loopback and settings.tls_cert is None:
            typer.echo("Tokens travel unencrypted: use --tls-cert, or a proxy that does.", err=True)

    status = serve(settings, level=log_level, ready=ready)
    if status:
        raise typer.Exit(status)
