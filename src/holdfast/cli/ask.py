"""The commands that ask, made from the table of verbs; and the leaderboard.

A verb is about SQL (`ask`, `mean`, …), or about files of predictions that name the rows they are
for (`score`, `compare`, `gate`, …).
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.common import (
    Engine,
    Json,
    Place,
    Request,
    Token,
    Verbose,
    asking,
    show_json,
    show_price,
    show_result,
    whole_option,
)
from holdfast.errors import InvalidInput
from holdfast.verbs import REQUIRED, SCORES, TOP, VerbSchema, Word

if TYPE_CHECKING:
    from holdfast.holdout.scoring import Submission

__all__ = ["leaderboard_command", "verb_command"]

_GATE = {"pass": 0, "fail": 4, "unclear": 5}
_TYPES: dict[str, Any] = {"number": float, "distance": float, "flag": bool, "predictions": Path}
_FILE = "CSV, JSON or Parquet: the ids' own column and `prediction`."
_SUBJECTS = {
    "model_or_predictions": ("PREDICTIONS", _FILE),
    "predictions": ("PREDICTIONS", _FILE),
    "against": ("OTHERS", "Those that they are compared with."),
    "candidates": ("PREDICTIONS…", f"Two or more. {_FILE}"),
}
_Price = Annotated[
    bool, typer.Option("--price", help="Ask nothing: show what each likely answer would tell.")
]
_Metrics = Annotated[
    Path | None, typer.Option(help="FILE.py with metrics of your own, for a folder.")
]
_EXAMPLES = {
    "score": "holdfast score test.holdfast predictions.csv --guess 0.91",
    "compare": "holdfast compare test.holdfast new.csv old.csv",
    "gate": "Exit status: 0 pass, 4 fail, 5 unclear.\n\n"
    "holdfast gate test.holdfast new.csv --at-least 0.85\n\n"
    "holdfast gate test.holdfast new.csv --better-than old.csv",
    "best": "holdfast best test.holdfast a.csv b.csv c.csv --precise",
    "scores": "holdfast scores test.holdfast a.csv b.csv c.csv",
    "enter": "holdfast enter test.holdfast predictions.csv --name 'boosted trees'",
}


def verb_command(verb: VerbSchema) -> Callable[..., None]:
    """The command of a verb, with an argument or an option for each of its words."""
    scored = verb.name in SCORES

    def command(**given: Any) -> None:
        names = ("place", "token", "engine", "as_json", "verbose", "price", "request", "metrics")
        place, token, engine, as_json, verbose, price, request, metrics = (
            given.pop(name, None) for name in names
        )
        words = {each.name: each.parsed(given[each.name]) for each in verb.travelling}
        if scored:
            words |= _files(words)
            title = f"{verb.name} by {words['metric']}"
        else:
            title = _title(verb, words)
            words[verb.subject] = _estimator(words[verb.subject])
        subject = words.pop(verb.subject)
        with asking(place, token, engine, as_json, metrics) as (holdout, progress):
            if price:
                show_price(holdout.price(verb.name, subject, **words), as_json)
                return
            more = {"request": request, **progress}
            result: Any = getattr(holdout, verb.name)(subject, **words, **more)
        if verb.name == "enter":
            _show_entry(result, title, as_json, verbose)
        else:
            show_result(result, title, as_json, verbose)
        if verb.name == "best" and not words["precise"] and not as_json:
            typed = [place, str(subject[result.letter[0]]), "--metric", words["metric"]]
            typed = typed[:2] if words["metric"] == "accuracy" else typed
            typer.echo(f"its score: holdfast score {shlex.join(typed)} --precise")
        if verb.name == "gate" and result.verdict != "pass":
            raise typer.Exit(_GATE[result.verdict])

    parameters: list[tuple[str, Any, Any]] = [("place", Place, ...)]
    parameters += [_parameter(verb, word) for word in verb.travelling]
    parameters += [("request", Request, None), ("token", Token, None), ("engine", Engine, None)]
    parameters += [("metrics", _Metrics, None)] if scored else []
    parameters += [("price", _Price, False), ("verbose", Verbose, False), ("as_json", Json, False)]
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if default is ... else default,
                annotation=kind,
            )
            for name, kind, default in parameters
        ]
    )
    command.__annotations__ = {name: kind for name, kind, _ in parameters}
    command.__doc__ = f"{verb.help}\n\n{_EXAMPLES.get(verb.name, verb.more)}".strip()
    return command


def _parameter(verb: VerbSchema, word: Word) -> tuple[str, Any, Any]:
    """An argument for what a question is about, an option for every other word."""
    name, needed = word.name, word.default is REQUIRED
    kind = _TYPES.get(word.kind, str)
    if name == verb.subject or (needed and name in _SUBJECTS):
        metavar, words = _SUBJECTS.get(name, (name.upper(), word.help))
        kind = list[Path] if word.kind == "candidates" else kind
        return name, Annotated[kind, typer.Argument(metavar=metavar, help=words)], ...
    kind = kind if needed or word.default is not None else kind | None
    option = typer.Option(f"--{name.replace('_', '-')}", help=word.help)
    return name, Annotated[kind, option], ... if needed else word.default


def _title(verb: VerbSchema, words: dict[str, Any]) -> str:
    text = words[verb.subject]
    title = f"mean of {text}" if verb.name == "mean" else text
    return title if words["where"] is None else f"{title} where {words['where']}"


# Files of predictions.


def _files(words: dict[str, Any]) -> dict[str, Any]:
    """Refuse files that are not there, whoever is asked; call several by their files' names."""
    several = [
        each
        for name in ("candidates", "model_or_predictions", "predictions", "against", "better_than")
        for each in (words.get(name) if name == "candidates" else [words.get(name)]) or []
        if each is not None
    ]
    for file in several:
        if not file.is_file():
            raise InvalidInput("predictions", str(file), "a file that exists")
    if words.get("candidates") is None and "against" not in words:
        return {}
    names = _names(several)
    return {} if names is None else {"names": names}


