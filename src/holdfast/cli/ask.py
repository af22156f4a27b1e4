"""`holdfast ask`, `mean`, `interval`, `verify`, `correct`: questions to a holdout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.common import (
    Engine,
    Json,
    Place,
    Token,
    is_url,
    opened,
    show_answer,
    show_corrected,
    show_json,
    show_verdict,
)
from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast.grids import Grid, parse_grid

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.holdout.holdout import Holdout
    from holdfast.holdout.scoring import Gate

__all__ = [
    "ask_command",
    "correct_command",
    "gate_command",
    "interval_command",
    "mean_command",
    "verify_command",
]

EXHAUSTED = 3

Estimator = Annotated[
    str,
    typer.Argument(metavar="ESTIMATOR", help="An SQL aggregate, or FILE.py:FUNCTION of one block."),
]
Where = Annotated[str | None, typer.Option(help="SQL condition on rows.")]
Points = Annotated[
    str | None, typer.Option("--grid", help="Possible answers, LOW:HIGH:STEP or 1,2,5,10.")
]
By = Annotated[str | None, typer.Option(help="The part of the plan to ask, where it has several.")]
Anyway = Annotated[
    bool,
    typer.Option("--anyway", help="Ask even where what is public calls the question a slip."),
]
Request = Annotated[
    str | None, typer.Option(help="A key of yours: asked again with it, nothing is drawn anew.")
]
Guess = Annotated[float, typer.Option("--guess", help="The value that is asked about.")]


def ask_command(
    place: Place,
    estimator: Estimator,
    where: Where = None,
    grid: Points = None,
    by: By = None,
    anyway: Anyway = False,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    as_json: Json = False,
) -> None:
    """Ask for an estimator's value on fresh data.

    holdfast ask flights.holdfast "avg(arr_delay)" --where "carrier = 'UA'" --grid -20:60:2
    """
    with _opened(place, token, engine, as_json) as (holdout, more):
        answer = holdout.ask(
            _estimator(estimator),
            where=where,
            grid=_grid(grid),
            by=by,
            anyway=anyway,
            request=request,
            **more,
        )
    _show(answer, estimator, where, as_json)


def interval_command(
    place: Place,
    estimator: Estimator,
    where: Where = None,
    grid: Points = None,
    by: By = None,
    anyway: Anyway = False,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    as_json: Json = False,
) -> None:
    """Ask for an interval that encloses the median of the estimator over fresh blocks."""
    with _opened(place, token, engine, as_json) as (holdout, more):
        answer = holdout.interval(
            _estimator(estimator),
            where=where,
            grid=_grid(grid),
            by=by,
            anyway=anyway,
            request=request,
            **more,
        )
    _show(answer, estimator, where, as_json)


def mean_command(
    place: Place,
    term: Annotated[str, typer.Argument(help="SQL of a row: true or false, or a number.")],
    where: Where = None,
    within: Annotated[
        str | None,
        typer.Option("--range", help="LOW:HIGH that the term lies in, if not in 0:1."),
    ] = None,
    grid: Points = None,
    by: By = None,
    anyway: Anyway = False,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    as_json: Json = False,
) -> None:
    """Ask for a mean, with its error bar.

    holdfast mean flights.holdfast "arr_delay > 60"
    holdfast mean flights.holdfast "arr_delay - dep_delay" --range -120:120
    """
    words: dict[str, Any] = {"where": where, "range": _range(within), "grid": _grid(grid)}
    words |= {"by": by, "anyway": anyway, "request": request}
    with _opened(place, token, engine, as_json) as (holdout, more):
        answer = holdout.mean(_estimator(term), **words, **more)
    _show(answer, f"mean of {term}", where, as_json)


def verify_command(
    place: Place,
    estimator: Estimator,
    guess: Guess,
    where: Where = None,
    tolerance: Annotated[
        float | None, typer.Option(help="How near is near, where the plan has no guesses.")
    ] = None,
    claim: Annotated[str, typer.Option(help="equals, 'at least' or 'at most'.")] = "equals",
    by: By = None,
    anyway: Anyway = False,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    as_json: Json = False,
) -> None:
    """Ask whether a guess is compatible with fresh data: compatible, not compatible, cannot tell.

    "Compatible" is no confirmation: with an open part, the range says which other guesses are.
    """
    with _opened(place, token, engine, as_json) as (holdout, more):
        verdict = holdout.verify(
            _estimator(estimator),
            guess,
            where=where,
            tolerance=tolerance,
            claim=claim,  # type: ignore[arg-type]  # checked where it is used
            by=by,
            anyway=anyway,
            request=request,
            **more,
        )
    _show(verdict, estimator, where, as_json)


def correct_command(
    place: Place,
    estimator: Estimator,
    guess: Guess,
    where: Where = None,
    grid: Points = None,
    by: By = None,
    anyway: Anyway = False,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    as_json: Json = False,
) -> None:
    """Ask whether a guess is compatible with fresh data, and for an answer if it is not."""
    with _opened(place, token, engine, as_json) as (holdout, more):
        corrected = holdout.correct(
            _estimator(estimator),
            guess,
            where=where,
            grid=_grid(grid),
            by=by,
            anyway=anyway,
            request=request,
            **more,
        )
    _show(corrected, estimator, where, as_json)


@contextmanager
def _opened(
    place: str, token: str | None, engine: str | None, as_json: bool
) -> Iterator[tuple[Holdout | Client, dict[str, Any]]]:
    """The holdout, and a bar for evaluations that take long, where they take place here."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    silent = as_json or not console.is_terminal  # else it leaves an empty line in a log
    with (
        opened(place, token, engine) as holdout,
        Progress(console=console, transient=True, disable=silent) as progress,
    ):
        task = progress.add_task("evaluating", total=None, visible=False)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=True)

        yield holdout, {} if is_url(place) else {"progress": report}


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise InvalidInput("--range", text, "LOW:HIGH, two numbers") from None
    return low, high


