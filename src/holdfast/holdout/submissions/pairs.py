"""Pairs: ids and predictions as they were written, before either is understood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidInput

__all__ = ["PREDICTION", "Pairs", "check_columns", "refused", "some"]

PREDICTION = "prediction"
_NAMED = 3
_LONGEST = 40
_FREE = "Nothing was charged."


@dataclass(frozen=True)
class Pairs:
    """Two Arrow arrays of one length. Values that are text are read as what is wanted."""

    ids: Any
    values: Any

    def __len__(self) -> int:
        return len(self.ids)


def refused(found: str, allowed: str, hint: str = "") -> InvalidInput:
    """The refusal of a submission."""
    return InvalidInput("predictions", found, allowed, f"{hint} {_FREE}".strip())


def some(values: Sequence[object]) -> str:
    """At most three values, short, and without what a terminal would obey."""
    shown = []
    for value in values[:_NAMED]:
        text = str(value)
        text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        shown.append(text if text.isprintable() else ascii(text)[1:-1])
    return ", ".join(shown) + (", …" if len(values) > _NAMED else "")


def check_columns(names: Sequence[object], column: str) -> None:
    """Two columns, the ids' own and `prediction`, in any order."""
    if sorted(str(name) for name in names) != sorted((column, PREDICTION)):
        raise refused(
            f"the columns {some([*names]) or 'of none'}",
            f"two columns, {column} and {PREDICTION}",
        )
