"""The commands put together, and how errors reach a person or a program."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Iterable, Sequence
from copy import copy
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated

import typer
from typer.exceptions import TyperException

from holdfast.cli.ask import leaderboard_command, verb_command
from holdfast.cli.custody import (
    DAMAGED,
    backup_command,
    check_command,
    create_command,
    report_command,
    serve_command,
    status_command,
    token_app,
)
from holdfast.cli.plan import plan_command
from holdfast.errors import Damaged, Doubtful, Exhausted, HoldfastError, Infeasible, InvalidInput
from holdfast.verbs import SCORES, VERBS

__all__ = ["add_commands", "app", "run"]

app = typer.Typer(
    name="holdfast",
    help="Ask one holdout adaptively chosen questions, and know what each answer is worth.",
    invoke_without_command=True,  # then `_root` shows the help
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("plan")(plan_command)
app.command("create")(create_command)
for _verb in (*SCORES.values(), *VERBS.values()):
    app.command(_verb.name)(verb_command(_verb))
app.command("leaderboard")(leaderboard_command)
app.command("status")(status_command)
app.command("check")(check_command)
app.command("backup")(backup_command)
app.command("report")(report_command)
app.command("serve")(serve_command)
app.add_typer(token_app)


def add_commands(app: typer.Typer, found: Iterable[EntryPoint]) -> None:
    """Add what other packages bring: a function as a command, a Typer as a group of them."""
    for each in found:
        try:
            brought = each.load()
        except ImportError as wrong:
            print(f"holdfast: the command {each.name} is left out: {wrong}", file=sys.stderr)
            continue
        if isinstance(brought, typer.Typer):
            app.add_typer(brought, name=each.name)
        else:
            app.command(each.name)(brought)


add_commands(app, entry_points(group="holdfast.commands"))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {version('holdfast')}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version  # its callback has done the work
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        return _run(arguments)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    print(f"holdfast: {message}", file=sys.stderr)


def _run(arguments: Sequence[str]) -> int:
    _print_anywhere()
    as_json = "--json" in arguments
    try:
        status = _app_for(arguments)(args=list(arguments), standalone_mode=False)
        return status if isinstance(status, int) else 0
    except typer.Abort:
        typer.echo("Stopped.", err=True)
        return 1
    except TyperException as wrong:  # unknown options, words where numbers belong
        _report(_usage(wrong), "usage", as_json)
        return 2
    except (InvalidInput, Infeasible) as wrong:
        kind = "doubtful" if isinstance(wrong, Doubtful) else "bad_question"
        _report(str(wrong), kind, as_json)
        return 2
    except Exhausted as wrong:
        _report(str(wrong), "exhausted", as_json)
        return 3
    except Damaged as wrong:
        _report(str(wrong), "damaged", as_json)
        return DAMAGED
    except HoldfastError as wrong:
        _report(str(wrong), "error", as_json)
        return 1
    except OSError as wrong:
        _report(f"{wrong.strerror or wrong}: {wrong.filename or ''}", "system", as_json)
        return 1


def _app_for(arguments: Sequence[str]) -> typer.Typer:
    """All commands, or the one that is named alone: to build the others takes as long as it."""
    named = [each for each in app.registered_commands if each.name in arguments[:1]]
    if not named:
        return app
    one = copy(app)
    one.registered_commands, one.registered_groups = named, []
    return one


def _print_anywhere() -> None:
    """A terminal without × and ρ gets a question mark for them, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _usage(wrong: TyperException) -> str:
    message = wrong.format_message().rstrip(".")
    return f"{message}{'' if message.endswith('?') else '.'} Try --help."


def _report(message: str, kind: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"error": {"kind": kind, "message": message}}), err=True)
    else:
        print(f"holdfast: {message}", file=sys.stderr)