def _grid(text: str | None) -> Grid | None:
    return None if text is None else parse_grid(text)


def _estimator(text: str) -> Any:
    """SQL as it is, or the function that FILE.py:FUNCTION names."""
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py"):
        return text
    path = Path(file)
    if not path.is_file():
        raise InvalidInput("estimator", text, "SQL, or FILE.py:FUNCTION with a file that exists")
    import runpy

    try:
        found = runpy.run_path(str(path)).get(name)
    except Exception as wrong:  # the file is the user's own: its error says nothing of the data
        hint = f"It fails when it is run: {wrong!r}"
        raise InvalidInput("estimator", text, "in a file that runs", hint) from wrong
    if not callable(found):
        raise InvalidInput("estimator", text, f"a function that {path.name} defines")
    return found


def _show(result: Any, text: str, where: str | None, as_json: bool) -> None:
    from holdfast.protocols.answers import Answer, Verdict

    title = text if where is None else f"{text} where {where}"
    if as_json:
        show_json(result.to_dict())
    elif isinstance(result, Answer):
        show_answer(result, title)
    elif isinstance(result, Verdict):
        show_verdict(result, title)
    else:
        show_corrected(result, title)
    verdict = getattr(result, "verdict", None)
    if "exhausted" in (verdict, getattr(verdict, "verdict", None)):
        raise typer.Exit(EXHAUSTED)


# `holdfast gate`: does a model's score reach a threshold? For continuous integration.


FAILED = 4


def gate_command(
    where: Annotated[
        str, typer.Argument(metavar="DIR-OR-URL", help="The holdout's folder, or a server.")
    ],
    predictions: Annotated[
        Path,
        typer.Option(help="CSV, JSON or Parquet: the ids' own column and `prediction`."),
    ],
    metric: Annotated[str, typer.Option(help="The name of a metric.")] = "accuracy",
    at_least: Annotated[float | None, typer.Option(help="The score must reach this.")] = None,
    at_most: Annotated[float | None, typer.Option(help="The score must not pass this.")] = None,
    holdout: Annotated[
        str | None, typer.Option(help="Which holdout of the server, if it has several.")
    ] = None,
    token: Token = None,
    engine: Engine = None,
    metrics: Annotated[
        Path | None, typer.Option(help="FILE.py with metrics of your own, for a folder.")
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(help="A key of yours: asked again with it, nothing is drawn anew."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Pass if a score on fresh data reaches a threshold: exit 0 pass, 4 fail, 3 exhausted.

    holdfast gate churn.holdfast --metric accuracy --predictions new.csv --at-least 0.85
    """
    wanted: dict[str, Any] = {"metric": metric, "at_least": at_least, "at_most": at_most}
    if request is not None:
        wanted["request"] = request
    try:
        if is_url(where):
            _refuse({"--metrics": metrics})
            told = _remote(where, token, holdout, predictions, wanted)
        else:
            _refuse({"--token": token, "--holdout": holdout})
            told = _local(Path(where), engine, metrics, predictions, wanted)
    except Damaged as wrong:  # its exit status is that of a gate that failed
        raise HoldfastError(str(wrong)) from wrong
    if as_json:
        show_json(told.to_dict())
    else:
        typer.echo(str(told))
    if told.exhausted:
        raise typer.Exit(EXHAUSTED)
    if not told.passed:
        raise typer.Exit(FAILED)


def _refuse(options: dict[str, object]) -> None:
    """Refuse what is not meant for such a place: it would be left out without a word."""
    for name, value in options.items():
        if value is not None:
            hint = "--metrics is for a folder, --token and --holdout for a server."
            raise InvalidInput(name, "(given)", "left out here", hint)


def _local(
    folder: Path,
    engine: str | None,
    metrics: Path | None,
    predictions: Path,
    wanted: dict[str, Any],
) -> Gate:
    from holdfast.holdout.holdout import Holdout
    from holdfast.holdout.scoring import read_scorers

    with Holdout.open(folder, engine=engine) as holdout:
        if metrics is not None:
            holdout.scorers = read_scorers(metrics)
        return holdout.gate(predictions, **wanted)


def _remote(
    url: str, token: str | None, holdout: str | None, predictions: Path, wanted: dict[str, Any]
) -> Gate:
    from holdfast.client.client import Client

    if not predictions.is_file():
        raise InvalidInput("--predictions", str(predictions), "a file that exists")
    with Client(url, token=token, holdout=holdout) as client:
        return client.gate(predictions, **wanted)
