"""Answers as the ledger keeps them, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from holdfast.errors import Damaged
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.guesses import Corrected

__all__ = ["Result", "is_answer", "read_result", "written_result"]

Result = Answer | Verdict | Corrected

_KINDS: dict[str, type[Answer | Verdict]] = {"answer": Answer, "verdict": Verdict}
# The row says them; and the range is the open part's, which anybody can ask as often as they like.
_NOT_KEPT = ("cached", "receipt", "range_low", "range_high", "open_blocks")


def is_answer(result: Result) -> bool:
    """Whether anything was said of the data: `exhausted` says nothing, and is never kept."""
    verdict = result.verdict if isinstance(result, Corrected) else result
    return not isinstance(verdict, Verdict) or verdict.refused is not None


def written_result(result: Result) -> dict[str, Any]:
    """The result as plain data."""
    if isinstance(result, Corrected):
        correction = result.correction
        return {
            "type": "corrected",
            "verdict": written_result(result.verdict),
            "correction": None if correction is None else written_result(correction),
        }
    kind = "answer" if isinstance(result, Answer) else "verdict"
    values = {name: _plain(getattr(result, name)) for name in _types(type(result))}
    return {"type": kind, **{n: v for n, v in values.items() if n not in _NOT_KEPT}}


def read_result(data: Mapping[str, Any], receipt: str, *, cached: bool) -> Result:
    """The result that `written_result` wrote, with the receipt of its row."""
    try:
        if data["type"] == "corrected":
            verdict = read_result(data["verdict"], receipt, cached=cached)
            correction = data["correction"]
            later = None if correction is None else read_result(correction, receipt, cached=cached)
            assert isinstance(verdict, Verdict)
            assert later is None or isinstance(later, Answer)
            return Corrected(verdict, later)
        kind = _KINDS[data["type"]]
        types = _types(kind)
        values = {n: _back(v, types[n]) for n, v in data.items() if n != "type"}
        return kind(**values, cached=cached, receipt=receipt)
    except (KeyError, TypeError, AssertionError, ValueError) as wrong:
        remedy = "A newer version of Holdfast may have written it."
        raise Damaged("A recorded answer", "one as it was written", repr(wrong), remedy) from wrong


@cache
def _types(kind: type[Answer | Verdict]) -> dict[str, str]:
    """What is written of a result, in order, and its type; all of them are plain values."""
    return {field.name: str(field.type) for field in fields(kind)}


def _plain(value: Any) -> Any:
    """Infinities are written as text: they are values here, and no JSON."""
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _back(value: Any, kind: str) -> Any:
    return float(value) if isinstance(value, str) and kind.startswith("float") else value
