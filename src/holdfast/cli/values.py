"""Values as people type them."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from holdfast.errors import InvalidInput

__all__ = ["Json", "size", "whole", "whole_option"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def whole(text: str) -> int:
    """A whole number, with an exponent if that is shorter; its range is checked by whoever asks.

    >>> whole("1000"), whole("1e6"), whole("2.5e3")
    (1000, 1000000, 2500)
    """
    try:
        return int(text)  # first, and exactly: a float would round a large one
    except ValueError:
        pass
    try:
        number = float(text)
        if number.is_integer():
            return int(number)
    except ValueError:
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number.")  # typer adds which option


def whole_option(meaning: str) -> Any:
    """An option that takes a `whole` number."""
    return typer.Option(help=meaning, parser=whole, metavar="<int>")


_SIZE = re.compile(r"(\d{1,9})\s*(B|KB|MB|GB)?", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}


def size(option: str, text: str) -> int:
    """A number of bytes.

    >>> size("--body-limit", "64KB"), size("--body-limit", "10 mb")
    (65536, 10485760)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(option, text, "a size such as 64KB or 50MB")
    return int(found[1]) * _UNITS[(found[2] or "B").casefold()]
