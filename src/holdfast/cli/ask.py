"""`holdfast ask`, `mean`, `interval`, `verify`, `correct`: questions to a holdout."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
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
from holdfast.verbs import REQUIRED, VerbSchema

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.holdout.holdout import Holdout
    from holdfast.protocols.answers import Told

__all__ = ["gate_command", "verb_command"]

EXHAUSTED = 3

_TYPES: dict[str, Any] = {"number": float, "distance": float, "flag": bool}


def verb_command(verb: VerbSchema) -> Callable[..., None]:
    """The command of a verb, with an option for each of its words."""
    by_name = inspect.Parameter.KEYWORD_ONLY
    subject = verb.word(verb.subject)

    def command(**given: Any) -> None:
        place, as_json = given.pop("place"), given.pop("as_json")
        text, request = given.pop(subject.name), given.pop("request")
        with _opened(place, given.pop("token"), given.pop("engine"), as_json) as (holdout, more):
            words = {name: verb.word(name).parsed(given[name]) for name in verb.words}
            asked = getattr(holdout, verb.name)
            result = asked(_estimator(text), **words, request=request, **more)
        title = f"mean of {text}" if verb.name == "mean" else text
        _show(result, title, given["where"], as_json)

    shown = typer.Argument(metavar=subject.name.upper(), help=subject.help)
    parameters: list[tuple[str, Any, Any]] = [
        ("place", Place, ...),
        (subject.name, Annotated[str, shown], ...),
    ]
    for name in verb.words:
        word = verb.word(name)
        kind = _TYPES.get(word.kind, str)
        needed = word.default is REQUIRED
        kind = kind if needed or word.default is not None else kind | None
        option = typer.Option(f"--{name}", help=word.help)
        parameters.append((name, Annotated[kind, option], ... if needed else word.default))
    key = typer.Option(help="A key of yours: asked again with it, nothing is drawn anew.")
    parameters += [("request", Annotated[str | None, key], None), ("token", Token, None)]
    parameters += [("engine", Engine, None), ("as_json", Json, False)]
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
        [
            inspect.Parameter(
                name,
                by_name,
                default=inspect.Parameter.empty if default is ... else default,
                annotation=kind,
            )
            for name, kind, default in parameters
        ]
    )
    command.__annotations__ = {name: kind for name, kind, _ in parameters}
    command.__doc__ = f"{verb.help}\n\n{verb.more}".strip()
    return command


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


_SHOWN: dict[str, Callable[..., None]] = {
    "answer": show_answer,
    "verdict": show_verdict,
    "corrected": show_corrected,
}


def _show(result: Any, text: str, where: str | None, as_json: bool) -> None:
    title = text if where is None else f"{text} where {where}"
    if as_json:
        show_json(result.to_dict())
    else:
        _SHOWN[result.kind](result, title)
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
) -> Told:
    from holdfast.holdout.holdout import Holdout
    from holdfast.holdout.scoring import read_scorers

    with Holdout.open(folder, engine=engine) as holdout:
        if metrics is not None:
            holdout.scorers = read_scorers(metrics)
        return holdout.gate(predictions, **wanted)


def _remote(
    url: str, token: str | None, holdout: str | None, predictions: Path, wanted: dict[str, Any]
) -> Told:
    from holdfast.client.client import Client

    if not predictions.is_file():
        raise InvalidInput("--predictions", str(predictions), "a file that exists")
    with Client(url, token=token, holdout=holdout) as client:
        found: Told = client.gate(predictions, **wanted)
        return found
