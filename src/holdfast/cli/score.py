"""`holdfast score`, `compare`, `gate`, `best`, `scores`, `enter`, `leaderboard`: about models.

Predictions are files that name the rows they are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.common import (
    Engine,
    Json,
    Place,
    Request,
    Token,
    Verbose,
    asking,
    opened,
    show_json,
    show_result,
)
from holdfast.errors import InvalidInput

__all__ = [
    "best_command",
    "compare_command",
    "enter_command",
    "gate_command",
    "leaderboard_command",
    "score_command",
    "scores_command",
]

FAILED, UNCLEAR = 4, 5

_FILE = "CSV, JSON or Parquet: the ids' own column and `prediction`."
Predictions = Annotated[Path, typer.Argument(metavar="PREDICTIONS", help=_FILE)]
Candidates = Annotated[
    list[Path], typer.Argument(metavar="PREDICTIONS…", help=f"Two or more. {_FILE}")
]
Metric = Annotated[str, typer.Option(help="The name of a metric.")]
Metrics = Annotated[
    Path | None, typer.Option(help="FILE.py with metrics of your own, for a folder.")
]
Guess = Annotated[
    float | None, typer.Option(help="What you expect; else the open part's score says it.")
]
GuessError = Annotated[
    float | None, typer.Option("--guess-se", help="The standard error of the guess, if known.")
]
Precise = Annotated[
    bool, typer.Option("--precise", help="A narrower bar, which tells more: later ones widen.")
]
MaxLevel = Annotated[
    float | None,
    typer.Option(help="Refuse, free, if others have asked meanwhile and the level is above this."),
]


def score_command(
    place: Place,
    predictions: Predictions,
    metric: Metric = "accuracy",
    guess: Guess = None,
    guess_se: GuessError = None,
    precise: Precise = False,
    max_level: MaxLevel = None,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    metrics: Metrics = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """The score of predictions on fresh data, with its bar.

    holdfast score test.holdfast predictions.csv --guess 0.91
    """
    _check(predictions)
    words: dict[str, Any] = {"metric": metric, "guess": guess, "guess_se": guess_se}
    words |= {"precise": precise, "max_level": max_level}
    with asking(place, token, engine, as_json, metrics) as (holdout, more):
        found: Any = holdout.score(predictions, **words, request=request, **more)
    show_result(found, f"{metric} of {predictions}", as_json, verbose)


def compare_command(
    place: Place,
    predictions: Predictions,
    against: Annotated[
        Path, typer.Argument(metavar="OTHERS", help="Those that they are compared with.")
    ],
    metric: Metric = "accuracy",
    margin: Annotated[
        float | None,
        typer.Option(help="For a verdict instead of a bar: by more than this; 0 by anything."),
    ] = None,
    guess: Annotated[
        float | None, typer.Option(help="The difference that you expect; else the open part's.")
    ] = None,
    guess_se: GuessError = None,
    precise: Precise = False,
    max_level: MaxLevel = None,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    metrics: Metrics = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """How much better the first predictions are than the others, on the same rows.

    holdfast compare test.holdfast new.csv old.csv
    """
    _check(predictions, against)
    words: dict[str, Any] = {"metric": metric, "margin": margin, "precise": precise}
    words |= {"guess": guess, "guess_se": guess_se, "max_level": max_level}
    names = _names([predictions, against]) or ("B", "A")
    with asking(place, token, engine, as_json, metrics) as (holdout, more):
        found: Any = holdout.compare(
            predictions, against, **words, names=names, request=request, **more
        )
    show_result(found, f"{predictions} against {against}", as_json, verbose)


def gate_command(
    place: Place,
    predictions: Predictions,
    metric: Metric = "accuracy",
    at_least: Annotated[float | None, typer.Option(help="The score must reach this.")] = None,
    at_most: Annotated[float | None, typer.Option(help="The score must not pass this.")] = None,
    better_than: Annotated[
        Path | None, typer.Option(help="Predictions of the incumbent, which must be beaten.")
    ] = None,
    margin: Annotated[float, typer.Option(help="By how much the incumbent must be beaten.")] = 0.0,
    tolerance: Annotated[
        float, typer.Option(help="A pass proves the threshold less this: easier to reach.")
    ] = 0.0,
    guess: Guess = None,
    guess_se: GuessError = None,
    max_level: MaxLevel = None,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    metrics: Metrics = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Pass if a score is proved to reach a threshold: exit 0 pass, 4 fail, 5 unclear.

    holdfast gate test.holdfast new.csv --at-least 0.85

    holdfast gate test.holdfast new.csv --better-than old.csv
    """
    _check(predictions, *([] if better_than is None else [better_than]))
    words: dict[str, Any] = {"metric": metric, "at_least": at_least, "at_most": at_most}
    words |= {"better_than": better_than, "margin": margin, "tolerance": tolerance}
    words |= {"guess": guess, "guess_se": guess_se, "max_level": max_level, "request": request}
    with asking(place, token, engine, as_json, metrics) as (holdout, more):
        found: Any = holdout.gate(predictions, **words, **more)
    show_result(found, f"gate for {predictions}", as_json, verbose)
    status = {"fail": FAILED, "unclear": UNCLEAR}.get(found.verdict)
    if status is not None:
        raise typer.Exit(status)


