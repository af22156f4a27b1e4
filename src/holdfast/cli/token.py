"""`holdfast token`: who may ask, and how much of the budget is theirs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.place import Folder
from holdfast.cli.show import show_json
from holdfast.cli.values import Json
from holdfast.errors import InvalidInput

__all__ = ["token_app"]

token_app = typer.Typer(
    name="token", help="Tokens and quotas of those who ask through a server.", no_args_is_help=True
)
Quota = Annotated[
    float | None, typer.Option(help="Share of the budget, such as 0.2; else no limit of its own.")
]
_SPAN = re.compile(r"(\d{1,6})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@token_app.command("create")
def create_command(
    folder: Folder,
    role: Annotated[str, typer.Option(help="custodian, analyst or viewer.")],
    name: Annotated[str | None, typer.Option(help="Whose it is.")] = None,
    expires: Annotated[
        str | None, typer.Option(help="When it ends: 12h, 30d, 8w, or a date 2027-01-31.")
    ] = None,
    quota: Quota = None,
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
        )
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
    about = f"{grant.role} {grant.name} (id {grant.id}), {ends}{share}"
    kept = "Keep it: it is not shown again." if output is None else f"The token is in {output}."
    typer.echo(f"{about}. {kept}", err=True)


@token_app.command("list")
def list_command(folder: Folder, as_json: Json = False) -> None:
    """Show all tokens by their ids, and what each has used."""
    from holdfast.holdout.holdout import Holdout

    with Holdout.open(folder) as holdout:
        grants = holdout.access.grants()
        used = {grant.id: holdout.access.used(grant.id) for grant in grants}
        holding = holdout.access.holding()
    if as_json:
        show_json([{**grant.to_dict(), "used": used[grant.id]} for grant in grants])
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("id", "name", "role", "state", "quota", "used"):
        table.add_column(heading)
    for grant in grants:
        state = "revoked" if grant.revoked else ("holds" if grant.id in holding else "expired")
        quota = "" if grant.quota is None else f"{grant.quota:.1%}"
        most = max(used[grant.id].values(), default=0.0)
        table.add_row(grant.id, grant.name, grant.role, state, quota, f"{most:.1%}")
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
    as_json: Json = False,
) -> None:
    """Give a token another share of the budget; without one it has no limit of its own."""
    from holdfast.holdout.holdout import Holdout

    with Holdout.open(folder) as holdout:
        grant = holdout.access.set_quota(_identity(token), quota)
    if as_json:
        show_json(grant.to_dict())
    else:
        share = "no limit of its own" if grant.quota is None else f"{grant.quota:.1%} of the budget"
        typer.echo(f"{grant.name} (id {grant.id}) has {share}.")


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
