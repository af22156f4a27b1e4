"""Where a holdout is: in a folder, or on a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.client.sync import Client
    from holdfast.holdout.holdout import Holdout

__all__ = ["Engine", "Folder", "Place", "Token", "is_url", "opened"]

Place = Annotated[
    str,
    typer.Argument(
        metavar="DIR-OR-URL", help="The holdout's folder, or http://HOST:PORT/holdouts/NAME."
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The holdout's folder.")]
Token = Annotated[
    str | None,
    typer.Option(help="For a URL. Better in the variable HOLDFAST_TOKEN: others see commands."),
]

Engine = Annotated[
    str | None,
    typer.Option(
        envvar="HOLDFAST_ENGINE",
        help="Where blocks are evaluated: dask://HOST:PORT, a Dask scheduler; else here.",
    ),
]


def is_url(place: str) -> bool:
    """Whether a place is on a server, and no folder.

    >>> is_url("https://data.example.org/holdouts/flights"), is_url("flights.holdfast")
    (True, False)
    """
    return place.lower().startswith(("http://", "https://"))


def opened(place: str, token: str | None = None, engine: str | None = None) -> Holdout | Client:
    """The holdout in a folder, or a client for one on a server: both are asked alike."""
    if is_url(place):  # whose custodian chooses the engine
        from holdfast.client.sync import Client

        return Client(place, token)
    if token is not None:
        raise InvalidInput("token", "(not shown)", "left out for a folder")
    from holdfast.holdout.holdout import Holdout

    return Holdout.open(place, engine=engine)
