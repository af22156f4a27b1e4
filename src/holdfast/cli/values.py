"""Values as people type them."""

from __future__ import annotations

from typing import Any

import typer

__all__ = ["whole", "whole_option"]


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
