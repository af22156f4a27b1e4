"""The library that a client needs and a holdout does not."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.errors import HoldfastError

__all__ = ["httpx_is_there"]


def httpx_is_there() -> None:
    """Raise an error that says what to install, if it is not."""
    if find_spec("httpx2") is None:
        raise HoldfastError("A client needs httpx2: pip install httpx2.")
