"""`holdfast status` and `holdfast check`: what is left, and whether all of it adds up."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.place import Folder, Place, Token, opened
from holdfast.cli.show import show_json, show_status
from holdfast.cli.values import Json

__all__ = ["check_command", "status_command"]

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
    from holdfast.holdout import check_holdout

    checked = check_holdout(folder, receipt)
    if as_json:
        show_json(checked.to_dict())
    else:
        typer.echo(str(checked))
    if not checked.passed:
        raise typer.Exit(GATE)
