"""Predictions in JSON: {"id": prediction, …}, or [{"id": …, "prediction": …}, …]."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from holdfast.holdout.submissions.frames import pairs_of
from holdfast.holdout.submissions.pairs import PREDICTION, Pairs, check_columns, refused

__all__ = ["read_json"]


class _NotFinite(ValueError):
    """A number that JSON does not have."""


def read_json(content: bytes, column: str, rows: int) -> Pairs:
    """The pairs of a JSON text. Both forms keep ids that come twice, to be refused as such."""
    allowed = f'JSON: {{"{column}": prediction, …}} or [{{"{column}": …, "{PREDICTION}": …}}, …]'
    # Counted before it is read: brackets take a few bytes here and a hundred in memory.
    if content.count(b"[") + content.count(b"{") > 2 * rows + 1000:
        raise refused("more lists and objects than rows", allowed)
    try:
        # An object is a list of its pairs: Python's own would keep the last of two equal keys.
        data = json.loads(content, object_pairs_hook=_Object, parse_constant=_not_finite)
    except _NotFinite:
        raise refused("numbers that are not finite", "finite numbers") from None
    except (ValueError, RecursionError):  # RecursionError: nested beyond reason
        raise refused("something else", allowed) from None
    if isinstance(data, _Object):
        return pairs_of([key for key, _ in data], [value for _, value in data])
    if not isinstance(data, list):
        raise refused(type(data).__name__, allowed)
    return _listed(data, column, allowed)


class _Object(list[tuple[str, Any]]):
    """A JSON object as its pairs."""


def _listed(data: list[Any], column: str, allowed: str) -> Pairs:
    ids: list[Any] = []
    values: list[Any] = []
    for each in data:
        if not isinstance(each, _Object):
            raise refused("a list of something else", allowed)
        if len(each) != 2 or {key for key, _ in each} != {column, PREDICTION}:
            check_columns([key for key, _ in each], column)
            raise refused("an object with other keys", allowed)
        pair = dict(each)
        ids.append(pair[column])
        values.append(pair[PREDICTION])
    return pairs_of(ids, values)


def _not_finite(_: str) -> NoReturn:
    raise _NotFinite
