"""Refusals: what is wrong with a text, in words that depend on it and the schema alone."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from holdfast.errors import InvalidInput

__all__ = ["Refusal", "meant", "refused"]

ALLOWED = {
    "question": "an SQL aggregate of the columns, as avg(x) or sum(x * w) / sum(w)",
    "term": "an SQL expression of one row, a truth value or a number from 0 to 1",
    "where": "an SQL condition on one row, as x > 60 AND group = 'A'",
}


class Refusal(Exception):
    """Some part of the text is not allowed; the message says which, why, and what to do."""


def refused(parameter: str, text: object, refusal: Refusal) -> InvalidInput:
    """The error that a user sees; a mean's term is the question too."""
    name = "question" if parameter == "term" else parameter
    return InvalidInput(name, text, ALLOWED[parameter], str(refusal))


def meant(name: str, known: Iterable[str]) -> str:
    """' Did you mean …?' if a known name is close, else nothing.

    >>> meant("arr_dely", ["dep_delay", "arr_delay"])
    " Did you mean 'arr_delay'?"
    """
    spelled = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower()[:100], spelled, n=1)
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""
