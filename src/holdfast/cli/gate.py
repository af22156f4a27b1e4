"""`holdfast gate`: does a model's score reach a threshold? For continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.place import Engine, Token, is_url
from holdfast.cli.show import show_json
from holdfast.cli.values import Json
from holdfast.errors import Damaged, HoldfastError, InvalidInput

if TYPE_CHECKING:
    from holdfast.holdout.gates import Gate

__all__ = ["gate_command"]

EXHAUSTED, FAILED = 3, 4


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
    from holdfast.holdout.scorers import read_scorers

    with Holdout.open(folder, engine=engine) as holdout:
        if metrics is not None:
            holdout.scorers = read_scorers(metrics)
        return holdout.gate(predictions, **wanted)


def _remote(
    url: str, token: str | None, holdout: str | None, predictions: Path, wanted: dict[str, Any]
) -> Gate:
    from holdfast.client.sync import Client

    if not predictions.is_file():
        raise InvalidInput("--predictions", str(predictions), "a file that exists")
    with Client(url, token=token, holdout=holdout) as client:
        return client.gate(predictions, **wanted)
