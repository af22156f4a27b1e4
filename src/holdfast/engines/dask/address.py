"""Where a cluster is: dask://host:port, with what the user says about waiting for it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from holdfast.errors import InvalidInput, real_number

__all__ = ["Address"]

_SCHEMES = {"dask": "tcp", "dask+tls": "tls"}
_PATIENCE = 300.0


@dataclass(frozen=True)
class Address:
    """A scheduler, and how many seconds a question waits for a cluster without workers."""

    scheduler: str
    patience: float = _PATIENCE

    @classmethod
    def read(cls, url: str) -> Address:
        """The address in a URL.

        >>> Address.read("dask://scheduler:8786?patience=60")
        Address(scheduler='tcp://scheduler:8786', patience=60.0)
        >>> Address.read("dask+tls://10.0.0.1:8786").scheduler
        'tls://10.0.0.1:8786'
        """
        allowed = "dask://host:port or dask+tls://host:port, as in dask://10.0.0.1:8786"
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
            options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        except ValueError:
            raise InvalidInput("engine", url, allowed) from None
        plain = not parts.path.strip("/") and not parts.fragment and parts.username is None
        if parts.scheme not in _SCHEMES or not host or not port or not plain:
            raise InvalidInput("engine", url, allowed)
        if set(options) - {"patience"}:
            raise InvalidInput("engine", url, "an address whose one option is patience=seconds")
        patience = _patience(options.get("patience"))
        host = f"[{host}]" if ":" in host else host
        return cls(f"{_SCHEMES[parts.scheme]}://{host}:{port}", patience)


def _patience(text: str | None) -> float:
    if text is None:
        return _PATIENCE
    try:
        seconds = float(text)
    except ValueError:
        raise InvalidInput("patience", text, "a number of seconds") from None
    return real_number("patience", seconds, 0, open_low=True)
