"""What the routes have in common: keys, tokens and errors as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Security
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from holdfast.server.faults import STATUS

__all__ = ["KEY_PATTERN", "NAME_PATTERN", "TOKEN", "Key", "holdout_router", "responses"]

_PREFIX = "/api/holdouts/{holdout}"
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
KEY_PATTERN = r"[!-~]{1,128}"
_Name = Annotated[str, Path(pattern=f"^{NAME_PATTERN}$", description="A holdout's name.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=f"^{KEY_PATTERN}$",
        description="A key of yours: asked again with it, nothing is drawn or paid anew. It never "
        "expires.",
    ),
]
_bearer = HTTPBearer(auto_error=False, description="A token that the custodian gave you.")


class Told(BaseModel):
    """What an error says."""

    kind: str
    message: str
    parameter: str | None = None
    allowed: str | None = None
    hint: str | None = None
    request: str


class Error(BaseModel):
    """The body of every error."""

    error: Told


def responses(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for OpenAPI."""
    always = ("bad_question", "unauthorized", "not_found", "too_large", "too_many")
    found: dict[int | str, dict[str, Any]] = {}
    for kind in (*always, *kinds):
        known = found.setdefault(STATUS[kind], {"model": Error, "description": ""})
        names = [each for each in known["description"].split(", ") if each]
        known["description"] = ", ".join([*names, kind])
    return found


async def _named(holdout: _Name) -> None:
    """Have the name in the address checked; `Service` finds the holdout by it."""
    del holdout


TOKEN = Security(_bearer)


def holdout_router() -> APIRouter:
    """A router for what belongs to one holdout; every route of it takes a token."""
    return APIRouter(
        prefix=_PREFIX, dependencies=[Depends(_named), TOKEN], responses=responses("forbidden")
    )
