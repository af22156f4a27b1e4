"""Addresses: where a server is, which holdout is meant, and when a token may travel there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, quote, unquote, urlsplit

from holdfast.errors import InvalidInput

__all__ = ["Address", "address_of", "token_for"]

_FORMS = "http(s)://HOST[:PORT], or http(s)://HOST[:PORT]/holdouts/NAME"
_TOKEN = re.compile(r"[!-~]+")
_NAMED = re.compile(r"(?P<base>.*?)(?:/api)?/holdouts/(?P<name>[^/]+)")
_HIDDEN = "(not shown)"


@dataclass(frozen=True)
class Address:
    """A server and, where it is known, the name of one of its holdouts."""

    server: str
    holdout: str | None
    loopback: bool

    @property
    def secret(self) -> bool:
        """Whether nobody on the way can read what is sent."""
        return self.loopback or self.server.startswith("https:")

    def __str__(self) -> str:
        return self.server if self.holdout is None else self.of(self.holdout)

    def of(self, holdout: str) -> str:
        """The address of a holdout."""
        return f"{self.server}/holdouts/{quote(holdout, safe='')}"


def address_of(url: str, holdout: str | None = None) -> Address:
    """The address that a URL names; `holdout` may name what the URL does not.

    >>> address_of("http://127.0.0.1:8000/holdouts/flights")
    Address(server='http://127.0.0.1:8000', holdout='flights', loopback=True)
    >>> str(address_of("https://data.example.org", "flights"))
    'https://data.example.org/holdouts/flights'
    """
    parts = _split(url)
    path = parts.path.rstrip("/")
    found = _NAMED.fullmatch(path)
    base = path if found is None else found["base"]
    named = unquote(parts.fragment if found is None else found["name"]).strip("/") or None
    if holdout is not None and named is not None and holdout != named:
        raise InvalidInput("holdout", holdout, f"{named!r}, as in the URL, or left out")
    server = f"{parts.scheme}://{parts.netloc}{base}"
    return Address(server, named or _name(holdout), _loopback(parts.hostname or ""))


def _name(holdout: object) -> str | None:
    if holdout is None or (isinstance(holdout, str) and holdout):
        return holdout
    raise InvalidInput("holdout", holdout, "the name of a holdout")


def _split(url: object) -> SplitResult:
    if not isinstance(url, str):
        raise InvalidInput("url", url, _FORMS)
    if "@" in url.partition("#")[0]:  # first: no other error may repeat it
        hint = "A token goes into token=… or the variable HOLDFAST_TOKEN, never into a URL."
        raise InvalidInput("url", _HIDDEN, "without a name and a password", hint)
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # it is looked at only here
    except ValueError:
        raise InvalidInput("url", url, _FORMS) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise InvalidInput("url", url, _FORMS, "As `holdfast serve` prints it.")
    return parts


def _loopback(host: str) -> bool:
    """Whether what is sent stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def token_for(
    address: Address,
    token: str | None,
    *,
    insecure: bool,
    environment: Mapping[str, str] | None = None,
) -> str | None:
    """The token, or the one in the environment, if it may be sent to this address."""
    variables = os.environ if environment is None else environment
    given = variables.get("HOLDFAST_TOKEN") or None if token is None else token
    if given is None:
        return None
    given = str(given).strip()
    if not _TOKEN.fullmatch(given):  # checked here: an error elsewhere might show it
        hint = "Copy the whole of it, as `holdfast token create` printed it."
        raise InvalidInput("token", _HIDDEN, "text without spaces, in ASCII", hint)
    if not address.secret and not insecure:
        hint = (
            "Whoever is on the way could read the token and ask in your name. Only on a network "
            "that you trust: Client(…, insecure=True)."
        )
        raise InvalidInput("url", str(address), "https:// where a token is sent", hint)
    return given