def _names(files: Sequence[Path]) -> tuple[str, ...] | None:
    """What people call them: by their files, if those have different names."""
    for made in ([file.stem for file in files], [str(file) for file in files]):
        if len({*made}) == len(made):
            return tuple(made)
    return None


def _show_entry(entry: Submission, title: str, as_json: bool, verbose: bool) -> None:
    if as_json:
        show_json(entry.to_dict())
    else:
        typer.echo(f"{entry.name} is on the leaderboard for {entry.metric}")
        show_result(entry.result, title, as_json, verbose)


def leaderboard_command(
    place: Place,
    metric: Annotated[str, typer.Option(help="The name of a metric.")] = "accuracy",
    neighbours: Annotated[
        bool, typer.Option("--neighbours", help="Compare each of the first with the next.")
    ] = False,
    top: Annotated[int, whole_option("Compare so many entries, the first ones.")] = TOP,
    max_level: Annotated[
        float | None, typer.Option(help="Refuse above this level: others may have asked meanwhile.")
    ] = None,
    price: Annotated[
        bool, typer.Option("--price", help="Compare nothing: show what that would tell.")
    ] = False,
    token: Token = None,
    engine: Engine = None,
    metrics: _Metrics = None,
    as_json: Json = False,
) -> None:
    """The best submission of every name, with the ranks that their bars allow.

    holdfast leaderboard test.holdfast --neighbours
    """
    words: dict[str, Any] = {"top": top, "max_level": max_level}
    with asking(place, token, engine, as_json, metrics) as (holdout, _):
        standings = holdout.leaderboard(metric, neighbours=neighbours, price=price, **words)
    if as_json:
        show_json(standings.to_dict())
    else:
        typer.echo(str(standings) if standings.entries else f"No entry yet for {metric}.")


# Estimators.


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
