"""`holdfast status`, `check` and `backup`: what is left, whether it adds up, and a copy of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.place import Folder, Place, Token, opened
from holdfast.cli.show import show_json, show_status
from holdfast.cli.values import Json

__all__ = ["backup_command", "check_command", "status_command"]

GATE = 4


def status_command(place: Place, token: Token = None, as_json: Json = False) -> None:
    """Show what is spent, what is left, and what it still buys."""
    with opened(place, token) as holdout:
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
    """Verify chain, plan, prices, budget, answers and files; exit status 4 if anything is wrong."""
    from holdfast.holdout.check import check_holdout

    checked = check_holdout(folder, receipt)
    if as_json:
        show_json(checked.to_dict())
    else:
        typer.echo(str(checked))
    if not checked.passed:
        raise typer.Exit(GATE)


def backup_command(
    folder: Folder,
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="A folder that does not exist yet.")],
    as_json: Json = False,
) -> None:
    """Copy a holdout, also while it is in use, into a folder that its owner alone can read."""
    from holdfast.holdout.holdout import Holdout

    with Holdout.open(folder) as holdout:
        made = holdout.backup(copy)
    if as_json:
        show_json(made.to_dict())
    else:
        typer.echo(str(made))
