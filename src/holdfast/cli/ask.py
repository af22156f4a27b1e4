"""`holdfast ask`, `mean`, `interval`, `verify`, `correct`: questions to a holdout."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.common import Engine, Json, Place, Request, Token, Verbose, asking, show_result
from holdfast.errors import InvalidInput
from holdfast.verbs import REQUIRED, VerbSchema

__all__ = ["verb_command"]

_TYPES: dict[str, Any] = {"number": float, "distance": float, "flag": bool}


def verb_command(verb: VerbSchema) -> Callable[..., None]:
    """The command of a verb, with an option for each of its words."""
    by_name = inspect.Parameter.KEYWORD_ONLY
    subject = verb.word(verb.subject)

    def command(**given: Any) -> None:
        place, as_json, verbose = (given.pop(name) for name in ("place", "as_json", "verbose"))
        text, request = given.pop(subject.name), given.pop("request")
        with asking(place, given.pop("token"), given.pop("engine"), as_json) as (holdout, more):
            words = {name: verb.word(name).parsed(given[name]) for name in verb.words}
            asked = getattr(holdout, verb.name)
            result = asked(_estimator(text), **words, request=request, **more)
        title = f"mean of {text}" if verb.name == "mean" else text
        title = title if given["where"] is None else f"{title} where {given['where']}"
        show_result(result, title, as_json, verbose)

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
        option = typer.Option(_flag(name), help=word.help)
        parameters.append((name, Annotated[kind, option], ... if needed else word.default))
    parameters += [("request", Request, None), ("token", Token, None), ("engine", Engine, None)]
    parameters += [("verbose", Verbose, False), ("as_json", Json, False)]
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


def _flag(name: str) -> str:
    return "--protocol" if name == "by" else f"--{name.replace('_', '-')}"


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