def best_command(
    place: Place,
    candidates: Candidates,
    metric: Metric = "accuracy",
    precise: Annotated[bool, typer.Option("--precise", help="Its score too, with a bar.")] = False,
    max_level: MaxLevel = None,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    metrics: Metrics = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Which of several predictions is best on the sealed rows: one answer, not a score for each.

    holdfast best test.holdfast a.csv b.csv c.csv --precise
    """
    _check(*candidates)
    words: dict[str, Any] = {"metric": metric, "names": _names(candidates), "precise": precise}
    words["max_level"] = max_level
    with asking(place, token, engine, as_json, metrics) as (holdout, more):
        found: Any = holdout.best(candidates, **words, request=request, **more)
    show_result(found, f"best of {len(candidates)}", as_json, verbose)


def scores_command(
    place: Place,
    candidates: Candidates,
    metric: Metric = "accuracy",
    precise: Precise = False,
    max_level: MaxLevel = None,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    metrics: Metrics = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """The scores of several predictions, all fixed before any of them is answered.

    holdfast scores test.holdfast a.csv b.csv c.csv
    """
    _check(*candidates)
    words: dict[str, Any] = {"metric": metric, "names": _names(candidates), "precise": precise}
    words["max_level"] = max_level
    with asking(place, token, engine, as_json, metrics) as (holdout, more):
        found: Any = holdout.scores(candidates, **words, request=request, **more)
    show_result(found, f"scores of {len(candidates)}", as_json, verbose)


def enter_command(
    place: Place,
    predictions: Predictions,
    name: Annotated[str, typer.Option(help="The name that the leaderboard shows.")],
    metric: Metric = "accuracy",
    guess: Guess = None,
    guess_se: GuessError = None,
    precise: Precise = False,
    max_level: MaxLevel = None,
    request: Request = None,
    token: Token = None,
    engine: Engine = None,
    metrics: Metrics = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Score predictions, and enter them on the leaderboard under a name.

    holdfast enter test.holdfast predictions.csv --name "boosted trees"
    """
    _check(predictions)
    words: dict[str, Any] = {"metric": metric, "guess": guess, "guess_se": guess_se}
    words |= {"precise": precise, "max_level": max_level}
    with asking(place, token, engine, as_json, metrics) as (holdout, more):
        entered: Any = holdout.enter(predictions, name=name, **words, request=request, **more)
    if as_json:
        show_json(entered.to_dict())
        return
    typer.echo(f"{entered.name} is on the leaderboard for {entered.metric}")
    show_result(entered.result, f"{entered.name}, by {entered.metric}", as_json, verbose)


def leaderboard_command(
    place: Place, metric: Metric = "accuracy", token: Token = None, as_json: Json = False
) -> None:
    """The best submission of every name, with the ranks that their bars allow."""
    with opened(place, token) as holdout:
        standings = holdout.leaderboard(metric)
    if as_json:
        show_json(standings.to_dict())
    else:
        typer.echo(str(standings) if standings.entries else f"No entry yet for {metric}.")


def _check(*files: Path) -> None:
    """Refuse a file that is not there, whoever is asked."""
    for file in files:
        if not file.is_file():
            raise InvalidInput("predictions", str(file), "a file that exists")


def _names(files: Sequence[Path]) -> tuple[str, ...] | None:
    """What people call them: by their files, if those have different names."""
    for made in ([file.stem for file in files], [str(file) for file in files]):
        if len({*made}) == len(made):
            return tuple(made)
    return None
